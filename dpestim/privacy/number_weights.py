"""Integer weights of laws of numbers: both directions of every ratio are at most e^epsilon, and nearly so."""

import math
from fractions import Fraction
from functools import lru_cache

from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.exact import WORD, exp_lower, uses_enough, within
from dpestim.records import record


@record
class WindowWeights:
    """A window over a constant on a grid: `window` outputs of weight `inside`, `grid` others of weight `outside`."""

    grid: int
    window: int
    inside: int
    outside: int

    @property
    def n_outputs(self):
        """Outputs in all: a window of any of the grid + 1 inputs lies within them."""
        return self.grid + self.window

    @property
    def total(self):
        """The number of equally likely words that they share."""
        return self.window * self.inside + self.grid * self.outside


def pm_weights(epsilon, grid):
    """Return the law of the piecewise mechanism: the window e^(-epsilon / 2) makes the worst variance smallest."""
    return window_weights(epsilon, grid, math.exp(-float(epsilon) / 2))


def sw_weights(epsilon, grid):
    """Return the law of the square wave: its window bounds the mutual information of input and output best."""
    e = float(epsilon)
    # (1 + (epsilon - 1) e^epsilon) / (e^epsilon (e^epsilon - 1 - epsilon)), whose differences cancel where it is small
    share = 1 - 2 * e / 3 if e < 1e-3 else (e * math.exp(e) - math.expm1(e)) / (math.exp(e) * (math.expm1(e) - e))
    return window_weights(epsilon, grid, share)


@lru_cache(maxsize=1024)
def window_weights(epsilon, grid, share, total=WORD):
    """Return the integer law of a window over a constant on `grid` = 2^k steps (grid + 1 inputs), out of `total` words.

    The window W is the odd number next to grid * share, between 1 and grid - 1. With e' <= e^epsilon, any
    outside >= total / (W e' + grid) gives inside = (total - grid outside) / W <= e' outside; the smallest one for which
    W divides is within W of the bound (W is odd and grid a power of two, so there is one). The other direction,
    outside <= inside, is checked; ``ValueError`` where a word is too coarse for a small epsilon.
    """
    e = exp_lower(epsilon)
    window = min(max(1, 2 * math.floor(grid * share / 2) + 1), grid - 1)
    outside = math.ceil(total / (window * e + grid))
    outside += (total * pow(grid, -1, window) - outside) % window if window > 1 else 0
    inside, rest = divmod(total - grid * outside, window)
    if rest or not 0 < outside <= inside or not within(inside, outside, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the law of this window: "
                         "take a larger epsilon")
    # a large epsilon may be used in part only (weights are integers); a small one that is not used would be noise alone
    if epsilon < 1 and not uses_enough(inside, outside, epsilon):
        raise ValueError("epsilon is too small, because 64-bit random words cannot use nearly all of it: take a larger "
                         "epsilon")
    return WindowWeights(grid, window, inside, outside)


@record
class HybridWeights:
    """`window`'s words answer by a window over a constant (None: no word does), the others with one of two signs."""

    grid: int
    window: WindowWeights | None
    least: int  # words for plus of input 0, and for minus of input `grid`
    rise: int  # words for plus that each step of the input adds, and takes from minus

    @property
    def signs(self):
        """The number of words that answer with a sign."""
        return 2 * self.least + self.grid * self.rise


#: Up to here the hybrid mechanism is all signs: ln((2 (6353 - r)^(1/3) + 2 (6353 + r)^(1/3) - 5) / 27), r = 405 241^.5
ALL_SIGNS = 0.6093525


@lru_cache(maxsize=1024)
def hybrid_weights(epsilon, grid):
    """Return the law of the hybrid mechanism: PM's words are 1 - e^(-epsilon / 2) of all, none up to `ALL_SIGNS`.

    Out of an even number of words for signs, S, the largest rise <= S (e' - 1) / ((e' + 1) grid), e' <= e^epsilon,
    leaves least = (S - grid rise) / 2 >= S / (e' + 1), so that least + grid rise <= e' least. S is at least 4 grid, so
    that there is a rise for an epsilon that asks for almost no signs. The rest is `window_weights`.
    """
    e, half = exp_lower(epsilon), math.exp(-float(epsilon) / 2)
    signs = WORD if float(epsilon) <= ALL_SIGNS else max(4 * grid, 2 * round(WORD // 2 * half))
    rise = math.floor(signs * (e - 1) / ((e + 1) * grid))
    least = (signs - grid * rise) // 2
    most = least + grid * rise
    if rise == 0 or not within(most, least, epsilon) or (signs == WORD and not uses_enough(most, least, epsilon)):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the law of the signs: take "
                         "a larger epsilon")
    window = window_weights(epsilon, grid, half, WORD - signs) if signs < WORD else None
    return HybridWeights(grid, window, least, rise)


@lru_cache(maxsize=1024)
def laplace_beyond(epsilon, grid):
    """Return (C, Q): discrete Laplace noise passes a point by C steps on average, a multiple of 1 / Q.

    C >= 1 / (e^(epsilon / grid) - 1), so that alpha = C / (1 + C) is at least e^(-epsilon / grid). Q is a power of two
    with C Q >= 1024, where 2^16 is enough: then rounding costs less than a thousandth of epsilon.
    """
    excess = exp_lower(epsilon / grid) - 1
    if excess <= 0:
        raise ValueError("epsilon is too small, because 80 digits cannot express the law: take a larger epsilon, or a "
                         "coarser grid")
    places = 1
    while places < 1 << 16 and places < 1024 * excess:
        places *= 2
    return Fraction(math.ceil(places / excess), places), places


@lru_cache(maxsize=1024)
def duchi_weights(epsilon):
    """Return (other, step): of 2**64 words other + f step answer 1 for the fixed point f, from 0 to 2**32.

    other, a multiple of 2**31, is at least 2**64 / (e' + 1) with e' <= e^epsilon, and step makes up the rest: the
    likelier answer has 2**64 - other <= e' other words. ``ValueError`` where that leaves too little of a small epsilon.
    """
    half = 1 << 31
    other = half * math.ceil(Fraction(WORD, half) / (exp_lower(epsilon) + 1))
    if 2 * other >= WORD or (epsilon < 1 and not uses_enough(WORD - other, other, epsilon)):
        raise ValueError("epsilon is too small, because 64-bit random words cannot express the law of the two answers: "
                         "take a larger epsilon")
    if not within(WORD - other, other, epsilon):
        raise ValueError("epsilon is too small or too large, because the rounded weights would exceed it: change "
                         "epsilon")
    return other, (WORD - 2 * other) >> 32


#: Rounds of a draw at most: what is left of ties then is kept.
_MOST_ROUNDS = 8


@lru_cache(maxsize=1024)
def missing_thresholds(epsilon, of_number):
    """Return (told, untold): of 2**64 words so many say "missing" of a missing value, and of a number.

    told <= e^epsilon untold, and 2**64 - untold <= e^(epsilon - of_number) (2**64 - told): whoever does not say so
    reports by a law of `of_number`, a part of epsilon. (With equality the difference of the two is largest.)
    """
    whole, rest = exp_lower(epsilon), exp_lower(epsilon - of_number)
    untold = max(1, math.floor(WORD * (rest - 1) / (rest * whole - 1)))
    return min(math.floor(whole * untold), WORD - math.ceil((WORD - untold) / rest)), untold


@record
class JointDuchiWeights:
    """The law of Duchi's mechanism of a row of d numbers: thresholds, and the weight of an answer of each kind."""

    keep: int  # of 2**64 words so many take the side of the signs
    ties: int  # ... and so many keep a draw that is on no side, before the last round
    rounds: int
    heavy: int  # weights of an answer on the side of the signs, ...
    tied: int  # ... on none, ...
    light: int  # ... and on the other one, out of `total`
    total: int


@lru_cache(maxsize=64)
def joint_duchi_weights(epsilon, d):
    """Return the integer law of Duchi's mechanism of d numbers; see `duchi.md` for what is proved of it.

    Any two of the weights are within e^epsilon, which is checked. The number of rounds is the least that makes ties as
    light as e^epsilon allows.
    """
    pair = grr_weights(epsilon, 2)
    if pair.n_words > 1:
        raise ValueError("epsilon is too small or too large, because 64-bit random words cannot express the law: "
                         "change epsilon")
    e, n_ties = exp_lower(epsilon), math.comb(d, d // 2) if d % 2 == 0 else 0
    denominator = 1 << (d + 64)

    def weights(ties, rounds):
        again = n_ties * (WORD - ties)  # over `denominator`: the probability of another round
        before = sum(again**i * denominator ** (rounds - 2 - i) for i in range(rounds - 1))
        every = before * denominator + again ** (rounds - 1)
        tied = ties * denominator * before + WORD * again ** (rounds - 1)
        return JointDuchiWeights(pair.keep, ties, rounds, 2 * pair.keep * every, tied if n_ties else 0,
                                 2 * pair.other * every, denominator**rounds)

    def kept(ties, rounds):
        law = weights(ties, rounds)
        return law.heavy * e.denominator <= e.numerator * law.tied

    rounds = 1
    if n_ties:
        rounds = next((r for r in range(2, _MOST_ROUNDS) if not kept(0, r)), _MOST_ROUNDS)
    low, high = 0, 0 if not n_ties else WORD - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle, rounds) else (middle + 1, high)
    law = weights(low, rounds)
    found = [law.heavy, law.light, *([law.tied] if n_ties else [])]
    if not within(max(found), min(found), epsilon):
        raise ValueError("epsilon is too small or too large, because the rounded weights would exceed it: change "
                         "epsilon")
    return law


@lru_cache(maxsize=1024)
def staircase_beyond(epsilon):
    """Return C: staircase noise goes on beyond a step for C steps on average.

    C >= 1 / (e^x - 1) for x = 1023 / 1024 epsilon, so that b = C / (1 + C), by which the noise falls with every step,
    is at least e^-x: what is spare of epsilon lets weights be rounded to integers. C is a multiple of 1 / Q, for the
    least power of two with C Q >= 1024, or itself 1 / Q where that is as near.
    """
    excess = exp_lower(epsilon * Fraction(1023, 1024)) - 1
    if excess <= 0:
        raise ValueError("epsilon is too small, because 80 digits cannot express the law: take a larger epsilon, or a "
                         "coarser grid")
    if excess >= 1024:
        return Fraction(1, math.floor(excess))
    places = 1
    while places < 1024 * excess:
        places *= 2
    return Fraction(math.ceil(places / excess), places)
