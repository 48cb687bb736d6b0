"""A number, or none: a law of numbers around which a bit says, with noise, that a value is missing (`missing.md`)."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.guessing import Runs
from dpestim.local.law import Randomizer
from dpestim.local.numbers.law import FRACTION
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD, uses_enough, within
from dpestim.privacy.number_weights import missing_thresholds
from dpestim.rng import Stage

#: The part of epsilon that the number has; the bit has the rest.
SHARE_OF_NUMBER = Fraction(3, 4)
#: The fixed point of a missing value: beyond the numbers, and the complement of none.
MISSING = -(1 << 62)


class NumberOrMissing(CodeReports, Randomizer):
    """The law of a column of numbers that may be missing: the codes of `number`, and one more, "missing".

    Parameters
    ----------
    epsilon : Fraction
        Of the report.
    number : NumericRandomizer
        The law of the numbers, with a part of epsilon.
    """

    heavy = True

    def __init__(self, epsilon, number):
        super().__init__(epsilon)
        self.number = number
        self.told, self.untold = missing_thresholds(self.epsilon, number.epsilon)
        self.n_words, self.block_words = number.n_words + 2, number.block_words
        self.grid, self.code_dtype, self.notes = number.grid, number.code_dtype, number.notes
        self.n_counts = number.n_counts + 1
        self.report_dtype = np.promote_types(number.report_dtype, np.min_scalar_type(number.n_counts))
        self.slack = number.slack
        if not (uses_enough(self.told, self.untold, self.epsilon)
                or uses_enough(WORD - self.untold, WORD - self.told, self.epsilon - number.epsilon)):
            self.slack = self.slack or "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    def check(self):
        """Refuse laws of numbers, and thresholds, that do not make a law of this epsilon."""
        t1, t0, of_number = self.told, self.untold, self.number.epsilon
        if self.number.relaxation is not None or self.number.plain_epsilon != of_number or of_number >= self.epsilon:
            raise ValueError("a law of numbers that may be missing must be plain, with a part of epsilon")
        if not (0 < t0 < t1 < WORD and within(t1, t0, self.epsilon)
                and within(WORD - t0, WORD - t1, self.epsilon - of_number)):
            raise ValueError("epsilon is too small or too large, because 64-bit weights cannot express the law: change "
                             "epsilon or the grid")

    @property
    def says_missing(self):
        """How likely "missing" is reported of (a missing value, a number): exact."""
        return Fraction(self.told, WORD), Fraction(self.untold, WORD)

    def constants(self):
        """Return `told` and `untold`: of 2^64 words those that say "missing", of a missing value and of a number.

        The law of the number is among the arguments. Where a number is asked for, a missing value counts as a uniform
        one.
        """
        return {"told": self.told, "untold": self.untold}

    # ---------------------------------------------------------------- what is sent

    def encode(self, x, low, high, out):
        """Write the fixed point of values in the user's units; NaN is missing."""
        self.number.encode(x, low, high, out)
        out[np.isnan(x)] = MISSING

    def fits(self, low, high):
        """Tell whether there are floats enough between two bounds."""
        return self.number.fits(low, high)

    def privatize(self, codes, words, out):
        """Write one code for each fixed point."""
        missing = codes == MISSING
        # (the grid is a power of two, so that the first bits of a word are a uniform fixed point)
        bits = (self.grid << FRACTION).bit_length() - 1
        anything = (words.dense(Stage.COINS, 1) >> np.uint64(64 - bits)).astype(np.int64)
        said = words.dense(Stage.SECOND, 1) < np.where(missing, np.uint64(self.told), np.uint64(self.untold))
        number = np.empty((len(codes), 1), self.number.report_dtype)
        self.number.privatize(np.where(missing, anything, codes), words, number)
        out[:, 0] = np.where(said, self.number.n_counts, number[:, 0])

    # ---------------------------------------------------------------- the law

    def mixed_in(self, missing):
        """Return which part of the reports that do not say "missing" is of missing values, from their share."""
        p, q = map(float, self.says_missing)
        own, others = missing * (1 - p), (1 - missing) * (1 - q)
        return own / (own + others)

    def sampled_variance(self, d, k):
        """Return about the variance of a user's number at worst, where k of d columns are drawn and no value misses."""
        return self.number.sampled_variance(d, k) / (1 - float(self.says_missing[1]))

    @property
    def positions(self):
        """The position of each code, NaN for "missing"."""
        return np.append(self.number.positions, np.nan)

    @property
    def n_inputs(self):
        """The grid points, and "missing"."""
        return self.number.n_inputs + 1

    @property
    def input_codes(self):
        """The fixed point of every row."""
        return np.append(self.number.input_codes, MISSING)

    def input_of(self, codes):
        """Return the number of the input that each fixed point is nearest to."""
        missing = codes == MISSING
        return np.where(missing, self.n_inputs - 1, self.number.input_of(np.where(missing, 0, codes)))

    def anything(self):
        """Return how likely a uniform fixed point is rounded to each grid point, exactly: Fractions."""
        # (it is up to one unit of 2^-32 steps below the upper end of its step)
        half, unit = Fraction(1, 2), Fraction(1, 2 << FRACTION)
        inner = [Fraction(1)] * (self.grid - 1)
        return [share / self.grid for share in (half + unit, *inner, half - unit)]

    def transition_matrix(self):
        """Return rows of Fractions: those of the numbers, and of "missing"."""
        p, q = self.says_missing
        rows = self.number.transition_matrix()
        none = [sum(share * row[y] for share, row in zip(self.anything(), rows)) for y in range(self.number.n_counts)]
        return [*([(1 - q) * w for w in row] + [q] for row in rows), [(1 - p) * w for w in none] + [p]]

    def law_indices(self, codes, reports):
        """Return (row, code); the fixed points must be those of rows."""
        missing = codes == MISSING
        rows, _ = self.number.law_indices(np.where(missing, 0, codes), reports)
        return np.where(missing, self.n_inputs - 1, rows), reports[:, 0].astype(np.int64)

    def runs(self):
        """Return the columns: those of the numbers, each with one run more, and that of "missing"."""
        own, n, n_codes = self.number.runs(), self.number.n_inputs, self.number.n_counts
        p, q = map(float, self.says_missing)
        none, codes = np.full(n_codes, n), np.arange(n_codes)
        return Runs(n + 1, n_codes + 1, np.concatenate([own.starts, none, [0, n]]),
                    np.concatenate([own.stops, none + 1, [n, n + 1]]),
                    np.concatenate([(1 - q) * own.weights, (1 - p) * self.of_missing, [q, p]]),
                    np.concatenate([own.columns, codes, [n_codes, n_codes]]), np.append(own.order, n))

    @cached_property
    def of_missing(self):
        """How likely each code of the numbers is of a uniform fixed point, floats."""
        own = self.number.runs()
        before = np.concatenate([[0.0], np.cumsum(np.array([float(s) for s in self.anything()])[own.order])])
        return np.bincount(own.columns, own.weights * (before[own.stops] - before[own.starts]), self.number.n_counts)
