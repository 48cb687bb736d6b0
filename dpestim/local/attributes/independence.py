"""Whether two columns are independent, from a noisy table: a chi-square test whose null law has the noise in it."""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2


class IndependenceTest(NamedTuple):
    """What a table says about the independence of two columns.

    Attributes
    ----------
    statistic : float
        The sum of squared differences from the product of the margins, in units of its mean under independence.
    p_value : float
    cramers_v : float
        The strength of association, from 0 to 1, without what the noise adds to it.
    """

    statistic: float
    p_value: float
    cramers_v: float


def independence(linear, shape, margins):
    """Return the `IndependenceTest` of a table of two columns; claim 3 of ``marginals.md``.

    Parameters
    ----------
    linear : dpestim.local.attributes.tables.Linear
    shape : pair of int
    margins : pair of ndarray
        The consistent shares of each column.
    """
    a, b = margins
    # the difference from independence is a linear map of the cells, given the margins: products of noisy margins would
    # add noise that its covariance does not have
    one = np.eye(shape[0]) - np.outer(a, np.ones(shape[0]))
    two = np.eye(shape[1]) - np.outer(b, np.ones(shape[1]))
    moves = np.kron(one, two)
    apart = moves @ linear.f
    covariance = moves @ linear.covariance(np.outer(a, b).ravel()) @ moves.T
    found = np.maximum(np.linalg.eigvalsh((covariance + covariance.T) / 2), 0.0)
    first, second, third = (float((found**k).sum()) for k in (1, 2, 3))
    statistic = float(apart @ apart)
    # a sum of squares of normal numbers, by its first three moments
    freedom = second**3 / third**2
    p = float(chi2.sf((statistic - first) * np.sqrt(freedom / second) + freedom, freedom))
    floor = np.maximum(np.outer(a, b).ravel(), 1e-9)
    # (cells of rare values are mostly noise: what is expected of it is taken away, cell by cell)
    strength = float(((np.square(apart) - np.diag(covariance)) / floor).sum()) / (min(shape) - 1)
    return IndependenceTest(statistic / first, p, float(np.sqrt(np.clip(strength, 0.0, 1.0))))
