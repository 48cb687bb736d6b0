"""From noisy sums of products to a covariance matrix: pure functions of what was released (`covariance.md`)."""


import numpy as np

from dpestim.records import record


@record
class Scatter:
    """A noisy covariance of scaled rows of norm at most 1, before it is repaired.

    ``square`` and ``product`` are variances of noise on the diagonal and off it, ``column`` that of an entry of the
    mean.
    """

    matrix: np.ndarray
    mean: np.ndarray
    square: float
    product: float
    column: float

    def standard_errors(self):
        """Return the standard deviation of the noise of each entry."""
        squares = np.square(self.mean)
        out = self.product + self.column * (squares[:, None] + squares) + self.column**2
        np.fill_diagonal(out, self.square + 4 * self.column * squares + 2 * self.column**2)
        return np.sqrt(out)

    def repaired(self, shrinkage):
        """Return the nearest covariance that there can be to what is left of the matrix when it was shrunken."""
        d = len(self.mean)
        target = np.trace(self.matrix) / d * np.eye(d)
        if shrinkage == "auto":
            means = 2 * self.column * float(self.mean @ self.mean) / d + self.column**2
            noise = self.square + 2 * means, self.product + means
            # (all of the target up to two deviations, about what chance does, and hardly any where much stands out)
            share = min(1.0, 2 / max(told_apart(self.matrix, *noise), 1.0))
            out = share * possible(target) + (1 - share) * possible(denoised(self.matrix, *noise))
            # (variances are above 0: a quarter of a deviation of their sum is hardly farther from any truth than 0)
            lack = min(np.sqrt(d * self.square), 1.0) / 4 - np.trace(out)
            return out + max(lack, 0.0) / d * np.eye(d)
        return possible((1 - float(shrinkage)) * self.matrix + float(shrinkage) * target)


def scatter_of(moments, longest):
    """Return the covariance that noisy moments have; `longest` are the largest absolute values of an integer column."""
    n = max(1.0, moments.n_rows)
    column = moments.noise["column"] / n**2
    mean = np.clip(moments.columns / n, -longest, longest)
    length = float(np.sqrt(mean @ mean))
    mean = mean / max(1.0, length)
    matrix = moments.gram / n - np.outer(mean, mean)
    matrix[np.diag_indices_from(matrix)] += column
    return Scatter(matrix, mean, moments.noise["square"] / n**2, moments.noise["product"] / n**2, column)


def possible(matrix, most=1.0):
    """Return the nearest matrix with eigenvalues of at least 0 that add up to at most `most`."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0.0)
    if kept.sum() > most:
        down = values[::-1]
        excess = (np.cumsum(down) - most) / np.arange(1, len(down) + 1)
        above = np.flatnonzero(down > excess)
        if len(above):
            kept = np.maximum(values - excess[above[-1]], 0.0)
        else:  # (so far above it that floats do not tell the largest from what is taken off: it keeps all there is)
            kept = np.where(np.arange(len(values)) == len(values) - 1, most, 0.0)
    out = (vectors * kept) @ vectors.T
    return (out + out.T) / 2


def told_apart(matrix, square, product):
    """Return by how many deviations of noise's squares the matrix is farther from equal variances than noise is.

    On the diagonal or as a whole, whichever says more: one wide column shows on the diagonal alone.
    """
    d = len(matrix)
    if not product or d == 1:
        return np.inf
    diagonal = np.diag(matrix)
    squares = np.array([np.square(diagonal - diagonal.mean()).sum(), np.square(matrix - np.diag(diagonal)).sum()])
    excess = squares - [(d - 1) * square, d * (d - 1) * product]
    # (the square of Laplace noise has a variance of 5 of its own squared variances, that of Gaussian noise of 2)
    spread = 5 * (d - 1) * np.array([square**2, 2 * d * product**2])
    return float(max(excess[0] / np.sqrt(spread[0]), excess.sum() / np.sqrt(spread.sum())))


def denoised(matrix, square, product):
    """Return the matrix by blocks, or by eigenvalues where its estimated risk is clearly smaller.

    Variances are those of the noise of entries. Estimates of risks are noisy themselves: the smaller of two is too
    often the one that took noise for rows.
    """
    if not product:
        return matrix
    blocks, eigen = _by_blocks(matrix, square, product), _by_eigenvalues(matrix, square, product)
    d = len(matrix)
    margin = 2 * (d * square + d * (d - 1) * product) * np.sqrt(4 / (d * (d + 1)))
    return (eigen if eigen[0] < blocks[0] - margin else blocks)[1]


def _by_blocks(matrix, square, product):
    """Return (estimated risk, the diagonal shrunken to its mean and all else to 0, by what noise explains)."""
    d = len(matrix)
    diagonal = np.diag(matrix)
    mean = diagonal.mean()
    across = matrix - np.diag(diagonal)
    sizes = (d - 1) * square, d * (d - 1) * product
    lost = [min(1.0, size / max(float(squares), 1e-300)) for size, squares in
            zip(sizes, (np.square(diagonal - mean).sum(), np.square(across).sum()))]
    out = np.diag(mean + (1 - lost[0]) * (diagonal - mean)) + (1 - lost[1]) * across
    # (the divergence of x (1 - c / |x|^2) in k directions is k - (k - 2) c / |x|^2; that of 0 is 0)
    free = [0.0 if part == 1 else size * (1 - part) + 2 * part * variance for part, size, variance in
            zip(lost, sizes, (square, 2 * product))]
    risk = np.square(out - matrix).sum() - d * square - sizes[1] + 2 * (square + sum(free))
    return float(risk), out


def _by_eigenvalues(matrix, square, product):
    """Return (estimated risk, the matrix with eigenvalues as they stand below such noise)."""
    d = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    power = d * product
    width = np.sqrt(power) * d**-0.4
    apart = values[:, None] - values
    below = np.square(apart) + width**2
    kept = np.maximum(values - 2 * power * (apart / below).mean(axis=1), 0.0)
    slope = (width**2 - np.square(apart)) / np.square(below)
    np.fill_diagonal(slope, 0.0)  # (an eigenvalue does not push itself)
    own = np.where(kept > 0, 1 - 2 * power * slope.mean(axis=1), 0.0)
    near = np.abs(apart) < 1e-12 * max(1e-300, np.abs(values).max())
    pairs = np.where(near, (own[:, None] + own) / 2, (kept[:, None] - kept) / np.where(near, 1.0, apart))
    turned = np.triu(pairs, 1).sum()
    # (a pair is a rotation: the variance of the entry between two eigenvectors, which counts twice)
    risk = np.square(kept - values).sum() - d * square - d * (d - 1) * product + 2 * square * own.sum() + (
        4 * product * turned)
    return float(risk), (vectors * kept) @ vectors.T
