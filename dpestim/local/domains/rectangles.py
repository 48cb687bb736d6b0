"""Shares of rectangles of two ordered columns from one report of each user: a cell, or a range of one column."""

from itertools import pairwise
from numbers import Integral

import numpy as np

from dpestim.inputs import columns_of
from dpestim.local.coded import NumberFeature
from dpestim.local.domains.grids import (
    FIRST,
    METHODS,
    MOST_VALUES,
    GridColumns,
    Refinement,
    best_grid,
    first_of,
    grid_of,
    splits_of,
)
from dpestim.local.domains.grids_of_reports import Rectangles, Told
from dpestim.local.domains.levels import short_law
from dpestim.local.domains.places import labels_between, number_of, places_of_range, z_of
from dpestim.local.domains.ranges import RangeShare
from dpestim.local.feature_client import FeatureClient
from dpestim.local.server import Server
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, labels_of

#: Users that grids are made for where nobody says how many there are.
MANY = 100_000
#: Cells a side that a summary has, at most.
SHOWN = 8


class RectangleEstimator(Server, FeatureClient):
    """Estimate shares of any rectangles of two ordered columns, such as places on a map, by grids.

    The plane is cut into cells. Each user reports the cell that holds the row. A rectangle is a sum of cells; of cells
    that lie partly inside a part counts. Take `RangeEstimator` where ranges of single columns are wanted, and
    `MarginalEstimator` for columns without an order.

    **Privacy.** epsilon-local differential privacy for a row, both columns together, exact; neighbours: any two rows of
    one user; nobody but the user's device is trusted (proof in ``rectangles.md``).

    **Utility.** Cells, and rectangles whose edges are edges of cells, have no bias. Of cells that lie partly inside,
    "uniform" and "adaptive" count a part as if values were even there; "hdg" asks other users for ranges of each
    column, and takes the columns as independent within a cell. What that misses is a bias: intervals do not cover it,
    but with ``inside="any"``. The grid is the one of the least expected error for `n_users`.

    **Complexity.** O(n + cells) time; a user sends one code and the number of a grid.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    categories : list of (array-like or None), dict or Domain, default=None
        The public categories of each column, in their natural order, with None for a column of numbers.
        None: both columns are numbers, if `bounds` are declared; if not, categories and bounds are learned from the
        data, which leaks (`PrivacyLeakWarning`).
    bounds : (low, high), dict or Domain, default=None
        The public range of each column of numbers: a pair of numbers, or of arrays with one for each such column; a
        dict goes from the names of such columns. Values outside are clipped. Numbers must not be missing.
    n_bins : int, default=256
        Bins of equal width that a column of numbers is cut into, from 2 to 65536. Cells are made of whole bins.
    method : {"hdg", "uniform", "adaptive"}, default="hdg"
        "uniform": one grid. "hdg": each user draws the grid, or finer ranges of one of the two columns. "adaptive": 40
        percent of the users report a grid first, and its full cells are cut into parts for all others.
    cells : "auto" or int, default="auto"
        About how many cells there are in each column, from 2 to 256.
    n_users : int, default=None
        How many users are expected, for "auto". None: 100,000.
    refinement : Refinement, default=None
        Of "adaptive": what `refine` of an estimator with the reports of the first users has returned. Users who report
        with it are others. None: `fit` asks both groups, and the other verbs ask the first one.
    {payment of rows}

    Attributes
    ----------
    table_ : ndarray of shape (cells of the first column, cells of the second)
        Estimated shares of the cells, without bias; they may be negative.
    cell_edges_ : list of ndarray
        The places between cells of each column, from 0 to the number of its values.
    refinement_ : Refinement or None
        How cells are cut into parts.
    n_users_ : int
        Reports counted so far, those of the first users of "adaptive" not included.
    n_sampled_ : int
        Grids that a user reports: 1.
    randomizers_ : list of Randomizer
        The frozen law of the grid, and those of the ranges of each column.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data", ICDE 2013 (uniform and adaptive
    grids); J. Yang et al., "Answering multi-dimensional range queries under local differential privacy", VLDB 2020
    (HDG). What differs from the papers is in ``rectangles.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import RectangleEstimator
    >>> X = np.random.default_rng(0).normal([4, 6], 1, (100_000, 2))
    >>> est = RectangleEstimator(2.0, bounds=(0, 10), n_bins=100, random_state=0).fit(X)
    >>> share, error = est.rectangle((3, 5), (5, 7))
    >>> bool(abs(share - 0.466) < 4 * error)
    True
    """

    _checked_as = "views"
    _domain, _same_domain = "categories and bounds", "the same categories, bounds, bins and cells"
    _most_bins, _fewest_columns = MOST_VALUES, 2
    _known = None

    def __init__(self, epsilon=1.0, *, categories=None, bounds=None, n_bins=256, method="hdg", cells="auto",
                 n_users=None, refinement=None, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.categories = categories
        self.bounds = bounds
        self.n_bins = n_bins
        self.method = method
        self.cells = cells
        self.n_users = n_users
        self.refinement = refinement
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- answers

    def rectangle(self, first, second):
        """Return the share of users whose values lie in a rectangle, and its standard error.

        Parameters
        ----------
        first, second : (low, high) or None
            A range of the first and of the second column, as `RangeEstimator.range` takes them. None: all values.

        Returns
        -------
        RangeShare
            A named tuple of estimate and standard_error. The error is about the users who took part, and about the
            noise; it does not cover what is assumed of values within cells.
        """
        share, error = self._told().range(*self._asked(first, second))
        return RangeShare(share, float(error(min(max(share, 0.0), 1.0))))

    def range(self, low, high, column=0):
        """Return the share of users whose value in one column lies from low to high, as `rectangle` does."""
        asked = [None, None]
        asked[number_of(self, column)] = low, high
        return self.rectangle(*asked)

    def confidence_interval(self, first, second, level=0.95, inside="even"):
        """Return (low end, high end): an interval for the share of users in a rectangle, not clipped to [0, 1].

        Parameters
        ----------
        first, second : (low, high) or None
            As for `rectangle`.
        level : float, default=0.95
            In (0, 1): what it covers, about.
        inside : {"even", "any"}, default="even"
            What is known of values in cells that lie partly inside. "even": what the estimate takes them for; where
            edges are those of cells nothing is assumed. "any": nothing; the interval goes from the low end for the
            cells that lie inside to the high end for all cells that are touched.
        """
        if not isinstance(inside, str) or inside not in ("even", "any"):
            raise ValueError("inside must be 'even' or 'any'")
        z = z_of(level)
        return self._told().interval(*self._asked(first, second), z, inside)

    @property
    def table_(self):
        """Estimated shares of the cells."""
        return self._told().table.copy()

    @property
    def cell_edges_(self):
        """The places between cells."""
        return [self._columns_now().columns[0].grid.edges(axis) for axis in (0, 1)]

    def release(self):
        """Return `table_`."""
        return self.table_

    def refine(self, n_users):
        """Return how cells are to be cut for other users, by the estimated shares of the first users; free.

        Parameters
        ----------
        n_users : int
            How many others are expected.

        Returns
        -------
        Refinement
            What `refinement` takes, on the devices of the others and at their server. It holds public numbers only.
        """
        self._check_fitted()
        view = self._columns.columns[0]
        if self.method != "adaptive" or view.refinement is not None:
            raise ValueError("refine must be asked of an estimator with method='adaptive' and refinement=None, which "
                             "has the reports of the first users")
        n = _whole(n_users, "n_users", 1, 1 << 53)
        counts, drawn = self._columns.told(0, self._counts, self._n_users)
        return Refinement(splits_of(self.table_.ravel(), canonical_epsilon(self.epsilon), view.grid, n),
                          tuple(counts.tolist()), drawn)

    # ---------------------------------------------------------------- two groups of users

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`): charges for all rows before the first report is made.

        {fit of parts}
        """
        if self._asks_twice():
            raise ValueError("method='adaptive' without refinement asks two groups of users, and the second one needs "
                             "what all of the first reported: fit 'uniform' or 'hdg', or fit each group by itself")
        super().fit_parts(ask, example)

    def _asks_twice(self):
        return self.method == "adaptive" and self.refinement is None

    def _fit(self, X, *, restart, keep_reports=False):
        """`fit` of "adaptive" asks both groups; rows of `partial_fit` add to those of other servers, and ask one."""
        if not (restart and self._asks_twice()):
            return super()._fit(X, restart=restart, keep_reports=keep_reports)
        with self._alone():
            return self._fit_both(X)

    def _fit_both(self, X):
        """Ask both groups of "adaptive" one after the other; each row is in one of them, and is paid for once."""
        client, (seen,), columns, names = self._read_for(X, True)
        n = len(seen)
        if n < 2:
            raise ValueError("method='adaptive' needs at least two rows, because two groups report")
        source = client._pay(columns, n)
        self._bind_as(client)
        first, others = first_of(n, source.part(0))
        self._take((client, [seen.rows(columns.columns[0], first)], columns, names), source.part(1), True)
        finer = GridColumns.of(columns.row, columns.columns[0].grid, canonical_epsilon(self.epsilon),
                               self.refine(len(others)), inferred=columns.inferred, keys=columns.keys)
        self._take((client, [seen.rows(finer.columns[0], others)], finer, names), source.part(2), True)

    # ---------------------------------------------------------------- the domain

    def _of_features(self, features, names, **more):
        self._check_parameters()
        if len(features) != 2:
            raise ValueError(f"categories and bounds must be those of two columns, got {len(features)}: name two of "
                             "them, or take MarginalEstimator")
        # (a missing number is in no cell: it is refused, also where the domain of an earlier step allows for it)
        features = [NumberFeature(feature.name, feature.low, feature.high, feature.n_bins)
                    if getattr(feature, "missing", False) else feature for feature in features]
        for feature in features:
            if not 2 <= feature.n_values <= MOST_VALUES:
                raise ValueError(f"categories must have from 2 to {MOST_VALUES} values in each column")
        epsilon, sizes = canonical_epsilon(self.epsilon), tuple(feature.n_values for feature in features)
        n_users = MANY if self.n_users is None else int(self.n_users)
        if self.method == "adaptive":
            n_users = max(n_users * FIRST // 100, 1)
        if self.cells == "auto":
            grid = best_grid(epsilon, sizes, self.method, n_users)
        else:
            grid = grid_of(sizes, int(self.cells), 4 * int(self.cells) if self.method == "hdg" else None)
        refinement = self.refinement if self.method == "adaptive" else None
        if refinement is not None and not (isinstance(refinement, Refinement) and refinement.suits(epsilon, grid)):
            raise ValueError("refinement must be what `refine` of an estimator with the same columns, epsilon, cells "
                             "and n_users has returned")
        return GridColumns.of(features, grid, epsilon, refinement, **more)

    def _declare(self, n_columns, names=None):
        if n_columns is None and self.categories is None and self._same_bounds():
            n_columns = self._fewest_columns  # (one pair of numbers stands for both)
        return super()._declare(n_columns, names)

    def _columns_of_width(self, width):
        return self._columns_now()

    def _like(self, columns):
        return self._of_features(columns.row, columns.names, inferred=columns.inferred, keys=columns.keys)

    def _parts(self, X, columns, strict):
        return columns_of(X)

    def _client(self, restart=False):
        return self

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._check_parameters()

    def _check_parameters(self):
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}")
        if not (isinstance(self.cells, str) and self.cells == "auto"):
            if isinstance(self.cells, str):
                raise ValueError("cells must be 'auto' or an integer from 2 to 256")
            _whole(self.cells, "cells", 2, 256)
        if self.n_users is not None:
            _whole(self.n_users, "n_users", 1, 1 << 53)
        if self.refinement is not None and self.method != "adaptive":
            raise ValueError("refinement must be None but for method='adaptive'")

    # ---------------------------------------------------------------- inside

    def _asked(self, first, second):
        self._check_fitted()
        places = []
        for name, asked, feature in zip(("first", "second"), (first, second), self._columns.row):
            if asked is None:
                places.append((0.0, float(feature.n_values)))
                continue
            if isinstance(asked, str | bytes) or not hasattr(asked, "__len__") or len(asked) != 2:
                raise ValueError(f"{name} must be None or a pair (low, high)")
            places.append(tuple(map(float, places_of_range(feature, *asked))))
        return places

    def _told(self):
        """Return the `Rectangles`, made anew where counts changed."""
        self._check_fitted()
        known = self._known
        if known is None or known[0] is not self._counts:
            columns, view = self._columns, self._columns.columns[0]
            told = [Told(law, *columns.told(k, self._counts, self._n_users)) for k, law in enumerate(columns.laws)]
            n, first, refinement = self._n_users, None, view.refinement
            if refinement is not None:
                n += refinement.n_users
                law = short_law(view.law.epsilon, view.grid.n_cells)
                first = (Told(law, np.array(refinement.counts), refinement.n_users), np.array(refinement.splits))
            grid = view.grid._replace(fine=columns.fine)
            known = self._known = self._counts, Rectangles(grid, told, n, first)
        return known[1]

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_, self.refinement_ = columns.n_sampled, columns.columns[0].refinement

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("n_sampled_", "refinement_", "_known"):
            vars(self).pop(name, None)

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_known", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # (two columns, and no other number of them)
        return tags

    def _result_parts(self, level):
        told, z = self._told(), z_of(level)
        cuts = []
        for edges in self.cell_edges_:
            at = np.unique(np.linspace(0, len(edges) - 1, SHOWN + 1).round().astype(int))
            cuts.append(edges[at])
        pairs = [[(x, y) for y in pairwise(cuts[1].tolist())] for x in pairwise(cuts[0].tolist())]
        found = [[told.range(*own) for own in row] for row in pairs]
        names = labels_of(self, "feature", 2)
        axes = tuple((str(name), labels_between(feature, at)) for name, feature, at in zip(
            names, self._columns.row, cuts))
        return [Part("share", axes, np.array([[share for share, _ in row] for row in found]),
                     np.array([[float(error(np.clip(share, 0, 1))) for share, error in row] for row in found]),
                     np.array([[told.interval(*own, z) for own in row] for row in pairs]))]

    @classmethod
    def _typical_bits(cls):
        """Return how much a user sends, for the table of mechanisms."""
        laws = cls(1.0, bounds=([0, 0], [1, 1]))._columns_now().laws
        return f"{max(law.report_bits for law in laws) + 2:,.0f} (100,000 users)"

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "bounds": ([-3.0, 0.0], [3.0, 1.0]), "n_bins": 16, "cells": 4},
                {"epsilon": 1.0, "categories": [["low", "middle", "high"], list("abcdefgh")], "method": "uniform",
                 "n_users": 1000}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of the declared columns."""
        rng = np.random.default_rng(seed)
        if self.categories is None:
            return rng.normal(0.0, 1.0, (n_rows, 2)), None
        X = np.empty((n_rows, len(self.categories)), object)
        for j, own in enumerate(self.categories):
            X[:, j] = np.array(own, object)[rng.integers(0, len(own), n_rows)]
        return X, None


def _whole(value, name, least, most):
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be an int from {least} to {most:,}")
    return int(value)
