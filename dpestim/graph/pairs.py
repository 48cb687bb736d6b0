"""All pairs of nodes by randomised response: packed bits that are flipped with an exact probability, and their sums."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.patterns import draw_patterns
from dpestim.privacy.category_weights import oue_thresholds
from dpestim.records import record
from dpestim.rng import Words

#: The most nodes: their pairs are 50 MB of bits.
LARGEST = 20_000
#: Bytes that a row of random patterns has, and rows that are taken at a time.
_WIDTH, _ROWS = 256, 1 << 12
#: Entries that are unpacked at a time.
_BLOCK = 1 << 24


@record
class PairFlips:
    """Each bit is flipped with probability `flip`, by itself: (1 - flip) / flip is at most e^epsilon, exactly."""

    epsilon: Fraction

    def __post_init__(self):
        _ = self.flip  # ValueError, where epsilon is too small

    @cached_property
    def flip(self):
        """The probability that a bit is the wrong one."""
        return Fraction(oue_thresholds(self.epsilon)[1], 1 << 64)

    @property
    def gain(self):
        """How much likelier a one is where there is an edge."""
        return float(1 - 2 * self.flip)

    @property
    def variance(self):
        """The variance of the unbiased number of one pair, whether or not there is an edge."""
        return float(self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2)

    @property
    def proxy(self):
        """A variance of normal numbers that are no closer to 0 than this number is to its mean (Kearns and Saul)."""
        odds = math.log1p(float((1 - 2 * self.flip) / self.flip))
        return 1 / (2 * self.gain * odds)

    def unbiased(self, ones, pairs):
        """Return the unbiased number of edges among so many pairs, of which so many bits are 1."""
        return (ones - pairs * float(self.flip)) / self.gain

    def add(self, bits, source, column=0):
        """Return packed bits with flips; the array of uint8 is changed."""
        flat, reader = bits.reshape(-1), source.reader()
        threshold, per = oue_thresholds(self.epsilon)[1], _WIDTH * _ROWS
        for first in range(0, flat.size, per):
            part = flat[first : first + per]
            rows = -(-part.size // _WIDTH)
            drawn = np.empty((rows, _WIDTH), np.uint8)
            draw_patterns(threshold, Words(reader, column, 0, first // _WIDTH, rows), drawn)
            part ^= drawn.reshape(-1)[: part.size]
        return bits


def packed(graph):
    """Return the pairs of a graph: bit j of row i is 1 where i < j are joined; rows are packed bits."""
    n = graph.n_nodes
    out = np.zeros((n, -(-n // 8)), np.uint8)
    rows = np.repeat(np.arange(n), graph.degrees)
    once = rows < graph.neighbours
    rows, columns = rows[once], graph.neighbours[once]
    np.bitwise_or.at(out, (rows, columns >> 3), np.left_shift(1, columns & 7).astype(np.uint8))
    return out


def upper(bits):
    """Set all bits to 0 but those of pairs i < j, which alone mean something; the array is changed."""
    n = len(bits)
    for first, block in _blocks(bits):
        block[np.arange(n)[None, :] <= first + np.arange(len(block))[:, None]] = 0
        bits[first : first + len(block)] = np.packbits(block, axis=1, bitorder="little")
    return bits


def crossing(bits, sides):
    """Return, for each column of a matrix of zeros and ones, the pairs of nodes on different sides whose bit is 1."""
    sides = np.asarray(sides, np.float32)
    found = np.zeros(sides.shape[1])
    for first, block in _blocks(bits):
        block, own = block.astype(np.float32), sides[first : first + len(block)]
        there = block @ sides  # (integers of at most n, which these floats hold)
        found += np.where(own > 0, block.sum(1)[:, None] - there, there).sum(0, dtype=float)
    return found


def ones(bits):
    """Return how many bits are 1."""
    count = getattr(np, "bitwise_count", None) or (lambda words: np.unpackbits(words.view(np.uint8)))  # (of NumPy 2)
    return int(count(np.ascontiguousarray(bits)).sum(dtype=np.int64))


def _blocks(bits):
    """Yield (number of the first row, rows of zeros and ones)."""
    n = len(bits)
    for first in range(0, n, step := max(1, _BLOCK // n)):
        yield first, np.unpackbits(bits[first : first + step], axis=1, count=n, bitorder="little")
