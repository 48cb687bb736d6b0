"""Probabilities of programs with integer noise: sums over a finite window between bounds that are rounded outward.

What is outside the window is added to the upper bound. Conditions must form no circle, as in `probabilities.py`.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from dpestim.privacy.exact import exp_lower, exp_upper
from dpestim.verify.paths import Unsupported

#: Probabilities are integers in units of 2^-BITS.
BITS = 160
ONE = 1 << BITS
#: A window reaches to where e^-(distance / scale) is e^-REACH.
REACH = 50


@lru_cache(maxsize=256)
def law(scale):
    """Return (reach of the window, [(low, high)] of its values in order, upper bound of what is outside)."""
    reach = ceil(REACH * scale)
    low, high = exp_lower(-1 / scale), exp_upper(-1 / scale)
    mass = []
    for z in range(reach + 1):
        decay = (exp_lower(-z / scale), exp_upper(-z / scale)) if z else (Fraction(1), Fraction(1))
        mass.append((floor((1 - high) / (1 + high) * decay[0] * ONE), ceil((1 - low) / (1 + low) * decay[1] * ONE)))
    return reach, [*mass[:0:-1], *mass], ceil(2 * exp_upper(-(reach + 1) / scale) * ONE)


def mass(path, fixed, substituted):
    """Return (low, high), Fractions that the probability of a path with some noises fixed is between."""
    if any(kind != "discrete_laplace" for kind, _ in path.noises):
        raise Unsupported("a program with both kinds of noise is not computed")
    functions, outside, total = {}, 0, (ONE, ONE)
    for name, (_, scale) in enumerate(path.noises):
        reach, values, rest = law(scale)
        if name not in fixed:
            functions[name] = dict(zip(range(-reach, reach + 1), values))
            outside += rest
    for name, sum_ in fixed.items():
        scale = path.noises[name][1]
        if len(sum_.of) > 1:
            raise Unsupported("an output holds three noises at once")
        if not sum_.of:
            total = both(total, at(scale, sum_.constant))
            continue
        ((other, a),) = sum_.of.items()
        functions[other] = {y: both(own, at(scale, a * y + sum_.constant)) for y, own in functions[other].items()}
    pairs = []
    for sum_, strict in path.bounds:
        rest = substituted(sum_, fixed)
        if not rest.of:
            if rest.constant < 0 or (strict and not rest.constant):
                return Fraction(0), Fraction(0)
        elif len(rest.of) == 1:
            ((name, a),) = rest.of.items()
            functions[name] = {z: own for z, own in functions[name].items()
                               if a * z + rest.constant > 0 or (not strict and a * z + rest.constant == 0)}
        elif len(rest.of) == 2:
            pairs.append((rest, strict))
        else:
            raise Unsupported("a condition is about three noises at once")
    low, high = both(total, eliminated(functions, pairs))
    return Fraction(low, ONE), Fraction(high + outside, ONE)


def at(scale, value):
    """Return the bounds of the probability of a value; of one that is no integer it is 0."""
    if Fraction(value).denominator != 1:
        return 0, 0
    reach, values, _ = law(scale)
    value = int(value)
    if abs(value) <= reach:
        return values[value + reach]
    return 0, ceil(exp_upper(-abs(value) / scale) * ONE)


def both(a, b):
    """Return the product of two probabilities, rounded outward."""
    return a[0] * b[0] >> BITS, -(-a[1] * b[1] >> BITS)


def eliminated(functions, pairs):
    """Return the sum of a product of functions of one noise each, over bounds between two noises."""
    total = ONE, ONE
    while functions:
        neighbours = {name: set() for name in functions}
        for rest, _ in pairs:
            first, second = rest.of
            neighbours[first].add(second)
            neighbours[second].add(first)
        name = min(neighbours, key=lambda noise: (len(neighbours[noise]), -noise))
        own = functions.pop(name)
        if not neighbours[name]:
            total = both(total, (sum(low for low, _ in own.values()), sum(high for _, high in own.values())))
            continue
        if len(neighbours[name]) > 1:
            raise Unsupported("conditions between noises form a circle")
        (other,) = neighbours[name]
        mine = [(rest, strict) for rest, strict in pairs if name in rest.of]
        pairs = [(rest, strict) for rest, strict in pairs if name not in rest.of]
        sums = cumulated(own)
        functions[other] = {y: both(known, within(sums, mine, name, other, y)) for y, known in functions[other].items()}
    return total


def within(cumulated_sums, bounds, name, other, y):
    """Return the sum of a function where bounds hold, at one value of the other noise."""
    sums, start = cumulated_sums
    first, last = start, start + len(sums[0]) - 2
    for rest, strict in bounds:
        a = rest.of[name]
        end = -(rest.of[other] * y + rest.constant) / a
        if a > 0:
            first = max(first, floor(end) + 1 if strict else ceil(end))
        else:
            last = min(last, ceil(end) - 1 if strict else floor(end))
    if first > last:
        return 0, 0
    stop = last - start + 1
    return tuple(sums[k][stop] - sums[k][first - start] for k in (0, 1))



def cumulated(own):
    """Return (sums of low and of high up to each value, the first value) of a function on an interval."""
    sums = [[0], [0]]
    start = min(own, default=0)
    for z in range(start, max(own, default=start - 1) + 1):
        for k in (0, 1):
            sums[k].append(sums[k][-1] + own[z][k])
    return sums, start
