"""Views of a code: its first bits, or some of its bits beside a hash of all of it."""

import hashlib

import numpy as np

from dpestim._core import sketch
from dpestim.local.views import View


class Prefix(View):
    """The first bits of a code.

    Parameters
    ----------
    name, law : as `View`
    n_bits : int
        How many bits.
    dropped : int
        How many bits follow.
    """

    def __init__(self, name, law, n_bits, dropped):
        super().__init__(name, law, (0,))
        self.n_bits, self.dropped = n_bits, dropped

    @property
    def function(self):
        """Bits that stay, and bits that are dropped."""
        return self.n_bits, self.dropped

    def of(self, codes):
        """Return the prefix of each code."""
        return (codes[0] >> np.uint64(self.dropped)).astype(self.law.code_dtype)


class Fragment(View):
    """Some bits of a code, behind a public hash of all of it, by which fragments of one code find each other.

    Parameters
    ----------
    name, law : as `View`
    n_bits : int
        How many bits the fragment has.
    dropped : int
        How many bits follow it.
    columns : ndarray of uint32 of shape (1, bits of a code)
        The hash (`hash_of`).
    hash_bits : int
        How many bits the hash has.
    """

    def __init__(self, name, law, n_bits, dropped, columns, hash_bits):
        super().__init__(name, law, (0,))
        self.n_bits, self.dropped, self.columns, self.hash_bits = n_bits, dropped, columns, hash_bits

    @property
    def function(self):
        """The place of the fragment, and the hash."""
        return self.n_bits, self.dropped, tuple(self.columns[0].tolist())

    def of(self, codes):
        """Return hash and fragment of each code as one number."""
        part = codes[0] >> np.uint64(self.dropped) & np.uint64((1 << self.n_bits) - 1)
        own = hashed(codes[0], self.columns).astype(np.uint64) << np.uint64(self.n_bits)
        return (own | part).astype(self.law.code_dtype)


def hash_of(n_bits, hash_bits, seed):
    """Return a public linear hash of codes of so many bits, drawn from a seed: a column for each bit."""
    drawn = hashlib.shake_256(b"dpestim puzzle %d" % seed).digest(4 * n_bits)
    return np.ascontiguousarray(np.frombuffer(drawn, "<u4").reshape(1, -1) & np.uint32((1 << hash_bits) - 1), np.uint32)


def hashed(codes, columns):
    """Return the hash of each code, uint32."""
    out = np.empty(len(codes), np.uint32)
    sketch.buckets(np.ascontiguousarray(codes, np.uint64), np.zeros(len(codes), np.uint32), columns, out)
    return out
