"""Rows to small codes, column by column, by what is public: bounds or edges of numbers, categories (`binning.md`)."""

from functools import lru_cache
from numbers import Integral

import numpy as np

from dpestim import parallel
from dpestim._core import trees
from dpestim.inputs import CategoryEncoder, bound_array, number_rows, refuse_infinite
from dpestim.records import record
from dpestim.statistics.summary import BLOCK, blocks

#: Codes are bytes; the last code of a column of categories is for what is none of them.
MOST_BINS = 255


@record
class NumberBins:
    """Bins of a column of numbers: inner edges, ascending; a value on an edge is in the bin above it.

    Values outside are in the first or last bin; NaN, which only strict mode lets through, is in the middle one. Where
    values may be missing, a missing one has the code 0, and the bins have the codes from 1 on.
    """

    edges: tuple
    low: float = 0.0
    per: float = 0.0  # bins a unit, where all are equally wide
    missing: bool = False

    #: Whether codes have an order.
    ordered = True

    @classmethod
    def even(cls, low, high, n_bins):
        """Return bins of equal width between public bounds."""
        return _even(cls, float(low), float(high), n_bins)

    @property
    def size(self):
        """How many codes there are."""
        return len(self.edges) + 1 + self.missing

    def splits(self):
        """Return all splits, [(shift, threshold), ...]: codes up to each but the last; again with missing ones right.

        With a shift of 1 the code of missing values is the largest, as codes are bytes.
        """
        plain = [(0, t) for t in range(self.size - 1)]
        return plain + [(1, t) for t in range(self.size - 2)] if self.missing else plain

    def left(self, table):
        """Return sums of the left sides of all splits from those of codes (the axis before the last)."""
        sums = table.cumsum(axis=-2)
        plain = sums[..., :-1, :]
        if not self.missing:
            return plain
        return np.concatenate([plain, sums[..., 1:-1, :] - table[..., :1, :]], axis=-2)

    def side(self, shift, threshold):
        """Return in words which rows go left: with as many digits as tell edges apart."""
        digits = next((n for n in (6, 9, 12) if len({f"{edge:.{n}g}" for edge in self.edges}) == len(self.edges)), 17)
        with_missing = self.missing and not shift
        if with_missing and not threshold:
            return "is missing"
        edge = f"< {self.edges[threshold - with_missing]:.{digits}g}"
        return f"{edge} or is missing" if with_missing else edge


@record
class CategoryBins:
    """Codes of a column of declared categories; what is none of them has the last code."""

    values: tuple  # (name of the type, value), so that 1 and True differ
    #: Whether codes have an order.
    ordered = False

    @property
    def size(self):
        """How many codes there are."""
        return len(self.values) + 1

    def splits(self):
        """Return all splits, [(shift, threshold), ...]: one code against all others."""
        return [(code, 0) for code in range(self.size)]

    def left(self, table):
        """Return sums of the left sides of all splits from those of codes."""
        return table

    def encoder(self, name):
        """Return what reads the column of this name."""
        return CategoryEncoder([value for _, value in self.values], name)

    def side(self, shift, threshold):
        """Return in words which rows go left."""
        return f"is {self.values[shift][1]!r}" if shift < len(self.values) else "is none of its categories"


@lru_cache(maxsize=256)
def _even(kind, low, high, n_bins):
    """Return bins of equal width, worked out once for columns of equal bounds, which most are."""
    edges = np.linspace(low, high, n_bins + 1)
    inner = tuple(np.unique(edges[1:-1]).tolist())
    return kind(inner, low, n_bins / (high - low) if len(inner) == n_bins - 1 else 0.0)


def checked_bins(n_bins):
    """Return a number of bins, or raise ValueError."""
    if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or not 2 <= n_bins <= MOST_BINS:
        raise ValueError(f"n_bins must be an int from 2 to {MOST_BINS}")
    return int(n_bins)


def declared_edges(edges, name):
    """Return bins from inner edges that were declared, or raise ValueError; edges that are equal count once."""
    found = bound_array(edges, name)
    if found.ndim != 1 or not 0 < len(found) < MOST_BINS or not np.isfinite(found).all() or (np.diff(found) < 0).any():
        raise ValueError(f"{name} must be 1 to {MOST_BINS - 1} finite numbers, ascending")
    return NumberBins(tuple(np.unique(found).tolist()))


def by_place(declared, name, what, names=None):
    """Return {column: what was declared of it} from a dict by the number or name of a column, or raise ValueError.

    Names stay where `names` does not have them.
    """
    if declared is None:
        return {}
    if not isinstance(declared, dict) or not declared:
        raise ValueError(f"{name} must be a dict {{column: {what}}}, the column by number or name")
    known, out = {} if names is None else {own: j for j, own in enumerate(names)}, {}
    for key, values in declared.items():
        if isinstance(key, bool) or not isinstance(key, Integral | str):
            raise ValueError(f"{name} must name columns by number or name")
        place = key if isinstance(key, Integral) else known.get(key, key)
        if place in out:
            raise ValueError(f"{name} must name column {key!r} once")
        out[place] = key, values
    return out


def edges_of(edges, names=None):
    """Return {column: NumberBins} from a dict by the number or name of a column, or raise ValueError."""
    return {place: declared_edges(values, f"edges of column {key!r}")
            for place, (key, values) in by_place(edges, "edges", "its inner edges", names).items()}


def encoders_of(categories, names=None):
    """Return {column: CategoryEncoder} from a dict by the number or name of a column, or raise ValueError."""
    out = {}
    for place, (key, values) in by_place(categories, "categories", "its categories", names).items():
        encoder = CategoryEncoder(values, f"column {key!r}")
        if len(encoder.categories) >= MOST_BINS:
            raise ValueError(f"categories of column {key!r} must be at most {MOST_BINS - 1}")
        out[place] = encoder
    return out


def category_bins(encoder):
    """Return the bins of an encoder, which compare."""
    return CategoryBins(tuple((type(value).__name__, value) for value in encoder.plain_categories()))


def number_part(table, places, advice, *, strict, missing=False):
    """Return some columns of a checked table as floats; refuse what is not finite, but in strict mode.

    With `missing`, a number may be NaN: in all columns, or in those where an array says so.
    """
    part = table.iloc[:, places] if hasattr(table, "iloc") else table[:, places]
    rows = np.ascontiguousarray(number_rows(part, strict=strict, fewest=0), np.float64)
    if not strict:
        names = list(part.columns) if hasattr(part, "columns") else places
        refuse_infinite(rows, [f"column {name!r}" for name in names], advice, missing=missing)
    return rows


def codes_of(bins, numbers, columns, encoders, *, gone=False, n_jobs=None):
    """Return codes of shape (n_features, n_rows), of bytes.

    With `gone` the code of NaN is the number of bins. Rows are cut into blocks, of which threads take runs.

    Parameters
    ----------
    bins : sequence of NumberBins or CategoryBins
        One for each column.
    numbers : ndarray of shape (n_rows, how many are NumberBins)
        Finite, or NaN.
    columns : dict
        Columns of categories, by place.
    encoders : dict
        Their encoders, by place.
    """
    out = np.empty((len(bins), len(numbers)), np.uint8)
    ordered = [j for j, own in enumerate(bins) if own.ordered]
    edges = [np.array(bins[j].edges, np.float64) for j in ordered]

    def task(first, last):
        start = first * BLOCK
        for at, block in enumerate(blocks(numbers[start : last * BLOCK])):
            rows = slice(start + at * BLOCK, start + at * BLOCK + block.shape[1])
            for j, own, column in zip(ordered, edges, block):
                trees.bin_column(column, own, bins[j].per, bins[j].low, out[j, rows])
                if bins[j].missing:
                    out[j, rows] = np.where(np.isnan(column), 0, out[j, rows] + 1)  # (of at most 255 bins)
                if gone and (missing := np.isnan(column)).any():
                    out[j, rows][missing] = bins[j].size

    parallel.run(task, -(-len(numbers) // BLOCK), n_jobs, pieces=4)
    for j, column in columns.items():
        out[j] = encoders[j].read(column, np.dtype(np.uint8), bins[j].size - 1, explain=False)[0]
    return out
