"""Which noise hides a row in its moments: public weights of the entries, and how far a row moves them.

Proofs: `linear_model/linear.md`, `covariance/covariance.md`.

Entries are sums of products of two of (x, 1, y), integers: x of a norm up to `REACH`, y up to it. Each kind of entry
has an integer weight, 0 where it is not released, and all weighted entries together get noise of one law.
"""

import math
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from dpestim.records import record
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.row_moments import REACH

#: The weight of the square of a column. 181 is just below sqrt(2) of these, 90 below 1 / sqrt(2).
_UNIT, _ROOT_2, _ROOT_HALF = 1 << 7, 181, 90
#: Squares of what stands for 1 and y beside x where two rows are compared, in sixteenths: any are right, the best of
#: these is taken.
_SCALES = (3, 4, 6, 8, 11)


@record
class Weights:
    """Integer weights of entries by their kind; `l2_squared` is by how much a row moves all of them (None: by L1)."""

    square: int
    product: int
    column: int
    with_target: int
    target: int
    target_square: int
    rows: int
    l2_squared: int | None = None

    def entries(self, n_columns):
        """Return the weight of each entry of the upper triangle of (x, 1, y)."""
        size = n_columns + 2
        out = np.full((size, size), self.product, dtype=object)  # (ints of any size)
        np.fill_diagonal(out, self.square)
        out[:, n_columns], out[:, n_columns + 1] = self.column, self.with_target
        out[n_columns, n_columns:] = self.rows, self.target
        out[n_columns + 1, n_columns + 1] = self.target_square
        return out[np.triu_indices(size)]

    @lru_cache(maxsize=256)  # noqa: B019 (a tuple of integers, all public; every fit of one shape asks for the same)
    def l1(self, n_columns, replaces):
        """Return how far a row moves all weighted entries in L1, at most."""
        root = math.isqrt(n_columns) + (math.isqrt(n_columns) ** 2 < n_columns)
        one = REACH * (self.column * root + self.target) + REACH * REACH * (
            self.square - (-self.product * (n_columns - 1) // 2) + self.with_target * root)
        # (a square of y replaced by another moves by no more than the larger of them)
        both = self.target_square * REACH * REACH
        if not replaces:
            return one + both + self.rows
        return min(2 * one + both, *(self._apart(n_columns, *scales) for scales in product(_SCALES, repeat=2)))

    def _apart(self, d, t, s):
        """Return how far entries of two rows are apart in L1, at most: by z = (x, sqrt(t) / 4, sqrt(s) y / 4).

        With signs as they like, a sum of weighted entries is z^T M z, and two of these are at most sqrt(2) times the
        square of the longest z times Frobenius' norm of M apart: it has no more on both sides of 0.
        """
        # (integers: the square of the norm of M, times 4 t s^2 REACH^2; and 16 times the square of the longest z)
        norm = (REACH**2 * t * s * s * d * (4 * self.square**2 + (d - 1) * self.product**2)
                + 32 * d * s * (s * self.column**2 + t * (REACH * self.with_target) ** 2)
                + 512 * s * self.target**2 + 1024 * t * (REACH * self.target_square) ** 2)
        longest = (16 + t * bool(self.column or self.target)
                   + s * bool(self.with_target or self.target or self.target_square))
        return math.isqrt(-(-norm * longest**2 * REACH**2 // (512 * t * s * s))) + 1


def gaussian_weights(replaces, fit_intercept):
    """Return weights for a Euclidean norm: those of z z^T for z = (x, 1 / sqrt(2), y / sqrt(2)).

    Two such matrices are at most sqrt(2) abs(z)^2 apart in Frobenius' norm, and one is abs(z)^2 from none.
    """
    fourth = 4 * 4 if fit_intercept else 3 * 3  # four times the fourth power of the norm of z
    moved = fourth * (_UNIT * _UNIT // 4) * REACH**4 * (2 if replaces else 1)
    if not fit_intercept:
        return Weights(_UNIT, _ROOT_2, 0, _UNIT, 0, _UNIT // 2, 0, moved)
    return Weights(_UNIT, _ROOT_2, _UNIT * REACH, _UNIT, _ROOT_HALF * REACH, _UNIT // 2,
                   0 if replaces else _UNIT // 2 * REACH * REACH, moved)


def laplace_weights(replaces, fit_intercept, n_columns):
    """Return weights for L1: a column counts up to sqrt(n_columns), so that the few sums of it may weigh as much.

    The sum of the target has up to twice the weight of another column's: its noise is in every prediction, and it costs
    little where there are other columns (`linear.md`).
    """
    with_target = max(_UNIT, round(_UNIT * math.sqrt(n_columns) / 2))
    if not fit_intercept:
        return Weights(_UNIT, _UNIT, 0, with_target, 0, _UNIT // 2, 0)
    column = max(_UNIT // 2, round(_UNIT * math.sqrt(n_columns) / 4))
    target = max(_UNIT // 2, round(_UNIT * math.sqrt(n_columns) / 2))
    return Weights(_UNIT, _UNIT, column * REACH, with_target, target * REACH, _UNIT // 2,
                   0 if replaces else column * REACH * REACH)


def scatter_weights(is_normal, centred, n_columns, replaces=True):
    """Return weights without a target: by z = (x, 1 / 2), or x alone, or for L1; and of the rows where they are secret.

    Where a record is not replaced, one matrix z z^T comes or goes, whose last square counts rows.
    """
    if not is_normal:
        plain = laplace_weights(replaces, True, n_columns)
        return replace(plain, column=plain.column if centred else 0, with_target=0, target=0, target_square=0)
    fourth = 25 if centred else 16 if replaces else 17  # 16 times the fourth power of the norm of z
    moved = fourth * (_UNIT * _UNIT // 16) * REACH**4 * (2 if replaces else 1)
    return Weights(_UNIT, _ROOT_2, _ROOT_HALF * REACH if centred else 0, 0, 0, 0,
                   0 if replaces else _UNIT // 4 * REACH * REACH, moved)


@record
class Moments:
    """Noisy sums over rows (u, 1, v), u = x of norm at most 1, v in [-1, 1], and the variance of each kind of noise."""

    gram: np.ndarray
    columns: np.ndarray
    with_target: np.ndarray
    target: float
    target_square: float
    n_rows: float
    noise: dict
    more: tuple = ()


class MomentRelease:
    """What a release of moments is, from public numbers alone: made before anything is charged.

    Raises ValueError where epsilon and delta are too small for integers to hold the noise. ``more`` are the weights of
    further integers, in one release with the moments.
    """

    def __init__(self, epsilon, delta, weights, n_columns, replaces, l1=None, more=()):
        self.weights, self.n_columns, self._more = weights, n_columns, more
        self._entries = weights.entries(n_columns)
        self._some = self._entries != 0
        if l1 is None:
            l1 = weights.l1(n_columns, replaces)
        #: by how much a row moves all weighted integers, at most: in L1, and squared in L2
        self.most = l1, weights.l2_squared or l1 * l1
        self._noise = noise_for(epsilon, delta, *self.most, int(self._some.sum()) + len(more))

    @property
    def law(self):
        """The law of the noise."""
        return self._noise.law

    @property
    def deviation(self):
        """The standard deviation of the noise of the square of a column, in units of the longest row."""
        return math.sqrt(self._noise.variance) / (self.weights.square * REACH**2)

    def draw(self, summary, source, known_rows, more=()):
        """Return noisy moments; ``known_rows`` is the public number of rows, or None, ``more`` further integers."""
        codes = self.codes(summary, more)
        return self.moments(self.law.add(codes, source), known_rows)

    def codes(self, summary, more=()):
        """Return the secret integers that get noise of `law`."""
        weighted = [total * weight for total, weight in zip(summary.totals, self._entries.tolist()) if weight]
        return self._noise.codes(weighted + [n * w for n, w in zip(more, self._more)])

    def moments(self, noisy, known_rows):
        """Return the moments that noisy `codes` stand for."""
        d, some, entries = self.n_columns, self._some, self._entries
        upper = np.zeros(len(entries))
        weight = entries[some].astype(float)
        noisy = np.asarray(self._noise.scaled(noisy), float)
        upper[some] = noisy[: len(weight)] / weight
        full = np.zeros((d + 2, d + 2))
        full[np.triu_indices(d + 2)] = upper
        unit, w = float(REACH), self.weights

        def variance(weight, scale):
            return self._noise.variance / (weight * scale) ** 2 if weight else 0.0

        gram = full[:d, :d] + np.triu(full[:d, :d], 1).T
        return Moments(
            gram / unit**2, full[:d, d] / unit, full[:d, d + 1] / unit**2, full[d, d + 1] / unit,
            full[d + 1, d + 1] / unit**2, full[d, d] if known_rows is None else known_rows,
            {"square": variance(w.square, unit**2), "product": variance(w.product, unit**2),
             "column": variance(w.column, unit), "with_target": variance(w.with_target, unit**2),
             "target": variance(w.target, unit), "target_square": variance(w.target_square, unit**2),
             "rows": variance(w.rows, 1.0)},
            tuple(noisy[len(weight):] / self._more) if self._more else (),
        )
