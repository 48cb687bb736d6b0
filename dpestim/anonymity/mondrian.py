"""Mondrian: the table is cut at medians, one column at a time, while every piece stays large and diverse enough."""

import numpy as np
from sklearn.base import BaseEstimator

from dpestim.anonymity.measures import Counts, closeness_of, diversity_of, limits
from dpestim.anonymity.table import Table, secret_of
from dpestim.docstrings import Documented


class Mondrian(Documented, BaseEstimator):
    """Make a table k-anonymous by multidimensional cuts. **Not differentially private**: for comparison only.

    The piece of the table with the column whose values spread most in it (as a share of the whole column) is cut at the
    median, as long as both parts have at least k rows, and l-diverse or t-close ones where that is asked for. What is
    published is, for each piece, the interval (numbers) or the set (other values) that it covers.

    **Privacy.** None in the sense of this package: k-anonymity is a property of one table, and says nothing about what
    the table tells (`homogeneity_attack`), or about two tables together (`intersection_attack`). There is no
    `privacy_`, and no budget that could be charged.

    **Utility.** Pieces have between k and 2k - 1 rows where ``cuts="relaxed"`` and nothing else is asked for, but for
    rows that are all equal, which are never parted.

    **Complexity.** O(q n log(n / k)) for n rows and q quasi-identifiers, each level sorting the columns it tries.

    Parameters
    ----------
    k : int, default=5
        Rows of a class, at least.
    quasi_identifiers : list of str or int
        What a stranger may know of a person: columns by name or number. Never guessed.
    sensitive : str or int, default=None
        The column that `l` and `t` are about.
    l : int, default=None
        Distinct sensitive values in each class, at least.
    t : float, default=None
        Largest earth mover's distance of a class's sensitive values from those of the table: of ranks for numbers,
        dates and ordered categories, with equal distances otherwise.
    cuts : {"strict", "relaxed"}, default="strict"
        Whether rows with the same value may come to both sides of a cut: relaxed pieces are smaller, and may overlap,
        so that a person can fit into several. Strict ones never do.

    Attributes
    ----------
    groups_ : ndarray of shape (n_rows,)
        The class of each row.
    n_groups_ : int
    n_features_in_, feature_names_in_ :
        As scikit-learn has them.

    Raises
    ------
    ValueError
        If no k-anonymous (l-diverse, t-close) table exists: the whole table in one class is not.

    References
    ----------
    K. LeFevre, D. DeWitt and R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006, sections 2 and 3.

    Examples
    --------
    >>> from dpestim.anonymity import Mondrian
    >>> table = [[21, "flu"], [23, "cold"], [34, "flu"], [38, "ulcer"]]
    >>> Mondrian(2, quasi_identifiers=[0]).fit_transform(table).tolist()
    [['[21, 23]', 'flu'], ['[21, 23]', 'cold'], ['[34, 38]', 'flu'], ['[34, 38]', 'ulcer']]
    """

    def __init__(self, k=5, *, quasi_identifiers=None, sensitive=None, l=None, t=None, cuts="strict"):  # noqa: E741
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.sensitive = sensitive
        self.l = l
        self.t = t
        self.cuts = cuts

    def fit(self, X, y=None):
        """Find the classes of these rows.

        {fit of rows}
        """
        self._find(Table(X))
        return self

    def fit_transform(self, X, y=None):
        """Return the table with quasi-identifiers generalised.

        There is no `transform`: other rows have other classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        Of the same kind as X: an object array, or a frame; other columns as they were, in the same order of rows.
        """
        table = Table(X)
        columns = self._find(table)
        return table.with_columns({place: _texts(column, self.groups_) for place, column in columns.items()})

    def _find(self, table):
        """Set the classes, and return {place: quasi-identifier}."""
        k, l, t = limits(self.k, self.l, self.t, table.n_rows)  # noqa: E741
        if self.cuts not in ("relaxed", "strict"):
            raise ValueError(f"cuts must be 'relaxed' or 'strict', got {self.cuts!r}")
        columns = {place: table.column(place) for place in table.places(self.quasi_identifiers, "quasi_identifiers")}
        if self.sensitive is None and (l is not None or t is not None):
            raise ValueError("sensitive must name the column for l-diversity and t-closeness: pass sensitive=, or "
                             "l=None and t=None")
        secret = None if self.sensitive is None else secret_of(table, self.sensitive, columns)
        allowed = _Allowed(k, l, t, secret)
        everybody = np.arange(table.n_rows)
        if not allowed(everybody):
            raise ValueError("the whole table in one class does not have this diversity, so that no generalisation "
                             "has: take a smaller k or l, or a larger t")
        groups = np.empty(table.n_rows, np.intp)
        n_groups, open_pieces = 0, [everybody]
        ranges = [_Spread(column) for column in columns.values()]
        while open_pieces:
            piece = open_pieces.pop()
            parts = self._cut(piece, ranges, allowed) if len(piece) >= 2 * k else None
            if parts is None:
                groups[piece] = n_groups
                n_groups += 1
            else:
                open_pieces += parts[::-1]
        self.groups_, self.n_groups_ = groups, n_groups
        self.n_features_in_ = len(table.names)
        if all(isinstance(name, str) for name in table.names):
            self.feature_names_in_ = np.array(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return columns

    def _cut(self, piece, ranges, allowed):
        """Return two parts of a piece, along the widest column that allows it, or None."""
        widths = [spread.width(piece) for spread in ranges]
        for j in np.argsort(-np.array(widths), kind="stable"):
            if widths[j] == 0:
                return None  # (all that follow are constant, too)
            codes = ranges[j].codes[piece]
            order = np.argsort(codes, kind="stable")
            half = len(piece) // 2
            if self.cuts == "strict":
                middle = codes[order[half]]
                # the cut is beside the median's value: below it, or above it, whichever is nearer to the middle
                below, upto = int((codes < middle).sum()), int((codes <= middle).sum())
                choices = sorted({below, upto}, key=lambda place: (abs(place - half), place))
            else:
                choices = [half]
            for place in choices:
                left, right = piece[order[:place]], piece[order[place:]]
                if len(left) and len(right) and allowed(left) and allowed(right):
                    return [np.sort(left), np.sort(right)]
        return None


class _Spread:
    """How much of a whole column the rows of a piece cover: of its range, or of its values."""

    def __init__(self, column):
        self.codes = column.codes
        self.positions = column.positions()
        self.is_number = column.is_number
        self.whole = self.positions[-1] - self.positions[0]

    def width(self, piece):
        if not self.whole:
            return 0.0
        codes = self.codes[piece]
        if self.is_number:
            return float(self.positions[codes.max()] - self.positions[codes.min()]) / self.whole
        return (len(np.unique(codes)) - 1) / self.whole


class _Allowed:
    """Whether rows may be a class."""

    def __init__(self, k, l, t, secret):  # noqa: E741
        self.k, self.l, self.t, self.secret = k, l, t, secret
        if secret is not None:
            self.everybody = np.bincount(secret.codes, minlength=len(secret))

    def __call__(self, rows):
        if len(rows) < self.k:
            return False
        if self.l is None and self.t is None:
            return True
        counts = Counts.of(np.zeros(len(rows), np.intp), self.secret.codes[rows])
        if self.l is not None and diversity_of(counts) < self.l:
            return False
        # (a sum of shares in another order may be an ulp beyond: a whole table is as close as can be)
        return self.t is None or closeness_of(counts, self.secret.is_ordered, self.everybody) <= self.t + 1e-12


def _texts(column, groups):
    """Return for each row how its class is written in a column."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    texts = [column.text(codes) for codes in np.split(column.codes[order], starts[1:])]
    return np.array(texts, dtype=object)[groups]
