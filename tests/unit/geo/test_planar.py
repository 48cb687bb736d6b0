"""Planar noise in integers: layers, extremes, projections, remapping, ledgers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.geo import PlanarLaplaceTransformer
from dpestim.geo.layers import _growth_of, layers_of
from dpestim.geo.projection import metres_per_degree, step_of
from dpestim.geo.remap import medians
from dpestim.privacy.exact import exp_lower

REGION = ([48.80, 2.22], [48.92, 2.42])


@pytest.mark.parametrize("manhattan", [False, True])
@pytest.mark.parametrize(("rate", "n"), [(Fraction(1, 20), 1000), (Fraction(1), 5), (Fraction(7), 5),
                                       (Fraction(1, 300), 40)])
def test_weights_of_any_two_points_keep_the_metric_and_use_it(rate, n, manhattan):
    layers = layers_of(rate, n, manhattan)
    sizes, weights = layers.weights()
    assert sum(layers.masses) + layers.anywhere == 1 << 64
    rng = np.random.default_rng(0)
    reach = (sizes[-1] if manhattan else math.isqrt(sizes[-1])) + 3
    points = np.concatenate([np.stack(np.divmod(np.arange(25), 5), axis=1), rng.integers(-reach, reach, (25, 2))])
    length = (lambda z: abs(z[0]) + abs(z[1])) if manhattan else (lambda z: z[0] ** 2 + z[1] ** 2)
    value = [layers.at(int(length(z))) for z in points.tolist()]
    for a, z in enumerate(points.tolist()):
        for b, w in enumerate(points.tolist()):
            apart = int(length((z[0] - w[0], z[1] - w[1])))
            distance = Fraction(apart if manhattan else Fraction(math.isqrt(apart * 10**120), 10**60))
            assert value[a] <= (exp_lower(rate * distance) if apart else 1) * value[b]
    half = len(sizes) // 2
    used = math.log(weights[0] / weights[half]) / (float(rate) * (sizes[half] if manhattan else math.sqrt(sizes[half])))
    assert 0.98 < used <= 1


def test_growth_is_bounded_from_below_and_hardly_so():
    for x in (Fraction(k, 7**e) for e in (1, 2, 9, 20) for k in (0, 1, 3, 7, 7**e - 1, 7**e, 7**e + 1)):
        assert 0 <= exp_lower(x) * (1 + Fraction(1, 10**70)) - 1 - _growth_of(x) < Fraction(1, 10**45)


def test_layers_that_fall_too_fast_are_refused():
    layers = layers_of(Fraction(1, 2), 50)
    layers.check(Fraction(1, 2))
    with pytest.raises(ValueError, match="faster"):
        layers.check(Fraction(49, 100))


def test_a_step_that_words_cannot_express_is_refused_before_the_charge():
    ledger = Ledger(10**6)
    with pytest.raises(ValueError, match="step must be larger"):
        PlanarLaplaceTransformer(0.001, bounds=REGION, step=0.001, ledger=ledger).fit_transform([[48.85, 2.3]])
    assert ledger.spent().is_nothing


def test_distances_are_those_of_the_planar_laplace_law_in_every_direction():
    X = np.tile([[48.86, 2.32]], (60_000, 1))
    est = PlanarLaplaceTransformer(0.02, bounds=REGION, step=0.5, random_state=1).fit(X)
    metres = (est.transform(X) - X) * est._columns.columns[0].metres
    away, angle = np.hypot(*metres.T), np.arctan2(*metres.T)
    gamma = stats.gamma(2, scale=1 / 0.02)
    assert stats.kstest(away, gamma.cdf).pvalue > 1e-4 > stats.kstest(away * 1.03, gamma.cdf).pvalue
    assert stats.kstest((angle + np.pi) / (2 * np.pi), "uniform").pvalue > 1e-4
    assert abs(np.quantile(away, 0.95) - 4.744 / 0.02) < 3


def test_degrees_and_metres_are_the_same_places():
    X = np.random.default_rng(0).uniform(*REGION, (500, 2))
    scale = np.array(metres_per_degree(48.86))
    degrees = PlanarLaplaceTransformer(0.01, bounds=REGION, random_state=0).fit(X)
    plane = PlanarLaplaceTransformer(0.01, bounds=tuple(np.array(end) * scale for end in REGION), units="metres",
                                     random_state=0).fit(X * scale)
    assert np.allclose(degrees.transform(X) * scale, plane.transform(X * scale), atol=1e-6)
    known = metres_per_degree(45)  # (of WGS 84)
    assert np.allclose(known, [111_131.8, 78_846.8], atol=1)
    assert degrees.privacy_.relaxation != plane.privacy_.relaxation
    assert any("ellipsoid" in note for note in degrees.privacy_.notes)


@pytest.mark.parametrize(("bounds", "words"), [
    (([2.2, 148.8], [2.4, 148.9]), None), (([100.0, 2.0], [101.0, 3.0]), "order the columns"),
    (([40.0, 2.0], [60.0, 3.0]), "smaller region"), (([1.0] * 3, [2.0] * 3), "two columns"), ((0.0, 1.0), None)])
def test_regions(bounds, words):
    est = PlanarLaplaceTransformer(0.01, bounds=bounds)
    if words is None:
        assert est.privacy_.relaxed_epsilon == Fraction(1, 100)
        return
    with pytest.raises(ValueError, match=words):
        est.fit(np.zeros((2, len(bounds[0]))))


def test_steps_are_round_and_small():
    for epsilon in (Fraction(1, 100), Fraction(7, 1000), Fraction(3), Fraction(1, 10**6)):
        step = step_of(None, epsilon)
        assert Fraction(1, 60) <= epsilon * step <= Fraction(1, 20)
        assert f"{float(step):e}"[0] in "125"


def test_reports_of_one_user_add_up_in_a_ledger_of_the_relaxation():
    trace = np.random.default_rng(0).uniform(*REGION, (5, 2))
    est = PlanarLaplaceTransformer(0.01, bounds=REGION, random_state=0)
    ledger = Ledger(Fraction(25, 1000), relaxation=est.privacy_.relaxation)
    est.set_params(ledger=ledger)
    for place in trace[:2]:
        est.privatize(place[None])
    assert ledger.spent().epsilon == Fraction(2, 100)
    with pytest.raises(ValueError):
        est.privatize(trace[2:3])
    plain = est.privacy_
    assert plain.epsilon == plain.relaxed_epsilon * est._columns_now().laws[0].diameter
    assert (plain + plain).relaxed_epsilon == Fraction(2, 100)
    assert "geo-indistinguishability" in str(plain)


def test_a_table_says_what_epsilon_means():
    est = PlanarLaplaceTransformer(math.log(4) / 200, bounds=REGION)
    table = est.distances([200])
    assert {"1.3863", "4.00", "80"} <= set(str(table).split())
    assert len(est.distances().to_frame()) == 3
    for wrong in ([], "10", [0], [-1.0], None, [math.inf]):
        with pytest.raises(ValueError, match="metres"):
            est.distances(wrong)


def test_medians_are_those_of_a_search():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(6, 2)), rng.dirichlet(np.ones(6), 20)
    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 301)] * 2), axis=-1).reshape(-1, 2)
    apart = np.sqrt(np.square(grid[:, None] - points).sum(axis=2))
    best = (weights @ apart.T).min(axis=1)
    found = np.sqrt(np.square(medians(points, weights)[:, None] - points).sum(axis=2))
    assert ((weights * found).sum(axis=1) <= best * (1 + 1e-5)).all()


def test_priors_that_are_none_are_refused():
    for prior in ([[1, 2]], ([[1, 2]], [1, 2]), ([[1, 2]], [-1]), ([[1, 2]], [0]), ([[1, math.nan]], [1]), "ab", 3):
        with pytest.raises(ValueError, match="prior must be"):
            PlanarLaplaceTransformer(0.01, bounds=REGION, prior=prior).fit([[48.85, 2.3]])


def test_strict_mode_takes_any_number_for_a_place():
    X = np.array([[48.85, 2.3], [math.nan, 2.3], [math.inf, -math.inf], [1e300, 0]])
    with config_context(strict=True):
        assert PlanarLaplaceTransformer(0.01, bounds=REGION, random_state=0).fit(X).privatize(X).shape == (4, 1)
