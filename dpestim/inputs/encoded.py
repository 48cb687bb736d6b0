"""What `DomainEncoder` makes of a domain: how wide rows are, their largest norm, and whose columns they are."""

import numpy as np

from dpestim import inputs
from dpestim.inputs.declared import shown
from dpestim.inputs.public import PublicColumns, is_column


def block_of(column, name):
    """Return the names of the columns that one becomes."""
    if is_column(column, "numbers"):
        # (another name than that of the raw column, by which a model with a domain tells the two apart)
        return [f"{name}_scaled", f"{name}_missing"] if column.missing else [f"{name}_scaled"]
    return [f"{name}_{'missing' if value is None else value}" for value in column.all_values]


def width_of_block(column):
    """Return how many columns one becomes."""
    return 1 + column.missing if is_column(column, "numbers") else len(column.all_values)


def norm_of(n_columns):
    """Return the largest norm of an encoded row of so many columns, each of which adds 1 at most to its square."""
    return float(np.nextafter(np.sqrt(n_columns), np.inf))


def _is_encoded(column):
    return is_column(column, "numbers") or is_column(column, "categories")


def encodable(domain, names, n_columns):
    """Return the names in the domain of the columns of X, or raise ValueError for one that is not, or of another kind.

    names None: the columns of X are those of the domain, in order.
    """
    if names is None:
        if len(domain) != n_columns:
            raise ValueError(f"X has {n_columns} columns without names, and domain has {len(domain)} columns: pass a "
                             "data frame, or a domain of the same columns, such as domain[[...]]")
        names = list(domain)
    absent = [name for name in names if name not in domain]
    if absent:
        raise ValueError(f"domain must have all columns of X, and lacks {shown(absent)}: declare these columns, or "
                         "leave them out of X")
    wrong = [name for name in names if not _is_encoded(domain[name])]
    if wrong:
        raise ValueError(f"columns of X must be numbers or categories: {shown(wrong)} must be left out of X")
    return list(names)


def norm_for(domain, n_features, target):
    """Return a norm that no row is longer than which a `DomainEncoder` made of columns of this domain, but the target.

    Of all columns that make rows of this width it takes the most: which of them X has is not told by an array.
    """
    domain = domain if isinstance(domain, PublicColumns) else inputs.Domain(domain)
    widths = [width_of_block(column) for name, column in domain.items()
              if _is_encoded(column) and name != target]
    most = [0] + [-1] * n_features  # how many columns make a row of each width, at most
    for width in widths:
        for total in range(n_features, width - 1, -1):
            if most[total - width] >= 0:
                most[total] = max(most[total], most[total - width] + 1)
    if most[n_features] < 1:
        raise ValueError(f"X has {n_features} columns, and DomainEncoder makes {sum(widths)} columns of all columns of "
                         "domain: put DomainEncoder(domain) before the model, and pass the same domain to both")
    return norm_of(most[n_features])
