"""Guessing a value from its report: the most probable one under a prior, ties at random, and how often that is right.

A law enters as its columns, cut into runs of inputs for which a report is equally likely (`Runs`): a window over a
constant has three, whatever the grid. All is worked out in O((runs + inputs) log inputs). The derivation is in
`adversary.md`, beside `dpestim.audit.adversary`.
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

#: Scores (prior times likelihood) this close to the best one, relative to it, tie with it: an adversary who told them
#: apart would gain as little, and integer weights are made of real ones by roundings that must not decide about groups.
TIE = 2.0**-40


class Runs:
    """The columns of a law, each as runs of inputs of the same weight.

    Run r says that each of the inputs ``order[starts[r]:stops[r]]`` is reported as ``columns[r]`` with probability
    ``weights[r]``; what no run names has probability 0. Empty runs, and those of weight 0, are dropped.
    """

    def __init__(self, n_inputs, n_columns, starts, stops, weights, columns, order=None):
        starts, stops, weights, columns = np.broadcast_arrays(starts, stops, weights, columns)
        keep = (starts < stops) & (weights > 0)
        place = np.argsort(columns[keep], kind="stable")
        self.n_inputs, self.n_columns = n_inputs, n_columns
        self.starts, self.stops, self.weights, self.columns = (
            part[keep][place] for part in (starts, stops, weights, columns)
        )
        self.order = np.arange(n_inputs) if order is None else np.asarray(order)

    @classmethod
    def of_matrix(cls, matrix):
        """Return the runs of a dense law, an array of a row for each input."""
        columns = np.ascontiguousarray(np.transpose(matrix))
        n_columns, n = columns.shape
        first = np.ones(columns.shape, bool)
        first[:, 1:] = columns[:, 1:] != columns[:, :-1]
        starts = np.flatnonzero(first)
        stops = np.append(starts[1:], columns.size)  # (a column's first entry starts a run, so none crosses columns)
        column = starts // n
        return cls(n, n_columns, starts - column * n, stops - column * n, columns.ravel()[starts], column)

    @classmethod
    def of_windows(cls, n_inputs, n_columns, starts, stops, inside, outside, columns, limit=None, order=None):
        """Return the runs of windows over constants: `inside` in [start, stop), `outside` elsewhere below `limit`."""
        limit = n_inputs if limit is None else limit
        starts, stops, inside, outside, columns, limit = np.broadcast_arrays(
            starts, stops, inside, outside, columns, limit
        )
        zero = np.zeros_like(starts)
        parts = (zero, starts, stops), (np.minimum(starts, limit), stops, limit), (outside, inside, outside)
        return cls(n_inputs, n_columns, *map(np.concatenate, parts), np.tile(columns, 3), order)

    @classmethod
    def of_own(cls, order, own, other, n_others=None):
        """Return the runs of a law whose codes are sent by their own value, and with probability `other` by others.

        `own`, the probability for the user's value, and `n_others` may be arrays in the order of `order`; the latter is
        how many inputs, the first of `order`, send that code at all (None: every one).
        """
        n = len(order)
        places, limit = np.arange(n), n if n_others is None else n_others
        return cls.of_windows(n, n, places, places + 1, np.asarray(own, np.float64), float(other), order, limit, order)

    def worst_ratio(self):
        """Return the largest ratio of two weights of a column, a Fraction rounded up by 2^-50; or inf."""
        seen, first = np.unique(self.columns, return_index=True)
        covered = np.bincount(self.columns, self.stops - self.starts, self.n_columns)[seen]
        if (covered < self.n_inputs).any():
            return math.inf
        ratios = np.maximum.reduceat(self.weights, first) / np.minimum.reduceat(self.weights, first)
        return max(Fraction(1), Fraction(float(ratios.max())) * (1 + Fraction(1, 1 << 50)))

    def __add__(self, other):
        """Return the runs of both, which share inputs and columns."""
        parts = (np.concatenate([getattr(r, name) for r in (self, other)])
                 for name in ("starts", "stops", "weights", "columns"))
        return Runs(self.n_inputs, self.n_columns, *parts, self.order)


class BestGuess:
    """What to guess at each column of a law: an input of the largest score, ties at random.

    Parameters
    ----------
    runs : Runs
    prior : ndarray of float64 of shape (n_inputs,)
    """

    def __init__(self, runs, prior):
        self.runs, n = runs, runs.n_inputs
        level, values = levels_of(prior[runs.order])
        top = _range_minimum(level, runs.starts, runs.stops)
        score = runs.weights * values[top]
        seen, first = np.unique(runs.columns, return_index=True)
        best = np.zeros(runs.n_columns)
        best[seen] = np.maximum.reduceat(score, first)
        wins = score >= best[runs.columns] * (1 - TIE)
        # inputs by level, then place: those of one level within a run stand side by side
        self._by_level = np.lexsort((np.arange(n), level))
        keys = level[self._by_level] * (n + 1) + self._by_level
        base = top[wins] * (n + 1)
        self._low = np.searchsorted(keys, base + runs.starts[wins])
        self._high = np.searchsorted(keys, base + runs.stops[wins])
        self._columns, self._weights = runs.columns[wins], runs.weights[wins]
        #: how many inputs tie for each column
        self.n_tied = np.bincount(self._columns, self._high - self._low, runs.n_columns).astype(np.int64)

    @property
    def success(self):
        """The probability that the guess is right, for each input."""
        return np.minimum(self.weight_won, 1.0)

    @cached_property
    def weight_won(self):
        """The weight of columns at which each input is guessed."""
        share, places = self._weights / self.n_tied[self._columns], np.arange(self.runs.n_inputs)
        won = _sum_up_to(places, self._low, share) - _sum_up_to(places, self._high, share)
        out = np.empty(len(places))
        out[self.runs.order[self._by_level]] = won
        return np.maximum(out, 0.0)

    @cached_property
    def _ends(self):
        return np.cumsum(self._high - self._low)

    def guess(self, columns, rng):
        """Return a guess, the number of an input, for each column that was reported."""
        before = np.cumsum(self.n_tied) - self.n_tied
        n_tied = self.n_tied[columns]
        if not n_tied.all():
            raise ValueError("reports must have a positive probability under the law for some value: check that client "
                             "and server have the same parameters")
        place = before[columns] + (rng.integers(n_tied) if n_tied.max() > 1 else 0)
        run = np.searchsorted(self._ends, place, side="right")
        return self.runs.order[self._by_level[self._high[run] - (self._ends[run] - place)]]


def guess_likeliest(likelihoods, prior, rng):
    """Return a guess for each report, from an array of a row for each report and a column for each input."""
    score = likelihoods * prior
    wins = score >= score.max(axis=1, keepdims=True) * (1 - TIE)
    place = rng.integers(wins.sum(axis=1))
    return np.argmax(np.cumsum(wins, axis=1, dtype=np.int32) > place[:, None], axis=1)


def levels_of(prior):
    """Return (the level of each value, the value of each level): equal ones share a level, 0 is the largest."""
    order = np.argsort(-prior, kind="stable")
    falling = prior[order]
    new = np.append(False, falling[1:] < falling[:-1] * (1 - TIE))
    level = np.empty(len(prior), np.int64)
    level[order] = np.cumsum(new)
    return level, falling[np.append(0, np.flatnonzero(new))]


def _sum_up_to(places, at, values):
    """Return, for each place, the sum of the values that stand at it or before it; in long doubles: they are many."""
    order = np.argsort(at, kind="stable")
    sums = np.append(np.longdouble(0), np.cumsum(values[order], dtype=np.longdouble))
    return sums[np.searchsorted(at[order], places, side="right")]


def _range_minimum(values, starts, stops):
    """Return the minimum of values[start:stop] for each pair (sparse table)."""
    out = np.empty(len(starts), values.dtype)
    length = stops - starts
    row, width = values, 1
    while True:
        here = (length >= width) & (length < 2 * width)
        out[here] = np.minimum(row[starts[here]], row[stops[here] - width])
        if 2 * width > len(values):
            return out
        row = np.minimum(row[:-width], row[width:])
        width *= 2
