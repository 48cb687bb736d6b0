"""Rows by vectors of any width give the same bits, gathered rows those of rows far apart, kept laws those made anew."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import choice, logistic
from dpestim.linear_model import DPLogisticRegression, DPPoissonRegressor, base, base_rate, objective, release, solver
from dpestim.linear_model.losses import LOGISTIC, hinge, poisson
from dpestim.linear_model.shapes import BINARY, OneVersusRest, Slopes, Softmax
from dpestim.linear_model.solver import MarginLoss


def summed(loss, w, bits, first, last, step, hessian):
    """Return all that the kernel writes."""
    width = loss._width
    padded, scales = np.zeros(width), np.full(loss.n_rows, -1.0)
    padded[: loss.size] = w
    gradient, bends = np.zeros(width), np.full(loss.n_rows, 7.0)
    curved = np.zeros((width, width) if hessian else (0, 0))
    value = logistic.accumulate(
        loss.X, loss.signs, scales, loss._inverse, loss.limit, loss.tail, loss.offset, first, last, step, padded,
        np.full((logistic.AHEAD, width), 9.0), gradient, curved, loss.margin.kind, loss.margin.shape, loss._targets,
        bends, bits)
    return [np.array(part).tobytes() for part in (value, scales, gradient, curved, bends)]


@pytest.mark.parametrize("margin", [LOGISTIC, hinge(0.5), poisson(3.0)], ids=["logistic", "hinge", "poisson"])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 16, 20, 23, 24, 130])
@pytest.mark.parametrize("intercept", [0.0, 0.25])
def test_vectors_of_every_width_give_the_same_bits(margin, d, intercept):
    rng = np.random.default_rng(d)
    X = rng.standard_cauchy((203, d))
    signs = np.where(rng.random(203) < 0.5, 1, -1).astype(np.int8)
    targets = None
    if margin.kind == logistic.POISSON:
        signs[:], targets = 1, rng.random(203)
    for odd in (False, True):  # rows that do not count: in a tile, and in the one after it
        if odd:
            signs[[40, 77]] = 0
            X[90, 0], X[131, -1] = np.nan, np.inf
        loss = MarginLoss(X, signs, 2.0, intercept, offset=0.7, margin=margin, targets=targets)
        w = rng.standard_normal(loss.size) * 3
        for where in ((0, 203, 1), (5, 203, 1), (3, 180, 3), (0, 16, 1), (0, 15, 1)):
            for hessian in (False, True):
                plain = summed(loss, w, 0, *where, hessian)
                assert all(summed(loss, w, bits, *where, hessian) == plain for bits in (256, 512, -1))


@pytest.mark.parametrize("margin", [LOGISTIC, poisson(3.0)], ids=["logistic", "poisson"])
def test_rows_that_are_gathered_give_the_bits_of_rows_far_apart(margin, monkeypatch):
    rng = np.random.default_rng(0)
    n, found = 70_001, []
    signs = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    targets = rng.random(n) if margin.kind == logistic.POISSON else None
    X, w = rng.standard_normal((n, 3)), np.array([1.0, -2.0, 0.5, 3.0])
    for far in (0, 1 << 21):
        monkeypatch.setattr(solver, "_FAR", far)
        loss = MarginLoss(X, np.abs(signs) if targets is not None else signs, 1.5, 0.25, margin=margin, targets=targets)
        found.append([*loss.evaluate(w, True, 16), *loss.evaluate(w, False, 16)[:2]])
        assert (loss._few is None) == (far == 0)
    assert all(np.array_equal(a, b) for a, b in zip(*found))


def test_a_mirrored_triangle_is_symmetric():
    upper = np.arange(64.0).reshape(8, 8)
    whole = solver._mirrored(upper, 5)
    assert np.array_equal(whole, np.triu(upper[:5, :5]) + np.triu(upper[:5, :5], 1).T)


def test_laws_that_are_kept_are_those_made_anew():
    X = np.random.default_rng(0).standard_normal((300, 3))
    y = X[:, 0] > 0
    found = []
    for _ in range(2):
        for kept in (base._tried, objective.calibrate, release._integers, base_rate.count_law, base_rate.mean_law):
            kept.cache_clear()
        for _ in range(2):  # the second time from what was kept
            log = DPLogisticRegression(1.0, data_norm=2.0, classes=[False, True], random_state=5).fit(X, y)
            counts = DPPoissonRegressor(1.0, data_norm=2.0, max_target=3.0, random_state=5).fit(X, y * 2.0)
            found.append([*log.coef_[0], *log.intercept_, *counts.coef_, counts.intercept_, log.C_, counts.alpha_])
        DPLogisticRegression(0.5, data_norm=2.0, classes=[False, True], random_state=5).fit(X, y)
    assert all(other == found[0] for other in found)


def test_a_law_that_fails_does_so_each_time():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    model = DPLogisticRegression(Fraction(1, 10**10), data_norm=1.0, classes=[0, 1])
    for _ in range(2):
        with pytest.raises(ValueError, match="epsilon must be at least"):
            model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("shape", [BINARY, Softmax(4), OneVersusRest(3), Slopes(Decimal(1), False)])
def test_a_flat_shape_is_one_whose_hessian_costs_the_same_at_every_rate(shape):
    costs = {shape.hessian_cost(Decimal(rate), Decimal("0.01")) for rate in ("0.1", "0.2", "3")}
    assert (len(costs) == 1) == shape.flat


@pytest.mark.parametrize("once", [False, True])
def test_a_place_is_where_the_exact_sum_exceeds_a_number(once):
    rng = np.random.default_rng(4)
    weights = rng.integers(1, 1 << 57, 300, dtype=np.uint64)
    times = np.empty(0, np.int64) if once else rng.integers(0, 1 << 53, 300)
    each = [int(w) * (1 if once else int(times[i])) for i, w in enumerate(weights)]
    sums = np.cumsum(np.array(each, object))
    assert sums[-1] > 1 << 64
    high, low = choice.total(weights, times)
    assert high << 64 | low == sums[-1]
    for at in (0, 1, 7, 150, 298, 299):
        for drawn in (sums[at] - 1, sums[at], (int(rng.integers(1 << 62)) << 60) % sums[-1]):
            if drawn < sums[-1]:
                place = choice.place_of(weights, times, drawn >> 64, drawn & (1 << 64) - 1)
                assert sums[place] > drawn
                assert place == 0 or sums[place - 1] <= drawn
    with pytest.raises(ValueError, match="not below"):
        choice.place_of(weights, times, high, low)
    with pytest.raises(ValueError, match="lengths"):
        choice.total(weights, np.zeros(2, np.int64))


def test_a_sum_of_targets_in_floats_is_exact(monkeypatch):
    totals, numbers = [], np.random.default_rng(0).random(100_001) ** 3
    numbers[:2] = 0.0, 1.0
    known = numbers.copy()

    class Law:
        def add(self, total, source, column):
            totals.append((total.dtype, total.tolist()))
            return total

    monkeypatch.setattr(base_rate, "mean_law", lambda epsilon: Law())
    base_rate.mean_of(numbers, Fraction(1), None, 0)
    assert totals == [(np.dtype(np.int64), [sum(int(np.rint(x * base_rate.STEPS)) for x in known)])]
    assert np.array_equal(numbers, known), "targets are read again by the fit"


def test_sparse_rows_have_the_same_scores_by_vectors_of_every_width():
    rng = np.random.default_rng(7)
    lengths = np.concatenate([np.arange(25), rng.integers(0, 20, 300)])
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    index = np.concatenate([np.sort(rng.permutation(40)[:m]) for m in lengths]).astype(np.int32)
    values, w = rng.standard_cauchy(len(index)), rng.standard_normal((40, 1))
    values[start[200] : start[201]] = 1e-200  # what squares lose
    values[start[201] : start[202]] = 1e200

    def scored(bits, index=index, values=values, start=start):
        out = np.zeros((len(start) - 1, 1))
        left = logistic.scores_sparse(values, index, start, 0.5, 0.97, w, np.array([0.3]), out, bits)
        return left, out.tobytes() if not left else b""

    assert scored(0)[0] == 0
    assert scored(512) == scored(0)
    at = int(start[30 + int(np.flatnonzero(lengths[30:] > 2)[0])])
    for wrong in (index[at] - 100, 40, index[at + 1], 2**31 - 1, -1):  # none, beyond the last, twice
        odd = index.copy()
        odd[at] = wrong
        assert scored(512, odd)[0] == scored(0, odd)[0] == 1
    for number in (np.nan, np.inf, -np.inf):
        odd = values.copy()
        odd[at] = number
        assert scored(512, values=odd)[0] == scored(0, values=odd)[0] == 1
    for place, wrong in ((50, 0), (50, 2**31 - 1), (-1, len(index) + 1)):
        odd = start.copy()
        odd[place] = wrong
        assert scored(512, start=odd)[0] == scored(0, start=odd)[0] == 1
