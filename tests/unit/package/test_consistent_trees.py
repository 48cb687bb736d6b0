"""Consistent trees against dense least squares, which knows nothing of passes."""

import math

import numpy as np
import pytest

from dpestim.postprocessing import trees

TREES = [((2,), (0.0, 1.5)), ((3, 2), (0.0, 0.7, 2.0)), ((2, 3, 2), (0.5, math.inf, 1.0, 3.0)),
         ((4, 2, 2), (math.inf, 2.0, 0.3, 1.0)), ((2, 2, 2, 2), (0.0, 1.0, math.inf, 5.0, 0.2))]


def dense(fanouts, variances):
    """Return (the sums that nodes are, their weights, the covariance of leaves, what is known exactly) by matrices."""
    sizes, widths = trees.level_sizes(fanouts), trees.node_widths(fanouts)
    rows = [np.repeat(np.eye(size), width, axis=1) for size, width in zip(sizes, widths)]
    weights = [np.full(size, 0.0 if math.isinf(v) else 1e9 if not v else 1 / v) for size, v in zip(sizes, variances)]
    A, w = np.vstack(rows), np.concatenate(weights)
    return A, w, np.linalg.inv(A.T @ (w[:, None] * A))


@pytest.mark.parametrize(("fanouts", "variances"), TREES)
def test_two_passes_are_least_squares(fanouts, variances):
    A, w, cov = dense(fanouts, variances)
    rng, sizes = np.random.default_rng(0), trees.level_sizes(fanouts)
    y = rng.normal(size=len(w))
    leaves = cov @ A.T @ (w * y)
    found = np.concatenate(trees.consistent(fanouts, np.split(y, np.cumsum(sizes)[:-1]), variances))
    np.testing.assert_allclose(found, A @ leaves, atol=1e-6)
    n = sizes[-1]
    places = [(a, b) for a in range(n) for b in range(a + 1, n + 1)] + [(0.3, 0.6), (0.5, n - 0.25), (1.5, 1.75)]
    for low, high in places:
        part = np.clip(high - np.arange(n), 0, 1) - np.clip(low - np.arange(n), 0, 1)
        right = part @ cov @ part
        assert trees.range_variance(fanouts, variances, low, high) == pytest.approx(right, rel=1e-6, abs=1e-7)
        flat = np.concatenate(trees.range_weights(fanouts, variances, low, high))
        np.testing.assert_allclose(flat, part @ cov @ A.T * w, atol=1e-6)
    both = np.array(places).T
    np.testing.assert_allclose(
        trees.range_variance(fanouts, variances, *both),
        [trees.range_variance(fanouts, variances, low, high) for low, high in places])


@pytest.mark.parametrize(("fanouts", "variances"), TREES)
def test_average_over_all_ranges(fanouts, variances):
    size = trees.level_sizes(fanouts)[-1]
    for n in (size, size - 1, max(1, size // 2)):
        low, high = np.array([(a, b) for a in range(n) for b in range(a + 1, n + 1)]).T
        right = trees.range_variance(fanouts, variances, low, high).mean()
        assert trees.mean_range_variance(fanouts, variances, n) == pytest.approx(right, rel=1e-9)


def test_variances_are_refused():
    for wrong in ((0.0,), (0.0, 0.0), (0.0, math.inf), (0.0, math.nan), (-1.0, 1.0)):
        with pytest.raises(ValueError, match="one number for each level"):
            trees.passes((2,), wrong)
