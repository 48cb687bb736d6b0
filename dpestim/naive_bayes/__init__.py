"""Naive Bayes under central differential privacy: one release of noisy sums within classes.

How data flows::

    X, y --declared classes, bounds or categories--> exact integers --one release of noise--> counts, means, tables
                 (inputs, statistics.summary)                   (statistics.noise)

* `base.py`         what both share: parameters, the prior, probabilities
* `gaussian.py`     `DPGaussianNB`: counts, sums and sums of squares in each class
* `categorical.py`  `DPCategoricalNB`: tables of class and category

``summarize``, ``merge`` and ``release`` do what `fit` does in one call (`dpestim.statistics.one_pass`).

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.naive_bayes.categorical import DPCategoricalNB
    from dpestim.naive_bayes.gaussian import DPGaussianNB

__getattr__, __dir__ = lazy.attach(__name__, {
    "categorical": "DPCategoricalNB",
    "gaussian": "DPGaussianNB",
})

__all__ = ["DPCategoricalNB", "DPGaussianNB"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Naive Bayes, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("columns are categories, and one pass must suffice", "DPCategoricalNB",
     "tables of counts: little noise, no bounds"),
    ("columns are numbers, and one pass must suffice", "DPGaussianNB", "means and variances in each class"),
)
