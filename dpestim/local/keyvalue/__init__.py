"""Key-value data: what people hold is a set of (key, value) pairs; how often each key is held, and its mean value.

A row is a set: a `PairRows` of sorted keys and places of values between the bounds, which are sliced by rows as it
does arrays. All pairs of a user are one column, and so one report and one epsilon.

    law.py        `KeyValueRandomizer`: what every law has: what it says of the key that is looked at, and of others
    column.py     `PairColumn`: the keys, the bounds and a law; `PairRows`
    estimates.py  `Estimates`: frequencies, means, variances and intervals, the same for every law
    estimator.py  `KeyValueEstimator`: client and server in one

One idea a file, law and estimator, with its proof beside it: pckv, privkv, privkvm.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Frequencies and means of keys, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("most users hold few of many keys, and it is known how many", "PCKVEstimator",
     "every report informs about every key; the padding length must be declared"),
    ("there are few keys, or it is unknown how many of them a user holds", "PrivKVEstimator",
     "each user is asked for one key, and may hold any number"),
)
