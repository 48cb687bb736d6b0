"""Estimates from the reports of any client: servers that count codes and make a mean or a distribution of the counts.

    transformer_server.py  `TransformerServer`: a server whose client is its parameter `transformer`, which pays
    mean.py                `MeanEstimator`
    distribution.py        `DistributionEstimator`, by expectation maximisation
    personalized.py        `PersonalizedEstimator`: users of different settings (`groups.py`) around any server,
                           frequency estimators included, and one estimate of all (`combined.py`, with the functions of
                           `mixtures.py`)
    mixed.py               `MixedEstimator`: columns of several kinds (`rows.py`), one report, one epsilon
                           (`sharing.py`)
    options.py             which mechanisms a plan chooses from, their errors and what they cost
    planning.py            `plan`, `plan_mean`: before any report, which mechanism, how many users, how much epsilon
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Means and distributions from reports, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("the mean is wanted, with an interval", "MeanEstimator",
     "unbiased where the reports allow it; `bias_` bounds the bias"),
    ("the shape, quantiles or the variance are wanted", "DistributionEstimator",
     "estimates the whole distribution by expectation maximisation; slightly biased"),
    ("a table has numbers and categories", "MixedEstimator",
     "one report a user with one epsilon; a random draw shares it among columns; one mechanism for each kind"),
    ("groups of users have different settings", "PersonalizedEstimator",
     "an epsilon, domain or low-sensitivity set for each public group; estimates about all users"),
)
