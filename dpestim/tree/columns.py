"""Models that read columns as codes of bins: what is declared of them, by number or name, and rows by it."""

import math
from dataclasses import replace
from numbers import Integral, Real

import numpy as np

from dpestim.inputs import PublicColumns, is_by_column, lists_of, pairs_of
from dpestim.inputs.declared import has_numbers, missing_of, settle_to, shown
from dpestim.models import PrivateModel, range_of
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_amount
from dpestim.statistics.summary import grids_of
from dpestim.tree.binning import NumberBins, category_bins, checked_bins, codes_of, edges_of, encoders_of, number_part

COLUMNS = """\
    bounds : (low, high), dict or Domain, default=None
        Public range of the columns of numbers, numbers or one for each such column, or a dict by name or place. A
        `dpestim.Domain` stands for `categories`, too. Values outside are clipped. None takes the smallest and largest
        values, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite. Where all columns have
        categories or edges, any will do, such as (0, 1). {missing}
    categories : dict, list or Domain, default=None
        {column: its public categories}, the column by number or name, or a list with None for columns of numbers. All
        other values are one further category. None: all columns are numbers.
    n_bins : int, default={n_bins}
        How many bins of equal width a column of numbers has, from 2 to 255.
    edges : dict, default=None
        {column: its public inner edges}, ascending, of columns of numbers that are to have other bins; from 1 to 254.
    edges_fraction : float, default=0
        The part of epsilon that finds bins of columns of numbers without declared edges, in [0, 1): as many private
        quantiles as it affords, and bins of equal width between them. 0: bins of equal width between the bounds. Use it
        where most rows are in few such bins and there are many rows.
"""
#: What becomes of missing values, in that text.
MISSING = """Where a `dpestim.Domain` says
        ``missing=True``, a missing number is a value of its own, in `fit` and in predictions; else it is refused."""
#: Quantiles of a column where how many rows there are is secret; and rows a quantile, in units of their noise.
_QUANTILES, _ROWS = 3, 64


class BinnedColumns(PrivateModel):
    """Base of models with the parameters `bounds`, `categories`, `n_bins`, `edges` and `edges_fraction`."""

    #: Columns of numbers of which values may be missing, by place, where bins have a code for these.
    _may_be_missing = frozenset()
    #: Whether they have.
    _codes_missing = False

    def _check_bins(self):
        """Raise ValueError for what cannot be declared of any columns."""
        if self.bounds is not None and has_numbers(self.bounds):
            grids_of(self.bounds)
        if self.categories is not None:
            lists = [own for own in lists_of(self.categories, some=True) if own is not None]
            encoders_of(dict(enumerate(lists)) if lists else None)
        edges_of(self.edges)
        checked_bins(self.n_bins)
        self._fraction_of_edges()

    def _names_columns(self):
        return isinstance(self.categories, list | tuple) or super()._names_columns()

    def _inferred(self):
        declared = isinstance(self.categories, PublicColumns)
        return [name for name in super()._inferred() if name != "bounds" or not declared]

    def _takes_strings(self):
        """Tell whether a column may hold strings."""
        return self.categories is not None or isinstance(self.bounds, PublicColumns)

    def _settle(self, names, n_columns, target):
        """... A `Domain` that is given as `bounds` or as `categories` stands for both."""
        categories, bounds = self.categories, self.bounds
        if isinstance(bounds, PublicColumns) and categories is None:
            categories = bounds
        elif isinstance(categories, PublicColumns) and bounds is None:
            bounds = categories
        if categories is not None:
            lists = enumerate(lists_of(categories, n_columns, names, some=True))
            categories = {j: own for j, own in lists if own is not None} or None
        missing = missing_of(bounds, n_columns, names)
        if is_by_column(bounds):
            edges = edges_of(self.edges, names)
            pairs = pairs_of(bounds, n_columns, names, some=True)
            pairs = {j: (0.0, 1.0) if pair is None and j in edges else pair
                     for j, pair in enumerate(pairs) if categories is None or j not in categories}
            lacking = [j if names is None else names[j] for j, pair in pairs.items() if pair is None]
            if lacking:
                raise ValueError(f"columns of X must have bounds, if they are numbers, or categories: {shown(lacking)}")
            bounds = tuple(zip(*pairs.values())) or (0.0, 1.0)
        self.categories, self.bounds = categories, bounds
        if self._codes_missing:
            self._may_be_missing = missing
        settle_to(self, names, n_columns, target, but=("bounds", "categories"))

    def _fraction_of_edges(self):
        """Return the part of epsilon that finds edges, exactly, or raise ValueError."""
        share = self.edges_fraction
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share < 1:
            raise ValueError("edges_fraction must be a number of at least 0 and below 1")
        return canonical_amount(share, "edges_fraction") if share else 0

    def _rows(self, X, reset):
        """Return ((numbers, columns of categories by place), how many rows)."""
        strict = self._is_strict()
        # (a fitted model reads rows as it has learned to, whatever became of its parameters)
        if self.categories is None if reset else all(own.ordered for own in self.bins_):
            rows = self._checked_X(X, reset=reset, total=strict)
            return (rows, {}), len(rows)
        columns, n_rows = self._checked_columns(X, reset=reset)
        places = self._encoders(len(columns)) if reset else [j for j, own in enumerate(self.bins_) if not own.ordered]
        numbers = [j for j in range(len(columns)) if j not in places]
        table = X if hasattr(X, "iloc") or hasattr(X, "get_column") else np.asarray(
            X, dtype=None if hasattr(X, "dtype") else object)
        missing = np.broadcast_to(self._missing_in(len(columns), reset), len(columns))[numbers]
        rows = number_part(table, numbers, self._advice, strict=strict, missing=missing) if numbers else np.empty(
            (n_rows, 0))
        return (rows, {j: columns[j] for j in places}), n_rows

    def _encoders(self, n_columns):
        return self._of_columns("categories", encoders_of, n_columns)

    def _of_columns(self, name, read, n_columns):
        """Return {column by number: what `read` makes of what was declared of it}, or raise ValueError."""
        names = getattr(self, "feature_names_in_", None)
        if names is None and hasattr(self, "summary_"):
            names = self.summary_.names
        found = read(getattr(self, name), None if names is None else list(names))
        if any(not isinstance(place, Integral) or not 0 <= place < n_columns for place in found):
            raise ValueError(f"{name} must name columns of X, of which there are {n_columns}, by number or name")
        return found

    def _bins(self, n_columns, rows=None):
        """Return (bins of each column, ends of each column of numbers by place); rows are looked at without bounds."""
        encoders, edges = self._encoders(n_columns), self._of_columns("edges", edges_of, n_columns)
        if encoders.keys() & edges.keys():
            raise ValueError("edges must name columns of numbers, and categories other columns: declare each column "
                             "once")
        numbers = [j for j in range(n_columns) if j not in encoders]
        bounds = self.bounds if self.bounds is not None or rows is None else range_of(rows)
        grids = dict(zip(numbers, grids_of(bounds, len(numbers)) if numbers else ()))
        bins = tuple(category_bins(encoders[j]) if j in encoders else edges[j] if j in edges
                     else NumberBins.even(grids[j].low, grids[j].high, int(self.n_bins)) for j in range(n_columns))
        bins = tuple(self._and_missing(j, own) for j, own in enumerate(bins))
        return bins, {j: (grid.low, grid.high) for j, grid in grids.items()}

    def _and_missing(self, place, bins):
        """Return bins of a column, with a code for missing values where these may be."""
        return replace(bins, missing=True) if bins.ordered and place in self._may_be_missing else bins

    def _codes(self, numbers, columns, bins, **more):
        encoders = {j: own.encoder(f"column {j}") for j, own in enumerate(bins) if not own.ordered}
        return codes_of(bins, numbers, columns, encoders, **more)

    def _edges_to_find(self, numbers, n_rows, n_columns, epsilon):
        """Return (the plan of bins of all columns, or None; epsilon for all else).

        All that can fail has been checked then. See ``columns.md``.
        """
        bins, ends = self._bins(n_columns, numbers)
        declared, share = self._of_columns("edges", edges_of, n_columns), self._fraction_of_edges() * epsilon
        at = [k for k, j in enumerate(ends) if j not in declared]
        if not share or not at:
            return None, epsilon
        from dpestim.statistics.ranks import ranked

        places, n_bins = [list(ends)[k] for k in at], int(self.n_bins)
        bounds = tuple(np.array([ends[j][side] for j in places]) for side in (0, 1))
        wanted = self._quantiles(share, n_rows, len(places), n_bins, bounds)
        plan = wanted._prepared(n_rows, ranked(numbers[:, at], grids_of(bounds, len(at))), len(at))

        def finish(outcomes):
            found = dict(zip(places, np.reshape(plan.finish(outcomes), (-1, len(places))).T))
            return tuple(self._and_missing(j, bins_between(*ends[j], found[j], n_bins)) if j in found else own
                         for j, own in enumerate(bins))

        return replace(plan, finish=finish), epsilon - share

    def _quantiles(self, epsilon, n_rows, n_columns, n_bins, bounds):
        """Return the statistic that finds edges: as many quantiles as noise leaves apart."""
        k, relation = _QUANTILES, self._neighbours
        if relation is Neighbours.SUBSTITUTION:
            k = max(1, math.floor(math.sqrt(n_rows * float(epsilon) / (_ROWS * n_columns))))
        k = min(k, n_bins - 1)
        from dpestim.statistics.quantiles import Quantile

        return Quantile(epsilon, q=[(i + 1) / (k + 1) for i in range(k)], bounds=bounds, neighbours=relation.value)


def bins_between(low, high, found, n_bins):
    """Return so many bins, spread evenly over the gaps between what was found, all of which are edges.

    What is equal counts once; where bins do not divide evenly, the first gaps have one more.
    """
    knots = np.unique([low, *found, high])
    gaps = min(len(knots) - 1, n_bins)
    knots = knots[np.linspace(0, len(knots) - 1, gaps + 1).round().astype(int)]
    each = [n_bins // gaps + (k < n_bins % gaps) for k in range(gaps)]
    inner = np.concatenate([np.linspace(*ends, n + 1)[:-1] for *ends, n in zip(knots, knots[1:], each)])
    return NumberBins(tuple(np.unique(inner[(inner > low) & (inner < high)]).tolist()))
