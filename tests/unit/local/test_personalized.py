"""Users of different settings: exact expectations, who is told apart, what a ledger pays, and what is refused."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from dpestim import config_context
from dpestim._core import groups as kernels
from dpestim.accounting import Ledger
from dpestim.exceptions import BudgetExceededError
from dpestim.local import (
    DistributionEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    MeanEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
    PrivUnitTransformer,
    SDGRRFrequencyEstimator,
    SDPMTransformer,
)
from dpestim.local.estimates.mixtures import scored
from dpestim.rng import WordSource

LETTERS = ["a", "b", "c"]
GRR = GRRFrequencyEstimator(1.0, categories=[LETTERS])
TWO = {"x": {}, "y": {"epsilon": 0.5}}


def table(*rows):
    return np.array(rows, dtype=object)


def draw(n, names="xy", seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(list(names), n).astype(object), rng.choice(LETTERS, n).astype(object)], axis=1)


def moments(est, X):
    """Return the exact mean and variance of the estimated frequencies of X: over all reports that may come of it."""
    laws = {g: c.laws[0] for g, c in zip(est.settings, est._columns_of(est._now()[1]))}
    numbers, order = list(est.settings), {}
    for g, law in laws.items():
        known = est.settings[g].get("categories", est.estimator.categories)[0]
        order[g] = {value: row for value, row in zip(known, law.transition_matrix())}
    rows = [order[g][value] for g, value in X]
    mean, square, total = 0.0, 0.0, Fraction(0)
    for reports in itertools.product(*(range(len(row)) for row in rows)):
        p = math.prod((row[y] for row, y in zip(rows, reports)), start=Fraction(1))
        sent = np.array([[numbers.index(g), y] for (g, _), y in zip(X, reports)], np.uint8)
        f = clone(est).aggregate(sent).frequencies_[0]
        mean, square, total = mean + float(p) * f, square + float(p) * f**2, total + p
    assert total == 1
    return mean, square - mean**2


DEPENDENT = table(("x", "a"), ("x", "a"), ("x", "b"), ("y", "c"), ("y", "b"))


def test_stratified_is_unbiased_though_values_depend_on_groups():
    est = PersonalizedEstimator(GRR, TWO)
    mean, variance = moments(est, DEPENDENT)
    np.testing.assert_allclose(mean, [2 / 5, 2 / 5, 1 / 5], atol=1e-12)
    x, y = (columns.laws[0] for columns in est._columns_of(est._now()[1]))
    of_x, of_y = x.variance(3, np.array([2, 1, 0]) / 3), y.variance(2, np.array([0, 1, 1]) / 2)
    wanted = (3 / 5) ** 2 * of_x + (2 / 5) ** 2 * of_y
    np.testing.assert_allclose(variance, wanted, rtol=1e-12)


@pytest.mark.ci
def test_inverse_variance_is_biased_by_dependence_and_by_nothing_else():
    """Erratum D6: with constant weights the expectation is that of the weighted group means, exactly."""
    est = PersonalizedEstimator(GRR, TWO, weights="inverse_variance")
    x, y = (columns.laws[0] for columns in est._columns_of(est._now()[1]))
    spread = np.full(3, 1 / 3)
    w = 1 / np.array([x.variance(3, spread)[0], y.variance(2, spread)[0]])  # divided by the sizes, of the laws alone
    w /= w.sum()
    mean, _ = moments(est, DEPENDENT)
    wanted = w[0] * np.array([2, 1, 0]) / 3 + w[1] * np.array([0, 1, 1]) / 2
    np.testing.assert_allclose(mean, wanted, atol=1e-12)
    assert np.abs(mean - [2 / 5, 2 / 5, 1 / 5]).max() > 0.1
    alike = table(("x", "a"), ("x", "b"), ("y", "a"), ("y", "b"))
    np.testing.assert_allclose(moments(est, alike)[0], [1 / 2, 1 / 2, 0], atol=1e-12)


def test_a_safe_region_is_unbiased_too_and_nothing_is_outside():
    est = PersonalizedEstimator(GRR, {"x": {}, "y": {"epsilon": 2, "categories": [["c", "b"]]}})
    mean, _ = moments(est, DEPENDENT)
    np.testing.assert_allclose(mean, [2 / 5, 2 / 5, 1 / 5], atol=1e-12)
    assert any("in the domain of its group" in note for note in est.privacy_.notes)
    assert not any("in the domain of its group" in note for note in PersonalizedEstimator(GRR, TWO).privacy_.notes)
    only = clone(est).aggregate(np.array([[1, 0], [1, 1], [1, 1]], np.uint8))
    assert list(only.categories_[0]) == LETTERS
    assert only.frequencies_[0][0] == only.standard_errors_[0][0] == 0
    assert list(only.confidence_interval()[0][0]) == [0, 0]
    with pytest.raises(ValueError, match="column 0 has a value that is not among its declared categories"):
        est.fit(table(("x", "a"), ("y", "a")))


def test_what_random_groups_add_to_the_variance():
    """Claim 5: over all partitions of five users into groups of 3 and 2, exactly."""
    x, w = [Fraction(v) for v in (0, 1, 1, 4, 7)], (Fraction(1, 3), Fraction(2, 3))
    mean = sum(x) / 5
    errors = []
    for first in itertools.combinations(range(5), 3):
        a = sum(x[i] for i in first) / 3
        b = sum(x[i] for i in range(5) if i not in first) / 2
        errors.append(w[0] * a + w[1] * b - mean)
    assert sum(errors) == 0
    s2 = sum((v - mean) ** 2 for v in x) / 4
    assert sum(e * e for e in errors) / len(errors) == s2 * (w[0] ** 2 / 3 + w[1] ** 2 / 2 - Fraction(1, 5))


@pytest.mark.ci
@pytest.mark.law
def test_intervals_of_inverse_variance_cover_where_groups_are_random():
    """300 samples of 800 users, alpha = 1e-6; without what the partition adds they would cover too little."""
    est = PersonalizedEstimator(GRRFrequencyEstimator(8.0, categories=[LETTERS]), {"x": {"epsilon": 1}, "y": {}},
                                weights="inverse_variance")
    covered, narrow = 0, 0
    for seed in range(300):
        X = draw(800, "xxxxy", seed)
        seeded = clone(est).set_params(estimator__random_state=seed).fit(X)
        (low, high), truth = seeded.confidence_interval()[0][0], np.mean(X[:, 1] == "a")
        covered += low <= truth <= high
        reach = 1.96 * math.sqrt(max(0.0, seeded.standard_errors_[0][0] ** 2 - seeded._of_sampling()[0][0]))
        narrow += abs(seeded.frequencies_[0][0] - truth) <= reach
    room = 4.75 * math.sqrt(0.95 * 0.05 * 300)
    assert covered > 0.95 * 300 - room
    assert narrow < 0.95 * 300 - room  # (the test has power)


@pytest.mark.ci
@pytest.mark.law
def test_rare_values_are_covered_by_inverse_variances():
    """200 partitions of 2,000 users, 2 in 100 of whom hold "c"; one-sided, alpha = 1e-6.

    With p (1 - p) of the estimate the intervals around 0 are too short, and 77 in 100 cover.
    """
    rng = np.random.default_rng(5)
    values, groups = rng.choice(LETTERS, 2000, p=[0.6, 0.38, 0.02]), np.repeat(["x", "y", "z"], [1400, 560, 40])
    truth = np.array([(values == letter).mean() for letter in LETTERS])
    est = PersonalizedEstimator(GRR, {"x": {"epsilon": 0.5}, "y": {"epsilon": 2}, "z": {"epsilon": 6}},
                                weights="inverse_variance")
    covered, narrow = np.zeros(3), 0
    for seed in range(200):
        X = np.stack([rng.permutation(groups), values], axis=1).astype(object)
        est.set_params(estimator__random_state=seed).fit(X)
        low, high = est.confidence_interval()[0].T
        covered += (low <= truth) & (truth <= high)
        narrow += abs(est.frequencies_[0][2] - truth[2]) <= 1.96 * est.standard_errors_[0][2]
    room = 4.75 * math.sqrt(0.95 * 0.05 * 200)
    assert (covered > 0.95 * 200 - room).all()
    assert narrow < 0.95 * 200 - room  # (the test has power)


def test_ends_of_score_intervals_solve_their_equation():
    rng = np.random.default_rng(0)
    centre, squares = rng.uniform(-0.3, 1.3, 500), rng.uniform(0, 0.1, (500, 2))
    factor = rng.choice([0.0, 0.001, 0.1, 3.0], 500)
    ends = scored(centre, squares, factor)
    p = np.linspace(-2, 3, 50_001)
    product = np.maximum(p * (1 - p), 0)
    for c, (low, high), (a, b), k in zip(centre, ends, squares, factor):
        least = p[(c - p) ** 2 <= a + k * product].min(initial=c)
        most = p[(c - p) ** 2 <= b + k * product].max(initial=c)
        assert abs(low - least) < 2e-4
        assert abs(high - most) < 2e-4


def test_what_is_handed_out_changes_nothing():
    X = draw(300)
    est = PersonalizedEstimator(clone(GRR).set_params(random_state=0), TWO).fit(X)
    before = est.frequencies_[0]
    est.estimators_["x"].partial_fit(table(("a",), ("a",), ("b",)))
    np.testing.assert_array_equal(est.frequencies_[0], before)
    assert est.n_users_ == sum(server.n_users_ for server in est.estimators_.values()) == 300
    est.set_params(estimator=MeanEstimator())  # from the next fit on
    np.testing.assert_array_equal(est.frequencies_[0], before)
    assert not hasattr(est, "mean_")
    est.set_params(weights="inverse_variance", estimator=DistributionEstimator(GRR),
                   settings={"x": {}, "y": {"transformer__epsilon": 2}})
    with pytest.raises(ValueError, match="needs frequencies or means"):
        est.fit(X)


def test_one_group_is_the_estimator_alone():
    X = draw(3000, "x")
    one = PersonalizedEstimator(GRR, {"x": {}}).fit(X)
    own = one.estimators_["x"]
    for name in ("frequencies_", "standard_errors_", "categories_"):
        np.testing.assert_array_equal(getattr(one, name)[0], getattr(own, name)[0])
    np.testing.assert_allclose(one.confidence_interval()[0], own.confidence_interval()[0], rtol=1e-12)
    nobody = PersonalizedEstimator(clone(GRR).set_params(random_state=0)).fit(X[:, 1:])
    plain = clone(GRR).set_params(random_state=0).fit(X[:, 1:])
    np.testing.assert_array_equal(nobody.frequencies_[0], plain.frequencies_[0])
    assert nobody.privacy_ == plain.privacy_


def test_attributes_are_those_of_the_wrapped_estimator():
    names = ("categories_", "frequencies_", "standard_errors_", "mean_", "standard_error_", "bias_", "variance_",
             "distribution_", "bin_edges_", "quantile", "confidence_interval")
    for params in PersonalizedEstimator._test_params():
        est = PersonalizedEstimator(**params)
        est.fit(est._test_data(200)[0])
        server = next(iter(est.estimators_.values()))
        assert {n for n in names if hasattr(est, n)} == {n for n in names if hasattr(server, n)}
        assert est.release() is not None


def test_postprocessing_is_of_the_combined_estimate():
    X = draw(300)
    est = PersonalizedEstimator(clone(GRR).set_params(random_state=0), TWO).fit(X)
    done = clone(est).set_params(estimator__postprocess="norm_sub").fit(X)
    assert done.frequencies_[0].min() >= 0
    assert done.frequencies_[0].sum() == pytest.approx(1)
    np.testing.assert_array_equal(done._unbiased()[0], est.frequencies_[0])


# -------------------------------------------------------------------- promises and payments


def sdgrr(**params):
    return SDGRRFrequencyEstimator(1.0, categories={"v": LETTERS}, **params)


def frame(X):
    return pd.DataFrame(X, columns=["g", "v"])


def test_a_call_is_charged_once_by_the_groups_in_it():
    ledger = Ledger(math.inf)
    est = PersonalizedEstimator(GRR, TWO)
    X = draw(50)
    with ledger:
        est.fit(X)
        est.partial_fit(X[X[:, 0] == "y"])
        est.privatize(X[X[:, 0] == "x"])
    assert [e["charged_epsilon"] for e in ledger.entries()] == [1, Fraction(1, 2), 1]
    assert [e["estimator"] for e in ledger.entries()] == ["GRRFrequencyEstimator"] * 3
    est.partial_fit(X)  # bound to it from then on
    assert len(ledger) == 4
    short = PersonalizedEstimator(clone(GRR).set_params(ledger=Ledger(0.7)), TWO)
    with pytest.raises(BudgetExceededError):
        short.fit(X)
    assert not hasattr(short, "n_users_")
    assert short.fit(X[X[:, 0] == "y"]).group_sizes_["x"] == 0


def test_one_relaxation_is_kept_and_two_are_named_in_full():
    X = frame(draw(200))
    low_a, low_b = ({"low_sensitivity": [[v, "c"]]} for v in "ab")
    same = PersonalizedEstimator(sdgrr(**low_a), {"x": {}, "y": {"epsilon": 0.5}}, "g")
    name = same.guarantee_by_group_["x"].relaxation
    assert name == "SDLDP(column 'v': low=['a', 'c', and any value not in ['a', 'b', 'c']])"
    assert (same.privacy_.relaxation, same.privacy_.relaxed_epsilon, same.privacy_.epsilon) == (name, 1, math.inf)
    # a group without a relaxation keeps every relaxation, at its plain epsilon
    mixed = PersonalizedEstimator(sdgrr(**low_a), {"x": {}, "y": {"epsilon": 3, "low_sensitivity": None}}, "g")
    assert (mixed.privacy_.relaxation, mixed.privacy_.relaxed_epsilon) == (name, 3)
    both = PersonalizedEstimator(sdgrr(), {"x": low_a, "y": {**low_b, "epsilon": 2}}, "g")
    stated = both.privacy_
    assert stated.relaxed_epsilon == 2
    assert name + " in group 'x'" in stated.relaxation
    assert "low=['b', 'c']) in group 'y'" in stated.relaxation
    for relaxation, pays in ((stated.relaxation, True), (name, False), (None, False)):
        ledger = Ledger(5, relaxation=relaxation)
        trial = clone(both).set_params(estimator__ledger=ledger)
        if pays:
            trial.fit(X).partial_fit(X[X["g"] == "x"])  # a call without the other group has the same name
            assert ledger.spent().epsilon == 3
            assert trial.privacy_.relaxation == stated.relaxation
        else:
            with pytest.raises(BudgetExceededError):
                trial.fit(X)


def test_names_of_relaxations_are_those_of_one_set_in_any_order_of_settings():
    """What is not declared counts as the first category, and is another set for another domain."""
    low = {"low_sensitivity": [["a"]]}
    three, four = (SDGRRFrequencyEstimator(1.0, categories={"v": ["a", "b", c]}, **low) for c in "cd")
    assert three.privacy_.relaxation == "SDLDP(column 'v': low=['a', and any value not in ['a', 'b', 'c']])"
    assert four.privacy_.relaxation != three.privacy_.relaxation
    settings = {"x": low, "y": {"low_sensitivity": [["b", "c"]], "epsilon": 2}}
    one = PersonalizedEstimator(sdgrr(), settings, "g").privacy_
    other = PersonalizedEstimator(sdgrr(), dict(reversed(settings.items())), "g").privacy_
    assert one.relaxation == other.relaxation
    swapped = PersonalizedEstimator(sdgrr(), dict(zip("yx", settings.values())), "g").privacy_
    assert swapped.relaxation != one.relaxation


def test_the_same_users_in_other_groups_pay_for_the_worst():
    X = draw(40)
    a = PersonalizedEstimator(GRR, TWO).fit(X[X[:, 0] == "y"])
    b = PersonalizedEstimator(GRR, TWO).fit(X[X[:, 0] == "x"])
    assert clone(a).merge(a).merge(b).privacy_.epsilon == 1
    a.merge(b, users="same")
    assert a.privacy_.epsilon == 2  # 1.5 is true, and 1, the largest of the two groups, is not
    assert a.n_users_ == len(X)
    assert a.group_sizes_ == {g: int(np.sum(X[:, 0] == g)) for g in "xy"}


def test_groups_and_parts_share_no_words():
    source = WordSource(0)
    keys = {source.part(k).fingerprint for k in range(50)} | {source.fingerprint}
    assert len(keys) == 51
    assert WordSource(0).part(3).fingerprint == source.part(3).fingerprint
    assert WordSource().part(0).fingerprint is None
    est = PersonalizedEstimator(clone(GRR).set_params(random_state=0), {"x": {}, "y": {}})
    x = est.privatize(table(*[("x", "a")] * 500))[:, 1]
    y = est.privatize(table(*[("y", "a")] * 500))[:, 1]
    assert not np.array_equal(x, y)
    both = est.privatize(table(*[("x", "a"), ("y", "a")] * 500))
    np.testing.assert_array_equal(both[::2, 1], x)
    np.testing.assert_array_equal(both[1::2, 1], y)
    repeated = clone(est).fit(table(*[("x", "a")] * 5))
    with pytest.raises(ValueError, match="seed"):
        clone(est).fit(table(("x", "a"), ("y", "a"))).merge(repeated)


# -------------------------------------------------------------------- containers, batches, copies


@pytest.mark.parametrize("make", [
    frame, lambda X: pl.DataFrame({"g": X[:, 0].tolist(), "v": X[:, 1].tolist()}),
    lambda X: frame(X).astype("category"), lambda X: frame(X).astype("string"), lambda X: frame(X)[["v", "g"]],
])
def test_frames_give_what_arrays_give(make):
    X = draw(500)
    base = clone(GRR).set_params(random_state=0)
    wanted = PersonalizedEstimator(base, TWO).privatize(X)
    np.testing.assert_array_equal(PersonalizedEstimator(base, TWO, "g").privatize(make(X)), wanted)
    est = PersonalizedEstimator(base, TWO, "g").fit(make(X))
    reader = BaseEstimator()
    validate_data(reader, make(X), skip_check_array=True)
    if hasattr(reader, "feature_names_in_"):  # (before 1.9 scikit-learn sees no names in polars frames)
        assert sorted(est.feature_names_in_) == ["g", "v"]
    assert est.n_features_in_ == 2
    by_parts = clone(est).partial_fit(make(X[:99])).partial_fit(make(X[99:]))
    np.testing.assert_array_equal(by_parts.frequencies_[0], est.frequencies_[0])
    np.testing.assert_array_equal(PersonalizedEstimator(base, TWO).fit(X.tolist()).frequencies_[0], est.frequencies_[0])
    np.testing.assert_array_equal(PersonalizedEstimator(base, TWO).fit(X.astype(str)).frequencies_[0],
                                  est.frequencies_[0])


def test_any_column_may_name_the_group():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 300), rng.integers(1, 4, 300), rng.uniform(0, 5, 300)])
    base = MeanEstimator(PMTransformer(2.0, bounds=([0, 0], [1, 5]), random_state=0))
    settings = {1: {}, 2: {"transformer__epsilon": 1}, 3: {"transformer": SDPMTransformer(
        1.0, bounds=([0, 0], [1, 5]), low_sensitivity=([0.25, 1], [0.75, 2]))}}
    wanted = PersonalizedEstimator(base, settings, 1).fit(X).mean_
    last = PersonalizedEstimator(base, settings, -1).fit(X[:, [0, 2, 1]])
    np.testing.assert_array_equal(last.mean_, wanted)
    mixed = pd.DataFrame({"a": X[:, 0], "g": X[:, 1].astype(int), "b": X[:, 2].astype(np.float32)})
    np.testing.assert_allclose(PersonalizedEstimator(base, settings, "g").fit(mixed).mean_, wanted, atol=1e-6)
    sizes, own = last.group_sizes_, last.estimators_
    np.testing.assert_allclose(sum(sizes[g] * own[g].mean_ for g in sizes) / 300, wanted)


def test_a_late_group_has_the_setting_that_was_frozen():
    X = draw(60)
    est = PersonalizedEstimator(GRR, TWO).fit(X[X[:, 0] == "x"])
    est.set_params(settings={"x": {"epsilon": 9}, "y": {"epsilon": 9}})
    est.partial_fit(X[X[:, 0] == "y"])
    assert est.guarantee_by_group_["y"].epsilon == Fraction(1, 2)
    assert est.fit(X).privacy_.epsilon == 9


def test_copies_and_searches():
    X = draw(400)
    est = PersonalizedEstimator(clone(GRR).set_params(random_state=0), TWO).fit(X)
    twin = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(twin.frequencies_[0], est.frequencies_[0])
    with pytest.raises(ValueError, match=r"seed|copy"):
        est.merge(twin)
    seeded = PersonalizedEstimator(clone(GRR).set_params(random_state=0), {"x": {}, "y": {}})
    search = GridSearchCV(seeded, {"estimator__epsilon": [0.01, 8.0]}, cv=2)
    assert search.fit(X).best_params_ == {"estimator__epsilon": 8.0}
    assert search.best_estimator_.score(X) > -0.01


# -------------------------------------------------------------------- numbers


@pytest.mark.ci
@pytest.mark.second
@pytest.mark.law
def test_distributions_are_put_on_common_bins_exactly():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0, 1], 3000), rng.uniform(0, 4, 6000)])
    base = DistributionEstimator(PMTransformer(4.0, bounds=(0.0, 4.0), grid=64, random_state=0), n_bins=8,
                                 smoothing=False)
    est = PersonalizedEstimator(base, {0: {}, 1: {"n_bins": 10}}).fit(X)
    edges = est.bin_edges_[0]
    np.testing.assert_allclose(edges, np.union1d(np.linspace(0, 4, 9), np.linspace(0, 4, 11)), atol=1e-12)
    reached = np.concatenate([[0], np.cumsum(est.distribution_[0])])
    servers = list(est.estimators_.values())  # (a copy fits once)
    for server in servers:  # at an edge of a group, half its own and half what the other one has
        assert server.distribution_[0].sum() == pytest.approx(1)
    wanted = sum(np.interp(edges, s.bin_edges_[0], np.concatenate([[0], np.cumsum(s.distribution_[0])])) / 2
                 for s in servers)
    np.testing.assert_allclose(reached, wanted, atol=1e-12)
    middle = (edges[1:] + edges[:-1]) / 2
    width = np.diff(edges)
    assert est.mean_[0] == pytest.approx(est.distribution_[0] @ middle)
    f = est.distribution_[0]
    assert est.variance_[0] == pytest.approx(f @ (middle**2 + width**2 / 12) - (f @ middle) ** 2)
    q = est.quantile([0, 0.25, 0.5, 1])[:, 0]
    np.testing.assert_allclose(np.interp(q, edges, reached), [0, 0.25, 0.5, 1], atol=1e-9)
    assert est.confidence_interval()[0].shape == (8, 2)  # the least that a group would have by itself
    apart = PersonalizedEstimator(base, {0: {}, 1: {"transformer__bounds": (0.0, 5.0)}}).fit(X)
    with pytest.raises(ValueError, match="same bins"):
        apart.confidence_interval()
    assert -0.5 < est.score(X) < 0
    same = PersonalizedEstimator(base, {0: {}, 1: {"transformer__epsilon": 3}}).fit(X)
    low, high = same.confidence_interval()[0].T
    assert (low <= same.distribution_[0]).all()
    assert (high >= same.distribution_[0]).all()
    ends = est.confidence_interval(n_bins=5)[0]  # as many bins as are asked for, whatever the estimates have
    own = np.mean([server.confidence_interval(n_bins=5)[0] for server in servers], axis=0)
    assert ends.shape == (5, 2)
    assert (ends[:, 0] >= own[:, 0] - 1e-12).all()  # narrower than the mean of the groups' own
    assert (ends[:, 1] <= own[:, 1] + 1e-12).all()
    assert ((ends[:, 0] <= 0.2) & (ends[:, 1] >= 0.2)).sum() >= 4
    alone = PersonalizedEstimator(base, {0: {}}).fit(X[:3000])
    np.testing.assert_allclose(alone.confidence_interval(n_bins=5)[0],
                               alone.estimators_[0].confidence_interval(n_bins=5)[0], atol=1e-12)


def test_means_of_other_bounds_are_in_the_same_units():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.repeat([0, 1], 5000), rng.uniform(0, 4, 10_000)])
    for weights in ("stratified", "inverse_variance"):
        est = PersonalizedEstimator(MeanEstimator(PMTransformer(2.0, bounds=(0, 4), random_state=0)),
                                    {0: {}, 1: {"transformer__bounds": (-4, 8)}}, weights=weights).fit(X)
        assert abs(est.mean_[0] - X[:, 1].mean()) < 5 * est.standard_error_[0]
    stratified = clone(est).set_params(weights="stratified").fit(X)
    assert est.standard_error_[0] < stratified.standard_error_[0]
    w = est._weights()
    assert w[0][0] + w[1][0] == pytest.approx(1)
    assert w[0][0] / w[1][0] == pytest.approx(9, rel=1e-9)  # three times the width, and the same law


def test_means_of_safe_regions():
    base = MeanEstimator(GRRFrequencyEstimator(4.0, categories=[[1, 2, 3]], random_state=0))
    est = PersonalizedEstimator(base, {"x": {}, "y": {"transformer__categories": [[3, 9]]}})
    X = table(*[("x", 2), ("y", 9), ("y", 3), ("x", 1)] * 2000)
    assert abs(est.fit(X).mean_[0] - 15 / 4) < 5 * est.standard_error_[0]
    assert -0.05 < est.score(X) <= 0
    with pytest.raises(ValueError, match="same categories in all groups"):
        est.set_params(weights="inverse_variance").fit(X)


# -------------------------------------------------------------------- drawn columns, joint laws


def drawn(face=MeanEstimator, bounds=([0.0] * 4, [1.0] * 4), **more):
    """Return groups 0 and 1 of which each row reports one of four columns."""
    client = PMTransformer(1.0, bounds=bounds, grid=64, strategy="sample", random_state=0)
    return PersonalizedEstimator(face(client), {0: {}, 1: {"transformer__epsilon": 0.5}}, **more)


def few_of_the_second(n=10_000, n_second=2):
    values = np.random.default_rng(0).uniform(0, 1, (n, 4))
    return np.column_stack([np.arange(n) < n_second, values])


@pytest.mark.parametrize("weights", ["stratified", "inverse_variance"])
def test_a_group_that_drew_no_report_of_a_column_spoils_it_for_nobody(weights):
    X = few_of_the_second()
    est = drawn(weights=weights).fit(X)
    n = np.array([[int(c.sum()) for c in server._counts] for server in est.estimators_.values()])
    absent = n[1] == 0
    assert absent.any()
    assert not absent.all()
    assert np.isfinite(est.mean_).all()
    big = est.estimators_[0]
    np.testing.assert_array_equal(est.mean_[absent], big.mean_[absent])
    np.testing.assert_array_equal(est.standard_error_[absent], big.standard_error_[absent])
    missing = 2 / 10_000 if weights == "stratified" else 0.0
    np.testing.assert_allclose(est.bias_, np.where(absent, missing, 0.0), atol=1e-12)
    wider = np.stack([-est.bias_, est.bias_], axis=1)
    np.testing.assert_allclose(est.confidence_interval()[absent], (big.confidence_interval() + wider)[absent])
    if weights == "inverse_variance":  # by the reports of each column, which the laws and the draw decide
        w = np.array(est._weights())
        laws = [server.randomizer() for server in est.estimators_.values()]
        noise = [law.noise_of(law.mean_values()[0]).mean() + 1 / 12 + 1 / (6 * law.grid**2) for law in laws]
        np.testing.assert_allclose(w[1] / w[0], n[1] / noise[1] / (n[0] / noise[0]))


def test_the_bias_of_absence_is_the_range_of_all_bounds():
    """However far the absent users' values are from the others', the bound covers it, and half of it would not."""
    est = drawn(bounds=([0.0] * 4, [1.0] * 4)).set_params(
        settings={0: {}, 1: {"transformer__bounds": ([-3.0] * 4, [0.5] * 4)}})
    X = few_of_the_second(4000, 3)
    X[:, 1:] = np.where(X[:, :1] == 1, -3.0, 1.0)
    est.fit(X)
    absent = np.array([c.sum() == 0 for c in est.estimators_[1]._counts])
    assert absent.any()
    np.testing.assert_allclose(est.bias_[absent], 3 / 4000 * 4.0)
    off = 1.0 - X[:, 1].mean()  # of the mean that the others alone estimate
    assert off == pytest.approx(est.bias_[absent][0])


def test_nobody_drew_a_column():
    est = drawn().fit(few_of_the_second(2, 1))
    assert np.isnan(est.mean_).any()
    assert np.isfinite(est.mean_).any()
    np.testing.assert_array_equal(np.isnan(est.bias_), np.isnan(est.mean_))


def test_a_distribution_needs_reports_of_every_group():
    ledger = Ledger(math.inf)
    X = few_of_the_second(300)
    est = drawn(DistributionEstimator).fit(X)
    est.set_params(estimator__transformer__ledger=ledger)
    for verb in (lambda: est.distribution_, lambda: est.mean_, lambda: est.quantile(0.5), est.confidence_interval,
                 est.release, lambda: est.score(X)):
        with pytest.raises(ValueError, match=r"column \d must have reports of every group, and no user of group 1"):
            verb()
    assert not len(ledger)


def test_weights_of_drawn_columns_are_those_of_the_standard_errors():
    """Of a group that reports k of d columns only k / d of the users tell about one of them."""
    X = np.column_stack([np.arange(20_000) % 4 == 0, np.random.default_rng(0).uniform(0, 1, (20_000, 8))])
    base = MeanEstimator(PMTransformer(6.0, bounds=([0.0] * 8, [1.0] * 8), strategy="sample", random_state=0))
    est = PersonalizedEstimator(base, {0: {}, 1: {"transformer__epsilon": 20}}, weights="inverse_variance").fit(X)
    sampled = [server._columns.n_sampled for server in est.estimators_.values()]
    assert sampled[0] < sampled[1] == 8
    w = 1 / np.square([server.standard_error_ for server in est.estimators_.values()])
    np.testing.assert_allclose(est._weights(), w / w.sum(axis=0), atol=0.03)  # 0.2 off by users, not reports, and noise


@pytest.mark.parametrize("transformer", [
    DuchiTransformer(8.0, bounds=(-1, 3), random_state=0),
    DuchiTransformer(2.0, bounds=([-1, 0, 0], [3, 4, 4]), strategy="joint", random_state=0),
    PMTransformer(2.0, bounds=(-1, 3), random_state=0),
    PrivUnitTransformer(2.0, radius=2.0, center=[1.0, 2.0, 2.0], candidates=64, random_state=0),
    PrivUnitTransformer(2.0, radius=2.0, center=[0.0] * 70, candidates=64, random_state=0),
])
def test_variances_for_values_spread_evenly(transformer):
    """20,000 reports, alpha = 1e-6 with room for the correlation of coordinates: the law is not told the values."""
    (column,), rng, n = transformer._columns_now(), np.random.default_rng(0), 20_000
    if hasattr(transformer, "radius"):
        rows = rng.normal(size=(n, column.n_features))
        rows *= (rng.uniform(size=n) ** (1 / column.n_features) / np.linalg.norm(rows, axis=1))[:, None]
        rows = transformer.center + 2.0 * rows
    else:
        rows = rng.uniform(column.lows, column.highs, (n, column.n_features))
    squares = np.square(transformer.fit(rows).transform(rows) - column.middles).mean(axis=1)
    wanted = column.even_variance()
    assert wanted.shape == (column.n_features,)
    bias = 0.02 * wanted[0] * (column.n_features == 70)  # (frames of signs, and a computed constant)
    assert abs(squares.mean() - wanted[0]) <= 4.9 * squares.std() / math.sqrt(n) + bias + 1e-9 * wanted[0]


def joint(strategy="joint", seed=0, **settings):
    base = MeanEstimator(DuchiTransformer(1.0, bounds=(0.0, 1.0), strategy=strategy, random_state=seed))
    return PersonalizedEstimator(base, {0: {}, 1: {"transformer__epsilon": 0.5, **settings}})


def ball(seed=0):
    base = MeanEstimator(PrivUnitTransformer(1.0, radius=3.0, candidates=8, random_state=seed))
    return PersonalizedEstimator(base, {0: {}, 1: {"transformer__epsilon": 0.5}})


@pytest.mark.parametrize("make", [joint, ball])
def test_joint_laws_of_groups_are_of_as_many_columns_as_the_data_had(make):
    X = np.random.default_rng(0).uniform(0, 1, (60, 7))
    zeros, ones = np.column_stack([np.zeros(60), X]), np.column_stack([np.ones(60), X])
    a, b = make(seed=0).fit(zeros), make(seed=1).fit(ones)
    for est in (a, b):
        notes = [guarantee.notes for guarantee in est.guarantee_by_group_.values()]
        assert notes == [("It covers the 7 columns of a row together.",)] * 2
    late = clone(a).fit(zeros).partial_fit(ones)
    assert late.group_sizes_ == a.merge(b).group_sizes_ == {0: 60, 1: 60}
    assert a.mean_.shape == (7,)
    both = make(seed=0).fit(np.concatenate([zeros, ones]))
    wanted = -np.square(both.mean_ - X.mean(axis=0)).mean()
    assert both.score(np.concatenate([zeros, ones])) == pytest.approx(wanted)
    weighed = both.set_params(weights="inverse_variance")  # (of what was counted)
    first, second = weighed.estimators_.values()
    assert (weighed.standard_error_ < np.minimum(first.standard_error_, second.standard_error_)).all()
    w = 1 / np.square([server.standard_error_ for server in (first, second)])  # as measured; the law knows nearly these
    np.testing.assert_allclose(weighed._weights(), w / w.sum(axis=0), atol=0.15)
    np.testing.assert_allclose(np.sum(weighed._weights(), axis=0), 1)
    assert np.isfinite(weighed.confidence_interval()).all()


def test_groups_report_the_same_columns_jointly():
    X = np.column_stack([np.arange(8) % 2, np.full((8, 3), 0.5)])
    with pytest.raises(ValueError, match="joint reports of several columns and separate reports cannot be combined"):
        joint(transformer__strategy="split").fit(X)
    with pytest.raises(ValueError, match="the same number of columns"):
        _ = joint(transformer__bounds=([0.0] * 2, [1.0] * 2)).privacy_


# -------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("params", "message"), [
    ({"settings": {}}, "settings must be None or a dict"),
    ({"settings": ["x"]}, "settings must be None or a dict"),
    ({"settings": {"x": None}}, "settings must be None or a dict"),
    ({"settings": {"x": {1: 2}}}, "settings must be None or a dict"),
    ({"settings": {"x": {"nothing": 1}}}, "settings of group 'x': Invalid parameter"),
    ({"settings": {"x": {"epsilon": -1}, "y": {}}}, "epsilon"),
    ({"settings": {"x": {"random_state": 1}}}, "settings must not contain random_state"),
    ({"settings": {"x": {"ledger": None}}}, "settings must not contain ledger"),
    ({"settings": {"x": {"postprocess": None}}}, "settings must not contain postprocess"),
    ({"settings": {"x": {}, "y": {"categories": "auto"}}}, "categories must be declared for all groups"),
    ({"settings": {"x": {}, "y": {"categories": [LETTERS, LETTERS]}}}, "one entry for each of the 1 columns"),
    ({"settings": {"x": {}, "y": {}, "z": {"categories": [LETTERS, LETTERS]}}}, "the same number of columns"),
    ({"settings": {math.inf: {}, "x": {}, "y": {}}}, "settings must name groups"),
    ({"settings": {"x": {}}}, "column 0 of X must name a group of settings"),
    ({"group_column": "g"}, "X must be a frame with one column 'g'"),
    ({"group_column": 2}, "group_column must be the position"),
    ({"group_column": 0.5}, "group_column must be the position"),
    ({"weights": "size"}, "weights must be"),
    ({"estimator": PMTransformer(bounds=(0, 1))}, "estimator must be None or an estimator that counts reports"),
    ({"estimator": PersonalizedEstimator(GRR)}, "estimator must be None or an estimator that counts reports"),
    ({"settings": {"x": {}, "y": {"categories": [["a", "b"]]}}, "weights": "inverse_variance"},
     "same categories in all groups"),
    ({"estimator": DistributionEstimator(GRR), "settings": {"x": {}, "y": {}}, "weights": "inverse_variance"},
     "needs frequencies or means"),
    ({"estimator": DistributionEstimator(GRR), "settings": {"x": {}, "y": {"transformer__categories": [["c", "a"]]}}},
     "the same categories in each column"),
])
def test_what_is_refused(params, message):
    X = table(("x", "a"), ("y", "a"))
    params = {"estimator": GRR, "settings": TWO, **params}
    ledger = Ledger(math.inf)
    est = PersonalizedEstimator(**params)
    with ledger, pytest.raises(ValueError, match=message):
        est.fit(X)
    assert not len(ledger)
    assert not hasattr(est, "n_users_")


@pytest.mark.parametrize("group", [None, math.nan, "z", "", 0, ("x",)])
def test_a_row_without_a_group(group):
    X = draw(10)
    X[3, 0] = group
    est = PersonalizedEstimator(GRR, TWO).fit(draw(10))
    for verb in (est.fit, est.partial_fit, est.privatize, est.score):
        with pytest.raises(ValueError, match="column 0 of X must name a group of settings in every row"):
            verb(X)
    assert est.n_users_ == 10


def test_a_missing_group_may_be_declared():
    X = draw(10)
    X[3, 0] = None
    est = PersonalizedEstimator(GRR, {**TWO, None: {"epsilon": 0.1}}).fit(X)
    assert est.group_sizes_[None] == 1


def test_strict_mode_has_no_groups():
    X = draw(10)
    est = PersonalizedEstimator(GRR, TWO).fit(X)
    with config_context(strict=True):
        for verb in (est.fit, est.partial_fit, est.privatize, est.score):
            with pytest.raises(ValueError, match="strict mode"):
                verb(X)
        PersonalizedEstimator(GRR).fit(X[:, 1:])


def test_what_no_client_sends():
    est = PersonalizedEstimator(OUEFrequencyEstimator(1.0, categories=[list(range(20))]),
                                {"x": {}, "y": {"categories": [[1, 2, 3]]}})
    X = table(("x", 4), ("y", 2), ("x", 19))
    reports = est.privatize(X)
    assert reports.shape == (3, 4)
    assert clone(est).aggregate(reports).group_sizes_ == {"x": 2, "y": 1}
    for row, field, value in ((0, 0, 2), (1, 2, 1), (1, 1, 8), (0, 3, 16)):
        bad = reports.copy()
        bad[row, field] = value
        with pytest.raises(ValueError, match="report"):
            clone(est).aggregate(bad)
    other = PersonalizedEstimator(GRR, {"y": {}, "x": {"epsilon": 0.5}}).fit(draw(10))
    with pytest.raises(ValueError, match="same groups in its settings"):
        PersonalizedEstimator(GRR, TWO).fit(draw(10)).merge(other)


# -------------------------------------------------------------------- kernels


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_places_are_a_stable_sort(dtype):
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 7, 1000).astype(dtype)
    starts = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=7))[:-1]])
    wanted, out = np.argsort(numbers, kind="stable"), np.empty(1000, np.int64)
    assert kernels.places(numbers, starts.copy(), out)
    np.testing.assert_array_equal(out, wanted)
    values = rng.integers(0, 99, (1000, 2))
    for value in (np.uint8, np.uint16, np.uint32, np.uint64):
        column, got = values.astype(value)[:, 1], np.empty(1000, value)
        assert kernels.gather(numbers, starts.copy(), column, got)
        np.testing.assert_array_equal(got, column[wanted])
    objects, got = values.astype(object)[:, 1], np.empty(1000, object)
    assert kernels.gather_objects(numbers, starts.copy(), objects, got)
    np.testing.assert_array_equal(got, objects[wanted])


def test_kernels_write_nowhere_else():
    numbers, out = np.array([0, 5, 0], np.uint8), np.full(3, -1)
    assert not kernels.places(numbers, np.zeros(2, np.int64), out)  # a group that is not there
    for start in (-1, 3, 2**62):
        assert not kernels.places(np.zeros(3, np.uint8), np.array([start]), out)
        for kernel, dtype in ((kernels.gather, np.uint8), (kernels.gather_objects, object)):
            assert not kernel(np.zeros(3, np.uint8), np.array([start]), np.zeros(3, dtype), np.zeros(3, dtype))
    for short in (np.zeros(2, np.int64), np.zeros(4, np.int64)):
        with pytest.raises(ValueError, match="length"):
            kernels.places(numbers, np.zeros(2, np.int64), short)


def refuses_twins():
    """Tell whether scikit-learn refuses names that occur twice: older versions do not."""
    try:
        StandardScaler().fit(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("names", [["group", "drink", "drink"], ["group", 1, 2]])
def test_names_of_columns_that_are_refused_cost_nothing(names):
    if len(set(names)) < 3 and not refuses_twins():
        pytest.skip("this scikit-learn takes names that occur twice")
    X = pd.DataFrame([["a", "tea", "tea"], ["b", "milk", "tea"]] * 5)
    X.columns = names
    inner = GRRFrequencyEstimator(1.0, categories=[["tea", "milk"]] * 2)
    with Ledger(100.0) as ledger:
        with pytest.raises((ValueError, TypeError), match="names"):
            PersonalizedEstimator(inner, settings={"a": {}, "b": {}}, group_column=0).fit(X)
        assert not ledger.entries()
