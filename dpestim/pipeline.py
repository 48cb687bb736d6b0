"""Pipelines: what every step does with data, and a pipeline that refuses to fit where one would leak.

    check_pipeline    which step is private, learns nothing, comes afterwards, or leaks; before or after `fit`
    PrivatePipeline   a `sklearn.pipeline.Pipeline` that refuses to fit where a step would leak

One walk, which looks at parameters only; `dpestim.inspection.privacy_card` takes it too.
"""

import inspect
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline

from dpestim.base import PrivateEstimator
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.inputs.quiet import restated
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.config import get_config

__all__ = ["PipelineReport", "PrivatePipeline", "check_pipeline"]

#: What a step can be; "raw" is no step, but raw values that are passed on.
PRIVATE, INDEPENDENT, AFTERWARDS, LEAKING = "private", "data-independent", "post-processing", "leaking"

_BOUNDS = "declare bounds: FunctionTransformer with a NumPy function, or the bounds of the private step that follows"
_CHOOSE = "choose columns without looking at the data"
_PROJECT = "GaussianRandomProjection with a number of components"
#: What to use instead of an estimator of scikit-learn, by its name.
_INSTEAD = {
    **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "QuantileTransformer",
                     "PowerTransformer"), _BOUNDS),
    **dict.fromkeys(("OneHotEncoder", "OrdinalEncoder"), "declare categories, without min_frequency or max_categories"),
    **dict.fromkeys(("SelectKBest", "SelectPercentile", "SelectFromModel", "VarianceThreshold", "RFE", "RFECV",
                     "SequentialFeatureSelector"), _CHOOSE),
    **dict.fromkeys(("PCA", "TruncatedSVD", "IncrementalPCA", "KernelPCA", "NMF", "FastICA"), _PROJECT),
    **dict.fromkeys(("LogisticRegression", "SGDClassifier", "LinearSVC", "LogisticRegressionCV", "RidgeClassifier"),
                    "dpestim.linear_model.DPLogisticRegression"),
    "SimpleImputer": 'strategy="constant", a fill_value and keep_empty_features=True',
    "KBinsDiscretizer": "FunctionTransformer(np.digitize, kw_args={'bins': public edges}), which must be trusted",
    "SplineTransformer": "knots as an array of public numbers",
    "RBFSampler": "a number as gamma",
    "FunctionTransformer": "a NumPy function of single numbers (a ufunc), or name the step in trusted",
    "GaussianRandomProjection": "a number as n_components",
    "SparseRandomProjection": "numbers as n_components and density",
    "MissingIndicator": 'features="all"',
}


def _is_row_wise(function):
    """Tell whether it is a function of single numbers of NumPy or SciPy: no other can be told from its parameters."""
    return function is None or (
        isinstance(function, np.ufunc) and function.signature is None and (function.nin, function.nout) == (1, 1)
        and any(getattr(module, function.__name__, None) is function for module in (np, special)))


def _declared(step):
    return not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None


#: When an estimator of scikit-learn learns nothing from values: names and numbers of columns at most.
_LEARNS_NOTHING = {
    **dict.fromkeys(("Normalizer", "Binarizer", "HashingVectorizer", "FeatureHasher", "AdditiveChi2Sampler",
                     "PolynomialFeatures", "SkewedChi2Sampler", "PolynomialCountSketch"), lambda step: True),
    "FunctionTransformer": lambda step: not (step.kw_args or step.inv_kw_args) and all(
        map(_is_row_wise, (step.func, step.inverse_func))),
    "OneHotEncoder": _declared,
    "OrdinalEncoder": _declared,
    "SimpleImputer": lambda step: step.strategy == "constant" and step.keep_empty_features and not step.add_indicator,
    "MissingIndicator": lambda step: step.features == "all",
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
    "GaussianRandomProjection": lambda step: not isinstance(step.n_components, str),
    "SparseRandomProjection": lambda step: not isinstance(step.n_components, str) and step.density != "auto",
}


@dataclass(frozen=True)
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


class PipelineReport:
    """What `check_pipeline` found.

    Attributes
    ----------
    steps : list of Step
        In the order of the data.
    passes_raw : list of str
        Names of what hands raw values on beside other parts, as a remainder does.
    ends_raw : bool
        Whether the output for a row shows what is raw: values that `transform` lets through, or a prediction.
    """

    def __init__(self, steps, passes_raw, ends_raw, transforms):
        self.steps, self.passes_raw, self.ends_raw, self._transforms = steps, passes_raw, ends_raw, transforms

    @property
    def leaks(self):
        """The leaking steps."""
        return [step for step in self.steps if step.verdict == LEAKING]

    @property
    def is_private(self):
        """Whether something is private, and nothing leaks."""
        return not self.leaks and self.privacy_.is_finite and not self.privacy_.is_nothing

    @property
    def privacy_(self):
        """What one fit promises: the sum of the private steps; no guarantee where a step leaks.

        A pipeline in which nothing is private and nothing leaks learns nothing: its guarantee is that nothing was
        released.
        """
        total = sum((step.privacy for step in self.steps if step.privacy is not None), PrivacyGuarantee(0))
        if not self.leaks:
            return total
        names = ", ".join(step.name for step in self.leaks)
        return replace(total, epsilon=math.inf, delta=0, relaxation=None, relaxed_epsilon=None,
                       notes=(f"Learned from raw values without any guarantee: {names}.",))

    def __str__(self):
        raw = ("Raw values leave the pipeline: do not publish its output." if self._transforms else
               "Predictions are functions of the rows that they are for: those for private rows are not private.")
        return "\n".join([*map(str, self.steps), *([raw] if self.ends_raw else []), f"One fit: {self.privacy_}"])

    __repr__ = __str__


def check_pipeline(pipeline, *, trusted=()):
    """Tell for every step of a pipeline whether it is private, learns nothing, comes afterwards, or leaks.

    Only parameters are looked at, also of what is fitted: it costs nothing, and needs neither data nor `fit`. An
    estimator that is not known counts as one that learns from values, which is what most do, even if steps of its own
    are private.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer, FeatureUnion, search or estimator
        Fitted or not.
    trusted : list, tuple or set of str, default=()
        Names of steps that treat each row by itself and learn nothing from values, for which the caller vouches: a
        `FunctionTransformer` of an own function, or an estimator that is not scikit-learn's.

    Returns
    -------
    PipelineReport
        ``print(report)`` says it all; `leaks`, `privacy_`.

    Raises
    ------
    ValueError
        Where trusted is no collection of str, or names no step.

    Notes
    -----
    **Privacy.** A private step costs what its ``privacy_`` says, once for each fit; costs of steps add up, also side by
    side. What follows a private step is post-processing (Dwork, Roth 2014, proposition 2.1), unless it also learns from
    targets y, which no step has made private (steps of other packages say that they do by their tags). Whatever learned
    from raw values before or beside a private step has no guarantee, and so has not the whole. O(number of steps).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dpestim.pipeline import check_pipeline
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> report = check_pipeline(make_pipeline(StandardScaler(), DPLogisticRegression(data_norm=1.0, classes=[0, 1])))
    >>> [(step.name, step.verdict) for step in report.steps]
    [('standardscaler', 'leaking'), ('dplogisticregression', 'private')]
    >>> report.privacy_.epsilon
    inf
    """
    return report_on(clone(pipeline, safe=False), trusted)


def report_on(pipeline, trusted=()):
    """Return the report on a pipeline as it stands: what is fitted is asked what it has released."""
    named = _names(trusted)
    walk = _Walk(named)
    ends_raw = walk.follow("", pipeline, True)
    if named - walk.met:
        raise ValueError(f"trusted must name steps of the pipeline: there is no {min(named - walk.met)!r}")
    return PipelineReport(walk.steps, walk.passes_raw, ends_raw, hasattr(pipeline, "transform"))


def _names(trusted):
    if not isinstance(trusted, list | tuple | set | frozenset) or not all(
            isinstance(name, str) and name for name in trusted):
        raise ValueError("trusted must be a list, tuple or set of the names of steps")
    return frozenset(trusted)


def refuse_in_strict(report, strict=False):
    """Raise ValueError in strict mode for steps that are not private: what they raise depends on values.

    Strict mode is that of the block, of whoever asks, or of any private step. "passthrough" and "drop" are no steps.
    """
    private = [step.estimator for step in report.steps if step.privacy is not None]
    if strict or get_config()["strict"] or any(step._is_strict() for step in private):
        foreign = [step.name for step in report.steps if step.privacy is None]
        if foreign:
            raise ValueError("strict mode: steps must all be private estimators, as others raise what depends on "
                             f"values; these are not: {', '.join(foreign)}")


def quietly(action, around=None):
    """Do something with steps: what steps of other packages raise is told without the values that it may show."""
    return restated(action, (PrivateEstimator, PrivatePipeline), around)


class _Walk:
    """Follows the data through nested steps."""

    def __init__(self, trusted):
        self.trusted, self.met, self.steps, self.passes_raw = trusted, set(), [], []

    def follow(self, name, step, raw):
        """Follow the data through a step; `raw`: whether raw values reach it. Returns whether raw values leave it."""
        self.met.add(name)
        if isinstance(step, PrivateEstimator):
            return self._private(name, step, raw)
        if step is None or isinstance(step, str):  # "passthrough" or "drop"
            return raw and step != "drop"
        if name in self.trusted:
            self._add(name, step, INDEPENDENT if raw else AFTERWARDS, "Trusted: the caller vouches for it.")
            return raw
        if type(step).__module__.startswith("sklearn.model_selection") and hasattr(step, "refit"):
            return self._search(name, step, raw)
        if type(step) in (Pipeline, PrivatePipeline):
            if type(step) is PrivatePipeline:  # for whose steps its own caller vouches
                self.trusted |= {_within(name, inner) for inner in _names(step.trusted)}
            if step.memory is not None:
                self._add(name, step, LEAKING, "Its memory writes raw values to disk, and repeats releases that nobody "
                          "pays for.", "memory=None")
            for inner, part in step.steps:
                raw = self.follow(_within(name, inner), part, raw)
            return raw
        if type(step) in (ColumnTransformer, FeatureUnion):
            return self._side_by_side(name, step, raw)
        return self._plain(name, step, raw)

    def _private(self, name, step, raw):
        privacy = promise_of(step)
        adds_noise = isinstance(step, AdditiveMechanism)  # to answers, at every transform; what comes out is released
        if privacy.is_finite or privacy.relaxation is not None:
            cost = f"Costs {_amount(privacy)} a {'transform' if adds_noise else 'fit'}."
            self._add(name, step, PRIVATE, cost, privacy=privacy)
        else:
            self._add(name, step, LEAKING, " ".join(privacy.notes), "declare it", privacy)
        return raw and privacy.model == "central" and not adds_noise

    def _side_by_side(self, name, step, raw):
        """Follow parts that all see the same data: one may let raw values through."""
        parts = getattr(step, "transformers_", None) or getattr(step, "transformer_list", None) or [
            *step.transformers, ("remainder", step.remainder)]
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
                  f"Its scores compare {fits} with raw data, exactly, and choose by them{cost}.",
                  "dpestim.model_selection.PrivateSearchCV, or choose parameters on public data")
        return self.follow(_within(name, "estimator"), inner, raw)

    def _plain(self, name, step, raw):
        kind = type(step).__name__
        own = type(step).__module__.startswith("sklearn.")
        if own and kind in _LEARNS_NOTHING and _LEARNS_NOTHING[kind](step):
            self._add(name, step, INDEPENDENT if raw else AFTERWARDS, "Learns nothing from values.")
        elif raw:
            self._add(name, step, LEAKING, "Learns from raw values, without any guarantee.", _INSTEAD.get(kind, ""))
        elif is_classifier(step) or is_regressor(step) or _looks_at_targets(step):
            self._add(name, step, LEAKING, "Learns from what is private, but also from targets y, which are raw.",
                      "make y private too, or take a private model")
        else:
            self._add(name, step, AFTERWARDS, "Learns from what is private already.")
        return raw

    def _add(self, name, step, verdict, reason, instead="", privacy=None):
        kind = type(step).__name__
        self.steps.append(Step(name or kind, kind, verdict, reason, instead, privacy, step))


def promise_of(step):
    """Return what a fit or release of a private estimator promises, before or after it; infinite where undeclared."""
    try:
        return step.privacy_
    except NotFittedError as error:
        return PrivacyGuarantee(math.inf, notes=(f"It would learn from raw values what must be declared ({error}).",))
    except ValueError as error:
        return PrivacyGuarantee(math.inf, notes=(f"It promises nothing as it stands: {error}.",))
    except AttributeError:
        return step._promise()


def _within(name, inner):
    return f"{name}__{inner}" if name else inner


def _amount(privacy):
    epsilon = privacy.epsilon if privacy.is_finite else privacy.relaxed_epsilon
    delta = f" and delta {float(privacy.delta):g}" if privacy.delta else ""
    relaxed = "" if privacy.is_finite else f" under the relaxation {privacy.relaxation}"
    return f"epsilon {float(epsilon):g}{delta}{relaxed}"


def _looks_at_targets(step):
    """Tell whether a transformer uses y: by its tags, its signature, or because it selects features."""
    tags = getattr(step, "__sklearn_tags__", None)
    y = inspect.signature(step.fit).parameters.get("y") if hasattr(step, "fit") else None
    return (
        (tags is not None and tags().target_tags.required)
        or (y is not None and y.default is inspect.Parameter.empty)
        or (type(step).__module__.startswith("sklearn.feature_selection")
            and type(step).__name__ != "VarianceThreshold")
    )


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
        steps = _Walk(frozenset())
        steps.follow("", clone(search.estimator).set_params(**candidate), True)
        for step in steps.steps:
            total = sum([step.privacy] * folds, total) if step.privacy is not None else total
    cost = "" if total.is_nothing or not total.is_finite else f"; they cost epsilon {float(total.epsilon):g} besides"
    return f"{len(candidates) * folds} further fits", cost


class PrivatePipeline(Pipeline):
    """A pipeline that refuses to fit where a step would leak.

    Before every fit `check_pipeline` looks at the steps; a leaking one is a ValueError that names it and says what to
    use instead, before anything is learned or charged. What steps of other packages raise in a fit may show values, and
    is told without its message. In strict mode (`dpestim.config_context`) all steps must be private estimators.

    **Privacy.** The sum of what its private steps promise, under their neighbouring relation, whoever they say must be
    trusted; no other step learns from values that are not private already.

    **Complexity.** That of its steps.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in `sklearn.pipeline.Pipeline`; at least one must be private.
    trusted : list, tuple or set of str, default=()
        Names of steps for which the caller vouches, see `check_pipeline`.
    verbose : bool, default=False

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        What one fit promises; known before it.
    named_steps : Bunch

    Raises
    ------
    ValueError
        In `fit`, where a step leaks, or nothing is private; where a step of another package raises anything; and in
        strict mode for a step that is no private estimator.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer
    >>> from dpestim.pipeline import PrivatePipeline
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> model = DPLogisticRegression(0.5, data_norm=1.0, classes=[0, 1])
    >>> PrivatePipeline([("norm", Normalizer()), ("model", model)]).privacy_.epsilon
    Fraction(1, 2)
    """

    def __init__(self, steps, *, trusted=(), verbose=False):
        super().__init__(steps, verbose=verbose)
        self.trusted = trusted

    @property
    def privacy_(self):
        """What one fit promises."""
        return check_pipeline(self, trusted=self.trusted).privacy_

    def fit(self, X, y=None, **params):
        """Fit all steps in turn, as `Pipeline.fit` does, unless one leaks."""
        self._refuse_leaks()
        return quietly(lambda: super(PrivatePipeline, self).fit(X, y, **params), self)

    def fit_transform(self, X, y=None, **params):
        """Fit and transform, as `Pipeline.fit_transform` does, unless a step leaks."""
        self._refuse_leaks()
        return quietly(lambda: super(PrivatePipeline, self).fit_transform(X, y, **params), self)

    def fit_predict(self, X, y=None, **params):
        """Fit and predict, as `Pipeline.fit_predict` does, unless a step leaks."""
        self._refuse_leaks()
        return quietly(lambda: super(PrivatePipeline, self).fit_predict(X, y, **params), self)

    def __getitem__(self, ind):
        """Return a step, or a part of the pipeline as a `Pipeline`, which promises nothing."""
        return Pipeline(self.steps[ind], verbose=self.verbose) if isinstance(ind, slice) else super().__getitem__(ind)

    def _refuse_leaks(self):
        if self.memory is not None:  # (no parameter: somebody set it)
            raise ValueError("memory must be None: it writes raw values to disk, and repeats releases without a charge")
        report = check_pipeline(self, trusted=self.trusted)
        if report.leaks:
            raise ValueError("steps must not leak: " + " ".join(map(str, report.leaks)))
        if not report.is_private:
            raise ValueError("steps must have a private one among them: nothing here protects anybody")
        refuse_in_strict(report)
