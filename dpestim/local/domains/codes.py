"""Values of huge domains as codes of up to 64 bits: integers, and text of bounded length; and back.

The first bits of a code are the first characters of a text, so that a prefix of one is a prefix of the other.
"""

from copy import copy

import numpy as np

from dpestim.inputs.columns import is_missing, object_array, parts

_NO_TEXT = "has a value that is no string: convert the column to strings"
_TOO_LONG = "has a text that is longer than max_length allows: cut texts before, or declare a larger max_length"
_STRANGE = "has a character that the alphabet does not list: replace it, or declare it"
_MISSING = "has a missing value (None, NaN or NA): leave it out"
_NO_INTEGER = "has a value that is no integer from 0 to 2^n_bits - 1: convert the values, or declare more n_bits"


class Codes:
    """A feature whose values are codes below 2^`n_bits`; a sub-class brings `_codes`, `values` and `possible`.

    Parameters
    ----------
    name : str
        As errors call it.
    n_bits : int
        From 1 to 64.
    """

    def __init__(self, name, n_bits):
        self.name, self.n_bits, self.n_values = name, n_bits, 1 << n_bits

    def named(self, name):
        """Return the same feature under another name."""
        twin = copy(self)
        twin.name = name
        return twin

    def read(self, values, n_jobs, explain=True):
        """Return (the code of each value, 0 for what has none; why there is such a value, or None)."""
        items, index, null = parts(values, self.name)
        if index is not None:
            codes, good = self._codes(items)
            codes, good = np.append(codes, np.uint64(0))[index], np.append(good, False)[index]
        elif null is not None:
            codes, good = np.zeros(len(null), np.uint64), np.zeros(len(null), bool)
            codes[~null], good[~null] = self._codes(items[~null] if len(items) == len(null) else items)
        else:
            codes, good = self._codes(items)
        if not explain or good.all():
            return codes, None
        if null is not None or (index is not None and (index < 0).any()):
            return codes, _MISSING
        bad = items[~good] if index is None else []
        return codes, _MISSING if any(is_missing(v) for v in bad) else self._why(bad)

    def _codes(self, values):
        """Return (codes, a mask: which values have one) of an array."""
        raise TypeError(f"{type(self).__name__} does not say how to code values: implement `_codes`")

    def possible(self, prefixes, n_bits):
        """Return a mask: which prefixes of so many bits some value has."""
        return np.ones(len(prefixes), bool)


class IntegerCodes(Codes):
    """Integers from 0 to 2^`n_bits` - 1, which are their own codes."""

    def identity(self):
        """Return what two features must share for their reports to be counted together."""
        return "integers", self.n_bits

    @property
    def domain(self):
        """The integers, as a survey says them."""
        return {"kind": "integers", "bits": self.n_bits}

    def values(self, codes):
        """Return the integers."""
        return np.asarray(codes, np.uint64)

    def _codes(self, values):
        kind, out = values.dtype.kind, np.zeros(len(values), np.uint64)
        if kind in "bui":
            good = (values >= 0) & (values.astype(np.uint64) <= np.uint64(self.n_values - 1))
        elif kind == "f":
            with np.errstate(all="ignore"):
                good = (values >= 0) & (values < float(self.n_values)) & (np.floor(values) == values)
        elif kind != "O":
            return out, np.zeros(len(values), bool)
        else:
            most = self.n_values
            whole = [self._whole(value) for value in values.tolist()]
            good = np.array([v is not None and 0 <= v < most for v in whole], bool)
            out[good] = np.array([v for v, fine in zip(whole, good) if fine], np.uint64)
            return out, good
        out[good] = values[good].astype(np.uint64)
        return out, good

    @staticmethod
    def _whole(value):
        kind = type(value)
        if issubclass(kind, int):
            return int.__pos__(value)
        if issubclass(kind, float) and float.is_integer(value):
            return int(float.__pos__(value))
        # (a duration is one of NumPy's integers)
        return int(np.generic.item(value)) if issubclass(kind, np.integer) and kind is not np.timedelta64 else None

    @staticmethod
    def _why(bad):
        return _NO_INTEGER


class TextCodes(Codes):
    """Text of at most so many characters of a public alphabet, or of so many bytes of UTF-8 where there is none.

    A character is its place in the alphabet, from 1 on, in as few bits as that takes, and 0 stands behind the end.
    """

    def __init__(self, name, max_length, alphabet=None):
        self.length, self.alphabet = max_length, alphabet
        self.n_symbols = 255 if alphabet is None else len(alphabet)
        self.width = self.n_symbols.bit_length()
        super().__init__(name, self.width * max_length)

    def identity(self):
        """Return what two features must share for their reports to be counted together."""
        return "text", self.length, self.alphabet

    @property
    def domain(self):
        """The texts, as a survey says them."""
        return {"kind": "characters", "length": self.length, "alphabet": self.alphabet}

    def values(self, codes):
        """Return the texts, and None for a code that is none."""
        codes = np.asarray(codes, np.uint64)
        shifts = np.arange(self.length - 1, -1, -1, dtype=np.uint64) * np.uint64(self.width)
        symbols = (codes[:, None] >> shifts) & np.uint64((1 << self.width) - 1)
        return object_array([self._text([s for s in row if s]) for row in symbols.tolist()])

    def _text(self, symbols):
        if self.alphabet is not None:
            return "".join(self.alphabet[s - 1] for s in symbols) if max(symbols, default=0) <= self.n_symbols else None
        try:
            return bytes(symbols).decode("utf-8")
        except UnicodeDecodeError:
            return None

    def possible(self, prefixes, n_bits):
        """Return a mask: characters are of the alphabet, and none stands behind the end."""
        good, ended = np.ones(len(prefixes), bool), np.zeros(len(prefixes), bool)
        for k in range(n_bits // self.width):
            symbol = (prefixes >> np.uint64(n_bits - (k + 1) * self.width)) & np.uint64((1 << self.width) - 1)
            good &= (symbol <= self.n_symbols) & ~(ended & (symbol > 0))
            ended |= symbol == 0
        rest = n_bits % self.width
        return good & ~(ended & ((prefixes & np.uint64((1 << rest) - 1)) > 0))

    def _codes(self, values):
        if values.dtype.kind == "U":
            text, good = values, np.ones(len(values), bool)
        else:  # (nothing of a value's own class is called)
            good = np.array([issubclass(type(v), str) for v in values.tolist()], bool)
            text = np.array([str.__getitem__(v, slice(self.length + 1)) if fine else ""
                             for v, fine in zip(values.tolist(), good)], "U")
        points = np.ascontiguousarray(text).view(np.uint32).reshape(len(text), -1)
        symbols = self._bytes(text, points) if self.alphabet is None else self._places(points)
        good = good & (symbols[:, self.length:] == 0).all(axis=1) & (symbols <= self.n_symbols).all(axis=1)
        out = np.zeros(len(text), np.uint64)
        for k in range(self.length):
            out <<= np.uint64(self.width)
            if k < symbols.shape[1]:
                out |= symbols[:, k].astype(np.uint64)
        out[~good] = 0
        return out, good

    def _places(self, points):
        """Return the place of each character, one more than there are for one that is not in the alphabet."""
        known = np.array([0, *map(ord, self.alphabet)], np.uint32)
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], points), len(known) - 1)
        return np.where(known[order][at] == points, order[at], len(known))

    @staticmethod
    def _bytes(text, points):
        if not points.size or points.max() < 128:
            return points
        coded = [value.encode("utf-8", "surrogatepass") for value in text.tolist()]
        longest = max(1, max(map(len, coded)))
        return np.frombuffer(b"".join(value.ljust(longest, b"\0") for value in coded), np.uint8).reshape(-1, longest)

    def _why(self, bad):
        if any(not issubclass(type(v), str) for v in bad):
            return _NO_TEXT
        return _TOO_LONG if any(len(v) > self.length for v in bad) or self.alphabet is None else _STRANGE
