"""A server whose client is its parameter `transformer`."""

from copy import copy

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from dpestim.local.client import Client
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.server import Server


class TransformerServer(Server):
    """Counts what a transformer reports; a sub-class makes estimates of the counts.

    The transformer is a client of any kind, numbers or categories: a clone of it randomises and pays.
    """

    _texts = {"missing": """\
missing_, missing_standard_error_ : ndarray of shape (n_features,)
    Estimated shares of missing values, and their standard errors; 0 for a column whose bounds do not say
    ``missing=True``.
"""}

    def privatize(self, X):
        """Randomise raw rows into reports, on the user's side: the transformer's `privatize`, which charges for it."""
        client = self._client()
        reports = client.privatize(X)
        self._bind_as(client)
        return reports

    def randomizer(self, column=0):
        """Return the law of a column, by its number or its name; before any data that of the declared domain."""
        return (self._columns or self._client()._columns_now()).law_of(column)

    @property
    def missing_(self):
        """Estimated shares of missing values."""
        return self._missing()[0]

    @property
    def missing_standard_error_(self):
        """Standard errors of the shares of missing values."""
        return self._missing()[1]

    # ---------------------------------------------------------------- inside

    def _result_parts(self, level):
        """Return what `result_` shows: the estimates, and the share of missing values of columns that may have such."""
        from dpestim.results import Part, labels_of  # (loaded when somebody asks what a fit says)

        out, z = super()._result_parts(level), ndtri(0.5 + level / 2)
        names = labels_of(self, "feature", len(self._columns))
        for name, column, counts in zip(names, self._columns, self._counts):
            if column.may_be_missing:
                share, error = column.missing_share(counts)
                ends = np.array([column.missing_interval(counts, z)])
                out.append(Part("missing", (("feature", [name]),), np.array([share]), np.array([error]), ends))
        return out

    def _missing(self):
        """Return (shares of missing values, standard errors) of all features."""
        self._check_fitted()
        told = [column.missing_share(counts) for column, counts in zip(self._columns, self._counts)
                for _ in range(column.n_features)]
        return np.array(told, float).T

    def _client(self, restart=False):
        """Return a transformer with the law in use, else a fresh one.

        Ledger, seed and threads are those of the parameter as it is now. They are shared, not cloned: the copy of a
        generator would repeat its noise, and to the copy of a ledger nobody looks.
        """
        given = PMTransformer() if self.transformer is None else self.transformer
        if not isinstance(given, Client) or given._alone_reads:
            raise ValueError("transformer must be None or a client that randomises columns, such as "
                             "dpestim.local.PMTransformer")
        client = copy(self.transformer_) if self._n_users and not restart else clone(given)
        bound = [item._to_bind() for item in (self, given, client)]
        for name in ("ledger", "random_state", "n_jobs"):
            setattr(client, name, getattr(given, name))
        bound = (next((book for book, _ in bound if book is not None), None), any(strict for _, strict in bound))
        if bound != client._bound:
            client._bound = bound
        return client

    def _find_ledger(self):
        """Return the ledger of the transformer, which pays: a score is recorded there."""
        return self._client()._find_ledger()

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, names, counts, n)
        self.transformer_ = client
        self.n_features_in_ = self._columns.n_features
        if hasattr(client, "feature_names_in_"):
            self.feature_names_in_ = client.feature_names_in_

    def _forget(self):
        super()._forget()
        for name in ("transformer_", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)

    def _raw(self, X):
        """Return the rows of each column to compare with: not private, so a ledger is told and strict mode refuses."""
        self._check_fitted()
        client = self._client()
        client._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        data = client._read(X)[0]
        self._note_score(len(data[0]))
        return data

    def _test_data(self, n_rows, seed=0):
        """Return rows that suit the transformer."""
        return self.transformer._test_data(n_rows, seed)
