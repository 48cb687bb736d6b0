"""The cells of an adjacency matrix above its diagonal, as integers; and which of them pass a filter, exactly.

Cell j (j - 1) / 2 + i is that of the nodes i < j. A filter lets every cell pass independently of all others, with one
probability for cells without an edge and another one for edges. Its law is that of a coin for each cell, and what it
draws are only the cells that pass: gaps between these are geometric numbers. Proof: ``tmf.md``.
"""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.additive.law import NoiseStream
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.records import record
from dpestim.rng import Stage

#: Words of edges that are drawn at a time, and gaps at least.
_WORDS, _GAPS = 1 << 18, 64
#: The least rate of a filter, and the least epsilon with which its rounding keeps the guarantee.
_LEAST_RATE, LEAST_EPSILON = Fraction(1, 1 << 40), Fraction(1, 1 << 20)
_UNIT = 1 << 64


def cell_of(i, j):
    """Return the numbers of cells, of nodes i != j in either order."""
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    return high * (high - 1) // 2 + low


def ends_of(cells):
    """Return the nodes (i, j), i < j, of the numbers of cells."""
    j = ((1 + np.sqrt(1 + 8 * cells.astype(np.float64))) / 2).astype(np.int64)  # off by 1 at most
    j -= j * (j - 1) // 2 > cells
    j += j * (j + 1) // 2 <= cells
    return cells - j * (j - 1) // 2, j


@record
class Filter:
    """A coin for each cell: one without an edge passes with 1 - e^-rate, an edge with `threshold` / 2^64.

    Both are exact, and an edge passes at most e^epsilon times as often, and fails at most e^epsilon times as seldom.
    """

    epsilon: Fraction
    rate: Fraction

    @classmethod
    def passing(cls, epsilon, n_cells, n_edges, wanted):
        """Return the filter that about so many of the cells pass, or the one of most edges where that is fewer."""
        growth = math.expm1(min(float(epsilon), 700.0))
        share = min(wanted / (n_cells + n_edges * growth), 1 / (growth + 2))
        return cls(epsilon, max(Fraction(-math.log1p(-share)), _LEAST_RATE))

    @property
    def threshold(self):
        """What the word of an edge must be below: the largest integer that keeps both ratios."""
        fails, less = exp_bounds(self.rate, 60)[1], exp_bounds(self.epsilon, 60)[1]  # (rounded up, against us)
        return min(math.floor(_UNIT * (1 - fails) / less), math.floor(_UNIT * (1 - fails * less)))

    @property
    def chances(self):
        """The probabilities of (a cell without an edge, an edge), as floats."""
        return -math.expm1(-float(self.rate)), self.threshold / _UNIT

    def draw(self, edges, n_cells, source):
        """Return the cells that pass, ascending; `edges` are those with an edge, ascending."""
        kept = np.concatenate([self._of_edges(edges, source.part(0)), _free(self.rate, n_cells, edges, source.part(1))])
        kept.sort()
        return kept

    def _of_edges(self, edges, source):
        reader, threshold, out = source.reader(), np.uint64(self.threshold), [np.empty(0, np.int64)]
        for at in range(0, len(edges), _WORDS):
            some = edges[at : at + _WORDS]
            out.append(some[reader.dense(Stage.RESPONSE, 0, 0, at, len(some)) < threshold])
        return np.concatenate(out)


def _free(rate, n_cells, edges, source):
    """Return the cells that pass a coin of 1 - e^-rate each, but for the edges among them."""
    stream, at, out = NoiseStream(law_of_rate(rate), source), -1, [np.empty(0, np.int64)]
    while at < n_cells:
        more = (n_cells - at) * -math.expm1(-float(rate))
        drawn = stream.take(int(2.05 * more + 6 * math.sqrt(more)) + _GAPS)
        # given that noise is not negative, it is geometric; what leads out of all cells may be cut
        gaps = np.minimum(drawn[drawn >= 0], n_cells).astype(np.int64) + 1
        places = at + np.cumsum(gaps)
        outside = places >= n_cells  # (nothing overflows before the first of these, with which it ends)
        n = int(np.argmax(outside)) if outside.any() else len(places)
        out.append(places[:n])
        at = n_cells if n < len(places) else int(places[-1]) if n else at
    passed = np.concatenate(out)
    return passed[~is_among(passed, edges)]


def is_among(cells, sorted_cells):
    """Tell which cells are among sorted ones."""
    if not len(sorted_cells):
        return np.zeros(len(cells), bool)
    places = np.minimum(np.searchsorted(sorted_cells, cells), len(sorted_cells) - 1)
    return sorted_cells[places] == cells


def edges_of(graph):
    """Return the cells of the edges of a `Graph`, ascending."""
    rows = np.repeat(np.arange(graph.n_nodes, dtype=np.int64), graph.degrees)
    below = graph.neighbours < rows  # (rows ascend, and neighbours within them: so do the cells)
    return rows[below] * (rows[below] - 1) // 2 + graph.neighbours[below]


def other_cells(cells, n_cells, size, rng):
    """Return so many cells, uniform among those that are not in a sorted list; all of them, where these are fewer."""
    size = min(size, n_cells - len(cells))
    if 2 * (len(cells) + size) > n_cells:
        return rng.permutation(np.delete(np.arange(n_cells), cells))[:size]
    found = np.empty(0, np.int64)
    while len(found) < size:  # (in the order in which they are drawn first: the first ones are a uniform set)
        drawn = np.concatenate([found, rng.integers(0, n_cells, 2 * (size - len(found)) + 16)])
        drawn = drawn[~is_among(drawn, cells)]
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return found[:size]
