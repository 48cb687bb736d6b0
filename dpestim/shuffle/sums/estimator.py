"""What every protocol for sums is: client and server in one, with sums, means and their errors."""

from numbers import Real

import numpy as np
from scipy.special import ndtri

from dpestim.local.numbers.column import NumberColumn
from dpestim.local.numbers.transformer import NumberClient
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, axes_of
from dpestim.shuffle.base import ShuffledColumns, ShuffleProtocol

#: Columns at most whose number is found out from the width of messages.
_MOST_GUESSED = 8


class SumProtocol(ShuffleProtocol, NumberClient):
    """Base of protocols for sums; a sub-class has an ``__init__`` and names its `_randomizer`."""

    _more_attributes = """
    sum_, mean_ : ndarray of shape (n_columns,)
        Unbiased for the values as they were clipped to the bounds.
    standard_error_ : ndarray of shape (n_columns,)
        That of `sum_`, given the values, at worst over what their messages leave open (too large where values need
        little rounding and messages are few); that of `mean_` is so much over `n_users_`.
    """

    def release(self):
        """Return `sum_`."""
        return self.sum_

    @property
    def sum_(self):
        """Estimated sums."""
        return self._n_users * self.mean_

    @property
    def mean_(self):
        """Estimated means."""
        self._check_fitted()
        n = self._n_users
        return np.array([c.to_units(c.law.total(counts, n) / n) for c, counts in zip(self._columns, self._counts)])

    @property
    def standard_error_(self):
        """Standard errors of the sums."""
        self._check_fitted()
        n = self._n_users
        variances = [c.law.variance(n, counts) for c, counts in zip(self._columns, self._counts)]
        return np.array([c.width for c in self._columns]) * np.sqrt(variances)

    def confidence_interval(self, level=0.95):
        """Return an (n_columns, 2) array: intervals for the sums of the users who took part.

        Normal, with `standard_error_`; not clipped to what sums can be.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number strictly between 0 and 1")
        reach = ndtri(0.5 + level / 2) * self.standard_error_
        return np.stack([self.sum_ - reach, self.sum_ + reach], axis=1)

    def _result_parts(self, level):
        """Return what `result_` shows: sums and means."""
        ends, errors, n = self.confidence_interval(level), self.standard_error_, self._n_users
        axes = axes_of(self, ("feature",), errors.shape)
        return [Part("sum", axes, self.sum_, errors, ends), Part("mean", axes, self.mean_, errors / n, ends / n)]

    def score(self, X, y=None):
        """Return minus the squared error against the plain means of X, averaged over the columns.

        The score compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger
        records as an entry of epsilon 0 and strict mode refuses.
        """
        self._check_fitted()
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        data, columns, _ = self._read(X)
        self._note_score(len(data[0]))
        truth = np.array([c.numbers(rows).mean() for c, rows in zip(columns, data)])
        return -float(np.square(truth - self.mean_).mean())

    # ---------------------------------------------------------------- inside

    def _column(self, name, law, low, high):
        """Return what turns values into the law's codes."""
        return NumberColumn(name, law, low, high)

    def _made(self, lows, highs, names, **more):
        law, n = self._law_class(), len(lows)
        share = canonical_epsilon(self.epsilon) / n
        columns = [
            self._column(names[j], law.make(share, **self._law_arguments(j, n, ends)), *ends)
            for j, ends in enumerate(zip(lows, highs))
        ]
        return ShuffledColumns(columns, **more)

    def _columns_of_width(self, width):
        if self._columns is not None or not self._is_declared:
            return self._columns_now()
        if not self._is_scalar():
            return self._columns_now(None)
        fits = [n for n in range(1, min(width, _MOST_GUESSED) + 1)
                if width % n == 0 and self._columns_now(n).report_width == width]
        if len(fits) > 1:  # (more columns have a smaller share of epsilon each, and may send fewer messages)
            raise ValueError("bounds must have one number for each column, because messages do not contain the number "
                             "of columns")
        if not fits:
            raise ValueError("messages must have the width that encode returns: declare bounds with one number for "
                             "each column")
        return self._columns_now(fits[0])
