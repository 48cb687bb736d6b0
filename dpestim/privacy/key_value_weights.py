"""Weights of laws over sets of (key, value) pairs, rounded on the side of privacy as all in `exact.py`."""

import math
from fractions import Fraction
from functools import lru_cache

from dpestim.privacy.category_weights import GRRWeights
from dpestim.privacy.exact import WORD, exp_lower, uses_enough, within


@lru_cache(maxsize=1024)
def privkv_weight(epsilon):
    """Return t: PrivKV gives the true sign 2^64 - 3t, the other t, no answer 2t; who lacks the key has t, t, 2^64 - 2t.

    Each outcome's weights differ by a factor of (2^64 - 3t) / t at most, so that t = ceil(2^64 / (e' + 3)) with
    e' <= e^epsilon keeps epsilon.
    """
    light = math.ceil(WORD / (exp_lower(epsilon) + 3))
    if WORD - 3 * light <= light or not within(max(2 * (WORD - 3 * light), WORD - 2 * light), 2 * light, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express whether a key is held: take "
                         "a larger epsilon")
    return light


@lru_cache(maxsize=1024)
def sign_weight(epsilon):
    """Return how many of 2^64 words keep a sign: as many as a ratio of at most e^epsilon lets."""
    high = exp_lower(epsilon)
    keep = math.floor(WORD * high / (high + 1))
    if 2 * keep <= WORD or not within(keep, WORD - keep, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the law of a sign: take a "
                         "larger epsilon")
    return keep


@lru_cache(maxsize=1024)
def pckv_unary_weights(epsilon):
    """Return (keep, other): of 2^64 words, those that keep the sign, and those that turn on each sign of another key.

    The own key is on with probability 1/2. Two pairs of different keys differ in two cells, whose ratios are at most
    max(2 a p / b, (1 - a) / (1 - b)) and max(b / (2 a (1 - p)), (1 - b) / (1 - a)) for a = 1/2, p = keep / 2^64 and
    b = 2 other / 2^64; two signs of a key by p / (1 - p). The least `other` that keeps their product is
    p 2^64 / (e' + 2 p), e' <= e^epsilon. All of it is checked.
    """
    keep = sign_weight(epsilon)
    p = Fraction(keep, WORD)
    other = math.ceil(WORD * p / (exp_lower(epsilon) + 2 * p))
    b = Fraction(2 * other, WORD)
    worst = max(p / b, 1 / (2 * (1 - b))) * max(b / (1 - p), 2 * (1 - b))
    if 2 * b >= 1 or not within(worst, 1, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express whether a key is held: take "
                         "a larger epsilon")
    return keep, other


@lru_cache(maxsize=1024)
def pckv_code_weights(epsilon, n_codes, length):
    """Return the weights of the sampled code and of each other among n_codes, where sampling hides by itself.

    Whatever a user holds, each code is sampled with probability at most s = ceil(2^64 / length) / 2^64, so a report
    has between `other` and other + s (keep - other) of the total: the ratio 1 + s (keep / other - 1) is to be at most
    e^epsilon. One word, or two where one is too coarse.
    """
    sampled = Fraction(-(-WORD // length), WORD)
    for n_words in (1, 2):
        total = WORD**n_words
        other = math.ceil(total / ((exp_lower(epsilon) - 1) / sampled + n_codes))
        keep = total - (n_codes - 1) * other
        if 0 < other <= keep:
            worst = 1 + sampled * (Fraction(keep, other) - 1)
            if within(worst, 1, epsilon) and uses_enough(worst, 1, epsilon):
                return GRRWeights(n_words, keep, other)
    raise ValueError(f"epsilon is too small or too large for {n_codes} codes, because two 64-bit words cannot express "
                     "the law: change epsilon")
