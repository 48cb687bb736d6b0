"""How far one record can move a statistic, on these data and on data near them: A(k), exactly, and what is smooth.

A(k) is the largest local sensitivity of all data within k substitutions. Means of consecutive order statistics have a
closed form for it: the median is one of a single value, and a trimmed mean one of all but the ends. With the sorted
data x, continued by the low bound before the first and by the high one after the last, the mean of x[v..u] has

    (u - v + 1) A(k) = max over a + b = k + 1 of x[u + b] - x[v - a],       a, b >= 0         (smooth_sensitivity.md)

A user's statistic says its value and its A(0), A(1), ... itself. A statistic is looked at once (`look`); what is seen
is secret, and answers `smooth(weights)` and `distance(bound)`. All lengths are in steps of the grid.
"""

import heapq
import math
from fractions import Fraction
from functools import lru_cache
from numbers import Real

import numpy as np

from dpestim.inputs.safe_errors import attempt
from dpestim.privacy.exact import canonical_amount
from dpestim.records import record

#: Weights of smooth sensitivities are integers from this one down.
WHOLE = 1 << 60
#: A distance that is more than any number of records.
NEVER = 1 << 40


@lru_cache(maxsize=64)
def smooth_weights(ratio, n):
    """Return integers w[0] = 2^60, w[1], ..., at most n + 1 of them, none more than `ratio` times the next.

    The last one goes on for ever: it is that of k = n, where A is as large as it gets, or rounding up keeps it.
    """
    weights = [WHOLE]
    while len(weights) <= n:
        following = -(-weights[-1] * ratio.denominator // ratio.numerator)
        if following == weights[-1]:
            break
        weights.append(following)
    return weights


@record
class Stretch:
    """The mean of the order statistics number `first` to `last` (from 1) of a column."""

    first: int
    last: int

    def look(self, column, grid, reach):
        """Return the value, and the gaps for k < reach, for which no more is sorted than it takes; O(n) if k is few."""
        n, size = len(column), self.last - self.first + 1
        low, high = max(self.first - 1 - reach, 0), min(self.last - 1 + reach, n - 1)
        x = np.partition(column, sorted({low, self.first - 1, self.last - 1, high}))
        left, right = np.sort(x[low : self.first])[::-1], np.sort(x[self.last - 1 : high + 1])
        if low == 0:
            left = np.append(left, grid.low)
        if high == n - 1:
            right = np.append(right, grid.high)
        return Gaps(Fraction(total(x[self.first - 1 : self.last]), size), left, right, size, grid.width)


def total(x):
    """Return the exact sum of integers below 2^53, up to 2^30 of them."""
    return (int((x >> 20).sum()) << 20) + int((x & ((1 << 20) - 1)).sum())


class Gaps:
    """A value, and x[u + b] and x[v - a], of which the largest difference with a + b = k + 1 is `size` A(k)."""

    def __init__(self, value, left, right, size, width):
        self.value, self._left, self._right, self._size, self._width = value, left, right, size, width

    def distance(self, bound):
        """Return the least k with A(k) > bound, seen with a reach of n; `NEVER` where there is none."""
        over = math.floor(min(bound * self._size, self._width))
        b = np.searchsorted(self._right, self._left + over, side="right")
        k = np.maximum(np.arange(len(b)) + b - 1, 0)  # (where all but nothing is averaged, a = b = 0 may be over it)
        return int(k.min(initial=NEVER, where=b < len(self._right)))

    def smooth(self, weights):
        """Return the largest A(k) w[k] / w[0], exactly: ranges of k in the order of what they can hold at most."""

        def known(start, end):  # A rises and weights fall
            most = self._most(end)
            return -most * weights[start], start, end, most

        best = self._width * weights[-1]  # A(k) w[k] where the last weight goes on, for A(n) is the width
        heap = [known(0, len(weights) - 1)]
        while heap and -heap[0][0] > best:
            _, start, end, most = heapq.heappop(heap)
            best = max(best, most * weights[end])
            if start < end:
                middle = (start + end) // 2
                heapq.heappush(heap, known(start, middle))
                heapq.heappush(heap, (-most * weights[middle + 1], middle + 1, end, most))
        return Fraction(best, WHOLE * self._size)

    def _most(self, k):
        """Return the largest x[u + b] - x[v - a] with a + b = k + 1, in O(k)."""
        low, high = max(0, k + 2 - len(self._right)), min(k + 1, len(self._left) - 1)
        if low > high:
            return int(self._right[-1] - self._left[-1])
        return int((self._right[k + 1 - high : k + 2 - low][::-1] - self._left[low : high + 1]).max())


@record
class Declared:
    """A user's statistic: function(column, low, high), a sorted array of floats, returns (value, [A(0), A(1), ...])."""

    function: object

    def look(self, column, grid, reach):
        """Return what the user says, or raise ValueError: a stand-in for these data alone would not be private."""
        numbers = np.ldexp(np.sort(column).astype(np.float64), grid.exponent)
        said, error = attempt(self._ask, numbers, grid)
        if error:
            raise ValueError("statistic must return (value, sensitivities): a finite number, and a sequence A(0), "
                             "A(1), ... of at least one number, none negative; the last one holds for all further k")
        return Steps(*said)

    def _ask(self, numbers, grid):
        value, sensitivities = self.function(numbers, grid.number(grid.low), grid.number(grid.high))
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError
        step, steps = Fraction(2) ** grid.exponent, []
        for amount in sensitivities:
            exact = canonical_amount(amount, "A(k)")
            steps.append(Fraction(grid.width) if exact == math.inf else min(exact / step, Fraction(grid.width)))
        steps = [max(steps[: k + 1]) for k in range(len(steps))] if steps != sorted(steps) else steps
        return min(max(Fraction(value) / step, Fraction(grid.low)), Fraction(grid.high)), [*steps[:-1], steps[-1]]


class Steps:
    """A value and its A(0), A(1), ..., of which the last goes on."""

    def __init__(self, value, steps):
        self.value, self._steps = value, steps

    def distance(self, bound):
        """Return the least k with A(k) > bound; `NEVER` where there is none."""
        return next((k for k, step in enumerate(self._steps) if step > bound), NEVER)

    def smooth(self, weights):
        """Return the largest A(k) w[k] / w[0], and no less than one step: never no noise at all."""
        last = len(weights) - 1
        found = max(step * weights[min(k, last)] for k, step in enumerate(self._steps))
        return max(found, Fraction(WHOLE)) / WHOLE
