"""The law of the noise of a release: integers on a public grid, exactly, and its guarantee.

A law is a frozen dataclass: its fields are its identity, by which it is equal, hashed, pickled and cached. Integers are
drawn by *attempts* of a fixed number of random words each. The kernel decides an attempt by its words, unless they tie
with a threshold; then `_settle` decides the same attempt with as many further digits as it takes. So every attempt has
its exact probability, and there is no tail that was left out. Attempts never share a word, and an attempt that is
rejected never lends its words to the next.

Laws of the local model derive their identity from the signature of ``__init__`` instead (`dpestim.local.law`), and that
is no oversight. A local law is written by third parties, takes what a user typed (an epsilon of any type, a list of
categories, defaults), and its ``__init__`` makes attributes of it; a dataclass would need a second declaration for
them. The fields here are exact numbers that an estimator has checked and worked out (a share of epsilon, a sensitivity
in steps), so there is nothing to translate, and a plain dataclass says it all.
"""

import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpestim.privacy.curve import Curve
from dpestim.privacy.rounding import float_up
from dpestim.records import record
from dpestim.rng import Stage

#: Columns of stage NOISE that a draw uses: the words of attempts, and the further digits of those that tie.
COLUMNS = 2
#: No integer is larger: what exceeds it is cut to it.
LARGEST = 1 << 62
_CUT = np.int64(LARGEST // 2)
#: How far tails are off, relatively, at most.
_CLOSE = Fraction(1, 10**29)
#: Words that are drawn at a time, at most.
_WORDS = 1 << 15


@record
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
    #: (m, x), an int and a Fraction: P[Z = z + m] is e^-x P[Z = z] for every z >= 0; None: its ratio has no bound
    decay: ClassVar[tuple | None] = None
    #: what is known besides, for any answers `sensitivity` apart, however many: the curve of a guarantee
    curve: ClassVar[Curve | None] = None

    def __reduce__(self):
        """Pickle what it was made from, and none of what has been worked out."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def step(self):
        """The public step of the grid, a power of two."""
        return math.ldexp(1.0, self.exponent)

    def add(self, codes, source, column=0):
        """Return integers with noise, cut at 2^61 before and after; the array of int64 is changed."""
        if source.sums is not None:  # (several parties add up their integers, and each adds a share of this noise)
            np.minimum(np.maximum(codes, -_CUT, out=codes), _CUT, out=codes)
            codes[...] = source.sums.noisy(self, codes.ravel()).reshape(codes.shape)
            return codes
        return self.add_drawn(codes, self.draw(source, codes.size, column))

    def add_drawn(self, codes, noise):
        """Return integers with noise that `draw` has drawn, for these alone, cut as `add` cuts it."""
        np.minimum(np.maximum(codes, -_CUT, out=codes), _CUT, out=codes)
        codes += noise.reshape(codes.shape)
        # |code| <= 2^61 and |noise| <= 2^62: the sum fits, and is cut as that with uncut noise would be
        return np.minimum(np.maximum(codes, -_CUT, out=codes), _CUT, out=codes)

    @cached_property
    def reach(self):
        """The largest answer that noise can be added to: 2^61 steps."""
        return math.ldexp(float(LARGEST // 2), self.exponent)

    # ---------------------------------------------------------------- what a sub-class brings

    def _attempts(self, words, out):
        """Return (attempts that were decided, integers that were written)."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn: implement `_attempts`")

    def _settle(self, words, stream):
        """Return the integer of one attempt, or None where it is rejected; a list of ints, and a stream of more."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn: implement `_settle`")

    def probability(self, z):
        """Return Fractions around P[Z = z], relative distance below 1e-30."""
        raise TypeError(f"{type(self).__name__} does not state its law: implement `probability`")

    def beyond(self, k):
        """Return an upper bound, a Fraction, of P[abs(Z) >= k], k >= 1."""
        raise TypeError(f"{type(self).__name__} does not state its tails: implement `beyond`")

    def beyond_at_least(self, k):
        """Return a lower bound of it, a Fraction: here of a `beyond` that is at most a relative 1e-29 too large."""
        return self.beyond(k) * (1 - _CLOSE)

    @property
    def variance_steps(self):
        """The variance of Z."""
        raise TypeError(f"{type(self).__name__} does not state its variance: implement `variance_steps`")

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

    def draw(self, source, size, column=0):
        """Return `size` integers as an array of int64.

        All randomness comes from a `dpestim.rng.WordSource`, from `COLUMNS` columns of words, of which this is the
        first.
        """
        drawn = NoiseStream(self, source, column).take(size)
        return drawn if drawn.dtype == np.int64 else np.clip(drawn, -LARGEST, LARGEST).astype(np.int64)

    def one(self, stream):
        """Return one integer, uncut, by the words of a `dpestim.exact_reals.BitStream`."""
        while (z := self._settle([stream.word() for _ in range(self.per)], stream)) is None:
            pass
        return z


class NoiseStream:
    """The integers of a law, one after the other: how many are taken at a time changes none of them.

    Its words are those of `COLUMNS` columns, the attempts and what ties, of which `column` is the first.
    """

    def __init__(self, law, source, column=0):
        self._law, self._source, self._column = law, source, column
        self._reader, self._ties = source.reader(), None
        self._next = 0  # number of the first attempt that was not looked at

    def __reduce__(self):
        """Refuse, as its source does."""
        raise TypeError("a NoiseStream cannot be pickled or copied, because the copy would repeat its noise: make a "
                        "new one")

    def take(self, size):
        """Return the next integers: int64, or Python integers where one exceeds 2^61 in absolute value."""
        law, out, large, filled = self._law, np.empty(size, np.int64), {}, 0
        per = law.per
        while filled < size:
            n = min(int((size - filled) / law.rate * 1.02) + 4, max(1, _WORDS // per))
            words = self._reader.dense(Stage.NOISE, self._column, 0, self._next * per, n * per)
            done = 0
            while done < n and filled < size:
                decided, written = law._attempts(words[done * per :], out[filled:])
                done, filled = done + decided, filled + written
                if done < n and filled < size:
                    if self._ties is None:  # (a reader reuses its buffers)
                        from dpestim.exact_reals import BitStream  # (ties are rare)

                        self._ties = BitStream(self._source.reader(), self._column + 1, 0)
                    z = law._settle(words[done * per : (done + 1) * per].tolist(), self._ties)
                    if z is not None:
                        if abs(z) > LARGEST // 2:
                            large[filled] = z
                        else:
                            out[filled] = z
                        filled += 1
                    done += 1
            self._next += done
        if large:
            out = out.astype(object)
            for place, z in large.items():
                out[place] = z
        return out


def settle_digits(lanes, probabilities, overflow, stream):
    """Return the geometric number whose n digits show `probabilities`, and every 2^n more of it `overflow`."""
    from dpestim.exact_reals import Real  # (ties are rare)

    number = sum(
        Real(stream, lane, 32).is_below(probability) << k
        for k, (lane, probability) in enumerate(zip(lanes, probabilities))
    )
    high, lane = 0, Real(stream, lanes[len(probabilities)], 32)
    while lane.is_below(overflow):
        high, lane = high + 1, Real(stream)
    return number + (high << len(probabilities))
