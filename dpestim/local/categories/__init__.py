"""Categories: what people hold is one of a public list of values, and the answer is how often each is held.

    law.py      `CategoricalRandomizer`: what every law over d categories has (supports, frequencies, variances)
    column.py   `CategoryColumn`: a list of categories and a law
    face.py     `FrequencyEstimator`: client and server in one, and scikit-learn's transformer around both

One idea a file, law and face, with its proof beside it: binary, grr, hr, olh, ss, unary.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Frequencies of categories, local model"
