"""What all of preprocessing shares: rows are read, bounds are declared or found, one fit pays once, names go on."""

from fractions import Fraction
from numbers import Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import declared_delta
from dpestim.inputs import number_rows
from dpestim.models import range_of
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.one_pass import OnePassModel
from dpestim.statistics.private_bounds import find_bounds
from dpestim.statistics.summary import grids_of

_BOUNDS = """\
    bounds : (low, high), dict, Domain or "private", default=None
        Public range of the values, numbers or one for each column. Values outside are clipped. "private" finds powers
        of two around most of the rows, with `bounds_fraction` of epsilon. None takes the smallest and largest values,
        which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    bounds_fraction : float, default=0.1
        The part of epsilon that finds private bounds.
"""
#: What is asked of bounds before any are known.
_ANY = (-1.0, 1.0)


class DPTransformer(TransformerMixin, OnePassModel):
    """Base of what learns noisy numbers of columns and maps rows by them.

    A sub-class brings `_check_own` (parameters), what `OnePassModel` asks for, and `_map`, which maps rows.
    """

    _template = "rows"
    _texts = {"bounds": _BOUNDS}

    def transform(self, X):
        """Return rows, mapped by what was learned: of private rows **not private**.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
        """
        check_is_fitted(self)
        rows, n_rows = self._rows_to_map(X)
        if self._is_strict():
            self._note_predictions(n_rows)
        return self._map(rows)

    def _transformed(self, X, n_columns=None):
        """Return rows as wide as `transform` returns them (None: as wide as X was), as dense floats, or raise."""
        check_is_fitted(self)
        n_columns = self.n_features_in_ if n_columns is None else n_columns
        rows = number_rows(X.toarray() if issparse(X) else X, strict=self._is_strict(), fewest=0)
        if rows.shape[1] != n_columns:
            raise ValueError(f"X must have the {n_columns} columns that transform returns, not {rows.shape[1]}")
        return rows.astype(np.float64)

    # ---------------------------------------------------------------- what a sub-class brings

    def _check_own(self):
        """Raise ValueError for a parameter of its own that does not fit."""

    def _is_free(self):
        """Tell whether nothing is learned from values: parameters say it all."""
        return False

    def _map(self, rows):
        """Return rows, mapped."""
        raise TypeError(f"{type(self).__name__} does not say what it does with rows")

    # ---------------------------------------------------------------- inside

    def _check(self):
        """Return (epsilon, delta) as exact numbers, 0 where nothing is learned; raise ValueError for bad parameters."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(getattr(self, "delta", None))
        check_random_state(self.random_state)
        self._check_own()
        return (Fraction(0), Fraction(0)) if self._is_free() else (epsilon, delta)

    def _read(self, X, y, reset):
        rows, n_rows = self._rows(X, reset)
        return rows, n_rows, self.n_features_in_

    def _rows_to_map(self, X):
        """Return (rows as `_map` takes them, how many)."""
        return self._rows(X, False)

    def _rows(self, X, reset):
        """Return (rows as `_sums` and `_map` take them, how many)."""
        rows = self._checked_X(X, reset=reset, total=self._is_strict())
        return rows, len(rows)


class BoundedTransformer(DPTransformer):
    """Base of what needs bounds of numbers; a sub-class brings `_learn` in place of `_released`."""

    _declared = ("bounds",)

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        """Return a function of a random source that returns what is learned between these bounds, by name."""
        raise TypeError(f"{type(self).__name__} does not say what it learns")

    def _learns_more(self):
        """Tell whether more than bounds are learned from values."""
        return True

    def _is_free(self):
        return not (self._learns_more() or isinstance(self.bounds, str))

    def _check(self):
        if isinstance(self.bounds, str):
            if self.bounds != "private":
                raise ValueError('bounds must be None, a pair (low, high) of numbers, or "private"')
            good = isinstance(self.bounds_fraction, Real) and not isinstance(self.bounds_fraction, bool)
            if not (good and 0 < canonical_amount(self.bounds_fraction, "bounds_fraction") < 1):
                raise ValueError("bounds_fraction must be a number between 0 and 1")
        elif self.bounds is not None:
            grids_of(self.bounds)
        return super()._check()

    def _sums_to_learn(self, data, grids, epsilon):
        """Return the totals that are learned from at once, with this epsilon: as `_sums`, or less of them."""
        return self._sums(data, grids)

    def _domain(self, n_columns, data=None):
        return tuple(grids_of(range_of(data) if self.bounds is None else self.bounds, n_columns))

    def _released(self, n_rows, totals, domain, epsilon, delta):
        learn, ends = self._learn(n_rows, totals, domain, epsilon, delta), _ends(domain)
        return lambda source: {"bounds_": ends, **learn(source)}

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        if not isinstance(self.bounds, str):
            domain = self._domain(n_columns, data)
            return self._released(n_rows, self._sums_to_learn(data, domain, epsilon), domain, epsilon, delta)
        share = canonical_amount(self.bounds_fraction, "bounds_fraction") * epsilon if self._learns_more() else epsilon
        find = find_bounds(data, share, True, 1)

        def between(bounds):
            grids = tuple(grids_of(bounds, n_columns))
            return self._released(n_rows, self._sums_to_learn(data, grids, epsilon - share), grids, epsilon - share,
                                  delta)

        between(_ANY)  # (may fail)

        def draw(source):
            low, high = find(source.part(1))
            # (where too few rows are alike nothing was found, which is as private as what is)
            low, high = (np.where(np.isnan(found), end, found) for found, end in zip((low, high), _ANY))
            return between((low, high))(source.part(0))

        return draw

    def _clipped(self, rows):
        """Return rows, clipped to the bounds; what is no number (in strict mode) is in the middle."""
        low, high = self.bounds_
        if self._is_strict():
            rows = np.where(np.isnan(rows), (low + high) / 2, rows)
        return np.clip(rows, low, high)

    def _n_columns(self):
        """Return the number of columns, where it is known: after `fit`, or from bounds for each column."""
        known = getattr(self, "n_features_in_", None)
        if known is None and isinstance(self.bounds, tuple | list | np.ndarray) and any(map(np.ndim, self.bounds)):
            known = len(grids_of(self.bounds))
        if known is None:
            raise AttributeError("norm_bound is available after fit, or before if bounds have one number for each "
                                 "column")
        return known


def scaled_norm(transformer, reach):
    """Return the largest norm of a row whose entries are at most `reach`."""
    return float(np.nextafter(reach * np.sqrt(transformer._n_columns()), np.inf))


def _ends(grids):
    return np.array([grid.low for grid in grids]), np.array([grid.high for grid in grids])

