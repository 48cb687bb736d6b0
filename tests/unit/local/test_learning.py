"""Models of users who answer with noisy gradients: what is sent, what the server makes of it, who pays."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.exceptions import BudgetExceededError
from dpestim.inputs import clipped_rows, row_shape
from dpestim.links import LOGISTIC, cut, cut_logs, softmax
from dpestim.local import LDPSGDClassifier, LDPSGDRegressor, Round
from dpestim.privacy import Neighbours
from dpestim.rng import WordSource


def rows(n=4000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, 0] - X[:, 1] > 0.3 * rng.standard_normal(n)


def model(epsilon=2.0, **params):
    return LDPSGDClassifier(epsilon, **{"data_norm": 1.5, "classes": [False, True], "random_state": 0, **params})


def regressor(epsilon=2.0, **params):
    return LDPSGDRegressor(epsilon, **{"data_norm": 1.5, "target_bounds": (-3, 3), "random_state": 0, **params})


# ---------------------------------------------------------------- what users send


def differences(mechanism, scale, centre=0.0):
    """Return z statistics of the mean report of 40,000 like users against `scale` times what they are to send."""
    n, x, weights = 40_000, np.array([0.4, -1.0, 0.3]), np.array([[0.5, -1.0, 2.0, 0.3]])  # (a margin above 0)
    est = model(4.0, mechanism=mechanism)
    round_ = Round(0, weights, centre)
    reports = est.privatize(np.tile(x, (n, 1)), np.ones(n, bool), round_)
    est.next_round(n_features=3)
    est.aggregate(reports)
    z = clipped_rows(x[None], 1.5, 0.2)
    direction = z[0] - [*np.broadcast_to(0.0 if centre is None else centre, 3), 0.0]
    gradient = 2 * LOGISTIC.slopes(z @ weights[0], np.ones(1))[0] * direction / np.linalg.norm(direction)
    if centre is None:
        gradient = z[0] * [1, 1, 1, 0]
    return (est._group.mean_ - scale * gradient) / est._group.standard_error_


@pytest.mark.law
@pytest.mark.parametrize("mechanism", ["privunit", "duchi", "pm"])
def test_reports_are_gradients_without_bias_and_another_one_is_told(mechanism):
    limit = stats.norm.isf(1e-6 / 8)  # alpha = 1e-6 over four coordinates and two sides; n = 40,000
    assert np.abs(differences(mechanism, 1.0)).max() < limit
    assert np.abs(differences(mechanism, 1.5)).max() > limit


@pytest.mark.law
@pytest.mark.parametrize("centre", [None, [0.3, -0.1, 0.2]])
def test_rows_are_sent_where_a_centre_is_asked_for_and_gradients_about_it_are(centre):
    limit = stats.norm.isf(1e-6 / 8)  # alpha = 1e-6 over four coordinates and two sides; n = 40,000
    assert np.abs(differences("privunit", 1.0, centre)).max() < limit
    assert np.abs(differences("privunit", 1.5, centre)).max() > limit


def test_slopes_are_never_longer_than_at_the_start_and_minimise_what_is_told():
    """The mean slope over classes of the law that `cut_logs` says is 0; for two classes, and for four."""
    rng = np.random.default_rng(0)
    for n in (2, 4):
        margins = rng.normal(0, 3, (200, n))
        if n == 2:
            margins[:, 0] = 0.0
        link = cut(LOGISTIC if n == 2 else softmax(n))
        logs = margins - np.log(np.exp(margins).sum(axis=1, keepdims=True))
        told, mean = np.exp(cut_logs(logs)), 0.0
        for j in range(n):
            slopes = link.slopes(margins[:, 1] if n == 2 else margins, np.full(200, 2.0 * j - 1 if n == 2 else j))
            lengths = np.abs(slopes) if n == 2 else np.linalg.norm(slopes, axis=1)
            assert lengths.max() * (1 - 1e-12) <= link.most < np.sqrt(1 - 1 / n) + 1e-12
            mean = mean + (told[:, j] * slopes.T).T
        assert np.abs(mean).max() < 1e-12
        assert np.array_equal(told.argsort(axis=1), margins.argsort(axis=1))
        assert np.abs(told - np.exp(logs)).max() > 0.05


@pytest.mark.parametrize("mechanism", ["privunit", "duchi", "pm"])
def test_gradients_lie_in_the_domain_of_the_law_and_nothing_but_them_is_sent(mechanism):
    """Rows of the same gradient have the same reports: what the law sees is all that is sent."""
    est = model(mechanism=mechanism)
    X = np.array([[9.0, 0.0, 0.0], [3e100, 0.0, 0.0]] * 50)  # both are shortened to the same row
    one = est.privatize(X[::2], np.ones(50, bool))
    assert np.array_equal(one, est.privatize(X[1::2], np.ones(50, bool)))
    assert len(est.transformer_.randomizers_ if hasattr(est, "transformer_") else ()) == 0  # no state on the device


def test_odd_models_of_a_server_are_just_other_inputs():
    X, y = rows(50)
    est = model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (np.nan, np.inf, -np.inf, 1e308):
            reports = est.privatize(X, y, Round(0, np.full((1, 4), value)))
            est.next_round(n_features=3)
            est.aggregate(reports)
            assert np.isfinite(est.next_round().weights).all()
    for value in (np.nan, np.inf, 1e308):
        assert np.isfinite(est._answers(*est._read(X, y), Round(0, np.zeros((1, 4)), value), WordSource(0))).all()
    for wrong in (np.zeros(2), "x", np.zeros((1, 3))):
        with pytest.raises(ValueError, match="round_ must have a centre"):
            est.privatize(X, y, Round(0, np.zeros((1, 4)), wrong))
    for wrong in (np.zeros((1, 3)), np.zeros((2, 4)), 0.0):
        with pytest.raises(ValueError, match="round_ must have weights of shape"):
            est.privatize(X, y, Round(0, wrong))
    with pytest.raises(ValueError, match="Round"):
        est.privatize(X, y, 3)
    for wrong in (-1, 1 << 40, 0.5, None):
        with pytest.raises(ValueError, match=r"round_\.number must be"):
            est.privatize(X, y, Round(wrong, np.zeros((1, 4))))


def test_a_round_may_travel_in_another_form():
    X, y = rows(50)
    told = model().next_round(n_features=3)
    want = model().privatize(X, y, told)
    assert np.array_equal(model().privatize(X, y, Round(told.number, told.weights.tolist())), want)
    assert np.array_equal(model().privatize(X, y, pickle.loads(pickle.dumps(told))), want)


def test_strict_mode_sends_a_gradient_of_zero_for_what_does_not_count():
    X, y = rows(200)
    y = y.astype(int)
    for other_X, other_y in ((np.full_like(X, np.nan), y), (X, np.full(200, 7))):
        est = model(classes=[0, 1])
        with config_context(strict=True):
            reports = est.privatize(other_X, other_y)
            zero = est.privatize(np.full_like(X, np.inf), y)
        assert np.array_equal(reports, zero)
    for centre in ([0.3, -0.1, 0.2], None):
        with config_context(strict=True):
            reports = est.privatize(np.full_like(X, np.nan), y, Round(0, np.zeros((1, 4)), centre))
        assert np.array_equal(reports, zero)


# ---------------------------------------------------------------- rounds


def test_fit_is_its_rounds():
    """With the groups that it draws, the verbs give the same model; other groups do not."""
    X, y = rows(300)
    whole = model(n_rounds=5).fit(X, y)
    groups = []
    spy = model(n_rounds=5)
    spy.__class__ = type("Spy", (LDPSGDClassifier,), {"_answers": lambda self, Z, t, r, s: (
        groups.append(Z[:, :3] / row_shape(3, 0.2)[0] * 1.5), LDPSGDClassifier._answers(self, Z, t, r, s))[1]})
    spy.fit(X, y)
    assert len(groups) == 5
    assert {tuple(np.round(row, 6)) for group in groups for row in group} == {
        tuple(np.round(row * min(1, 1.5 / np.linalg.norm(row)), 6)) for row in X}
    server, users = model(), model()
    lookup = {tuple(np.round(row * min(1, 1.5 / np.linalg.norm(row)), 6)): k for k, row in enumerate(X)}
    for group in groups:
        at = [lookup[tuple(np.round(row, 6))] for row in group]
        server.aggregate(users.privatize(X[at], y[at], server.next_round(n_features=3)))
    server.next_round()
    assert np.array_equal(server.coef_, whole.coef_)
    assert server.n_rounds_ == whole.n_rounds_ == 5
    assert server.privacy_.seeded


def test_a_fit_of_many_begins_with_a_centre_and_takes_steps_about_it():
    """The verbs give the model of the fit; a shift of all rows is one of the intercept."""
    X, y = rows(1200)
    X, asked = X / 3 + [0.5, 0.2, 0.0], []
    whole = model(n_rounds=3)
    whole.__class__ = type("Spy", (LDPSGDClassifier,), {"_answers": lambda self, Z, t, r, s: (
        asked.append((r, Z, t)), LDPSGDClassifier._answers(self, Z, t, r, s))[1]})
    whole.fit(X, y)
    assert [r.centre is None for r, _, _ in asked] == [True, False, False, False]
    sizes, shares = np.array([len(t) for _, _, t in asked]), np.array([60, 380, 380, 380])
    assert sizes.sum() == 1200  # (each user is in one group, which is drawn: 5 standard deviations)
    assert (np.abs(sizes - shares) < 5 * np.sqrt(shares)).all()
    assert np.abs(asked[1][0].centre - asked[0][1][:, :3].mean(axis=0)).max() < 0.5
    server = model()
    for k, (round_, Z, targets) in enumerate(asked):
        mine = server.next_round(n_features=3, centre=k == 0)
        assert np.array_equal(mine.weights, round_.weights)
        server.aggregate(server._answers(Z, targets, mine, WordSource(0)))
    server.next_round()
    assert np.array_equal(server.coef_, whole.coef_)
    assert server.n_rounds_ == whole.n_rounds_ == 3
    with pytest.raises(ValueError, match="centre must be False"):
        server.next_round(centre=True)
    with pytest.raises(ValueError, match="centre must be False"):
        model(fit_intercept=False).next_round(n_features=3, centre=True)


def test_steps_about_a_centre_leave_the_margin_there_to_the_intercept():
    est, centre, tail = model(), np.array([0.3, -0.1, 0.2]), row_shape(3, 0.2)[1]
    est.next_round(n_features=3)
    for mean, moved in ((np.array([0.5, -0.2, 0.1, 0.0]), False), (np.array([0.0, 0.0, 0.0, 0.4]), True)):
        est._round, est._group = Round(1, np.zeros((1, 4)), centre), SimpleNamespace(mean_=mean, n_users_=1000)
        est._step()
        assert np.abs(est._round.weights).max() > 0.1
        assert (abs(est._round.weights[0] @ [*centre, tail]) > 1e-3) == moved


def test_batches_of_a_round_add_up_and_rounds_without_reports_take_no_step():
    X, y = rows(200)
    one, two, users = model(), model(), model(random_state=None)
    first = one.next_round(n_features=3)
    two.next_round(n_features=3)
    reports = users.privatize(X, y, first)
    one.aggregate(reports)
    two.aggregate(reports[:120]).aggregate(reports[120:])
    assert np.array_equal(one.next_round().weights, two.next_round().weights)
    assert np.array_equal(one.next_round().weights, two._round.weights)
    assert one.n_rounds_ == 1
    with pytest.raises(ValueError, match="no round is open"):
        model().aggregate(reports)
    with pytest.raises(ValueError, match="width"):
        one.aggregate(reports[:, :1])
    for wrong in (4, 0, 2.5, True):
        with pytest.raises(ValueError, match="n_features"):
            one.next_round(n_features=wrong)
    with pytest.raises(ValueError, match="n_features must be given"):
        model().next_round()
    with pytest.raises(ValueError, match="data_norm must be declared"):
        model(data_norm=None).next_round(n_features=3)
    with pytest.raises(ValueError, match="classes must be declared"):
        model(classes=None).privatize(X, y)


def test_a_round_keeps_the_parameters_of_the_first():
    X, y = rows(300)
    est, same = model(), model()
    for part, change in ((slice(0, 150), {}), (slice(150, 300), {"epsilon": 0.1, "fit_intercept": False,
                                                                "classes": ["x", "y"], "data_norm": None})):
        est.set_params(**change).partial_fit(X[part], y[part])
        same.partial_fit(X[part], y[part])
    assert np.array_equal(est.coef_, same.coef_)
    assert est.privacy_ == same.privacy_
    leaky = model(data_norm=None)
    with pytest.warns(UserWarning, match="data_norm was learned"):
        leaky.partial_fit(X, y)
    with pytest.warns(UserWarning, match="data_norm was learned"):
        leaky.set_params(data_norm=1.5).partial_fit(X, y)
    assert not leaky.privacy_.is_finite


def test_warm_starts_continue_and_partial_fits_take_classes():
    X, y = rows(400)
    est = model(n_rounds=3, warm_start=True).fit(X, y).fit(X, y)
    assert est.n_rounds_ == 6
    assert model(n_rounds=3).fit(X, y).fit(X, y).n_rounds_ == 3
    told = model(classes=None).partial_fit(X, y, classes=[False, True])
    assert np.array_equal(told.coef_, model().partial_fit(X, y).coef_)
    assert told.privacy_.is_finite
    with pytest.raises(ValueError, match="classes must be those"):
        told.partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("make", [model, regressor])
def test_few_rows_and_constant_columns_give_a_model(make, n):
    X, y = rows(n)
    est = make(warm_start=True).fit(np.zeros_like(X), y)
    assert np.isfinite(est.coef_).all()
    assert 1 <= est.n_rounds_ <= n  # (a group that is drawn may have no user)
    assert np.isfinite(est.fit(X, y).predict(X)).all()


# ---------------------------------------------------------------- who pays, and for what


def test_one_fit_costs_each_user_epsilon_once():
    X, y = rows(100)
    ledger = Ledger(3.0)
    est = model(2.0, ledger=ledger).fit(X, y)
    assert [(entry["estimator"], entry["epsilon"], entry["n_rows"]) for entry in ledger.entries()] == [
        ("LDPSGDClassifier", 2, 100)]
    assert (est.privacy_.model, est.privacy_.neighbours, float(est.privacy_.epsilon)) == ("local", Neighbours.LOCAL, 2)
    before = pickle.dumps(est.coef_)
    with pytest.raises(BudgetExceededError):
        est.partial_fit(X, y)
    assert pickle.dumps(est.coef_) == before
    with pytest.raises(BudgetExceededError):
        est.transformer_.privatize(np.full((1, est.coef_.size + 1), 0.1))


def test_reports_from_elsewhere_may_have_been_seeded():
    X, y = rows(50)
    server = model(random_state=None)
    server.aggregate(model().privatize(X, y, server.next_round(n_features=3)))
    assert server.privacy_.seeded is None
    assert server.partial_fit(X, y).privacy_.seeded is None
    assert server.set_params(random_state=0).partial_fit(X, y).privacy_.seeded is True


@pytest.mark.parametrize("mechanism", ["privunit", "duchi", "pm"])
@pytest.mark.parametrize("epsilon", [1e-6, 20.0, 80.0])
def test_extreme_settings_end(mechanism, epsilon):
    """In a model that is finite, or in an error that names epsilon before anything is charged."""
    X, y = rows(60)
    ledger = Ledger(100.0)
    est = model(epsilon, mechanism=mechanism, ledger=ledger)
    if (mechanism, epsilon) == ("duchi", 80.0):
        with pytest.raises(ValueError, match="epsilon is too small or too large"):
            est.fit(X, y)
        assert not ledger.entries()
        return
    est.fit(X, y)
    assert np.isfinite(est.coef_).all()
    assert np.isfinite(est.predict_proba(X)).all()


# ---------------------------------------------------------------- what is learned


@pytest.mark.ci
def test_noise_alone_moves_margins_by_about_the_learning_rate():
    """Of labels that are coins; n = 1,500 users, 4 seeds, 2 and 30 columns, two epsilons: nothing is tuned to them."""
    rng = np.random.default_rng(0)
    for d, epsilon in ((2, 0.5), (30, 0.5), (2, 4.0), (30, 4.0)):
        X, y = rng.uniform(-1, 1, (1500, d)) / np.sqrt(d), rng.random(1500) < 0.5
        size = np.sqrt(np.mean([np.square(model(epsilon, data_norm=1.0, random_state=seed).fit(X, y).decision_function(
            X)).mean() for seed in range(4)]))
        assert 0.05 < size < 3 * 0.3


@pytest.mark.ci
def test_rare_classes_are_found_by_the_intercept():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = rng.random(20_000) < 0.05
    shares = [model(1.0, random_state=seed).fit(X, y).predict_proba(X)[:, 1].mean() for seed in range(4)]
    assert np.mean(shares) < 0.25  # (it begins at 0.5)


def test_targets_beyond_the_bounds_are_clipped_and_units_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(2000)
    plain = regressor().fit(X, y)
    other = regressor(data_norm=150.0, target_bounds=(7.0, 13.0)).fit(X * 100, y + 10)
    assert np.allclose(other.coef_ * 100, plain.coef_)
    assert np.allclose(other.intercept_, plain.intercept_ + 10)
    far = np.where(np.arange(2000) == 3, 1e300, y)
    assert np.array_equal(regressor().fit(X, far).coef_, regressor().fit(X, np.minimum(far, 3)).coef_)
    for wrong in ((1, 0), (0, 0), (0, np.inf), "ab", 3, (0, 1, 2), ([0, 1], 2), (True, False)):
        with pytest.raises(ValueError, match="target_bounds"):
            regressor(target_bounds=wrong).fit(X, y)


@pytest.mark.parametrize(("name", "values"), {
    "mechanism": ("laplace", None, 3), "n_rounds": (0, 1.5, True, "4"), "learning_rate": (0, np.nan, "1"),
    "intercept_scaling": (0, 1e3), "fit_intercept": (1, None), "warm_start": (1,),
}.items())
def test_bad_parameters_are_named(name, values):
    X, y = rows(20)
    for value in values:
        with pytest.raises(ValueError, match=name):
            model(**{name: value}).fit(X, y)
