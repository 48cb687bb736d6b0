"""Half widths of intervals of releases: of normal noise, and of sums of integers with a known law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw

#: Sums of a larger standard deviation are looked at in coarser steps.
_FINE = 2048.0


@dataclass
class NormalWidths:
    """Of weighted sums of so many integers that they are normal: `errors` are standard deviations."""

    errors: np.ndarray

    def half(self, level):
        """Return half widths at a level."""
        return NormalDist().inv_cdf((1 + level) / 2) * self.errors


@dataclass
class SumWidths:
    """Of sums of independent integers: `parts` of successive releases, (laws, one law, how many of it), in a `unit`."""

    parts: list
    unit: float
    wide: bool

    def half(self, level):
        """Return half widths at a level."""
        out = []
        for laws, law, numbers in self.parts:
            known, which = np.unique(numbers, return_inverse=True)
            out.append(np.array([_half(laws, law, int(n), level) for n in known])[which] * self.unit)
        out = np.concatenate(out) if out else np.empty(0)
        return out[:, None] if self.wide else out


@lru_cache(maxsize=4096)
def _half(laws, law, n, level):
    """Return the least number that a sum of one integer of each of these laws, and n of one, exceeds so rarely."""
    every = (*laws, *(law,) * n)
    if len(every) < 2:
        return every[0].half_width(level) if every else 0.0
    spread = math.sqrt(sum(float(each.variance_steps) for each in every))
    coarse = max(1.0, spread / _FINE)
    size = 1 << math.ceil(math.log2(80 * max(spread / coarse, 1.0)))
    z = np.fft.fftfreq(size, 1 / size)
    product = np.ones(size // 2 + 1)
    for each in every:
        product = product * np.fft.rfft(_shape(each, z * coarse)).real
    chances = np.fft.irfft(product, size)
    chances /= chances.sum()
    inside = chances[0] + 2 * np.cumsum(chances[1 : size // 2])
    return (int(np.searchsorted(inside, level)) + 1 + (coarse > 1)) * coarse


def _shape(law, z):
    """Return the probabilities of numbers, a float array that sums to 1."""
    if isinstance(law, DiscreteLaplaceLaw):
        found = np.exp(-float(law.rate_of_decay) * np.abs(z))
    else:
        found = np.exp(-(z**2) / (2 * law.sigma**2))
    return found / found.sum()


@dataclass
class ChernoffWidths:
    """Of sums of independent discrete Laplace noise of these rates, after weights: Chernoff's bound (haar.md)."""

    rates: list
    unit: float

    def half(self, level):
        """Return the half width at a level."""
        s = min(self.rates) * np.linspace(0.001, 0.999, 400)
        moments = sum(-np.log1p(-((s / rate) ** 2)) for rate in self.rates)
        return float(((moments - math.log((1 - level) / 2)) / s).min()) * self.unit


@dataclass
class RepeatedWidths:
    """Of rows that are new at some steps, and repeated at others, in integers of `steps`.

    `laws` is that of the noise of each new row, None where it is repeated; a repeated row is at most `far` plus noise
    of all `misses` from the exact one, in the L1 norm. Half of 1 - level is for either: which one a step is depends on
    the same noise. `off` is how far what is told of a new row was moved afterwards. No width is larger than the bounds
    need.
    """

    steps: object
    values: np.ndarray
    laws: Sequence
    far: Sequence
    misses: tuple
    off: np.ndarray | float = 0.0

    def half(self, level):
        """Return half widths at a level."""
        wide = _half(self.misses, self.misses[0], 0, level)  # (one tail of the noise: half of what both have)
        found = [max(0, far + wide) if law is None else _half((law,), law, 0, (1 + level) / 2)
                 for law, far in zip(self.laws, self.far)]
        most = np.maximum(self.values - self.steps.low, self.steps.high - self.values)
        return np.minimum(np.array(found, float)[:, None] + self.off, most) * float(self.steps.unit)
