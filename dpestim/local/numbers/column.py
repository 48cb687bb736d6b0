"""A column of numbers: two public bounds, and the law on the grid between them; and how bounds are declared."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import pm
from dpestim.local.column import Column
from dpestim.local.numbers.law import NumericRandomizer

#: The dtype of fixed points.
_FIXED = np.dtype(np.int64)


class NotFiniteError(ValueError):
    """A value is not finite, which is told while rows are randomised: the client says which, and sends nothing."""


def coder_of(encode, *shape, dtype=np.int64):
    """Return a function from a block of rows to fixed points, with memory of its own; ``encode(block, out)`` fills it.

    `shape` and `dtype` are those of the codes of one row. The memory is as large as the largest block so far: a
    client's is one row.
    """
    fixed = None

    def codes_of(block):
        nonlocal fixed
        n = len(block)
        if fixed is None or n > len(fixed):
            fixed = np.empty((n, *shape), dtype)
        encode(as_floats(block), fixed[:n])
        return fixed[:n]

    return codes_of


def as_floats(block):
    """Return a block of values as what kernels read."""
    if block.dtype != np.float64:
        with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one, and is clipped
            block = block.astype(np.float64)
    return np.ascontiguousarray(block)


class NumberColumn(Column):
    """One column of numbers.

    Parameters
    ----------
    name : str
    law : NumericRandomizer
    low, high : float
        Values beyond are clipped; in strict mode NaN counts as `low`.
    """

    def __init__(self, name, law, low, high):
        super().__init__(name, law)
        self.low, self.high = low, high

    def check_bounds(self):
        """Raise ValueError where floats between the bounds are too few for the law."""
        if not self.law.fits(self.low, self.high):
            raise ValueError(f"bounds of {self.name} are too close together: too few floats lie between them")

    def identity(self):
        """Return the bounds and the law."""
        return self.low, self.high, self.law

    @property
    def domain(self):
        """The bounds."""
        return {"kind": "numbers", "low": self.low, "high": self.high, "missing": self.may_be_missing}

    def read(self, values, n_jobs, strict):
        """Return the values, which were checked with the rest of X; they become fixed points block by block."""
        return values

    def coder(self):
        """Return a function from a block of values to fixed points, with memory of its own."""
        return coder_of(lambda block, out: self.law.encode(block, self.low, self.high, out))

    def coder_of_one(self, dtype, place):
        """Return a function from a record to its fixed point; None for what is not finite, which the client refuses."""
        kind = type(self)
        if dtype.itemsize > 8 or kind.read is not NumberColumn.read or kind.coder is not NumberColumn.coder:
            return None
        if type(self.law).encode is not NumericRandomizer.encode:  # (a law has its own way)
            return None
        ends = self.law.ends(self.low, self.high)

        def code_of(X):
            number = X.item(place)
            return np.array((pm.encode_one(number, *ends),), _FIXED) if math.isfinite(number) else None

        return code_of

    @property
    def middles(self):
        """The middle between the bounds."""
        return [self.low + self.width / 2]

    @property
    def lows(self):
        """The lower bounds, one for each feature."""
        return [self.low]

    @property
    def highs(self):
        """The upper bounds, one for each feature."""
        return [self.high]

    def decode(self, reports):
        """Return what codes stand for."""
        return np.take(self.to_units(self.law.positions), reports)

    def to_units(self, positions):
        """Return positions within the bounds (0 low, 1 high) in the user's units."""
        return self.low + self.width * positions

    @property
    def width(self):
        """The distance between the bounds."""
        return self.high - self.low

    @property
    def even_spread(self):
        """The variance of values spread evenly between the bounds, and of rounding them to the grid."""
        return self.width**2 * (1 / 12 + 1 / (6 * self.law.grid**2))

    def least_noise(self, numbers, mean, counts, n):
        """Return the variance of a report of the input next to the mean: on average over values there is more."""
        law = self.shape_law
        return law.noise_at(int(np.abs(law.input_positions - mean).argmin()), numbers)

    def relaxed_interval(self):
        """Return (from, to, whether NaN is in it): all values that become a relaxed input once they are clipped."""
        start, stop = self.law.relaxed_bounds(self.low, self.high)
        nan = start <= self.low
        return (-math.inf if nan else start), (math.inf if stop >= self.high else stop), nan

    def relaxed_inputs(self):
        """Return the values that the law's relaxation gives less protection, in full: a ledger compares names."""
        start, stop, nan = self.relaxed_interval()
        return f"[{start!r}, {stop!r}]{' and NaN' if nan else ''}"


def share_of(value, low, high):
    """Return where a value lies between bounds, exactly: 0 at low, 1 at high."""
    low, high = Fraction(low), Fraction(high)
    return (Fraction(value) - low) / (high - low)
