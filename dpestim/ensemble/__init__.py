"""Ensembles under central differential privacy: boosted curves and random forests.

How boosting goes::

    X, y --bounds, categories, classes--> codes of bins --rounds of noisy sums--> a curve for each column or pair
                 (inputs)                               (rounds.py)

* `boosting.py`     `DPGradientBoostingClassifier`, `DPGradientBoostingRegressor`: targets and predictions
* `base.py`         what both share: parameters, bins, the fit
* `boosting.md`     the proof
* `rounds.py`       what histograms cost, who answers with them, and the rounds over terms
* `curve.py`        how bins and curves are made of the answers: arithmetic on what is public
* `forest.py`       random forests: public splits, noisy leaves (`dpestim.tree` has what trees share)

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.ensemble.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
    from dpestim.ensemble.forest import DPRandomForestClassifier, DPRandomForestRegressor

__getattr__, __dir__ = lazy.attach(__name__, {
    "boosting": "DPGradientBoostingClassifier DPGradientBoostingRegressor",
    "forest": "DPRandomForestClassifier DPRandomForestRegressor",
})

__all__ = [
    "DPGradientBoostingClassifier",
    "DPGradientBoostingRegressor",
    "DPRandomForestClassifier",
    "DPRandomForestRegressor",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Ensembles, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("classes are predicted, and columns have nonlinear effects", "DPGradientBoostingClassifier",
     "one curve for each column, which can be plotted; missing values and strings"),
    ("a number is predicted, and columns have nonlinear effects", "DPGradientBoostingRegressor",
     "one curve for each column, which can be plotted; missing values and strings"),
    ("classes are to be predicted in one pass, where summaries merge", "DPRandomForestClassifier",
     "splits cost nothing: the leaves get the whole budget"),
    ("a number is to be predicted in one pass, where summaries merge", "DPRandomForestRegressor",
     "splits cost nothing: the noisy means of the leaves get the whole budget"),
)
