"""Shamir's shares of seeds: points of a polynomial over the integers modulo a prime (`secure_sum.md`)."""

from functools import lru_cache

import numpy as np

#: Seeds and shares are integers modulo this prime.
PRIME = (1 << 127) - 1


def coefficients(words):
    """Return the coefficients of polynomials, the seed first, from uniform words (..., threshold, 2)."""
    words = words.astype(object)
    return (words[..., 0] << 64 | words[..., 1]) % PRIME


def split(numbers, k):
    """Return shares (..., k), those of the points 1 to k, of polynomials with coefficients (..., threshold)."""
    points = np.arange(1, k + 1).astype(object)
    shares = np.zeros((*numbers.shape[:-1], k), object)
    for power in range(numbers.shape[-1] - 1, -1, -1):
        shares = (shares * points + numbers[..., power, np.newaxis]) % PRIME
    return shares


def recover(points):
    """Return the seed of shares, pairs (point, share): as many as the threshold."""
    weights = _weights(tuple(x for x, _ in points))
    return sum(weight * y for weight, (_, y) in zip(weights, points, strict=True)) % PRIME


@lru_cache(maxsize=1024)
def _weights(points):
    """Return by what the shares of these points are multiplied: Lagrange at 0."""
    found = []
    for x in points:
        over = under = 1
        for other in points:
            if other != x:
                over, under = over * other % PRIME, under * (other - x) % PRIME
        found.append(over * pow(under, -1, PRIME) % PRIME)
    return found
