"""Linear and ridge regression from noisy moments (`linear.md`)."""

from dpestim.linear_model.moment_model import MomentRegressor


class DPLinearRegression(MomentRegressor):
    """Fit linear regression by noisy sums of products of columns and target.

    ``method="moments"`` adds one joint noise, Gaussian with a delta and Laplace without, and solves with a filter that
    leaves out directions whose noise exceeds their signal, as estimated from the noisy moments. ``method="functional"``
    is the functional mechanism: Laplace noise on the coefficients of the quadratic loss, and spectral trimming.
    ``method="adassp"`` is what was published before: noise on moments and on their smallest eigenvalue, from which a
    ridge against the worst case follows. Median R^2 of 20 fits of the weight of 12,579 teenagers (`load_yrbss`) by age,
    sex and height at epsilon .1, .5, 1, 2 and delta 1e-5: .13, .27, .28, .28 of .28 with "moments", .08, .26, .27, .28
    with "adassp".

    **Privacy.** Pure epsilon, or (epsilon, delta), differential privacy in the central model for the declared
    neighbours: coefficients, intercept, standard errors and all that follows from them may be published. Rows are
    clipped to public bounds, rounded to public grids and added as integers, so that the sensitivity is exact.
    `privacy_` has the curve of the noise too. The caller of `fit` holds the data and must be trusted. Parameters are
    public, and so is the number of rows where records are replaced.

    **Utility.** Errors fall as 1 / n until those of sampling, which fall as 1 / sqrt(n), are larger. Tight bounds help
    most: noise is scaled to them, so its part of a prediction does not depend on the units of X and y, and 0 may lie
    anywhere. Declare a `data_norm` below sqrt(n_features), besides the bounds, where rows are rarely near a corner.

    **Complexity.** One pass, O(n d^2) time of a matrix product; O(d^2) memory, random numbers and O(d^3) time besides.

    {parameters}
    References
    ----------
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss", STOC, algorithm 1, for noise on moments. Wang (2018),
    "Revisiting differentially private linear regression", UAI, algorithm 2, with another scale of the noise:
    the published one is too small (``linear.md``). Zhang, Zhang, Xiao, Yang, Winslett (2012), "Functional mechanism",
    PVLDB 5, algorithm 1 and section 5. The proof, with the sensitivities: ``linear.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, size=(10_000, 2))
    >>> y = 3 * X[:, 0] - X[:, 1] + 500 + rng.normal(0, 10, 10_000)
    >>> model = DPLinearRegression(1.0, bounds=(0, 100), target_bounds=(300, 900), random_state=0).fit(X, y)
    >>> model.coef_.round(1)
    array([ 3., -1.])
    """

    _more_parameters = """
    method : {"moments", "functional", "adassp"}, default="moments"
        "functional" needs a delta of 0, "adassp" one above 0.
    sensitivity : {"tight", "published"}, default="tight"
        Of the functional mechanism: "published" is 2 (1 + d)^2 for d columns, that of ones included, "tight" a smaller
        one that is proven.
    """

    def __init__(self, epsilon=1.0, *, delta=None, method="moments", sensitivity="tight", bounds=None, data_norm=None,
                 target_bounds=None, domain=None, fit_intercept=True, neighbours=None, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.sensitivity = sensitivity
        self.bounds = bounds
        self.data_norm = data_norm
        self.target_bounds = target_bounds
        self.domain = domain
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    _methods = ("moments", "functional", "adassp")

    def _check_method(self, delta):
        super()._check_method(delta)
        if self.sensitivity not in ("tight", "published"):
            raise ValueError('sensitivity must be "tight" or "published"')
        if self.method == "functional" and delta:
            raise ValueError('method="functional" needs delta=0: its noise has no delta')

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        box = {"bounds": (-1.0, 1.0), "target_bounds": (-2.0, 2.0)}
        return [
            {"epsilon": 1.0, **box},
            {"epsilon": 2.0, "delta": 1e-5, "neighbours": "add_remove", "bounds": ([-1, -1, 0], [1, 1, 0.5]),
             "target_bounds": (-2, 3)},
            {"epsilon": 1.0, "method": "functional", "sensitivity": "published", "fit_intercept": False, **box},
            {"epsilon": 2.0, "delta": 1e-5, "method": "adassp", **box},
        ]


class DPRidge(MomentRegressor):
    """Fit ridge regression by noisy sums of products, with a penalty on the coefficients in units of X.

    The penalty is public and costs nothing. Use it for collinear columns, for instance. The noise needs no penalty,
    because the solver leaves out directions whose noise exceeds their signal.

    **Privacy.** That of `DPLinearRegression`: pure epsilon, or (epsilon, delta), in the central model, for the declared
    neighbours; the curator, who holds the data, must be trusted.

    **Utility.** Minimises the noisy sum of squares plus alpha times the squared norm of `coef_`, as scikit-learn's
    `Ridge` does; the intercept is free.

    **Complexity.** One pass, O(n d^2) time of a matrix product; O(d^2) memory, random numbers and O(d^3) time besides.

    {parameters}
    References
    ----------
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss", STOC, algorithm 1, for noise on moments. The proof:
    ``linear.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = 3 * X[:, 0] - X[:, 1] + rng.normal(0, 0.1, 20_000)
    >>> model = DPRidge(1.0, alpha=7_000, bounds=(-1, 1), target_bounds=(-4, 4), random_state=0).fit(X, y)
    >>> bool(1.3 < model.coef_[0] < 1.6)
    True
    """

    _more_parameters = """
    alpha : float, default=1.0
        Penalty, in [0, 1e100]: that of scikit-learn.
    method : {"moments", "adassp"}, default="moments"
        As in `DPLinearRegression`: "adassp" needs a delta above 0, and adds its own ridge to the penalty.
    """

    def __init__(self, epsilon=1.0, *, alpha=1.0, delta=None, method="moments", bounds=None, data_norm=None,
                 target_bounds=None, domain=None, fit_intercept=True, neighbours=None, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.alpha = alpha
        self.delta = delta
        self.method = method
        self.bounds = bounds
        self.data_norm = data_norm
        self.target_bounds = target_bounds
        self.domain = domain
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        box = {"bounds": (-1.0, 1.0), "target_bounds": (-2.0, 2.0)}
        return [
            {"epsilon": 1.0, "alpha": 1.0, **box},
            {"epsilon": 2.0, "alpha": 5.0, "delta": 1e-5, "neighbours": "add_remove", **box},
            {"epsilon": 2.0, "delta": 1e-5, "method": "adassp", "neighbours": "add_remove", "fit_intercept": False,
             **box},
        ]
