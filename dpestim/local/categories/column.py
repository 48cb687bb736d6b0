"""A categorical column: a public list of values, and the law over their numbers."""

from functools import cached_property
from numbers import Real

import numpy as np

from dpestim.inputs import CategoryEncoder, in_order, is_by_column, lists_of
from dpestim.inputs.together import Coded
from dpestim.local.column import Column
from dpestim.local.law import ALL


class CategoryColumn(Column):
    """One column of categories.

    Parameters
    ----------
    encoder : CategoryEncoder
    law : CategoricalRandomizer
    """

    def __init__(self, encoder, law):
        super().__init__(encoder.name, law)
        self.encoder = encoder

    @property
    def categories(self):
        """The domain, in the order of the codes."""
        return self.encoder.categories

    def named(self, name):
        """Return the same column under another name."""
        twin = super().named(name)
        if twin is not self:
            twin.encoder = object.__new__(type(self.encoder))
            vars(twin.encoder).update(vars(self.encoder), name=name)  # tables are shared
        return twin

    def identity(self):
        """Return the categories, in order, and the law."""
        return self.encoder.plain_categories(), self.law

    def is_like(self, other):
        """Tell whether categories, in order, and law are the same; long arrays are not made into Python values."""
        if type(other) is type(self) and self.encoder.range is not None and other.encoder.range is not None:
            # (first and how many: the same integers of another dtype are the same categories)
            return self.encoder.range[1:] == other.encoder.range[1:] and self.law == other.law
        mine, theirs = self.categories, getattr(other, "categories", None)
        if type(other) is not type(self) or mine is None or theirs is None or (
            mine.dtype != theirs.dtype or mine.dtype.kind not in "biu"
        ):
            return super().is_like(other)
        return self.law == other.law and (mine is theirs or np.array_equal(mine, theirs))

    @property
    def domain(self):
        """The categories in the order of their codes, None for a missing one; or any text, where nobody lists them."""
        return self.encoder.domain

    def read(self, values, n_jobs, strict):
        """Return the codes of a column."""
        if type(values) is Coded:
            if values.why and not strict:
                raise ValueError(f"{self.name} {values.why}")
            return values.codes
        return (self.encoder.encode_total if strict else self.encoder.encode)(values, n_jobs)

    @property
    def reads_afresh(self):
        """Whether codes are made for this reader (an encoder of another kind may return what it was given)."""
        kind = type(self)
        return (type(self.encoder) is CategoryEncoder and kind.read is CategoryColumn.read
                and kind.coder is Column.coder and kind.privatizer is Column.privatizer)

    def coder_of_one(self, dtype, place):
        """Return a function from a record to its code, where nothing but the encoder reads values."""
        kind = type(self)
        plain = kind.read is CategoryColumn.read and kind.coder is Column.coder
        return self.encoder.coder_of_one(dtype, place) if plain and type(self.encoder) is CategoryEncoder else None

    def relaxed_inputs(self):
        """Return the categories that the law's relaxation gives less protection, in full."""
        kinds = self.law.kind_of(self.law.input_codes)
        plain = self.encoder.plain_categories()
        if self.law.relaxed_kind == ALL:  # a promise about all pairs of categories, which the law names
            return f"{list(plain)!r}, {self.law.relaxed_name}"
        inside = [k for k, kind in enumerate(kinds) if kind == self.law.relaxed_kind]
        text = ", ".join(repr(plain[k]) for k in inside)
        # in strict mode what is not declared counts as the first category: the set depends on all that is
        return f"[{text}{f', and any value not in {list(plain)!r}' if 0 in inside else ''}]"

    # what a server of numbers asks: categories that are numbers stand for themselves

    is_discrete = True
    mean_scale = 0.0, 1.0

    @cached_property
    def values(self):
        """The categories as floats; ValueError where they are none, or too far apart for sums."""
        values = self.encoder.categories.tolist()
        real = all(isinstance(v, Real) and not isinstance(v, np.timedelta64) for v in values)
        with np.errstate(all="ignore"):
            floats = np.array(values, np.float64) if real else np.array([np.nan])
            spread = 4 * np.ptp(floats) ** 2
        if not np.isfinite(spread):
            raise ValueError(f"the categories of {self.name} must be numbers with finite differences, because a mean "
                             "is asked for: take a frequency estimator for other categories")
        return floats

    @cached_property
    def _spacing(self):
        """(first, step) of evenly spaced ascending numbers; other categories count as 0, 1, ..."""
        try:
            steps = np.diff(self.values)
        except ValueError:
            return 0.0, 1.0
        even = (steps > 0).all() and np.ptp(steps) <= 1e-9 * steps.max()
        return (float(self.values[0]), float(steps.mean())) if even else (0.0, 1.0)

    @cached_property
    def is_even(self):
        """Whether the categories are evenly spaced numbers in ascending order."""
        codes = self._spacing[0] + self._spacing[1] * np.arange(len(self.encoder.categories))
        try:
            return bool(np.allclose(codes, self.values))
        except ValueError:
            return False

    def to_units(self, positions):
        """Return positions among the codes as numbers: code k is category k, where these are evenly spaced."""
        return self._spacing[0] + self.width * positions

    @property
    def width(self):
        """The distance between two categories."""
        return self._spacing[1]

    def binned(self, rows):
        """Return codes on the scale of the bins."""
        return self.to_units(np.asarray(rows, np.float64))

    def numbers(self, rows):
        """Return the numbers that codes stand for."""
        return self.values[rows]

    @property
    def even_spread(self):
        """The variance of categories held equally often."""
        return float(self.values.var())

    def mean_values(self):
        """Return the numbers of the counts that estimate the mean of the categories."""
        return self._mean_values

    @cached_property
    def _mean_values(self):
        return self.law.numbers_for(self.values)

    def least_noise(self, numbers, mean, counts, n):
        """Return the variance that reports of the estimated frequencies have on average."""
        f = np.maximum(self.law.estimate(counts, n), 0.0)
        return float(f @ self.law.noise_of(numbers) / f.sum()) if f.sum() > 0 else 0.0


def category_lists(categories, name="categories", names=None):
    """Return (lists of categories, one array-like for each column; the column names of a dict, or None).

    `names`: those of the columns of X; others are left out.
    """
    if is_by_column(categories):
        keys, lists = in_order(categories, "lists", names, name=name)
        return lists, keys
    return lists_of(categories, name=name), None


def list_of(declared, name, column, n_columns, encoder):
    """Return what a parameter, a list or a dict by name, says of one column."""
    lists, keys = category_lists(declared, name)
    if keys is not None:
        lists = [own for key, own in zip(keys, lists) if encoder.name == f"column {key!r}"]
        column, n_columns = 0, 1
    if len(lists) != n_columns:
        raise ValueError(f"{name} must have one list for each of the {n_columns} columns, in their order, or a dict by "
                         "the names of the columns")
    return lists[column]


def codes_named(lists, name, column, n_columns, encoder):
    """Return the codes, a sorted tuple, of the categories that a parameter names for one column; it may name none."""
    values = list_of(lists, name, column, n_columns, encoder)
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
        raise ValueError(f"{name} must have a list of categories for each column")
    objects = np.empty(len(values), dtype=object)
    objects[:] = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        codes = encoder.encode(objects) if len(objects) else objects
    except ValueError:
        codes = None
    if codes is None:
        raise ValueError(f"{name} of {encoder.name} must be among its categories")
    if len(set(codes.tolist())) < len(codes):
        raise ValueError(f"{name} of {encoder.name} must be distinct")
    return tuple(sorted(codes.tolist()))
