"""Random graphs of blocks of nodes: so many edges within and between blocks, with ends in proportion to weights.

No data, and no privacy, but for the law of the noise of degrees: all of it follows from numbers that were released.
"""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.graph.generators.cells import cell_of, is_among

#: Degrees with noise of a smaller rate say nothing, and the range of their noise would fill the memory.
_LEAST_RATE = Fraction(1, 10_000)
#: So often edges that were loops, or there already, are drawn again, the last times without weights, of which few may
#: be the most; what is missing then stays missing.
_ROUNDS, _EVEN = 14, 8


def law_of_degrees(rate):
    """Return the law of the noise of degrees, or raise ValueError for too small a rate."""
    if rate < _LEAST_RATE:
        raise ValueError("epsilon is too small, because noise hides all degrees: take an epsilon of at least 0.001, or "
                         "spend more of it on degrees")
    return law_of_rate(rate)


def whole_numbers(expected, total, rng):
    """Return integers that add up to `total`, each the expected number rounded up or down (systematic sampling)."""
    ends = np.cumsum(np.maximum(expected, 0.0))
    if not len(ends) or ends[-1] <= 0:
        return np.zeros(len(ends), np.int64)
    return np.diff(np.floor(ends / ends[-1] * total + rng.random() * (1 - 1e-9)).astype(np.int64), prepend=0)


class Blocks:
    """Nodes by block, of which one may be drawn in proportion to its weight."""

    def __init__(self, labels, weights, n_blocks):
        self.order = np.argsort(labels, kind="stable")
        self.sizes = np.bincount(labels, minlength=n_blocks)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self._line = np.concatenate([[0.0], np.cumsum(weights[self.order])])
        ends = self._line[self._starts]
        self._low, self._long = ends[:-1], np.diff(ends)

    @property
    def totals(self):
        """The sum of the weights of each block."""
        return self._long

    def nodes(self, blocks, rng, even=False):
        """Return a node of each of these blocks."""
        if even:
            return self.order[self._starts[blocks] + (rng.random(len(blocks)) * self.sizes[blocks]).astype(np.int64)]
        at = self._low[blocks] + rng.random(len(blocks)) * self._long[blocks]
        places = np.searchsorted(self._line, at, side="right") - 1
        return self.order[np.clip(places, self._starts[blocks], self._starts[blocks + 1] - 1)]

    def cells(self, one, two, counts, rng):
        """Return (cells, places): so many different cells between blocks one[k] and two[k], and the k of each. O(m)."""
        inside = np.where(one == two, self.sizes[one] * (self.sizes[one] - 1) // 2, self.sizes[one] * self.sizes[two])
        missing = np.where((self._long[one] > 0) & (self._long[two] > 0), np.minimum(counts, inside), 0)
        known = places = np.empty(0, np.int64)
        for k in range(_ROUNDS):
            drawn = np.repeat(np.arange(len(one)), missing)
            if not len(drawn):
                break
            i, j = (self.nodes(blocks[drawn], rng, k >= _EVEN) for blocks in (one, two))
            some = i != j
            found, first = np.unique(cell_of(i[some], j[some]), return_index=True)
            new = ~is_among(found, known)
            fresh = drawn[some][first[new]]
            known, places = np.concatenate([known, found[new]]), np.concatenate([places, fresh])
            order = np.argsort(known, kind="stable")
            known, places = known[order], places[order]
            missing = missing - np.bincount(fresh, minlength=len(one))
        return known, places
