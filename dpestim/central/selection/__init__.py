"""Choosing: which of public candidates is best, which queries are above a threshold; only the choice is released.

How scores flow::

    scores --scores.py--> codes, steps of a public grid --ChoiceLaw.draw--> place --scores.py--> candidate
             (containers, names)                          (choice.py)

* `scores.py`     arrays, lists, series and dicts of scores, rounded down to the grid, and what candidates are called
* `choice.py`     `ChoiceLaw`: a frozen law on codes; `SelectionMechanism`: parameters, paying, `release`
* `weights.py`    choosing in proportion to irrational weights, exactly: integers propose, a coin with digits accepts
* `intervals.py`  the points of a public grid, cut into intervals by secret edges

One idea a file, law and estimator, with its proof beside it: exponential, permute_and_flip, noisy_max, base2, top_k,
and sparse_vector, which compares queries on the grid of `additive`; its secret state is that of `comparisons.py`.

Scores are rounded down, because that moves no two of them further apart than the next integer number of steps; so a
sensitivity that is an integer number of steps does not grow.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Choosing, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("one candidate of a list is wanted", "PermuteAndFlip", "never worse than the exponential mechanism"),
    ("a quantile of values that are mostly distinct is wanted", "ExponentialMechanism",
     "with `edges` it chooses near the rank; `dpestim.statistics.quantile` handles ties too"),
    ("several candidates of a list are wanted", "TopK",
     "one epsilon for all, and clear winners are found without noise"),
    ("many queries are asked, and few answers will exceed a threshold", "SparseVector",
     "only answers above the threshold cost budget"),
)
