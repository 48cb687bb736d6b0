"""The law of the noise of a release: integers on a public grid, exactly, and its guarantee.

A law is a frozen dataclass: its fields are its identity, by which it is equal, hashed, pickled and cached. Integers are
drawn by *attempts* of a fixed number of random words each. The kernel decides an attempt by its words, unless they tie
with a threshold; then `_settle` decides the same attempt with as many further digits as it takes. So every attempt has
its exact probability, and there is no tail that was left out. Attempts never share a word, and an attempt that is
rejected never lends its words to the next.
"""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpestim.central.digits import Real, float_up
from dpestim.noise import BitStream
from dpestim.rng import Stage

#: Columns of stage NOISE: the words of attempts, and the further digits of those that tie.
_ATTEMPTS, _TIES = 0, 1
#: No integer is larger: what exceeds it is cut to it, and so is its sum with an answer (see `mechanism.py`).
LARGEST = 1 << 62
#: Words that are drawn at a time, at most.
_WORDS = 1 << 15


@dataclass(frozen=True)
class NoiseLaw:
    """The law of integers Z that are added to answers in units of a step; made once, and never changed.

    A sub-class declares its fields, of which these are shared, and brings `per` (words an attempt), `rate` (the share
    of attempts that is accepted, about), `_attempts` (the kernel), `_settle`, `probability`, `beyond` and
    `variance_steps`.

    Parameters
    ----------
    epsilon, delta : Fraction
        What holds, exactly, for any two answers that are `sensitivity` apart.
    sensitivity : Fraction
        How far apart the answers of neighbours can be, in steps, their rounding to the grid included.
    exponent : int
        The step is 2^exponent.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    exponent: int
    #: the norm in which `sensitivity` is measured; None: each answer may move so far by itself
    norm: ClassVar[int | None] = 1
    #: where much less than epsilon or delta is used: the reason, in a sentence
    slack: ClassVar[str] = ""

    def __reduce__(self):
        """Pickle what it was made from, and none of what has been worked out."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def step(self):
        """The public step of the grid, a power of two."""
        return math.ldexp(1.0, self.exponent)

    # ---------------------------------------------------------------- what a sub-class brings

    def _attempts(self, words, out):
        """Return (attempts that were decided, integers that were written)."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn")

    def _settle(self, words, stream):
        """Return the integer of one attempt, or None where it is rejected; a list of ints, and a stream of more."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn")

    def probability(self, z):
        """Return Fractions around P[Z = z], relative distance below 1e-30."""
        raise TypeError(f"{type(self).__name__} does not state its law")

    def beyond(self, k):
        """Return an upper bound, a Fraction, of P[abs(Z) >= k], k >= 1."""
        raise TypeError(f"{type(self).__name__} does not state its tails")

    @property
    def variance_steps(self):
        """The variance of Z."""
        raise TypeError(f"{type(self).__name__} does not state its variance")

    # ---------------------------------------------------------------- what all have

    @property
    def variance(self):
        """The variance of the noise, in squared units of the answers."""
        return self.variance_steps * self.step**2

    def tail(self, t):
        """Return P[abs(noise) > t], rounded up; t is in units of the answers."""
        if t < 0:
            return 1.0
        if t == math.inf:
            return 0.0
        return min(1.0, float_up(self.beyond(math.floor(Fraction(t) / Fraction(2) ** self.exponent) + 1)))

    def half_width(self, confidence):
        """Return the least number of steps, in units of the answers, that noise exceeds with 1 - confidence at most."""
        wanted, high = 1 - Fraction(confidence), 1
        while self.beyond(high + 1) > wanted:
            high *= 2
        low = 0
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.beyond(middle + 1) <= wanted else (middle + 1, high)
        return high * self.step

    def draw(self, source, size):
        """Return `size` integers as an array of int64; all randomness comes from a `dpestim.rng.WordSource`."""
        out, reader = np.empty(size, np.int64), source.reader()
        filled, first, ties = 0, 0, None
        while filled < size:
            n = min(int((size - filled) / self.rate * 1.02) + 4, max(1, _WORDS // self.per))
            words = reader.dense(Stage.NOISE, _ATTEMPTS, 0, first * self.per, n * self.per)
            done = 0
            while done < n and filled < size:
                decided, written = self._attempts(words[done * self.per :], out[filled:])
                done, filled = done + decided, filled + written
                if done < n and filled < size:
                    ties = ties or BitStream(source.reader(), _TIES, 0)  # (a reader reuses its buffers)
                    z = self._settle(words[done * self.per : (done + 1) * self.per].tolist(), ties)
                    if z is not None:
                        out[filled] = min(max(z, -LARGEST), LARGEST)
                        filled += 1
                    done += 1
            first += n
        return out


def settle_digits(lanes, probabilities, overflow, stream):
    """Return the geometric number whose n digits show `probabilities`, and every 2^n more of it `overflow`."""
    number = sum(
        Real(stream, lane, 32).is_below(probability) << k
        for k, (lane, probability) in enumerate(zip(lanes, probabilities))
    )
    high, lane = 0, Real(stream, lanes[len(probabilities)], 32)
    while lane.is_below(overflow):
        high, lane = high + 1, Real(stream)
    return number + (high << len(probabilities))
