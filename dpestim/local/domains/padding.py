"""Padding and sampling: one of a user's values, of public slots, is drawn and reported; the groups of users."""

import heapq
from itertools import pairwise

import numpy as np

from dpestim._core import keyvalue
from dpestim.local.categories.adaptive import best_law
from dpestim.local.column import Column
from dpestim.local.columns import Columns
from dpestim.rng import Stage

#: Rows whose words are drawn at a time.
_ROWS = 1 << 16
#: What the largest frequency counts as, where frequencies are multiplied.
_LARGEST = 0.9
#: A sign that the kernel never turns: only which slot is drawn matters here.
ALWAYS = 1 << 32


class Heard:
    """What a group reported: the estimated shares of all values of its law, and the errors of such shares."""

    def __init__(self, law, counts, n, length=1):
        self.law, self.n, self.length = law, n, length
        self.shares = law.estimate(counts, n)
        self._line = law.variance_line(counts, n)

    def error(self, shares):
        """Return the standard errors at shares, with that of the draw of the users."""
        at_zero, slope = self._line
        return np.sqrt(np.maximum(at_zero + slope * shares + shares * (1 - shares), 0.0) / self.n)


def groups_of(n, parts, source):
    """Return the users of each group, arrays, by a random order of all users; group g has a share parts[g] of them."""
    order = np.argsort(_words(source, n, 1)[:, 0], kind="stable")
    ends = [0]
    for k in range(len(parts)):  # (at least one user each)
        ends.append(min(max(ends[-1] + 1, n * sum(parts[: k + 1]) // sum(parts)), n - (len(parts) - k - 1)))
    return [np.sort(order[start:stop]) for start, stop in pairwise(ends)]


def report(codes, size, epsilon, source, n_jobs, length=1):
    """Return what is `Heard` of a group's codes below `size`, by the law of the least error."""
    law = best_law(epsilon, max(size, 2))
    counts = Columns([Column("report", law)]).randomize_and_count([codes.astype(law.code_dtype)], source, 0, n_jobs)[0]
    return Heard(law, counts, len(codes), length)


def sampled(baskets, size, length, source):
    """Return one value below `size` of each set, of max(its values, length) slots, or `size` for an empty slot."""
    out = np.empty(len(baskets), np.uint32)
    words = _words(source, len(baskets), 2)
    signs = np.full(len(baskets.index), ALWAYS, np.int64)
    keyvalue.choose(baskets.start, baskets.index, signs, words, length, size, out)
    return np.minimum(out // 2, size)


def products(frequencies, n_sets, longest):
    """Return the sets of two or more places, up to `longest`, with the largest products, the largest first.

    `frequencies` fall; only the positive ones count.
    """
    rising = frequencies[frequencies > 0]
    weights = -np.log(_LARGEST * rising / rising.max()) if len(rising) else rising
    heap, found = [(weights[0], (0,))] if len(weights) else [], []
    while heap and len(found) < n_sets:
        cost, own = heapq.heappop(heap)
        if len(own) > 1:
            found.append(own)
        after = own[-1] + 1
        if after < len(weights):  # each set has one parent, whose product is no smaller
            heapq.heappush(heap, (cost - weights[own[-1]] + weights[after], (*own[:-1], after)))
            if len(own) < longest:
                heapq.heappush(heap, (cost + weights[after], (*own, after)))
    return found


def _words(source, n, each):
    """Return random words, each of n rows with so many."""
    reader, out = source.reader(), np.empty((n, each), np.uint64)
    for block, first in enumerate(range(0, n, _ROWS)):
        part = out[first : first + _ROWS]
        part[:] = reader.words(0, block, 0, len(part)).dense(Stage.SUBSET, each).reshape(len(part), each)
    return out
