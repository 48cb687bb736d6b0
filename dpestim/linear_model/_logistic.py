"""Logistic regression: rows are clipped, a perturbed objective is minimised, and coefficients leave on a grid."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import class_array, label_codes, number_column, number_rows, refuse_infinite
from dpestim.linear_model._objective import calibrate
from dpestim.linear_model._release import COLUMNS, Grid, certificate_of, last_law, release
from dpestim.linear_model._solver import LogisticLoss, row_shape
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state


class DPLogisticRegression(ClassifierMixin, PrivateEstimator):
    """Logistic regression by objective perturbation: a random linear term in the objective hides every row.

    The noise enters before the fit, so that the fit can counter it. ``perturbation="output"`` adds noise to the
    coefficients instead; it is simpler and less accurate. With many columns or a small epsilon, a `delta` such as 1e-5
    pays: the noise is then Gaussian and grows with the square root of the number of columns, not with that number.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: `coef_`, `intercept_` and everything computed from them may be published. The guarantee covers what runs,
    floating point and the inexact minimiser included: a hundredth of epsilon pays for them. With K > 2 classes there
    are K problems (one class against the rest), each with epsilon / K and delta / K. Parameters, the number of rows and
    of columns are public. Predictions for private rows, and `score` on them, are **not private**: strict mode enters
    predictions in the ledger, and refuses `score`.

    **Utility.** Best where rows use their norm: scale columns to public bounds, and declare the smallest `data_norm`
    that fits. The default C needs no look at the data. Coefficients shrink towards 0 as epsilon does, so that
    probabilities become cautious before rankings become random.

    **Complexity.** Six or seven passes over the rows, one of which forms the Hessian: O(n d^2) time, O(n + d^2) memory
    beyond X, and O(d) exact random numbers.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `fit`, in (0, 80].
    delta : float, default=0.0
        What may be added to the probability of any event, in [0, 1); 0 is pure differential privacy. Where that needs
        less noise than `delta` does (few columns), it is what you get, and ``privacy_.delta`` is 0.
    perturbation : {"objective", "output"}, default="objective"
    data_norm : float, default=None
        Public bound R of the Euclidean norm of a row of X; longer rows are scaled down to it. None takes the longest
        row, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    classes : array-like, default=None
        Public list of at least two classes. None takes those in y, which leaks in the same way.
    C : float, default=None
        Inverse regularisation, above 0, as in scikit-learn, for rows (x / R, a) / sqrt(1 + a^2), where a is
        `intercept_scaling` (the intercept is regularised too). None chooses by a rule that sees only the numbers of
        rows and columns, epsilon and delta. Where C is too large for epsilon or for the number of rows it is lowered
        as far as needed: see `C_`.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=0.25
        The constant a that is appended to rows. Small: features keep more of the norm that the noise is scaled to.
    ledger : dpestim.accounting.Ledger, default=None
        Pays for each `fit` before anything is drawn, or refuses. None: the ledger of the ``with ledger:`` block
        around, if there is one.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible; `privacy_` then says that the result must not be
        published.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        In units of X. Multiples of a public step.
    intercept_ : ndarray of shape (1 or n_classes,)
    C_ : float
        The inverse regularisation that was used; public, because it depends on no value.
    noise_scale_ : float
        Scale of the perturbation: with delta 0 its mean norm divided by the number of coefficients, else the standard
        deviation of an entry. Public too.
    privacy_ : PrivacyGuarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter, a missing value or a class that does not fit; it names the parameter or column, never the
        value, and comes before anything is charged. In strict mode rows with such values count as zero rows instead.

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization", Journal of Machine
    Learning Research 12, Algorithms 1 and 2. Kifer, Smith, Thakurta (2012), "Private convex empirical risk minimization
    and high-dimensional regression", COLT, for Gaussian noise. The proof, with better constants: ``_logistic.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5_000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0.2 * rng.standard_normal(5_000)
    >>> model = DPLogisticRegression(1.0, data_norm=1.5, classes=[False, True], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=0.0,
        perturbation="objective",
        data_norm=None,
        classes=None,
        C=None,
        fit_intercept=True,
        intercept_scaling=0.25,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.perturbation = perturbation
        self.data_norm = data_norm
        self.classes = classes
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Fit the model to rows X and classes y; one release of epsilon.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        epsilon, delta, strength = self._check_parameters()
        strict = self._is_strict()
        if strict and (self.classes is None or self.data_norm is None):
            raise ValueError("strict mode: classes and data_norm would be learned from the data: declare them")
        trial = type(self)(**self.get_params(deep=False))  # so that a refused fit changes nothing
        trial._bound = self._bound
        X = trial._checked_X(X, reset=True, total=strict)
        codes, classes = label_codes(y, self.classes, len(X), strict=strict, n_jobs=self.n_jobs)
        norm = _longest(X) if self.data_norm is None else float(self.data_norm)
        n_problems = 1 if len(classes) == 2 else len(classes)
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        size = X.shape[1] + bool(self.fit_intercept)
        law = calibrate(self.perturbation, epsilon / n_problems, delta / n_problems, strength, len(X), size)
        guarantee = self._guarantee(epsilon, n_problems * law.delta)
        # public numbers: what could fail, fails before the charge
        last_law(law, Grid.of(certificate_of(law, len(X), size), size))
        self._charge(guarantee, len(X), getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()

        source, scales, rows = WordSource(self.random_state), None, []
        for problem in range(n_problems):
            # 1 for the class, -1 for the rest, 0 for a row that does not count
            signs = (codes == (problem if n_problems > 1 else 1)).view(np.int8) * np.int8(2) - (codes >= 0)
            loss = LogisticLoss(X, signs, norm, intercept, self.n_jobs, scales)
            scales = loss.scales
            integers, step = release(loss, law, source, COLUMNS * problem)
            rows.append([step * k for k in integers])
        # decisions are w z = w (x limit / R, tail)
        limit, tail = row_shape(X.shape[1], intercept)
        w = np.array(rows, dtype=np.float64)
        self.coef_ = w[:, : X.shape[1]] * (limit / norm)
        self.intercept_ = w[:, X.shape[1]] * tail if self.fit_intercept else np.zeros(len(w))
        self.classes_ = classes
        self.C_, self.noise_scale_ = 1.0 / law.strength, law.scale
        self.privacy_ = guarantee
        self.n_features_in_ = trial.n_features_in_
        vars(self).pop("feature_names_in_", None)
        if hasattr(trial, "feature_names_in_"):
            self.feature_names_in_ = trial.feature_names_in_
        return self

    def decision_function(self, X):
        """Return the linear scores of rows: positive for ``classes_[1]``, or one column for each of K > 2 classes.

        **Privacy.** The model may be published, and with it its predictions for *public* rows. A prediction for a
        private row is a function of that row, an exact release of it, like `score`; so are `predict` and the
        probabilities. Rows do not tell which they are, and whoever has rows could compute this from `coef_`, so
        refusing would only stop those who use public ones. Hence in strict mode, where the analyst may hold rows that
        she cannot see, each call is entered in the ledger (epsilon 0, flagged as not private) before it answers:
        whoever keeps the rows and the ledger sees it. Without a ledger, keep private rows away from predictions.
        """
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._checked_X(X, reset=False, total=strict)
        if strict:  # no error and no warning may depend on a value
            self._note_predictions(len(X))
            X = np.where(np.isfinite(X).all(axis=1, keepdims=True), X, 0.0)
        with np.errstate(all="ignore"):
            scores = np.nan_to_num(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**, see `decision_function`."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X):
        """Return the probability of each class for each row, of shape (n_rows, n_classes).

        With more than two classes: those of one class against the rest, divided by their sum. For private rows they
        are **not private**, see `decision_function`.
        """
        scores = self.decision_function(X)
        return np.stack([expit(-scores), expit(scores)], axis=1) if scores.ndim == 1 else _shares(scores)

    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class for each row; as private as these."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)], axis=1)
        with np.errstate(divide="ignore"):
            return np.log(_shares(scores))

    def score(self, X, y, sample_weight=None):
        """Return the accuracy on rows X and classes y, which is **not private**: an exact release of these rows."""
        self._refuse_in_strict("score compares with raw data")
        scores = self.decision_function(X)
        known, _ = label_codes(y, self.classes_, len(scores), strict=False, total=True)  # a new class is not met
        right = known == ((scores > 0) if scores.ndim == 1 else scores.argmax(axis=1))
        weights = None if sample_weight is None else number_column(sample_weight, len(scores), "sample_weight")
        if weights is not None and not weights.sum():
            raise ValueError("sample_weight must not add up to 0")
        self._note_score(len(scores))
        return float(np.average(right, weights=weights))

    # ---------------------------------------------------------------- inside

    def _note_predictions(self, n_rows):
        """Record, where there is a ledger, that somebody is shown predictions, perhaps of raw rows."""
        ledger = self._find_ledger()
        if hasattr(ledger, "record_score"):
            ledger.record_score(estimator=f"{type(self).__name__} predictions", n_rows=n_rows)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "data_norm": 2.0, "classes": [0, 1]},
            {"epsilon": 3.0, "delta": 1e-5, "data_norm": 2.0, "classes": ["a", "b", "c"]},
            {"epsilon": 2.0, "data_norm": 2.0, "classes": [0, 1], "perturbation": "output", "fit_intercept": False},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns with norm about 1, and classes that depend on them."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        y = np.digitize(X[:, 0] + 0.2 * rng.standard_normal(n_rows), np.linspace(-1, 1, len(self.classes) + 1)[1:-1])
        classes = np.asarray(self.classes)
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def _check_parameters(self):
        """Return (epsilon, delta, strength) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon = canonical_epsilon(self.epsilon)
        delta = Fraction(0)
        if _number("delta", self.delta, "in [0, 1)", lambda v: 0 <= v < 1):
            delta = _exact(self.delta)
        if self.perturbation not in ("objective", "output"):
            raise ValueError('perturbation must be "objective" or "output"')
        if self.data_norm is not None:
            _number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        strength = None
        if self.C is not None:
            _number("C", self.C, "in [1e-12, 1e12]", lambda v: 1e-12 <= v <= 1e12)
            strength = 1 / _exact(self.C)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        _number("intercept_scaling", self.intercept_scaling, "in [1e-6, 1e6]", lambda v: 1e-6 <= v <= 1e6)
        if self.classes is not None:
            class_array(self.classes)
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)
        return epsilon, delta, strength

    def _inferred(self):
        return [name for name in ("classes", "data_norm") if getattr(self, name) is None]

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters()[:2])

    def _guarantee(self, epsilon, delta):
        inferred = self._inferred()
        notes = (f"Learned from private data: {' and '.join(inferred)}. Declare {'them' if inferred[1:] else 'it'}.",)
        return PrivacyGuarantee(
            math.inf if inferred else epsilon, 0 if inferred else delta, "central", Neighbours.SUBSTITUTION,
            self.random_state is not None, notes if inferred else (),
        )

    def _warn_if_inferred(self):
        inferred = self._inferred()
        if inferred:
            warnings.warn(
                f"{' and '.join(inferred)} {'were' if inferred[1:] else 'was'} learned from private data: the result "
                "has no privacy guarantee (privacy_.epsilon is infinite). Declare what is public.",
                PrivacyLeakWarning,
                stacklevel=3,
            )

    def _checked_X(self, X, *, reset, total):
        """Return X as C-contiguous floats; `total` (strict mode): look at nothing but dtype and shape."""
        rows = number_rows(X, strict=total, fewest=0 if total else 1)
        validate_data(self, X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)
        with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one
            rows = np.ascontiguousarray(rows, np.float64)
        if not total:
            names = getattr(self, "feature_names_in_", None)
            refuse_infinite(rows, [f"column {j if names is None else repr(names[j])}" for j in range(rows.shape[1])])
        return rows


def _shares(scores):
    """Return the probability of each class, one against the rest, divided by their sum."""
    # normalised in logarithms: far from all classes every expit underflows
    logs = -np.logaddexp(0.0, -scores)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _longest(X):
    """Return the largest norm of a row (1 where all are 0)."""
    scale = float(np.abs(X).max(initial=0.0))
    longest = scale * float(np.sqrt(np.square(X / scale).sum(axis=1).max())) if scale else 1.0
    return min(max(longest, 1e-100), 1e100)


def _number(name, value, where, inside):
    # (a duration of NumPy calls itself an integer; a number of thousands of digits has no repr)
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real) or not inside(value):
        raise ValueError(f"{name} must be a number {where}")
    return value


def _exact(value):
    """Return the fraction that the shortest decimal form of a number names, as for epsilon."""
    return value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
