"""Layers of a law of noise in the plane: weights that fall with the distance, made of discs, in integers."""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpestim.privacy.exact import WORD, exp_lower
from dpestim.records import record

#: How far the weight falls within an interval of sizes: what is lost of epsilon is about half of it.
_FALL = 0.02
#: A report is uniform in a box, whatever the place, with about one of these probabilities: the first that words allow.
_ANYWHERE = 2.0**-30, 2.0**-25, 2.0**-20
_DIGITS = 10**24  # of roots, which are rounded against privacy being lost
_BITS = 160  # of sums of powers


@record
class Layers:
    """How one attempt to draw noise goes: a word picks an interval of sizes, the next one a size and a point.

    Attributes
    ----------
    starts, counts, bits, masses : list of int
        Of interval i: the least size, the binary logarithm of how many sizes it has, that of the side of the square in
        which the point is drawn, and how many of 2^64 words pick it. The point is accepted if its size is at most the
        size that was drawn.
    box_bits : int
        The binary logarithm of the side of the box of all other words; the box has all points that can be reached.
    manhattan : bool
        Whether the size of (i, j) is abs(i) + abs(j); else it is the square of its length, i^2 + j^2.
    """

    starts: list
    counts: list
    bits: list
    masses: list
    box_bits: int
    manhattan: bool

    @property
    def anywhere(self):
        """How many words pick the box."""
        return WORD - sum(self.masses)

    def weights(self):
        """Return (sizes, weights): a point has weight k if its size is above that of k - 1, and at most that of k.

        Points beyond the last size have the last weight. Weights are integers over 2^64 4^box_bits: the probability
        that one attempt ends at the point.
        """
        value, out = self.anywhere, [self.anywhere]
        for bits, mass in zip(self.bits[::-1], self.masses[::-1]):
            value += mass << 2 * (self.box_bits - bits)
            out.append(value)
        return [*self.starts], out[::-1]

    def at(self, size):
        """Return the weight of points of a size: linear in the size within an interval, as `weights` says at its ends.

        An integer over 2^64 4^box_bits 2^62.
        """
        k = bisect_right(self.starts, size) - 1
        left = self.starts[k] + (1 << self.counts[k]) - size
        inner = self.masses[k] * max(left, 0) << 62 - self.counts[k] + 2 * (self.box_bits - self.bits[k])
        return (self._weights[k + 1] << 62) + inner

    @cached_property
    def _weights(self):
        return self.weights()[1]

    def check(self, rate):
        """Raise ValueError unless weights of two points at distance r differ by at most e^(rate r), in integers."""
        for k, (inner, outer) in enumerate(pairwise(self.weights()[1])):
            start, count = self.starts[k], self.counts[k]
            if (inner - outer) * WORD**2 > outer * math.floor(growth(rate, start, count, self.manhattan) * WORD**2):
                raise ValueError("a layer of the noise falls faster than epsilon allows")


@lru_cache(maxsize=1 << 14)  # (asked for when a law is made, and again when it is checked)
def growth(rate, start, count, manhattan):
    """Return a Fraction by which a weight may grow from the end of an interval to its start, for `rate` a step.

    One size: by e^(rate times the difference of the lengths) - 1. More: the weight is linear in the size, and its
    logarithm may nowhere change faster than `rate` a step.
    """
    end = start + (1 << count)
    if manhattan:
        return exp_lower(rate) - 1 if not count else rate * (1 << count)
    if not count:
        return _growth_of(rate * (_root(end, False) - _root(start, True)))
    return rate * (1 << count) / (2 * _root(end, True))


def _growth_of(x):
    """Return a Fraction at most e^x - 1, for a Fraction x of at least 0: for small ones a sum of the first powers.

    No term x^k / k! is negative and each is rounded down, so that the sum is a lower bound wherever it ends.
    """
    if x > 1:
        return exp_lower(x) - 1
    power = total = scaled = (x.numerator << _BITS) // x.denominator
    k = 1
    while power:
        k += 1
        power = (power * scaled >> _BITS) // k
        total += power
    return Fraction(total, 1 << _BITS)


def _root(size, up):
    """Return a Fraction near a square root, not below it, or not above."""
    root = math.isqrt(size * _DIGITS**2)
    return Fraction(root + (up and root * root != size * _DIGITS**2), _DIGITS)


def layers_of(rate, n_places, manhattan=False):
    """Return the `Layers` of noise that falls by e^-rate a step, for a region of so many places in each coordinate.

    Parameters
    ----------
    rate : Fraction
        Epsilon a step of the grid.
    n_places : int
        The larger of the two numbers of places.

    Raises
    ------
    ValueError
        Where 64-bit words cannot express the law.
    """
    for anywhere in _ANYWHERE:
        made = _made(rate, n_places, manhattan, anywhere)
        if made is not None:
            made.check(rate)
            return made
    raise ValueError("step must be larger, because epsilon times step is too small for 64-bit random words: take at "
                     "least 0.001 / epsilon, or closer bounds")


def _made(rate, n_places, manhattan, share):
    """Return layers of which this share is a box, or None where 64-bit words cannot express them well."""
    a, reach = float(rate), 18.0
    if a < 1e-6:  # (a size has at most 62 bits)
        return None
    while True:
        reach += 2
        knots = _knots(a, reach, manhattan)
        last = knots[-1][0] + (1 << knots[-1][1])
        radius = last if manhattan else math.isqrt(last) + 1
        box_bits = (n_places + 2 * radius).bit_length()
        bits = [_bits(start + (1 << count) - 1, manhattan) for start, count in knots]
        if box_bits > 31 or max(2 * side + count for side, (_, count) in zip(bits, knots)) > 64:
            return None
        falls = np.array([_fall(a, start, count, manhattan) for start, count in knots])
        with np.errstate(over="ignore"):
            value = np.append(np.cumprod((1 + falls)[::-1])[::-1], 1.0)
            masses = (value[:-1] - value[1:]) * 4.0 ** np.array(bits)
        total = masses.sum() + 4.0**box_bits
        if not np.isfinite(total):
            return None
        if 4.0**box_bits / total < share:
            break
    planned = math.floor(Fraction(4.0**box_bits / total) * WORD * (1 - Fraction(1, 10**9)))
    value, masses = planned, []
    for (start, count), side in zip(knots[::-1], bits[::-1]):
        shift = 2 * (box_bits - side)
        masses.append(math.floor(value * growth(rate, start, count, manhattan)) >> shift)
        value += masses[-1] << shift
    made = Layers([k[0] for k in knots], [k[1] for k in knots], bits, masses[::-1], box_bits, manhattan)
    # (masses near the end may have been rounded down to little or nothing)
    return made if made.anywhere >= planned > 0 and value >= 0.98 * planned * float(np.prod(1 + falls)) else None


def _knots(a, reach, manhattan):
    """Return (start, count) of intervals of sizes: lengths up to reach / a steps, in parts over which weights fall."""
    out, start, furthest = [], 0, max(2.0, reach / a)
    while (start if manhattan else math.sqrt(start)) < furthest:
        width = _FALL / a * (1 if manhattan else 2 * math.sqrt(start))
        count = max(0, math.floor(math.log2(max(width, 1))))
        out.append((start, count))
        start += 1 << count
    return out


def _fall(a, start, count, manhattan):
    end = start + (1 << count)
    if manhattan:
        return a * (1 << count) if count else math.expm1(a)
    return a * (1 << count) / (2 * math.sqrt(end)) if count else math.expm1(a * (math.sqrt(end) - math.sqrt(start)))


def _bits(size, manhattan):
    """Return the least side, as a power of two, of a square that has all points of a size up to this one."""
    return (size if manhattan else math.isqrt(size)).bit_length() + 1 if size else 0
