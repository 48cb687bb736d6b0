"""What all protocols share: `encode` on the user's side, `shuffle`, `analyse`; and what they promise, to whom."""

import math

import numpy as np

from dpestim.central.base import checked_delta
from dpestim.local.columns import Columns
from dpestim.local.server import Server
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.rounding import whole
from dpestim.privacy.text import bound
from dpestim.rng import WordSource
from dpestim.shuffle.transport.uniform import FOR_MESSAGES, farthest_bits, shuffled

#: Users for whom bounds are worked out, at most.
_MOST_USERS = 10**15


class ShuffledColumns(Columns):
    """Columns whose messages are shuffled: the promise is about all users together, and needs the shuffler."""

    def with_columns(self, columns):
        """Return other columns in the same layout."""
        return type(self)(columns, self.inferred, self.keys)

    @property
    def n_users(self):
        """Users that must take part."""
        return max(law.n_users for law in self.laws)

    @property
    def local_epsilon(self):
        """What a row's messages promise to those who see them before they are shuffled."""
        return self.of_row([law.local_epsilon for law in self.laws])

    @property
    def delta(self):
        """The declared delta: that of the laws, and what is kept for the shuffler."""
        return sum(law.delta for law in self.laws) / FOR_MESSAGES

    @property
    def farthest_bits(self):
        """How far from uniform the shuffler may be: 2 to the power of minus this."""
        return farthest_bits(self.of_row([law.epsilon for law in self.laws]), self.delta, len(self))

    def guarantee(self, seeded=None, times=1, n_batches=1, colluding=None):
        """Return what all messages together promise to one user, who may have taken part several times."""
        if self.inferred:
            return PrivacyGuarantee(math.inf, model="shuffle", neighbours=Neighbours.SUBSTITUTION, seeded=seeded,
                                    notes=(f"The {self.inferred} were learned from the private data: declare them.",))
        law = self.laws[0]
        helpers = law.colluding if colluding is None else colluding
        local = times * self.local_epsilon
        alone = (f"a user's own messages keep a local epsilon of {bound(local)}" if local != math.inf else
                 "a user's own messages keep nothing")
        notes = [
            f"The analyser sees the messages of at least {law.n_users} users in random order, and their number. The "
            f"guarantee holds if at most {helpers} of these users disclose their messages to the analyser.",
            f"Without the shuffler {alone}.",
        ]
        if times > 1:
            notes.append(f"A user may have taken part {times} times.")
        if n_batches > 1:
            notes.append(f"The guarantee covers {n_batches} batches, each shuffled separately, if no user was in two "
                         "of them.")
        if len(self) > 1:
            notes.append(f"It covers the {len(self)} columns of a row together.")
        notes += [f"Note: {law.slack}." for law in self.laws if law.slack]
        notes += [note for law in self.laws for note in law.notes]
        epsilon = times * self.of_row([law.epsilon if colluding is None else law.epsilon_left(colluding)
                                        for law in self.laws])
        if helpers > law.colluding and epsilon != math.inf:
            bits = farthest_bits(epsilon / times, self.delta, len(self))
            notes.append(f"The guarantee holds if the shuffler's order is within 2^-{bits} of uniform in total "
                         "variation.")
        return PrivacyGuarantee(epsilon, min(1, times * self.delta), "shuffle", Neighbours.SUBSTITUTION, seeded,
                                tuple(dict.fromkeys(notes)))


class ShuffleProtocol(Server):
    """Base of protocols: client and server in one, as for any local estimator, and a shuffler between them.

    A sub-class is also the client of its kind of data (`NumberClient`, `CategoryClient`), whose `_made` returns
    `ShuffledColumns` of laws with the arguments of `_law_arguments`.
    """

    #: Which checks of `dpestim.testing` apply, and which shared text fills the docstring.
    _checked_as = _template = "shuffle"

    def __init__(self, epsilon=1.0, *, delta=None, n_users=None, colluding=0, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.delta = delta
        self.n_users = n_users
        self.colluding = colluding
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def encode(self, X):
        """Turn the rows of users into their messages, on the user's side; the same as ``privatize``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_messages)
            One row a user, the messages of all columns side by side: to be shown to nobody but the shuffler.

        Notes
        -----
        Each call charges for a release of its rows; `n_users` must be declared, as nobody hides alone. With a seed
        each call repeats the noise of the one before.
        """
        return self.privatize(X)

    def privatize(self, X):
        """Do what `encode` does."""
        if self.n_users is None:
            raise ValueError("n_users must be declared where users encode separately: the least number of users that "
                             "take part")
        return super().privatize(X)

    def fit_parts(self, ask, example):
        """Refuse: users hide among all others, whose number must be known before the first of them is randomised."""
        raise ValueError(f"{type(self).__name__} needs all rows at once: let users encode, bring all messages to one "
                         "shuffler, and call analyse")

    def shuffle(self, messages, shuffler=None):
        """Return the same messages in an order that says nothing of who sent which: the part that must be trusted.

        Parameters
        ----------
        messages : ndarray of shape (n_users, n_messages)
            Of all users, as `encode` returns them; fewer users than `n_users` are refused before anything is ordered.
        shuffler : Shuffler, default=None
            Called once a column, with an array of shape (n_users * n_messages, 1). None: a `UniformShuffler` in this
            process, whose order a seed of the protocol repeats. One whose ``distance(n)`` costs more than a part of
            2^-40 of delta is refused.

        Returns
        -------
        ndarray of shape (n_users, n_messages)
            A row is no user any more.
        """
        columns = self._columns_of_width(getattr(messages, "shape", (0, 1))[-1])
        messages = columns.check_reports(messages)
        _check_number(len(messages), columns)  # (the shuffler is trusted to count; the analyser is not)
        bits = columns.farthest_bits
        out, source = np.empty_like(messages), WordSource(self.random_state)
        for number, part in enumerate(columns.slices):  # in other orders, as nothing may tell which belong to one user
            alike = np.ascontiguousarray(messages[:, part]).reshape(-1, 1)
            mixed = shuffled(alike, shuffler, source.part(1 + number), bits)
            out[:, part] = mixed.reshape(len(messages), -1)
        return out

    def analyse(self, messages):
        """Count the messages of one shuffle, in any order; the same as ``aggregate``; returns self."""
        return self.aggregate(messages)

    def privacy_against(self, colluding):
        """Return the guarantee if this number of users disclose their messages to the analyser.

        Parameters
        ----------
        colluding : int
            From 0 to all but one of the users that must take part.

        Returns
        -------
        PrivacyGuarantee
            With the declared delta; its epsilon never exceeds what a user's own messages keep without any shuffler, and
            is infinite where none is known with this delta.
        """
        columns = self._columns if self._n_users else self._columns_now()
        colluding = whole(colluding, "colluding", 0)
        if colluding >= columns.n_users:
            raise ValueError("colluding must be less than the number of users that must take part")
        times = (self._reports_each, self._n_batches) if self._n_users else (1, 1)
        return columns.guarantee(self._seeded if self._n_users else self.random_state is not None, *times, colluding)

    # ---------------------------------------------------------------- inside

    def _client(self, restart=False):
        return self

    def _law_class(self):
        """Return the law of the messages, whose parameters are looked up by name."""
        return self._randomizer

    def _law_arguments(self, column, n_columns, domain):
        n_users = self._n_users_declared()
        colluding = whole(self.colluding, "colluding", 0)
        if colluding >= n_users:
            raise ValueError("colluding must be less than n_users")
        delta = checked_delta(self.delta) * FOR_MESSAGES / n_columns
        known = {"delta": delta, "n_users": n_users, "colluding": colluding}
        names = self._law_class().own_parameters()
        return {name: known[name] if name in known else getattr(self, name) for name in names}

    def _n_users_declared(self):
        n_users = self.n_users if self.n_users is not None else vars(self).get("_n_rows")
        if n_users is None:
            raise ValueError("n_users must be declared, or fit must come first: the least number of users that take "
                             "part")
        n_users = whole(n_users, "n_users")
        if n_users > _MOST_USERS:
            raise ValueError("n_users must be at most 10^15")
        return n_users

    def _schema(self, X, strict, restart=False):
        if self.n_users is None and restart:  # those at hand are all: their number is public
            n_rows = len(self._container(X, strict))
            if n_rows != vars(self).get("_n_rows"):  # (laws depend on it: those that are kept are of another number)
                vars(self).pop("_declared", None)
                self._n_rows = n_rows
        X, names, columns = super()._schema(X, strict, restart)
        return X, names, columns

    def _read_for(self, X, restart):
        read = super()._read_for(X, restart)
        _check_number(len(read[1][0]), read[2])
        return read

    def _aggregate(self, reports):
        if getattr(reports, "ndim", 0) == 2:
            columns = self._columns if self._n_users else self._columns_of_width(reports.shape[1] or 1)
            _check_number(len(reports), columns)
        return super()._aggregate(reports)

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_n_rows", None)
        return state


def _check_number(n, columns):
    if n < columns.n_users:
        raise ValueError("n_users must not exceed the number of users in a batch: the guarantee is for "
                         f"{columns.n_users} users, and the batch has {n}")
