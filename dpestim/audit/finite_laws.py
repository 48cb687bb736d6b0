"""Pairs of laws of finitely many outcomes: read from dicts, sequences and matrices, compared and composed exactly.

A float is taken for the fraction that it is, so that nothing is rounded but the answer.
"""

import math
from fractions import Fraction
from functools import reduce
from numbers import Rational, Real
from typing import NamedTuple

import numpy as np

from dpestim.privacy.divergence import as_integers, excess, exponential_below

#: How far the sum of probabilities that are floats may be from 1.
_OFF = 1e-9
#: More than two sums of (p - e^epsilon q)_+ are off in floats (exact.md), and the entries that are compared at a time.
_ROUNDING, _CELLS = 2.0**-44, 1 << 20
#: Up to this epsilon e^epsilon q is rightly 0 in floats where q is (exact.md).
_LARGEST = 600
#: Products of losses that a composition works out at a time, at most.
_MOST_PRODUCTS = 1 << 22


class Laws(NamedTuple):
    """Laws of the same outcomes: a row for each, in Python ints of one unit."""

    whole: np.ndarray
    unit: int  # what makes 1
    exact: bool  # whether there was no float

    def largest_excess(self, pairs, epsilon):
        """Return the largest sum of (p - e^epsilon q)_+ over pairs of row numbers, a Fraction rounded up.

        Floats tell which pairs can be the largest; of those with the same pairs of probabilities, as neighbouring
        inputs of a window have, one is summed, as integers.
        """
        values, ids = np.unique(self.whole, return_inverse=True)
        ids = ids.reshape(self.whole.shape)
        seen, worst = set(), Fraction(0)
        for i, j in self._candidates(np.array(list(pairs)), epsilon).tolist():
            codes, counts = np.unique(ids[i] * len(values) + ids[j], return_counts=True)
            key = codes.tobytes(), counts.tobytes()
            if key not in seen:
                seen.add(key)
                p, q = (values[part] * counts.astype(object) for part in np.divmod(codes, len(values)))
                worst = max(worst, excess(p, q, epsilon))
        return worst / self.unit

    def _candidates(self, pairs, epsilon):
        """Return the pairs whose sum is within the rounding of floats of the largest."""
        if len(pairs) < 8 or epsilon > _LARGEST:
            return pairs
        law, e = (self.whole / self.unit).astype(np.float64), float(exponential_below(epsilon))
        sums = np.empty(len(pairs))
        step = max(1, _CELLS // law.shape[1])
        for at in range(0, len(pairs), step):
            one, two = pairs[at : at + step].T
            sums[at : at + step] = np.maximum(law[one] - e * law[two], 0).sum(axis=1)
        return pairs[sums >= sums.max() - _ROUNDING]


def read_laws(rows, name):
    """Return `Laws` of rows of probabilities, or raise ValueError."""
    try:
        rows = [[p.item() if isinstance(p, np.generic) else p for p in row] for row in rows]
    except TypeError:
        raise ValueError(f"{name} must be rows of probabilities") from None
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise ValueError(f"{name} must have rows of one length")
    exact = [all(isinstance(p, Rational) for p in row) for row in rows]
    if not all(isinstance(p, Real) and not isinstance(p, bool) and 0 <= p <= 1 + _OFF for row in rows for p in row):
        raise ValueError(f"{name} must hold probabilities: numbers from 0 to 1")
    whole, unit = as_integers(rows)
    for total, own in zip(whole.sum(axis=1).tolist(), exact):
        if total != unit and (own or abs(total - unit) > Fraction(_OFF) * unit):
            raise ValueError(f"{name} must hold probabilities that sum to 1")
    return Laws(whole, unit, all(exact))


def read_pair(p, q, name="p and q"):
    """Return `Laws` of two dicts, or of two sequences of probabilities of the same outcomes."""
    if callable(p) or callable(q):
        raise ValueError(f"{name} must be two dicts, two sequences of probabilities or two densities: wrap a function "
                         "as Density(f), such as Density(laplace().pdf)")
    if isinstance(p, dict) != isinstance(q, dict):
        raise ValueError(f"{name} must be two dicts, two sequences or two densities")
    if isinstance(p, dict):
        outcomes = {**p, **q}
        p, q = ([law.get(outcome, 0) for outcome in outcomes] for law in (p, q))
    return read_laws([p, q], name)


def compose(pairs, times=1):
    """Return the pair of laws of several independent outcomes together, by their likelihood ratios, exactly.

    What matters of an outcome is its likelihood ratio under p and q: outcomes of the same ratio are one. So k uses of
    randomised response have k + 1 outcomes, not 2^k, and `hockey_stick` of the pair is the exact delta of the
    composition: the truth that fast accounting is measured against. It is meant to be exact, not fast.

    Parameters
    ----------
    pairs : sequence of pairs (p, q)
        Each a pair of dicts from outcome to probability, or of sequences of probabilities of the same outcomes:
        Fractions, ints or floats. A float is taken for the fraction that it is, and a law of floats is scaled to sum to
        1.
    times : int, default=1
        How often all of them are used.

    Returns
    -------
    (dict, dict)
        The probability, a Fraction, of each likelihood ratio p / q under p, and under q; ratios are Fractions, or
        ``math.inf``, and fall.

    Raises
    ------
    ValueError
        For what is no pair of laws, for a `times` that is no int of at least 1, and where there would be too many
        different ratios (4 million products).

    Notes
    -----
    O(r^2) for each product of two laws, and O(log(times)) products, where r is the number of different ratios so far: k
    uses of a law with m ratios have up to C(k + m - 1, m - 1). Fractions grow in proportion to k.

    References
    ----------
    P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015, whose theorem 3.3
    is what this gives for randomised response. The proof: ``exact.md``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpestim.audit import compose, hockey_stick
    >>> yes, no = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    >>> p, q = compose([(yes, no)], times=3)
    >>> [str(ratio) for ratio in p], [str(weight) for weight in p.values()]
    (['27', '3', '1/3', '1/27'], ['27/64', '27/64', '9/64', '1/64'])
    >>> hockey_stick(p, q, 0)
    Fraction(11, 16)
    """
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise ValueError("times must be an int of at least 1")
    try:
        pairs = [(p, q) for p, q in pairs]
    except (TypeError, ValueError):
        raise ValueError("pairs must be a sequence of pairs (p, q) of laws") from None
    if not pairs:
        raise ValueError("pairs must hold at least one pair of laws")
    laws = [_losses(*read_pair(p, q, f"pair {number}").whole.tolist()) for number, (p, q) in enumerate(pairs)]
    square, result = reduce(_product, laws), None
    while times:
        if times & 1:
            result = square if result is None else _product(result, square)
        times >>= 1
        square = _product(square, square) if times else None
    sums = [sum(both[side] for both in result.values()) for side in (0, 1)]
    p, q = ({ratio: Fraction(result[ratio][side], sums[side]) for ratio in sorted(result, reverse=True)}
            for side in (0, 1))
    return p, q


def _losses(p, q):
    """Return {likelihood ratio: (its weight under p, under q)} of two lists of ints, each of which is scaled to 1."""
    sums, out = (sum(p), sum(q)), {}
    for one, two in zip(p, q):
        if one or two:
            _add(out, Fraction(one * sums[1], two * sums[0]) if two else math.inf, one, two)
    return out


def _product(one, two):
    if len(one) * len(two) > _MOST_PRODUCTS:
        raise ValueError("pairs must have fewer different likelihood ratios, because the exact composition would be "
                         "too large: lower times, or take a PrivacyLossDistribution")
    out = {}
    for r, (p, q) in one.items():
        for s, (u, v) in two.items():
            if p * u or q * v:
                _add(out, math.inf if math.inf in (r, s) else r * s, p * u, q * v)
    return out


def _add(losses, ratio, p, q):
    before = losses.get(ratio, (0, 0))
    losses[ratio] = before[0] + p, before[1] + q
