"""Any local estimator behind a shuffler: the same reports, a guarantee that grows with the users."""

import math
from copy import copy
from dataclasses import replace

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from dpestim.local.categories.grr import GRRFrequencyEstimator
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.numbers.duchi import DuchiTransformer
from dpestim.local.server import check_seeds
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_amount
from dpestim.privacy.rounding import float_down, whole
from dpestim.privacy.text import bound as text_of
from dpestim.rng import WordSource
from dpestim.shuffle.amplification import best, keeps
from dpestim.shuffle.calibrated import Calibrated
from dpestim.shuffle.choice import warn_if_far
from dpestim.shuffle.of_local import check_number, inner_of, law_of, row_epsilon
from dpestim.shuffle.transport.uniform import FOR_MESSAGES, farthest_bits, shuffled

#: What the wrapped estimator says of its estimates, besides all that ends in an underscore.
_TOLD = frozenset({"confidence_interval", "estimate", "quantile", "quantile_interval", "release", "to_frame"})
_UNFITTED = "This ShuffledEstimator instance is not fitted yet: call fit, or analyse, first"


class ShuffledEstimator(Calibrated):
    """Estimate by any local estimator behind a shuffler, with the largest local epsilon that is (epsilon, delta)-DP.

    Users randomise by the law of the wrapped estimator, with a local epsilon larger than `epsilon`, because the
    messages of other users hide each message. The local epsilon grows with the number of users. Errors are those of the
    wrapped estimator at this local epsilon. For sums, protocols with several messages a user have smaller errors
    (`RealSum`).

    **Privacy.** (epsilon, delta) for data sets of equal size that differ in one user's row, where the shuffler is
    trusted and at least ``n_users - colluding`` users follow the protocol; the number of users is public. All columns
    of a row are one message, shuffled as a whole. The local epsilon is found by numerical bounds, proven in
    ``amplification/bounds.md`` (and used as in ``shuffled.md``), for the integer law that is really drawn from; the
    local epsilon holds even without the shuffler (`local_privacy_`). Where there are too few users for shuffling to
    help, each report is epsilon-private by itself, and delta is not needed. A call of `fit` or `encode` is charged
    once.

    **Utility.** That of the wrapped estimator at `local_epsilon_`.

    **Complexity.** That of the wrapped estimator, and a search for the local epsilon: some 20 bounds, each a few
    milliseconds, once for each law and number of users.

    Parameters
    ----------
    estimator : estimator of `dpestim.local` that counts reports, default=None
        A frequency estimator, `MeanEstimator` or `DistributionEstimator`; cloned. Its epsilon (that of its transformer)
        is replaced; its ledger, seed and `n_jobs` are used. For categories take `GRRFrequencyEstimator`: at the local
        epsilon that shuffling allows it nearly always has the least error (`dpestim.shuffle.plan` compares).
        `AdaptiveFrequencyEstimator` of one declared column becomes the best of three. Frequent values that nobody can
        list are found with `HeavyHitterEstimator`, whose `n_users` is that of the shuffle where it is None. Relaxed
        laws are refused, and so are `PersonalizedEstimator` and `MixedEstimator`. None: ``MeanEstimator()``, which
        learns its bounds and so protects nothing.
    epsilon : float, default=1.0
        Of the shuffled messages of a row, in (0, 80].
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, above 0 and below 1: it must be declared.
    bound : {"best", "blanket", "clones"}, default="best"
        How the guarantee is computed: "clones" needs only the local epsilon; "blanket" the law, which must be that of
        a single column and have a known common part; "best" takes the law where it is known.
    colluding : int, default=0
        How many users may tell the analyser what they sent: the promise is kept by the others.
    n_users : int, default=None
        How many users take part at least; fewer are refused. None: the rows that `fit` sees. It must be declared where
        users encode on their own.

    Attributes
    ----------
    estimator_ : estimator
        A copy of the wrapped one, fitted. What ends in an underscore there is an attribute here, too, such as
        `frequencies_` or `mean_`, and `confidence_interval`, `quantile`, `quantile_interval`, `to_frame`, `release`.
    local_epsilon_ : Fraction
        The epsilon of one row's report: the wrapped estimator's.
    local_privacy_ : PrivacyGuarantee
        What a report promises to those who see it before it is shuffled.
    privacy_ : PrivacyGuarantee
        What all messages together promise; before any data where the domain and `n_users` are declared.
    n_users_ : int
        Users whose messages were counted.

    Raises
    ------
    ValueError
        For parameters and rows that do not fit, and for too few users; it names the parameter or column, never a value,
        and changes and spends nothing.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar, "Hiding among the clones: a simple and nearly optimal analysis of privacy
    amplification by shuffling", FOCS 2021; B. Balle, J. Bell, A. Gascon, K. Nissim, "The privacy blanket of the shuffle
    model", CRYPTO 2019, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> from dpestim.shuffle import ShuffledEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> drinks = GRRFrequencyEstimator(categories=[["tea", "coffee", "water"]], random_state=0)
    >>> est = ShuffledEstimator(drinks, 0.5, delta=1e-6).fit(X)
    >>> round(float(est.local_epsilon_), 2), bool(np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.01)
    (4.35, True)

    Users, the shuffler and the analyser apart:

    >>> est = ShuffledEstimator(drinks, 0.5, delta=1e-6, n_users=10_000)
    >>> messages = est.encode(X)                        # each user, who shows it to nobody but the shuffler
    >>> est = est.analyse(est.shuffle(messages))        # the shuffler, and the analyser
    >>> bool(np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.01)
    True
    """

    _checked_as = "shuffled"
    _not_in_parts = ("needs all rows at once, because users hide among all others: let users encode, bring all "
                     "messages to one shuffler, and call analyse")
    merges = "reports"
    _server = None
    #: (users, epsilon, delta) of each shuffle that is counted, for so many colluding users; how often a user may be in.
    _shuffles, _colluding = (), 0
    _times = 1
    _seeded = False

    def __init__(self, estimator=None, epsilon=1.0, *, delta=None, bound="best", colluding=0, n_users=None):
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.bound = bound
        self.colluding = colluding
        self.n_users = n_users

    # ---------------------------------------------------------------- the verbs

    def fit(self, X, y=None):
        """Encode, shuffle and analyse the rows of X, streamed: counts of messages do not depend on their order."""
        columns, server, read, guarantee, n = self._read(X, restart=True)
        warn_if_far(server, columns, *self._setting(n))
        source = self._pay(read, guarantee, n)
        server._take(read, source, restart=True)
        self._keep(server, guarantee, n, source.seeded)
        return self

    def encode(self, X):
        """Turn the rows of users into their messages, on the user's side: one report a row, with `local_epsilon_`.

        {rows to reports}
            C-contiguous, of one unsigned dtype, a row a user: to be shown to nobody but the shuffler.

        Notes
        -----
        Each call charges for a release of its rows. `n_users` and the domain must be declared: nobody hides alone.
        """
        self._declared_users("users encode on their own")
        _, _, read, guarantee, n = self._read(X, restart=False)
        source = self._pay(read, guarantee, n)
        client, data, columns, _ = read
        return columns.randomize(data, source, 0, client.n_jobs)

    def shuffle(self, messages, shuffler=None):
        """Return the same messages in an order that says nothing of who sent which: the part that must be trusted.

        Parameters
        ----------
        messages : ndarray of shape (n_users, width)
            Of all users, as `encode` returns them; fewer users than `n_users` are refused before anything is ordered.
        shuffler : Shuffler, default=None
            None: a `UniformShuffler` in this process. One whose ``distance(n)`` costs more than a part of 2^-40
            of delta is refused.

        Returns
        -------
        ndarray of shape (n_users, width)
        """
        if type(messages) is not np.ndarray or messages.ndim != 2 or not messages.size or messages.dtype.kind != "u":
            raise ValueError("messages must be a two-dimensional array, as encode returns it")
        # (the shuffler is trusted to count; the analyser is not)
        n = self._declared_users("messages come from users")
        check_number(len(messages), n)
        width = messages.shape[1]
        self._server_of_width(n, width)._client()._columns_of_width(width).check_reports(messages)
        return shuffled(messages, shuffler, WordSource(self.random_state).part(1), farthest_bits(*self._checked()))

    def analyse(self, messages):
        """Count the messages of one shuffle, in any order, and forget what was seen before; returns self.

        Messages carry numbers only: that they were made with the same parameters is for the caller to know. What no
        user can have sent is a ValueError. Other shuffles of other users are added by `merge`.
        """
        n, width = self._declared_users("messages come from users"), 1
        if getattr(messages, "ndim", 0) == 2 and messages.shape[1]:
            width = messages.shape[1]
        server = self._server_of_width(n, width)._aggregate(messages)
        check_number(len(messages), n)
        self._keep(server, self._guarantee(server._columns, n), n, None if self.random_state is None else True)
        return self

    def merge(self, other, *, users="disjoint"):
        """Add another shuffle's counts, of the same law: two shuffles, of which each has the number of its own users.

        Parameters
        ----------
        other : ShuffledEstimator
            Fitted.
        users : {"disjoint", "same"}, default="disjoint"
            Whether nobody, or perhaps everybody, is in both: then what the two promise adds up.
        """
        if users not in ("disjoint", "same"):
            raise ValueError("users must be 'disjoint' or 'same'")
        if type(other) is not type(self) or other._server is None or other is self:
            raise ValueError("other must be another ShuffledEstimator that has seen data")
        self._check_fitted()
        check_seeds(self._server, other._server)
        server = copy(self._server).merge(other._server, users=users)
        seeded = (self._seeded, other._seeded)
        self._seeded = True if True in seeded else None if None in seeded else False
        self._server, self._shuffles = server, (*self._shuffles, *other._shuffles)
        self._times = self._times + other._times if users == "same" else max(self._times, other._times)
        self._colluding = min(self._colluding, other._colluding)
        return self

    def score(self, X, y=None):
        """Return the wrapped estimator's score, which compares with raw data: it is **not private**."""
        self._check_fitted()
        return self._server.score(X, y)

    # ---------------------------------------------------------------- what is promised

    @property
    def privacy_(self):
        """What all messages together promise to each user."""
        if self._server is None:
            if self.n_users is None:
                raise NotFittedError(_UNFITTED + ", or declare n_users")
            n = whole(self.n_users, "n_users")
            server = self._server_for(n)
            return self._guarantee(server._client()._columns_now(), n, self.random_state is not None)
        _, epsilon, delta = (max(part) for part in zip(*self._shuffles))
        return self._told(self._server._columns, epsilon, delta, min(n for n, _, _ in self._shuffles), self._seeded,
                          self._colluding)

    def privacy_against(self, colluding):
        """Return the guarantee if this number of users disclose their messages to the analyser.

        Parameters
        ----------
        colluding : int
            From 0 to all but one of the users of each shuffle.

        Returns
        -------
        PrivacyGuarantee
            With the declared delta; its epsilon never exceeds the local one.
        """
        self._check_fitted()
        n, colluding = min(n for n, _, _ in self._shuffles), whole(colluding, "colluding", 0)
        if colluding >= n:
            raise ValueError("colluding must be less than the number of users")
        columns, delta = self._server._columns, max(delta for _, _, delta in self._shuffles)
        if colluding <= self._colluding or columns.inferred:
            return self.privacy_
        epsilon = local = row_epsilon(columns)
        if delta:
            found = best(n - colluding, law_of(columns, local), float_down(delta * FOR_MESSAGES))
            epsilon = min(local, canonical_amount(found, "epsilon"))
        return self._told(columns, epsilon, delta, n, self._seeded, colluding, of_shuffler=True)

    @property
    def local_epsilon_(self):
        """The epsilon of one row's report."""
        self._check_fitted()
        return row_epsilon(self._server._columns)

    @property
    def local_privacy_(self):
        """What a report promises to those who see it before it is shuffled."""
        self._check_fitted()
        return self._server.privacy_

    @property
    def estimator_(self):
        """The wrapped estimator, fitted: a copy, so that what is counted into it changes nothing here."""
        self._check_fitted()
        return copy(self._server)

    @property
    def ledger(self):
        """The ledger of the wrapped estimator, which pays for the shuffle."""
        return getattr(inner_of(self._wrapped), "ledger", None)

    @property
    def random_state(self):
        """The seed of the wrapped estimator."""
        return getattr(inner_of(self._wrapped), "random_state", None)

    def __getattr__(self, name):
        """Return what the wrapped estimator says of its estimates."""
        told = name in _TOLD or (name.endswith("_") and not name.startswith("_"))
        if told and self._server is None:
            raise NotFittedError(_UNFITTED)
        if told and not hasattr(type(self), name):  # (never what a property here could not say)
            return getattr(self._server, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    _result_notes = property(lambda self: getattr(self._server, "_result_notes", tuple))
    _result_parts = property(lambda self: self._server._result_parts)  # (what the wrapped estimator shows)

    def __sklearn_is_fitted__(self):
        return self._server is not None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(inner_of(self._wrapped)).input_tags
        return tags

    # ---------------------------------------------------------------- inside

    def _check_fitted(self):
        if self._server is None:
            raise NotFittedError(_UNFITTED)

    def _declared_users(self, why):
        if self.n_users is None:
            raise ValueError(f"n_users must be declared where {why}: the least number of users that take part")
        return whole(self.n_users, "n_users")

    def _read(self, X, restart):
        """Return (columns, server, what it read of X, the guarantee, rows); nothing is spent or changed."""
        trial = self._at(self._checked()[0])
        X_seen = trial._client()._container(X, self._is_strict())
        rows, width = X_seen.shape
        n = rows if self.n_users is None else whole(self.n_users, "n_users")
        server = self._server_for(n, width)
        read = server._read_for(X, restart)
        if restart:
            check_number(rows, n)
        return read[2], server, read, self._guarantee(read[2], n, self.random_state is not None), n

    def _pay(self, read, guarantee, n):
        """Charge a release of the rows, once, and return its words."""
        self._charge(guarantee, len(read[1][0]), read[2].names)
        return WordSource(self.random_state)

    def _keep(self, server, guarantee, n, seeded):
        self._server, self._times, self._seeded = server, 1, seeded
        self._shuffles, self._colluding = ((n, guarantee.epsilon, guarantee.delta),), int(self.colluding)

    def _guarantee(self, columns, n, seeded=None):
        """Return what a shuffle of n messages of these columns promises, checked with the law that is drawn from."""
        epsilon, delta = self._checked()
        if columns.inferred:
            return PrivacyGuarantee(math.inf, model="shuffle", neighbours=Neighbours.SUBSTITUTION, seeded=seeded,
                                    notes=columns.guarantee().notes)
        colluding, local = whole(self.colluding, "colluding", 0), row_epsilon(columns)
        if local <= epsilon:
            delta = 0
        elif not keeps(local if self.bound == "clones" else law_of(columns, local), n - colluding, epsilon,
                       delta * FOR_MESSAGES):
            raise ValueError("estimator must have a law that depends on its epsilon and no other budget: leave "
                             "epsilons and other budgets at None")
        return self._told(columns, epsilon, delta, n, seeded, colluding)

    def _told(self, columns, epsilon, delta, n, seeded, colluding, *, of_shuffler=False):
        """Return a guarantee with what its reader should know."""
        if epsilon == math.inf:
            return PrivacyGuarantee(epsilon, model="shuffle", neighbours=Neighbours.SUBSTITUTION, seeded=seeded,
                                    notes=columns.guarantee().notes)
        local = row_epsilon(columns)
        notes = [
            f"The analyser sees one message of each of at least {n} users in random order, and their number. The "
            f"guarantee holds if at most {colluding} of these users disclose their messages to the analyser.",
            f"Without the shuffler a user's own message keeps a local epsilon of {text_of(local)}"
            f"{' in each of them' if self._times > 1 else ''}.",
        ]
        if not delta:
            notes.append("The number of users is too small for amplification by shuffling at this epsilon and delta: "
                         "each message has this epsilon without the shuffler.")
        if len(self._shuffles) > 1:
            notes.append(f"The guarantee covers {len(self._shuffles)} shuffles together if no user was in two of them."
                         if self._times == 1 else f"A user may have been in {self._times} shuffles.")
        if of_shuffler and delta:
            notes.append(f"The guarantee holds if the shuffler's order is within 2^-{farthest_bits(epsilon, delta)} of "
                         "uniform in total variation.")
        notes = tuple(dict.fromkeys([*notes, *columns.guarantee().notes]))
        one = PrivacyGuarantee(epsilon, delta, "shuffle", Neighbours.SUBSTITUTION, seeded, notes)
        return replace(one, epsilon=self._times * one.epsilon, delta=min(1, self._times * one.delta))

    # ---------------------------------------------------------------- for the checks

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with: few users, and a delta at which they hide each other."""
        return [
            {"estimator": GRRFrequencyEstimator(categories=[["a", "b", "c"]]), "epsilon": 0.5, "delta": 0.05,
             "n_users": 4},
            {"estimator": MeanEstimator(DuchiTransformer(bounds=(0.0, 1.0))), "epsilon": 1.0, "delta": 0.01,
             "n_users": 7, "colluding": 1},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows that suit the wrapped estimator."""
        return self._wrapped._test_data(n_rows, seed)
