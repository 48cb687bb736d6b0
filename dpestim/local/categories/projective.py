"""Projective spaces over prime fields: how many points, which space to take, and the numbers of the same point.

Points are lines through 0 of the space of t coordinates modulo a prime q; y and v are orthogonal where the sum of
their products is 0 modulo q. Reports and values number them in two ways, each of which makes something quick
(`pgr.md`): as a report the *last* coordinate that is not 0 is 1, as a value the *first* one is.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpestim.privacy.exact import exp_lower

#: Points at most, a value and in all, where fewer will do: the server keeps a count for each of them.
LARGEST_SHARE, LARGEST_SPACE = 64, 1 << 24
#: Additions a value and coordinate, at most, where the number of blocks is chosen for the server's time.
QUICK = 32


class Space(NamedTuple):
    """`blocks` copies of the projective space of t coordinates modulo the prime q."""

    q: int
    t: int
    blocks: int = 1

    @property
    def points(self):
        """Points of a block."""
        return n_points(self.q, self.t)

    @property
    def orthogonal(self):
        """Points that are orthogonal to a point."""
        return n_points(self.q, self.t - 1)

    @property
    def both(self):
        """Points that are orthogonal to each of two points."""
        return n_points(self.q, self.t - 2)

    @lru_cache(maxsize=256)  # noqa: B019 (a tuple of three integers; every estimate asks for the same)
    def line(self, inside, outside, in_block):
        """Return (at_zero, slope, own, block, constant): n times the variance as a line in f, and the estimator.

        `inside` and `outside` are the probabilities of points (Fractions), `in_block` the share of reports in the
        block of the value. The estimator is own * (share of reports that support the value) - block * in_block +
        constant; see `pgr.md`.
        """
        gap = inside - outside
        own = 1 / ((self.orthogonal - self.both) * gap)
        block = own * Fraction(self.both, self.orthogonal)
        constant = -outside / (self.orthogonal * gap)
        slope = own - 2 * block + 2 * constant
        at_zero = slope * (block * in_block - constant) + block * (block - 2 * constant) * in_block + constant**2
        return at_zero, slope - 1, own, block, constant


def n_points(q, t):
    """Return (q^t - 1) / (q - 1)."""
    return (q**t - 1) // (q - 1)


@lru_cache(maxsize=256)
def best_space(epsilon, d, hybrid):
    """Return the `Space` of the least average variance for uniform data over d values.

    `hybrid` is the number of blocks, or "auto": a power of two for which decoding takes at most `QUICK` additions for
    each value and coordinate. Compared in Fractions, so that every machine takes the same one.
    """
    e = exp_lower(epsilon)
    n_blocks = [1 << i for i in range((d - 1).bit_length() + 1)] if hybrid == "auto" else [hybrid]
    found = []
    for blocks in n_blocks:
        size = -(-d // blocks)
        for t in range(2, 2 + size.bit_length()):
            least = next_prime(_least(2, lambda q, t=t, size=size: n_points(q, t) >= size))
            most = _least(2, lambda q, t=t, blocks=blocks: _too_large(Space(q, t, blocks), d, hybrid)) - 1
            wanted = min(most, math.floor((e + 1) / blocks))
            near = {q for q in _primes_near(wanted) if least < q <= most}
            if hybrid != "auto" or least == 2 or least <= most:
                near.add(least)
            found += [(_average(space, e, d), space.points, space) for space in (Space(q, t, blocks) for q in near)]
    return min(found)[2]


def _too_large(space, d, hybrid):
    """Tell whether a space asks for more points, or (of "auto") more time, than is allowed."""
    points = space.blocks * space.points
    return points > min(LARGEST_SHARE * d, LARGEST_SPACE) or (hybrid == "auto" and space.q * points > QUICK * d)


def _average(space, e, d):
    """Return n times the average variance for uniform data, for the ideal law."""
    outside = 1 / (space.orthogonal * (e - 1) + space.blocks * space.points)
    at_zero, slope, *_ = space.line(e * outside, outside, Fraction(1, space.blocks))
    return at_zero + slope / d


def _least(low, holds):
    """Return the least integer from `low` on at which what holds from somewhere on does."""
    high = low
    while not holds(high):
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def is_prime(number):
    """Tell whether an integer is a prime, by trial division."""
    return number > 1 and all(number % k for k in range(2, math.isqrt(number) + 1))


def next_prime(number):
    """Return the least prime of at least that."""
    while not is_prime(number):
        number += 1
    return number


def _primes_near(number):
    """Return the primes next to an integer, below and above; 2 where there is none below."""
    below = number
    while below > 2 and not is_prime(below):
        below -= 1
    return max(2, below), next_prime(number + 1)


@lru_cache(maxsize=8)
def same_points(q, t):
    """Return, for each point in the order of values, its number in the order of reports."""
    inverse = np.array([0, *(pow(k, -1, q) for k in range(1, q))], np.int64)
    parts, n = [], q ** (t - 1)
    for lead in range(t):
        rest = np.arange(n)
        number, scale = np.zeros(n, np.int64), np.zeros(n, np.int64)  # scale 0: no coordinate so far is not 0
        for i in range(t - 1, -1, -1):
            digit = rest % q if i > lead else np.full(n, int(i == lead))
            rest = rest // q if i > lead else rest
            number = np.where(scale > 0, 1 + digit * scale % q + q * number, 0)
            scale = np.where((scale == 0) & (digit > 0), inverse[digit], scale)
        parts.append(number)
        n //= q
    return np.concatenate(parts)
