"""Which levels of a tree of counts get how much noise, from public numbers (`ranges.md`)."""

import math
from functools import lru_cache

import numpy as np

from dpestim.postprocessing import trees
from dpestim.records import record
from dpestim.statistics.calibrated_noise import Noise

#: Weights are integers up to this, at first.
_MOST = 64
#: Steps of the search for weights; a step changes a variance by a factor of 1 + `_STEP`.
_ROUNDS, _STEP = 12, 1e-4


@record
class LevelNoise:
    """A tree over cells, the weight of each level in what gets noise (0: it is not released), and the noise.

    `exact` says whether the number of all rows is public.
    """

    fanouts: tuple
    weights: tuple
    noise: Noise
    exact: bool
    n_cells: int

    @property
    def variances(self):
        """The variance of a count of each level, the root's first."""
        own = [self.noise.variance / w**2 if w else math.inf for w in self.weights]
        return [0.0, *own[1:]] if self.exact else own

    @property
    def mean_variance(self):
        """The variance of a range, on average over all of them."""
        return trees.mean_range_variance(self.fanouts, self.variances, self.n_cells)

    def weighted(self, counts):
        """Return the weighted counts of all levels that are released, integers."""
        counts, out = self._padded(counts), []
        for size, weight in zip(trees.level_sizes(self.fanouts), self.weights):
            if weight:
                out.append(weight * counts.reshape(size, -1).sum(axis=1))
        return np.concatenate(out)

    def consistent(self, noisy, n_rows):
        """Return the counts of cells of least squares, from noisy weighted counts, and the number of rows if public."""
        observed, at = [], 0
        for level, (size, weight) in enumerate(zip(trees.level_sizes(self.fanouts), self.weights)):
            if weight:
                observed.append(np.asarray(noisy[at : at + size], np.float64) / weight)
                at += size
            else:
                observed.append(np.full(size, float(n_rows) if self.exact and level == 0 else 0.0))
        return trees.consistent(self.fanouts, observed, self.variances)[-1][: self.n_cells]

    def of_range(self, low, high):
        """Return (the standard error of the count between two places, the excess kurtosis of its error, its grain).

        The grain is the distance of the values of the error where one count has all of the noise, and goes to 0 where
        many have it.
        """
        high = trees.level_sizes(self.fanouts)[-1] if self.exact and high >= self.n_cells else high
        all_weights = trees.range_weights(self.fanouts, self.variances, low, high)
        squares, fourth, step = 0.0, 0.0, 0.0
        for own, variance, weight in zip(all_weights, self.variances, self.weights):
            if weight:
                squares += variance * float(np.square(own).sum())
                fourth += variance**2 * float(np.square(np.square(own)).sum())
                step = max(step, float(np.abs(own).max()) / weight)
        if getattr(self.noise.law, "delta", 0) or not squares:
            return math.sqrt(squares), 0.0, 0.0
        return math.sqrt(squares), 3 * fourth / squares**2, step * fourth / squares**2

    def _padded(self, counts):
        out = np.zeros(trees.level_sizes(self.fanouts)[-1], np.int64)
        out[: len(counts)] = counts
        return out


def best_noise(n_cells, branching, exact, noise_of, *, normal=False):
    """Return the `LevelNoise` of the least variance of a range, on average over all ranges.

    Parameters
    ----------
    n_cells : int
    branching : int or None
        How many children a node has; None: what is best.
    exact : bool
        Whether the number of all rows is public.
    noise_of : callable
        From (sum of weights, sum of their squares, how many numbers) to `Noise`.
    normal : bool, default=False
        Whether noise may be normal.
    """
    heights = range(1, max((n_cells - 1).bit_length(), 1) + 1)
    all_fanouts = {trees.even_fanouts(n_cells, h) for h in heights} if branching is None else {
        trees.fanouts_of(n_cells, branching)}
    found = []
    for fanouts in sorted(all_fanouts):
        for power in (1, 2) if normal else (1,):
            weights = _weights(fanouts, n_cells, exact, power)
            sizes = trees.level_sizes(fanouts)
            noise = noise_of(sum(weights), sum(w * w for w in weights), sum(s for s, w in zip(sizes, weights) if w))
            found.append(LevelNoise(fanouts, weights, noise, exact, n_cells))
    return min(found, key=lambda own: own.mean_variance)


@lru_cache(maxsize=1024)
def _weights(fanouts, n_cells, exact, power):
    """Return the weights of the least variance of a range for noise whose scale is the norm of the weights.

    `power` is 1 for Laplace noise, 2 for normal noise. The variance of least squares is a concave function of the
    variances of levels, so that its tangent is above it: each step takes what is best for the tangent.
    """
    first = int(exact)
    weights = np.ones(len(fanouts) + 1)
    weights[:first] = 0.0

    def variances(weights):
        scale = (weights**power).sum() ** (2 / power)
        return np.array([scale / w**2 if w > 0 else 0.0 if exact and level == 0 else math.inf
                         for level, w in enumerate(weights)])

    for _ in range(_ROUNDS):
        now = variances(weights)
        base, slopes = trees.mean_range_variance(fanouts, now, n_cells), np.zeros(len(weights))
        for level in range(first, len(weights)):
            more = now.copy()
            more[level] *= 1 + _STEP
            slopes[level] = max(trees.mean_range_variance(fanouts, more, n_cells) - base, 0.0) / (_STEP * now[level])
        weights = np.maximum(slopes, 1e-12 * slopes.max()) ** (1 / (power + 2))
        weights[:first] = 0.0
        weights /= weights.max()
    out = [0 if level < first else round(_MOST * w) for level, w in enumerate(weights)]
    out[-1] = max(out[-1], 1)
    best, before = trees.mean_range_variance(fanouts, variances(np.array(out, float)), n_cells), None
    while before is None or best < before * (1 - 1e-3):  # (a level that is best left out is reached slowly)
        before = best
        for level in range(first, len(out)):
            for weight in (0, out[level] // 2, out[level] * 2, out[level] * 7 // 8, out[level] * 9 // 8 + 1):
                tried = [*out[:level], weight, *out[level + 1 :]]
                if tried[-1] and max(tried) <= _MOST**2:
                    found = trees.mean_range_variance(fanouts, variances(np.array(tried, float)), n_cells)
                    if found < best:
                        best, out = found, tried
    common = math.gcd(*out)  # (small integers have a little less noise for their size)
    return tuple(w // common for w in out)
