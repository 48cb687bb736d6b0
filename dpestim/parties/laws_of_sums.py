"""Laws of sums of shares of noise, integer by integer, and the pair of laws that a change makes (`noise.md`).

Each law is symmetric: an array of the probabilities of 0, 1, 2, ..., up to where less than 1e-20 is left. Each
probability is within a relative `error_of` of the exact one, however small it is.
"""

import math

import numpy as np

#: Every probability is within this of the exact one, relatively, and so much more for each integer of the law.
_ERROR, _ERROR_STEP = 2e-12, 2.0**-50
#: Probabilities below this part of the largest are no part of an array.
_NOTHING = 1e-32
#: Bits of the fixed point in which ratios of Bessel functions are worked out.
_BITS = 160
#: Integers of a law at most.
_MOST = 1 << 19


def _whole_law(weights):
    """Return probabilities of 0, 1, 2, ..., from weights in proportion to them."""
    weights = np.asarray(weights, np.float64)
    return weights / (2 * math.fsum(weights) - weights[0])


def error_of(law):
    """Return how far each probability of a law is from the exact one, relatively, at most."""
    return _ERROR + _ERROR_STEP * len(law)


def gaussian_law(sigma, n_shares):
    """Return the law of a sum of so many discrete Gaussian numbers of this sigma, within `gaussian_distance`."""
    z = np.arange(math.ceil(12.5 * sigma * math.sqrt(n_shares)) + 2, dtype=np.float64)
    return _whole_law(np.exp(-(z * z) / (2 * n_shares * sigma**2)))


def gaussian_distance(sigma, n_shares):
    """Return what the logarithm of the ratio of the law of that sum and the discrete Gaussian law exceeds nowhere."""
    total = term = 0.0
    for j in range(1, min(n_shares, 1 << 10)):
        term = _ripple(sigma**2 * j / (j + 1))
        total += term
    return total + max(0, n_shares - (1 << 10)) * term  # (later terms are below the last one)


def _ripple(variance):
    """Return ln((1 + t) / (1 - t)) and more, t = 2 (q + q^4 + q^9 + ...), q = e^(-2 pi^2 variance)."""
    q = math.exp(-2 * math.pi**2 * variance)
    t = 2 * q / (1 - q)
    return 2 * t / (1 - t) * (1 + 1e-9)


def skellam_law(variance):
    """Return the law of the difference of two Poisson numbers of the mean variance / 2, a Fraction: e^-v I_z(v)."""
    last = 64 + math.ceil(13 * math.sqrt(variance))
    one, twice = 1 << _BITS, (2 << _BITS) * variance.denominator
    ratios, ratio = [], 0
    for n in range(2 * last, 0, -1):  # I_n / I_(n - 1) = 1 / (2 n / v + I_(n + 1) / I_n), from an end where it is tiny
        ratio = one * one // (n * twice // variance.numerator + ratio)
        if n <= last:
            ratios.append(ratio)
    return _until_nothing(np.array([ratio / one for ratio in reversed(ratios)]))


def binomial_law(n):
    """Return the law of the number of n fair coins that show, minus n / 2, n even."""
    half = n // 2
    z = np.arange(min(half, 64 + math.ceil(7 * math.sqrt(n))), dtype=np.float64)
    return _until_nothing((half - z) / (half + z + 1))


def _until_nothing(ratios):
    """Return the law of which each probability is a ratio, at most 1, of the one before."""
    weights = np.concatenate([[1.0], np.cumprod(ratios)])
    return _whole_law(weights[: int(np.searchsorted(-weights, -_NOTHING)) + 1])


def polya_law(rate, shares):
    """Return the law of NB(shares, 1 - e^-rate) - NB(shares, 1 - e^-rate), within a relative 1e-6."""
    i = np.arange(1, min(_MOST, math.ceil((60 + 10 * shares) / rate)) + 1, dtype=np.float64)
    one = np.concatenate([[1.0], np.cumprod((shares + i - 1) / i * math.exp(-rate))])
    one /= one.sum()
    apart = np.fft.irfft(np.abs(np.fft.rfft(one, 2 * len(one))) ** 2, 2 * len(one))[: len(one)]
    return _whole_law(np.maximum(apart, 0.0))


def shifted_pair(law, change):
    """Return the probabilities of all outputs with and without a change; what is taken away betrays the change."""
    both = np.concatenate([law[:0:-1], law]) * (1 - error_of(law))
    return np.concatenate([both, np.zeros(change)]), np.concatenate([np.zeros(change), both])
