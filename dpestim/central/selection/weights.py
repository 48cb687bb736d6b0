"""Choosing in proportion to weights e^-x, exactly, although the weights are irrational.

A candidate is proposed in proportion to an integer that is at least its weight, and a coin accepts it with the
probability that is left. The integers come from a kernel and are sums and draws of integers; the coin is settled by as
many digits as it takes (`exact_bernoulli.py`). So an integer that is too large costs time, and never changes the law:
but where `surely` looks first, and for permute-and-flip, which take it that none is more than `ERROR` too large.
"""

import math
from functools import lru_cache

import numpy as np

from dpestim._core import choice
from dpestim.central.exact_bernoulli import exp_bounds, exponential_tables
from dpestim.exact_reals import Real

#: Bits of the integer for the weight 1; what integers may exceed weights by; the exponent from which on 1 will do.
BITS, ERROR, FAR = 56, 5, 40
_ONCE = np.empty(0, np.int64)


def upper_weights(codes, best, rate):
    """Return integers of at least 2^56 e^-(rate gap), and at most 5 more; the gap is that to `best`."""
    out = np.empty(len(codes), np.uint64)
    choice.upper_weights(codes, best, *_units(rate), exponential_tables(), out)
    return out


@lru_cache(maxsize=256)
def _units(rate):
    """Return a rate as the kernel takes it, and the gap from which on a weight is 1."""
    log = rate.numerator.bit_length() - rate.denominator.bit_length() - 1  # 2^log < rate < 4 * 2^log
    shift = min(max(0, 62 - log - 58), 127)
    return min(math.floor(rate * (1 << 58 + shift)), (1 << 64) - 1), shift, min(far_gap(rate), 1 << 63)


@lru_cache(maxsize=256)
def far_gap(rate):
    """Return a gap from which on 1 is an integer of at least 2^56 e^(-rate gap)."""
    return math.ceil(FAR / rate)


def propose(weights, stream, times=None):
    """Return a place, drawn in proportion to integer weights (each of which counts so many times)."""
    times = _ONCE if times is None else times
    high, low = choice.total(weights, times)
    drawn = stream.below(high << 64 | low)
    return choice.place_of(weights, times, drawn >> 64, drawn & (1 << 64) - 1)


def accepts(weight, x, stream, digits=None):
    """Tell whether a coin of probability 2^56 e^-x / weight shows; its first 64 digits may be known."""

    def probability(n_digits):
        low, high = exp_bounds(x, n_digits)
        return low * (1 << BITS) / weight, high * (1 << BITS) / weight

    return Real(stream, stream.word() if digits is None else digits, 64).is_below(probability)


def surely(weight, digits):
    """Tell whether the coin of `accepts` shows whatever its digits after the first 64 are.

    The weight must be that of `upper_weights`, so that the probability is at least 1 - ERROR / weight.
    """
    return (digits + 1) * weight <= (weight - ERROR) << 64


def draw(codes, best, rate, stream, weights, times=None):
    """Return a place, drawn with probability proportional to (times) e^(rate code), exactly."""
    while True:
        place = propose(weights, stream, times)
        if accepts(int(weights[place]), rate * (best - int(codes[place])), stream):
            return place
