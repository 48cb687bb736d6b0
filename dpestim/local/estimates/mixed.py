"""Numbers and categories of a row together: one report a user, one epsilon, one draw; estimates by column."""

import math
from copy import copy
from numbers import Real

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import validate_data

from dpestim.inputs import category_rows
from dpestim.inputs.frames import is_frame
from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.categories.unary import OUEFrequencyEstimator
from dpestim.local.estimates.distribution import DistributionEstimator
from dpestim.local.estimates.rows import labels_of
from dpestim.local.estimates.sharing import shared_row
from dpestim.local.longitudinal_client import LongitudinalClient
from dpestim.local.numbers.hm import HMTransformer
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.server import Server
from dpestim.privacy.exact import canonical_epsilon


class MixedEstimator(Server, LongitudinalClient):
    """Estimate frequencies, means and distributions of a table by one report a user with one epsilon.

    Columns of categories and of numbers are chosen as scikit-learn's `ColumnTransformer` chooses them, and each kind
    has its own mechanism; columns that no client chooses are dropped and not reported. By default every user draws k of
    the d chosen columns, independently of the values, and reports these with epsilon / k.

    **Privacy.** epsilon-local differential privacy for a row, all of its columns together, exact (proof in
    ``mixed.md``). Neighbours: any two rows of one user; no other party is trusted. Epsilons of clients are not used:
    each column gets its exact part of `epsilon`, and one ledger pays for the row. Reports reveal which columns were
    drawn, so that the draw does not amplify privacy. A relaxed client keeps its relaxed guarantee, and `privacy_` names
    the relaxation. Asked again, users take what they keep (``privatize(X, state=client_state(X))``): the drawn columns,
    and the answers of longitudinal ones, whose permanent epsilon is twice their part; reports of all other columns add
    up (`privacy_of`).

    **Utility.** As good as each column's own mechanism with n k / d users and epsilon / k. With 2 columns of categories
    and 2 of numbers ``strategy="sample"`` had errors of 0.44 to 0.62 times those of "split" at epsilon 0.5 to 5 and of
    0.81 to 0.92 times at 10; with 20 columns 0.22 to 0.24 times at 0.5 (even, skewed and rare values, 20,000 users,
    geometric mean over the columns). Standard errors of frequencies cover who happened to draw the column.

    **Complexity.** O(n k) words and reports for n users; O(n d) for reading the columns. A report has k slots: the
    number of a column, and what its law sends.

    Parameters
    ----------
    transformers : list of (name, client, columns), default=None
        At least one. A client is a frequency estimator of `dpestim.local`, a transformer of numbers (whose mean is
        estimated), or a `MeanEstimator` or `DistributionEstimator` of either. It is a template: its domain must be
        declared, with one entry for each of its columns, and its epsilon, ledger, seed and `n_jobs` left alone.
        Columns are a name, a position, a list of these, a slice (with both ends where they are names), a mask or a
        callable such as `sklearn.compose.make_column_selector`, which gets a frame without rows: it sees names and
        dtypes. Every column at most once. A server that was never fitted must know its columns without data: names, or
        positions from 0 on. Several numbers that share one report (``strategy="joint"``, `PrivUnitTransformer`) are
        drawn as one column. (The default is refused once it is used.)
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    strategy : {"sample", "split"}, default="sample"
        "sample" has each user report `n_sampled` columns with epsilon / n_sampled each. "split" reports every column,
        with epsilon / d or by `shares`.
    n_sampled : int, default=None
        From 1 to d. None: the k after which the product of the variances of all columns grows, for values spread evenly
        over their domains; it depends on no data.
    shares : dict of float, default=None
        For "split": what each client's columns get together, by its name, in proportion. None: all columns the same.
    {payment of reports}

    Attributes
    ----------
    named_estimators_ : dict of estimator
        Copies of the fitted server of each client, by its name: all that it offers after a fit, such as quantiles.
        Their `privacy_` covers their own columns, as if all of these were reported.
    categories_, frequencies_ : dict of ndarray of shape (n_categories,)
        By column: its name, or its position where X has no names. NaN where nobody drew it.
    means_ : dict of float
        By column, in the units of X, also of distributions.
    missing_ : dict of float
        By column of numbers: the estimated share of missing values, 0 where bounds do not say ``missing=True``.
    standard_errors_ : dict of ndarray or float
        By column, of frequencies (given the users who took part) and of means by `MeanEstimator` (with the drawing of
        the users).
    distributions_, bin_edges_ : dict of ndarray
        By column.
    reports_by_column_ : dict of int
        How many users have reported each column.
    n_sampled_ : int
        Columns that a row reports.
    n_users_ : int
        Rows counted so far.
    privacy_ : PrivacyGuarantee
        The guarantee of one row's report.
    randomizers_ : list of Randomizer
        The frozen law of each column, in the order of `transformers`. What is set later, of clients too, changes
        nothing until the next `fit`.
    n_features_in_ : int
        Of X, the dropped ones included, where rows were seen.
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

    {refused reports}

    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, section
    IV (k of d columns, of numbers and categories; algorithm 4). The choice of k, and the errors of frequencies of drawn
    columns, are derived in ``mixed.md``.

    Examples
    --------
    >>> from dpestim.datasets import load_yrbss
    >>> from dpestim.local import GRRFrequencyEstimator, MixedEstimator, PMTransformer
    >>> X = load_yrbss(as_frame=True).frame
    >>> est = MixedEstimator([
    ...     ("gender", GRRFrequencyEstimator(categories=[["female", "male"]]), ["gender"]),
    ...     ("body", PMTransformer(bounds=([1.2, 30], [2.2, 180])), ["height", "weight"]),
    ... ], epsilon=4.0, random_state=0).fit(X)
    >>> sorted(est.means_), list(est.frequencies_), est.privacy_.epsilon
    (['height', 'weight'], ['gender'], Fraction(4, 1))
    >>> bool(abs(est.means_["weight"] - X["weight"].mean()) < 4 * est.standard_errors_["weight"])
    True
    """

    _STATE = (*Server._STATE, "randomizers_", "n_features_in_", "feature_names_in_", "_fitted")
    _fitted = None

    def __init__(self, transformers=None, *, epsilon=1.0, strategy="sample", n_sampled=None, shares=None, ledger=None,
                 random_state=None, n_jobs=None):
        self.transformers = transformers
        self.epsilon = epsilon
        self.strategy = strategy
        self.n_sampled = n_sampled
        self.shares = shares
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- what comes out

    def release(self):
        """Return what each column's own estimator releases, by column: frequencies, a mean or a distribution."""
        return self._by_column("frequencies_", "distribution_", "mean_")

    @property
    def named_estimators_(self):
        """Copies of the fitted servers, by the names in `transformers`."""
        return {name: copy(server) for name, server in self._servers().items()}

    @property
    def categories_(self):
        """The domains of the columns of categories."""
        return self._by_column("categories_")

    @property
    def frequencies_(self):
        """Estimated frequencies of the columns of categories."""
        return self._by_column("frequencies_")

    @property
    def means_(self):
        """Estimated means of the columns of numbers."""
        return self._by_column("mean_")

    @property
    def missing_(self):
        """Estimated shares of missing values of the columns of numbers."""
        return self._by_column("missing_")

    @property
    def standard_errors_(self):
        """Standard errors of frequencies and means."""
        return self._by_column("standard_errors_", "standard_error_")

    @property
    def distributions_(self):
        """Estimated distributions of the columns that have a `DistributionEstimator`."""
        return self._by_column("distribution_")

    @property
    def bin_edges_(self):
        """The edges of their bins."""
        return self._by_column("bin_edges_")

    @property
    def reports_by_column_(self):
        """How many users have reported each column."""
        self._check_fitted()
        drawn = self._draws()
        return {v: drawn[number] for v, number in self._numbers()}

    @property
    def n_sampled_(self):
        """The number of columns that a row reports; known before any data where the columns are."""
        columns = self._columns_now()
        return columns.n_sampled or len(columns)

    def confidence_interval(self, level=0.95):
        """Return intervals by column: (n_categories, 2) for frequencies, (2,) for a mean.

        Those of the columns' own estimators. For shares of bins and quantiles ask a `DistributionEstimator` of
        `named_estimators_`.

        Parameters
        ----------
        level : float, default=0.95
            Strictly between 0 and 1.

        Returns
        -------
        dict of ndarray
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number strictly between 0 and 1")
        out = {}
        for part, server in zip(self._columns_now().members, self._servers().values()):
            if not isinstance(server, DistributionEstimator):
                out |= dict(zip(part.labels, server.confidence_interval(level)))
        return out

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: feature, quantity, value, estimate, standard_error, ci_low, ci_high.

        A line for each "frequency" of a category (`value`), each "mean" (no `value`), the share of "missing" numbers of
        columns that may have such, and each "share" of a bin (`value` is its middle); shares of bins, and means of a
        `DistributionEstimator`, have neither a standard error nor an interval here.
        """
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        errors, intervals, lines = self.standard_errors_, self.confidence_interval(level), []
        categories, means, edges = self.categories_, self.means_, self.bin_edges_
        for v, f in self.frequencies_.items():
            lines += [(v, "frequency", c, *each) for c, *each in zip(categories[v].tolist(), f, errors[v],
                                                                     *intervals[v].T)]
        for v, mean in means.items():
            lines.append((v, "mean", None, mean, errors.get(v, math.nan), *intervals.get(v, (math.nan, math.nan))))
        for v, number in self._numbers():
            column, counts = self._columns.columns[number], self._counts[number]
            if column.may_be_missing:
                ends = column.missing_interval(counts, float(ndtri(0.5 + level / 2)))
                lines.append((v, "missing", None, *column.missing_share(counts), *ends))
        for v, f in self.distributions_.items():
            middles = (edges[v][1:] + edges[v][:-1]) / 2
            lines += [(v, "share", x, share, math.nan, math.nan, math.nan) for x, share in zip(middles, f)]
        return pd.DataFrame(lines, columns=["feature", "quantity", "value", "estimate", "standard_error", "ci_low",
                                            "ci_high"])

    def _result_parts(self, level):
        """Return what `result_` shows: what the estimators of the columns do, by the labels of these."""
        out = []
        for part, server in zip(self._columns.members, self._servers().values()):
            for own in server._result_parts(level):
                axes = [(name, [part.labels[at] if isinstance(at, int) else at for at in labels]
                         if name == "feature" else labels) for name, labels in own.axes]
                out.append(own._replace(axes=tuple(axes)))
        return out

    def randomizer(self, column=0):
        """Return the law of a column, by its name or its number in the order of `transformers`."""
        return super().randomizer(column)

    # ---------------------------------------------------------------- parameters, as ColumnTransformer has them

    def get_params(self, deep=True):
        """Return the parameters; `deep`: also the clients by name, and their parameters by ``name__parameter``."""
        own, given = super().get_params(False), self.transformers
        if deep and isinstance(given, list | tuple):
            for name, client in (each[:2] for each in given if isinstance(each, tuple | list) and len(each) == 3):
                if hasattr(client, "get_params"):
                    own |= {name: client} | {f"{name}__{key}": value for key, value in client.get_params().items()}
        return own

    def set_params(self, **params):
        """Set parameters, clients by their names, and parameters of these by ``name__parameter``."""
        names = {name for name in params if name not in self._get_param_names() and "__" not in name}
        known = [each[0] for each in self.transformers or ()] if names else []
        if names <= set(known):
            self.transformers = [(name, params.pop(name, client), columns)
                                 for name, client, columns in self.transformers] if names else self.transformers
        return super().set_params(**params)

    # ---------------------------------------------------------------- inside: the row

    def _client(self, restart=False):
        return self

    @property
    def _is_declared(self):
        """Tell whether the columns are known without data."""
        try:
            self._choices(None)
        except ValueError:
            return False
        return True

    _same_domain = "the same parts of a row with the same domains"

    @property
    def _adds_same_users(self):
        """Tell whether reports of the same users may be counted together: answers that are kept do not average out."""
        columns = self._columns_now() if self._columns is not None or self._is_declared else ()
        return not any(column.law.keeps_answers for column in columns)

    def _choices(self, X):
        """Return (name, estimator, labels) of each part; X None: where the choices say it themselves."""
        given = self.transformers
        if not isinstance(given, list | tuple) or not given or not all(
            isinstance(each, tuple | list) and len(each) == 3 and isinstance(each[0], str) for each in given
        ):
            raise ValueError("transformers must be a list of (name, client, columns), at least one")
        if len({name for name, _, _ in given}) < len(given):
            raise ValueError("transformers must have names that differ")
        out = [(name, client, labels_of(columns, X, name)) for name, client, columns in given]
        chosen = [v for _, _, labels in out for v in labels]
        if len(set(chosen)) < len(chosen):
            raise ValueError("transformers must choose every column at most once: a DistributionEstimator estimates "
                             "the mean, too")
        return out

    def _columns_now(self, n_columns=None):
        return self._made(self._choices(None)) if self._columns is None else self._columns

    def _like(self, columns):
        """Return a row of these parameters whose columns are those of another one."""
        labels = {part.name: part.labels for part in columns.members}
        if self.transformers is None or [t[0] for t in self.transformers] != list(labels):
            raise ValueError("other must have the same transformers")
        return self._made([(name, client, labels[name]) for name, client, _ in self.transformers])

    def _made(self, choices):
        """Return the row of these choices, with exact shares of epsilon: nothing in it depends on data."""
        return shared_row(choices, canonical_epsilon(self.epsilon), self.strategy, self.n_sampled, self.shares)

    # ---------------------------------------------------------------- inside: rows come in

    def _columns_like(self, example):
        self._check_call_parameters()
        columns = self._made(self._choices(category_rows(example, strict=self._is_strict())))
        for part in columns.members:
            part.client._check_call_parameters()
        return columns

    def _read(self, X, restart=False, check=None):
        self._check_call_parameters()
        strict = self._is_strict()
        given, X = X, category_rows(X, strict=strict)
        if restart or self._columns is None:
            columns = self._made(self._choices(X))
        else:
            columns = self._columns
            if hasattr(self, "n_features_in_"):
                validate_data(self, given if is_frame(given) else X, reset=False, skip_check_array=True)
        for part in columns.members:
            part.client._check_call_parameters()
        if check is not None:
            check(columns)
        data = []
        for part in columns.members:
            own = part.columns_of(columns)
            rows = part.client._container(part.taken(X, strict), strict)
            data += own.read(part.client._parts(rows, own, strict), self.n_jobs, strict)
        return data, columns, (X.shape[1], list(X.columns) if is_frame(X) else None)

    def _check_columns(self, columns):
        for part in columns.members:
            own, why = part.columns_of(columns), None
            try:
                part.server._check_columns(own)
            except ValueError as error:
                why = error
            if why is not None:
                raise ValueError(f"transformers: {part.name!r}: {why}")

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, None, counts, n)
        if isinstance(names, tuple) and not hasattr(self, "n_features_in_"):
            self.n_features_in_, labels = names
            if labels and all(isinstance(v, str) for v in labels):
                self.feature_names_in_ = np.array(labels, dtype=object)

    def _merge(self, other, users):
        super()._merge(other, users)
        if [p.labels for p in self._columns.members] == [p.labels for p in other._columns.members]:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(other, name) and not hasattr(self, name):
                    setattr(self, name, getattr(other, name))
        return self

    def _freeze(self, columns, names):
        self._columns, self.randomizers_ = columns, columns.laws

    # ---------------------------------------------------------------- inside: estimates go out

    def _numbers(self):
        """Yield (label, the number of its column) of every feature."""
        for part in self._columns.members:
            own = part.columns_of(self._columns)
            for number, features in enumerate(own.features):
                for v in part.labels[features]:
                    yield v, part.at.start + number

    def _draws(self):
        """Return how many users have reported each column."""
        n = len(self._columns)
        return self._counts[-1].tolist() if self._columns.n_sampled else [self._n_users] * n

    def _servers(self):
        """Return the fitted server of each part, made anew where counts changed."""
        return self._known()[1]

    def _known(self):
        """Return (counts, the servers of these, their answers so far): means and distributions take time."""
        self._check_fitted()
        known = self._fitted
        if known is None or known[0] is not self._counts:
            known = self._fitted = self._counts, {p.name: self._served(p) for p in self._columns.members}, {}
        return known

    def _served(self, part):
        server, own = copy(part.server), part.columns_of(self._columns)
        names = np.array(part.labels, dtype=object) if isinstance(part.labels[0], str) else None
        server._add(server._client(), own, names, self._counts[part.at], self._n_users)
        server._seeded, server._reports_each, server._n_batches = self._seeded, self._reports_each, self._n_batches
        if self._columns.n_sampled:
            server._drawn = self._draws()[part.at]
        server._part_of = type(self).__name__  # (counts of drawn columns do not add up as those of others do)
        return server

    def _by_column(self, *names):
        """Return, for the columns whose server has one of these attributes, the first of them, by column."""
        _, servers, answers = self._known()
        if names not in answers:
            found = {}
            for part, server in zip(self._columns.members, servers.values()):
                name = next((name for name in names if _has(server, name)), None)
                if name is not None:
                    found |= dict(zip(part.labels, getattr(server, name)))
            answers[names] = found
        return {v: each.copy() if np.ndim(each) else float(each) for v, each in answers[names].items()}

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_fitted", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are chosen one by one: any table will not do)
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    # ---------------------------------------------------------------- for the checks

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        grr, oue = GRRFrequencyEstimator(categories=[[0, 1, 2]]), OUEFrequencyEstimator(categories=[[0, 1], [0, 1, 2]])
        means = PMTransformer(bounds=([0.0, -5.0], [1.0, 5.0]), grid=16)
        shape = DistributionEstimator(PMTransformer(bounds=(-1.0, 3.0), grid=64), n_bins=8)
        return [
            {"transformers": [("kind", grr, [1]), ("size", means, [0, 3]), ("answers", oue, [4, 2])], "epsilon": 2.0},
            {"transformers": [("kind", grr, [1]), ("shape", shape, [0])], "epsilon": 2.0, "strategy": "split",
             "shares": {"kind": 1, "shape": 3}},
            {"transformers": [("sign", HMTransformer(bounds=(-1.0, 1.0), grid=16), [2]), ("kind", grr, [0]),
                              ("answers", oue, [1, 3])], "epsilon": 3.0, "n_sampled": 2},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows that suit the clients, each column as its own has it, and one more column."""
        columns = {}
        for number, (_, client, labels) in enumerate(self._choices(None)):
            columns |= dict(zip(labels, client._test_data(n_rows, seed + number)[0].T))
        return np.column_stack([np.asarray(columns.get(j, np.zeros(n_rows)), np.float64)
                                for j in range(max(columns) + 2)]), None


def _has(server, name):
    """Tell whether a server has such an estimate, without making it."""
    return hasattr(type(server), name) or name in vars(server)
