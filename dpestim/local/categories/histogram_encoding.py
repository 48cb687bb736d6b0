"""Histogram encoding: noise for every cell of a one-hot vector, added up (SHE) or compared with a threshold (THE)."""

import math
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dpestim._core import histogram
from dpestim.local import pivots
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.supports import success_of_cells
from dpestim.local.categories.unary import Unary
from dpestim.local.fields import Field, bits_for
from dpestim.privacy.exact import WORD, exp_lower, uses_enough, within
from dpestim.rng import Stage

#: A word a value: a record must stay far below the memory of a client.
LARGEST_DOMAIN = 1 << 20


@lru_cache(maxsize=256)
def histogram_weights(epsilon, grid):
    """Return the weights, 2^64 in all, of the codes 0 ... grid for a cell of histogram encoding that holds 0.

    For one that holds 1 they are the same in reverse. Discrete Laplace noise, clipped at both ends: with alpha >=
    e^(-epsilon / (2 grid)) a rational, code y > 0 has (1 - alpha) alpha^y / (1 + alpha), the last one alpha^grid / (1 +
    alpha), rounded up, and code 0 what is left. Every ratio of the two weights of a code is at most e^(epsilon / 2),
    which is checked: two cells differ between two inputs. ``ValueError`` where a word is too coarse.
    """
    one = 1 << 256  # in units of 2^-256, integers: Fractions would take far longer
    alpha = math.ceil(one / exp_lower(epsilon / (2 * grid)))
    tails = [-(-WORD * alpha * one // (one + alpha))]
    while len(tails) < grid:
        tails.append(-(-tails[-1] * alpha >> 256))
    row = [-(-(one - alpha) * tail >> 512) for tail in tails[:-1]] + [-(-tails[-1] >> 256)]
    row = [WORD - sum(row), *row]
    most = exp_lower(epsilon / 2)
    pairs = [(max(a, b), min(a, b)) for a, b in zip(row, row[::-1])]
    if row[0] <= row[-1] or not all(
        low > 0 and high * most.denominator <= most.numerator * low for high, low in pairs
    ):
        raise ValueError("epsilon is too small or too large, because 64-bit random words cannot express the noise of a "
                         "cell: change epsilon or grid")
    return tuple(row)


@lru_cache(maxsize=256)
def the_thresholds(epsilon, grid=1024):
    """Return (t1, t0), Pr[1] * 2**64 of the true bit and of every other bit, for thresholded histogram encoding.

    A bit says whether the code of `histogram_weights` is above a threshold: the one of the least variance for rare
    values, q (1 - q) / (p - q)^2, compared in integers.
    """
    row = histogram_weights(epsilon, grid)
    best, true, false = None, WORD - row[-1], WORD - row[0]
    for code in range(1, grid + 1):  # bit 1: the code is at least that
        noise, gap = false * (WORD - false), (true - false) ** 2  # a fraction
        if best is None or noise * best[1] < best[0] * gap:
            best = noise, gap, true, false
        true, false = true - row[grid - code], false - row[code]
    *_, true, false = best
    if not within(true * (WORD - false), false * (WORD - true), epsilon):
        raise ValueError("epsilon is too small or too large, because 64-bit random words cannot express the noise of a "
                         "cell: change epsilon or grid")
    return true, false


class SHE(CategoricalRandomizer):
    """Summation with histogram encoding; a report is d codes from 0 to `grid`, and counts are their sums.

    A cell that holds 0 has the law `row`, the own one has the same in reverse.
    """

    report_dtype = np.dtype(np.uint8)
    block_words = 1 << 18
    varies_by_own_share = True  # (it does not vary at all)

    @property
    def fields(self):
        """The codes of the cells."""
        return (Field("cell", bits_for(self.grid + 1), self.grid + 1, self.n_categories),)

    def __init__(self, epsilon, n_categories, grid=16):
        super().__init__(epsilon, n_categories)
        if n_categories > LARGEST_DOMAIN:
            raise ValueError("categories: histogram encoding takes at most 2**20 values; use local hashing")
        if not isinstance(grid, int) or isinstance(grid, bool) or not 2 <= grid <= 255:
            raise ValueError(f"grid must be an integer from 2 to 255, got {grid!r}")
        self.grid, self.n_words, self.report_width = grid, n_categories, n_categories
        self.report_bits = n_categories * math.log2(grid + 1)
        self.row = histogram_weights(self.epsilon, grid)
        if not uses_enough(self.row[0] ** 2, self.row[-1] ** 2, self.epsilon):
            self.slack = "a code's probability is a multiple of 2**-64, which is coarser than this epsilon needs"
        half = grid // 2
        self.p_star = Fraction(sum(self.row[: grid - half]), WORD)  # Pr[2 code > grid]
        self.q_star = Fraction(sum(self.row[half + 1 :]), WORD)

    @cached_property
    def _moments(self):
        """The mean code of a cell that holds 0, how far it is from that of the own one, and the variance of both."""
        mean = Fraction(sum(y * w for y, w in enumerate(self.row)), WORD)
        square = Fraction(sum(y * y * w for y, w in enumerate(self.row)), WORD)
        return mean, self.grid - 2 * mean, square - mean**2

    @cached_property
    def _search(self):
        edges = np.cumsum(np.array(self.row[:-1], np.uint64), dtype=np.uint64)
        starts = np.arange(1024, dtype=np.uint64) << np.uint64(54)
        return edges, np.searchsorted(edges, starts, side="right").astype(np.uint8)

    @cached_property
    def _search_of_one(self):
        edges, guide = self._search
        return np.concatenate([guide.view(np.uint64), edges])

    def privatize(self, codes, words, out):
        """Write a code for every cell of every record."""
        drawn = words.dense(Stage.RESPONSE, self.n_words)
        if len(codes) == 1:
            return histogram.privatize_one(codes.item(), drawn, self._search_of_one, out)
        drawn = drawn.reshape(-1, self.n_words)
        histogram.privatize(codes, drawn, *self._search, out)

    def check_reports(self, reports):
        """Refuse codes beyond the grid."""
        if int(reports.max()) > self.grid:
            raise ValueError(f"a report must be {self.n_categories} codes of at most {self.grid}")

    def count(self, reports, counts):
        """Add the sums of the codes of every cell."""
        counts += reports.sum(axis=0, dtype=np.int64)

    @property
    def count_ns(self):
        """Nanoseconds to count a report, for plans: a sum for every cell."""
        return 1.0 + 0.5 * self.n_categories

    def support(self, reports):
        """Return 1 where a code is above the middle of the grid: nearer to that of a value that is held."""
        return (reports > self.grid // 2).astype(np.uint8)

    def supporters(self, counts):
        """Return None: sums do not tell how many codes are above the middle."""
        return None

    def estimate(self, counts, n):
        """Return the unbiased frequencies (mean code - mean of a cell that holds 0) / (difference of the means)."""
        mean, gap, _ = self._moments
        return (counts / n - float(mean)) / float(gap)

    def variance(self, n, f):
        """Return the exact variance of `estimate`, the same for every frequency: both laws are mirror images."""
        return self.variance_line(None, 1)[0] / n + 0.0 * np.asarray(f, np.float64)

    def variance_line(self, counts, n):
        """Return (at_zero, 0)."""
        _, gap, variance = self._moments
        return float(variance / gap**2), 0.0

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values."""
        mean, gap, _ = self._moments
        return tuple(len(goal) * (code - mean) / gap for code in (0, self.grid))

    knows_reports = True

    def known_of(self, reports):
        """Return how many codes of each report are above the middle: one has p*, the others q*."""
        law = pivots.law_of_ones(self.n_categories - 1, float(self.q_star), 1, float(self.p_star))
        above = np.count_nonzero(reports > self.grid // 2, axis=1)
        return [pivots.values("codes above the middle in a report", above, law)]

    def transition_matrix(self):
        """Return the d x (grid + 1)^d matrix over all reports, codes as digits, the first one lowest; 4,096 at most."""
        if (self.grid + 1) ** self.n_categories > 1 << 12:
            raise ValueError("the law of more than 4,096 reports is not enumerated: take the law of one cell, because "
                             "cells are independent")
        zero = [Fraction(w, WORD) for w in self.row]
        rows = []
        for x in range(self.n_categories):
            row = [Fraction(1)]
            for v in range(self.n_categories):
                row = [weight * code for code in (zero[::-1] if v == x else zero) for weight in row]
            rows.append(row)
        return rows

    def law_indices(self, codes, reports):
        """Return (true value, the codes as a number)."""
        return codes.astype(np.int64), reports.astype(np.int64) @ (self.grid + 1) ** np.arange(self.n_categories)

    @property
    def _odds(self):
        """How much likelier each code is for the value itself than for another one; ascending."""
        return np.array([w / v for v, w in zip(self.row, self.row[::-1])])

    def worst_ratio(self):
        """Return the largest ratio: the own code at one end, another's at the other."""
        return max(Fraction(w, v) for v, w in zip(self.row, self.row[::-1])) ** 2

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each category."""
        return self._odds[reports]

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: cells are independent."""
        zero = np.array([w / WORD for w in self.row])
        return success_of_cells(prior, self._odds, zero[::-1], zero)


class THE(Unary):
    """Thresholding with histogram encoding: bits that say whether a noisy cell is above the best threshold."""

    _thresholds = staticmethod(the_thresholds)
    _slack = "whether noise is above a threshold tells less of a cell than the noisy cell, on which epsilon is spent"


class SHEFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by summation with histogram encoding (SHE).

    Each user adds Laplace noise to every cell of the vector that has 1 at the user's value and 0 elsewhere, and the
    server adds up what it gets. The central model adds noise in the same way, and other encodings are compared with
    SHE. Prefer `OUEFrequencyEstimator`, whose reports are shorter and whose variance is smaller at any epsilon for
    values that are not very frequent. Here noise is discrete and clipped to the range from 0 to 1, which loses nothing,
    and the estimates are scaled to be unbiased. The variance of a report for rare values, and that of unclipped noise:

    ======= ====== ====== ====== ====== =========
    epsilon    SHE    THE    SUE    OUE 8 / eps^2
    ======= ====== ====== ====== ====== =========
    0.1      406.5  409.8  399.9  399.7       800
    0.5      17.19  17.83  15.92  15.67        32
    1        4.535  4.807  3.918  3.683         8
    2        1.213  1.284 0.9207 0.7241         2
    4        0.315 0.2852  0.181 0.0760       0.5
    ======= ====== ====== ====== ====== =========

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``histogram_encoding.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; the variance of a frequency among n users does not depend on it, and lies between
    3 / (n eps^2) and 5.1 / (n eps^2) for a fine grid (a coarser one has less); exact in ``histogram_encoding.md``.
    `transform` returns whether each code is above the middle of the grid: a bit for each category as of any mechanism,
    from which estimates are *not* made; they use the codes.

    **Complexity.** O(d) a user and O(n d) at the server; d codes of log2(grid + 1) bits sent, stored as a byte each.

    {parameters}
    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, section 4.1 (SHE); the integer law, clipping and the exact variance are derived in
    ``histogram_encoding.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import SHEFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = SHEFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.07
    np.True_
    """

    _randomizer = SHE
    _more_parameters = """
    grid : int, default=16
        Steps between the codes of 0 and of 1, from 2 to 255. (With one it would be `SUEFrequencyEstimator`.)
    """

    def __init__(self, epsilon=1.0, *, grid=16, categories="auto", postprocess=None, sparse_output=False, ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.grid = grid

    _test_values = {"grid": [5]}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.5, "categories": [[0, 1, 2, 3]], "grid": 3},
            {"epsilon": 4.0, "categories": [["a", "b", "c"], [False, True]], "grid": 6},
        ]


class THEFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by thresholding with histogram encoding (THE).

    Each user adds Laplace noise to every cell of the vector that has 1 at the user's value and 0 elsewhere, and sends
    for each whether the sum is above a threshold, the one of the least variance (0.62 at an epsilon of 1, of cells of 0
    and 1). That is unary encoding, whose best thresholds are those of `OUEFrequencyEstimator`: at the same size OUE has
    less variance at any epsilon (3.68 against 4.81 for a report, at an epsilon of 1). THE is for comparison.
    `SHEFrequencyEstimator` has a table of variances.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer thresholds, both directions, proof in
    ``histogram_encoding.md``), neighbours: any two rows of one user; no other party is trusted. Reports tell values
    apart by less than that, 0.90 of it at an epsilon of 1 and 0.72 at 4.

    **Utility.** Unbiased; with p and q the probabilities of a 1 for the user's value and another, the variance of a
    frequency f among n users is (q (1 - q) + f (p - q) (1 - p - q)) / (n (p - q)^2).

    **Complexity.** O(d) a user and O(n d) bit operations at the server, 64 to 512 at a time; d bits sent.

    {parameters}
    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, section 4.1 (THE); the integer thresholds are derived in ``histogram_encoding.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import THEFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = THEFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.07
    np.True_
    """

    _randomizer = THE
