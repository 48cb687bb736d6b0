"""Joint tables of columns: each user reports one table of a few columns, and all tables are made of these."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.special import ndtri

from dpestim.local.attributes.classes import TableClassifier
from dpestim.local.attributes.designs import METHODS, design_for
from dpestim.local.attributes.independence import independence
from dpestim.local.attributes.noise import cells_of, table_law
from dpestim.local.attributes.parities import Parity, coefficients
from dpestim.local.attributes.tables import NoisyTables, Unknown
from dpestim.local.categories.estimator import CategoryClient
from dpestim.local.categories.grr import GRR
from dpestim.local.client import Client
from dpestim.local.coded import CategoryFeature
from dpestim.local.interval_ends import ends
from dpestim.local.server import Server
from dpestim.local.views import Product, ViewColumns
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, named
from dpestim.rng import check_random_state


class MarginalEstimator(Server, CategoryClient):
    """Estimate joint tables of columns of categories by one report a user with one epsilon.

    Each user draws one table of a few columns (or one parity), and reports the row's cell. Tables that share columns
    are then made consistent, and a table of any columns is the one of largest entropy that agrees with them.

    **Privacy.** epsilon-local differential privacy for a row, all of its columns together, exact; neighbours: any two
    rows of one user; no other party is trusted (proof in ``marginals.md``). Which tables are reported depends on public
    numbers only.

    **Utility.** Tables of `order` columns are estimated without bias, and then made consistent, which lowers the error.
    Tables of more columns follow from them by largest entropy, and have a bias where columns act together. Intervals
    cover tables of columns that users reported together.

    **Complexity.** O(1) reports a user; reading the rows takes O(n d). A table takes milliseconds when it is asked for.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    order : int, default=2
        Columns of the tables that matter, from 1 to 8: their expected error decides which tables are reported.
    method : {"auto", "calm", "pairs", "full", "fourier"}, default="auto"
        What users report: "pairs" each table of `order` columns, "full" the table of all columns, "fourier" each parity
        of bits of up to `order` columns, "calm" tables of a size for which few of them hold all tables of `order`
        columns, of the size that has the least expected error. "auto" is the best of "calm" and "fourier".
    categories : list of array-like, dict or Domain, default="auto"
        The public domain of each column. "auto" learns it from the data, which leaks (`PrivacyLeakWarning`).
    max_cells : int, default=4096
        The most cells of a table that is reported.
    {payment of rows}

    Attributes
    ----------
    categories_ : list of ndarray
        The domain of each column.
    reported_ : list of tuple of int
        The columns of each table that is reported, by places; of parities, those that have parities.
    expected_error_ : float
        The expected root mean square error of a cell of consistent tables of `order` columns, times the square root of
        the number of users, where all cells are held equally often; known before any data.
    n_users_ : int
        Reports counted so far.
    randomizers_ : list of Randomizer
        The frozen law of each table.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    Z. Zhang, T. Wang, N. Li, S. He, J. Chen, "CALM: consistent adaptive local marginal for marginal release under local
    differential privacy", CCS 2018; B. Barak et al., "Privacy, accuracy, and consistency too", PODS 2007; G. Cormode,
    T. Kulkarni, D. Srivastava, "Marginal release under local differential privacy", SIGMOD 2018 (parities).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MarginalEstimator
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 50_000)
    >>> X = np.column_stack([a, a ^ (rng.random(50_000) < 0.1), rng.integers(0, 3, 50_000)])
    >>> est = MarginalEstimator(2.0, categories=[[0, 1], [0, 1], [0, 1, 2]], random_state=0).fit(X)
    >>> bool(abs(est.table([0, 1]) - [[0.45, 0.05], [0.05, 0.45]]).max() < 0.03)
    True
    >>> est.independence_test([0, 1]).p_value < 1e-6 < est.independence_test([1, 2]).p_value
    True
    """

    _checked_as, _alone_reads = "attributes", True
    _no_law = Client._no_law
    _test_values = {"order": [1], "method": ["pairs", "full", "fourier"], "max_cells": [2]}

    def __init__(self, epsilon=1.0, *, order=2, method="auto", categories="auto", max_cells=4096, ledger=None,
                 random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.order = order
        self.method = method
        self.categories = categories
        self.max_cells = max_cells
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- what comes out

    @property
    def reported_(self):
        """The columns of each table that is reported."""
        return list(dict.fromkeys(view.places for view in self._columns_now()))

    @property
    def expected_error_(self):
        """The expected root mean square error of a cell, times the square root of the number of users."""
        return self._design(self._sizes_of(self._columns_now())).error ** 0.5

    def table(self, columns, consistent=True):
        """Return the shares of all combinations of categories of some columns; free.

        Parameters
        ----------
        columns : list of str or int
            Distinct names of columns, or places.
        consistent : bool, default=True
            False: the estimate without bias, whose cells may be negative; ValueError where no table that was reported
            holds all these columns.

        Returns
        -------
        ndarray
            One axis for each column, in the order given.
        """
        places, order, shape = self._asked(columns)
        own = tuple(sorted(places))
        found = self._tables().consistent(own).ravel() if consistent else self._linear(own).f
        return found.reshape(shape).transpose(order)

    def confidence_interval(self, columns, level=0.95):
        """Return intervals for the shares of a table, of shape (\\*table, 2), clipped to [0, 1].

        Score intervals of the estimate without bias; normal approximation. They are about the users who took part. The
        consistent table may lie outside.

        Parameters
        ----------
        columns : list of str or int
            Columns that users reported together; ValueError for others, whose table is a model.
        level : float, default=0.95
            Strictly between 0 and 1.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number strictly between 0 and 1")
        places, order, shape = self._asked(columns)
        found = self._linear(tuple(sorted(places)))
        both = np.clip(ends(found.f, ndtri(0.5 + level / 2), found.error), 0.0, 1.0)
        return np.stack([end.reshape(shape).transpose(order) for end in both], axis=-1)

    def standard_errors(self, columns):
        """Return the standard errors of the estimates without bias of a table, of the shape of `table`.

        NaN where no user has reported the table yet.
        """
        places, order, shape = self._asked(columns)
        found = self._linear(tuple(sorted(places)))
        return found.error(np.clip(found.f, 0.0, 1.0)).reshape(shape).transpose(order)

    def independence_test(self, columns):
        """Test whether two columns are independent among the people from whom users come, the noise accounted for.

        Parameters
        ----------
        columns : list of two str or int

        Returns
        -------
        IndependenceTest
            With `p_value`, `statistic`, `cramers_v`.
        """
        places, _, shape = self._asked(columns)
        if len(places) != 2:
            raise ValueError("columns must be two distinct columns")
        own = tuple(sorted(places))
        return independence(self._linear(own, needed=True), shape, [self._tables().consistent((j,)) for j in own])

    def classifier(self, target):
        """Return a classifier of a column by the others, naive Bayes made of the tables of pairs with it; free.

        Parameters
        ----------
        target : str or int
            The column of the classes: a name, or a place.

        Returns
        -------
        TableClassifier
            With `predict` and `predict_proba` for rows of the other columns.
        """
        own = self._asked([target])[0][0]
        if len(self.categories_) < 2:
            raise ValueError("target must have another column to be predicted by")
        shares = self._tables().consistent((own,))
        return TableClassifier(self, own, partial(self._linear, needed=True), shares, self._n_users)

    def synthesize(self, n_rows=None, random_state=None):
        """Return synthetic rows of a model of largest entropy that is made of the tables; free.

        Parameters
        ----------
        n_rows : int, default=None
            At least 1. None: as many as users.
        random_state : None, int, numpy.random.Generator or RandomState, default=None
            No privacy depends on it.

        Returns
        -------
        ndarray of object, or pandas frame where `fit` saw a frame with names
        """
        self._check_fitted()
        n = self._n_users if n_rows is None else n_rows
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError("n_rows must be None or an int of at least 1")
        check_random_state(random_state)
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(0, 2**32, 8, dtype=np.uint32)
        rng = np.random.default_rng(random_state)
        codes = self._tables().model(1 << 16).tree.draw(int(n), rng)
        codes = codes[rng.permutation(len(codes))]
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            import pandas as pd

            return pd.DataFrame({name: own[codes[:, j]] for j, (name, own) in enumerate(zip(names, self.categories_))})
        out = np.empty(codes.shape, object)
        for j, own in enumerate(self.categories_):
            out[:, j] = own[codes[:, j]]
        return out

    def release(self):
        """Return the consistent tables of all sets of columns that are reported: a dict by places of columns."""
        self._check_fitted()
        return {own: self._tables().consistent(own) for own in self._tables().sets}

    def to_frame(self, columns=None, level=0.95):
        """Return a tidy pandas frame of a table: a line for each cell, with share, standard_error, ci_low, ci_high.

        Parameters
        ----------
        columns : list of str or int, default=None
            As `confidence_interval` takes them. None: each single column, under the names feature and category.
        level : float, default=0.95
        """
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        def numbers(own):
            ci = self.confidence_interval(own, level)
            return {"share": self.table(own).ravel(), "standard_error": self.standard_errors(own).ravel(),
                    "ci_low": ci[..., 0].ravel(), "ci_high": ci[..., 1].ravel()}

        labels = self._labels()
        if columns is None:
            return pd.concat([pd.DataFrame({"feature": labels[j], "category": own, **numbers([j])})
                              for j, own in enumerate(self.categories_)], ignore_index=True)
        places = self._asked(columns)[0]
        grid = np.meshgrid(*(np.arange(len(self.categories_[j])) for j in places), indexing="ij")
        return pd.DataFrame({labels[j]: self.categories_[j][at.ravel()] for j, at in zip(places, grid)} | numbers(
            columns))

    def _result_parts(self, level):
        """Return what `result_` shows: the shares of the categories of each column."""
        return [Part("share", (("feature", [name]), ("category", named(own))), self.table([j])[None],
                     self.standard_errors([j])[None], self.confidence_interval([j], level)[None])
                for j, (name, own) in enumerate(zip(self._labels(), self.categories_))]

    # ---------------------------------------------------------------- inside: the row

    def _client(self, restart=False):
        return self

    def _made(self, lists, names, **more):
        return self._columns_of([CategoryFeature(self._encoder(*each)) for each in zip(lists, names)], **more)

    def _like(self, columns):
        return self._columns_of(columns.row, inferred=columns.inferred, keys=columns.keys)

    def _columns_of(self, features, **more):
        sizes, epsilon = self._sizes_of(features), canonical_epsilon(self.epsilon)
        design = self._design(sizes)
        if design.sets is None:
            law = GRR.make(epsilon, 2)
            views = [Parity(f"parity {number}", law, places, [sizes[j] for j in places], masks)
                     for number, (places, masks) in enumerate(coefficients(sizes, min(self.order, len(sizes))))]
        else:
            views = [Product("table of " + ", ".join(features[j].name for j in own), table_law(
                epsilon, cells_of(sizes, own)), own, [sizes[j] for j in own]) for own in design.sets]
        return ViewColumns(views, n_sampled=1, features=features, **more)

    @staticmethod
    def _sizes_of(features):
        return tuple(feature.n_values for feature in getattr(features, "row", features))

    def _design(self, sizes):
        """Return the design for columns of these sizes, or raise ValueError for wrong parameters."""
        for name, most in (("order", 8), ("max_cells", 1 << 20)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
                raise ValueError(f"{name} must be an int from 1 to {most:,}")
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}, got {self.method!r}")
        return design_for(self.method, canonical_epsilon(self.epsilon), sizes, min(int(self.order), len(sizes)),
                          int(self.max_cells))

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.categories_ = [feature.encoder.categories for feature in columns.row]

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("categories_", "_noisy"):
            vars(self).pop(name, None)

    # ---------------------------------------------------------------- inside: tables

    def _labels(self):
        return list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self.categories_))]))

    def _asked(self, columns):
        """Return (places of columns, how the axes of sorted ones are put in their order, the shape of sorted ones)."""
        self._check_fitted()
        labels = self._labels()
        if isinstance(columns, str | bytes) or not hasattr(columns, "__len__") or not len(columns):
            raise ValueError("columns must be a list of names or places of columns")
        places = [labels.index(j) if isinstance(j, str) and j in labels else j for j in columns]
        if not all(isinstance(j, int | np.integer) and not isinstance(j, bool) and 0 <= j < len(labels)
                   for j in places) or len(set(places)) < len(places):
            raise ValueError(f"columns must be distinct: names, or places below {len(labels)}")
        places = [int(j) for j in places]
        own = sorted(places)
        if cells_of(self._sizes_of(self._columns), own) > 1 << 22:
            raise ValueError("columns must have at most 4,194,304 cells together: ask for fewer columns")
        return places, [own.index(j) for j in places], [len(self.categories_[j]) for j in own]

    def _linear(self, own, needed=False):
        """Return the `Linear` of columns; what nobody has reported yet is NaN, or ValueError where it is `needed`."""
        found = self._tables().linear(own)
        if found is None and any(set(own) <= set(places) for places in self.reported_):
            if needed:
                raise ValueError("columns must have been reported by some user, and no user drew a table of these: "
                                 "wait for more users")
            found = Unknown(cells_of(self._sizes_of(self._columns), own))
        if found is None:
            raise ValueError("columns must be reported together: ask for columns of one of reported_, or take a larger "
                             "order")
        return found

    def _tables(self):
        """Return the tables of these counts, which are made once."""
        self._check_fitted()
        known = vars(self).get("_noisy")
        if known is None or known[0] is not self._counts:
            tables = NoisyTables(self._columns, self._sizes_of(self._columns), self._counts, self._n_users)
            known = self._noisy = self._counts, tables
        return known[1]

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_noisy", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    # ---------------------------------------------------------------- for the checks

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "categories": [["a", "b", "c"], [False, True], ["x", "y"]], "method": "pairs"},
                {"epsilon": 2.0, "categories": [[0, 1, 2], [0, 1], [0, 1]], "method": "fourier"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows drawn from the declared categories with unequal frequencies, as an object array."""
        rng = np.random.default_rng(seed)
        X = np.empty((n_rows, len(self.categories)), dtype=object)
        for j, own in enumerate(self.categories):
            values = np.empty(len(own), dtype=object)
            values[:] = list(own)
            weights = np.arange(1, len(values) + 1.0) ** 0.5
            X[:, j] = values[rng.choice(len(values), n_rows, p=weights / weights.sum())]
        return X, None

    def _told_of(self, row):
        """Return (the cell of a row, shares, their standard errors) of each table, for the checks."""
        places = [int(f.read(np.array([value], dtype=object), None)[0][0]) for f, value in zip(self._columns.row, row)]
        for own in self._tables().sets:
            yield tuple(places[j] for j in own), self.table(own, consistent=False), self.standard_errors(own)
