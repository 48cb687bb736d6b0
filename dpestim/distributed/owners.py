"""Rows of several owners: each sends its sums with a share of the noise, under masks that only cancel in the total.

The proof, and who is promised what: ``owners.md``.
"""

import copy
import hashlib
import json
import os
from dataclasses import replace
from numbers import Integral
from threading import Lock

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from dpestim.distributed.gaussian_share import raised
from dpestim.distributed.shared_noise import SharedNoise
from dpestim.privacy.text import bound
from dpestim.privacy.trust import Parties
from dpestim.rng import WordSource
from dpestim.shuffle.transport.secure_sum import mask_of, one_sided
from dpestim.statistics.base import DPStatistic
from dpestim.summaries import Summary, names_of

#: What a message has, by name.
_FIELDS = ("terms", "key", "place", "n_owners", "honest", "n_columns", "one", "names", "n_rows", "seeded", "masked")
_ALONE = "an owner has one message: send `message` again, or make a new Owner, which pays again, for a new list of keys"


class Owner:
    """One of several owners of rows, who trust neither the aggregator nor each other; lives in the owner's process.

    Every owner makes one, and sends its `key` to all others. `answer` of the list of all keys then gives the message of
    this owner, and `combine` of all messages the statistic. A message tells nothing without those of all others.
    Take it for one statistic of owners who all answer, each with one message and without a server. For models, for
    owners that may drop out and for several rounds take `dpestim.parties.take_part`, which needs a server.

    **Privacy.** That of the statistic, against the aggregator and all but `honest` owners together. The ledger
    of this owner's estimator is charged by `answer`. The proof: ``owners.md``.

    Parameters
    ----------
    estimator : estimator of `dpestim.statistics`
        `Count`, `Sum`, `Mean`, `Histogram` or `ContingencyTable`; for neighbours "add_remove" also `Covariance`,
        `Correlation`, `Variance` and `StandardDeviation`. All owners have the same parameters. With a delta noise is
        Gaussian where it is on one machine.
    honest : int, default=None
        How many owners follow the protocol and tell nobody their secrets, at least. None: all but one, so that no owner
        learns from the release more than the guarantee. The variance of the noise is n_owners / honest times that of
        one machine.
    users : {"disjoint"}, default=None
        Declares that all rows of a user are those of one owner; needed with `max_rows_per_user`.

    Attributes
    ----------
    key : bytes
        The public key of this owner.
    message : dict or None
        After `answer`: the message, to be sent again where it was lost.

    Examples
    --------
    >>> from dpestim import distributed
    >>> from dpestim.statistics import Count
    >>> owners = [distributed.Owner(Count(1.0)) for _ in range(3)]
    >>> keys = [owner.key for owner in owners]
    >>> messages = [owner.answer(keys, [True] * 500 + [False] * 100) for owner in owners]
    >>> count = distributed.combine(Count(1.0), messages)
    >>> 1400 < count.value_ < 1600
    True
    """

    def __init__(self, estimator, honest=None, users=None):
        _check_estimator(estimator)
        if honest is not None and (isinstance(honest, bool) or not isinstance(honest, Integral) or honest < 1):
            raise ValueError("honest must be None or the number of honest owners, an int of at least 1")
        if (users == "disjoint") != (estimator.max_rows_per_user is not None) or users not in (None, "disjoint"):
            raise ValueError('users must be "disjoint" with max_rows_per_user, by which you declare that all rows of a '
                             "user are those of one owner, and None without")
        # (a copy: bound to what is open here, and used by nobody else)
        self._estimator, self._honest = copy.copy(estimator), honest
        source = WordSource(estimator.random_state)
        self._secret = X25519PrivateKey.from_private_bytes(source.part(0).key_for_workers())
        self._source, self._lock, self._process = source.part(1), Lock(), os.getpid()
        self.key, self.message = self._secret.public_key().public_bytes_raw(), None

    def __reduce__(self):
        """Refuse: a copy would have the same masks and the same noise for other rows."""
        raise TypeError("an Owner cannot be pickled or copied, because its noise would be used twice: make a new one")

    def __repr__(self):
        return f"<Owner {self.key.hex()[:16]}>"

    def answer(self, keys, X, users=None):
        """Charge the ledger, and return the message about rows: a dict of numbers and names, and an array of words.

        Parameters
        ----------
        keys : list of bytes
            Of all owners, in the same order for all; get it from the other owners, or compare it with theirs.
        X : rows, as for ``fit`` of the estimator, or an estimator that has summarised them
        users : as for ``fit`` of the estimator

        Returns
        -------
        dict
        """
        if os.getpid() != self._process:  # (before the lock, which another thread may have held at the fork)
            raise ValueError("an Owner answers in the process that made it, because its noise would be used twice: "
                             "make it in the process that has the rows")
        with self._lock:
            if self.message is not None:
                raise ValueError(_ALONE)
            keys = _checked_keys(keys)
            if self.key not in keys:
                raise ValueError("keys must have the key of this owner: add it, and send the same list to all owners")
            secrets = {at: self._agreed(key) for at, key in enumerate(keys) if key != self.key}
            place, honest = keys.index(self.key), _honest_of(self._honest, len(keys))
            _check_estimator(self._estimator)
            reader, summary = _read(_twin(self._estimator, len(keys), honest), X, users)
            plan = _planned(reader, summary)
            part = plan.parts[0]
            numbers = part.noise.codes(part.numbers)
            self._estimator._made = _made(part.noise, len(numbers))
            self._estimator._made_by = _made_by(part.noise)
            terms = _terms(reader, summary, honest, keys)
            self._estimator._pay(plan.curve)
            share = part.noise.share
            masked = raised(share, numbers) + _drawn(share, self._source, len(numbers))
            for other, secret in secrets.items():
                masked += one_sided(place, other, _mask(place, other, secret, terms, len(masked)))
            self.message = {
                "terms": terms.hex(), "key": self.key.hex(), "place": place, "n_owners": len(keys), "honest": honest,
                "n_columns": summary.n_columns, "one": bool(summary.one), "names": summary.names,
                "n_rows": summary.n_rows if reader._replaces else None,
                "seeded": self._estimator.random_state is not None, "masked": masked,
            }
            return dict(self.message)

    def _agreed(self, key):
        """Return the secret of this owner and another."""
        try:
            return self._secret.exchange(X25519PublicKey.from_public_bytes(key))
        except ValueError:
            raise ValueError("keys must be keys of owners, and one of them is not: ask for its `key` again") from None


def combine(estimator, messages):
    """Fit an estimator to the messages of all owners; returns it. No ledger is charged here: the owners' were.

    Parameters
    ----------
    estimator : estimator of `dpestim.statistics`
        With the parameters that the owners' have.
    messages : iterable of dict
        One of each owner, in any order, as `Owner.answer` returns them. ``masked`` may be a list of integers.

    Returns
    -------
    estimator
        Fitted, with `result_` and `value_`; standard errors and intervals are about the noise of all shares.

    Raises
    ------
    ValueError
        Where a message is missing, or owners have other parameters, columns or keys. Without one of the messages the
        others tell nothing.
    """
    _check_estimator(estimator)
    messages = sorted((_checked_message(message) for message in messages), key=lambda message: message["place"])
    if not messages:
        raise ValueError("messages must have one message of each owner, and there are none")
    first = messages[0]
    missing = sorted(set(range(first["n_owners"])) - {message["place"] for message in messages})
    if missing:
        raise ValueError(f"messages must have one message of each owner, and that of owner {missing[0]} (of "
                         f"{first['n_owners']}, counted from 0) is missing: ask for its `message` again. If it cannot "
                         "answer, all others must make a new Owner")
    if len(messages) != first["n_owners"]:
        raise ValueError("messages must have one message of each owner, and one owner has two: remove one of them")
    keys = _checked_keys([bytes.fromhex(message["key"]) for message in messages])
    twin = _twin(estimator, len(keys), first["honest"])
    twin.random_state = 0 if any(message["seeded"] for message in messages) else None
    n_columns, names = first["n_columns"], first["names"]
    twin = twin._settled_to(names, n_columns)
    n_rows = sum(message["n_rows"] or 0 for message in messages)
    identity = twin._identity(n_columns, first["one"])
    nothing = Summary(identity, n_rows, twin._sums(np.zeros((0, n_columns), np.int64), identity[-1]), names=names)
    plan = _planned(twin, nothing)
    noise = plan.parts[0].noise
    if {message["terms"] for message in messages} != {_terms(twin, nothing, first["honest"], keys).hex()}:
        raise ValueError("messages must be about one statistic with the parameters of this estimator, of the same "
                         "columns and the same list of keys: compare what each owner has passed")
    total = np.zeros(len(noise.codes(plan.parts[0].numbers)), np.uint64)
    for message in messages:
        total += _words(message["masked"], len(total))
    twin._made, twin._made_by = _made(noise, len(total)), _made_by(noise)
    twin._promised = replace(twin._guarantee(), curve=plan.curve)
    estimator._keep(twin._result(plan.finish([noise.scaled(noise.total(total))]), names), nothing)
    return estimator


# ---------------------------------------------------------------- inside


def _check_estimator(estimator):
    """Raise ValueError unless the proof is about the release of an estimator."""
    if not isinstance(estimator, DPStatistic):
        raise ValueError(f"estimator must be a statistic, because {type(estimator).__name__} does not add noise to "
                         "sums of parts: take Count, Sum, Mean, Histogram or ContingencyTable")
    estimator._check_mergeable()
    if not estimator._adds_up:
        raise ValueError(f"estimator must add noise to sums of parts, and {type(estimator).__name__} does not with "
                         "these parameters: take Count, Sum, Mean, Histogram or ContingencyTable, or one of moments "
                         'with neighbours="add_remove"')


def _checked_keys(keys):
    if not isinstance(keys, list | tuple) or len(keys) < 2 or not all(
            isinstance(key, bytes) and len(key) == 32 for key in keys):
        raise ValueError("keys must be a list of the keys of all owners, two or more, each bytes as `key` of an Owner")
    if len(set(keys)) < len(keys):
        raise ValueError("keys must differ, and two are equal: remove what is twice, and give no two owners the "
                         "same random_state")
    return list(keys)


def _checked_message(message):
    """Return a message, or raise ValueError where it is none."""
    good = isinstance(message, dict) and all(name in message for name in _FIELDS)
    if good:
        counts = [message[name] for name in ("place", "n_owners", "honest", "n_columns")]
        counts += [] if message["n_rows"] is None else [message["n_rows"]]
        names = message["names"]
        good = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts) and (
            0 <= counts[0] < counts[1] and 1 <= counts[2] <= counts[1] and counts[3] >= 1
            and all(isinstance(message[name], bool) for name in ("one", "seeded"))
            and isinstance(message["terms"], str) and isinstance(message["key"], str)
            and all(sign in "0123456789abcdef" for sign in message["key"]) and len(message["key"]) == 64
            and (names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))))
    if not good:
        raise ValueError("messages must be dicts as `answer` of an Owner returns them: send them unchanged")
    return message


def _words(masked, size):
    try:
        words = np.asarray(masked, np.uint64)
    except (TypeError, ValueError, OverflowError):
        words = np.zeros(0, np.uint64)
    if words.shape != (size,):
        raise ValueError(f"masked of each message must be {size} integers from 0 to 2^64 - 1: send messages unchanged")
    return words


def _honest_of(honest, n_owners):
    honest = n_owners - 1 if honest is None else int(honest)
    if honest > n_owners:
        raise ValueError(f"honest must be at most {n_owners}, the number of owners")
    return honest


def _twin(estimator, n_owners, honest):
    """Return an estimator like this one, whose noise comes in shares."""
    twin = copy.copy(estimator)
    twin._noise_for = SharedNoise.maker(n_owners, honest)
    return twin


def _read(twin, X, users):
    """Return (the estimator with declarations of the columns, the summary) of rows, or of what has summarised them."""
    if isinstance(X, DPStatistic):
        summary = X._summarised()
        twin._refuse_others(summary, "X must have summarised rows with the parameters of the estimator: set the same")
        return twin._of(summary), summary
    reader = twin._settled(X)
    rows, one = reader._read(X, users)
    summary = reader._summary_of(rows, one)
    summary.names = names_of(X, rows.shape[1])
    return reader, summary


def _planned(twin, summary):
    """Return the plan of a release, of one vector with noise in shares."""
    plan = twin._plan(summary, twin._shares()[1])
    if [type(getattr(part, "noise", None)) for part in plan.parts] != [SharedNoise]:
        raise TypeError(f"{type(twin).__name__} does not take its noise from `_noise_for` alone")
    return plan


def _made(noise, size):
    """Return the note that says what holds against whom."""
    m, honest = noise.n_owners, noise.honest
    others = f"up to {m - honest} of the {m} owners" if m > honest else f"none of the {m} owners"
    note = f"Noise came in shares: it holds against the aggregator and {others} together, for the rows of the others."
    if honest > 1:
        note += f" Against one owner more, epsilon is {bound(noise.epsilon_left(size, honest - 1))}."
    return (note,)


def _made_by(noise):
    return (Parties(noise.n_owners, noise.n_owners - noise.honest, name="owners"),)


def _terms(twin, summary, honest, keys):
    """Return a hash of all that owners must agree on."""
    agreed = [1, type(twin).__name__, list(map(str, twin._budget()[:2])), repr(summary.identity), summary.names, honest,
              [key.hex() for key in keys]]
    return hashlib.sha256(json.dumps(agreed).encode()).digest()


def _mask(place, other, secret, terms, size):
    """Return the mask of two owners: of their places, too, as keys that are written otherwise have equal secrets."""
    places = b"".join(at.to_bytes(4, "big") for at in sorted((place, other)))
    return mask_of(b"owners" + places + secret + terms, size)


def _drawn(share, source, size):
    """Return a share of the noise of so many integers, modulo 2^64."""
    return share.draw(source, size)
