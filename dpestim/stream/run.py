"""The state of a stream between two steps: what is kept, who may go on with it, and where its noise comes from."""

import os
import threading
import uuid

import numpy as np

from dpestim.central.additive.law import COLUMNS, LARGEST, NoiseStream
from dpestim.privacy import PrivacyGuarantee
from dpestim.rng import WordSource

#: (stream, steps) from which somebody in this process has gone on.
_TAKEN, _TAKING = set(), threading.Lock()
_TWICE = ("a copy of this stream has gone on from this step, and two continuations would release the steps before it "
          "twice: go on with that copy, or call fit, which starts a new stream and charges again")


class Run:
    """A stream that has been paid for: SECRET, because it holds exact sums of the steps so far.

    `state` is what the mechanism keeps, `n_steps` how many steps were taken. Whoever goes on after a copy was made (by
    pickling, `copy`) claims the step from which it goes on, in this process and in the ledger; a second claim is
    refused.
    """

    def __init__(self, state, guarantee, random_state):
        self.state, self.guarantee, self.n_steps, self.id = state, guarantee, 0, uuid.uuid4().hex
        self._handed, self._process, self.lock = False, os.getpid(), threading.RLock()
        self._noise = Noise(WordSource(random_state))

    def noise(self, random_state):
        """Return where noise comes from: a restored stream draws words of its own."""
        if self._noise is None:
            self._noise = Noise(WordSource(random_state).part(1 + self.n_steps))
        return self._noise

    def claim(self, ledger, name):
        """Refuse to go on where a copy has gone on from here; called before a step is taken."""
        if self._process != os.getpid():
            raise ValueError("a stream must go on in the process that made or restored it: pickle it, and restore the "
                             "pickle in the other process")
        if not self._handed:
            return
        with _TAKING:
            if (self.id, self.n_steps) in _TAKEN:
                raise ValueError(_TWICE)
            if hasattr(ledger, "entries"):
                # (the first entry of this name wins, whichever process looks first)
                mine = f"{name} goes on: {self.id} after {self.n_steps}"
                number = ledger.charge(PrivacyGuarantee(0, 0, "central", self.guarantee.neighbours), estimator=mine)
                if any(entry["estimator"] == mine and entry["number"] < number for entry in ledger.entries()):
                    raise ValueError(_TWICE)
            _TAKEN.add((self.id, self.n_steps))
        self._handed = False

    def __getstate__(self):
        with self.lock:
            self._handed = True  # from here on there are two: who goes on first, goes on
            return {**vars(self), "lock": None, "_noise": None, "_process": None}

    def __setstate__(self, state):
        vars(self).update(state)
        self.lock, self._process = threading.RLock(), os.getpid()


class Noise:
    """Integers of several laws for several columns, each of which goes on where it ended."""

    def __init__(self, source):
        self._source, self._streams, self.seeded = source, {}, source.seeded

    def take(self, law, cell, size):
        """Return the next integers of a law for a column."""
        if (law, cell) not in self._streams:
            self._streams[law, cell] = NoiseStream(law, self._source, COLUMNS * len(self._streams))
        drawn = self._streams[law, cell].take(size)
        return drawn if drawn.dtype == np.int64 else np.clip(drawn, -LARGEST, LARGEST).astype(np.int64)
