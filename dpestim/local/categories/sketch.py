"""What count-mean sketches share: public hashes from values to buckets, and what collisions do to estimates."""

import hashlib
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import hadamard, sketch
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.privacy.exact import WORD
from dpestim.rng import Stage, Words

#: Hashes have numbers of two bytes; cells of the state; buckets where nothing is said, which make collisions rare.
MOST_HASHES, MOST_CELLS, LEAST_BUCKETS = 1 << 16, 1 << 27, 1 << 8
#: Seeds that are few: whole products in Python take less time than halves of them in arrays.
_FEW = 8
#: Hashes over which guessing is averaged, where there are more; four times as many rows of them.
MOST_GUESSED = 64
#: Hashes of values for an audit.
MOST_HASHED = 1 << 26
#: Polynomials over GF(2), x^L + ..., that are irreducible, for fields of 2^L elements, L = 1, 2, ...
_POLYNOMIALS = (0b11, 0b111, 0b1011, 0x13, 0x25, 0x43, 0x83, 0x11B, 0x211, 0x409, 0x805, 0x1053, 0x201B, 0x402B, 0x8003,
                0x1002B)


class Sketch(CategoricalRandomizer):
    """k public hashes to m buckets, a power of two; a user draws one, and what is reported is about the bucket alone.

    Hashes are linear: of the bits of a code, each brings a column of log2(m) bits, and the bucket is their exclusive
    or. One hash of at least as many buckets as there are values is the identity. m + 1 hashes, for at most m^2 values,
    are the directions of a plane: any two values share a bucket of exactly one of them. All others are drawn from
    `hash_seed`, and two values share a bucket of each with probability 1 / m over the draw (``cms.md``).
    """

    heavy = True  # the hashes are a table
    largest_domain = 1 << 64

    def __init__(self, epsilon, n_categories, n_hashes=None, n_buckets=None, hash_seed=0):
        super().__init__(epsilon, n_categories)
        check_whole(n_buckets, "n_buckets", 2, 1 << 24, optional=True)
        check_whole(n_hashes, "n_hashes", 1, MOST_HASHES, optional=True)
        check_whole(hash_seed, "hash_seed", 0, WORD - 1)
        self.n_buckets = self._default_buckets() if n_buckets is None else n_buckets
        if self.n_buckets & (self.n_buckets - 1):
            raise ValueError("n_buckets must be a power of two")
        m, d = self.n_buckets, n_categories
        plane = m * m >= d and m < MOST_HASHES and (m + 1) * m <= MOST_CELLS
        self.n_hashes = n_hashes or (1 if m >= d else m + 1 if plane else 1024)
        if self.n_hashes > MOST_HASHES or self.n_hashes * m > MOST_CELLS:
            raise ValueError(f"n_hashes must be at most {MOST_HASHES}, n_hashes times n_buckets at most {MOST_CELLS}")
        #: how often, over the hashes, two values share a bucket; exactly that for any two where `is_exact`
        self.collisions, self.is_exact = Fraction(1, m), False
        if self.n_hashes == 1 and m >= d:
            self.collisions, self.is_exact = Fraction(0), True
        elif self.n_hashes == m + 1 and m * m >= d:
            self.collisions, self.is_exact = Fraction(1, m + 1), True

    def _default_buckets(self):
        """Return the least number for which a plane holds all values, where that is not too many."""
        half = 1 << ((self.n_categories - 1).bit_length() + 1) // 2
        return max(LEAST_BUCKETS, half) if half <= 1 << 12 else 1 << 10

    @cached_property
    def columns(self):
        """The hashes, uint32 of shape (k, bits of a code); servers share them, and so nobody changes them."""
        out = self._made_columns()
        out.setflags(write=False)
        return out

    def _made_columns(self):
        k, m, n_bits = self.n_hashes, self.n_buckets, (self.n_categories - 1).bit_length()
        size = m.bit_length() - 1
        if self.is_exact:
            out = np.zeros((k, n_bits), np.uint32)
            out[: k if k == 1 else m, : min(size, n_bits)] = 1 << np.arange(min(size, n_bits), dtype=np.uint32)
            # value (low, high) of the plane, on the line low + j high, and, in the last direction, high
            step = np.arange(m, dtype=np.uint32) if k > 1 else None
            for i in range(size, n_bits):
                out[:m, i], out[m, i] = step, 1 << (i - size)
                step = step << 1
                step ^= np.where(step & m, np.uint32(_POLYNOMIALS[size - 1]), np.uint32(0))
            return out
        key = b"dpestim sketch %d" % self.arguments["hash_seed"]
        drawn = np.frombuffer(hashlib.shake_256(key).digest(4 * k * n_bits), "<u4").reshape(k, n_bits)
        return np.ascontiguousarray(drawn & np.uint32(m - 1), np.uint32)

    # ---------------------------------------------------------------- hashes

    def buckets(self, codes, hashes):
        """Return the bucket of each code under a hash of its own."""
        out = np.empty(len(codes), np.uint32)
        hashes = np.minimum(hashes, np.uint32(self.n_hashes - 1))
        sketch.buckets(np.ascontiguousarray(codes, self.code_dtype), hashes, self.columns, out)
        return out

    def _over_hashes(self, table, codes):
        """Return, for each code, the sum of what the table, (k, m), has at its buckets."""
        out = np.zeros(len(codes), np.int64)
        table = np.ascontiguousarray(table.reshape(self.n_hashes, self.n_buckets), np.int64)
        sketch.query(table, self.columns, np.ascontiguousarray(codes, self.code_dtype), out)
        return out

    def continued(self, prefixes, n_more, counts, n):
        """Return the estimates of all codes of so many more bits behind prefixes, of shape (prefixes, 2^n_more)."""
        return super().estimate(self._supporting_continued(prefixes, n_more, counts, n), n)

    def _supporting_continued(self, prefixes, n_more, counts, n):
        return self._over_continued(counts, prefixes, n_more)

    def _over_continued(self, table, prefixes, n_more):
        """Return, for each prefix, the sums that `_over_hashes` has for all codes of so many more bits behind it.

        An array of shape (prefixes, 2^n_more). A hash is linear, so that the sum is a Walsh-Hadamard transform over the
        added bits of what the transform of each hash's row says: all continuations cost hardly more than one. Where
        there are fewer of them than buckets, they are looked up.
        """
        k, m = self.n_hashes, self.n_buckets
        if m > 1 << n_more:
            more = np.arange(1 << n_more, dtype=np.uint64)
            codes = (np.asarray(prefixes, np.uint64)[:, None] << np.uint64(n_more) | more).ravel()
            return self._over_hashes(table, codes).reshape(len(prefixes), -1)
        rows = np.array(table.reshape(k, m), np.int64)
        hadamard.fwht(rows)  # (m times what each pattern of signs of buckets says)
        u, odd, places = np.arange(m, dtype=np.uint32), np.zeros(m, bool), np.zeros((k, m), np.intp)
        for i in range(m.bit_length() - 1):
            odd ^= (u >> np.uint32(i) & np.uint32(1)).astype(bool)
        for i in range(n_more):
            places |= odd[self.columns[:, i, None] & u].astype(np.intp) << i
        out = np.empty((len(prefixes), 1 << n_more), np.int64)
        starts = np.asarray(prefixes, np.uint64) << np.uint64(n_more)
        hashes, places = np.arange(k, dtype=np.uint32), places.ravel()
        for own, start in zip(out, starts):
            bucket = self.buckets(np.full(k, start), hashes)
            signed = np.where(odd[bucket[:, None] & u], -rows, rows)
            own[:] = np.bincount(places, signed.ravel(), 1 << n_more)
        hadamard.fwht(out)
        return out // m

    def collision_rates(self, codes):
        """Return an array of the shares of hashes under which any two of these codes share a bucket."""
        together = np.zeros((len(codes), len(codes)), np.int64)
        for j in range(self.n_hashes):
            own = self.buckets(codes, np.full(len(codes), j, np.uint32))
            together += own[:, None] == own
        return together / self.n_hashes

    # ---------------------------------------------------------------- what malicious users can do

    def supported(self, goal):
        """Return the fewest and the most of some values that one report can support.

        All bits may be set, or none; and the first row of a Hadamard matrix has one sign for all buckets.
        """
        return 0, len(goal)

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values."""
        return self._reach_of_supports(goal)

    def mean_reach(self, goal):
        """Return the same of the mean over the reports of one value: where hashes are drawn some collide more often."""
        if self.is_exact:
            return super().mean_reach(goal)
        if self.n_categories * self.n_hashes > MOST_HASHED:
            raise ValueError("categories and n_hashes are too many together for the worst input: take fewer of one")
        together, codes = np.zeros(self.n_categories, np.int64), np.arange(self.n_categories)
        for j in range(self.n_hashes):
            own = self.buckets(codes, np.full(len(codes), j, np.uint32))
            together += np.bincount(own[goal], minlength=self.n_buckets)[own]
        kappa = self.collisions
        return tuple((Fraction(int(k), self.n_hashes) - len(goal) * kappa) / (1 - kappa)
                     for k in (together.min(), together.max()))

    # ---------------------------------------------------------------- estimates

    def supporting(self, codes, counts, n):
        """Return how many of n reports support each code."""
        raise TypeError(f"{type(self).__name__} does not say what counts support: implement `supporting`")

    def squares(self, counts, n):
        """Return an estimate of the sum of the squares of all frequencies, in [0, 1]."""
        raise TypeError(f"{type(self).__name__} does not say how uneven frequencies are: implement `squares`")

    def estimate(self, counts, n):
        """Return the frequencies of all categories."""
        if self.n_categories > 1 << 24:
            raise ValueError("categories are too many to estimate all at once: call estimate(values) for some of them")
        return self.estimate_of(np.arange(self.n_categories, dtype=np.uint32), counts, n)

    def estimate_of(self, codes, counts, n):
        """Return the frequencies of some codes."""
        return super().estimate(self.supporting(codes, counts, n), n)

    def error_of(self, codes, f, counts, n):
        """Return the standard errors of the frequencies f of some codes."""
        at_zero, slope = self.variance_line(counts, n)
        return np.sqrt(np.maximum(at_zero + slope * np.clip(f, 0.0, 1.0), 0.0) / n)

    def variance(self, n, f):
        """Return the variance of `estimate`; where hashes are drawn, over their draw: a part of it has no n in it.

        `f` holds the frequencies of all categories; of one number the worst case is taken: one value has the rest.
        """
        f = np.asarray(f, dtype=np.float64)
        others = np.square(f).sum() - np.square(f) if f.ndim else np.square(1 - f)
        return super().variance(n, f) + self._unevenness * others

    def even_variance(self, n):
        """Return (mean, largest) over the values: all have the same."""
        d = self.n_categories
        found = float(super().variance(n, 1 / d)) + self._unevenness * (d - 1) / d**2
        return found, found

    def variance_line(self, counts, n):
        """Return the line of n times the variance; what collisions add is estimated from the counts."""
        at_zero, slope = super().variance_line(counts, n)
        return at_zero + (0.0 if self.is_exact else n * self._unevenness * self.squares(counts, n)), slope

    @property
    def _unevenness(self):
        """What the squared frequencies of others add to the variance of a value: its collisions are not average."""
        return 0.0 if self.is_exact else 1 / (self.n_hashes * (self.n_buckets - 1))


def drawn_below(size, words):
    """Return a number below size, itself below 2^32, for each row, from the words of a public seed."""
    seeds = words.dense(Stage.SEED, 1)
    if len(seeds) <= _FEW:
        return np.array([word * size >> 64 for word in seeds.tolist()], np.uint32)
    size = np.uint64(size)
    high, low = seeds >> np.uint64(32), seeds & np.uint64(0xFFFFFFFF)
    return ((high * size + (low * size >> np.uint64(32))) >> np.uint64(32)).astype(np.uint32)


def words_of_signs(words, n_cells, weights):
    """Return what kernels draw a cell and a sign of: half a word and an eighth a row, where these suffice.

    (cells, signs); or (what a kernel makes both of, None).
    """
    one, halved = weights.n_words == 1, not n_cells & (n_cells - 1)
    if one and halved and type(words) is Words:
        cells, signs = words.cipher_of_parts(Stage.SEED, 2), words.cipher_of_parts(Stage.RESPONSE, 8)
        if cells and signs and cells[0] == signs[0]:  # (the kernel has one key; checks mix the words of two)
            return cells + signs[1:] + words.rare_cipher(Stage.RARE, 1), None
    cells = words.halves(Stage.SEED) if halved and not words.alone else words.dense(Stage.SEED, 1)
    if one and not words.alone:
        return cells, words.first_digits(weights.keep, Stage.RESPONSE, Stage.RARE)
    return cells, words.dense(Stage.RESPONSE, weights.n_words)


def check_whole(value, name, least, most, *, optional=False):
    """Raise ValueError unless a parameter is an integer in a range, or None where it is optional."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be {'None or ' if optional else ''}an integer from {least} to {most}")
