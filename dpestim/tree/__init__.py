"""Decision trees under central differential privacy.

How data flows::

    X --declared bounds, categories--> codes --counts in nodes--> scores --permute-and-flip--> splits, level by level
               (_binning, _core/trees)                                    noisy counts in leaves --> values_

* `binning.py`  rows to codes of one byte, by declared bounds and categories
* `columns.py`   models of such codes: what is declared of columns, by number or name, or found with a share of the
  budget (boosting reads by it, too)
* `base.py`      what trees and forests share: parameters, reading, leaves that shrink to their parents
* `rounds.py`    exact counts while a tree grows, of rows that are here or in parts
* `tree.py`     `DPDecisionTreeClassifier`, `DPDecisionTreeRegressor`; forests are in `dpestim.ensemble`

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.tree.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor

__getattr__, __dir__ = lazy.attach(__name__, {
    "tree": "DPDecisionTreeClassifier DPDecisionTreeRegressor",
})

__all__ = ["DPDecisionTreeClassifier", "DPDecisionTreeRegressor"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Trees, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("classes are to be predicted by rules that can be read", "DPDecisionTreeClassifier",
     "few splits, chosen where they matter"),
    ("a number is to be predicted by rules that can be read", "DPDecisionTreeRegressor",
     "few splits, chosen where they matter, and noisy means"),
)
