"""Two rounds: users report bits, the noisy graph is published, and users answer again with what they see in it.

In the second round a client knows the published noisy graph, which is made of reports alone. Proof: ``triangle.md``.
"""

import copy
import hashlib

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from dpestim.graph.lists.base import BitReports
from dpestim.graph.lists.reading import read_lists
from dpestim.privacy import PrivacyGuarantee
from dpestim.rng import WordSource

#: What is known of the first round when it is closed.
_ROUND = ("_published", "_first_seeded", "_first_settings", "_first_promise")
_OTHER = ("parameters must be those of the first round, whose reports have spent a part of its epsilon: set them back, "
          "or make a new estimator")


class TwoRounds(BitReports):
    """Mixin, which stands left of `ListEstimator`: the method "two_rounds" has a round of bits and one of answers.

    A sub-class has `_shares()`, epsilon of the two rounds, and for the second `_answers(found, source)`,
    `_read_answers(reports, users, n_nodes)` and `_joined_answers(mine, theirs)`.
    """

    #: the `Lists` of the first round, where it is closed, whether seeds were used in it, and its parameters and promise
    _published, _first_seeded, _first_settings, _first_promise = None, None, None, None

    def fit(self, X, y=None):
        """Randomise the neighbour lists of a graph and estimate from the reports alone; forgets earlier reports.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. Row i is the
            neighbour list of user i.
        y : ignored

        Returns
        -------
        self
        """
        if not self._two:
            self._close()
            return super().fit(X)
        found, source = self._paid(X)
        trial = self._in_second(self._read_reports_of_bits(BitReports._randomised(self, found, source)), source.seeded)
        trial._take(trial._read_answers(trial._answers(found, source), None, None), source.seeded, afresh=True)
        return self._become(vars(trial))

    def privatize(self, X, users=None):
        """Randomise neighbour lists into reports of the open round, on the users' side; one release.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. Row i is the
            neighbour list of user i.
            If `users` are given: rows of it, of shape (n_users, n_nodes).
        users : array of int, default=None
            The numbers of the nodes whose lists are the rows of X, ascending. None: X is the whole graph.

        Returns
        -------
        reports
            A row for each user; rows of different users can be concatenated, in ascending order of users.
        """
        if not self._two:
            self._check_first()
            return super().privatize(X, users)
        self._bind_here()
        self._check()
        self._check_first()
        found = read_lists(X, users, strict=self._is_strict())
        self._check_nodes(found.n_nodes)
        if self._published is not None and found.n_nodes != self._published.n_nodes:
            raise ValueError(f"X must have the {self._published.n_nodes} nodes of the first round")
        if self._find_ledger() is not None:
            whole, epsilon = self._guarantee(), self._shares()[self._published is not None]
            self._charge(PrivacyGuarantee(epsilon, 0, whole.model, whole.neighbours, whole.seeded, whole.notes),
                         len(found.users))
        return self._randomised(found, WordSource(self.random_state))

    def next_round(self):
        """Publish the noisy graph of the first round, and begin the second; returns self."""
        if not self._two or self._published is not None:
            raise ValueError('there is no further round: method="two_rounds" has two, and other methods have one')
        if self._seen is None or len(self._seen.read.users) < self._seen.read.n_nodes:
            raise NotFittedError("The first round needs the reports of all users: aggregate them before next_round")
        if self._seen.settings != self._settings():
            raise ValueError(_OTHER)
        vars(self).update(_published=self._seen.read, _first_seeded=self._seen.seeded, _seen=None,
                          _first_settings=self._seen.settings, _first_promise=self._seen.promise)
        return self

    def client(self):
        """Return an estimator that knows what was published, and no reports, to `privatize` with in the open round."""
        twin = type(self)(**self.get_params(deep=False))
        if self._to_bind() != (None, False):  # (as clones do: strict mode, and the ledger that pays)
            twin._bound = self._to_bind()
        vars(twin).update({name: getattr(self, name) for name in _ROUND if getattr(self, name) is not None})
        return twin

    @property
    def privacy_(self):
        """What reports of all users promise; after those of a round what it promised, also if parameters changed."""
        if self._seen is None and self._first_promise is not None:
            return self._first_promise
        return super().privacy_

    @property
    def noisy_graph_(self):
        """The published noisy graph, a csr_array; only after the first of two rounds."""
        if self._published is None:
            raise AttributeError("there is no noisy_graph_ before the first of two rounds is closed: call next_round")
        upper = sparse.csr_array(self._published.matrix())
        return upper + upper.T

    def __sklearn_is_fitted__(self):
        return super().__sklearn_is_fitted__() and (not self._two or self._published is not None)

    # ---------------------------------------------------------------- inside

    @property
    def _two(self):
        return self.method == "two_rounds"

    def _open(self):
        """Tell whether the second round is open."""
        return self._two and self._published is not None

    def _in_second(self, published, seeded):
        """Return a copy whose second round is open."""
        trial = copy.copy(self)
        trial._close()
        trial._first_settings, trial._first_promise = trial._settings(), trial._guarantee()
        trial._published, trial._first_seeded = published, seeded
        return trial

    def _close(self):
        """Forget the rounds of another method."""
        for name in _ROUND:
            vars(self).pop(name, None)

    def _check_first(self):
        """Raise ValueError where the second round would have other parameters than the first: epsilon is of both."""
        if self._first_settings not in (None, {**self._settings(), "published": None}):
            raise ValueError(_OTHER)

    def _read_reports_of_bits(self, reports, users=None, n_nodes=None):
        return BitReports._read_reports(self, reports, users, n_nodes)

    def _randomised(self, found, source):
        return self._answers(found, source) if self._open() else super()._randomised(found, source)

    def _read_reports(self, reports, users, n_nodes):
        self._check_first()
        if not self._open():
            return self._read_reports_of_bits(reports, users, n_nodes)
        read = self._read_answers(reports, users, n_nodes)
        if read.n_nodes != self._published.n_nodes:
            raise ValueError(f"reports must be about the {self._published.n_nodes} nodes of the first round")
        return read

    def _joined(self, mine, theirs):
        return (self._joined_answers if self._open() else super()._joined)(mine, theirs)

    def _settings(self):
        published = None
        if self._published is not None:
            parts = self._published.starts, self._published.nodes
            published = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()
        return {**super()._settings(), "published": published}

    def _take(self, read, seeded, afresh=False):
        self._check_first()
        if self._open():
            both = self._first_seeded, seeded
            seeded = True if True in both else None if None in both else False
        return super()._take(read, seeded, afresh)

    def _check_fitted(self):
        if self._two and self._published is None and super().__sklearn_is_fitted__():
            raise NotFittedError("This is the first of two rounds: call next_round, and aggregate the reports of the "
                                 "second")
        super()._check_fitted()
