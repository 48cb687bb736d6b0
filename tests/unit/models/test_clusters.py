"""k-means: by how much a row moves each round, what rounds cost together, kernels, and clusters that are found."""

import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from dpestim import config_context
from dpestim._core import kmeans
from dpestim.accounting import Ledger
from dpestim.cluster import DPKMeans, rounds
from dpestim.cluster.coreset import nearest, normal_cells, packed, weighted_kmeans
from dpestim.cluster.rounds import COARSE, Plan, Rows
from dpestim.rng import WordSource
from dpestim.statistics.calibrated_noise import Answers

LOW, HIGH = np.array([-1.0, 0.0]), np.array([1.0, 1.0])
CENTERS = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.25]])
REACH = np.array([0.5, 0.25])


class Recorder(Rows):
    """Rows that answer with exact sums, and keep them beside the law that they should have had noise of."""

    def _noisy(self, law, codes):
        self.law, self.codes = law, [int(code) for code in np.ravel(codes)]
        return np.ravel(codes).astype(float)


def change(name, plan):
    """Return (l1, l2_squared) as the round claims it."""
    replaces = plan.n_rows is not None
    if name == "moments":
        return rounds.moment_change(plan.columns, plan.weight, replaces)
    if name == "cells":
        return (2, 2) if replaces else (1, 1)
    limits = plan.limits(REACH)
    return rounds.step_change(limits, plan.of_steps(limits)[1], replaces)


def check_sensitivity(delta, replaces):
    """Require that no row replaced, or one more, moves a round by more than its law expects; and some row nearly so."""
    plan = Plan.of(Fraction(1), Fraction(delta), 6 if replaces else None, HIGH - LOW, 2, 3)
    rest = np.array([[0.3, 0.7], [-0.9, 0.1], [0.9, 0.9], [0.0, 0.5], [0.6, 0.2]])
    places = [*product((-1.0, -0.5, 0.0, 0.45, 1.0, 7.0), (0.0, 0.5, 0.55, 1.0, np.nan))]
    for name, args in (("moments", ()), ("cells", (CENTERS,)), ("steps", (CENTERS, REACH))):
        seen = []
        for table in (rest, *(np.vstack([rest, place]) for place in places)):
            rows = Recorder(table, LOW, HIGH, None, None, replaces)
            getattr(rows, name)(plan, *args)
            seen.append(rows.codes)
        seen, others = np.array(seen[1:]), np.array(seen[1:] if replaces else seen[:1])
        moved = np.abs(seen[:, None] - others).astype(object)
        l1, l2_squared = change(name, plan)
        assert moved.sum(axis=2).max() <= l1, name
        assert (moved**2).sum(axis=2).max() <= l2_squared, name
        assert moved.sum(axis=2).max() > 0.9 * l1, "the claim is not tight: a wrong one might pass"
        assert (moved**2).sum(axis=2).max() > 0.9 * l2_squared
        share = plan.step_share if name == "steps" else None
        if not plan.budget.normal:
            assert rows.law.sensitivity == l1
        elif share:
            assert rows.law.sensitivity**2 * share >= l2_squared


@pytest.mark.parametrize("delta", [0, "1/100000"])
@pytest.mark.parametrize("replaces", [True, False])
def test_one_row_moves_each_round_by_what_is_claimed(delta, replaces, monkeypatch):
    """All pairs of 30 places, at centers, on borders, beyond bounds and missing; half the claim is refuted."""
    check_sensitivity(delta, replaces)
    for name in ("step_change", "moment_change"):
        honest = getattr(rounds, name)
        for broken in (lambda *of, honest=honest: (honest(*of)[0] // 2, honest(*of)[1]),  # one cluster, not two
                       lambda *of, honest=honest: (honest(*of)[0], honest(*of)[1] // 2)):
            with monkeypatch.context() as patched:
                patched.setattr(rounds, name, broken)
                with pytest.raises(AssertionError):
                    check_sensitivity(delta, replaces)
    with monkeypatch.context() as patched:  # rows that count by more than they may
        tally = kmeans.tally
        patched.setattr(rounds.kmeans, "tally",
                        lambda b, n, c, s, limits, *out: tally(b, n, c, s * 2, limits * 2, *out))
        with pytest.raises(AssertionError):
            check_sensitivity(delta, replaces)


def test_no_row_of_many_is_sampled_by_its_place_where_their_number_is_private():
    """With 262,300 rows: cells count all of them, and a row less moves one; by place many would move."""
    rows = np.random.default_rng(0).uniform(-1, 1, (262_300, 1))
    plan = Plan.of(Fraction(1), Fraction(0), None, [1.0], 1, 2)
    for replaces, n_rows in ((False, 262_300), (True, 131_200)):
        counts = []
        for table in (rows, rows[1:]):
            asked = Recorder(table, LOW[:1], HIGH[:1], None, None, replaces)
            asked.cells(plan, np.array([[-0.5], [0.5]]))
            counts.append(np.array(asked.codes))
        assert counts[0].sum() == n_rows
        assert (np.abs(counts[0] - counts[1]).sum() == 1) is not replaces
    private = Recorder(rows, LOW[:1], HIGH[:1], None, None, False)
    assert private.sample()[1] is None
    private.moments(plan)
    assert private.sample()[1] == 262_300  # (the exact answer of this one)


@pytest.mark.parametrize(("epsilon", "delta", "d", "n_steps"), [
    (1, 0, 2, 2), ("1/10", 0, 30, 3), (7, "1/1000000", 5, 1), ("1/2", "1/100", 64, 4)])
@pytest.mark.parametrize("replaces", [True, False])
def test_rounds_together_cost_the_budget(epsilon, delta, d, n_steps, replaces):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    widths = 2.0 ** np.arange(d)
    plan = Plan.of(epsilon, delta, 5000 if replaces else None, widths, n_steps, 3)
    limits = plan.limits(widths)
    law, weight = plan.of_steps(limits)
    laws = [(plan.moments, rounds.moment_change(plan.columns, plan.weight, replaces)),
            (plan.cells, (1 + replaces, 1 + replaces)),
            *[(law, rounds.step_change(limits, weight, replaces))] * plan.n_steps]
    if plan.budget.normal:
        assert all((law.epsilon, law.delta) == (epsilon, delta) for law, _ in laws)
        assert 1 - 1e-9 < sum(Fraction(change[1]) / law.sensitivity**2 for law, change in laws) <= 1
    else:
        assert all(law.sensitivity == change[0] for law, change in laws)
        assert sum(law.epsilon for law, _ in laws) == epsilon


def test_each_round_has_words_of_its_own(monkeypatch):
    used, part = [], WordSource.part
    monkeypatch.setattr(WordSource, "part", lambda self, number: used.append(number) or part(self, number))
    DPKMeans(n_clusters=2, bounds=(0, 1), n_iter=3, random_state=0).fit(np.zeros((5000, 2)))
    assert used == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("delta", [0, "1/100000"])
def test_noise_is_that_of_the_law(delta):
    """No rows in 4,000 cells: the variance is within 6 standard errors (alpha 1e-8), which no other epsilon's is."""
    plan, points = Plan.of(Fraction(1), Fraction(delta), 9, HIGH - LOW, 2, 3), np.zeros((4000, 2))
    rows = Rows(np.empty((0, 2)), LOW, HIGH, Answers(WordSource(0)), None)
    counts = rows.cells(plan, points)
    spread = (np.square(counts) / plan.cells.variance_steps).mean()
    error = 6 * np.sqrt((2 if plan.budget.normal else 5) / len(points))  # (kurtosis: 3 of normal noise, 6 of Laplace)
    assert abs(spread - 1) < error < min(1.3**2 - 1, 1 - 0.75**2)
    again = rows.cells(plan, points)
    assert abs(np.corrcoef(counts, again)[0, 1]) < 0.1


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (127, 3, 4), (128, 2, 3), (1000, 17, 9)])
def test_kernels_do_what_numpy_does(n, d, k):
    rng = np.random.default_rng(n)
    rows = rng.integers(-64, 65, (n, d)) / 64.0
    centers = rng.integers(-64, 65, (k, d)) / 64.0
    blocks = packed(rows)
    off = np.square(rows[:, None] - centers).sum(axis=2)
    labels = nearest(blocks, n, centers)
    assert (labels == off.argmin(axis=1)).all()  # (exact in these floats: the first of several)
    limits = rng.integers(0, 90, d)
    sums, squares = np.zeros((k, 1 + d), np.int64), np.zeros(d, np.int64)
    kmeans.tally(blocks, n, centers.astype(np.float32), np.full(d, 64, np.float32), limits.astype(np.int32), sums,
                 squares)
    z = np.clip((rows - centers[labels]) * 64, -limits, limits).astype(int)
    assert (sums[:, 0] == np.bincount(labels, minlength=k)).all()
    assert (sums[:, 1:] == [z[labels == c].sum(axis=0) for c in range(k)]).all()
    assert (squares == (z * z).sum(axis=0)).all()


def test_rows_are_clipped_and_kernels_refuse_other_shapes():
    out = np.ones((1, 2, kmeans.LANES), np.float32)
    rows = np.array([[np.nan, -5.0], [np.inf, 0.25], [-np.inf, 9.0]])
    middle = (LOW + HIGH) / 2
    kmeans.pack(rows, LOW, HIGH, middle, 1.0, 0, 1, out)
    assert out[0, :, :4].tolist() == [[0, 1, -1, 0], [-0.5, -0.25, 0.5, 0]]
    two, many = np.zeros((1, 2), np.float32), np.full(2, 1 << 22, np.int32)
    sums, squares = np.zeros((1, 3), np.int64), np.zeros(2, np.int64)
    for call in (lambda: kmeans.pack(rows, LOW[:1], HIGH, middle, 1.0, 0, 1, out),
                 lambda: kmeans.pack(np.zeros((200, 2)), LOW, HIGH, middle, 1.0, 0, 1, out),
                 lambda: kmeans.nearest(out, two[:, :1].copy(), np.zeros((1, kmeans.LANES), np.int32)),
                 lambda: kmeans.tally(out, 129, two, two[0], many - 1, sums, squares),
                 lambda: kmeans.tally(out, 1, two, two[0], many, sums, squares)):
        with pytest.raises(ValueError, match=r"differ in shape|below 2"):
            call()


def blobs(n, d, k, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-8, 8, (k, d))[rng.integers(0, k, n)] + spread * rng.standard_normal((n, d))


def test_k_means_of_points():
    rows = blobs(400, 3, 5)
    heavy = np.repeat([1.0, 3.0], 200)
    found = weighted_kmeans(rows, heavy, 5)
    known = KMeans(5, n_init=10, random_state=0).fit(rows, sample_weight=heavy)
    off = np.square(rows - found[nearest(packed(rows), 400, found)]).sum(axis=1) @ heavy
    assert off <= known.inertia_ * 1.01
    assert len(weighted_kmeans(rows, np.zeros(400), 7)) == 7
    assert (weighted_kmeans(np.ones((9, 2)), np.ones(9), 4) == 1).all()
    points, shares = normal_cells(np.array([1.0, 0.1]), 32)
    assert shares.sum() == pytest.approx(1)
    assert np.abs(shares @ points).max() < 0.1
    assert np.sqrt(shares @ points**2) == pytest.approx([1.0, 0.1], rel=0.25)


SHAPES = {
    "unequal": (lambda rng: np.array([[0, 0], [5, 5], [-5, 4], [6, -6]])[
        rng.choice(4, 20_000, p=[0.6, 0.3, 0.08, 0.02])] + rng.normal(size=(20_000, 2)), 4, (-12, 12), 1.2),
    "skewed": (lambda rng: rng.exponential(size=(20_000, 3)), 3, (0, 12), 1.15),
    "ten columns": (lambda rng: blobs(50_000, 10, 6), 6, (-14, 14), 1.5),
    "a column that says nothing": (lambda rng: blobs(20_000, 2, 3) * [1, 0] + [0, 3], 3, ([-12, 0], [12, 6]), 1.6),
}


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
def test_clusters_are_found(shape, neighbours):
    """Inertia at epsilon 1 (the middle of 3 seeds) beside that of k-means without privacy."""
    make, k, bounds, most = SHAPES[shape]
    rows = make(np.random.default_rng(0))
    known = KMeans(k, n_init=3, random_state=0).fit(rows).inertia_
    make = DPKMeans(1.0, n_clusters=k, bounds=bounds, neighbours=neighbours)
    found = [-make.set_params(random_state=seed).fit(rows).score(rows) for seed in range(3)]
    assert np.median(found) < most * known


def test_where_noise_drowns_clusters_centers_are_near_the_mean():
    rows = blobs(1000, 20, 5)
    one = np.square(rows - rows.mean(axis=0)).sum()
    make = DPKMeans(0.5, n_clusters=5, bounds=(-12, 12))
    found = [-make.set_params(random_state=seed).fit(rows).score(rows) for seed in range(3)]
    assert np.median(found) < 2 * one


def test_the_face():
    rows = blobs(3000, 2, 3)
    model = DPKMeans(n_clusters=3, bounds=(-12, 12), random_state=0)
    with Ledger(1, durability="fast") as ledger:
        labels = model.fit_predict(rows)
    assert [entry["n_rows"] for entry in ledger.entries()] == [3000]
    with Ledger(2, durability="fast") as ledger:  # (a ledger of replaced rows pays twice)
        other = DPKMeans(n_clusters=3, bounds=(-12, 12), neighbours="add_remove", random_state=0).fit(rows)
    assert [entry["n_rows"] for entry in ledger.entries()] == [None]
    assert other.privacy_.neighbours.value == "add_remove"
    for bad in ("local", 1):
        with pytest.raises(ValueError, match="neighbours"):
            DPKMeans(bounds=(-1, 1), neighbours=bad).fit(rows)
    off = model.transform(rows)
    assert (labels == off.argmin(axis=1)).all()
    assert model.score(rows) == pytest.approx(-np.square(off.min(axis=1)).sum())
    assert list(model.get_feature_names_out()) == ["dpkmeans0", "dpkmeans1", "dpkmeans2"]
    assert not {"labels_", "inertia_", "n_iter_"} & set(vars(model))
    for name in ("n_clusters", "n_iter"):
        for bad in (0, 1.5, True, 10**6):
            with pytest.raises(ValueError, match=name):
                DPKMeans(bounds=(-1, 1), **{name: bad}).fit(rows)
    with config_context(strict=True):
        for n in (0, 2):
            few = DPKMeans(n_clusters=9, bounds=(-1, 1), neighbours="add_remove", random_state=0).fit(rows[:n])
            assert np.isfinite(few.cluster_centers_).all()
        few = DPKMeans(n_clusters=9, bounds=(-1, 1), random_state=0).fit(rows[:2])
        assert few.cluster_centers_.shape == (9, 2)
        assert few.predict(np.array([[np.nan, np.inf]])).shape == (1,)
    with pytest.raises(ValueError, match=r"too small|exceed|not fit"):
        DPKMeans(1e-60, delta=1e-50, bounds=(-1, 1)).fit(rows)
    assert COARSE < rounds.FINE


def test_normal_rounds_say_what_is_known_of_all_of_them():
    X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    model = DPKMeans(1.0, n_clusters=2, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    assert 0.99 < float(model.privacy_.curve.epsilon_at(1e-6)) < 1.001
    assert DPKMeans(1.0, n_clusters=2, bounds=(-1, 1), random_state=0).fit(X).privacy_.curve is None


def test_scores_of_frames_know_their_columns():
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, size=(500, 2)), columns=["a", "b"])
    model = DPKMeans(1.0, n_clusters=2, bounds=(-1, 1), random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(X) == -np.square(model.transform(X).min(axis=1)).sum()


def test_narrow_columns_are_seen_beside_wide_ones():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 10_000)
    ages = np.clip(np.array([25, 45, 70])[group] + 4 * rng.normal(size=10_000), 0, 100)
    incomes = np.clip(np.array([2e4, 6e4, 1.2e5])[group] + 5e3 * rng.normal(size=10_000), 0, 2e5)
    model = DPKMeans(1.0, n_clusters=3, bounds=([0, 0], [100, 2e5]), random_state=0).fit(np.c_[ages, incomes])
    assert np.abs(np.sort(model.cluster_centers_[:, 0]) - [25, 45, 70]).max() < 1.5


def test_constant_columns_are_free():
    """Declared or seen: centers are those of the other columns alone, and distances know nothing of the constant."""
    rows = blobs(2000, 2, 3)
    wide = np.c_[np.full(2000, 3.0), rows[:, 0], np.full(2000, -1e9), rows[:, 1]]
    alone = DPKMeans(n_clusters=3, bounds=(-12, 12), random_state=0).fit(rows)
    low, high = [3, -12, -1e9, -12], [3, 12, -1e9, 12]
    model = DPKMeans(n_clusters=3, bounds=(low, high), random_state=0).fit(wide)
    assert (model.cluster_centers_[:, [1, 3]] == alone.cluster_centers_).all()
    assert (model.cluster_centers_[:, [0, 2]] == [3, -1e9]).all()
    other = wide + np.array([5, 0, 1e9, 0])  # (clipped to the constant)
    assert (model.predict(other) == alone.predict(rows)).all()
    assert (model.transform(other) == alone.transform(rows)).all()
    assert model.score(other) == alone.score(rows)
    with pytest.warns(Warning, match="bounds"):
        seen = DPKMeans(n_clusters=3, bounds=None, random_state=0).fit(wide)
    assert (seen.cluster_centers_[:, [0, 2]] == [3, -1e9]).all()
    nothing = DPKMeans(n_clusters=2, bounds=([1, 2], [1, 2]), random_state=0).fit(rows)
    assert nothing.cluster_centers_.tolist() == [[1, 2], [1, 2]]
    assert nothing.privacy_.epsilon == 1
    assert not nothing.predict(rows).any()
    assert nothing.score(rows) == 0
    with pytest.raises(ValueError, match="low at most high"):
        DPKMeans(bounds=(1, 0)).fit(rows)


@pytest.mark.parametrize("normal", [False, True])
def test_weights_of_columns_divide_noise(normal):
    """One weight for columns alike; else less noise in all, and in none more than twice what it would be."""
    assert (rounds.column_weights([3.0] * 5, normal) == 1).all()
    widths = np.array([1000.0, 10, 10, 1, 1, 1])

    def noise(weights):  # (deviations, in units of X)
        return widths / weights * (np.sqrt(np.square(weights).sum()) if normal else weights.sum())

    even, ours = noise(np.ones(6)), noise(rounds.column_weights(widths, normal))
    assert (ours < 2.001 * even).all()
    assert np.linalg.norm(ours) < (0.6 if normal else 0.35) * np.linalg.norm(even)
    best = noise(np.sqrt(widths) if normal else widths ** (2 / 3))
    assert np.linalg.norm(best) < np.linalg.norm(ours) < 1.6 * np.linalg.norm(best)


def test_few_rows_take_fewer_steps():
    """As public numbers say, and all that is saved goes to those that are left."""
    plans = {n: Plan.of(Fraction(1), Fraction(0), n, [1.0] * 4, 3, 4) for n in (100, 800, 100_000)}
    assert [plan.n_steps for plan in plans.values()] == [1, 2, 3]
    for plan in plans.values():
        law, _ = plan.of_steps([rounds.FINE] * 4)
        assert plan.moments.epsilon + plan.cells.epsilon + plan.n_steps * law.epsilon == 1
    more, fewer = (Plan.of(Fraction(1), Fraction(1, 10**5), 400, [1.0] * 4, 9, k) for k in (2, 8))
    assert more.n_steps > fewer.n_steps


FEW = {  # (centers, the most times the inertia of k-means without privacy, at epsilon 1 and at 4)
    "wine": (load_wine, 3, 2.2, 1.4),
    "breast cancer": (load_breast_cancer, 2, 2.2, 1.2),
    "digits": (load_digits, 10, 1.95, 1.6),
}


@pytest.mark.ci
@pytest.mark.second
@pytest.mark.law
@pytest.mark.parametrize("name", FEW)
def test_few_rows_of_many_columns(name):
    """The mean of 5 seeds, bounds being the ranges: with columns that differ in width, and that are constant."""
    load, k, *most = FEW[name]
    rows = load().data
    known = KMeans(k, n_init=2, random_state=0).fit(rows).inertia_
    for epsilon, limit in zip((1.0, 4.0), most):
        model = DPKMeans(epsilon, n_clusters=k, bounds=(rows.min(axis=0), rows.max(axis=0)))
        found = [-model.set_params(random_state=seed).fit(rows).score(rows) for seed in range(5)]
        assert np.mean(found) < limit * known


def test_loose_bounds_and_few_rows_are_no_worse_than_about_the_mean():
    """It was 4.6 times the inertia of the mean: cells stayed as wide as the usual variance is."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(8, 64))[rng.integers(8, size=100)] + 0.5 * rng.normal(size=(100, 64))
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = low - 2 * (high - low), high + 2 * (high - low)
    found = [-DPKMeans(4.0, bounds=bounds, random_state=seed).fit(X).score(X) for seed in range(5)]
    assert np.median(found) < 2 * np.square(X - X.mean(axis=0)).sum()
