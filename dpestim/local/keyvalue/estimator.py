"""What every estimator of key-value data is: client and server in one."""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from dpestim.inputs import CategoryEncoder, check_pairs, keys_of, target_pair
from dpestim.local.client import Client
from dpestim.local.columns import Columns
from dpestim.local.keyvalue.column import PairColumn
from dpestim.local.keyvalue.estimates import estimate
from dpestim.local.server import Server
from dpestim.results import Part


class KeyValueEstimator(Server, Client):
    """Estimate frequencies and means of keys under local differential privacy; a sub-class names its `_randomizer`.

    ``fit`` is ``privatize``, ``aggregate`` and ``release`` in a row, streamed block by block.
    """

    _domain, _same_domain = "keys", "keys in the same order, the same bounds"
    _checked_as = "keyvalue"

    def __init__(self, epsilon=1.0, *, keys=None, bounds=(-1.0, 1.0), ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.keys = keys
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- answers

    def release(self):
        """Return ``(frequencies_, means_)``."""
        return self.frequencies_, self.means_

    @property
    def frequencies_(self):
        """Estimated shares of users that hold each key; not clipped."""
        return self._estimates().frequency

    @property
    def means_(self):
        """Estimated means of the values of each key, over the users that hold it; within the bounds."""
        self._check_fitted()
        return self._columns.columns[0].to_units(self._means())

    @property
    def frequency_standard_errors_(self):
        """Standard errors of the frequencies, given the data: only the mechanism is random."""
        return np.sqrt(self._estimates().share_variance)

    @property
    def mean_standard_errors_(self):
        """Standard errors of the unbiased means, given the data."""
        return np.sqrt(self._estimates().mean_variance) * self._columns.columns[0].width / 2

    def confidence_interval(self, level=0.95, *, of="means"):
        """Return an (n_keys, 2) array of intervals, by a normal approximation; about the users who took part.

        Parameters
        ----------
        level : float, default=0.95
        of : {"means", "frequencies"}, default="means"
            Intervals of means are Fieller's, clipped to the bounds: all of these where perhaps nobody holds the key.
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        if of not in ("means", "frequencies"):
            raise ValueError('of must be "means" or "frequencies"')
        found, z = self._estimates(), ndtri(0.5 + level / 2)
        if of == "frequencies":
            return np.stack(found.share_interval(z), axis=1)
        return self._columns.columns[0].to_units(np.stack(found.mean_interval(z), axis=1))

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: a row for each key, with both estimates, their errors and their intervals."""
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        parts = {"key": self.keys_}
        for name, values, errors in (("frequency", self.frequencies_, self.frequency_standard_errors_),
                                     ("mean", self.means_, self.mean_standard_errors_)):
            ends = self.confidence_interval(level, of="means" if name == "mean" else "frequencies")
            parts |= {name: values, f"{name}_standard_error": errors, f"{name}_ci_low": ends[:, 0],
                      f"{name}_ci_high": ends[:, 1]}
        return pd.DataFrame(parts)

    def _result_parts(self, level):
        """Return what `result_` shows: how often keys are held, and means of their values."""
        axes = (("key", self.keys_.tolist()),)
        return [Part("frequency", axes, self.frequencies_, self.frequency_standard_errors_,
                     self.confidence_interval(level, of="frequencies")),
                Part("mean", axes, self.means_, self.mean_standard_errors_, self.confidence_interval(level))]

    # ---------------------------------------------------------------- the domain

    def _container(self, X, strict):
        return check_pairs(X)

    def _parts(self, X, columns, strict):
        return [X]

    def _schema(self, X, strict, restart=False):
        """Return (X, None, `Columns`) of a table of pairs: the number of columns of a sparse one declares the keys."""
        X = self._container(X, strict)
        frozen, is_long = None if restart else self._columns, hasattr(X, "columns")
        if frozen is None and is_long and not self._is_declared:
            raise ValueError("keys must be declared where X is a data frame, because the keys that occur are private")
        columns = frozen or self._declared_columns(None if self._is_declared else X.shape[1])
        if not is_long and X.shape[1] != columns.laws[0].n_keys:
            raise ValueError(f"X has {X.shape[1]} keys, but {type(self).__name__} is expecting "
                             f"{columns.laws[0].n_keys} keys as input")
        return X, None, columns

    def _columns_now(self, n_columns=None):
        return super()._columns_now(None if self._is_declared else n_columns)

    def _declare(self, n_columns, names=None):
        keys, bounds = keys_of(self.keys, self.bounds, (-1.0, 1.0))
        keys = n_columns if keys is None else keys
        encoder = None
        if isinstance(keys, bool | str) or keys is None:
            raise ValueError("keys must be the number of keys or a list of them")
        if isinstance(keys, int | np.integer):
            n_keys = int(keys)
        else:
            encoder = CategoryEncoder(keys, "keys", 1)
            n_keys = encoder.n_categories
            if any(key is None for key in encoder.plain_categories()):
                raise ValueError("keys must not be missing")
        return self._with_law(PairColumn(self._law(n_keys), encoder, *bounds_of(bounds)))

    def _like(self, columns):
        column = columns.columns[0]
        bounds = bounds_of(keys_of(self.keys, self.bounds, (-1.0, 1.0))[1])
        return self._with_law(PairColumn(self._law(column.law.n_keys), column.encoder, *bounds))

    def _with_law(self, column):
        return Columns([column])

    def _law(self, n_keys):
        return self._randomizer.make(self._share(1), n_keys, **self._law_arguments(0, 1, None))

    # ---------------------------------------------------------------- inside

    def _client(self, restart=False):
        return self

    def _estimates(self):
        self._check_fitted()
        return estimate(self._columns.laws[0], self._counts[0], self._n_users)

    def _means(self):
        """Return the means from -1 to 1."""
        return self._estimates().mean

    def _freeze(self, columns, names):
        super()._freeze(columns, None)
        self.keys_ = columns.columns[0].keys
        self.n_features_in_ = len(self.keys_)

    def _forget(self):
        super()._forget()
        self._thaw()
        vars(self).pop("keys_", None)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.two_d_array = True, False
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return a sparse table of pairs: key k is held by up to 0.8 / (k + 1) of users, who hold at most as many as
        there are slots; values lie from low to high."""
        rng, d = np.random.default_rng(seed), self._columns_now().laws[0].n_keys
        low, high = bounds_of(keys_of(self.keys, self.bounds, (-1.0, 1.0))[1])
        held = rng.random((n_rows, d)) < 0.8 / np.arange(1, d + 1)
        order = rng.random(held.shape)
        ranks = np.argsort(np.argsort(np.where(held, order, 2.0), axis=1), axis=1)
        rows, keys = np.nonzero(held & (ranks < getattr(self, "padding_length", d)))
        values = low + (high - low) * rng.beta(1 + keys % 3, 1.5)
        return csr_array((values, (rows, keys)), shape=(n_rows, d)), None


def bounds_of(bounds):
    """Return bounds as two floats."""
    return target_pair(bounds, name="bounds")
