"""Counts of any ranges of a column: a tree of counts, whose levels share the noise as is best (`ranges.md`)."""

import math
from dataclasses import fields
from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.special import ndtri

from dpestim._core import cells
from dpestim.records import record
from dpestim.statistics.base import DELTA, USERS, columns_shown
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.range_noise import LevelNoise, best_noise
from dpestim.statistics.result import Result
from dpestim.statistics.summary import BLOCK
from dpestim.statistics.tables import Histogram

#: The most cells.
MOST_CELLS = 1 << 20


@record(eq=False)
class RangeResult(Result):
    """The released counts of cells, and what they tell of ranges: a `Result` with three more methods.

    Attributes
    ----------
    noise : dpestim.statistics.range_noise.LevelNoise
        The tree over the cells, and how much noise its levels have; public.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import RangeCounts
    >>> counts = RangeCounts(1.0, bins=64, bounds=(0, 64), random_state=0).fit(np.arange(6400) / 100).result_
    >>> estimate, error = counts.range(10, 30)
    >>> bool(abs(estimate - 2000) < 4 * error)
    True
    """

    noise: LevelNoise | None = None

    def range(self, low, high, column=0):
        """Return (the number of rows from low up to high, its standard error); no bias for edges of cells.

        Parameters
        ----------
        low, high : float
            Of cells that lie partly between them that part counts.
        column : int, default=0
            The place of the column.
        """
        low, high = self._places(low, high, column)
        return self._between(low, high, column), self.noise.of_range(low, high)[0]

    def range_interval(self, low, high, level=0.95, column=0):
        """Return (low end, high end): an interval for the number of rows from low up to high.

        Parameters
        ----------
        low, high : float
        level : float, default=0.95
            In (0, 1): what it covers, about: noise is a sum of many independent ones, whose fourth moment is known.
        column : int, default=0
        """
        places = self._places(low, high, column)
        estimate, width = self._between(*places, column), half_width(level, *self.noise.of_range(*places))
        return estimate - width, estimate + width

    def quantile(self, q, column=0):
        """Return the number below which a share q of the rows lies, by the cumulative counts, made to rise.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            In [0, 1].
        column : int, default=0
        """
        q = np.asarray(q, np.float64)
        if q.ndim > 1 or not ((q >= 0) & (q <= 1)).all():
            raise ValueError("q must be a number or a list of numbers in [0, 1]")
        below = self._below(column)
        rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
        return np.interp(q * max(below[-1], 0.0), rising, self.keys[column])

    def _below(self, column):
        """Return the number of rows below each edge of a column."""
        if isinstance(column, bool) or not isinstance(column, Integral) or not 0 <= column < len(self.keys):
            raise ValueError(f"column must be a number from 0 to {len(self.keys) - 1}")
        return np.append(0.0, np.cumsum(self.value if self.value.ndim == 1 else self.value[:, column]))

    def _between(self, low, high, column):
        below = self._below(column)
        at = np.interp([low, high], np.arange(float(len(below))), below)
        return float(at[1] - at[0])

    def _places(self, low, high, column):
        self._below(column)
        for end in (low, high):
            if isinstance(end, bool) or not isinstance(end, Real) or math.isnan(end):
                raise ValueError("low and high must be numbers")
        if low > high:
            raise ValueError("low must be at most high")
        edges = self.keys[column]
        return tuple(float(np.interp(end, edges, np.arange(float(len(edges))))) for end in (low, high))


class RangeCounts(Histogram):
    """Release counts of cells from which any range of a column is a sum with little noise.

    A tree stands over the cells of each column, and each of its counts gets noise; cells are then the estimates of
    least squares, in which every node is the sum of its children. Take it for ranges, cumulative counts and all
    quantiles at once. For the cells alone `Histogram` has less noise.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. Cells
    are public. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased numbers, which may be negative. The fan-outs of the tree, and how the levels share epsilon,
    are those of the least variance of a range, on average over all ranges, with the exact variances of least squares.
    With epsilon = 1 and one record replaced it is 218 for 256 cells and 2,049 for 65,536, where sums of noisy cells of
    a `Histogram` have 674 and 171,000.

    **Complexity.** O(n + cells) time, O(cells) memory.

    {parameters}
    References
    ----------
    M. Hay et al., "Boosting the accuracy of differentially private histograms through consistency", VLDB 2010; C. Li et
    al., "The matrix mechanism: optimizing linear counting queries under differential privacy", VLDB Journal 24, 2015
    (a tree is a strategy of the matrix mechanism, and here its levels have the best weights); W. Qardaji, W. Yang,
    N. Li, "Understanding hierarchical methods for differentially private histograms", VLDB 2013 (fan-outs).
    The proof: ``ranges.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import RangeCounts
    >>> ages = np.random.default_rng(0).gamma(9.0, 4.5, 20_000)
    >>> counts = RangeCounts(1.0, bins=128, bounds=(0, 128), random_state=0).fit(ages).result_
    >>> estimate, error = counts.range(18, 65)
    >>> bool(abs(estimate - np.sum((ages >= 18) & (ages < 65))) < 4 * error)
    True
    """

    _about = "the number of rows in each cell, of counts that add up to ranges"
    #: (owners of parts would have to share the noise of levels)
    _adds_up = False
    _more_parameters = """
    bins : int, sequence of float, or list of such sequences (one for each column), default=256
        How many cells of equal width between the bounds, or their public edges, ascending; as many in each column, and
        at most 1,048,576. The last cell holds its last edge; values outside count in the outermost cells, NaN (in
        strict mode) in the middle.
    bounds : (low, high), dict or Domain, default=None
        Public range of each column, needed where `bins` is a number.
    branching : "auto" or int, default="auto"
        Children of a node of the tree, from 2 on; the root has as many as are needed. "auto" takes what is best for
        ranges, from public numbers.
""" + DELTA + USERS + "    "

    def __init__(self, epsilon=1.0, *, bins=256, bounds=None, branching="auto", delta=None, neighbours=None,
                 max_rows_per_user=None, row_choice="first", ledger=None, random_state=None):
        super().__init__(epsilon, bins=bins, bounds=bounds, delta=delta, neighbours=neighbours,
                         max_rows_per_user=max_rows_per_user, row_choice=row_choice, ledger=ledger,
                         random_state=random_state)
        self.branching = branching

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "bins": 6, "bounds": (-3.0, 3.0), "branching": 3},
                {"epsilon": 1.0, "bins": 3, "bounds": ([-3.0, 0.0], [3.0, 1.0]), "neighbours": "add_remove",
                 "delta": 0.1}]

    def _check(self):
        super()._check()
        branching = self.branching
        if not (isinstance(branching, str) and branching == "auto") and (
                isinstance(branching, bool) or not isinstance(branching, Integral) or not 2 <= branching <= MOST_CELLS):
            raise ValueError(f"branching must be 'auto' or an integer from 2 to {MOST_CELLS}")

    def _edges(self, n_columns):
        out = self._edges_of_columns(n_columns)
        sizes = {len(edges) - 1 for edges, _ in out}
        if len(sizes) > 1 or max(sizes) > MOST_CELLS:
            raise ValueError(f"bins must make at most {MOST_CELLS} cells, and as many in each column")
        return out

    def _sums(self, rows, grids):
        edges = self._edges(rows.shape[1])
        out = np.zeros((len(edges), len(edges[0][0]) - 1), np.int64)
        places = np.empty(min(BLOCK, len(rows)), np.int64)
        for at in range(0, len(rows), BLOCK):
            columns = np.ascontiguousarray(rows[at : at + BLOCK].T, np.float64)
            for (own, per), column, counts in zip(edges, columns, out):
                inside = places[: len(column)]
                inside.fill(0)
                cells.add_cells(column, own, per, 1, inside)
                cells.tally(inside, counts)
        return out.reshape(-1)

    def _plan(self, summary, epsilon):
        d, n_rows = summary.n_columns, summary.n_rows if self._replaces else None
        levels, keys = self._levels(epsilon, d), self._keys(d)
        numbers = np.concatenate([levels.weighted(own) for own in summary.totals.reshape(d, -1)])

        def finish(outcomes):
            found = np.array([levels.consistent(own, n_rows) for own in np.reshape(outcomes[0], (d, -1))]).T
            found = found[:, 0] if d == 1 else found
            noise = levels.of_range(0, 1)
            return found, np.full(found.shape, noise[0]), partial(_cell_ends, found, noise), keys

        return Plan((Noisy(levels.noise, numbers),), finish)

    def _axes(self, shape, keys, names):
        title, labels = super()._axes(shape[:1], keys[:1], names)[0]
        if len(shape) == 1:
            return ((title, labels),)
        same = all(np.array_equal(own, keys[0]) for own in keys)
        return ("cell", labels if same else list(range(shape[0]))), ("column", columns_shown(names, shape[1]))

    def _levels(self, epsilon, n_columns=1):
        """Return the `LevelNoise` of a release with this epsilon: it follows from public numbers."""
        most, delta = self._rows(), self._budget()[1]
        # a row that is replaced leaves one node of a level and enters another; a user may have all rows in one node
        times, squared = (2, 2) if self._replaces else (most, most * most)

        def noise_of(total, squares, size):
            return self._noise_for(epsilon, delta, n_columns * times * total, n_columns * squared * squares,
                                   n_columns * size)

        branching = None if isinstance(self.branching, str) else int(self.branching)
        return best_noise(len(self._edges(None)[0][0]) - 1, branching, self._replaces, noise_of, normal=bool(delta))

    def _result(self, drawn, names=None, promised=None):
        plain = super()._result(drawn, names, promised)
        levels = self._levels(self._shares()[1], len(plain.keys))
        return RangeResult(*(getattr(plain, field.name) for field in fields(plain)), noise=levels)


def _cell_ends(cells, noise, level):
    width = half_width(level, *noise)
    return cells - width, cells + width


def half_width(level, error, kurtosis, grain):
    """Return how far a sum of independent symmetric noise is from 0 with probability 1 - level, about.

    The first two terms of Cornish and Fisher's expansion, which are exact for normal noise, and half a grain: integers
    of a small variance are mostly 0, and else at least 1.
    """
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError("level must be a number between 0 and 1")
    z = float(ndtri(0.5 + level / 2))
    return error * max(z + kurtosis * (z**3 - 3 * z) / 24, 0.0) + grain / 2
