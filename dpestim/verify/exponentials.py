"""Exact integrals of Laplace noise: piecewise sums of a x^p e^(k x + r) with rational a, k and r, and ends of pieces.

Such functions are closed under products, shifts and integrals, so that no number is ever rounded before the end. A
number is {r: a}, the sum of a e^r; by Lindemann and Weierstrass it is 0 only where no term is left.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb

from dpestim.privacy.exact import exp_lower, exp_upper

ONE = {Fraction(0): Fraction(1)}


# ---------------------------------------------------------------- numbers

def enclosure(number):
    """Return (low, high), Fractions that a number is between."""
    low = high = Fraction(0)
    for r, a in number.items():
        ends = (exp_lower(r), exp_upper(r)) if r else (Fraction(1), Fraction(1))
        low += a * ends[a < 0]
        high += a * ends[a > 0]
    return low, high


def scaled(number, factor, shift=0):
    """Return factor e^shift times a number."""
    return {r + shift: a * factor for r, a in number.items()} if factor else {}


def plus(a, b):
    """Return the sum of two numbers."""
    out = dict(a)
    _add(out, b)
    return out


def _add(out, terms):
    for key, a in terms.items():
        total = out.get(key, 0) + a
        if total:
            out[key] = total
        else:
            out.pop(key, None)


# ---------------------------------------------------------------- functions: lists of (low, high, {(p, k, r): a})

@lru_cache(maxsize=256)
def laplace(scale):
    """Return the density of Laplace noise."""
    rate, zero = 1 / Fraction(scale), Fraction(0)
    return ((None, zero, {(0, rate, zero): rate / 2}), (zero, None, {(0, -rate, zero): rate / 2}))


def product(f, g):
    """Return the product of two functions."""
    out = []
    for low, high, first in f:
        for low2, high2, second in g:
            ends = _within(low, high, low2, high2)
            if ends is not None:
                terms = {}
                for (p, k, r), a in first.items():
                    for (p2, k2, r2), b in second.items():
                        _add(terms, {(p + p2, k + k2, r + r2): a * b})
                out.append((*ends, terms))
    return tuple(out)


def _within(low, high, low2, high2):
    low = low if low2 is None else low2 if low is None else max(low, low2)
    high = high if high2 is None else high2 if high is None else min(high, high2)
    return None if low is not None and high is not None and low >= high else (low, high)


def restricted(f, low, high):
    """Return a function that is 0 outside an interval."""
    out = []
    for low2, high2, terms in f:
        ends = _within(low2, high2, low, high)
        if ends is not None:
            out.append((*ends, terms))
    return tuple(out)


def composed(f, slope, shift):
    """Return the function y -> f(slope y + shift), for a slope that is not 0."""
    out = []
    for low, high, terms in f:
        ends = [None if end is None else (end - shift) / slope for end in (low, high)]
        if slope < 0:
            ends.reverse()
        new = {}
        for (p, k, r), a in terms.items():
            for j in range(p + 1):
                factor = a * comb(p, j) * slope**j * shift**(p - j)
                if factor:
                    _add(new, {(j, k * slope, r + k * shift): factor})
        out.append((*ends, new))
    return tuple(out)


def at(f, x):
    """Return the value of a function at a place that is no end of a piece, as a number."""
    out = {}
    for low, high, terms in f:
        if (low is None or low < x) and (high is None or x < high):
            for (p, k, r), a in terms.items():
                _add(out, {r + k * x: a * x**p} if x**p else {})
    return out


def _antiderivative(terms):
    out = {}
    for (p, k, r), a in terms.items():
        if not k:
            _add(out, {(p + 1, k, r): a / (p + 1)})
            continue
        factor = a / k
        for j in range(p, -1, -1):
            _add(out, {(j, k, r): factor})
            factor *= -Fraction(j) / k
    return out


def _at_end(terms, end, sign):
    """Return the limit of terms at an end of a piece (None: infinity, of a sign), as terms without x."""
    out = {}
    for (p, k, r), a in terms.items():
        if end is None:
            if k * sign >= 0:
                raise ValueError("an integral does not end: a bug")
        elif end**p:
            _add(out, {(0, Fraction(0), r + k * end): a * end**p})
    return out


def integral(f):
    """Return the integral of a function, as a number."""
    out = {}
    for low, high, terms in f:
        whole = _antiderivative(terms)
        for end, sign, factor in ((high, 1, 1), (low, -1, -1)):
            for (_, _, r), a in _at_end(whole, end, sign).items():
                _add(out, {r: factor * a})
    return out


def between(f, lowers, uppers):
    """Return the function of y that integrates f between the largest lower and the smallest upper bound.

    A bound is (slope, shift), the line slope y + shift; no slope is 0.
    """
    cuts = set()
    lines = [*lowers, *uppers]
    for k, (slope, shift) in enumerate(lines):
        for slope2, shift2 in lines[:k]:
            if slope != slope2:
                cuts.add((shift2 - shift) / (slope - slope2))
        for low, high, _ in f:
            cuts |= {(end - shift) / slope for end in (low, high) if end is not None}
    cuts = sorted(cuts)
    out = []
    wholes = [_antiderivative(terms) for _, _, terms in f]
    for low_y, high_y in zip([None, *cuts], [*cuts, None]):
        middle = (low_y + high_y) / 2 if None not in (low_y, high_y) else (
            Fraction(0) if low_y is high_y else high_y - 1 if low_y is None else low_y + 1)
        lower = max(lowers, key=lambda line: line[0] * middle + line[1], default=None)
        upper = min(uppers, key=lambda line: line[0] * middle + line[1], default=None)
        terms = {}
        for (low, high, _), whole in zip(f, wholes):
            # (which end counts is the same on all of this piece of y, whose ends are all crossings)
            start = _later(low, lower, middle)
            stop = _earlier(high, upper, middle)
            x1, x2 = _place(start, middle), _place(stop, middle)
            if x1 is not None and x2 is not None and x1 >= x2:
                continue
            _add(terms, _along(whole, stop, 1))
            _add(terms, {key: -a for key, a in _along(whole, start, -1).items()})
        if terms:
            out.append((low_y, high_y, terms))
    return tuple(out)


@lru_cache(maxsize=4096)
def laplace_between(scale, lowers, uppers):
    """Return `between` of the density of Laplace noise: most noises are integrated out in few ways."""
    return between(laplace(scale), lowers, uppers)


def _place(bound, y):
    return bound[0] * y + bound[1] if isinstance(bound, tuple) else bound


def _later(end, line, y):
    if line is None:
        return end
    return line if end is None or _place(line, y) > end else end


def _earlier(end, line, y):
    if line is None:
        return end
    return line if end is None or _place(line, y) < end else end


def _along(terms, bound, sign):
    """Return an antiderivative at a bound that is a number, a line in y, or None for infinity."""
    if not isinstance(bound, tuple):
        return _at_end(terms, bound, sign)
    return composed(((None, None, terms),), *bound)[0][2]
