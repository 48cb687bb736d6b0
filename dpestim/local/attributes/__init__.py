"""Many attributes of a row: what is built of oracles for single columns, by one report a user.

    multi.py         `MultiAttributeFrequencyEstimator`: one drawn column, all columns, or one that hides among fakes
    hidden.py        the columns that hide: fakes, exact worst cases, estimates
    blank.py         unary encodings that can report no value
    oracles.py       which law a column has
    marginals.py     `MarginalEstimator`: joint tables, by one report of a drawn table (`dpestim.local.views`)
    designs.py       which tables are reported, by the exact expected error
    parities.py      parities of bits, from which tables follow, too
    noise.py         exact second moments of sums of cells
    tables.py        tables without bias, and consistent ones (`dpestim.postprocessing.entropy`)
    classes.py       predictions of one column by the others, from the tables
    independence.py  a chi-square test that knows of the noise
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Many attributes, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("frequencies of single columns are wanted", "MultiAttributeFrequencyEstimator",
     "each user reports one drawn column with all of epsilon"),
    ("columns are to be seen together", "MarginalEstimator",
     "joint tables with intervals, tests of independence, predictions, synthetic rows"),
)
