"""Amplification by shuffling: (epsilon, delta) of all messages together, from the law of one; numbers, proven.

Each bound is a reduction (`reductions.py`) whose divergence is computed with all rounding upward (`sums.py`).
"""

import math

from dpestim.privacy.rounding import amount, crossing, float_down, float_up, whole
from dpestim.shuffle.amplification.closed import clones_guess
from dpestim.shuffle.amplification.reductions import local_epsilon, pair_of_clones, pairs_of

#: More users than there will be; beyond, floats could not tell them apart.
_MOST_USERS = 10**15


def clones(n, epsilon0, delta, *, colluding=0):
    """Return epsilon of n shuffled messages of any epsilon0-local randomizer, from the clones of a victim.

    Parameters
    ----------
    n : int
        Users whose messages are shuffled, of whom one is looked at.
    epsilon0 : float
        The local epsilon of everybody's randomizer, above 0 and at most 80.
    delta : float
        Above 0 and below 1.
    colluding : int, default=0
        Users among the n who tell the analyser what they sent, below n.

    Returns
    -------
    float
        An upper bound, at most epsilon0.

    Notes
    -----
    **Privacy.** Neighbours: data sets of n users, one of whom has another input; the view is the multiset of all
    messages, and the shuffler is trusted. Proof: ``bounds.md``. **Complexity.** O(log n) transforms of at most 8,192
    places for each of some ten epsilons, whatever n is.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar, "Hiding among the clones: a simple and nearly optimal analysis of privacy
    amplification by shuffling", FOCS 2021 (the reduction, there computed in blocks with tails cut off).

    Examples
    --------
    >>> from dpestim.shuffle.amplification import clones
    >>> round(clones(10_000, 1.0, 1e-6), 4)
    0.053
    """
    return _epsilon((pair_of_clones,), local_epsilon(epsilon0), n, delta, colluding)


def clones_delta(n, epsilon0, epsilon, *, colluding=0):
    """Return delta at an epsilon from 0 on, as `clones` returns epsilon at a delta.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import clones_delta
    >>> clones_delta(10_000, 1.0, 0.054) < 1e-6
    True
    """
    return _delta((pair_of_clones,), local_epsilon(epsilon0), _honest(n, colluding), amount(epsilon, "epsilon"))


def blanket(n, law, delta, *, colluding=0):
    """Return epsilon of n shuffled messages of one law, from the part that all inputs' messages have in common.

    The best that follows from taking everybody's law apart (``bounds.md`` says what that means and proves it), so never
    above `clones` but for the grid.

    Parameters
    ----------
    n : int
        Users whose messages are shuffled.
    law : Randomizer or sequence of rows
        A law of `dpestim.local` whose structure is known (randomised response, unary encoding, local hashing, Hadamard
        response, PM, SW) or that sends a code of a small alphabet; or a row of probabilities for each input, at most
        4,096 in all.
    delta : float
        Above 0 and below 1.
    colluding : int, default=0
        Users among the n who tell the analyser what they sent, below n.

    Returns
    -------
    float
        An upper bound, at most the local epsilon of the law.

    Raises
    ------
    ValueError
        For arguments that do not fit, and for laws whose common part is not known (take `clones`).

    References
    ----------
    B. Balle, J. Bell, A. Gascon, K. Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019, section 5; P. Su,
    H. Cheng, H. Wang, "Decomposition-based optimal bounds for privacy amplification via shuffling", arXiv 2504.07414,
    2025 (that it is the best, and by transforms).

    Examples
    --------
    >>> from dpestim.shuffle.amplification import blanket, clones
    >>> rows = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(blanket(10_000, rows, 1e-6), 4), round(clones(10_000, 1.0986, 1e-6), 4)
    (0.0489, 0.0608)
    """
    return _epsilon(_known(law), local_epsilon(law), n, delta, colluding)


def blanket_delta(n, law, epsilon, *, colluding=0):
    """Return delta at an epsilon from 0 on, as `blanket` returns epsilon at a delta.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import blanket_delta
    >>> blanket_delta(10_000, [[0.75, 0.25], [0.25, 0.75]], 0.05) < 1e-6
    True
    """
    return _delta(_known(law), local_epsilon(law), _honest(n, colluding), amount(epsilon, "epsilon"))


def best(n, law, delta, *, colluding=0):
    """Return the least epsilon that is proven here: `blanket` where the law is known, else `clones`.

    Parameters
    ----------
    n : int
        Users whose messages are shuffled.
    law : Randomizer, sequence of rows, or float
        As for `blanket`; of a law that it does not take, and of a number, only the local epsilon counts.
    delta : float
        Above 0 and below 1.
    colluding : int, default=0
        Users among the n who tell the analyser what they sent, below n.

    Returns
    -------
    float
        An upper bound, at most the local epsilon; infinite where that is, and nothing else is known.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import best
    >>> round(best(1, 2.0, 1e-6), 4), best(1000, 2.0, 1e-6) < 1
    (2.0, True)
    """
    return _epsilon(_best(law), local_epsilon(law), n, delta, colluding)


def best_delta(n, law, epsilon, *, colluding=0):
    """Return delta at an epsilon from 0 on, as `best` returns epsilon at a delta.

    Examples
    --------
    >>> from dpestim.shuffle.amplification import best_delta
    >>> best_delta(10_000, 2.0, 2.0)
    0.0
    """
    return _delta(_best(law), local_epsilon(law), _honest(n, colluding), amount(epsilon, "epsilon"))


def _known(law):
    pairs = pairs_of(law)
    if pairs is None:
        raise ValueError("law must have a known common part, which subset selection, relaxed laws, laws with many "
                         "outputs and laws that reveal an input do not have: take clones")
    return pairs


def _best(law):
    """Return the reductions to be tried, of which the worst counts."""
    pairs = pairs_of(law) if hasattr(law, "transition_matrix") or hasattr(law, "__len__") else None
    return (pair_of_clones,) if pairs is None else pairs


def _honest(n, colluding):
    n, colluding = whole(n, "n"), whole(colluding, "colluding", 0)
    if colluding >= n:
        raise ValueError("colluding must be less than n")
    if n > _MOST_USERS:
        raise ValueError(f"n must be at most {_MOST_USERS}")
    return n - colluding


def _delta(pairs, local, n, epsilon):
    """Return delta at an exact epsilon, where n users follow the protocol; `local`: from where on it is 0."""
    if epsilon >= local:
        return 0.0
    if local == math.inf and pairs == (pair_of_clones,):
        return 1.0
    odds = float_up(local)
    return max((pair_of_clones(odds) if pair is pair_of_clones else pair).delta(n, float_down(epsilon))
               for pair in pairs)


def _epsilon(pairs, local, n, delta, colluding):
    """Return the least epsilon found at which delta is certified."""
    n, wanted = _honest(n, colluding), float_down(amount(delta, "delta", 1))
    if not 0 < wanted < 1:
        raise ValueError("delta must be above 0 and below 1")
    if local == math.inf and pairs == (pair_of_clones,):
        return math.inf
    high = float_up(local)

    def over(epsilon):
        found = _delta(pairs, local, n, amount(epsilon, "epsilon"))
        return math.log(max(found, 1e-320)) - math.log(wanted)

    # start below what the closed form says, where it says anything
    guess = clones_guess(n, high, wanted)
    if guess < high and over(guess) <= 0:
        high = guess
    return crossing(over, 0.0, high, 1e-6 * min(1.0, high))
