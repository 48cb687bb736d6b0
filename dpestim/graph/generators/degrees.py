"""Degrees from noisy degrees: the distribution that explains these best, given to nodes in the order of the noisy ones.

All of it is post-processing. Degrees that are clipped at 0 one by one are too large on average, and too far apart.
"""

import numpy as np
from scipy.signal import lfilter

#: Rounds of expectation maximisation; more of them follow the noise.
_ROUNDS = 50
#: Noise beyond so many times 1 / rate, which weighs less than e^-20, does not count.
_REACH = 20


def likely_degrees(noisy, rate, most):
    """Return degrees from 0 to `most` for integers with discrete Laplace noise, P[Z = z] proportional to e^(-rate |z|).

    O(n log n + largest degree).
    """
    last = int(np.clip(noisy.max(), 0, most))
    noisy = np.clip(noisy, -int(_REACH / rate) - 1, last)
    low = min(int(noisy.min()), 0)
    seen = np.bincount(noisy - low).astype(float)
    chances = np.full(last + 1, 1 / (last + 1))
    for _ in range(_ROUNDS):
        expected = _spread(np.concatenate([np.zeros(-low), chances]), rate)
        ratios = np.divide(seen, expected, out=np.zeros_like(seen), where=seen > 0)
        chances *= _spread(ratios, rate)[-low:]
        chances /= chances.sum()
    ends = np.rint(np.cumsum(chances) * len(noisy)).astype(np.int64)
    ends[-1] = len(noisy)
    degrees = np.empty(len(noisy), np.int64)
    degrees[np.argsort(noisy, kind="stable")] = np.repeat(np.arange(last + 1), np.diff(ends, prepend=0))
    return degrees


def _spread(values, rate):
    """Return the sums over all places of values times e^(-rate distance). O(n)."""
    decay = [1.0, -np.exp(-rate)]
    return lfilter([1.0], decay, values) + lfilter([1.0], decay, values[::-1])[::-1] - values
