"""Users of different public settings around any estimator: each group has its own law, and all groups one estimate."""

from copy import copy

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from dpestim.base import PrivateEstimator
from dpestim.local.categories.estimates import check_postprocess
from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.categories.sdgrr import SDGRRFrequencyEstimator
from dpestim.local.client import Client
from dpestim.local.estimates.combined import Combined
from dpestim.local.estimates.distribution import DistributionEstimator
from dpestim.local.estimates.groups import Groups
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.estimates.mixed import MixedEstimator
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.server import Server, check_seeds
from dpestim.rng import WordSource, check_random_state

#: Parameters of the wrapped estimator that settings leave alone: one ledger, one seed, one estimate for all.
_SHARED = ("ledger", "random_state", "n_jobs", "postprocess", "sparse_output")


class PersonalizedEstimator(Combined, Server):
    """Estimate from groups of users with different settings: epsilon, domain or low-sensitivity set.

    Each group of users, named by a public column, has the wrapped estimator with parameters of its own; the groups'
    estimates are combined. This is personalised local privacy (PLDP: groups with an epsilon and a safe region, such as
    ``categories=[["a", "b"]]``), and its sensitivity-aware form (SDLDP: groups with low-sensitivity sets of their own).

    **Privacy.** Each user has the guarantee of the user's group, `guarantee_by_group_`, for any two values of the rest
    of the row; no other party is trusted. The group is published: it must be public and independent of private values.
    `privacy_` is the guarantee that every user has, with the largest epsilon. A call is charged once, with the largest
    epsilon of its groups, because no user is in two groups (proof in ``personalized.md``).

    **Utility.** ``weights="stratified"`` adds no bias, however values depend on groups. "inverse_variance" has the
    smaller variance where epsilons differ, and is biased unless groups are like random samples of the users: those who
    choose their settings are not. A drawn column of which a small group has no report is estimated from the other
    groups, and `bias_` says what that may cost. The published weights are not divided by the size of a group, and are
    biased in the same way: they are not offered.

    **Complexity.** That of the wrapped estimator, and O(n) for putting n rows in the order of their groups.

    Parameters
    ----------
    estimator : estimator of `dpestim.local` that counts reports, default=None
        A frequency estimator, `MeanEstimator` or `DistributionEstimator`; cloned for each group. Its ledger, seed and
        `n_jobs` (those of its transformer) are those of all groups, and its `postprocess` is applied to the combined
        frequencies. None: ``MeanEstimator()``, which learns its bounds from the data and so protects nothing.
    settings : dict of dict, default=None
        From each group to the parameters, as for ``estimator.set_params``, in which it differs; ``{}`` for none.
        Groups are strings, numbers or other hashable scalars. Domains must be declared in all of them. The order counts
        where reports are exchanged. None: everybody has the same, and X has no column of groups.
    group_column : int or str, default=0
        The column of X that names the group of each row: a position, or a name where X is a frame. Messages and the
        names of relaxations count the columns without it.
    weights : {"stratified", "inverse_variance"}, default="stratified"
        A group's share of the users; or inversely to the square of the standard error that its estimate would have for
        values spread evenly over the domain, which depends on no data (frequencies and means only, and the same
        categories in all groups).

    Attributes
    ----------
    estimators_ : dict of estimator
        A copy of the fitted estimator of each group that has reports; frequencies there are unbiased, not
        post-processed. Intervals for quantiles are there, too: those of groups do not combine into one.
    group_sizes_ : dict of int
        Reports counted of each group.
    n_users_ : int
        Reports counted so far.
    privacy_ : PrivacyGuarantee
        What the reports of any user promise: that of the group with the largest epsilon.
    guarantee_by_group_ : dict of PrivacyGuarantee
        What one report of a user of each group promises.
    categories_, frequencies_, standard_errors_ : list of ndarray of shape (n_categories,)
        For each column, where the wrapped estimator has them, over all categories of all groups: a group counts as 0,
        without variance, outside of its own.
    mean_, standard_error_, bias_ : ndarray of shape (n_features,)
        Where the wrapped estimator has them, in the units of X: of values as clipped to the bounds of the group. The
        error is NaN where a group has a single report of the column. Where columns are drawn and a group has none, it
        is left out of that column; ``weights="stratified"`` then adds its share of the users times the range of all
        bounds to `bias_`, and as much to both sides of intervals.
    distribution_, bin_edges_ : list of ndarray
        Where the wrapped estimator has them; bins that differ are cut at the edges of all groups. ValueError where
        columns are drawn and a group has no report of some column.
    variance_ : ndarray of shape (n_features,)
        Of the combined distributions.
    n_features_in_ : int
        The column of groups included.
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter, a value, a group or a report that does not fit; it names the parameter or column and what was
        expected, never the value, and changes nothing. In strict mode for any settings: whether a column may be
        published is not for the analyst to say.

    References
    ----------
    R. Chen, H. Li, A. K. Qin, S. P. Kasiviswanathan, H. Jin, "Private spatial data aggregation in the local setting",
    ICDE 2016 (PLDP). The sensitivity-aware form and its weights, equation 19, are in section 4.5 of the paper of
    `SDGRRFrequencyEstimator`. G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures: a general
    approach", Statistics in Medicine 27, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import GRRFrequencyEstimator, PersonalizedEstimator
    >>> X = np.array([["careful", "yes"], ["open", "no"]] * 20_000, dtype=object)
    >>> base = GRRFrequencyEstimator(categories=[["no", "yes"]], random_state=0)
    >>> est = PersonalizedEstimator(base, settings={"careful": {"epsilon": 0.5}, "open": {"epsilon": 2}}).fit(X)
    >>> bool(abs(est.frequencies_[0][1] - 0.5) < 0.05), est.privacy_.epsilon
    (True, Fraction(2, 1))

    Numbers, by the parameters of the transformer:

    >>> from dpestim.local import MeanEstimator, PMTransformer
    >>> base = MeanEstimator(PMTransformer(bounds=(0, 10), random_state=0))
    >>> settings = {1: {"transformer__epsilon": 0.5}, 2: {"transformer__epsilon": 4}}
    >>> X = np.column_stack([np.repeat([1, 2], 10_000), np.random.default_rng(0).uniform(2, 6, 20_000)])
    >>> est = PersonalizedEstimator(base, settings, weights="inverse_variance").fit(X)
    >>> bool(abs(est.mean_[0] - 4) < 0.2), est.guarantee_by_group_[1].epsilon
    (True, Fraction(1, 2))
    """

    _groups = None  # who is in `_servers`, and how rows and reports are told apart; frozen by the first data
    _servers = None
    _STATE = ("_groups", "_servers", "_n_users", "_n_batches", "_reports_each", "_seeded", "n_features_in_",
              "feature_names_in_")

    def __init__(self, estimator=None, settings=None, group_column=0, weights="stratified"):
        self.estimator = estimator
        self.settings = settings
        self.group_column = group_column
        self.weights = weights

    _client_here = None

    def fit_parts(self, ask, example):
        """Refuse: the words of a row depend on how many rows of its group came before."""
        raise ValueError("PersonalizedEstimator needs all rows at once: fit the estimator of each group to its rows, "
                         "in parts, or aggregate reports")

    def privatize(self, X):
        """Randomise raw rows into reports, on the users' side.

        {rows to reports}
            C-contiguous, of one unsigned dtype: the number of the group in `settings`, the report as the group's own
            estimator makes it, and zeros where that is shorter than others. All that a server of these settings needs.

        Notes
        -----
        Each call is a release of its rows. Needs no `fit` where the domain is declared.
        """
        groups, servers = self._now()
        read, present, order = self._read(X, groups, servers, restart=False)
        columns = self._columns_of(servers, read, present)
        source = self._pay(groups, columns, read, present)
        out = [part.randomize(data, groups.words(source, k), 0, client.n_jobs)
               for k, (client, data, part, _) in zip(present, read)]
        return groups.pack(columns, out, order)

    @property
    def privacy_(self):
        """What the reports of any user promise; known before any data where the domain is declared."""
        groups, columns, seeded = self._promised()
        return groups.guarantee(columns, range(len(columns)), seeded, self._reports_each, self._n_batches)

    @property
    def guarantee_by_group_(self):
        """What one report of a user of each group promises."""
        groups, columns, seeded = self._promised()
        return {group: part.guarantee(seeded) for group, part in zip(groups.names, columns)}

    @property
    def estimators_(self):
        """The fitted estimator of each group that has reports."""
        self._check_fitted()
        # (copies: what is counted into one of them must not change the others' estimate)
        return {group: copy(server) for group, server in zip(self._groups.names, self._servers) if server._n_users}

    @property
    def group_sizes_(self):
        """Reports counted of each group."""
        self._check_fitted()
        return {group: server._n_users for group, server in zip(self._groups.names, self._servers)}

    # ---------------------------------------------------------------- inside: who is served

    def _client(self, restart=False):
        """Refuse: there are as many as groups."""
        raise ValueError("estimator has a law for each group: pass one of its estimators_, or the wrapped estimator")

    def _checked(self):
        """Return the wrapped estimator, having checked the parameters that are not those of laws."""
        if self.weights not in ("stratified", "inverse_variance"):
            raise ValueError("weights must be 'stratified' or 'inverse_variance'")
        base = MeanEstimator(PMTransformer()) if self.estimator is None else self.estimator
        if not isinstance(base, Server) or base._alone_reads or isinstance(
            base, PersonalizedEstimator | MixedEstimator):
            raise ValueError("estimator must be None or an estimator that counts reports, such as "
                             "dpestim.local.MeanEstimator")
        check_postprocess(getattr(base, "postprocess", None), of_one_law=False)
        check_random_state(_shared(base, "random_state"))
        return base

    def _now(self, restart=False):
        """Return (groups, a server for each, free to be changed): those in use, else fresh ones."""
        base = self._checked()
        if self._n_users and not restart:
            groups, servers = self._groups, [copy(server) for server in self._servers]
        else:
            groups, servers = self._made(base)
        if groups.are_named:
            self._refuse_in_strict("settings are refused, because they publish the column of groups: leave "
                                   "settings=None, or ask the curator to run the estimator outside of strict mode")
        # ledger and threads are those of the parameter as it is now, and shared; words come from one source for all
        items = [item for item in (self, base, _inner(base)) if isinstance(item, PrivateEstimator)]
        bound = [item._to_bind() for item in items]
        bound = (next((book for book, _ in bound if book is not None), None), any(strict for _, strict in bound))
        for server in servers:
            client = _inner(server)
            if isinstance(client, PrivateEstimator):
                client.ledger, client.n_jobs = _shared(base, "ledger"), _shared(base, "n_jobs")
                client.random_state = None
            server._bound = bound
        return groups, servers

    def _made(self, base):
        """Return (groups, a fresh server for each) of the settings as they are now."""
        settings = {None: {}} if self.settings is None else self.settings
        if not isinstance(settings, dict) or not settings or not all(
            isinstance(own, dict) and all(isinstance(name, str) for name in own) for own in settings.values()
        ):
            raise ValueError("settings must be None or a dict from groups to dicts of parameters, with one group at "
                             "least")
        groups, servers = Groups(None if self.settings is None else settings, self.group_column), []
        fresh, names = clone(base), base.get_params(deep=False)
        for group, own in settings.items():
            for name in own:
                if name.split("__")[-1] in _SHARED:
                    raise ValueError(f"settings must not contain {name}: set it in the estimator, for all groups")
            server, why = copy(fresh), None  # (to clone each would take most of the time of a small call)
            if "transformer" in names:
                # (who randomises is a clone of this in any case)
                server.transformer = PMTransformer() if base.transformer is None else copy(base.transformer)
            try:
                server.set_params(**own)
            except (ValueError, TypeError) as error:
                why = error
            if why is not None:
                raise ValueError(f"settings of group {group!r}: {why}")
            if "postprocess" in names:
                server.postprocess = None
            client = _inner(server)
            if not isinstance(client, Client):
                client = server._client()  # which says what it must be
            if groups.are_named and not client._is_declared:
                raise ValueError(f"settings: {client._domain} must be declared for all groups, and is missing for "
                                 f"{group!r}")
            servers.append(server)
        return groups, servers

    def _columns_of(self, servers, read=(), present=(), width=None):
        """Return the `Columns` of every group, checked to suit each other; `width` of reports, where that decides."""
        known = dict(zip(present, (columns for _, _, columns, _ in read)))
        known = {k: known.get(k, server._columns) for k, server in enumerate(servers)}
        one = next((columns for columns in known.values() if columns is not None), None)
        n, out = None if one is None else one.n_features, []
        for k, server in enumerate(servers):
            columns = known[k]
            if columns is None:
                client = server._client()
                of_reports = one is None and width is not None
                columns = client._columns_of_width(width) if of_reports else client._columns_now(n)
            out.append(columns)
        if len({columns.n_features for columns in out}) > 1:
            raise ValueError("settings must give all groups the same number of columns")
        if any(columns.features != out[0].features for columns in out):
            raise ValueError("settings must give all groups the same strategy: joint reports of several columns and "
                             "separate reports cannot be combined")
        gone = next((column.name for columns in out for column in columns if column.may_be_missing), None)
        if gone is not None:
            raise ValueError(f"{gone}: means and shapes of groups cannot be combined where values may be missing, as "
                             "how many have a value is an estimate: fit one estimator for each group, or fill missing "
                             "values and declare bounds without missing=True")
        self._check_together(out, servers[0])
        return out if one is None else [columns.named(one.names) for columns in out]

    def _promised(self):
        """Return (groups, the columns of each, whether noise is seeded) as the promises need them."""
        if self._n_users:
            return self._groups, self._columns_of(self._servers), self._seeded
        groups, servers = self._now()
        return groups, self._columns_of(servers), _shared(self._checked(), "random_state") is not None

    def _find_ledger(self):
        """Return the ledger of who randomises, which pays: a score is recorded there."""
        return self._now()[1][0]._find_ledger()

    # ---------------------------------------------------------------- inside: the verbs of a server

    def _read(self, X, groups, servers, restart):
        """Return ([(client, rows, `Columns`, names)] for the groups that X has, their numbers, the order of rows)."""
        present, parts, order = groups.split(X)
        if groups.are_named and not restart and hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        return [servers[k]._read_for(part, restart) for k, part in zip(present, parts)], present, order

    def _pay(self, groups, columns, read, present):
        """Charge a release of rows of these groups, once, and return its words."""
        client, random_state = read[0][0], _shared(self._checked(), "random_state")
        if client._find_ledger() is not None:
            guarantee = groups.guarantee(columns, present, random_state is not None)
            client._charge(guarantee, sum(len(data[0]) for _, data, _, _ in read), columns[present[0]].names)
        self._bind_as(client)
        return WordSource(random_state)

    def _raw(self, X):
        """Return (numbers of the groups that X has, the rows of each column of each), to compare with."""
        groups, servers = self._now()
        read, present, _ = self._read(X, groups, servers, restart=False)
        return present, [data for _, data, _, _ in read]

    def _fit_alone(self, X, restart, keep_reports):
        groups, servers = self._now(restart)
        # (a group that comes later is read by the domain that was declared for it)
        read, present, _ = self._read(X, groups, servers, restart)
        columns, seen = self._columns_of(servers, read, present), BaseEstimator()
        if groups.are_named and restart:  # (names of columns may be refused)
            validate_data(seen, X, reset=True, skip_check_array=True)
        source = self._pay(groups, columns, read, present)
        for k, part in zip(present, read):
            servers[k]._take(part, groups.words(source, k), restart)
        if restart:
            self._forget()
        self._keep(groups, servers)
        self._n_batches += 1
        self._seeded = source.seeded or self._seeded
        if not groups.are_named:
            self.n_features_in_ = servers[0].n_features_in_
            if hasattr(servers[0], "feature_names_in_"):
                self.feature_names_in_ = servers[0].feature_names_in_
        else:
            vars(self).update({name: vars(seen)[name] for name in self._STATE if name in vars(seen)})

    def _aggregate(self, reports):
        groups, servers = self._now()
        width = reports.shape[1] - 1 if getattr(reports, "ndim", 0) == 2 and reports.shape[1] > 1 else 1
        present, parts = groups.unpack(self._columns_of(servers, width=width), reports)
        for k, part in zip(present, parts):
            servers[k]._aggregate(part)
        self._keep(groups, servers)
        self._n_batches += 1
        self._seeded = True if self._seeded or _shared(self._checked(), "random_state") is not None else None
        return self

    def _merge(self, other, users):
        groups, servers = self._now()
        if groups.names != other._groups.names:
            raise ValueError("other must have the same groups in its settings, in the same order")
        theirs = other._columns_of(other._servers)
        if self._n_users or all(server._client()._is_declared for server in servers):
            n = theirs[0].n_features
            mine = [server._columns or server._client()._columns_now(n) for server in servers]
            if not all(a.same_law(b) for a, b in zip(mine, theirs)):
                raise ValueError("other must have the same epsilon, the same domain and the same parameters of the law "
                                 "in every group")
        for server in servers:
            for their in other._servers:
                check_seeds(server, their)  # also those of other groups: no two users may share their noise
        for server, their in zip(servers, other._servers):
            if their._n_users:
                server._merge(their, users)
        seeded = (self._seeded, other._seeded) if self._n_users else (other._seeded,)
        times = (self._reports_each * bool(self._n_users), other._reports_each)
        batches = (self._n_batches, other._n_batches)
        self._keep(groups, servers)
        self._reports_each = sum(times) if users == "same" else max(times)
        self._n_batches = max(batches) if users == "same" else sum(batches)
        self._seeded = True if True in seeded else None if None in seeded else False
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name) and not hasattr(self, name):
                setattr(self, name, getattr(other, name))
        return self

    def _keep(self, groups, servers):
        self._groups, self._servers = groups, servers
        self._n_users = sum(server._n_users for server in servers)

    # ---------------------------------------------------------------- for the checks

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with; the wrapped one's own epsilon is always the largest."""
        sdgrr = SDGRRFrequencyEstimator(1.0, categories=[["a", "b", "c"], [False, True]],
                                        low_sensitivity=[["a"], [False]])
        return [
            {"estimator": GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]]),
             "settings": {"x": {}, "y": {"epsilon": 0.5}, "z": {"epsilon": 0.25, "categories": [["c", "b"]]}}},
            {"estimator": MeanEstimator(PMTransformer(2.0, bounds=([0.0, -5.0], [1.0, 5.0]), grid=16)),
             "settings": {0: {}, 1: {"transformer__epsilon": 1}}, "weights": "inverse_variance"},
            {"estimator": sdgrr,
             "settings": {"x": {}, "y": {"epsilon": 0.5, "low_sensitivity": [["b", "c"], [True]]}}},
            {"estimator": DistributionEstimator(PMTransformer(2.0, bounds=(-1.0, 3.0), grid=64), n_bins=8),
             "settings": {1.5: {}, 2.5: {"transformer__bounds": (-1.0, 7.0), "n_bins": 16}}},
            {"estimator": MeanEstimator(PMTransformer(1.0, bounds=(-1.0, 3.0), grid=16))},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows of all groups in turns, each with values of its own domain."""
        groups, servers = self._now()
        parts = [server._test_data(n_rows, seed)[0] for server in servers]
        if not groups.are_named:
            return parts[0], None
        turn, values = np.arange(n_rows) % len(parts), parts[0].copy()
        for k, part in enumerate(parts):
            values[turn == k] = part[turn == k]
        names = np.array(groups.names, values.dtype)[turn]
        return np.concatenate([names[:, None], values], axis=1), None


def _inner(estimator):
    """Return who randomises for an estimator: its transformer, where it has one, or itself."""
    return getattr(estimator, "transformer", estimator)


def _shared(estimator, name):
    """Return a parameter of who randomises."""
    return getattr(_inner(estimator), name, None)
