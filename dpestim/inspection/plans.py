"""Displays of what is known before a survey: errors of mechanisms against what they cost, and against epsilon.

They read plans (`dpestim.local.plan`), or the laws of estimators: no data, and so no privacy, is used.
"""

import numpy as np
from sklearn.base import clone

from dpestim.inspection.displays import check_has, column_of, name_and_promise
from dpestim.local.costs import cost_of
from dpestim.plots import Display, plain, pyplot

#: What costs are called on an axis.
_COSTS = {
    "bits": "bits a user",
    "client_us": "time of a client (microseconds, estimated)",
    "server_s": "time of the server (seconds, estimated)",
    "memory_mb": "memory of the server (megabytes, estimated)",
}
#: Budgets of a curve, and how far they reach to both sides of the one that is known.
_N_EPSILONS, _REACH = 13, 8.0
_ERROR = "root mean square error"


class MechanismComparisonDisplay(Display):
    """Errors of mechanisms against what they cost: what is at the lower left is better in both.

    Parameters
    ----------
    mechanisms : list of str
        Names.
    errors : array-like of shape (n_mechanisms,)
        Root mean square errors.
    costs : array-like of shape (n_mechanisms,)
    against : {"bits", "client_us", "server_s", "memory_mb"}, default="bits"
        What the costs are, as in the rows of `dpestim.local.plan`.
    {label}

    Attributes
    ----------
    {drawn on}
    points_ : matplotlib Line2D
    names_ : list of matplotlib Annotation

    Examples
    --------
    >>> from dpestim.inspection import MechanismComparisonDisplay
    >>> from dpestim.local import plan
    >>> found = plan(n_users=100_000, n_categories=64, epsilon=1.0)
    >>> MechanismComparisonDisplay.from_plan(found).ax_.get_xlabel()
    'bits a user'
    """

    def __init__(self, *, mechanisms, errors, costs, against="bits", label=None):
        self.mechanisms = mechanisms
        self.errors = errors
        self.costs = costs
        self.against = against
        self.label = label

    @classmethod
    def from_plan(cls, plan, *, against="bits", label=None, ax=None, **kwargs):
        """Draw the rows of a plan.

        Parameters
        ----------
        plan : dpestim.local.SurveyPlan
        against : {"bits", "client_us", "server_s", "memory_mb"}, default="bits"
            The cost to draw.
        label : str or None, default=None
            For the legend; None: the number of users and epsilon.
        {ax}
        {options of points}

        Returns
        -------
        MechanismComparisonDisplay
        """
        pyplot(cls.__name__)
        check_has(plan, "plan", "rows", "n_users", "epsilon")
        _check_against(against)
        display = cls(
            mechanisms=[row.mechanism for row in plan.rows], errors=np.array([row.rmse for row in plan.rows]),
            costs=np.array([getattr(row, against) for row in plan.rows]), against=against,
            label=f"{plan.n_users:,} users, epsilon = {plan.epsilon:g}" if label is None else label,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_estimators(cls, estimators, *, column=0, against="bits", label=None, ax=None, **kwargs):
        """Draw fitted frequency estimators: the root mean square of a column's standard errors.

        Parameters
        ----------
        estimators : list of fitted frequency estimators
            Anything with `standard_errors_`, `randomizers_` and `n_users_`.
        {column}
        against : {"bits", "client_us", "server_s", "memory_mb"}, default="bits"
            The cost to draw.
        label : str or None, default=None
            For the legend; None: none.
        {ax}
        {options of points}

        Returns
        -------
        MechanismComparisonDisplay
        """
        pyplot(cls.__name__)
        _check_against(against)
        if not isinstance(estimators, list | tuple) or not len(estimators):
            raise ValueError("estimators must be a list of fitted frequency estimators")
        errors, costs = [], []
        for estimator in estimators:
            check_has(estimator, "estimator", "standard_errors_", "randomizers_", "n_users_")
            each = estimator.standard_errors_
            at, _ = column_of(estimator, column, len(each))
            errors.append(np.sqrt(np.square(each[at]).mean()))
            cost = cost_of(estimator.randomizers_[at], estimator.n_users_, len(each[at]))
            costs.append(getattr(cost, against))
        names = [type(estimator).__name__ for estimator in estimators]
        display = cls(mechanisms=names, errors=np.array(errors), costs=np.array(costs), against=against, label=label)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw a point for each mechanism, with its name; both axes are logarithmic.

        Parameters
        ----------
        {ax}
        {options of points}

        Returns
        -------
        MechanismComparisonDisplay
            This object.
        """
        _check_against(self.against)
        ax = self._open(ax)
        style = {"marker": "o", "linestyle": "none", "markersize": 4, "label": self.label, **kwargs}
        (self.points_,) = ax.plot(self.costs, self.errors, **style)
        self.names_ = [
            ax.annotate(plain(_short(name)), (cost, error), xytext=(4, 2), textcoords="offset points", fontsize="small")
            for name, cost, error in zip(self.mechanisms, self.costs, self.errors)
        ]
        ax.set(xscale="log", yscale="log")
        return self._close(xlabel=_COSTS[self.against], ylabel=_ERROR)


class EpsilonCurveDisplay(Display):
    """Errors against epsilon: what a stronger guarantee costs, mechanism by mechanism.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
    errors : dict of array-like of shape (n_epsilons,)
        Root mean square errors by name; NaN where a mechanism has no law.
    epsilon : float or None, default=None
        A budget to mark.
    label : str or None, default=None
        For the legend, before each name; None: the names alone.

    Attributes
    ----------
    {drawn on}
    lines_ : list of matplotlib Line2D
        One for each name.
    mark_ : matplotlib Line2D or None

    Examples
    --------
    >>> from dpestim.inspection import EpsilonCurveDisplay
    >>> from dpestim.local import plan
    >>> found = plan(n_users=100_000, n_categories=64, epsilon=1.0)
    >>> display = EpsilonCurveDisplay.from_plan(found, mechanisms=["GRRFrequencyEstimator", "SSFrequencyEstimator"])
    >>> display.ax_.get_legend_handles_labels()[1]
    ['GRR', 'SS']
    """

    def __init__(self, *, epsilons, errors, epsilon=None, label=None):
        self.epsilons = epsilons
        self.errors = errors
        self.epsilon = epsilon
        self.label = label

    @classmethod
    def from_plan(cls, plan, *, mechanisms=None, epsilons=None, label=None, ax=None, **kwargs):
        """Draw the errors that the mechanisms of a plan would have with other budgets, for the same users.

        Parameters
        ----------
        plan : dpestim.local.SurveyPlan
        mechanisms : list of str or None, default=None
            Names of those to draw; None: the five of the least error.
        epsilons : array-like or None, default=None
            The budgets; None: 13 of them, from an eighth of the plan's to 8 times that, at most 80.
        label : str or None, default=None
            For the legend, before each name.
        {ax}
        **kwargs
            For matplotlib's `plot` of the lines.

        Returns
        -------
        EpsilonCurveDisplay
        """
        pyplot(cls.__name__)
        check_has(plan, "plan", "rows", "errors_at", "epsilon")
        known = [row.mechanism for row in plan.rows]
        mechanisms = known[:5] if mechanisms is None else list(mechanisms)
        if not mechanisms or not set(mechanisms) <= set(known):
            raise ValueError(f"mechanisms must be names of the plan's rows: {known}")
        epsilons = _budgets(plan.epsilon) if epsilons is None else np.asarray(epsilons, np.float64)
        errors = plan.errors_at(epsilons.tolist())
        display = cls(epsilons=epsilons, errors={name: errors[name] for name in mechanisms}, epsilon=plan.epsilon,
                      label=label)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator, *, column=0, epsilons=None, label=None, ax=None, **kwargs):
        """Draw the errors that a fitted frequency estimator would have with other budgets, for as many users.

        Where all categories of the column are held equally often; its data are not looked at.

        Parameters
        ----------
        estimator : fitted frequency estimator
            Anything with `frequencies_`, `categories_`, `randomizer`, `n_users_` and `privacy_`.
        {column}
        epsilons : array-like or None, default=None
            Budgets of a whole row; None: 13 of them, from an eighth of the estimator's to 8 times that, at most 80.
        {label or name}
        {ax}
        **kwargs
            For matplotlib's `plot` of the line.

        Returns
        -------
        EpsilonCurveDisplay
        """
        pyplot(cls.__name__)
        check_has(estimator, "estimator", "frequencies_", "randomizer", "n_users_", "privacy_")
        at, _ = column_of(estimator, column, len(estimator.frequencies_))
        # of all columns together, whatever they protect under a relaxation
        now = float(sum(law.epsilon for law in estimator.randomizers_))
        epsilons = _budgets(now) if epsilons is None else np.asarray(epsilons, np.float64)
        twin, errors = clone(estimator).set_params(ledger=None), []
        if isinstance(twin.categories, str):
            twin.set_params(categories=list(estimator.categories_))
        for epsilon in epsilons.tolist():
            try:
                law = twin.set_params(epsilon=epsilon).randomizer(at)
            except ValueError:  # no law of so small, or so large, an epsilon
                errors.append(np.nan)
                continue
            even = np.full(law.n_categories, 1 / law.n_categories)
            errors.append(np.sqrt(np.mean(law.variance(estimator.n_users_, even))))
        if np.isnan(errors).all():
            raise ValueError("epsilons must hold at least one epsilon that the estimator accepts: take larger ones, up "
                             "to 80")
        label = name_and_promise(estimator) if label is None else label
        return cls(epsilons=epsilons, errors={"": np.array(errors)}, epsilon=now, label=label).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw a line for each name, and a dotted one at the budget to mark; both axes are logarithmic.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `plot` of the lines.

        Returns
        -------
        EpsilonCurveDisplay
            This object.
        """
        ax, self.lines_, self.mark_ = self._open(ax), [], None
        for name, errors in self.errors.items():
            label = " ".join(part for part in (self.label, _short(name)) if part)
            self.lines_ += ax.plot(self.epsilons, errors, **{"linewidth": 1.4, "label": label, **kwargs})
        if self.epsilon is not None:
            self.mark_ = ax.axvline(self.epsilon, color="0.6", linestyle=":", linewidth=1)
        ax.set(xscale="log", yscale="log")
        ax.xaxis.set_minor_formatter(lambda *_: "")  # (numbers between the powers of ten have no room)
        self._close(xlabel="epsilon", ylabel=_ERROR)
        ax.legend(frameon=False)
        return self


def _check_against(against):
    if not isinstance(against, str) or against not in _COSTS:
        raise ValueError(f"against must be one of {list(_COSTS)}, got {against!r}")


def _budgets(epsilon):
    return np.geomspace(epsilon / _REACH, min(80.0, epsilon * _REACH), _N_EPSILONS)


def _short(name):
    """Return the name of a class without what those of its kind share."""
    return name.removesuffix("FrequencyEstimator").removesuffix("Transformer")
