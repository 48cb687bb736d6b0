"""Recommendations: what users like who trust the holder of their ratings, or nobody at all.

How data flows::

    table of ratings --rating_matrix--> sparse users x items --ratings--> Ratings --> similar items --> recommend(row)
                                                                             └--> flipped lists --┘

* `ratings.py`          ratings as they come in, and `rating_matrix`
* `similar.py`          what is kept of similarities, and `recommend`
* `base.py`             what is released with noise: whom it protects, integers of ratings, means of items
* `item_similarity.py`  `DPItemSimilarity`: noisy products of ratings, for all ratings of a user, or one
* `factorization.py`    `DPMatrixFactorization`: factors of items from noisy sums; those of users stay with the users
* `lcf.py`              `DPLCFRecommender`: lists of which users flip bits; no holder is trusted
* `own_factors.py`      what a device works out of its user's ratings at known factors of items
* `local_factorization.py`  `LDPMatrixFactorization`: factors of items in rounds; no holder is trusted

What is published is about items. What a user is told is worked out of that and of the user's own row, so that no
estimator keeps rows.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.recommend.factorization import DPMatrixFactorization
    from dpestim.recommend.item_similarity import DPItemSimilarity
    from dpestim.recommend.lcf import DPLCFRecommender
    from dpestim.recommend.local_factorization import LDPMatrixFactorization
    from dpestim.recommend.own_factors import FactorRound
    from dpestim.recommend.ratings import rating_matrix

__getattr__, __dir__ = lazy.attach(__name__, {
    "factorization": "DPMatrixFactorization",
    "item_similarity": "DPItemSimilarity",
    "lcf": "DPLCFRecommender",
    "local_factorization": "LDPMatrixFactorization",
    "own_factors": "FactorRound",
    "ratings": "rating_matrix",
})

__all__ = [
    "DPItemSimilarity",
    "DPLCFRecommender",
    "DPMatrixFactorization",
    "FactorRound",
    "LDPMatrixFactorization",
    "rating_matrix",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Recommendations"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("items are recommended by how users rated", "DPItemSimilarity", "all ratings of a user, or one, are protected"),
    ("ratings are predicted, and there are tens of thousands of users", "DPMatrixFactorization",
     "a few factors of each item need less noise than all pairs of items"),
    ("nobody is trusted, and users have an item or not", "DPLCFRecommender", "bits are flipped before they are sent"),
    ("nobody is trusted, and 100,000 users or more rate", "LDPMatrixFactorization",
     "all ratings of a user are protected, and devices answer in rounds"),
)
