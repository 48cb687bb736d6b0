"""Noisy gradients of owners: exact sums, their sensitivity, what they cost, and what was predicted of it."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.datasets import load_yrbss
from dpestim.exceptions import BudgetExceededError, PrivacyLeakWarning
from dpestim.inputs import clipped_rows
from dpestim.linear_model import DPFederatedLinearModel, DPLogisticRegression
from dpestim.linear_model.base_rate import noisy_mean, sum_law
from dpestim.linear_model.gradient import Agreement, GradientOwner, GradientSums, Schedule, descend
from dpestim.links import LOGISTIC, softmax, squared
from dpestim.rng import WordSource

LINKS = {"logistic": LOGISTIC, "softmax": softmax(3), "squared": squared()}


class Silent:
    """A law without noise, to look at what is answered before it."""

    variance_steps = 0.0

    @staticmethod
    def add(codes, source):
        return codes


def targets_of(link, n, rng):
    if link.n_outputs > 1:
        return rng.integers(-1, link.n_outputs, n)
    return rng.choice([-1.0, 1.0], n) if link is LOGISTIC else rng.uniform(-1, 1, n)


@pytest.mark.parametrize("name", LINKS)
def test_answers_are_exact_sums_and_move_by_no_more_than_the_agreement_says(name):
    link, rng, n, d = LINKS[name], np.random.default_rng(0), 40, 5
    X = rng.standard_normal((n, d))
    X[:20] *= 1e-3
    rows, targets = clipped_rows(X, 1.0, 0.25), targets_of(link, n, rng)
    assert np.linalg.norm(rows, axis=1).max() <= 1
    real = Agreement.of(Fraction(1), Fraction(1, 10**5), n, d + 1, link, 4)
    most = float(real.law.sensitivity) / 2
    silent = Agreement(Silent(), real.bits, 1)
    worst = 0.0
    for trial in range(200):
        w = rng.standard_normal((link.n_outputs, d + 1)) * 10.0 ** rng.uniform(-2, 3)
        one = GradientOwner(rows, targets, link, silent, WordSource(0)).answer(w)
        other, others = rows.copy(), targets.copy()
        other[trial % n] = clipped_rows(rng.standard_normal((1, d)), 1.0, 0.25)
        others[trial % n] = targets_of(link, 1, rng)[0]
        two = GradientOwner(other, others, link, silent, WordSource(0)).answer(w)
        worst = max(worst, float(np.linalg.norm(one - two)) / (silent.unit * link.most ** (link.n_outputs == 1)))
    assert most / 4 < worst <= most  # the law is for sqrt(4) steps; and the bound is met within a factor of two
    assert worst > 0.5 * most


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("sparse", [False, True])
def test_slopes_of_a_row_do_not_depend_on_which_rows_are_beside_it(name, sparse):
    link, rng, seen = LINKS[name], np.random.default_rng(0), []
    rows, targets = clipped_rows(rng.standard_normal((999, 13)), 1.0, 0.25), targets_of(link, 999, rng)
    told = replace(link, slopes=lambda margins, own: seen.append(margins) or link.slopes(margins, own))
    offset = rng.standard_normal(link.n_outputs) if link.n_outputs > 1 else 0.3
    for w in rng.standard_normal((5, link.n_outputs, 14)):
        whole, *parts = (GradientSums(csr_array(rows[a:b]) if sparse else rows[a:b], targets[a:b], told, 16, offset)(w)
                         for a, b in ((0, 999), (0, 1), (1, 8), (8, 700), (700, 999)))
        assert (sum(parts) == whole).all()
        whole, *parts = (seen.pop(0) for _ in range(5))
        assert (np.concatenate(parts) == whole).all()


def test_a_step_that_is_longer_than_the_bound_would_be_found():
    """The check above rejects rows of norm 4."""
    rows = np.full((2, 4), 2.0)
    silent = Agreement(Silent(), 16, 1)
    one, two = (GradientOwner(rows, np.array(t), LOGISTIC, silent, WordSource(0)).answer(np.zeros((1, 4)))
                for t in ([1.0, 1.0], [1.0, -1.0]))
    bound = float(Agreement.of(Fraction(1), Fraction(1, 10**5), 2, 4, LOGISTIC, 1).law.sensitivity) * silent.unit
    assert np.linalg.norm(one - two) > bound


def test_all_steps_together_cost_what_one_gaussian_vector_does():
    one, many = (Agreement.of(Fraction(1), Fraction(1, 10**5), 1000, 4, LOGISTIC, t).law for t in (1, 25))
    assert many.sigma == pytest.approx(5 * one.sigma, rel=1e-9)
    assert many.sensitivity >= 5 * 2 * 4 ** pure_bits(1000)
    pure = Agreement.of(Fraction(1), Fraction(0), 1000, 4, LOGISTIC, 25).law
    assert pure.epsilon == Fraction(1, 25)
    assert pure.sensitivity >= 2 * 2 * 4**pure_bits(1000)


def pure_bits(n):
    return Agreement.of(Fraction(1), Fraction(0), n, 4, LOGISTIC, 1).bits


def test_an_owner_answers_so_often_and_no_copy_of_it_does():
    agreement = Agreement.of(Fraction(1), Fraction(1, 10**5), 3, 2, LOGISTIC, 2)
    owner = GradientOwner(np.zeros((3, 2)), np.ones(3), LOGISTIC, agreement, WordSource(0))
    first, second = owner.answer(np.zeros((1, 2))), owner.answer(np.zeros((1, 2)))
    assert not np.array_equal(first, second)
    with pytest.raises(ValueError, match="all answers"):
        owner.answer(np.zeros((1, 2)))
    with pytest.raises(TypeError, match="copied"):
        pickle.dumps(owner)


@pytest.mark.parametrize("curvature", [0.0, 0.01, 0.25])
def test_a_path_is_what_a_descent_on_a_quadratic_does(curvature):
    schedule = Schedule(21, 3.0, 0.01)
    left, response = schedule.path(curvature)
    assert descend([lambda w: curvature * (w - 1)], np.ones(1), Schedule(21, 3.0, 0.0), (1, 1))[0, 0] == pytest.approx(
        1 - Schedule(21, 3.0, 0.0).path(curvature)[0])
    for at in (0, 7, 20):
        pushes = iter([step == at for step in range(21)])
        pushed = descend([lambda w, pushes=pushes: curvature * w + next(pushes)], np.ones(1), schedule, (1, 1))[0, 0]
        assert pushed == pytest.approx(response[at], abs=1e-12)
    assert 0 <= abs(left) <= 1


def data(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + X[:, 1] > 0.5 * rng.standard_normal(n), np.arange(n) % 3


@pytest.mark.ci
@pytest.mark.law
def test_the_predicted_cost_is_near_the_measured_one():
    """n = 6,000, 20 seeds: with curvatures of public rows, within a factor of three."""
    X, y, owners = data()
    public, answers, _ = data(seed=1)
    model = DPFederatedLinearModel([0.5, 1.0, 1.0], delta=1e-6, data_norm=1.75, classes=[False, True])
    curvatures = model.pilot_curvatures(public, answers)
    predicted = model.predict_fitness_cost([2000] * 3, n_features=3, curvatures=curvatures)
    measured = [model.set_params(random_state=seed).fit(X, y, owners).mean_loss(X, y) for seed in range(20)]
    loud = DPFederatedLinearModel(70.0, delta=0.5, data_norm=1.75, classes=[False, True], n_steps=model.n_steps_,
                                  random_state=0)
    without = loud.fit(X, y).mean_loss(X, y)
    rise = np.mean(measured) - without
    assert rise / 3 < predicted < 3 * rise
    assert model.predict_fitness_cost([2000] * 3, n_features=3) == model.predicted_fitness_cost_
    # four times as many rows cost much less
    assert model.predict_fitness_cost([8000] * 3, n_features=3, curvatures=curvatures) < predicted / 2


def test_curvatures_of_a_softmax_are_those_of_its_loss():
    """Their sum is the trace of the Hessian, and where all rows are alike they are its eigenvalues."""
    X, _, _ = data(600)
    y = np.arange(600) % 3
    model = DPFederatedLinearModel(1.0, delta=1e-6, data_norm=1.75, classes=[0, 1, 2])
    found = model.pilot_curvatures(X, y)
    rows = clipped_rows(X, 1.75, 0.25)
    assert found.shape == (2 * 4,)
    assert found.sum() == pytest.approx(np.square(rows).sum() / 600 * 2 / 3, rel=0.05)  # shares near 1/3: 1 - sum p^2
    assert found[:4] == pytest.approx(np.linalg.eigvalsh(rows.T @ rows / 600) / 3, rel=0.05)
    assert model.predict_fitness_cost([600], n_features=3, n_classes=3, curvatures=found) > 0


@pytest.mark.parametrize("n_owners", [1, 3])
def test_a_fit_without_signal_is_hardly_worse_than_the_mean(n_owners):
    """n = 1,000, d = 20, 3 seeds: the squared error is below 1.25 of the variance at every epsilon."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 20)), rng.standard_normal(1000)
    for epsilon in (0.5, 1.0, 4.0):
        for seed in range(3):
            model = DPFederatedLinearModel(epsilon, loss="squared", delta=1e-5, data_norm=20**0.5,
                                           target_bounds=(-4, 4), random_state=seed)
            assert np.square(y - model.fit(X, y, np.arange(1000) % n_owners).predict(X)).mean() < 1.25 * y.var()


def test_margins_start_at_the_mean_of_the_target():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10_000, 3)), rng.normal(1e5, 3e4, 10_000)
    model = DPFederatedLinearModel(1.0, loss="squared", delta=1e-5, data_norm=2.0, target_bounds=(0, 1e6),
                                   random_state=0)
    assert model.fit(X, y, np.arange(10_000) % 2).intercept_ == pytest.approx(1e5, rel=0.15)
    start = model.set_params(fit_intercept=False).fit(X, y)
    assert start.intercept_ == 5e5  # (the middle of the bounds: nothing was learned)


@pytest.mark.parametrize("shares", [(0.99, 0.01), (0.9, 0.025, 0.025, 0.025, 0.025)])
def test_no_fit_falls_far_behind_the_base_rate(shares):
    """n = 1,000, d = 20, pure epsilon 1, 3 seeds: log-loss within .15 of the prior's."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 20)), rng.choice(len(shares), p=shares, size=1000)
    prior = -np.mean(np.log(np.bincount(y) / 1000)[y])
    for seed in range(3):
        model = DPFederatedLinearModel(1.0, delta=0.0, data_norm=20**0.5, classes=list(range(len(shares))),
                                       random_state=seed).fit(X, y, np.arange(1000) % 2)
        assert -np.mean(model.predict_log_proba(X)[np.arange(1000), y]) < prior + 0.15


def test_the_start_is_paid_from_each_owners_epsilon():
    """What answers cost and what the start costs add up to epsilon; a target moves the sum by its law's reach."""
    for model, link in ((DPFederatedLinearModel([1.0, 0.3], delta=1e-6), softmax(3)),
                        (DPFederatedLinearModel([1.0, 0.3], delta=0.0, loss="squared"), squared())):
        agreements, _, schedule, counting = model._agree([300, 50_000], 4, link)
        for made, part, epsilon in zip(agreements, counting, (Fraction(1), Fraction(0.3))):
            paid = made.law.epsilon * (1 if made.law.delta else schedule.n_steps)
            assert 0 < part <= epsilon / 10
            assert abs(paid + part - epsilon) < Fraction(1, 10**9)
    for bits in (4, 20):
        ends = np.rint(np.array([-1.0, 1.0]) * 2.0**bits)
        assert sum_law(Fraction(1), bits).sensitivity == ends[1] - ends[0]


def test_a_noisy_mean_has_the_noise_it_promises():
    """n = 400 means of 1,000 rows: their variance is the law's within 5 standard errors (of Laplace: kurtosis 6)."""
    values = np.full(1000, 0.25)
    found = np.array([noisy_mean(values, Fraction(1, 10), WordSource(seed), 0) for seed in range(400)])
    assert found[0, 1] == pytest.approx(2 * (2 / (1000 * 0.1)) ** 2, rel=1e-3)
    ratio = np.square(found[:, 0] - 0.25).mean() / found[0, 1]
    assert abs(ratio - 1) < 5 * np.sqrt(5 / 400)
    assert abs(2 * ratio - 1) > 5 * np.sqrt(5 / 400)  # twice as much would be found


def test_each_owner_pays_from_its_own_ledger():
    X, y, owners = data(600)
    ledgers = [Ledger(1.0, delta=1e-5), Ledger(3.0, delta=1e-5), Ledger(9.0, delta=1e-5)]
    model = DPFederatedLinearModel([0.5, 1.0, 2.0], delta=1e-6, data_norm=1.75, classes=[False, True], ledger=ledgers)
    model.fit(X, y, owners)
    assert [float(ledger.spent().epsilon) for ledger in ledgers] == [0.5, 1.0, 2.0]
    assert [float(promise.epsilon) for promise in model.privacy_by_owner_] == [0.5, 1.0, 2.0]
    assert model.privacy_.epsilon == 2
    with pytest.raises(BudgetExceededError):
        DPFederatedLinearModel([2.0, 1.0, 1.0], delta=1e-6, data_norm=1.75, classes=[False, True],
                               ledger=ledgers).fit(X, y, owners)
    shared = Ledger(2.0, delta=1e-5)
    model.set_params(ledger=shared).fit(X, y, owners)
    assert shared.spent().epsilon == 2


@pytest.mark.parametrize(("params", "owners", "message"), [
    ({"epsilon": [1.0, 1.0]}, np.zeros(6, int) + 2, "owners must be below 2"),
    ({"epsilon": [1.0, 0.0]}, None, "epsilon"),
    ({"epsilon": []}, None, "epsilon"),
    ({"loss": "hinge"}, None, "loss"),
    ({"weights": "equal"}, None, "weights"),
    ({"n_steps": 1.5}, None, "n_steps"),
    ({}, np.zeros(5, int), "owners"),
    ({}, np.zeros(6), "owners"),
    ({"ledger": [Ledger(1.0)] * 2}, None, "ledger"),
])
def test_what_does_not_fit_is_refused(params, owners, message):
    X, y, _ = data(6)
    model = DPFederatedLinearModel(**{"delta": 1e-6, "data_norm": 1.75, "classes": [False, True], **params})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, owners)
    assert not hasattr(model, "coef_")


def test_real_data_are_fitted_as_well_as_without_privacy():
    """12,579 teenagers at three schools: AUC within .02, height from age and sex within .04 of R^2."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import roc_auc_score

    bunch = load_yrbss()
    columns = {name: bunch.data[:, bunch.feature_names.index(name)] for name in bunch.feature_names}
    sizes = np.stack([columns["age"].astype(float) - 15, 10 * (columns["height"].astype(float) - 1.7),
                      (columns["weight"].astype(float) - 65) / 15], 1)
    male = columns["gender"] == "male"
    owners = np.arange(len(male)) % 3
    model = DPFederatedLinearModel(1.0, delta=1e-6, data_norm=3.0, classes=[False, True], random_state=0)
    model.fit(sizes, male, owners)
    plain = LogisticRegression().fit(sizes, male).decision_function(sizes)
    assert roc_auc_score(male, model.predict_proba(sizes)[:, 1]) > roc_auc_score(male, plain) - 0.02
    body = np.stack([sizes[:, 0], sizes[:, 2], 2.0 * male - 1], 1)
    tall = columns["height"].astype(float)
    fitted = DPFederatedLinearModel(1.0, delta=1e-6, loss="squared", data_norm=3.0, target_bounds=(1.2, 2.2),
                                    random_state=0)
    fitted.fit(body, tall, owners)
    assert fitted.score(body, tall) > LinearRegression().fit(body, tall).score(body, tall) - 0.04
    assert math.isfinite(fitted.intercept_)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan, 1.1e4])
def test_a_question_that_floats_cannot_answer_is_refused_before_it_counts(wrong):
    rows, targets = np.array([[0.0, 1.0], [0.5, 0.0]]), np.array([1.0, -1.0])
    owner = GradientOwner(rows, targets, LOGISTIC, Agreement(Silent(), 16, 1), WordSource(0))
    for w in (np.array([[wrong, 0.0]]), np.full((1, 3), 0.5), np.zeros(2)):
        with pytest.raises(ValueError, match="w must have shape"):
            owner.answer(w)
    assert owner.answer(np.zeros((1, 2))).tolist() == [[0.25, -0.5]]


def test_the_server_asks_nothing_that_owners_refuse():
    asked = []

    def far(w):
        asked.append(float(np.sqrt(np.square(w).sum())))
        return np.full((2, 3), -1e12 * (-1) ** len(asked))

    assert np.isfinite(descend([far], np.ones(1), Schedule(20, 1.0, 0.0), (2, 3))).all()
    assert 1e3 < max(asked) <= 1e4


def test_several_ledgers_know_of_scores_and_are_all_asked_before_one_pays():
    X, y, owners = data(600)
    ledgers = [Ledger(3.0, delta=1e-5, durability="fast") for _ in range(3)]
    model = DPFederatedLinearModel(1.0, delta=1e-6, data_norm=1.75, classes=[False, True], ledger=ledgers)
    model.fit(X, y, owners)
    model.score(X, y)
    model.mean_loss(X, y)
    with config_context(strict=True):
        model.predict(X)
    assert [len(ledger) for ledger in ledgers] == [6, 6, 6]  # a release with its reservation, and three scores
    for refused in ([1.0, 1.0, 2.5], [0.1, 0.1, 2.1]):
        with pytest.raises(BudgetExceededError):
            model.set_params(epsilon=refused).fit(X, y, owners)
    with pytest.raises(BudgetExceededError):  # one ledger twice pays the sum
        model.set_params(epsilon=[1.1, 1.1, 0.1], ledger=[ledgers[0], ledgers[0], ledgers[1]]).fit(X, y, owners)
    with pytest.raises(ValueError, match="ledger must be one"):
        model.set_params(epsilon=1.0, ledger=[]).fit(X, y, owners)
    assert [len(ledger) for ledger in ledgers] == [6, 6, 6]


def test_predictions_clip_rows_as_fits_do_and_rows_may_be_sparse():
    X, y, owners = data(600)
    X[:300, 2] = 0.0
    model = DPFederatedLinearModel(5.0, delta=1e-6, data_norm=1.0, classes=[False, True], random_state=0)
    model.fit(X, y, owners)
    twin = DPFederatedLinearModel(5.0, delta=1e-6, data_norm=1.0, classes=[False, True], random_state=0)
    twin.fit(csr_array(X), y, owners)
    np.testing.assert_allclose(twin.coef_, model.coef_, rtol=1e-9)
    far = np.array([[3.0, 4.0, 0.0], [0.6, 0.8, 0.0]])
    short, long_ = model.predict_log_proba(far)
    np.testing.assert_allclose(short, long_, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(csr_array(far)), model.predict_proba(far), rtol=1e-9)
    np.testing.assert_allclose(twin.pilot_curvatures(csr_array(X), y), model.pilot_curvatures(X, y), rtol=1e-9)
    with pytest.warns(PrivacyLeakWarning):  # squares of these overflow
        wide = model.set_params(data_norm=None).fit(X * 1e200, y, owners)
    assert np.isfinite(wide.coef_).all()
    assert wide.data_norm_ == 1e100


def test_no_rows_are_fitted_in_strict_mode_with_owners_too():
    model = DPFederatedLinearModel(delta=1e-6, data_norm=1.0, classes=[0, 1], random_state=0)
    with config_context(strict=True):
        model.fit(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0, int))
    assert np.isfinite(model.coef_).all()


def test_classes_are_counted_with_words_of_their_own(monkeypatch):
    """A source whose parts are used is not used besides."""
    used = []
    reader, part = WordSource.reader, WordSource.part
    monkeypatch.setattr(WordSource, "reader", lambda self: used.append(("reader", self._key)) or reader(self))
    monkeypatch.setattr(WordSource, "part", lambda self, k: used.append(("part", self._key)) or part(self, k))
    X, y, _ = data(300)
    DPLogisticRegression(2.0, delta=1e-5, perturbation="gradient", data_norm=1.0, classes=[False, True],
                         random_state=0).fit(X, y)
    assert len({key for kind, key in used if kind == "reader"}) > 1
    assert not {key for kind, key in used if kind == "reader"} & {key for kind, key in used if kind == "part"}


@pytest.mark.parametrize("wrong", [{"n_classes": 1}, {"n_classes": 2.5}, {"n_features": 0}, {"n_features": "3"}])
def test_costs_are_predicted_for_what_there_is(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DPFederatedLinearModel(1.0, delta=1e-6).predict_fitness_cost([100], **{"n_features": 3, **wrong})


def test_a_list_of_no_epsilon_is_said_to_be_short():
    with pytest.raises(ValueError, match="one for each owner"):
        DPFederatedLinearModel([], delta=1e-6).predict_fitness_cost([100], n_features=3)


def test_exact_functions_of_rows_are_entered_in_the_ledger():
    ledger = Ledger(1)
    model = DPFederatedLinearModel(1.0, delta=1e-6, classes=[0, 1], data_norm=2.0, ledger=ledger)
    model.pilot_curvatures(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2)
    assert ledger.spent().epsilon == 0
    assert "pilot_curvatures" in str(ledger.to_frame()["estimator"].tolist())
