"""A pipeline that refuses to fit where a step would leak, and what strict mode wants of steps."""

import contextlib

from sklearn.pipeline import Pipeline

from dpestim.base import BoundRepr, PrivateEstimator
from dpestim.inputs import is_sparse
from dpestim.inputs.safe_errors import restated
from dpestim.pipeline.report import check_pipeline
from dpestim.privacy.config import get_config


def refuse_in_strict(report, strict=False):
    """Raise ValueError in strict mode for steps that are not private: what they raise depends on values.

    Strict mode is that of the block, of whoever asks, or of any private step. "passthrough" and "drop" are no steps.
    """
    private = [step.estimator for step in report.steps if step.privacy is not None]
    if strict or get_config()["strict"] or any(step._is_strict() for step in private):
        foreign = [step.name for step in report.steps if step.privacy is None]
        if foreign:
            raise ValueError("strict mode: all steps must be private estimators, because errors of other steps may "
                             f"depend on values. Replace or remove {', '.join(foreign)}")


def quietly(action, around=None):
    """Do something with steps: what steps of other packages raise is told without the values that it may show."""
    return restated(action, (PrivateEstimator, PrivatePipeline), around)


class PrivatePipeline(Pipeline):
    """A pipeline that refuses to fit where a step would leak.

    Before every fit `check_pipeline` looks at the steps; a leaking one is a ValueError that names it and says what to
    use instead, before anything is learned or charged. So are parameters and targets that a step does not take, and a
    total above what is left in a ledger: a plain `Pipeline` charges its first steps, and then raises. The total is set
    aside while the fit runs (`dpestim.accounting.Ledger.reserve`), so that nobody else spends it in between. Errors of
    steps of other packages may show values and are reported without their messages. In strict mode
    (`dpestim.config_context`) all steps must be private estimators.

    **Privacy.** The sum of the guarantees of its private steps, under their neighbouring relation and trust model; no
    other step learns from raw values.

    **Complexity.** That of its steps.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in `sklearn.pipeline.Pipeline`; at least one must be private.
    trusted : list, tuple or set of str, default=()
        Names of row-wise steps that the caller declares safe, see `check_pipeline`.
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

    #: The walk goes inside, and trusts the steps for which the caller vouches.
    _caller_vouches = True
    __repr__ = BoundRepr()

    def __init__(self, steps, *, trusted=(), verbose=False):
        super().__init__(steps, verbose=verbose)
        self.trusted = trusted

    @property
    def privacy_(self):
        """What one fit promises."""
        return check_pipeline(self, trusted=self.trusted).privacy_

    def fit(self, X, y=None, **params):
        """Fit all steps in turn, as `Pipeline.fit` does, unless one leaks."""
        with self._reserved(X, y):
            return quietly(lambda: super(PrivatePipeline, self).fit(X, y, **params), self)

    def fit_transform(self, X, y=None, **params):
        """Fit and transform, as `Pipeline.fit_transform` does, unless a step leaks."""
        with self._reserved(X, y):
            return quietly(lambda: super(PrivatePipeline, self).fit_transform(X, y, **params), self)

    def fit_predict(self, X, y=None, **params):
        """Fit and predict, as `Pipeline.fit_predict` does, unless a step leaks."""
        with self._reserved(X, y):
            return quietly(lambda: super(PrivatePipeline, self).fit_predict(X, y, **params), self)

    def __getitem__(self, ind):
        """Return a step, or a part of the pipeline as a `Pipeline`, which promises nothing."""
        return Pipeline(self.steps[ind], verbose=self.verbose) if isinstance(ind, slice) else super().__getitem__(ind)

    @contextlib.contextmanager
    def _reserved(self, X, y):
        """Refuse, before the first step is charged, what a later one would refuse; set aside what all of them cost.

        Steps that leak, parameters and targets that a step does not take, and a total above what is left in a ledger.
        """
        report = self._refuse_leaks(X)
        owed = []  # (a list, as handles of ledgers need not be hashable)
        for step in report.steps:
            if step.privacy is None:
                continue
            step.estimator._refuse_ahead(y, _count_rows(X, y))
            ledger = None if step.privacy.is_nothing else step.estimator._payer(step.estimator._find_ledger())
            same = [costs for known, costs in owed if known is ledger or known == ledger]
            if same:
                same[0].append(step.privacy)
            elif ledger is not None:
                owed.append((ledger, [step.privacy]))
        for ledger, costs in owed:
            if hasattr(ledger, "check"):
                ledger.check(costs)
        several = sum(len(costs) for _, costs in owed) > 1  # (one charge is all or nothing by itself)
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(ledger.reserve(costs, estimator=type(self).__name__))
                    for ledger, costs in owed if several and hasattr(ledger, "reserve")]
            # the steps themselves (the report is about copies): threads and workers do not see the block
            for step in self.get_params().values() if held else ():
                if isinstance(step, PrivateEstimator):
                    stack.enter_context(step._drawing_on(held))
            yield

    def _refuse_leaks(self, X):
        if self.memory is not None:  # (no parameter: somebody set it)
            raise ValueError("memory must be None, because it writes raw values to disk and repeats releases without a "
                             "charge")
        report = check_pipeline(self, trusted=self.trusted, sparse_rows=is_sparse(X))
        if report.leaks:
            raise ValueError("steps must not leak: " + " ".join(map(str, report.leaks)))
        if not report.is_private:
            raise ValueError("steps must contain a private estimator of dpestim: add one, or use "
                             "sklearn.pipeline.Pipeline")
        refuse_in_strict(report)
        return report


def _count_rows(X, y):
    """Return how many rows there are, as far as that can be told without reading them."""
    for data in (X, y):
        shape = getattr(data, "shape", None)
        if shape or hasattr(data, "__len__"):
            return int(shape[0]) if shape else len(data)
    return 0
