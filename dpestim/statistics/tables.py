"""Tables of counts: histograms and contingency tables (`tables.md`)."""

import math
from functools import partial
from itertools import pairwise
from numbers import Integral

import numpy as np

from dpestim._core import cells
from dpestim.inputs import (
    CategoryEncoder,
    bound_array,
    category_rows,
    columns_of,
    is_by_column,
    lists_of,
    names_of_columns,
)
from dpestim.inputs.frames import refuse_parts
from dpestim.statistics.base import DELTA, USERS, DPStatistic
from dpestim.statistics.keys import key_of
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.summary import BLOCK, grids_of

#: Cells of a table, at most.
_MOST_CELLS = 1 << 24
#: The most axes of an array in every NumPy that is supported.
_MOST_COLUMNS = 32



class Cells(DPStatistic):
    """Counts of cells, each row in exactly one of them."""

    _about = "the number of rows in each cell, each cell separately"
    _bounded = False
    _adds_up = True

    def _plan(self, summary, epsilon):
        most = self._rows()
        # a row that is replaced leaves one cell and enters another; a user may have all rows in one cell
        l1, squared = (2, 2) if self._replaces else (most, most * most)
        noise = self._noise_for(epsilon, self._budget()[1], l1, squared, 1)
        n_columns = summary.n_columns
        counts, shape, keys = summary.totals, self._shape(n_columns), self._keys(n_columns)
        if len(shape) > _MOST_COLUMNS:
            raise ValueError(f"X has {len(shape)} columns, and a table at most {_MOST_COLUMNS}: choose fewer columns")

        def finish(outcomes):
            noisy = outcomes[0].reshape(shape)
            return noisy, np.full(shape, math.sqrt(noise.variance)), partial(count_ends, noise, noisy), keys

        return Plan((Noisy(noise, counts),), finish)

    def _axes(self, shape, keys, names):
        titles = [f"column {j}" if names is None else names[j] for j in range(len(shape))]
        return tuple((title, _labels(own, size)) for title, own, size in zip(titles, keys, shape))


def _labels(own, size):
    """Return the label of each cell of an axis: categories as they are, and between edges what lies there."""
    if len(own) == size:
        return list(own)
    edges = [f"{edge:g}" for edge in own] if len({f"{edge:g}" for edge in own}) == len(own) else list(map(repr, own))
    return [f"[{a}, {b}{']' if k == size - 1 else ')'}" for k, (a, b) in enumerate(pairwise(edges))]


def count_ends(noise, noisy, level):
    """Return the ends of the intervals of noisy counts."""
    width = noise.half_width(level)
    return noisy - width, noisy + width


class Histogram(Cells):
    """Release a histogram of columns of numbers: the noisy number of rows in each cell.

    For categories take `ContingencyTable`.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. Cells
    are public, and each row is in one of them, so the noise of a cell does not grow with their number. The curator, who
    holds the data, must be trusted.

    **Utility.** Unbiased integers, which may be negative; the noise of each has variance below 2 (2 / epsilon)^2 for
    replaced records, 2 / epsilon^2 for one more or less.

    **Complexity.** O(n d + cells) time, O(cells) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC, example 3.
    The proof: ``tables.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.statistics import Histogram
    >>> x = np.arange(1000) / 1000
    >>> histogram = Histogram(1.0, bins=4, bounds=(0, 1), random_state=0).fit(x)
    >>> histogram.result_.keys
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]),)
    >>> bool(np.all(np.abs(histogram.value_ - 250) < 30))
    True
    """

    _more_parameters = """
    bins : int, sequence of float, or list of such sequences (one for each column), default=10
        How many cells of equal width between the bounds, in every column, or their public edges, ascending. The last
        cell holds its last edge; values outside count in the outermost cells, NaN (in strict mode) in the middle.
    bounds : (low, high), dict or Domain, default=None
        Public range, needed where `bins` are numbers.
""" + DELTA + USERS + "    "

    def __init__(self, epsilon=1.0, *, bins=10, bounds=None, delta=None, neighbours=None,
                 max_rows_per_user=None, row_choice="first", ledger=None, random_state=None):
        super().__init__(epsilon, bounds=bounds, delta=delta, neighbours=neighbours,
                         max_rows_per_user=max_rows_per_user, row_choice=row_choice, ledger=ledger,
                         random_state=random_state)
        del self.bounds_fraction
        self.bins = bins

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "bins": 4, "bounds": (-3.0, 3.0)},
                {"epsilon": 1.0, "bins": [-1.0, 0.0, 2.0], "neighbours": "add_remove", "delta": 0.1}]

    def _check(self):
        if isinstance(self.bounds, str):
            raise ValueError("bounds must be a public pair (low, high) of numbers")
        super()._check()
        if self.bounds is not None:
            grids_of(self.bounds)
        self._edges(None)

    def _edges(self, n_columns):
        """Return the edges of each column, and cells a unit where they are equally wide (else 0)."""
        out = self._edges_of_columns(n_columns)
        if math.prod(len(edges) - 1 for edges, _ in out) > _MOST_CELLS:
            raise ValueError("bins must make at most 2^24 cells in all")
        return out

    def _edges_of_columns(self, n_columns):
        if isinstance(self.bins, Integral) and not isinstance(self.bins, bool):
            if not 1 <= self.bins <= _MOST_CELLS:
                raise ValueError("bins must be from 1 to 2^24")
            out = [(np.linspace(grid.low, grid.high, int(self.bins) + 1), self.bins / (grid.high - grid.low))
                   for grid in grids_of(self.bounds, n_columns)]
        else:
            several = isinstance(self.bins, list | tuple) and self.bins and all(np.ndim(own) for own in self.bins)
            out = [(bound_array(own, "bins"), 0.0) for own in (self.bins if several else [self.bins])]
        for edges, _ in out:
            if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
                raise ValueError("bins must be a number of cells, or edges: at least two finite, ascending numbers")
        if n_columns not in (None, len(out)):
            raise ValueError(f"bins must have edges for each of the {n_columns} columns")
        return out

    def _sums(self, rows, grids):
        edges = self._edges(rows.shape[1])
        counts = np.zeros(math.prod(len(own) - 1 for own, _ in edges), np.int64)
        places = np.empty(min(BLOCK, len(rows)), np.int64)
        for at in range(0, len(rows), BLOCK):
            block = rows[at : at + BLOCK]
            inside, stride = places[: len(block)], len(counts)
            inside.fill(0)
            for j, (own, per) in enumerate(edges):
                stride //= len(own) - 1
                cells.add_cells(np.ascontiguousarray(block[:, j], np.float64), own, per, stride, inside)
            cells.tally(inside, counts)
        return counts

    def _cells(self, n_columns):
        return tuple(((own + 0.0).tobytes(), float(per)) for own, per in self._edges(n_columns))

    def _keys(self, n_columns):
        return tuple(own for own, _ in self._edges(n_columns))

    def _shape(self, n_columns):
        return tuple(len(own) - 1 for own in self._keys(n_columns))


class ContingencyTable(Cells):
    """Release a contingency table: the noisy number of rows with each combination of categories.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours; (epsilon, delta) with a delta. The
    categories are declared, and each row is in one cell. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased integers, which may be negative; the noise of each has variance below 2 (2 / epsilon)^2 for
    replaced records, 2 / epsilon^2 for one more or less.

    **Complexity.** O(n d + cells) time, O(cells) memory.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC, example 3.
    The proof: ``tables.md``.

    Examples
    --------
    >>> from dpestim.statistics import ContingencyTable
    >>> X = [["tea", True]] * 300 + [["coffee", False]] * 200
    >>> table = ContingencyTable(1.0, categories=[["tea", "coffee"], [False, True]], random_state=0).fit(X)
    >>> table.value_.shape, int(table.value_[0, 1]) in range(280, 320)
    ((2, 2), True)
    """

    _more_parameters = """
    categories : list of array-like, dict or Domain
        The public categories of each column (or those of the only one), in the order of the cells. In strict mode a
        value that is none counts as the first.
""" + DELTA + USERS + "    "

    def __init__(self, epsilon=1.0, *, categories=None, delta=None, neighbours=None,
                 max_rows_per_user=None, row_choice="first", ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, neighbours=neighbours, max_rows_per_user=max_rows_per_user,
                         row_choice=row_choice, ledger=ledger, random_state=random_state)
        del self.bounds, self.bounds_fraction
        self.categories = categories

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "categories": [["a", "b", "c"]]},
                {"epsilon": 1.0, "categories": [["a", "b"], [0, 1]], "neighbours": "add_remove"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of the categories."""
        rng = np.random.default_rng(seed)
        columns = [np.array(own, object)[rng.integers(0, len(own), n_rows)] for own in self.categories]
        return (columns[0] if len(columns) == 1 else np.array(columns, object).T), None

    def _check(self):
        super()._check()
        self._encoders(None)

    def _lists(self):
        """Return the categories of each column: where none of them is a list they are those of one column."""
        lists = lists_of(self.categories) if is_by_column(self.categories) else self.categories
        flat = isinstance(lists, list | tuple | np.ndarray) and len(lists) and all(np.ndim(own) == 0 for own in lists)
        return [lists] if flat else lists

    def _encoders(self, n_columns, names=None):
        lists = self._lists()
        if not isinstance(lists, list | tuple) or not len(lists) or not all(np.ndim(own) == 1 for own in lists):
            raise ValueError("categories must be a list with one list of categories for each column, or the categories "
                             "of a single column")
        if n_columns not in (None, len(lists)):
            raise ValueError(f"categories must have a list for each of the {n_columns} columns")
        if math.prod(map(len, lists)) > _MOST_CELLS:
            raise ValueError("categories must make at most 2^24 cells in all")
        names = range(len(lists)) if names is None else names
        return [CategoryEncoder(own, f"column {name!r}", fewest=1) for name, own in zip(names, lists)]

    def _read(self, X, users):
        columns, one = as_columns(X, self._is_strict())
        codes = encode(self._encoders(len(columns), names_of_columns(X)), columns, self._is_strict())
        return self._kept(codes, users, len(codes)), one

    def _sums(self, rows, grids):
        shape = self._shape(None)
        places = np.zeros(len(rows), np.int64)
        for j, size in enumerate(shape):
            places = places * size + rows[:, j]
        return np.bincount(places, minlength=math.prod(shape)).astype(np.int64)

    def _cells(self, n_columns):
        return tuple(tuple((type(value).__name__, value) if (key := key_of(value)) is None else key
                           for value in encoder.plain_categories()) for encoder in self._encoders(n_columns))

    def _keys(self, n_columns):
        return tuple(encoder.categories for encoder in self._encoders(None))

    def _shape(self, n_columns):
        return tuple(map(len, self._lists()))


def encode(encoders, columns, strict):
    """Return the codes of columns, an array of shape (n_rows, n_columns)."""
    out = np.zeros((len(columns[0]), len(columns)), np.int64)
    for j, (encoder, column) in enumerate(zip(encoders, columns)):
        if len(out):  # (no rows have no dtype)
            out[:, j] = encoder.encode_total(column) if strict else encoder.encode(column)
    return out


def as_columns(X, strict):
    """Return the columns of a table of categories, or of one column, and whether it was that."""
    refuse_parts(X, "X")
    shape = getattr(X, "shape", None)
    one = shape is not None and len(shape) == 1
    if (shape and shape[0] == 0) or (isinstance(X, list | tuple) and not X):  # how many rows there are may be secret
        flat = one or shape is None
        return ([np.asarray(X)] if flat else columns_of(X)), flat
    if one:
        X = X.to_frame() if hasattr(X, "to_frame") else np.asarray(X).reshape(-1, 1)
    elif isinstance(X, list | tuple) and not any(isinstance(row, list | tuple | np.ndarray) for row in X):
        X, one = [[value] for value in X], True
    return columns_of(category_rows(X, strict=strict)), one
