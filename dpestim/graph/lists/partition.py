"""Edges between the parts of a public partition, and the modularity that follows; proof: ``modularity.md``."""

import numpy as np


def slots_of_parts(codes, n_parts):
    """Return, for each node, how many nodes of higher number are in each part: int64 of shape (n, n_parts)."""
    ones = np.zeros((len(codes) + 1, n_parts), np.int64)
    ones[np.arange(len(codes)), codes] = 1
    return np.cumsum(ones[::-1], axis=0)[::-1][1:]


def by_parts(numbers, codes, n_parts):
    """Return numbers of the users, of edges to each part, added up by the parts of users: a symmetric matrix.

    An entry is the number of edges between two parts; on the diagonal that of edges within a part.
    """
    totals = np.zeros((n_parts, n_parts))
    np.add.at(totals, codes, np.asarray(numbers, float))
    both = totals + totals.T
    np.fill_diagonal(both, np.diag(totals))
    return both


def modularity(edges, variances):
    """Return (modularity, its standard error) from edges between parts and the variances of these; nan without edges.

    The squares in it are debiased: they are what noise makes larger, on average.
    """
    upper = np.triu_indices(len(edges))
    total, noise = edges[upper].sum(), variances[upper].sum()
    if total <= 0 or total**2 <= noise:
        return np.nan, np.nan
    ends = edges.sum(1) + np.diag(edges)
    noise_of_ends = variances.sum(1) + 3 * np.diag(variances)
    within, squares = np.diag(edges).sum(), (ends**2 - noise_of_ends).sum()
    value = within / total - squares / (4 * (total**2 - noise))
    # what one more edge between two parts changes, to first order
    slope = np.eye(len(edges)) / total - within / total**2 + (ends**2).sum() / (2 * total**3)
    slope = slope - (ends[:, None] + ends) / (2 * total**2)
    return value, float(np.sqrt((slope**2 * variances)[upper].sum()))
