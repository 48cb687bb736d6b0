"""Fast local hashing: local hashing with few public hashes, whose reports are counted in a table of any domain."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim._core import grr
from dpestim.inputs import smallest_dtype
from dpestim.local import pivots
from dpestim.local.categories.sketch import Sketch, drawn_below
from dpestim.local.guessing import TIE
from dpestim.local.reports import FieldReports
from dpestim.privacy.category_weights import grr_weights
from dpestim.rng import Stage

#: Buckets that a hash has at most: more are better for an epsilon above 9 only.
MOST_BUCKETS = 1 << 13
#: Hashes over which guessing is averaged, where there are more.
MOST_GUESSED = 64


class FLH(FieldReports, Sketch):
    """A report is (hash, bucket): a public hash drawn among few, and its bucket by randomised response.

    Counts are a histogram of reports.
    """

    field_names = ("hash", "bucket")
    largest_planned = 0

    def __init__(self, epsilon, n_categories, n_hashes=None, n_buckets=None, hash_seed=0):
        super().__init__(epsilon, n_categories, n_hashes, n_buckets, hash_seed)
        self.weights = grr_weights(self.epsilon, self.n_buckets)
        self.n_words = 1 + self.weights.n_words
        self.n_counts = self.n_hashes * self.n_buckets
        self.field_limits = (self.n_hashes, self.n_buckets)
        self.report_dtype = smallest_dtype(max(self.field_limits))
        self.report_bits = math.log2(self.n_counts)
        self.p_star, self.other = _response(self.epsilon, self.n_buckets)
        self.q_star = self.collisions * self.p_star + (1 - self.collisions) * self.other

    def _default_buckets(self):
        return best_buckets(self.epsilon)

    def privatize(self, codes, words, out):
        """Write (hash, bucket) for each code."""
        hashes, answers = drawn_below(self.n_hashes, words), np.empty(len(codes), np.uint32)
        grr.privatize(self.buckets(codes, hashes), words.dense(Stage.RESPONSE, self.weights.n_words),
                      self.weights.keep, self.weights.other, answers)
        out[:, 0], out[:, 1] = hashes, answers

    def public_part(self, reports):
        """Return the hash."""
        return reports[:, :1]

    def count(self, reports, counts):
        """Add a histogram of the reports."""
        cells = reports[:, 0].astype(np.uint32)
        cells *= np.uint32(self.n_buckets)
        cells += reports[:, 1]
        if not grr.count(cells, counts):
            raise ValueError("a report must name a hash and a bucket within their ranges: check that client and server "
                             "have the same parameters")

    def supporting(self, codes, counts, n):
        """Return the sums of the counts at the buckets of each code."""
        return self._over_hashes(counts, codes)

    def squares(self, counts, n):
        """Return the mean square of the shares of buckets, without what noise and collisions add to it."""
        p, q, m, k = float(self.p_star), float(self.other), self.n_buckets, self.n_hashes
        told = counts.reshape(k, m) / n * k
        noise = (k * told - np.square(told)) / n / (p - q) ** 2
        found = (np.square((told - q) / (p - q)) - noise).sum(axis=1).mean()
        return float(np.clip((found - 1 / m) / (1 - 1 / m), 0.0, 1.0))

    def support(self, reports):
        """Return 1 where the bucket of the value is the reported one."""
        out, hashes = np.empty((len(reports), self.n_categories), np.uint8), reports[:, 0].astype(np.uint32)
        for v in range(self.n_categories):
            out[:, v] = self.buckets(np.full(len(reports), v), hashes) == reports[:, 1]
        return out

    def known_counts(self, counts, n):
        """Return how often each hash was drawn."""
        k = self.n_hashes
        drawn = counts.reshape(k, -1).sum(axis=1)
        return [pivots.grouped("hashes that were drawn", drawn, np.full(k, 1 / k), n)] if k > 1 else []

    def transition_matrix(self):
        """Return the m x m law of the reported bucket for each bucket, given the hash."""
        m = range(self.n_buckets)
        return [[self.p_star if x == y else self.other for y in m] for x in m]

    @property
    def support_odds(self):
        """How much likelier a bucket is for a value in it."""
        return self.weights.keep, self.weights.other

    def guessing(self, prior):
        """Return how often the best guess is right, for each value, over all hashes, or over some, evenly spaced."""
        out, p, q = np.zeros(len(prior)), float(self.p_star), float(self.other)
        hashes = np.unique(np.linspace(0, self.n_hashes - 1, MOST_GUESSED).astype(np.uint32))
        for j in hashes:
            bucket = self.buckets(self.input_codes, np.full(len(prior), j))
            for seen in range(self.n_buckets):
                likely = np.where(bucket == seen, p, q)
                best = prior * likely >= (prior * likely).max() * (1 - TIE)
                out += likely * best / np.count_nonzero(best)
        return out / len(hashes)

    def law_indices(self, codes, reports):
        """Return (bucket of the value under the report's hash, reported bucket)."""
        return self.buckets(codes, reports[:, 0].astype(np.uint32)).astype(np.int64), reports[:, 1].astype(np.int64)


@lru_cache(maxsize=256)
def best_buckets(epsilon):
    """Return the power of two of buckets for which the variance is least, with as many hashes as it takes."""
    sizes = [1 << bits for bits in range(1, MOST_BUCKETS.bit_length())]
    return min(sizes, key=lambda m: _variance(epsilon, m))


def _response(epsilon, m):
    """Return the probabilities of the own bucket and of another one."""
    weights = grr_weights(epsilon, m)
    return Fraction(weights.keep, weights.total), Fraction(weights.other, weights.total)


def _variance(epsilon, m):
    p, other = _response(epsilon, m)
    q = p / m + (1 - Fraction(1, m)) * other
    return q * (1 - q) / (p - q) ** 2
