"""The weights of the exponential mechanism as integers that three parties can look up by bits (`quantile.md`)."""

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpestim.records import record

#: The sum of all weights is at most 2^54, so that it times a limb of 8 bits, and a carry, stays below 2^63.
SUM_BITS, LIMB, N_LIMBS = 54, 8, 11
#: Digits with which roots of 2 are computed.
_DIGITS = 128
#: Steps an octave are at most 2^12, and words of a table times points of a domain at most 2^23.
_MOST_STEPS, _MOST_WORK = 12, 23
#: Steps are fine enough where so much of epsilon is used.
_ENOUGH = 0.99
#: Units in which scores are held are below 2^62 in absolute value.
_SCORE_BITS = 62
#: What floats, and the finite number of bits that are drawn, may add to epsilon / 2.
_MARGIN = 1e-9


@record
class WeightLaw:
    """Weights 2^-(y / 2^steps), of which y steps are `factor` times how many units the rank of a point is off.

    Parameters
    ----------
    top : int
        The weight 1 is the integer 2^top.
    low : int
        No weight is below 2^low: from there on all are equal.
    steps : int
        A weight halves in 2^steps steps.
    factor : int
        Steps a unit of the rank.
    moved : int
        Units by which the rank of a point changes between neighbours.
    target : Fraction
        The share of records below the quantile.
    """

    top: int
    low: int
    steps: int
    factor: int
    moved: int
    target: Fraction

    @property
    def cap(self):
        """The steps from which on all weights are the lowest."""
        return (self.top - self.low) << self.steps

    @property
    def most_records(self):
        """How many records all owners together may have."""
        return (1 << _SCORE_BITS) // (self.factor * self.target.denominator) - 1

    @cached_property
    def table(self):
        """The weights of the first octave."""
        return _octave(self.top, self.steps)

    def weights_of(self, steps):
        """Return the weights of so many steps, of an array of integers of at least 0."""
        steps = np.minimum(np.asarray(steps, np.int64), self.cap)
        octave = (steps >> self.steps).astype(np.uint64)
        found = self.table[steps & ((1 << self.steps) - 1)] >> octave
        return np.where(steps >= self.cap, np.uint64(1 << self.low), found)

    @cached_property
    def epsilon(self):
        """What the mechanism keeps: twice the largest logarithm of a ratio of weights of neighbours, rounded up."""
        weights = self.weights_of(np.arange(self.cap + 1)).astype(float)
        there = weights[np.minimum(np.arange(self.cap + 1) + self.factor * self.moved, self.cap)]
        return 2 * (math.log(np.max(weights / there)) + _MARGIN)

    @property
    def rate(self):
        """The logarithm that a weight loses for each unit, but for rounding."""
        return self.factor * math.log(2) / (1 << self.steps)

    def scores(self, below, up_to, n_records):
        """Return (steps above the target, steps below it), int64: of how many records are below, and at most, a point.

        Both are linear, so that owners add theirs; not both are above 0, and the larger one is how far the rank is off.
        """
        share, whole = self.factor * self.target.numerator, self.factor * self.target.denominator
        return whole * below - share * n_records, share * n_records - whole * up_to

    def weights(self, below, up_to, n_records):
        """Return the weights of points, as an array of integers; secret."""
        above, under = self.scores(below, up_to, n_records)
        return self.weights_of(np.maximum(0, np.maximum(above, under)))

    def place(self, weights, drawn, n_bits=LIMB * N_LIMBS):
        """Return the place that uniform bits, an integer, choose."""
        sums = np.cumsum(weights)
        return int(np.searchsorted(sums, (drawn * int(sums[-1])) >> n_bits, side="right"))

    def probabilities(self, weights, n_bits=LIMB * N_LIMBS):
        """Return the exact probabilities of places, as Fractions."""
        ends = [0]
        total = sum(map(int, weights))
        for sum_ in np.cumsum(weights):  # (as many numbers u below 2^n_bits have floor(u total / 2^n_bits) < sum)
            ends.append(-(-(int(sum_) << n_bits) // total))
        return [Fraction(high - low, 1 << n_bits) for low, high in pairwise(ends)]


def weight_law(epsilon, target, n_points, replaces):
    """Return the `WeightLaw` with the largest epsilon up to the declared one that its steps allow."""
    moved = target.denominator if replaces else max(target.numerator, target.denominator - target.numerator)
    digits = max(1, (n_points - 1).bit_length())
    top, low = SUM_BITS - digits, min(12, max(7, 22 - digits))
    best = None
    for steps in range(3, min(_MOST_STEPS, max(5, _MOST_WORK - digits)) + 1):
        factor = math.floor(float(epsilon) * (1 << steps) / (2 * math.log(2) * moved))
        # (an ever larger factor would only widen scores)
        factor = min(factor, (1 << 24) // moved)
        while factor >= 1:
            law = WeightLaw(top, low, steps, factor, moved, target)
            if law.epsilon <= epsilon:
                break
            factor -= 1
        if factor >= 1 and (best is None or law.epsilon > best.epsilon):
            best = law
        if best is not None and best.epsilon >= _ENOUGH * epsilon:
            break
    if best is None:
        raise ValueError(f"epsilon must be larger for a domain of {n_points} points, because the steps of weights are "
                         'not fine enough: take fewer points, or method="bisection"')
    return best


@lru_cache(maxsize=32)
def _octave(top, steps):
    """Return 2^(top - i / 2^steps) for i below 2^steps, rounded down but for the last digits: integers only.

    All computing parties must have the same, which floats of two machines may not be.
    """
    found, root = [1 << _DIGITS], 1 << (_DIGITS - 1)
    for _ in range(steps):
        root = math.isqrt(root << _DIGITS)  # 2^-(1/2), 2^-(1/4), ...
        found = [wide for each in found for wide in (each, each * root >> _DIGITS)]
    return np.array([each >> (_DIGITS - top) for each in found], np.uint64)


def quantile_program(computer, law, above, under, drawn=None):
    """Return the places that are chosen: the program of a computing party, a generator of rounds.

    Parameters
    ----------
    computer : Computer
    law : WeightLaw
    above, under : Shared
        What `WeightLaw.scores` has of all records.
    drawn : Shared, default=None
        For tests: sums, of shape (number of limbs, number of choices), in place of limbs that are drawn for one choice.
    """
    cap = computer.public(np.full(above.first.shape, law.cap, np.uint64))
    bits = yield from computer.bits_of(above.stacked([above, under, above - cap, under - cap]))
    least = computer.inverted(bits.spread(63))  # ones where a number is at least 0
    far = least[2] ^ least[3]  # (one of them at most)
    scores = yield from computer.both(bits[:2], least[:2])
    steps = scores[0] ^ scores[1]
    weights = yield from computer.looked_up(steps, law.steps, law.table)
    octaves = steps.each(lambda words: words >> np.uint64(law.steps))
    weights = yield from computer.shifted_down(weights, octaves, (law.top - law.low).bit_length())
    lowest = computer.public(np.full(above.first.shape, 1 << law.low, np.uint64))
    weights = yield from computer.chosen(far, lowest, weights)
    weights = yield from computer.sum_of(weights)
    sums = weights.each(lambda words: np.cumsum(words, dtype=np.uint64))
    if drawn is None:
        limbs = computer.random((N_LIMBS, 1)).each(lambda words: words & np.uint64((1 << LIMB) - 1))
        drawn = yield from computer.sum_of(limbs)
    total = sums[-1:]
    below = total - total
    for limb in range(len(drawn.first)):  # (from the lowest: floors of floors are the floor of all)
        product = yield from computer.multiply(drawn[limb], total)
        moved = yield from computer.bits_of(product + below)
        below = yield from computer.sum_of(moved.each(lambda words: words >> np.uint64(LIMB)))
    short = sums[:, np.newaxis] - below[np.newaxis] - computer.public(np.ones((len(above.first), 1), np.uint64))
    bits = yield from computer.bits_of(short)
    # one bit of each point is opened: whether it is below the place that is chosen
    opened = yield from computer.open_bits(bits.each(lambda words: words >> np.uint64(63)))
    return opened.astype(np.int64).sum(axis=0)
