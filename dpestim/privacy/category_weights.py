"""Integer weights of laws of categories: both directions of every ratio are at most e^epsilon, and nearly so."""

import math
from fractions import Fraction
from functools import lru_cache

from dpestim.privacy.exact import WORD, exp_lower, uses_enough, within
from dpestim.records import record


@record
class GRRWeights:
    """Integer weights of randomised response: keep + (d - 1) * other == total == 2**(64 * n_words) / share."""

    n_words: int
    keep: int
    other: int
    share: int = 1

    @property
    def total(self):
        """The number of equally likely draws among which the weights are shared out."""
        return WORD**self.n_words // self.share


@lru_cache(maxsize=1024)
def grr_weights(epsilon, d, share=1):
    """Return the weights of the true and of each other value among d, at most epsilon in both directions.

    `share` (a power of two) sets words apart for something else: the weights are out of T = 2**64 / share. With
    e' <= e^epsilon, other = ceil(T / (e' + d - 1)) gives keep = T - (d - 1) other <= e' * other. The other
    direction, other <= e^epsilon * keep, holds once keep >= other. All of it is checked. One word where that holds and
    at least 0.99 of epsilon is used; two where one is too coarse; ``ValueError`` where even two are.
    """
    for n_words in (1, 2):
        total = WORD**n_words // share
        other = math.ceil(total / (exp_lower(epsilon) + d - 1))
        keep = total - (d - 1) * other
        if 0 < other <= keep and within(keep, other, epsilon) and uses_enough(keep, other, epsilon):
            return GRRWeights(n_words, keep, other, share)
    raise ValueError(
        f"epsilon is too small or too large for {d} categories, because two 64-bit words cannot express the law: "
        "change epsilon"
    )


@lru_cache(maxsize=1024)
def oue_thresholds(epsilon):
    """Return (t1, t0), Pr[1] * 2**64 of the true bit and of every other bit, for optimised unary encoding.

    t1 = 2**63. Two bits differ between two inputs, so the worst ratio is t1 (2**64 - t0) / (t0 (2**64 - t1)) =
    (2**64 - t0) / t0 <= e^epsilon by t0 = ceil(2**64 / (e' + 1)), e' <= e^epsilon; its inverse is below 1.
    """
    true, false = WORD // 2, math.ceil(WORD / (exp_lower(epsilon) + 1))
    if false >= true or not within(WORD - false, false, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the difference between the "
                         "true bit and the others: take a larger epsilon")
    return true, false


@lru_cache(maxsize=1024)
def sue_thresholds(epsilon):
    """Return (t1, t0), Pr[1] * 2**64 of the true bit and of every other bit, for symmetric unary encoding.

    t1 = 2**64 - t0, so the worst ratio is (t1 / t0)^2; t0 = ceil(2**64 / (h + 1)) with h <= e^(epsilon / 2) gives
    t1 / t0 <= h.
    """
    false = math.ceil(WORD / (exp_lower(epsilon / 2) + 1))
    if 2 * false >= WORD or not within(Fraction(WORD - false, false) ** 2, 1, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the difference between the "
                         "true bit and the others: take a larger epsilon")
    return WORD - false, false


@lru_cache(maxsize=1024)
def urap_thresholds(epsilon):
    """Return (t1, t0, reveal), Pr[1] * 2**64 of a true and of a false sensitive bit, and of an own non-sensitive one.

    t1 and t0 are those of symmetric unary encoding. Hidden, with r = 2**64 - reveal, a non-sensitive input has all
    sensitive bits false, so the worst ratio to it is (t1 / t0)(2**64 / r) <= e' <= e^epsilon by
    r = ceil(2**64 t1 / (t0 e')), and its inverse is at most (r / 2**64)(t1 / t0).
    """
    true, false = sue_thresholds(epsilon)
    hidden = math.ceil(Fraction(WORD * true, false) / exp_lower(epsilon))
    if not 0 < hidden < WORD or not within(WORD * true, hidden * false, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the difference between the "
                         "true bit and the others: take a larger epsilon")
    return true, false, WORD - hidden


@record
class SubsetWeights:
    """Subset selection: the true value is among the k reported ones with probability include / 2**64."""

    k: int
    include: int
    batch: int  # draws that share a word
    uneven: Fraction  # the ratio of the probabilities of two subsets of the other values is at most 1 + uneven

    @property
    def n_draw_words(self):
        """Words a record for its k draws."""
        return -(-self.k // self.batch)


@lru_cache(maxsize=256)
def subset_weights(epsilon, d, most_uneven):
    """Return the best subset size and the integer law of subset selection over d values.

    k minimises the variance among the two integers next to d / (e^epsilon + 1). Subsets come from multiply-shift draws,
    `batch` to a word: draws from r_1, ..., r_m values are one draw from R = r_1 ... r_m values, each of which has
    floor(2**64 / R) or one more words. So two subsets differ in probability by at most the product of (1 + 1 / floor),
    which is at most 1 + 2 n / floor(2**64 / (d - 1)^batch) for n words. With rho = 1 + uneven,
    include = floor(2**64 k e' / (k e' + rho^2 (d - k))), e' <= e^epsilon; the proof is local/categories/ss.md.
    """
    e = exp_lower(epsilon)
    middle = math.floor(d / (e + 1))
    k = min(sorted({min(max(c, 1), d - 1) for c in (middle, middle + 1)}), key=lambda c: _subset_variance(e, d, c))

    def uneven(batch):
        return Fraction(2 * -(-k // batch), max(1, WORD // (d - 1) ** batch))

    batch = 1
    while batch < min(k, 16) and uneven(batch + 1) <= most_uneven:
        batch += 1
    rho = 1 + uneven(batch)
    include = math.floor(WORD * k * e / (k * e + rho**2 * (d - k)))
    ratio = Fraction(include * (d - k), (WORD - include) * k)
    if rho > 1 + most_uneven or rho**2 > min(e, ratio) or not uses_enough(ratio / rho**2, 1, epsilon):
        raise ValueError(f"epsilon is too small or too large for subset selection among {d} categories")
    return SubsetWeights(k, include, batch, rho - 1)


def _subset_variance(e, d, k):
    p = k * e / (k * e + d - k)
    q = p * Fraction(k - 1, d - 1) + (1 - p) * Fraction(k, d - 1)
    return q * (1 - q) / (p - q) ** 2


@lru_cache(maxsize=1024)
def cap_weights(epsilon, n_top, n):
    """Return (inside, outside): n_top of n outputs of weight `inside`, the others of weight `outside`, 2^64 in all.

    With e' <= e^epsilon, any outside >= 2^64 / (n_top (e' - 1) + n) gives inside = (2^64 - (n - n_top) outside) / n_top
    <= e' outside. The smallest one for which n_top divides is less than n_top steps away: the greatest common divisor
    of n and n_top must be a power of two, which divides 2^64, and without it n is invertible modulo n_top. The other
    direction, outside <= inside, is checked; ``ValueError`` where a word is too coarse.
    """
    e = exp_lower(epsilon)
    common = math.gcd(n, n_top)
    odd = n_top // common
    outside = math.ceil(WORD / (n_top * (e - 1) + n))
    outside += (WORD // common * pow(n // common, -1, odd) - outside) % odd if odd > 1 else 0
    inside, rest = divmod(WORD - (n - n_top) * outside, n_top)
    if rest or not 0 < outside <= inside or not within(inside, outside, epsilon):
        raise ValueError("epsilon is too small or too large, because 64-bit random words cannot express the law: "
                         "change epsilon")
    if epsilon < 1 and not uses_enough(inside, outside, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot use nearly all of it: take a larger "
                         "epsilon")
    return inside, outside
