"""Longitudinal randomised response: a kept answer over the domain, and a noisy copy of it in every report."""

import numpy as np

from dpestim._core import grr
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.longitudinal import LongitudinalEstimator, Memoised, composed, instant_weights
from dpestim.privacy.category_weights import grr_weights
from dpestim.rng import Stage


class LGRR(Memoised, GRR):
    """Two randomised responses in a row; a report is a code."""

    def __init__(self, epsilon, n_categories, epsilon_permanent=None):
        CategoricalRandomizer.__init__(self, epsilon, n_categories)
        self.keep_permanent(epsilon_permanent)
        self.first = grr_weights(self.epsilon_permanent, n_categories)
        self.second = instant_weights(self.epsilon, self.first, n_categories)
        self.weights = composed(self.first, self.second, n_categories)
        self.p_star, self.q_star = self.weights.own, self.weights.others
        self.n_words, self.n_cells = self.weights.n_words, n_categories
        self.report_dtype = self.answer_dtype = self.code_dtype
        self.answer_width = 1

    @property
    def instant_ratio(self):
        """The largest ratio of the probabilities of a report for two kept answers."""
        return self.second.ratio

    def permanent(self, codes, words, out):
        """Write the kept answer of each code."""
        drawn = words.dense(Stage.PERMANENT, self.first.n_words)
        grr.privatize(codes, drawn, self.first.keep, self.first.other, out.reshape(-1))

    def respond(self, answers, words, out):
        """Write a report of each kept answer."""
        drawn = words.dense(Stage.RESPONSE, self.second.n_words)
        codes = np.ascontiguousarray(answers[:, 0])
        grr.privatize(codes, drawn, self.second.keep, self.second.other, out.reshape(-1))

    def privatize(self, codes, words, out):
        """Write a first report for each code: an answer that nobody keeps, and a report of it."""
        kept = np.empty_like(codes)
        self.permanent(codes, words, kept)
        drawn = words.dense(Stage.RESPONSE, self.second.n_words)
        grr.privatize(kept, drawn, self.second.keep, self.second.other, out.reshape(-1))


class LGRRFrequencyEstimator(LongitudinalEstimator):
    """Estimate frequencies by longitudinal randomised response (L-GRR), for repeated reports.

    A client draws one permanent answer by randomised response and stores it; every report is a noisy copy of the
    permanent answer. While the value does not change, all reports together reveal no more than the permanent answer.
    Choose it for small domains, as `GRRFrequencyEstimator`; beyond d < 3 e^epsilon + 2 prefer `LOSUEFrequencyEstimator`
    or `LOLOHAFrequencyEstimator`.

    {longitudinal}

    **Utility.** Unbiased; the first report, and so a fit, has the variance of `GRRFrequencyEstimator` at epsilon.

    **Complexity.** O(1) a user and O(n + d) at the server; log2(d) bits sent; a state keeps one answer for each value.

    {parameters}
    References
    ----------
    H. H. Arcolezi, J.-F. Couchot, B. Al Bouna, X. Xiao, "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates", Digital Communications and Networks, 2022
    (L-GRR). The weights are not the paper's: they are integers that make the first report use all of epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LGRRFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = LGRRFrequencyEstimator(
    ...     1.0, epsilon_permanent=2.0, categories=[["tea", "coffee", "water"]], random_state=0
    ... )
    >>> state = est.client_state(X)
    >>> first, second = est.privatize(X, state=state), est.privatize(X, state=state)
    >>> np.abs(est.aggregate(second).frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    >>> float(est.privacy_of(state).relaxed_epsilon)
    2.0
    """

    _randomizer = LGRR
