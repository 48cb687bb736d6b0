"""Exact arithmetic of privacy parameters: the one place where e^epsilon becomes integers.

The canonical epsilon of a float is the decimal fraction it prints as (0.1 is 1/10, not 0.1000000000000000055), so that
ten shares of 0.1 are exactly 1. From there everything is a `Fraction`; e^epsilon enters as a lower or an upper bound
(`exp_lower`, `exp_upper`, relative error below 1e-75), chosen so that the one directed rounding to integer weights errs
on the side of privacy.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real

WORD = 1 << 64  # the number of values of one random word
#: The least part of epsilon that a law must use; below it, two words a record are taken instead of one.
LEAST_USE = Fraction(99, 100)
#: Laws beyond this make no sense as privacy, and their weights no longer fit two words.
LARGEST_EPSILON = 80

_DIGITS = 80
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emax=999_999, Emin=-999_999)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=999_999, Emin=-999_999)


def canonical_epsilon(epsilon, name="epsilon"):
    """Return epsilon as the exact fraction that its shortest decimal form names.

    Raises ``ValueError`` unless it is a finite number in (0, 80]; a bool is not a number here.
    """
    value = _canonical(epsilon, name)
    if value > LARGEST_EPSILON:
        raise ValueError(f"{name} must be above 0 and at most {LARGEST_EPSILON}, got {epsilon!r}")
    return value


def _canonical(number, name, what="a finite number above 0"):
    if isinstance(number, int) and not isinstance(number, bool):
        value = Fraction(number)  # also where it is too large for a float
    elif isinstance(number, Fraction):
        value = number
    elif isinstance(number, Decimal) and number.is_finite():
        value = Fraction(number)
    elif isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number):
        value = Fraction(Decimal(repr(float(number))))
    else:
        raise ValueError(f"{name} must be {what}, got {number!r}")
    if value <= 0:
        raise ValueError(f"{name} must be {what}, got {number!r}")
    return value


def canonical_amount(value, name):
    """Return an amount of a budget as the exact fraction that its shortest decimal form names; inf stays infinite.

    Raises ``ValueError`` unless it is a number of at least 0.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and value == math.inf:
        return math.inf
    if value == 0 and isinstance(value, Real) and not isinstance(value, bool):
        return Fraction(0)
    return _canonical(value, name, "a number of at least 0")


@lru_cache(maxsize=4096)
def exp_lower(x):
    """Return a Fraction at most e^x, for a Fraction x; relative error below 1e-75."""
    low = _DOWN.divide(Decimal(x.numerator), Decimal(x.denominator))
    # Decimal.exp is correctly rounded (half even), so the neighbour below its result is a lower bound
    return Fraction(_DOWN.next_minus(_DOWN.exp(low)))


@lru_cache(maxsize=4096)
def exp_upper(x):
    """Return a Fraction at least e^x, for a Fraction x; relative error below 1e-75."""
    high = _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
    return Fraction(_UP.next_plus(_UP.exp(high)))


def within(numerator, denominator, epsilon):
    """Tell whether numerator / denominator <= e^epsilon is certain (non-negative integers or Fractions)."""
    return numerator <= exp_lower(epsilon) * denominator


def uses_enough(numerator, denominator, epsilon):
    """Tell whether ln(numerator / denominator) >= 0.99 epsilon is certain."""
    return numerator >= exp_upper(LEAST_USE * epsilon) * denominator


def log_ratio(numerator, denominator):
    """Return ln(numerator / denominator) as a float, for display and tests; accurate also near 1."""
    with_margin = Context(prec=60, Emax=999_999, Emin=-999_999)
    n, d = Fraction(numerator), Fraction(denominator)
    ratio = with_margin.divide(Decimal(n.numerator * d.denominator), Decimal(n.denominator * d.numerator))
    return float(with_margin.ln(ratio))


def log_above(ratio):
    """Return a Fraction at least ln(ratio), for a Fraction above 0; above it by 1e-78 and a relative 1e-78 at most."""
    if ratio == 1:
        return Fraction(0)
    return Fraction(_UP.next_plus(_UP.ln(_UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))))


@dataclass(frozen=True)
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
        f"epsilon is too small or too large for {d} categories: two random words a record cannot express the law"
    )


@lru_cache(maxsize=1024)
def oue_thresholds(epsilon):
    """Return (t1, t0), Pr[1] * 2**64 of the true bit and of every other bit, for optimised unary encoding.

    t1 = 2**63. Two bits differ between two inputs, so the worst ratio is t1 (2**64 - t0) / (t0 (2**64 - t1)) =
    (2**64 - t0) / t0 <= e^epsilon by t0 = ceil(2**64 / (e' + 1)), e' <= e^epsilon; its inverse is below 1.
    """
    true, false = WORD // 2, math.ceil(WORD / (exp_lower(epsilon) + 1))
    if false >= true or not within(WORD - false, false, epsilon):
        raise ValueError("epsilon is too small: a random word cannot tell the true bit from the others")
    return true, false


@lru_cache(maxsize=1024)
def sue_thresholds(epsilon):
    """Return (t1, t0), Pr[1] * 2**64 of the true bit and of every other bit, for symmetric unary encoding.

    t1 = 2**64 - t0, so the worst ratio is (t1 / t0)^2; t0 = ceil(2**64 / (h + 1)) with h <= e^(epsilon / 2) gives
    t1 / t0 <= h.
    """
    false = math.ceil(WORD / (exp_lower(epsilon / 2) + 1))
    if 2 * false >= WORD or not within(Fraction(WORD - false, false) ** 2, 1, epsilon):
        raise ValueError("epsilon is too small: a random word cannot tell the true bit from the others")
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
        raise ValueError("epsilon is too small: a random word cannot tell the true bit from the others")
    return true, false, WORD - hidden


@dataclass(frozen=True)
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


def log_upper(ratio):
    """Return a Fraction, a multiple of 1e-15, that is at least ln(ratio) and exceeds it by at most 2e-15."""
    low = Fraction(math.floor(log_ratio(ratio, 1) * 10**15) - 1, 10**15)
    while not within(ratio, 1, low):
        low += Fraction(1, 10**15)
    return low


@dataclass(frozen=True)
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
        raise ValueError("epsilon is too small: a random word cannot tell the inside of the window from the outside")
    # a large epsilon may be used in part only (weights are integers); a small one that is not used would be noise alone
    if epsilon < 1 and not uses_enough(inside, outside, epsilon):
        raise ValueError("epsilon is too small: a random word cannot express nearly all of it")
    return WindowWeights(grid, window, inside, outside)


@dataclass(frozen=True)
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
        raise ValueError("epsilon is too small: a random word cannot tell the signs apart")
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
        raise ValueError("epsilon is too small: 80 digits cannot tell the law from one without it")
    places = 1
    while places < 1 << 16 and places < 1024 * excess:
        places *= 2
    return Fraction(math.ceil(places / excess), places), places


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
        raise ValueError("epsilon is too small or too large: a random word cannot tell likelier outputs from others")
    if epsilon < 1 and not uses_enough(inside, outside, epsilon):
        raise ValueError("epsilon is too small: a random word cannot express nearly all of it")
    return inside, outside


@lru_cache(maxsize=1024)
def duchi_weights(epsilon):
    """Return (other, step): of 2**64 words other + f step answer 1 for the fixed point f, from 0 to 2**32.

    other, a multiple of 2**31, is at least 2**64 / (e' + 1) with e' <= e^epsilon, and step makes up the rest: the
    likelier answer has 2**64 - other <= e' other words. ``ValueError`` where that leaves too little of a small epsilon.
    """
    half = 1 << 31
    other = half * math.ceil(Fraction(WORD, half) / (exp_lower(epsilon) + 1))
    if 2 * other >= WORD or (epsilon < 1 and not uses_enough(WORD - other, other, epsilon)):
        raise ValueError("epsilon is too small: a random word cannot tell the two answers apart")
    if not within(WORD - other, other, epsilon):
        raise ValueError("epsilon is too small or too large: the weights do not keep it")
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


@dataclass(frozen=True)
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
        raise ValueError("epsilon is too small or too large: a random word cannot tell the two sides apart")
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
        raise ValueError("epsilon is too small or too large: the weights do not keep it")
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
        raise ValueError("epsilon is too small: 80 digits cannot tell the law from one without it")
    if excess >= 1024:
        return Fraction(1, math.floor(excess))
    places = 1
    while places < 1024 * excess:
        places *= 2
    return Fraction(math.ceil(places / excess), places)
