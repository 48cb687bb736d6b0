"""Smooth sensitivity: noise as large as records near these data can move a statistic, and not the worst ones."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.base import checked_delta, declared_delta
from dpestim.central.stability.grid import grids
from dpestim.central.stability.heavy import NOISES, heavy_noise
from dpestim.central.stability.rows import RowMechanism, checked_share
from dpestim.central.stability.statistics import Declared, Stretch, smooth_weights
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import canonical_amount, canonical_epsilon

_STATISTICS = ("median", "quantile", "mean")


class StatisticMechanism(RowMechanism):
    """Base of what releases a statistic of each column within public bounds: median, quantile, trimmed mean, or any."""

    _shared_parameters = """\
    statistic : {"median", "quantile", "mean"} or callable, default="median"
        What is released of each column: an order statistic (the median is number ceil(n / 2) of n sorted values), the
        mean after floor(trim n) values at both ends are dropped, or a user-defined statistic: a callable of (column,
        low, high), a sorted float array and its bounds, that returns a number and numbers A(0), A(1), .... A(k) must be
        at least as far as one record can move the number in data that differ from these in k records, and at most A(k +
        1) of data that differ in one; the last one holds for all further k. That is then assumed, and not checked. A
        callable that fails is a ValueError, which depends on the data: strict mode takes none.
    bounds : (low, high), dict or Domain, default=None
        Public range of the values, two numbers or two arrays with one number for each column: it must be declared.
        Values are clipped to it, and so is what is released.
    q : float, default=0.5
        Which quantile, in [0, 1]: number ceil(q n) of n sorted values, and at least number 1.
    trim : float, default=0.1
        What part of the values a mean drops at each end, from 0 to below 0.5.
"""

    def _statistic_kind(self):
        """Return the parameters of the statistic, checked."""
        if callable(self.statistic):
            if self._is_strict():
                raise ValueError(f"statistic must be a name in strict mode, one of {sorted(_STATISTICS)}, because the "
                                 "error of a callable could depend on the data")
            return (self.statistic,)
        if not isinstance(self.statistic, str) or self.statistic not in _STATISTICS:
            raise ValueError(f"statistic must be one of {sorted(_STATISTICS)} or a callable")
        q = canonical_amount(self.q, "q")
        if q > 1:
            raise ValueError("q must be a number between 0 and 1")
        trim = canonical_amount(self.trim, "trim")
        if trim >= Fraction(1, 2):
            raise ValueError("trim must be a number of at least 0 and below 0.5")
        return {"median": ("quantile", Fraction(1, 2)), "quantile": ("quantile", q), "mean": ("mean", trim)}[
            self.statistic]

    def _statistic(self, n):
        """Return the statistic of n values."""
        kind = self._statistic_kind()
        if callable(kind[0]):
            return Declared(kind[0])
        if kind[0] == "quantile":
            place = max(1, math.ceil(kind[1] * n))
            return Stretch(place, place)
        dropped = math.floor(kind[1] * n)
        return Stretch(dropped + 1, n - dropped)

    def _kind(self, plan):
        return tuple(plan["grids"])

    def _kept(self, rows, y, plan, strict):
        columns = [grid.read(rows[:, j]) for j, grid in enumerate(plan["grids"])]
        return self._kind(plan), np.stack(columns, axis=1)

    def _notes(self):
        return ("The guarantee holds if the sensitivities that the callable `statistic` returns are "
                "correct.",) * callable(self.statistic)

    def _test_column(self):
        """Return a column whose release is neither certain nor all noise."""
        low, high = (float(np.ravel(end)[0]) for end in self.bounds)
        return np.linspace(low, high, 41)

    def _test_data(self, n_rows, seed=0):
        """Return a table of numbers."""
        return np.random.default_rng(seed).normal(0.0, 2.0, (n_rows, 2)), None


class SmoothSensitivity(StatisticMechanism):
    """Release a median, quantile or trimmed mean with noise by smooth sensitivity.

    In the worst data set one record moves the median from one bound to the other, and noise for this case would be too
    large. Smooth sensitivity scales the noise to S, the largest change by one record on these data or, with a weight
    e^(-beta k), on data that differ in k records. Take it for a median or quantile of values that are rounded or
    repeat, for a trimmed mean, and for a user-defined statistic. Where values are mostly distinct, an
    `ExponentialMechanism` over the range, or ``dpestim.statistics.quantile``, errs less. Where the number of records is
    private, or S could be the whole range (few records, or a gap around the median), it is inaccurate.

    **Privacy.** Pure epsilon in the central model for data sets of equal size that differ in one record; with Laplace
    noise (epsilon, delta). It holds for the program as it runs: values are integers of a public grid, S is an exact
    maximum that changes by a factor of at most e^beta, and noise is a real number of as many digits as rounding the
    result to the grid takes. With d columns each gets epsilon / d and delta / d. The curator, who holds the data, must
    be trusted. The scale of the noise is as secret as the data, so that no standard error or interval is available.

    **Utility.** The result is rounded to a grid of some 10^12 steps and clipped to the bounds. Before that its error is
    the scale s S times Z, where abs(Z) has median 1 ("cauchy", no mean), 0.44 and variance 1 ("student"), 0.57 and
    variance 1 ("quartic", which is never better than "student"), or 0.69 and variance 2 ("laplace"). For n values whose
    density at the median is f, and a beta well below 1, S is about 1 / (e beta n f).

    **Complexity.** O(n + r log r) time for each column, and some r^(3/2) steps of a vector loop at worst, where r, at
    most n, is about 42 / beta records next to the statistic; O(n) memory.

    {parameters}
    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis", STOC, definitions
    2.1 and 2.2, lemma 2.6 and section 3.1. Bun, Steinke (2019), "Average-case averages: private algorithms for smooth
    sensitivity and mean estimation", NeurIPS, for Student's t and trimmed means. The proof, with better constants:
    ``smooth_sensitivity.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.central import SmoothSensitivity
    >>> ages = np.random.default_rng(0).gamma(6.0, 6.0, 10_000)
    >>> median = SmoothSensitivity(1.0, bounds=(0.0, 120.0), random_state=0).release(ages)
    >>> bool(abs(median - np.median(ages)) < 0.5)
    True
    """

    _more_parameters = StatisticMechanism._shared_parameters + """\
    noise : {"cauchy", "student", "quartic", "laplace"}, default="cauchy"
        The law of the noise. Only "laplace" needs a delta.
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, from 1e-300 to below 1: to be declared for Laplace noise,
        and None or 0 for any other.
    noise_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that pays for the scale of the noise being another one for neighbours;
        the rest pays for the shift. A half is best where values are spread evenly, more where many are equal.
    """
    _more_attributes = """
    value_ : ndarray of shape (n_features,)
        What was released, after `fit`.
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, statistic="median", bounds=None, q=0.5, trim=0.1, noise="cauchy", delta=None,
                 noise_fraction=0.5, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.statistic = statistic
        self.bounds = bounds
        self.q = q
        self.trim = trim
        self.noise = noise
        self.delta = delta
        self.noise_fraction = noise_fraction
        self.ledger = ledger
        self.random_state = random_state

    def _budget(self):
        return canonical_epsilon(self.epsilon), self._delta(), None

    def _delta(self):
        if not isinstance(self.noise, str) or self.noise not in NOISES:
            raise ValueError(f"noise must be one of {sorted(NOISES)}")
        if self.noise == "laplace":
            return checked_delta(self.delta)
        if declared_delta(self.delta):
            raise ValueError(f"delta must be None or 0 for noise={self.noise!r}, which needs none")
        return Fraction(0)

    def _plan(self, n_columns):
        epsilon, delta, _ = self._budget()
        self._statistic_kind()
        share = checked_share(self.noise_fraction, "noise_fraction")
        noise = heavy_noise(self.noise, epsilon / n_columns, delta / n_columns, share)
        if self.noise == "laplace" and noise.multiplier > 2**500:
            raise ValueError("epsilon is too small for noise='laplace': take a larger epsilon, or noise='cauchy'")
        return {"grids": grids(self.bounds, n_columns), "noise": noise}

    def _look(self, rows, plan):
        """Return (value, scale of the noise), exact and in steps, of each column."""
        return [scaled(self._statistic(len(rows)), rows[:, j], grid, plan["noise"])
                for j, grid in enumerate(plan["grids"])]

    def _answer(self, seen, plan, source):
        noise, reader = plan["noise"], source.reader()
        return np.array([grid.number(noise.nearest(*column, grid, BitStream(reader, j, 0)))
                         for j, (column, grid) in enumerate(zip(seen, plan["grids"]))])

    def _outcomes(self, summary, places):
        """Return the logarithm of the density of what is released of a flat column, before rounding; for the checks."""
        plan = self._plan(1)
        ((value, scale),), (grid,) = self._look(summary.totals, plan), plan["grids"]
        step = grid.number(scale)
        return plan["noise"].log_density((places - grid.number(value)) / step) - math.log(step), {}

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "bounds": (-4.0, 4.0)},
            {"epsilon": 2.0, "bounds": (0.0, 3.0), "statistic": "mean", "trim": 0.25, "noise": "student"},
            {"epsilon": 1.0, "bounds": (-4.0, 4.0), "statistic": "quantile", "q": 0.25, "noise": "quartic",
             "noise_fraction": 0.7},
            {"epsilon": 1.0, "bounds": (-4.0, 4.0), "noise": "laplace", "delta": 1e-3},
        ]


def scaled(statistic, column, grid, noise):
    """Return the value of a statistic, and the scale of the noise for it, as Fractions in steps of the grid."""
    weights = smooth_weights(noise.ratio, len(column))
    seen = statistic.look(column, grid, len(weights))
    return seen.value, noise.multiplier * seen.smooth(weights)
