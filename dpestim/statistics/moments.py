"""Functions of sums of products: variance, standard deviation, covariance, correlation (`moments.md`)."""

import math

import numpy as np

from dpestim.statistics.result import moment_range
from dpestim.statistics.sums import FLOAT_SLACK, SumStatistic, column_sums


class Covariance(SumStatistic):
    """Covariance matrix of columns, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. For a
    record replaced n times the sum of products minus the product of sums is an integer, which changes by (n - 1) times
    both ranges at most. For one more or less the number of rows, the centred sums and the sums of products get noise,
    equal shares of epsilon each. Whoever holds the data must be trusted.

    **Utility.** That of `numpy.cov` with ``bias=True``. For replaced records unbiased, with noise of standard deviation
    of about sqrt(2) k range range' / (n epsilon) for the k = d (d + 1) / 2 entries of d columns. The matrix need not be
    positive semi-definite; variances are clipped to [0, (high - low)^2 / 4].

    **Complexity.** O(n d^2) time, O(d^2) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof, with the sensitivity: ``moments.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Covariance
    >>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 100_000)
    >>> Covariance(2.0, bounds=(-5, 5), random_state=0).fit(X).value_.round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _about = ("the covariances (divided by n) of the rows, clipped to the bounds and rounded to the grid (a 2^19th of "
              "the bounds, or finer)")
    _involved = {True: 1, False: 4}

    def _touched(self, columns, shape):
        return columns[:, None] | columns if len(shape) == 2 else super()._touched(columns, shape)

    @staticmethod
    def _pairs(d):
        return [(i, j) for i in range(d) for j in range(i, d)]

    def _sums(self, rows, grids):
        sums, products = column_sums(rows, grids, self._pairs(len(grids)))
        return [*sums, *products]

    def _numbers(self, summary):
        grids, n = summary.identity[-1], summary.n_rows
        d, pairs = len(grids), self._pairs(len(grids))
        sums, products = summary.totals[:d], summary.totals[d:]
        if self._replaces():
            return ([n * q - sums[i] * sums[j] for q, (i, j) in zip(products, pairs)],
                    [max(1, n - 1) * grids[i].span * grids[j].span for i, j in pairs])
        return ([n, *sums, *products],
                [1, *(grid.reach for grid in grids), *(grids[i].reach * grids[j].reach for i, j in pairs)])

    @classmethod
    def _values(cls, noisy, errors, grids, n):
        """Return covariances of the pairs and their standard errors."""
        d = len(grids)
        unit = np.array([grids[i].step * grids[j].step for i, j in cls._pairs(d)])
        if n is not None:
            scale = unit / max(1, n) ** 2
            values, errors = noisy * scale, errors * scale
        else:
            count = max(1.0, noisy[0])
            m, e = noisy[1 : d + 1] / count, errors / count
            values, spread = noisy[d + 1 :] / count, []
            values = np.array([q - m[i] * m[j] for q, (i, j) in zip(values, cls._pairs(d))])
            for k, (i, j) in enumerate(cls._pairs(d)):
                own = 2 * m[i] * e[1 + i] if i == j else math.hypot(m[j] * e[1 + i], m[i] * e[1 + j])
                spread.append(math.hypot(e[1 + d + k], own, (values[k] - m[i] * m[j]) * e[0]))
            values, errors = values * unit, np.array(spread) * unit
        top = np.array([grids[i].reach * grids[j].reach for i, j in cls._pairs(d)]) * unit
        low = np.array([0.0 if i == j else -1.0 for i, j in cls._pairs(d)]) * top
        return np.clip(values, low, top), errors

    @classmethod
    def _ranges(cls, noisy, widths, grids, n):
        """Return ends of the covariances of the pairs."""
        d, out = len(grids), []
        for k, (i, j) in enumerate(cls._pairs(d)):
            top = float(grids[i].reach * grids[j].reach)
            if n is not None:
                least, most = ((noisy[k] + side * widths[k]) / max(1, n) ** 2 for side in (-1, 1))
            else:
                box = [(noisy[at] - widths[at], noisy[at] + widths[at]) for at in (1 + d + k, 1 + i, 1 + j, 0)]
                least, most = moment_range(*box, same=i == j)
                if box[3][0] < 1:
                    least, most = min(least, 0.0), max(most, 0.0)
            # (rows are up to half a step from their points, which are up to the reach from the middle)
            slack = FLOAT_SLACK * top + (grids[i].reach + grids[j].reach) / 2 + 0.25
            bottom = 0.0 if i == j else -top
            least, most = (min(max(end, bottom), top) for end in (least - slack, most + slack))
            unit = grids[i].step * grids[j].step
            out.append((least * unit, most * unit))
        return np.array(out).T

    @classmethod
    def _finish(cls, noisy, errors, grids, n):
        return tuple(_matrix(values, len(grids)) for values in cls._values(noisy, errors, grids, n))

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(_matrix(ends, len(grids)) for ends in cls._ranges(noisy, widths, grids, n))


def _matrix(values, d):
    out = np.empty((d, d))
    for value, (i, j) in zip(values, Covariance._pairs(d)):
        out[i, j] = out[j, i] = value
    return out


class Variance(Covariance):
    """Variance of each column, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. For a
    record replaced n times the sum of squares minus the square of the sum is an integer, which changes by
    (n - 1) (high - low)^2 at most. For one more or less the number of rows, the centred sums and the sums of squares
    get noise, equal shares of epsilon each. Whoever holds the data must be trusted.

    **Utility.** That of `numpy.var`, divided by n. For replaced records unbiased before it is clipped to
    [0, (high - low)^2 / 4], with noise of standard deviation of about sqrt(2) d (high - low)^2 / (n epsilon).

    **Complexity.** O(n d) time, O(d) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof, with the sensitivity: ``moments.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Variance
    >>> x = np.random.default_rng(0).normal(0, 2, 100_000)
    >>> print(f"{Variance(1.0, bounds=(-10, 10), random_state=0).fit(x).value_:.1f}")
    4.0
    """

    _about = ("the variance (divided by n) of the rows, clipped to the bounds and rounded to the grid (a 2^19th of the "
              "bounds, or finer)")
    _involved = {True: 1, False: 3}

    @staticmethod
    def _pairs(d):
        return [(j, j) for j in range(d)]

    @classmethod
    def _finish(cls, noisy, errors, grids, n):
        return cls._values(noisy, errors, grids, n)

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(cls._ranges(noisy, widths, grids, n))


class StandardDeviation(Variance):
    """Standard deviation of each column, clipped to bounds: the root of a private variance.

    **Privacy.** That of `Variance`: the root costs nothing.

    **Utility.** Interval ends are the roots of those of the variance. The standard error is the one of the variance
    over twice the value, infinite where the value is 0.

    **Complexity.** O(n d) time, O(d) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``moments.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import StandardDeviation
    >>> x = np.random.default_rng(0).normal(0, 2, 100_000)
    >>> print(f"{StandardDeviation(1.0, bounds=(-10, 10), random_state=0).fit(x).value_:.1f}")
    2.0
    """

    _about = ("the standard deviation (divided by n) of the rows, clipped to the bounds and rounded to the grid (a "
              "2^19th of the bounds, or finer)")

    @classmethod
    def _finish(cls, noisy, errors, grids, n):
        values, errors = cls._values(noisy, errors, grids, n)
        roots = np.sqrt(values)
        return roots, np.divide(errors, 2 * roots, out=np.full_like(roots, np.inf), where=roots > 0)

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(np.sqrt(cls._ranges(noisy, widths, grids, n)))


class Correlation(Covariance):
    """Correlation matrix of columns, clipped to bounds: a function of private covariances.

    **Privacy.** That of `Covariance`: dividing costs nothing.

    **Utility.** Biased where variances are small beside their noise; then intervals are [-1, 1]. A correlation with a
    column whose noisy variance is 0 is 0. There is no standard error.

    **Complexity.** O(n d^2) time, O(d^2) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``moments.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Correlation
    >>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 100_000)
    >>> Correlation(2.0, bounds=(-5, 5), random_state=0).fit(X).value_.round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    def _test_data(self, n_rows, seed=0):
        """Return two columns: with itself a column always has the correlation 1."""
        return np.random.default_rng(seed).normal(size=(n_rows, 2)), None

    _about = ("the correlations of the rows, clipped to the bounds and rounded to the grid (a 2^19th of the bounds, or "
              "finer), where both columns vary")
    _involved = {True: 3, False: 6}

    @classmethod
    def _finish(cls, noisy, errors, grids, n):
        matrix = _matrix(cls._values(noisy, errors, grids, n)[0], len(grids))
        roots = np.sqrt(np.diag(matrix))
        scale = np.outer(roots, roots)
        out = np.clip(np.divide(matrix, scale, out=np.zeros_like(matrix), where=scale > 0), -1, 1)
        np.fill_diagonal(out, 1.0)
        return out, None

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        low, high = (_matrix(ends, len(grids)) for ends in cls._ranges(noisy, widths, grids, n))
        least, most = np.sqrt(np.diag(low)), np.sqrt(np.diag(high))
        small, large = np.outer(least, least), np.outer(most, most)

        def over(end, positive, negative):
            scale = np.where(end >= 0, positive, negative)
            out = np.where(end >= 0, 1.0, -1.0)
            return np.clip(np.divide(end, scale, out=out, where=scale > 0), -1, 1)

        ends = over(low, large, small) - FLOAT_SLACK, over(high, small, large) + FLOAT_SLACK
        ends[0][small == 0], ends[1][small == 0] = -1.0, 1.0
        for end in ends:
            np.fill_diagonal(end, 1.0)
        return ends
