"""Key-value data: exact guarantees on small domains, the published bias, variances, tables, rounds, kernels."""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from dpestim import config_context
from dpestim._core import keyvalue as kernel
from dpestim.accounting import Ledger
from dpestim.local import PCKVEstimator, PrivKVEstimator, PrivKVMEstimator
from dpestim.local.keyvalue.estimates import Estimates, estimate
from dpestim.local.keyvalue.pckv import PCKVCodes, PCKVUnary
from dpestim.local.keyvalue.privkv import PrivKV, published_means
from dpestim.privacy.exact import WORD, exp_lower, log_ratio
from dpestim.privacy.key_value_weights import pckv_code_weights, pckv_unary_weights, privkv_weight

STEPS = 1 << 32


def all_sets(d):
    for held in itertools.product((None, 0, STEPS), repeat=d):
        yield {key: place for key, place in enumerate(held) if place is not None}


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (2, 3)])  # (at most d slots count)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.no_kernel
def test_the_guarantee_is_exact_and_used_over_all_sets(size, epsilon):
    d, length = size
    for law in (PCKVUnary(epsilon, d, length), PCKVCodes(epsilon, d, length), PrivKV(epsilon, d)):
        laws = [law.outcome_law(pairs) for pairs in all_sets(d)]
        assert all(sum(row) == 1 for row in laws)
        worst = max(max(column) / min(column) for column in zip(*laws))
        assert worst <= exp_lower(law.epsilon)
        assert log_ratio(worst, 1) > epsilon * (1 - 1e-9)
        assert worst <= law.worst_ratio() <= exp_lower(law.epsilon)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "2.5", "20"])
def test_weights_are_next_to_the_ideal_ones(epsilon):
    epsilon = Fraction(epsilon)
    e = exp_lower(epsilon)
    keep, other = pckv_unary_weights(epsilon)
    assert abs(keep - WORD * e / (e + 1)) <= 1
    assert abs(other - WORD / (e + 3)) <= 1
    assert abs(privkv_weight(epsilon) - WORD / (e + 3)) <= 1
    weights = pckv_code_weights(epsilon, 25, 5)
    assert weights.keep + 24 * weights.other == weights.total
    assert Fraction(weights.keep, weights.other) == pytest.approx(5 * (e - 1) + 1, rel=1e-6)


def test_tiny_epsilons_are_refused_before_anything_is_charged():
    for make in (partial(PCKVEstimator, padding_length=1), PrivKVEstimator, PrivKVMEstimator):
        with pytest.raises(ValueError, match="epsilon is too small"):
            make(1e-25, keys=3).randomizer()


def test_published_means_are_biased_and_the_correction_is_not():
    """V16: f = 0.3, m = 0.6, e^epsilon1 = (e^epsilon + 1) / 2; rounds lessen the bias by 1 - f each."""
    f, m, n = 0.3, 0.6, 1_000_000
    e = np.exp(2.0)
    p1 = (e + 1) / (e + 3)
    plus = n * (f * p1 * (1 + m * (e - 1) / (e + 1)) / 2 + (1 - f) * (1 - p1) / 2)
    minus = n * (f * p1 * (1 - m * (e - 1) / (e + 1)) / 2 + (1 - f) * (1 - p1) / 2)
    counts = np.array([plus, minus, n - plus - minus])
    law = PrivKV(2.0, 1)
    expected = f * p1 * m / (f * p1 + (1 - f) * (1 - p1))
    assert published_means(law, counts, n)[0] == pytest.approx(expected, abs=1e-6)
    assert expected < 0.45
    found = estimate(law, counts, n)
    assert (found.frequency[0], found.mean[0]) == (pytest.approx(f), pytest.approx(m))
    one = np.e / (1 + np.e)
    assert f * one * m / (f * one + (1 - f) * (1 - one)) == pytest.approx(0.323, abs=5e-4)


def test_rounds_lessen_the_published_bias_as_stated():
    """n = 600,000 users a round, 25 % noise at most: the bias after r rounds is (1 - f)^(r - 1) times the first."""
    n, f, m = 600_000, 0.5, 1.0
    X = csr_array((np.ones(n // 2), (np.arange(n // 2), np.zeros(n // 2, int))), shape=(n, 1))
    biases = []
    for n_rounds in (1, 2, 3):
        est = PrivKVMEstimator(2.0 * n_rounds, n_rounds=n_rounds, correction="published", random_state=n_rounds).fit(X)
        biases.append(est.means_[0] - m)
        unbiased = est.set_params(correction="unbiased")
        assert abs(unbiased.means_[0] - m) < 5 * unbiased.mean_standard_errors_[0]
    first = biases[0]
    assert first < -0.1
    np.testing.assert_allclose(biases, [first, (1 - f) * first, (1 - f) ** 2 * first], atol=0.02)


def test_the_variance_has_the_term_for_sampled_keys():
    """FORMULAS 4.6 at f: l^2 b (1 - b) / (n (a - b)^2) + l f (1 - a - b) / (n (a - b)) + f (l - 1) / n."""
    n, d, length = 10_000, 4, 3
    for law in (PCKVUnary(1.0, d, length), PCKVCodes(1.0, d, length)):
        a, b = float(law.cell.right + law.cell.turned), float(2 * law.cell.other)
        share = a / length + b * (1 - 1 / length)
        f = 0.4
        on = n * (f * share + (1 - f) * b)
        counts = np.full(law.n_counts, on / 2)
        if isinstance(law, PCKVUnary):
            counts[:d] = on
        found = estimate(law, counts, n)
        expected = (length**2 * b * (1 - b) / (a - b) ** 2 + length * f * (1 - a - b) / (a - b) + f * (length - 1)) / n
        np.testing.assert_allclose(found.frequency, f)
        np.testing.assert_allclose(found.share_variance, expected)


def test_intervals_of_means_hold_the_truth_and_say_when_nothing_is_known():
    """n = 200 seeds of 3,000 users, level 0.9: at least 164 intervals of each mean, alpha about 1e-3 a key."""
    rng = np.random.default_rng(0)
    held = rng.random((3000, 3)) < [0.9, 0.4, 0.01]
    X = csr_array(held * rng.uniform(2, 5, held.shape))
    truth = X.sum(axis=0) / held.sum(axis=0)
    inside = np.zeros(3)
    for seed in range(200):
        est = PCKVEstimator(2.0, bounds=(1, 5), variant="grr", padding_length=3, random_state=seed).fit(X)
        low, high = est.confidence_interval(0.9).T
        inside += (low <= truth) & (truth <= high)
    assert (inside >= 164).all()
    wide = Estimates(100, np.array([0.0]), np.array([0.1]), np.array([0.01]), np.array([0.01]), np.array([0.0]))
    assert [end[0] for end in wide.mean_interval(1.96)] == [-1.0, 1.0]


def test_users_with_more_pairs_than_slots_count_for_less():
    n = 200_000
    X = csr_array(np.ones((n, 4)))
    for variant in ("ue", "grr"):
        est = PCKVEstimator(3.0, padding_length=2, variant=variant, random_state=0).fit(X)
        assert np.abs(est.frequencies_ - 0.5).max() < 5 * est.frequency_standard_errors_.max()
        assert np.abs(est.means_ - 1.0).max() < 0.1


def test_explicit_zeros_are_pairs_and_empty_rows_are_users():
    start = np.array([0, 1, 1, 2])
    X = csr_array((np.zeros(2), np.array([0, 1]), start), shape=(3, 2))
    column = PrivKVEstimator(keys=2).fit(X)._columns.columns[0]
    rows = column.read(X, None, False)
    assert [rows.row(i) for i in range(3)] == [{0: STEPS // 2}, {}, {1: STEPS // 2}]
    assert [rows[1:].row(i) for i in range(2)] == [{}, {1: STEPS // 2}]
    long = pd.DataFrame({"u": ["x", "y", "z"], "k": [0, None, 1], "v": [0.0, 3.0, 0.0]}).astype({"k": "Int64"})
    same = column.read(long, None, False)
    assert [same.row(i) for i in range(3)] == [rows.row(i) for i in range(3)]
    clipped = csr_array((np.array([-9.0, 9.0]), np.array([0, 1]), start), shape=(3, 2))
    assert column.read(clipped, None, False).places.tolist() == [0, STEPS]


def test_a_key_that_nobody_was_asked_for_is_unknown():
    for est in (PrivKVEstimator(random_state=0), PrivKVMEstimator(random_state=0)):
        est.fit(csr_array((2, 50)))
        unknown = np.isnan(est.frequencies_)
        assert 48 <= unknown.sum() <= 49
        assert np.isnan(est.means_[unknown]).all()
        assert (est.confidence_interval()[unknown] == [-1, 1]).all()


def test_verbs_of_rounds_apart():
    server, users = PrivKVMEstimator(4.0, keys=2, n_rounds=2, random_state=0), csr_array(np.ones((5000, 2)))
    server.aggregate(server.client().privatize(users))
    server.next_round()
    assert len(server.published_) == 1
    client = server.client()
    with pytest.raises(ValueError, match="server that counted the first round"):
        client.partial_fit(users).release()
    server.aggregate(server.client().privatize(users))
    assert server.n_users_ == 5000
    assert server.privacy_.epsilon == 4
    assert np.abs(server.means_ - 1).max() < 0.2
    with pytest.raises(ValueError, match="last round"):
        server.next_round()


def test_kernels_refuse_arrays_that_do_not_fit():
    start, index, places = np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.int64)
    words, out = np.zeros((1, 2), np.uint64), np.zeros(1, np.uint32)
    kernel.choose(start, index, places, words, 1, 2, out)
    for wrong in ((start, index, places, words, 0, 2, out), (start[:1], index, places, words, 1, 2, out),
                  (np.array([0, 2]), index, places, words, 1, 2, out),
                  (start, index, places, words[:, :1].copy(), 1, 2, out)):
        with pytest.raises(ValueError, match="start"):
            kernel.choose(*wrong)
    with pytest.raises(ValueError, match="differ in length"):
        kernel.ask(start, index, places, np.zeros((1, 3), np.uint64), 100, 1, 1, np.zeros(0, np.int64),
                   np.zeros(1, np.uint8))
    with pytest.raises(ValueError, match="differ in length"):
        kernel.planes(out, np.zeros((1, 1), np.uint8), np.zeros((1, 2), np.uint64), 1, 3, np.zeros((1, 2), np.uint8))


def test_the_kernel_of_planes_follows_its_words():
    """Every bit of a report, from the words, for 19 keys: the sampled cell, signs only where a cell is on."""
    rng, d, n = np.random.default_rng(0), 19, 500
    codes = rng.integers(0, 2 * d + 3, n).astype(np.uint32)
    on = rng.integers(0, 256, (n, 3), np.uint8)
    coins = rng.integers(0, WORD, (n, 3), np.uint64)
    out, keep = np.empty((n, 6), np.uint8), 3 << 62
    kernel.planes(codes, on, coins, keep, d, out)
    bits = np.unpackbits(on, axis=1, bitorder="little")[:, :d]
    signs = np.unpackbits(coins[:, 2:].copy().view(np.uint8), axis=1, bitorder="little")[:, :d] & bits
    for i in np.flatnonzero(codes < 2 * d):
        key, minus = codes[i] // 2, codes[i] % 2
        bits[i, key] = coins[i, 0] & np.uint64(1)
        signs[i, key] = bits[i, key] & (minus ^ int(int(coins[i, 1]) < keep))
    for part, want in ((out[:, :3], bits), (out[:, 3:], signs)):
        np.testing.assert_array_equal(np.unpackbits(part, axis=1, bitorder="little")[:, :d], want)
        assert not (part[:, -1] >> 3).any()


def test_the_variant_follows_from_public_numbers():
    """Beside the variances of rare keys: "auto" takes the smaller one."""
    rng = np.random.default_rng(0)
    for d, length, epsilon in [(100, 20, 1), (50, 10, 1), (20, 5, 4), (4, 3, 2), (200, 1, 1), (300, 2, 2)]:
        X = csr_array((np.ones(2000), rng.integers(0, d, 2000), np.arange(2001)), shape=(2000, d))
        errors = {variant: PCKVEstimator(epsilon, variant=variant, padding_length=length, random_state=0).fit(X)
                  .frequency_standard_errors_.mean() for variant in ("auto", "ue", "grr")}
        assert errors["auto"] == min(errors.values())


def test_the_padding_length_is_declared_and_people_have_names():
    X = csr_array(np.eye(3))
    with pytest.raises(ValueError, match="padding_length must be declared"):
        PCKVEstimator(1.0).fit(X)
    frame = pd.DataFrame({"user": [1, None, None], "key": ["a", "b", None], "value": [0.1, 0.2, None]})
    with pytest.raises(ValueError, match="label in every row"):
        PrivKVEstimator(1.0, keys=["a", "b"]).fit(frame)
    with config_context(strict=True):  # (what is seen must not depend on a cell)
        assert PrivKVEstimator(1.0, keys=["a", "b"]).fit(frame).n_users_ == 2


def small(n=40):
    return csr_array(np.tile([[0.5, 0.0], [-0.5, 1.0]], (n // 2, 1)))


def test_rounds_are_as_many_as_were_promised():
    est = PrivKVMEstimator(2.0, n_rounds=2, random_state=0).partial_fit(small())
    est.next_round().partial_fit(small())
    est.set_params(n_rounds=4)
    with pytest.raises(ValueError, match="n_rounds is 2"):
        est.next_round()
    assert est.privacy_.epsilon == 2


def test_a_server_of_rounds_takes_reports_of_its_round_only():
    one, two = (PrivKVMEstimator(2.0, n_rounds=2, random_state=seed).partial_fit(small()).next_round()
                for seed in (0, 1))
    helper = one.client().set_params(random_state=5)
    helper.aggregate(helper.privatize(small()))
    two._columns = one._columns  # (the same published means, as clipping may make them)
    two.partial_fit(small())
    with pytest.raises(ValueError, match="has closed rounds, whose"):
        one.merge(two)
    assert one.merge(helper).n_users_ == 40
    single = PrivKVMEstimator(1.0, n_rounds=1, random_state=3).partial_fit(small())
    with pytest.raises(ValueError, match="same n_rounds"):
        single.merge(PrivKVMEstimator(2.0, n_rounds=2, random_state=4).partial_fit(small()))


def test_clients_of_a_round_keep_strict_mode_and_ledger():
    with config_context(strict=True):
        server = PrivKVMEstimator(2.0, keys=2, n_rounds=2)
    assert server.client()._is_strict()
    ledger = Ledger(9.0)
    with ledger:
        server = PrivKVMEstimator(2.0, keys=2, n_rounds=2, random_state=0).partial_fit(small())
    server.next_round()
    server.client().privatize(small())
    assert ledger.spent().epsilon == 2
