"""`PrivateIntersectionSize`: how many users two owners have in common, and nothing else (`intersection.md`)."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim.base import PrivateEstimator
from dpestim.exceptions import PartiesError
from dpestim.parties.limits import MOST_USERS
from dpestim.parties.masked_sets import WIDTH, is_on_curve, masked, point_of, text_of
from dpestim.parties.noise import BinomialShares
from dpestim.parties.wire import Message
from dpestim.privacy import Neighbours
from dpestim.privacy.rounding import whole
from dpestim.privacy.trust import Parties
from dpestim.rng import WordSource

_ROLES, _VERSION = ("first", "second"), 2


class PrivateIntersectionSize(PrivateEstimator):
    """Count the users that two owners have in common; neither learns the exact number, and no third party is there.

    One owner is the "first", one the "second". Both call `start`, and hand each message to the `receive` of the other:
    there are three. Each owner lives in its own process. `Relayed` and `Relay` carry the messages over sockets; where
    another carrier is used, `encode` and `decode` turn messages into bytes and back.

    **Privacy.** (epsilon, delta) for the users of each owner against the other owner and everybody else, if both follow
    the protocol (honest-but-curious) and the Diffie-Hellman problem on Curve25519 is hard. An owner that sends other
    points than those of its users is not detected. Without `max_users` the sizes of both sets are public, and
    neighbours are sets of which one user is replaced.

    **Utility.** Unbiased before it is cut to possible sizes. The noise of both owners is in the number: its variance is
    twice that of one trusted adder.

    **Complexity.** Some 0.2 milliseconds for each user of either owner, and 96 bytes.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-6
        At least 1e-9.
    role : {"first", "second"}, default="first"
    max_users : int, default=None
        How many users an owner has at most, a public number; both fill up to it. Neighbours are then sets of which one
        has one user more, and sizes are not shown.
    label : str, default=""
        The name of this count, the same for both owners.
    ledger : Ledger, default=None
        Of this owner, charged by `start`, before anything is sent. None: the ledger of the block, if there is one.
    random_state : None, int or NumPy generator, default=None
        None draws secure words. With an int whoever knows it knows the masks and the noise.

    Attributes
    ----------
    phase : str
        What this owner waits for: "start", the message "points", "both" or "size", or "end".
    size_ : int
        The number of common users, with noise; both owners have the same, and may publish it.
    guarantee_ : PrivacyGuarantee
        For the users of this owner.
    standard_error_ : float
        Of the noise.

    References
    ----------
    B. Huberman, M. Franklin, T. Hogg, Enhancing Privacy and Trust in Electronic Communities, EC 1999 (masks that
    commute). The noise by dummies and the proof: ``intersection.md``.

    Examples
    --------
    >>> from dpestim.parties import PrivateIntersectionSize
    >>> clinic = PrivateIntersectionSize(2.0, delta=1e-4, role="first", random_state=0)
    >>> insurer = PrivateIntersectionSize(2.0, delta=1e-4, role="second", random_state=1)
    >>> waiting = clinic.start(range(200)) + insurer.start(range(100, 400))
    >>> while waiting:
    ...     message = waiting.pop()
    ...     waiting += (clinic, insurer)[message.receiver].receive(message)
    >>> clinic.size_ == insurer.size_, 75 < clinic.size_ < 125
    (True, True)
    """

    def __init__(self, epsilon=1.0, *, delta=1e-6, role="first", max_users=None, label="", ledger=None,
                 random_state=None):
        self.epsilon, self.delta, self.role, self.max_users, self.label = epsilon, delta, role, max_users, label
        self.ledger, self.random_state = ledger, random_state

    def __getstate__(self):
        """Refuse while messages are on their way: a copy would use the noise and the masks twice."""
        if getattr(self, "_run", None) is not None:
            raise TypeError("a PrivateIntersectionSize cannot be pickled or copied between its messages, because its "
                            "noise would be used twice: wait for the last message")
        return super().__getstate__()

    def start(self, users):
        """Charge the ledger; return the messages to be sent: a list of one as the first owner, of none as the second.

        Parameters
        ----------
        users : iterable of str, bytes or int
            Of this owner; who is in it twice counts once. Both owners write users in the same way.
        """
        if self.role not in _ROLES:
            raise ValueError(f'role must be "first" or "second", got {self.role!r}')
        if not isinstance(self.label, str):
            raise ValueError("label must be a str, the same for both owners")
        most = MOST_USERS if self.max_users is None else whole(self.max_users, "max_users")
        if isinstance(users, str | bytes | dict) or hasattr(users, "columns") or not isinstance(users, Iterable):
            raise ValueError("users must be a list of names, a column or a set: not one name, and no table")
        texts = {text_of(user) for user in users}
        if most > MOST_USERS or len(texts) > most:
            raise ValueError(f"users must be at most {min(most, MOST_USERS)}: raise max_users up to {MOST_USERS}, or "
                             "count parts of the users")
        shares = BinomialShares(
            2, 1, self.epsilon, self.delta,
            neighbours=Neighbours.SUBSTITUTION if self.max_users is None else Neighbours.ADD_REMOVE)
        run = _Run(shares, self._terms(shares), self.label.encode(), WordSource(self.random_state),
                   _ROLES.index(self.role))
        guarantee = replace(shares.guarantee, seeded=run.source.seeded,
                            parties=(Parties(2, None, name="owners", follows=True),))
        self._charge(guarantee, None)
        self._become({"guarantee_": guarantee})
        self._run, self._noisy, self._seen = run, None, {}
        fill = 0 if self.max_users is None else most - len(texts)
        run.points = [run.point(b"user" + text) for text in texts] + [run.filler() for _ in range(fill)]
        run.n_users, run.max_users = len(run.points), self.max_users
        if self.role == "second":
            run.awaits = "points"
            return []
        # all dummies, of which the other owner takes each or not
        run.points += [run.point(b"dummy" + str(at).encode()) for at in range(shares.scale)]
        run.awaits = "both"
        return [run.message("points", masked(run.points, run.secret))]

    @property
    def phase(self):
        """What this owner waits for."""
        run = getattr(self, "_run", None)
        return run.awaits if run is not None else "start" if getattr(self, "_noisy", None) is None else "end"

    def receive(self, message):
        """Take a message of the other owner; return the messages to be sent now, a list of one or none.

        Raises
        ------
        PartiesError
            For a message that is damaged, not the next one, or about other parameters; names the phase. Nothing is
            changed then, so that the right message can still be received. A copy of one that came before is dropped.
        """
        phase = self.phase
        if phase == "start":
            raise PartiesError(phase, "receive comes after start: call start with the users")
        if not isinstance(message, Message):
            raise PartiesError(phase, "message must be what the other owner returned, or `decode` of its bytes")
        digest = message.fields.get("check")
        if _check(message) != digest:
            raise PartiesError(phase, "the message is damaged: ask for it again")
        if self._seen.get(message.phase) == digest:
            return []
        if message.phase != phase:
            raise PartiesError(phase, f"the message {phase!r} comes next, and {message.phase!r} came: hand over the "
                                      "messages of one count, each to the other owner")
        run = self._run
        points = run.points_of(message)
        if phase == "points":
            out = self._answer(run, points)
        elif phase == "both":
            out = self._count(run, points)
        else:
            out = self._end(run, message.fields.get("size"))
        self._seen[phase] = digest
        return out

    def _hello(self):
        """Return what the other must know before the start, a text."""
        return self.role

    def _begin(self, said, data):
        """Return the first messages, by the `_hello` of both."""
        if tuple(said) != _ROLES:
            raise PartiesError("start", 'the party of place 0 must have role="first", and that of place 1 "second", '
                                        "and there must be no other: change the roles or the directory")
        return self.start(*data)

    def _answer(self, run, theirs):
        """Return the second message: points of the first owner under both masks, and own ones under one."""
        n_dummies = run.shares.scale
        run.n_theirs = len(theirs) - n_dummies
        _check_size("points", run.n_theirs, run.max_users)
        both = _masked("points", theirs, run.secret)
        taken = run.coins()
        chosen = [run.point(b"dummy" + str(at).encode()) for at in taken]
        fill = [run.filler() for _ in range(n_dummies - len(taken))]
        own = masked(run.points + chosen + fill, run.secret)
        run.awaits, run.noise = "size", len(taken)
        return [run.message("both", both + own)]

    def _count(self, run, points):
        """Return the last message: the number of common points, with the noise of this owner."""
        n_first = len(run.points)
        run.n_theirs = len(points) - n_first - run.shares.scale
        _check_size("both", run.n_theirs, run.max_users)
        theirs = _masked("both", points[n_first:], run.secret)
        common = len(set(points[:n_first]) & set(theirs))
        noisy = common - run.shares.scale // 2 + int(run.shares.draw(run.source.part(1), 1)[0])
        self._tell(run, noisy)
        return [run.message("size", [], size=noisy)]

    def _end(self, run, size):
        most = run.n_users + run.n_theirs + 2 * run.shares.scale
        if not isinstance(size, int) or isinstance(size, bool) or abs(size) > most:
            raise PartiesError("size", "the message has no possible number: ask for it again")
        self._tell(run, size)
        return []

    def _tell(self, run, noisy):
        self._most, self._shares, self._noisy = min(run.n_users, run.n_theirs), run.shares, noisy
        self.size_ = min(max(noisy, 0), self._most)
        self.standard_error_ = run.shares.variance**0.5
        self._run = None

    def confidence_interval(self, level=0.95):
        """Return (low, high), which hold the number of common users with at least this probability.

        Both are functions of what was published and of public sizes.
        """
        if getattr(self, "_noisy", None) is None:
            raise ValueError("confidence_interval comes after the last message: exchange messages first")
        width = self._shares.half_width(level)
        return tuple(min(max(end, 0), self._most) for end in (self._noisy - width, self._noisy + width))

    def _terms(self, shares):
        """Return a hash of what both owners must agree on."""
        most = None if self.max_users is None else int(self.max_users)
        agreed = [_VERSION, str(Fraction(shares.epsilon)), str(Fraction(shares.delta)), most, self.label,
                  shares.scale]
        return hashlib.sha256(json.dumps(agreed).encode()).hexdigest()


class _Run:
    """What an owner keeps between messages."""

    def __init__(self, shares, terms, label, source, me):
        self.shares, self.terms, self.source, self.me = shares, terms, source, me
        self._label = hashlib.sha256(label).digest()
        # (parts of the source share no word: 0 masks, 1 noise, 2 fillers)
        self.secret = os.urandom(32) if not source.seeded else source.part(0).key_for_workers()
        self._fillers, self._n_fillers = source.part(2).key_for_workers(), 0

    def point(self, text):
        """Return the point of what both owners may have."""
        return point_of(self._label + text)

    def filler(self):
        """Return the point of a secret that nobody else has: it is common to nobody."""
        self._n_fillers += 1
        return point_of(b"filler" + self._fillers + str(self._n_fillers).encode())

    def coins(self):
        """Return the dummies that are taken: so many as a share of the noise says, whichever they are."""
        return range(int(self.shares.draw(self.source.part(1), 1)[0]) + self.shares.scale // 2)

    def message(self, phase, points, **more):
        """Return a message of points, which ends in a hash of it all."""
        array = np.frombuffer(b"".join(points), np.uint8).reshape(-1, WIDTH)
        message = Message(phase, self.me, 1 - self.me, {"terms": self.terms, **more}, {"points": array})
        message.fields["check"] = _check(message)
        return message

    def points_of(self, message):
        """Return the points of a message of the other owner, or raise PartiesError."""
        if (message.sender, message.receiver) != (1 - self.me, self.me):
            raise PartiesError(self.awaits, "a message is not from the other owner to this one: one of both has "
                                            'role="first", and one "second"')
        if message.fields.get("terms") != self.terms:
            raise PartiesError(self.awaits, "both owners must have the same epsilon, delta, max_users and label: "
                                            "compare them")
        array = message.arrays.get("points")
        if array is None or array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != WIDTH:
            raise PartiesError(self.awaits, "the message has no points: both owners need equal versions of dpestim")
        return [point.tobytes() for point in array]


def _check(message):
    """Return a hash of a message without its own, which finds accidents on the way."""
    fields = {name: value for name, value in message.fields.items() if name != "check"}
    return replace(message, fields=fields).digest(b"dpestim intersection").hex()


def _check_size(phase, found, max_users):
    if not 0 <= found <= MOST_USERS or (max_users is not None and found != max_users):
        raise PartiesError(phase, "the message has another number of points than both owners agreed on: compare "
                                  "max_users and delta")


def _masked(phase, points, secret):
    """Return points of the other owner under the own mask too, or raise PartiesError where they are none."""
    if len(set(points)) < len(points) or not all(is_on_curve(int.from_bytes(point, "little")) for point in points):
        raise PartiesError(phase, "points of the message must differ and be points of the curve, and they are not: "
                                  "ask for it again")
    return masked(points, secret)
