"""`of`: the errors of what an estimator of `dpestim.statistics` or a mechanism of `dpestim.central` will release."""

import math
from fractions import Fraction
from numbers import Integral

import numpy as np

from dpestim.accuracy.error import Error, new_release
from dpestim.accuracy.functions import Moment, Ranks, Ratio, Root, Worst
from dpestim.accuracy.numbers import Number, Source
from dpestim.central.additive.law import NoiseLaw
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.statistics.calibrated_noise import equal_shares
from dpestim.statistics.moments import Correlation, Covariance, StandardDeviation, Variance
from dpestim.statistics.quantiles import Quantile
from dpestim.statistics.ranks import Ranked
from dpestim.statistics.sums import FLOAT_SLACK, Count, Mean, Sum
from dpestim.statistics.tables import Cells, ContingencyTable, Histogram
from dpestim.summaries import MOST_ROWS, Summary

_KNOWN = "Count, Sum, Mean, Variance, StandardDeviation, Covariance, Quantile, Histogram or ContingencyTable of "
_NONE = Ranked(np.zeros(0, np.int64), np.zeros(0, np.int64))
_HALF = Fraction(1, 2)


def of(estimator, n=None, *, columns=None, size=None):
    """Return the error of what an estimator will release, as it follows from its parameters and the number of rows.

    It compares the released value with the exact one of the same rows, clipped to the bounds: noise, and rounding to
    a grid; what clipping does is not in it (see `at_most`). Of a `Quantile` it is the error of the rank, in rows.
    Every call stands for another release, with noise of its own.

    **Privacy.** No data is read: it costs nothing. The number of rows must be public, or a guess.

    Parameters
    ----------
    estimator : Count, Sum, Mean, Variance, StandardDeviation, Covariance, Quantile, Histogram, ContingencyTable, or \
mechanism that adds noise
        It is not fitted. Bounds must be declared.
    n : int, default=None
        How many rows there will be; counts, histograms and tables do not need it.
    columns : int or list of str, default=None
        How many columns there will be, or their names, where bounds are declared by name. None: as many as bounds or
        categories are declared for, or one column without a second axis.
    size : int, default=None
        Of a mechanism: how many answers one release will have. None: one number.

    Returns
    -------
    Error
        Of the shape of the released value.

    Raises
    ------
    ValueError
        For parameters that do not fit, and where no error is known before the data are.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Mean
    >>> error = accuracy.of(Mean(1.0, bounds=(0, 100)), 1000)
    >>> print(error)
    standard deviation  90 % bound  95 % bound  99 % bound
                0.1414      0.2303      0.2996      0.4606
    Against the mean of the rows, clipped to the bounds.
    """
    if isinstance(estimator, AdditiveMechanism):
        if n is not None or columns is not None:
            raise ValueError("a mechanism takes answers, and not rows: give size=, the number of answers of a release")
        return _of_answers(estimator, size)
    if type(estimator) not in _READERS:  # (a sub-class may have another law)
        why = ("a correlation has no bound before its variances are known: take Covariance"
               if isinstance(estimator, Correlation) else f"estimator must be {_KNOWN}dpestim.statistics, or a "
               f"mechanism of dpestim.central that adds noise to answers, got {type(estimator).__name__}")
        raise ValueError(why)
    if size is not None:
        raise ValueError("size is for mechanisms: give n=, the number of rows")
    if n is None and isinstance(estimator, Count | Cells):
        n = 1  # (their noise is the same for any number of rows)
    if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n < MOST_ROWS:
        raise ValueError("n must be the number of rows, an int from 1 to 2^31 - 1")
    estimator._check()
    if getattr(estimator, "_finds_bounds", bool)():
        raise ValueError('bounds="private" depend on the rows, and so does the error: declare bounds')
    names, n_columns = _columns(columns)
    estimator = estimator._settled_to(names, n_columns)
    identity = estimator._identity(n_columns, n_columns is None)
    d = _width(estimator, identity, n_columns)
    return _READERS[type(estimator)](estimator, identity, int(n), d, names, n_columns is None and _is_flat(estimator))


def _columns(columns):
    """Return (names, how many columns); None for what is not said."""
    if columns is None:
        return None, None
    if isinstance(columns, Integral) and not isinstance(columns, bool) and columns >= 1:
        return None, int(columns)
    if isinstance(columns, list | tuple) and columns and all(isinstance(name, str) for name in columns):
        return list(columns), len(columns)
    raise ValueError("columns must be a number of columns of at least 1, or a list of their names")


def _width(estimator, identity, n_columns):
    """Return how many columns there are."""
    if isinstance(estimator, Cells):
        return len(estimator._shape(n_columns))
    return len(identity[-1]) if estimator._bounded else n_columns or 1


def _is_flat(estimator):
    """Tell whether bounds are those of a column without a second axis."""
    bounds = getattr(estimator, "bounds", None)
    return not (isinstance(bounds, tuple | list) and len(bounds) == 2 and np.ndim(bounds[0]))


def _error(estimator, made, shape, release, keys, names, what=""):
    """Return the error of a release of numbers, with the labels of its result."""
    return Error(_array(made, shape), {release: estimator.privacy_}, (what + estimator._about,),
                 *_labels(estimator, shape, keys, names))


def _array(numbers, shape):
    out = np.empty(len(numbers), object)
    out[:] = numbers
    return out.reshape(shape)


def _labels(estimator, shape, keys, names):
    """Return (labels, titles) of an array of numbers, as those of a result."""
    axes = estimator._axes(shape, keys, names)
    if not shape:
        return None, ()
    labels = np.empty(shape, object)
    for place in np.ndindex(shape):
        labels[place] = tuple(own[k] for (_, own), k in zip(axes, place))
    return labels, tuple(title for title, _ in axes)


def _of_answers(mechanism, size):
    law, release = mechanism.law(1 if size is None else size), new_release()
    if isinstance(law, NoiseLaw):
        step = Fraction(2) ** law.exponent
        rounding = Fraction(0) if mechanism._integers else step / 2
        made = [Number({Source(release, k, law): step}, rounding) for k in range(size or 1)]
    else:
        made = [Number({Worst(law): Fraction(1)}) for _ in range(size or 1)]
    against = "the exact answers" + ("" if mechanism.bounds is None else ", clipped to the bounds")
    return Error(_array(made, () if size is None else (size,)), {release: mechanism.privacy_}, (against,))


def _of_cells(estimator, identity, n, d, names, one):
    shape, keys = estimator._shape(d), estimator._keys(d)
    summary = Summary((identity[0], d, *identity[2:]), n, np.zeros(math.prod(shape), np.int64))
    noise = estimator._plan(summary, estimator._shares()[1]).parts[0].noise
    release = new_release()
    made = [Number({Source(release, k, noise.law): Fraction(noise.unit)}) for k in range(math.prod(shape))]
    return _error(estimator, made, shape, release, keys, names)


def _of_ranks(estimator, identity, n, d, names, one):
    targets, _ = estimator._targets()
    made = np.empty((len(targets), d), object)
    epsilon = estimator._shares()[1] / (len(targets) * d)
    for j, grid in enumerate(identity[-1]):
        cells = _NONE.coarse_cells(grid) if estimator.rank is None else _NONE.fine_cells(grid)
        for i, q in enumerate(targets):
            law = estimator._laws(q, epsilon)[0]
            made[i, j] = Number({Ranks(law, cells.total, len(targets)): Fraction(1)})
    shape = np.shape(estimator.q) if one else (*np.shape(estimator.q), d)
    return _error(estimator, made.ravel(), shape, new_release(), (), names, "the rank, in rows, of ")


def _of_sums(estimator, identity, n, d, names, one):
    squares = len(estimator._pairs(d)) if isinstance(estimator, Covariance) else 0
    grids = identity[-1]
    summary = Summary((identity[0], d, one, *identity[3:]), n, [0] * (d + squares))
    weights, *_ = equal_shares(estimator._numbers(summary)[1])
    noise = estimator._plan(summary, estimator._shares()[1]).parts[0].noise
    release = new_release()
    rounding = Fraction(noise.unit, 2) if noise.unit > 1 else Fraction(0)
    drawn = [Number({Source(release, k, noise.law): Fraction(noise.unit, weight)}, rounding / weight)
             for k, weight in enumerate(weights)]
    made = _VALUES[type(estimator)](drawn, grids, n, estimator._replaces)
    if isinstance(estimator, StandardDeviation):
        made = [Number({Root(number): Fraction(1)}) for number in made]
    shape = (d,)
    if squares and not isinstance(estimator, Variance):
        places = {pair: k for k, pair in enumerate(Covariance._pairs(d))}
        made, shape = [made[places[min(i, j), max(i, j)]] for i in range(d) for j in range(d)], (d, d)
    shape = () if one and len(made) == 1 else shape
    return _error(estimator, made, shape, release, (), names)


def _more(number, rounding):
    return Number(number.terms, number.rounding + Fraction(rounding))


def _counts(drawn, grids, n, replaces):
    return drawn


def _sums(drawn, grids, n, replaces):
    # (a row is up to half a step from its point; where rows are secret, it is against rounded rows, as its intervals)
    return [_more(number, _HALF * n * replaces + Fraction(FLOAT_SLACK) * n * max(abs(grid.first), abs(grid.last)))
            * Fraction(grid.step) for number, grid in zip(drawn, grids)]


def _means(drawn, grids, n, replaces):
    out = []
    for number, grid in zip(drawn[0 if replaces else 1:], grids):
        slack = _HALF + Fraction(FLOAT_SLACK) * (abs(grid.first) + abs(grid.last))
        if replaces:
            mean = number * Fraction(1, n)
        else:
            mean = Number({Ratio(number, drawn[0], grid.reach, n, float(grid.span)): Fraction(1)})
        out.append(_more(mean, slack) * Fraction(grid.step))
    return out


def _moments(pairs):
    def moments(drawn, grids, n, replaces):
        out, d = [], len(grids)
        for k, (i, j) in enumerate(pairs(d)):
            top = grids[i].reach * grids[j].reach
            # (rows are up to half a step from their points, which are up to the reach from the middle)
            slack = Fraction(FLOAT_SLACK) * top + Fraction(grids[i].reach + grids[j].reach, 2) + Fraction(1, 4)
            if replaces:
                number = drawn[k] * Fraction(1, n * n)
            else:
                parts = drawn[1 + d + k], (drawn[1 + i], drawn[1 + j]), drawn[0], (grids[i].reach, grids[j].reach)
                number = Number({Moment(*parts, n, 2.0 * top): Fraction(1)})
            out.append(_more(number, slack) * Fraction(grids[i].step) * Fraction(grids[j].step))
        return out

    return moments


#: From noisy numbers to the errors of the values that are made of them.
_VALUES = {Count: _counts, Sum: _sums, Mean: _means, Variance: _moments(Variance._pairs),
           StandardDeviation: _moments(Variance._pairs), Covariance: _moments(Covariance._pairs)}
_READERS = {Histogram: _of_cells, ContingencyTable: _of_cells, Quantile: _of_ranks, **dict.fromkeys(_VALUES, _of_sums)}
