"""Eight independent bits from 16 random ones: the exact law of the 256 patterns, and the table that mostly decides."""

from bisect import bisect_right, insort
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpestim._core import unary
from dpestim.rng import Stage, Words
from dpestim.words_of_one import WordsOfOne

#: Digits (bits) of the number that decides: products of eight probabilities k / 2**64 are multiples of 2**-512.
DIGITS = 512
#: Random bits that the table looks at, and what it says where they do not decide: a pattern that never owns a cell.
PREFIX, OPEN = 16, 255
#: A probability of 1/2.
HALF = 1 << 63
_NO_CODES, _NONE = np.empty(0, np.uint8), np.empty(0, np.uint64)
#: Words of 64 bits that bring the other digits: the first brings 48, the next seven 64 each.
RARE_WORDS = 8


class BitPatterns:
    """The law of eight bits, each 1 with probability threshold / 2**64, laid out on [0, 1).

    A pattern owns as many of the 2**16 cells of [0, 1) as its probability fills; what is left of all patterns (of the
    rarest, 255, everything) lies side by side in the last cells. Each of the `columns` of 256 cells has at most two
    owners: (first, second, how many cells the first has). `table` is the owner of a cell, or 255 in the last ones;
    there `boundaries` (out of 2**512) separate patterns 0, 1, ..., 255, and `edges` are their first 64 bits. The
    threshold is at most 2**63.
    """

    def __init__(self, threshold):
        one, zero, cell = int(threshold), (1 << 64) - int(threshold), 1 << (DIGITS - PREFIX)
        weights = [one**k * zero ** (8 - k) for k in range(9)]
        owned, left = zip(*((0, w) if k == 8 else divmod(w, cell) for k, w in enumerate(weights)))
        ones = [pattern.bit_count() for pattern in range(256)]
        cells = [owned[k] for k in ones[:-1]]
        self.columns = _fixed(_columns(cells))
        first, second, cut = self.columns[:, :, None]
        self.table = _fixed(np.where(np.arange(256, dtype=np.uint8) < cut, first, second).reshape(-1))
        self.boundaries = list(accumulate((left[k] for k in ones[:-1]), initial=sum(cells) * cell))[1:]
        self.edges = _fixed(np.array([b >> (DIGITS - 64) for b in self.boundaries], np.uint64))
        #: columns and edges, for the kernel of one record.
        self.both = self.columns.tobytes() + self.edges.tobytes()

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


def words_for(width):
    """Return how many words a record of that many bytes takes: one for the caller, 16 random bits for every eight."""
    return 1 + -(-width // 4)


def spare_words(width):
    """Return how many rare words are drawn with the others of one record: its ties hardly ever need more."""
    return 4 + width // 64


def draw_encoded(codes, true, false, n_bits, words, out, stage=Stage.RESPONSE, rare_stage=Stage.RARE, firsts=_NONE):
    """Write unary encodings: the bit of each code is 1 with probability true / 2**64, all others false / 2**64.

    And the word that decided about each record's own bit to `firsts`, where there is room for it.
    """
    if type(words) is WordsOfOne:
        drawn, start = _draw_one(false, words, out, stage, rare_stage, codes.item(), n_bits, true)
        if len(firsts):
            firsts[:] = np.frombuffer(drawn, np.uint64, 1, 8 * start)
    elif not _drawn_at_once(false, words, out, stage, rare_stage, codes, n_bits, true, firsts):
        drawn = draw_patterns(false, words, out, stage, rare_stage)
        unary.finish(codes, drawn, n_bits, true, out)
        if len(firsts):
            firsts[:] = drawn[:, 0]


def draw_bits(threshold, words, out, stage=Stage.RESPONSE, rare_stage=Stage.RARE):
    """Write independent bits, each 1 with probability threshold / 2**64, to bytes."""
    if 0 < threshold < 2 * HALF and type(words) is WordsOfOne:
        _draw_one(threshold, words, out, stage, rare_stage)
    elif not _drawn_at_once(threshold, words, out, stage, rare_stage):
        draw_patterns(threshold, words, out, stage, rare_stage)


def draw_patterns(threshold, words, out, stage=Stage.RESPONSE, rare_stage=Stage.RARE):
    """Write independent bits, each 1 with probability threshold / 2**64, to bytes; return the words of the first stage.

    The first word of each record is not used.
    """
    if threshold in (0, 2 * HALF):
        out[:] = 255 if threshold else 0
        return None
    if type(words) is WordsOfOne:
        drawn = _draw_one(threshold, words, out, stage, rare_stage)
        return np.frombuffer(drawn[0], np.uint64, words_for(out.shape[1]), 8 * drawn[1]).reshape(1, -1)
    if threshold > HALF:  # zeros are the rarer ones
        drawn = draw_patterns(2 * HALF - threshold, words, out, stage, rare_stage)
        np.invert(out, out=out)
        return drawn
    (n, width), law = out.shape, bit_patterns(threshold)
    drawn = words.dense(stage, words_for(width)).reshape(-1, words_for(width))
    ties = words.scratch(n * width + 1, np.uint32)
    ties = ties[: unary.draw(drawn, law.table, law.columns, out, ties)]
    if len(ties):
        per_row, first = RARE_WORDS * width, np.multiply(ties, RARE_WORDS, dtype=np.uint64)
        rare = words.sparse(rare_stage, per_row, first)
        for place in ties[: unary.settle(drawn, ties, rare, law.edges, out)].tolist():
            # all 64 digits were a boundary's, once in 2**48 ties or less: the others decide
            row, group = divmod(place, width)
            digits = words.sparse(rare_stage, per_row, RARE_WORDS * place + np.arange(RARE_WORDS))
            out[row, group] = law.decide(drawn[row, 1:].view(np.uint16)[group], digits)
    return drawn


def _drawn_at_once(threshold, words, out, stage, rare_stage, codes=_NO_CODES, n_bits=None, true=0, firsts=_NONE):
    """Write the same by one kernel that makes the words, too, and return True; or False, if it cannot.

    Then what it wrote is of no use. It is so where OpenSSL makes words, and where 64 digits were a boundary's.
    """
    if type(words) is not Words or not 0 < threshold <= HALF:
        return False
    width = out.shape[1]
    cipher = words.cipher(stage, words_for(width))
    if cipher is None:
        return False
    cipher += words.rare_cipher(rare_stage, RARE_WORDS * width)
    law, (rows, n_words), has_codes = bit_patterns(threshold), unary.tile_rows(width), codes is not _NO_CODES
    scratch, ties = words.scratch(n_words, np.uint64), words.scratch(rows * width + 1, np.uint32)
    return not unary.encode(codes, has_codes, cipher, law.table, law.columns, law.edges, n_bits or 8 * width, true, out,
                            scratch, ties, firsts)


def _draw_one(threshold, words, out, stage, rare_stage, code=-1, n_bits=None, true=0):
    """Write the bits of one record by one kernel; the first ties take the spare words (``unary.md``)."""
    width, inverted = out.shape[1], threshold > HALF  # (zeros are the rarer ones)
    size, n_bits = words_for(width), 8 * width if n_bits is None else n_bits
    law = bit_patterns(2 * HALF - threshold if inverted else threshold)
    n_spare = spare_words(width)
    drawn, start = words.with_spare(stage, size, rare_stage, n_spare)
    end = start + size + n_spare
    if unary.draw_one(drawn, start, start + size, end, law.both, inverted, code, n_bits, true, out):
        own = np.frombuffer(drawn, np.uint64, size + n_spare, 8 * start)
        _settle_one(law, own, size, words, inverted, out)
        if code >= 0:
            unary.finish(np.array([code], np.uint32), own[:size].reshape(1, -1), n_bits, true, out)
    return drawn, start


def _settle_one(law, drawn, size, words, inverted, out):
    """Write the patterns of all ties by all their digits, of which spare words are the first, as far as they go."""
    random, spare = drawn[1:size].view(np.uint16), drawn[size:].tolist()
    for number, group in enumerate(np.flatnonzero(law.table[random[: out.shape[1]]] == OPEN).tolist()):
        first = spare[number : number + 1]
        pattern = law.decide(random[group], first + words.more(RARE_WORDS - len(first)))
        out[0, group] = 255 - pattern if inverted else pattern


def _columns(cells):
    """Return columns for patterns that own so many cells: of what has the fewest left, then of what has most.

    Two always fill a column (``unary.md``). The last column is filled by one; what is left over is open.
    """
    total, left = sum(cells), sorted(n << 8 | pattern for pattern, n in enumerate(cells) if n)
    columns = np.zeros((3, 256), np.uint8)
    columns[:2] = OPEN

    def take(place, most):
        n, pattern = divmod(left.pop(place), 256)
        if n > most:
            insort(left, (n - most) << 8 | pattern)
        return pattern, min(n, most)

    for column in range(-(-total // 256)):
        size = min(256, total - 256 * column)
        first, n = take(0, size)
        if n == 256:
            columns[:, column] = first, first, 0
        else:
            columns[:, column] = first, OPEN if n == size else take(-1, size - n)[0], n
    return columns


def _fixed(array):
    array.flags.writeable = False
    return array
