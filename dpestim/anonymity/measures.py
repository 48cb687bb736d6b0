"""How anonymous a table is, in the three usual senses, and what it cost in detail."""

from numbers import Real

import numpy as np

from dpestim.anonymity.table import Table, classes_of, equivalence_classes, sensitive_codes, whole


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
    counts = counts_of(*_classes_and_codes(X, quasi_identifiers, sensitive))
    return diversity_of(counts, kind, c)


def diversity_of(counts, kind="distinct", c=2.0):
    """Return l of a table of counts (n_classes, n_values)."""
    if kind == "distinct":
        return int((counts > 0).sum(axis=1).min())
    if kind == "entropy":
        shares = counts / counts.sum(axis=1, keepdims=True)
        logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
        return float(np.exp(-(shares * logs).sum(axis=1).max()))
    ranked = -np.sort(-counts, axis=1)
    tails = np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1]  # from the l-th commonest on
    return int((ranked[:, :1] < c * tails).sum(axis=1).min())


def closeness(X, quasi_identifiers, sensitive, *, ordered=None):
    """Return t: how far the sensitive values of a class are from those of the table (Li, Li and Venkatasubramanian).

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
    quasi_identifiers : list of str or int
    sensitive : str or int
    ordered : bool, default=None
        Whether the earth mover's distance is that of ranks (each step between neighbouring values costs 1 / (m - 1)),
        or all values are equally far apart. None: the first for numbers.

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
    table = Table(X)
    column = sensitive_codes(table, sensitive)
    if ordered is None:
        ordered = column.is_number
    return closeness_of(counts_of(equivalence_classes(X, quasi_identifiers), column.codes), ordered)


def closeness_of(counts, ordered, whole_table=None):
    """Return t of a table of counts (n_classes, n_values), against the counts of all rows."""
    everybody = counts.sum(axis=0) if whole_table is None else whole_table
    gaps = counts / counts.sum(axis=1, keepdims=True) - everybody / everybody.sum()
    if not ordered:
        return float(np.abs(gaps).sum(axis=1).max() / 2)
    return float(np.abs(np.cumsum(gaps, axis=1)).sum(axis=1).max() / max(1, counts.shape[1] - 1))


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
        is not published.

    References
    ----------
    J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006, section 2.

    Examples
    --------
    >>> from dpestim.anonymity import certainty_penalty
    >>> certainty_penalty([[1], [2], [9], [11]], [0, 0, 1, 1], [0])  # (0.1 + 0.1 + 0.2 + 0.2) / 4, but for rounding
    0.15000000000000002
    """
    table = Table(X)
    places = table.places(quasi_identifiers, "quasi_identifiers")
    groups = _checked_classes(classes, table.n_rows)
    kept = groups >= 0
    if not kept.any():
        return 1.0
    lost = np.full((table.n_rows, len(places)), 1.0)
    for j, place in enumerate(places):
        column = table.column(place)
        if len(column) == 1:
            lost[kept, j] = 0
            continue
        if column.is_number:
            numbers = column.values[column.codes].astype(float)
            low, high = np.full(groups.max() + 1, np.inf), np.full(groups.max() + 1, -np.inf)
            np.minimum.at(low, groups[kept], numbers[kept])
            np.maximum.at(high, groups[kept], numbers[kept])
            width = (high - low) / float(column.values[-1] - column.values[0])
        else:
            present = counts_of(groups[kept], column.codes[kept], len(column)) > 0
            width = (present.sum(axis=1) - 1) / (len(column) - 1)
        lost[kept, j] = width[groups[kept]]
    return float(lost.mean())


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
    sizes = np.bincount(groups[groups >= 0])
    return int((sizes.astype(object) ** 2).sum() + len(groups) * int((groups < 0).sum()))


def counts_of(classes, codes, n_values=None):
    """Return how often each value occurs in each class, as a table (n_classes, n_values)."""
    n_values = int(codes.max()) + 1 if n_values is None else n_values
    n_classes = int(classes.max()) + 1
    return np.bincount(classes * n_values + codes, minlength=n_classes * n_values).reshape(n_classes, n_values)


def _classes_and_codes(X, quasi_identifiers, sensitive):
    table = Table(X)
    places = table.places(quasi_identifiers, "quasi_identifiers")
    column = sensitive_codes(table, sensitive)
    if column.name in [table.names[place] for place in places]:
        raise ValueError("sensitive must not be a quasi-identifier: a stranger would know it")
    return classes_of(np.column_stack([table.column(place).codes for place in places])), column.codes


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
