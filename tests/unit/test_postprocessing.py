"""Post-processing, against definitions and an independent optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm as normal

from dpestim import postprocessing as pp


@pytest.mark.parametrize("seed", range(5))
def test_norm_sub_is_the_projection_on_the_simplex(seed):
    f = np.random.default_rng(seed).normal(0.1, 0.3, 8)
    found = minimize(
        lambda x: np.square(x - f).sum(), np.full(8, 1 / 8), bounds=[(0, None)] * 8, method="SLSQP",
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.allclose(pp.norm_sub(f), found.x, atol=1e-6)


@pytest.mark.parametrize("f", [[-1.0, -2.0, -3.0], [0.2, 0.3, 0.1], [2.0, 1.0, -5.0], [0.0, 0.0]])
def test_sums_and_signs(f):
    for name in ("norm", "norm_mul", "norm_sub"):
        assert getattr(pp, name)(f).sum() == pytest.approx(1)
    for name in ("base_pos", "norm_cut", "norm_mul", "norm_sub"):
        assert getattr(pp, name)(f).min() >= 0
    assert pp.norm_cut(f).sum() <= 1 + 1e-12


def test_base_cut_keeps_what_noise_does_not_explain():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, (2000, 50))
    kept = np.array([(pp.base_cut(row, 0.02) > 0).any() for row in noise])
    assert 0.02 < kept.mean() < 0.08  # family-wise alpha of 5 %
    edge = normal.isf(0.05 / 3) * 0.1
    assert pp.base_cut([edge + 1e-9, edge - 1e-9, 0.0], 0.1).tolist() == [edge + 1e-9, 0.0, 0.0]


@pytest.mark.parametrize("bad", [[], [[0.5, 0.5]], [float("nan"), 1.0], [float("inf"), 0.0]])
@pytest.mark.parametrize("name", pp.__all__)
def test_bad_estimates(name, bad):
    with pytest.raises(ValueError, match="estimates"):
        getattr(pp, name)(bad, 0.1)


@pytest.mark.parametrize("name", pp.__all__)
def test_the_argument_is_not_changed(name):
    f = np.array([0.5, -0.2, 0.9])
    getattr(pp, name)(f, 0.1)
    assert f.tolist() == [0.5, -0.2, 0.9]
