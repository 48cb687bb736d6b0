"""Outputs of running code: who is called with which data, how often, and for how long."""

import copy
import inspect
import random
import time
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from dpestim.audit.running.outputs import Raised
from dpestim.exceptions import LedgerError
from dpestim.privacy.ambient import CHARGED_BY_AUDIT

#: Turns that the two data sets take, so that what drifts meets both.
_TURNS = 8


class OutOfTimeError(Exception):
    """The time limit came before all outputs were drawn."""


class Caller:
    """A callable, which returns one output a call, or many.

    Parameters
    ----------
    function : callable
        ``f(data)``, or ``f(data, n)`` if `batch`. With a parameter called ``rng`` it gets a generator of NumPy.
    batch : bool
    """

    #: What an output is called in words.
    called = "output"
    #: Whether the data sets take turns call by call, and the most outputs that are drawn at a time.
    alternates, most = False, None

    def __init__(self, function, batch):
        self.function, self.batch = function, batch
        try:
            self.takes_rng = "rng" in inspect.signature(function).parameters
        except (TypeError, ValueError):
            self.takes_rng = False

    def draw(self, data, n, rng, until):
        """Return n outputs, a list or an array; `until`: when it is too late, by the clock."""
        more = {"rng": rng} if self.takes_rng else {}
        if self.batch:
            outputs = self._all(data, n, more)
            if time.perf_counter() > until:
                raise OutOfTimeError
            return outputs
        fresh, call, outputs = copier(data), self.function, []
        for _ in range(n):
            try:
                outputs.append(call(fresh(), **more))
            except LedgerError as error:
                if str(error) == CHARGED_BY_AUDIT:
                    raise ValueError(CHARGED_BY_AUDIT) from None
                outputs.append(Raised(error))
            except Exception as error:  # (an exception is an output: whether it is raised may tell)
                outputs.append(Raised(error))
            if time.perf_counter() > until:
                raise OutOfTimeError
        return outputs

    def ready(self, data, rng):
        """Return a function that makes one call, with data that are copied already."""
        more, mine = {"rng": rng} if self.takes_rng else {}, copier(data)()
        return lambda: self.function(mine, **more)

    @staticmethod
    def turn(subject, data):
        """Return one output of a callable."""
        return subject(data)

    def _all(self, data, n, more):
        outputs = self.function(copier(data)(), n, **more)
        if not isinstance(outputs, np.ndarray):
            if not hasattr(outputs, "__iter__"):
                raise ValueError(f"mechanism must return {n} outputs when it is asked for {n} (batch=True), and "
                                 f"returned a {type(outputs).__name__}")
            outputs = list(outputs)
        if len(outputs) != n:
            raise ValueError(f"mechanism must return {n} outputs when it is asked for {n} (batch=True), and returned "
                             f"{len(outputs)}")
        return outputs


def copier(data):
    """Return a function that returns the data, as a copy where code could change it."""
    if data is None or isinstance(data, int | float | complex | str | bytes | np.generic):
        return lambda: data
    if isinstance(data, np.ndarray) and data.dtype != object:
        return data.copy
    return lambda: copy.deepcopy(data)


def draw_both(caller, pair, n, rngs, until):
    """Return n outputs of each of two data sets; they take turns."""
    parts = ([], [])
    edges = np.linspace(0, n, (n if caller.alternates else min(_TURNS, n)) + 1).astype(int)
    for a, b in pairwise(edges):
        for side in (0, 1):
            parts[side].append(caller.draw(pair[side], int(b - a), rngs[side], until))
    return tuple(map(joined, parts))


def joined(parts):
    """Return lists of outputs, or arrays, as one."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [output for part in parts for output in part]


@contextmanager
def seeded(seed):
    """Seed the global generators of NumPy and of Python in a block, and put them back where they were."""
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002 (code that is audited may use it)
    np.random.seed(seed)  # noqa: NPY002 (only code that is audited draws from it; this package never does)
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])
