"""The exponential law of a metric: nearby values hide among each other more than distant ones."""

import hashlib
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.categories.column import list_of
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.law import ALL, Promise
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import LARGEST_EPSILON, WORD, canonical_amount, exp_lower, log_upper
from dpestim.rng import Stage

#: Every pair of values is verified at every report.
LARGEST_METRIC = 128
#: How far the columns of the law may be from telling nothing: beyond, frequencies drown in noise.
WORST_CONDITION = 1e6
_SPARE = 1 - 1e-6  # of epsilon, for the rounding of weights


class Metric(CodeReports, CategoricalRandomizer):
    """A report is a code y, drawn with a weight that falls with its distance from the value."""

    slack = "the exponential law of a metric spends part of epsilon on how many values are near"
    #: The promise that it is named for: epsilon times their distance, for any two values.
    relaxation, relaxed_kind = "metric LDP", ALL
    promises = None
    largest_planned = 0

    def __init__(self, epsilon, n_categories, distances=None):
        super().__init__(epsilon, n_categories)
        d = n_categories
        if d > LARGEST_METRIC:
            raise ValueError(f"categories must be at most {LARGEST_METRIC} for a law of distances")
        self.promises = (Promise(ALL, ALL, ALL, self.epsilon),)
        if distances is None:  # all are equally far apart: a plain promise
            self.relaxation = None
            distances = tuple(tuple(int(x != y) for y in range(d)) for x in range(d))
        self.distances = shortest(distances, d)
        self.largest = max(map(max, self.distances))
        self._distinct = {part for row in self.distances for part in row}  # (a few Fractions, many times)
        if self.epsilon * self.largest > LARGEST_EPSILON:
            raise ValueError(f"epsilon is too large for these distances: epsilon times the largest one must be at most "
                             f"{LARGEST_EPSILON}")
        even = all(sorted(row) == sorted(self.distances[0]) for row in self.distances)
        ideal = np.exp(-float(self.epsilon) * _SPARE * np.array(self.distances, float) / (1 if even else 2))
        ideal /= ideal.sum(axis=1, keepdims=True)
        self.weights = [[int(p * WORD) for p in row] for row in ideal.tolist()]
        for x, row in enumerate(self.weights):
            row[x] += WORD - sum(row)
        self._verify()
        if self.relaxation:  # what any two values have, however far apart they are
            self.promises = (Promise(ALL, ALL, ALL, log_upper(self.worst_ratio())),)
        matrix = np.array(self.weights, float) / float(WORD)
        if np.linalg.cond(matrix) > WORST_CONDITION:
            raise ValueError("epsilon is too small for these distances, because reports would not distinguish some "
                             "values: take a larger epsilon, or larger distances")
        self._inverse = np.linalg.inv(matrix)
        self._ends = np.array([np.cumsum(np.array(row, object))[:-1] for row in self.weights], dtype=object)
        self._ends = self._ends.astype(np.uint64)
        self.n_words, self.report_dtype = 1, self.code_dtype
        self.p_star, self.q_star = Fraction(self.weights[0][0], WORD), Fraction(self.weights[1][0], WORD)
        self.notes = ("The epsilon of two values is proportional to their distance; the stated epsilon is that of the "
                      f"two farthest values, {float(self.largest):g} units apart.",)

    def relaxed_between(self, x, other):
        """Return what the relaxation promises for two inputs, by their numbers."""
        return self.epsilon * self.distances[x][other]

    @cached_property
    def relaxed_name(self):
        """What tells this metric from others, for the name of the relaxation: the largest distance, and a digest."""
        text = repr([[str(part) for part in row] for row in self.distances])
        return f"distances up to {float(self.largest):g}, {hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def _verify(self):
        """Raise ValueError unless every ratio is at most e^(epsilon times their distance), in integers."""
        known = {part: int(exp_lower(self.epsilon * part) * WORD**2) if part else WORD**2 for part in self._distinct}
        for x, row in enumerate(self.weights):
            for y, other in enumerate(self.weights):
                bound = known[self.distances[x][y]]
                if not all(a > 0 and a * WORD**2 <= bound * b for a, b in zip(row, other)):
                    raise ValueError("epsilon is too small or too large for these distances, because 64-bit random "
                                     "words cannot express the law: change epsilon or distance")

    def privatize(self, codes, words, out):
        """Write one code for each code, by binary search among the ends of its row."""
        drawn, said = words.dense(Stage.RESPONSE, 1), out.reshape(-1)
        if len(codes) == 1:
            said[0] = bisect_right(self._listed[codes.item()], drawn.item())
            return
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(self.n_categories + 1))
        for x in range(self.n_categories):
            rows = order[edges[x] : edges[x + 1]]
            said[rows] = np.searchsorted(self._ends[x], drawn[rows], side="right")

    @cached_property
    def _listed(self):
        return self._ends.tolist()  # (integers, in which one is found sooner than in arrays)

    def transition_matrix(self):
        """Return the d x d matrix: row x is the law of the report of x."""
        return [[Fraction(w, WORD) for w in row] for row in self.weights]

    support_law, support, law_indices = transition_matrix, GRR.support, GRR.law_indices

    def worst_ratio(self):
        """Return the largest ratio of two weights of a report."""
        return max(Fraction(max(column), min(column)) for column in zip(*self.weights))

    def estimate(self, counts, n):
        """Return the unbiased frequencies, by the inverse of the law."""
        return counts / n @ self._inverse

    def variance(self, n, f):
        """Return the exact variance of `estimate` for n users with these frequencies of all categories."""
        f = np.asarray(f, dtype=np.float64)
        return (f @ (np.array(self.weights, float) / float(WORD)) @ self._inverse**2 - f) / n

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance: the second moment is seen in the counts."""
        return counts / n @ self._inverse**2, np.full(self.n_categories, -1.0)


def shortest(distances, d):
    """Return the distances along shortest paths, exact: at most those given, and they keep the triangle inequality.

    Raises ValueError unless they are a symmetric matrix of finite numbers above 0 but for a diagonal of zeros.
    """
    rows = [[canonical_amount(part, "distance") for part in row] for row in distances]
    if len(rows) != d or any(len(row) != d for row in rows):
        raise ValueError("distance must have a row and a column for each category")
    if any(rows[x][y] != rows[y][x] or (rows[x][y] == 0) != (x == y) or rows[x][y] == float("inf")
           for x in range(d) for y in range(d)):
        raise ValueError("distance must be symmetric, 0 from a category to itself, and finite and above 0 otherwise")
    for k in range(d):
        through = rows[k]
        for row in rows:
            to = row[k]
            row[:] = [min(direct, to + rest) for direct, rest in zip(row, through)]
    return rows


class MetricFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by the exponential law of a metric (metric local differential privacy).

    Each user sends a value of the domain; near values are more likely than distant ones. Choose this mechanism where
    only nearby values must be indistinguishable (ages, places, severities): the counts of distant values are more
    accurate than those of `GRRFrequencyEstimator` at the epsilon of near values. With equal distances the mechanism is
    GRR.

    **Privacy.** `epsilon` is for a unit of distance: two values at distance r are told apart by at most e^(epsilon r),
    exact (integer weights, verified for every pair and every report, proof in ``metric.md``). That is **metric local
    differential privacy, a relaxation**: a ledger can be opened for it by the name in ``privacy_.relaxation``, which
    names the categories and the distances. Plain local differential privacy holds with what the farthest two values
    have, about epsilon times the largest distance, which is ``privacy_.epsilon`` and what any other ledger is charged.
    Of several columns each has epsilon / w for a unit. Neighbours: any two rows of one user; nobody else is trusted.

    **Utility.** Unbiased, by the inverse of the law, which is refused where its condition is above 1e6.

    **Complexity.** O(log d) a user, O(n + d^2) at the server, O(d^3) once; log2(d) bits sent; d is at most 128.

    {parameters}
    References
    ----------
    M. Alvim, K. Chatzikokolakis, C. Palamidessi, A. Pazii, "Local differential privacy on metric spaces: optimizing the
    trade-off with utility", CSF 2018; M. E. Gursoy, A. Tamersoy, S. Truex, W. Wei, L. Liu, "Secure and utility-aware
    data collection with condensed local differential privacy", IEEE TDSC 2021 (the exponential law).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MetricFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = MetricFrequencyEstimator(
    ...     2.0, distance=lambda a, b: abs(a - b), categories=[[0, 1, 2]], random_state=0
    ... ).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = Metric
    _typical_domain = 32
    _more_parameters = """
    distance : callable or list of array-like, default=None
        ``distance(a, b)`` of two categories, or for each column a symmetric matrix in the order of `categories`,
        public. Numbers above 0, and 0 on the diagonal. The triangle inequality is not needed: shortest paths are taken,
        which promise more. None: all are 1 apart.
    """
    _test_values = {"distance": [[[[0, 1, 5], [1, 0, 5], [5, 5, 0]]]]}

    def __init__(self, epsilon=1.0, *, distance=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.distance = distance

    def _law_arguments(self, column, n_columns, encoder):
        if self.distance is None:
            return {}
        if callable(self.distance):
            values = encoder.categories.tolist()
            rows = [[self.distance(a, b) for b in values] for a in values]
        else:
            matrix = list_of(self.distance, "distance", column, n_columns, encoder)
            rows = np.asarray(matrix, dtype=object).tolist()
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ValueError("distance must have a row and a column for each category")
        return {"distances": tuple(tuple(canonical_amount(part, "distance") for part in row) for row in rows)}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [["a", "b", "c"]], "distance": [[[0, 1, 2], [1, 0, 1], [2, 1, 0]]]},
            {"epsilon": 2.0, "categories": [[0, 1, 2], [False, True]],
             "distance": [[[0, 1, 2], [1, 0, 2], [2, 2, 0]], [[0, 1], [1, 0]]]},
        ]
