"""What counts of the grids over two columns tell of rectangles: estimates, and their variances from these reports."""

from functools import cached_property

import numpy as np

from dpestim.local.domains.levels import sibling_variance
from dpestim.local.interval_ends import ends
from dpestim.postprocessing import norm_sub

#: A share of a column of cells below so many standard errors does not say how its ranges divide it.
_CLEAR = 2.0


class Told:
    """One grid, or one column's ranges, as its own reports tell: shares with the sum 1, and their variance.

    Parameters
    ----------
    law : CategoricalRandomizer
    counts : ndarray
    drawn : int
        How many users reported it.
    """

    def __init__(self, law, counts, drawn):
        self.law, self.drawn, n = law, drawn, law.n_categories
        plain = law.estimate(counts, drawn) if drawn else np.full(n, 1 / n)
        self.excess = (1 - plain.sum()) / n  # (what some laws do not know: all shares together are 1)
        self.shares = plain + self.excess
        #: The variance of a share, without what all have in common; large where nobody reported.
        self.variance = sibling_variance(law) / drawn if drawn else 1e9

    def noise(self, weights, *spreads):
        """Return (mean square, mean) of what a report adds to a weighted sum, for users spread in each way."""
        weights = weights - weights.mean()
        square = self.law.squares_of_sum(weights)
        if not self.drawn:
            return [(float(square.max()), 0.0) for _ in spreads]
        return [(float(spread @ square), float(spread @ weights)) for spread in spreads]


class Rectangles:
    """Shares of rectangles from reports of a grid, and of ranges of each column where there are any.

    Parameters
    ----------
    grid : Grid
    told : list of Told
        Of the cells, and of the ranges of both columns or nothing.
    n : int
        How many users there are in all.
    first : (Told, ndarray), default=None
        The reports of users who were asked before, of the same cells before these were cut into parts, and how many
        parts each side of a cell has.
    """

    def __init__(self, grid, told, n, first=None):
        self.grid, self.told, self.n = grid, told, n
        self.first, self.sides = first if first is not None else (None, None)
        self._known = {}

    # ---------------------------------------------------------------- consistent shares

    @cached_property
    def pulls(self):
        """How much of the difference of the shares of a column's cells and of its ranges goes to the cells, by axis."""
        out = []
        for axis, ranges in enumerate(self.told[1:]):
            own = self.told[0].variance * self.grid.shape[1 - axis]
            other = ranges.variance * np.bincount(self.grid.groups(axis)).mean()  # (one number: sums stay 1)
            out.append(own / (own + other))
        return out

    @cached_property
    def cells(self):
        """The shares of the cells, an array with an axis for each column; of parts of cells, in their order."""
        if self.first is not None:
            return self._of_parts
        cells = self.told[0].shares.reshape(self.grid.shape).copy()
        for axis, pull in enumerate(self.pulls):
            cells += np.moveaxis(np.expand_dims(pull * self._left(axis) / self.grid.shape[1 - axis], 1), 0, axis)
        return cells

    @cached_property
    def ranges(self):
        """The shares of the ranges of each column, whose sums are those of the cells."""
        out = []
        for axis, pull in enumerate(self.pulls):
            groups = self.grid.groups(axis)
            left = (1 - pull) * self._left(axis) / np.bincount(groups)
            out.append(self.told[1 + axis].shares - left[groups])
        return out

    def _left(self, axis):
        """Return how much more a column's ranges tell than its cells do, for each row of cells."""
        cells = self.told[0].shares.reshape(self.grid.shape).sum(axis=1 - axis)
        return np.bincount(self.grid.groups(axis), self.told[1 + axis].shares) - cells

    @cached_property
    def _parts(self):
        """The numbers of parts of each cell, the cell of each part, how much of the difference goes to the parts."""
        n = self.sides**2
        # (one number for all: cells of which the first users told too much have more parts, and would be pulled more)
        own = n.mean() * self.told[0].variance
        return n, np.repeat(np.arange(len(n)), n), own / (own + self.first.variance)

    @cached_property
    def _of_parts(self):
        n, cell, pull = self._parts
        shares = self.told[0].shares
        left = pull * (self.first.shares - np.bincount(cell, shares)) / n
        return shares + left[cell]

    @cached_property
    def table(self):
        """The shares of the cells of the grid."""
        if self.first is None:
            return self.cells
        return np.bincount(self._parts[1], self.cells).reshape(self.grid.shape)

    # ---------------------------------------------------------------- a rectangle

    def covered(self, x, y):
        """Return (how much of each cell counts, what the ranges of the columns add to the weights) for two ranges.

        Where ranges are reported, they say how much of a cell lies in a range that ends in it, and the columns are
        taken as independent within cells; else values are as if they were even there.
        """
        if self.first is not None:
            return self._of_splits(x, y), []
        even = [_overlap(self.grid.edges(axis), *own) for axis, own in enumerate((x, y))]
        if not self.pulls:
            return np.outer(*even), []
        part, slopes = [], []
        for axis, own in enumerate((x, y)):
            inside, groups = _overlap(self.grid.edges(axis, True), *own), self.grid.groups(axis)
            total = self.cells.sum(axis=1 - axis)
            error = np.sqrt(self.told[0].variance * self.grid.shape[1 - axis])
            clear = total > _CLEAR * error
            share = np.bincount(groups, inside * self.ranges[axis]) / np.where(clear, total, 1.0)
            mine = np.where((even[axis] == 0) | (even[axis] == 1) | ~clear, even[axis], np.clip(share, 0.0, 1.0))
            free = clear & (even[axis] > 0) & (even[axis] < 1) & (share > 0) & (share < 1)
            part.append(mine)
            slopes.append(np.where(free[groups], (inside - mine[groups]) / np.where(clear, total, 1.0)[groups], 0.0))
        more = [slopes[0] * (self.cells @ part[1])[self.grid.groups(0)],
                slopes[1] * (part[0] @ self.cells)[self.grid.groups(1)]]
        return np.outer(*part), more

    def _of_splits(self, x, y):
        """Return how much of each part of a cell lies in a rectangle."""
        out, edges = [], [self.grid.edges(axis) for axis in (0, 1)]
        for cell, side in enumerate(self.sides.tolist()):
            at = divmod(cell, self.grid.shape[1])
            own = []
            for axis, asked in enumerate((x, y)):
                start, width = edges[axis][at[axis]], self.grid.widths[axis]
                # (value v of the cell is in part v * side // width)
                cuts = start + np.minimum(-(-np.arange(side + 1) * width // side), edges[axis][at[axis] + 1] - start)
                own.append(_overlap(cuts, *asked))
            out.append(np.outer(*own).ravel())
        return np.concatenate(out)

    def range(self, x, y):
        """Return (the share of a rectangle, its standard error as a function of what the share is)."""
        key = *x, *y
        if key not in self._known:
            self._known[key] = self._range(x, y)
        return self._known[key]

    def _range(self, x, y):
        full = [own[0] <= 0 and own[1] >= size for own, size in zip((x, y), self.grid.sizes)]
        if all(full):
            return 1.0, lambda p: np.zeros(np.shape(p))
        if self.pulls and any(full):  # (a range of one column)
            axis = 1 - full.index(True)
            inside = _overlap(self.grid.edges(axis, True), *(x, y)[axis])
            weights = [np.zeros(self.grid.shape), *(np.zeros(len(own)) for own in self.ranges)]
            weights[1 + axis] = inside
            likely = norm_sub(self.ranges[axis])
            spreads = [_even_if_none(likely * own) for own in (inside, 1 - inside)]
            return float(inside @ self.ranges[axis]), self._error(self._raw(weights), [
                self._spread(None, axis, spread) for spread in spreads], inside, spreads)
        covered, more = self.covered(x, y)
        likely = norm_sub(self.cells.ravel()).reshape(self.cells.shape)
        spreads = [_even_if_none(likely * own) for own in (covered, 1 - covered)]
        weights = [covered, *more] if self.pulls else [covered]
        return float((covered * self.cells).sum()), self._error(self._raw(weights), [
            self._spread(spread, None, None, x, y, inner) for spread, inner in zip(spreads, (True, False))],
            covered.ravel(), [spread.ravel() for spread in spreads])

    def _raw(self, weights):
        """Return the weights of what was reported from those of consistent shares, for each view."""
        if self.first is not None:
            n, cell, pull = self._parts
            mean = pull * np.bincount(cell, weights[0]) / n
            return [weights[0] - mean[cell], mean]
        if not self.pulls:
            return [weights[0].ravel()]
        cells, ranges = weights[0].copy(), []
        for axis, pull in enumerate(self.pulls):
            groups = self.grid.groups(axis)
            mean, own = weights[0].mean(axis=1 - axis), np.bincount(groups, weights[1 + axis]) / np.bincount(groups)
            moved = (1 - pull) * own - pull * mean
            cells += np.expand_dims(moved, 1 - axis)
            ranges.append(weights[1 + axis] - moved[groups])
        return [cells.ravel(), *ranges]

    def _spread(self, cells, axis, ranges, x=None, y=None, inner=None):
        """Return how users are spread over the cells of each view, from what is known of some of them."""
        if self.first is not None:
            return [cells, np.bincount(self._parts[1], cells)]
        if not self.pulls:
            return [cells.ravel()]
        likely = [norm_sub(own) for own in self.ranges]
        if cells is None:
            # (the other column as if it were independent)
            rows = np.bincount(self.grid.groups(axis), ranges)
            other = norm_sub(self.cells.sum(axis=axis))
            out = [ranges, likely[1 - axis]] if axis == 0 else [likely[1 - axis], ranges]
            return [(np.outer(rows, other) if axis == 0 else np.outer(other, rows)).ravel(), *out]
        out = [cells.ravel()]
        for own_axis, own in enumerate((x, y)):
            groups, rows = self.grid.groups(own_axis), cells.sum(axis=1 - own_axis)
            inside = _overlap(self.grid.edges(own_axis, True), *own)
            shape = likely[own_axis] * (inside if inner else 1.0) + 1e-12 * ((inside > 0) if inner else 1.0)
            total = np.bincount(groups, shape)
            out.append(rows[groups] * shape / np.maximum(total, 1e-300)[groups])
        return out

    def _error(self, weights, spreads, covered, cells):
        """Return the standard error of a weighted sum of what was reported, as a function of the share that it is.

        `spreads` are how users in the rectangle, and others, are spread over each view, `covered` how much of each cell
        counts, and `cells` how they are spread over these.
        """
        views = [*self.told] if self.first is None else [self.told[0], self.first]
        noise = [told.noise(own, *both) for told, own, both in zip(views, weights, zip(*spreads))]
        drawn = [max(told.drawn, 1) for told in views]
        known = [(float(spread @ np.square(covered)), float(spread @ covered)) for spread in cells]

        def mixed(p, pairs):
            (square_in, mean_in), (square_out, mean_out) = pairs
            return p * square_in + (1 - p) * square_out - np.square(p * mean_in + (1 - p) * mean_out)

        def error(p):
            p = np.asarray(p, np.float64)
            variance = -mixed(p, known) / max(self.n - 1, 1)
            for m, pairs in zip(drawn, noise):
                variance = variance + mixed(p, pairs) / m
            return np.sqrt(np.maximum(variance, 0.0))

        return error

    def interval(self, x, y, z, inside="even"):
        """Return the ends of an interval of that share; "any": however values lie within cells."""
        if inside == "any":
            least, most = ([_snapped(self.grid.edges(axis), *own, outward) for axis, own in enumerate((x, y))]
                           for outward in (False, True))
            low = self.interval(*least, z)[0] if all(b > a for a, b in least) else 0.0
            return low, self.interval(*most, z)[1]
        share, error = self.range(x, y)
        return tuple(map(float, ends(np.float64(share), z, error)))


def _overlap(edges, low, high):
    """Return how much of what lies between edges is between two places; nothing of what is empty."""
    widths = np.diff(edges)
    inside = np.clip(high - edges[:-1], 0, widths) - np.clip(low - edges[:-1], 0, widths)
    return inside / np.maximum(widths, 1)


def _snapped(edges, low, high, outward):
    """Return the nearest edges outside of two places, or inside."""
    sides = ("right", "left") if outward else ("left", "right")
    first, last = np.searchsorted(edges, low, sides[0]), np.searchsorted(edges, high, sides[1])
    first, last = np.clip([first - outward, last - (not outward)], 0, len(edges) - 1)
    return float(edges[first]), float(edges[last])


def _even_if_none(spread):
    total = spread.sum()
    return spread / total if total > 0 else np.full(spread.shape, 1 / spread.size)
