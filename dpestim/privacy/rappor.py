"""The integers of RAPPOR: bits that are randomised twice, and e^epsilon for what is seen of both."""

import math
from fractions import Fraction
from functools import lru_cache

from dpestim.privacy.exact import WORD, exp_lower
from dpestim.records import record


@record
class RAPPORThresholds:
    """Thresholds of RAPPOR, out of 2**64.

    A permanent bit is wrong below `wrong`; a report's bit is 1 below `high` where the permanent one is 1, and below
    `low` where it is 0.
    """

    wrong: int
    low: int
    high: int

    @property
    def bit(self):
        """Pr[1] of a bit of one report, (where the Bloom filter has a 1, where it has a 0), out of 2**128."""
        right = WORD - self.wrong
        return right * self.high + self.wrong * self.low, self.wrong * self.high + right * self.low

    @property
    def odds(self):
        """How much likelier one report can be for each bit of a Bloom filter: (numerator, denominator)."""
        one, zero = self.bit
        return one * (WORD**2 - zero), zero * (WORD**2 - one)

    @property
    def waste(self):
        """How much larger the variance of a share of bits is than by p = 1 - q with the same odds, where few are 1."""
        (one, zero), (above, below) = self.bit, self.odds
        half = math.log1p((above - below) / below) / 2
        least = math.exp(half) / math.expm1(half) ** 2
        return zero * (WORD**2 - zero) / (one - zero) ** 2 / least


@lru_cache(maxsize=1024)
def rappor_thresholds(epsilon, n_hashes, f=None, p=None, q=None):
    """Return thresholds under which one report of RAPPOR has at most epsilon; what is None is chosen for all of it.

    Two Bloom filters differ in n_hashes bits of each kind at most, so the worst ratio of one report is (one (1 - zero)
    / (zero (1 - one)))^n_hashes, one and zero being the probabilities of `RAPPORThresholds.bit`. It rises with q and
    falls with p and f, and so does its rounding to integers: what is not given is found by bisection, on the exact
    ratio. Where f is not given (p and q not both), that of 2 epsilon for any number of reports is taken; where neither
    p nor q is, p = 1 - q. Of p = 0 or q = 1 without f both are taken: reports are then the permanent answer.
    """
    bound = exp_lower(epsilon)

    def fits(wrong, low, high):
        if not 0 <= low < high <= WORD or not 0 <= 2 * wrong < WORD:
            return False
        above, below = RAPPORThresholds(wrong, low, high).odds
        return below < above and above**n_hashes <= bound * below**n_hashes

    def least(noise, start, stop):
        """Return the least number from which on there is noise enough; None if there is none below stop."""
        if not noise(stop - 1):
            return None
        while start < stop - 1:
            middle = (start + stop - 2) // 2
            start, stop = (start, middle + 1) if noise(middle) else (middle + 1, stop)
        return start

    if f is None and (p == 0 or q == 1):  # what is seen is the permanent answer: it is the noise
        p, q = (Fraction(0) if p is None else p), (Fraction(1) if q is None else q)
    wrong = math.ceil(WORD / (exp_lower(epsilon / n_hashes) + 1)) if f is None else math.ceil(WORD * f / 2)
    low, high = None if p is None else math.ceil(WORD * p), None if q is None else math.floor(WORD * q)
    if p is None and q is None:
        low = least(lambda t: fits(wrong, t, WORD - t), 0, WORD // 2)
        high = None if low is None else WORD - low
    elif p is None:
        low = least(lambda t: fits(wrong, t, high), 0, high)
    elif q is None:
        found = least(lambda t: fits(wrong, low, WORD - t), 0, WORD - low)
        high = None if found is None else WORD - found
    elif f is None:
        wrong = least(lambda t: fits(t, low, high), 0, WORD // 2)
    if None in (wrong, low, high) or not fits(wrong, low, high):
        raise ValueError("epsilon is too small for one report with these f, p and q")
    found = RAPPORThresholds(wrong, low, high)
    if found.waste > 100:
        raise ValueError("f, p and q must be further apart: with these values a report of this epsilon has more than "
                         "ten times the error of p = 1 - q")
    return found
