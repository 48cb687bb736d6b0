"""The Bayesian adversary: closed forms, large laws, groups and ties, hash families, and what it refuses."""

import math

import numpy as np
import pytest
from scipy import stats

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.audit import BayesianAdversary, Success
from dpestim.local import (
    BLHFrequencyEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    LaplaceTransformer,
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
    SDGRRFrequencyEstimator,
    SDPMTransformer,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
    SWTransformer,
    URRFrequencyEstimator,
)
from dpestim.local.categories.hashing import empty_buckets, success_of_hashes
from dpestim.local.guessing import BestGuess, Runs

#: Significance of the comparisons with samples.
ALPHA = 1e-6


def close(value):
    return pytest.approx(value, rel=1e-12)


def expected(cls, epsilon, d, **more):
    return BayesianAdversary(cls(epsilon, categories=[range(d)], **more)).expected_success()


# ---------------------------------------------------------------- closed forms (the realised p and q, else epsilon)


@pytest.mark.parametrize("d", [2, 5, 100, 100_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response(epsilon, d):
    e = math.exp(epsilon)
    assert expected(GRRFrequencyEstimator, epsilon, d) == pytest.approx(e / (e + d - 1), rel=1e-9)
    assert expected(GRRFrequencyEstimator, epsilon, d) == close(
        float(GRRFrequencyEstimator(epsilon, categories=[range(d)]).randomizer().p_star))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_overall_more_is_guessed_of_sensitivity_aware_responses_than_of_plain_ones(epsilon):
    """The paper's figure, equal to GRR's, is that of high users only (FORMULAS 5.10, erratum D9)."""
    d, low = 1000, 400
    e, high = math.exp(epsilon), d - low
    est = SDGRRFrequencyEstimator(epsilon, categories=[range(d)], low_sensitivity=[range(low)])
    spy = BayesianAdversary(est)
    grr = expected(GRRFrequencyEstimator, epsilon, d)
    assert spy.expected_success("high") == close(grr)
    assert spy.expected_success("low") == pytest.approx((low + e - 1) / (d + e - 1), rel=1e-9)
    assert spy.expected_success() == pytest.approx((high * e + low * (low + e - 1)) / (d * (d + e - 1)), rel=1e-9)
    assert spy.expected_success() > 50 * grr / e


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_utility_optimised_responses(epsilon):
    d, s, e = 50, 10, math.exp(epsilon)
    spy = BayesianAdversary(URRFrequencyEstimator(epsilon, categories=[range(d)], non_sensitive=[range(s, d)]))
    assert spy.expected_success("sensitive") == spy.expected_success("high") == pytest.approx(e / (s + e - 1), rel=1e-9)
    assert spy.expected_success("non-sensitive") == spy.expected_success("low")
    assert spy.expected_success("low") == pytest.approx((e - 1) / (s + e - 1), rel=1e-9)
    wanted = (s * e + (d - s) * (e - 1)) / (d * (s + e - 1))
    assert spy.expected_success() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("d", [3, 64, 5000])
@pytest.mark.parametrize("cls", [OUEFrequencyEstimator, SUEFrequencyEstimator])
def test_unary_encoding(cls, d):
    law = cls(1.0, categories=[range(d)]).randomizer()
    p, q = float(law.p_star), float(law.q_star)
    wanted = p / (d * q) * -math.expm1(d * math.log1p(-q)) + (1 - p) * (1 - q) ** (d - 1) / d
    assert expected(cls, 1.0, d) == close(wanted)


@pytest.mark.parametrize("d", [3, 64, 5000])
def test_subset_selection(d):
    law = SSFrequencyEstimator(1.0, categories=[range(d)]).randomizer()
    assert expected(SSFrequencyEstimator, 1.0, d) == close(float(law.p_star) / law.weights.k)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_hadamard_response(epsilon):
    d, e = 63, math.exp(epsilon)  # with one more symbol than values each symbol has supporters
    law = HRFrequencyEstimator(epsilon, categories=[range(d)]).randomizer()
    assert (law.n_blocks, law.n_counts) == (1, d + 1)
    assert expected(HRFrequencyEstimator, epsilon, d) == pytest.approx(2 * e / ((e + 1) * d), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_hadamard_response_against_its_matrix(epsilon):
    """With one block and with many, and priors whose ratio is just that of two weights, so that there are ties."""
    d, rng = 30, np.random.default_rng(0)
    law = HRFrequencyEstimator(epsilon, categories=[range(d)]).randomizer()
    runs = Runs.of_matrix([[float(p) for p in row] for row in law.transition_matrix()])
    ratio = float(law.support_odds[0] / law.support_odds[1])
    for weights in (np.ones(d), rng.random(d), rng.integers(0, 4, d), np.where(np.arange(d) % 3 == 1, ratio, 1.0)):
        prior = weights / weights.sum()
        assert law.guessing(prior) == pytest.approx(BestGuess(runs, prior).success, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("cls", [PMTransformer, SWTransformer])
def test_windows_at_the_finest_grid(cls):
    est = cls(1.0, bounds=(0.0, 1.0))
    law = est.randomizer()
    inside = law.weights.inside / 2**64 * law.n_counts / law.n_inputs  # each code's best input has the larger weight
    spy = BayesianAdversary(est)
    assert spy.expected_success() == close(inside)
    point = np.zeros(law.n_inputs)
    point[[5, 20_000]] = 0.9, 0.1  # windows that do not meet: nobody guesses the rarer one where e < 9
    spy.prior = point
    assert spy.expected_success() == close(0.9)


def test_a_level_of_the_sensitivity_aware_law_is_guessed_as_often_as_it_is_told():
    est = SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.25, 0.75))
    law, spy = est.randomizer(), BayesianAdversary(est)
    assert spy.expected_success("low") == close(law.own / 2**64)
    high, low, n = spy.expected_success("high"), spy.expected_success("low"), law.n_inputs
    assert spy.expected_success() == close(((n - 16) * high + 16 * low) / n)


def test_laws_by_tables_are_read_from_them():
    spy = BayesianAdversary(LaplaceTransformer(1.0, bounds=(0.0, 1.0)))
    matrix = spy.estimator.randomizer()._matrix
    assert spy.expected_success() == close(matrix.max(axis=0).sum() / 257)


# ---------------------------------------------------------------- the prior, ties and groups


def test_a_sure_prior_needs_no_report():
    for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator, SSFrequencyEstimator, OLHFrequencyEstimator):
        spy = BayesianAdversary(cls(1.0, categories=[range(6)]), prior=[0, 0, 1, 0, 0, 0])
        assert spy.expected_success() == close(1.0)


def test_beyond_epsilon_the_prior_decides():
    """Where one value is more than e^epsilon times as probable as any other, no report changes the guess."""
    prior = np.full(5, 0.05) + 0.75 * np.eye(5)[3]
    for cls in (GRRFrequencyEstimator, SUEFrequencyEstimator, HRFrequencyEstimator, BLHFrequencyEstimator):
        assert BayesianAdversary(cls(1.0, categories=[range(5)]), prior).expected_success() == close(0.8)
        assert BayesianAdversary(cls(4.0, categories=[range(5)]), prior).expected_success() > 0.801


def test_how_ties_are_broken_changes_groups_and_not_the_whole():
    """A report that supports two values alike: whoever always named the low one would be right about it more often."""
    law = np.array([[0.4, 0.6], [0.4, 0.6], [0.7, 0.3]])
    runs, prior = Runs.of_matrix(law), np.array([0.4, 0.4, 0.2])
    best = BestGuess(runs, prior)
    assert best.n_tied.tolist() == [2, 2]
    assert best.success == pytest.approx([0.5, 0.5, 0.0])
    low_first = BestGuess(runs, prior * [1 + 1e-9, 1, 1])
    assert low_first.success == pytest.approx([1.0, 0.0, 0.0])
    assert prior @ best.success == pytest.approx(prior @ low_first.success)


def test_guesses_are_spread_evenly_over_ties():
    n = 100_000
    runs = Runs.of_matrix(np.full((5, 3), 1 / 3))
    best = BestGuess(runs, np.array([0.25, 0.0, 0.25, 0.25, 0.25]))
    seen = np.bincount(best.guess(np.arange(n) % 3, np.random.default_rng(0)), minlength=5)
    assert seen[1] == 0
    assert stats.chisquare(seen[[0, 2, 3, 4]]).pvalue > ALPHA


def test_plain_laws_protect_everybody_alike():
    spy = BayesianAdversary(GRRFrequencyEstimator(1.0, categories=[range(4)]))
    assert spy.expected_success("high") == spy.expected_success("all") == spy.expected_success()
    with pytest.raises(ValueError, match="group must have a value"):
        spy.expected_success("low")
    with pytest.raises(ValueError, match="group must be None or one of"):
        spy.expected_success("sensitive")


# ---------------------------------------------------------------- local hashing


@pytest.mark.ci
@pytest.mark.parametrize(("d", "g"), [(3, 2), (5, 5), (9, 21), (40, 8), (120, 21)])
def test_hashes_as_they_are_drawn(d, g):
    """Against the mean over 20,000 hashes of words; the values of an ideal random function are told from it."""
    rng = np.random.default_rng(0)
    e, prior, n = math.exp(1.0), np.sort(rng.dirichlet(np.full(d, 5.0))), 20_000
    own, other = e / (e + g - 1), 1 / (e + g - 1)
    a, b = rng.integers(1 << 32, size=(2, n, 1), dtype=np.uint64)
    bucket = ((a * np.arange(d, dtype=np.uint64) + b) & np.uint64(0xFFFFFFFF)) * np.uint64(g) >> np.uint64(32)
    for p in (prior, np.full(d, 1 / d)):
        seen = sum((np.where(bucket == y, own, other) * p).max(axis=1) for y in range(g))
        room = stats.norm.isf(ALPHA / 2) * seen.std() / math.sqrt(n) + 1e-9
        assert abs(success_of_hashes(p, g, own, other) @ p - seen.mean()) < room
    hit = g * (1 - (1 - 1 / g) ** d)  # buckets that a random function hits
    ideal = (own * hit + other * (g - hit)) / d
    if d > 3 and d * g < 1000:  # of three values in two buckets the law is that of a random function
        assert abs(ideal - seen.mean()) > room


@pytest.mark.parametrize(("d", "g"), [(2, 2), (3, 5), (10, 4), (60, 50), (100, 3)])
def test_empty_buckets_are_counted_by_neighbouring_fractions(d, g):
    """The short way for many values against the arc that slides over the points of every circle."""
    own, other = math.e / (math.e + g - 1), 1 / (math.e + g - 1)
    followed = success_of_hashes(np.full(d, 1 / d), g, own, other).mean()
    assert (own * g - (own - other) * empty_buckets(d, g)) / d == pytest.approx(followed, rel=1e-11)


@pytest.mark.ci
def test_many_values():
    """Of many values the mean under a uniform prior is exact, and another prior's is as close as the text says."""
    rng = np.random.default_rng(0)
    d, g, n = 200, 30, 1500
    own, other = 30 / 59, 1 / 59
    bucket = np.empty((n, d), np.int64)
    a, b = rng.random((2, n, 1))
    bucket[:] = np.mod(a * np.arange(d) + b, 1.0) * g
    for prior in (np.full(d, 1 / d), np.sort(rng.dirichlet(np.full(d, 1.0)))):
        # (the likeliest value of a bucket, or else the likeliest of all)
        top = np.zeros((n, g))
        np.maximum.at(top, (np.arange(n)[:, None], bucket), prior)
        seen = np.maximum(own * top, other * prior.max()).sum(axis=1)
        room = stats.norm.isf(ALPHA / 2) * seen.std() / math.sqrt(n)
        assert abs(success_of_hashes(prior, g, own, other) @ prior - seen.mean()) < room
    assert success_of_hashes(np.eye(d)[3], g, own, other)[3] == pytest.approx(1.0, rel=0.01)


def test_two_values_and_a_hash_are_exact():
    for g in (2, 5):
        own, other = math.e / (math.e + g - 1), 1 / (math.e + g - 1)
        hit = g * (1 - (1 - 1 / g) ** 2)
        wanted = (own * hit + other * (g - hit)) / 2
        assert success_of_hashes(np.full(2, 0.5), g, own, other) == pytest.approx([wanted, wanted], rel=1e-12)


# ---------------------------------------------------------------- measured


@pytest.mark.parametrize("cls", [GRRFrequencyEstimator, OUEFrequencyEstimator, OLHFrequencyEstimator,
                                 SSFrequencyEstimator, HRFrequencyEstimator])
def test_a_wrong_epsilon_is_noticed(cls):
    n, d = 40_000, 8
    X = np.arange(n)[:, None] % d
    est = cls(1.0, categories=[range(d)], random_state=1)
    measured = BayesianAdversary(est).measured_success(X, est.privatize(X), random_state=2)
    room = stats.norm.isf(ALPHA / 2) * measured.standard_error
    assert measured.n == n
    assert abs(measured.value - expected(cls, 1.0, d)) < room
    for wrong in (0.7, 1.3):
        assert abs(measured.value - expected(cls, wrong, d)) > room


def test_groups_are_measured():
    n = 40_000
    X = np.arange(n)[:, None] % 4
    est = SDGRRFrequencyEstimator(1.0, categories=[range(4)], low_sensitivity=[[1, 2]], random_state=0)
    spy, reports = BayesianAdversary(est), est.privatize(X)
    parts = [spy.measured_success(X, reports, group, random_state=0) for group in ("high", "low", None)]
    assert [part.n for part in parts] == [n // 2, n // 2, n]
    assert parts[2].value == pytest.approx((parts[0].value + parts[1].value) / 2)
    for part, group in zip(parts, ("high", "low")):
        assert abs(part.value - spy.expected_success(group)) < stats.norm.isf(ALPHA / 2) * part.standard_error
    with pytest.raises(ValueError, match="group must have rows"):
        spy.measured_success(X[::4], reports[::4], "low")


def test_a_seed_repeats_ties_and_another_column_is_attacked_by_name():
    est = OUEFrequencyEstimator(1.0, categories={"a": range(3), "b": range(5)}, random_state=0)
    X = np.random.default_rng(0).integers(0, 3, (5000, 2))
    reports = est.privatize(X)
    spy = BayesianAdversary(est, column="b")
    for seed in (7, np.random.default_rng(7), np.random.RandomState(7)):
        first = spy.measured_success(X, reports, random_state=seed)
        assert isinstance(first, Success)
        if seed == 7:
            assert first == spy.measured_success(X, reports, random_state=seed)
    assert spy.expected_success() == BayesianAdversary(est, column=1).expected_success()
    assert spy.expected_success() < BayesianAdversary(est).expected_success()


def test_servers_of_numbers_are_attacked_by_their_clients_law():
    client = PMTransformer(1.0, bounds=(0.0, 1.0), grid=8, random_state=0)
    server = MeanEstimator(client)
    assert BayesianAdversary(server).expected_success() == BayesianAdversary(client).expected_success()
    X = np.arange(9.0).repeat(2000)[:, None] / 8
    measured = BayesianAdversary(server).measured_success(X, client.privatize(X), random_state=0)
    assert abs(measured.value - BayesianAdversary(server).expected_success()) < 6 * measured.standard_error


@pytest.mark.parametrize("face", [PMTransformer, DuchiTransformer])
def test_of_drawn_columns_the_prior_is_left(face):
    """n = 40,000, alpha = 1e-6: every column is guessed as the mixture says; the law alone would be noticed."""
    n, d = 40_000, 3
    client = face(2.0, bounds=([0.0] * d, [1.0] * d), strategy="sample", random_state=0,
                  **({"grid": 4} if face is PMTransformer else {}))
    law = client.randomizer()
    prior = np.arange(2.0, 2.0 + len(law.input_codes))
    prior /= prior.sum()
    X = np.random.default_rng(0).choice(np.linspace(0, 1, len(prior)), (n, d), p=prior)
    k, reports = client.fit(X).n_sampled_, client.privatize(X)
    assert k < d
    alone = law.guessing(prior) @ prior
    for column in range(d):
        spy = BayesianAdversary(client, prior, column)
        wanted, measured = spy.expected_success(), spy.measured_success(X, reports, random_state=1)
        assert wanted == close(k / d * alone + (1 - k / d) * prior.max())
        room = stats.norm.isf(ALPHA / 2) * measured.standard_error
        assert abs(measured.value - wanted) < room
        assert abs(measured.value - alone) > room


def test_of_a_joint_law_the_whole_row_is_guessed_whatever_the_column():
    """n = 40,000, alpha = 1e-6."""
    n, d = 40_000, 4
    client = DuchiTransformer(2.0, bounds=([0.0] * d, [1.0] * d), strategy="joint", random_state=0)
    X = np.random.default_rng(0).integers(0, 2, (n, d)).astype(float)
    reports = client.privatize(X)
    law = client.randomizer()
    assert len(law.input_codes) == 2**d
    figures = {BayesianAdversary(client, column=column).expected_success() for column in range(d)}
    assert len(figures) == 1
    assert 2.0**-d < figures.copy().pop() < math.exp(2) * 2.0**-d  # far below the 1/2 of a single sign
    measured = BayesianAdversary(client, column=2).measured_success(X, reports, random_state=0)
    room = stats.norm.isf(ALPHA / 2) * measured.standard_error
    assert abs(measured.value - figures.pop()) < room
    assert measured.value - 2.0**-d > room
    with pytest.raises(ValueError, match="enumerated"):
        BayesianAdversary(DuchiTransformer(2.0, bounds=([0.0] * 11, [1.0] * 11), strategy="joint")).expected_success()


# ---------------------------------------------------------------- what it refuses


def test_groups_are_attacked_one_by_one():
    est = PersonalizedEstimator(GRRFrequencyEstimator(1.0, categories=[range(4)]), {"x": {}, "y": {"epsilon": 2}})
    X = np.array([["x", 0], ["y", 1]] * 10, dtype=object)
    for given in (est, PersonalizedEstimator(est.estimator), est.fit(X)):
        with pytest.raises(ValueError, match="estimator has a law for each group: pass one of its estimators_"):
            BayesianAdversary(given)
    x, y = (BayesianAdversary(server).expected_success() for server in est.estimators_.values())
    assert x == expected(GRRFrequencyEstimator, 1.0, 4)
    assert y == expected(GRRFrequencyEstimator, 2.0, 4)


def test_measuring_is_recorded_and_refused_in_strict_mode(tmp_path):
    X = np.arange(100)[:, None] % 4
    est = GRRFrequencyEstimator(1.0, categories=[range(4)])
    reports = est.privatize(X)
    with Ledger(1.0) as ledger:
        BayesianAdversary(est).measured_success(X, reports)
        BayesianAdversary(est).expected_success()
    assert ledger.to_frame()["kind"].tolist().count("non-private score") == 1
    with config_context(strict=True):
        assert BayesianAdversary(est).expected_success() > 0.4
        with pytest.raises(ValueError, match="strict mode: measured_success is refused, because"):
            BayesianAdversary(est).measured_success(X, reports)


def test_what_does_not_fit_is_named_before_the_ledger_is_told():
    X = np.arange(100)[:, None] % 4
    est = GRRFrequencyEstimator(1.0, categories=[range(4)])
    reports, ledger = est.privatize(X), Ledger(1.0)
    est.set_params(ledger=ledger)
    spy = BayesianAdversary(est)
    for args, message in (((X, reports[1:]), "one row for each row"), ((X + 7, reports), "column 0"),
                          ((X, reports + 9), "below 4"), ((X, reports, "x"), "group"),
                          ((X, reports.astype(float)), "dtype")):
        with pytest.raises(ValueError, match=message):
            spy.measured_success(*args)
    with pytest.raises(ValueError, match="random_state"):
        spy.measured_success(X, reports, random_state="x")
    assert not len(ledger.to_frame())
    for prior in ([0.5, 0.5], [0.5, 0.5, 0.5, -0.5], [1, 1, 0, 0], "uniform", [np.nan, 1, 0, 0]):
        with pytest.raises(ValueError, match="prior must be None or 4 probabilities"):
            BayesianAdversary(est, prior).expected_success()
    for column in (1, "x", True):
        with pytest.raises(ValueError, match="column"):
            BayesianAdversary(est, column=column)
    with pytest.raises(ValueError, match=r"estimator must be one of dpestim\.local"):
        BayesianAdversary(object())
