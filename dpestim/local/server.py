"""The server half: integer counts of reports, the verbs that add to them, and what may be added to what."""

import importlib
import threading

import numpy as np
from sklearn.exceptions import NotFittedError

from dpestim.base import PrivateEstimator
from dpestim.local.columns import column_names, wide
from dpestim.privacy.lineage import Lineage
from dpestim.summaries import refuse_other_names

#: What names columns that are reported without a frame.
_BY_NAME = ("Reports carry no names of columns: declare the columns by name on both sides, in a dict or a "
            "dpestim.Domain, or give all rows as arrays")


class Server(PrivateEstimator):
    """Base of whatever estimates from counts of reports; counts add up, anywhere and in any order.

    State: the frozen columns, one vector of integer counts for each, and how many users were counted; everything else
    is derived from them when it is asked for. A sub-class says by `_client` who randomises, and which laws it can
    estimate from by `_check_columns`.
    """

    merges = "reports"
    # State lives in these; the class attributes stand for "nothing seen yet".
    _columns = None
    _n_users = 0
    _n_batches = 0
    _reports_each = 1
    _seeds = ()
    _seeded = False
    _lineage = Lineage()
    #: The name of what holds the reports of several columns, where this only reads its own.
    _part_of = None
    #: As clients have it, for what is both.
    _alone_reads = False
    #: Whether counts of the same users may be added: not where they keep answers, which do not average out.
    _adds_same_users = True
    _STATE = ("_columns", "_counts", "_n_users", "_n_batches", "_reports_each", "_seeds", "_seeded", "_lineage")

    def aggregate(self, reports):
        """Add reports, as `privatize` returns them, to the counts; returns self.

        Reports carry numbers only, and no names: columns are those of this server, in its order. That they were made by
        the same mechanism with the same epsilon and domain is for the caller to know; an Arrow table or record batch,
        as `dpestim.collection.Survey.to_arrow` makes it, says so itself, and is read without a copy where its bytes are
        those of an array of reports. What no client of this mechanism
        could have sent is a ValueError, and so is an array that another law made in this process. Counts that this law
        gives for no data, but for one time in 10^9, are warned of.
        """
        with self._alone():
            return self._aggregate(reports)

    def _aggregate(self, reports):
        client = self._client()
        columns, blocks = self._blocks(reports, client._columns_to_freeze)
        counts, n = None, 0
        for block in blocks:
            block = columns.check_reports(block, counted=True)
            self._check_columns(columns)
            own = columns.count(block, client.n_jobs, counts is None)
            counts, n = own if counts is None else [wide(a) + b for a, b in zip(counts, own)], n + len(block)
        self._warn_if_impossible(columns, counts, n)
        self._add(client, columns, None, counts, n)
        self._mark()
        # whether clients used seeds is not known here, unless this very object is the seeded client
        self._seeded = True if self._seeded or client.random_state is not None else None
        return self

    def _blocks(self, reports, of_width):
        """Return (the columns of this server, the arrays of reports in an array or an Arrow table).

        Before any are frozen the columns are those `of_width`.
        """
        is_array = type(reports) is np.ndarray
        if not is_array and (hasattr(reports, "__arrow_c_stream__") or hasattr(reports, "__arrow_c_array__")):
            # (a room above, which knows how reports lie in tables, and is loaded for who has one)
            width, blocks = importlib.import_module("dpestim.collection.batches").reports_in(reports)
            columns = self._columns if self._n_users else of_width(width)
            return columns, blocks(columns)
        width = reports.shape[1] if getattr(reports, "ndim", 0) == 2 and reports.shape[1] else 1
        return self._columns if self._n_users else of_width(width), (reports,)

    def detect_poisoning(self, reports=None, *, alpha=1e-3):
        """Test whether reports can be those of honest clients, for any values that their users hold; costs nothing.

        Some numbers of a law's reports have one distribution for every value: how many bits are 1 (unary encodings),
        which hash, row, cohort, key or column was drawn, remainders of codes modulo the width of a window (PM, SW),
        sums over what no value has (Hadamard and projective geometry response). Each is compared with its exact
        binomial distribution, and all p values together with Bonferroni's inequality.

        Parameters
        ----------
        reports : ndarray, Arrow table or None, default=None
            As `aggregate` takes them; they are not counted. None: the counts of this server, which tell less. Local
            hashing, dBitFlipPM and SHE need the reports.
        alpha : float, default=0.001
            The rate of false alarms, in (0, 1): with honest clients an alarm has at most this probability, for any
            values and any number of reports of different users.

        Returns
        -------
        dpestim.audit.PoisoningTest
            With `suspicious`, `p_value`, and a line for each statistic.

        Raises
        ------
        ValueError
            For reports that `aggregate` refuses, and for laws that allow no such test (randomised response, subset
            selection, relaxed laws): reports of malicious users then look like those of honest users with other values.

        Notes
        -----
        No test finds input poisoning: malicious users who choose their values and follow the law are honest clients to
        the server. Nor does one find reports that were drawn to look right in all of these numbers.
        """
        from dpestim.local.pivots import detect  # (with the statistics of all laws)

        client = self._client()
        if reports is None:
            self._check_fitted()
            return detect(self._columns, self._counts, self._n_users, None, alpha, self.privacy_)
        columns, blocks = self._blocks(reports, client._columns_of_width)
        blocks = [columns.check_reports(block) for block in blocks]
        reports = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return detect(columns, None, len(reports), reports, alpha, columns.guarantee(None))

    def _take_counts(self, counts, n, n_batches, names):
        """Be as if n reports had been aggregated, which were checked and counted elsewhere in so many batches.

        `names` are those of the lineage of the counts. Returns self.
        """
        client = self._client()
        columns = client._columns_now()
        with self._alone():
            self._check_columns(columns)
            self._warn_if_impossible(columns, counts, n)
            self._add(client, columns, None, counts, n)
            self._n_batches, self._lineage, self._seeded = n_batches, Lineage(frozenset(names)), None
        return self

    def merge(self, other, *, users="disjoint"):
        """Add the counts of another aggregate of the same law; returns self.

        Parameters
        ----------
        other : estimator of the same type
        users : {"disjoint", "same"}, default="disjoint"
            Whether nobody, or perhaps everybody, is counted in both: then the guarantees of the two add up. `n_users_`
            is the number of reports either way. The default is for regions, and for devices that answer once; the
            notes of `privacy_` say that it was assumed. Nothing in a report tells: for users who may have answered
            twice say "same".

        Raises ValueError where the domains differ, or any argument of the laws; where columns have other names, or
        only those of one have names; where `other` is this object; and
        where both saw rows of one seed at the same positions, because their noise would be the same (this cannot be
        seen where the reports came in by `aggregate`).
        """
        _check_other(self, other, users)
        if users == "same" and not self._adds_same_users:
            raise ValueError("users must be 'disjoint', because permanent answers do not average out over reports. "
                             "Count each round of the same users separately; privacy_of(state) states the guarantee of "
                             "all rounds")
        with self._alone():
            return self._merge(other, users)

    def _merge(self, other, users):
        client = self._client()
        theirs = other._columns
        if self._n_users:
            columns = self._columns
        elif client._is_declared:
            columns = client._columns_now(theirs.n_features)
        else:
            columns = client._like(theirs)
        if not columns.same_law(theirs):
            raise ValueError(f"other must have the same epsilon, {client._same_domain} and the same "
                             "parameters of the law in every column")
        self._check_columns(columns)
        mine, names = getattr(self, "feature_names_in_", columns.keys), getattr(other, "feature_names_in_", None)
        if self._n_users or mine is not None:
            refuse_other_names(mine, names, _BY_NAME)
        check_seeds(self, other)
        seeded = (self._seeded, other._seeded) if self._n_users else (other._seeded,)
        times = (self._reports_each * bool(self._n_users), other._reports_each)
        batches = (self._n_batches, other._n_batches)
        if self._n_users == 0:
            columns = columns.named(theirs.names)
        self._add(client, columns, names, other._counts, other._n_users)
        self._reports_each = sum(times) if users == "same" else max(times)
        self._n_batches = max(batches) if users == "same" else sum(batches)
        self._seeds = [*self._seeds, *other._seeds]
        self._lineage |= other._lineage
        self._seeded = True if True in seeded else None if None in seeded else False
        return self

    def fit(self, X, y=None):
        """Randomise the rows of X and estimate from the reports alone; forgets what was seen before."""
        self._fit(X, restart=True)
        return self

    def partial_fit(self, X, y=None):
        """Randomise the rows of X and add their reports; rows must be new users (or each pays epsilon again)."""
        self._fit(X, restart=False)
        return self

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`): charges for all rows before the first report is made.

        Rows are read once before, so that what is refused costs nothing. Data that can be read once only, such as a
        generator, are charged before they are read.

        {fit of parts}
        """
        from dpestim.passes import Blueprint, CheckRows, CountReports  # (only who reads rows in parts asks for them)

        self._as_rows(*example)
        client = self._client(restart=True)
        columns = client._columns_like(example[0])
        self._check_columns(columns)
        ask(CheckRows(Blueprint.of(self)))
        found = ask(client._asks(CountReports, self, columns))
        self._bind_as(client)
        with self._alone():
            self._forget()
            self._merge(found, "disjoint")
            self._n_batches = 1

    @property
    def n_users_(self):
        """Reports counted so far."""
        self._check_fitted()
        return self._n_users

    @property
    def privacy_(self):
        """What the reports of one user promise; known before any data where the domain is declared."""
        if self._n_users:
            return self._columns.guarantee(self._seeded, self._reports_each, self._n_batches)
        client = self._client()
        return client._columns_now().guarantee(client.random_state is not None)

    # ---------------------------------------------------------------- for the sub-class

    def _client(self, restart=False):
        """Return who randomises; `restart`: as if no data had been seen."""
        raise TypeError(f"{type(self).__name__} does not say who randomises: implement `_client`")

    def _warn_if_impossible(self, columns, counts, n):
        """Warn where counts of n reports are far from what the laws give for any data, as far as that is known."""

    def _check_columns(self, columns):
        """Raise ValueError for laws, or own parameters, that no estimate can be made with; before anything is paid."""

    # ---------------------------------------------------------------- inside

    def __sklearn_is_fitted__(self):
        return self._n_users > 0

    def _check_fitted(self):
        if not self._n_users:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, or aggregate reports, first"
            )

    def _fit(self, X, *, restart, keep_reports=False):
        """Validate, charge, then randomise and count; nothing changes before all of that is done."""
        with self._alone():
            return self._fit_alone(X, restart or not self._n_users, keep_reports)

    def _fit_alone(self, X, restart, keep_reports):
        read = self._read_for(X, restart)
        client, data, columns, _ = read
        source = client._pay(columns, len(data[0]))
        self._bind_as(client)
        return self._take(read, source, restart, keep_reports)

    def _read_for(self, X, restart):
        """Return (client, the rows of each column, `Columns`, names) of checked rows; nothing is spent or changed."""
        client = self._client(restart)
        return client, *client._read(X, restart, self._check_columns)

    @staticmethod
    def _as_rows(X, y=None):
        """Return what `_read` takes; y is ignored, as `fit` does."""
        return X

    def _count_sent(self, rows, request, place):
        """Count reports of rows on a worker, with the words that the request has for this place; returns self."""
        from dpestim.passes import words_of

        new = self._columns is None  # (a later round knows its law from the driver)
        with self._alone():
            self._take(self._read_for(self._as_rows(*rows), new), words_of(request, place), new, first=place.before)
        return self

    def _read_part(self, rows):
        """Return what `_take` takes of the rows of a part."""
        return self._read_for(self._as_rows(*rows), self._columns is None)

    def _client_here(self):
        """Return who randomises, for `_privatize_sent`."""
        return self._client()

    def _reports_of(self, rows):
        """Return reports as `aggregate` takes them, from an array or from a frame with one column of bytes."""
        if not hasattr(rows, "columns"):
            return rows
        dtype, each = self._client()._columns_now().dtype, rows.iloc[:, 0]
        return np.frombuffer(b"".join(each), dtype).reshape(len(each), -1)

    def _copied(self):
        """Return another object with the same counts."""
        twin = object.__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin

    def _take(self, read, source, restart, keep_reports=False, first=None):
        """Randomise by these words and count what `_read_for` gave, which was paid for; returns reports to keep.

        `first` is the number of the first row, by which its words are found: by default that after those counted.
        """
        client, data, columns, names = read
        n = len(data[0])
        if first is None:
            first = 0 if restart else self._n_users
        reports = None
        if keep_reports:
            reports = columns.randomize(data, source, first, client.n_jobs)
            counts = columns.count(reports, client.n_jobs, True)
        else:
            counts = columns.randomize_and_count(data, source, first, client.n_jobs, True)
        if restart:
            self._forget()
        self._add(client, columns, names, counts, n)
        if not source.seeded:
            self._mark()
        if source.seeded:
            self._seeds = _with_range(self._seeds, source.fingerprint, first, first + n)
        self._seeded = source.seeded or self._seeded
        return reports

    def _add(self, client, columns, names, counts, n):
        """Freeze the law and add counts."""
        counts = [a + b for a, b in zip(self._counts, counts)] if self._n_users else list(counts)
        columns = self._columns if self._n_users else columns
        if names is not None and not hasattr(client, "feature_names_in_"):
            columns = columns.named(column_names(columns.n_features, names))  # from now on the relaxations carry them
        client._freeze(columns, names)
        self._columns, self._counts = client._columns, counts
        self._n_users, self._n_batches = self._n_users + n, self._n_batches + 1

    def _mark(self):
        """Let copies of this aggregate be known as such; where noise was seeded, it tells itself."""
        if not self._lineage.names:
            self._lineage = Lineage.new()

    def _bind_as(self, client):
        """Stay bound to the ledger that has paid for a client, be it that of the block or its own."""
        self._bind(client._find_ledger())
        if self._bound[0] is None and client._bound[0] is not None:
            self._bound = (client._bound[0], self._bound[1])

    def _alone(self):
        """Return a lock, by which no other thread counts into this object: what it read would be overwritten."""
        if self._part_of is not None:
            raise ValueError(f"this estimator is a part of a {self._part_of}, for reading only: clone it to count "
                             "other reports")
        # (of several threads that bring one at once, all get the first: a dict takes a text and a value in one step)
        return vars(self).get("_lock") or vars(self).setdefault("_lock", threading.RLock())

    @property
    def _counts(self):
        """The counts of each column, int64. Those of one call may be bytes until they are asked for here.

        Most servers of many counters are read once or never, and eight times the memory takes as long as counting does.
        The list stays the same: what was worked out of these counts is known by it.
        """
        kept = vars(self).get("_counts")
        for number, own in enumerate(kept or ()):
            kept[number] = wide(own)
        return kept

    @_counts.setter
    def _counts(self, counts):
        vars(self)["_counts"] = counts

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_lock", None)
        if self._counts is not None:  # (whoever loads it may be an older version, which adds them as they are)
            state["_counts"] = self._counts
        return state

    def _forget(self):
        for name in self._STATE:
            vars(self).pop(name, None)


def _check_other(mine, other, users):
    """Raise ValueError unless `other` is another aggregate of the same kind that has seen data."""
    if other._part_of is not None:
        raise ValueError(f"other is a part of a {other._part_of}, for reading only: merge the {other._part_of} itself")
    if users not in ("disjoint", "same"):
        raise ValueError("users must be 'disjoint' or 'same'")
    if other is mine:
        raise ValueError("other must be another aggregate, because otherwise users would be counted twice")
    if type(other) is not type(mine):
        raise ValueError(f"other must be a {type(mine).__name__}")
    if not other._n_users:
        raise ValueError("other must have seen data (call fit, partial_fit or aggregate on it first)")


def check_seeds(mine, other):
    """Raise ValueError where one is a copy of the other, or both saw rows of one seed at the same positions."""
    if mine._lineage.meets(other._lineage):
        raise ValueError("other counted some of the same reports, because it is a copy of this aggregate or was merged "
                         "with one: merge aggregates of different reports")
    for name, start, stop in mine._seeds:
        if any(name == n and start < e and s < stop for n, s, e in other._seeds):
            raise ValueError("other repeats the seeded noise of this aggregate: use different seeds, or "
                             "random_state=None")


def _with_range(seeds, fingerprint, start, stop):
    """Return seeds with one more range of rows; the batches of a stream become one range."""
    *before, last = seeds or [(None, 0, 0)]
    if last[0] == fingerprint and last[2] == start:
        return [*before, (fingerprint, last[1], stop)]
    return [*seeds, (fingerprint, start, stop)]
