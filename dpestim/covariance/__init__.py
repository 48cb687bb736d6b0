"""Covariance matrices under central differential privacy, from one pass over the rows.

How data flows::

    X --public bounds or norm--> integers --sums of products--> Summary --noise, once--> matrix --repair--> covariance_
              (statistics.row_moments)               (merge)      (statistics.moment_noise)   (_repair)

* `base.py`         verbs and parameters, which `dpestim.decomposition` shares
* `repair.py`      what noise explains is taken from the matrix, and what no covariance has
* `covariance.py`  `DPCovariance`, and its proof `covariance.md`

``summarize``, ``merge`` and ``release`` do what `fit` does in one call (`dpestim.statistics.one_pass`).

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.covariance.covariance import DPCovariance

__getattr__, __dir__ = lazy.attach(__name__, {
    "covariance": "DPCovariance",
})

__all__ = ["DPCovariance"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Covariance, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("the covariance matrix of columns is wanted", "DPCovariance",
     "always a valid covariance matrix; variance that noise explains is subtracted"),
)
