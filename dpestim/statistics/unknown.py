"""Counts of categories that are not known before: those that a threshold lets out, with noise (`tables.md`)."""

import math
from collections import Counter
from functools import partial

import numpy as np

from dpestim.central.base import checked_delta
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.statistics.base import DELTA, USERS
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.keys import order_of, published_key, shown_as
from dpestim.statistics.plan import Frequent, Plan
from dpestim.statistics.summary import named
from dpestim.statistics.tables import Cells, as_columns, count_ends
from dpestim.summaries import Summary

_NO_KEY = ("X must hold strings, numbers, dates and times, None, or tuples of them, and whole numbers below 2^53 "
           "(write larger ones, such as identifiers, as strings): of others equal ones may look different, and what is "
           "published would show a row's")


class UnknownCategories(Cells):
    """Release undeclared categories with enough rows, and their noisy counts.

    Where the categories can be declared, `ContingencyTable` needs no delta and hides none. Missing values are one
    category, None, and tuples in a list are categories.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours. Counts of
    categories that occur get discrete Laplace noise, and those that reach `threshold` are published. Delta is that of
    the exact law: the threshold is the least integer that a category of one record reaches with probability delta, at
    most. The curator, who holds the data, must be trusted.

    **Utility.** Counts are unbiased before the threshold; rare categories stay hidden, about those with fewer than
    ln(1 / delta) / epsilon rows (twice that for replaced records). Before the threshold an interval misses a
    count with probability 1 - level, at most; a count near the threshold is published where its noise is large, and
    then missed more often.

    **Complexity.** O(n) time, O(categories) memory.

    {parameters}
    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately", WWW, algorithm 1.
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), "Differentially private SQL with bounded user
    contribution", PoPETs, section 3.3. The proof: ``tables.md``.

    Examples
    --------
    >>> from dpestim.statistics import UnknownCategories
    >>> drinks = ["tea"] * 300 + ["coffee"] * 200 + ["the secret one"]
    >>> table = UnknownCategories(1.0, delta=1e-6, neighbours="add_remove", random_state=0).fit(drinks)
    >>> table.result_.keys, table.threshold()
    ((['coffee', 'tea'],), 15)
    """

    _more_parameters = "\n" + DELTA.replace("Where it is declared, noise is Gaussian if that is less;\n"
                                            "        it is charged in any case.",
                                            "It must be declared.") + USERS + "    "
    _proof_name = "tables"
    _adds_up = False
    _about = ("the number of rows of each category, each category separately. Categories just above the threshold are "
              "published when their noise is large, so that their intervals miss the count more often than the level "
              "states")

    def __init__(self, epsilon=1.0, *, delta=None, neighbours=None, max_rows_per_user=None,
                 row_choice="first", ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, neighbours=neighbours, max_rows_per_user=max_rows_per_user,
                         row_choice=row_choice, ledger=ledger, random_state=random_state)
        del self.bounds, self.bounds_fraction

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "delta": 1e-3}, {"epsilon": 1.0, "delta": 1e-3, "neighbours": "add_remove"}]

    def __sklearn_tags__(self):
        """Return scikit-learn's tags: one column."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.categorical = True, False, True
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return rows of a few categories."""
        return np.array(["a", "b", "c", "d"], object)[np.random.default_rng(seed).integers(0, 4, n_rows)], None

    def threshold(self):
        """Return the least noisy count that is published; it is public."""
        noise, most, (_, delta, _) = self._noise(), self._rows(), self._budget()
        rate = noise.law.rate_of_decay

        def lost(least):
            # P[rows + Z >= least] = a^(least - rows) / (1 + a), for one row in each of several, or all in one
            above = 1 + exp_bounds(rate, 40)[0]
            ways = ((most, 1), (1, most))
            return max(count * exp_bounds(rate * (least - rows), 40)[1] / above for count, rows in ways)

        high = most + 1
        while lost(high) > delta:
            high *= 2
        low = most + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if lost(middle) <= delta else (middle + 1, high)
        return high

    def _noise(self):
        moved = 2 if self._replaces else self._rows()
        return noise_for(self._budget()[0], 0, moved, moved * moved, 1)

    def _check(self):
        super()._check()
        checked_delta(self.delta)

    def _read(self, X, users):
        if isinstance(X, list | tuple) and not self._is_strict() and not all(
                isinstance(row, list | np.ndarray) for row in X):
            X, values = np.empty(len(X), object), X  # (a tuple is a category)
            for i, value in enumerate(values):
                X[i] = value
        columns, _ = as_columns(X, self._is_strict())
        if len(columns) != 1:
            raise ValueError("X must have one column of categories, such as frame['town']: to count combinations of "
                             "several columns, join their values into one column first")
        keys = np.empty(len(columns[0]), object)
        for i, value in enumerate(named(columns[0], len(keys), "X", self._is_strict())):
            keys[i] = published_key(value)
            if keys[i] is None:
                if not self._is_strict():
                    raise ValueError(_NO_KEY)
                keys[i] = published_key(None)
        one = not hasattr(X, "columns") and getattr(X, "ndim", 1) == 1  # (a list of rows counts as one of values)
        return self._kept(keys.reshape(-1, 1), users, len(keys)), one

    def _sums(self, rows, grids):
        return dict(Counter(rows[:, 0].tolist()))

    def _counted(self, column):
        """Return the summary of a column, counted before its values get their keys where equal ones look alike."""
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and column.dtype.itemsize <= 8:
            values, counts = (part.tolist() for part in np.unique(column, return_counts=True))
        else:
            rows = column.tolist() if hasattr(column, "tolist") else column.to_list()
            if not {str, float, type(None)}.issuperset(map(type, rows)):
                return self._summary_of(*self._read(column, None))
            values, counts = zip(*Counter(rows).items()) if rows else ((), ())
        keys = Counter()
        for value, count in zip(values, counts):
            key = published_key(value)
            if key is None:
                if not self._is_strict():
                    raise ValueError(_NO_KEY)
                key = published_key(None)
            keys[key] += count
        return Summary(self._identity(1, True), len(column), dict(keys))

    def _axes(self, shape, keys, names):
        return (("category" if names is None else names[0], list(keys[0])),)

    def _plan(self, summary, epsilon):
        noise = self._noise()
        counts = {key: summary.totals[key] for key in sorted(summary.totals, key=order_of)}

        def finish(outcomes):
            (shown,) = outcomes
            value = np.array(list(shown.values()), np.int64)
            error = np.full(value.shape, math.sqrt(noise.variance))
            return value, error, partial(count_ends, noise, value), ([shown_as(key) for key in shown],)

        return Plan((Frequent(noise, counts, self.threshold()),), finish)
