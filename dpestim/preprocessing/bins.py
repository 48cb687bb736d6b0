"""Columns to bins: between public bounds, or noisy quantiles (`bins.md`)."""

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.preprocessing.base import BoundedTransformer
from dpestim.preprocessing.names import feature_names
from dpestim.statistics.quantiles import Quantile
from dpestim.statistics.ranks import ranked

#: Inner edges up to which each is compared with all numbers: quicker than to search for each number.
_FEW = 16
_BLOCK = 1024  # rows that are written together


class DPKBinsDiscretizer(BoundedTransformer):
    """Discretise columns into bins of equal counts by noisy quantiles, or of equal width between public bounds.

    **Privacy.** Pure epsilon in the central model for data sets of equal size that differ in one row: with "quantile"
    each inner edge of each column is one choice among the points of a public grid, equal shares of epsilon each. With
    "uniform" and declared bounds nothing is learned or charged. All fitted attributes may be published. The caller of
    `fit` holds the rows and must be trusted. What `transform` returns is made of raw rows and stays **private data**.

    **Utility.** The rank of an edge is, with probability 1 - b, within 2 k (ln(w / b) + 2.8) / epsilon of its own, for
    k inner edges of all columns together (w: see `dpestim.statistics.Quantile`). The number of bins is public: bins
    that are empty stay.

    **Complexity.** O(n log n) time a column and O(n) an edge for `fit`.

    {parameters}
    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", STOC, algorithm 2.
    The proof: ``bins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.preprocessing import DPKBinsDiscretizer
    >>> X = np.random.default_rng(0).uniform(0, 4, size=(20_000, 1))
    >>> bins = DPKBinsDiscretizer(1.0, n_bins=4, encode="ordinal", bounds=(0, 4), random_state=0).fit(X)
    >>> bins.bin_edges_[0].round(1), bins.transform([[0.5], [3.5]]).ravel()
    (array([0., 1., 2., 3., 4.]), array([0., 3.]))
    """

    _more_parameters = """\
    n_bins : int, default=5
        How many bins a column has, from 2 to 1,000.
    encode : {"onehot-dense", "onehot", "ordinal"}, default="onehot-dense"
        Columns of 0 and 1, one a bin (as an array, or a SciPy CSR matrix), or the number of the bin.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of about equal counts, or of equal width.
    {bounds}
    """
    _more_attributes = """
    bin_edges_ : ndarray of shape (n_features,) of ndarray of shape (n_bins + 1,)
        Edges of each column, ascending.
    n_bins_ : ndarray of shape (n_features,)
    {bounds found}
    {norm_bound}
    {columns seen}
    """
    _learned = ("edges_",)

    _adds_up = False  # (it makes a private choice)

    def __init__(self, epsilon=1.0, *, n_bins=5, encode="onehot-dense", strategy="quantile", bounds=None,
                 bounds_fraction=0.1, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.n_bins = n_bins
        self.encode = encode
        self.strategy = strategy
        self.bounds = bounds
        self.bounds_fraction = bounds_fraction
        self.ledger = ledger
        self.random_state = random_state

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        reach = self.n_bins - 1 if self.encode == "ordinal" else 1
        return float(np.nextafter(reach * np.sqrt(self._n_columns()), np.inf))

    @property
    def edges_(self):
        """Edges as one array, of shape (n_features, n_bins + 1)."""
        check_is_fitted(self, "bin_edges_")
        return np.stack(list(self.bin_edges_))

    def inverse_transform(self, X):
        """Return the middles of bins.

        Parameters
        ----------
        X : array-like or sparse matrix, as `transform` returns it
            A number that is no bin's is a ValueError; in strict mode it counts as the nearest, and NaN as the first.
        """
        check_is_fitted(self)
        strict, n_bins, n_columns = self._is_strict(), self.edges_.shape[1] - 1, self.n_features_in_
        X = self._transformed(X, n_columns * (1 if self.encode == "ordinal" else n_bins))
        if self.encode != "ordinal":
            X = X.reshape(len(X), n_columns, n_bins).argmax(axis=2)
        good = (X > -1) & (n_bins > X)  # (NaN is none)
        if not strict and not good.all():
            name = repr(feature_names(self, None)[int(good.all(axis=0).argmin())])
            raise ValueError(f"column {name} of X must hold numbers of bins, from 0 to {n_bins - 1}")
        codes = np.clip(np.where(np.isnan(X), 0, X), 0, n_bins - 1).astype(np.int64)
        return np.take_along_axis(((self.edges_[:, 1:] + self.edges_[:, :-1]) / 2).T, codes, axis=0)

    def get_feature_names_out(self, input_features=None):
        """Return the names of columns, with the number of the bin where bins are columns."""
        check_is_fitted(self)
        names = feature_names(self, input_features)
        if self.encode == "ordinal":
            return names
        return np.array([f"{name}_{float(k)}" for name, n in zip(names, self.n_bins_) for k in range(n)], object)

    # ---------------------------------------------------------------- inside

    def _check_own(self):
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, Integral) or not 2 <= self.n_bins <= 1000:
            raise ValueError("n_bins must be an int from 2 to 1000")
        for name, known in (("encode", ("onehot-dense", "onehot", "ordinal")), ("strategy", ("quantile", "uniform"))):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {list(known)}")

    def _learns_more(self):
        return self.strategy == "quantile"

    def _settings(self):
        return (self._learns_more(),)

    def _sums(self, data, domain):
        return ranked(data, domain) if self._learns_more() else []

    def _learn(self, n_rows, totals, grids, epsilon, delta):
        low, high = (np.array([getattr(grid, end) for grid in grids]) for end in ("low", "high"))
        even, inner = np.linspace(low, high, self.n_bins + 1), None
        if self.strategy == "quantile":
            q = [k / self.n_bins for k in range(1, self.n_bins)]
            quantiles = Quantile(epsilon, q=q, bounds=(low, high), neighbours="substitution")
            inner = quantiles._prepared(n_rows, totals, len(grids))

        def draw(source):
            edges = even if inner is None else np.vstack([low, inner(source), high])
            listed = np.empty(len(grids), object)
            for j in range(len(grids)):
                listed[j] = edges[:, j].copy()
            return {"bin_edges_": listed, "n_bins_": np.full(len(grids), self.n_bins)}

        return draw

    def _map(self, rows):
        rows, inner = self._clipped(rows), self.edges_[:, 1:-1]
        codes = np.zeros(rows.shape, np.int64)
        if inner.shape[1] <= _FEW:
            for edges in inner.T:
                codes += ~(rows < edges)
        else:
            for j, edges in enumerate(inner):
                codes[:, j] = np.searchsorted(edges, rows[:, j], side="right")
        if self.encode == "ordinal":
            return codes.astype(np.float64)
        return one_hot(codes, self.n_bins_.tolist(), self.encode == "onehot")

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "n_bins": 3},
                {"epsilon": 2.0, "bounds": "private", "encode": "ordinal"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns."""
        return np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 3)), None


def one_hot(codes, sizes, sparse):
    """Return columns of 0 and 1, one for each code of each column; a code beyond its size has none."""
    n, starts = len(codes), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    known = codes < np.asarray(sizes)
    whole = known.all()
    places = codes + starts[:-1]
    if sparse:
        from scipy.sparse import csr_matrix

        ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return csr_matrix((np.ones(int(ends[-1])), places[known], ends), shape=(n, int(starts[-1])))
    out = np.zeros((n, int(starts[-1])))
    for first in range(0, n, _BLOCK):  # (what is written stays in the cache)
        some = slice(first, first + _BLOCK)
        flat = places[some] + starts[-1] * np.arange(len(places[some]))[:, None]
        out[some].reshape(-1)[flat if whole else flat[known[some]]] = 1.0
    return out
