"""Trees and forests: the worst ratio of the probabilities of any structure and any leaves, exactly, on tiny neighbours.

What is private of a fit is a choice in each node and noise on leaves (`BinnedModel._parts`), after edges that may be
found (`BinnedColumns._edges_to_find`); given those, bins are as good as any others. All structures of few
candidates are gone through, so that nothing has to be sampled.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from sklearn.base import is_classifier

from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon, exp_upper
from dpestim.testing.plans import plan_loss
from dpestim.testing.tools import fresh, require

#: Rows of tiny data, whose last one is another one, or none, for the neighbour.
ROWS = 16


def check_tree_law(estimator):
    """No tree is likelier than e^epsilon times what it is for a neighbour, in either direction, but for delta."""
    est = fresh(estimator).set_params(n_bins=2, max_depth=2)
    if hasattr(est, "split_fraction"):  # (too little noise shows where it has a large share of the budget)
        est.set_params(split_fraction=0.5)
    epsilon, worst = canonical_epsilon(est.epsilon), Fraction(0)
    for pair in neighbours(est):
        one, two = (parts_of(est, X, y) for X, y in pair)
        n_inner = 3 if one[0] is not None else 0
        for path in product(range(3), repeat=n_inner):
            ratio, deltas = losses(one, two, path)
            ratio *= loss_of_edges(one[-1], two[-1])
            worst = max(worst, ratio)
            require(ratio <= exp_upper(epsilon), "a tree must not be likelier than e^epsilon times for a neighbour")
            delta = float(getattr(est, "delta", 0) or 0)
            left = float(epsilon) - math.log(loss_of_edges(one[-1], two[-1]))
            require(all(d(left) <= delta * (1 + 1e-9) for d in deltas), "leaves must keep their delta")


def neighbours(est):
    """Yield pairs of tiny data sets (X, y), of the relation that is declared: rows are in two corners, by target."""
    side = np.arange(ROWS) % 2
    rows = np.where(np.arange(3) == 0, 2.0 * side[:, None] - 1, -1.0)
    ends = est.classes if is_classifier(est) else getattr(est, "target_bounds", None) or est.target_bounds
    ends = np.asarray(ends)[[0, -1]]
    targets = ends[side]
    for place, end in product((0, 1), repeat=2):
        X, y = rows.copy(), targets.copy()
        X[-1], y[-1] = rows[place], ends[end]
        if est._neighbours is Neighbours.ADD_REMOVE:
            yield (X, y), (X[:-1], y[:-1])
        else:
            yield (rows, targets), (X, y)


def parts_of(est, X, y):
    """Return what `fit` would draw from for these rows."""
    epsilon, delta = est._check()
    trial = est._trial(X, y)
    data, n_rows, n_columns = trial._read(X, y, True)
    edges, rest = trial._edges_to_find(data[0], n_rows, n_columns, epsilon)
    return *trial._parts(data, n_rows, trial._domain(n_columns, data), rest, delta), edges


def loss_of_edges(one, two):
    """Return the worst ratio of the probabilities of edges, from their plans or None."""
    require((one is None) == (two is None), "neighbours must look for the same edges")
    return Fraction(1) if one is None else plan_loss(one, two)[0]


def losses(one, two, path):
    """Return (the worst ratio of the probabilities of a structure and all its leaves, deltas) of two fits."""
    ratios, plans, scores = [Fraction(1), Fraction(1)], [], []
    for _, grow, leaves, _ in (one, two):
        met = []
        plans.append(leaves(grow(lambda node, found, met=met: met.append(tuple(found.tolist())) or path[node])))
        scores.append(met)
    require(one[0] == two[0], "neighbours must choose by one law")
    for node, (a, b) in enumerate(zip(*scores)):
        (low, high), (least, most) = (_chances(one[0], found)[path[node]] for found in (a, b))
        ratios = [ratios[0] * low / most, ratios[1] * least / high]
    ratio, deltas = plan_loss(*plans)
    return max(ratios) * ratio, deltas


@lru_cache(maxsize=4096)
def _chances(law, scores):
    return law.enclosures(np.array(scores, np.int64))


TREE_CHECKS = (check_tree_law,)
