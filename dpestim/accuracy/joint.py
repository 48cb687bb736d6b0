"""Errors of several numbers at once: the largest, and norms of their vector."""

import math
from collections import Counter
from fractions import Fraction
from functools import cached_property

from dpestim.accuracy.numbers import Bounded, at_sources
from dpestim.accuracy.sums import width_of
from dpestim.accuracy.tails import share
from dpestim.records import record


class Joint(Bounded):
    """Base of errors of several numbers at once."""

    @cached_property
    def is_exact(self):
        """Whether they are independent, of known laws, and not rounded."""
        return (all(number.is_linear and not number.rounding for number in self.numbers) and at_sources(self.numbers)
                and self._is_lattice())

    def _is_lattice(self):
        return True


@record(eq=False)
class Largest(Joint):
    """The largest absolute error of numbers."""

    numbers: tuple

    def width(self, beta):
        """Return what it exceeds with probability beta at most: by the product of tails, or the sum of them."""
        each = share(beta, len(self.numbers))
        if not all(number.is_linear for number in self.numbers):
            return max(number.bound(each) for number in self.numbers)
        often = {}
        for number in self.numbers:  # (numbers of the same noise have the same tail)
            key = number.noise(), number.rounding
            often.setdefault(key, [number, 0])[1] += 1
        high = max(number.bound(each) for number, _ in often.values())
        low, independent, beta = 0.0, at_sources(self.numbers), float(beta)
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
            tails = [(number.tail(middle), n) for number, n in often.values()]
            low, high = (low, middle) if _any_of(tails, independent) <= beta else (middle, high)
        return high


def _any_of(tails, independent):
    """Return an upper bound of the probability that any of so many events happens."""
    if not independent:
        return sum(n * tail for tail, n in tails)
    if any(tail >= 1 for tail, _ in tails):
        return 1.0
    return -math.expm1(sum(n * math.log1p(-tail) for tail, n in tails)) * (1 + 1e-14)


@record(eq=False)
class Norm(Joint):
    """The L1 or L2 norm of errors."""

    numbers: tuple
    order: int

    def width(self, beta):
        """Return what it exceeds with probability beta at most."""
        by_parts = self._by_parts(beta)
        if not all(number.is_linear for number in self.numbers):
            return by_parts
        rounding = _norm([float(number.rounding) for number in self.numbers], self.order)
        if self.order == 1:
            # (no more than the sum over sources of their absolute values times all coefficients; equal where each is
            # in one number only, alone)
            total = Counter()
            for number in self.numbers:
                for source, c in number.terms.items():
                    total[source] += abs(c)
            parts = Counter((source.law, c) for source, c in total.items())
        elif self._is_alone():
            parts = Counter((source.law, c * c) for number in self.numbers for source, c in number.terms.items())
        else:
            return by_parts
        if not parts:
            return rounding
        parts = tuple((law, Fraction(c), n) for (law, c), n in sorted(parts.items(), key=lambda item: item[0][1]))
        return min(by_parts, width_of(parts, beta, self.order)[0] ** (1 / self.order) + rounding)

    def _by_parts(self, beta):
        each = share(beta, len(self.numbers))
        return _norm([number.bound(each) for number in self.numbers], self.order)

    def _is_alone(self):
        return at_sources(self.numbers) and all(len(number.terms) <= 1 for number in self.numbers)

    def _is_lattice(self):
        return self._is_alone()


def _norm(values, order):
    return sum(values) if order == 1 else math.hypot(*values)
