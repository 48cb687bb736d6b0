"""Columns to a uniform or normal distribution, by noisy distribution functions (`quantile.md`)."""

from numbers import Integral

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin
from sklearn.isotonic import isotonic_regression

from dpestim.preprocessing.base import BoundedTransformer, scaled_norm
from dpestim.statistics.calibrated_noise import noise_for
from dpestim.statistics.summary import Grid, point_counts

#: Steps of the grid on which rows are counted, as a power of two: finer ones have more noise in a sum of counts.
_BITS = 10
#: A uniform value so near to 0 or 1 is taken for that.
_TAIL = 1e-7


class DPQuantileTransformer(OneToOneFeatureMixin, BoundedTransformer):
    """Transform columns to a uniform or normal distribution by noisy distribution functions.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: rows are counted on a grid of about 1,000 points a column, and all counts get noise together. What is kept
    (`quantiles_`) may be published. The caller of `fit` holds the rows and must be trusted. What `transform` returns is
    made of raw rows and stays **private data**: only a private step may follow.

    **Utility.** With d columns and pure epsilon a part of the rows of up to some 45 d / (n epsilon) is off, before the
    noisy sums are made to ascend, which helps most where there are no rows. A point is a 1,024th of the bounds at most:
    declare bounds that are not much wider than the rows.

    **Complexity.** O(n d) time, O(1,000 d) memory for `fit`.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC, example 3.
    Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms through
    consistency", PVLDB, section 3. The proof: ``quantile.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.preprocessing import DPQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(size=(20_000, 1))
    >>> to_uniform = DPQuantileTransformer(1.0, bounds=(0, 10), random_state=0).fit(X)
    >>> to_uniform.transform([[np.log(2)], [np.log(4)]]).round(1).ravel()
    array([0.5, 0.8])
    """

    _more_parameters = """\
    {delta of noise}
    {bounds}
    n_quantiles : int, default=100
        How many quantiles are kept, from 2 to 1,000. They are all made from the same counts, and cost nothing more.
    output_distribution : {"uniform", "normal"}, default="uniform"
    """
    _more_attributes = """
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Noisy quantiles, ascending.
    references_ : ndarray of shape (n_quantiles,)
        Which: from 0 to 1.
    n_quantiles_ : int
    {bounds found}
    {norm_bound}
    {columns seen}
    """
    _learned = ("quantiles_",)

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, bounds_fraction=0.1, n_quantiles=100,
                 output_distribution="uniform", ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_fraction = bounds_fraction
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
        self.ledger = ledger
        self.random_state = random_state

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        return scaled_norm(self, 1.0 if self.output_distribution == "uniform" else -float(ndtri(_TAIL)))

    def inverse_transform(self, X):
        """Return rows in their old units (what was clipped stays so)."""
        out = self._transformed(X)
        if self.output_distribution == "normal":
            out = ndtr(out)
        for j, quantiles in enumerate(self.quantiles_.T):
            out[:, j] = np.interp(out[:, j], self.references_, quantiles)
        return out

    # ---------------------------------------------------------------- inside

    def _check_own(self):
        n = self.n_quantiles
        if isinstance(n, bool) or not isinstance(n, Integral) or not 2 <= n <= 1000:
            raise ValueError("n_quantiles must be an int from 2 to 1000")
        if self.output_distribution not in ("uniform", "normal"):
            raise ValueError('output_distribution must be "uniform" or "normal"')

    def _sums(self, data, domain):
        return point_counts(data, [Grid(grid.low, grid.high, _BITS) for grid in domain])

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        n, d, counts = n_rows, len(grids), totals
        grids = [Grid(grid.low, grid.high, _BITS) for grid in grids]
        # a row that is replaced leaves one point of each column and enters another
        noise = noise_for(epsilon, delta, 2 * d, 2 * d, sum(map(len, counts)))
        references = np.linspace(0.0, 1.0, int(self.n_quantiles))

        def draw(source):
            noisy = noise.add(np.concatenate(counts), source)
            out, at = np.empty((len(references), d)), 0
            for j, grid in enumerate(grids):
                out[:, j] = _quantiles(noisy[at : at + grid.span + 1], grid, n, references)
                at += grid.span + 1
            return {"quantiles_": out, "references_": references, "n_quantiles_": len(references)}

        return draw

    def _map(self, rows):
        out = self._clipped(rows)
        for j, quantiles in enumerate(self.quantiles_.T):
            # (where a value has many quantiles, the middle of them)
            up = np.interp(out[:, j], quantiles, self.references_)
            down = np.interp(-out[:, j], -quantiles[::-1], -self.references_[::-1])
            out[:, j] = (up - down) / 2
        if self.output_distribution == "normal":
            out = np.clip(ndtri(np.clip(out, _TAIL, 1 - _TAIL)), ndtri(_TAIL), -ndtri(_TAIL))
        return out

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "n_quantiles": 5},
                {"epsilon": 1.0, "delta": 0.1, "bounds": "private", "output_distribution": "normal"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        return np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 3)), None


def _quantiles(noisy, grid, n, references):
    """Return quantiles from noisy counts of the points of a grid; n, how many rows there are, is public."""
    upto = np.cumsum(noisy, dtype=np.float64)
    upto += (n - upto[-1]) * np.arange(1, len(upto) + 1) / len(upto)  # all counts together are known without noise
    upto = np.clip(isotonic_regression(upto), 0.0, n) / max(1, n)
    # rows up to half a step beyond a point are its own
    edges = np.clip((grid.first + 0.5 + np.arange(len(upto))) * grid.step, grid.low, grid.high)
    out = np.interp(references, np.r_[0.0, upto], np.r_[grid.low, edges])
    out[-1] = edges[np.argmax(upto == upto[-1])]  # where it first has all rows
    return np.maximum.accumulate(np.minimum(out, out[-1]))
