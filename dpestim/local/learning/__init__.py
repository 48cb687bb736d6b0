"""Learning from reports: models whose training rows never leave the users' devices but randomised.

Every user sends one noisy gradient (some of them a noisy row), and a server whom nobody trusts learns from them::

    Round --X, y of a group: slopes, gradients--> law of numbers/ --reports--> MeanEstimator --step--> the next Round
     (what all users may see)      (on the users' devices)                       (at the server)

    gradients.py    `Round`, what users answer, and the law that randomises it
    rounds.py       `GradientModel`: the verbs of both sides, which `fit` plays through, and predictions
    sgd.py          the estimators: a classifier and a regressor, and their proof `sgd.md`

Or every user reports values, and a model follows from counts::

    joint.py        columns of (class, value): what naive Bayes has users report, and its walk
    naive_bayes.py  `LDPNaiveBayes`: each user reports the class with one drawn feature
    features.py     reports of a column as features of a plain model
    privatized.py   `PrivatizedColumns`: chosen columns are reported, and made into features for a plain model

Losses stand in `dpestim.links`, rows of norm at most 1 in `dpestim.inputs`; both are those of the central models. No
noise is made here: laws of `numbers` and `categories` randomise.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Models, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("classes and columns are both private", "LDPNaiveBayes",
     "one report a user, no rounds; best where effects are nonlinear or a class is rare"),
    ("some columns are private, and the labels are not", "PrivatizedColumns",
     "any plain classifier follows; columns are corrected for the noise"),
    ("a number is to be predicted, and nobody may see a row", "LDPSGDRegressor",
     "each user sends one noisy gradient, with all of epsilon"),
    ("a linear classifier is wanted, and users may be asked in rounds", "LDPSGDClassifier",
     "each user sends one noisy gradient; at an epsilon of 1 it ranks rows better than naive Bayes in 8 of 11 tasks"),
)
