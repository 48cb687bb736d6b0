"""Messages that are counted without being written: the counts are those of the messages that users would send."""

import numpy as np
import pytest

from dpestim import config_context
from dpestim._core import rare
from dpestim.local.columns import counts_unsent
from dpestim.shuffle import BooleanSum, ShuffledHistogram
from dpestim.shuffle.histograms.fakes import Fakes
from dpestim.shuffle.sums.boolean import NoisyBit

#: More rows than a block of words has, and not a whole number of runs of the kernel.
MANY = (1 << 18) + 1234


def histogram(d, epsilon, n):
    return ShuffledHistogram(epsilon, delta=1e-9, n_users=n, categories=[np.arange(d)], random_state=5)


@pytest.mark.parametrize(("make", "d", "n"), [
    (lambda n: BooleanSum(1.0, delta=1e-9, n_users=n, random_state=5), 2, MANY),       # flips are rare
    (lambda n: BooleanSum(1.0, delta=1e-9, n_users=n, random_state=5), 2, 50),         # and frequent
    (lambda n: histogram(100, 1.0, n), 100, MANY),       # fakes are rare
    (lambda n: histogram(20, 0.2, n), 20, 300),          # frequent, in several places
    (lambda n: histogram(300, 8.0, n), 300, 5000),       # codes have two bytes
])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_is_counted_is_what_would_be_sent(make, d, n, n_jobs):
    X = np.random.default_rng(0).integers(0, d, (n, 1))
    messages = make(n).encode(X)
    sent, unsent = make(n).analyse(messages), make(n).set_params(n_jobs=n_jobs).fit(X)
    assert np.array_equal(sent._counts[0], unsent._counts[0])
    assert not np.array_equal(messages[:, 0], X[:, 0]) or messages[:, 1:].min() < d  # there is noise to be counted
    # rows that come later have their own words: positions within a block, and blocks
    half = make(n // 3).partial_fit(X[: n // 3]).partial_fit(X[n // 3 :])
    again = make(n // 3)
    assert np.array_equal(again.fit(X)._counts[0], half._counts[0])


@pytest.mark.parametrize("n", [0, 1, 7, 63, 64, 65, 4096 + 129])
def test_open_places_are_those_that_the_first_digits_leave_open(n):
    rng = np.random.default_rng(n)
    lanes = rng.integers(0, 1 << 8, n, dtype=np.uint8)
    for most in (0, 3, 1 << 7, (1 << 8) - 1):
        lanes[rng.random(n) < 0.02] = most
        places, counters = np.empty(n, np.int64), np.empty((n, 16), np.uint8)
        found = rare.open_places(lanes, most, 0x0102030405060708, 1 << 40, places, counters)
        at = np.flatnonzero(lanes <= most)
        assert np.array_equal(places[:found], at)
        assert counters[:found].tobytes() == b"".join(
            bytes(range(1, 9)) + ((1 << 40) + int(k)).to_bytes(8) for k in at)
        for least in {most, most // 2}:
            spare = np.empty(n, np.int64)
            within = rare.open_places(lanes, most, 0, 0, spare, np.empty((n, 16), np.uint8), least)
            assert np.array_equal(spare[:within], at[lanes[at] >= least])
        words, last = rng.integers(0, 1 << 64, 2 * found, np.uint64), (most << 56) + (1 << 55)
        numbers, kept = np.empty(found, np.uint64), at.copy()
        left = rare.settle(lanes, words, last, kept, numbers)
        whole = [(int(lanes[k]) << 56 | int(word) >> 8, k) for k, word in zip(at, words[::2])]
        assert list(zip(numbers[:left].tolist(), kept[:left])) == [pair for pair in whole if pair[0] <= last]


def test_kernels_refuse_what_does_not_fit():
    lanes, three, four = np.zeros(4, np.uint8), np.empty(3, np.int64), np.empty(4, np.int64)
    for places, counters in ((three, np.empty((4, 16), np.uint8)), (four, np.empty((3, 16), np.uint8)),
                             (four, np.empty((4, 15), np.uint8))):
        with pytest.raises(ValueError, match="room"):
            rare.open_places(lanes, 0, 0, 0, places, counters)
    with pytest.raises(ValueError, match="length"):
        rare.settle(lanes, np.zeros(7, np.uint64), 0, four, np.empty(4, np.uint64))
    for place in (-1, 4):
        with pytest.raises(ValueError, match="lanes"):
            rare.settle(lanes, np.zeros(2, np.uint64), 0, np.array([place]), np.empty(1, np.uint64))


@pytest.mark.parametrize("law", [NoisyBit, Fakes])
@pytest.mark.parametrize("own", ["privatize", "count"])
def test_a_sub_class_that_sends_or_counts_in_its_own_way_is_asked(law, own):
    assert counts_unsent(law)
    assert counts_unsent(type("Same", (law,), {}))
    assert not counts_unsent(type("Other", (law,), {own: lambda self, *args: None}))


@pytest.mark.parametrize("make", [
    lambda: BooleanSum(1.0, delta=1e-9, random_state=5),
    lambda: ShuffledHistogram(1.0, delta=1e-9, categories=[np.arange(2)], random_state=5),
])
def test_laws_are_kept_for_as_many_rows_and_made_anew_for_others(make):
    X = np.random.default_rng(0).integers(0, 2, (5000, 1))
    fitted = make().fit(X)
    before = fitted._columns
    assert fitted.fit(X)._columns is before
    assert fitted.fit(X[:4000]).randomizer().n_users == 4000
    assert fitted.set_params(epsilon=2.0).fit(X[:4000]).randomizer().epsilon == 2
    assert fitted.set_params(n_users=3000).fit(X[:4000]).randomizer().n_users == 3000
    assert fitted.set_params(n_users=None).fit(X[:4000]).randomizer().n_users == 4000


def test_bytes_are_bits_in_strict_mode_too():
    X = np.resize(np.array([0, 1, 2, 255, 3], np.uint8), (5000, 1))
    protocol = BooleanSum(1.0, delta=1e-9, n_users=5000, random_state=5)
    with config_context(strict=True):
        assert np.array_equal(protocol.encode(X), protocol.encode(X > 0))
        assert protocol.fit(X).sum_ == protocol.fit(X > 0).sum_
    with pytest.raises(ValueError, match="no other values"):
        protocol.fit(X)
    for same in (X == 1, np.int64(X == 1), np.float32(X == 1)):
        assert protocol.fit(same).sum_ == protocol.fit(np.uint8(same)).sum_
