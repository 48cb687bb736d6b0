"""Eight independent bits from 16 random ones: the exact law of the 256 patterns, and the table that mostly decides."""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np

#: Digits (bits) of the number that decides: products of eight probabilities k / 2**64 are multiples of 2**-512.
DIGITS = 512
#: Random bits that the table looks at, and what it says where they do not decide: a pattern that never owns a cell.
PREFIX, OPEN = 16, 255
#: Words of 64 bits that bring the other digits: the first brings 48, the next seven 64 each.
RARE_WORDS = 8


class BitPatterns:
    """The law of eight bits, each 1 with probability threshold / 2**64, laid out on [0, 1).

    A pattern owns as many of the 2**16 cells of [0, 1) as its probability fills; what is left of all patterns (of the
    rarest, 255, everything) lies side by side in the last cells. `table` is the owner of a cell, or 255 in the last
    ones; there `boundaries` (out of 2**512) separate patterns 0, 1, ..., 255, and `edges` are their first 64 bits.
    """

    def __init__(self, threshold):
        one, zero, cell = int(threshold), (1 << 64) - int(threshold), 1 << (DIGITS - PREFIX)
        weights = [one**k * zero ** (8 - k) for k in range(9)]
        owned, left = zip(*((0, w) if k == 8 else divmod(w, cell) for k, w in enumerate(weights)))
        ones = [pattern.bit_count() for pattern in range(256)]
        table = np.full(1 << PREFIX, OPEN, np.uint8)
        decided = np.repeat(np.arange(256, dtype=np.uint8), [owned[k] for k in ones])
        table[: len(decided)] = decided
        self.table = _fixed(table)
        self.boundaries = list(accumulate((left[k] for k in ones[:-1]), initial=len(decided) * cell))[1:]
        self.edges = _fixed(np.array([b >> (DIGITS - 64) for b in self.boundaries], np.uint64))

    def decide(self, prefix, words):
        """Return the pattern that all 512 digits say, where the table does not.

        16 digits are the prefix, 48 come from the first word and 64 from each of the other seven.
        """
        u = int(prefix) << 48 | int(words[0]) >> 16
        for word in words[1:]:
            u = u << 64 | int(word)
        return bisect_right(self.boundaries, u)


@lru_cache(maxsize=32)  # of 64 KiB each; the size of the domain does not matter
def bit_patterns(threshold):
    """Return the `BitPatterns` of a threshold."""
    return BitPatterns(threshold)


def _fixed(array):
    array.flags.writeable = False
    return array
