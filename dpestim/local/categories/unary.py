"""Unary encoding: one bit for each value of the domain, each flipped on its own."""

from fractions import Fraction

import numpy as np

from dpestim.local import pivots
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.supports import Bits, success_of_sets
from dpestim.local.constants import constants_of
from dpestim.local.patterns import draw_encoded, draw_patterns, spare_words, words_for
from dpestim.local.reports import PackedBits
from dpestim.privacy.category_weights import oue_thresholds, sue_thresholds
from dpestim.privacy.exact import WORD, uses_enough

#: A record's random words, two bits a bit, and room for its ties must stay far below the memory of a client.
LARGEST_UNARY = 1 << 24


class Unary(PackedBits, CategoricalRandomizer):
    """Unary encoding by two thresholds; a report is ceil(d / 8) bytes of bits, bit j at byte j // 8, lowest first."""

    #: (epsilon) -> (t1, t0), Pr[1] * 2**64 of the true bit and of every other one
    _thresholds = None
    #: Why less than 0.99 of epsilon is used, where that is so.
    _slack = "a bit's probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    block_words = 1 << 18  # words and reports of a block stay near the cache, and threads run long without Python

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        if n_categories > LARGEST_UNARY:
            raise ValueError("categories: unary encoding takes at most 2**24 values; use local hashing")
        self.true_threshold, self.false_threshold = self._thresholds(self.epsilon)
        self.n_words = words_for(self.report_width)  # one for the true bit, 16 random bits for every eight others
        self.n_spare = spare_words(self.report_width)
        self.p_star = Fraction(self.true_threshold, WORD)
        self.q_star = Fraction(self.false_threshold, WORD)
        p, q = self.p_star, self.q_star
        if not uses_enough(p * (1 - q), (1 - p) * q, self.epsilon):
            self.slack = self._slack

    def constants(self):
        """Return the thresholds: of 2^64 words those that make the true bit 1, and every other bit."""
        return constants_of(self)

    def privatize(self, codes, words, out):
        """Write packed bits: 16 random bits decide on eight, and where they tie the other digits have rare words."""
        draw_encoded(codes, self.true_threshold, self.false_threshold, self.n_categories, words, out)

    def _draw(self, codes, words, out):
        """Write every bit as if it were false, and return the words; the first of a record is for its true bit."""
        return draw_patterns(self.false_threshold, words, out)

    def supported(self, goal):
        """Return the fewest and the most of some values that one report can support: any bits may be set."""
        return 0, len(goal)

    @property
    def knows_reports(self):
        """Whether all bits have the same two laws: then the number of ones has one law, whatever is held."""
        return not self.relaxation

    def known_counts(self, counts, n):
        """Return how many bits are 1 in all reports together: one has p*, the d - 1 others q*."""
        if not self.knows_reports:
            return []
        parts = (n * (self.n_categories - 1), float(self.q_star)), (n, float(self.p_star))
        return [pivots.total("bits that are 1", int(counts.sum()), parts)]

    def known_of(self, reports):
        """Return how many bits are 1 in each report, and in all together."""
        if not self.knows_reports:
            return []
        law = pivots.law_of_ones(self.n_categories - 1, float(self.q_star), 1, float(self.p_star))
        each = pivots.ones_of(reports)
        return [pivots.values("ones in a report", each, law), *self.known_counts(each, len(reports))]

    def transition_matrix(self):
        """Return the d x 2^d matrix over all bit vectors, read as little-endian integers; d is at most 12."""
        d = self.n_categories
        if d > 12:
            raise ValueError("the law of more than 12 bits is not enumerated: take the law of two bits, because bits "
                             "are independent")
        rows = []
        for x in range(d):
            row = [Fraction(1)]
            for one in self._bit_probabilities(x):
                row = [weight * (1 - one) for weight in row] + [weight * one for weight in row]
            rows.append(row)
        return rows

    def _bit_probabilities(self, x):
        """Return Pr[1] of every bit of the report of x."""
        return [self.p_star if v == x else self.q_star for v in range(self.n_categories)]

    @property
    def support_odds(self):
        """How much likelier a 1 is than a 0 for the value itself, against another one."""
        return self.p_star / self.q_star, (1 - self.p_star) / (1 - self.q_star)

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: bits are independent, O(d log d)."""
        high, low = (prior * float(odds) for odds in self.support_odds)
        return success_of_sets(high, low, np.full(len(prior), float(self.p_star)), Bits(float(self.q_star)))

    def law_indices(self, codes, reports):
        """Return (true value, the bits as an integer)."""
        return codes.astype(np.int64), self.support(reports).astype(np.int64) @ (1 << np.arange(self.n_categories))


class OUE(Unary):
    """Optimised unary encoding: the true bit is a fair coin."""

    _thresholds = staticmethod(oue_thresholds)


class SUE(Unary):
    """Symmetric unary encoding: every bit is flipped with the same probability."""

    _thresholds = staticmethod(sue_thresholds)


class OUEFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by optimised unary encoding (OUE).

    Each user sends one bit for each value of the domain. The bit of the true value is 1 with probability 1/2, every
    other bit with 1 / (e^epsilon + 1). As accurate as local hashing and far cheaper for the server, at d bits a user;
    for d < 3 e^epsilon + 2 prefer `GRRFrequencyEstimator`.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer thresholds, both directions, proof in
    ``unary.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; the variance of a frequency f among n users is (4 e^eps / (e^eps - 1)^2 + f) / n.

    **Complexity.** O(d) a user and O(n d) bit operations at the server, 64 to 512 at a time; d bits sent.
    `fit` of c columns: O(n c d) time and O(c (n + d)) memory, as reports are counted block by block.

    {parameters}
    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, section 4.2 and eq. (10); the exact variance adds f / n (see ``unary.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import OUEFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = OUEFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = OUE


class SUEFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by symmetric unary encoding (SUE, basic one-time RAPPOR).

    Each user sends one bit for each value of the domain, and every bit is flipped with the same probability 1 /
    (e^(epsilon / 2) + 1). Its variance does not depend on the frequency; `OUEFrequencyEstimator` costs the same and
    has a smaller one for all but very frequent values. Prefer SUE where a value held by most users matters, or to
    compare.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer thresholds, both directions, proof in
    ``unary.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; the variance of a frequency among n users is e^(eps/2) / (e^(eps/2) - 1)^2 / n, for any
    frequency.

    **Complexity.** O(d) a user and O(n d) bit operations at the server, 64 to 512 at a time; d bits sent.

    {parameters}
    References
    ----------
    U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR: Randomized aggregatable
    privacy-preserving ordinal response", CCS 2014; T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private
    protocols for frequency estimation", USENIX Security 2017, section 4.2 and eq. (7).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import SUEFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = SUEFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.06
    np.True_
    """

    _randomizer = SUE
