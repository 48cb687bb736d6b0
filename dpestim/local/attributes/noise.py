"""How the cells of a noisy table vary together: exact second moments of three laws, and of sums of cells."""

import math
from functools import lru_cache

import numpy as np

from dpestim.local.categories.grr import GRR
from dpestim.local.categories.ss import LARGEST_DOMAIN as LARGEST_SET
from dpestim.local.categories.ss import SS
from dpestim.local.categories.unary import OUE


@lru_cache(maxsize=1024)
def table_law(epsilon, size):
    """Return the law of the least error over a table of so many cells, among those whose second moments are known."""
    laws = [GRR.make(epsilon, size), OUE.make(epsilon, size)]
    if size <= LARGEST_SET:
        laws.append(SS.make(epsilon, size))
    even = 1 / size
    return min(laws, key=lambda law: (round(float(law.variance(1, even)), 9), law.n_words))


class Moments:
    """Second moments of one report's estimate of sums of `block` cells each, which are all cells of a table together.

    A report supports a fixed number of cells (randomised response, subsets), or each independently (unary encodings).
    """

    def __init__(self, law, block):
        d, s = law.n_categories, block
        p, q = float(law.p_star), float(law.q_star)
        one, other = p * (1 - p), q * (1 - q)
        with_own = between = 0.0
        if not isinstance(law, OUE):  # (their sum does not vary)
            with_own = -one / (d - 1)
            between = -(other + with_own) / (d - 2) if d > 2 else 0.0
        unit = (p - q) ** 2
        #: The variance of a sum, for who holds a cell of it and for who does not.
        self.own = (one + (s - 1) * (other + 2 * with_own + (s - 2) * between)) / unit
        self.other = s * (other + (s - 1) * between) / unit
        #: The covariance of two sums, for who holds a cell of one of them, and of neither.
        self.near = s * (with_own + (s - 1) * between) / unit
        self.far = s * s * between / unit

    def variance(self, f):
        """Return the variance of sums that shares f of the users hold."""
        return f * self.own + (1 - f) * self.other

    def contrast(self, cells):
        """Return the variance of a contrast of sums, of which the squares add up to 1; all held equally often."""
        pairs = 2 / cells
        return self.variance(1 / cells) - pairs * self.near - (1 - pairs) * self.far + 1 / cells

    def covariance(self, f):
        """Return the covariance matrix of the sums of one report of a user drawn from shares f."""
        pairs = f[:, None] + f[None]
        out = pairs * self.near + (1 - pairs) * self.far
        np.fill_diagonal(out, self.variance(f))
        return out + np.diag(f) - np.outer(f, f)


@lru_cache(maxsize=4096)
def moments_of(law, block):
    """Return the `Moments` of a law."""
    return Moments(law, block)


def cells_of(sizes, places):
    """Return how many cells the table of some columns has."""
    return math.prod(sizes[j] for j in places)
