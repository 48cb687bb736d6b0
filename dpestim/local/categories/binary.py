"""Binary randomised response: Warner's design, the coin of the textbooks, or any 2 x 2 matrix."""

from fractions import Fraction

import numpy as np

from dpestim._core import binary
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD, log_upper, uses_enough, within
from dpestim.rng import Stage

#: Tell the truth on tails; on heads toss again and answer yes on heads, no on tails: Pr[yes | yes] = 3/4.
COIN = ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))


class Binary(CodeReports, CategoricalRandomizer):
    """Randomised response by a 2 x 2 design; a report is 0 or 1. The design sets epsilon: `epsilon` is its ceiling."""

    report_dtype = np.dtype(np.uint8)
    n_words = 1

    def __init__(self, epsilon, n_categories, design=COIN):
        if n_categories != 2:
            raise ValueError("categories must name exactly two values for each column of a coin or matrix design")
        # the realised law: Pr[report 1] as a multiple of 2^-64
        self._yes = tuple(round(row[1] * WORD) for row in design)
        if not all(0 < t < WORD for t in self._yes) or self._yes[0] == self._yes[1]:
            raise ValueError("design must have two different rows of probabilities strictly between 0 and 1")
        rows = self.transition_matrix()
        self._ratio = max(a / b for column in zip(*rows) for a in column for b in column)
        cost, epsilon = log_upper(self._ratio), self.arguments["epsilon"]
        if epsilon is not None and within(self._ratio, 1, epsilon):
            cost = min(cost, epsilon)  # an epsilon that certainly covers the cost may lie below its rounding
        elif epsilon is not None:
            raise ValueError(
                f"epsilon must be at least {float(cost)!r} for each column, the cost of this design: raise epsilon, or "
                "accept the cost by epsilon=None"
            )
        super().__init__(cost, n_categories)
        if epsilon is not None and not uses_enough(self._ratio, 1, epsilon):
            self.slack = "the design costs less than epsilon allows, and only what it costs is stated"
        self.p_star, self.q_star = rows[1][1], rows[0][1]

    def constants(self):
        """Return `ones`: of 2^64 words those that answer 1, for the first value and for the second."""
        return {"ones": list(self._yes)}

    def privatize(self, codes, words, out):
        """Write 0 or 1 for each code."""
        binary.privatize(codes, words.dense(Stage.RESPONSE, 1), *self._yes, out.reshape(-1))

    def support(self, reports):
        """Return the one-hot encoding of the reports."""
        return np.concatenate([1 - reports, reports], axis=1)

    def estimate(self, counts, n):
        """Return (share of no, share of yes), unbiased: yes = (C / n - b) / (a - b)."""
        no, yes = (float(t) for t in (self.q_star, self.p_star))
        share = (counts[1] / n - no) / (yes - no)
        return np.array([1.0 - share, share])

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of no, of yes, or both."""
        if len(goal) == 2:
            return Fraction(1), Fraction(1)
        shares = [(report - self.q_star) / (self.p_star - self.q_star) for report in (0, 1)]
        told = [share if goal[0] else 1 - share for share in shares]
        return min(told), max(told)

    def variance(self, n, f):
        """Return the exact variance (f1 a (1 - a) + f0 b (1 - b)) / (n (a - b)^2), the same for both values."""
        share = np.broadcast_to(np.asarray(f, dtype=np.float64), 2)[1]
        a, b = self.p_star, self.q_star
        value = (share * float(a * (1 - a)) + (1 - share) * float(b * (1 - b))) / (n * float(a - b) ** 2)
        return np.array([value, value])

    def variance_line(self, counts, n):
        """Return the lines of n times the variance for no and yes."""
        a, b = self.p_star, self.q_star
        ends = np.array([float(a * (1 - a)), float(b * (1 - b))]) / float(a - b) ** 2
        return ends, ends[::-1] - ends

    def support_law(self):
        """Return the design: a report supports the value that it names."""
        return self.transition_matrix()

    def transition_matrix(self):
        """Return the realised design."""
        return [[1 - Fraction(t, WORD), Fraction(t, WORD)] for t in self._yes]

    def law_indices(self, codes, reports):
        """Return (true value, reported value)."""
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)


class BinaryFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies of yes/no columns by binary randomised response (Warner, coin, or any 2 x 2 design).

    Each user answers yes or no, truthfully with a fixed probability. With `design="warner"` it is the best that can
    be done for two values at this epsilon, and the same as `GRRFrequencyEstimator` (which it also is for columns of
    more values); the other designs are for surveys that were taken with a coin, dice or cards.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer thresholds, both directions, proof in
    ``binary.md``), neighbours: any two rows of one user; no other party is trusted. A coin costs ln 3 and a matrix
    what its worst ratio says; `privacy_` states that, and `epsilon` is a ceiling for it.

    **Utility.** Unbiased; with a = Pr[yes | yes] and b = Pr[yes | no] the variance of a frequency f among n users is
    (f a (1 - a) + (1 - f) b (1 - b)) / (n (a - b)^2), for Warner's design e^eps / (e^eps - 1)^2 / n, for the coin 3 /
    (4 n).

    **Complexity.** O(1) a user and O(n) at the server; 1 bit sent.

    {parameters}
    References
    ----------
    S. L. Warner, "Randomized response: a survey technique for eliminating evasive
    answer bias", JASA 60 (1965), eq. (5); C. Dwork, A. Roth, "The algorithmic foundations of differential privacy"
    (2014), section 3.2 (the coin).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import BinaryFrequencyEstimator
    >>> X = np.repeat([[False], [True]], [7000, 3000], axis=0)
    >>> est = BinaryFrequencyEstimator(None, design="coin", categories=[[False, True]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.7, 0.3]).max() < 0.04
    np.True_
    >>> round(float(est.privacy_.epsilon), 6)
    1.098612
    """

    _randomizer = Binary
    _typical_domain = 2
    _more_parameters = """
    design : {"warner", "coin"} or array-like of shape (2, 2), default="warner"
        "warner": set by epsilon. "coin": toss a coin; on tails tell the truth, on heads toss again and say yes on
        heads, so that Pr[yes | yes] = 3/4. A matrix: row x is the law of the answer for value x, in the order of
        `categories`. With "coin" and a matrix every column must have two categories, and `epsilon` (its share, with
        several columns) is a ceiling: at least what the design costs, or None, which accepts the cost.
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        design="warner",
        categories="auto",
        postprocess=None,
        sparse_output=False,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        super().__init__(
            epsilon,
            categories=categories,
            postprocess=postprocess,
            sparse_output=sparse_output,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.design = design

    _test_values = {"design": ["coin"]}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [*super()._test_params(), {"epsilon": 2.0, "categories": [["no", "yes"]]}]

    def _share(self, n_columns):
        accepts_cost = self.epsilon is None and _design(self.design) is not None
        return None if accepts_cost else super()._share(n_columns)

    def _law(self, encoder, column, n_columns):
        share, size, design = self._share(n_columns), len(encoder.categories), _design(self.design)
        return GRR.make(share, size) if design is None else Binary.make(share, size, design)


def _design(design):
    """Return None for Warner's design, else the rows of the design as Fractions."""
    if isinstance(design, str):
        if design == "warner":
            return None
        if design == "coin":
            return COIN
        raise ValueError(f"design must be 'warner', 'coin' or a 2 x 2 matrix, got {design!r}")
    try:
        matrix = np.asarray(design, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (2, 2) or not (matrix > 0).all() or not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise ValueError("design must be a 2 x 2 matrix of positive probabilities whose rows sum to 1")
    return tuple((1 - Fraction(row[1]), Fraction(row[1])) for row in matrix.tolist())
