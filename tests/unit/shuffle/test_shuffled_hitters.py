"""Heavy hitters behind a shuffler: all users hide each other whatever part they report; verbs; what is found."""

import pickle
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from dpestim.local import HeavyHitterEstimator
from dpestim.shuffle import ShuffledEstimator
from dpestim.shuffle.amplification import exact_delta, largest_local

N, DELTA = 20_000, Fraction(1, 10**6)


def rows_of(columns, values):
    """Return the law of a whole message for some values: outputs of the same probabilities for all are one."""
    law_of = defaultdict(Fraction)
    for view in columns.columns:
        law, own = view.law, view.of([np.array(values, np.uint64)])
        for h in range(law.n_hashes):
            buckets = law.buckets(own, np.full(len(own), h, np.uint32))
            for y in range(law.n_buckets):
                told = tuple(law.p_star if bucket == y else law.other for bucket in buckets)
                law_of[told] += Fraction(1, len(columns) * law.n_hashes)
    assert all(sum(share * told[v] for told, share in law_of.items()) == 1 for v in range(len(values)))
    return [[share * told[v] for told, share in law_of.items()] for v in range(len(values))]


def test_the_truth_for_a_few_users_whose_parts_differ():
    # the exact delta of messages of all parts together, though hardly two users report the same part
    n, delta = 5, 0.02
    est = ShuffledEstimator(HeavyHitterEstimator(n_bits=2, n_top=2), 0.5, delta=delta, n_users=n)
    server = est._server_for(n)
    columns = server._columns_now()
    assert len(columns) > 1
    local = columns.guarantee().epsilon
    assert local > Fraction(1, 2)
    assert exact_delta(rows_of(columns, [0, 3]), n, 0.5) <= delta
    # a twin that takes the users for more than they are is found out
    wrong = largest_local(None, 20 * n, Fraction(1, 2), Fraction(delta))
    wrong = HeavyHitterEstimator(wrong, n_bits=2, n_top=2, n_users=n)
    assert exact_delta(rows_of(wrong._columns_now(), [0, 3]), n, 0.5) > delta


def drawn(n, seed):
    """Return rows of numbers of 16 bits, of which ten often ones have 2 % each."""
    rng = np.random.default_rng(seed)
    often = np.random.default_rng(7).permutation(1 << 16)[:10]
    x = np.where(rng.random(n) < 0.2, often[rng.integers(0, 10, n)], rng.integers(0, 1 << 16, n))
    return x[:, None], often


@pytest.fixture(scope="module")
def fitted():
    X, often = drawn(N, 0)
    inner = HeavyHitterEstimator(n_bits=16, n_top=10, random_state=0)
    return X, often, inner, ShuffledEstimator(inner, 1.0, delta=DELTA, n_users=N).fit(X)


def test_what_is_found_with_the_promise_of_all_users(fitted):
    X, often, _, est = fitted
    found = est.heavy_hitters_
    assert (est.privacy_.epsilon, est.privacy_.delta, est.privacy_.model) == (1, DELTA, "shuffle")
    assert est.local_epsilon_ == largest_local(None, N, Fraction(1), DELTA * (1 - Fraction(1, 2**40)))
    assert est.estimator_.n_users == N  # (planned for those who are there)
    assert set(often) <= set(found.values.tolist())
    both = est.confidence_interval()
    truth = 0.02 + 0.8 / (1 << 16)
    assert ((both[:, 0] <= truth) & (truth <= both[:, 1])).sum() >= 7  # (of ten, fewer once in ten thousand)
    # the local model with this epsilon finds hardly any
    alone = HeavyHitterEstimator(1.0, n_bits=16, n_top=10, n_users=N, random_state=0).fit(X)
    assert len(set(often) & set(alone.heavy_hitters_.values.tolist())) < 5
    assert est.privacy_against(N // 2).epsilon > 1
    assert est.estimate(often[:2]).frequencies.shape == (2,)


def test_verbs_merges_and_pickles_tell_the_same(fitted):
    X, _, inner, est = fitted
    sent = ShuffledEstimator(inner, 1.0, delta=DELTA, n_users=N)
    messages = sent.encode(X)
    mixed = sent.shuffle(messages)
    assert (mixed != messages).any()
    sent.analyse(mixed)
    copy = pickle.loads(pickle.dumps(est))
    for one in (sent, copy):
        assert all((a == b).all() for a, b in zip(one.heavy_hitters_, est.heavy_hitters_))
    other = HeavyHitterEstimator(n_bits=16, n_top=10, random_state=1)
    copy.merge(ShuffledEstimator(other, 1.0, delta=DELTA, n_users=N).fit(drawn(N, 1)[0]))
    assert copy.n_users_ == 2 * N
    assert copy.privacy_.epsilon == 1
    assert copy.heavy_hitters_.standard_errors.mean() < est.heavy_hitters_.standard_errors.mean()
    with pytest.raises(ValueError, match="n_users"):
        sent.analyse(mixed[:100])
