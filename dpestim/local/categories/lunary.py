"""Longitudinal unary encoding: a kept vector of randomised bits, and a noisy copy of it in every report."""

from fractions import Fraction

import numpy as np

from dpestim._core import unary
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.longitudinal import LongitudinalEstimator, Memoised
from dpestim.local.categories.unary import LARGEST_UNARY, Unary
from dpestim.local.patterns import draw_bits, draw_encoded, spare_words
from dpestim.privacy.category_weights import oue_thresholds
from dpestim.privacy.exact import WORD, exp_lower, uses_enough
from dpestim.rng import Stage, Words

_NONE = np.empty(0, np.uint64)


class LongitudinalUnary(Memoised, Unary):
    """Optimised unary encoding, kept, and then each of its bits flipped again; a report is packed bits."""

    #: Whether bits are flipped symmetrically; else a 1 becomes a fair coin.
    symmetric = None

    def __init__(self, epsilon, n_categories, epsilon_permanent=None):
        CategoricalRandomizer.__init__(self, epsilon, n_categories)
        if n_categories > LARGEST_UNARY:
            raise ValueError("categories: unary encoding takes at most 2**24 values; use local hashing")
        self.keep_permanent(epsilon_permanent)
        self.first = oue_thresholds(self.epsilon_permanent)
        low = self.flip_threshold = least_flip(self.epsilon, self.first, self.symmetric)
        self.p_star, self.q_star = _composed(self.first, low, self.symmetric)
        per_answer = 1 + -(-self.report_width // 4)
        self.n_coin_words = 0 if self.symmetric else -(-n_categories // 64)
        self.n_words, self.n_cells = 2 * per_answer + self.n_coin_words, n_categories
        self.n_instant, self.n_spare = n_categories, 2 * spare_words(self.report_width)
        self.answer_dtype, self.answer_width = self.report_dtype, self.report_width
        p, q = self.p_star, self.q_star
        if not uses_enough(p * (1 - q), (1 - p) * q, self.epsilon):
            self.slack = "a bit's probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    @property
    def instant_ratio(self):
        """The largest ratio of the probabilities of one bit for two kept ones; all bits may differ."""
        one, zero = _odds(self.flip_threshold, self.symmetric)
        return max(one / zero, (1 - zero) / (1 - one))

    def permanent(self, codes, words, out):
        """Write the kept bits of each code."""
        draw_encoded(codes, *self.first, self.n_categories, words, out, Stage.PERMANENT, Stage.PERMANENT_RARE)

    def respond(self, answers, words, out):
        """Write a report of each vector of kept bits."""
        draw_bits(self.flip_threshold, words, out)
        # (a kept 1 takes a coin; where flips are symmetric it takes what a 0 would not)
        if self.symmetric:
            unary.flip(answers, _NONE, self.n_categories, out)
            return
        made = type(words) is Words and self.n_coin_words <= unary.MOST_COINS
        cipher = words.cipher(Stage.COINS, self.n_coin_words) if made else None
        if cipher is None:
            unary.flip(answers, words.dense(Stage.COINS, self.n_coin_words), self.n_categories, out)
        else:
            unary.toss(answers, cipher, self.n_categories, out)


class LOSUE(LongitudinalUnary):
    """Kept by optimised unary encoding, reported by symmetric flips."""

    symmetric = True


class LOUE(LongitudinalUnary):
    """Kept by optimised unary encoding, and reported by it."""

    symmetric = False


def _odds(low, symmetric):
    """Return Pr[1] of a report's bit whose kept bit is 1, and 0."""
    return Fraction(WORD - low if symmetric else WORD // 2, WORD), Fraction(low, WORD)


def _composed(first, low, symmetric):
    """Return Pr[1] of a report's true bit, and of every other one."""
    one, zero = _odds(low, symmetric)
    return tuple(zero + Fraction(kept, WORD) * (one - zero) for kept in first)


def least_flip(epsilon, first, symmetric):
    """Return the smallest threshold of a false bit for which the first report keeps epsilon, by bisection.

    The ratio p (1 - q) / (q (1 - p)) of the composed bits falls as the threshold rises, to 1 where the flip hides all.
    """
    bound = exp_lower(epsilon)

    def keeps(low):
        p, q = _composed(first, low, symmetric)
        return p * (1 - q) <= bound * q * (1 - p)

    low, high = 0, WORD // 2  # the answer lies in (low, high]
    if keeps(1):
        raise ValueError("epsilon_permanent is too small for this epsilon: raise epsilon_permanent, or lower epsilon")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    if high == WORD // 2:
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the difference between the "
                         "true bit and the others: take a larger epsilon")
    return high


class LOSUEFrequencyEstimator(LongitudinalEstimator):
    """Estimate frequencies by longitudinal optimised-symmetric unary encoding (L-OSUE), for repeated reports.

    A client keeps one vector of randomised bits (OUE), and every report flips each of them again with the same
    probability. Choose it for many values of which d bits may be sent again and again; where reports must be short,
    `LOLOHAFrequencyEstimator`.

    {longitudinal}

    **Utility.** Unbiased; the variance follows from the realised p* and q* of the first report.

    **Complexity.** O(d) a user and O(n d) bit operations at the server; d bits sent, and d bits kept for each value.

    {parameters}
    References
    ----------
    H. H. Arcolezi, J.-F. Couchot, B. Al Bouna, X. Xiao, "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates", Digital Communications and Networks, 2022
    (L-OSUE).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LOSUEFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = LOSUEFrequencyEstimator(1.0, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = LOSUE


class LOUEFrequencyEstimator(LongitudinalEstimator):
    """Estimate frequencies by longitudinal optimised unary encoding (L-OUE), for repeated reports.

    As `LOSUEFrequencyEstimator`, but a kept 1 becomes a fair coin in every report. Take it to compare.

    {longitudinal}
    It needs e^epsilon < (2 e^epsilon_permanent + 1) / 3.

    **Utility.** Unbiased; the variance follows from the realised p* and q* of the first report.

    **Complexity.** O(d) a user and O(n d) bit operations at the server; d bits sent, and d bits kept for each value.

    {parameters}
    References
    ----------
    H. H. Arcolezi, J.-F. Couchot, B. Al Bouna, X. Xiao, "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates", Digital Communications and Networks, 2022
    (L-OUE).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LOUEFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = LOUEFrequencyEstimator(1.0, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = LOUE
