"""Checks of the laws of numbers (by kinds of inputs, means, rounding) and the data that suit declared bounds."""

import math

import numpy as np
from scipy import stats

from dpestim.testing.law import chi_square
from dpestim.testing.sample import ALPHA, WRONG_FACTORS, N
from dpestim.testing.tools import require


def check_mean_is_exact(sample):
    """Means of what codes stand for are the inputs, by Fractions; elsewhere within the bias that is stated."""
    for column in sample.columns:
        randomizer, inputs = column.randomizer, column.randomizer.inputs()
        numbers, bias = randomizer.mean_values()
        if bias == 0:
            outputs = randomizer.outputs()
            for row, x in zip(column.matrix, inputs):
                require(sum(p * z for p, z in zip(row, outputs)) == x, "the mean of a report is not its input")
            close = np.allclose(numbers, [float(z) for z in outputs], rtol=0, atol=1e-12)
            require(close, "positions are not those stated")
        means = column.law @ numbers
        error = np.abs(means - [float(x) for x in inputs]).max()
        require(error <= bias + 1e-10 * np.abs(numbers).max(), f"a bias of {error} is left where {bias} is stated")
        error = _bias_of_values(randomizer, means)
        require(error <= bias + 1e-10 * np.abs(numbers).max(), f"values have a bias of {error} where {bias} is stated")


def _bias_of_values(randomizer, means):
    """Return the largest bias for values themselves, from the fixed points that they become and the means of rows."""
    low, high = 1.0, 4.0
    x = np.clip(np.concatenate([np.linspace(low, high, 1025), *randomizer.edges_of(low, high)]), low, high)
    out = np.empty(len(x), np.int64)
    randomizer.encode(x, low, high, out)
    fixed, order = np.where(out < 0, ~out, out), np.argsort(randomizer.input_codes)
    share, near = (fixed & 0xFFFFFFFF) / 2**32, []
    for point in (fixed >> 32, fixed + 0xFFFFFFFF >> 32):  # it is rounded to one of these two rows
        codes = np.where(out < 0, ~(point << 32), point << 32)
        near.append(means[order[np.searchsorted(randomizer.input_codes, codes, sorter=order)]])
    return np.abs((1 - share) * near[0] + share * near[1] - (x - low) / (high - low)).max()


def check_variance(sample):
    """`variance` is that of reports (z-test, alpha = 1e-6), for every input; 0.7 and 1.3 times it are rejected."""
    for column in sample.columns:
        randomizer, k = column.randomizer, len(column.inputs)
        rows, _ = randomizer.law_indices(column.codes, column.reports)
        seen, n = randomizer.positions[column.reports[:, 0]], np.bincount(rows, minlength=k)
        means = np.bincount(rows, seen, minlength=k) / n
        spread = np.square(seen - means[rows])
        average = np.bincount(rows, spread, minlength=k) / n
        square = np.bincount(rows, np.square(spread - average[rows]), minlength=k) / n
        error, stated = np.sqrt(square / n), randomizer.variance()
        limit = stats.norm.isf(ALPHA / (2 * k))
        require((np.abs(average - stated) < limit * error + 1e-12).all(), "variance is not that of the reports")
        for factor in WRONG_FACTORS:
            away = np.abs(average - factor * stated)
            require((away > limit * error)[stated > 0].any(), f"the check cannot tell the variance from {factor} of it")


def check_rounding(sample):
    """Rounding is without bias whatever the fraction (chi-square by bins of it, alpha = 1e-6), and is not left out.

    Fractions are drawn at random in ten bins; the least and the largest have a bin each besides.
    """
    for column in sample.columns:
        codes, low, law = column.inputs, column.inputs < 0, column.law
        fixed = np.where(low, ~codes, codes)
        next_is_near = (np.diff(fixed) == 1 << 32) & (low[1:] == low[:-1])
        if not next_is_near.any():
            continue
        rng = np.random.default_rng(9)
        chosen = rng.choice(np.flatnonzero(next_is_near), N)
        fraction = rng.integers(1, 1 << 32, N)
        bins = fraction * 10 >> 32
        for least_or_most, value in ((10, 1), (11, (1 << 32) - 1)):
            some = rng.random(N) < 1 / 12
            bins[some], fraction[some] = least_or_most, value
        between = fixed[chosen] + fraction
        reports = column.draw(np.where(low[chosen], ~between, between), seed=10)[:, 0]
        group, where = np.unique(chosen * 12 + bins, return_inverse=True)
        seen = np.bincount(where * law.shape[1] + reports, minlength=len(group) * law.shape[1])
        seen = seen.reshape(len(group), law.shape[1])
        share = (np.bincount(where, fraction / 2**32) / np.bincount(where))[:, None]
        before, after = law[group // 12], law[group // 12 + 1]
        mixed = (1 - share) * before + share * after
        require(chi_square(seen, mixed) > ALPHA, "rounding to the grid does not follow the fraction")
        for wrong in (before, after):
            # where neighbouring rows differ too little for any sample of this size, nothing is asked: chi-square has
            # mean k and variance 2 k, and a law that is wrong by so much exceeds its limit by more than 6 sigma
            with np.errstate(divide="ignore", invalid="ignore"):
                away = np.nansum(seen.sum(axis=1, keepdims=True) * np.square(mixed - wrong) / wrong)
            enough = 12 * np.sqrt(2 * seen.size) + 40
            told = chi_square(seen, wrong) < ALPHA
            require(told or away < enough, "the check cannot tell rounding from none")


def check_encoding(sample):
    """Any float has a fixed point: monotone, exact at the bounds, clipped beyond, and a row of the law."""
    for randomizer in sample.randomizers:
        low, high = 1.0, 4.0
        x = np.array([-np.inf, -1e300, 0.9, 1.0, np.nextafter(4.0, 0.0), 4.0, 4.1, 1e300, np.inf, np.nan])
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        top = int(randomizer.grid) << 32
        expected = [0, 0, 0, 0, None, top, top, top, top, 0]
        is_low = out < 0
        for k, wanted in enumerate(expected):
            require(is_low[k] or wanted is None or out[k] == wanted, "a bound, or what lies beyond, is not clipped")
        x = np.sort(np.random.default_rng(11).uniform(0.5, 4.5, 5000))
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        is_low = out < 0
        require((np.diff(out[~is_low]) >= 0).all() and (np.diff(~out[is_low]) >= 0).all(), "encoding is not monotone")
        require(out.max() <= top, "a fixed point lies beyond the grid")
        rng = np.random.default_rng(12)
        x = np.concatenate([rng.normal(2.5, 2.0, 5000), [np.inf, -np.inf, np.nan], *randomizer.edges_of(low, high)])
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        fixed = np.where(out < 0, ~out, out)
        for rounded in (fixed >> 32, fixed + (1 << 32) - 1 >> 32):  # down and up
            rows = np.where(out < 0, ~(rounded << 32), rounded << 32)
            require(np.isin(rows, randomizer.input_codes).all(), "a value has a row that the law does not list")


def check_decoding(sample):
    """`transform` is `decode` of `privatize`, in floats of the shape of X; it changes nothing and names its columns."""
    X = sample.rows(50)
    est = sample.fresh().fit(X)
    out = est.transform(X)
    require(out.shape == X.shape and out.dtype == np.float64, "transform must return floats in the shape of X")
    reports = est.privatize(X)
    require(np.array_equal(out, est.decode(reports)), "transform must be decode of privatize")
    if getattr(est, "strategy", "") == "split":  # (what codes stand for, also beyond the bounds)
        ends = (_of_column(est.bounds_, j) for j in range(X.shape[1]))
        stated = [low + (high - low) * law.positions[code] for (low, high), law, code in
                  zip(ends, sample.randomizers, reports.T)]
        require(np.allclose(out, np.transpose(stated), rtol=1e-9), "what is decoded must be what codes stand for")
    require(np.array_equal(out, sample.fresh().fit_transform(X)), "fit_transform must be one randomisation")
    require(len(est.get_feature_names_out()) == X.shape[1], "one output column for each column")


def _of_column(pair, column):
    """Return the two ends of one column, of scalars or of arrays."""
    return [np.ravel(side)[column if np.size(side) > 1 else 0] for side in pair]


class Numbers:
    """The data that the checks of behaviour need for declared bounds."""

    #: parameters with which the domain is learned from data (those that an estimator has)
    undeclared = {"bounds": None, "low_sensitivity": None}
    secret = 8888.125
    shown = ("8888",)

    @staticmethod
    def probes(client, column):
        """Return values of all kinds: inside and beyond the bounds, and the floats around every declared end."""
        pairs = [pair for pair in (client.bounds, getattr(client, "low_sensitivity", None)) if pair is not None]
        ends = np.array([_of_column(pair, column) for pair in pairs], np.float64).ravel()
        some = np.random.default_rng(4).uniform(ends.min() - 1, ends.max() + 1, 500)
        odd = [-np.inf, np.inf, np.nan, 1e300, -1e300, 0.0]
        return np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf), some, odd])

    @staticmethod
    def declared_relaxed(client, column, values):
        """Tell which values the parameters name as having less protection; beyond the bounds they are clipped."""
        pair = getattr(client, "low_sensitivity", None)
        if pair is None:
            return np.zeros(len(values), bool)
        (low, high), (start, stop) = _of_column(client.bounds, column), _of_column(pair, column)
        clipped = np.clip(np.where(np.isnan(values), low, values), low, high)
        return (clipped >= start) & (clipped <= stop)

    @staticmethod
    def relaxed_inputs(client, column):
        """Return how the name of a relaxation must call the values that the parameters name: all that become such."""
        pair = zip(_of_column(client.bounds, column), _of_column(client.low_sensitivity, column))
        (low, start), (high, stop) = ([float(end) for end in ends] for ends in pair)
        nan = " and NaN" if start <= low else ""
        return f"[{-math.inf if nan else start!r}, {math.inf if stop >= high else stop!r}]{nan}"

    @staticmethod
    def other_domain(client):
        """Return the parameter of another domain that the same rows suit."""
        low, high = client.bounds
        return {"bounds": (low, (np.asarray(high) + 1.0).tolist())}

    @staticmethod
    def clipped(client, X):
        """Return rows as a fitted client takes them."""
        return np.clip(X, *client.bounds_)

    @staticmethod
    def any_width(client):
        """Tell whether the declared domain suits any number of columns."""
        return np.ndim(client.bounds[0]) == 0

    @staticmethod
    def rows(X):
        """Return rows that survive any container: whole numbers."""
        return np.round(X)

    @staticmethod
    def containers(X):
        """Yield (name, the same rows in another dtype)."""
        for dtype in (np.float32, np.int64, np.int8, object):
            yield str(np.dtype(dtype)), X.astype(dtype)

    @staticmethod
    def strange(X):
        """Return rows with values that are no finite numbers."""
        X = X.copy()
        X[3], X[4] = np.nan, np.inf
        return X

    @classmethod
    def bad_rows(cls, estimator, X):
        """Yield (what is wrong, rows, whether the error must name the column)."""
        for value in (np.nan, np.inf):
            bad = cls.secret + X
            bad[7, -1] = value
            yield str(value), bad, True
        yield "one dimension", np.full(5, cls.secret), False
        yield "text", np.array([["value-8888.125"] * X.shape[1]]), False
        yield "rows of unequal length", [[cls.secret], [cls.secret, cls.secret]], False
        yield "a masked array", np.ma.array(cls.secret + X, mask=X > 0), False
        yield "complex numbers", np.full(X.shape, cls.secret * 1j), False

    @staticmethod
    def bad_params(estimator):
        """Yield (what is wrong, parameters)."""
        low, high = estimator.bounds
        for name, bounds in (
            ("bounds reversed", (high, low)),
            ("bounds equal", (low, low)),
            ("bounds not finite", (low, float("inf"))),
            ("bounds of text", ("0", "1")),
            ("one bound", (0.0,)),
            ("no pair", 3.0),
            ("bounds of another length", ([0.0] * 9, [1.0] * 9)),
            ("bounds too close", (0.0, 1e-300)),
            ("bounds too far apart", (-1.7e308, 1.7e308)),
        ):
            yield name, {"bounds": bounds}
        yield "epsilon beyond a word", {"epsilon": 1e-19}
        if "grid" in estimator.get_params():
            yield "a grid of 12", {"grid": 12}
            yield "a grid that is too fine", {"grid": 1 << 16}


LAW_CHECKS = (
    check_mean_is_exact,
    check_variance,
    check_rounding,
    check_encoding,
)
ESTIMATOR_CHECKS = (check_decoding,)
