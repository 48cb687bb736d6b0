"""`QuantileOwner`: what one owner of records sends and is sent, until the quantile is known (`quantile.md`)."""

import hashlib
import os
from fractions import Fraction
from numbers import Real

import numpy as np

from dpestim.distributed.exact_share import polya_share
from dpestim.exceptions import PartiesError
from dpestim.parties.noise import PolyaShares
from dpestim.parties.quantile_law import quantile_program
from dpestim.parties.replicated import Computer, Shared, split
from dpestim.parties.sealed import Line, new_secret
from dpestim.parties.wire import Message, decode, encode
from dpestim.rng import Stage, WordSource

__all__ = ["QuantileOwner", "exchange"]

#: How many parties compute: the first of the list of keys.
_COMPUTING = 3


class QuantileOwner:
    """One of three or more owners of records, in the owner's process; the first three of the list also compute.

    Nothing here reads or writes a socket: `start` and `receive` return the messages to be sent, in any order, to the
    place that each names. Who carries them sees how long they are, and nothing else.

    **Privacy.** As `SecureQuantile`. The ledger of this owner's estimator is charged by `start`, before anything is
    sent. An owner that drops out afterwards has paid; the others then have no result.

    Parameters
    ----------
    estimator : SecureQuantile
        All owners have the same parameters.

    Attributes
    ----------
    key : bytes
        The public key of this owner.
    phase : str
        What this owner waits for: "start", "shares", "rounds", "result", "end" or "failed".
    value : number or None
        The quantile, when it is known.

    Examples
    --------
    >>> from dpestim.parties import QuantileOwner, SecureQuantile
    >>> ages = [[31, 44, 52] * 30, [28, 47] * 40, [39, 41, 60] * 50]
    >>> owners = [QuantileOwner(SecureQuantile(2.0, domain=range(100))) for _ in ages]
    >>> keys = [owner.key for owner in owners]
    >>> waiting = [message for owner, own in zip(owners, ages) for message in owner.start(keys, own)]
    >>> while waiting:
    ...     message = waiting.pop()
    ...     waiting += owners[message.receiver].receive(message)
    >>> bool(35 < owners[0].value < 50), owners[0].value == owners[2].value
    (True, True)
    """

    def __init__(self, estimator):
        source = WordSource(estimator.random_state)
        self._secret, self.key = new_secret(source.part(0).key_for_workers())
        self._masks, self._noise = source.part(1), source.part(2)
        self._estimator, self._process = estimator, os.getpid()
        self.phase, self.value, self._flow, self._lines, self._waits = "start", None, None, {}, {}
        self._counts = []

    def __reduce__(self):
        """Refuse: a copy would have the same masks and the same noise for other records."""
        raise TypeError("a QuantileOwner cannot be pickled or copied, because its masks would be used twice: make a "
                        "new one")

    def __repr__(self):
        return f"<QuantileOwner {self.key.hex()[:16]}, {self.phase}>"

    def start(self, keys, X):
        """Charge the ledger, and return the first messages, a list of `Message`.

        Parameters
        ----------
        keys : list of bytes
            Of all owners, in the same order for all. The first three compute.
        X : array-like of shape (n_records,)
            Of this owner.
        """
        if os.getpid() != self._process or self.phase != "start":
            raise ValueError("an owner starts once, in the process that made it: make a new QuantileOwner")
        keys = _checked_keys(keys, self.key)
        plan = self._estimator._planned(len(keys))
        rows = self._estimator._rows(X)
        plan.check_size(len(rows), len(keys))
        me, terms = keys.index(self.key), _terms(plan, keys)
        self._lines = {at: Line(self._secret, key, me, at, terms) for at, key in enumerate(keys) if at != me}
        self._estimator._pay()
        self._plan, self._me, self._n = plan, me, len(keys)
        self._flow = (self._choosing if plan.law is not None else self._bisecting)(rows)
        return self._step(None)

    def receive(self, message):
        """Take a message, and return those to be sent now, a list of `Message`.

        Raises
        ------
        PartiesError
            Where a message was changed, or owners differ in parameters. This owner has no result then.
        """
        if self.phase in ("start", "failed"):
            raise PartiesError(self.phase, "this owner takes no message: all owners make a new QuantileOwner and start")
        if not isinstance(message, Message) or message.receiver != self._me or message.sender not in self._lines:
            raise self._failed(PartiesError(self.phase, "a message is not for this owner, or of none that it knows"))
        try:
            self._lines[message.sender].keep(message, self.phase)
            out = []
            while self._flow is not None and all(self._lines[sender].ready() for sender in self._waits):
                got = {at: self._lines[at].open(shape, self.phase) for at, shape in self._waits.items()}
                out += self._step(got)
            return out
        except PartiesError as error:
            raise self._failed(error) from None

    def confidence_interval(self, level=0.95):
        """Return (low, high), as `SecureQuantile.confidence_interval` does; of this owner's method "bisection"."""
        if self.phase != "end":
            raise ValueError("confidence_interval comes after the last message: exchange messages first")
        return self._plan.interval(self._counts, self._n, level)

    # ---------------------------------------------------------------- inside

    def _hello(self):
        """Return what all others must know before the start, a text."""
        return self.key.hex()

    def _begin(self, said, data):
        """Return the first messages, by the `_hello` of all."""
        try:
            keys = [bytes.fromhex(text) for text in said]
        except (TypeError, ValueError):
            raise PartiesError(self.phase, "a party has sent no key: compare what all parties run") from None
        return self.start(keys, *data)

    def _failed(self, error):
        self.phase, self._flow, self._waits = "failed", None, {}
        return error

    def _step(self, got):
        """Go on with what has come, until more is needed; returns messages."""
        try:
            (out, self._waits), phase = self._flow.send(got), self.phase
        except StopIteration as end:
            (out, place), self._flow, self._waits, phase = end.value, None, {}, "result"
            if not 0 <= place < len(self._plan.points):
                raise PartiesError(self.phase, "what was opened is no point of the domain: one of the computing owners "
                                               "did not follow the protocol; begin again without it") from None
            self.phase, self.value = "end", self._plan.points[place]
        return [self._lines[receiver].seal(phase, words) for receiver, words in out]

    @property
    def _computes(self):
        return self._me < _COMPUTING

    @property
    def _others(self):
        return [at for at in range(self._n) if at != self._me]

    def _choosing(self, rows):
        """The flow of the exponential mechanism: yields (words to be sent, shapes that are awaited)."""
        numbers = np.stack(self._plan.law.scores(*self._plan.ranks(rows)))
        mine, out = self._shared(numbers, 0)
        if not self._computes:
            place = yield from self._told(out)
            return [], place
        shares = yield from self._added(mine, out)
        program = quantile_program(self._computer(), self._plan.law, shares[0], shares[1])
        place = yield from self._rounds(program)
        return [(at, place.view(np.uint64)) for at in range(_COMPUTING, self._n)], int(place[0])

    def _bisecting(self, rows):
        """The flow of bisection: one noisy count a step."""
        plan, computer = self._plan, self._computer() if self._computes else None
        low, high, out = 0, len(plan.points) - 1, []
        for step in range(plan.n_steps):
            if low == high:  # (a number of steps that depends on the outcomes alone)
                break
            middle = (low + high) // 2
            count = plan.count(rows, middle).view(np.uint64) + plan.share.draw(self._noise.part(step), 1)
            mine, more = self._shared(count, step)
            if self._computes:
                shares = yield from self._added(mine, out + more)
                noisy = yield from self._rounds(computer.open_sum(shares))
                out = [(at, noisy) for at in range(_COMPUTING, self._n)]
            else:
                noisy, out = (yield from self._told(out + more, raw=True)), []
            self._counts.append((middle, int(noisy.view(np.int64)[0])))
            if self._counts[-1][1] >= 0:
                high = middle
            else:
                low = middle + 1
        return out, low

    def _shared(self, numbers, step):
        """Return (the shares of this party or None, what is sent to others) of integers."""
        words = np.asarray(numbers, np.int64).view(np.uint64)
        masks = self._masks.part(step).reader().dense(Stage.NOISE, 0, 0, 0, 2 * words.size)
        pairs = split(words, masks.copy().reshape(2, *words.shape))
        out = [(at, np.stack([pair.first, pair.second])) for at, pair in enumerate(pairs) if at != self._me]
        return (pairs[self._me] if self._computes else words), out

    def _added(self, mine, out):
        """Send shares, and return those of the sum over all owners."""
        self.phase = "shares"
        shape = (2, *mine.first.shape)
        got = yield out, {at: shape for at in self._others}
        return Shared(*sum(got.values(), np.stack([mine.first, mine.second])))

    def _told(self, out, raw=False):
        """Send, and return what all computing parties say."""
        self.phase = "result"
        got = yield out, {at: (1,) for at in range(_COMPUTING)}
        if len({int(words[0]) for words in got.values()}) > 1:
            raise PartiesError("result", "the computing parties say different results: one did not follow the protocol")
        return got[0] if raw else int(got[0][0])

    def _rounds(self, program):
        """Run a program of the computing parties."""
        self.phase = "rounds"
        before, after = (self._me - 1) % _COMPUTING, (self._me + 1) % _COMPUTING
        try:
            words = next(program)
            while True:
                got = yield [(before, words)], {after: words.shape}
                words = program.send(got[after])
        except StopIteration as end:
            return end.value

    def _computer(self):
        before, after = (self._me - 1) % _COMPUTING, (self._me + 1) % _COMPUTING
        return Computer(self._me, self._lines[before].common, self._lines[after].common)


def exchange(owners, rows, change=list):
    """Start owners in one process, and carry all messages until none is left; each goes through bytes.

    `change`, for tests, returns what arrives of a list of messages that are on their way.
    """
    keys = [owner.key for owner in owners]
    waiting = [message for owner, own in zip(owners, rows, strict=True) for message in owner.start(keys, own)]
    while waiting:
        further = []
        for message in change(waiting):
            message = decode(encode(message))
            further += owners[message.receiver].receive(message)
        waiting = further


class QuantilePlan:
    """What all owners agree on: points, the law of the choice or of the noise, and what they count.

    Parameters
    ----------
    points : sequence
        Sorted; a range stays one.
    target : Fraction
    law : WeightLaw or None
        None: by bisection.
    epsilon : Fraction
    moved : int
        By how much a count changes between neighbours.
    honest : int
    declared : tuple
        What else all must declare alike, of strings.
    """

    def __init__(self, points, target, law, epsilon, moved, honest, declared):
        self.points, self.target, self.law, self.declared = points, target, law, declared
        self.n_steps = max(1, (len(points) - 1).bit_length())
        self.share = None if law is not None else polya_share(Fraction(epsilon) / (self.n_steps * moved), honest)
        self._noise = honest, Fraction(epsilon) / self.n_steps, moved
        self._sorted = None

    def check_size(self, n_records, n_owners):
        """Raise ValueError where counts of all owners could leave 64 bits."""
        most = self.law.most_records if self.law is not None else (1 << 52) // self.target.denominator
        if n_records > most // n_owners:
            raise ValueError(f"X must have at most {most // n_owners} records: sums have 64 bits")

    def ranks(self, rows):
        """Return, for each point, how many rows are below and at most there, and how many rows there are."""
        rows, points = np.sort(rows), np.asarray(self.points)
        return np.searchsorted(rows, points, "left"), np.searchsorted(rows, points, "right"), len(rows)

    def interval(self, counts, n_owners, level):
        """Return (low, high) by noisy counts, pairs (place, count), or raise ValueError where there are none."""
        if self.law is not None:
            raise ValueError('method must be "bisection" for an interval: with weights nothing but the quantile is '
                             "revealed")
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        honest, epsilon, change = self._noise
        shares = PolyaShares(n_owners, honest, epsilon, change=change)
        far = shares.half_width(1 - (1 - Fraction(level)) / self.n_steps)  # (each step may miss: a part of 1 - level)
        low = max((place + 1 for place, count in counts if count < -far), default=0)
        high = min((place for place, count in counts if count >= far), default=len(self.points) - 1)
        return self.points[low], self.points[high]

    def count(self, rows, place):
        """Return an array of how many rows are at most a point, less the target, in units; the last row counts high."""
        below = int(np.count_nonzero(rows <= self.points[place]))
        return np.array([self.target.denominator * below - self.target.numerator * len(rows)], np.int64)


def _checked_keys(keys, own):
    if not isinstance(keys, list | tuple) or len(keys) < _COMPUTING or not all(
            isinstance(key, bytes) and len(key) == 32 for key in keys):
        raise ValueError("keys must be a list of the keys of all owners, three or more, each bytes as `key` of a "
                         "QuantileOwner")
    if len(set(keys)) < len(keys):
        raise ValueError("keys must differ, and two are equal: remove what is twice, and give no two owners the same "
                         "random_state")
    if own not in keys:
        raise ValueError("keys must have the key of this owner: add it, and send the same list to all owners")
    return list(keys)


def _terms(plan, keys):
    """Return a hash of all that owners must agree on; of other terms no message can be opened."""
    points = plan.points
    shown = repr(points) if isinstance(points, range) else np.asarray(points, float).tobytes().hex()
    said = [1, *plan.declared, str(plan.target), shown, repr(plan.law), [key.hex() for key in keys]]
    return hashlib.sha256(repr(said).encode()).digest()
