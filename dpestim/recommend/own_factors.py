"""What a user's own ratings say at known means and factors of items: a mean and factors of the user, by least squares.

It happens on the user's device. What it returns for a user depends on the user's row and on what is published.
"""

from itertools import pairwise

import numpy as np

from dpestim.recommend.ratings import Ratings
from dpestim.records import record

#: A user's mean and factors are kept near 0 as by so many ratings.
_OWN, _RIDGE = 2.0, 1.0
#: Numbers that are held at a time, about.
_CELLS = 1 << 22


@record(eq=False)
class FactorRound:
    """What the server of `LDPMatrixFactorization` tells the users of one round: all of it is public.

    Parameters
    ----------
    number : int
        From 0; it also says which words of a seed are those of this round.
    item_means : ndarray of shape (n_items,)
        Means of items, for ratings that are scaled to [-1, 1].
    item_factors : ndarray of shape (n_items, n_components), or (n_items, 0)
        Factors of items. Without columns users answer with directions of means.

    Examples
    --------
    >>> from dpestim.recommend import LDPMatrixFactorization
    >>> LDPMatrixFactorization(1.0, bounds=(1, 5), n_items=2).next_round().item_factors.shape
    (2, 0)
    """

    number: int
    item_means: np.ndarray
    item_factors: np.ndarray


def blocks_of(ratings, n_components):
    """Return slices of users whose ratings and factors take little memory."""
    width = (n_components + 2) ** 2
    ends = ratings.starts[1:] * (n_components + 2) + np.arange(1, ratings.n_users + 1) * width
    cuts = np.flatnonzero(np.diff(ends // _CELLS)) + 1
    edges = [0, *cuts.tolist(), ratings.n_users]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]


def of_users(ratings, values, users):
    """Return (`Ratings` of some users, their values)."""
    per_user = ratings.per_user[users]
    starts = np.concatenate([[0], np.cumsum(per_user)])
    at = np.arange(starts[-1]) + np.repeat(ratings.starts[users] - starts[:-1], per_user)
    return Ratings(starts, ratings.items[at], values[at], ratings.n_items), values[at]


def own_factors(ratings, values, users, means, factors):
    """Return (own, residuals): an array of a mean and factors of each of some users, and what of ratings is left."""
    starts = ratings.starts[users.start : users.stop + 1]
    at = slice(starts[0], starts[-1])
    items, d = ratings.items[at], factors.shape[1]
    left = values[at] - means[items]
    known = np.concatenate([np.ones((len(items), 1)), factors[items]], axis=1)
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    n = len(starts) - 1
    square, right = np.zeros((n, d + 1, d + 1)), np.zeros((n, d + 1))
    with np.errstate(all="ignore"):  # (whatever is broadcast, a warning would tell of the ratings)
        for a in range(d + 1):
            right[:, a] = np.bincount(owner, known[:, a] * left, n)
            for b in range(a, d + 1):
                square[:, a, b] = square[:, b, a] = np.bincount(owner, known[:, a] * known[:, b], n)
        square[:, range(d + 1), range(d + 1)] += [_OWN] + [_RIDGE] * d
        own = _solved(square, right)
        return own, left - np.einsum("ij,ij->i", own[owner], known)


def _solved(square, right):
    """Return the solution of each user, NaN where equations have none in floats: an error would tell of the ratings."""
    try:
        return np.linalg.solve(square, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(square) == 1:
            return np.full_like(right, np.nan)
        return np.concatenate([_solved(square[at : at + 1], right[at : at + 1]) for at in range(len(square))])


def directions(ratings, values, users, means, factors):
    """Return the rows of some users' directions: unit vectors by which items' numbers fit the ratings better, or 0.

    Of means where there are no factors (no columns), else of factors, item after item.
    """
    own, left = own_factors(ratings, values, users, means, factors)
    starts = ratings.starts[users.start : users.stop + 1]
    owner = np.repeat(np.arange(len(own)), np.diff(starts))
    items, d = ratings.items[starts[0] : starts[-1]], factors.shape[1]
    found = np.zeros((len(own), ratings.n_items, max(d, 1)))
    with np.errstate(all="ignore"):
        found[owner, items] = left[:, None] * (own[owner, 1:] if d else 1.0)
        found = found.reshape(len(own), -1)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        found /= np.where(lengths > 0, lengths, 1.0)
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)
