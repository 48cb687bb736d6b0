"""The walk: follows the data through nested steps, by their parameters only."""

import math

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline

from dpestim.base import PrivateEstimator
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.pipeline.step_rules import INSTEAD, LEARNS_NOTHING, looks_at_targets, stacks_by_count
from dpestim.privacy import PrivacyGuarantee
from dpestim.records import record

#: What a step can be; "raw" is no step, but raw values that are passed on.
PRIVATE, INDEPENDENT, AFTERWARDS, LEAKING = "private", "data-independent", "post-processing", "leaking"


@record
class Step:
    """What one step of a pipeline does.

    Attributes
    ----------
    name : str
        As in the pipeline; those of inner steps after the names around them, separated by two underscores.
    kind : str
        The class.
    verdict : {"private", "data-independent", "post-processing", "leaking"}
    reason : str
        A sentence.
    instead : str
        What to use in place of a leaking step, where that is known.
    privacy : PrivacyGuarantee or None
        What one fit of a private step promises.
    estimator : object
    """

    name: str
    kind: str
    verdict: str
    reason: str
    instead: str
    privacy: PrivacyGuarantee | None
    estimator: object

    def __str__(self):
        instead = f" Instead: {self.instead}." if self.instead else ""
        return f"{self.name} ({self.kind}): {self.verdict}. {self.reason}{instead}"


def names_of(trusted):
    """Return the names of trusted steps as a set, or raise ValueError."""
    if not isinstance(trusted, list | tuple | set | frozenset) or not all(
            isinstance(name, str) and name for name in trusted):
        raise ValueError("trusted must be a list, tuple or set of the names of steps")
    return frozenset(trusted)


class Walk:
    """Follows the data through nested steps."""

    def __init__(self, trusted, sparse_rows=False):
        self.trusted, self.met, self.steps, self.passes_raw = trusted, set(), [], []
        self._sparse_rows = sparse_rows

    def follow(self, name, step, raw):
        """Follow the data through a step; `raw`: whether raw values reach it. Returns whether raw values leave it."""
        self.met.add(name)
        if isinstance(step, PrivateEstimator):
            return self._private(name, step, raw)
        if step is None or isinstance(step, str):  # "passthrough" or "drop"
            return raw and step != "drop"
        if name in self.trusted:
            self._add(name, step, INDEPENDENT if raw else AFTERWARDS, "Trusted: the caller declared that this step "
                                                                      "treats each row separately.")
            return raw
        if type(step).__module__.startswith("sklearn.model_selection") and hasattr(step, "refit"):
            return self._search(name, step, raw)
        vouched = "_caller_vouches" in vars(type(step))  # (for `PrivatePipeline`, but no sub-class of it)
        if type(step) is Pipeline or vouched:
            if vouched:
                self.trusted |= {_within(name, inner) for inner in names_of(step.trusted)}
            if step.memory is not None:
                self._add(name, step, LEAKING, "Its memory writes raw values to disk, and repeats releases without a "
                                               "charge.", "memory=None")
            for inner, part in step.steps:
                raw = self.follow(_within(name, inner), part, raw)
            return raw
        if type(step) in (ColumnTransformer, FeatureUnion):
            return self._side_by_side(name, step, raw)
        return self._plain(name, step, raw)

    def _private(self, name, step, raw):
        privacy = promise_of(step)
        adds_noise = isinstance(step, AdditiveMechanism)  # to answers, at every transform; what comes out is released
        if privacy.is_nothing:  # (all that it would learn was declared)
            self._add(name, step, INDEPENDENT if raw else AFTERWARDS, "Learns nothing from values.", privacy=privacy)
        elif privacy.is_finite or privacy.relaxation is not None:
            cost = f"Costs {_amount(privacy)} a {'transform' if adds_noise else 'fit'}."
            self._add(name, step, PRIVATE, cost, privacy=privacy)
        else:
            self._add(name, step, LEAKING, " ".join(privacy.notes), "", privacy)
        if raw and privacy.model != "central" and getattr(step, "remainder", "drop") == "passthrough":
            self.passes_raw.append(("remainder", name or type(step).__name__))  # (columns that nobody randomised)
            return True
        return raw and privacy.model == "central" and not adds_noise

    def _side_by_side(self, name, step, raw):
        """Follow parts that all see the same data: one may let raw values through."""
        parts = getattr(step, "transformers_", None) or getattr(step, "transformer_list", None) or [
            *step.transformers, ("remainder", step.remainder)]
        if raw and type(step) is ColumnTransformer and stacks_by_count(step, self._sparse_rows):
            self._add(name, step, LEAKING, "Counts non-zero raw values exactly, to choose between a sparse and a dense "
                                           "matrix.", INSTEAD["ColumnTransformer"])
        for part, _, columns in getattr(step, "transformers", ()):
            if raw and callable(columns) and not isinstance(columns, make_column_selector):
                self._add(_within(name, part), columns, LEAKING, "Chooses columns by a function of raw values.",
                          "names of columns, or make_column_selector")
        left = [self.follow(_within(name, part[0]), part[1], raw) for part in parts]
        for part, leaves in zip(parts, left):
            if leaves and raw and len(parts) > 1 and not isinstance(part[1], PrivateEstimator):
                self.passes_raw.append((part[0], name or type(step).__name__))
        return any(left)

    def _search(self, name, search, raw):
        inner = getattr(search, "best_estimator_", search.estimator)
        fits, cost = _cost_of_search(search)
        self._add(name or "search", search, LEAKING,
                  f"Compares {fits} with raw data exactly, and chooses by these scores{cost}.",
                  "dpestim.model_selection.PrivateSearchCV, or choose parameters on public data")
        return self.follow(_within(name, "estimator"), inner, raw)

    def _plain(self, name, step, raw):
        kind = type(step).__name__
        own = type(step).__module__.startswith("sklearn.")
        if own and kind in LEARNS_NOTHING and LEARNS_NOTHING[kind](step):
            self._add(name, step, INDEPENDENT if raw else AFTERWARDS, "Learns nothing from values.")
        elif raw:
            self._add(name, step, LEAKING, "Learns from raw values, without any guarantee.", INSTEAD.get(kind, ""))
        elif is_classifier(step) or is_regressor(step) or looks_at_targets(step):
            self._add(name, step, LEAKING, "Learns from private results and from the raw targets y.",
                      "make y private too, or take a private model")
        else:
            self._add(name, step, AFTERWARDS, "Learns from private results only.")
        return raw

    def _add(self, name, step, verdict, reason, instead="", privacy=None):
        kind = type(step).__name__
        self.steps.append(Step(name or kind, kind, verdict, reason, instead, privacy, step))


def _privacy_of(step):
    try:
        return step.privacy_
    except NotFittedError:  # (which is an AttributeError, too)
        raise
    except AttributeError:
        return step._promise()


def promise_of(step):
    """Return what a fit or release of a private estimator promises, before or after it; infinite where undeclared."""
    try:
        return _privacy_of(step)
    except NotFittedError as error:
        return PrivacyGuarantee(math.inf, notes=(f"Learns undeclared parameters from raw values ({error}).",))
    except ValueError as error:
        return PrivacyGuarantee(math.inf, notes=(f"Has no guarantee with these parameters: {error}.",))


def _within(name, inner):
    return f"{name}__{inner}" if name else inner


def _amount(privacy):
    epsilon = privacy.epsilon if privacy.is_finite else privacy.relaxed_epsilon
    delta = f" and delta {float(privacy.delta):g}" if privacy.delta else ""
    relaxed = "" if privacy.is_finite else f" under the relaxation {privacy.relaxation}"
    return f"epsilon {float(epsilon):g}{delta}{relaxed}"


def _cost_of_search(search):
    """Return (how many fits, what they cost in words, where that is known)."""
    grid = getattr(search, "param_grid", None)
    candidates = list(ParameterGrid(grid)) if grid is not None else getattr(search, "n_iter", None)
    try:
        folds = getattr(search, "n_splits_", None) or check_cv(search.cv).get_n_splits()
    except (TypeError, ValueError):  # it depends on the data
        folds = None
    if candidates is None or folds is None:
        return "many fits", ""
    if isinstance(candidates, int):
        return f"{candidates * folds} further fits", ""
    total = PrivacyGuarantee(0)
    for candidate in candidates:
        steps = Walk(frozenset())
        steps.follow("", clone(search.estimator).set_params(**candidate), True)
        for step in steps.steps:
            total = sum([step.privacy] * folds, total) if step.privacy is not None else total
    cost = "" if total.is_nothing or not total.is_finite else f"; they cost epsilon {float(total.epsilon):g} besides"
    return f"{len(candidates) * folds} further fits", cost
