"""Categories: what people hold is one of a public list of values, and the answer is how often each is held.

    law.py      `CategoricalRandomizer`: what every law over d categories has (supports, frequencies, variances)
    column.py   `CategoryColumn`: a list of categories and a law
    frequencies.py  `Frequencies`: answers, errors and intervals from counts
    face.py     `FrequencyEstimator`: client and server in one, and scikit-learn's transformer around both
    relaxed.py  `Relaxed`: what laws share that give categories named by a parameter less protection
    projective.py  finite projective spaces: which one suits, and the numbers of its points
    choice.py   which laws there are to choose from, and their errors, for `adaptive` and for plans
    supports.py, hashing.py  what an adversary guesses from bits and subsets, and from hashes
    open.py     `OpenFrequencyEstimator`: columns that nobody lists the values of, and `estimate(values)`
    sketch.py   `Sketch`: public hashes to buckets, and what collisions do to estimates
    bloom.py    public Bloom filters of codes, by cohort
    regression.py  least squares of bits on candidates, and its exact variance

    longitudinal.py  `Memoised`, `LongitudinalEstimator`: clients that keep what they said

One idea a file, law and face, with its proof beside it: adaptive, binary, cms, dbitflip, grr, histogram_encoding,
hr, idue, lgrr, loloha, lunary, metric, olh, pgr, rappor, sdgrr, ss, unary, urap, urr.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Frequencies of categories, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("there are few values, d < 3 e^epsilon + 2", "GRRFrequencyEstimator",
     "the shortest reports and the least time, and near SS in error"),
    ("there are more, and d bits may be sent", "OUEFrequencyEstimator", "near SS in error, and both sides are quick"),
    ("there are more, and reports must be short", "OLHFrequencyEstimator",
     "the error of OUE; but the server tries every value for every user"),
    ("d is so large that both sides must be quick", "HRFrequencyEstimator",
     "log2(d) + 1 bits and little work; the error grows where a few values hold most users, and above an epsilon of 1"),
    ("d is large, and the error must not grow", "PGRFrequencyEstimator",
     "within a few percent of SS, reports of about log2(d) bits, and both sides are quick"),
    ("nobody can list the values, or they are too many to count", "HCMSFrequencyEstimator",
     "one bit besides a public number, and `estimate(values)` for values that were never declared"),
    ("the same, and more bits may be sent", "CMSFrequencyEstimator", "the error of OUE, at 1,024 bits for 2^20 values"),
    ("users report again and again", "RAPPORFrequencyEstimator",
     "all reports from one stored answer have one epsilon together; less accurate than OUE for a single one"),
    ("only accuracy counts", "SSFrequencyEstimator",
     "on average over the values none is more accurate; d bits and many draws a user"),
    ("the same users are asked again and again", "LOLOHAFrequencyEstimator",
     "a value that stays is reported for one price; with few values LGRR, where d bits may be sent LOSUE"),
    ("values differ in how much protection they need", "IDUEFrequencyEstimator",
     "each has an epsilon of its own, and all have a plain guarantee"),
    ("only nearby values must hide among each other", "MetricFrequencyEstimator",
     "distant ones are told apart better; at most 128 values"),
    ("some values need less protection than others", "SDGRRFrequencyEstimator",
     "it names them, and says what is left; no plain guarantee"),
    ("some values are nobody's secret", "URRFrequencyEstimator",
     "these are told apart as well as can be; with many sensitive values URAP is more accurate, at d bits"),
    ("epsilon or the domain are not known yet", "AdaptiveFrequencyEstimator",
     "it chooses among these, from public facts only"),
    ("the survey was taken with a coin, dice or cards", "BinaryFrequencyEstimator",
     "it takes any design of two answers"),
)
