"""The law of a sum of independent noises: by convolution on a lattice, and bounds by concentration (`accuracy.md`).

A sum is a tuple of (law, coefficient, how many): integers Z of the law count as coefficient times Z, as its absolute
value, or as its square.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from dpestim.accuracy.tails import largest_scale, log_moment, share, steps_beyond, tails
from dpestim.records import record

#: What is added up: Z itself, or abs(Z)^p.
SIGNED = 0
#: Points of a lattice, at most; atoms of a law that are taken one by one.
_POINTS, _ATOMS = 1 << 18, 1 << 20
#: The probability of what is beyond a lattice.
_LOST = Fraction(1, 10**14)
#: How far tails of one law may be off, relatively.
_CLOSE = 1e-11
#: The least beta for which convolution is asked, over what rounding of floats may cost.
_CLEAR = 1000


@record
class SumLaw:
    """The upper tail of a sum, in steps of a lattice: `tail[j]` is P[sum > j step], no less."""

    step: Fraction
    tail: np.ndarray
    #: what a tail may be too low by, as floats are rounded
    allowance: float
    #: whether every value of the sum is on the lattice, so that nothing was rounded up
    is_exact: bool

    def width(self, beta):
        """Return the least point that is exceeded with probability beta at most; None where floats cannot tell."""
        beta = float(beta)
        if self.allowance * _CLEAR > beta:
            return None
        reached = np.flatnonzero(self.tail + self.allowance <= beta)
        return float(reached[0] * self.step) if len(reached) else None

    def beyond(self, t):
        """Return P[sum > t], rounded up."""
        at = math.floor(Fraction(t) / self.step)
        return 1.0 if at < 0 else min(1.0, (self.tail[at] if at < len(self.tail) else 0.0) + self.allowance)


def width_of(parts, beta, power=SIGNED):
    """Return (what a sum exceeds in absolute value with probability beta at most, whether no less would do)."""
    if len(parts) == 1 and parts[0][2] == 1:
        law, coefficient, _ = parts[0]
        return float(coefficient * steps_beyond(law, Fraction(beta)) ** max(1, power)), True
    found = law_of(parts, power)
    width = found.width(beta)
    if width is not None and found.is_exact:
        return width, True
    # (very many terms are rounded up by more than concentration loses)
    return min(concentrated(parts, beta, power), math.inf if width is None else width), False


def tail_of(parts, t):
    """Return P[abs(sum) > t], rounded up."""
    if t < 0:
        return 1.0
    if len(parts) == 1 and parts[0][2] == 1:
        law, coefficient, _ = parts[0]
        least = math.floor(Fraction(t) / coefficient) + 1.0
        return min(1.0, 2 * float(tails(law, np.array([least]))[0]) * (1 + _CLOSE))
    return law_of(parts, SIGNED).beyond(t)


def concentrated(parts, beta, power=SIGNED):
    """Return what a sum exceeds in absolute value with probability beta at most, by bounds alone."""
    lost = share(beta, sum(n for *_, n in parts))
    union = float(sum(n * c * steps_beyond(law, lost) ** max(1, power) for law, c, n in parts))
    terms = [(law, math.sqrt(c) if power == 2 else float(c), n) for law, c, n in parts]
    if math.isinf(sum(log_moment(law, 0.0) for law, *_ in terms)):
        return union
    most = min(largest_scale(law) / c for law, c, _ in terms)
    # (both signs of one sum, or of every term: E[e^(s abs(Z))] is at most 2 E[e^(s Z)])
    signs = math.log(2) * (1 if power == SIGNED else sum(n for *_, n in terms))

    def bound(log):
        s = most * math.exp(log)
        return (sum(n * log_moment(law, s * c) for law, c, n in terms) + signs - math.log(float(beta))) / s

    found = float(minimize_scalar(bound, bounds=(-12.0, -1e-6), method="bounded").fun) * (1 + 1e-9)
    return min(union, found**2 if power == 2 else found)


@lru_cache(maxsize=64)
def law_of(parts, power):
    """Return the `SumLaw` of the absolute value of a sum, or of a sum of absolute values or of squares."""
    unit = _common([c for _, c, _ in parts])
    reach = concentrated(parts, float(_LOST), power)
    sides = 2 if power == SIGNED else 1
    points = sides * (math.floor(Fraction(reach) / unit) + 2)
    # (the lattice of the values themselves may be somewhat larger: on it nothing is rounded up)
    every = 1 if points <= (_POINTS << 2) else -(-points // _POINTS)
    n_terms = sum(n for *_, n in parts)
    # (rounding up moves a sum by a step a term at most)
    size = 1 << (sides * (points // sides // every + 2 + n_terms * (every > 1))).bit_length()
    spectrum = np.ones(size // 2 + 1, complex)
    for law, coefficient, n in parts:
        spectrum *= np.fft.rfft(_masses(law, int(coefficient / unit), every, power, size)) ** n
    mass = np.maximum(np.fft.irfft(spectrum, size), 0.0)
    half = size // sides
    tail = np.append(np.cumsum(mass[1:half][::-1])[::-1], 0.0) * sides
    allowance = 4e-16 * math.sqrt(size) * (n_terms + math.log2(size)) + 4 * float(_LOST)
    tail.flags.writeable = False
    return SumLaw(unit * every, tail, allowance, every == 1)


def _common(numbers):
    """Return the largest number of which all are multiples."""
    below = math.lcm(*(number.denominator for number in numbers))
    return Fraction(math.gcd(*(int(number * below) for number in numbers)), below)


def _masses(law, times, every, power, size):
    """Return the probabilities of `times` Z (or a power of its absolute value), rounded up to multiples of `every`.

    Places are taken modulo the size; what is beyond the last place counts there.
    """
    p, last = max(1, power), (size // 2 if power == SIGNED else size) - 1
    n_atoms = steps_beyond(law, _LOST) + 1
    out = np.zeros(size)
    if n_atoms <= _ATOMS:
        z = np.arange(1, n_atoms + 1)
        beyond = tails(law, np.arange(1, n_atoms + 2))
        masses = beyond[:-1] - beyond[1:]
        if times * n_atoms**p < 1 << 62:
            up, down = -(-times * z**p // every), times * z**p // every
        else:
            exact = z.astype(float) ** p * (times / every)
            up, down = np.ceil(exact * (1 + 1e-12)), np.floor(exact * (1 - 1e-12))
        up, down = (np.minimum(at, last).astype(np.int64) for at in (up, down))
        out[0] = 1 - 2 * beyond[0]
        np.add.at(out, up, masses if power == SIGNED else 2 * masses)
        if power == SIGNED:
            np.add.at(out, -down, masses)
        return out
    # the law is wider than the lattice is long: what is beyond each place, by a number that may be one too small
    ends = (np.arange(last + 1) * (every / times)) ** (1 / p)
    above = tails(law, np.maximum(1, np.floor(ends * (1 - 1e-12))))
    masses = above - np.append(above[1:], 0.0)  # those of the places 1, 2, ...
    masses[-2] += masses[-1]
    out[1 : last + 1] = masses[:-1] * (1 if power == SIGNED else 2)
    out[0] = 1 - 2 * above[0]
    if power == SIGNED:  # the negative ones are rounded up, too: towards 0
        below = tails(law, np.maximum(1, np.ceil(ends * (1 + 1e-12))))
        out[0] += above[0] - below[1]
        out[-np.arange(1, last + 1)] = below[1:] - np.append(below[2:], 0.0)
    return out
