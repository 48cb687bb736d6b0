"""The private count of the classes: its law, its price, and that no model falls behind the prior."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from dpestim.linear_model import DPLogisticRegression, base_rate
from dpestim.linear_model.objective import calibrate
from dpestim.linear_model.shapes import BINARY, OneVersusRest, Softmax
from dpestim.linear_model.softmax import SoftmaxLoss
from dpestim.linear_model.solver import LARGEST_OFFSET, MarginLoss
from dpestim.rng import WordSource


def test_the_share_is_a_fraction_and_small():
    assert base_rate.share_of(Fraction(1), 10**6) == Fraction(100, 10**6)
    assert base_rate.share_of(Fraction(1, 10), 10) == Fraction(1, 100)
    assert 0 < base_rate.share_of(Fraction(80), 0) <= 8


def test_a_row_moves_counts_by_no_more_than_the_law_allows():
    """L1, over all ways to change a row: what the sensitivity is."""
    for k in (2, 3, 5):
        allowed = base_rate.count_law(Fraction(1), k).sensitivity
        counts = [np.eye(k, dtype=int)[y] if y >= 0 else np.zeros(k, int) for y in range(-1, k)]
        moved = max(np.abs((a - b)[k == 2 :]).sum() for a in counts for b in counts)
        assert moved == allowed


def test_counts_have_the_law_they_promise():
    """n = 4000 counts: their mean absolute error is the law's within 5 standard errors, and half the noise is not."""
    codes = np.repeat([0, 1], [600, 400])
    epsilon = Fraction(1, 20)
    law = base_rate.count_law(epsilon, 2)
    drawn = law.add(np.zeros(4000, np.int64), WordSource(1), 0)
    wanted = 20.0
    assert abs(np.abs(drawn).mean() - wanted) < 5 * wanted / np.sqrt(4000)
    counts = base_rate.class_counts(codes, 2)
    shares = [base_rate.class_shares(counts, 1000, epsilon, WordSource(seed), 0)[1] for seed in range(200)]
    assert 0.5 * np.sqrt(2) * 20 / 1000 < np.std(shares) < 2 * np.sqrt(2) * 20 / 1000


@pytest.mark.parametrize("codes", [[], [-1, -1], [0] * 50, [1] * 50])
@pytest.mark.parametrize("k", [2, 4])
def test_odd_counts_give_finite_offsets(codes, k):
    for epsilon in (Fraction(1, 10**10), Fraction(8)):
        counts = base_rate.class_counts(np.array(codes, int), k)
        shares = base_rate.class_shares(counts, len(codes), epsilon, WordSource(0), 0)
        assert (shares > 0).all()
        assert shares.sum() == pytest.approx(1)
        for shape in (BINARY,) if k == 2 else (Softmax(k), OneVersusRest(k)):
            offset = base_rate.offsets_of(shares, shape)
            assert offset.shape == (1 if k == 2 else k,)
            assert np.abs(offset).max() <= LARGEST_OFFSET


def test_counts_that_differ_by_noise_alone_are_taken_as_equal():
    """Ten classes of 135 rows, noise of scale 27: hardly a trace of it is left; classes of 900 and 50 stay apart."""
    epsilon = Fraction(2, 27)
    equal = [base_rate.class_shares(np.full(10, 135), 1350, epsilon, WordSource(seed), 0) for seed in range(30)]
    assert np.median(np.ptp(equal, axis=1)) < 0.03
    counts = np.array([900, *[50] * 9])
    apart = [base_rate.class_shares(counts, 1350, epsilon, WordSource(seed), 0)[0] for seed in range(30)]
    assert np.median(apart) > 0.55


def test_offsets_say_the_shares_at_zero():
    shares = np.array([0.7, 0.2, 0.1])
    three = np.exp(base_rate.offsets_of(shares, Softmax(3)))
    assert three / three.sum() == pytest.approx(shares)
    assert expit(base_rate.offsets_of(shares, OneVersusRest(3))) == pytest.approx(shares)
    assert expit(base_rate.offsets_of(np.array([0.7, 0.3]), BINARY)) == pytest.approx([0.3])


def test_losses_shift_every_margin():
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(-1, 1, (50, 3)), rng.integers(0, 2, 50)
    signs, w = (2 * codes - 1).astype(np.int8), np.array([0.5, -1.0, 2.0, 0.3])
    loss = MarginLoss(X, signs, 2.0, 0.25, offset=-1.3)
    plain = MarginLoss(X, signs, 2.0, 0.25)
    # the constant of a row is `tail`: a larger coefficient of it is the same shift
    same = plain.evaluate(w + np.array([0, 0, 0, -1.3 / plain.tail]), True)
    for a, b in zip(loss.evaluate(w, True), same):
        assert np.allclose(a, b, rtol=1e-12)
    soft = SoftmaxLoss(X, codes, 2, 2.0, 0.25, offset=np.array([0.4, -0.9]))
    # the binary loss is the softmax of two classes whose margins differ by w z; offsets differ by 1.3
    assert soft.evaluate(-w / np.sqrt(2))[0] == pytest.approx(loss.evaluate(w)[0], rel=1e-9)


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_nothing_falls_behind_the_prior(epsilon, delta):
    """1,000 rows, a tenth positive, one of 30 columns matters; 12 seeds. Without the count log-loss is far above."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 30)) / np.sqrt(30)
    y = rng.random(3000) < expit(X[:, 0] * 12 - 2.8)
    rate = y[:1000].mean()
    prior = log_loss(y[1000:], np.full(2000, rate))
    found, right, free = [], [], []
    for seed in range(12):
        model = DPLogisticRegression(epsilon, delta=delta, data_norm=1.0, classes=[False, True], random_state=seed)
        model.fit(X[:1000], y[:1000])
        found.append(log_loss(y[1000:], model.predict_proba(X[1000:])[:, 1]))
        right.append(model.score(X[1000:], y[1000:]))
        model.set_params(fit_intercept=False).fit(X[:1000], y[:1000])
        free.append(log_loss(y[1000:], model.predict_proba(X[1000:])[:, 1]))
    assert np.median(found) <= prior + 0.015
    assert np.median(right) >= 1 - y[1000:].mean() - 0.005
    assert np.median(free) > prior + 0.2, "what the check is there for"


def test_evenness_is_one_for_equal_classes_and_zero_for_one():
    for k in (2, 3, 10):
        assert base_rate.evenness(np.full(k, 1 / k)) == pytest.approx(1)
        assert base_rate.evenness(np.eye(k)[0]) == 0
    assert base_rate.evenness(np.array([0.99, 0.01])) == pytest.approx(4 * 0.99 * 0.01)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5)])
def test_strengths_rise_for_rare_classes_only_and_only_where_rows_are_few(delta):
    def strength(even, n, shape=BINARY, size=21, epsilon=Fraction(1)):
        return calibrate("objective", epsilon, delta, None, n, size, shape, even).strength

    for shape in (BINARY, Softmax(5), OneVersusRest(5)):
        for n in (100, 10_000):
            rising = [strength(even, n, shape) for even in (1.0, 0.5, 0.04, 0.0)]
            assert rising == sorted(rising)
    for n in (0, 100, 10_000, 10**6):  # what the rule says of equal classes is less than they have anyhow
        assert strength(1.0 - 1e-9, n) == strength(1.0, n)
    assert strength(0.04, 1000) > 1.5 * strength(1.0, 1000)
    assert strength(0.04, 100_000) == strength(1.0, 100_000)
    # an explicit C is obeyed
    assert calibrate("objective", Fraction(1), delta, Fraction(50), 1000, 21, BINARY, 0.0).strength == 50


def test_the_strength_follows_the_released_count_alone():
    """The same noisy count, the same C_; an explicit C, and output perturbation, look at no count."""
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 20)) / np.sqrt(20)
    rare, even = np.arange(1000) % 50 == 0, np.arange(1000) % 2 == 0
    params = {"data_norm": 1.0, "classes": [False, True], "random_state": 3}
    fits = [DPLogisticRegression(1.0, **params).fit(X, y) for y in (rare, even)]
    assert fits[0].C_ < 0.8 * fits[1].C_
    assert fits[0].C_ == DPLogisticRegression(1.0, **params).fit(-X, rare[::-1]).C_
    for more in ({"C": 0.01}, {"perturbation": "output"}, {"fit_intercept": False}):
        assert len({DPLogisticRegression(1.0, **params, **more).fit(X, y).C_ for y in (rare, even)}) == 1


@pytest.mark.ci
@pytest.mark.law
@pytest.mark.parametrize("n", [1000, 10_000])
def test_a_class_of_one_per_cent_does_not_fall_behind_the_prior(n):
    """20 columns, epsilon 1, delta 1e-5, 5 seeds; before the strength followed the count the loss was 0.004 more."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (n + 10_000, 20))
    w = rng.standard_normal(20)
    y = rng.random(len(X)) < expit(X @ (1.5 * w / np.linalg.norm(w)) - 5.0)
    prior = log_loss(y[n:], np.full(10_000, y[:n].mean()))
    found, before = [], []
    for seed in range(5):
        model = DPLogisticRegression(1.0, delta=1e-5, data_norm=2.9, classes=[False, True], random_state=seed)
        found.append(log_loss(y[n:], model.fit(X[:n], y[:n]).predict_proba(X[n:])[:, 1]))
        C = 1 / calibrate("objective", Fraction(9, 10), Fraction(1, 10**5), None, n, 21).strength
        before.append(log_loss(y[n:], model.set_params(C=C).fit(X[:n], y[:n]).predict_proba(X[n:])[:, 1]))
    print(n, prior, np.median(found), np.median(before))
    assert np.median(found) <= prior + 0.003
    assert np.median(before) > np.median(found) + 0.002, "what the check is there for"


def test_a_mean_has_the_law_it_promises():
    """Sensitivity over all ways to change a row; n = 300 means: their mean absolute error within 5 standard errors."""
    assert base_rate.mean_law(Fraction(1)).sensitivity == base_rate.STEPS == np.rint(1.0 * base_rate.STEPS)
    epsilon, numbers = Fraction(1, 20), np.full(1000, 0.5)
    found = np.array([base_rate.mean_of(numbers, epsilon, WordSource(seed), 0) for seed in range(300)])
    wanted = 20 / 1000  # (of Laplace noise; half of it is 8 standard errors away)
    assert abs(np.abs(found - 0.5).mean() - wanted) < 5 * wanted / np.sqrt(300)
    for odd in (np.zeros(0), np.zeros(5), np.ones(5)):
        for epsilon in (Fraction(1, 10**9), Fraction(20)):
            assert 0 < base_rate.mean_of(odd, epsilon, WordSource(1), 0) <= 1
