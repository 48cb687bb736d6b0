"""Generalised randomised response: the true value with the largest weight, every other with the same small one."""

from fractions import Fraction

import numpy as np

from dpestim._core import grr
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.constants import constants_of
from dpestim.local.guessing import Runs
from dpestim.local.reports import CodeReports
from dpestim.privacy.category_weights import grr_weights
from dpestim.rng import Stage, Words


class GRR(CodeReports, CategoricalRandomizer):
    """Randomised response over the whole domain; a report is a code."""

    word_ns = 1.0
    block_words = 1 << 18  # kernels of two nanoseconds a row: threads would mostly wait for the interpreter's lock
    may_replace_codes = True
    tile_words = 1 << 16  # a buffer for all of them would get fresh pages in each call, which take as long as a kernel

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.weights = grr_weights(self.epsilon, n_categories)
        self.n_words = self.weights.n_words
        self.report_dtype = self.code_dtype
        self.p_star = Fraction(self.weights.keep, self.weights.total)
        self.q_star = Fraction(self.weights.other, self.weights.total)

    def constants(self):
        """Return `weights`: of 2^(64 n_words) draws `keep` name the own value and `other` each other one."""
        return constants_of(self)

    def privatize(self, codes, words, out):
        """Write one code for each code."""
        answer(self.weights.keep, self.weights.other, self.n_words, codes, words, out.reshape(-1))

    def support(self, reports):
        """Return the one-hot encoding of the reports."""
        out = np.zeros((len(reports), self.n_categories), np.uint8)
        out[np.arange(len(reports)), reports[:, 0]] = 1
        return out

    def supported(self, goal):
        """Return the fewest and the most of some values that one report can support: it names one."""
        return int(len(goal) == self.n_categories), 1

    def transition_matrix(self):
        """Return the d x d matrix: row x is the law of the report of x."""
        d = self.n_categories
        return [[self.p_star if x == y else self.q_star for y in range(d)] for x in range(d)]

    def mean_of(self, numbers):
        """Return the mean of numbers[report] for every category."""
        return float(self.q_star) * numbers.sum() + self._gap * numbers

    def law_indices(self, codes, reports):
        """Return (true value, reported value)."""
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)

    def worst_ratio(self):
        """Return the ratio of the two probabilities, exactly."""
        return super().worst_ratio() if self.relaxation else self.p_star / self.q_star

    def runs(self):
        """Return the law's columns: the user's value, and all others."""
        return Runs.of_own(np.arange(self.n_categories), self.p_star, self.q_star)


def answer(keep, other, n_words, codes, words, out):
    """Write randomised responses of these weights: by one kernel, words and all, where it makes them."""
    cipher = words.cipher(Stage.RESPONSE, n_words) if type(words) is Words else None
    if cipher is None:
        grr.privatize(codes, words.dense(Stage.RESPONSE, n_words), keep, other, out)
    else:
        grr.answer(codes, cipher, n_words, keep, other, out)


class GRRFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by generalised randomised response (GRR, k-ary randomised response).

    Each user sends a value of the domain: the true value with the largest probability, every other value with an equal
    smaller probability. GRR is more accurate than OUE and OLH for small domains, d < 3 e^epsilon + 2 (for rare values),
    and takes the least time for every d. For larger d prefer `OUEFrequencyEstimator` or `OLHFrequencyEstimator`.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``grr.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; the variance of a frequency f among n users is
    ((e^eps + d - 2) / (e^eps - 1)^2 + f (d - 2) / (e^eps - 1)) / n.

    **Complexity.** O(1) a user and O(n + d) at the server; log2(d) bits sent. `fit` of c columns: O(c (n + d)) time and
    memory; a code takes 1 to 4 bytes.

    {parameters}
    References
    ----------
    P. Kairouz, S. Oh, P. Viswanath, "Extremal mechanisms for local differential privacy", NIPS 2014, eq. (7);
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, eq. (3) and (4).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = GRRFrequencyEstimator(1.0, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = GRR
