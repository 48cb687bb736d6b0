"""Numbers: what people hold lies between two public bounds, and what they send is a noisy position on a public grid.

    law.py        `NumericRandomizer`: what every law on a grid has, from a table of integer weights
    column.py     `NumberColumn`: a pair of bounds and a law
    face.py       `NumericTransformer`: the client, which is also scikit-learn's transformer of numbers
    inversion.py  unbiased numbers for the sensitivity-aware law, by linear inversion

One idea a file, law and face, with its proof beside it: pm, sdpm. Means and distributions are made of the reports
by the servers in `dpestim.local.estimates`.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Noisy numbers, local model"
