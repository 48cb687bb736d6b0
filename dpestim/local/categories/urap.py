"""Utility-optimised RAPPOR: symmetric unary encoding of sensitive categories, one bit of their own for the others."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import relaxed
from dpestim.local.categories.supports import Bits, success_of_sets
from dpestim.local.categories.unary import Unary
from dpestim.local.categories.urr import NonSensitive, UtilityOptimised
from dpestim.local.patterns import draw_encoded
from dpestim.privacy.category_weights import urap_thresholds
from dpestim.privacy.exact import WORD


class URAP(UtilityOptimised, Unary):
    """Unary encoding of which non-sensitive bits are 0, but for the own one; a report is ceil(d / 8) bytes of bits."""

    def __init__(self, epsilon, n_categories, non_sensitive=()):
        super().__init__(epsilon, n_categories)
        self.relax(non_sensitive)
        self.reveal_threshold = urap_thresholds(self.epsilon)[2]
        self.reveal_star = Fraction(self.reveal_threshold, WORD)
        self._sensitive_bits = np.packbits(~self.is_relaxed, bitorder="little")
        self._revealing_bits = np.packbits(self.is_relaxed, bitorder="little")

    @staticmethod
    def _thresholds(epsilon):
        return urap_thresholds(epsilon)[:2]

    def privatize(self, codes, words, out):
        """Write packed bits: all as symmetric unary encoding draws them, then those of non-sensitive categories."""
        firsts = np.empty(len(codes), np.uint64)
        draw_encoded(codes, self.true_threshold, self.false_threshold, self.n_categories, words, out, firsts=firsts)
        if self.n_relaxed:
            relaxed.reveal(codes, firsts, self.reveal_threshold, self.is_relaxed.view(np.uint8), self._sensitive_bits,
                           out)

    def check_reports(self, reports):
        """Refuse bits beyond the domain, and more than one of non-sensitive categories."""
        super().check_reports(reports)
        rows = reports if reports.strides[1] == 1 else np.ascontiguousarray(reports)
        if not relaxed.at_most_one(rows, self._revealing_bits):
            raise ValueError("a report must have at most one bit of a non-sensitive category")

    def _bit_probabilities(self, x):
        """Return Pr[1] of every bit of the report of x."""
        return [Fraction(0) if relaxed and v != x else self.reveal_star if relaxed
                else self.p_star if v == x else self.q_star for v, relaxed in enumerate(self.is_relaxed.tolist())]

    @property
    def _score_odds(self):
        """What a value's own bit being 1, and 0, say for it; a non-sensitive one is told by 1."""
        yes, no = (np.where(self.is_relaxed, 1 - float(self.reveal_star), float(odds)) for odds in self.support_odds)
        return yes, no

    def worst_ratio(self):
        """Return the largest ratio: infinite where somebody may reveal a category."""
        return math.inf if self.n_relaxed else super().worst_ratio()

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: bits are independent, O(d log d)."""
        own = np.where(self.is_relaxed, float(self.reveal_star), float(self.p_star))
        return success_of_sets(*(prior * odds for odds in self._score_odds), own, Bits(float(self.q_star)))

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each category."""
        bits, (yes, no) = self.support(reports).astype(bool), self._score_odds
        out = np.where(bits, yes, no)
        told = bits[:, self.is_relaxed].any(axis=1)  # by a bit that only one value's holders send
        out[told] = bits[told] & self.is_relaxed
        return out

    def output_kinds(self):
        """Return the kind of each bit vector: revealing where it has a bit of a non-sensitive category."""
        mask = sum(1 << v for v in np.flatnonzero(self.is_relaxed).tolist())
        return np.where(np.arange(1 << self.n_categories) & mask, "revealing", "protected")


class URAPFrequencyEstimator(NonSensitive):
    """Estimate frequencies by utility-optimised RAPPOR (uRAP), which protects sensitive categories only.

    Each user sends one bit for each category. Bits of sensitive categories are drawn as in `SUEFrequencyEstimator`. Of
    the other bits only that of the user's category can be 1. Choose uRAP where many categories, but not all, are
    secrets, and d bits may be sent: its accuracy does not depend on the number of sensitive categories. With few
    sensitive categories prefer `URRFrequencyEstimator`, and `SDGRRFrequencyEstimator` where the others should keep some
    protection. The guarantee is weaker than local differential privacy, as `privacy_` states.

    **Privacy.** Utility-optimised local differential privacy for a row, exact (integer thresholds, proof in
    ``urap.md``): no report raises the odds of a sensitive category against any other by a factor above e^epsilon.
    Neighbours: any two rows of one user; no other party is trusted. Non-sensitive categories are not protected: their
    holders reveal them with probability 1 - e^(-epsilon / 2). So ``privacy_.epsilon`` is infinite, and
    ``privacy_.relaxed_epsilon`` is epsilon.

    **Utility.** Unbiased; the variance of a sensitive frequency is that of SUE, e^(eps/2) / (e^(eps/2) - 1)^2 / n, for
    any frequency, and that of a non-sensitive frequency f is f / (e^(eps/2) - 1) / n.

    **Complexity.** O(d) a user and O(n d) bit operations at the server; d bits sent.

    {parameters}
    References
    ----------
    T. Murakami, Y. Kawamoto, "Utility-optimized local differential privacy mechanisms for distribution estimation",
    USENIX Security 2019, the utility-optimized RAPPOR.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import URAPFrequencyEstimator
    >>> X = np.repeat([["flu"], ["HIV"], ["none"]], [3000, 1000, 6000], axis=0)
    >>> est = URAPFrequencyEstimator(
    ...     1.0, categories=[["HIV", "flu", "none"]], non_sensitive=[["flu", "none"]], random_state=0
    ... ).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.1, 0.3, 0.6]).max() < 0.05
    np.True_
    >>> est.privacy_.epsilon, float(est.privacy_.relaxed_epsilon)
    (inf, 1.0)
    """

    _randomizer = URAP
