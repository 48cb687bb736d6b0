"""What a victim's message and the others' common part say of two inputs: the reductions that bounds are computed of.

A reduction is three measures over the outputs: the laws p and q of the victim's message for two inputs, and a measure
w that is at most the law of everybody's message, whatever their inputs. Outputs with the same ratios are one atom.
The proof that any reduction bounds the shuffled guarantee, and which is the best, is ``bounds.md``.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

import numpy as np

from dpestim.local.categories.grr import GRR
from dpestim.local.categories.hr import HR
from dpestim.local.categories.olh import BLH, OLH
from dpestim.local.categories.unary import OUE, SUE
from dpestim.local.law import Randomizer
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.sw import SW
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import canonical_epsilon, log_above
from dpestim.records import record
from dpestim.shuffle.amplification.sums import MARGIN, mean_positive

#: Entries of a matrix whose pairs of rows are all tried, and pairs that differ, the most.
_ENTRIES, _PAIRS = 1 << 12, 16


@record
class Reduction:
    """Atoms with masses p and q for the two inputs of the victim, and w common to all inputs of the others.

    Floats with relative errors of at most 2^-51; w is above 0.
    """

    p: tuple
    q: tuple
    w: tuple

    def delta(self, n, epsilon):
        """Return an upper bound of delta at an epsilon, where n users follow the protocol."""
        p, q, w = (np.array(part) for part in (self.p, self.q, self.w))
        odds = math.exp(epsilon)
        values = (p - odds * q) / w + MARGIN * ((p + odds * q) / w).max()
        return min(1.0, float(mean_positive(values, w, n)) / n * (1 + 2.0**-50))


def pair_of_clones(epsilon0):
    """Return the reduction that holds for every randomizer with this local epsilon: clones of the victim's inputs."""
    odds = math.exp(epsilon0)
    high, low, clone = odds / (1 + odds), 1 / (1 + odds), math.exp(-epsilon0) / 2
    return Reduction((high, low), (low, high), (clone, clone))


def pairs_of(law):
    """Return the reductions of a law, of which the worst bounds delta; None where its structure is not known.

    Parameters
    ----------
    law : Randomizer or sequence of rows
        A law of `dpestim.local`, or the rows of a matrix of probabilities, one for each input.
    """
    if not isinstance(law, Randomizer):
        return _pairs_of_rows(_rows(law))
    return _pairs_of_law(law)


@lru_cache(maxsize=64)
def _pairs_of_law(law):
    kind = type(law)
    if law.relaxation is not None:
        return None
    if kind is GRR:
        return pairs_of_likely(law.p_star, law.q_star, law.n_categories)
    if kind in (PM, SW):
        inside, outside = (Fraction(weight, law.weights.total) for weight in (law.weights.inside, law.weights.outside))
        return pairs_of_likely(inside, outside, law.weights.n_outputs, law.weights.window)
    if kind in (OLH, BLH):  # given the hash, and no two inputs in one bucket in the worst case
        return pairs_of_likely(law.p_star, Fraction(law.weights.other, law.weights.total), law.n_buckets)
    if kind is HR:
        (one, other), block = (Fraction(odds) / law.half for odds in law.support_odds), law.n_blocks == 1
        return pairs_of_likely(one, other, law.n_counts, law.half, law.half // 2 if block else 0)
    if kind in (OUE, SUE):
        return _pairs_of_bits(law.p_star, law.q_star)
    if not isinstance(law, CodeReports) or len(law.input_codes) * law.n_counts > _ENTRIES:
        return None
    if law.public_part(np.zeros((1, law.report_width), law.report_dtype)) is not None:
        return None
    return _pairs_of_rows(law.transition_matrix())


def pairs_of_likely(p, q, n, width=1, overlap=None):
    """Return the pair of a law over n outputs: each of `width` own ones with probability p, each other with q <= p.

    `overlap` is how many own outputs two inputs share at least; none, where there is room, in the worst case.
    """
    both = max(0, 2 * width - n) if overlap is None else overlap
    own, none = width - both, n - 2 * width + both
    return _both((p * own, q * own, p * both, q * none), (q * own, p * own, p * both, q * none),
                 (q * own, q * own, q * both, q * none))


def _pairs_of_bits(p, q):
    """Return the pair of unary encoding: the bits of the two inputs, each a 1 for its own input with probability p.

    A message has at least (1 - p) / (1 - q) times the probability of all bits being drawn as if false, for any input.
    """
    base = [one * two for one in (1 - q, q) for two in (1 - q, q)]
    own, least = ((1 - p) / (1 - q), p / q), (1 - p) / (1 - q)
    first = [base[2 * one + two] * own[one] for one in (0, 1) for two in (0, 1)]
    second = [base[2 * one + two] * own[two] for one in (0, 1) for two in (0, 1)]
    return _both(first, second, [least * mass for mass in base])


def _pairs_of_rows(rows):
    """Return the pairs of any two rows, without those that are like others; None where they are too many."""
    if len(rows[0]) == 2:  # the others are mixtures of these two, and delta is convex in a pair
        rows = [min(rows), max(rows)]
    rows, whole = _integers(rows)
    rows = list(dict.fromkeys(rows))
    common = [min(column) for column in zip(*rows)]
    if any(w == 0 and any(column) for w, column in zip(common, zip(*rows))):
        return None
    found = set()
    for a, b in permutations(rows, 2):
        found.add(_reduction(a, b, common, whole))
        if len(found) > _PAIRS:
            return None
    return tuple(sorted(found, key=lambda pair: (pair.p, pair.q, pair.w)))


def _both(*measures):
    """Return the reduction of (p, q, w), and of (q, p, w) where it is another."""
    (p, q, w), whole = _integers(measures)
    return tuple({_reduction(p, q, w, whole), _reduction(q, p, w, whole)})


def _integers(rows):
    """Return (rows of Fractions as tuples of integers, their common denominator)."""
    whole = math.lcm(*(Fraction(x).denominator for row in rows for x in row))
    return [tuple(int(x * whole) for x in row) for row in rows], whole


def _reduction(p, q, w, whole):
    """Return the atoms of outputs, those of the same ratios (as floats) together, in an order of their own."""
    atoms = {}
    for x, y, z in zip(p, q, w):
        if z:
            key = x / z, y / z
            a, b, c = atoms.get(key, (0, 0, 0))
            atoms[key] = a + x, b + y, c + z
    return Reduction(*(tuple(mass / whole for mass in part) for part in zip(*(atoms[key] for key in sorted(atoms)))))


def _rows(matrix):
    """Return the rows of a matrix of probabilities as lists of Fractions, or raise ValueError."""
    try:
        rows = [[Fraction(x) for x in row] for row in matrix]
    except (TypeError, ValueError, OverflowError):
        rows = []
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or not rows[0]:
        raise ValueError("law must be a law of dpestim.local, or at least two rows of as many probabilities each")
    if len(rows) * len(rows[0]) > _ENTRIES:
        raise ValueError(f"law must have at most {_ENTRIES} probabilities")
    if any(min(row) < 0 or abs(sum(row) - 1) > Fraction(1, 10**9) for row in rows):
        raise ValueError("law must have rows of probabilities, each with the sum 1")
    return [[x / sum(row) for x in row] for row in rows]


def local_epsilon(law):
    """Return the local epsilon of a law, of a matrix (rounded up), or of a number: an exact Fraction, or inf."""
    if isinstance(law, Randomizer):
        return law.plain_epsilon
    if not hasattr(law, "__len__"):
        return canonical_epsilon(law, "epsilon0")
    worst = Fraction(1)
    for column in zip(*_rows(law)):
        if max(column):
            if not min(column):
                return math.inf
            worst = max(worst, max(column) / min(column))
    return Fraction(log_above(worst)) if worst > 1 else Fraction(0)
