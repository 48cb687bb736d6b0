"""What a pipeline does, step by step, and what one fit of it promises."""

import math
from dataclasses import replace

from sklearn.base import clone

from dpestim.pipeline.traversal import LEAKING, Walk, names_of
from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table


class PipelineReport(Table):
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

    _plotted = ("epsilon", None, None)

    @property
    def privacy(self):
        """The same as `privacy_`, under the name that all results have."""
        return self.privacy_

    def __str__(self):
        raw = ("Raw values leave the pipeline: do not publish its output." if self._transforms else
               "Predictions for private rows are not private.")
        return "\n".join([*map(str, self.steps), *([raw] if self.ends_raw else []), f"One fit: {self.privacy_}"])

    __repr__ = __str__

    def _head(self):
        return "step", "estimator", "verdict", "reason", "instead", "epsilon", "delta"

    def _rows(self):
        for step in self.steps:
            spent = (None, None) if step.privacy is None else (step.privacy.epsilon, step.privacy.delta)
            yield step.name, step.kind, step.verdict, step.reason, step.instead, *spent

    def _remarks(self):
        return (f"One fit: {self.privacy_}",)


def check_pipeline(pipeline, *, trusted=(), sparse_rows=False):
    """Check each step of a pipeline: it is private, learns nothing, is post-processing, or leaks.

    The check reads parameters only: it costs nothing, and needs neither data nor `fit`. An estimator that dpestim does
    not know counts as one that learns from values, even if it contains private steps.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer, FeatureUnion, search or estimator
        Fitted or not.
    trusted : list, tuple or set of str, default=()
        Names of steps that treat each row separately and learn nothing from values: a `FunctionTransformer` with a
        user-defined function, or an estimator of another package. dpestim cannot verify these steps.
    sparse_rows : bool, default=False
        Whether rows come as a sparse matrix: columns that a `ColumnTransformer` passes through are sparse, too.

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
    the raw targets y (steps of other packages declare this by their tags). A step that learns from raw values before or
    beside a private step has no guarantee, so that the whole pipeline has none. O(number of steps).

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
    return report_on(clone(pipeline, safe=False), trusted, sparse_rows)


def report_on(pipeline, trusted=(), sparse_rows=False):
    """Return the report on a pipeline as it stands: what is fitted is asked what it has released."""
    named = names_of(trusted)
    walk = Walk(named, sparse_rows)
    ends_raw = walk.follow("", pipeline, True)
    if named - walk.met:
        raise ValueError(f"trusted must name steps of the pipeline, and there is no step {min(named - walk.met)!r}")
    return PipelineReport(walk.steps, walk.passes_raw, ends_raw, hasattr(pipeline, "transform"))
