"""Sets of (key, value) pairs: one column whose rows are sets."""

import numpy as np

from dpestim.inputs import CategoryEncoder, read_pairs
from dpestim.local.column import Column
from dpestim.local.keyvalue.law import STEPS


class PairRows:
    """Rows that are sets: those of row i are ``index[start[i] : start[i + 1]]``, ascending, with their `places`."""

    def __init__(self, start, index, places):
        self.start, self.index, self.places = start, index, places

    def __len__(self):
        return len(self.start) - 1

    def __getitem__(self, rows):
        """Return a range of the rows; pairs are shared."""
        first, last, _ = rows.indices(len(self))
        return PairRows(self.start[first : last + 1], self.index, self.places)

    def row(self, number):
        """Return one row as a dict from keys to places."""
        part = slice(self.start[number], self.start[number + 1])
        return dict(zip(self.index[part].tolist(), self.places[part].tolist()))


class PairColumn(Column):
    """One column of sets.

    Parameters
    ----------
    law : KeyValueRandomizer
    encoder : CategoryEncoder
        Of the keys; None where they are numbered only.
    low, high : float
        Values beyond are clipped; in strict mode NaN counts as the middle.
    """

    def __init__(self, law, encoder, low, high):
        super().__init__("pairs", law)
        self.encoder, self.low, self.high = encoder, low, high

    @property
    def keys(self):
        """The keys, an array."""
        return np.arange(self.law.n_keys) if self.encoder is None else self.encoder.categories

    def with_law(self, law):
        """Return a column of the same keys and bounds."""
        return PairColumn(law, self.encoder, self.low, self.high)

    def identity(self):
        """Return the keys, the bounds and the law."""
        keys = None if self.encoder is None else tuple(map(repr, self.encoder.plain_categories()))
        return keys, self.low, self.high, self.law

    @property
    def domain(self):
        """The keys, and the bounds of their values."""
        return {"kind": "keys", "keys": self.keys.tolist(), "low": float(self.low), "high": float(self.high)}

    def read(self, values, n_jobs, strict):
        """Return the `PairRows` of a sparse matrix or a long frame."""
        encoder = CategoryEncoder(range(self.law.n_keys), "key", 1) if self.encoder is None else self.encoder
        start, index, numbers = read_pairs(values, encoder, strict=strict, n_jobs=n_jobs)
        return PairRows(start, index, self.places(numbers))

    def places(self, values):
        """Return where values lie between the bounds, integers from 0 to 2^32."""
        with np.errstate(all="ignore"):
            at = np.rint((np.clip(values, self.low, self.high) - self.low) / self.width * STEPS)
        return np.where(np.isnan(at), STEPS // 2, np.clip(at, 0, STEPS)).astype(np.int64)

    @property
    def width(self):
        """The distance between the bounds."""
        return self.high - self.low

    def to_units(self, positions):
        """Return numbers from -1 to 1 in the user's units."""
        return self.low + self.width * (np.asarray(positions) + 1) / 2
