"""Checks of rows of several numbers: which columns of a row are drawn, and what is said of those that are not."""

from itertools import combinations
from math import comb

import numpy as np
from scipy import stats

from dpestim.rng import Words, WordSource
from dpestim.testing.law import chi_square
from dpestim.testing.sample import ALPHA
from dpestim.testing.tools import client_of, require

#: Rows that are drawn for.
_ROWS = 60_000
#: Rows of fractions that are rounded again and again.
_POINTS = 20


def slots_of(columns, reports):
    """Return reports of drawn columns as (n, k, slot) numbers, the first of a slot being that of a column."""
    return reports.reshape(len(reports), columns.n_sampled, -1)


def sampled_as_stated(columns, reports, data, seed):
    """Tell whether all that is reported of each column is what its law makes of the codes of those who drew it."""
    slots, size = slots_of(columns, reports), columns.block_rows
    for number, (column, law, values) in enumerate(zip(columns, columns.laws, data)):
        codes_of, reader = column.coder(), WordSource(seed).reader()
        for block in range(-(-len(reports) // size)):
            part = slots[block * size : (block + 1) * size]
            rows, places = np.nonzero(part[:, :, 0] == number)
            if not len(rows):
                continue
            wanted = np.empty((len(rows), law.report_width), law.report_dtype)
            codes = codes_of(np.ascontiguousarray(values[block * size + rows]))
            law.privatize(codes, Words(reader, number, block, 0, len(rows)), wanted)
            said = part[rows, places, 1:]
            if not np.array_equal(said[:, : law.report_width], wanted) or said[:, law.report_width :].any():
                return False
    return True


def check_columns_are_drawn(sample):
    """Every set of k columns is equally likely (chi-square, n = 60,000, alpha = 1e-6), whatever the values are.

    With the same seed other rows have the same columns drawn; sets of which one is likelier by a quarter are rejected.
    """
    X = sample.rows(1000)[np.arange(_ROWS) % 1000]
    est = client_of(sample.fresh())
    columns = est._columns_now(X.shape[1])
    drawn, again = (slots_of(columns, est.privatize(rows))[:, :, 0] for rows in (X, X[::-1]))
    require(np.array_equal(drawn, again), "which columns are drawn depends on the values")
    k, d = columns.n_sampled, len(columns)
    number = {subset: i for i, subset in enumerate(combinations(range(d), k))}
    seen = np.zeros((1, comb(d, k)))
    for subset, times in zip(*np.unique(drawn, axis=0, return_counts=True)):
        require(tuple(subset.tolist()) in number, "the columns of a row are not k different ones in ascending order")
        seen[0, number[tuple(subset.tolist())]] = times
    even = np.full(seen.shape, 1 / seen.size)
    require(chi_square(seen, even) > ALPHA, "some columns are drawn together more often than others")
    if seen.size > 1:
        even[0, 0] *= 1.25
        require(chi_square(seen, even / even.sum()) < ALPHA, "the check cannot tell an uneven draw from an even one")


def check_decoded_numbers(sample):
    """Each user's decoded numbers are without bias (z-test, n = 60,000, alpha = 1e-6); half of what is known is not."""
    X = sample.rows(1000)[np.arange(_ROWS) % 1000]
    est = sample.fresh().fit(X)
    out, (low, high) = est.decode(est.privatize(X)), est.bounds_
    require(out.shape == X.shape, "decode must return a number for every column")
    truth, middle = np.clip(X, low, high), (low + high) / 2
    limit = stats.norm.isf(ALPHA / (2 * X.shape[1]))
    error = out.std(axis=0) / np.sqrt(len(out))
    # against the mean, and against the product with the value, which numbers that follow no value would miss
    for weight in (np.ones(X.shape), (truth - middle) / (high - low)):
        off = weight * (out - truth)
        z = np.abs(off.mean(axis=0)) / (off.std(axis=0) / np.sqrt(len(off)))
        require((z < limit).all(), f"decoded numbers are biased: |z| = {z.max():.1f}")
    half = (middle + (truth - middle) / 2).mean(axis=0) - truth.mean(axis=0)
    require((np.abs(half) > limit * error).any(), "the check cannot tell numbers from half of them")


def check_joint_mean_is_exact(sample):
    """The means of what the reports of a joint law stand for are the inputs, by Fractions; `decode` says the same."""
    for column in sample.columns:
        law, outputs = column.randomizer, column.randomizer.outputs()
        for row, x in zip(column.matrix, law.inputs()):
            for j, wanted in enumerate(x):
                require(sum(p * z[j] for p, z in zip(row, outputs)) == wanted, "the mean of a report is not its input")
        _, at = law.law_indices(column.codes[:1000], column.reports[:1000])
        stated = np.array([[float(z) for z in row] for row in outputs])[at]
        require(np.allclose(law.decode(column.reports[:1000]), stated, rtol=0, atol=1e-12), "decode says another thing")


def check_joint_counts(sample):
    """Counts tell the mean of what reports stand for, how many they were, and the standard errors of their means."""
    for column in sample.columns:
        law, reports = column.randomizer, column.reports[:5000]
        counts = np.zeros(law.n_counts, np.int64)
        law.count(reports, counts)
        law.count(column.reports[5000:6000], counts)
        seen, n = law.decode(column.reports[:6000]), 6000
        means, errors, biases = law.means(counts)
        require(law.n_reports(counts) == n, "the counts do not tell how many reports there are")
        require(np.allclose(means, seen.mean(axis=0), rtol=0, atol=1e-9), "the means are not those of the reports")
        spread = seen.std(axis=0, ddof=1) / np.sqrt(n)
        right = (errors >= 0.999 * spread).all() and (errors < 1.05 * spread).all()
        require(right, "standard errors are not those of the spread")
        require(not np.any(biases), "a bias is stated")


def check_joint_rounding(sample):
    """Whole reports of rows between corners are a mixture of corners' laws (chi-square, n = 400,000, alpha = 1e-6).

    A corner weighs what independent rounding of each number gives it. Means alone would not do: numbers that are
    rounded together have the right ones, and reports whose patterns no corner's law allows. Rounding to the nearest
    corner is rejected.
    """
    for column in sample.columns:
        law, rng = column.randomizer, np.random.default_rng(9)
        fixed = rng.integers(0, (1 << 32) + 1, (_POINTS, column.inputs.shape[1]))
        fixed[0], fixed[1] = 1, (1 << 32) - 1
        some = fixed[2 : _POINTS // 2]  # (rows of which some numbers are at a bound)
        some[rng.random(some.shape) < 1 / 3] = 0
        point = np.arange(400_000) % _POINTS
        reports = column.draw(np.ascontiguousarray(fixed[point]), seed=10)
        _, at = law.law_indices(column.inputs[np.zeros(len(reports), int)], reports)
        size = column.law.shape[1]
        seen = np.bincount(point * size + at, minlength=_POINTS * size).reshape(_POINTS, size)
        corners, share = np.array(law.inputs(), float), fixed[:, None] / 2**32
        weights = np.where(corners == 1, share, 1 - share).prod(axis=2)
        message = "reports of a row are not those of its numbers rounded each by itself, without bias"
        require(chi_square(seen, weights @ column.law) > ALPHA, message)
        nearest = np.abs(corners - share).max(axis=2).argmin(axis=1)
        require(chi_square(seen, column.law[nearest]) < ALPHA, "the check cannot tell rounding from none")


def check_joint_encoding(sample):
    """Any row of floats has fixed points: monotone, exact at the bounds, clipped beyond."""
    for law in sample.randomizers:
        d = law.n_numbers
        x = np.array([-np.inf, -1e300, 0.9, 1.0, np.nan, np.nextafter(4.0, 0.0), 4.0, 4.1, 1e300, np.inf])
        out = np.empty((len(x), d), np.int64)
        law.encode(np.repeat(x[:, None], d, axis=1), [1.0] * d, [4.0] * d, out)
        require((out[:5] == 0).all() and (out[6:] == 1 << 32).all(), "a bound, or what lies beyond, is not clipped")
        x = np.sort(np.random.default_rng(11).uniform(0.5, 4.5, (5000, d)), axis=0)
        out = np.empty((len(x), d), np.int64)
        law.encode(x, [1.0] * d, [4.0] * d, out)
        require((np.diff(out, axis=0) >= 0).all(), "encoding is not monotone")
        near = np.abs(out / 2**32 - (np.clip(x, 1, 4) - 1) / 3).max()
        require(near < 2**-31, "a fixed point is another value")


JOINT_CHECKS = (
    check_joint_mean_is_exact,
    check_joint_counts,
    check_joint_rounding,
    check_joint_encoding,
    check_decoded_numbers,
)
SAMPLED_CHECKS = (check_columns_are_drawn, check_decoded_numbers)
