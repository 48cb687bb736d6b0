"""Clusters under central differential privacy: k-means with private seeds.

How data flows::

    X --declared bounds--> packed rows --moments--> --cells--> seeds --noisy steps--> centers
       (_core/kmeans.pack)              (Rows: each round is a release of integer sums)

* `kmeans.py`   `DPKMeans`: the estimator, and what is made of the rounds
* `rounds.py`   what each round costs (`Plan`), and secret rows that answer them (`Rows`)
* `parts.py`    ... rows in parts
* `coreset.py`  functions of noisy numbers: cells for normal rows, k-means on weighted points

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.cluster.kmeans import DPKMeans

__getattr__, __dir__ = lazy.attach(__name__, {
    "kmeans": "DPKMeans",
})

__all__ = ["DPKMeans"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Clusters, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("rows fall into groups, and their centers are wanted", "DPKMeans", "private seeds and a few noisy steps"),
)
