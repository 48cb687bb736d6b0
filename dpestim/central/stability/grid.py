"""Numbers of a column on a public grid: integers within public bounds, so that sums and gaps are exact."""

import math

import numpy as np

from dpestim.inputs import pair_of
from dpestim.records import record

#: Steps between the bounds, about, as a power of two; integers of the grid are below 2^53, so that floats hold them.
_STEPS, _LARGEST = 40, 52


@record
class ClippedGrid:
    """Integers from low to high, in steps of 2^exponent."""

    low: int
    high: int
    exponent: int

    @property
    def width(self):
        """How many steps the bounds are apart."""
        return self.high - self.low

    @property
    def middle(self):
        """What stands for NaN, and for what failed."""
        return (self.low + self.high) // 2

    def read(self, column):
        """Return numbers as int64, the nearest of the grid; NaN becomes the middle, and the rest is clipped."""
        with np.errstate(all="ignore"):
            steps = np.ldexp(np.asarray(column, np.float64), -self.exponent)  # exact, but for what is clipped
            steps = np.rint(np.clip(steps, float(self.low), float(self.high)))
        return np.where(np.isnan(steps), float(self.middle), steps).astype(np.int64)

    def number(self, steps):
        """Return an integer of the grid as a float."""
        return math.ldexp(float(steps), self.exponent)


def grids(bounds, n_columns):
    """Return a ClippedGrid for each column, from (low, high): numbers, or arrays with one number for each column."""
    if bounds is None:
        raise ValueError("bounds must be declared, a public pair (low, high) that does not come from the data")
    return [_grid(a, b) for a, b in zip(*(ends.tolist() for ends in pair_of(bounds, n_columns)))]


def _grid(low, high):
    largest = max(-low, high)
    exponent = max(math.frexp(high - low)[1] - _STEPS, math.frexp(largest)[1] - _LARGEST)
    ends = [round(math.ldexp(end, -exponent)) for end in (low, high)]
    if ends[0] == ends[1]:
        raise ValueError("bounds must be further apart: too few floats lie between them")
    return ClippedGrid(*ends, exponent)
