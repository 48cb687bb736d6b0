"""Communities of a noisy graph: leading eigenvectors of the debiased adjacency matrix, k-means, and moves of nodes.

All of it is made of reports alone. Why it finds what: ``community.md``.
"""

import math
from functools import cached_property

import numpy as np
from scipy import sparse

from dpestim._core import list_patterns

#: Matrices of so few nodes are decomposed whole; rounds of moves, at most.
_SMALL, _ROUNDS = 100, 20
#: The largest eigenvalue of noise is above 2 sqrt(n) s + _EDGE n^(-1/6) s with a probability of about 0.001.
_EDGE = 3.3


class Debiased:
    """The debiased adjacency matrix of a noisy graph, which is dense, as what it makes of vectors."""

    def __init__(self, noisy, q):
        self.noisy, self.n, self.q = noisy, noisy.n, float(q)

    @property
    def degrees(self):
        """Debiased degrees."""
        return (self.noisy.degrees - self.q * (self.n - 1)) / (1 - 2 * self.q)

    @cached_property
    def _matrix(self):
        """The noisy graph in compressed rows, or None where bits are fewer steps."""
        noisy = self.noisy
        if 16 * noisy.n_edges > self.n**2:
            return None
        upper = sparse.csr_array((np.ones(noisy.n_edges), noisy.nodes, noisy.starts), shape=(self.n, self.n))
        return (upper + upper.T).tocsr()

    def times(self, x):
        """Return the product with a vector, or with the columns of a matrix."""
        if x.ndim == 2:
            return np.stack([self.times(column) for column in x.T], axis=1)
        if self._matrix is not None:
            found = self._matrix @ x
        else:
            rows = self.noisy.bits.view(np.uint8)  # (bytes of words on a machine that stores the lowest first)
            padded, found = np.zeros(8 * rows.shape[1]), np.empty(self.n)
            padded[: self.n] = x
            list_patterns.times(rows, padded, np.empty((rows.shape[1], 256)), found)
        return (found - self.q * (x.sum() - x)) / (1 - 2 * self.q)

    def leading(self, k):
        """Return (the k largest eigenvalues, falling; their eigenvectors)."""
        from scipy.sparse.linalg import LinearOperator, eigsh  # (half a second, for those who look for communities)

        if self.n <= _SMALL or k >= self.n - 1:
            values, vectors = np.linalg.eigh(self.times(np.eye(self.n)))
        else:
            operator = LinearOperator((self.n, self.n), matvec=lambda x: self.times(np.ravel(x)), dtype=float)
            values, vectors = eigsh(operator, k, which="LA", v0=np.ones(self.n), tol=1e-4)
        order = np.argsort(-values)[:k]
        return values[order], vectors[:, order]

    def edge_of_noise(self):
        """Return what the largest eigenvalue hardly exceeds if pairs are joined at random, and reported with noise."""
        share = min(max(self.degrees.mean() / max(self.n - 1, 1), 0), 1)
        spread = math.sqrt(self.q * (1 - self.q) / (1 - 2 * self.q) ** 2 + share * (1 - share))
        return spread * (2 * math.sqrt(self.n) + _EDGE * self.n ** (-1 / 6))


def communities(matrix, k, most):
    """Return the community of each node; k is their number, or None for that of eigenvalues beyond noise."""
    values, vectors = matrix.leading(min(k or most, matrix.n))
    if k is None:
        k = max(int((values > matrix.edge_of_noise()).sum()), 1)
    if k == 1:
        return np.zeros(matrix.n, np.int64)
    from sklearn.cluster import KMeans

    labels = KMeans(k, n_init=10, random_state=0).fit(vectors[:, :k]).labels_  # (a seed for what is public already)
    return _named(_moved(matrix, labels, k))


def _moved(matrix, labels, k):
    """Move each node to the community with which it has most edges beyond what degrees let expect, while that helps."""
    degrees = np.maximum(matrix.degrees, 0)
    total = degrees.sum()
    if total <= 0:
        return labels
    best, most = labels, -math.inf
    for _ in range(_ROUNDS):
        ones = np.eye(k)[labels]
        gains = matrix.times(ones) - np.outer(degrees, degrees @ ones) / total
        gains += ones * (degrees**2 / total)[:, None]  # (a node is no neighbour of itself)
        reached = float((gains * ones).sum())
        if reached <= most:
            break
        best, most, labels = labels, reached, gains.argmax(axis=1)
    return best


def _named(labels):
    """Number communities from the largest down, and leave out empty ones."""
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    numbers = np.empty(len(sizes), np.int64)
    numbers[order] = np.arange(len(sizes))
    return numbers[labels]
