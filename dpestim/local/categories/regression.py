"""Least squares of the bits of all cohorts on candidates: linear, so unbiased, and of an exact variance."""

from functools import cached_property

import numpy as np
from scipy import linalg

#: The least part of a candidate's bits that those before it may leave unexplained, squared; less is rounding.
_RANK = 1e-9


class BitRegression:
    """Estimates of frequencies from counts of bits by cohort.

    Parameters
    ----------
    bits : ndarray of uint8 of shape (cohorts, d, n_bits)
        The Bloom filters of d candidates in every cohort.
    one, zero : float
        Probabilities that a bit of a report is 1 where the Bloom filter has a 1, and where it has a 0.
    """

    def __init__(self, bits, one, zero):
        self.n_cohorts, self.d, self.n_bits = bits.shape
        self.one, self.zero = one, zero
        self.design = bits.transpose(0, 2, 1).reshape(-1, self.d).astype(np.float64)
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
            raise ValueError(f"n_bits and n_cohorts are too few to tell the {self.d} categories apart by their bits: "
                             "take more")

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
        return self.inverse @ self.shares(rows, n)

    def weighted(self, rows, n):
        """Return (design, what it should explain), each times the root of the weights, for other solvers."""
        root = np.sqrt(self.weights)
        return root[:, None] * self.design, root * self.shares(rows, n)

    @cached_property
    def variances(self):
        """Entry (x, v): n times the variance of the estimate of v if all users held x."""
        c, gap = self.n_cohorts, self.one - self.zero
        noise_zero, noise_one = self.zero * (1 - self.zero), self.one * (1 - self.one)
        squares = np.square(self.inverse)
        out = c / gap**2 * (noise_zero * squares.sum(axis=1) + (noise_one - noise_zero) * (squares @ self.design).T)
        shape = (c, self.n_bits, self.d)
        for design, inverse in zip(self.design.reshape(shape), np.split(self.inverse, c, axis=1)):
            out += c * np.square(inverse @ design).T  # (what the draw of the cohort adds)
        return np.maximum(out - np.eye(self.d), 0.0)

    def line(self, f):
        """Return (at_zero, slope) of n times the variances in the own frequency, where others are held as f says.

        What f leaves of 1 is held by users none of whose bits are those of a candidate.
        """
        f = np.clip(f, 0.0, 1.0)
        own, rest = np.diag(self.variances), max(0.0, 1 - f.sum())
        blank = self.n_cohorts / (self.one - self.zero) ** 2 * self.zero * (1 - self.zero)
        others = f @ self.variances - f * own + rest * blank * np.square(self.inverse).sum(axis=1)
        weight = f.sum() - f + rest
        at_zero = np.where(weight > 0, others / np.where(weight > 0, weight, 1.0), own)
        return at_zero, own - at_zero
