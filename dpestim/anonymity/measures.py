"""How anonymous a table is, in the three usual senses, and what it cost in detail."""

from numbers import Real

import numpy as np

from dpestim.anonymity.table import Table, equivalence_classes, looked_up, whole
from dpestim.records import record


def anonymity(X, quasi_identifiers):
    """Return k: the size of the smallest class of rows that look alike (Sweeney 2002, definition 3).

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
    quasi_identifiers : list of str or int
        What a stranger may know of a person.

    Returns
    -------
    int
        At least 1: any table is 1-anonymous. It bounds nobody's knowledge, see `homogeneity_attack`.

    References
    ----------
    L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.

    Examples
    --------
    >>> from dpestim.anonymity import anonymity
    >>> anonymity([["[20, 30]", "flu"], ["[20, 30]", "flu"]], [0])
    2
    """
    return int(np.bincount(equivalence_classes(X, quasi_identifiers)).min())


def diversity(X, quasi_identifiers, sensitive, *, kind="distinct", c=2.0):
    """Return l: how different the sensitive values of each class are (Machanavajjhala et al. 2007, section 4).

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
    quasi_identifiers : list of str or int
    sensitive : str or int
        The column that is to stay secret.
    kind : {"distinct", "entropy", "recursive"}, default="distinct"
        Distinct values; the exponential of the entropy; or the largest l for which the commonest value is less than
        `c` times as frequent as all but the l - 1 commonest together (0 where no l is).
    c : float, default=2.0
        Of ``"recursive"``.

    Returns
    -------
    int or float
        The smallest over all classes; a float for ``"entropy"``.

    References
    ----------
    A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity",
    ACM TKDD 1(1), 2007, definitions 4.1 and 4.2.

    Examples
    --------
    >>> from dpestim.anonymity import diversity
    >>> table = [["a", "flu"], ["a", "cold"], ["b", "flu"], ["b", "flu"]]
    >>> diversity(table, [0], 1)
    1
    """
    if kind not in ("distinct", "entropy", "recursive"):
        raise ValueError(f"kind must be 'distinct', 'entropy' or 'recursive', got {kind!r}")
    if not isinstance(c, Real) or isinstance(c, bool) or not 0 < c < np.inf:
        raise ValueError(f"c must be a positive number, got {c!r}")
    classes, secret = looked_up(X, quasi_identifiers, sensitive)
    return diversity_of(Counts.of(classes, secret.codes), kind, c)


@record
class Counts:
    """How often values occur in classes, where they do: sorted by class, then value; as long as the table at most."""

    classes: np.ndarray
    codes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, classes, codes, weights=None):
        """Return the counts of rows of these classes and codes of values."""
        n_values = int(codes.max()) + 1
        pairs, at = np.unique(classes.astype(np.int64) * n_values + codes, return_inverse=True)
        counts = np.bincount(at, weights).astype(np.int64)
        return cls(pairs // n_values, pairs % n_values, counts)

    @property
    def starts(self):
        """Where classes start."""
        return np.flatnonzero(np.diff(self.classes, prepend=-1))

    @property
    def shares(self):
        """What part of its class each value is."""
        return self.counts / np.repeat(np.add.reduceat(self.counts, self.starts), self.n_distinct())

    def cumulated(self):
        """Return what part of its class each value is together with those before it."""
        sums, sizes = np.cumsum(self.counts), np.add.reduceat(self.counts, self.starts)
        return (sums - np.repeat(np.cumsum(sizes) - sizes, self.n_distinct())) / np.repeat(sizes, self.n_distinct())

    def n_distinct(self):
        """Return how many values each class has."""
        return np.diff(self.starts, append=len(self.counts))

    def commonest(self):
        """Return (the commonest value of each class, the first of several; its share)."""
        shares = self.shares
        order = np.lexsort((self.codes, -shares, self.classes))
        first = order[self.starts]  # (classes are where they were)
        return self.codes[first], shares[first]


def diversity_of(counts, kind="distinct", c=2.0):
    """Return l of `Counts`."""
    if kind == "distinct":
        return int(counts.n_distinct().min())
    if kind == "entropy":
        shares = counts.shares
        return float(np.exp(-np.add.reduceat(shares * np.log(shares), counts.starts).max()))
    ranked = counts.counts[np.lexsort((-counts.counts, counts.classes))]
    best = []
    for start, stop in zip(counts.starts, [*counts.starts[1:], len(ranked)]):
        own = ranked[start:stop]
        tails = np.cumsum(own[::-1])[::-1]  # from the l-th commonest on
        best.append(int((own[0] < c * tails).sum()))
    return min(best)


def closeness(X, quasi_identifiers, sensitive, *, ordered=None):
    """Return t: how far the sensitive values of a class are from those of the table (Li, Li and Venkatasubramanian).

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
    quasi_identifiers : list of str or int
    sensitive : str or int
    ordered : bool, default=None
        Whether the earth mover's distance is that of ranks (each step between neighbouring values costs 1 / (m - 1)),
        or all values are equally far apart. None: the first for numbers, dates and ordered categories.

    Returns
    -------
    float
        From 0 to 1, the largest over all classes.

    References
    ----------
    N. Li, T. Li and S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007,
    section 5.

    Examples
    --------
    >>> from dpestim.anonymity import closeness
    >>> closeness([["a", 1], ["a", 3], ["b", 1], ["b", 3]], [0], 1)
    0.0
    """
    classes, secret = looked_up(X, quasi_identifiers, sensitive)
    if ordered is None:
        ordered = secret.is_ordered
    elif ordered and not secret.is_ordered:
        raise ValueError("ordered must be False for values without an order: set ordered=False, or pass numbers or "
                         "ordered categories")
    return closeness_of(Counts.of(classes, secret.codes), ordered, np.bincount(secret.codes))


def closeness_of(counts, ordered, everybody):
    """Return t of `Counts`, against how often all rows have each value."""
    whole = everybody / everybody.sum()
    starts = counts.starts
    if not ordered:
        own = whole[counts.codes]
        return max(0.0, float(np.add.reduceat(np.abs(counts.shares - own) - own, starts).max()) + 1) / 2
    # cumulated shares of a class are constant from one of its values to the next; those of the table rise
    rising = np.cumsum(whole)
    sums = np.concatenate(([0.0], np.cumsum(rising)))
    level = counts.cumulated()
    ends = np.append(counts.codes[1:], 0)
    ends[np.append(starts[1:], len(ends)) - 1] = len(whole)
    turn = np.clip(np.searchsorted(rising, level), counts.codes, ends)
    off = level * (2 * turn - counts.codes - ends) - 2 * sums[turn] + sums[counts.codes] + sums[ends]
    total = np.add.reduceat(off, starts) + sums[counts.codes[starts]]  # (before its first value a class has none)
    return float(max(total.max(), 0.0)) / max(1, len(whole) - 1)


def certainty_penalty(X, classes, quasi_identifiers):
    """Return what publishing classes in place of rows loses: the normalised certainty penalty.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        The table before.
    classes : array-like of shape (n_rows,)
        The class that each row is published in (`groups_`); -1 for a row that is not published.
    quasi_identifiers : list of str or int

    Returns
    -------
    float
        From 0 (nothing was coarsened) to 1 (nothing is left): the mean, over rows and columns, of the width of the
        row's class as a share of the column's: of the range of numbers, of the number of other values. 1 for a row that
        is not published. It is about who is in a class: right where classes are written as tightly as their members
        allow, as those of `Mondrian`; `FullDomainGeneralization.penalty_` is about what its levels write.

    References
    ----------
    J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006, section 2.

    Examples
    --------
    >>> from dpestim.anonymity import certainty_penalty
    >>> round(certainty_penalty([[1], [2], [9], [11]], [0, 0, 1, 1], [0]), 9)  # (0.1 + 0.1 + 0.2 + 0.2) / 4
    0.15
    """
    table = Table(X)
    places = table.places(quasi_identifiers, "quasi_identifiers")
    groups = _checked_classes(classes, table.n_rows)
    return float(np.mean([lost_of(table.column(place), groups) for place in places]))


def lost_of(column, groups):
    """Return, for each row, the width of its class as a share of a column's; 1 where the class is -1."""
    lost, kept = np.ones(len(groups)), groups >= 0
    if len(column) == 1 or not kept.any():
        return np.where(kept, 0.0, lost)
    if column.is_number:
        numbers = column.positions()
        low, high = np.full(groups.max() + 1, np.inf), np.full(groups.max() + 1, -np.inf)
        np.minimum.at(low, groups[kept], numbers[column.codes[kept]])
        np.maximum.at(high, groups[kept], numbers[column.codes[kept]])
        with np.errstate(invalid="ignore"):  # (classes that nobody is in)
            width = (high - low) / (numbers[-1] - numbers[0])
    else:
        counts = Counts.of(groups[kept], column.codes[kept])
        width = np.zeros(groups.max() + 1)
        width[counts.classes[counts.starts]] = (counts.n_distinct() - 1) / (len(column) - 1)
    lost[kept] = width[groups[kept]]
    return lost


def discernibility(classes):
    """Return the discernibility metric: for each row, how many it cannot be told from (Bayardo and Agrawal 2005).

    Parameters
    ----------
    classes : array-like of shape (n_rows,)
        Numbers of classes (`groups_`); -1 for a row that is not published, which counts as all rows.

    Returns
    -------
    int

    References
    ----------
    R. Bayardo and R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005, section 2.

    Examples
    --------
    >>> from dpestim.anonymity import discernibility
    >>> discernibility([0, 0, 1, 1, 1])
    13
    """
    groups = _checked_classes(classes, len(np.atleast_1d(classes)))
    sizes = np.unique(groups[groups >= 0], return_counts=True)[1]
    return int((sizes.astype(object) ** 2).sum() + len(groups) * int((groups < 0).sum()))


def _checked_classes(classes, n_rows):
    groups = np.asarray(classes)
    if groups.shape != (n_rows,) or groups.dtype.kind not in "iu" or not n_rows or groups.min() < -1:
        raise ValueError("classes must be one integer for each row: the number of its class, or -1")
    return groups.astype(np.intp)


def limits(k, l, t, n_rows):  # noqa: E741 (the field's name)
    """Return checked (k, l or None, t or None)."""
    k = whole(k, "k", 1)
    if k > n_rows:
        raise ValueError(f"k must be at most the number of rows, {n_rows}, got {k}")
    if l is not None:
        l = whole(l, "l", 1)  # noqa: E741
    if t is not None and (not isinstance(t, Real) or isinstance(t, bool) or not 0 <= t <= 1):
        raise ValueError(f"t must be None or a number from 0 to 1, got {t!r}")
    return k, l, t
