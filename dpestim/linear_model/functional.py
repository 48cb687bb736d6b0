"""The functional mechanism: Laplace noise on the coefficients of a polynomial loss (`functional.md`)."""

import math
from fractions import Fraction

import numpy as np

from dpestim.inputs import SparseRows
from dpestim.linear_model.shrinkage import trimmed
from dpestim.statistics.moment_noise import MomentRelease, Weights
from dpestim.statistics.row_moments import REACH, RowMap, summary_of

#: The weight of the square of a column; that of a product of two is twice as large, as it occurs twice.
_UNIT = 1 << 20
#: Standard deviations of the noise that the repair adds to the diagonal, as published.
_REPAIR = 4.0


def constant_of(rows, sensitivity):
    """Return the constant column, as an integer like those of x: as long as a column of a row that uses its norm."""
    return REACH if rows.cuts and sensitivity == "published" else rows.most


def functional_release(rows, epsilon, sensitivity, replaces):
    """Return the release of the quadratic loss of rows (x, 1, y).

    Parameters
    ----------
    rows : RowMap
    epsilon : Fraction
    sensitivity : {"tight", "published"}
    replaces : bool
    """
    d, size = rows.n_columns, rows.n_columns + rows.fit_intercept
    constant = constant_of(rows, sensitivity)
    own = constant if rows.fit_intercept else 0
    if sensitivity == "published":
        # |x_j|, |y| <= 1: targets are integers up to REACH, columns up to `constant`
        weights = Weights(_UNIT, 2 * _UNIT, 2 * _UNIT * own, 2 * _UNIT * constant // REACH,
                          2 * _UNIT * own * constant // REACH, _UNIT * constant * constant // REACH**2,
                          0 if replaces else _UNIT * own * own)
        l1 = _UNIT * constant * constant * (1 + size) ** 2
    else:
        # rows and the constant have a norm; the square of y is the same for all coefficients, and left out
        weights = Weights(_UNIT, 2 * _UNIT, 2 * _UNIT * own, 2 * _UNIT, 2 * _UNIT * own, 0,
                          0 if replaces else _UNIT * own * own)
        squares = size * (REACH * REACH + own * own)
        l1 = _UNIT * (squares + 2 * (math.isqrt(squares) + 1) * REACH)
    return MomentRelease(epsilon, Fraction(0), weights, d, replaces, l1 * (2 if replaces else 1))


class FunctionalLogistic:
    """Logistic regression by the functional mechanism: one class or each of several against the rest, a share each.

    Where one record is replaced: sum of (z w)^2 / 8 - s z w / 2 over rows z of norm 1, s the sign of the class; eight
    times as much has integer weights. What could fail, fails here.

    Parameters
    ----------
    epsilon : Fraction
    size : int
        Columns of a row, that of the intercept included.
    problems : int
    sensitivity : {"tight", "published"}, default="tight"
    """

    def __init__(self, epsilon, size, problems=1, sensitivity="tight"):
        weights = Weights(_UNIT, 2 * _UNIT, 0, 4 * _UNIT, 0, 0, 0)
        root = Fraction(math.isqrt(size << 40) + 1, 1 << 20)
        l1 = 2 * size * size + 24 * size if sensitivity == "published" else 2 * (size + 4 * root)
        self._release = MomentRelease(epsilon / problems, Fraction(0), weights, size, True,
                                      math.ceil(l1 * _UNIT * REACH**2))
        self.problems, self.delta = problems, 0
        #: the noise of the coefficient of a square, and what the repair adds to the Hessian (both public)
        self.scale = self._release.deviation / math.sqrt(2) / 8
        self.strength = _REPAIR * self._release.deviation / 4

    def fit(self, Z, signs, source):
        """Return private coefficients for rows Z of norm at most 1 and a row of signs (0: no class) a problem."""
        return self.draw(products_of(Z, signs), len(Z), source)

    def draw(self, summaries, n_rows, source):
        """Return private coefficients for the `Summary` of each problem, as `products_of` returns them."""
        out = []
        for k, summary in enumerate(summaries):
            moments = self._release.draw(summary, source.part(k), n_rows)
            out.append(2.0 * trimmed(moments, ridge_of(moments), False).w)
        return np.array(out)


def products_of(Z, signs):
    """Return the exact sums of products of rows Z of norm at most 1 and a row of signs a problem, a list."""
    rows = RowMap((), (), 1.0, (-1.0, 1.0), False, Z.shape[1])
    return [summary_of(rows, np.where((own != 0)[:, None], Z, 0.0), own.astype(float), ()) for own in signs]


def unit_rows(X, norm, limit, tail):
    """Return rows (x limit / norm, tail), x cut to the norm; no last column where the tail is 0."""
    if isinstance(X, SparseRows):
        X = X.times(np.ones(len(X)), np.eye(X.shape[1]))
    with np.errstate(all="ignore"):  # (what is not finite becomes a row of zeros when it is rounded)
        rows = RowMap((), (), float(norm), (-1.0, 1.0), False, X.shape[1]).cut(X) * (limit / norm)
    return np.column_stack([rows, np.full(len(X), tail)]) if tail else rows


def ridge_of(moments):
    """Return what the paper adds to the diagonal: four times the standard deviation of its noise."""
    return _REPAIR * math.sqrt(moments.noise["square"])
