"""What estimators of one number share: its standard error, intervals, and the table."""

from math import isnan, nan

import numpy as np
from scipy.special import ndtri

from dpestim.results import Part


class OneNumber:
    """Mixin, which stands left of `ListEstimator`: an estimate `_number` with `standard_error_`.

    A sub-class declares `_number`, the name of the attribute, and `_quantity`, and has `_range(n)`, the least and the
    largest value in any graph of n nodes.
    """

    def confidence_interval(self, level=0.95):
        """Return (low, high), which encloses the number of the exact graph with about this probability.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : floats
            Normal quantiles about the estimate, cut to what there can be. The standard error is an estimate, too; the
            class says how often intervals held.
        """
        self._check_fitted()
        if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        return self._ends(float(level))

    def _ends(self, level):
        half = float(ndtri((1 + level) / 2)) * self.standard_error_
        value, (low, high) = getattr(self, self._number), self._range(self._seen.read.n_nodes)
        if isnan(value) or isnan(half):
            return float(low), float(high)
        return tuple(float(min(max(end, low), high)) for end in (value - half, value + half))

    def _result_parts(self, level):
        interval = np.array(self.confidence_interval(level)) if level else None
        error = None if isnan(self.standard_error_) else np.asarray(self.standard_error_)
        return [Part(self._quantity.format(**self.get_params(deep=False)), (), np.asarray(getattr(self, self._number)),
                     error, interval)]


def root(variance):
    """Return the standard error of an estimated variance; nan where there is none."""
    return float(variance) ** 0.5 if variance >= 0 else nan
