"""How far apart two plans of a release are, exactly: the worst ratio of the probabilities of an outcome, or the delta.

A plan (`dpestim.statistics.plan`) names the laws of its independent parts, so that nothing has to be sampled.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from scipy import stats

from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.testing.tools import require


@lru_cache(maxsize=4096)
def _shift_ratio(law, k):
    """Return a lower bound of the worst ratio of the probabilities of an integer and of one k further away."""
    return max(law.probability(z)[0] / law.probability(z + k)[1] for z in (0, 1))


def _noise_loss(one, two):
    """Return (the worst ratio, nothing or a function of epsilon that is the delta) of two `Noisy` parts."""
    a, b = (np.asarray(part.noise.codes(part.numbers)).ravel() for part in (one, two))
    require(one.noise == two.noise and len(a) == len(b), "neighbours must get noise of one law on as many integers")
    moved = [abs(int(x) - int(y)) for x, y in zip(a, b) if x != y]
    if not one.noise.law.delta:
        times = Counter(moved).items()
        return math.prod((_shift_ratio(one.noise.law, k) ** n for k, n in times), start=Fraction(1)), None
    size = math.sqrt(sum(k * k for k in moved)) / one.noise.law.sigma

    return Fraction(1), partial(normal_delta, size)


def normal_delta(size, epsilon):
    """Return the delta at epsilon of normal numbers whose means are so many standard deviations apart."""
    if not size:
        return 0.0
    upper, lower = size / 2 - epsilon / size, -size / 2 - epsilon / size
    return float(stats.norm.cdf(upper) - math.exp(epsilon + stats.norm.logcdf(lower)))


@lru_cache(maxsize=4096)
def _powers(x):
    return exp_lower(x), exp_upper(x)


def choice_loss(one, two):
    """Return the worst ratio of the probabilities of a point: those of one score for both share an exact fraction."""
    cells, others = one.cells, two.cells
    require(one.law == two.law and (cells.first, cells.last, cells.levels) == (
        others.first, others.last, others.levels), "neighbours must choose by one law, from one grid")
    starts = np.unique(np.r_[cells.starts(), others.starts()])
    times = np.diff(cells.weight_before(starts)).tolist()  # (weights follow from the grid alone)
    a, b = ([part.code(point) for point in starts[:-1]] for part in (one, two))
    rate, best = one.law.rate, max(*a, *b)
    down, up = ({code: _powers(rate * (code - best))[side] for code in {*a, *b}} for side in (0, 1))
    least, most = ([sum(n * powers[code] for n, code in zip(times, codes)) for codes in (a, b)]
                   for powers in (down, up))
    return max(max(down[x] / up[y] * least[1] / most[0], down[y] / up[x] * least[0] / most[1])
               for x, y in set(zip(a, b)))


def _table_delta(one, two, epsilon):
    """Return the delta of tables of what is frequent: the joint law of all keys whose counts differ."""
    require(one.noise == two.noise and one.least == two.least, "neighbours must get noise of one law and a threshold")
    rate = float(one.noise.law.rate_of_decay)
    places = np.arange(one.least, one.least + math.ceil(40 / rate))
    both = np.ones((2, 1))
    for key in {**one.counts, **two.counts}:
        counts = one.counts.get(key, 0), two.counts.get(key, 0)
        if counts[0] != counts[1]:
            laws = []
            for count in counts:
                p = math.tanh(rate / 2) * np.exp(-rate * np.abs(places - count)) * (count > 0)
                laws.append([1 - p.sum(), *p])
            both = np.array([np.outer(p, q).ravel() for p, q in zip(both, laws)])
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in (both, both[::-1]))


def plan_loss(one, two):
    """Return (the worst ratio of all pure parts of two plans, functions of epsilon: the deltas of the others)."""
    require([type(part) for part in one.parts] == [type(part) for part in two.parts], "neighbours must draw alike")
    ratio, deltas = Fraction(1), []
    for own, other in zip(one.parts, two.parts):
        if hasattr(own, "least"):
            deltas.append(lambda epsilon, own=own, other=other: _table_delta(own, other, epsilon))
        elif hasattr(own, "target"):
            ratio *= choice_loss(own, other)
        else:
            pure, delta = _noise_loss(own, other)
            ratio *= pure
            deltas += [delta] if delta else []
    return ratio, deltas
