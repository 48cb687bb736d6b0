"""One model of the rows of several parties, who trust nobody: sums, with a share of the noise of each (`federated.md`).

Each party runs the fit of the estimator on its own rows. Where the fit adds noise to integers, the party adds its share
of that noise instead, and goes on with the total of all parties. So all parties learn the same, and nothing but these
noisy totals leaves a party.
"""

import hashlib
import json
import warnings
from contextvars import copy_context
from dataclasses import replace
from numbers import Integral
from threading import Barrier, BrokenBarrierError, Thread

import numpy as np

from dpestim.base import PrivateEstimator
from dpestim.distributed.gaussian_share import lowered, raised
from dpestim.distributed.parts import made_up
from dpestim.distributed.shared_noise import SharedNoise, share_of
from dpestim.exceptions import PartiesError
from dpestim.parties.keys import Directory, Identity
from dpestim.parties.party import SumParty
from dpestim.parties.server import SumServer
from dpestim.parties.shares_of_fit import SharesOfFit, parties_of
from dpestim.parties.terms import SumTerms
from dpestim.parties.together import run_together
from dpestim.passes import Blueprint, CountRows, InProcesses, Place, Summarize, names_in, size
from dpestim.rng import WordSource, sums_here
from dpestim.statistics.base import DPStatistic

#: Part of the random source that draws shares: no fit draws from it.
_SHARES = (1 << 42) + 1
#: Parameters that may differ from party to party.
_OWN = ("ledger", "random_state", "n_jobs", "verbose")
_NOTE = "Noise came in shares: the guarantee is for the rows of the parties that collude with nobody."
_STRICT = "strict mode: "
#: How many rows the made-up data of a rehearsal have, as far as public numbers go.
_REHEARSED = 1000


def federated(estimator, parties, *, honest=None, users=None):
    """Fit an estimator to the rows of several parties, all in this process; returns it.

    This is for trying out. Where parties are processes, each calls `take_part` with its own rows. For one statistic of
    owners who all answer, with one message each and no server, take `dpestim.distributed.Owner`.

    Parameters
    ----------
    estimator : estimator of dpestim
        One that adds noise to sums: counts, means, tables, covariances, components, linear regression, gradient
        descent, naive Bayes, scalers, forests, `DPKMeans`, boosting. All domains must be declared. With a delta noise
        is Gaussian where it is on one machine.
    parties : list
        The rows of each party, two or more: X, or a pair (X, y), or (X, users) with `max_rows_per_user`.
    honest : int, default=None
        How many parties follow the protocol to the end and tell nobody their secrets, at least. None: all but one, or
        but those that may drop out or collude by the terms of the sums.
    users : {"disjoint"}, default=None
        Declares that all rows of a user are those of one party; needed with `max_rows_per_user`.

    Returns
    -------
    estimator
        Fitted. Its ledger is charged once: each record is a record of one party. ``shares_.privacy_against(k)`` is what
        holds where k parties collude, drop out or lie.

    Raises
    ------
    ValueError
        Where the estimator does more than add noise to sums, before anything is charged.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.parties import federated
    >>> from dpestim.statistics import Mean
    >>> rows = np.random.default_rng(0).uniform(size=(5, 1000))
    >>> mean = federated(Mean(1.0, bounds=(0, 1)), list(rows))
    >>> bool(abs(mean.value_ - rows.mean()) < 0.02)
    True
    """
    if not isinstance(parties, list | tuple) or len(parties) < 2:
        raise ValueError("parties must be a list of the rows of each party, two or more")
    _check_served(estimator)
    meeting, strict = _Meeting(len(parties), honest), estimator._is_strict()
    others = [_with_seed_of(estimator, _unpaid(estimator)) for _ in parties[1:]]
    failed = []

    def attend(place, own, rows):
        X, second = rows if type(rows) is tuple else (rows, None)
        try:
            return take_part(own, meeting.seat(place), X, second, honest=honest, users=users)
        except BaseException as error:
            if not isinstance(error, BrokenBarrierError):
                failed.append(error)
            meeting.barrier.abort()

    threads = []
    for place, (own, rows) in enumerate(zip(others, parties[1:]), 1):
        own._bound = (None, strict)
        threads.append(Thread(target=copy_context().run, args=(attend, place, own, rows), daemon=True))
    for thread in threads:
        thread.start()
    attend(0, estimator, parties[0])
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return estimator


def take_part(estimator, sums, X, y=None, *, honest=None, users=None):
    """Fit an estimator as one of several parties, to the rows of all of them; returns it.

    Parameters
    ----------
    estimator : estimator of dpestim
        The same parameters for all parties; its ledger is that of this party, and is charged before anything about rows
        is sent. A party that drops out after that has paid.
    sums : object
        Adds up the integers of all parties, none of which it shows: it has `n_parties`, `place` (that of this party)
        and ``total(words, label)``, which returns the sum of arrays of uint64 of all parties modulo 2^64, and raises
        ValueError where labels differ. Over sockets: a `RoundsClient`. It may have `n_dropped`, how many parties may
        drop out, and `n_corrupt`, how many may collude with the server.
    X, y : rows of this party, as for ``fit``; y are the users with `max_rows_per_user`
    honest, users : as for `federated`

    Returns
    -------
    estimator
        Fitted; that of each party is the same.
    """
    m, gone = sums.n_parties, getattr(sums, "n_dropped", 0)
    honest = max(1, m - gone - max(1, getattr(sums, "n_corrupt", 0))) if honest is None else honest
    if isinstance(honest, bool) or not isinstance(honest, Integral) or not 1 <= honest <= m - gone:
        raise ValueError(f"honest must be None or an int from 1 to {m - gone}, the number of parties without those "
                         "that may drop out")
    limited = getattr(estimator, "max_rows_per_user", None) is not None
    if limited != (users == "disjoint") or users not in (None, "disjoint"):
        raise ValueError('users must be "disjoint" with max_rows_per_user, by which you declare that all rows of a '
                         "user are those of one party, and None without")
    _check_served(estimator)
    rows = tuple(_array_of(part) for part in ((X,) if y is None else (X, y)))
    example = made_up(rows)
    _rehearse(estimator, example)
    # (the number of rows is public where records are replaced; a label tells parties apart that would add up others)
    label = _terms(estimator, [names_in(X), *map(_width_of, rows)], m, int(honest))
    replaces = estimator._replaces
    present = list(range(m))
    n_rows = int(sums.total(np.array([size(rows) if replaces else 0], np.uint64), label + (
        " rows" if replaces else " start"))[0])
    if replaces:
        present = getattr(sums, "survivors", present)
    shares = _Shares(sums, int(honest), WordSource(estimator.random_state).part(_SHARES).part(sums.place), label)

    def ask(request):
        if isinstance(request, InProcesses):
            return request.call()
        answer = request(rows, Place(sums.place))
        if answer is None:
            answer = request.of_nothing(example)
        if replaces and isinstance(request, CountRows):
            return n_rows
        if replaces and isinstance(request, Summarize):
            answer.n_rows = n_rows
        return answer

    made_by = parties_of(sums, int(honest))
    _run(estimator, ask, example, shares, m, int(honest), made_by)
    if replaces and getattr(sums, "survivors", present) != present:
        raise PartiesError("rows", 'a party dropped out, so that the public number of rows is not that of the sums: '
                                   'take neighbours="add_remove", or begin again without it')
    if "privacy_" in vars(estimator):
        told = estimator.privacy_
        estimator.privacy_ = replace(told, notes=(*told.notes, _NOTE), parties=(made_by,))
    estimator.shares_ = SharesOfFit(sums, int(honest), estimator.privacy_, shares.releases)
    return estimator


# ---------------------------------------------------------------- inside


class _Shares:
    """Stands in for noise: a party's integers get its share, and what comes back is the total of all parties."""

    def __init__(self, sums, honest, source, label):
        self._sums, self._honest, self._source, self._label, self._n = sums, honest, source, label, 0
        self.releases = []

    def noisy(self, law, codes):
        """Return the total of the integers of all parties, with noise of this law or more."""
        share, at, self._n = share_of(law, self._honest), self._n, self._n + 1
        words = raised(share, codes) + share.draw(self._source.part(at), codes.size)
        self.releases.append((law, codes.size))
        return lowered(share, self._sums.total(words, f"{self._label} {at} {share} {codes.size}"))


class _Rehearsal:
    """Stands in for noise where nothing is secret: only which laws are asked for is looked at."""

    def noisy(self, law, codes):
        """Return integers as they are."""
        share_of(law, 1)
        return codes


def _array_of(rows):
    """Return rows of a list as an array; of objects, where numbers and words would become words."""
    if not isinstance(rows, list):
        return rows
    try:
        found, plain = np.asarray(rows), np.asarray(rows, object)
    except ValueError:
        raise ValueError("X and y must have rows of one length each: pass arrays or data frames") from None
    return found if found.dtype.kind in "biuf" or all(isinstance(value, str) for value in plain.ravel()) else plain


def _width_of(part):
    """Return how many columns rows have."""
    return int((*getattr(part, "shape", ()), 1, 1)[1])


def _rehearse(estimator, example):
    """Raise ValueError where a fit would do more than add noise to sums: before the ledger is charged."""
    twin = _unpaid(estimator, strict=True)  # (in strict mode there may be no rows)

    def ask(request):
        if isinstance(request, InProcesses):
            return request.call()
        if isinstance(request, CountRows):
            return _REHEARSED
        answer = request.of_nothing(example)
        if isinstance(request, Summarize):
            answer.n_rows = _REHEARSED
        return answer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _run(twin, ask, example, _Rehearsal(), 1, 1)
        except ValueError as error:
            if estimator._is_strict() or not str(error).startswith(_STRICT):
                raise
            raise ValueError(str(error).removeprefix(_STRICT)) from None


class _Unpaid:
    """Stands in for a ledger that somebody else has paid, or nobody needs to: that of a block must not pay again."""

    def __init__(self, relation):
        self.neighbours = relation.value

    def charge(self, *given, **more):
        """Charge nothing."""


def _unpaid(estimator, **changes):
    """Return another estimator of the same parameters, for which no ledger pays."""
    twin = replace(Blueprint.of(estimator), **changes).build()
    return twin.set_params(ledger=_Unpaid(estimator._relation()))


def _with_seed_of(estimator, twin):
    """Return the estimator of another party, with a seed of its own where the first has a generator.

    Threads that draw from one generator take turns by chance.
    """
    state = estimator.random_state
    if isinstance(state, np.random.Generator | np.random.RandomState):
        twin.set_params(random_state=int.from_bytes(state.bytes(16)))
    return twin


def _run(estimator, ask, example, shares, m, honest, made_by=None):
    """Run the fit of an estimator whose noise comes in shares."""
    if isinstance(estimator, DPStatistic):
        estimator._noise_for, estimator._made = SharedNoise.maker(m, honest), (_NOTE,)
        estimator._made_by = () if made_by is None else (made_by,)
    token = sums_here.set(shares)
    try:
        estimator.fit_parts(ask, example)
    finally:
        sums_here.reset(token)
        for name in ("_noise_for", "_made", "_made_by"):  # (a later fit of the object adds its own noise)
            vars(estimator).pop(name, None)


def _check_served(estimator):
    """Raise ValueError unless a fit of the estimator is a function of noisy sums of integers of parts of the rows."""
    name = type(estimator).__name__
    if not hasattr(estimator, "fit_parts"):
        raise ValueError(f"{name} {getattr(estimator, '_not_in_parts', PrivateEstimator._not_in_parts)}")
    if isinstance(estimator, DPStatistic):
        estimator._check_mergeable()
    if not estimator._adds_up:
        raise ValueError(f"estimator must add noise to sums of parts, and {name} does more with these parameters: take "
                         'a statistic of sums (variances and covariances need neighbours="add_remove"), a model of one '
                         'pass (linear regression with method="moments"), DPKMeans, boosting, or '
                         'DPLogisticRegression(perturbation="gradient")')


def _terms(estimator, columns, m, honest):
    """Return a hash of all that parties must agree on."""
    params = {key: _plain(value) for key, value in estimator.get_params(deep=False).items() if key not in _OWN}
    agreed = [1, type(estimator).__name__, params, str(estimator._relation()), columns, m, honest]
    return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()


def _plain(value):
    """Return a parameter as something that JSON writes, the same for equal ones, and another for others."""
    if hasattr(value, "get_params"):
        value = {"class": type(value).__name__, **value.get_params(deep=False)}
    if hasattr(value, "tocoo"):
        value = value.tocoo()
        value = {"shape": value.shape, "at": np.transpose(value.nonzero()), "data": value.data}
    if hasattr(value, "__array__") and not isinstance(value, np.generic):  # (a long Series would show its ends alone)
        names = [list(own) for own in (getattr(value, name, None) for name in ("index", "columns")) if hasattr(
            own, "__len__") and list(own) != list(range(len(own)))]
        value = np.asarray(value).tolist()
        value = [*names, value] if names else value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return sorted([repr(key), _plain(part)] for key, part in value.items())
    return repr(value.item() if isinstance(value, np.generic) else value)


class _Meeting:
    """Parties that are threads of this process: they wait for each other, and the last runs the secure sum of all."""

    def __init__(self, n_parties, honest=None):
        honest = n_parties - 1 if honest is None else honest
        # (with one honest party its share is all of the noise, and masks are not needed; others are refused later)
        some = isinstance(honest, Integral) and 1 < honest <= n_parties
        self.n_corrupt = n_parties - int(honest) if some else 0
        owner, *self._identities = (Identity() for _ in range(n_parties + 1))
        self._owner, self._directory = owner, Directory(owner.public, [own.public for own in self._identities])
        self.n_parties, self.barrier, self._n = n_parties, Barrier(n_parties, self._add_up), 0
        self.sent, self.found = [None] * n_parties, None

    def seat(self, place):
        """Return what one party adds up by."""
        return _Seat(self, place)

    def _add_up(self):
        labels, vectors = zip(*self.sent)
        if len(set(labels)) > 1:
            raise ValueError("parties must have an estimator with the same parameters and the same columns: compare "
                             "what each party has passed")
        self._n += 1
        terms = SumTerms(self.n_parties, len(vectors[0]), corrupt=self.n_corrupt / self.n_parties,
                         label=f"{self._n} {labels[0]}")
        parties = [SumParty(terms, self._directory, place, identity, words)
                   for place, (identity, words) in enumerate(zip(self._identities, vectors))]
        self.found = run_together(parties, SumServer(terms, self._directory, self._owner))


class _Seat:
    def __init__(self, meeting, place):
        self._meeting, self.n_parties, self.place = meeting, meeting.n_parties, place
        self.n_corrupt = meeting.n_corrupt

    def total(self, words, label):
        """Return the sum of the words of all parties."""
        meeting = self._meeting
        meeting.sent[self.place] = (label, words)
        meeting.barrier.wait()
        # (a copy: noise is put on in place. Nobody comes to the next sum before all have left this one)
        return meeting.found.copy()
