"""Functions of sums of products: variance, standard deviation, covariance, correlation (`moments.md`)."""

import numpy as np

from dpestim.statistics.result import joint_nodes, moment_range, nodes, spread
from dpestim.statistics.sums import FLOAT_SLACK, SumStatistic

#: Pairs of columns whose standard errors are worked out at a time.
_PAIRS = 4096


class Covariance(SumStatistic):
    """Release a noisy covariance matrix of columns, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. For a
    record replaced n times the sum of products minus the product of sums is an integer, which changes by (n - 1) times
    both ranges at most. For one more or less the number of rows, the centred sums and the sums of products get noise,
    equal shares of epsilon each. The curator, who holds the data, must be trusted.

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

    @property
    def _adds_up(self):
        """Where a record is replaced, products of the sums of all rows are hidden: they are no sums."""
        return not self._replaces

    def _touched(self, columns, shape):
        return columns[:, None] | columns if len(shape) == 2 else super()._touched(columns, shape)

    @staticmethod
    def _pairs(d):
        return [(i, j) for i in range(d) for j in range(i, d)]

    def _numbers(self, summary):
        grids, n = summary.domain, summary.n_rows
        d, pairs = len(grids), self._pairs(len(grids))
        sums, products = summary.totals[:d], summary.totals[d:]
        if self._replaces:
            return ([n * q - sums[i] * sums[j] for q, (i, j) in zip(products, pairs)],
                    [max(1, n - 1) * grids[i].span * grids[j].span for i, j in pairs])
        return ([n, *sums, *products],
                [1, *(grid.reach for grid in grids), *(grids[i].reach * grids[j].reach for i, j in pairs)])

    @classmethod
    def _values(cls, noisy, errors, grids, n):
        """Return covariances of the pairs, a function of a slice of them (they with other noise), and their limits."""
        d = len(grids)
        i, j = np.array(cls._pairs(d)).T
        unit, top = (np.array([getattr(grids[a], name) * getattr(grids[b], name) for a, b in zip(i, j)], float)
                     for name in ("step", "reach"))
        top, low = top * unit, np.where(i == j, 0.0, -top * unit)
        if n is not None:
            values = np.clip(noisy * (unit / max(1, n) ** 2), low, top)
            spreads = errors * (unit / max(1, n) ** 2)

            def again(some):
                return values[some, None] + spreads[some, None] * nodes()
        else:
            places = np.zeros(len(i), int), 1 + i, 1 + j, np.arange(d + 1, len(noisy))
            values = unit * _moment(*(noisy[at] for at in places))
            # (samples are taken around sums that so many rows can have)
            count, reach = max(1.0, noisy[0]), np.array([grid.reach for grid in grids], float)
            most = count * np.r_[1.0, reach, reach[i] * reach[j]]
            around = np.clip(np.r_[count, noisy[1:]], -most, most)

            def again(some):
                joint = joint_nodes()
                noises = joint[0], joint[1], joint[np.where(i == j, 1, 2)[some]], joint[3]
                return unit[some, None] * _moment(*(around[at[some], None] + errors[at[some], None] * noise
                                                    for at, noise in zip(places, noises)))

        return np.clip(values, low, top), again, (low, top)

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
        found = cls._values(noisy, errors, grids, n)
        return _matrix(found[0], len(grids)), _matrix(_spreads(*found[1:]), len(grids))

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(_matrix(ends, len(grids)) for ends in cls._ranges(noisy, widths, grids, n))


def _spreads(again, limits, function=None):
    """Return standard deviations of all pairs, of few at a time: other noise takes more room than they do."""
    blocks = [slice(at, at + _PAIRS) for at in range(0, len(limits[0]), _PAIRS)]
    return np.concatenate([spread(again(some), [end[some] for end in limits], function) for some in blocks])


def _moment(count, first, second, product):
    count = np.maximum(1.0, count)
    return product / count - first / count * (second / count)


def _matrix(values, d):
    out = np.empty((d, d))
    for value, (i, j) in zip(values, Covariance._pairs(d)):
        out[i, j] = out[j, i] = value
    return out


class Variance(Covariance):
    """Release the noisy variance of each column, clipped to bounds.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. For a
    record replaced n times the sum of squares minus the square of the sum is an integer, which changes by (n - 1) (high
    - low)^2 at most. For one more or less the number of rows, the centred sums and the sums of squares get noise, equal
    shares of epsilon each. The curator, who holds the data, must be trusted.

    **Utility.** That of `numpy.var`, divided by n. For replaced records unbiased before it is clipped to [0, (high -
    low)^2 / 4], with noise of standard deviation of about sqrt(2) d (high - low)^2 / (n epsilon). With few rows the
    distribution is far from normal, because it ends at 0: take `result_.interval`, which holds for any data. The value
    plus and minus 1.96 standard errors covers .88 to .97 (normal rows, 20 to 200 of them, epsilon 1 to 8).

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
        found = cls._values(noisy, errors, grids, n)
        return found[0], _spreads(*found[1:])

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(cls._ranges(noisy, widths, grids, n))


class StandardDeviation(Variance):
    """Release the standard deviation of each column, the root of a noisy variance.

    **Privacy.** That of `Variance`: the root costs nothing.

    **Utility.** Interval ends are the roots of those of the variance, and hold for any data. With few rows the value
    plus and minus 1.96 standard errors is no interval: it covers .79 to .94 (normal rows, 20 to 200 of them, epsilon 1
    to 8).

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
        found = cls._values(noisy, errors, grids, n)
        return np.sqrt(found[0]), _spreads(*found[1:], np.sqrt)

    @classmethod
    def _range(cls, noisy, widths, grids, n):
        return tuple(np.sqrt(cls._ranges(noisy, widths, grids, n)))


class Correlation(Covariance):
    """Release a correlation matrix of columns, computed from noisy covariances.

    **Privacy.** That of `Covariance`: dividing costs nothing.

    **Utility.** Biased where variances are small beside their noise; then intervals are [-1, 1]. A correlation is NaN
    if the noisy variance of either column is at most two standard deviations of its noise, as for nearly all constant
    columns. Correlations have no standard error.

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

    @classmethod
    def _test_params(cls):  # (with less, ends are -1 and 1)
        return [{"epsilon": 50.0, "bounds": (-3.0, 5.0), "neighbours": own} for own in ("substitution", "add_remove")]

    def _test_data(self, n_rows, seed=0):
        """Return two columns: with itself a column always has the correlation 1."""
        return np.random.default_rng(seed).normal(size=(n_rows, 2)), None

    _about = ("the correlations of the rows, clipped to the bounds and rounded to the grid (a 2^19th of the bounds, or "
              "finer), where both columns vary; NaN where the noisy variance of one is no more than two standard "
              "deviations of its noise")
    _involved = {True: 3, False: 6}

    @classmethod
    def _finish(cls, noisy, errors, grids, n):
        values, again, _ = cls._values(noisy, errors, grids, n)
        own = np.array([k for k, (i, j) in enumerate(cls._pairs(len(grids))) if i == j])
        matrix = _matrix(values, len(grids))
        known = np.diag(matrix) > 2 * spread(again(own), (np.full(len(own), -np.inf), np.full(len(own), np.inf)))
        roots = np.sqrt(np.diag(matrix)) * known
        scale = np.outer(roots, roots)
        out = np.clip(np.divide(matrix, scale, out=np.full_like(matrix, np.nan), where=scale > 0), -1, 1)
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
