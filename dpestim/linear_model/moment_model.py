"""What linear models of moments share: rows become integers, moments get noise once, and all else is arithmetic."""

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import declared_delta
from dpestim.central.model import CentralRegressor
from dpestim.inputs import check_target, target_numbers
from dpestim.linear_model.domain import OfDomain
from dpestim.linear_model.shrinkage import shrunken, trimmed
from dpestim.linear_model.unshrunken import unshrunken
from dpestim.models import checked_number
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.moment_noise import MomentRelease, gaussian_weights, laplace_weights
from dpestim.statistics.one_pass import OnePassModel
from dpestim.statistics.row_moments import REACH, checked_box, row_map, summary_of
from dpestim.summaries import Summary

_PARAMETERS = """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one release, in (0, 80].
{delta of a fit}
{own}
bounds : (low, high), dict or Domain, default=None
    Public range of the columns of X, numbers or one for each column; values outside are clipped. A column whose
    bounds are equal is constant and gets the coefficient 0 (where there is an intercept). None, without
    `data_norm`, takes the smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes
    ``privacy_.epsilon`` infinite.
data_norm : float, default=None
    Public bound of the Euclidean norm of a row; longer rows are scaled down to it. With bounds it is about rows
    whose columns were mapped to [-1, 1] (without an intercept: divided by the larger bound), but that those with
    the bounds 0 and 1 stay as they are; then None is sqrt(n_features), which every row fits. Declare it for one-hot
    columns of many categories, which ``bounds=(0, 1)`` alone does not tell: g groups of these and m other columns
    have a norm of at most sqrt(g + m), so write ``bounds=(0, 1), data_norm=(g + m) ** 0.5``. That pays where there
    are some three columns or more for each of g + m: R^2 rose from .53 to .62 (21 columns, g + m = 4) and from .08
    to .21 (43 and 5), and fell from .393 to .386 (12 and 6) and from .30 to .28 (7 and 4).
target_bounds : (low, high), dict or Domain, default=None
    Public range of y, clipped to it. None leaks as above.
domain : dpestim.Domain, default=None
    The public description of the table. It gives `target_bounds` of the column that y, a series, is called. Where X
    is a frame whose columns are numbers of the domain, it gives `bounds`; where
    `dpestim.preprocessing.DomainEncoder` has encoded the rows, `data_norm`.
fit_intercept : bool, default=True
neighbours : {"substitution", "add_remove"}, default=None
    The neighbouring relation: one record is replaced (the number of records is then public), or one record is added or
    removed (it is public that there are fewer than 2^31 records). None: the relation of the block
    (`dpestim.config_context`), else of the ledger, else "substitution".
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged for each release, before noise is drawn. None: the ledger of the enclosing
    ``with ledger:`` block, if any.
{random_state}

Attributes
----------
coef_ : ndarray of shape (n_features,)
    In units of y over units of X.
intercept_ : float
identified_ : ndarray of bool of shape (n_features,)
    Whether the noisy moments identify a coefficient (``method="moments"`` only). False: the noise exceeds the signal of
    the coefficient, or of a direction of X that contributes to it, as for a column that is nearly a sum of others.
    `coef_` is then shrunken towards 0: use it for predictions, not for statements about the coefficient.
standard_errors_ : ndarray of shape (n_features,)
    Of the estimates that `confidence_interval` is centred at, which are not shrunken; NaN where a coefficient is
    not identified. From the noise, whose law is known, and from sampling, as if the variance of what X leaves of y
    did not depend on X. Where nothing tells the number of rows ("add_remove" without an intercept) sampling counts
    for more than it is.
summary_ : Summary
    After `summarize`: exact moments, as secret as the rows; `fit` keeps none, nor one of before.
privacy_ : PrivacyGuarantee
{columns seen}

Raises
------
ValueError
    For an invalid parameter or value, before anything is charged. The message names the parameter or column, never the
    value. In strict mode rows with missing values count as rows in the middle of the bounds.

"""


class MomentRegressor(OfDomain, CentralRegressor, OnePassModel):
    """Base of linear models that need nothing of the rows but sums of products of two columns."""

    _declared = ("bounds", "target_bounds")
    _learned = ("coef_", "intercept_")
    _texts = {"parameters": _PARAMETERS}

    def predict(self, X):
        """Return predictions for rows, which are clipped as in `fit`, and so is what is predicted.

        **Privacy.** The model may be published, and with it predictions for *public* rows. That for a private row is a
        function of it, and **not private**; in strict mode each call is entered in the ledger (epsilon 0, flagged),
        before it answers.
        """
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._checked_X(X, reset=False, total=strict)
        if strict:  # no error and no warning may depend on a value
            self._note_predictions(len(X))
        with np.errstate(all="ignore"):
            return np.clip(self._rows.clipped(X) @ self.coef_ + self.intercept_, *self._rows.target)

    def confidence_interval(self, level=0.95):
        """Return intervals of the coefficients, an array of shape (n_features, 2): a function of what is published.

        An interval is an estimate without shrinkage, plus and minus a normal quantile times its standard error: it need
        not hold `coef_`, which is shrunken for predictions. A coefficient that is not identified (`identified_`) has
        NaN, and a warning says how many there are. Intervals are about the coefficients of clipped rows, in the
        population that the rows are a sample of; those of `DPRidge` about the coefficients that its penalty leaves
        there with as many rows. Each holds with about its level (.93 to .97 at .95 for 1 to 30 columns and an epsilon
        from .2 to 8, with and without a delta, ``linear.md``), not all of them at once. Where noise lets few fits
        identify a coefficient, those that do hold it less often: .79 to .94 where one fit in six or fewer does.

        Parameters
        ----------
        level : float, default=0.95
            Above 0 and below 1.
        """
        check_is_fitted(self)
        checked_number("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
        if not hasattr(self, "standard_errors_"):
            raise ValueError(f'method="{self.method}" has no standard errors: take method="moments"')
        if not self.identified_.all():
            n_lost = (~self.identified_).sum()
            warnings.warn(f"{n_lost} of {len(self.identified_)} coefficients have no interval, because their noise is "
                          "too large: take fewer columns, tighter bounds, more rows, or a larger epsilon",
                          stacklevel=2)
        width = float(ndtri((1 + float(level)) / 2)) * self.standard_errors_
        return np.stack([self._unshrunken - width, self._unshrunken + width], axis=1)

    # ---------------------------------------------------------------- inside

    def _inferred(self):
        given = self.domain is not None or self.data_norm is not None
        return [name for name in super()._inferred() if name != "bounds" or not given]

    def _read(self, X, y, reset):
        strict = self._is_strict()
        X = self._checked_X(X, reset=reset, total=strict)
        return (X, target_numbers(y, len(X), strict=strict)), *X.shape

    @property
    def _adds_up(self):
        return self.method != "adassp"  # (the smallest eigenvalue of a sum is no sum)

    def _settings(self):
        return (self._relation(),)

    def _domain(self, n_columns, data=None):
        """Return how rows become integers; they are looked at where something was not declared."""
        bounds, target = self.bounds, self.target_bounds
        if "bounds" in self._inferred():
            low, high = _range_of(data[0], "X", "bounds")
            bounds = (low, np.where(high - low > 1e-140, high, low))
        if target is None:
            low, high = map(float, _range_of(data[1], "y", "target_bounds"))
            target = (low, high if high - low > 1e-140 else low + max(1.0, abs(low)))
        return row_map(bounds, self.data_norm, target, self.fit_intercept, n_columns)

    def _sums(self, data, domain):
        X, y = data
        if self._is_strict():
            good = np.isfinite(X).all(axis=1) & np.isfinite(y)
            X, y = np.where(good[:, None], X, domain.middle), np.where(good, y, domain.target_middle)
        return summary_of(domain, X, y, ()).totals

    def _plan(self, rows, epsilon, delta):
        """Return the release of moments, or raise ValueError."""
        replaces, d = self._replaces, rows.n_columns
        if self.method == "functional":
            from dpestim.linear_model.functional import functional_release

            return functional_release(rows, epsilon, self.sensitivity, replaces)
        if self.method == "adassp":
            from dpestim.linear_model.adassp import AdaptiveRelease

            return AdaptiveRelease(rows, epsilon, delta, replaces)
        weights = gaussian_weights(replaces, rows.fit_intercept) if delta else laplace_weights(
            replaces, rows.fit_intercept, d)
        return MomentRelease(epsilon, delta, weights, d, replaces)

    def _promised(self, draw, epsilon, delta):
        guarantee = self._guarantee(epsilon, draw.law.delta)
        return replace(guarantee, curve=draw.law.curve) if guarantee.is_finite else guarantee

    def _released(self, n_rows, totals, domain, epsilon, delta):
        plan, summary = self._plan(domain, epsilon, delta), Summary((domain,), n_rows, totals)

        def draw(source):
            return self._found(plan, domain, plan.draw(summary, source, n_rows if self._replaces else None))

        draw.law = plan.law
        return draw

    def _found(self, plan, rows, moments):
        """Return what is published of noisy moments, by name."""
        # scaled columns are (x - center) / scale, rows of the norm; the target (y - center) / scale
        per = rows.factors() / REACH
        with np.errstate(all="ignore"):
            penalty = np.minimum(float(getattr(self, "alpha", 0.0)) * per * per, 1e100)
        if self.method == "functional":
            from dpestim.linear_model.functional import constant_of, ridge_of

            constant = constant_of(rows, self.sensitivity) / REACH
            found = trimmed(moments, ridge_of(moments), rows.fit_intercept, constant)
        elif self.method == "adassp":
            moments, ridge = moments
            found = trimmed(moments, ridge + np.append(penalty, 0.0)[: plan.size], rows.fit_intercept, plan.constant)
        else:
            found = shrunken(moments, penalty, rows.fit_intercept)
        coef = found.w * per * rows.target_scale
        intercept = float(rows.target_center + rows.target_scale * found.b - coef @ rows.centers)
        # (the map with nothing worked out: in which order shows n)
        learned = {"coef_": coef, "intercept_": intercept, "_rows": replace(rows), "_unshrunken": None}
        if self.method == "moments":
            estimates, errors = unshrunken(moments, penalty, rows.fit_intercept, per == 0)
            learned["identified_"] = np.isfinite(errors)
            learned["_unshrunken"], learned["standard_errors_"] = (
                x * per * rows.target_scale for x in (estimates, errors))
        return learned

    def _check(self):
        """Return (epsilon, delta), exact; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)
        self._relation()
        if self.bounds is not None:
            checked_box(self.bounds)
        if self.target_bounds is not None:
            check_target(self.target_bounds)
        if self.data_norm is not None:
            checked_number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        if hasattr(self, "alpha"):
            checked_number("alpha", self.alpha, "in [0, 1e100]", lambda v: 0 <= v <= 1e100)
        self._check_method(delta)
        self._check_domain()
        check_random_state(self.random_state)
        return epsilon, delta

    def _check_method(self, delta):
        """Raise ValueError for a method that there is not."""
        if self.method not in self._methods:
            names = ", ".join(f'"{name}"' for name in self._methods[:-1])
            raise ValueError(f'method must be {names} or "{self._methods[-1]}"')
        if self.method == "adassp" and not delta:
            raise ValueError('method="adassp" has Gaussian noise and needs a delta above 0, such as 1e-6')

    _methods, sensitivity = ("moments", "adassp"), "tight"


def _range_of(values, name, parameter):
    """Return the smallest and the largest value (of each column), which leak; raise ValueError for far ones."""
    low, high = values.min(axis=0), values.max(axis=0)
    if max(np.max(-low), np.max(high)) > 1e139:
        raise ValueError(f"{name} holds numbers beyond 1e139: declare {parameter}, of at most 1e140 in absolute value")
    return low, high
