"""What trees say together: functions of public numbers and of noisy leaves (`forest.md`)."""

import math

import numpy as np

#: The logarithms of so many trees count as the root of so many; of more, they are averaged.
_APART = 30


def levels(leaves):
    """Return levels of splits for about so many leaves: 1 to 8."""
    return min(8, max(1, math.floor(math.log2(max(leaves, 1.0)))))


def together(n_trees, common):
    """Return by how much the mean over trees is multiplied, which have this part of what they tell in common."""
    return 1.0 / (common + (1.0 - common) / n_trees)


def alike(n_trees):
    """Return the part that trees of classes tell alike such that their mean counts as the root of their number."""
    few = math.sqrt(min(n_trees, _APART))
    return max((n_trees / few - 1) / (n_trees - 1), 0.0) if n_trees > 1 else 1.0


def halved(n_columns, depth):
    """Return which part of a sum of functions of the columns, all alike, one tree tells: a split tells half of its own.

    With many columns trees tell different things, and with one the same.
    """
    return 1.0 - (1.0 - 0.5 / n_columns) ** depth


def evened(ratios, rows, power):
    """Return what makes products of such powers of ratios have a mean of 1 for each class, in logarithms.

    Shares have a floor, lest noise rule a class out: of a rare class all leaves of many trees would say too much, and a
    class of 1 % was said to be one of 16 % by a hundred. (As if trees were independent, as their noise is.)

    Parameters
    ----------
    ratios : ndarray of shape (trees, leaves, classes)
        Shares of classes over those of all rows.
    rows : ndarray of shape (trees, leaves)
        Noisy shares of rows.
    power : float
    """
    return -np.log(np.einsum("tl,tlk->tk", rows, ratios**power)).sum(axis=0)


def balanced(values, rows, prior):
    """Return shares of classes in leaves such that each tree has those of all rows as its mean.

    Parameters
    ----------
    values : ndarray of shape (trees, leaves, classes)
    rows : ndarray of shape (trees, leaves)
        Noisy shares of rows.
    prior : ndarray of shape (classes,)
    """
    for _ in range(20):  # (shares are in proportion, and sum to 1, in turn)
        values = values * (prior / np.einsum("tl,tlk->tk", rows, values))[:, None, :]
        values = values / values.sum(axis=2, keepdims=True)
    return values
