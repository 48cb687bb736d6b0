"""What a search will do, from parameters alone: candidates with their shares of the budget, and who pays for fits."""

import math
import numbers
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.model_selection.runs import LEAST_GAMMA, expected_runs, usual_gamma
from dpestim.model_selection.scores import NAMED, scorer_of
from dpestim.pipeline.budget import payers, set_shares
from dpestim.pipeline.private import quietly, refuse_in_strict
from dpestim.pipeline.report import report_on
from dpestim.pipeline.traversal import INDEPENDENT
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.records import record
from dpestim.rng import check_random_state

_SELECTIONS = ("papernot_steinke", "liu_talwar", "exponential")
#: Parameters of private steps that are the search's to set.
_OURS = ("epsilon", "ledger", "random_state")


class _ValidatedError(Exception):
    """Ends a rehearsal: the data were read, and nothing has been drawn."""


class _Rehearsal:
    """In place of a ledger: ends a fit where it would pay, which is after all checks and before all words."""

    def charge(self, guarantee, **entry):
        """End the rehearsal."""
        raise _ValidatedError


class Prepaid:
    """In place of the ledger of one run: the search has paid, and all charges of its fit together are within its share.

    Clones of steps share it, as what they cost adds up.
    """

    def __init__(self, epsilon, delta):
        self.epsilon, self.delta = epsilon, delta
        self.spent, self.is_trained, self.is_closed = PrivacyGuarantee(0), False, False

    def __deepcopy__(self, memo):
        return self

    def charge(self, guarantee, **entry):
        """Charge nothing; refuse what costs more than was planned, and everything once the run is over."""
        if self.is_closed:
            raise ValueError("ledger must be set again, because the search has paid for its own fits only: call "
                             "set_params(ledger=...)")
        # what scoring draws for rows set aside is never published: only a count, which is given noise of its own
        total = guarantee if self.is_trained else self.spent + guarantee
        real = total.to(Neighbours.SUBSTITUTION)
        if real.epsilon > self.epsilon or real.delta > self.delta:
            raise ValueError("estimator must charge at most what its privacy_ states before fit, and charged more: "
                             "correct privacy_ or the charge")
        self.spent = total


@record
class Plan:
    """What a search will do; from parameters alone."""

    candidates: list
    models: list  # unfitted, with their shares of epsilon and delta
    paths: list  # of each: the prefixes of the parameters of its private steps
    deltas: list  # of each
    scorer: object
    validation_fraction: Fraction
    epsilon: Fraction  # the total
    share: Fraction  # of a run
    gamma: Fraction | None
    eta: Fraction | None
    noise: object  # the law of the integers that are added to scores, or None
    guarantee: PrivacyGuarantee


def plan_of(search):
    """Return the plan of a search, or raise ValueError for a parameter that does not fit; no data are needed."""
    epsilon = canonical_epsilon(search.epsilon)
    if not isinstance(search.selection, str) or search.selection not in _SELECTIONS:
        raise ValueError(f"selection must be one of {list(_SELECTIONS)}")
    check_random_state(search.random_state)
    scorer = scorer_of(search.scoring, search.score_bounds)
    if not callable(search.scoring):
        _check_kind(search.scoring, search.estimator)
    aside = _exact("validation_fraction", search.validation_fraction, "above 0 and below 1", lambda v: 0 < v < 1)
    candidates = _candidates(search.param_distributions)
    gamma = eta = noise = None
    share = epsilon / len(candidates)
    if search.selection != "exponential":
        eta = _exact("eta", search.eta, "above -1 and at most 1", lambda v: -1 < v <= 1)
        eta = Fraction(1) if search.selection == "liu_talwar" else eta
        gamma = usual_gamma(len(candidates), eta) if search.gamma is None else _exact(
            "gamma", search.gamma, "in [0.0001, 1]", lambda v: LEAST_GAMMA <= v <= 1)
        if search.gamma is None and expected_runs(gamma, eta) < len(candidates):
            raise ValueError("eta must be larger, because on average there would be fewer runs than candidates: raise "
                             "eta, list fewer candidates, or declare gamma")
        share = epsilon / (2 + eta)
        noise = law_of_rate(share / scorer.sensitivity)  # (where integers are too small, it says so before the charge)
    prepared = [_prepare(search, candidate, share) for candidate in candidates]
    trainings = Fraction(1) if gamma is None else _trainings_each(gamma, eta, len(candidates))
    prepared, delta = _share_delta(prepared, trainings, search.trusted)
    deltas = [delta for _, _, delta in prepared]
    guarantee = PrivacyGuarantee(epsilon, min(delta, 1), "central", Neighbours.SUBSTITUTION,
                                 search.random_state is not None, _notes(len(candidates), gamma))
    return Plan(candidates, [model for model, _, _ in prepared], [paths for _, paths, _ in prepared], deltas, scorer,
                aside, epsilon, share, gamma, eta, noise, guarantee)


def _check_kind(name, estimator):
    """Raise ValueError for a score of another kind of model."""
    method, needs_classes = NAMED.get(name, ("predict", None))[0], not name.endswith("_error")
    if needs_classes != is_classifier(estimator):
        raise ValueError(f'scoring="{name}" needs a {"classifier" if needs_classes else "regressor"} as estimator: '
                         "declare another score, or a function and score_bounds")
    if not hasattr(estimator, method):
        raise ValueError(f'scoring="{name}" needs an estimator with {method}: take scoring="accuracy"')


def _model_of(search, candidate):
    """Return a candidate's model, unfitted, as its caller declared it."""
    try:
        copies = {name: clone(value, safe=False) for name, value in candidate.items()}  # (of steps, for example)
        model = clone(search.estimator).set_params(**copies)
    except (AttributeError, TypeError, ValueError):
        model = None
    if model is None:
        raise ValueError("param_distributions must name parameters of estimator, as get_params() does: a parameter of "
                         "a step has a name such as 'dplogisticregression__C'; estimator.get_params() lists all names")
    return model


def _silent(model):
    """Set `verbose` of a model and all of its steps to 0, and return it: lines would tell how many runs there are."""
    loud = {name: value for name, value in model.get_params(deep=True).items()
            if name.rpartition("__")[2] == "verbose" and isinstance(value, numbers.Integral) and value}
    return model.set_params(**{name: type(value)(0) for name, value in loud.items()}) if loud else model


def declared_ledger(search):
    """Return the ledger that private steps of the estimator or of a candidate bring, or None; several are an error."""
    candidates = _candidates(search.param_distributions)
    models = [search.estimator, *(_model_of(search, candidate) for candidate in candidates)]
    steps = [step for model in models for step in report_on(model).steps if step.privacy is not None]
    found = [ledger for ledger in (step.estimator._find_ledger() for step in steps) if ledger is not None]
    if any(ledger != found[0] for ledger in found):
        raise ValueError("ledger must be given to the search, because its steps have several ledgers")
    return found[0] if found else None


def _is_free(step):
    """Tell whether a step learns nothing and has no parameter that the search would set, such as a `DomainEncoder`."""
    return step.verdict == INDEPENDENT and step.privacy.is_nothing and not set(_OURS) & set(step.estimator.get_params())


def _refuse_workers(model):
    """Raise ValueError where workers of a container would enter in the ledger how often a model is run."""
    for name, part in model.get_params(deep=True).items():
        if isinstance(part, ColumnTransformer | FeatureUnion) and part.n_jobs not in (None, 1):
            raise ValueError(f"strict mode: {name} must have n_jobs=None in a search, because ledger entries of its "
                             "workers would show the secret number of runs")


def _prepare(search, candidate, share):
    """Return (a candidate's model with its share of epsilon, paths of its private steps, its delta)."""
    model = _silent(_model_of(search, candidate))
    report = report_on(model, trusted=search.trusted)
    if report.leaks:
        raise ValueError("estimator must not leak: " + " ".join(map(str, report.leaks)))
    refuse_in_strict(report, search._is_strict())
    if search._is_strict():
        _refuse_workers(model)
    steps = [step for step in report.steps if step.privacy is not None and not _is_free(step)]
    if not steps:
        raise ValueError("estimator must have a private step, such as dpestim.linear_model.DPLogisticRegression; where "
                         "nothing is private, take sklearn.model_selection.GridSearchCV")
    for step in steps:
        if missing := [name for name in _OURS if name not in step.estimator.get_params()]:
            raise ValueError(f"estimator must have the parameters {', '.join(_OURS)} in each private step, which the "
                             f"search sets; {step.name!r} has no {' and no '.join(missing)}: take another step there")
    if any(isinstance(step.estimator, MetaEstimatorMixin) for step in steps):
        raise ValueError("estimator must not contain another search: put all parameters into one param_distributions")
    paying = payers(report)
    for step in steps:  # (the search promises for one row replaced, whatever the relation of its block)
        if step.estimator.get_params(deep=False).get("neighbours", "") is None:
            step.estimator.set_params(neighbours="substitution")
    set_shares(paying, share, [canonical_epsilon(step.estimator.epsilon) for step in paying])
    promise = _promise_of(model, search.trusted)
    if promise.epsilon > share:
        raise ValueError("estimator must promise exactly the sum of the epsilons of its steps, with "
                         'neighbours="substitution": change the steps')
    return model, ["" if step.estimator is model else f"{step.name}__" for step in steps], Fraction(promise.delta)


def _promise_of(model, trusted):
    """Return what one training promises for one row replaced."""
    return report_on(model, trusted=trusted).privacy_.to(Neighbours.SUBSTITUTION)


def _trainings_each(gamma, eta, n_candidates):
    """Return how often a candidate is trained on average, rounded up."""
    return Fraction(expected_runs(gamma, eta)) * (1 + Fraction(1, 1 << 30)) / n_candidates


def _share_delta(prepared, trainings, trusted):
    """Return (candidates whose trainings together cost the largest delta that one declares, that delta).

    Each training gets the same part of its own delta; a step that promises more than its part is counted as it is.
    """
    most = max(delta for _, _, delta in prepared)
    if not most:
        return prepared, most
    part, out = min(Fraction(1), most / (trainings * sum(delta for _, _, delta in prepared))), []
    for model, paths, delta in prepared:
        for path in paths if delta else ():
            own = model.get_params().get(f"{path}delta")
            if own:
                model.set_params(**{f"{path}delta": _short(part * canonical_amount(own, "delta"))})
        out.append((model, paths, Fraction(_promise_of(model, trusted).delta)))
    return out, max(most, trainings * sum(delta for _, _, delta in out))


def _short(delta):
    """Return the largest number of six digits that is at most a delta, a float."""
    with localcontext(Context(prec=6, rounding=ROUND_FLOOR)):
        return float(Decimal(delta.numerator) / Decimal(delta.denominator))


def rehearsed(model, paths, share, delta, X, y):
    """Return a clone that has read the data up to where its last step would pay, or pass on what it says about them.

    What earlier private steps have drawn is thrown away with it: nothing is released.
    """
    trial = clone(model)
    set_all(trial, paths[:-1], ledger=Prepaid(share, delta), random_state=None)
    set_all(trial, paths[-1:], ledger=_Rehearsal(), random_state=None)
    try:
        quietly(lambda: trial.fit(X, y))
    except _ValidatedError:
        return trial
    raise ValueError("estimator must charge its ledger in fit, and charged nothing: call the ledger in fit, as "
                     "CentralModel does")


def set_all(model, paths, **params):
    """Set the same parameters of all private steps."""
    model.set_params(**{path + name: value for path in paths for name, value in params.items()})


def give_back(model, paths, unfitted, search, payer):
    """Let the ledger of the search, that of each step, or the one that paid, pay for later uses of a fitted model."""
    own = unfitted.get_params()
    bound = search._bound[0]
    usual = payer if bound is None else search.ledger
    fitted = {step.name: step.estimator for step in report_on(model).steps if step.privacy is not None}
    params = model.get_params()
    for path in paths:
        ledger = own[path + "ledger"] if search.ledger is None else search.ledger
        name = path.removesuffix("__")
        template = params[name] if path else model  # of which a ColumnTransformer fits a clone, where it has columns
        for estimator in (template, fitted.get(name, template)):
            estimator.set_params(ledger=usual if ledger is None else ledger)
            if bound is not None:
                estimator._bound = (bound, estimator._bound[1])


def _candidates(space):
    """Return the list of candidates, dicts, or raise ValueError."""
    try:
        candidates = list(ParameterGrid(space))
    except (TypeError, ValueError):
        candidates = []
    if not candidates:
        raise ValueError("param_distributions must be a dict of lists, or a list of such dicts, with at least one "
                         "candidate")
    if any(name.rpartition("__")[2] in _OURS for candidate in candidates for name in candidate):
        raise ValueError(f"param_distributions must not hold {', '.join(_OURS)}: the search sets them")
    return candidates


def _notes(n_candidates, gamma):
    notes = (f"The guarantee covers the choice among {n_candidates} candidates, and the model.",)
    return notes if gamma is None else (*notes, "The number of trainings and the running time are secret: do not "
                                                "publish them.")


def _exact(name, value, where, inside):
    """Return a number as the fraction that its shortest decimal form names."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)
    good = good and math.isfinite(value)
    if good:
        value = value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
    if not good or not inside(value):
        raise ValueError(f"{name} must be a number {where}")
    return value
