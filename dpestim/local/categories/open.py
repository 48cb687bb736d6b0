"""Estimators that can do without a list of values: what is held is hashed, and values are asked for afterwards."""

from typing import NamedTuple

import numpy as np

from dpestim.inputs import FingerprintEncoder, is_by_column
from dpestim.inputs.columns import object_array
from dpestim.local.categories.column import category_lists
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.client import Client
from dpestim.local.columns import column_names


class Estimates(NamedTuple):
    """Frequencies of values that were asked for, and their standard errors; both are arrays of float64."""

    frequencies: np.ndarray
    standard_errors: np.ndarray


class OpenFrequencyEstimator(FrequencyEstimator):
    """A frequency estimator whose columns may be open: ``categories=None``, or None in place of a column's list.

    Its law brings ``estimate_of(codes, counts, n)`` and ``error_of(codes, counts, n)``.
    """

    def estimate(self, values, column=0):
        """Return the estimated frequencies of any values of a column, and their standard errors.

        Post-processing costs no privacy: ask as often as you like, for values that nobody thought of before.

        Parameters
        ----------
        values : array-like of shape (n_values,)
            Of an open column any strings, bytes, numbers or bools; else some of its categories.
        column : int or str, default=0
            Number or name of the column.

        Returns
        -------
        (frequencies, standard_errors) : named tuple of two ndarray of shape (n_values,)
            Unbiased shares of users, and their standard errors. What is asked for is a part of all values, so that
            nothing sums to 1 and `postprocess` is not applied.

        Raises
        ------
        ValueError
            For what is no list of values, and for values that the column cannot have.
        """
        self._check_fitted()
        number = self._columns.number_of(column)
        if isinstance(values, str | bytes | dict | set) or not hasattr(values, "__len__"):
            raise ValueError("values must be a list or an array of values")
        values = values if isinstance(values, np.ndarray) else object_array(list(values))
        if values.ndim != 1 or not len(values):
            raise ValueError("values must be one-dimensional, and at least one")
        law, counts = self.randomizers_[number], self._counts[number]
        codes = self._columns.columns[number].encoder.encode(values)
        codes, again = np.unique(codes, return_inverse=True)  # what has one code is one value, as 1 and True are
        m = self._sizes()[number]
        if not m:
            return Estimates(*np.full((2, len(again)), np.nan))
        f, share = law.estimate_of(codes, counts, m), np.sqrt(self._unevenness(m))
        errors = law.error_of(codes, f, counts, m)
        within = np.clip(f, 0.0, 1.0)
        return Estimates(f[again], np.hypot(errors, share * np.sqrt(within * (1 - within)))[again])

    def get_feature_names_out(self, input_features=None):
        """Return feature_category for each column of `transform`; an open column has none."""
        self._check_fitted()
        self._check_closed()
        return super().get_feature_names_out(input_features)

    def score(self, X, y=None):
        """Return minus the mean squared error against the plain frequencies of X; an open column has none."""
        self._check_fitted()
        self._check_closed()
        return super().score(X, y)

    # ---------------------------------------------------------------- inside

    @property
    def _is_declared(self):
        return self.categories is None or super()._is_declared

    def _declared_columns(self, n_columns, names=None):
        if self.categories is None:  # (then the data say how many columns there are)
            return Client._declared_columns(self, n_columns or 1)
        return super()._declared_columns(n_columns, names)

    def _declare(self, n_columns, names=None):
        if self.categories is None:
            n_columns = n_columns or 1
            return self._made([None] * n_columns, column_names(n_columns, None))
        return super()._declare(n_columns, names)

    def _encoder(self, categories, name):
        return FingerprintEncoder(name) if categories is None else super()._encoder(categories, name)

    def _unbiased(self):
        self._check_closed()
        return super()._unbiased()

    def _supports(self, reports):
        self._check_closed()
        return super()._supports(reports)

    def _check_support(self, restart):
        if not restart:
            return self._check_closed()
        declared = category_lists(self.categories)[0] if is_by_column(self.categories) else self.categories
        if declared is None or hasattr(declared, "__iter__"):
            self._check_closed([None] if declared is None else declared)

    def _check_closed(self, each=None):
        if any(categories is None for categories in (self.categories_ if each is None else each)):
            raise ValueError("categories must list the values of every column for this attribute: call "
                             "estimate(values) instead")
