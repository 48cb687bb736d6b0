"""Histogram encoding: integer laws of cells, the search at every edge, thresholds, variances and best guesses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim._core import histogram as kernel
from dpestim.local import SHEFrequencyEstimator
from dpestim.local.categories.histogram_encoding import SHE, THE, histogram_weights, the_thresholds
from dpestim.local.categories.unary import OUE, SUE
from dpestim.local.guessing import BestGuess, Runs
from dpestim.privacy import category_weights, exact

EPSILONS = [Fraction(e) for e in ("1/1000000", "1/10", "1", "4", "20", "80")]


def test_weights_keep_epsilon_exactly_and_are_clipped_laplace_noise():
    for epsilon in EPSILONS:
        for grid in (2, 3, 16, 255):
            row = histogram_weights(epsilon, grid)
            assert sum(row) == exact.WORD
            assert len(row) == grid + 1
            for a, b in zip(row, row[::-1]):
                assert exact.within(a * a, b * b, epsilon)
            assert exact.uses_enough(row[0] ** 2, row[-1] ** 2, epsilon)
            alpha = math.exp(-float(epsilon) / (2 * grid))
            share = [1 / (1 + alpha), *((1 - alpha) * alpha**y / (1 + alpha) for y in range(1, grid)),
                     alpha**grid / (1 + alpha)]
            assert np.array(row, float) / 2.0**64 == pytest.approx(share, rel=1e-6)
    with pytest.raises(ValueError, match="epsilon"):
        histogram_weights(Fraction(1, 10**19), 16)


def test_thresholds_are_the_best_of_the_noise():
    for epsilon in EPSILONS[1:5]:
        true, false = the_thresholds(epsilon)
        e, b = float(epsilon), 2 / float(epsilon)
        assert exact.within(true * (exact.WORD - false), false * (exact.WORD - true), epsilon)
        theta = np.linspace(0.3, 1.2, 9001)
        p, q = (np.where(theta > x, np.exp((x - theta) / b) / 2, 1 - np.exp((theta - x) / b) / 2) for x in (1, 0))
        best = (q * (1 - q) / (p - q) ** 2).min()
        law = THE.make(epsilon, 9)
        assert law.variance(1, 0.0) == pytest.approx(best, rel=1e-3)
        assert OUE.make(epsilon, 9).variance(1, 0.0) < law.variance(1, 0.0) < 8 / e**2
        assert law.slack
        # it is what a threshold makes of the noisy cells
        row = histogram_weights(epsilon, 1024)
        above = np.array([sum(row[k:]) for k in range(1025)], object)
        assert false in above
        k = list(above).index(false)
        assert true == sum(row[: 1025 - k])


def test_the_search_is_right_at_every_edge():
    for epsilon, grid in ((Fraction(1), 16), (Fraction(40), 255), (Fraction(1, 100), 2)):
        law = SHE.make(epsilon, 3, grid)
        edges, guide = law._search
        exactly = [int(e) for e in edges]
        words = sorted({w for e in exactly for w in (e - 1, e, e + 1) if 0 <= w < 1 << 64} | {0, (1 << 64) - 1})
        table = np.array([[w, 5, w] for w in words], np.uint64)
        out = np.empty(table.shape, np.uint8)
        kernel.privatize(np.zeros(len(words), np.uint8), table, edges, guide, out)
        codes = [sum(w >= e for e in exactly) for w in words]
        assert out[:, 2].tolist() == codes
        assert out[:, 0].tolist() == [grid - c for c in codes]
        assert np.diff([0, *exactly, 1 << 64]).tolist() == list(law.row)
    for shape in ((3, 2), (2, 3)):
        words = np.zeros(shape, np.uint64)
        with pytest.raises(ValueError, match="length"):
            kernel.privatize(np.zeros(2, np.uint8), words, edges, guide, np.zeros((2, 2), np.uint8))


def test_variance_is_that_of_the_law_and_of_the_closed_form():
    for epsilon in (0.1, 1.0, 4.0):
        law = SHE.make(epsilon, 5, 255)
        b = 2 / epsilon
        z = math.exp(-1 / b)
        mean = b * (1 - z) / 2
        closed = (b * b * (1 - z * (1 + 1 / b)) - mean**2) / (1 - 2 * mean) ** 2
        assert law.variance(1, np.array([0.0, 0.5, 1.0])) == pytest.approx([closed] * 3, rel=1e-3)
        assert SUE.make(epsilon, 5).variance(1, 0.0) < law.variance(1, 0.0) < 5.1 / epsilon**2
    law = SHE.make(1.0, 3, 4)
    matrix = np.array([[float(p) for p in row] for row in law.transition_matrix()])
    reports = np.stack([np.arange(125) // 5**k % 5 for k in range(3)], axis=1).astype(np.uint8)
    assert (law.law_indices(np.zeros(125, np.uint8), reports)[1] == np.arange(125)).all()
    each = np.stack([law.estimate(report.astype(np.int64), 1) for report in reports])
    np.testing.assert_allclose(matrix @ each, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(matrix @ each**2 - np.eye(3), np.full((3, 3), law.variance(1, 0.0)), rtol=1e-12)
    support = matrix @ law.support(reports)
    np.testing.assert_allclose(support, np.array(law.support_law(), float), rtol=1e-12)
    likely = law.likelihoods(reports)
    np.testing.assert_allclose(likely / likely.sum(axis=1, keepdims=True), (matrix / matrix.sum(axis=0)).T, rtol=1e-9)


def test_best_guess_is_that_of_the_matrix():
    rng = np.random.default_rng(3)
    for epsilon, d, grid in ((1.0, 4, 3), (3.0, 3, 8), (0.2, 5, 2)):
        law = SHE.make(epsilon, d, grid)
        runs = Runs.of_matrix([[float(p) for p in row] for row in law.transition_matrix()])
        odds = law._odds
        tied = np.append(np.full(d - 1, odds[-1] / odds[0]), 1.0)  # values of two priors tie at opposite ends
        for prior in (np.ones(d), rng.dirichlet(np.full(d, 0.5)), rng.integers(0, 3, d) + np.eye(d)[1], tied):
            prior = prior / prior.sum()
            np.testing.assert_allclose(law.guessing(prior), BestGuess(runs, prior).success, atol=1e-11)


def test_one_step_would_be_symmetric_unary_encoding():
    """The family that SHE is of: with a grid of one step its codes are the bits of SUE."""
    true, false = category_weights.sue_thresholds(Fraction(2))
    row = histogram_weights(Fraction(2), 1)
    assert abs(row[0] - true) <= 1
    assert abs(row[1] - false) <= 1


def test_parameters_and_reports_are_refused_by_name():
    X = np.array([[0], [1], [2]])
    for grid in (1, 256, 2.0, True, "fine", [2]):
        with pytest.raises(ValueError, match="grid"):
            SHEFrequencyEstimator(1.0, categories=[[0, 1, 2]], grid=grid).fit(X)
    with pytest.raises(ValueError, match="categories"):
        SHE.make(1.0, (1 << 20) + 1)
    est = SHEFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0)
    reports = est.privatize(X)
    reports[1, 2] = 17
    with pytest.raises(ValueError, match="at most 16"):
        est.aggregate(reports)


@pytest.mark.parametrize("most", [1, 2, 16, 254, 255])
def test_the_largest_and_the_smallest_words_have_the_last_codes(most):
    """Words at all edges, beside them, and at both ends; also where the last edge is the largest word."""
    edges = np.sort(np.random.default_rng(most).integers(1, 2**64, most, np.uint64))
    edges[-1] = 2**64 - 1
    guide = np.searchsorted(edges, np.arange(1024, dtype=np.uint64) << np.uint64(54), side="right").astype(np.uint8)
    words = np.concatenate([edges, edges - np.uint64(1), np.array([0, 2**64 - 1], np.uint64)])
    out, expected = np.empty((1, len(words)), np.uint8), np.searchsorted(edges, words, side="right")
    expected[-1] = most - expected[-1]  # (the true one)
    kernel.privatize_one(len(words) - 1, words, np.concatenate([guide.view(np.uint64), edges]), out)
    np.testing.assert_array_equal(out[0], expected)
    kernel.privatize(np.array([len(words) - 1], np.uint16), words[None], edges, guide, out)
    np.testing.assert_array_equal(out[0], expected)
