"""Columns of a class and a feature: what of their domain is declared, what is learned, and how many a user reports."""

import warnings
from numbers import Integral

import numpy as np

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import (
    CategoryEncoder,
    Domain,
    Numbers,
    class_array,
    columns_of,
    in_order,
    is_by_column,
    label_codes,
    learn_categories,
    lists_of,
    names_of_columns,
    pairs_of,
)
from dpestim.inputs.declared import as_list, as_pair, by_key, may_be_missing, missing_of, ordered
from dpestim.inputs.numbers import kind_of
from dpestim.local.categories.adaptive import best_law
from dpestim.local.categories.choice import spread_of
from dpestim.local.client import Client
from dpestim.local.coded import CategoryFeature, NumberFeature
from dpestim.local.columns import column_names
from dpestim.local.learning.joint import JointColumn, JointColumns
from dpestim.local.numbers.column import pair_of
from dpestim.privacy.exact import canonical_epsilon

#: The most bins of a column of numbers.
MOST_BINS = 1 << 16


class ClassColumns(Client):
    """Base of clients whose every column is the class beside a feature."""

    @property
    def _is_declared(self):
        return self.classes is not None and not self._undeclared()

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
        return self._made(class_array(self.classes), self._features(names, lists, ends), names, keys=keys)

    def _columns_of_width(self, width):
        if self._columns is None and self.classes is not None and self.categories is None and self.bounds is not None \
                and self._same_bounds():
            raise ValueError("bounds must have one number for each column, or fit must come first, because a report "
                             "does not contain the number of columns")
        return super()._columns_of_width(width)

    def _same_bounds(self):
        """Tell whether one pair of numbers stands for all columns of numbers."""
        return isinstance(self.bounds, Numbers) or (
            not is_by_column(self.bounds) and not any(np.ndim(end) for end in self.bounds))

    def _features(self, names, lists, ends):
        """Return what reads each column: by its categories, or by the next (low, high, whether it may be missing)."""
        n_bins, ends = self.n_bins, iter(ends)
        if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or not 2 <= n_bins <= MOST_BINS:
            raise ValueError(f"n_bins must be an integer from 2 to {MOST_BINS}")
        return [CategoryFeature(CategoryEncoder(own, name, fewest=1)) if own is not None
                else NumberFeature(name, *(end := next(ends))[:2], int(n_bins), *end[2:])
                for name, own in zip(names, lists)]

    def _infer(self, X, names, y):
        """Return columns of which something was learned from private data, and warn."""
        labels, learned = self.classes, self._undeclared()
        inferred = " and ".join(filter(None, ["classes" if labels is None else "", learned]))
        warnings.warn(
            f"{inferred} were learned from private data: the result has no privacy guarantee (privacy_.epsilon is "
            f"infinite). Declare {inferred}.", PrivacyLeakWarning, stacklevel=6,
        )
        classes = label_codes(y, labels, X.shape[0], strict=False)[1]
        if not learned:
            twin = type(self)(**{**self.get_params(deep=False), "classes": classes})
            columns = twin._declare(X.shape[1])
            return self._made(classes, [c.feature for c in columns], names, inferred=inferred, keys=columns.keys)
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
        return self._made(classes, self._features(names, lists, ends), names, inferred=inferred)

    def _like(self, columns):
        return self._made(columns.columns[0].classes, [c.feature for c in columns], columns.names,
                          inferred=columns.inferred, keys=columns.keys)

    def _made(self, classes, features, names, **more):
        """Return the `Columns` of these classes and features: how many are drawn, and their laws."""
        sizes = [len(classes) * feature.n_values for feature in features]
        k = self._n_drawn(sizes)
        laws = [best_law(canonical_epsilon(self.epsilon) / k, size) for size in sizes]
        columns = [JointColumn(name, law, classes, feature) for name, law, feature in zip(names, laws, features)]
        return JointColumns(columns, n_sampled=k, **more)

    def _n_drawn(self, sizes):
        """Return how many columns a user reports: that declared, or what makes the variance least."""
        k, epsilon, d = self.n_sampled, canonical_epsilon(self.epsilon), len(sizes)
        if k is not None:
            if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= d:
                raise ValueError(f"n_sampled must be None or an integer from 1 to {d}, the number of columns")
            return int(k)
        best = None
        for k in range(1, d + 1):
            # (whoever does not report a feature leaves the variance of being drawn, too)
            worst = max(spread_of(best_law(epsilon / k, size)).rmse(1) ** 2 + 1 / size for size in set(sizes)) / k
            if best is not None and worst >= best[0]:
                break
            best = worst, k
        return best[1]


def _range_of(feature, values):
    """Return the least and the largest number of a column, a little apart where they are one."""
    lost = feature.read(values, None)[1]
    if lost:
        raise ValueError(f"{feature.name} of X {lost}")
    numbers = np.asarray(values, np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    room = 0.0 if high > low else max(1.0, abs(low))
    return low - room, high + room
