"""Signs of Haar coefficients: Hadamard response in which the two children of a node have opposite halves of symbols."""

from fractions import Fraction

import numpy as np

from dpestim._core import hadamard
from dpestim.inputs import smallest_dtype
from dpestim.local import pivots
from dpestim.local.categories.hr import walsh_hadamard
from dpestim.local.categories.law import LARGEST_MATRIX, CategoricalRandomizer
from dpestim.local.reports import CodeReports
from dpestim.privacy.category_weights import grr_weights
from dpestim.rng import Stage


class HaarSign(CodeReports, CategoricalRandomizer):
    """Hadamard response of the Haar coefficient of a node; a report is one of `n_categories` symbols.

    Values are the nodes of a level of a binary tree, of which there are 2 K, a power of two. Value 2 k + s, the child s
    of node k, has the symbols t where K + k and t share an even number of bits, and for s = 1 all others. So a report
    tells of differences of siblings alone: estimates are how much each child has more than half of its parent.
    """

    #: It is no mechanism for frequencies.
    largest_planned = 0
    largest_domain = 1 << 31

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        if n_categories & (n_categories - 1):
            raise ValueError("categories of a level of a binary tree must be a power of two")
        self.half = n_categories // 2
        # randomised response over two halves, with the low bits of the word left to pick within the half
        self.weights = grr_weights(self.epsilon, 2, self.half)
        self.n_words = self.weights.n_words
        self.report_dtype = smallest_dtype(n_categories)
        self.p_star, self.q_star = Fraction(self.weights.keep, self.weights.total), Fraction(1, 2)

    def privatize(self, codes, words, out):
        """Write one symbol for each code: that of the first child, and for the second one the first bit flipped."""
        drawn, half = words.dense(Stage.RESPONSE, self.n_words), codes.dtype.type(self.half)
        rows = (codes >> codes.dtype.type(1)) + codes.dtype.type(self.half - 1)  # (the kernel adds 1)
        hadamard.privatize(rows, drawn, self.weights.keep, self.weights.other, 0, self.half.bit_length() - 1,
                           out.reshape(-1))
        out.reshape(-1)[:] ^= ((codes & codes.dtype.type(1)) * half).astype(out.dtype)

    def support(self, reports):
        """Return 1 where the symbol is one of the half of the value."""
        rows = np.empty((len(reports), 2 * self.half - 1), np.uint8)
        hadamard.support(reports.reshape(-1), 0, self.half.bit_length() - 1, rows)
        even = rows[:, self.half - 1:]  # (rows from K on)
        return np.stack([even, 1 - even], axis=2).reshape(len(reports), -1)

    def supporters(self, counts):
        """Return the reports in the half of each value, by one transform."""
        n = counts.sum()
        return (n + np.rint(self._signed(counts)).astype(np.int64)) // 2

    def _signed(self, counts):
        """Return the reports in the half of each value less all others."""
        sums = walsh_hadamard(counts)[self.half:]
        return np.stack([sums, -sums], axis=1).reshape(-1)

    def estimate(self, counts, n):
        """Return the share of each value less half of the share of both siblings, without bias."""
        return self._signed(counts) / (2 * n * self._odds)

    @property
    def _odds(self):
        """How much likelier than not the own half is: the difference of the two probabilities."""
        return float(2 * self.p_star - 1)

    def truth(self, shares):
        """Return how much each value has more than half of what both siblings have."""
        pairs = np.asarray(shares, np.float64).reshape(-1, 2)
        return (pairs - pairs.mean(axis=1, keepdims=True)).reshape(-1)

    def variance(self, n, f):
        """Return the exact variance of `estimate` where a share f holds the value, and nobody its sibling."""
        return (1 / (2 * self._odds) ** 2 - np.square(np.asarray(f, np.float64) / 2)) / n

    def variance_line(self, counts, n):
        """Return n times the largest variance."""
        return 1 / (2 * self._odds) ** 2, 0.0

    def numbers_of_sum(self, weights):
        """Return a number for each symbol, whose mean over reports is the sum of the estimates times these weights."""
        pairs = np.asarray(weights, np.float64).reshape(-1, 2)
        return walsh_hadamard(np.append(np.zeros(self.half), pairs[:, 0] - pairs[:, 1])) / (2 * self._odds)

    def squares_of_sum(self, weights):
        """Return the mean square of these numbers for each value: the same one, as signs have no correlations."""
        pairs = np.asarray(weights, np.float64).reshape(-1, 2)
        return np.full(self.n_categories, np.square((pairs[:, 0] - pairs[:, 1]) / 2).sum() / self._odds**2)

    def mean_of(self, numbers):
        """Return the mean of numbers[symbol] for every value."""
        return (numbers.sum() + self._odds * self._signed(numbers)) / self.n_categories

    @property
    def support_odds(self):
        """How much likelier a symbol is for a value that it supports."""
        return self.p_star, 1 - self.p_star

    def support_law(self):
        """Return Pr[report of x supports v]: own half, that of the sibling, or half of another one."""
        d = range(self.n_categories)
        return [[self.p_star if x == v else 1 - self.p_star if x ^ v == 1 else self.q_star for v in d] for x in d]

    def reach(self, goal):
        """Return the least and the most that one symbol adds to n times the sum of some estimates."""
        rows = np.zeros(2 * self.half)
        np.add.at(rows, self.half + goal // 2, 1 - 2.0 * (goal % 2))
        told = walsh_hadamard(rows) / (2 * self._odds)
        return float(told.min()), float(told.max())

    def mean_reach(self, goal):
        """Return the same of the mean over the reports of one value."""
        member = np.zeros(self.n_categories)
        member[goal] = 1.0
        told = self.truth(member)
        return float(min(told.min(), 0.0)), float(told.max())

    def known_counts(self, counts, n):
        """Return how many symbols have each number up to their first bit: that is even, whatever is held."""
        if self.half == 1 or self.n_counts > LARGEST_MATRIX:
            return []
        columns = counts.reshape(2, self.half).sum(axis=0)
        return [pivots.cells("symbols without their first bit", columns, np.full(self.half, 1 / self.half), n,
                             lambda k: f"number {k}")]

    def transition_matrix(self):
        """Return the law of the symbols, d x d."""
        own, other = self.p_star / self.half, (1 - self.p_star) / self.half
        supports = self.support(np.arange(self.n_counts, dtype=self.report_dtype)[:, None]).T
        return [[own if yes else other for yes in row] for row in supports.tolist()]

    def law_indices(self, codes, reports):
        """Return (true value, symbol)."""
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)
