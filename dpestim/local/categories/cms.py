"""Count-mean sketches: a hash that a user draws among few, and its bucket by unary encoding or by one sign."""

import math

import numpy as np

from dpestim._core import sketch
from dpestim.local import pivots
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.open import OpenFrequencyEstimator
from dpestim.local.categories.sketch import MOST_GUESSED, Sketch, drawn_below
from dpestim.local.categories.supports import Bits, success_of_sets
from dpestim.local.categories.unary import OUE
from dpestim.local.fields import Field, bits_for
from dpestim.local.guessing import TIE
from dpestim.rng import Stage


class CMS(Sketch):
    """Count-mean sketch; a report is the number of a hash, two bytes, and the bits of the buckets, packed.

    Counts are how often each bit of each hash is 1, a row of n_buckets for each hash.
    """

    report_dtype = np.dtype(np.uint8)
    block_words = OUE.block_words
    #: Of the bits of a few hundred buckets, one at a time.
    count_ns = 110.0

    def __init__(self, epsilon, n_categories, n_hashes=None, n_buckets=None, hash_seed=0):
        super().__init__(epsilon, n_categories, n_hashes, n_buckets, hash_seed)
        self.bits = OUE(self.epsilon, self.n_buckets)
        self.slack = self.bits.slack
        self.n_words, self.n_spare = 1 + self.bits.n_words, self.bits.n_spare
        self.n_counts = self.n_hashes * self.n_buckets
        self.report_width = 2 + self.bits.report_width
        self.report_bits = math.log2(self.n_hashes) + self.n_buckets
        self.p_star = self.bits.p_star
        self.q_star = self.collisions * self.p_star + (1 - self.collisions) * self.bits.q_star

    @property
    def fields(self):
        """The number of the hash, and the bits of the buckets."""
        return (Field("hash", bits_for(self.n_hashes), self.n_hashes, packed=True, n_bytes=2), *self.bits.fields)

    def privatize(self, codes, words, out):
        """Write the number of a hash and unary-encoded buckets."""
        if len(codes) == 1:
            hash_ = words.dense(Stage.SEED, 1).item() * self.n_hashes >> 64
            bucket = np.array((sketch.bucket(codes.item(), hash_, self.columns),), self.bits.code_dtype)
            out[0, 0], out[0, 1] = hash_ & 255, hash_ >> 8
            self.bits.privatize(bucket, words, out[:, 2:])
            return
        hashes = drawn_below(self.n_hashes, words)
        bits = words.scratch(len(codes) * self.bits.report_width, np.uint8).reshape(len(codes), -1)
        self.bits.privatize(self.buckets(codes, hashes), words, bits)
        out[:, 0], out[:, 1], out[:, 2:] = hashes & 255, hashes >> 8, bits

    @staticmethod
    def _hashes(reports):
        return reports[:, 0] | reports[:, 1].astype(np.uint32) << 8

    def public_part(self, reports):
        """Return the number of the hash."""
        return reports[:, :2]

    def check_reports(self, reports):
        """Refuse hashes that do not exist, and bits beyond the buckets."""
        if int(self._hashes(reports).max()) >= self.n_hashes:
            raise ValueError(f"a report must name a hash below {self.n_hashes}")
        self.bits.check_reports(reports[:, 2:])

    def count(self, reports, counts):
        """Add the bits to the row of their hash."""
        if not sketch.count(reports, counts.reshape(self.n_hashes, self.n_buckets)):
            raise ValueError(f"a report must name a hash below {self.n_hashes}")

    def supporting(self, codes, counts, n):
        """Return the sums of the bits at the buckets of each code."""
        return self._over_hashes(counts, codes)

    def squares(self, counts, n):
        """Return the mean square of the shares of buckets, without what noise and collisions add to it."""
        p, q, m = float(self.bits.p_star), float(self.bits.q_star), self.n_buckets
        ones = counts.reshape(self.n_hashes, m) / n * self.n_hashes
        noise = (self.n_hashes * ones - np.square(ones)) / n / (p - q) ** 2
        share = (ones - q) / (p - q)
        found = (np.square(share) - noise).sum(axis=1).mean()
        return float(np.clip((found - 1 / m) / (1 - 1 / m), 0.0, 1.0))

    def support(self, reports):
        """Return 1 where the bucket of the value has its bit."""
        bits, hashes = self.bits.support(reports[:, 2:]), self._hashes(reports)
        out, rows = np.empty((len(reports), self.n_categories), np.uint8), np.arange(len(reports))
        for v in range(self.n_categories):
            out[:, v] = bits[rows, self.buckets(np.full(len(reports), v), hashes)]
        return out

    knows_reports = True

    def known_counts(self, counts, n):
        """Return how many bits are 1 in all reports together."""
        return self.bits.known_counts(counts, n)

    def known_of(self, reports):
        """Return how many bits are 1 in each report, and in all together, and how often each hash was drawn."""
        k, n = self.n_hashes, len(reports)
        drawn = pivots.grouped("hashes that were drawn", np.bincount(self._hashes(reports), minlength=k),
                               np.full(k, 1 / k), n)
        return [*self.bits.known_of(reports[:, 2:]), *([drawn] if k > 1 else [])]

    def transition_matrix(self):
        """Return the m x 2^m law of the bits for each bucket, given the hash; m is at most 12."""
        return self.bits.transition_matrix()

    @property
    def support_odds(self):
        """How much likelier a report is for a value that it supports."""
        return self.bits.support_odds

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: the likeliest of a bucket stands for it.

        Over all hashes, or where there are many over some of them, evenly spaced.
        """
        out, odds = np.zeros(len(prior)), [float(part) for part in self.support_odds]
        hashes = np.unique(np.linspace(0, self.n_hashes - 1, MOST_GUESSED).astype(np.uint32))
        for j in hashes:
            bucket = self.buckets(self.input_codes, np.full(len(prior), j))
            top = np.zeros(self.n_buckets)
            np.maximum.at(top, bucket, prior)
            best = prior >= top[bucket] * (1 - TIE)
            n_best = np.bincount(bucket[best], minlength=self.n_buckets)
            won = success_of_sets(*(top * part for part in odds), np.full(self.n_buckets, float(self.p_star)),
                                  Bits(float(self.bits.q_star)))
            out += best * won[bucket] / n_best[bucket]
        return out / len(hashes)

    def law_indices(self, codes, reports):
        """Return (bucket of the value under the report's hash, the bits as an integer)."""
        return self.bits.law_indices(self.buckets(codes, self._hashes(reports)), reports[:, 2:])


class _SketchFrequencyEstimator(OpenFrequencyEstimator):
    """What the estimators of both sketches share."""

    _more_parameters = """
    n_hashes : int, default=None
        How many hashes there are, up to 65,536; n_hashes times n_buckets counters are kept. None: one where there are
        as many buckets as values; n_buckets + 1 where their square suffices; else 1,024.
    n_buckets : int, default=None
        Buckets of a hash, a power of two.{default_buckets}
    hash_seed : int, default=0
        Public seed of the hashes, from 0 to 2^64 - 1; of no effect where values collide equally often by construction.
    """
    _test_values = {"n_hashes": [2, 5], "n_buckets": [8, 16], "hash_seed": [1]}

    def __init__(self, epsilon=1.0, *, categories="auto", n_hashes=None, n_buckets=None, hash_seed=0, postprocess=None,
                 sparse_output=False, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.n_hashes = n_hashes
        self.n_buckets = n_buckets
        self.hash_seed = hash_seed

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with: collisions as on a plane, and none."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]], "n_hashes": 3, "n_buckets": 2},
            {"epsilon": 2.0, "categories": [["a", "b", "c"], [False, True]], "n_hashes": 1, "n_buckets": 4},
            {"epsilon": 3.0, "categories": [list(range(9))], "n_hashes": 5, "n_buckets": 4},
        ]


class CMSFrequencyEstimator(_SketchFrequencyEstimator):
    """Estimate frequencies by a count-mean sketch (CMS), for domains of any size and values without a list.

    Each user draws one of a few public hashes and sends the unary-encoded bucket of the user's value. The server keeps
    a counter for each bucket of each hash, for a domain of any size, and `estimate` answers for any value afterwards.
    Where the values are listed and as many bits as they are may be sent, `OUEFrequencyEstimator` does as well; where
    only one bit may be, take `HCMSFrequencyEstimator`.

    With ``categories=None``, or None in place of a column's list, a column is open: any string, bytes, number or bool
    may be held, and enters by a public 32-bit hash; `estimate` answers, as `frequencies_` and `transform` need a list.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer thresholds, both directions, proof in
    ``cms.md``), neighbours: any two rows of one user; no other party is trusted. The number of the hash is public and
    drawn without looking at the value.

    **Utility.** With p = 1/2 and q = 1 / (e^epsilon + 1) for a true and a false bit, and kappa the share of hashes in
    which two values share a bucket, a value that is not held is supported with q* = kappa p + (1 - kappa) q, and the
    variance of a frequency f among n users is (q* (1 - q*) / (p - q*)^2 + f (1 - p - q*) / (p - q*)) / n. With the
    default hashes and listed values (up to 2^24 of them) kappa is the same for any two values (0, or 1 / n_hashes), and
    estimates are unbiased. Other hashes are unbiased over the draw of `hash_seed` only: (sum of the squares of the
    other frequencies) / (n_hashes (n_buckets - 1)) is added to the variance, which more users do not make smaller;
    standard errors count it.

    **Complexity.** O(n_buckets) a user and at the server, O(n_hashes) a value asked for; n_hashes n_buckets counters;
    n_buckets + log2(n_hashes) bits sent.

    {parameters}
    References
    ----------
    Differential Privacy Team, Apple, "Learning with privacy at scale", Apple Machine Learning Journal 1 (8), 2017,
    algorithms 2 and 3; bits by T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for
    frequency estimation", USENIX Security 2017, eq. (10); hashes and variances are derived in ``cms.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import CMSFrequencyEstimator
    >>> X = np.repeat([["yes"], ["no"], ["never"]], [5000, 3000, 2000], axis=0)
    >>> est = CMSFrequencyEstimator(2.0, categories=None, random_state=0).fit(X)
    >>> answer = est.estimate(["yes", "no", "perhaps"])
    >>> np.abs(answer.frequencies - [0.5, 0.3, 0.0]).max() < 0.1
    np.True_
    """

    _randomizer = CMS
    _more_parameters = _SketchFrequencyEstimator._more_parameters.replace(
        "{default_buckets}", " None: 256, or as many as have the number of\n        values as their square; of an open "
        "column, or beyond 2^24 values, 1,024.")


class HCMSFrequencyEstimator(_SketchFrequencyEstimator):
    """Estimate frequencies by a Hadamard count-mean sketch (HCMS), with one bit a user, for domains of any size.

    Each user draws one of a few public hashes and a public row of a Hadamard matrix, and sends the sign of the row at
    the bucket of the user's value. The server keeps two counters for each cell, for a domain of any size, and
    `estimate` answers for any value afterwards. No report is shorter or made and counted more quickly;
    `CMSFrequencyEstimator` is more accurate, most of all above an epsilon of about 1, at a bit for each bucket.

    With ``categories=None``, or None in place of a column's list, a column is open: any string, bytes, number or bool
    may be held, and enters by a public 32-bit hash; `estimate` answers, as `frequencies_` and `transform` need a list.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``cms.md``), neighbours: any two rows of one user; no other party is trusted. Hash and row are public and drawn
    without looking at the value.

    **Utility.** With p = e^epsilon / (e^epsilon + 1) and kappa the share of hashes in which two values share a bucket,
    a value that is not held is supported with q* = kappa p + (1 - kappa) / 2, and the variance of a frequency f among n
    users is (q* (1 - q*) / (p - q*)^2 + f (1 - p - q*) / (p - q*)) / n. With the default, as many buckets as values (up
    to 2^24), kappa is 0 and estimates are unbiased. Other hashes are unbiased over the draw of `hash_seed` only: (sum
    of the squares of the other frequencies) / (n_hashes (n_buckets - 1)) is added to the variance, which more users do
    not make smaller; standard errors count it.

    **Complexity.** O(log d) a user and O(1) a report at the server, O(n_hashes n_buckets log n_buckets) a release and
    O(n_hashes) a value asked for; 2 n_hashes n_buckets counters; 1 + log2(n_hashes n_buckets) bits sent.

    {parameters}
    References
    ----------
    Differential Privacy Team, Apple, "Learning with privacy at scale", Apple Machine Learning Journal 1 (8), 2017,
    algorithms 4 and 5; hashes and variances are derived in ``cms.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import HCMSFrequencyEstimator
    >>> X = np.repeat([["yes"], ["no"], ["never"]], [5000, 3000, 2000], axis=0)
    >>> est = HCMSFrequencyEstimator(2.0, categories=None, random_state=0).fit(X)
    >>> answer = est.estimate(["yes", "no", "perhaps"])
    >>> np.abs(answer.frequencies - [0.5, 0.3, 0.0]).max() < 0.1
    np.True_
    """

    _randomizer = HCMS
    _more_parameters = _SketchFrequencyEstimator._more_parameters.replace(
        "{default_buckets}", " None: the least that holds all values; of an\n        open column, or beyond 2^24, "
        "values, 1,024.")
