"""Numbers: what people hold lies between two public bounds, and what they send is a noisy position on a public grid.

    law.py        `NumericRandomizer`: what every law on a grid has, from a table of integer weights
    column.py     `NumberColumn`: a pair of bounds and a law
    missing.py    `NumberOrMissing`: any of these laws, where values may be missing (``missing=True`` in a `Domain`)
    missing_column.py  `MissingColumn`: a pair of bounds and such a law
    joint.py      `JointColumn`: several columns that share a report, and `JointRandomizer`, the base of its laws
    ball.py       `BallColumn`: all columns are one vector in a ball, and its law
    transformer.py `NumericTransformer`: the client, which is also scikit-learn's transformer of numbers
    inversion.py  unbiased numbers for the sensitivity-aware law, by linear inversion

One idea a file, law and estimator, with its proof beside it: duchi, hm, laplace, pm, privunit, sdpm, staircase, sw.
Means and distributions are made of the reports by the servers in `dpestim.local.estimates`.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Noisy numbers, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a mean is wanted, and values keep to the middle of the bounds", "PMTransformer",
     "unbiased; the least variance there above an epsilon of about 0.6; at 2 about 0.6 times that of HM"),
    ("a mean is wanted, or the noisy numbers themselves, and epsilon is above about 5", "StaircaseTransformer",
     "unbiased; its largest variance falls fastest, at 8 to about half that of the others"),
    ("a mean is wanted, or the noisy numbers themselves", "HMTransformer",
     "unbiased; up to an epsilon of about 5 its largest variance is the smallest"),
    ("a smooth distribution is wanted", "SWTransformer",
     "made for whole distributions; its mean has more variance than that of PM"),
    ("a row is a vector of limited length, and its mean is wanted", "PrivUnitTransformer",
     "all of epsilon goes to the vector: the least variance that is possible, within a few percent"),
    ("one bit must do, or a row has 16 columns or more", "DuchiTransformer",
     "the least variance at worst below an epsilon of about 0.6, as HM; for 16 columns or more with "
     "`strategy=\"sample\"`, for an epsilon of 1 to 10"),
    ("both a mean and a distribution are wanted", "PMTransformer",
     "unbiased, so that the plain mean of its reports is right; its reports also inform about the distribution"),
    ("a part of the range needs no protection", "SDPMTransformer",
     "more accurate there; no plain guarantee: `privacy_` and `guarantee_by_input_` state what is left"),
)
