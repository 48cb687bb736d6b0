"""Shufflers keep the multiset, every order is equally likely, the trace of buckets says nothing; sums under masks."""

from collections import Counter
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from dpestim.rng import WordSource
from dpestim.shuffle.transport import BucketShuffler, IBLTShuffler, SecureSum, Shuffler, UniformShuffler
from dpestim.shuffle.transport.messages import ShuffleWords

ALPHA = 1e-6
SHUFFLERS = [UniformShuffler(random_state=1), BucketShuffler(8, attempts=50, random_state=1),
             BucketShuffler(random_state=1), IBLTShuffler(random_state=1)]


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_the_multiset_is_kept(shuffler, dtype):
    assert isinstance(shuffler, Shuffler)
    for n in (0, 1, 2, 17, 64, 65):
        for shape in ((n,), (n, 1), (n, 3)):
            messages = (np.arange(np.prod(shape)).reshape(shape) % 50).astype(dtype)
            before = messages.copy()
            out = shuffler.shuffle(messages)
            assert out.dtype == dtype
            assert out.shape == shape
            assert Counter(map(bytes, out)) == Counter(map(bytes, before))
            np.testing.assert_array_equal(messages, before)


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=lambda s: type(s).__name__)
def test_seeds_repeat_and_fresh_words_do_not(shuffler):
    messages = np.arange(60, dtype=np.uint16)
    np.testing.assert_array_equal(shuffler.shuffle(messages), shuffler.shuffle(messages))
    fresh = type(shuffler)()
    assert (fresh.shuffle(messages) != fresh.shuffle(messages)).any()


def order_counts(shuffle, n_draws):
    seen = Counter(tuple(shuffle(np.arange(4, dtype=np.uint8)).tolist()) for _ in range(n_draws))
    return [seen[order] for order in permutations(range(4))]


@pytest.mark.parametrize("cls", [UniformShuffler, BucketShuffler, IBLTShuffler])
def test_every_order_is_equally_likely(cls):
    """All 24 orders of four messages, 4,800 draws, alpha 1e-6."""
    state = np.random.RandomState(7)
    options = {"bucket_size": 4, "attempts": 20} if cls is BucketShuffler else {}
    shuffler = cls(random_state=state, **options)
    assert chisquare(order_counts(shuffler.shuffle, 4800)).pvalue > ALPHA


def test_a_wrong_order_is_noticed():
    """The swap with any place, not with those at or below, is the classical mistake: 24 does not divide 4^4."""
    rng = np.random.default_rng(7)

    def naive(messages):
        for at in range(4):
            place = rng.integers(4)
            messages[[at, place]] = messages[[place, at]]
        return messages

    assert chisquare(order_counts(naive, 4800)).pvalue < ALPHA


def test_places_of_long_shuffles_are_uniform():
    """Where the first ten of 140,000 messages go, in two runs of steps: 400 places in 10 parts, alpha 1e-6."""
    state = np.random.RandomState(3)
    for shuffler in (UniformShuffler(random_state=state), BucketShuffler(random_state=state)):
        parts = np.zeros(10)
        for _ in range(40):
            order = shuffler.shuffle(np.arange(140_000, dtype=np.uint32))
            parts += np.bincount(np.flatnonzero(order < 10) // 14_000, minlength=10)
        assert parts.sum() == 400
        assert chisquare(parts).pvalue > ALPHA


def test_spare_words_are_taken_where_a_word_must_be_rejected():
    from dpestim._core import shuffle as kernel

    rows = np.arange(3, dtype=np.uint8)[:, np.newaxis].copy()
    spare = np.array([0, 1 << 63], np.uint64)
    # of 2^64 words one is too many for 3 places, the word 0: it and the spare 0 are rejected
    assert kernel.swaps(rows, 0, 3, np.array([0, 1, 1], np.uint64), spare, 0) == 2
    assert kernel.swaps(rows, 0, 3, np.zeros(3, np.uint64), spare[:1], 0) == 2  # one more than there are
    with pytest.raises(RuntimeError, match="shuffle again"):
        ShuffleWords(WordSource(0)).check(65)


def test_the_trace_of_buckets_is_the_same_for_every_input_and_order():
    traces = set()
    for seed, messages in enumerate((np.zeros(7000), np.arange(7000), np.arange(7000)[::-1])):
        shuffler = BucketShuffler(128, record_trace=True, attempts=9, random_state=seed)
        shuffler.shuffle(messages.astype(np.uint16))
        traces.add(shuffler.trace_.tobytes())
        assert len(shuffler.trace_) == 2 * 2 * 128 + 128  # two passes read and write, then all are gathered
    assert len(traces) == 1
    shuffler.shuffle(np.zeros(3000, np.uint16))  # another number, another trace: n is public
    assert shuffler.trace_.tobytes() not in traces


def test_overflow_is_bounded_reported_and_drops_nothing():
    """512 messages in buckets of 32: 300 attempts, alpha 1e-6; the bound is above the overflows that are seen."""
    bound, failed = BucketShuffler(32).failure_probability(512), 0
    assert 0 < bound < 0.2
    for seed in range(300):
        try:
            BucketShuffler(32, attempts=1, random_state=seed).shuffle(np.arange(512, dtype=np.uint16))
        except RuntimeError:
            failed += 1
    assert binom.sf(failed - 1, 300, bound) > ALPHA
    with pytest.raises(RuntimeError, match="take a larger bucket_size"):
        BucketShuffler(2, attempts=1, random_state=0).shuffle(np.arange(1000, dtype=np.uint16))
    assert BucketShuffler().failure_probability(10) == 0
    assert BucketShuffler().failure_probability(10**7) < 2.0**-40


@pytest.mark.parametrize("messages", [[1.5], np.arange(3), np.zeros((1, 1, 1), np.uint8), np.zeros((2, 0), np.uint8)])
@pytest.mark.parametrize("cls", [UniformShuffler, BucketShuffler, IBLTShuffler])
def test_messages_must_be_unsigned(cls, messages):
    with pytest.raises(ValueError, match="messages must be"):
        cls().shuffle(messages)


def test_parameters_are_checked():
    for wrong in (3, 0, 4.0, 1 << 21):
        with pytest.raises(ValueError, match="bucket_size"):
            BucketShuffler(wrong)
    with pytest.raises(ValueError, match="attempts"):
        BucketShuffler(attempts=0)
    with pytest.raises(ValueError, match="bits"):
        SecureSum(65)
    with pytest.raises(ValueError, match="dropout"):
        SecureSum(dropout=0.6, corrupt=0.4)
    with pytest.raises(ValueError, match="vectors"):
        SecureSum().sum(np.zeros((1, 3), np.uint8))
    for wrong in ([4], [-1], [True], ["a"]):
        with pytest.raises(ValueError, match="dropped must name users"):
            SecureSum().sum(np.zeros((4, 3), np.uint8), dropped=wrong)


@pytest.mark.parametrize("bits", [1, 16, 64])
@pytest.mark.parametrize(("n", "gone"), [(2, []), (5, []), (60, range(0, 60, 12)), (70, [])])
def test_sums_of_survivors_are_exact(bits, n, gone):
    vectors = np.random.default_rng(n).integers(0, 1 << 63, (n, 5), dtype=np.uint64) * np.uint64(2)
    vectors[0] = 2**64 - 1
    left = np.setdiff1d(np.arange(n), gone)
    exact = [sum(int(v) for v in column) % (1 << bits) for column in vectors[left].T]
    assert SecureSum(bits, random_state=0).sum(vectors, dropped=gone).tolist() == exact


def test_too_many_dropouts_are_an_error():
    with pytest.raises(ValueError, match="dropped must be fewer"):
        SecureSum(random_state=0).sum(np.ones((60, 5), np.uint8), dropped=range(55))


def test_masked_vectors_look_uniform_and_masks_cancel():
    """All bytes of 20 masked vectors of zeros, 64,000 of them, alpha 1e-6; without masks there is one value."""
    vectors = np.zeros((20, 400), np.uint64)
    masked = SecureSum(random_state=0).masked(vectors)
    assert chisquare(np.bincount(masked.view(np.uint8).ravel(), minlength=256)).pvalue > ALPHA
    assert chisquare(np.bincount(vectors.view(np.uint8).ravel(), minlength=256)).pvalue < ALPHA
    assert SecureSum(random_state=0).sum(vectors).tolist() == [0] * 400


def test_neighbours_grow_like_the_logarithm():
    sizes = {n: SecureSum().graph(n) for n in (10, 100, 10_000, 1_000_000)}
    assert sizes[10] == (9, 2)  # all: one more share than may collude
    k = [degree for degree, _ in sizes.values()]
    assert k == sorted(k)
    assert k[-1] < 100
    for n, (degree, threshold) in sizes.items():
        assert 0 < threshold <= degree < n


@pytest.mark.parametrize("n", [3, 4])
def test_orders_of_the_kernel_are_exactly_uniform(n):
    """All places of all steps, one word for each: every order once."""
    from dpestim._core import shuffle as kernel

    seen = set()
    for code in range(factorial(n)):
        words, rows = [], np.arange(n, dtype=np.uint8)[:, np.newaxis].copy()
        for m in range(n, 0, -1):
            code, place = divmod(code, m)
            words.append((((2 * place + 1) << 64) // (2 * m)) % (1 << 64))
        kernel.swaps(rows, 0, n, np.array(words, np.uint64), np.zeros(1, np.uint64), 0)
        seen.add(rows.tobytes())
    assert len(seen) == factorial(n)
