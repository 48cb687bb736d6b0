"""One budget for a whole pipeline: exact shares of epsilon and delta for its private steps."""

from fractions import Fraction

from sklearn.base import clone

from dpestim.pipeline.report import report_on
from dpestim.pipeline.traversal import promise_of
from dpestim.privacy.exact import canonical_amount, canonical_epsilon


def share_budget(pipeline, epsilon, *, delta=0, shares=None, trusted=()):
    """Return a clone of a pipeline whose private steps share one budget, exactly.

    Steps that learn nothing from values, such as an encoder of declared categories, get no share.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer, FeatureUnion or estimator
        It stays as it is.
    epsilon : float or Fraction
        Privacy budget of one fit of all of it, in (0, 80].
    delta : float, default=0
        Shared among the steps that take one, in [0, 1).
    shares : dict of str to float, default=None
        Weights of steps, above 0, by their names: those of inner steps after the names around them, separated by two
        underscores. A step that is not named has the weight 1; None: equal shares.
    trusted : list, tuple or set of str, default=()
        Names of row-wise steps that the caller declares safe, see `check_pipeline`.

    Returns
    -------
    pipeline, unfitted
        ``check_pipeline(...).privacy_`` has the epsilon that was asked for, and at most the delta.

    Raises
    ------
    ValueError
        Where nothing is private, a step leaks, a share names no private step, no step takes the delta or one needs it;
        the message names the step.

    Notes
    -----
    **Privacy.** Epsilons of steps add up, as each sees all rows (Dwork, Roth 2014, theorem 3.14): each gets epsilon
    times its weight over the sum of weights, as a fraction. No data are looked at. O(number of steps).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> from dpestim.pipeline import check_pipeline, share_budget
    >>> from dpestim.preprocessing import DPStandardScaler
    >>> steps = make_pipeline(DPStandardScaler(bounds=(0, 9)), DPLogisticRegression(data_norm=5.0, classes=[0, 1]))
    >>> shared = share_budget(steps, 1.0, shares={"dplogisticregression": 4})
    >>> [step.epsilon for _, step in shared.steps], check_pipeline(shared).privacy_.epsilon
    ([Fraction(1, 5), Fraction(4, 5)], Fraction(1, 1))
    """
    epsilon, delta = canonical_epsilon(epsilon), canonical_amount(delta, "delta")
    if not delta < 1:
        raise ValueError("delta must be a number in [0, 1)")
    shared = clone(pipeline)
    steps = payers(report_on(shared, trusted))
    if not steps:
        raise ValueError("pipeline must have at least one private step that learns from data: add one, or fit the "
                         "pipeline without a budget")
    named = {step.name for step in steps}
    shares = {} if shares is None else shares
    if not isinstance(shares, dict):
        raise ValueError("shares must be None, or a dict from the names of private steps to their weights")
    for name, weight in shares.items():
        if name not in named:
            raise ValueError("shares must name private steps that have an epsilon, which are "
                             f"{', '.join(sorted(named))}, got {name!r}")
        if not 0 < canonical_amount(weight, f"the share of {name}") < Fraction(10) ** 9:
            raise ValueError(f"the share of {name} must be a number above 0 and below 1e9")
    weights = [canonical_amount(shares.get(step.name, 1), "shares") for step in steps]
    set_shares(steps, epsilon, weights)
    takers = [(step, weight) for step, weight in zip(steps, weights) if "delta" in step.estimator.get_params()]
    if delta:
        set_shares([step for step, _ in takers], delta, [weight for _, weight in takers], "delta")
        unused = [step for step, _ in takers if promise_of(step.estimator).delta == 0]
        takers = [(step, weight) for step, weight in takers if step not in unused]
        if not takers:
            raise ValueError("delta must be 0, because no step has a delta")
        set_shares([step for step, _ in takers], delta, [weight for _, weight in takers], "delta")
        takers = [(step, 0) for step in unused]
    for step, _ in takers:
        step.estimator.set_params(delta=0)
    report = report_on(shared, trusted)
    if report.leaks:
        needy = [] if delta else [step.name for step, _ in takers if _needs_delta(step.estimator)]
        if needy:
            raise ValueError(f"{' and '.join(needy)} needs a delta: pass delta= to share_budget")
        raise ValueError("pipeline must not leak: " + " ".join(map(str, report.leaks)))
    if report.privacy_.epsilon > epsilon:
        raise ValueError("steps must have the same neighbours, so that their epsilons add up: put steps with "
                         'neighbours="add_remove" and with "substitution" into separate pipelines')
    return shared


def payers(report):
    """Return the private steps of a report that cost something, or would, were all declared."""
    return [step for step in report.steps if step.privacy is not None and not step.privacy.is_nothing]


def _needs_delta(estimator):
    """Tell whether a step promises nothing for want of a delta alone."""
    some = clone(estimator).set_params(delta=1e-9)
    return not promise_of(estimator).is_finite and promise_of(some).is_finite


def set_shares(steps, total, weights, name="epsilon"):
    """Set a parameter of steps to their parts of a total, exactly: fractions that add up to it."""
    for step, weight in zip(steps, weights):
        step.estimator.set_params(**{name: total * weight / sum(weights)})
