"""Clients whose columns are features: categories, or numbers between bounds, declared by place or by name."""

import warnings
from numbers import Integral

import numpy as np

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import (
    CategoryEncoder,
    Domain,
    Numbers,
    category_rows,
    columns_of,
    in_order,
    is_by_column,
    learn_categories,
    lists_of,
    names_of_columns,
    pairs_of,
)
from dpestim.inputs.declared import as_list, as_pair, by_key, may_be_missing, missing_of, ordered
from dpestim.inputs.numbers import kind_of
from dpestim.local.client import Client
from dpestim.local.coded import CategoryFeature, NumberFeature, pair_of
from dpestim.local.columns import column_names

#: The most bins of a column of numbers.
MOST_BINS = 1 << 16


class FeatureClient(Client):
    """Base of clients with the parameters `categories`, `bounds` and `n_bins`; a sub-class brings `_of_features`."""

    #: The most bins of a column of numbers.
    _most_bins = MOST_BINS
    #: How many columns one pair of numbers stands for, where nobody says.
    _fewest_columns = 1

    def _of_features(self, features, names, **more):
        """Return the `Columns` of these features."""
        raise TypeError(f"{type(self).__name__} does not say what is reported of features: implement `_of_features`")

    def _container(self, X, strict):
        return category_rows(X, strict=strict)

    @property
    def _is_declared(self):
        return not self._undeclared()

    def _undeclared(self):
        """Return what of the features' domain would be learned, in words, or an empty string."""
        categories, bounds = self._both()
        if categories is None:
            return "" if bounds is not None else "categories and bounds"
        if isinstance(categories, Domain):
            return "" if bounds is not None or not categories.of_kind(Numbers) else "bounds"
        lists = in_order(categories, "lists", name="categories")[1] if is_by_column(categories) else categories
        lacks = isinstance(lists, list | tuple) and any(own is None for own in lists) and bounds is None
        return "bounds" if lacks else ""

    def _is_by_name(self):
        return is_by_column(self.categories) or is_by_column(self.bounds)

    def _both(self):
        """Return (categories, bounds): a `Domain` that is given as one of them stands for both."""
        if isinstance(self.bounds, Domain) and self.categories is None:
            return self.bounds, self.bounds
        if isinstance(self.categories, Domain) and self.bounds is None:
            return self.categories, self.categories
        return self.categories, self.bounds

    def _declare(self, n_columns, names=None):
        categories, bounds = self._both()
        keys, pairs, missing = None, None, None
        if is_by_column(categories) or (categories is None and is_by_column(bounds)):
            lists = by_key(categories, as_list, "categories") if is_by_column(categories) else {}
            pairs = by_key(bounds, as_pair, "bounds") if is_by_column(bounds) else {}
            own = [*lists, *(key for key in pairs if key not in lists)]
            if isinstance(categories, Domain):  # (in its own order)
                own = [key for key in categories if key in own] + [key for key in own if key not in categories]
            keys, order = ordered(dict.fromkeys(own), names, "categories and bounds")
            pairs = [pairs[key] for key in order if lists.get(key) is None] if is_by_column(bounds) and all(
                key in pairs for key in order if lists.get(key) is None) else None
            gone = by_key(bounds, may_be_missing, "bounds") if is_by_column(bounds) else {}
            missing = [gone.get(key, False) for key in order if lists.get(key) is None]
            lists = [lists.get(key) for key in order]
        elif categories is None:
            known = len(pair_of(bounds, "bounds", None)[0])
            lists = [None] * (n_columns if n_columns is not None and self._same_bounds() else known)
        else:
            lists = lists_of(categories, some=True)
        if n_columns is not None and n_columns != len(lists):
            raise ValueError(f"categories and bounds must be those of the {n_columns} columns of X, got {len(lists)}")
        names = column_names(len(lists), keys)
        numbers = [j for j, own in enumerate(lists) if own is None]
        if bounds is not None and not numbers and not is_by_column(bounds):
            raise ValueError("bounds must be None where every column has categories")
        if pairs is None and is_by_column(bounds) and numbers:
            if keys is not None or categories is None:
                raise ValueError("bounds must have a pair for each column of numbers, by name where categories are")
            pairs = [pair for pair in pairs_of(bounds, len(lists), some=True) if pair is not None]
        given = tuple(zip(*pairs)) if pairs else bounds
        if missing is None:
            gone = missing_of(bounds, len(lists))
            missing = [j in gone for j in numbers]
        ends = zip(*pair_of(given, "bounds", len(numbers)), missing) if numbers else ()
        return self._of_features(self._features(names, lists, ends), names, keys=keys)

    def _same_bounds(self):
        """Tell whether one pair of numbers stands for all columns of numbers."""
        return isinstance(self.bounds, Numbers) or (
            not is_by_column(self.bounds) and not any(np.ndim(end) for end in self.bounds))

    def _features(self, names, lists, ends):
        """Return what reads each column: by its categories, or by the next (low, high, whether it may be missing)."""
        n_bins, ends = self.n_bins, iter(ends)
        if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or not 2 <= n_bins <= self._most_bins:
            raise ValueError(f"n_bins must be an integer from 2 to {self._most_bins}")
        return [CategoryFeature(CategoryEncoder(own, name, fewest=1)) if own is not None
                else NumberFeature(name, *(end := next(ends))[:2], int(n_bins), *end[2:])
                for name, own in zip(names, lists)]

    def _columns_of_width(self, width):
        if self._columns is None and self._is_declared and self.categories is None and self._same_bounds():
            raise ValueError("bounds must have one number for each column, or fit must come first, because a report "
                             "does not contain the number of columns")
        return super()._columns_of_width(width)

    def _infer(self, X, names):
        """Return columns of which something was learned from private data, and warn."""
        learned = self._undeclared()
        warnings.warn(
            f"{learned} were learned from private data: the result has no privacy guarantee (privacy_.epsilon is "
            f"infinite). Declare {learned}.", PrivacyLeakWarning, stacklevel=6,
        )
        return self._of_features(self._learned(X, names), names, inferred=learned)

    def _learned(self, X, names):
        """Return features of which something was learned from private data: categories, or bounds, or both."""
        labels = names_of_columns(X)
        lists = [None] * X.shape[1] if self.categories is None else lists_of(self.categories, X.shape[1], labels,
                                                                            some=True)
        ends = []
        for j, (own, values, name) in enumerate(zip(lists, columns_of(X), names)):
            if own is None:
                if kind_of(values.dtype) in "biuf" or self.categories is not None:
                    ends.append(_range_of(NumberFeature(name, 0.0, 1.0, 2), values))
                else:
                    lists[j] = learn_categories(values, name, allow_missing=True)
        return self._features(names, lists, ends)


def _range_of(feature, values):
    """Return the least and the largest number of a column, a little apart where they are one."""
    lost = feature.read(values, None)[1]
    if lost:
        raise ValueError(f"{feature.name} of X {lost}")
    numbers = np.asarray(values, np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    room = 0.0 if high > low else max(1.0, abs(low))
    return low - room, high + room
