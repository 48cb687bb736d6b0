"""Polya noise in integers: what each of n users adds so that all together add discrete Laplace noise.

A user's noise is a number of jumps, hardly ever one, each with a sign. Everything is compared with thresholds of
128 bits; how far the law is from the one in real numbers is counted (`PolyaNoise.distance`). The proof: ``ikos.md``,
part 2.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from dpestim._core import ikos
from dpestim.rng import Stage

_BITS = 128
_UNIT = Fraction(1, 1 << _BITS)
#: Digits of the decimals: a dozen are lost at most where alpha is near 1, and 128 bits are 39.
_DIGITS = 120
#: Digits of a jump at most, so that no sum of jumps leaves 64 bits.
_MOST_LEVELS = 46
#: Words of Stage.RARE that are set apart for each user: thousands of attempts, of which a user needs a few.
_WORDS = 1 << 20
#: Logarithms are moved outward by this, and by so much a step: more than what `gammaln` of such numbers is off.
_OUTWARD, _OUTWARD_STEP = 1e-6, 1e-13


class PolyaNoise:
    """The noise of one of `n_users`: NB(1 / n, 1 - alpha) - NB(1 / n, 1 - alpha), alpha = e^-rate.

    Parameters
    ----------
    rate : Fraction
        Of the discrete Laplace noise that the noise of all adds up to: its probabilities fall by e^-rate a step.
    n_users : int

    Attributes
    ----------
    counts, levels, digits : tuple of two arrays
        High and low words of thresholds: of how many jumps a user makes, of the level of one, of its digits.
    distance : float
        At least the total variation distance of the noises of n_users users from that law.
    """

    def __init__(self, rate, n_users):
        self.rate = rate
        with localcontext(Context(prec=_DIGITS, Emax=999_999, Emin=-999_999)):
            step = Decimal(rate.numerator) / Decimal(rate.denominator)
            n_levels = max(2, math.ceil(math.log2(100 / float(rate))))
            if n_levels > _MOST_LEVELS:
                raise ValueError("grid is too fine for this epsilon, because the noise would exceed 64 bits: take a "
                                 "coarser grid")
            alpha = (-step).exp()
            jumps = -2 * (1 - alpha).ln()  # of all users, on average
            powers = [(-step * (1 << level)).exp() for level in range(n_levels + 1)]
            self.counts = _thresholds(_poisson(jumps / n_users))
            weights = [p * (1 - p) / (1 << level) for level, p in enumerate(powers[:-1])]
            self.levels = _thresholds(_cumulated(weights)[:-1])
            self.digits = _thresholds([p / (1 + p) for p in powers[: n_levels - 1]])
            # what is beyond the last level, of all jumps
            beyond = 2 * powers[-1] / ((1 << n_levels) * (1 - alpha))
            attempt = 2 * (2 * n_levels + 2) + 2 * (n_levels + 2) ** 2  # in units of 2^-128: thresholds, two ties
            self.distance = math.nextafter(float(
                n_users * (2 * len(self.counts[0]) + 2) * _UNIT + 2 * Fraction(jumps) * attempt * _UNIT
                + Fraction(beyond)
            ), math.inf) * (1 + 2.0**-40)

    def draw(self, words):
        """Return (rows, their noise): the noise of the other rows is 0."""
        drawn = words.dense(Stage.NOISE, 1)
        rows = np.flatnonzero(drawn >= self.counts[0][0])
        noise, left = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        if len(rows):
            low = words.sparse(Stage.RARE, _WORDS, rows * _WORDS)
            ikos.reached(drawn[rows], np.ascontiguousarray(low), *self.counts, left)
        slots = np.arange(4 + len(self.digits[0]))
        first, active = 1, np.flatnonzero(left)
        while len(active):
            places = rows[active, np.newaxis] * _WORDS + first + slots
            attempts = words.sparse(Stage.RARE, _WORDS, places.ravel()).reshape(places.shape)
            jumps = np.empty(len(active), np.int64)
            ikos.jumps(np.ascontiguousarray(attempts), *self.levels, *self.digits, jumps)
            noise[active] += jumps
            left[active] -= jumps != 0
            active = active[left[active] > 0]
            first += len(slots)
            if first + len(slots) > _WORDS:
                raise RuntimeError("the noise used up its random words, because the source of random words is not "
                                   "random: check the random_state")
        return rows, noise


@lru_cache(maxsize=64)
def polya_noise(rate, n_users):
    """Return the `PolyaNoise`, from a cache where it was made before."""
    return PolyaNoise(rate, n_users)


@lru_cache(maxsize=64)
def epsilon_of_share(rate, steps, share):
    """Return an epsilon, rounded up, that a share below 1 of the users' noise keeps by itself for so many steps.

    It is ln(p(0) / p(steps)) for the law p of their noise; both are sums of positive terms, cut on the side of privacy.
    """
    rate, n = float(rate), 1 << 18
    n = min(n, math.ceil(40 / rate) + 1)
    i = np.arange(n + 1)

    def log_weights(i):
        return gammaln(share + i) - gammaln(i + 1.0) - gammaln(share)

    here, there = log_weights(i), log_weights(i[:-1] + float(steps))
    near = np.exp(2 * (here[:-1] - i[:-1] * rate)).sum()
    near += math.exp(2 * (here[-1] - n * rate)) / -math.expm1(-2 * rate)
    far = here[:-1] + there - (2 * i[:-1] + float(steps)) * rate
    top = far.max()
    return math.log(near) - top - math.log(np.exp(far - top).sum()) + _OUTWARD + _OUTWARD_STEP * steps


def _poisson(mean):
    """Return the probabilities of at most 0, 1, 2, ... up to where less than 2^-128 is left."""
    term = (-mean).exp()
    upto, k = [term], 0
    while k < 2 * mean or term >= Decimal(2) ** -(_BITS + 2):  # (there, what is left is less than the last term)
        k += 1
        term = term * mean / k
        upto.append(upto[-1] + term)
    return upto


def _cumulated(weights):
    total, upto = sum(weights), [weights[0]]
    for weight in weights[1:]:
        upto.append(upto[-1] + weight)
    return [u / total for u in upto]


def _thresholds(probabilities):
    """Return the high and the low words of so many of 2^128, rounded down."""
    scaled = [min(int(p * (1 << _BITS)), (1 << _BITS) - 1) for p in probabilities]
    return tuple(np.array(part, np.uint64) for part in ([t >> 64 for t in scaled], [t & (1 << 64) - 1 for t in scaled]))
