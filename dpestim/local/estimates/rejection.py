"""Intervals for any distribution: the shares and quantiles that the reports do not reject.

Pure functions of counts; `distribution.md` says what they assume.
"""

from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from scipy.special import chdtri, ndtr

from dpestim.local.estimates.model import model_of

#: Directions of shares that change the reports by less than this (standard errors) tell nothing.
LEAST_SEEN = 0.01
#: What must hold exactly is an equation that counts so much more than one of the reports.
EXACT = 1e5
#: Bins of the model that tells how wide intervals are before there are reports: without noise more take long.
COARSE = 64
#: An end of an interval for a share is searched to this (a share), or to where the statistic is so near its limit.
NEAR_END, NEAR_LIMIT, MOST_STEPS = 1e-4, 0.01, 20


class Rejection:
    """Likelihood-ratio tests of what share some values have, for any distribution.

    A distribution is shares, of at least 0, of *atoms*: values at the edges of the bins of the model, which give the
    law of any value between two of them. Chi-squares are about the reports of the users at hand.
    """

    def __init__(self, law, seen, shares, z):
        model, n = model_of(law, len(shares)), seen.sum()
        atoms, self.at, self.before, self.behind = _atoms(law, len(shares))
        expected = np.maximum(shares @ model.rows, 1e-12)
        # users keep their values: laws vary, not bins (the last part is one that no difference of two laws has)
        noise = (np.diag(expected) - (model.rows.T * shares) @ model.rows) / n + np.outer(expected, expected)
        half = cholesky(noise + 1e-13 * np.eye(len(expected)), lower=True, check_finite=False)
        rows = solve_triangular(half, np.c_[atoms.T, seen / n], lower=True, check_finite=False)
        left, size, _ = np.linalg.svd(rows[:, :-1], full_matrices=False)
        rows = left[:, size > LEAST_SEEN].T @ rows
        self._rows = np.vstack([rows[:, :-1], np.full(len(self.at), EXACT)])  # (shares have the sum 1)
        self._target = np.append(rows[:, -1], EXACT)
        self.nearest, distance = nnls(self._rows, self._target, maxiter=20 * len(self.at))
        self._least, self._size = distance**2, np.count_nonzero(self.nearest)
        self._limits = chdtri(np.arange(1, len(self.at) + 2), 2 * ndtr(-z))

    def statistic(self, member, share):
        """Return the chi-square of a share of the atoms `member`, as a multiple of the one that is rejected."""
        supposed = np.vstack([self._rows, EXACT * member])
        nearest, distance = nnls(supposed, np.append(self._target, EXACT * share), maxiter=20 * len(self.at))
        freedom = max(1, self._size - np.count_nonzero(nearest) + 1)
        return max(distance**2 - self._least, 0.0) / self._limits[freedom - 1]

    def interval(self, a, b):
        """Return ends of an interval for the share of values from a to b; those on an inner edge may count or not."""
        slack = 1e-9
        inside = ((self.before >= a - slack) | (a <= slack)) & ((self.behind <= b + slack) | (b >= 1 - slack))
        reached = (self.behind > a + slack) & (self.before < b - slack)
        return self._furthest(inside, 0.0), self._furthest(reached, 1.0)

    def quantile(self, share):
        """Return positions between which a quantile lies."""
        places = np.unique(self.at)
        below = np.cumsum(np.bincount(np.searchsorted(places, self.at), weights=self.nearest))
        best = min(int(np.searchsorted(below, share)), len(places) - 1)
        # the first place up to which there may be so much, and the last below which there need be no more
        low, none = best, -1
        while low - none > 1:
            middle = (low + none) // 2
            possible = self.statistic(self.at <= places[middle], share) <= 1
            low, none = (middle, none) if possible else (low, middle)
        high, none = best, len(places)
        while none - high > 1:
            middle = (high + none) // 2
            possible = self.statistic(self.at < places[middle], share) <= 1
            high, none = (middle, none) if possible else (high, middle)
        # (a value between two places counts as a mixture of both)
        return places[max(low - 1, 0)], places[min(high + 1, len(places) - 1)]

    def _furthest(self, member, end):
        """Return the share of atoms furthest towards an end, 0 or 1, that is not rejected; from outside."""
        held = min(max(float(self.nearest[member].sum()), 0.0), 1.0)
        out, near, far = end, -1.0, np.sqrt(self.statistic(member, end)) - 1
        if far <= 0:
            return out
        for _ in range(MOST_STEPS):
            if abs(out - held) < NEAR_END or far < NEAR_LIMIT:
                break
            # the root of a chi-square is nearly a line: its secant, and a place a bit further
            for reach in (1.0, 1.2):
                there = held + (out - held) * min(max(-reach * near / (far - near), 0.02), 0.98)
                value = np.sqrt(self.statistic(member, there)) - 1
                if value > 0:
                    out, far = there, value
                    break
                held, near = there, value
        return out


@lru_cache(maxsize=64)
def width_if_even(law, n, n_bins, z):
    """Return how wide the interval of a bin in the middle is where values are spread evenly, and n reports show it."""
    model = model_of(law, COARSE)
    test = Rejection(law, n * (model.even @ model.rows), model.even, z)
    test._limits[:] = test._limits[0]  # (without noise shares are not zero by chance)
    low, high = test.interval(*(np.array([0, 1]) + n_bins // 2) / n_bins)
    return high - low


@lru_cache(maxsize=8)
def _atoms(law, n_bins):
    """Return (laws of the outputs of values, their positions, the positions next to these on either side)."""
    model = model_of(law, n_bins)
    left, right = model.channel.ends()
    rows, at = [left[0]], [0]
    for k in range(1, len(left)):  # values on either side of an edge may have laws of their own
        rows.append(left[k])
        at.append(k)
        if not np.allclose(left[k], right[k - 1], rtol=1e-9, atol=1e-15):
            rows.append(right[k - 1])
            at.append(k)
    rows, at = np.array([*rows, right[-1]]), np.array([*at, len(left)])
    around = np.concatenate([[-np.inf], model.edges, [np.inf]])
    return rows, model.edges[at], around[at], around[at + 2]
