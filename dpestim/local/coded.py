"""Features of rows as small numbers: places of categories, bins of numbers, each with a public domain."""

from copy import copy

import numpy as np

from dpestim import inputs
from dpestim.inputs import in_order, is_by_column
from dpestim.inputs.frames import is_series
from dpestim.inputs.numbers import DECLARE, OR_FILL, floats_of, refuse_kind, series_numbers

_INFINITE = "contains NaN or infinity: every value must be finite" + DECLARE + OR_FILL
_OR_MISSING = "contains infinity: every value must be finite or NaN"


class CategoryFeature:
    """A feature of categories, and how its values become small numbers.

    Parameters
    ----------
    encoder : CategoryEncoder
    """

    def __init__(self, encoder):
        self.encoder, self.n_values, self.name = encoder, encoder.n_categories, encoder.name

    def named(self, name):
        """Return the same feature under another name."""
        encoder = copy(self.encoder)  # (its tables are shared)
        encoder.name = name
        return CategoryFeature(encoder)

    def identity(self):
        """Return what two features must share to be counted together."""
        return self.encoder.plain_categories()

    @property
    def domain(self):
        """The categories as a survey says them."""
        return self.encoder.domain

    def read(self, values, n_jobs, explain=True):
        """Return (the place of each value, that of none for what is no category; why there is such a value, or None).

        Where not `explain`, nobody asks for the reason.
        """
        return self.encoder.read(values, np.dtype(np.uint32), self.n_values, n_jobs, explain)


class NumberFeature:
    """A feature of numbers between public bounds, in bins of equal width; what lies beyond is clipped.

    A number that may be missing has one value more, behind the bins.

    Parameters
    ----------
    name : str
        As errors call it.
    low, high : float
    n_bins : int
    missing : bool, default=False
    """

    def __init__(self, name, low, high, n_bins, missing=False):
        self.name, self.low, self.high, self.n_bins, self.missing = name, low, high, n_bins, bool(missing)
        self.n_values = n_bins + self.missing

    def named(self, name):
        """Return the same feature under another name."""
        return NumberFeature(name, self.low, self.high, self.n_bins, self.missing)

    def identity(self):
        """Return what two features must share to be counted together."""
        return self.low, self.high, self.n_bins, self.missing

    @property
    def domain(self):
        """The bins as a survey says them."""
        return {"kind": "bins", "low": self.low, "high": self.high, "bins": self.n_bins, "missing": self.missing}

    @property
    def edges(self):
        """The edges of the bins."""
        return np.linspace(self.low, self.high, self.n_bins + 1)

    def read(self, values, n_jobs, explain=True):
        """Return (the place of each value, `n_values` for what is none; why there is such a value, or None)."""
        numbers, nulls = values, None
        if is_series(values):
            numbers, nulls = series_numbers(values, f"{self.name} of X", strict=not explain)
        elif values.dtype.kind == "O" and explain:
            numbers = floats_of(values, f"{self.name} of X")
        elif values.dtype.kind == "O":
            raise ValueError("strict mode: X must have a numeric dtype in every column with bounds: convert columns of "
                             "objects")
        else:
            refuse_kind(values.dtype, f"{self.name} of X")
        with np.errstate(all="ignore"):
            numbers = np.asarray(numbers, np.float64)
            lost = ~np.isfinite(numbers) if nulls is None else nulls | ~np.isfinite(numbers)
            bins = np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.uint32)
        if not self.missing:
            bins[lost] = self.n_values
            return bins, _INFINITE if lost.any() else None
        infinite = np.isinf(numbers) if nulls is None else np.isinf(numbers) & ~nulls
        bins[lost], bins[infinite] = self.n_bins, self.n_values
        return bins, _OR_MISSING if infinite.any() else None


def pair_of(pair, name, n_columns):
    """Return (lows, highs), lists of floats, from a pair of scalars or of arrays, or a dict of pairs by column name.

    n_columns None: as many as it has.
    """
    if is_by_column(pair):
        pair = tuple(zip(*in_order(pair, "pairs", name=name)[1]))
    lows, highs = inputs.pair_of(pair, n_columns, name=name)
    return lows.tolist(), highs.tolist()
