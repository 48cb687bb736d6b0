"""A categorical column: a public list of values, and the law over their numbers."""

from functools import cached_property

import numpy as np

from dpestim.local.columns import Column


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

    def read(self, values, n_jobs, strict):
        """Return the codes of a column."""
        return (self.encoder.encode_total if strict else self.encoder.encode)(values, n_jobs)

    def relaxed_inputs(self):
        """Return the categories that the law's relaxation gives less protection, in full."""
        kinds = self.law.kind_of(self.law.input_codes)
        plain = self.encoder.plain_categories()
        inside = [k for k, kind in enumerate(kinds) if kind == self.law.relaxed_kind]
        text = ", ".join(repr(plain[k]) for k in inside)
        # in strict mode what is not declared counts as the first category
        return f"[{text}{', and whatever is not declared' if 0 in inside else ''}]"

    def numbers(self, rows):
        """Return the numbers that codes stand for."""
        return self.categories.astype(np.float64)[rows]

    def mean_values(self):
        """Return the numbers of the counts, as positions, that estimate the mean of numeric categories."""
        return self._mean_values

    @cached_property
    def _mean_values(self):
        values = self.encoder.categories
        if values.dtype.kind not in "biuf" or not np.isfinite(values.astype(np.float64)).all():
            raise ValueError(f"the categories of {self.name} must be numbers to have a mean")
        return self.law.numbers_for(values.astype(np.float64))


def category_lists(categories, name="categories"):
    """Return (lists of categories, one array-like for each column; the column names of a dict, or None)."""
    keys = None
    if isinstance(categories, dict):
        keys, categories = tuple(categories), list(categories.values())
    if isinstance(categories, str) or not isinstance(categories, list | tuple) or not len(categories):
        auto = "'auto', " if name == "categories" else ""
        raise ValueError(f"{name} must be {auto}a list with one array for each column, or a dict of such")
    if all(isinstance(values, str | bytes) for values in categories):
        raise ValueError(f"{name} must have one list of values for each column: write [['a', 'b']], not ['a', 'b']")
    return list(categories), keys


def codes_named(lists, name, column, n_columns, encoder, keys):
    """Return the codes, a sorted tuple, of the categories that a parameter names for one column; it may name none."""
    lists, names = category_lists(lists, name)
    if len(lists) != n_columns or (names is not None and names != keys):
        raise ValueError(f"{name} must have one list of categories for each of the {n_columns} columns, in their order")
    values = lists[column]
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
