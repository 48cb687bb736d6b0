"""What counts of the levels of a tree tell of ranges: estimates, and their variances from the very reports."""

import math
from functools import cached_property

import numpy as np

from dpestim.local.domains.levels import sibling_variance
from dpestim.local.interval_ends import ends
from dpestim.postprocessing import norm_sub, trees

#: The variance of a leaf's share where nobody reported leaves: so large that it weighs nothing.
NOBODY = 1e9
#: Edges whose standard errors are computed for a quantile.
_ALL_EDGES = 128


class Observed:
    """A tree over the values of a column, and the reports of its levels.

    Parameters
    ----------
    fanouts : tuple of int
    laws : list of CategoricalRandomizer
        Of each level below the root.
    counts : list of ndarray
        Of the reports of each level.
    drawn : list of int
        How many users reported each level.
    n : int
        How many users there are in all.
    n_values : int
        How many of the leaves are values.
    method : {"hierarchy", "hio", "haar"}
        "hierarchy": nodes are made the sums of their children. "haar": reports are of how much a node has more than
        half of its parent.
    """

    def __init__(self, fanouts, laws, counts, drawn, n, n_values, method):
        self.fanouts, self.laws, self.counts, self.drawn = fanouts, laws, counts, drawn
        self.n, self.n_values, self.method = n, n_values, method
        self._errors = {}
        self.n_leaves = trees.level_sizes(fanouts)[-1]
        #: The variance of a node of each level, as far as it is public: weights have no part in what they weigh.
        self.variances = [0.0, *(sibling_variance(law) / m if m else math.inf for law, m in zip(laws, drawn))]
        if not drawn[-1]:
            self.variances[-1] = NOBODY

    @cached_property
    def shares(self):
        """The shares of the nodes of each level, or what reports tell of them; even ones without any."""
        even = 0.0 if self.method == "haar" else 1.0
        return [law.estimate(own, m) if m else np.full(law.n_categories, even / law.n_categories)
                for law, own, m in zip(self.laws, self.counts, self.drawn)]

    @cached_property
    def leaves(self):
        """The shares of all values."""
        if self.method == "hio":
            return self.shares[-1][: self.n_values].copy()
        observed = [np.ones(1), *self.shares]
        if self.method == "haar":
            return trees.of_differences(self.fanouts, observed)[: self.n_values]
        return trees.consistent(self.fanouts, observed, self.variances)[-1][: self.n_values]

    @cached_property
    def below(self):
        """The share below each edge between values, without bias."""
        plain = np.append(0.0, np.cumsum(self.leaves)) if self.method != "hio" else self._of_covers()
        plain[-1] = 1.0
        return plain

    @cached_property
    def cumulative(self):
        """The same, made to rise from 0 to 1."""
        plain = self.below
        rising = (np.maximum.accumulate(plain) + np.minimum.accumulate(plain[::-1])[::-1]) / 2
        return np.clip(rising, 0.0, 1.0)

    def weights(self, low, high):
        """Return the weight of each node in the share between two places, arrays for each level from the root on."""
        high = self.n_leaves if high >= self.n_values else high  # (nobody has what lies beyond)
        if self.method == "hierarchy":
            return trees.range_weights(self.fanouts, self.variances, low, high)
        weights_of = trees.difference_weights if self.method == "haar" else trees.cover_weights
        return weights_of(self.fanouts, low, high)

    def range(self, low, high):
        """Return (the share between two places, its standard error as a function of what the share is)."""
        root, *weights = self.weights(low, high)
        share = float(root[0]) + sum(float(w @ f) for w, f in zip(weights, self.shares))
        noise = [self._noise(*each) for each in zip(self.laws, self.drawn, weights, *self._halves(low, high))]

        def error(p):
            p = np.asarray(p, np.float64)
            variance = -p * (1 - p) / max(self.n - 1, 1)
            for m, (square_in, square_out, mean_in, mean_out) in zip(self.drawn, noise):
                square, mean = p * square_in + (1 - p) * square_out, p * mean_in + (1 - p) * mean_out
                variance = variance + (square - np.square(mean)) / max(m, 1)
            return np.sqrt(np.maximum(variance, 0.0))

        return share, error

    def interval(self, low, high, z):
        """Return the ends of the interval of that share."""
        share, error = self.range(low, high)
        return tuple(map(float, ends(np.float64(share), z, error)))

    def places_of_share(self, q, n, z):
        """Return the first and the last place where share q of the first n values may be reached.

        A place may be it where its cumulative share is within z standard errors of the share that is looked for. These
        are the shares without bias: made to rise, their errors are others, and so flat where noise is large that
        no end can be read off.
        """
        below = self.below[: n + 1]
        goal = q * below[-1]
        # (a standard error takes a walk through the tree: of many edges some are asked, at no regular distance, since
        # those of large nodes have smaller errors)
        few = np.arange(n + 1) if n <= _ALL_EDGES else np.unique(np.round(np.concatenate(
            ([0, 1, n - 1, n], np.arange(1, _ALL_EDGES) * ((5**0.5 - 1) / 2) % 1 * n))).astype(int))
        more = q * float(self._error_below(n)(min(max(below[-1], 0.0), 1.0)))
        # (at an edge of a value that many hold the share is far from the goal, and so may be its error)
        asked = np.column_stack([np.full(len(few), goal), np.clip(below[few], 0.0, 1.0)])
        errors = np.hypot([self._error_below(place)(own).max() for place, own in zip(few.tolist(), asked)], more)
        if len(few) <= n:
            errors = np.maximum(errors, np.maximum(np.append(errors[1:], 0.0), np.append(0.0, errors[:-1])))
        width = z * np.interp(np.arange(n + 1), few, errors)
        high, low = below + width, below - width
        first, last = int(np.argmax(high >= goal)), n - int(np.argmax(low[::-1] <= goal))
        ends = [float(first), float(last)]
        if first > 0:
            ends[0] -= (high[first] - goal) / (high[first] - high[first - 1])
        if last < n:
            ends[1] += (goal - low[last]) / (low[last + 1] - low[last])
        return ends

    def _error_below(self, place):
        """Return the standard error of the share below an edge, as a function of what the share is."""
        if place not in self._errors:
            self._errors[place] = self.range(0.0, place)[1]
        return self._errors[place]

    @cached_property
    def _likely(self):
        """Shares of all leaves as a distribution, for what noise depends on."""
        leaves = np.zeros(self.n_leaves)
        leaves[: self.n_values] = norm_sub(self.leaves)
        return leaves

    def _halves(self, low, high):
        """Return how users between two places, and the others, are spread over the nodes: lists of arrays."""
        part = trees.inside(self.fanouts, low, high)[-1]
        out = []
        for own in (part, 1 - part):
            spread = self._likely * own
            spread = spread if spread.sum() > 0 else own
            spread = spread / max(spread.sum(), 1e-300)
            out.append([spread.reshape(size, -1).sum(axis=1) for size in trees.level_sizes(self.fanouts)[1:]])
        return out

    @staticmethod
    def _noise(law, m, weights, among, others):
        """Return the mean square and the mean of a report's number, of users in the range and of others."""
        square = law.squares_of_sum(weights)
        if not m:  # (as if one user had, whose value nobody knows)
            return (float(square.max()),) * 2 + (0.0, 0.0)
        return float(among @ square), float(others @ square), float(among @ weights), float(others @ weights)

    def _of_covers(self):
        """Return the share below each edge by the fewest nodes, as they were reported."""
        below = np.zeros(1)
        for fanout, own in zip(self.fanouts, self.shares):
            groups = own.reshape(-1, fanout)
            below = (below[:, None] + np.cumsum(groups, axis=1) - groups).reshape(-1)
        return np.append(below[: self.n_values], 1.0)
