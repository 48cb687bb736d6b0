"""Real sums by few messages: a number is a level between its bounds, which a blanket of uniform levels hides.

One message ("balle"), or several ("recursive"): a coarse level, then what is left over on a finer scale, and so on.
"""

import math
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from dpestim._core import grr
from dpestim.inputs import smallest_dtype
from dpestim.privacy.exact import WORD, exp_lower, within
from dpestim.privacy.rounding import float_down
from dpestim.rng import Stage
from dpestim.shuffle.amplification.reductions import pairs_of_likely
from dpestim.shuffle.law import ONE, smallest
from dpestim.shuffle.sums.law import SumLaw

#: Levels of one message at most: fixed points of 48 bits, times so many, are words.
_MOST = 1 << 14
#: Messages a user that are tried.
_MESSAGES = (2, 3, 4)
#: Bits of the weight of other levels that are looked for.
_PRECISION = 14
#: A law with more combinations of levels is not enumerated.
_ENUMERATED = 40


class Levels(SumLaw):
    """A message for each of several levels, coarse to fine: its own one, or, by a blanket, any level alike.

    Attributes
    ----------
    sizes : tuple of int
        How many parts each level divides what is left into.
    shares : tuple of Fraction
        Of epsilon, for each level.
    weights : tuple of (keep, other)
        Words out of 2^64 with which the own level, and each other one, is sent.
    """

    n_counts = report_dtype = report_width = report_bits = n_words = None

    def __init__(self, epsilon, delta, n_users, colluding, n_messages=None):
        super().__init__(epsilon, delta, n_users, colluding)
        if n_messages is not None and (isinstance(n_messages, bool) or not isinstance(n_messages, int)
                                       or not 1 <= n_messages <= max(_MESSAGES)):
            raise ValueError(f"n_messages must be None or an integer from 1 to {max(_MESSAGES)}")
        strength = 2 * math.log(2 / delta) / self.n_honest  # about the blanket of a level, times epsilon squared
        plans = [_plan(strength / float(self.epsilon) ** 2, m) for m in ([n_messages] if n_messages else _MESSAGES)]
        self._take(*min(plans)[1:])
        if n_messages is None:  # with few users one level may be better than the plan of several
            spread, found = self.variance(n_users), (self.sizes, self.shares, self.weights)
            self._take(*_plan(strength / float(self.epsilon) ** 2, 1)[1:])
            if self.variance(n_users) > spread:
                self._take(*found)
        last = len(self.sizes) - 1
        self.n_counts, self.report_width, self.n_words = sum(self.alphabets), last + 1, last + 2
        self.report_dtype = max(smallest_dtype(self.n_counts), np.dtype(np.uint16), key=lambda t: t.itemsize)
        self.report_bits = (last + 1) * math.log2(self.n_counts)
        if math.prod(self.alphabets) > _ENUMERATED:
            self.not_enumerated = "it has many levels"

    def _take(self, sizes, shares, weights=None):
        """Take these sizes and shares, with the weights that the bound allows."""
        last = len(sizes) - 1
        self.sizes, self.shares = sizes, shares
        self.alphabets = tuple(k + (i == last) for i, k in enumerate(sizes))
        self.offsets = tuple(sum(self.alphabets[:i]) for i in range(last + 1))
        self.weights = weights or tuple(
            _weights(self.epsilon * share, self.delta / len(sizes), self.n_honest, n)
            for share, n in zip(shares, self.alphabets)
        )

    @cached_property
    def local_ratio(self):
        """Of the probabilities of all messages of a user, for two values that differ in all levels."""
        return math.prod(Fraction(keep, other) for keep, other in self.weights)

    def delta_at(self, epsilon, n_honest):
        """Return the sum of the levels' deltas, each with its share of epsilon."""
        return min(1.0, sum(
            _delta(float_down(Fraction(epsilon) * share), pair, n, n_honest)
            for share, pair, n in zip(self.shares, self.weights, self.alphabets)
        ))

    # ---------------------------------------------------------------- what is sent

    @property
    def input_codes(self):
        """Numbers that are rounded to the last level, or nearly are."""
        steps = math.prod(self.sizes)
        return np.array([ONE * k // steps for k in np.unique(np.linspace(0, steps, min(steps, 64) + 1).astype(int))])

    @property
    def input_positions(self):
        """What they stand for."""
        return self.input_codes / ONE

    def privatize(self, codes, words, out):
        """Write the levels' messages of each number, every level's after those of the one before."""
        drawn = words.dense(Stage.RESPONSE, self.report_width).reshape(len(codes), -1)
        lanes = words.dense(Stage.ROUNDING, 1) >> np.uint64(16)
        last, left = self.report_width - 1, codes
        for i, (k, (keep, other), offset) in enumerate(zip(self.sizes, self.weights, self.offsets)):
            steps = left * k
            level = steps >> 48
            if i == last:
                level += lanes < (steps & (ONE - 1)).astype(np.uint64)
            else:
                np.minimum(level, k - 1, out=level)
                left = steps - (level << 48)
            own = level.astype(self.report_dtype)
            sent = np.empty_like(own)
            grr.privatize(own, np.ascontiguousarray(drawn[:, i]), keep, other, sent)
            np.add(sent, offset, out=out[:, i], casting="unsafe")

    def check_reports(self, reports):
        """Refuse what is no level."""
        if int(reports.max()) >= self.n_counts:
            raise ValueError(f"a message must be below {self.n_counts}")

    def count(self, reports, counts):
        """Add how often each message was sent."""
        if not grr.count(reports.reshape(-1), counts):
            self.check_reports(np.full((1, 1), self.n_counts))

    def message_law(self, code):
        """Return the law of the messages, sorted."""
        law, left, parts, last = {}, int(code), [], self.report_width - 1
        for i, k in enumerate(self.sizes):
            level, part = divmod(left * k, ONE)
            if i == last:
                parts.append({level: 1 - Fraction(part, ONE), level + 1: Fraction(part, ONE)})
            else:
                own = min(level, k - 1)
                parts.append({own: Fraction(1)})
                left = left * k - own * ONE
        sent = [
            [sum(p * Fraction(keep if own == level else other, WORD) for own, p in part.items() if p) for level in
             range(n)]
            for part, (keep, other), n in zip(parts, self.weights, self.alphabets)
        ]
        for levels in product(*map(range, self.alphabets)):
            key = tuple(offset + level for offset, level in zip(self.offsets, levels))
            law[key] = math.prod(part[level] for part, level in zip(sent, levels))
        return law

    # ---------------------------------------------------------------- what it adds up to

    def total(self, counts, n):
        """Return the estimated sum of positions."""
        return float(sum(scale * (top * first - n * top * blanket / 2) / (1 - blanket)
                         for scale, top, blanket, first, _ in self._levels(counts, n)))

    def variance(self, n, counts=None):
        """Return its variance: at worst, or with the spread that counts show and rounding at worst."""
        total = n / 4 / math.prod(self.sizes) ** 2
        for scale, top, blanket, first, second in self._levels(counts, n):
            noise = n * (blanket * (2 * top + 1) / (6 * top) - blanket**2 / 4)
            if counts is not None:  # blanket (1 - blanket) sum of (x^2 - x), in [-n / 4, 0] but for rounding
                sums = (first - n * blanket / 2, second - n * blanket * (2 * top + 1) / (6 * top))
                noise += blanket * min(0.0, max(-n * (1 - blanket) / 4, sums[1] - sums[0]))
            total += (scale * top / (1 - blanket)) ** 2 * noise
        return float(total)

    def _levels(self, counts, n):
        """Yield (one level in positions, the top level, its blanket, and the sums of levels / top and its square)."""
        scale = 1.0
        for k, (_, other), size, offset in zip(self.sizes, self.weights, self.alphabets, self.offsets):
            scale /= k
            top = size - 1
            at = np.arange(size) / top
            own = counts[offset : offset + size] if counts is not None else np.zeros(size)
            yield scale, top, size * other / WORD, float(own @ at), float(own @ at**2)


class OneLevel(Levels):
    """A single message."""

    def __init__(self, epsilon, delta, n_users, colluding):
        super().__init__(epsilon, delta, n_users, colluding, 1)


def _plan(strength, m):
    """Return (about the mean squared error a user, sizes, shares) of m levels; a good one, by search."""
    if m == 1:
        k = np.unique(np.geomspace(1, _MOST, 200).astype(int))
        error = strength * (k + 1) / 3 + 1 / (4 * k**2)
        return float(error.min()), (int(k[error.argmin()]),), (Fraction(1),)
    best = None
    for first in range(2, 65):
        for share in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            rest, sizes, shares = _finer(strength / (1 - share) ** 2, m - 1)
            error = strength / share**2 * first / 3 + rest / first**2
            if best is None or error < best[0]:
                own = Fraction(share).limit_denominator(100)
                best = error, (first, *sizes), (own, *((1 - own) * s for s in shares))
    return best


_known_plans = {}


def _finer(strength, m):
    """Return `_plan` of the levels below, remembered on a grid of strengths."""
    key = round(16 * math.log(strength)), m
    if key not in _known_plans:
        _known_plans[key] = _plan(strength, m)
    return _known_plans[key]


def _weights(epsilon, delta, n_honest, n):
    """Return (keep, other), words for the own one of n levels and for each other: the least blanket that is enough."""
    alone = math.ceil(WORD / (exp_lower(epsilon) + n - 1))  # with so many a message needs nobody else
    if n * alone >= WORD:
        raise ValueError("epsilon is too small, because 64-bit words cannot express the probability of a uniform "
                         "message: take a larger epsilon")
    epsilon, delta = float_down(epsilon), float_down(delta)

    def fits(other):
        return other == alone or _delta(epsilon, (WORD - (n - 1) * other, other), n, n_honest) <= delta

    high = alone
    while high > 1 << 20 and fits(high // 2):
        high //= 2
    step = max(1, high >> _PRECISION)
    steps = smallest(lambda k: fits(min(high, k * step)), max(1, high // (2 * step)), high // step + 1)
    other = min(high, steps * step)
    return WORD - (n - 1) * other, other


def _delta(epsilon, weights, n, n_honest):
    """Return the blanket's bound for one of n levels, sent with these weights."""
    keep, other = weights
    if within(keep, other, Fraction(epsilon)):
        return 0.0
    pairs = pairs_of_likely(Fraction(keep, WORD), Fraction(other, WORD), n)
    return max(pair.delta(n_honest, epsilon) for pair in pairs)
