"""Trees over the values of a column: the levels that users report, each with a law of its own, from public numbers."""

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpestim.local.categories.choice import candidates, spread_of
from dpestim.local.domains.signs import HaarSign
from dpestim.local.domains.waves import Middles
from dpestim.local.numbers.sw import SW
from dpestim.local.views import Quotient, ViewColumns
from dpestim.postprocessing import trees

#: Mechanisms whose report is one code, so that the variance of any sum of their estimates can be seen in the counts.
#: The best of all is at most 1.25 times as good where a node has few siblings, and 1.03 times from 32 values on.
_SHORT = ("GRRFrequencyEstimator", "PGRFrequencyEstimator")
#: The most values of a column.
MOST_VALUES = 1 << 20
#: Counts of a law for whose nodes covariances are left out: they are below the variance over the number of nodes.
_LARGE = 1 << 14
METHODS = ("auto", "hierarchy", "haar", "hio", "square_wave")
#: Those whose variances are known before any report.
PLANNED = ("hierarchy", "haar")


@lru_cache(maxsize=1024)
def short_law(epsilon, size):
    """Return the law of the least variance for so many values, of those whose report is one code."""
    laws, refused = candidates(epsilon, size, _SHORT)
    if not laws:
        raise ValueError(next(iter(refused.values())))
    return min(laws.values(), key=lambda law: (spread_of(law).rmse(1), law.report_bits))


def node_variance(law):
    """Return the variance of a node's share, for one report of evenly spread users, their being drawn included."""
    even = 1 / law.n_categories
    return spread_of(law).rmse(1) ** 2 + even * (1 - even)


def level_law(epsilon, size, method):
    """Return the law of a level of so many nodes."""
    return HaarSign.make(epsilon, size) if method == "haar" else short_law(epsilon, size)


@lru_cache(maxsize=1024)
def sibling_variance(law):
    """Return half the variance of the difference of two nodes: that less their covariance (``ranges.md``, claim 4)."""
    if law.n_counts > _LARGE and not isinstance(law, HaarSign):
        return node_variance(law)
    return float(law.squares_of_sum(np.eye(1, law.n_categories)[0] - np.eye(1, law.n_categories, 1)[0]).mean()) / 2


def mean_variance(epsilon, size, fanouts, method):
    """Return n times the variance of a range of n users, on average over all ranges and with evenly spread users."""
    # (levels are drawn among these users: the share R of all of them has no variance, of which levels count R (1 - R))
    share, square = (size + 2) / (3 * size), (size + 1) * (size + 2) / (6 * size**2)
    return _sum_over_levels(epsilon, size, fanouts, method) - (share - square)


def _sum_over_levels(epsilon, size, fanouts, method):
    height, variance_of = len(fanouts), node_variance if method == "hio" else sibling_variance
    each = [height * variance_of(level_law(epsilon, nodes, method)) for nodes in trees.level_sizes(fanouts)[1:]]
    if method == "haar":
        return trees.mean_range_variance(fanouts, None, size, below=[0.0, *each])
    if method == "hio":
        return sum(often * variance for often, variance in zip(trees.mean_cover(fanouts, size)[1:], each))
    return trees.mean_range_variance(fanouts, [0.0, *each], size)


@lru_cache(maxsize=256)
def best_fanouts(epsilon, size, method):
    """Return fan-outs of a small `mean_variance`: the best of about equal ones, improved level by level.

    Clients and servers must find the same ones: ties are those of nine digits, and go to the smaller tuple.
    """
    if method == "haar":
        return (2,) * (size - 1).bit_length()

    def score(fanouts):
        return float(f"{mean_variance(epsilon, size, fanouts, method):.9g}"), fanouts

    found = []
    for height in range(1, (size - 1).bit_length() + 1):
        fanouts = trees.even_fanouts(size, height)
        if math.prod(fanouts) > MOST_VALUES:
            continue
        found.append(score(fanouts))
        if len(found) > 3 and found[-1][0] > 1.5 * min(found)[0]:
            break
    best, before = min(found), None
    while best != before:
        before, best = best, min([best, *map(score, _near(best[1]))])
    return best[1]


@lru_cache(maxsize=256)
def best_method(epsilon, size):
    """Return the method without bias of the least `mean_variance` over so many values."""
    return min(PLANNED, key=lambda method: mean_variance(epsilon, size, best_fanouts(epsilon, size, method), method))


def _near(fanouts):
    """Return the trees in which two levels are one, one level is two, or neighbouring levels are swapped."""
    out = set()
    for level, fanout in enumerate(fanouts):
        before, after = fanouts[:level], fanouts[level + 1 :]
        out |= {(*before, a, fanout // a, *after) for a in range(2, fanout) if fanout % a == 0}
        if after:
            out |= {(*before, fanout * after[0], *after[1:]), (*before, after[0], fanout, *after[1:])}
    return sorted(out)


class Tree(NamedTuple):
    """How ranges of one feature are reported: its method, and the fan-outs of its tree."""

    method: str
    fanouts: tuple


class TreeColumns(ViewColumns):
    """The levels of the trees over the values of some features, of which a user reports one."""

    @classmethod
    def of(cls, features, all_trees, epsilon, **more):
        """Return the columns of such trees."""
        views = []
        for place, (feature, (method, fanouts)) in enumerate(zip(features, all_trees)):
            if method == "square_wave":
                views.append(Middles(feature.name, SW.make(epsilon), place, feature.n_values))
                continue
            widths, sizes = trees.node_widths(fanouts), trees.level_sizes(fanouts)
            views += [Quotient(f"{feature.name}, level {level} of {len(fanouts)}", level_law(
                epsilon, sizes[level], method), place, widths[level]) for level in range(1, len(sizes))]
        return cls(views, n_sampled=1, features=features, **more)

    def levels_of(self, place):
        """Return (the fan-outs, the numbers of the views) of the tree over a feature."""
        numbers = [k for k, view in enumerate(self.columns) if view.places == (place,)]
        views = [self.columns[k] for k in numbers]
        sizes = [1, *(getattr(view.law, "n_categories", None) or view.size for view in views)]
        return tuple(b // a for a, b in pairwise(sizes)), numbers

    def method_of(self, place, method):
        """Return how a feature is reported, where the parameter `method` has this value."""
        law = next(view.law for view in self.columns if view.places == (place,))
        known = {HaarSign: "haar", SW: "square_wave"}
        return known.get(type(law), method if method in ("hio", "hierarchy") else "hierarchy")
