"""Noise from machine numbers: what they cannot represent tells what was added to what."""

import math
from fractions import Fraction

import numpy as np

from dpestim.audit.exact import exact_delta, exact_epsilon
from dpestim.audit.gallery.mistake import Loss, Mistake, mistake
from dpestim.central import LaplaceMechanism
from dpestim.central.exact_bernoulli import exp_bounds

#: Doubles in (0, 1] that a generator draws: multiples of 2^-53.
_UNIT = 2.0**-53
#: Neighbours of the likeliest uniform number that are tried: more than the errors of exp and log, and gaps, can be off.
_NEAR = 8


def textbook_laplace(answer, n, rng):
    """Return answer + sign log(u), n times, in doubles: Laplace noise of scale 1 as most libraries draw it."""
    u = rng.integers(1, 2**53, n, endpoint=True) * _UNIT
    return answer - rng.choice([-1.0, 1.0], n) * np.log(u)


def reaches(answer, outputs):
    """Return which outputs `textbook_laplace` can return for an answer, by trying the uniform numbers that might do.

    Parameters
    ----------
    answer : float
    outputs : array-like of shape (n,)
        Doubles.

    Returns
    -------
    ndarray of bool of shape (n,)

    Notes
    -----
    O(n). An output y has one sign of the noise, and then u must be near e^-abs(y - answer): the multiples of 2^-53
    around it are all tried, forwards, in the arithmetic that draws them.
    """
    y = np.asarray(outputs, dtype=np.float64)
    sign = np.where(y < answer, 1.0, -1.0)[:, None]
    k = np.rint(np.exp(-np.abs(y - answer)) / _UNIT)[:, None] + np.arange(-_NEAR, _NEAR + 1)
    k = np.clip(k, 1, 1 / _UNIT)
    return ((answer + sign * np.log(k * _UNIT)) == y[:, None]).any(axis=1)


def lowest_bits(outputs):
    """Return the exponents of the lowest bits that are set in doubles other than 0."""
    mantissa, exponent = np.frexp(np.asarray(outputs, dtype=np.float64))
    whole = (mantissa * 2.0**53).astype(np.int64)
    return np.log2((whole & -whole).astype(np.float64)).astype(np.int64) + exponent - 53


def digits_law(rate, n_digits, word=64):
    """Return the law of a number of independent binary digits, with thresholds rounded to words of so many bits.

    With exact thresholds, and no end of digits, it is the geometric one, P[k] proportional to e^(-rate k).
    """
    law = {0: Fraction(1)}
    for i in range(n_digits):
        weight = exp_bounds(Fraction(rate) * 2**i, 40)[1]
        one = Fraction(round(weight / (1 + weight) * 2**word), 2**word)
        law = {k + (bit << i): p * (one if bit else 1 - one) for k, p in law.items() for bit in (0, 1)}
    return law


def clamped(answer, law, top):
    """Return the law of an answer plus the difference of two numbers of a law, clamped to 0, ..., top."""
    difference = {}
    for k, p in law.items():
        for j, q in law.items():
            difference[k - j] = difference.get(k - j, 0) + p * q
    out = {y: Fraction(0) for y in range(top + 1)}
    for z, p in difference.items():
        out[min(max(answer + z, 0), top)] += p
    return out


def noisy_digits(top, uniform=Fraction(0), n_digits=6):
    """Return the pair of laws of the answers 0 and 1, in 0, ..., top, with noise of a rate of 1 from so many digits.

    `uniform`, a Fraction, is the probability of a uniform output instead.
    """
    law = digits_law(1, n_digits)
    return tuple({y: (1 - uniform) * p + uniform / (top + 1) for y, p in clamped(x, law, top).items()} for x in (0, 1))


def enough_uniform(top, n_digits=6):
    """Return the probability of a uniform output from which such noise is pure: coth(rate / 2) times the distance.

    The distance is in total variation from discrete Laplace noise, divided by the mass of a uniform output.
    """
    distance = n_digits * Fraction(1, 2**64) + 2 * exp_bounds(Fraction(2**n_digits), 40)[1]
    a = exp_bounds(Fraction(1), 40)[1]
    return (1 + a) / (1 - a) * distance * (top + 1)


def floating_point(n=10_000):
    """Return the entries about noise from machine numbers; n outputs are drawn, with a fixed seed."""
    rng = np.random.default_rng(0)
    share = {x: float(np.mean(~reaches(1.0 - x, textbook_laplace(x, n, rng)))) for x in (0.0, 1.0)}
    # at an epsilon of 1 the delta is at least the share of outputs that the other answer cannot have
    found = Loss(math.inf, max(share.values()))
    ours = LaplaceMechanism(1.0, sensitivity=1.0)
    return [
        Mistake(
            "Laplace noise in floating point", "Mironov (2012), On significance of the least significant bits, CCS",
            Loss(1.0, 0.0), found, Loss(exact_epsilon(ours), exact_delta(ours, 1)),
            "The doubles that 0 + noise can be are not those that 1 + noise can be, and their low bits tell which.",
            "dpestim.central.LaplaceMechanism, whose noise is an integer number of steps of a public grid"),
        mistake(
            "Discrete Laplace noise from independent bits", "folklore: the binary digits of a geometric number",
            claimed=(1, 0), pairs=[noisy_digits(60)], right=[noisy_digits(60, enough_uniform(60))],
            why="Six digits end at 63, and the difference of two such numbers falls faster and faster before it ends.",
            instead="dpestim.central.DiscreteLaplaceMechanism, which has no last digit; or a mixture with a uniform "
                    "output of a public range"),
    ]
