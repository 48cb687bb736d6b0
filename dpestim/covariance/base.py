"""What covariance and components share: rows become integers, sums of products get noise once, all else is free."""

import math
from dataclasses import replace

import numpy as np

from dpestim.central.base import declared_delta
from dpestim.covariance.repair import Scatter, scatter_of
from dpestim.models import checked_number, range_of
from dpestim.privacy.exact import canonical_epsilon
from dpestim.records import record
from dpestim.rng import check_random_state
from dpestim.statistics.calibrated_noise import Answers
from dpestim.statistics.moment_noise import MomentRelease, scatter_weights
from dpestim.statistics.one_pass import OnePassModel
from dpestim.statistics.row_moments import REACH, checked_box, row_map, summary_of
from dpestim.summaries import Summary

_OF_A_MATRIX = """\
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1. None or 0: none. Above 0 noise is Gaussian if that
        is less, as with more than a few columns it is by far.
    bounds : (low, high), dict or Domain, default=None
        Public range of the columns, numbers or one for each column; values outside are clipped, and columns are scaled
        by it before noise is added. None, without `data_norm`, takes the smallest and largest values, which leaks
        (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    data_norm : float, default=None
        Public bound of the Euclidean norm of a row; longer rows are scaled down to it. With bounds it is about rows
        whose columns were mapped to [-1, 1] (those with the bounds 0 and 1 stay as they are), where None is
        sqrt(n_features), which every row fits: noise grows with the square of it.
    assume_centered : bool, default=False
        Whether the mean is known to be 0: no noise is spent on it.
    shrinkage : "auto" or float, default="auto"
        "auto" takes from the noisy matrix what its known noise explains: all but the mean eigenvalue times the
        identity, in scaled units, where noise explains the rest. A number s in [0, 1] takes (1 - s) of the
        matrix and s of that multiple of the identity. Either way negative eigenvalues become 0.
"""


@record
class Counted(Scatter):
    """A noisy covariance of rows whose number may be noisy, too: ``counted`` is its variance over its square."""

    counted: float = 0.0

    def standard_errors(self):
        """Return the standard deviation of the noise of each entry, to first order in that of the number of rows."""
        moved = self.matrix - np.outer(self.mean, self.mean)
        return np.sqrt(np.square(super().standard_errors()) + self.counted * np.square(moved))


class ScatterModel(OnePassModel):
    """Base of functions of a noisy covariance; a sub-class brings `_learn` in place of `_released`."""

    _checked_as, _template = "answers", "neighbours"
    _texts = {"parameters of a matrix": _OF_A_MATRIX}
    _declared = ("bounds",)
    #: What adds noise, all of it: the checks of `dpestim.testing` tell neighbours the same.
    _answers = Answers

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, data_norm=None, assume_centered=False,
                 shrinkage="auto", neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.assume_centered = assume_centered
        self.shrinkage = shrinkage
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def _learn(self, scatter, rows, n_rows):
        """Return what is learned from a noisy covariance of scaled rows, whose number may be noisy, too, by name."""
        raise TypeError(f"{type(self).__name__} does not say what it learns")

    def _check_own(self):
        """Raise ValueError for a parameter of its own that does not fit."""

    # ---------------------------------------------------------------- inside

    def _settings(self):
        return (self._relation(),)

    def _inferred(self):
        return super()._inferred() if self.data_norm is None else []

    def _check(self):
        epsilon, delta, _ = canonical_epsilon(self.epsilon), declared_delta(self.delta), self._neighbours
        if self.bounds is not None:
            checked_box(self.bounds)
        if self.data_norm is not None:
            checked_number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        if not isinstance(self.assume_centered, bool | np.bool_):
            raise ValueError("assume_centered must be True or False")
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            checked_number("shrinkage", self.shrinkage, 'in [0, 1], or "auto"', lambda v: 0 <= v <= 1)
        check_random_state(self.random_state)
        self._check_own()
        return epsilon, delta

    def _read(self, X, y, reset):
        rows = self._checked_X(X, reset=reset, total=self._is_strict())
        return rows, len(rows), rows.shape[1]

    def _domain(self, n_columns, data=None):
        bounds = range_of(data) if self._inferred() and data is not None else self.bounds
        return row_map(bounds, self.data_norm, (-1, 1), not self.assume_centered, n_columns)

    def _finite(self, data, domain):
        """Return rows; those with a missing value, which strict mode lets through, are in the middle."""
        if not self._is_strict():
            return data
        return np.where(np.isfinite(data).all(axis=1, keepdims=True), data, domain.middle)

    def _sums(self, data, domain):
        return summary_of(domain, self._finite(data, domain), None, ()).totals

    def _released(self, n_rows, totals, domain, epsilon, delta):
        plan = self._plan(domain, epsilon, delta)
        longest = (domain.most + 1) / REACH if not domain.cuts else 1.0
        public = n_rows if self._replaces else None

        def draw(source):
            moments = plan.moments(self._answers(source).add(plan.law, plan.codes(Summary((), n_rows, totals))), public)
            off = math.sqrt(moments.noise["rows"])
            n = n_rows if self._replaces else max(1.0, off, float(moments.n_rows))
            with np.errstate(all="ignore"):
                scatter = scatter_of(replace(moments, n_rows=n), longest)
                return self._learn(Counted(**vars(scatter), counted=(off / max(1, n)) ** 2), domain, n)

        draw.law = plan.law
        return draw

    def _plan(self, domain, epsilon, delta):
        """Return what is released, and with which noise."""
        d = domain.n_columns
        return MomentRelease(epsilon, delta, scatter_weights(delta > 0, domain.fit_intercept, d, self._replaces),
                             d, self._replaces)

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        rng = np.random.default_rng(seed)
        return np.clip(rng.normal(size=(n_rows, 3)) @ [[0.5, 0.3, 0], [0, 0.3, 0], [0, 0, 0.2]], -1, 1), None


def units_of(rows):
    """Return (what scaled rows of norm 1 are multiplied by, what is added to them) for rows in units of X."""
    per = rows.factors()
    return np.divide(REACH, per, out=np.zeros(rows.n_columns), where=per > 0), rows.centers
