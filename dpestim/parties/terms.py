"""What the parties of one secure sum agree on before it: how many, what may fail, and the graph that follows."""

import hashlib
import json
from dataclasses import asdict
from fractions import Fraction
from numbers import Real

import numpy as np

from dpestim.parties.limits import MOST_ENTRIES, MOST_PARTIES
from dpestim.records import record
from dpestim.rng import Stage, WordReader
from dpestim.shuffle.transport.messages import check_integer
from dpestim.shuffle.transport.neighbours import around_ring, graph_of


@record
class SumTerms:
    """The terms of one secure sum; all parties and the server must have equal ones.

    Parameters
    ----------
    n_parties : int
        From 2.
    size : int
        Entries of each vector.
    bits : int, default=64
        The sum is modulo 2**bits.
    dropout : float, default=0.0
        The share of parties that may drop out; where more do, there is an error.
    corrupt : float, default=0.0
        The share of parties that may collude with the server.
    active : bool, default=False
        False: the server is honest-but-curious. True: it may also send anything. Then all parties are neighbours, they
        sign who has survived, and n_parties > 2 dropped + corrupt is needed.
    label : str, default=""
        The name of this sum. With an active server every sum of a directory needs a new one.
    """

    n_parties: int
    size: int
    bits: int = 64
    dropout: float = 0.0
    corrupt: float = 0.0
    active: bool = False
    label: str = ""

    def __post_init__(self):
        for name, low, high in (("n_parties", 2, MOST_PARTIES), ("size", 1, MOST_ENTRIES), ("bits", 1, 64)):
            check_integer(name, getattr(self, name), low, high)
            object.__setattr__(self, name, int(getattr(self, name)))  # (equal terms have one text, which is signed)
        for name in ("dropout", "corrupt"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < 1:
                raise ValueError(f"{name} must be a number from 0 up to below 1")
            object.__setattr__(self, name, abs(float(value)))  # (-0.0 and 0 are 0.0)
        if not isinstance(self.active, bool) or not isinstance(self.label, str):
            raise ValueError("active must be a bool, and label a str")
        n, gone, bad = self.n_parties, self.n_dropped, self.n_corrupt
        if gone + bad > n - 2:
            raise ValueError(f"dropout and corrupt must leave two honest parties of {n}: lower one of them")
        if self.active and n <= 2 * gone + bad:
            raise ValueError("n_parties must be above twice those that drop out plus those that are corrupt, where "
                             "active=True: lower dropout or corrupt")

    @property
    def n_dropped(self):
        """How many may drop out at most."""
        return self._share(self.dropout)

    @property
    def n_corrupt(self):
        """How many may collude at most."""
        return self._share(self.corrupt)

    def _share(self, share):
        # 0.3 of 10 is meant to be 3, though the float lies below
        return int(Fraction(share).limit_denominator(10**6) * self.n_parties)

    @property
    def graph(self):
        """The number of neighbours of a party, and how many of their shares recover a seed."""
        if self.active or self.n_parties < 4:
            return self.n_parties - 1, self.n_corrupt + 1
        return graph_of(self.n_parties, self.n_dropped, self.n_corrupt)

    @property
    def quorum(self):
        """How many parties must have signed the same survivors, where the server is active."""
        return (self.n_parties + self.n_corrupt) // 2 + 1

    @property
    def most_bytes(self):
        """Bytes of arrays of any message, at most."""
        return max(8 * self.size, 256 * self.n_parties)

    def neighbours(self, seed):
        """Return the neighbours (n, k) of all parties, sorted, by 32 bytes of the server."""
        k = self.graph[0]
        if k == self.n_parties - 1:
            places = np.arange(self.n_parties)
            return np.array([np.delete(places, place) for place in places])
        words = WordReader(seed).dense(Stage.SUBSET, 0, 0, 0, 2 * self.n_parties).reshape(self.n_parties, 2)
        return np.sort(around_ring(words, k), axis=1)

    def context(self, directory):
        """Return a hash of the terms and of the directory, which stands in all that is signed."""
        if len(directory.parties) != self.n_parties:
            raise ValueError(f"directory must have the keys of {self.n_parties} parties, not {len(directory.parties)}")
        text = json.dumps(asdict(self), sort_keys=True).encode()
        return hashlib.sha256(b"dpestim secure sum 2 " + directory.digest() + text).digest()
