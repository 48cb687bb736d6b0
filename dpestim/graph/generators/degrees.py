"""Degrees from noisy degrees: the distribution that explains these best, given to nodes in the order of the noisy ones.

All of it is post-processing. Degrees that are clipped at 0 one by one are too large on average, and too far apart.
"""

import numpy as np
from scipy.signal import lfilter

#: Rounds of expectation maximisation; more of them follow the noise.
_ROUNDS = 50
#: Noise beyond so many times 1 / rate, which weighs less than e^-20, does not count.
_REACH = 20
#: ... nor does any that is further below 0 than this: memory must not grow with the noise.
_FAR = 1 << 20
#: The largest matrix.
_SMALL = 1 << 12


def likely_degrees(noisy, rate, most):
    """Return degrees from 0 to `most` for integers with discrete Laplace noise, P[Z = z] proportional to e^(-rate |z|).

    O(n log n + largest degree).
    """
    last = int(np.clip(noisy.max(), 0, most))
    noisy = np.clip(noisy, -int(min(_REACH / rate + 1, _FAR)), last)
    low = min(int(noisy.min()), 0)
    seen = np.bincount(noisy - low, minlength=last - low + 1).astype(float)
    law = noise_law(rate, len(seen), -low, last + 1)
    chances = np.full(last + 1, 1 / (last + 1))
    for _ in range(_ROUNDS):
        expected = law(chances)
        ratios = np.divide(seen, expected, out=np.zeros_like(seen), where=seen > 0)
        chances *= law(ratios, back=True)
        chances /= chances.sum()
    ends = np.rint(np.cumsum(chances) * len(noisy)).astype(np.int64)
    ends[-1] = len(noisy)
    degrees = np.empty(len(noisy), np.int64)
    degrees[np.argsort(noisy, kind="stable")] = np.repeat(np.arange(last + 1), np.diff(ends, prepend=0))
    return degrees


def noise_law(rate, size, first, n):
    """Return a function: the sums over n places, from `first` on of `size` ones, of values times e^(-rate distance).

    Backwards it goes from all places to the n ones. O(size), by a matrix where that is small.
    """
    if size * n <= _SMALL:
        matrix = np.exp(-rate * np.abs(np.arange(size)[:, None] - np.arange(first, first + n)))
        return lambda values, back=False: values @ matrix if back else matrix @ values
    decay = [1.0, -np.exp(-rate)]

    def spread(values, back=False):
        if not back:
            values = np.concatenate([np.zeros(first), values, np.zeros(size - first - n)])
        sums = lfilter([1.0], decay, values) + lfilter([1.0], decay, values[::-1])[::-1] - values
        return sums[first:first + n] if back else sums

    return spread
