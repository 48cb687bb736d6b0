"""The truth for a few users and small alphabets: the law of all shuffled messages, enumerated."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np

from dpestim.privacy.rounding import amount, whole

#: Places of the arrays that one law of a multiset takes, and data sets of the others, the most.
_PLACES, _DATA_SETS = 1 << 16, 1 << 14


def exact_delta(rows, n, epsilon):
    """Return the delta of n shuffled messages at an epsilon, over all data sets; exact but for the rounding of floats.

    The worst case over both inputs of the victim, in both orders, and over all inputs of the others, of whom only how
    many have which input matters. For tests: what it returns may be below the truth by the rounding of some n sums.

    Parameters
    ----------
    rows : sequence of rows
        The law of one message for each input.
    n : int
        Users, a few.
    epsilon : float or array-like of shape (n_epsilons,)
        From 0 on.

    Returns
    -------
    float or ndarray of shape (n_epsilons,)

    Examples
    --------
    >>> from dpestim.shuffle.amplification import blanket_delta, exact_delta
    >>> rows = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(exact_delta(rows, 1, 0.5), 4), exact_delta(rows, 6, 0.5) <= blanket_delta(6, rows, 0.5)
    (0.3378, True)
    """
    rows = np.array([[float(Fraction(x)) for x in row] for row in rows])
    n, (d, k) = whole(n, "n"), rows.shape
    shape = (n + 1,) * (k - 1)
    if math.prod(shape) > _PLACES or math.comb(n + d - 2, n - 1) > _DATA_SETS:
        raise ValueError("n and the alphabet must be small enough for all data sets to be enumerated")
    odds = np.exp([float(amount(e, "epsilon")) for e in np.atleast_1d(epsilon).tolist()])
    worst = np.zeros(odds.size)
    for others in combinations_with_replacement(range(d), n - 1):
        law = np.zeros(shape)
        law[(0,) * (k - 1)] = 1.0
        for x in others:
            law = _more(law, rows[x])
        seen = [_more(law, row) for row in rows]
        for a, b in permutations(range(d), 2):
            over = np.maximum(seen[a].reshape(-1) - odds[:, None] * seen[b].reshape(-1), 0.0).sum(axis=1)
            worst = np.maximum(worst, over)
    return float(worst[0]) if np.ndim(epsilon) == 0 else worst


def _more(law, row):
    """Return the law of the histogram of outputs (all but the last) with one message more."""
    out = row[-1] * law
    for y, p in enumerate(row[:-1]):
        place = [slice(None)] * law.ndim
        source = list(place)
        place[y], source[y] = slice(1, None), slice(None, -1)
        out[tuple(place)] += p * law[tuple(source)]
    return out
