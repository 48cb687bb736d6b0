"""Power iteration with noise: rounds of products of rows with a public basis, for more columns than a matrix has room.

The proof: `power.md`.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.covariance.base import units_of
from dpestim.parallel import one_thread
from dpestim.passes import Blueprint, Request
from dpestim.records import record
from dpestim.statistics.row_moments import REACH

#: Weights of sums of rows, of sums of squares, and of rounds; bits to which products of a row with a basis are rounded.
_COLUMNS, _SQUARES, _ROUND, _BITS = 1 << 15, 1 << 15, 1 << 4, 12
#: Bits of a public basis.
_BASIS = 20
#: Rows of which 64 bits hold the sums.
MOST_ROWS = 1 << 27
#: Numbers of a block of rows, which stays in the cache.
_CELLS = 1 << 20


def round_reach(n_components):
    """Return by how much a replaced row moves the sums of a round, at most, in Euclidean norm."""
    return math.isqrt(2 * (REACH << _BITS) ** 2) + 1 + REACH * (math.isqrt(n_components) + 1)


def power_law(epsilon, delta, n_rounds, n_components, centred):
    """Return the noise of every integer of all rounds; ValueError where integers do not hold it."""
    square = n_rounds * (_ROUND * round_reach(n_components)) ** 2 + (_SQUARES * REACH) ** 2
    if centred:
        square += (2 * REACH * _COLUMNS) ** 2
    return RoundedGaussianLaw(epsilon, delta, Fraction(math.isqrt(square) + 1), 0)


def public_basis(basis):
    """Return integers near an orthonormal basis times 2^20, such that no row of norm 1 has a longer product than 2^20.

    What floats and rounding err is made up for by shrinking, which exact integers decide.
    """
    shrink = 1.0
    while True:
        whole = np.rint(np.nan_to_num(basis) * (shrink * 2.0**_BASIS))
        # (sums of absolute values in rows of P^T P bound its eigenvalues: integers near 2^40, exact in floats)
        most = int(np.abs(whole.T @ whole).sum(axis=1).max())
        if most <= 1 << 2 * _BASIS:
            return whole
        shrink *= min(0.999999, math.sqrt((1 << 2 * _BASIS) / most) * (1 - 1e-9))


class Rows:
    """Rows that answer with noisy sums; whoever holds them is trusted."""

    def __init__(self, X, rows, law, answers):
        self._X, self._rows, self._law, self._answers = X, rows, law, answers

    @property
    def deviation(self):
        """The standard deviation of a number of a product."""
        return math.sqrt(self._law.variance_steps) / float(_ROUND * REACH << _BITS)

    @property
    def mean_variance(self):
        """The variance of the noise in a sum of a column, over the square of the reach."""
        return self._law.variance_steps / float(_COLUMNS * REACH) ** 2

    def means(self, centred, weights):
        """Return noisy (sums of rows, or None where they are known to be 0; sum of weighted squares), over the reach.

        Weights are public, from 0 to 1.
        """
        sums, squares = self.column_sums(np.rint(weights * 1024.0))
        asked = np.append(sums * _COLUMNS if centred else np.zeros(0, np.int64), squares * _SQUARES)
        noisy = self._noisy(asked)
        return noisy[:-1] / (_COLUMNS * REACH) if centred else None, float(noisy[-1]) / (_SQUARES * REACH)

    def product(self, basis):
        """Return (noisy sums of x (x P)^T over rows x of norm 1 at most, P itself: a basis nearly as it was)."""
        whole = public_basis(basis)
        (sums,) = self.products(whole)
        return self._noisy(sums * _ROUND) / float(_ROUND * REACH << _BITS), whole * 2.0**-_BASIS

    def column_sums(self, whole):
        """Return exact (sums of columns, sum of squares with these whole weights)."""
        sums, squares = np.zeros(self._rows.n_columns, np.int64), 0
        for block in self._blocks():  # (all integers below 2^53)
            sums += block.sum(axis=0).astype(np.int64)
            squares += int(np.floor(np.square(block) @ whole / (1024.0 * REACH)).sum())
        return sums, squares

    def products(self, whole):
        """Return exact (sums of the products of rows with a whole basis,)."""
        sums = np.zeros(whole.shape, np.int64)
        for block in self._blocks():
            # exact: x P is an integer below 2^53, in whatever order it is added up; so are sums over a block
            told = np.rint(block @ whole * 2.0 ** (_BITS - _BASIS) / REACH)
            sums += (block.T @ told).astype(np.int64)
        return (sums,)

    # ---------------------------------------------------------------- inside

    def _blocks(self):
        d = self._rows.n_columns
        step = max(1, _CELLS // (d + 2))
        out = np.empty((min(step, len(self._X)), d + 2))
        for at in range(0, len(self._X), step):
            block = out[: min(step, len(self._X) - at)]
            self._rows.write(self._X[at : at + step], None, block)
            with one_thread(d):
                yield block[:, :d]

    def _noisy(self, whole):
        return self._answers.add(self._law, whole).astype(np.float64)


@record
class PartSums(Request):
    """Asks rows in parts for the exact sums of `Rows`."""

    blueprint: Blueprint
    #: how rows become integers
    row_map: object
    #: "column_sums" or "products", and what it takes
    name: str = ""
    whole: np.ndarray = None

    def of_rows(self, rows, place):
        """Return exact sums."""
        X = self.blueprint.build()._read_part(rows, self.row_map)
        with np.errstate(all="ignore"):
            return getattr(Rows(X, self.row_map, None, None), self.name)(self.whole)

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return tuple(a + b for a, b in zip(one, other))


class PartRows(Rows):
    """Rows in parts, which answer as `Rows` do; `ask` returns the merged answer to a request."""

    def __init__(self, ask, request, law, answers):
        super().__init__(None, request.row_map, law, answers)
        self._ask, self._request = ask, request

    def column_sums(self, whole):
        """Return the sums of all parts."""
        return self._ask(replace(self._request, name="column_sums", whole=whole))

    def products(self, whole):
        """Return the sums of all parts."""
        return self._ask(replace(self._request, name="products", whole=whole))


def components_of(asked, rows, n_rows, n_components, n_rounds, progress):
    """Return (directions of shape (n_components, n_features), variances, mean, total variance, noise of a variance).

    Variances are over n_rows, in squared units of X; those of directions are of the last basis but one.

    Parameters
    ----------
    asked : Rows
    rows : RowMap
    n_rows : int
    n_components : int
    n_rounds : int
    progress : Progress
    """
    scale, center = units_of(rows)
    n, widest = max(1, n_rows), float(scale.max()) or 1.0
    part = scale / widest
    sums, squares = asked.means(rows.fit_intercept, np.square(part))
    mean = np.zeros(len(scale)) if sums is None else sums / n
    mean /= max(1.0, float(np.sqrt(mean @ mean)))  # (means are in the ball that rows are in)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((len(scale), n_components)))[0]  # (public)
    for _ in progress.of(range(n_rounds)):
        # rows are scaled, and directions are of rows in units of X: what lies between is in `turned`
        seen, turned = np.linalg.qr(part[:, None] * basis)
        noisy, seen = asked.product(seen)
        through = part[:, None] * ((noisy / n - np.outer(mean, mean @ seen)) @ turned)
        inner = basis.T @ through
        values, turn = np.linalg.eigh((inner + inner.T) / 2)
        basis = np.linalg.qr(through @ turn[:, ::-1])[0]
    values = np.maximum(values[::-1], 0.0)
    # (the square of a noisy mean is too large by the variance of its noise)
    extra = asked.mean_variance / n**2 if rows.fit_intercept else 0.0
    total = max(squares / n - float(np.square(part) @ (np.square(mean) - extra)), float(values.sum()))
    total = total if scale.any() else 0.0
    mean = center + scale * mean if rows.fit_intercept else mean
    return basis.T, values * widest**2, mean, total * widest**2, asked.deviation / n * widest**2
