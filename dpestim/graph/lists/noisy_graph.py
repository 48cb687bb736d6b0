"""Counts of a noisy graph whose pairs were flipped by randomised response, and what follows about the exact graph.

`NoisyGraph` counts; `Unbiased` turns counts into estimates of counts of the exact graph, and of the variances of these,
in Fractions. All are closed forms of a few counts of the noisy graph. Proof: ``noisy_graph.md``.
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from dpestim import parallel
from dpestim._core import list_patterns
from dpestim.records import record

#: Rows that the kernel compares at a time, and those of one task.
_TILE, _TASK = 128, 1024


class NoisyGraph:
    """A noisy graph: half lists ``nodes[starts[i]:starts[i + 1]]`` of nodes i, ascending, of higher number than i."""

    def __init__(self, starts, nodes, n_jobs=None):
        self.starts, self.nodes, self.n_jobs = starts, nodes, n_jobs

    @property
    def n(self):
        """The number of nodes."""
        return len(self.starts) - 1

    @property
    def n_edges(self):
        """The number of noisy edges."""
        return len(self.nodes)

    @cached_property
    def owners(self):
        """The lower node of each edge."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.starts))

    @cached_property
    def below(self):
        """The number of neighbours of lower number of each node."""
        return np.bincount(self.nodes, minlength=self.n)

    @cached_property
    def degrees(self):
        """The number of neighbours of each node."""
        return self.below + np.diff(self.starts)

    @cached_property
    def wedges(self):
        """The number of pairs of edges that share a node."""
        return _total(self.degrees * (self.degrees - 1) // 2)

    @cached_property
    def bits(self):
        """Rows of bits of the symmetric matrix."""
        rows = np.zeros((self.n, (self.n + 63) // 64), np.uint64)
        list_patterns.rows_of_bits(self.starts, self.nodes, rows)
        return rows

    @cached_property
    def pairs(self):
        """Sums over all pairs of nodes: `PairSums` of common neighbours, and of edges at one of the two."""
        u, uu, uw, _, _, ua = self._common(self.degrees, False)
        degrees, n = self.degrees, self.n
        total, squares = _total(degrees), _total(degrees * degrees)
        # s = d_j + d_k - 2 a: the sum of (d_j + d_k)^2 over all pairs, and what edges change, of which d_j are at j
        both = (n - 1) * squares + total * total - squares
        return PairSums(_total(u), _total(uu), _total(uw) - 2 * _total(ua) + _weighted(u, degrees),
                        (n - 1) * total - 2 * self.n_edges, both - 4 * squares + 4 * self.n_edges, _total(ua))

    @cached_property
    def pairs_below(self):
        """The same sums, where only nodes below both of a pair j < k count as neighbours; and sums with j."""
        n, below = self.n, self.below
        u, uu, uw, uj, ur, _ = self._common(below, True)
        low, starts = self._lower
        ranks = np.arange(len(low)) - np.repeat(starts[:-1], below)  # of a neighbour among those below the same node
        spans = np.repeat(np.arange(n) - 1, below) - low
        ahead = np.concatenate([[0], np.diff(self.starts)])[:n]  # edges from j - 1 on to higher nodes
        across = np.cumsum(ahead - below)  # edges from below j to above j
        after, numbers = n - 1 - np.arange(n), np.arange(n)
        s = _weighted(below, after) + _total(spans)
        ss = _weighted(below * below, after) + 2 * _weighted(below, across) + _weighted(2 * ranks + 1, spans)
        js = _total(numbers * (below * after + across))
        return PairSums(_total(u), _total(uu), _total(uw) + _total(ur), s, ss, 0, _total(uj), js)

    @property
    def _lower(self):
        """The neighbours of lower number of each node, (nodes, starts)."""
        ones = np.ones(self.n_edges, np.int8)
        matrix = sparse.csr_array((ones, self.nodes, self.starts), shape=(self.n, self.n)).tocsc()
        return matrix.indices, matrix.indptr.astype(np.int64)

    def _common(self, weights, before):
        """Return the six sums of the kernel: rows of bits where these are fewer steps, and else lists."""
        n, weights = self.n, np.ascontiguousarray(weights, np.int64)
        out = np.zeros((n, 6), np.int64)
        if 2 * self.wedges < n * n * ((n + 63) // 64) // 8:
            upper = sparse.csr_array((np.ones(self.n_edges, np.int8), self.nodes, self.starts), shape=(n, n))
            both = upper + upper.T
            both.sort_indices()
            list_patterns.common_of_lists(both.indptr.astype(np.int64), both.indices.astype(np.int32), weights, before,
                                          np.zeros(n, np.int32), np.empty(n, np.int32), out)
        else:
            rows = self.bits

            def task(first, last):
                list_patterns.common_of_bits(rows, weights, before, min(first * _TASK, n), min(last * _TASK, n),
                                             np.empty((_TILE, n), np.int64), out)

            parallel.run(task, -(-n // _TASK), self.n_jobs)
        return out.T


@record
class PairSums:
    """Sums over pairs j < k of u (common neighbours), s (edges at j or k, but not both), and of products."""

    u: int
    uu: int
    us: int
    s: int
    ss: int
    ua: int
    uj: int = 0
    sj: int = 0


@record
class Unbiased:
    """Estimates of counts of a graph from those of a noisy one; q is the probability of a flip, a Fraction below 1/2.

    Each is unbiased, and `v` is the variance of a debiased bit.
    """

    noisy: NoisyGraph
    q: Fraction

    @property
    def d(self):
        """What a bit moves the expectation of its report by."""
        return 1 - 2 * self.q

    @property
    def v(self):
        """The variance of a debiased bit."""
        return self.q * (1 - self.q) / self.d**2

    @cached_property
    def edges(self):
        """The number of edges."""
        return (self.noisy.n_edges - self.q * math.comb(self.noisy.n, 2)) / self.d

    @cached_property
    def wedges(self):
        """The number of pairs of edges that share a node."""
        n, q = self.noisy.n, self.q
        return (self.noisy.wedges - 2 * q * (n - 2) * self.noisy.n_edges + q**2 * n * math.comb(n - 1, 2)) / self.d**2

    @cached_property
    def triangles(self):
        """The number of triangles."""
        n, q, noisy = self.noisy.n, self.q, self.noisy
        found = Fraction(noisy.pairs.ua, 3) - q * noisy.wedges + q**2 * (n - 2) * noisy.n_edges
        return (found - q**3 * math.comb(n, 3)) / self.d**3

    @cached_property
    def cycles(self):
        """Four times the number of cycles of four edges: the sum over pairs of c (c - 1), c common neighbours."""
        n, q, d = self.noisy.n, self.q, self.d
        constant = q**2 * (n - 2)
        sums, pairs = self.noisy.pairs, math.comb(n, 2)
        found = _square(sums, q, constant**2 * pairs, constant * sums.u, constant * sums.s)
        return (found - (d**2 * sums.u + d * q**2 * sums.s + q**4 * (n - 2) * pairs)) / d**4

    @cached_property
    def _adjacent(self):
        """The sum over pairs of s^2, s the edges at one of the two nodes."""
        n, q, sums = self.noisy.n, self.q, self.noisy.pairs
        slots, pairs = 2 * (n - 2), math.comb(n, 2)
        found = (sums.ss - 2 * slots * q * sums.s + slots**2 * q**2 * pairs) / self.d**2
        return found - pairs * slots * self.v

    @cached_property
    def _mixed(self):
        """The sum over pairs of c s."""
        n, q, d, sums = self.noisy.n, self.q, self.d, self.noisy.pairs
        pairs, slots = math.comb(n, 2), 2 * (n - 2)
        constant = q**2 * (n - 2)
        product = sums.us - q * sums.ss + constant * sums.s - q * slots * (sums.u - q * sums.s + constant * pairs)
        same = 2 * d * sums.u + (q**2 - d * q) * sums.s - 2 * q**3 * (n - 2) * pairs
        return (product - same) / d**3 + 2 * (sums.u - q * sums.s + constant * pairs) / d**2

    @cached_property
    def variance_of_wedges(self):
        """The variance of `wedges`."""
        return self.v**2 * self.noisy.n * math.comb(self.noisy.n - 1, 2) + self.v * self._adjacent

    @cached_property
    def variance_of_triangles(self):
        """The variance of `triangles`."""
        n, v = self.noisy.n, self.v
        return v**3 * math.comb(n, 3) + v**2 * (n - 2) * self.edges + v * (self.wedges + self.cycles)

    @cached_property
    def covariance(self):
        """The covariance of `triangles` and `wedges`."""
        return self.v**2 * (self.noisy.n - 2) * self.edges + self.v * self._mixed

    @cached_property
    def squares_below(self):
        """The sum over pairs j < k of the square of their common neighbours below j."""
        n, q, d, sums = self.noisy.n, self.q, self.d, self.noisy.pairs_below
        slots = [n * (n - 1) * (n - 2) // 6, sum(j * j * (n - 1 - j) for j in range(n))]  # (sums of j and of j^2)
        found = _square(sums, q, q**4 * slots[1], q**2 * sums.uj, q**2 * sums.sj)
        same = d**2 * sums.u + d * q**2 * sums.s + q**4 * slots[0]
        return (found - same) / d**4 + (sums.u - q * sums.s + q**2 * slots[0]) / d**2


def _square(sums, q, constants, with_u, with_s):
    """Return the sum of (u - q s + c)^2, from those of c^2, of c u and of c s."""
    return sums.uu - 2 * q * sums.us + q**2 * sums.ss + constants + 2 * (with_u - q * with_s)


def _total(numbers):
    """Return the sum of integers, as a Python integer that does not overflow."""
    numbers = np.asarray(numbers, np.int64)
    return sum(np.add.reduceat(numbers, np.arange(0, len(numbers), 512)).tolist()) if len(numbers) else 0


def _weighted(a, b):
    return _total(np.asarray(a, np.int64) * np.asarray(b, np.int64))
