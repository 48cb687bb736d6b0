"""The law of the least expected distance: a linear program, whose floats become integers that are verified."""

from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dpestim.geo.law import PlaceLaw
from dpestim.privacy.exact import LARGEST_EPSILON, WORD, exp_lower
from dpestim.rng import Stage

#: Cells of a region: the program has a number for each pair.
LARGEST_TABLE = 64
#: Epsilon of neighbouring cells at least: below, the solver's tolerance is all there is.
_LEAST = Fraction(1, 10**9)
#: Shares of the uniform law that are mixed in, until the integers keep every promise.
_MIXED = 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4
#: Steps to cells that constraints are written for; along them any distance is at most 1.028 times as long.
_MOVES = ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1))


class OptimalLaw(PlaceLaw):
    """A report is the number of a cell, drawn by a table of integers.

    Parameters
    ----------
    prior : tuple of float, default=None
        How likely each cell is; None: all alike.
    """

    slack = "the best law for the mean distance does not use all of epsilon between all cells"
    n_words = 1

    def __init__(self, epsilon, n_first, n_second, step, manhattan=False, prior=None):
        super().__init__(epsilon, n_first, n_second, step, manhattan)
        n = self.n_inputs
        if n > LARGEST_TABLE:
            raise ValueError(f"step must be larger, or the bounds closer: the program is for at most {LARGEST_TABLE} "
                             f"cells, and these are {n}; PlanarGeometricTransformer takes more")
        if not _LEAST <= self.epsilon * self.step <= LARGEST_EPSILON:
            raise ValueError("epsilon is too small or too large for these cells: epsilon times step must be from 1e-9 "
                             "to 80")
        self.prior = prior
        at = np.stack(np.divmod(np.arange(n), self.n_second), axis=1)
        apart = np.abs(at[:, None] - at)
        self._apart = apart.sum(axis=2) if self.manhattan else np.sqrt(np.square(apart).sum(axis=2))
        share = np.full(n, 1 / n) if prior is None else np.array(prior)
        found = self._solved(at, share)
        self.weights = next((rows for rows in (self._rounded(found, mixed) for mixed in _MIXED) if self._keeps(rows)),
                            None)
        if self.weights is None:
            raise ValueError("epsilon is too small or too large for these cells, because the solver's numbers cannot "
                             "be rounded to a law that keeps it: change epsilon or step")
        ends = [np.cumsum(np.array(row, object))[:-1] for row in self.weights]
        self._ends = np.array(ends, dtype=object).astype(np.uint64)

    def _solved(self, at, share):
        """Return the solver's law, floats: rows are cells, columns are reports."""
        n, a = self.n_inputs, float(self.epsilon * self.step) * (1 - 1e-9)
        moves = _MOVES[:2] if self.manhattan else _MOVES
        pairs = [(x, y) for x in range(n) for y in range(n) if x != y and self._is_move(at[x] - at[y], moves)]
        worst = self._dilation(at, moves)
        rows, ones, others, factors = [], [], [], []
        for k, (x, y) in enumerate(pairs):  # P[z | x] <= e^(a r / worst) P[z | y], for every z
            for z in range(n):
                rows.append(k * n + z)
                ones.append(x * n + z)
                others.append(y * n + z)
                factors.append(-np.exp(min(a * self._apart[x, y] / worst, 700)))
        count, size = len(pairs) * n, n * n
        above = sparse.csr_array((np.ones(count), (rows, ones)), (count, size)) + sparse.csr_array(
            (factors, (rows, others)), (count, size))
        total = sparse.kron(sparse.eye_array(n), np.ones((1, n)), format="csr")
        cost = (share[:, None] * self._apart).ravel()
        done = linprog(cost, A_ub=above, b_ub=np.zeros(count), A_eq=total, b_eq=np.ones(n), bounds=(0, 1),
                       method="highs")
        if done.x is None:
            raise ValueError("epsilon is too small or too large for these cells, because the linear program has no "
                             "numerical solution: change epsilon or step")
        return np.maximum(done.x.reshape(n, n), 0)

    @staticmethod
    def _is_move(difference, moves):
        i, j = difference.tolist()
        return (i, j) in moves or (-i, -j) in moves

    def _dilation(self, at, moves):
        """Return by how much a way along moves may be longer than the distance, over all pairs of cells."""
        n = self.n_inputs
        way = np.where([[self._is_move(p - q, moves) for q in at] for p in at], self._apart, np.inf)
        np.fill_diagonal(way, 0)
        for k in range(n):
            way = np.minimum(way, way[:, k : k + 1] + way[k])
        return float((way[way > 0] / self._apart[way > 0]).max())

    def _rounded(self, found, mixed):
        """Return rows of integers that sum to 2^64, near a law of floats."""
        n, fall = self.n_inputs, np.exp(-float(self.epsilon * self.step) * self._apart)
        # the least law above it that falls by no more than is allowed, as far as floats tell; rows sum to more than 1
        above = (fall[:, :, None] * found[None]).max(axis=1)
        even = (1 - mixed) * above / above.sum(axis=1).max() + mixed / n
        rows = [[int(p * WORD) for p in row] for row in even.tolist()]
        for row in rows:  # what is left is shared by all reports
            left = WORD - sum(row)
            for z in range(n):
                row[z] += left // n + (z < left % n)
        return rows

    def _keeps(self, rows):
        """Tell whether every ratio is at most e^(epsilon times the distance), in integers, for every pair of cells."""
        known = {}
        for x, row in enumerate(rows):
            scaled = [p * WORD**2 for p in row]
            for y, other in enumerate(rows):
                apart = abs(x // self.n_second - y // self.n_second), abs(x % self.n_second - y % self.n_second)
                if apart not in known:
                    known[apart] = int(exp_lower(self.relaxed_between(x, y)) * WORD**2) if x != y else WORD**2
                most = known[apart]
                if not all(0 < p <= most * q for p, q in zip(scaled, other)):
                    return False
        return True

    # ---------------------------------------------------------------- what is sent

    def privatize(self, codes, words, out):
        """Write the number of a cell for each cell (i, j), by binary search among the ends of its row."""
        drawn = words.dense(Stage.RESPONSE, 1)
        cells = codes[:, 0].astype(np.int64) * self.n_second + codes[:, 1]
        order = np.argsort(cells, kind="stable")
        edges = np.searchsorted(cells[order], np.arange(self.n_inputs + 1))
        for x in range(self.n_inputs):
            rows = order[edges[x] : edges[x + 1]]
            out[rows, 0] = np.searchsorted(self._ends[x], drawn[rows], side="right")

    def transition_matrix(self):
        """Return the law of the report of each cell, Fractions."""
        return [[Fraction(w, WORD) for w in row] for row in self.weights]

    def worst_ratio(self):
        """Return the largest ratio of two weights of a report."""
        return max(Fraction(max(column), min(column)) for column in zip(*self.weights))
