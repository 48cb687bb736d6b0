"""Longitudinal mechanisms: laws composed exactly, what a state keeps, and what many reports promise."""

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.local import (
    DBitFlipFrequencyEstimator,
    LGRRFrequencyEstimator,
    LOLOHAFrequencyEstimator,
    LOSUEFrequencyEstimator,
    LOUEFrequencyEstimator,
    RAPPORFrequencyEstimator,
)
from dpestim.local.categories.lgrr import LGRR
from dpestim.local.categories.loloha import LOLOHA
from dpestim.local.categories.lunary import LOSUE, LOUE
from dpestim.privacy.exact import WORD, exp_lower, uses_enough

FACES = (LGRRFrequencyEstimator, LOLOHAFrequencyEstimator, LOSUEFrequencyEstimator, LOUEFrequencyEstimator)
CATEGORIES = [list(range(6))]


def rows(n=4000, seed=0):
    return np.random.default_rng(seed).integers(0, 6, (n, 1))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("factor", [1.1, 2, 5])
@pytest.mark.parametrize("law", [LGRR, LOLOHA, LOSUE])
def test_the_first_report_keeps_and_uses_epsilon(law, epsilon, factor):
    one = law.make(epsilon, 7, Fraction(str(epsilon)) * Fraction(str(factor)))
    p, q = one.p_star, one.q_star
    worst = p * (1 - q) / (q * (1 - p)) if law is LOSUE else Fraction(one.weights.keep, one.weights.other)
    assert 1 < worst <= exp_lower(one.epsilon)
    assert uses_enough(worst, 1, one.epsilon)


@pytest.mark.parametrize("d", [2, 5])
def test_composed_weights_are_the_product_of_the_matrices(d):
    law = LGRR.make(1.0, d, 2.5)

    def matrix(weights):
        return [[Fraction(weights.keep if x == y else weights.other, WORD) for y in range(d)] for x in range(d)]

    first, second = matrix(law.first), matrix(law.second)
    both = [[sum(first[x][b] * second[b][y] for b in range(d)) for y in range(d)] for x in range(d)]
    assert both == law.transition_matrix()


@pytest.mark.parametrize(("law", "symmetric"), [(LOSUE, True), (LOUE, False)])
def test_one_less_in_the_flip_breaks_epsilon(law, symmetric):
    from dpestim.local.categories.lunary import _composed

    one = law.make(1.0, 5)

    def worst(low):
        p, q = _composed(one.first, low, symmetric)
        return p * (1 - q) / (q * (1 - p))

    assert worst(one.flip_threshold) <= exp_lower(one.epsilon) < worst(one.flip_threshold - 1)


def test_an_epsilon_that_the_kept_answer_does_not_allow():
    with pytest.raises(ValueError, match="epsilon_permanent must be above epsilon"):
        LGRRFrequencyEstimator(2.0, epsilon_permanent=2.0, categories=CATEGORIES).privatize(rows())
    # L-OUE: e^epsilon < (2 e^epsilon_permanent + 1) / 3
    limit = math.log((2 * math.e**2 + 1) / 3)
    LOUE.make(limit - 1e-6, 5, 2)
    with pytest.raises(ValueError, match="epsilon_permanent is too small"):
        LOUE.make(limit + 1e-6, 5, 2)


@pytest.mark.parametrize("face", FACES)
def test_a_kept_answer_stays_and_comes_back(face):
    est, X = face(1.0, categories=CATEGORIES), rows()
    state = est.client_state(X)
    est.privatize(X, state=state)
    (memo,) = state._memos
    kept = memo.answers.copy()
    est.privatize(X, state=state)
    np.testing.assert_array_equal(memo.answers, kept)
    moved = (X + 1) % 6
    est.privatize(moved, state=state)
    assert (memo.answers != kept).any()
    state = pickle.loads(pickle.dumps(state))
    est.privatize(X, state=state)
    np.testing.assert_array_equal(state._memos[0].answers, kept)
    assert state.n_reports == 4


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("random_state", [None, 5])
def test_later_reports_follow_the_law(face, random_state):
    # n = 30,000 reports after a change, |z| < 7.5 for each of 6 frequencies, also without a seed: alpha = 4e-13 a case
    est, X = face(1.0, categories=CATEGORIES, random_state=random_state), rows(30_000)
    state = est.client_state(X)
    first = est.privatize(X, state=state)
    changed = np.where(np.arange(30_000)[:, None] % 2, 0, X)
    second = est.privatize(changed, state=state)
    assert (first != second).any()
    est.aggregate(second)
    truth = np.bincount(changed[:, 0], minlength=6) / 30_000
    z = (est.frequencies_[0] - truth) / est.standard_errors_[0]
    assert np.abs(z).max() < 7.5
    wrong = (est.frequencies_[0] - np.bincount(X[:, 0], minlength=6) / 30_000) / est.standard_errors_[0]
    assert np.abs(wrong).max() > 7.5


def test_seeded_rounds_do_not_repeat_their_noise():
    est, X = LGRRFrequencyEstimator(1.0, categories=CATEGORIES, random_state=1), rows()
    state = est.client_state(X)
    kept = est.privatize(X, state=state), state._memos[0].answers
    flips = [(est.privatize(X, state=state) != kept[1]).mean(axis=1) for _ in range(2)]
    assert (flips[0] != flips[1]).any()


def test_what_all_reports_promise():
    est, X = LGRRFrequencyEstimator(1.0, epsilon_permanent=3.0, categories=CATEGORIES), rows(50)
    state = est.client_state(X)
    assert est.privacy_of(state).epsilon == 0
    est.privatize(X, state=state)
    assert est.privacy_of(state) == est.privacy_
    est.privatize(X, state=state)
    both = est.privacy_of(state)
    assert both.relaxed_epsilon == min(3, both.epsilon)
    assert both.epsilon == 2 * est.randomizer().epsilon_instant
    other = est.client_state(X)
    for _ in range(2):
        est.privatize((X + other.n_reports) % 6, state=other)
    assert est.privacy_of(other) == both  # whatever the values did
    assert est.longitudinal_privacy_.epsilon == math.inf
    assert est.longitudinal_privacy_.relaxed_epsilon == 3


def joint(law, values):
    """The exact law of the reports of a sequence of values, over all kept answers."""
    d = law.n_categories
    k1, o1, k2, o2 = (Fraction(w, WORD) for step in (law.first, law.second) for w in (step.keep, step.other))
    out, held = {}, sorted(set(values))
    for kept in product(range(d), repeat=len(held)):
        table = dict(zip(held, kept))
        chance = math.prod(k1 if v == b else o1 for v, b in table.items())
        for said in product(range(d), repeat=len(values)):
            one = math.prod(k2 if table[v] == y else o2 for v, y in zip(values, said))
            out[said] = out.get(said, 0) + chance * one
    return out


def test_counting_distinct_values_would_promise_too_much():
    """Two reports, at most two distinct values: 2 epsilon_permanent does not bound a change, the stated sum does."""
    law = LGRR.make(0.999, 9, 1.0)
    stay, change, other = joint(law, (0, 0)), joint(law, (0, 1)), joint(law, (1, 1))
    worst = max(stay[said] / change[said] for said in stay)
    assert worst > exp_lower(2 * law.epsilon_permanent)
    assert worst <= exp_lower(2 * law.epsilon_instant)
    assert max(stay[said] / other[said] for said in stay) <= exp_lower(law.epsilon_permanent)


def test_a_state_is_opaque_versioned_and_of_one_law():
    est, X = LGRRFrequencyEstimator(1.0, categories=CATEGORIES), rows(9)
    state = est.client_state(X)
    est.privatize(X, state=state)
    assert repr(state) == "ClientState(n_rows=9, n_reports=1)"
    with pytest.raises(ValueError, match="version"):
        type(state).__new__(type(state)).__setstate__({**state.__getstate__(), "version": 0})
    with pytest.raises(ValueError, match="same law"):
        LGRRFrequencyEstimator(0.5, categories=CATEGORIES).privatize(X, state=state)
    with pytest.raises(ValueError, match="9 rows"):
        est.privatize(rows(8), state=state)
    with pytest.raises(ValueError, match="client_state"):
        est.privatize(X, state=3)
    assert state.n_reports == 1


@pytest.mark.parametrize("face", [*FACES, RAPPORFrequencyEstimator])
def test_some_clients_of_a_state_report(face):
    """Parts change the whole state; kept answers stay; all parts together report what the whole state does."""
    est, X = face(1.0, categories=CATEGORIES, random_state=3), rows(60)
    state, whole = est.client_state(X), est.client_state(X)
    odd = np.arange(60) % 2 == 1
    first = est.privatize(X[odd], state=state[odd])
    assert first.shape[0] == 30
    assert (state.n_reports, state[odd].n_reports, state[~odd].n_reports) == (1, 1, 0)
    est.privatize(X[~odd], state=state[~odd])
    est.privatize(X, state=whole)
    kept = state._memos[0].answers.copy()
    est.privatize(X[::-1], state=state[::-1])
    assert (state[odd].n_reports, state.n_reports) == (2, 2)
    np.testing.assert_array_equal(state._memos[0].answers, kept)
    again = state[odd]
    with pytest.raises(ValueError, match="store the whole state"):
        pickle.dumps(again)
    nested = again[np.arange(5)]
    assert est.privatize(X[odd][:5], state=nested).shape[0] == 5
    assert (nested.n_reports, state[~odd].n_reports) == (3, 2)
    for bad in ([0, 0], 3, [60], "a", [[0]]):
        with pytest.raises(ValueError, match="rows must be"):
            state[bad]
    with pytest.raises(ValueError, match="30 rows of this part"):
        est.privatize(X, state=state[odd])


def test_parts_of_a_state_pay_for_the_row_that_reports_most():
    X = rows(60)
    name = LGRRFrequencyEstimator(1.0, categories=CATEGORIES).longitudinal_privacy_.relaxation
    with Ledger(100.0, relaxation=name) as ledger:
        est = LGRRFrequencyEstimator(1.0, categories=CATEGORIES)
        state = est.client_state(X)
        for part in (slice(30), slice(30, 60)):
            est.privatize(X[part], state=state[part])
            assert ledger.spent().epsilon == 1
        est.privatize(X[:3], state=state[:3])
        assert ledger.spent().epsilon == est.privacy_of(state).relaxed_epsilon == 2
        est.privatize(X[40:], state=state[40:])
        assert ledger.spent().epsilon == 2
        assert est.privacy_of(state[30:40]).epsilon == 1


@pytest.mark.parametrize("face", FACES)
def test_reports_of_parts_follow_the_law(face):
    # n = 30,000 second reports of rows whose first ones came in two parts, |z| < 5 for 6 frequencies
    est, X = face(1.0, categories=CATEGORIES, random_state=4), rows(30_000)
    state = est.client_state(X)
    for part in (slice(10_000), slice(10_000, None)):
        est.privatize(X[part], state=state[part])
    moved = np.where(np.arange(30_000)[:, None] % 2, 0, X)
    order = np.random.default_rng(0).permutation(30_000)
    est.aggregate(est.privatize(moved[order], state=state[order]))
    z = (est.frequencies_[0] - np.bincount(moved[:, 0], minlength=6) / 30_000) / est.standard_errors_[0]
    assert np.abs(z).max() < 5


def test_several_columns_share_both_epsilons():
    est = LGRRFrequencyEstimator(1.0, epsilon_permanent=3.0, categories=[[0, 1, 2], ["a", "b"]], random_state=0)
    X, _ = est._test_data(5000)
    state = est.client_state(X)
    for _ in range(3):
        reports = est.privatize(X, state=state)
    assert est.privacy_of(state).relaxed_epsilon == 3
    assert [law.epsilon_permanent for law in est.fit(X).randomizers_] == [Fraction(3, 2)] * 2
    assert (est.aggregate(reports).frequencies_[1].sum() - 1) < 1e-9


def test_dbitflip_repeats_itself_and_promises_nothing_for_a_change():
    est, X = DBitFlipFrequencyEstimator(3.0, n_bits=3, categories=CATEGORIES, random_state=0), rows()
    state = est.client_state(X)
    first = est.privatize(X, state=state)
    np.testing.assert_array_equal(est.privatize(X, state=state), first)
    assert est.privacy_of(state).epsilon == math.inf
    assert est.privacy_of(state).relaxed_epsilon == 3
    moved = est.privatize((X + 1) % 6, state=state)
    np.testing.assert_array_equal(moved[:, 0], first[:, 0])
    assert (moved[:, 1] != first[:, 1]).any()
    np.testing.assert_array_equal(est.privatize(X, state=state), first)


def test_an_account_pays_for_all_reports_of_a_state_that_others_paid_for():
    rows = np.arange(60).reshape(-1, 1) % 4
    one = LGRRFrequencyEstimator(1.0, categories=[[0, 1, 2, 3]])
    name, state = one.longitudinal_privacy_.relaxation, one.client_state(rows)
    one.privatize(rows, state=state)
    one.privatize(rows, state=state)
    late, early = (Ledger(100.0, relaxation=name) for _ in range(2))
    for k in range(3):  # two reports were paid by nobody, and the third and later ones by two accounts and a label
        LGRRFrequencyEstimator(1.0, categories=[[0, 1, 2, 3]], ledger=late).privatize(rows, state=state)
        assert late.spent().epsilon == one.privacy_of(state).relaxed_epsilon == 2
        if k:
            LGRRFrequencyEstimator(1.0, categories=[[0, 1, 2, 3]], ledger=early.for_users("a")).privatize(
                rows, state=state)
            assert early.spent().epsilon == 2


def test_names_and_seeds_tell_states_apart():
    names = {LGRRFrequencyEstimator(1.0, categories=[c]).longitudinal_privacy_.relaxation
             for c in ([1, 2, 3], [1, 3, 2], ["a", "b", "c"])}
    assert len(names) == 3
    rows = np.arange(200).reshape(-1, 1) % 4
    seeded = LGRRFrequencyEstimator(0.5, categories=[[0, 1, 2, 3]], random_state=0)
    first, second = (seeded.privatize(rows, state=seeded.client_state(rows)) for _ in range(2))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, seeded.privatize(rows))
    again = LGRRFrequencyEstimator(0.5, categories=[[0, 1, 2, 3]], random_state=0)
    assert np.array_equal(first, again.privatize(rows, state=again.client_state(rows)))


def test_rounds_of_the_same_users_are_not_added_up():
    rows = np.arange(60).reshape(-1, 1) % 4
    one, two = (LGRRFrequencyEstimator(1.0, categories=[[0, 1, 2, 3]]).fit(rows) for _ in range(2))
    with pytest.raises(ValueError, match="of the same users separately"):
        one.merge(two, users="same")
    assert "of the same users separately" in str(one.privacy_)


def test_the_guarantee_of_a_state_prints_what_holds_for_values_that_never_change():
    one = LGRRFrequencyEstimator(1.0, epsilon_permanent=2.0, categories=[["a", "b"]])
    rows = [["a"], ["b"]]
    state = one.client_state(rows)
    for _ in range(3):
        one.privatize(rows, state=state)
    text = str(one.privacy_of(state))
    assert text.startswith("4.")  # for values that change
    assert "never change" in text
    assert text.endswith("epsilon is 2.")
    assert "about one report" not in text
    assert "about one report" in str(one.privacy_)
    assert "Under the relaxation" not in str(one.privacy_)
