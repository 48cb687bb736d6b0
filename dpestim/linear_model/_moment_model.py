"""What linear models of moments share: rows become integers, moments get noise once, and all else is arithmetic."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from dpestim.central.model import CentralRegressor
from dpestim.inputs import target_numbers
from dpestim.linear_model._adassp import AdaptiveRelease
from dpestim.linear_model._functional import constant_of, functional_release, ridge_of
from dpestim.linear_model._shrinkage import shrunken, trimmed
from dpestim.linear_model._unshrunken import unshrunken
from dpestim.models import checked_number, exact_number
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.moment_noise import MomentRelease, gaussian_weights, laplace_weights
from dpestim.statistics.one_pass import all_rows, names_of, schema_of
from dpestim.statistics.row_moments import REACH, checked_box, checked_target, row_map, summary_of
from dpestim.statistics.summary import Summary, source_of_release

_RELATIONS = {n.value: n for n in (Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE)}


_SHARED = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release, in (0, 80].
    delta : float, default=0.0
        What may be added to the probability of any event, in [0, 1); 0 is pure differential privacy. Where that needs
        less noise (few columns), it is what you get, and ``privacy_.delta`` is 0.
{own}    bounds : (low, high), default=None
        Public range of the columns of X, numbers or one for each column; values outside are clipped. A column whose
        bounds are equal is constant and gets the coefficient 0 (where there is an intercept). None, without
        `data_norm`, takes the smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes
        ``privacy_.epsilon`` infinite.
    data_norm : float, default=None
        Public bound of the Euclidean norm of a row; longer rows are scaled down to it. With bounds it is about rows
        whose columns were mapped to [-1, 1] (without an intercept: divided by the larger bound), but that those with
        the bounds 0 and 1 stay as they are; then None is sqrt(n_features), which every row fits. Declare it where
        columns are one-hot: g groups of these and m other columns have a norm of at most sqrt(g + m).
    target_bounds : (low, high), default=None
        Public range of y, clipped to it. None leaks as above.
    fit_intercept : bool, default=True
    neighbours : {"substitution", "add_remove"}, default="substitution"
        Whom the guarantee protects: one record replaced (then the number of records is public), or one more or less
        (that there are fewer than 2^31 is public).
    ledger : dpestim.accounting.Ledger, default=None
        Pays for each release before anything is drawn, or refuses. None: the ledger of the ``with ledger:`` block
        around, if there is one.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible; `privacy_` then says that the result must not be
        published.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        In units of y over units of X.
    intercept_ : float
    identified_ : ndarray of bool of shape (n_features,)
        Whether the moments tell a coefficient (``method="moments"`` alone). False: noise drowns it, or a direction of
        X that has a share in it, as it does for a column that is nearly a sum of others. `coef_` is then shrunken
        towards 0, good enough for predictions and not for a statement about the coefficient.
    standard_errors_ : ndarray of shape (n_features,)
        Of the estimates that `confidence_interval` is centred at, which are not shrunken; NaN where a coefficient is
        not identified. From the noise, whose law is known, and from sampling, as if the variance of what X leaves of y
        did not depend on X. Where nothing tells the number of rows ("add_remove" without an intercept) sampling counts
        for more than it is.
    summary_ : Summary
        After `summarize`: exact moments, as secret as the rows; `fit` keeps none, nor one of before.
    privacy_ : PrivacyGuarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter or a value that does not fit; it names the parameter or column, never the value, and comes
        before anything is charged. In strict mode rows with missing values count as rows in the middle of the bounds.

"""


class MomentRegressor(CentralRegressor):
    """Base of linear models that need nothing of the rows but sums of products of two columns."""

    _declared = ("bounds", "target_bounds")
    _learned = ("coef_", "intercept_")
    _more_parameters = ""

    def __init_subclass__(cls, **kwargs):
        """Fill in the parameters that all share in the docstring."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            own = cls._more_parameters.strip("\n").rstrip() + "\n"
            cls.__doc__ = cls.__doc__.replace("{parameters}\n", _SHARED.replace("{own}", own).lstrip("\n"))

    @property
    def _neighbours(self):
        if not isinstance(self.neighbours, str) or self.neighbours not in _RELATIONS:
            raise ValueError(f"neighbours must be one of {sorted(_RELATIONS)}")
        return _RELATIONS[self.neighbours]

    # ---------------------------------------------------------------- verbs

    def summarize(self, X, y=None):
        """Add rows to the exact, secret summary; nothing is released or charged.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        self._check_parameters()
        if self._inferred():
            raise ValueError(f"summarize needs {' and '.join(self._inferred())} to be declared: rows that come later "
                             "are not known yet")
        before, trial = getattr(self, "summary_", None), self._trial()
        X = trial._checked_X(X, reset=True, total=self._is_strict())
        if before is not None:
            self._refuse_others(before)
        summary = self._summary(X, target_numbers(y, len(X), strict=self._is_strict()), self._map(X.shape[1]))
        summary.names = names_of(trial)
        self.summary_ = all_rows(before, summary, _width)
        self._bind_here()
        return self

    def merge(self, other):
        """Add what another model of the same class, parameters and columns has summarised, of other rows.

        Parameters
        ----------
        other : estimator

        Returns
        -------
        self
        """
        if type(other) is not type(self) or not isinstance(getattr(other, "summary_", None), Summary):
            raise ValueError(f"merge needs another {type(self).__name__} that has summarised rows")
        self._check_parameters()
        self._refuse_others(other.summary_)
        self.summary_ = all_rows(getattr(self, "summary_", None), other.summary_, _width)
        self._bind_here()
        return self

    def release(self):
        """Fit the model to all rows summarised so far; each call charges epsilon and delta.

        Returns
        -------
        self
        """
        epsilon, delta, _ = self._check_parameters()
        if not hasattr(self, "summary_"):
            raise ValueError("nothing was summarised: call summarize first, or fit")
        self._refuse_others(self.summary_)
        rows, schema = self._map(_width(self.summary_)), schema_of(self.summary_, _width(self.summary_))
        plan = self._plan(rows, epsilon, delta)
        guarantee = self._promise_of(plan, epsilon)
        self._charge(guarantee, self._known(self.summary_.n_rows), schema.get("feature_names_in_", ()))
        self._finish(plan, rows, self.summary_, source_of_release(self), guarantee, schema)
        return self

    def fit(self, X, y=None):
        """Fit the model to rows X and targets y; one release. No summary is kept, nor one of before.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        epsilon, delta, _ = self._check_parameters()
        strict = self._is_strict()
        if strict and self._inferred():
            raise ValueError(f"strict mode: {' and '.join(self._inferred())} would be learned from the data: declare "
                             "what is public")
        trial = self._trial()
        X = trial._checked_X(X, reset=True, total=strict)
        y = target_numbers(y, len(X), strict=strict)
        rows = self._map(X.shape[1], X, y)
        plan = self._plan(rows, epsilon, delta)  # what could fail, fails before the charge
        guarantee = self._promise_of(plan, epsilon)
        self._charge(guarantee, self._known(len(X)), getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()
        summary = trial._summary(X, y, rows)
        summary.names = names_of(trial)
        schema = schema_of(summary, X.shape[1])
        self._finish(plan, rows, summary, WordSource(self.random_state), guarantee, schema)
        vars(self).pop("summary_", None)  # (exact sums of other rows, perhaps of other columns)
        return self

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
        from .2 to 8, with and without a delta, ``_linear.md``), not all of them at once.

        Parameters
        ----------
        level : float, default=0.95
            Above 0 and below 1.
        """
        check_is_fitted(self)
        checked_number("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
        if not hasattr(self, "standard_errors_"):
            raise ValueError(f'method="{self.method}" knows no standard errors: take method="moments"')
        if not self.identified_.all():
            n_lost = (~self.identified_).sum()
            warnings.warn(f"{n_lost} of {len(self.identified_)} coefficients have no interval: noise drowns them. Take "
                          "fewer columns, tighter bounds, more rows, or a larger epsilon",
                          stacklevel=2)
        width = float(ndtri((1 + float(level)) / 2)) * self.standard_errors_
        return np.stack([self._unshrunken - width, self._unshrunken + width], axis=1)

    # ---------------------------------------------------------------- inside

    def _inferred(self):
        return [name for name in super()._inferred() if name != "bounds" or self.data_norm is None]

    def _map(self, n_columns, X=None, y=None):
        """Return how rows become integers; X and y are looked at where something was not declared."""
        bounds, target = self.bounds, self.target_bounds
        if "bounds" in self._inferred():
            low, high = _range_of(X, "X", "bounds")
            bounds = (low, np.where(high - low > 1e-140, high, low))
        if target is None:
            low, high = map(float, _range_of(y, "y", "target_bounds"))
            target = (low, high if high - low > 1e-140 else low + max(1.0, abs(low)))
        return row_map(bounds, self.data_norm, target, self.fit_intercept, n_columns)

    def _summary(self, X, y, rows):
        if self._is_strict():
            good = np.isfinite(X).all(axis=1) & np.isfinite(y)
            X, y = np.where(good[:, None], X, rows.middle), np.where(good, y, rows.target_middle)
        return summary_of(rows, X, y, self._identity(rows))

    def _identity(self, rows):
        return type(self).__name__, rows, self.neighbours

    def _refuse_others(self, summary):
        if self._inferred() or summary.identity != self._identity(self._map(_width(summary))):
            raise ValueError("summaries need the parameters of the model that they are for: these differ, or have "
                             "changed since")

    def _replaces(self):
        return self._neighbours is Neighbours.SUBSTITUTION

    def _known(self, n_rows):
        """Return the number of rows where that is public."""
        return n_rows if self._replaces() else None

    def _plan(self, rows, epsilon, delta):
        """Return the release of moments, or raise ValueError."""
        replaces, d = self._replaces(), rows.n_columns
        if self.method == "functional":
            return functional_release(rows, epsilon, self.sensitivity, replaces)
        if self.method == "adassp":
            return AdaptiveRelease(rows, epsilon, delta, replaces)
        weights = gaussian_weights(replaces, rows.fit_intercept) if delta else laplace_weights(
            replaces, rows.fit_intercept, d)
        return MomentRelease(epsilon, delta, weights, d, replaces)

    def _promise_of(self, plan, epsilon):
        guarantee = self._guarantee(epsilon, plan.law.delta)
        return replace(guarantee, curve=plan.law.curve) if guarantee.is_finite else guarantee

    def _finish(self, plan, rows, summary, source, guarantee, schema):
        """Draw the noise, and set what is published."""
        moments = plan.draw(summary, source, self._known(summary.n_rows))
        # scaled columns are (x - center) / scale, rows of the norm; the target (y - center) / scale
        per = rows.factors() / REACH
        with np.errstate(all="ignore"):
            penalty = np.minimum(float(getattr(self, "alpha", 0.0)) * per * per, 1e100)
        if self.method == "functional":
            constant = constant_of(rows, self.sensitivity) / REACH
            found = trimmed(moments, ridge_of(moments), rows.fit_intercept, constant)
        elif self.method == "adassp":
            moments, ridge = moments
            found = trimmed(moments, ridge + np.append(penalty, 0.0)[: plan.size], rows.fit_intercept, plan.constant)
        else:
            found = shrunken(moments, penalty, rows.fit_intercept)
        self.coef_ = found.w * per * rows.target_scale
        self.intercept_ = float(rows.target_center + rows.target_scale * found.b - self.coef_ @ rows.centers)
        for name in ("standard_errors_", "identified_", "_unshrunken"):
            vars(self).pop(name, None)
        if self.method == "moments":
            estimates, errors = unshrunken(moments, penalty, rows.fit_intercept, per == 0)
            self.identified_ = np.isfinite(errors)
            self._unshrunken, self.standard_errors_ = (x * per * rows.target_scale for x in (estimates, errors))
        self.privacy_, self._rows = guarantee, replace(rows)  # (with nothing worked out: in which order shows n)
        vars(self).update(schema)
        if "feature_names_in_" not in schema:
            vars(self).pop("feature_names_in_", None)

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns within their bounds, and targets that depend on them."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        return X, X[:, 0] - 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n_rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _check_parameters(self):
        """Return (epsilon, delta, alpha), exact; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), Fraction(0)
        if checked_number("delta", self.delta, "0, or from 1e-300 to below 1", lambda v: v == 0 or 1e-300 <= v < 1):
            delta = exact_number(self.delta)
        _ = self._neighbours
        if self.bounds is not None:
            checked_box(self.bounds)
        if self.target_bounds is not None:
            checked_target(self.target_bounds)
        if self.data_norm is not None:
            checked_number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        if hasattr(self, "alpha"):
            checked_number("alpha", self.alpha, "in [0, 1e100]", lambda v: 0 <= v <= 1e100)
        self._check_method(delta)
        check_random_state(self.random_state)
        return epsilon, delta, None

    def _check_method(self, delta):
        """Raise ValueError for a method that there is not."""
        if self.method not in self._methods:
            names = ", ".join(f'"{name}"' for name in self._methods[:-1])
            raise ValueError(f'method must be {names} or "{self._methods[-1]}"')
        if self.method == "adassp" and not delta:
            raise ValueError('method="adassp" has normal noise: delta must be above 0')

    _methods, sensitivity = ("moments", "adassp"), "tight"

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters()[:2])


def _range_of(values, name, parameter):
    """Return the smallest and the largest value (of each column), which leak; raise ValueError for far ones."""
    low, high = values.min(axis=0), values.max(axis=0)
    if max(np.max(-low), np.max(high)) > 1e139:
        raise ValueError(f"{name} holds numbers beyond 1e139, which need {parameter} that are declared, up to 1e140")
    return low, high


def _width(summary):
    """Return the number of columns of X that were summarised."""
    return summary.identity[1].n_columns
