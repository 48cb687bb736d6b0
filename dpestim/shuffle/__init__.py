"""The shuffle model: users add little noise, and a shuffler forgets who sent what.

Data flow as in `dpestim.local`: a law turns a value into messages, a walk over blocks counts them. What differs is
what is promised, and to whom: the view of the analyser is the multiset of all messages, so a guarantee is about all
users together (their number is public), needs a shuffler that is trusted, and is computed, not looked up.

    law.py       `ShuffleLaw`: what one user sends, and a proven bound on what all messages together tell
    base.py      `ShuffleProtocol`: `encode` on the user's side, `shuffle`, `analyse`; what is promised, to whom
    coins.py     what fair coins among messages hide: a proven bound on delta, for sums by bits and for histograms
    sums/        sums and means: `BooleanSum`, `RealSum`, and the laws behind them
    histograms/  frequencies of categories: `ShuffledHistogram`
    planning.py  `plan`: which mechanism of categories is best behind a shuffler, how many users or how much epsilon
    choice.py    how far off each local law is behind a shuffler
    shuffled.py  `ShuffledEstimator`: any local estimator behind a shuffler
    transport/   what shuffles: `UniformShuffler`, `BucketShuffler`, `IBLTShuffler` over a `SecureSum`
    amplification/  what n shuffled messages promise, given the local law of one: bounds, proven and computed

A protocol's neighbours are data sets of equal size that differ in one user's value. Every bound lies above the law of
small cases that are enumerated exactly (`dpestim.testing`).
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.shuffle.histograms.fakes import ShuffledHistogram
    from dpestim.shuffle.planning import ShufflePlan, ShuffleRow, plan
    from dpestim.shuffle.shuffled import ShuffledEstimator
    from dpestim.shuffle.sums.boolean import BooleanSum
    from dpestim.shuffle.sums.real import RealSum
    from dpestim.shuffle.transport import BucketShuffler, IBLTShuffler, SecureSum, Shuffler, UniformShuffler

__getattr__, __dir__ = lazy.attach(__name__, {
    "histograms.fakes": "ShuffledHistogram",
    "planning": "ShufflePlan ShuffleRow plan",
    "shuffled": "ShuffledEstimator",
    "sums.boolean": "BooleanSum",
    "sums.real": "RealSum",
    "transport": "BucketShuffler IBLTShuffler SecureSum Shuffler UniformShuffler",
})

__all__ = [
    "BooleanSum",
    "BucketShuffler",
    "IBLTShuffler",
    "RealSum",
    "SecureSum",
    "ShufflePlan",
    "ShuffleRow",
    "ShuffledEstimator",
    "ShuffledHistogram",
    "Shuffler",
    "UniformShuffler",
    "plan",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Any local estimator, shuffle model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a local estimator is in use, and its reports can be shuffled", "ShuffledEstimator",
     "the same results with far less noise: epsilon covers all shuffled reports together"),
    ("the most frequent values are wanted, nobody can list them, and reports can be shuffled", "ShuffledEstimator",
     "of a `HeavyHitterEstimator`: all users hide each other, whichever part of the value they report"),
)
