"""Least squares of the bits of all cohorts on candidates: linear, so unbiased, and of an exact variance."""

from functools import cached_property

import numpy as np
from scipy import linalg

#: The least part of a candidate's bits that those before it may leave unexplained, squared; less is rounding.
_RANK = 1e-9
#: Residuals beyond what the columns take, from which on their squares say how uneven others are: within a quarter.
FEWEST_FREE = 32


class BitRegression:
    """Estimates of frequencies from counts of bits by cohort.

    Parameters
    ----------
    bits : ndarray of uint8 of shape (cohorts, d, n_bits)
        The Bloom filters of d candidates in every cohort.
    one, zero : float
        Probabilities that a bit of a report is 1 where the Bloom filter has a 1, and where it has a 0.
    others : float, default=None
        The share of bits that a value sets, where values may be held that are no candidates: they are one more column
        of this share everywhere, and no part of the answer. None: all values are candidates.
    """

    def __init__(self, bits, one, zero, others=None):
        self.n_cohorts, self.d, self.n_bits = bits.shape
        self.one, self.zero, self.others = one, zero, others
        self.design = bits.transpose(0, 2, 1).reshape(-1, self.d).astype(np.float64)
        if others is not None:
            self.design = np.column_stack([self.design, np.full(len(self.design), others)])
        # public weights: the variances of the bits if all candidates were held equally often
        mean = zero + (one - zero) * self.design.mean(axis=1)
        self.weights = 1 / (mean * (1 - mean))
        normal = self.design.T @ (self.weights[:, None] * self.design)
        try:
            self._root = np.linalg.cholesky(normal)
            least = np.square(np.diag(self._root)) / np.diag(normal)  # what no earlier candidate's bits explain
        except np.linalg.LinAlgError:
            least = np.zeros(1)
        if least.min() <= _RANK:
            raise ValueError(f"n_bits and n_cohorts are too small to distinguish the {self.d} categories by their "
                             "bits: raise n_bits or n_cohorts, or pass fewer candidates for an open column")

    @cached_property
    def inverse(self):
        """What makes estimates of shares of bits; of no use to clients, and so made when it is needed."""
        return linalg.cho_solve((self._root, True), (self.weights[:, None] * self.design).T)

    def shares(self, rows, n):
        """Return unbiased estimates of how many users' Bloom filters have each bit, by cohort, as shares of 1."""
        seen = rows[:, :-1] - self.zero * rows[:, -1:]
        return seen.ravel() * (self.n_cohorts / (n * (self.one - self.zero)))

    def estimate(self, rows, n):
        """Return the estimates from counts of bits, and of reports, by cohort: (cohorts, n_bits + 1)."""
        return self.inverse[: self.d] @ self.shares(rows, n)

    def weighted(self, rows, n):
        """Return (design, what it should explain), each times the root of the weights, for other solvers."""
        root = np.sqrt(self.weights)
        return root[:, None] * self.design, root * self.shares(rows, n)

    @cached_property
    def variances(self):
        """Entry (x, v): n times the variance of the estimate of v if all users held x; the last row is of others."""
        c, gap, inverse = self.n_cohorts, self.one - self.zero, self.inverse[: self.d]
        noise_zero, noise_one = self.zero * (1 - self.zero), self.one * (1 - self.one)
        squares = np.square(inverse)
        out = c / gap**2 * (noise_zero * squares.sum(axis=1) + (noise_one - noise_zero) * (squares @ self.design).T)
        shape = (c, self.n_bits, self.design.shape[1])
        for design, part in zip(self.design.reshape(shape), np.split(inverse, c, axis=1)):
            out += c * np.square(part @ design).T  # (what the draw of the cohort adds)
        out[: self.d] -= np.eye(self.d)
        if self.others is not None:
            out[-1] += (c - 1) * self.spread
        return np.maximum(out, 0.0)

    @cached_property
    def spread(self):
        """The variance of what another value adds to each estimate, over the draw of the bits that it sets."""
        parts = self.inverse[: self.d].reshape(self.d, self.n_cohorts, self.n_bits)
        squares, sums = np.square(parts).sum(axis=2), np.square(parts.sum(axis=2))
        return self.others * (1 - self.others) * (self.n_bits * squares - sums).sum(axis=1) / (self.n_bits - 1)

    def unevenness(self, rows, n):
        """Return what others' bits, which are not as even as their column, add to the variance of each estimate.

        It is `spread` times the sum of the squares of others' frequencies, which is estimated by moments: the squared
        residuals, less what they would be without. Where few are left to tell, one value is taken to have all of it.
        """
        c, gap = self.n_cohorts, self.one - self.zero
        y, users = self.shares(rows, n), rows[:, -1:]
        ones = rows[:, :-1] / np.maximum(users, 1)
        noise = users * ones * (1 - ones) + (1 - 1 / c) * n / c * np.square(ones - self.zero)
        noise = noise.ravel() * (c / (n * gap)) ** 2
        left = y - self.design @ (self.inverse @ y)
        free = 1 - np.einsum("iv,vi->i", self.design, self.inverse)  # (of each residual, what no column takes)
        if free.sum() < FEWEST_FREE:
            return self.spread
        found = (self.weights * (np.square(left) - free * noise)).sum() / (self.weights * free).sum()
        squares = found / (self.others * (1 - self.others))
        return self.spread * np.clip(squares, 0.0, 1.0)

    def line(self, f):
        """Return (at_zero, slope) of n times the variances in the own frequency, where others are held as f says.

        What f leaves of 1 is held by others; where there are none by users none of whose bits are those of a candidate.
        """
        f = np.clip(f, 0.0, 1.0)
        own, rest = np.diag(self.variances), max(0.0, 1 - f.sum())
        if self.others is None:
            blank = self.n_cohorts / (self.one - self.zero) ** 2 * self.zero * (1 - self.zero)
            unknown = blank * np.square(self.inverse).sum(axis=1)
        else:
            unknown = self.variances[-1]
        others = f @ self.variances[: self.d] - f * own + rest * unknown
        weight = f.sum() - f + rest
        at_zero = np.where(weight > 0, others / np.where(weight > 0, weight, 1.0), own)
        return at_zero, own - at_zero
