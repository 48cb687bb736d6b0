"""Padding and sampling: one of a user's values, of public slots, is drawn and reported; laws of what is reported."""

from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpestim._core import grr, keyvalue
from dpestim.inputs import smallest_dtype
from dpestim.local.categories.adaptive import best_law
from dpestim.local.categories.choice import spread_of
from dpestim.local.constants import plain_value
from dpestim.local.law import Randomizer
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD
from dpestim.privacy.key_value_weights import pckv_code_weights
from dpestim.rng import Stage

#: A sign that the kernel never turns: only which slot is drawn matters here.
ALWAYS = 1 << 32
#: Values and slots, at most.
LARGEST = 1 << 24


class PaddedLaw(Randomizer):
    """Base of the laws of sets: one of max(a set's values, length) slots is drawn, and a code of it is reported.

    Codes are rows of `Baskets` whose items are below `n_values`. A sub-class brings `share_line`: (at zero, slope) of
    the variance of one report's estimate as a line in the share of who draws a value.
    """

    def __init__(self, epsilon, n_values, length=1):
        super().__init__(epsilon)
        if not 1 <= n_values <= LARGEST or not 1 <= length <= LARGEST:
            raise ValueError("items and the padding length must be from 1 to 16777216")
        self.n_values, self.length = n_values, length

    def drawn(self, rows, words):
        """Return a value below `n_values` of each set, or `n_values` and the number of an empty slot."""
        out = np.empty(len(rows), np.uint32)
        signs = np.full(len(rows.index), ALWAYS, np.int64)
        keyvalue.choose(rows.start, rows.index, signs, words.dense(Stage.COINS, 2).reshape(-1, 2), self.length,
                        self.n_values, out)
        empty = 2 * self.n_values
        return np.where(out < empty, out // 2, out - np.uint32(self.n_values))

    def slots(self, own):
        """Return how likely each value and each empty slot is drawn of a set, exactly: a dict from codes to Fractions.

        A word w names slot floor(w m / 2^64).
        """
        own, m = sorted(own), max(len(own), self.length)
        edges = [-(-k * WORD // m) for k in range(m + 1)]
        codes = own + [self.n_values + slot for slot in range(len(own), m)]
        return {code: Fraction(b - a, WORD) for code, (a, b) in zip(codes, pairwise(edges))}

    @property
    def input_codes(self):
        """Numbers of the sets: bit k is value k."""
        return range(1 << min(self.n_values, 62))  # (of more it is only told that they are too many)

    def transition_matrix(self):
        """Return the law of the report of each set, for few values."""
        if self.n_values > 8:
            raise ValueError("the law of more than 8 items is not enumerated")
        return [self.outcome_law([k for k in range(self.n_values) if code >> k & 1]) for code in self.input_codes]


class PaddedCodes(CodeReports, PaddedLaw):
    """Randomised response over all values and all slots: that a slot is drawn hides what is in it.

    Each code is drawn with a probability of at most 1 / length, so that the response may be truer (`itemsets.md`).
    """

    def __init__(self, epsilon, n_values, length=1):
        super().__init__(epsilon, n_values, length)
        self.n_counts = n_values + length
        self.weights = pckv_code_weights(self.epsilon, self.n_counts, length)
        self.report_dtype = smallest_dtype(self.n_counts)
        self.n_words = 2 + self.weights.n_words
        self.p_star = Fraction(self.weights.keep, self.weights.total)
        self.q_star = Fraction(self.weights.other, self.weights.total)
        if float(self.p_star) <= float(self.q_star):
            raise ValueError(f"epsilon is too small to distinguish {self.n_counts} codes: take a larger epsilon, or "
                             "fewer items")

    def constants(self):
        """Return how many slots there are, and the `weights` of randomised response, as `GRR` has them."""
        return {"length": self.length, "weights": plain_value(self.weights)}

    def privatize(self, codes, words, out):
        """Write one code for each set."""
        drawn = words.dense(Stage.RESPONSE, self.weights.n_words)
        grr.privatize(self.drawn(codes, words).astype(self.report_dtype), drawn, self.weights.keep, self.weights.other,
                      out.reshape(-1))

    def estimate(self, counts, n):
        """Return the unbiased shares of who drew each value."""
        q = float(self.q_star)
        return (counts[: self.n_values] / n - q) / (float(self.p_star) - q)

    def share_line(self, counts, n):
        """Return (at zero, slope)."""
        q, gap = self.q_star, self.p_star - self.q_star
        return float(q * (1 - q) / gap**2), float((1 - self.p_star - q) / gap)

    @cached_property
    def spread(self):
        """How large the variance of one report's estimate is on average, where values are drawn equally often."""
        at_zero, slope = self.share_line(None, 1)
        return at_zero + slope / self.n_counts

    def outcome_law(self, own):
        """Return the law of the report of a set, a list of Fractions over all codes."""
        p, q, drawn = self.p_star, self.q_star, self.slots(own)
        return [q + (p - q) * drawn.get(code, 0) for code in range(self.n_counts)]

    def worst_ratio(self):
        """Return the ratio of a code that is drawn as often as can be, and one that is not drawn."""
        return 1 + Fraction(-(-WORD // self.length), WORD) * (self.p_star / self.q_star - 1)


class PaddedSlots(PaddedLaw):
    """Any law over the values and "none", which stands for all empty slots: here the law of the least error."""

    def __init__(self, epsilon, n_values, length=1):
        super().__init__(epsilon, n_values, length)
        self.law = law = best_law(self.epsilon, n_values + 1)
        self.n_counts, self.report_dtype, self.report_width = law.n_counts, law.report_dtype, law.report_width
        self.n_words, self.slack, self.notes = 2 + law.n_words, law.slack, law.notes

    report_bits = property(lambda self: self.law.report_bits, doc="Information sent, in bits.")
    fields = property(lambda self: self.law.fields, doc="The bits of a report.")
    block_words = property(lambda self: self.law.block_words, doc="Random words a block of rows.")

    def constants(self):
        """Return how many slots there are, and what draws the report of a value."""
        return {"length": self.length, "law": plain_value(self.law)}

    def privatize(self, codes, words, out):
        """Write one report for each set."""
        drawn = np.minimum(self.drawn(codes, words), self.n_values)
        self.law.privatize(drawn.astype(self.law.code_dtype), words, out)

    def check_reports(self, reports):
        """Refuse what the law refuses."""
        self.law.check_reports(reports)

    def count(self, reports, counts):
        """Count as the law does."""
        self.law.count(reports, counts)

    knows_reports = property(lambda self: self.law.knows_reports, doc="Whether `known_of` tells of more.")

    def known_counts(self, counts, n):
        """Return what the law knows."""
        return self.law.known_counts(counts, n)

    def known_of(self, reports):
        """Return what the law knows."""
        return self.law.known_of(reports)

    def estimate(self, counts, n):
        """Return the unbiased shares of who drew each value."""
        return self.law.estimate(counts, n)[: self.n_values]

    def share_line(self, counts, n):
        """Return (at zero, slope)."""
        return self.law.variance_line(counts, n)

    @cached_property
    def spread(self):
        """How large the variance of one report's estimate is on average, where values are drawn equally often."""
        return spread_of(self.law).rmse(1) ** 2

    def outcome_law(self, own):
        """Return the law of the report of a set, a list of Fractions over all columns of the law's matrix."""
        matrix, out = self.law.transition_matrix(), 0
        for code, chance in self.slots(own).items():
            row = matrix[min(code, self.n_values)]
            out = [a + chance * b for a, b in zip(out or [Fraction(0)] * len(row), row)]
        return out

    def worst_ratio(self):
        """Return the ratio of the law: that of mixtures of its rows is no larger."""
        return self.law.worst_ratio()


def padded_law(epsilon, n_values, length):
    """Return the law of the least error for sets with so many slots, from public numbers only."""
    plain = PaddedSlots.make(epsilon, n_values, length)
    try:
        codes = PaddedCodes.make(epsilon, n_values, length)
    except ValueError:  # (such a response cannot be expressed in words)
        return plain
    return codes if codes.spread <= plain.spread else plain
