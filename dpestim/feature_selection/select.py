"""The k best columns, by scores that one row moves little, and a top-k mechanism on integers (`select.md`)."""

from fractions import Fraction
from numbers import Integral

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from dpestim.central.selection.top_k import PeelingLaw
from dpestim.inputs import check_target, checked_classes, class_array, label_codes, target_numbers
from dpestim.models import range_of
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.one_pass import OnePassModel
from dpestim.statistics.summary import grids_of
from dpestim.statistics.sums import class_sums, column_sums

#: Steps of a score that one row can move, its rounding included.
_STEPS = 1 << 20


class DPSelectKBest(SelectorMixin, OnePassModel):
    """Select the k columns that are most informative about y by private scores.

    With ``score_func="classes"`` a column's score is how far its means in classes are from its mean, on average (the
    sum over classes c of ``n_c / n |mean_c - mean|``), in parts of its bounds; with ``score_func="covariance"`` the
    absolute covariance with a number y, in parts of both bounds. Both are relative to bounds: a column that uses
    little of them scores little, so declare tight ones, or transform columns to ranks before.

    **Privacy.** Pure epsilon in the central model for data sets of equal size that differ in one row: exact integers,
    of which a row moves each by a known number at most; k choices share epsilon. Only the choice is released, not the
    scores. The caller of `fit` holds the rows and must be trusted. What `transform` returns is raw and stays **private
    data**: only a private step may follow.

    **Utility.** With d columns no choice is, with probability 1 - b, further below the score that its place deserves
    than 4 k ln(d k / b) / (n epsilon) with "classes", and half of that with "covariance".

    **Complexity.** O(n d k') time for k' classes, by matrix products; O(d k') memory beyond X.

    {parameters}
    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS, theorem 6. Durfee, Rogers (2019),
    "Practical differentially private top-k selection with pay-what-you-get composition", NeurIPS, for peeling.
    The proof, with the sensitivities: ``select.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.feature_selection import DPSelectKBest
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(-1, 1, size=(10_000, 20)), rng.integers(0, 2, 10_000)
    >>> X[:, 3] += 0.4 * y
    >>> DPSelectKBest(1, epsilon=1.0, bounds=(-1, 2), classes=[0, 1], random_state=0).fit(X, y).get_support(True)
    array([3])
    """

    _template = "rows"
    _more_parameters = """\
    k : int, default=10
        How many columns are chosen: at most as many as there are (or all of them).
    score_func : {"classes", "covariance"}, default="classes"
        What y is: classes, or a number.
    bounds : (low, high), dict or Domain, default=None
        Public range of the values, numbers or one for each column; values outside count as the nearest. None takes the
        smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    classes : array-like, dict or Domain, default=None
        Public list of at least two classes; None takes the classes in y, which leaks in the same way. Not for
        "covariance".
    target_bounds : (low, high), dict or Domain, default=None
        Public range of y, for "covariance", which needs it.
    """
    _more_attributes = """
    support_ : ndarray of bool of shape (n_features,)
        Which columns were chosen.
    ranking_ : ndarray of shape (k,)
        Their places, in the order in which they were chosen: the best one first.
    {columns seen}
    """
    _learned = ("support_", "ranking_")
    _declared = ("bounds", "classes")

    _adds_up = False  # (it makes a private choice)

    def __init__(self, k=10, *, epsilon=1.0, score_func="classes", bounds=None, classes=None, target_bounds=None,
                 ledger=None, random_state=None):
        self.k = k
        self.epsilon = epsilon
        self.score_func = score_func
        self.bounds = bounds
        self.classes = classes
        self.target_bounds = target_bounds
        self.ledger = ledger
        self.random_state = random_state

    def transform(self, X):
        """Return the chosen columns of rows, as they are: of private rows **not private**."""
        check_is_fitted(self)
        strict = self._is_strict()
        rows = self._checked_X(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(rows))
            rows = np.nan_to_num(rows)
        return rows[:, self.support_]

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _inferred(self):
        return [name for name in super()._inferred() if self.score_func == "classes" or name != "classes"]

    def _check(self):
        if isinstance(self.k, bool) or not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError("k must be an int of at least 1")
        epsilon = canonical_epsilon(self.epsilon)
        if not isinstance(self.score_func, str) or self.score_func not in ("classes", "covariance"):
            raise ValueError('score_func must be "classes" or "covariance"')
        if self.bounds is not None:
            grids_of(self.bounds)
        if self.classes is not None:
            checked_classes(self.classes)
        if self.score_func == "covariance":
            if self.target_bounds is None:
                raise ValueError('target_bounds must be a pair (low, high) of numbers for score_func="covariance"')
            check_target(self.target_bounds)
        check_random_state(self.random_state)
        return epsilon, Fraction(0)

    def _refuse_ahead(self, y, n_rows):
        super()._refuse_ahead(y, n_rows)
        if self.score_func == "covariance":
            target_numbers(y, n_rows, strict=self._is_strict())
        elif self.classes is not None:
            label_codes(y, self.classes, n_rows, strict=self._is_strict())

    def _read(self, X, y, reset):
        strict = self._is_strict()
        rows = self._checked_X(X, reset=reset, total=strict)
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None: pass the classes or numbers of "
                             "the rows as y")
        if self.score_func == "covariance":
            return (rows, target_numbers(y, len(rows), strict=strict), ()), len(rows), rows.shape[1]
        codes, classes = label_codes(y, self.classes, len(rows), strict=strict)
        codes = np.where(codes < 0, 0, codes)  # (in strict mode what is no class counts as the first)
        return (rows, codes, classes), len(rows), rows.shape[1]

    def _domain(self, n_columns, data=None):
        grids = tuple(grids_of(range_of(data[0]) if self.bounds is None else self.bounds, n_columns))
        if self.score_func == "covariance":
            return grids, tuple(grids_of(self.target_bounds, 1))
        return grids, tuple(class_array(self.classes) if data is None else data[2])

    def _sums(self, data, domain):
        (rows, y, _), (grids, target) = data, domain
        if self.score_func == "classes":
            return list(class_sums(rows, y, len(target), grids)[:2])
        sums, products = column_sums(np.column_stack([rows, y]), [*grids, *target],
                                     [(j, len(grids)) for j in range(len(grids))])
        return [*sums, *products]

    def _released(self, n_rows, totals, domain, epsilon, delta):
        d = len(domain[0])
        law = PeelingLaw(epsilon, _STEPS, 0, False, min(int(self.k), d))
        scores = self._scores(n_rows, totals, domain)

        def draw(source):
            ranking, support = law.draw(scores, source), np.zeros(d, bool)
            support[ranking] = True
            return {"ranking_": ranking, "support_": support}

        return draw

    def _scores(self, n_rows, totals, domain):
        """Return the scores of all columns in steps, of which one row moves each by 2^20 at most."""
        n, (grids, target) = max(1, n_rows), domain
        if self.score_func == "classes":
            count, sums = totals
            exact = np.abs(n * sums - count[:, None] * sums.sum(axis=0)).sum(axis=0)
            moved = [2 * n * grid.span for grid in grids]
        else:
            sums, products = totals[: len(grids) + 1], totals[len(grids) + 1 :]
            exact = [abs(n * q - s * sums[-1]) for q, s in zip(products, sums)]
            moved = [n * grid.span * target[0].span for grid in grids]
        return np.array([int(Fraction(int(value) * _STEPS, most)) for value, most in zip(exact, moved)], np.int64)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"k": 4, "epsilon": 0.1, "bounds": (-2.0, 2.0), "classes": [0, 1]},
                {"k": 5, "epsilon": 0.2, "bounds": ([-1] * 9, [2] * 9), "score_func": "covariance",
                 "target_bounds": (0, 1)}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of nine columns, and what depends on the first."""
        X = np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 9))
        return X, (X[:, 0] > 0).astype(int) if self.score_func == "classes" else (X[:, 0] + 1) / 2
