"""How many copies of a pattern fit into a graph if no node may be part of more than a bound: a linear program.

Copies may be taken in part. The solver works with floats, and nothing of what it says is trusted: its two answers, of
the program and of its dual, are read as integers and enclose the value, exactly. Where they are too far apart the value
is worked out in fractions. Proof: ``subgraph_count.md``.
"""

from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

#: Values are integers, in units of 1 / UNIT copies: at least the floor of the true one, and below it plus 2.
UNIT = 16
#: Answers of the solver are read in units of 2^-_DIGITS.
_DIGITS = 30


def packed(copies, n_nodes, bound):
    """Return the value of an (n_copies, size) array of the nodes of each copy, in units of 1 / UNIT."""
    full = np.flatnonzero(np.bincount(copies.ravel(), minlength=n_nodes) > bound)
    if not len(full):
        return UNIT * len(copies)
    numbers = np.full(n_nodes, -1)
    numbers[full] = np.arange(len(full))
    rows, columns = numbers[copies], np.broadcast_to(np.arange(len(copies))[:, None], copies.shape)
    inside = rows >= 0
    parts = sparse.csr_array((np.ones(inside.sum()), (rows[inside], columns[inside])), shape=(len(full), len(copies)))
    cut = np.flatnonzero(inside.any(axis=1))  # (the others are taken whole)
    parts, whole = parts[:, cut], len(copies) - len(cut)
    for solver in ("highs-ipm", "highs-ds"):  # (the first is up to six times as fast on graphs with groups)
        low, high = _enclosed(parts, bound, solver)
        if UNIT * (high - low) <= 1 << _DIGITS:
            return UNIT * whole + (UNIT * high >> _DIGITS)
    return UNIT * whole + int(UNIT * exact(parts.toarray().astype(int).tolist(), bound) // 1)


def _enclosed(parts, bound, solver):
    """Return integers below and above the value, in units of 2^-_DIGITS."""
    n_rows, n_columns = parts.shape
    one, shares, prices = 1 << _DIGITS, np.zeros(n_columns), np.zeros(n_rows)
    found = linprog(-np.ones(n_columns), parts, np.full(n_rows, bound), bounds=(0, 1), method=solver)
    if found.x is not None:
        shares, prices = _clean(found.x, 1), _clean(-found.ineqlin.marginals, 1)
    whole = parts.astype(np.int64)
    taken = np.floor(shares * one).astype(np.int64)
    low = int(taken.sum()) - int(np.maximum(whole @ taken - bound * one, 0).sum())
    asked = np.rint(prices * one).astype(np.int64)
    high = bound * int(asked.sum()) + int(np.maximum(one - whole.T @ asked, 0).sum())
    return low, high


def _clean(numbers, most):
    return np.clip(np.nan_to_num(np.asarray(numbers, float)), 0, most)


def exact(parts, bound):
    """Return the value as a Fraction, by the simplex method with the rule of Bland, which ends; for few copies."""
    n = len(parts[0])
    rows = [[Fraction(x) for x in row] for row in parts] + [[Fraction(i == j) for i in range(n)] for j in range(n)]
    right = [Fraction(bound)] * len(parts) + [Fraction(1)] * n
    basis, gains, value = [None] * len(rows), [Fraction(1)] * n, Fraction(0)
    rows = [row + [Fraction(i == j) for j in range(len(rows))] for i, row in enumerate(rows)]
    gains += [Fraction(0)] * len(rows)
    basis = [n + i for i in range(len(rows))]
    while (enter := next((j for j, gain in enumerate(gains) if gain > 0), None)) is not None:
        leave = min((i for i, row in enumerate(rows) if row[enter] > 0),
                    key=lambda i: (right[i] / rows[i][enter], basis[i]))
        pivot = rows[leave][enter]
        rows[leave], right[leave] = [x / pivot for x in rows[leave]], right[leave] / pivot
        for i, row in enumerate(rows):
            if i != leave and row[enter]:
                factor = row[enter]
                rows[i] = [x - factor * y for x, y in zip(row, rows[leave])]
                right[i] -= factor * right[leave]
        factor = gains[enter]
        value += factor * right[leave]
        gains, basis[leave] = [x - factor * y for x, y in zip(gains, rows[leave])], enter
    return value
