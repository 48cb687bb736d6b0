"""Curves between two passes of boosting: the kernel, beside the same mathematics by dense inverses."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from dpestim._core import curves as kernel
from dpestim.ensemble import curve as module
from dpestim.ensemble.curve import Curve, offset_of, steps_of

SCALES = np.array(module._PRIORS)


def lanes(values):
    return np.r_[values, np.zeros(kernel.PRIORS - len(values))]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 64, 130])
def test_systems_are_solved_for_all_priors(n):
    rng = np.random.default_rng(n)
    root, heads, seen = rng.normal(size=(n, n + 2)), rng.uniform(0, 30, n), rng.normal(size=(3, n))
    covariances, priors = root @ root.T / n, rng.uniform(0, 3, kernel.PRIORS)
    found, misfit, logs = np.empty((3, n, kernel.PRIORS)), np.zeros((3, kernel.PRIORS)), np.zeros(kernel.PRIORS)
    kernel.solve(covariances, heads, priors, seen, found, misfit, logs)
    for k, p in enumerate(priors):
        matrix = np.eye(n) + p * heads[:, None] * covariances * heads
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(found[:, :, k], p * seen @ inverse, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(misfit[:, k], np.einsum("ij,jk,ik->i", seen, inverse, seen), rtol=1e-9)
        np.testing.assert_allclose(logs[k], np.linalg.slogdet(matrix)[1], rtol=1e-9, atol=1e-12)


class Plain(Curve):
    """The same curve, a formula at a time."""

    def measure(self, sums, weight, times, alike, offset=None):
        first, self._total = not self._total, self._total + weight
        self._squares += weight * weight / times
        part, noisy = weight / self._total, math.sqrt(self._noise * self._squares) / self._total
        offset = None if offset is None else self._others(sums, times, offset)
        (mean, slope), level, slopes = (self._mean, self._slope), self._level, self._steepest
        for turn in range(1 if offset is None else module._SECANTS[first]):
            if offset is not None and (turn or not first):
                far = level - self._level
                low, high = expit(offset + self._level), expit(offset + level)
                rise = np.where(np.abs(far) > 1e-4, (high - low) / np.where(far == 0, 1, far), low * (1 - low))
                along = self._counted[:, None] * rise
                slopes = np.sqrt(slopes * along) if turn else along
            self._slope = slope + part * (slopes - slope)
            self._mean = mean + part * (sums + slopes * self._level - mean)
            new, level = self._dense(noisy, alike)
        change, self.scores, self._level = new - self.scores, new, level
        return change

    def _dense(self, noisy, alike):
        errors = np.sqrt(noisy**2 + self._varies * self._slope)
        heads, found, self.likelihoods = self._slope / errors, [], np.zeros(len(SCALES))
        for k, p in enumerate(self._varies * SCALES):
            found.append(np.zeros(heads.shape))
            for j in range(heads.shape[1]):
                h, z = heads[:, j], (self._mean / errors)[:, j]
                matrix = np.eye(len(h)) + p * h[:, None] * self._steps * h
                solved = np.linalg.solve(matrix, z)
                found[-1][:, j] = p * h * solved
                self.likelihoods[k] -= self._trust * (z @ solved + np.linalg.slogdet(matrix)[1]) / 2
        table = np.array([curve.likelihoods for curve in alike])
        known = 1 / (1 + len(alike) * SCALES)
        common = known = known / known.sum()
        for _ in range(20):
            chances = common * np.exp(table - table.max(axis=1, keepdims=True))
            common = module._PSEUDO * known + (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0)
            common = common / common.sum()
        chances = common * np.exp(self.likelihoods - self.likelihoods.max())
        new = self._between.T @ np.tensordot(chances / chances.sum(), found, axes=1)
        if new.shape[1] > 1:
            new = new - new.mean(axis=1, keepdims=True)
        new = np.clip(new, -self._most, self._most)
        level = np.zeros(self._level.shape)
        np.add.at(level, self._bins, self._parts[:, None] * new)
        return new, level


def terms(cls, kind, most):
    """Return curves of numbers and of categories, whose bins have one place or several."""
    rng, out = np.random.default_rng(0), []
    for size, ordered in ((30, True), (5, False), (2, True)):
        counts = rng.uniform(0, 400, size)
        bins = np.r_[np.arange(size - 1) * 9 // (size - 1), 9] if size > 10 else np.arange(size)
        uncertain = np.full(bins.max() + 1, 3.0)
        out.append(cls(counts, bins, uncertain, 0.1, partial(steps_of, counts, ordered), 0.2, 4.0,
                       np.zeros(max(kind, 1)), most, 0.9, 0.5, ordered))
        out[-1].prepare()
    return out


@pytest.mark.parametrize("most", [10.0, 0.3])
@pytest.mark.parametrize("kind", [0, 1, 3])
def test_curves_are_those_of_dense_inverses(kind, most):
    fast, plain, start = terms(Curve, kind, most), terms(Plain, kind, most), np.linspace(0.5, 1, max(kind, 1))
    rng = np.random.default_rng(1)
    for k in range(3):
        for one, other in zip(fast, plain):
            sums = rng.normal(scale=20 * len(one._level), size=one._level.shape)
            asked = sums.copy(), math.sqrt(1 + k), 1 + (k == 1)
            moves = [curve.measure(*asked, alike, offset_of(start, kind, 1))
                     for curve, alike in ((one, fast), (other, plain))]
            np.testing.assert_allclose(*moves, rtol=1e-8, atol=1e-10)
            for name in ("scores", "likelihoods", "_level", "_mean", "_slope"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-10)
            assert (asked[0] == sums).all()
    assert np.abs(np.concatenate([curve.scores for curve in fast])).max() > 0.25
    # what errors are drawn with finds the curve again where nothing is added
    for one in fast:
        again = one._estimates((one._mean / one._errors.T).T[None])[0]
        if one is fast[-1]:  # (how common priors are was asked last for it)
            np.testing.assert_allclose(again, one.scores, rtol=1e-8, atol=1e-10)


def test_what_does_not_fit_is_refused():
    n, p = 3, kernel.PRIORS
    good = [np.eye(n), np.ones(n), np.ones(p), np.ones((2, n)), np.empty((2, n, p)), np.zeros((2, p)), np.zeros(p)]
    kernel.solve(*good)
    for place, bad in ((0, np.eye(2)), (1, np.ones(2)), (2, np.ones(p - 1)), (3, np.ones((2, 4))),
                       (4, np.empty((1, n, p))), (5, np.zeros((1, p))), (6, np.zeros(1))):
        with pytest.raises(ValueError, match=r"same bins|each lane"):
            kernel.solve(*good[:place], bad, *good[place + 1:])
    curve = terms(Curve, 1, 10.0)[0]
    with pytest.raises(ValueError, match="each sum"):
        curve.measure(np.zeros((len(curve._level) - 1, 1)), 1.0, 1, [curve])
    curve._bins = curve._bins + 1
    with pytest.raises(ValueError, match="no bin"):
        curve.measure(np.zeros(curve._level.shape), 1.0, 1, [curve])


def test_curves_that_are_learned_at_once_in_several_threads_are_those_learned_in_turn():
    def learned(seed):
        rng, size = np.random.default_rng(seed), 256
        counts, bins = rng.uniform(0, 400, size), np.r_[np.arange(size - 1) * 63 // (size - 1), 63]
        alike = [Curve(counts, bins, np.full(64, 3.0), 0.1, partial(steps_of, counts, True), 0.2, 4.0, np.zeros(1),
                       10.0, 1.0, in_order=True) for _ in range(2)]
        for k, curve in itertools.product(range(1, 41), alike):  # (so that most of the time is the kernel's)
            curve.measure(rng.normal(scale=300, size=(64, 1)), math.sqrt(k), 1, alike, np.zeros(1))
        return np.stack([np.stack([curve.scores[:, 0], curve.deviations(0.01)[:, 0]]) for curve in alike])

    in_turn = [learned(seed) for seed in range(8)]
    assert len({own.tobytes() for own in in_turn}) == 8
    with ThreadPoolExecutor(4) as pool:
        for seed, found in enumerate(pool.map(learned, 5 * list(range(8)))):
            assert np.array_equal(found, in_turn[seed % 8])
