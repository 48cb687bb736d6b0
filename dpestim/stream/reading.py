"""Steps of a stream as they come in: numbers, arrays and frames, read as integers of a public grid."""

import math
from fractions import Fraction
from numbers import Integral

import numpy as np

from dpestim.central.additive.answers import read_answers
from dpestim.central.base import checked_bounds
from dpestim.inputs.frames import is_frame, is_series, refuse_parts
from dpestim.privacy.exact import canonical_amount
from dpestim.records import record

#: Values are below this many units of the resolution.
_MOST = 1 << 40
#: The most cells of a row.
MOST_CELLS = 1 << 16


@record
class Steps:
    """How a step is read: `low` to `high` units of `unit`, of which one event changes `change`; of `width` values."""

    low: int
    high: int
    unit: Fraction
    change: int
    width: int | None = None

    def read(self, X, strict):
        """Return (int64 array of shape (n_steps, width or 1), whether X was one step), or raise ValueError."""
        bounds = float(self.low * self.unit), float(self.high * self.unit)
        refuse_parts(X, "X")
        if not (isinstance(X, int | float | np.ndarray | np.generic | list | tuple) or is_series(X) or is_frame(X)):
            raise ValueError("X must be the value of a step, or an array, a series or a frame with a row for each step")
        values = np.asarray(read_answers(X, integers=False, strict=strict, bounds=bounds, name="the steps X"))
        single = values.ndim == (0 if self.width is None else 1) and not is_frame(X)
        if self.width is None and values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        values = values.reshape(1, *values.shape) if single else values
        if values.ndim != (1 if self.width is None else 2) or self.width not in (None, *values.shape[1:]):
            shape = "(n_steps,)" if self.width is None else f"(n_steps, {self.width}), or ({self.width},) for one step"
            raise ValueError(f"X must have shape {shape}")
        units = values if self.unit == 1 else values / float(self.unit)
        if not len(values):
            raise ValueError("X must have a step at least")
        codes = np.clip(np.floor(units), self.low, self.high).astype(np.int64)
        return codes.reshape(len(codes), -1), single


def steps_of(bounds, change, resolution, width=None, *, rows=False):
    """Return the `Steps` that parameters declare, or raise ValueError.

    `rows`: `change` is that of a whole row, in the L1 norm, and may be in several cells; else that of one cell.
    """
    unit = canonical_amount(resolution, "resolution")
    if not 0 < unit < math.inf:
        raise ValueError("resolution must be a number above 0")
    pair = checked_bounds(bounds)
    if pair is None:
        raise ValueError("bounds must be a pair (low, high): the public range of a step")
    low, high = (Fraction(str(b)) / unit for b in pair)
    if low.denominator != 1 or high.denominator != 1 or max(abs(low), abs(high)) >= _MOST:
        raise ValueError("bounds must be multiples of resolution, below 2^40 times it: declare another resolution")
    low, high = int(low), int(high)
    if change is None:  # (all that there is)
        return Steps(low, high, unit, (high - low) * (width if rows else 1), width)
    moved = canonical_amount(change, "change")
    if not 0 < moved < math.inf:
        raise ValueError("change must be None or a number above 0: the most that one event changes a step")
    units = math.ceil(moved / unit)
    # (whole numbers are rounded down exactly; what is divided by another unit may be off by a rounding)
    if not rows:
        return Steps(low, high, unit, min(units + (unit != 1), high - low), width)
    # (so may be each cell of a row that changes, which changes by a unit at least; powers of two divide exactly)
    exact = all(part & (part - 1) == 0 for part in (unit.numerator, unit.denominator))
    return Steps(low, high, unit, min(units * (1 if exact else 2), width * (high - low)), width)


def checked_count(name, value, most, none=True):
    """Return a positive int, or None where that is a choice."""
    if value is None and none:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
        raise ValueError(f"{name} must be {'None or ' * none}an int from 1 to {most}")
    return int(value)
