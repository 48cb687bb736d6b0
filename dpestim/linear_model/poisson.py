"""Poisson regression by objective perturbation, for counts of which a public bound is known."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import kl_div

from dpestim.central.model import CentralRegressor
from dpestim.inputs import number_column, target_numbers
from dpestim.linear_model.base import PerturbedModel
from dpestim.linear_model.base_rate import ENOUGH, mean_law, mean_of, share_of
from dpestim.linear_model.losses import poisson
from dpestim.linear_model.release import COLUMNS
from dpestim.linear_model.solver import LARGEST_OFFSET
from dpestim.models import exact_number
from dpestim.privacy.exact import canonical_epsilon


class DPPoissonRegressor(PerturbedModel, CentralRegressor):
    """Fit Poisson regression (logarithmic link) by objective perturbation, for counts with a public bound.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: `coef_`, `intercept_` and everything computed from them may be published; the caller of `fit` holds the
    rows and must be trusted. With an intercept, a tenth of epsilon (max_target / n where that is more, up to a quarter;
    100 max_target / n where that is less) pays for a mean of the targets, and the rest fits. Floating point and the
    inexact minimiser are covered: a hundredth of it pays for them. Predictions and `score` of private rows are **not
    private**: strict mode enters predictions in the ledger, and refuses `score`.

    **Utility.** Noise grows with `max_target`: declare the smallest bound that most counts keep; larger ones count as
    `max_target`, and no prediction exceeds it (the loss is linear there, which bounds the gradient of a row). With few
    rows the predictions shrink towards the private mean. Where n epsilon mean / max_target is small, this mean is
    mostly noise, and a noisy mean with the whole epsilon is a better prediction.

    **Complexity.** Some ten passes over the rows, few of which form the Hessian: O(n d^2) time, O(n + d^2) memory
    beyond X; for sparse X the sum over rows of the squared number of entries in the place of n d^2.

    Parameters
    ----------
    {epsilon of a fit}
    {delta of a fit}
    {bounds}
    {data_norm}
    max_target : float, default=None
        Public bound of targets and predictions, in [1, 1e9]. None takes the largest target, which leaks in the same
        way.
    domain : dpestim.Domain, default=None
        The public description of the table. Where X is a frame whose columns are numbers of the domain, it gives
        `bounds`; where `dpestim.preprocessing.DomainEncoder` has encoded the rows, `data_norm`. The column that y, a
        series, is called is the target.
    alpha : float, default=None
        Regularisation for each row, above 0, as in scikit-learn, for rows (x / R, a) / sqrt(1 + a^2), where a is
        `intercept_scaling`. None chooses by a rule that sees only the numbers of rows and columns, epsilon, delta and
        the private mean. Where it is too small for epsilon or for the number of rows it is raised as far as needed: see
        `alpha_`.
    fit_intercept : bool, default=True
        Whether there is a constant, and with it the private mean of the targets that predictions start from. Without it
        columns with bounds are divided by the larger of these, and 0 stays 0.
    intercept_scaling : float, default=0.5
        The constant a that is appended to rows.
    {payment of a fit}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        In units of X, for the logarithm of the expected count. Multiples of a public step.
    intercept_ : float
    alpha_ : float
        The regularisation that was used; it depends on no value but the private mean.
    data_norm_, max_target_ : float
        What rows and targets are clipped to.
    noise_scale_ : float
        Scale of the perturbation of an objective that is divided by `max_target_`: with delta 0 its mean norm divided
        by the number of coefficients, else the standard deviation of an entry. Public too.
    privacy_ : PrivacyGuarantee
    {columns seen}

    Raises
    ------
    ValueError
        For a parameter, a missing value or a negative target; it names the parameter or column, never the value, and
        comes before anything is charged. In strict mode rows with such values count as zero rows instead, and negative
        targets as 0.

    References
    ----------
    Kifer, Smith, Thakurta (2012), "Private convex empirical risk minimization and high-dimensional regression", COLT,
    Algorithm 1, for generalised linear models with a bounded slope. The proof, with better constants: ``margins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5_000, 2))
    >>> y = rng.poisson(np.exp(0.5 + X[:, 0]))
    >>> model = DPPoissonRegressor(2.0, data_norm=1.5, max_target=8, random_state=0).fit(X, y)
    >>> bool(model.coef_[0] > abs(model.coef_[1]))
    True
    """

    _proof_name = "margins"
    _declared = ("data_norm", "max_target")
    _numbers = PerturbedModel._numbers | {
        "max_target": ("in [1, 1e9]", 1, 1e9), "alpha": ("in [1e-12, 1e12]", 1e-12, 1e12)}

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, data_norm=None, max_target=None, domain=None,
                 alpha=None, fit_intercept=True, intercept_scaling=0.5, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.max_target = max_target
        self.domain = domain
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None):  # noqa: D102 (given below)
        super().fit(X, y)
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    fit.__doc__ = PerturbedModel.fit.__doc__

    def predict(self, X):
        """Return the expected count of each row, above 0 and at most `max_target_`.

        Rows longer than `data_norm_` are scaled down to it, as in `fit`. For private rows predictions are **not
        private**: in strict mode each call is entered in the ledger before it answers.
        """
        scores = self._scores(X)[:, 0]
        return np.minimum(np.exp(np.clip(scores, -700.0, math.log(self.max_target_))), self.max_target_)

    def score(self, X, y, sample_weight=None):
        """Return D^2, the share of the Poisson deviance that is explained, on rows X and targets y: **not private**."""
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        found = self.predict(X)
        known = self._targets(y, len(found), strict=False)
        weights = np.ones(len(found))
        if sample_weight is not None:
            weights = number_column(sample_weight, len(found), "sample_weight")
        if not weights.sum():
            raise ValueError("sample_weight must not add up to 0")
        self._note_score(len(found))
        left = float(weights @ kl_div(known, found))  # half of the deviance, as everywhere below
        there = float(weights @ kl_div(known, np.average(known, weights=weights)))
        return 1.0 - left / there if there else float(not left)

    # ---------------------------------------------------------------- inside

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "data_norm": 2.0, "max_target": 6},
            {"epsilon": 3.0, "delta": 1e-5, "data_norm": 2.0, "max_target": 1.0, "fit_intercept": False},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns with norm about 1, and counts that depend on them."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        return X, rng.poisson(np.exp(X[:, 0])).astype(float)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _targets(self, y, n_rows, *, strict):
        """Return targets as floats of at least 0; in strict mode NaN where there is none."""
        targets = target_numbers(y, n_rows, strict=strict)
        if not strict and (targets < 0).any():
            raise ValueError("y must hold counts, and has a negative number: replace or remove such rows")
        return np.maximum(targets, 0.0, out=targets)  # (a copy)

    def _read_y(self, y, n_rows, strict):
        """Return (signs, targets and loss of the one problem, what was learned)."""
        targets = self._targets(y, n_rows, strict=strict)
        if self.max_target is None:
            largest = float(min(max(1.0, targets.max()), 1e9))
        else:
            largest = float(self.max_target)
        counts, shares = np.isfinite(targets), np.minimum(targets, largest, out=targets)  # (a copy already)
        shares /= largest
        if not counts.all():
            shares[~counts] = 0.0
        return (counts.view(np.int8), shares, poisson(math.log(largest))), {"max_target_": largest}

    def _loss(self, task):
        return task[2], task[2].loss_shape

    def _problems(self, task):
        return [task[:2]]

    def _counting(self, epsilon, n_rows, task):
        """Return the part of epsilon that a mean of the targets takes."""
        return _share_of_mean(epsilon, n_rows, task[2].shape) if self.fit_intercept else Fraction(0)

    def _law(self, epsilon, delta, n_rows, size, task):
        part = self._counting(epsilon, n_rows, task)
        rest = epsilon - part, delta, n_rows, size, task
        if part:
            mean_law(part)
            self._calibrated(*rest, evenness=0.0)  # the strength will lie between that of this and that of 1
        return self._calibrated(*rest)

    def _minimised(self, X, task, law, norm, intercept, source):
        _, targets, margin = task
        part, offset = self._counting(canonical_epsilon(self.epsilon), len(X), task), 0.0
        if part:
            share = mean_of(targets, part, source, COLUMNS)
            offset = max(math.log(share) + margin.shape, -LARGEST_OFFSET)
            if self.alpha is None:  # a function of what was released: rare counts bend the loss as rare classes do
                law = self._following(law, len(X), X.shape[1] + 1, task, min(4 * share, 1.0))
        return self._released(X, task, law, norm, intercept, source, [offset]), offset, law

    def _strength(self, n_rows, task):
        if self.alpha is None:
            return None
        largest = exact_number(self.max_target if self.max_target is not None else math.exp(task[2].shape))
        return max(n_rows, 1) * exact_number(self.alpha) / largest

    def _regularisation(self, strength, n_rows, task):
        return {"alpha_": strength * math.exp(task[2].shape) / max(n_rows, 1)}


@lru_cache(maxsize=256)  # (of public numbers, or of what was learned without a guarantee)
def _share_of_mean(epsilon, n_rows, top):
    """Return the part of epsilon that a mean of targets up to e^top takes."""
    largest = exact_number(math.exp(top))
    # up to a quarter, where noise of a tenth would have a scale of more than one count
    return max(share_of(epsilon, n_rows, ENOUGH * Fraction(largest)), min(epsilon / 4, largest / max(n_rows, 1)))
