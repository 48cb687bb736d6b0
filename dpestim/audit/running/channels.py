"""Side channels: how long a call takes, and whether noise repeats, as outputs of their own."""

import os
import pickle
import time
from contextlib import suppress

from sklearn.base import clone

from dpestim.audit.running.outputs import Raised, leaves
from dpestim.audit.running.sampling import Caller, OutOfTimeError, copier
from dpestim.audit.running.subjects import OfEstimator

#: All there are; "bits" is about events of outputs.
CHANNELS = ("bits", "time", "repeats", "pickles", "forks")


class Timed(Caller):
    """Seconds that calls take, for a claim about outputs and their time together."""

    called, alternates = "the seconds of a call", True

    def __init__(self, caller):
        self.caller, self.batch, self.takes_rng = caller, False, caller.takes_rng

    def draw(self, data, n, rng, until):
        """Return n numbers of seconds."""
        out = []
        for _ in range(n):
            one = self.caller.ready(data, rng)
            begin = time.perf_counter()
            with suppress(Exception):  # (it takes time, too)
                one()
            end = time.perf_counter()
            out.append(end - begin)
            if end > until:
                raise OutOfTimeError
        return out


class Twice(Caller):
    """Whether two outputs are the same, of one call with the data and another one with data that all know.

    If noise is new each time, both outputs together are as private as one of them, as only one depends on the data.
    Noise that repeats makes the outputs for the same data the same, and for others not.

    Parameters
    ----------
    caller : Caller
    how : {"repeats", "pickles", "forks"}
        Two calls one after the other, of two copies by pickle, or in two processes that were forked.
    """

    def __init__(self, caller, how):
        if caller.takes_rng and not isinstance(caller, OfEstimator):
            raise ValueError(f"mechanism must draw its own noise for the side channel {how!r}: an audit gives other "
                             "noise to the parameter rng at each call")
        self.how, self.batch, self.takes_rng = how, False, False
        self.called = {"repeats": "what two calls in a row return", "pickles": "what two copies by pickle return",
                       "forks": "what two forks of the process return"}[how]
        self.most = 200 if how == "forks" else 4000
        self.turn = caller.turn
        self.subject = clone(caller.estimator) if isinstance(caller, OfEstimator) else caller.function
        if how == "pickles":
            try:
                pickle.dumps(self.subject)
            except Exception as error:
                raise ValueError('mechanism must be what pickle takes for the side channel "pickles": a function of a '
                                 f"module, or an object ({type(error).__name__})") from None

    def draw(self, data, n, rng, until):
        """Return n times whether outputs are the same."""
        out = []
        for _ in range(n):
            # (what is new for each pair of calls: copies of one state repeat what they repeat, pair after pair)
            one, two = self._both(*data)
            out.append("the same" if one == two else "different outputs")
            if time.perf_counter() > until:
                raise OutOfTimeError
        return out

    def _both(self, first, second):
        if self.how == "forks":
            return _in_fork(lambda: self._shown(self.subject, first)), _in_fork(
                lambda: self._shown(self.subject, second))
        if self.how == "pickles":
            state = pickle.dumps(self.subject)
            return tuple(self._shown(pickle.loads(state), data) for data in (first, second))
        return self._shown(self.subject, first), self._shown(self.subject, second)

    def _shown(self, subject, data):
        try:
            return repr(list(leaves(self.turn(subject, copier(data)()))))
        except Exception as error:
            return Raised(error).name


def _in_fork(function):
    """Return the text that a function returns in a fork of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(function().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(child, 0)
    return told


def tasks_of(caller, pairs, side_channels):
    """Return (caller, pair, pair that is shown) of all that is tried."""
    tasks = [(caller, pair, pair) for pair in pairs]
    for how in CHANNELS[1:]:
        if how not in side_channels:
            continue
        if how == "time":
            tasks += [(Timed(caller), pair, pair) for pair in pairs]
        else:
            tasks += [(Twice(caller, how), ((a, a), (b, a)), (a, b)) for a, b in pairs[:1]]
    return tasks


def checked_channels(side_channels, batch):
    """Return a tuple of names, or raise."""
    if not isinstance(side_channels, tuple | list) or not all(one in CHANNELS for one in side_channels):
        raise ValueError(f"side_channels must be a tuple of some of {list(CHANNELS)}")
    more = [one for one in side_channels if one != "bits"]
    if more and batch:
        raise ValueError(f"side_channels must be () or ('bits',) if batch=True: {more[0]!r} is about single calls")
    if "forks" in side_channels and not hasattr(os, "fork"):
        raise ValueError("side_channels must be without 'forks' on this system, which has no fork")
    return tuple(side_channels)
