"""Sensitivity-aware randomised response: full protection for high categories, accuracy for those declared low."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import relaxed
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.relaxed import Relaxed
from dpestim.local.law import ALL, Promise
from dpestim.privacy.exact import log_upper


class SDGRR(Relaxed, GRR):
    """Randomised response of which a low input reports its own code wherever the answer is any low one."""

    relaxation = "SDLDP"

    def __init__(self, epsilon, n_categories, low_sensitivity=()):
        super().__init__(epsilon, n_categories)
        self.relax(low_sensitivity)
        w = self.weights
        #: realised probability that a low category reports itself
        self.low_star = Fraction(w.keep + (self.n_relaxed - 1) * w.other, w.total) if self.n_relaxed else self.p_star

    def privatize(self, codes, words, out):
        """Write one code for each code."""
        super().privatize(codes, words, out)
        if self.n_relaxed > 1:
            relaxed.own_if_low(codes, self.is_relaxed.view(np.uint8), out.reshape(-1))

    def transition_matrix(self):
        """Return the d x d matrix: row x is the law of the report of x."""
        rows = super().transition_matrix()
        for x in np.flatnonzero(self.is_relaxed).tolist():
            rows[x] = [self.low_star if x == y else Fraction(0) if low else self.q_star
                       for y, low in enumerate(self.is_relaxed.tolist())]
        return rows

    def support_law(self):
        """Return the law: a report supports the value that it names."""
        return self.transition_matrix()

    def runs(self):
        """Return the law's columns: a low code is sent by its own value and by high ones, a high one by all."""
        return self.runs_of_kinds(self.p_star, (self.low_star, True), self.q_star)

    # ---------------------------------------------------------------- what is promised

    @property
    def promises(self):
        """What holds between high and low inputs, and for high outputs; with fewer than two low ones it is plain."""
        if self.n_relaxed < 2:
            return super().promises
        return (
            Promise("high", "high", ALL, self.epsilon if self.n_full > 1 else Fraction(0)),
            Promise(ALL, ALL, "high", self.epsilon),
            Promise("low", "high", ALL, log_upper(self.low_star / self.q_star)),  # at the own output of a low input
            Promise("high", "low", ALL, math.inf),  # high inputs report low codes that no other low input does
            Promise("low", "low", ALL, math.inf),
            Promise(ALL, ALL, ALL, math.inf),
        )

    def output_kinds(self):
        """Return the kind of each code."""
        return self.kind_of(np.arange(self.n_categories))

    @property
    def notes(self):
        """What holds for which inputs, in sentences."""
        if not self.n_relaxed:
            return ()
        if self.n_relaxed == 1:
            return ("A single category of low sensitivity has no effect: all categories of its column have the same "
                    "protection.",)
        low_high = float(log_upper(self.low_star / self.q_star))
        return (
            f"In each report two high categories of a column are protected by epsilon {float(self.epsilon):g}, and so "
            "is any category while it reports a high one.",
            f"Which of the {self.n_relaxed} low categories somebody holds is not protected; that it is low is "
            f"protected by epsilon {low_high:.3g} in each report.",
            "Take an observer who knows which low category a user would hold, if the user's category is low. A report "
            "of another low category proves to this observer that the user's category is high.",
        )

    # ---------------------------------------------------------------- estimates

    def estimate(self, counts, n):
        """Return the unbiased frequencies; low ones without what high categories add to their counts."""
        f = super().estimate(counts, n)
        if self.n_relaxed:
            low = self.is_relaxed
            f[low] = (counts[low] / n - float(self.q_star) * f[~low].sum()) / float(self.low_star)
        return f

    def _codes_to_try(self, goal):
        """Return the goal's codes, and one other of each kind: others of a kind tell the same."""
        others = np.setdiff1d(np.arange(self.n_categories), goal)
        kinds = [others[self.is_relaxed[others] == kind][:1] for kind in (False, True)]
        return np.concatenate([goal, *kinds])

    def reach(self, goal):
        """Return the least and the most that one code adds to n times the estimated share of some values."""
        return super().reach(goal) if self.n_relaxed else self._reach_of_supports(goal)

    def likelihood(self, counts, n):
        """Return what `dpestim.postprocessing.ibu` asks for: the whole law, without its matrix."""
        return {"law": Codes(self), "counts": counts} if self.n_relaxed else super().likelihood(counts, n)

    def support_pair(self):
        """Return the pair of the plain law, or None: which low category is reported depends on who reports."""
        return None if self.n_relaxed else (float(self.p_star), float(self.q_star))

    def variance(self, n, f):
        """Return the exact variance of `estimate`, where f are the frequencies of all categories (FORMULAS 5.2)."""
        f = np.broadcast_to(np.asarray(f, dtype=np.float64), self.n_categories)
        at_zero, slope = self._line(f[~self.is_relaxed].sum())
        return (at_zero + slope * f) / n

    def variance_line(self, counts, n):
        """Return the lines of n times the variance; of low categories with the estimated share of all high ones."""
        return self._line(super().estimate(counts, n)[~self.is_relaxed].sum())

    def _line(self, high_share):
        """Return (at_zero, slope) of n times the variance, where so many hold a high category and the others a low."""
        at_zero, slope = super().variance_line(None, None)
        own, low, high = self._low_variances()
        share = min(max(float(high_share), 0.0), 1.0)
        return (np.where(self.is_relaxed, float(low) + share * float(high - low), at_zero),
                np.where(self.is_relaxed, float(own - low), slope))

    def _low_variances(self):
        """Return what a user adds to n times the variance of a low category: its holder, of another low, of a high."""
        c1, c2, c3 = self.p_star, self.q_star, self.low_star
        kappa, all_high = c2 / (c1 - c2), self.n_full * c2  # how far a high report counts against it; how often it is
        seen = c1 + all_high - c2  # Pr[a high input reports a high code]
        return tuple(part / c3**2 for part in (
            c3 + kappa**2 * all_high - (c3 - kappa * all_high) ** 2,
            kappa**2 * all_high * (1 - all_high),
            c2 + kappa**2 * seen - (c2 - kappa * seen) ** 2,
        ))


class Codes:
    """The law of the codes as a channel of expectation maximisation: O(d) an iteration."""

    def __init__(self, law):
        self._low, self._other = law.is_relaxed, float(law.q_star)
        self._own = np.where(law.is_relaxed, float(law.low_star), float(law.p_star - law.q_star))

    def expected(self, f):
        """Return the probability of each code under f: all others report a high code, and high ones a low code."""
        others = np.where(self._low, f[~self._low].sum(), f.sum())
        return self._own * f + self._other * others

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place; values have no neighbours, so that nothing is smoothed."""
        n = counts.sum()
        for _ in range(n_steps):
            ratio = counts / np.maximum(self.expected(f), 1e-300)
            sent = np.where(self._low, ratio[~self._low].sum(), ratio.sum())
            f *= (self._own * ratio + self._other * sent) / n
            f /= f.sum()


class SDGRRFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by sensitivity-aware randomised response (SDGRR), with less noise for named categories.

    Holders of categories outside `low_sensitivity` (high categories) answer as in `GRRFrequencyEstimator`. The holder
    of a low category reports each high category with the same probability as a holder of another category, otherwise
    the true category, and never another low category. Choose SDGRR where the low categories need little protection.
    Where the low categories may be revealed, `URRFrequencyEstimator` protects the others with less noise. The guarantee
    is weaker than local differential privacy, as `privacy_` states.

    **Privacy.** Among high categories, and for reports of a high category: epsilon-local differential privacy for a
    row, exact (integer weights, proof in ``sdgrr.md``), neighbours: any two rows of one user; no other party is
    trusted. That somebody holds a low category: the larger "low-high" epsilon of `guarantee_by_input_`, about ln(L +
    e^epsilon - 1) for L low categories. With two or more low categories two facts are not protected: which low category
    a user holds, and, towards an observer who knows the low category that a user would hold, that the user holds a high
    one. So ``privacy_.epsilon`` is infinite then, and ``privacy_.relaxed_epsilon`` is epsilon.

    **Utility.** Unbiased. High categories have the variance of GRR over all d categories. Low ones have less, but not
    none, as what high categories add to their counts is estimated: for small epsilon about
    (d / L)(1 - L / d) / (epsilon^2 n); the exact one is in ``sdgrr.md``.

    **Complexity.** O(1) a user and O(n + d) at the server; log2(d) bits sent.

    {parameters}
    References
    ----------
    The sensitivity-aware model (SDLDP) and its mechanism are a paper's, whose variance leaves out that the share of
    high categories is estimated; the exact one is derived in ``sdgrr.md``. GRR: P. Kairouz, S. Oh, P. Viswanath,
    "Extremal mechanisms for local differential privacy", NIPS 2014, eq. (7).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import SDGRRFrequencyEstimator
    >>> X = np.repeat([["flu"], ["HIV"], ["none"]], [3000, 1000, 6000], axis=0)
    >>> est = SDGRRFrequencyEstimator(
    ...     1.0, categories=[["HIV", "flu", "none"]], low_sensitivity=[["flu", "none"]], random_state=0
    ... ).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.1, 0.3, 0.6]).max() < 0.05
    np.True_
    >>> est.privacy_.epsilon, float(est.privacy_.relaxed_epsilon)
    (inf, 1.0)
    """

    _randomizer = SDGRR
    _more_parameters = """
    low_sensitivity : list or dict of array-like, default=None
        For each column those of its categories that need less protection, perhaps none, and not all; in the form of
        `categories`. Public, and chosen without the data. None: all keep full protection, which is
        `GRRFrequencyEstimator`.
    """

    def __init__(self, epsilon=1.0, *, low_sensitivity=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.low_sensitivity = low_sensitivity

    def _law_arguments(self, column, n_columns, encoder):
        return {"low_sensitivity": self._codes_of("low_sensitivity", column, n_columns, encoder)}

    _test_values = {"low_sensitivity": [[[0, 1]], [["a", "c"], []]]}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]], "low_sensitivity": [[2, 3]]},
            {"epsilon": 1.0, "categories": [["a", "b", "c"], [False, True]], "low_sensitivity": [["b", "c"], [True]]},
            {"epsilon": 3.0, "categories": [list(range(9))], "low_sensitivity": [[0, 2, 4, 6, 8]]},
        ]

    @staticmethod
    def _typical_parameters():
        return {"low_sensitivity": [range(512)]}
