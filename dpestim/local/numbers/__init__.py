"""Numbers: what people hold lies between two public bounds, and what they send is a noisy position on a public grid.

    law.py        `NumericRandomizer`: what every law on a grid has, from a table of integer weights
    column.py     `NumberColumn`: a pair of bounds and a law
    face.py       `NumericTransformer`: the client, which is also scikit-learn's transformer of numbers
    inversion.py  unbiased numbers for the sensitivity-aware law, by linear inversion

One idea a file, law and face, with its proof beside it: laplace, pm, sdpm, sw. Means and distributions are
made of the reports by the servers in `dpestim.local.estimates`.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Noisy numbers, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("noisy numbers are wanted, or their mean", "PMTransformer",
     "without bias, so that the plain mean of its reports is right; the noise is bounded"),
    ("a smooth distribution is wanted", "SWTransformer",
     "a window made for whole distributions; its mean has more variance than PM's"),
    ("epsilon is below about 0.4", "LaplaceTransformer",
     "less variance than PM there (at the bounds up to 0.75)"),
    ("a part of the range is nobody's secret", "SDPMTransformer",
     "more accurate there, but no plain guarantee: `privacy_` and `guarantee_by_input_` say what is left"),
)
