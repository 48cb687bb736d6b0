"""Which bits of neighbour lists are flipped: an exact law, drawn by the gaps between flips; proof: ``flips.md``.

Flips do not depend on the lists. Each user has words of its own, found by the number of the user alone, so that users
may be randomised apart, in any order and by any number of threads.
"""

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, count, pairwise

import numpy as np

from dpestim import parallel
from dpestim._core import lists
from dpestim.privacy.category_weights import grr_weights
from dpestim.records import record
from dpestim.rng import Stage

#: The longest gap that one word says, a power of two.
_LONGEST = 1 << 14
#: Bits of fixed-point numbers below the binary point, of which thresholds keep 64.
_DIGITS = 192
#: Words of a run of users, about.
_RUN_WORDS = 1 << 16
#: Words that a user who needs more gets at a time.
_MORE = 64


@record
class BitLaw:
    """Randomised response of one bit: it stays with probability p, and is flipped with probability q = 1 - p."""

    epsilon: Fraction

    @cached_property
    def q(self):
        """The probability of a flip, a Fraction: that of a 1 where there is no neighbour."""
        weights = grr_weights(self.epsilon, 2)
        return Fraction(weights.other, weights.total)

    @property
    def p(self):
        """The probability of a 1 where there is a neighbour, a Fraction."""
        return 1 - self.q

    @property
    def variance(self):
        """The variance of a debiased bit, for either value of it: q (1 - q) / (1 - 2 q)^2."""
        return float(self.q * self.p / (self.p - self.q) ** 2)

    def debiased(self, ones, slots):
        """Return unbiased numbers of neighbours from numbers of reported ones among so many slots."""
        return (np.asarray(ones, float) - np.asarray(slots, float) * float(self.q)) / float(self.p - self.q)

    @cached_property
    def values(self):
        """The two values of a debiased bit, (where 0 was reported, where 1 was reported), as Fractions."""
        return -self.q / (self.p - self.q), self.p / (self.p - self.q)

    def draw(self, source, users, n_nodes, half, n_jobs=None):
        """Return (flipped slots, flips of each user) of ascending users: int32 arrays."""
        runs = Runs(self, n_nodes, half)
        pieces = pieces_of(users, runs.length)

        def task(first, last):
            reader = source.reader()
            return [runs.draw(reader, users[a:b]) for a, b in pieces[first:last]]

        drawn = list(chain.from_iterable(parallel.run(task, len(pieces), n_jobs)))
        if not drawn:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        return tuple(np.concatenate(parts) for parts in zip(*drawn))


def slots_of(users, n_nodes, half):
    """Return how many bits users report: those of nodes of higher number, or of all other nodes."""
    users = np.asarray(users, np.int64)
    return n_nodes - 1 - users if half else np.full(len(users), n_nodes - 1, np.int64)


def pieces_of(users, length):
    """Return (first, last) of the stretches of consecutive users of one run."""
    edges = np.flatnonzero((np.diff(users) != 1) | (np.diff(users // length) != 0)) + 1
    edges = [0, *edges.tolist(), len(users)]
    return list(pairwise(edges)) if len(users) else []


class Runs:
    """How words are dealt out: runs of `length` users, of whom each has equally many at first."""

    def __init__(self, law, n_nodes, half):
        self.law, self.n_nodes, self.half = law, n_nodes, half
        self.length = max(1, _RUN_WORDS // self._per(n_nodes - 1))

    def _per(self, size):
        """Return the words that a user of so many slots hardly ever exceeds."""
        q = float(self.law.q)  # (a word takes (1 - (1 - q)^B) / q slots on average)
        mean = size * q / -math.expm1(gap_table(self.law.q).longest * math.log1p(-q))
        return max(2, min(math.ceil(mean + 5 * math.sqrt(mean) + 4), size + 1))

    def draw(self, reader, users):
        """Return the flips of consecutive users of one run."""
        run, first = divmod(int(users[0]), self.length)
        per = self._per(int(slots_of([run * self.length], self.n_nodes, self.half)[0]))
        words = reader.dense(Stage.RESPONSE, 0, run, first * per, len(users) * per)
        gaps, n = gap_table(self.law.q), len(users)
        sizes = slots_of(users, self.n_nodes, self.half)
        out, counts = np.empty(n * per, np.int32), np.empty(n, np.int32)
        places, used = np.empty(n, np.int64), np.empty(n, np.int32)
        total = lists.flips(words, per, sizes, gaps.thresholds, gaps.guide, gaps.bits, out, counts, places, used)
        out = out[:total]
        late = np.flatnonzero(places >= 0)
        if not len(late):
            return out, counts
        parts, ends, before = [], np.cumsum(counts), 0
        for u in late.tolist():
            left = words[u * per + used[u] : (u + 1) * per].tolist()
            more = words_of(reader, run, first + u)
            found = gaps.walk(chain(left, more), int(places[u]), int(sizes[u]))
            parts += [out[before : ends[u]], np.array(found, np.int32)]
            before, counts[u] = ends[u], counts[u] + len(found)
        return np.concatenate([*parts, out[before:]]), counts


def words_of(reader, run, place):
    """Yield further words of a user, which few users need."""
    for k in count():
        yield from reader.dense(Stage.RARE, 0, run, (place << 40) + k * _MORE, _MORE).tolist()


class GapTable:
    """The law of the gap before a flip, P[gap >= k] = (1 - q)^k, cut at B: thresholds of 64 bits, and exact ones."""

    def __init__(self, q):
        self.keep, self.total = q.denominator - q.numerator, q.denominator
        # (with q close to 0 most gaps are longer, and are said by several words)
        self.longest = longest = min(_LONGEST, max(16, 1 << math.ceil(3 - math.log2(q))))
        # (1 - q)^k from below and from above: both have the same first 64 digits, or the exact number decides
        one = 1 << _DIGITS
        low = high = one
        found = [0]
        for k in range(1, longest + 1):
            low, high = low * self.keep // self.total, high * self.keep // self.total + 1
            one_less = (one - high) >> _DIGITS - 64, (one - low) >> _DIGITS - 64
            found.append(one_less[0] if one_less[0] == one_less[1] else self._rounded(k, 1))
        self.thresholds = np.array(found, np.uint64)
        self.bits = max(1, min(longest.bit_length(), 14))
        cells = np.arange(1 << self.bits, dtype=np.uint64) << np.uint64(64 - self.bits)
        self.guide = (np.searchsorted(self.thresholds, cells, side="right") - 1).astype(np.int32)

    def _rounded(self, k, n_words):
        """Return 2^(64 n_words) P[gap < k], rounded down."""
        whole = self.total**k
        return (whole - self.keep**k << 64 * n_words) // whole

    def gap(self, words):
        """Return the gap that words say, exactly: as many words as that takes."""
        number = first = next(words)
        low, high = (int(np.searchsorted(self.thresholds, np.uint64(first), side)) - 1 for side in ("left", "right"))
        if high == 0 or low == high:
            return high  # (no threshold equals the word)
        n_words = 1
        while True:
            # the gap is k if 1 - (1 - q)^k <= U < 1 - (1 - q)^(k + 1), for U in [number, number + 1) / 2^(64 n_words)
            number, n_words = number << 64 | next(words), n_words + 1
            k = high
            while k > max(low, 0) and self._rounded_up(k, n_words) > number:
                k -= 1
            if k == self.longest or number + 1 <= self._rounded(k + 1, n_words):
                return k

    def _rounded_up(self, k, n_words):
        """Return 2^(64 n_words) P[gap < k], rounded up."""
        whole = self.total**k
        return -((self.keep**k - whole << 64 * n_words) // whole)

    def geometric(self, words):
        """Return a number whose probability of being at least k is (1 - q)^k, for every k."""
        total = 0
        while (gap := self.gap(words)) == self.longest:
            total += gap
        return total + gap

    def walk(self, words, at, size):
        """Return the flips from a slot on, one word after the other."""
        found = []
        while at < size:
            gap = self.gap(words)
            at += gap
            if gap < self.longest:
                if at < size:
                    found.append(at)
                at += 1
        return found


@lru_cache(maxsize=32)
def gap_table(q):
    """Return the table of a probability, kept: it is public."""
    return GapTable(q)
