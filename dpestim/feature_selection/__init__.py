"""Feature selection under central differential privacy: the choice alone is released.

    select.py   `DPSelectKBest`: the k columns whose scores, of bounded sensitivity, are highest, by a top-k mechanism

``summarize``, ``merge`` and ``release`` do what `fit` does in one call (`dpestim.statistics.one_pass`).

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.feature_selection.select import DPSelectKBest

__getattr__, __dir__ = lazy.attach(__name__, {
    "select": "DPSelectKBest",
})

__all__ = ["DPSelectKBest"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Feature selection, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("few of many columns are informative", "DPSelectKBest",
     "the model that follows has noise for k columns only"),
)
