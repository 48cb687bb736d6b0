"""The randomizer: an immutable object that knows one column's exact law and calls the kernels."""

from functools import cached_property, lru_cache

import numpy as np

from dpestim._core import unary
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import BLOCK_WORDS

#: The largest domain: codes are 32-bit.
LARGEST_DOMAIN = 1 << 32


class BaseRandomizer:
    """What every randomizer has: it is made once, never changes, and names its proof and its law.

    A sub-class sets `n_words` (random words a record), `report_dtype`, `report_width`, `report_bits` and `n_counts`,
    and brings `privatize`, `check_reports`, `count`, `transition_matrix` and `law_indices`.
    """

    #: Random words a block of rows: what Python does once a block must be small beside what the kernels do.
    block_words = BLOCK_WORDS
    #: Whether it keeps tables that it has worked out, so that few of its kind are cached.
    heavy = False
    #: Where at least 0.99 of epsilon is not used: the reason, in a sentence.
    slack = ""

    def __setattr__(self, name, value):
        if "_frozen" in vars(self):
            raise AttributeError(f"a randomizer never changes: {name} cannot be set")
        super().__setattr__(name, value)

    @classmethod
    def make(cls, epsilon, *more):
        """Return the randomizer of (epsilon, ...), from a cache where it was made before."""
        return (_make_heavy if cls.heavy else _make)(cls, canonical_epsilon(epsilon), *more)

    @property
    def block_rows(self):
        """Rows a block of random words; depends on the mechanism alone."""
        return max(1, self.block_words // self.n_words)

    def privatize(self, codes, words, out):
        """Write one report for each code; all randomness comes from `words` (a `dpestim.rng.Words`)."""
        raise TypeError(f"{type(self).__name__} does not say how to privatize")

    def check_reports(self, reports):
        """Raise ValueError unless a client could have produced every report."""
        raise TypeError(f"{type(self).__name__} does not say how to check reports")

    def transition_matrix(self):
        """Return rows of Fractions: the law of the response for each input (given whatever is public)."""
        raise TypeError(f"{type(self).__name__} does not state its law")

    def public_part(self, reports):
        """Return the fields of the reports that are drawn before the value is looked at, or None."""
        return None

    def law_indices(self, codes, reports):
        """Return, for each record, the row and the column of the transition matrix that it realises."""
        raise TypeError(f"{type(self).__name__} does not relate reports to its law")


class Randomizer(BaseRandomizer):
    """Base of the randomizers of categorical columns, made by ``Randomizer.make(epsilon, n_categories)``.

    A sub-class sets, in ``__init__(self, epsilon, n_categories)`` after calling this one:

    n_words : int
        Random words a record, all stages together, without the rare ones.
    report_dtype, report_width : numpy dtype and int
        A report is ``report_width`` numbers of this dtype.
    report_bits : float
        Information sent by a user, in bits.
    p_star, q_star : Fraction
        Realised probabilities that a report supports its own value, and another one (where `support_law` is overridden:
        a typical one).
    n_counts : int
        Length of the vector of counts that `count` fills, where it is not `n_categories`.

    and brings ``privatize``, ``check_reports``, ``support``, ``transition_matrix`` and ``law_indices``. Instances are
    shared: nothing may change after ``__init__``.
    """

    def __init__(self, epsilon, n_categories):
        self.epsilon = canonical_epsilon(epsilon)
        if not 2 <= n_categories <= LARGEST_DOMAIN:
            raise ValueError("categories must name at least two distinct values (and at most 2**32) for each column")
        self.n_categories = n_categories
        self.code_dtype = smallest_dtype(n_categories)
        self.n_counts = n_categories

    def support(self, reports):
        """Return the 0/1 support matrix of the reports, uint8 of shape (n, n_categories)."""
        raise TypeError(f"{type(self).__name__} does not say what a report supports")

    def support_law(self):
        """Return rows of Fractions: entry (x, v) is the probability that a report of x supports v."""
        d = range(self.n_categories)
        return [[self.p_star if x == v else self.q_star for v in d] for x in d]

    def count(self, reports, counts):
        """Add what the reports say to counts (int64, n_counts long): here, each category's supporting reports."""
        counts += self.support(reports).sum(axis=0, dtype=np.int64)

    def estimate(self, counts, n):
        """Return the unbiased frequencies (C / n - q*) / (p* - q*)."""
        return (counts / n - float(self.q_star)) / self._gap

    def variance(self, n, f):
        """Return the exact variance of `estimate` for n users of whom a share f holds the value (FORMULAS VAR)."""
        q, gap = self.q_star, self.p_star - self.q_star
        at_zero, slope = q * (1 - q) / gap**2, (1 - self.p_star - q) / gap
        return (float(at_zero) + float(slope) * np.asarray(f, dtype=np.float64)) / n

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance as a line in f, as far as the counts tell it."""
        q, gap = self.q_star, self.p_star - self.q_star
        return float(q * (1 - q) / gap**2), float((1 - self.p_star - q) / gap)

    @cached_property
    def _gap(self):
        return float(self.p_star - self.q_star)

    def __repr__(self):
        return f"{type(self).__name__}(epsilon={float(self.epsilon):g}, n_categories={self.n_categories})"


class PackedBits(Randomizer):
    """Base of the randomizers whose report is ceil(d / 8) bytes of bits, bit j at byte j // 8, lowest first."""

    report_dtype = np.dtype(np.uint8)

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.report_width = (n_categories + 7) // 8
        self.report_bits = n_categories

    def count(self, reports, counts):
        """Add the column sums of the bits."""
        padded = np.zeros(8 * self.report_width, np.int64)
        unary.count(reports, padded)
        counts += padded[: self.n_categories]

    def support(self, reports):
        """Return the unpacked bits."""
        return np.unpackbits(reports, axis=1, bitorder="little", count=self.n_categories)


def _frozen(cls, *args):
    randomizer = cls(*args)
    vars(randomizer)["_frozen"] = True
    return randomizer


_make, _make_heavy = lru_cache(maxsize=256)(_frozen), lru_cache(maxsize=16)(_frozen)


def smallest_dtype(n):
    """Return the smallest unsigned dtype that holds 0 .. n - 1 (of the three the kernels know)."""
    return np.dtype(np.uint8 if n <= 1 << 8 else np.uint16 if n <= 1 << 16 else np.uint32)

