"""Longitudinal local hashing: one hash for good, a kept answer for the bucket, a noisy copy in every report."""

import numpy as np

from dpestim._core import grr, olh
from dpestim.local.categories.longitudinal import LongitudinalEstimator, Memoised, composed, instant_weights
from dpestim.local.categories.olh import LocalHashing, best_n_buckets
from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import Stage


class LOLOHA(Memoised, LocalHashing):
    """Local hashing with two randomised responses in a row; a report is (a, b, bucket)."""

    n_fixed = 2  # the hash

    def __init__(self, epsilon, n_categories, epsilon_permanent=None, n_buckets=None):
        if n_buckets is not None and (isinstance(n_buckets, bool) or not isinstance(n_buckets, int) or n_buckets < 2):
            raise ValueError("n_buckets must be None or an integer of at least 2")
        self.epsilon = canonical_epsilon(epsilon)
        self.keep_permanent(epsilon_permanent)
        self._chosen = n_buckets or best_n_buckets(self.epsilon)
        super().__init__(epsilon, n_categories)
        self.n_cells, self.answer_dtype, self.answer_width = self.n_buckets, self.report_dtype, 3

    def _n_buckets(self):
        return self._chosen

    def _weights(self):
        self.first = grr_weights(self.epsilon_permanent, self.n_buckets)
        self.second = instant_weights(self.epsilon, self.first, self.n_buckets)
        return composed(self.first, self.second, self.n_buckets)

    @property
    def instant_ratio(self):
        """The largest ratio of the probabilities of a report for two kept answers."""
        return self.second.ratio

    def permanent(self, codes, words, out):
        """Write (a, b, kept bucket) for each code."""
        seeds = words.dense(Stage.SEED, self.n_seed_words)
        drawn = words.dense(Stage.PERMANENT, self.first.n_words)
        olh.privatize(codes, seeds, drawn, self.n_buckets, self.first.keep, self.first.other, out)

    def cells(self, codes, answers):
        """Return the bucket of each code under the hash that is kept."""
        out = np.empty(len(codes), self.report_dtype)
        olh.bucket(codes, answers, self.n_buckets, out)
        return out.astype(np.int64)

    def again(self, cells, words, out):
        """Write a kept bucket for each bucket."""
        self._answer(cells, words.dense(Stage.PERMANENT, self.first.n_words), self.first, out)

    def respond(self, answers, words, out):
        """Write (a, b, bucket) for each kept answer."""
        out[:, :2] = answers[:, :2]
        self._answer(answers[:, 2], words.dense(Stage.RESPONSE, self.second.n_words), self.second, out)

    def privatize(self, codes, words, out):
        """Write a first report for each code: the answer that nobody keeps is written over by a report of it."""
        self.permanent(codes, words, out)
        self._answer(out[:, 2], words.dense(Stage.RESPONSE, self.second.n_words), self.second, out)

    @staticmethod
    def _answer(buckets, drawn, weights, out):
        said = np.empty(len(buckets), np.uint32)
        grr.privatize(buckets.astype(np.uint32), drawn, weights.keep, weights.other, said)
        out[:, 2] = said


class LOLOHAFrequencyEstimator(LongitudinalEstimator):
    """Estimate frequencies by longitudinal local hashing (LOLOHA), for repeated short reports.

    A client draws one permanent public hash and one permanent answer for each of its g buckets; every report is a noisy
    copy of a permanent answer. Values that share a bucket share the permanent answer, so that many changes are
    invisible. Choose LOLOHA for large domains; the server needs O(n d) time. ``n_buckets=2`` stores the fewest answers;
    the default is the most accurate.

    {longitudinal}

    **Utility.** Unbiased; the first report, and so a fit, has the variance of local hashing to g buckets at epsilon.

    **Complexity.** O(1) a user and O(n d) at the server; log2(g) bits sent and the hash once.

    {parameters}
    References
    ----------
    H. H. Arcolezi, C. Pinzon, C. Palamidessi, S. Gambs, "Frequency estimation of evolving data under local
    differential privacy", EDBT 2023 (LOLOHA). The paper bounds changing values by g epsilon_permanent; `privacy_of`
    does not, as ``longitudinal.md`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LOLOHAFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = LOLOHAFrequencyEstimator(1.0, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.06
    np.True_
    """

    _randomizer = LOLOHA
    _more_parameters = LongitudinalEstimator._more_parameters + """    n_buckets : int, default=None
        Buckets of the hash, at least 2; None: as many as make the first report most accurate.
    """
    _test_values = {"n_buckets": [7]}

    def __init__(self, epsilon=1.0, *, epsilon_permanent=None, n_buckets=None, categories="auto", postprocess=None,
                 sparse_output=False, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, epsilon_permanent=epsilon_permanent, categories=categories, postprocess=postprocess,
                         sparse_output=sparse_output, ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.n_buckets = n_buckets
