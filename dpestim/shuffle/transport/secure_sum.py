"""`SecureSum`: the sum of vectors under masks that cancel, with recovery of those who drop out. A simulation."""

import hashlib
from collections import namedtuple
from fractions import Fraction
from numbers import Real

import numpy as np

from dpestim.rng import Stage, WordReader, WordSource, check_random_state
from dpestim.shuffle.transport.messages import MOST_MESSAGES, check_integer
from dpestim.shuffle.transport.neighbours import around_ring, graph_of
from dpestim.shuffle.transport.shamir import coefficients, recover, split

#: What the users of one sum hold: their secrets, whose neighbour is who, and the shares that neighbours keep.
_Round = namedtuple("_Round", "mask_secrets self_seeds neighbours mask_shares self_shares threshold")


class SecureSum:
    """Add up vectors modulo 2**bits so that the server meets them under masks only: a functional simulation.

    Every user has neighbours in a random regular graph. Each pair adds and takes away the same pseudo-random mask, and
    each user adds one of its own; the seeds are shared among neighbours (Shamir), so that the server can remove the
    masks of those who dropped out after they were added, and the own masks of those who stayed. Between processes take
    `dpestim.parties.SecureSum`.

    **Privacy.** None is claimed: one process plays all parts, and a hash of both secrets stands in for the agreement on
    keys. What is simulated faithfully is the arithmetic: who masks with what, what is shared, what can be recovered.

    **Utility.** The sum of the vectors of the survivors modulo 2**bits, exactly, or an error.

    **Complexity.** For n users, k neighbours, vectors of length L, s dropped: O(n k L) words of AES, O(n k t)
    operations modulo a prime, O(n L) memory. k grows with log n; it is n - 1 for few users.

    Parameters
    ----------
    bits : int, default=64
        Sums are modulo 2**bits, from 1 to 64.
    dropout : float, default=0.1
        The share of users that may drop out, from 0 up to below 1.
    corrupt : float, default=0.1
        The share of users that may collude, from 0; dropout + corrupt < 1.
    random_state : None, int or NumPy generator, default=None
        None draws secure words at each call; an int repeats them.

    Raises
    ------
    ValueError
        For a parameter or vectors out of range, and where so many dropped that a mask cannot be removed.

    References
    ----------
    J. Bell, K. Bonawitz, A. Gascon, T. Lepoint, M. Raykova, Secure Single-Server Aggregation with (Poly)Logarithmic
    Overhead, CCS 2020 (the protocol for users who follow it); the number of neighbours by our ``secure_sum.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle.transport import SecureSum
    >>> vectors = np.arange(12, dtype=np.uint64).reshape(4, 3)
    >>> SecureSum(dropout=0.3).sum(vectors, dropped=[3])
    array([ 9, 12, 15], dtype=uint64)
    """

    def __init__(self, bits=64, *, dropout=0.1, corrupt=0.1, random_state=None):
        check_integer("bits", bits, 1, 64)
        if not (isinstance(dropout, Real) and isinstance(corrupt, Real)):
            raise ValueError("dropout and corrupt must be numbers")
        if not (dropout >= 0 and corrupt >= 0 and dropout + corrupt < 1):
            raise ValueError("dropout and corrupt must be at least 0, and below 1 together")
        check_random_state(random_state)
        self.bits, self.dropout, self.corrupt, self.random_state = bits, dropout, corrupt, random_state

    def graph(self, n):
        """Return the number of neighbours of each of n users and how many of their shares recover a seed."""
        check_integer("n", n, 2, MOST_MESSAGES)
        # 0.3 of 10 is meant to be 3, though the float lies below
        gone, corrupt = (int(Fraction(x).limit_denominator(10**6) * n) for x in (self.dropout, self.corrupt))
        return graph_of(int(n), gone, corrupt)

    def sum(self, vectors, dropped=()):
        """Return the sum of the vectors (n, L) of those who did not drop out, modulo 2**bits.

        `dropped` names users, from 0 to n - 1, who agreed on masks and then sent nothing.
        """
        vectors = self._checked(vectors)
        gone = self._gone(dropped, len(vectors))
        around = self._set_up(len(vectors))
        total = np.zeros(vectors.shape[1], np.uint64)
        for user in range(len(vectors)):
            helpers = around.neighbours[user][~gone[around.neighbours[user]]]
            if len(helpers) < around.threshold:
                raise ValueError(f"dropped must be fewer than {gone.sum()} of {len(gone)} users, because a user has "
                                 f"fewer than {around.threshold} neighbours left and its masks cannot be removed: "
                                 "raise dropout")
        for user in np.flatnonzero(~gone):
            total += self._masked(around, user, vectors[user])
        for user in range(len(vectors)):
            shares = (around.mask_shares if gone[user] else around.self_shares)[user]
            kept = np.flatnonzero(~gone[around.neighbours[user]])[: around.threshold]
            seed = recover([(int(at) + 1, shares[at]) for at in kept])
            if not gone[user]:
                total -= _mask(b"self", len(total), seed)
                continue
            for other in around.neighbours[user][~gone[around.neighbours[user]]]:
                # what the neighbour added for this pair, made from the secret that was recovered
                total -= _pair_mask(other, user, around.mask_secrets[other], seed, len(total))
        return total & self._modulus

    def masked(self, vectors):
        """Return what the server would get of each user, for tests: vectors (n, L) under their masks."""
        vectors = self._checked(vectors)
        around = self._set_up(len(vectors))
        return np.array([self._masked(around, user, vector) for user, vector in enumerate(vectors)]) & self._modulus

    @property
    def _modulus(self):
        return np.uint64((1 << self.bits) - 1)

    def _checked(self, vectors):
        vectors = np.asarray(vectors)
        if vectors.dtype.kind != "u" or vectors.ndim != 2 or len(vectors) < 2:
            raise ValueError("vectors must be an array (n, L) of an unsigned integer type, of at least two users")
        return vectors.astype(np.uint64)

    def _gone(self, dropped, n):
        dropped = np.asarray(dropped, object)
        gone = np.zeros(n, bool)
        for user in dropped:
            if isinstance(user, bool) or not isinstance(user, int | np.integer) or not 0 <= user < n:
                raise ValueError(f"dropped must name users, integers from 0 to {n - 1}")
            gone[user] = True
        return gone

    def _set_up(self, n):
        """Return what users hold before they send anything."""
        k, threshold = self.graph(n)
        reader = WordSource(self.random_state).reader()
        # a ring in a random order, each user next to k / 2 on either side; the order by words of 128 bits
        lots = reader.dense(Stage.SUBSET, 0, 0, 0, 2 * n).reshape(n, 2)
        neighbours = around_ring(lots, k)
        drawn = reader.dense(Stage.SEED, 0, 0, 0, 4 * n * threshold).reshape(2, n, threshold, 2)
        numbers = coefficients(drawn)
        shares = split(numbers, k)
        return _Round(numbers[0, :, 0], numbers[1, :, 0], neighbours, *shares, threshold)

    def _masked(self, around, user, vector):
        """Return what a user sends."""
        out = vector + _mask(b"self", len(vector), around.self_seeds[user])
        for other in around.neighbours[user]:
            out += _pair_mask(user, other, around.mask_secrets[user], around.mask_secrets[other], len(vector))
        return out & self._modulus


def _mask(name, size, *numbers):
    """Return the mask of some secrets."""
    return mask_of(name + b"".join(int(number).to_bytes(16, "big") for number in numbers), size)


def mask_of(text, size):
    """Return pseudo-random words: AES-256 in counter mode under a hash of a text, which holds a secret."""
    reader = WordReader(hashlib.sha256(b"dpestim secure sum " + text).digest())
    return reader.dense(Stage.NOISE, 0, 0, 0, size)


def one_sided(user, other, mask):
    """Return what a user adds for another of the mask of both: what the other takes away."""
    return mask if user < other else np.uint64(0) - mask


def _pair_mask(user, other, secret, other_secret, size):
    """Return what a user adds for a neighbour: what the neighbour takes away.

    A hash of both secrets stands in for the agreement on a key, which needs one secret and the other's public key.
    """
    secrets = (secret, other_secret) if user < other else (other_secret, secret)
    return one_sided(user, other, _mask(b"pair", size, *secrets))
