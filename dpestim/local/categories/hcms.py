"""Hadamard count-mean sketches: of a hash and a row that are drawn, a user answers one sign (its proof: ``cms.md``)."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import hadamard, hcms, sketch
from dpestim.inputs import smallest_dtype
from dpestim.local import pivots
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.sketch import MOST_GUESSED, Sketch, words_of_signs
from dpestim.local.columns import wide
from dpestim.local.guessing import TIE
from dpestim.local.reports import FieldReports
from dpestim.privacy.category_weights import grr_weights

#: Counters that are many.
_MANY = 1 << 17


class Quarters:
    """Counts that nobody has read: four in a byte, and a list of those that ran over, each time, with its length."""

    def __init__(self, lanes, full):
        self._lanes, self._full = lanes, full

    def __len__(self):
        return 4 * len(self._lanes)

    def wide(self):
        """Return the counts."""
        counts = np.empty(len(self), np.int64)
        sketch.settle(self._lanes, self._full, counts, True)
        return counts

    def __array__(self, dtype=None, copy=None):
        return self.wide() if dtype is None else self.wide().astype(dtype, copy=False)


class HCMS(FieldReports, Sketch):
    """Hadamard count-mean sketch; a report is (hash, row of the Hadamard matrix, sign).

    The sign is that of the row at the bucket, 1 for -1, answered by randomised response. Counts are a histogram of
    reports.
    """

    field_names = ("hash", "row", "sign")
    count_refuses = True
    block_words = GRR.block_words

    def __init__(self, epsilon, n_categories, n_hashes=None, n_buckets=None, hash_seed=0):
        super().__init__(epsilon, n_categories, n_hashes, n_buckets, hash_seed)
        self.weights = grr_weights(self.epsilon, 2)
        self.n_words = 1 + self.weights.n_words
        self.n_counts = 2 * self.n_hashes * self.n_buckets
        self.field_limits = (self.n_hashes, self.n_buckets, 2)
        self.report_dtype = smallest_dtype(max(self.field_limits))
        self.report_bits = math.log2(self.n_counts)
        self.p_star = Fraction(self.weights.keep, self.weights.total)
        self.q_star = self.collisions * self.p_star + (1 - self.collisions) / 2

    def _default_buckets(self):
        # one bit is sent whatever their number is: collisions are avoided as long as the counts fit
        d = self.n_categories
        return 1 << (d - 1).bit_length() if d <= 1 << 24 else 1 << 10

    def _signs(self, codes, hashes, rows):
        out = np.empty(len(codes), np.uint8)
        codes = np.ascontiguousarray(codes, self.code_dtype)
        sketch.signs(codes, np.ascontiguousarray(hashes, np.uint32), np.ascontiguousarray(rows, np.uint32),
                     self.columns, out)
        return out

    def privatize(self, codes, words, out):
        """Write (hash, row, sign) for each code."""
        hcms.answer(np.ascontiguousarray(codes, self.code_dtype), *self._draws(words), out)

    def _draws(self, words):
        """Return what kernels make cells and signs of."""
        drawn = words_of_signs(words, self.n_counts // 2, self.weights)
        return *drawn, self.weights.keep, self.columns, self.n_buckets.bit_length() - 1

    def _counts_bytes(self, n):
        """Tell whether n reports are counted in bytes, of which counts are made if some overflow."""
        return self.n_counts >= _MANY and n >= self.n_counts // 4

    def sent_counters(self, n):
        """Return (counts, None); or, of many reports, (bytes that are counters, a list of full ones)."""
        if not self._counts_bytes(n):
            return np.zeros(self.n_counts, np.int64), None
        quarters = n <= self.n_counts and self.n_counts % 4 == 0  # (four counters a byte: few reports fill one)
        full = np.empty(n // (4 if quarters else 256) + 2, np.uint32)
        full[-1] = 0
        return np.zeros(self.n_counts // 4 if quarters else self.n_counts, np.uint8), full

    def _in_quarters(self, counters):
        """Tell whether bytes of counters have four in each."""
        return 4 * len(counters[0]) == self.n_counts

    def count_sent(self, codes, words, counters):
        """Count the reports of codes, which are written nowhere."""
        hcms.send(np.ascontiguousarray(codes, self.code_dtype), *self._draws(words), *counters,
                  self._in_quarters(counters))

    def counts_of_sent(self, counters, *others):
        """Return the counts: bytes are added up, and are the counts where none has overflowed."""
        lanes, full = counters
        if full is None:
            return super().counts_of_sent(lanes, *(part for part, _ in others)) if others else lanes
        for other in others:
            hcms.join(lanes, full, *other, self._in_quarters(counters))
        if self._in_quarters(counters):
            return Quarters(lanes, np.append(full[: full[-1]], full[-1:]))
        if not full[-1]:
            return lanes
        counts = np.empty(len(lanes), np.int64)
        sketch.settle(lanes, full, counts)
        return counts

    def public_part(self, reports):
        """Return the hash and the row."""
        return reports[:, :2]

    def count(self, reports, counts):
        """Add a histogram of the reports."""
        if self._counts_bytes(len(reports)):
            counts += wide(self._histogram(reports))
        else:
            self._tally(np.ascontiguousarray(reports), (counts, None))

    def counted(self, reports):
        """Return a histogram of the reports."""
        return self._histogram(reports) if type(self).count is HCMS.count else super().counted(reports)

    def _histogram(self, reports):
        """Return a histogram of the reports, which are read at one go where they lie side by side."""
        counters, step = self.sent_counters(len(reports)), self.served_rows
        if reports.flags.c_contiguous and reports.dtype == self.report_dtype:
            step = len(reports)
        for start in range(0, len(reports), step):
            self._tally(np.ascontiguousarray(reports[start : start + step], self.report_dtype), counters)
        return self.counts_of_sent(counters)

    def _tally(self, reports, counters):
        if not hcms.tally(reports, self.n_buckets.bit_length() - 1, *counters, self._in_quarters(counters)):
            self.check_reports(reports)  # (it says which field)
            raise ValueError("a report must name a hash, a row and a sign within their ranges: check that client and "
                             "server have the same parameters")

    def supporting(self, codes, counts, n):
        """Return how many signs agree with each code: half of (n + the transform of what the rows say)."""
        return (n + self._over_hashes(self._transformed(counts), codes)) / 2

    def _supporting_continued(self, prefixes, n_more, counts, n):
        return (n + self._over_continued(self._transformed(counts), prefixes, n_more)) / 2

    def _transformed(self, counts):
        pairs = counts.reshape(-1, 2)
        sums = np.ascontiguousarray(pairs[:, 0] - pairs[:, 1]).reshape(self.n_hashes, self.n_buckets)
        hadamard.fwht(sums)
        return sums

    def squares(self, counts, n):
        """Return the mean square of the shares of buckets, without what noise and collisions add to it."""
        m, k = self.n_buckets, self.n_hashes
        share = self._transformed(counts) / (n * float(2 * self.p_star - 1)) * k
        found = np.square(share).sum(axis=1).mean() - m * k / (n * float(2 * self.p_star - 1) ** 2)
        return float(np.clip((found - 1 / m) / (1 - 1 / m), 0.0, 1.0))

    def support(self, reports):
        """Return 1 where the sign is that of the value."""
        out = np.empty((len(reports), self.n_categories), np.uint8)
        for v in range(self.n_categories):
            out[:, v] = self._signs(np.full(len(reports), v), reports[:, 0], reports[:, 1]) == reports[:, 2]
        return out

    def known_counts(self, counts, n):
        """Return how often each hash, and each row, was drawn, and the sign in the first row, which is that of all."""
        k, m = self.n_hashes, self.n_buckets
        table = counts.reshape(k, m, 2)
        found = [pivots.grouped(f"{name} that were drawn", table.sum(axis=axes), np.full(size, 1 / size), n)
                 for name, axes, size in (("hashes", (1, 2), k), ("rows", (0, 2), m)) if size > 1]
        signs = table[:, 0].sum(axis=0)
        chances = np.array([float(self.p_star), float(1 - self.p_star)]) / m
        return [*found, pivots.cells("signs in the first row", signs, chances, n)]

    def transition_matrix(self):
        """Return the 2 x 2 law of the sign, given hash and row."""
        own = self.p_star
        return [[own, 1 - own], [1 - own, own]]

    @property
    def support_odds(self):
        """How much likelier a sign is for a value that has it."""
        return self.weights.keep, self.weights.other

    def guessing(self, prior):
        """Return how often the best guess is right, for each value.

        Over all hashes and rows, or where there are many over some of them, drawn once and for all.
        """
        n_cells, out = self.n_hashes * self.n_buckets, np.zeros(len(prior))
        cells = np.arange(n_cells)
        if n_cells > 4 * MOST_GUESSED:
            cells = np.random.default_rng(0).integers(0, n_cells, 4 * MOST_GUESSED)
        for cell in cells:
            hash_, row = (np.full(len(prior), part) for part in divmod(int(cell), self.n_buckets))
            sign = self._signs(self.input_codes, hash_, row)
            for seen in (0, 1):
                likely = np.where(sign == seen, float(self.p_star), 1 - float(self.p_star))
                best = prior * likely >= (prior * likely).max() * (1 - TIE)
                out += likely * best / np.count_nonzero(best)
        return out / len(cells)

    def law_indices(self, codes, reports):
        """Return (sign of the value in the report's row, reported sign)."""
        return self._signs(codes, reports[:, 0], reports[:, 1]).astype(np.int64), reports[:, 2].astype(np.int64)
