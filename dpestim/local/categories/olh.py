"""Local hashing: every user hashes the domain to g buckets with a hash of its own and answers for one."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import olh
from dpestim.local import pivots
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.hashing import success_of_hashes
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.constants import constants_of
from dpestim.local.reports import FieldReports
from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.exact import exp_lower
from dpestim.rng import Stage

#: Values of which all pairs are looked at in a test for malicious reports.
MOST_PAIRED = 32
#: Largest deviation of a pair's collision rate from the nominal one, relative to p* - q*: far below any noise.
LARGEST_BIAS = Fraction(1, 10**7)


class LocalHashing(FieldReports, CategoricalRandomizer):
    """Local hashing to a number of buckets; a report is (a, b, bucket), h(v) = a v + b."""

    field_names = ("a", "b", "bucket")

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.n_buckets = self._n_buckets()
        if self.n_buckets >= 1 << 31:
            raise ValueError("epsilon is too large for local hashing, which would need more than 2**31 buckets: take a "
                             "smaller epsilon, or GRRFrequencyEstimator")
        self.weights = self._weights()
        total = self.weights.total
        self.p_star = Fraction(self.weights.keep, total)
        other = Fraction(self.weights.other, total)
        for bits in (32, 64):
            # two values collide with a rate that depends on the power of two in their difference (olh.md)
            rates = [collision_rate(bits, self.n_buckets, s) for s in range((n_categories - 1).bit_length())]
            q_stars = [rate * self.p_star + (1 - rate) * other for rate in rates]
            self.q_star = q_stars[0]
            self.bias = max(abs(q - self.q_star) for q in q_stars) / (self.p_star - self.q_star)
            if self.bias <= LARGEST_BIAS and n_categories <= 1 << (bits // 2):
                break
        else:
            raise ValueError("epsilon and the number of categories are too large together for a hash that is unbiased "
                             "within 1e-7: take fewer categories, or OUEFrequencyEstimator")
        self.lane_bits, self.field_limits = bits, (None, None, self.n_buckets)
        self.report_dtype = np.dtype(np.uint32 if bits == 32 else np.uint64)
        self.report_bits = 2 * bits + math.log2(self.n_buckets)
        self.n_seed_words = 1 if bits == 32 else 2
        self.n_words = self.n_seed_words + self.weights.n_words

    def _n_buckets(self):
        raise TypeError(f"{type(self).__name__} does not say how many buckets it hashes to: implement `_n_buckets`")

    def _weights(self):
        """Return the weights of the own and of each other bucket in a report."""
        return grr_weights(self.epsilon, self.n_buckets)

    def constants(self):
        """Return the hash and the `weights` of randomised response over `n_buckets` buckets, as `GRR` has them.

        h(v) = a v + b modulo 2^lane_bits, and the bucket is floor(h n_buckets / 2^lane_bits).
        """
        return constants_of(self)

    def privatize(self, codes, words, out):
        """Write (a, b, bucket) for each code."""
        seeds = words.dense(Stage.SEED, self.n_seed_words)
        answers = words.dense(Stage.RESPONSE, self.weights.n_words)
        olh.privatize(codes, seeds, answers, self.n_buckets, self.weights.keep, self.weights.other, out)

    def public_part(self, reports):
        """Return the hash (a, b)."""
        return reports[:, :2]

    def count(self, reports, counts):
        """Add, for every value, the reports whose bucket holds it."""
        olh.count(reports, self.n_buckets, counts)

    @property
    def count_ns(self):
        """Nanoseconds to count a report, for plans: every value is hashed."""
        return 4.0 + 0.05 * self.n_categories

    def support(self, reports):
        """Return 1 where the value falls into the reported bucket under the user's hash."""
        out = np.empty((len(reports), self.n_categories), np.uint8)
        olh.support(reports, self.n_buckets, out)
        return out

    def supported(self, goal):
        """Return the fewest and the most of some values that one report can support: a = 0 hashes all to one bucket."""
        return 0, len(goal)

    knows_reports = True

    def known_of(self, reports):
        """Return how evenly hashes were drawn: a and b are uniform, and hardly ever equal in two reports."""
        bits, found = self.lane_bits, []
        for name, field in (("a", reports[:, 0]), ("b", reports[:, 1])):
            top = (field >> field.dtype.type(bits - 6)).astype(np.int64)
            found.append(pivots.values(f"first six bits of {name} of the hash", top, np.full(64, 1 / 64)))
        a = reports[:, 0]
        small = np.minimum(a, ~a).astype(np.uint64)  # multiples close to 0 hash neighbours to one bucket
        digits = np.zeros(len(a), np.int64)
        for place in range(bits - 1):
            digits += small >= np.uint64(1 << place)
        law = np.array([2.0, *(2.0 ** np.arange(1, bits))]) / 2.0**bits
        found.append(pivots.values("digits of a of the hash, or of its complement", digits, law))
        return [*found, pivots.repeats("hashes of two reports", reports[:, :2], 2 * bits), self._colliding(reports)]

    def _colliding(self, reports):
        """Return how many hashes put two values into one bucket, for pairs of those with the most support.

        Which values these are depends on the reports, so that all pairs of the domain count as looked at.
        """
        d, n, counts = self.n_categories, len(reports), np.zeros(self.n_counts, np.int64)
        self.count(reports, counts)
        top = np.sort(np.argsort(-counts, kind="stable")[:MOST_PAIRED])
        buckets = np.empty((len(top), n), self.report_dtype)
        for own, value in zip(buckets, top):
            olh.bucket(np.full(n, value, self.code_dtype), reports, self.n_buckets, own)
        pairs = np.array([(i, j) for i in range(len(top)) for j in range(i + 1, len(top))])
        observed = np.array([np.count_nonzero(buckets[i] == buckets[j]) for i, j in pairs])
        rates = [float(collision_rate(self.lane_bits, self.n_buckets, s)) for s in range((d - 1).bit_length())]
        apart = [int(top[j] - top[i]) for i, j in pairs]
        chances = np.array([rates[(k & -k).bit_length() - 1] for k in apart])
        found = pivots.cells("hashes that put two values into one bucket", observed, chances, n,
                             lambda k: "categories number {} and {}".format(*top[pairs[k]]))
        return found._replace(p_values=found.p_values * (d * (d - 1) / 2 / len(pairs)))

    def transition_matrix(self):
        """Return the g x g law of the reported bucket for each hashed value, given the public hash."""
        other = Fraction(self.weights.other, self.weights.total)
        g = range(self.n_buckets)
        return [[self.p_star if x == y else other for y in g] for x in g]

    @property
    def support_odds(self):
        """How much likelier a bucket is for a value in it."""
        return self.weights.keep, self.weights.other

    def guessing(self, prior):
        """Return how often the best guess is right, for each value, over all hash functions (`hashing.py`)."""
        other = self.weights.other / self.weights.total
        return success_of_hashes(prior, self.n_buckets, float(self.p_star), other)

    def law_indices(self, codes, reports):
        """Return (bucket of the true value under the report's hash, reported bucket)."""
        hashed = np.empty(len(codes), self.report_dtype)
        olh.bucket(codes, reports, self.n_buckets, hashed)
        return hashed.astype(np.int64), reports[:, 2].astype(np.int64)


class OLH(LocalHashing):
    """Optimised local hashing: the number of buckets that makes the variance smallest."""

    def _n_buckets(self):
        return best_n_buckets(self.epsilon)


class BLH(LocalHashing):
    """Binary local hashing: two buckets."""

    def _n_buckets(self):
        return 2


def best_n_buckets(epsilon):
    """Return the integer g that minimises the variance (e^eps - 1 + g)^2 / ((e^eps - 1)^2 (g - 1)), FORMULAS 2.5.

    The continuous optimum is e^eps + 1; its two integer neighbours are compared exactly (geometric mean, not nearest).
    """
    e = exp_lower(epsilon)  # within 1e-75 of e^eps: a wrong side of a tie would cost nothing
    m = max(1, math.floor(e))
    return m + 1 if e * e <= m * (m + 1) else m + 2


def collision_rate(bits, g, s):
    """Return Pr[h(v) and h(x) share a bucket], exact, where 2**s is the largest power of two that divides v - x.

    h(v) is uniform and h(v) - h(x) is uniform over the multiples of 2**s, so the rate is the sum over buckets y and
    residues r modulo 2**s of n(y, r)^2 / 2**(2 bits - s), where n(y, r) counts the members of bucket y with residue r:
    t of them are one more than width // 2**s, t = width mod 2**s.
    """
    short, n_long = divmod(1 << bits, g)  # buckets are short or short + 1 wide; n_long of them are long
    total = 0
    for width, n in ((short, g - n_long), (short + 1, n_long)):
        quotient, t = divmod(width, 1 << s)
        total += n * (t * (quotient + 1) ** 2 + ((1 << s) - t) * quotient**2)
    return Fraction(total << s, 1 << (2 * bits))


class OLHFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by optimised local hashing (OLH).

    Each user draws a public hash function, hashes the user's value to one of about e^epsilon + 1 buckets and reports
    (hash, bucket) with randomised response over the buckets. As accurate as `OUEFrequencyEstimator` with reports whose
    size does not grow with the domain; the server pays O(n d). For d < 3 e^epsilon + 2 prefer `GRRFrequencyEstimator`.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``olh.md``), neighbours: any two rows of one user; no other party is trusted. It holds for every hash function.

    An epsilon above about 21 is refused: it would take more than 2**31 buckets.

    **Utility.** Unbiased up to 1e-7 of f (collision rates of a finite hash, ``olh.md``); with g buckets the
    variance of a frequency f among n users is ((e^eps - 1 + g)^2 / (g - 1) / (e^eps - 1)^2 + O(f)) / n, which is
    (4 e^eps / (e^eps - 1)^2 + f) / n where g = e^eps + 1.

    **Complexity.** O(1) a user and O(n d) at the server, one addition and one comparison for each user and value; 64 or
    128 bits of public hash and log2(g) of response sent. `fit` of c columns: O(n c d) time, O(c (n + d)) memory.

    {parameters}
    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, section 4.3 and eq. (12); their g = e^eps + 1 is not an integer, see `best_n_buckets`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import OLHFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = OLHFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.06
    np.True_
    """

    _randomizer = OLH


class BLHFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by binary local hashing (BLH).

    Each user draws a public hash function, hashes the user's value to one bit and reports (hash, bit) with randomised
    response. One bit of response, at the price of accuracy: `OLHFrequencyEstimator` is never worse, and much better for
    epsilon above 1. Prefer BLH only where one bit is all that may be sent, or to compare.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``olh.md``), neighbours: any two rows of one user; no other party is trusted. It holds for every hash function.

    **Utility.** Unbiased; the variance of a frequency f among n users is (((e^eps + 1) / (e^eps - 1))^2 - f) / n.

    **Complexity.** O(1) a user and O(n d) at the server; 64 or 128 bits of public hash and 1 bit of response sent.

    {parameters}
    References
    ----------
    R. Bassily, A. Smith, "Local, private, efficient protocols for succinct
    histograms", STOC 2015; T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency
    estimation", USENIX Security 2017, section 4.3 and eq. (11).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import BLHFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = BLHFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.07
    np.True_
    """

    _randomizer = BLH
