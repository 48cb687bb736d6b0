"""Ranges from reports of the square wave: distributions by expectation maximisation, and what reports do not reject."""

import math
import warnings
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dpestim.local.estimates.model import BINS, chosen, model_of, rebinned
from dpestim.local.estimates.rejection import Rejection
from dpestim.local.numbers.law import FRACTION
from dpestim.local.views import View
from dpestim.parallel import one_thread

#: Limits of expectation maximisation, as of `DistributionEstimator`.
_LIMITS = {"max_iter": 10_000, "tol": 1e-3}
#: A standard error is half the width of an interval of this many standard deviations.
_ONE = 1.0
#: Places this near to an edge may lie on either side.
_NEAR = 1e-9


class Middles(View):
    """The middle of each value's place between the bounds, as the fixed point that a law of numbers takes.

    Parameters
    ----------
    name, law : as `View`
    place : int
        The feature.
    size : int
        How many values it has.
    """

    def __init__(self, name, law, place, size):
        super().__init__(name, law, (place,))
        self.size = int(size)

    @property
    def function(self):
        """How many values there are."""
        return self.size

    def of(self, codes):
        """Return the fixed point of each code."""
        step = (self.law.grid << FRACTION) // (2 * self.size)
        return (2 * codes[0].astype(np.int64) + 1) * step


class Wave:
    """The distribution of a feature's values, and the reports of the square wave that tell it.

    Parameters
    ----------
    law : SW
    counts : ndarray
    drawn : int
        How many users reported this feature.
    n_values : int
    """

    def __init__(self, law, counts, drawn, n_values):
        self.law, self.counts, self.drawn, self.n_values = law, counts, drawn, n_values
        #: Each value has as many bins, or several values share one.
        self.n_bins = n_values * max(BINS // n_values, 1) if n_values <= BINS else BINS
        self._tests, self._known = {}, {}

    @cached_property
    def shares(self):
        """The shares of the bins of the fit; even ones without any report."""
        if not self.drawn:
            return np.full(self.n_bins, 1 / self.n_bins)
        with one_thread():
            fit = chosen(self.law, self.counts, **_LIMITS, n_bins=self.n_bins)
        if not fit.converged:
            warnings.warn("expectation maximisation did not converge: take method='hierarchy'", ConvergenceWarning,
                          stacklevel=4)
        return fit.shares

    @cached_property
    def leaves(self):
        """The shares of all values."""
        n = self.n_values
        return rebinned(self.shares, np.linspace(0, 1, self.n_bins + 1), np.linspace(0, 1, n + 1))

    @cached_property
    def cumulative(self):
        """The share below each edge between values, rising from 0 to 1."""
        return np.clip(np.append(0.0, np.cumsum(self.leaves)), 0.0, 1.0)

    def range(self, low, high):
        """Return (the share between two places, its standard error as a function of what the share is)."""
        places = np.arange(self.n_values + 1.0)
        share = float(np.interp(high, places, self.cumulative) - np.interp(low, places, self.cumulative))
        first, last = self.interval(low, high, _ONE)
        return share, lambda p: (last - first) / 2 + np.zeros(np.shape(p))

    def interval(self, low, high, z):
        """Return the ends of the interval of that share: the last shares that the reports do not reject.

        Of a value that lies partly between the places any part may count.
        """
        (inner, _), (_, outer) = (self._interval(*places, z) for places in (
            (math.ceil(low), math.floor(high)), (math.floor(low), math.ceil(high))))
        return inner, outer

    def _interval(self, low, high, z):
        """Return it between two edges of values."""
        if high <= low or (low <= 0 and high >= self.n_values):
            return (float(high > low),) * 2
        if not self.drawn:
            return 0.0, 1.0
        if (low, high, z) not in self._known:
            found = self._test(z).interval(low / self.n_values, high / self.n_values)
            self._known[low, high, z] = tuple(map(float, found))
        return self._known[low, high, z]

    def places_of_share(self, q, n, z):
        """Return the first and the last place where share q of the values may be reached, as whole values."""
        if not self.drawn:
            return [0.0, float(n)]
        low, high = (float(place) * n for place in self._test(z).quantile(q))
        return [max(math.floor(low - _NEAR) + _NEAR, 0.0), min(math.ceil(high + _NEAR) - _NEAR, float(n))]

    def _test(self, z):
        if z not in self._tests:
            with one_thread():
                seen = model_of(self.law, self.n_bins).seen(self.counts)
                self._tests[z] = Rejection(self.law, seen, self.shares, z)
        return self._tests[z]
