"""Rounds of an audit: a pilot chooses a pair, an order and an event, and new outputs test it once."""

import math
import time
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from dpestim.audit.running.bounds import exact_bound, largest_bound
from dpestim.audit.running.events import candidates
from dpestim.audit.running.outputs import Columns, Given
from dpestim.audit.running.plans import MOST_KEPT
from dpestim.audit.running.sampling import OutOfTimeError, draw_both, joined

#: Outputs of a data set that are read at once in a test.
_BLOCK = 50_000
#: By how much further the ends of intervals are from estimates in a pilot than in a test.
_CAUTION = 1.5
#: The part of the time that is left which a test fills, and the fewest outputs of a test that the clock makes shorter.
_FILLED, _SHORTEST = 0.7, 64
#: The part of the time limit by which a test may be expected to come too late.
_GRACE = 0.2


class Choice(NamedTuple):
    """What a pilot chose."""

    predicted: float
    task: int
    reader: Columns
    event: object
    backward: bool


class Finding(NamedTuple):
    """What a test found."""

    epsilon: float
    choice: Choice
    counts: tuple
    share: float


class Search:
    """Draws pilots, chooses, and tests.

    Parameters
    ----------
    tasks : list of (Caller, (data, neighbour), pair that is shown)
    claim : Claim
    error : float
        How often the largest bound may exceed the truth.
    bits : bool
    events : dict or None
        Functions of an output by words; None: events are learned.
    seed : int
    is_fixed : bool
        Whether the number of outputs is given, and not what the time allows.
    """

    def __init__(self, tasks, claim, error, bits, events, seed, is_fixed):
        self.tasks, self.claim, self.error, self.bits, self.events = tasks, claim, error, bits, events
        self.is_fixed = is_fixed
        self.seed, self.n_drawn, self.paces, self._streams = seed, 0, {}, 0
        self.was_late = self.was_short = self.is_cut = False
        self.reach = 0.0  # (the largest bound that the tests could have found)
        self.pilots = [([], []) for _ in tasks]

    def draw(self, number, n, until):
        """Return n outputs of each data set of a pair."""
        self._streams += 1
        rngs = [np.random.default_rng([self.seed, self._streams, side]) for side in (0, 1)]
        caller, pair, _ = self.tasks[number]
        start = time.perf_counter()
        outputs = draw_both(caller, pair, n, rngs, until)
        self.paces[number] = (time.perf_counter() - start) / n
        self.n_drawn += 2 * n
        return outputs

    @property
    def n_pilots(self):
        """Pilots of a round: of all tasks, of the better half, and so on."""
        n = len(self.tasks)
        return sum(max(1, n >> k) for k in range(max(1, math.ceil(math.log2(n)))))

    def run(self, stage, until, hard, progress):
        """Return the `Finding` of a round, or None: nothing was worth a test, or it came too late."""
        error = self.error * stage.share
        alive, choices, n_done = list(range(len(self.tasks))), {}, 0
        n_stages = max(1, math.ceil(math.log2(len(self.tasks))))
        for left in range(n_stages, 0, -1):
            n = min(MOST_KEPT, max(1, stage.pilot * len(self.tasks) // (n_stages * len(alive))))
            for number in alive:
                choices[number] = self._pilot(number, n, error, until) or choices.get(number)
                n_done += 1
                progress.done(n_done)
            alive = sorted(alive, key=lambda number: -choices[number].predicted if choices[number] else 0.0)
            alive = alive[: max(1, len(alive) // 2)] if left > 1 else alive
        best = max((choice for choice in choices.values() if choice), key=lambda choice: choice.predicted, default=None)
        if best is None:
            return None
        return self._test(best, self._in_time(best.task, stage.test, until, hard), error, hard)

    def _in_time(self, number, n, until, hard):
        """Return how many outputs of each data set a test draws: fewer than planned where calls became slower."""
        if self.is_fixed or number not in self.paces:
            return n
        each, left = max(self.paces[number], 1e-12), until - time.perf_counter()
        if n * each <= left + _GRACE * (hard - until):
            return n
        self.was_short = True
        return min(n, max(_SHORTEST, int(_FILLED * left / each)))

    def _pilot(self, number, n, error, until):
        """Draw more outputs of a task, and return what is best of all that the pilots of the task have."""
        caller = self.tasks[number][0]
        n = min(n, caller.most or n)
        try:
            for kept, new in zip(self.pilots[number], self.draw(number, n, until)):
                kept.append(new)
        except OutOfTimeError:
            self.was_late = True
        kept = self.pilots[number]
        if not kept[0]:
            return None
        sides = [joined(part)[:MOST_KEPT] for part in kept]
        reader = Columns(joined(sides), self.bits, caller.called, len(sides[0])) if self.events is None or (
            caller.called != "output") else Given(self.events)
        self.is_cut |= getattr(reader, "is_cut", False)
        # (two intervals of this error are as far from their middles as one of the difference, and further: the best of
        # many looks better than it is, the more so the rarer it is)
        apart = 2 * float(ndtr(_CAUTION * ndtri(error) / math.sqrt(2)))
        found = candidates(reader, *(reader.read(side) for side in sides), self.claim.delta, apart)
        best = max(found, key=lambda one: one[0], default=None)
        if best is None:
            return None
        predicted, event, backward = best
        return Choice(predicted, number, reader, event, backward)

    def _test(self, choice, n, error, hard):
        n, event = min(n, self.tasks[choice.task][0].most or n), choice.event
        counts, done = [0, 0], 0
        while done < n:
            size = min(_BLOCK, n - done)
            try:
                sides = self.draw(choice.task, size, hard)
            except OutOfTimeError:
                self.was_late = True
                return None
            for side, outputs in enumerate(sides):
                counts[side] += int(event.contains(choice.reader.read(outputs, event.needs)).sum())
            done += size
            if done < n and time.perf_counter() > hard:
                self.was_late = True
                return None
        a, b = counts[::-1] if choice.backward else counts
        self.reach = max(self.reach, largest_bound(n, self.claim.delta, error))
        epsilon = exact_bound(a, n, b, n, self.claim.delta, error)
        return Finding(epsilon, choice, ((a, n), (b, n)), error)
