"""What estimators under local privacy of edges share: users report on their neighbour lists, a server aggregates.

A sub-class says what a user reports (`_randomised`), how reports are read (`_read_reports`), and what follows from
those of all users (`_estimates`). A report depends on the user's list and on fresh noise, and on nothing else.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dpestim import parallel
from dpestim._core import lists
from dpestim.base import PrivateEstimator
from dpestim.graph.lists.flips import BitLaw
from dpestim.graph.lists.reading import Lists, joined, packed, read_lists, read_reports
from dpestim.graph.lists.texts import TEXTS
from dpestim.graph.tags import TagsOfGraphs
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon, log_upper
from dpestim.records import record
from dpestim.rng import WordSource, check_random_state

_LISTS, _REPORTS = ("half", "whole"), ("packed", "sparse")


@record(eq=False)
class Seen:
    """What was aggregated: what `_read_reports` returned, whether noise was seeded, the law, and what was promised."""

    read: object
    seeded: bool | None
    settings: dict
    promise: PrivacyGuarantee


class ListMechanism(TagsOfGraphs, PrivateEstimator):
    """Base of what randomises neighbour lists: `privatize`, a ledger, and what is promised."""

    _template, _checked_as, _texts = "rows", "lists", TEXTS
    _not_in_parts = ("needs lists that know the numbers of their nodes: call privatize(rows, users=...) where the rows "
                     "are, and aggregate the reports")

    def privatize(self, X, users=None):
        """Randomise neighbour lists into reports, on the users' side; one release.

        {graph or rows}

        Returns
        -------
        reports
            A row for each user; rows of different users can be concatenated, in ascending order of users.
        """
        found, source = self._paid(X, users)
        return self._randomised(found, source)

    @property
    def privacy_(self):
        """What the reports of all users promise."""
        return self._guarantee()

    # ---------------------------------------------------------------- for the sub-class

    def _randomised(self, found, source):
        """Return the reports of `Lists` with the words of a source."""
        raise TypeError(f"{type(self).__name__} does not say what users report: implement `_randomised`")

    def _check_nodes(self, n):
        """Raise ValueError where parameters do not suit the public number of nodes."""

    def _check(self):
        """Raise ValueError for parameters of the class; sub-classes add theirs."""
        canonical_epsilon(self.epsilon)
        if not isinstance(self.lists, str) or self.lists not in _LISTS:
            raise ValueError('lists must be "half" (of each pair of nodes the one of lower number reports) or "whole"')
        check_random_state(self.random_state)
        parallel.check_n_jobs(getattr(self, "n_jobs", None))

    # ---------------------------------------------------------------- inside

    @property
    def _half(self):
        return self.lists == "half"

    def _paid(self, X, users=None):
        """Return (`Lists`, the words of a release that was paid for); nothing is charged for bad input."""
        self._bind_here()
        self._check()
        found = read_lists(X, users, strict=self._is_strict())
        self._check_nodes(found.n_nodes)
        if self._find_ledger() is not None:
            self._charge(self._guarantee(), len(found.users))
        return found, WordSource(self.random_state)

    def _relation(self):
        """Return whom reports protect: with half of the lists an edge, too, which one user reports."""
        if not self._half:
            return Neighbours.LIST
        pays = self._find_ledger()
        return Neighbours.LIST if getattr(pays, "neighbours", None) == Neighbours.LIST.value else Neighbours.EDGE

    def _guarantee(self):
        self._check()
        seeded = self.random_state is not None
        return PrivacyGuarantee(canonical_epsilon(self.epsilon), 0, "local", self._relation(), seeded, self._notes())

    def _notes(self):
        if self._half:
            return ("One of the two users of a pair reports on it. What is protected is an edge: graphs that differ "
                    "in k edges have k times this epsilon.",)
        return ("What is protected is one entry of a user's list. A relationship is an entry of the lists of two "
                "users: it has twice this epsilon, and k relationships have 2 k times this epsilon.",)

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a graph of so many nodes."""
        upper = np.triu(np.random.default_rng(seed).random((n_rows, n_rows)) < 0.3, 1)
        return (upper | upper.T).astype(np.uint8), None


class ListEstimator(ListMechanism):
    """Base of estimators from reports on neighbour lists: a client and a server in one."""

    merges = "reports"
    #: What was aggregated.
    _seen = None

    def fit(self, X, y=None):
        """Randomise the neighbour lists of a graph and estimate from the reports alone; forgets earlier reports.

        {graph}

        Returns
        -------
        self
        """
        found, source = self._paid(X)
        reports = self._randomised(found, source)
        return self._take(self._read_reports(reports, None, None), source.seeded, afresh=True)

    def aggregate(self, reports, users=None, n_nodes=None):
        """Add reports, as `privatize` returns them; estimates follow when all users have reported.

        Parameters
        ----------
        reports : as `privatize` returns them
        users : array of int, default=None
            The numbers of the users of the rows, ascending. None: all nodes, in order.
        n_nodes : int, default=None
            The public number of nodes, if `users` are given and `reports` are not sparse.

        Returns
        -------
        self
        """
        self._check()
        # (whether clients used seeds is not known here, unless this very object is the seeded client)
        seeded = True if self.random_state is not None else None
        return self._take(self._read_reports(reports, users, n_nodes), seeded)

    def merge(self, other):
        """Add what another estimator of the same law has aggregated from other users; returns self."""
        if type(other) is not type(self) or other is self:
            raise ValueError(f"other must be another {type(self).__name__}")
        if other._seen is None:
            raise ValueError("other must have seen reports: call fit or aggregate on it first")
        self._check()
        if self._settings() != other._settings():
            raise ValueError("other must have the same epsilon and the same parameters, because its reports have "
                             "another law otherwise")
        return self._take(other._seen.read, other._seen.seeded)

    @property
    def privacy_(self):
        """What the reports of all users promise; after reports what those promise, also if parameters changed since."""
        return self._guarantee() if self._seen is None else self._seen.promise

    @property
    def n_users_(self):
        """Users whose reports were aggregated."""
        if self._seen is None:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit, or aggregate "
                                 "reports")
        return len(self._seen.read.users)

    # ---------------------------------------------------------------- for the sub-class

    def _read_reports(self, reports, users, n_nodes):
        """Return what is kept of reports, with `users` (int64, ascending) and `n_nodes`; ValueError for wrong ones."""
        raise TypeError(f"{type(self).__name__} does not say what it reads: implement `_read_reports`")

    def _joined(self, mine, theirs):
        """Return what is kept of the reports of the users of both."""
        raise TypeError(f"{type(self).__name__} does not say how reports are added: implement `_joined`")

    def _estimates(self, read):
        """Return the public attributes, by name, from the reports of all users."""
        raise TypeError(f"{type(self).__name__} does not say what it estimates: implement `_estimates`")

    # ---------------------------------------------------------------- inside

    def _settings(self):
        """Return the parameters of the law, by name."""
        params = self.get_params(deep=False)
        for name in ("ledger", "random_state", "n_jobs"):
            params.pop(name, None)
        return {**params, "epsilon": canonical_epsilon(self.epsilon)}

    def _take(self, read, seeded, afresh=False):
        """Add what was read of reports, or begin with it; nothing changes before all is checked, and then at once."""
        mine = None if afresh else self._seen
        promise = self._guarantee()
        settings = self._settings()
        if mine is not None:
            if mine.settings != settings:
                raise ValueError("parameters must be those of the earlier reports: call fit, or make a new estimator")
            if mine.read.n_nodes != read.n_nodes:
                raise ValueError("reports must be about the same nodes: their numbers of nodes differ")
            if len(np.intersect1d(mine.read.users, read.users, assume_unique=True)):
                raise ValueError("users must be others than those of earlier reports, because a user reports once")
            seeded = True if True in (mine.seeded, seeded) else None if None in (mine.seeded, seeded) else False
            read = self._joined(mine.read, read)
        complete = len(read.users) == read.n_nodes
        learned = self._estimates(read) if complete else {}
        promise = replace(promise, seeded=seeded)
        return self._become({**learned, "_seen": Seen(read, seeded, settings, promise)})

    def __sklearn_is_fitted__(self):
        return self._seen is not None and len(self._seen.read.users) == self._seen.read.n_nodes

    def _check_fitted(self):
        """Raise NotFittedError before all users have reported."""
        if self._seen is not None and not self.__sklearn_is_fitted__():
            read = self._seen.read
            raise NotFittedError(f"{len(read.users)} of {read.n_nodes} users have reported: aggregate the reports of "
                                 "the others, too")
        check_is_fitted(self)


class BitReports:
    """Mixin, which stands left of `ListMechanism`: users report bits by randomised response (`BitLaw`).

    Reports are sparse, but for a parameter `reports` that says otherwise.
    """

    @property
    def bit_law_(self):
        """The law of a reported bit: `p`, `q`, `variance`, `debiased`."""
        return BitLaw(canonical_epsilon(self.epsilon))

    def _check(self):
        super()._check()
        if not isinstance(self._form, str) or self._form not in _REPORTS:
            raise ValueError('reports must be "packed" (a bit for each node) or "sparse" (the nodes that are reported)')
        _ = self.bit_law_.q  # (ValueError: no such law)

    @property
    def _form(self):
        return getattr(self, "reports", "sparse")

    def _noisy(self, found, source):
        """Return the `Lists` that are reported."""
        return noisy_lists(found, self.bit_law_, source, self._half, getattr(self, "n_jobs", None))

    def _randomised(self, found, source):
        noisy = self._noisy(found, source)
        return packed(noisy) if self._form == "packed" else noisy.matrix()

    def _read_reports(self, reports, users, n_nodes):
        return read_reports(reports, users, n_nodes, self._half)

    # ---------------------------------------------------------------- for the checks

    def _loss(self):
        """Return what a bit that moves costs at most: the logarithm of p / q."""
        weights = self.bit_law_
        return log_upper(weights.p / weights.q)

    def _numbers(self, reports):
        """Return the bits of reports."""
        if sparse.issparse(reports):
            return reports.toarray().astype(int)
        return np.unpackbits(reports, axis=1, bitorder="little").astype(int)

    def _noise_of(self, X, reports):
        """Return which bits were flipped, slot by slot."""
        n = len(X)
        slot = np.triu(np.ones((n, n), bool), 1) if self._half else ~np.eye(n, dtype=bool)
        return (self._numbers(reports)[:, :n] != X)[slot].astype(int)

    def _noise_chances(self, values):
        """Return the probabilities of integers as noise: 1 for a flip."""
        q = float(self.bit_law_.q)
        return np.where(values == 0, 1 - q, np.where(values == 1, q, 0.0))

    def _joined(self, mine, theirs):
        return joined(mine, theirs)


def noisy_lists(found, law, source, half, n_jobs=None):
    """Return `Lists` with exact flips: each user's bits by randomised response, independent of each other."""
    flipped, counts = law.draw(source, found.users, found.n_nodes, half, n_jobs)
    out = np.empty(len(flipped) + len(found.nodes), np.int32)
    lengths = np.empty(len(found.users), np.int64)
    total = lists.exchange(flipped, counts, found.nodes, found.starts, found.users, half, out, lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Lists(found.users, starts, out[:total], found.n_nodes)
