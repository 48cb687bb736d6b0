"""Categories: what people hold is one of a public list of values, and the answer is how often each is held.

    law.py      `CategoricalRandomizer`: what every law over d categories has (supports, frequencies, variances)
    column.py   `CategoryColumn`: a list of categories and a law
    frequencies.py  `Frequencies`: answers, errors and intervals from counts
    estimator.py  `FrequencyEstimator`: client and server in one, and scikit-learn's transformer around both
    relaxed.py  `Relaxed`: what laws share that give categories named by a parameter less protection
    projective.py  finite projective spaces: which one suits, and the numbers of its points
    choice.py   which laws there are to choose from, and their errors, for `adaptive` and for plans
    supports.py, hashing.py  what an adversary guesses from bits and subsets, and from hashes
    open.py     `OpenFrequencyEstimator`: columns that nobody lists the values of, and `estimate(values)`
    sketch.py   `Sketch`: public hashes to buckets, and what collisions do to estimates
    bloom.py    public Bloom filters of codes, by cohort
    regression.py  least squares of bits on candidates, and its exact variance

    longitudinal.py  `Memoised`, `LongitudinalEstimator`: clients that keep what they said

One idea a file, law and estimator, with its proof beside it: adaptive, binary, cms (and hcms), dbitflip, grr,
histogram_encoding, hr, idue, lgrr, loloha, lunary, metric, olh, pgr, rappor, sdgrr, ss, unary, urap, urr.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Frequencies of categories, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("there are few values, d < 3 e^epsilon + 2", "GRRFrequencyEstimator",
     "the shortest reports and the least time; the error is near that of SS"),
    ("there are more values, and d bits may be sent", "OUEFrequencyEstimator",
     "the error is near that of SS, and both sides are fast"),
    ("there are more values, and reports must be short", "OLHFrequencyEstimator",
     "the error of OUE; the server tries every value for every user"),
    ("d is large, and both sides must be fast", "HRFrequencyEstimator",
     "log2(d) + 1 bits and little work; the error grows where a few values hold most users, and above an epsilon of 1"),
    ("d is large, and the error must not grow", "PGRFrequencyEstimator",
     "within a few percent of SS, reports of about log2(d) bits, and both sides are fast"),
    ("the values cannot be listed, or are too many to count", "HCMSFrequencyEstimator",
     "one bit besides a public number; `estimate(values)` takes values that were never declared"),
    ("the values cannot be listed, and more bits may be sent", "CMSFrequencyEstimator",
     "the error of OUE, at 1,024 bits for 2^20 values"),
    ("users report many times, about values that cannot be listed", "RAPPORFrequencyEstimator",
     "all reports from one stored answer have one epsilon together; less accurate than OUE for a single report"),
    ("only accuracy counts", "SSFrequencyEstimator",
     "the least error on average over the values; d bits and many draws a user"),
    ("the same users are asked many times", "LOLOHAFrequencyEstimator",
     "one epsilon for all reports of a value that stays; for few values LGRR, where d bits may be sent LOSUE"),
    ("values differ in how much protection they need", "IDUEFrequencyEstimator",
     "an epsilon for each value, and a plain guarantee for all"),
    ("only nearby values must hide among each other", "MetricFrequencyEstimator",
     "distant values are told apart better; at most 128 values"),
    ("some values need less protection than others", "SDGRRFrequencyEstimator",
     "you name these values; `privacy_` states what is left; no plain guarantee"),
    ("some values need no protection", "URRFrequencyEstimator",
     "the least error for these values; with many sensitive values URAP is more accurate, at d bits"),
    ("epsilon or the domain are not known yet", "AdaptiveFrequencyEstimator",
     "it chooses a mechanism from public facts only"),
    ("the survey was taken with a coin, dice or cards", "BinaryFrequencyEstimator",
     "it takes any design of two answers"),
)
