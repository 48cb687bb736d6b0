"""Joint tables from one report a user: exact moments, designs, consistency, tests of independence, synthetic rows."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpestim.local import MarginalEstimator
from dpestim.local.attributes.designs import cover, design_for
from dpestim.local.attributes.noise import Moments
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.ss import SS
from dpestim.local.categories.unary import OUE

SIZES = (3, 4, 2)
CATEGORIES = [list(range(k)) for k in SIZES]


def rows_of(n, seed=0):
    """Skewed columns: the second follows the first, and the third is independent."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.7, 0.25, 0.05])
    b = np.where(rng.random(n) < 0.5, a, rng.choice(4, n, p=[0.6, 0.2, 0.15, 0.05]))
    return np.column_stack([a, b, rng.choice(2, n, p=[0.9, 0.1])])


def truth(X, places):
    out = np.zeros([SIZES[j] for j in places])
    np.add.at(out, tuple(X[:, j] for j in places), 1 / len(X))
    return out


@pytest.mark.parametrize("law", [GRR.make(Fraction(1), 6), SS.make(Fraction(1), 6), SS.make(Fraction(3), 6),
                                 OUE.make(Fraction(2), 6)])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_second_moments_are_those_of_the_law(law, block):
    """Variances and covariances of sums of cells, by the whole law of a report."""
    matrix = np.array([[float(p) for p in row] for row in law.transition_matrix()])
    if isinstance(law, SS):
        supports = np.array([[bits >> v & 1 for v in range(6)] for bits in law._subsets()], float)
    else:
        supports = np.eye(6) if isinstance(law, GRR) else (np.arange(64)[:, None] >> np.arange(6) & 1).astype(float)
    z = (supports - float(law.q_star)) / float(law.p_star - law.q_star)
    sums, found = z.reshape(len(z), 6 // block, block).sum(axis=2), Moments(law, block)
    of = [(sums - row @ sums).T @ ((sums - row @ sums) * row[:, None]) for row in matrix]
    assert of[0][0, 0] == pytest.approx(found.own, rel=1e-5)
    assert of[0][1, 1] == pytest.approx(found.other, rel=1e-5)
    assert of[0][0, 1] == pytest.approx(found.near, rel=1e-5, abs=1e-6)
    if block < 3:
        assert of[0][1, 2] == pytest.approx(found.far, rel=1e-5, abs=1e-6)
    f = np.random.default_rng(0).dirichlet(np.ones(6 // block))
    whole = sum(share * own for share, own in zip(np.repeat(f / block, block), of))
    assert found.covariance(f) == pytest.approx(whole + np.diag(f) - np.outer(f, f), rel=1e-5, abs=1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("method", ["pairs", "full", "fourier", "calm"])
def test_tables_have_the_errors_that_are_stated_and_intervals_cover(method):
    """Mean squares in units of the stated errors, coverage of cells of a skewed table, and less error."""
    X, z, inside, squares = rows_of(2000), [], [], []
    for seed in range(25):
        est = MarginalEstimator(3.0, method=method, categories=CATEGORIES, random_state=seed).fit(X)
        for own in ((0, 1), (2, 0), (1,)):
            true, found = truth(X, own), est.table(list(own), consistent=False)
            z.append(((found - true) / est.standard_errors(list(own))).ravel())
            ci = est.confidence_interval(list(own))
            inside.append(((ci[..., 0] <= true) & (true <= ci[..., 1])).ravel())
            if seed < 5:
                squares.append([np.square(found - true).sum(), np.square(est.table(list(own)) - true).sum()])
    z, errors = np.concatenate(z), np.sum(squares, axis=0)
    assert 0.7 < np.square(z).mean() < 1.4
    assert 0.92 < np.concatenate(inside).mean() < 0.98
    assert errors[1] < errors[0]


def test_consistent_tables_agree_and_order_their_axes_as_asked():
    est = MarginalEstimator(8.0, method="pairs", categories=CATEGORIES, random_state=0).fit(rows_of(40_000))
    one, two = est.table([0, 1]), est.table([0, 2])
    assert one.sum() == pytest.approx(1)
    assert (one >= 0).all()
    assert np.abs(one.sum(axis=1) - two.sum(axis=1)).max() < 0.01
    assert np.array_equal(est.table([1, 0]), one.T)
    three = est.table([2, 0, 1])  # (which nobody reported)
    assert np.abs(three.sum(axis=0) - one).max() < 0.01
    with pytest.raises(ValueError, match="reported together"):
        est.confidence_interval([0, 1, 2])
    for wrong in ([0, 0], [3], "x", [], [True], ["nobody"]):
        with pytest.raises(ValueError, match="columns"):
            est.table(wrong)


@pytest.mark.parametrize("method", ["pairs", "fourier"])
def test_the_level_of_the_test_of_independence_is_kept_where_noise_is_larger_than_shares(method):
    rng, rejected = np.random.default_rng(6), 0
    for seed in range(60):
        X = np.column_stack([rng.choice(k, 300, p=np.arange(k, 0, -1) * 2 / k / (k + 1)) for k in (2, 3, 4)])
        est = MarginalEstimator(0.3, method=method, categories=[range(2), range(3), range(4)], random_state=seed).fit(X)
        rejected += est.independence_test([0, 1]).p_value < 0.05
    assert rejected <= 8  # (of 60 with probability 0.05 each: more in one of 250 runs)


@pytest.mark.ci
@pytest.mark.parametrize("method", ["pairs", "fourier"])
def test_the_level_of_the_test_of_independence_is_kept(method):
    """Of 300 null tables with skewed margins .05 are rejected but for chance; a real association is found."""
    rejected, rng = 0, np.random.default_rng(3)
    for seed in range(300):
        X = np.column_stack([rng.choice(3, 800, p=[0.8, 0.15, 0.05]), rng.choice(4, 800, p=[0.7, 0.2, 0.07, 0.03])])
        est = MarginalEstimator(4.0, method=method, categories=CATEGORIES[:2], random_state=seed).fit(X)
        rejected += est.independence_test([0, 1]).p_value < 0.05
    assert abs(rejected - 15) < 4 * math.sqrt(300 * 0.05 * 0.95)
    X = rows_of(20_000)
    found = MarginalEstimator(4.0, method=method, categories=CATEGORIES, random_state=1).fit(X)
    test = found.independence_test([1, 0])
    true = truth(X, (0, 1))
    product = np.outer(true.sum(axis=1), true.sum(axis=0))
    assert test.p_value < 1e-6
    assert abs(test.cramers_v - math.sqrt(((true - product) ** 2 / product).sum() / 2)) < 0.1


def test_designs_cover_all_tables_and_the_best_is_no_worse_than_any():
    for sizes, order in (((2,) * 6, 2), ((3, 5, 2, 7), 2), ((2,) * 5, 3)):
        goals = list(itertools.combinations(range(len(sizes)), order))
        for width in range(order, len(sizes) + 1):
            sets = cover(goals, sizes, width, 64)
            assert all(any(set(goal) <= set(own) for own in sets) for goal in goals)
            assert all(math.prod(sizes[j] for j in own) <= 210 for own in sets)
        for epsilon in (Fraction(1, 2), Fraction(4)):
            errors = {m: design_for(m, epsilon, sizes, order, 4096).error for m in ("full", "pairs", "fourier", "calm",
                                                                                   "auto")}
            assert errors["calm"] <= min(errors["full"], errors["pairs"])
            assert errors["auto"] == min(errors["calm"], errors["fourier"])
    with pytest.raises(ValueError, match="max_cells"):
        design_for("full", Fraction(1), (10,) * 9, 2, 4096)


def test_the_expected_error_is_the_measured_one():
    """Even independent columns and little noise, where nothing is cut off: what designs are compared by."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, k, 20_000) for k in SIZES])
    for method in ("pairs", "full", "fourier"):
        squares = []
        for seed in range(12):
            est = MarginalEstimator(4.0, method=method, categories=CATEGORIES, random_state=seed).fit(X)
            squares += [np.square(est.table(list(own)) - truth(X, own)).mean()
                        for own in itertools.combinations(range(3), 2)]
        assert np.mean(squares) * 20_000 == pytest.approx(est.expected_error_**2, rel=0.25)


def test_synthetic_rows_have_the_tables_that_were_learned():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows_of(60_000), columns=["a", "b", "c"])
    est = MarginalEstimator(6.0, categories=dict(zip("abc", CATEGORIES)), random_state=0).fit(X)
    rows = est.synthesize(20_000, random_state=1)
    assert list(rows.columns) == ["a", "b", "c"]
    assert np.abs(truth(rows.to_numpy(), (0, 1)) - truth(X.to_numpy(), (0, 1))).sum() / 2 < 0.05
    frame = est.to_frame(["a", "c"])
    assert list(frame.columns) == ["a", "c", "share", "standard_error", "ci_low", "ci_high"]
    assert frame["share"].to_numpy() == pytest.approx(est.table([0, 2]).ravel())
    again = pickle.loads(pickle.dumps(est))
    assert np.array_equal(again.table(["b"]), est.table(["b"]))


@pytest.mark.parametrize("method", ["pairs", "full", "fourier", "calm"])
def test_of_few_users_tables_are_distributions_and_what_nobody_reported_is_unknown(method):
    for n in (1, 4):
        est = MarginalEstimator(1.0, method=method, categories=CATEGORIES, random_state=0).fit(rows_of(n))
        for own in ([0], [0, 1], [0, 1, 2]):
            assert est.table(own).sum() == pytest.approx(1)
            assert (est.table(own) >= 0).all()
        assert len(est.synthesize(5, random_state=0)) == 5
        ci = est.confidence_interval([0, 1])
        unknown = np.isnan(est.table([0, 1], consistent=False))
        assert (np.isnan(ci).any(axis=-1) == unknown).all()
        assert "share" in str(est.result_)
    if method == "fourier":
        assert unknown.all()
        with pytest.raises(ValueError, match="more users"):
            est.independence_test([0, 1])


def test_classes_are_predicted_from_tables():
    """Arrays with and without the class, frames by name, values that are none; noise alone says nothing."""
    pd = pytest.importorskip("pandas")
    X = rows_of(20_000)
    est = MarginalEstimator(3.0, categories=CATEGORIES, random_state=0).fit(X)
    model = est.classifier(1)
    assert str(model) == f"TableClassifier of the classes {list(CATEGORIES[1])} by {len(CATEGORIES) - 1} columns"
    found = model.predict(X)
    assert np.mean(found == X[:, 1]) > np.mean(X[:, 1] == 0) + 0.05
    assert np.array_equal(model.predict(X[:, [0, 2]]), found)
    assert model.predict_proba([[7, 0]]).sum() == pytest.approx(1)
    joint = truth(X, (0, 1)) / truth(X, (0,))[:, None]
    assert np.abs(model.predict_proba([[0, 0], [1, 0]]) - joint[:2]).max() < 0.1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = MarginalEstimator(3.0, categories=dict(zip("abc", CATEGORIES)), random_state=0).fit(frame).classifier("b")
    assert np.array_equal(pickle.loads(pickle.dumps(named)).predict(frame[["c", "a"]]), found)
    noise = MarginalEstimator(0.05, categories=CATEGORIES, random_state=1).fit(X[:500]).classifier(1).predict(X)
    assert len(set(noise.tolist())) == 1
    for wrong, what in (([[0]], "columns"), (frame[["a"]], "'c'")):
        with pytest.raises(ValueError, match=what):
            named.predict(wrong)
    with pytest.raises(ValueError, match="together"):
        MarginalEstimator(order=1, method="pairs", categories=CATEGORIES).fit(X).classifier(1)
