"""Integers modulo 2^64 shared among three parties, of whom two are honest: sums, products, bits and comparisons.

A number is the sum of three shares, party i has shares i and i + 1. Programs are generators without input or output:
each round yields the words that go to the party before, and is sent those of the party after. The proof:
``replicated.md``.

    Shared       two of the three shares of an array: of a sum (+), or of bits (^)
    Computer     a computing party, its keys and the gates
    split        the three pairs of shares of an array, for its owner
    run_rounds   a program of all three parties in one process
"""

import hashlib

import numpy as np

from dpestim.records import record
from dpestim.rng import Stage, WordReader

__all__ = ["Computer", "Shared", "run_rounds", "split"]

#: Columns of words: masks of sums, masks of bits, numbers that nobody knows.
_SUMS, _BITS, _DRAWN = range(3)
_ONES = np.uint64((1 << 64) - 1)
#: Distances over which carries are passed on.
_DISTANCES = (1, 2, 4, 8, 16, 32)


@record
class Shared:
    """What party i has of an array: its share i and its share i + 1, of 64-bit words.

    Parameters
    ----------
    first, second : ndarray of uint64, of one shape
    """

    first: np.ndarray
    second: np.ndarray

    def __add__(self, other):
        return Shared(self.first + other.first, self.second + other.second)

    def __sub__(self, other):
        return Shared(self.first - other.first, self.second - other.second)

    def __xor__(self, other):
        return Shared(self.first ^ other.first, self.second ^ other.second)

    def __getitem__(self, key):
        return Shared(self.first[key], self.second[key])

    def each(self, change):
        """Return the shares after a change that is linear: of the sum, or of bits."""
        return Shared(change(self.first), change(self.second))

    def spread(self, place):
        """Return, of bits, the words whose bits are all the bit at this place."""
        return self.each(lambda words: np.uint64(0) - (words >> np.uint64(place) & np.uint64(1)))

    @staticmethod
    def stacked(parts):
        """Return the shares of arrays one above the other."""
        return Shared(np.stack([part.first for part in parts]), np.stack([part.second for part in parts]))


class Computer:
    """One of three computing parties: what it does to its shares, and the words that it exchanges.

    Parameters
    ----------
    place : int
        0, 1 or 2.
    own, following : bytes
        A secret that this party has with the one before, and one with the one after; 32 bytes or more, for one session.

    Attributes
    ----------
    n_rounds, n_words : int
        How many times this party has sent, and how many words: they do not depend on the numbers.
    """

    def __init__(self, place, own, following):
        if place not in (0, 1, 2):
            raise ValueError("place must be 0, 1 or 2")
        if len(own) < 32 or len(following) < 32:
            raise ValueError("own and following must be secrets of 32 bytes or more")
        self.place, self.n_rounds, self.n_words = place, 0, 0
        self._readers = [WordReader(hashlib.sha256(b"dpestim replicated " + key).digest()) for key in (own, following)]
        self._turn = 0

    # ------------------------------------------------ without messages

    def placed(self, words, place):
        """Return shares of which share `place` is these words, which are read where it is held; the others are 0."""
        nothing = np.zeros_like(words)
        return Shared(words if place == self.place else nothing, words if place == (self.place + 1) % 3 else nothing)

    def public(self, words):
        """Return shares of words that all know: they are share 0."""
        return self.placed(np.asarray(words, np.uint64), 0)

    def random(self, shape):
        """Return shares of uniform words that no party knows; of a sum, or of bits."""
        return Shared(*self._words(_DRAWN, shape))

    def _words(self, column, shape):
        """Return the words that this party has with the party before, and with the one after."""
        self._turn += 1
        size = int(np.prod(shape))
        return [reader.dense(Stage.NOISE, column, self._turn, 0, size).copy().reshape(shape)
                for reader in self._readers]

    # ------------------------------------------------ one round

    def _exchange(self, words):
        self.n_rounds, self.n_words = self.n_rounds + 1, self.n_words + words.size
        received = yield words
        return received

    def _hidden(self, words, column):
        """Return words of this party under a mask, which those of all three parties cancel."""
        own, following = self._words(column, words.shape)
        return words + (own - following) if column == _SUMS else words ^ own ^ following

    def multiply(self, x, y):
        """Return shares of products modulo 2^64."""
        mine = self._hidden(x.first * y.first + x.first * y.second + x.second * y.first, _SUMS)
        return Shared(mine, (yield from self._exchange(mine)))

    def both(self, x, y):
        """Return shares of bits that are 1 in both."""
        mine = self._hidden(x.first & (y.first ^ y.second) ^ x.second & y.first, _BITS)
        return Shared(mine, (yield from self._exchange(mine)))

    def open_sum(self, x):
        """Return the words of a sum, to all three."""
        return x.first + x.second + (yield from self._exchange(x.second))

    def open_bits(self, x):
        """Return the words whose bits are shared, to all three."""
        return x.first ^ x.second ^ (yield from self._exchange(x.second))

    # ------------------------------------------------ many rounds

    def add_bits(self, x, y):
        """Return the bits of a sum modulo 2^64 of two numbers, whose bits are shared."""
        alone, carry = x ^ y, (yield from self.both(x, y))
        passes = alone
        for distance in _DISTANCES:
            shift = np.uint64(distance)
            moved = Shared.stacked([carry, passes]).each(lambda words, by=shift: words << by)
            further = yield from self.both(Shared.stacked([passes, passes]), moved)
            carry, passes = carry ^ further[0], further[1]
        return alone ^ carry.each(lambda words: words << np.uint64(1))

    def add_three(self, x, y, z):
        """Return the bits of a sum modulo 2^64 of three numbers, whose bits are shared."""
        carry = (yield from self.both(x ^ z, y ^ z)) ^ z
        return (yield from self.add_bits(x ^ y ^ z, carry.each(lambda words: words << np.uint64(1))))

    def bits_of(self, x):
        """Return shares of the bits of a sum."""
        held = {self.place: x.first, (self.place + 1) % 3: x.second}
        nothing = np.zeros_like(x.first)
        return (yield from self.add_three(*(self.placed(held.get(place, nothing), place) for place in range(3))))

    def sum_of(self, x):
        """Return shares, of a sum, of a number whose bits are shared."""
        drawn, nothing = self._drawn_for(x), np.zeros_like(x.first)
        held = {self.place: drawn.first, (self.place + 1) % 3: drawn.second}
        minus = [self.placed(np.uint64(0) - held.get(place, nothing), place) for place in (1, 2)]
        rest = yield from self.add_three(x, *minus)
        # share 0 goes to parties 0 and 2, which have it; party 1 must not meet it, and is sent zeros
        last = yield from self._exchange(nothing if self.place == 2 else rest.second)
        if self.place == 1:
            return Shared(drawn.first, drawn.second)
        share = rest.first ^ rest.second ^ last
        return Shared(share, drawn.second) if self.place == 0 else Shared(drawn.first, share)

    def _drawn_for(self, x):
        """Return shares of random words, of which shares 1 and 2 become those of a sum."""
        return self.random(x.first.shape)

    def inverted(self, bits):
        """Return bits that are 1 where these are 0."""
        return bits ^ self.public(np.full_like(bits.first, _ONES))

    def chosen(self, where, x, y):
        """Return bits of x where the bits of `where` are 1, and of y elsewhere."""
        return y ^ (yield from self.both(where, x ^ y))

    def looked_up(self, bits, n_bits, table):
        """Return bits of the word of a public table at the place that the lowest n_bits of `bits` name."""
        table = np.asarray(table, np.uint64).reshape((1 << n_bits,) + (1,) * bits.first.ndim)
        lowest = bits.spread(0)
        words = lowest.each(lambda own: own & (table[::2] ^ table[1::2]))
        words ^= self.public(np.broadcast_to(table[::2], words.first.shape))
        for place in range(1, n_bits):
            where = bits.spread(place).each(lambda own: own[np.newaxis])
            words = yield from self.chosen(where, words[1::2], words[::2])
        return words[0]

    def shifted_down(self, bits, by, n_bits):
        """Return bits that are moved down by a number below 2^n_bits, whose bits are the lowest of `by`."""
        for place in range(n_bits):
            moved = bits.each(lambda words, shift=1 << place: words >> np.uint64(shift))
            bits = yield from self.chosen(by.spread(place), moved, bits)
        return bits


def split(words, masks):
    """Return the pairs of shares, of parties 0, 1 and 2, of an array of words, by two arrays of uniform words."""
    shares = [masks[0], masks[1], np.asarray(words, np.uint64) - masks[0] - masks[1]]
    return [Shared(shares[place], shares[(place + 1) % 3]) for place in range(3)]


def run_rounds(programs, watch=None):
    """Return what the programs (generators) of parties 0, 1 and 2 return, with all of them in one process.

    `watch`, where given, is called with the place of a receiver and the words it is sent.
    """
    programs, sent, results = list(programs), [None] * 3, [None] * 3
    running = True
    for place in range(3):
        sent[place] = next(programs[place])
    while running:
        arrived = [sent[(place + 1) % 3] for place in range(3)]
        ended = 0
        for place in range(3):
            if watch is not None:
                watch(place, arrived[place])
            try:
                sent[place] = programs[place].send(arrived[place])
            except StopIteration as end:
                results[place], ended = end.value, ended + 1
        if ended not in (0, 3):
            raise RuntimeError("the programs of the parties must have as many rounds")
        running = not ended
    return results
