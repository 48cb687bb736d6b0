"""Linear support vectors: a rounded hinge, minimised by objective perturbation."""

from dpestim.linear_model.base import LinearClassifier
from dpestim.linear_model.losses import hinge
from dpestim.linear_model.shapes import OneVersusRest


class DPLinearSVC(LinearClassifier):
    """Fit a linear support vector classifier by objective perturbation, with a smoothed hinge loss.

    Rows beyond the margin have gradient 0, so that outliers of the right class have no influence. For probabilities
    take `DPLogisticRegression`.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: `coef_`, `intercept_` and everything computed from them may be published; the caller of `fit` holds the
    rows and must be trusted. Floating point and the inexact minimiser are covered: a hundredth of epsilon pays for
    them. With K > 2 classes there are K problems, one class against the rest: under one Gaussian noise, or with epsilon
    / K each where delta is 0. Predictions and `score` of private rows are **not private**: strict mode enters
    predictions in the ledger, and refuses `score`.

    **Utility.** A smaller `h` is nearer to the hinge, and costs more privacy (the curvature is 1 / (2 h)), which the
    default of `C` pays for by regularising more. Declare the smallest `data_norm` that fits. Nothing counts the classes
    here: with few rows, many columns or classes and a small epsilon, predictions may fall behind the commonest class,
    from which `DPLogisticRegression` starts.

    **Complexity.** Some ten passes over the rows, few of which form the Hessian: O(n d^2) time, O(n + d^2) memory
    beyond X; for sparse X the sum over rows of the squared number of entries in the place of n d^2.

    Parameters
    ----------
    {epsilon of a fit}
    {delta of a fit}
    {bounds}
    {data_norm}
    {classes}
    {domain}
    C : float, default=None
        Inverse regularisation, above 0, as in scikit-learn, for rows (x / R, a) / sqrt(1 + a^2), where a is
        `intercept_scaling`. None chooses by a rule that sees only the numbers of rows and columns, epsilon and delta.
        Where C is too large for epsilon or for the number of rows it is lowered as far as needed: see `C_`.
    h : float, default=0.5
        Half of the width, in margins, over which the hinge is rounded, in [1e-3, 1e3].
    fit_intercept : bool, default=True
        Without an intercept columns with bounds are divided by the larger of these, and 0 stays 0.
    intercept_scaling : float, default=0.25
        The constant a that is appended to rows.
    {payment of a fit}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        In units of X. Multiples of a public step.
    intercept_ : ndarray of shape (1 or n_classes,)
    C_ : float
        The inverse regularisation that was used; public, because it depends on no value.
    data_norm_ : float
        The norm R that rows are clipped to.
    noise_scale_ : float
        Scale of the perturbation: with delta 0 its mean norm divided by the number of coefficients, else the standard
        deviation of an entry. Public too.
    privacy_ : PrivacyGuarantee
    {columns seen}

    {refused rows}

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization", Journal of Machine
    Learning Research 12, Algorithm 2 and equation (7), the loss with constant curvature 1 / (2 h) around the margin.
    The proof, with better constants: ``margins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5_000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0.2 * rng.standard_normal(5_000)
    >>> model = DPLinearSVC(1.0, data_norm=1.5, classes=[False, True], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _proof_name = "margins"
    _numbers = LinearClassifier._numbers | {"h": ("in [1e-3, 1e3]", 1e-3, 1e3)}

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, data_norm=None, classes=None, domain=None,
                 C=None, h=0.5, fit_intercept=True, intercept_scaling=0.25, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.classes = classes
        self.domain = domain
        self.C = C
        self.h = h
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "data_norm": 2.0, "classes": [0, 1]},
            {"epsilon": 3.0, "delta": 1e-5, "data_norm": 2.0, "classes": ["a", "b", "c"], "h": 0.2,
             "fit_intercept": False},
        ]

    def _loss(self, task):
        margin, n_classes = hinge(self.h), task[1]
        return margin, margin.loss_shape if n_classes == 2 else OneVersusRest(n_classes, margin.loss_shape)
