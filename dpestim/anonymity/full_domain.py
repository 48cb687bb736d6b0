"""Full-domain generalisation: each column is coarsened alike for all rows, along a hierarchy that was declared."""

import itertools
import math
from fractions import Fraction
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from dpestim.anonymity.measures import Counts, limits, lost_of
from dpestim.anonymity.table import Table, classes_of, secret_of
from dpestim.docstrings import Documented
from dpestim.inputs.safe_errors import attempt

#: How many combinations of levels are looked at before a table is called too large.
MOST_NODES = 1 << 18


class FullDomainGeneralization(Documented, BaseEstimator):
    """Make a table k-anonymous by one coarsening of all rows. **Not differentially private**: for comparison only.

    Of all combinations of levels, of which none can be lowered, the one that loses least is taken: first fewest rows
    left out, then least of the levels' heights. Coarsening keeps what is k-anonymous so, so that combinations above one
    that suffices are never tried (Samarati's and Incognito's pruning), and the answer is the best of all.

    **Privacy.** None in the sense of this package, see `Mondrian`.

    **Utility.** One rare row can force a whole column to be coarsened; `max_suppression` leaves such rows out.

    **Complexity.** O(product of the numbers of levels) times the number of different rows, after one pass.

    Parameters
    ----------
    k : int, default=5
    hierarchies : dict
        For each quasi-identifier, by name or number, its levels from fine to coarse; each a positive number (the width
        of intervals that start at multiples of it), a dict from value to a text, or a callable. Level 0, the value
        itself, and the last, ``"*"``, are there without being named. Levels must nest: what one puts together, the
        next must not part. Widths and values count as the decimals that they are written as: 0.6 is in [0.6, 0.7).
        Cells of these columns become texts, also where level 0 is taken.
    max_suppression : float, default=0.0
        Share of the rows that may be left out, from 0 to 1.
    sensitive : str or int, default=None
    l : int, default=None
        Distinct sensitive values in each class, at least.

    Attributes
    ----------
    levels_ : dict
        The level taken for each quasi-identifier, 0 for the values themselves.
    groups_ : ndarray of shape (n_rows,)
        The class of each row, -1 for one that is left out.
    n_groups_ : int
    n_suppressed_ : int
        Rows left out.
    penalty_ : float
        From 0 (nothing was coarsened) to 1 (nothing is left): the mean, over rows and columns, of the width of what is
        written as a share of the column's, as in `certainty_penalty`; 1 for a row that is left out.

    References
    ----------
    P. Samarati, "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001, sections 3 to 5;
    K. LeFevre, D. DeWitt and R. Ramakrishnan, "Incognito: efficient full-domain k-anonymity", SIGMOD 2005, section 3.

    Examples
    --------
    >>> from dpestim.anonymity import FullDomainGeneralization
    >>> table = [[21, "flu"], [23, "cold"], [34, "flu"], [38, "ulcer"]]
    >>> FullDomainGeneralization(2, hierarchies={0: [10, 20]}).fit_transform(table).tolist()
    [['[20, 30)', 'flu'], ['[20, 30)', 'cold'], ['[30, 40)', 'flu'], ['[30, 40)', 'ulcer']]
    """

    def __init__(self, k=5, *, hierarchies=None, max_suppression=0.0, sensitive=None, l=None):  # noqa: E741
        self.k = k
        self.hierarchies = hierarchies
        self.max_suppression = max_suppression
        self.sensitive = sensitive
        self.l = l

    def fit(self, X, y=None):
        """Find the levels.

        {fit of rows}
        """
        self._find(Table(X))
        return self

    def fit_transform(self, X, y=None):
        """Return the generalised table, without the rows that are left out.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        Of the same kind as X: an object array, or a frame.
        """
        table = Table(X)
        ladders = self._find(table)
        kept = self.groups_ >= 0
        texts = {place: ladder.texts(level)[ladder.codes][kept]
                 for (place, ladder), level in zip(ladders.items(), self.levels_.values())}
        return (table if kept.all() else table.take(kept)).with_columns(texts)

    def _find(self, table):
        if not isinstance(self.hierarchies, dict) or not self.hierarchies:
            raise ValueError("hierarchies must be a dict from quasi-identifiers to lists of levels")
        k, l, _ = limits(self.k, self.l, None, table.n_rows)  # noqa: E741
        share = self.max_suppression
        if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= share <= 1:
            raise ValueError(f"max_suppression must be a number from 0 to 1, got {share!r}")
        if l is not None and self.sensitive is None:
            raise ValueError("sensitive must name the column for l-diversity: pass sensitive=, or l=None")
        places = table.places(list(self.hierarchies), "hierarchies")
        secret = None if self.sensitive is None else secret_of(table, self.sensitive, places)
        ladders = {place: _Ladder(table.column(place), levels)
                   for place, levels in zip(places, self.hierarchies.values())}
        heights = [len(ladder.maps) for ladder in ladders.values()]
        if np.prod(heights, dtype=object) > MOST_NODES:
            raise ValueError(f"hierarchies must have at most {MOST_NODES} combinations of levels")
        search = _Search(table, [*ladders.values()], k, l, secret, int(Fraction(str(share)) * table.n_rows))
        found = search.best(heights)
        if found is None:
            raise ValueError("the whole table in one class does not have this diversity, so that no generalisation "
                             "has: take a smaller k or l")
        levels, groups = found
        self.levels_ = dict(zip(self.hierarchies, levels))
        self.penalty_ = float(np.mean([
            lost_of(ladder.column, np.where(groups < 0, -1, ladder.maps[level][ladder.codes]))
            for ladder, level in zip(ladders.values(), levels)]))
        self.n_suppressed_ = int((groups < 0).sum())
        kept = groups >= 0
        groups[kept] = np.unique(groups[kept], return_inverse=True)[1]
        self.groups_, self.n_groups_ = groups, int(groups.max(initial=-1)) + 1
        self.n_features_in_ = len(table.names)
        return ladders


class _Ladder:
    """The levels of one column: for each, a map from the codes of its values to coarser codes."""

    def __init__(self, column, levels):
        if isinstance(levels, str | dict) or not hasattr(levels, "__iter__"):
            raise ValueError(f"hierarchies must have a list of levels for {column.name!r}")
        self.codes, self.column = column.codes, column
        self._texts = [np.array([str(value) for value in column.values], dtype=object)]
        for level in list(levels):
            self._texts.append(np.array([_coarse(value, level, column.name) for value in column.values], dtype=object))
        self._texts.append(np.full(len(column), "*", dtype=object))
        coarser = [np.unique(texts.astype(str), return_inverse=True)[1] for texts in self._texts[1:]]
        self.maps = [np.arange(len(column)), *coarser]
        for finer, coarser in itertools.pairwise(self.maps):
            pairs = np.unique(np.column_stack([finer, coarser]), axis=0)
            if len(np.unique(pairs[:, 0])) < len(pairs):
                raise ValueError(f"levels of {column.name!r} must nest: two values that are equal at one level must be "
                                 "equal at the next")

    def texts(self, level):
        return self._texts[level]


def _coarse(value, level, name):
    """Return the text of a value on a level."""
    if isinstance(level, dict):
        if value not in level:
            raise ValueError(f"a level of {name!r} must map every value of the column")
        return str(level[value])
    if callable(level):
        text, error = attempt(lambda: str(level(value)))
        if error:
            raise ValueError(f"a level of {name!r} must map every value, and raised an error for some value")
        return text
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < level < np.inf:
        raise ValueError(f"a level of {name!r} must be a positive width, a dict or a callable, got {level!r}")
    if not isinstance(value, Real | np.number) or isinstance(value, bool):
        raise ValueError(f"a level of {name!r} is a width, and the column does not hold numbers: give a dict or a "
                         "callable")
    width = Fraction(str(level))
    low = math.floor(Fraction(str(value)) / width) * width
    return f"[{_decimal(low)}, {_decimal(low + width)})"


def _decimal(end):
    return str(end.numerator if end.denominator == 1 else float(end))


class _Search:
    """The best combination of levels, from below."""

    def __init__(self, table, ladders, k, l, secret, spare):  # noqa: E741
        codes = np.column_stack([ladder.codes for ladder in ladders])
        # rows that are alike stay alike on every level: only different ones are looked at
        self.rows = classes_of(codes)
        first = np.unique(self.rows, return_index=True)[1]
        self.different, self.sizes = codes[first], np.bincount(self.rows)
        self.values = None if l is None else Counts.of(self.rows, secret.codes)
        self.ladders, self.k, self.l, self.spare = ladders, k, l, spare

    def best(self, heights):
        """Return (levels, class of each row or -1) of the least loss, or None where nothing suffices."""
        found = []
        for levels in sorted(itertools.product(*map(range, heights)), key=lambda levels: (sum(levels), levels)):
            if any(all(a <= b for a, b in zip(low, levels)) for low, _, _ in found):
                continue  # above one that suffices
            groups, left_out = self.classes(levels)
            n_left_out = int(self.sizes[left_out].sum())
            if n_left_out <= self.spare and not left_out.all():
                loss = sum(level / max(1, height - 1) for level, height in zip(levels, heights))
                found.append((levels, (n_left_out, loss, levels), np.where(left_out, -1, groups)))
        if not found:
            return None
        levels, _, groups = min(found, key=lambda item: item[1])
        return levels, groups[self.rows]

    def classes(self, levels):
        """Return (the class of each different row, whether its class is too small)."""
        groups = classes_of(np.column_stack([
            ladder.maps[level][self.different[:, j]] for j, (ladder, level) in enumerate(zip(self.ladders, levels))]))
        too_small = np.bincount(groups, self.sizes) < self.k
        if self.l is not None:
            together = Counts.of(groups[self.values.classes], self.values.codes, self.values.counts)
            too_small |= together.n_distinct() < self.l
        return groups, too_small[groups]
