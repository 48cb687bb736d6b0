"""What a guarantee means in whole numbers out of 100, for people who were asked: two worlds, and a guess between them.

**Claim.** Let P and Q be the laws of a release in two worlds that the guarantee speaks about, and S any event. For
each pair (epsilon, delta) that holds, P(S) <= e^epsilon Q(S) + delta, and Q(not S) <= e^epsilon P(not S) + delta. So
P(S) <= min(e^epsilon q + delta, 1 - e^-epsilon (1 - q - delta)) where Q(S) = q: `largest`. Who takes both worlds to be
equally likely names the right one with probability (1 + P(S) - Q(S)) / 2 for the best S. P(S) - Q(S) is at most
(e^epsilon - 1 + 2 delta) / (e^epsilon + 1): the line through (0, delta) and (1 - delta, 1), with slopes e^epsilon and
e^-epsilon, is farthest from the diagonal where both bounds meet, at q = (1 - delta) / (1 + e^epsilon). `right` has it.

All bounds are rounded up; with pure guarantees all of this is exact arithmetic of fractions, the same on all machines.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from dpestim.privacy.exact import exp_upper

#: Beyond this no bound says anything: a wrong guess is rarer than one of a million.
_FAR = 14
#: Whole numbers are out of the first of these that can tell a bound from certainty.
_BASES = (100, 1_000, 10_000, 100_000, 1_000_000)
#: Deltas of a curve at which its epsilon is asked for, beside that of the face.
_DELTAS = (1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5)


class Chances(NamedTuple):
    """Two worlds in whole numbers out of `base`; all but `without` and `few` are bounds, rounded up."""

    base: int
    without: int
    within: int
    few: int
    within_few: int
    right: int


def chances(guarantee):
    """Return the `Chances` of a guarantee, or of its relaxation if nothing else holds; None where no bound tells.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
    """
    return _chances(_pairs(guarantee))


def chances_of(epsilon):
    """Return the `Chances` of a release with an epsilon, a Fraction, and no delta; None where no bound tells."""
    return _chances([(exp_upper(Fraction(epsilon)), Fraction(0))] if epsilon <= _FAR else [])


def guessed(epsilon, n):
    """Return (base, before, after) of a guess at one of `n` answers that were equally likely; None where none tells.

    Of `base` guesses about `before` are right without a look at the release, and at most `after` with it: by Bayes'
    rule no answer gets a probability above e^epsilon / (e^epsilon + n - 1), because each other one has at least
    e^-epsilon times the probability of the likeliest.
    """
    if epsilon > _FAR:
        return None
    times = exp_upper(Fraction(epsilon))
    right = times / (times + n - 1)
    for base in _BASES:
        if base >= n and math.ceil(base * right) < base:
            return base, round(Fraction(base, n)), math.ceil(base * right)
    return None


def _chances(pairs):
    if not pairs:
        return None
    right = _right(pairs)
    for base in _BASES:
        of_right = math.ceil(base * right)
        if of_right < base:
            without = max(1, round(base * (1 - right)))
            few = max(1, base // 100)
            return Chances(base, without, _whole(pairs, without, base), few, _whole(pairs, few, base), of_right)
    return None


def _pairs(guarantee):
    """Return (e^epsilon, delta) that hold, as fractions."""
    if guarantee.is_finite:
        found = [(guarantee.epsilon, guarantee.delta)]
        if guarantee.curve is not None:
            found += [(guarantee.epsilon_at(delta), delta) for delta in _DELTAS]
    else:
        found = [] if guarantee.relaxed_epsilon is None else [(guarantee.relaxed_epsilon, 0)]
    return [(exp_upper(Fraction(epsilon)), Fraction(delta)) for epsilon, delta in found
            if epsilon <= _FAR and delta < 1]


def _right(pairs):
    """Return the largest probability of a right guess between two worlds that are equally likely."""
    return min(Fraction(1, 2) + (times - 1 + 2 * delta) / (times + 1) / 2 for times, delta in pairs)


def largest(pairs, without):
    """Return the largest probability, in one world, of what has probability `without` in the other."""
    return min(min(times * without + delta, 1 - max(0, 1 - without - delta) / times) for times, delta in pairs)


def _whole(pairs, without, base):
    return math.ceil(base * largest(pairs, Fraction(without, base)))
