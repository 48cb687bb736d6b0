"""Utility-optimised randomised response: only sensitive categories hide, among each other; others may be revealed."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import relaxed
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.grr import GRR, answer
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.relaxed import Relaxed
from dpestim.local.law import ALL, Promise
from dpestim.local.reports import CodeReports
from dpestim.privacy.category_weights import grr_weights


class UtilityOptimised(Relaxed):
    """What utility-optimised laws (ULDP) share; a mixin, which stands left of the law's base.

    A report is *revealing* where it supports a non-sensitive category: then only its holders can have sent it. All
    others are *protected*. A sub-class sets `p_star` and `q_star` for sensitive categories, and

    reveal_star : Fraction
        Realised probability that the holder of a non-sensitive category sends a revealing report.
    """

    relaxation = "ULDP"
    full_kind, relaxed_kind = "sensitive", "non-sensitive"

    @property
    def promises(self):
        """What holds for sensitive inputs, and for protected outputs."""
        if not self.n_relaxed:
            return super().promises
        others = math.inf if self.n_relaxed > 1 else Fraction(0)
        return (
            Promise("sensitive", ALL, ALL, self.epsilon),
            Promise(ALL, ALL, "protected", self.epsilon),
            Promise("non-sensitive", "sensitive", ALL, math.inf),  # a revealing report
            Promise("non-sensitive", "non-sensitive", ALL, others),
            Promise(ALL, ALL, ALL, math.inf),
        )

    @property
    def notes(self):
        """What holds for which inputs, in sentences."""
        if not self.n_relaxed:
            return ()
        return (
            "No report raises the odds of a sensitive category against any other of its column by a factor of more "
            f"than e^{float(self.epsilon):g}.",
            "A non-sensitive category is not protected: each report of its holder reveals the category with "
            f"probability {float(self.reveal_star):.3g}, and thereby that the holder has no sensitive category.",
        )

    # ---------------------------------------------------------------- estimates

    def support_law(self):
        """Return rows of Fractions: only its holders' reports support a non-sensitive category."""
        rows = super().support_law()
        for v in np.flatnonzero(self.is_relaxed).tolist():
            for x, row in enumerate(rows):
                row[v] = self.reveal_star if x == v else Fraction(0)
        return rows

    def support_pair(self):
        """Return the same as numbers: of others, nobody supports a non-sensitive category."""
        own, other, reveal = float(self.p_star), float(self.q_star), float(self.reveal_star)
        return np.where(self.is_relaxed, reveal, own), np.where(self.is_relaxed, 0.0, other)

    def estimate(self, counts, n):
        """Return the unbiased frequencies; of non-sensitive categories the share of revealing reports, scaled."""
        return np.where(self.is_relaxed, counts / n / float(self.reveal_star), super().estimate(counts, n))

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values.

        It supports one non-sensitive value at most, and in place of a sensitive one where a report is a code.
        """
        open_ = [int(v) for v in goal if self.is_relaxed[v]]
        full = len(goal) - len(open_)
        one, none = 1 / (self.p_star - self.q_star), -full * self.q_star / (self.p_star - self.q_star)
        reveal = [1 / self.reveal_star] * bool(open_)
        if isinstance(self, CodeReports):  # one value is named
            named = [*reveal, *[one] * bool(full), *[0] * (len(goal) < self.n_categories)]
            return none + min(named), none + max(named)
        return none, none + full * one + sum(reveal)

    def variance(self, n, f):
        """Return the exact variance of `estimate` for n users of whom a share f holds the value (FORMULAS 5.1)."""
        at_zero, slope = self.variance_line(None, n)
        return (at_zero + slope * np.asarray(f, dtype=np.float64)) / n

    def variance_line(self, counts, n):
        """Return the lines of n times the variance; it is 0 for a non-sensitive category that nobody holds."""
        at_zero, slope = super().variance_line(counts, n)
        reveal = self.reveal_star
        return np.where(self.is_relaxed, 0.0, at_zero), np.where(self.is_relaxed, float((1 - reveal) / reveal), slope)


class URR(UtilityOptimised, CodeReports, CategoricalRandomizer):
    """Randomised response over the sensitive categories; a non-sensitive one names itself or, seldom, one of these."""

    word_ns, block_words, tile_words = GRR.word_ns, GRR.block_words, GRR.tile_words

    def __init__(self, epsilon, n_categories, non_sensitive=()):
        super().__init__(epsilon, n_categories)
        self.relax(non_sensitive)
        w = self.weights = grr_weights(self.epsilon, self.n_full)
        self.n_words = w.n_words
        self.report_dtype = self.code_dtype
        self.p_star, self.q_star = Fraction(w.keep, w.total), Fraction(w.other, w.total)
        self.reveal_star = Fraction(w.keep - w.other, w.total)
        self._sensitive = np.flatnonzero(~self.is_relaxed).astype(self.code_dtype)
        # the number of each sensitive category among them, and n_full for the others (which fits where there are any)
        self._rank = np.full(n_categories, self.n_full if self.n_relaxed else 0, self.code_dtype)
        self._rank[self._sensitive] = np.arange(self.n_full)

    def privatize(self, codes, words, out):
        """Write one code for each code."""
        keep, other, out = self.weights.keep, self.weights.other, out.reshape(-1)
        if not self.n_relaxed:
            answer(keep, other, self.n_words, codes, words, out)
            return
        # one answer among n_full + 1 slots serves both kinds: the own slot has keep - other, each other slot `other`
        own = words.scratch(len(codes), codes.dtype)
        own[:] = 0
        answer(keep - other, other, self.n_words, own, words, out)
        relaxed.choose(codes, out, self._rank, self._sensitive, out)

    def transition_matrix(self):
        """Return the d x d matrix: row x is the law of the report of x, which supports the value that it names."""
        return self.support_law()

    def runs(self):
        """Return the law's columns: a non-sensitive code is sent by its own value alone, a sensitive one by all."""
        return self.runs_of_kinds(self.p_star, (self.reveal_star, False), self.q_star)

    def output_kinds(self):
        """Return the kind of each code."""
        return np.where(self.is_relaxed, "revealing", "protected")

    support, law_indices = GRR.support, GRR.law_indices


class NonSensitive(FrequencyEstimator):
    """Base of the estimators of utility-optimised laws: they share a parameter."""

    _more_parameters = """
    non_sensitive : list or dict of array-like, default=None
        For each column those of its categories that may be revealed, perhaps none, and not all; in the form of
        `categories`. Public, and chosen without the data. None: all keep full protection.
    """

    def __init__(self, epsilon=1.0, *, non_sensitive=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.non_sensitive = non_sensitive

    def _law_arguments(self, column, n_columns, encoder):
        return {"non_sensitive": self._codes_of("non_sensitive", column, n_columns, encoder)}

    _test_values = {"non_sensitive": [[[0, 1]], [["a", "c"], []]]}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]], "non_sensitive": [[2, 3]]},
            {"epsilon": 2.0, "categories": [["a", "b", "c"], [False, True]], "non_sensitive": [["c"], [True]]},
            {"epsilon": 3.0, "categories": [list(range(9))], "non_sensitive": [[0, 2, 4, 6, 8]]},
        ]

    @staticmethod
    def _typical_parameters():
        return {"non_sensitive": [range(512)]}


class URRFrequencyEstimator(NonSensitive):
    """Estimate frequencies by utility-optimised randomised response (URR), which protects sensitive categories only.

    Holders of a sensitive category answer as in `GRRFrequencyEstimator` over the sensitive categories. Holders of
    another category report it, or a sensitive category with the probability that the protection of sensitive holders
    requires. Choose URR where only a few categories, S of d, are secrets: for the other categories it is more accurate
    than `URAPFrequencyEstimator` where S < e^(epsilon / 2) + 1, and for the secrets up to larger S. Where the others
    should keep some protection choose `SDGRRFrequencyEstimator`. The guarantee is weaker than local differential
    privacy, as `privacy_` states.

    **Privacy.** Utility-optimised local differential privacy for a row, exact (integer weights, proof in ``urr.md``):
    no report raises the odds of a sensitive category against any other by a factor above e^epsilon. Neighbours: any two
    rows of one user; no other party is trusted. Non-sensitive categories are not protected: their holders reveal
    them with probability (e^epsilon - 1) / (S + e^epsilon - 1), S being the number of sensitive ones. So
    ``privacy_.epsilon`` is infinite, and ``privacy_.relaxed_epsilon`` is epsilon.

    **Utility.** Unbiased; the variance of a sensitive frequency f is that of GRR over S values,
    ((e^eps + S - 2) / (e^eps - 1)^2 + f (S - 2) / (e^eps - 1)) / n, and that of another one f S / (e^eps - 1) / n.

    **Complexity.** O(1) a user and O(n + d) at the server; log2(d) bits sent.

    {parameters}
    References
    ----------
    T. Murakami, Y. Kawamoto, "Utility-optimized local differential privacy mechanisms for distribution estimation",
    USENIX Security 2019, the utility-optimized randomized response.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import URRFrequencyEstimator
    >>> X = np.repeat([["flu"], ["HIV"], ["none"]], [3000, 1000, 6000], axis=0)
    >>> est = URRFrequencyEstimator(
    ...     1.0, categories=[["HIV", "flu", "none"]], non_sensitive=[["flu", "none"]], random_state=0
    ... ).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.1, 0.3, 0.6]).max() < 0.05
    np.True_
    >>> est.privacy_.epsilon, float(est.privacy_.relaxed_epsilon)
    (inf, 1.0)
    """

    _randomizer = URR
