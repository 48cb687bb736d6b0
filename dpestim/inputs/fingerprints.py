"""Open domains: any string, number or bytes has a code, a public 32-bit hash of it, and nobody needs a list."""

import hashlib
import struct
import warnings

import numpy as np

from dpestim.inputs.columns import is_missing, parts

#: How many fingerprints there are. Two values share one with probability 2**-32; then they are one value.
N_FINGERPRINTS = 1 << 32
#: Why a value has no fingerprint. There is no list to put it on.
MISSING = "has a missing value (None, NaN or NA), which an open domain does not take: leave it out"
INFINITE = "has an infinite value (inf): the numbers of an open domain are finite"
STRANGE = "has a value that is neither a string, bytes, a number nor a bool, which an open domain takes"


class FingerprintEncoder:
    """The codes of a column whose domain nobody lists: the first 32 bits of BLAKE2b of what a value is.

    A value is what it equals: 1, 1.0 and True are one, and "1" is another. A row's code follows from its own value
    alone. Public and fixed: what shares a code does so for everybody and for ever. It has the verbs of
    `CategoryEncoder`.

    Parameters
    ----------
    name : str
        The column in error messages.
    """

    categories = range = None
    n_categories = N_FINGERPRINTS

    def __init__(self, name):
        self.name = name

    def plain_categories(self):
        """Return what tells an open domain from a list of values."""
        return None

    @property
    def domain(self):
        """Any value, and the hash that is its code, as a survey says it."""
        return {"kind": "text", "hash": "BLAKE2b-32"}

    def encode(self, column, n_jobs=None):
        """Return the codes of a column (array or series), or raise ValueError that names the column only."""
        out, why = self._read(column)
        if why:
            raise ValueError(f"{self.name} {why}")
        return out

    def encode_total(self, column, n_jobs=None):
        """Return the codes of a column whatever it holds; what has no fingerprint gets code 0. For strict mode."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self._read(column)[0]

    def _read(self, column):
        values, index, null = parts(column, self.name)
        if index is not None:
            codes, why = self._codes(values)
            used = np.unique(index)
            missing = bool(used.size and used[0] < 0)
            if why:  # (a pandas Categorical may list what no row has)
                why = self._codes(values[used[used >= 0]])[1]
            return np.append(codes, np.uint32(0))[index], why or (MISSING if missing else None)
        if null is not None:
            out = np.zeros(len(null), np.uint32)
            out[~null] = self._codes(values[~null] if len(values) == len(null) else values)[0]
            return out, MISSING
        return self._codes(values)

    @staticmethod
    def _codes(values):
        """Return (codes, None or why a value has none) of an array."""
        why = None
        if values.dtype.kind in "biufUS" and len(values):  # (without nulls among them sorting is safe)
            gone = values != values
            items, index = np.unique(np.where(gone, values.dtype.type(0), values), return_inverse=True)
            why = MISSING if gone.any() else None
            items, at = items.tolist(), index.reshape(-1)
        else:
            items, at, gone = values.tolist(), slice(None), None
        out = np.zeros(len(items), np.uint32)
        for i, value in enumerate(items):
            text = _canonical(value)
            if type(text) is str:
                why = why or text
            else:
                out[i] = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")
        out = out[at]
        if gone is not None:
            out[gone] = 0
        return out, why


def _canonical(value):
    """Return the bytes that stand for a value, or (a string) why it has none.

    Nothing of a value's own class is called, not even to learn its type: a method of it could raise, or show, the
    value. What sub-classes a type of Python is read by that type.
    """
    kind = type(value)
    if issubclass(kind, np.generic) and not issubclass(kind, str | bytes | np.datetime64 | np.timedelta64):
        value = np.generic.item(value)
        kind = type(value)
    if issubclass(kind, str):
        return b"s" + str.encode(value, "utf-8", "surrogatepass")
    if issubclass(kind, bytes):
        return b"b" + bytes.__getitem__(value, slice(None))  # (a copy of type bytes: "+" would ask the value)
    if issubclass(kind, float):
        value = float.__pos__(value)
        if value != value:
            return MISSING
        if value in (float("inf"), float("-inf")):
            return INFINITE
        if not value.is_integer():
            return b"f" + struct.pack("<d", value)
        value, kind = int(value), int
    if issubclass(kind, int):
        value = int.__pos__(value)
        return b"i" + b"%d" % value if abs(value) < 1 << 4096 else STRANGE
    return MISSING if is_missing(value) else STRANGE
