"""Duchi's mechanism: a number becomes one bit, without bias; a row of numbers a row of signs, most of them likely."""

from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from dpestim._core import duchi
from dpestim.local.columns import Columns
from dpestim.local.constants import constants_of
from dpestim.local.numbers.column import NotFiniteError
from dpestim.local.numbers.joint import JointColumn, JointRandomizer
from dpestim.local.numbers.law import FRACTION, NumericRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.reports import PackedBits
from dpestim.privacy.exact import WORD, uses_enough
from dpestim.privacy.number_weights import duchi_weights, joint_duchi_weights
from dpestim.rng import Stage

#: Numbers a row at most: beyond, half a byte of memory a random bit is felt.
LARGEST_ROW = 1 << 12
#: Numbers a row whose law is enumerated.
_LARGEST_LAW = 8
_NO_ROWS = np.empty(0, np.uint32)


class Duchi(NumericRandomizer):
    """One number: a bit whose probability is a line in the number, from one end of what epsilon allows to the other."""

    n_words = 1
    report_dtype = np.dtype(np.uint8)

    def __init__(self, epsilon):
        super().__init__(epsilon, 1)
        self.other, self.per_unit = duchi_weights(self.epsilon)
        if not uses_enough(WORD - self.other, self.other, self.epsilon):
            self.slack = "a probability is a multiple of 2**-33, which is coarser than this epsilon needs"

    def constants(self):
        """Return `other` and `per_unit`: at the fixed point t, 0 to 2^32, of 2^64 words other + t per_unit answer 1."""
        return {"other": self.other, "per_unit": self.per_unit}

    def privatize(self, codes, words, out):
        """Write one bit for each fixed point."""
        duchi.answer_one(codes, words.dense(Stage.RESPONSE, 1), self.other, self.per_unit, out.reshape(-1))

    def table(self):
        """Return the weights of 0 and 1 at the two bounds."""
        return [[WORD - self.other, self.other], [self.other, WORD - self.other]]

    def outputs(self):
        """Return the exact positions of 0 and 1."""
        half = Fraction(WORD, 2 * (WORD - 2 * self.other))
        return [Fraction(1, 2) - half, Fraction(1, 2) + half]


class JointDuchi(PackedBits, JointRandomizer):
    """A row of numbers: each becomes a sign, without bias, and what is sent likely has most of them."""

    #: Rows have many words each, and Python is felt between blocks of few rows (1.2 times as long).
    block_words = 1 << 18

    def __init__(self, epsilon, n_numbers):
        super().__init__(epsilon)
        if isinstance(n_numbers, bool) or not isinstance(n_numbers, int) or not 1 <= n_numbers <= LARGEST_ROW:
            raise ValueError(f"strategy must not be 'joint' for more than {LARGEST_ROW} columns")
        self.n_numbers, self.n_counts = n_numbers, n_numbers + 1  # the sums of the bits, and how many reports there are
        self.weights = joint_duchi_weights(self.epsilon, n_numbers)
        self._lanes, self._draw = -(-n_numbers // 4), 1 + -(-n_numbers // 64)
        self.n_words = self._lanes + self._draw
        w = self.weights
        if not uses_enough(w.heavy, w.light, self.epsilon):
            self.slack = "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    @property
    def n_categories(self):
        """The bits of a report, as packed ones call them."""
        return self.n_numbers

    @property
    def scale(self):
        """What a sign stands for, exactly, in units where the bounds are -1 and 1: its mean is the number."""
        w, d = self.weights, self.n_numbers
        return Fraction(w.total, (w.heavy - w.light) * comb(d - 1, d // 2))

    @cached_property
    def _half(self):
        return float(self.scale / 2)

    def constants(self):
        """Return `weights`: of 2^64 words `keep` take the side of the signs, and `ties` keep a draw on no side.

        Such a draw is repeated up to `rounds` times. `heavy`, `tied` and `light` are the weights of an answer on the
        side of the signs, on no side, and on the other.
        """
        return constants_of(self)

    def encode(self, block, lows, highs, out):
        """Write the fixed points of a block of values, 32 bits of fraction."""
        duchi.encode(block, *_bounds(lows, highs), out)

    def privatize(self, codes, words, out):
        """Write packed bits; a draw that takes no side may be repeated, with words of its own."""
        self._answer(len(codes), words, out, duchi.signs, codes)

    looks_at_values = True

    def privatize_values(self, block, lows, highs, words, out, refuse=False):
        """Write the same for rows of values, as `encode` and `privatize` do; `refuse` those that are not finite."""
        self._answer(len(block), words, out, duchi.signs_of, block, *_bounds(lows, highs), refuse=refuse)

    def _answer(self, n, words, out, rounded, *rows, **more):
        """Round rows to signs, of which few need more than 16 bits, and answer these."""
        d, w = self.n_numbers, self.weights
        lanes = words.dense(Stage.ROUNDING, self._lanes).view(np.uint16).reshape(n, 4 * self._lanes)
        signs, left = np.empty((n, self._draw - 1), np.uint64), words.scratch(n * d, np.uint64)
        n_left = rounded(*rows, lanes, signs, left, **more)
        if n_left < 0:
            raise NotFiniteError
        left = left[:n_left]
        if len(left):
            places = (left >> np.uint64(16)).astype(np.int64)
            ones = places[words.sparse(Stage.COINS, d, places) >> np.uint64(48) < left & np.uint64(0xFFFF)]
            at, bit = ones // d, ones % d
            np.bitwise_or.at(signs, (at, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
        again, rows = np.empty(n, np.uint32), _NO_ROWS
        drawn = words.dense(Stage.RESPONSE, self._draw).reshape(n, self._draw)
        for number in range(w.rounds):
            left = duchi.answer(drawn, rows, d, w.keep, w.ties, number == w.rounds - 1, signs, again)
            if not left:
                break
            rows = again[:left].copy()
            places = (rows[:, None].astype(np.int64) * (w.rounds - 1) + number) * self._draw + np.arange(self._draw)
            drawn = words.sparse(Stage.RARE, self._draw * (w.rounds - 1), places.ravel())
            drawn = np.ascontiguousarray(drawn).reshape(left, self._draw)
        out[:] = signs.astype("<u8", copy=False).view(np.uint8)[:, : self.report_width]

    def count(self, reports, counts):
        """Add the column sums of the bits, and the number of reports."""
        super().count(reports, counts[:-1])
        counts[-1] += len(reports)

    def n_reports(self, counts):
        """Return the last count."""
        return int(counts[-1])

    def means(self, counts):
        """Return (means, standard errors, no biases) of the positions; a number is one of two: its mean tells all."""
        n = self.n_reports(counts)
        means = (2 * counts[:-1] / n - 1) * self._half
        if n == 1:
            return 0.5 + means, np.full(len(means), np.nan), np.zeros(len(means))
        # few reports may agree by chance; the law has so much noise at least
        noise = np.maximum((self._half**2 - np.square(means)) * n / (n - 1), self._half**2 - 0.25)
        return 0.5 + means, np.sqrt(noise / n), np.zeros(len(means))

    def two_positions(self, counts):
        """Return (the shares of bits that are set, how far apart 0 and 1 are)."""
        return counts[:-1] / self.n_reports(counts), 2 * self._half

    def even_variance(self):
        """Return the square of what a sign stands for: both are as likely."""
        return self._half**2

    def decode(self, reports):
        """Return the positions that the bits stand for."""
        return 0.5 + (2.0 * self.support(reports) - 1) * self._half

    def reach(self):
        """Return the two positions that a bit stands for: any bits may be sent."""
        return (1 - self.scale) / 2, (1 + self.scale) / 2

    # ---------------------------------------------------------------- the law, for rows of few numbers

    @property
    def input_codes(self):
        """The fixed points of every row of the law: all of the bounds' corners."""
        return self._corners().astype(np.int64) << FRACTION

    def inputs(self):
        """Return the exact positions of every row of the law."""
        return [[Fraction(int(bit)) for bit in corner] for corner in self._corners()]

    def outputs(self):
        """Return the exact positions that each report stands for."""
        half = self.scale / 2
        return [[Fraction(1, 2) + (2 * int(bit) - 1) * half for bit in corner] for corner in self._corners()]

    def input_of(self, codes):
        """Return the corner that each row of fixed points is nearest to: what it is most likely rounded to."""
        return (codes >= 1 << FRACTION - 1).astype(np.int64) @ (1 << np.arange(self.n_numbers))

    def _corners(self):
        if self.n_numbers > _LARGEST_LAW:
            raise ValueError(f"the law of more than {_LARGEST_LAW} numbers is not enumerated: take fewer columns, "
                             "because the law depends only on the number of equal signs")
        return np.arange(1 << self.n_numbers)[:, None] >> np.arange(self.n_numbers) & 1

    def transition_matrix(self):
        """Return rows of Fractions: the law of the bits, read as a little-endian integer, for each corner."""
        w, d = self.weights, self.n_numbers
        agree = (self._corners()[:, None] == self._corners()).sum(axis=2)
        heavy, tied, light = (Fraction(weight, w.total) for weight in (w.heavy, w.tied, w.light))
        return [[heavy if 2 * a > d else light if 2 * a < d else tied for a in row] for row in agree.tolist()]

    def worst_ratio(self):
        """Return the ratio of the weights of an answer on the side of the signs and of one on the other."""
        return Fraction(self.weights.heavy, self.weights.light)

    def law_indices(self, codes, reports):
        """Return (corner, report), as integers; the fixed points must be those of corners."""
        powers = 1 << np.arange(self.n_numbers)
        return (codes >> FRACTION) @ powers, self.support(reports).astype(np.int64) @ powers


def _bounds(lows, highs):
    """Return what kernels take of bounds: both ends, and fixed-point units a unit of a value."""
    low, high = np.array(lows, np.float64), np.array(highs, np.float64)
    return low, high, float(1 << FRACTION) / (high - low)


class DuchiTransformer(NumericTransformer):
    """Randomise numbers by Duchi's mechanism: one bit for each number, or one joint report for a row.

    Each user sends one bit; the probability of a 1 grows with the number. The two bits are decoded as numbers outside
    the bounds. Choose Duchi's mechanism where only one bit may be sent, and for the means of 16 columns or more with an
    epsilon of 1 to 10 (``strategy="sample"``). Of one column up to an epsilon of 0.609 it has the least variance at
    worst, as `HMTransformer`, which has less from there on; `PMTransformer` has less from about 1.29. Its reports
    determine the mean and nothing else: for distributions take `SWTransformer` or `PMTransformer`.

    Several columns: ``strategy="joint"`` makes one report of all of a row, with all of epsilon. It has the least error
    for two to four columns and an epsilon of 2 to 4, but ``strategy="sample"`` has it elsewhere, for any epsilon below
    that and for more columns, and both beat "split" where epsilon is small. The largest standard deviation of a user's
    number, in halves of the range (that of a mean is less by the square root of the number of users), for "split" /
    "sample" / "joint":

    ===  ==================  ==================  ==================  ==================
    d    epsilon = 0.5       1                   2                   4
    ===  ==================  ==================  ==================  ==================
    2    8.04 / 5.77 / 7.17  4.08 / 3.06 / 3.33  2.16 / 1.86 / 1.63  1.31 / 1.31 / 1.07
    4    16.0 / 8.17 / 9.89  8.04 / 4.33 / 4.77  4.08 / 2.63 / 2.50  2.16 / 1.86 / 1.77
    16   64.0 / 16.3 / 19.8  32.0 / 8.66 / 10.0  16.0 / 5.25 / 5.69  8.04 / 3.71 / 4.28
    64   256 / 32.7 / 40.1   128 / 17.3 / 20.8   64.0 / 10.5 / 12.2  32.0 / 7.43 / 9.44
    ===  ==================  ==================  ==================  ==================

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``duchi.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased, exactly but for the fixed point that a float becomes (2^-32 of the range). For x in [-1, 1] a
    report has the variance B^2 - x^2: B = (e^eps + 1) / (e^eps - 1) for one number, about sqrt(pi d / 2) times as much
    for each of d numbers jointly.

    **Complexity.** O(d) a row of d numbers; a bit a number sent, stored as a byte, or eight to a byte jointly.

    {parameters}
    References
    ----------
    J. C. Duchi, M. I. Jordan, M. J. Wainwright, "Minimax optimal procedures for locally private estimation", JASA 113,
    2018, section 4.2; N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
    ICDE 2019, algorithms 1 and 3, which correct it for even d; the integer weights are derived in ``duchi.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import DuchiTransformer, MeanEstimator
    >>> X = np.random.default_rng(0).normal(0, 0.3, (50_000, 8))
    >>> est = MeanEstimator(DuchiTransformer(1.0, bounds=(-1, 1), strategy="joint", random_state=0)).fit(X)
    >>> bool(abs(est.mean_ - X.mean(axis=0)).max() < 0.1)
    True
    """

    _randomizer, _joint = Duchi, JointDuchi
    _strategies = ("split", "sample", "joint")
    _test_values = {"strategy": ["joint"]}

    def _made(self, lows, highs, names, **more):
        if self.strategy != "joint":
            return super()._made(lows, highs, names, **more)
        law = self._joint.make(self._share(1), len(lows))
        return Columns([JointColumn(names, law, lows, highs)], **more)

    def _n_parts(self, n_columns):
        return 1 if self.strategy == "joint" else super()._n_parts(n_columns)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        rows = {"bounds": ([0.0, -5.0, 2.0, 1.0], [1.0, 5.0, 4.0, 9.0])}
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0)},
            {"epsilon": 2.0, "bounds": ([0.0, -5.0], [1.0, 5.0])},
            {"epsilon": 1.0, "strategy": "joint", **rows},
            {"epsilon": 2.5, "strategy": "joint", "bounds": ([0.0, -5.0, 2.0], [1.0, 5.0, 4.0])},
            {"epsilon": 5.0, "strategy": "sample", **rows},
        ]
