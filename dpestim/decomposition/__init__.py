"""Principal components under central differential privacy.

* `pca.py`    `DPPCA`, and its proof `pca.md`; how rows become sums, and sums a matrix: `dpestim.covariance`
* `power.py`  rounds of noisy products with a basis, without a matrix, and their proof `power.md`

Power iteration holds less of the variance than one noisy matrix of the same rows (`benchmarks/components.py`): it is
there for more columns than a matrix has room for.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.decomposition.pca import DPPCA

__getattr__, __dir__ = lazy.attach(__name__, {
    "pca": "DPPCA",
})

__all__ = ["DPPCA"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Components, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("many columns are to become few components", "DPPCA",
     "one noisy covariance; the norm of transformed rows is public"),
)
