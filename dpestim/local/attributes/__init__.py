"""Many attributes of a row: what is built of oracles for single columns, by one report a user.

    multi.py     `MultiAttributeFrequencyEstimator`: one drawn column, all columns, or one that hides among fakes
    hidden.py    the columns that hide: fakes, exact worst cases, estimates
    blank.py     unary encodings that can report no value
    oracles.py   which law a column has
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Many attributes, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("frequencies of many columns are wanted", "MultiAttributeFrequencyEstimator",
     "each user reports one drawn column with all of epsilon"),
)
