"""Running totals in epochs: one for a horizon, longer and longer ones without, and one for each length of a window."""

from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dpestim.records import record
from dpestim.stream.factors import LONGEST, Factor, SmoothFactor, TreeFactor

METHODS = {"factorization": SmoothFactor, "tree": TreeFactor}
#: Steps of the first epoch of a stream without a horizon, and the part of its budget that is for totals of epochs.
_EPOCH, _SHARE = 256, Fraction(1, 5)


@record
class Plan:
    """Which factor is used when."""

    method: str
    epsilon: Fraction
    delta: Fraction
    horizon: int | None
    window: int | None
    change: int
    events: int
    most: int

    @property
    def doubles(self):
        """Whether epochs grow."""
        return self.horizon is None and self.window is None

    def length(self, epoch):
        """Return the number of steps of an epoch."""
        return min(_EPOCH << epoch, LONGEST) if self.doubles else self.window or self.horizon

    def factor(self, epoch):
        """Return the factor of an epoch."""
        return self._factors(self.length(epoch))

    @cached_property
    def _factors(self):
        kept = _SHARE if self.doubles and self.method == "factorization" else Fraction(0)
        make = METHODS[self.method]
        return lru_cache(maxsize=64)(
            lambda n: make(self.epsilon, self.delta, kept, n, self.change, self.events, self.most))

    @cached_property
    def law_of_totals(self):
        """The law of the noise of the total of an epoch, or None where that is its last running total."""
        factor = self.factor(0)
        return factor.gaussian(Fraction(self.events * self.change) ** 2, factor.kept) if factor.kept else None

    def __reduce__(self):
        return type(self), (self.method, self.epsilon, self.delta, self.horizon, self.window, self.change, self.events,
                            self.most)


class Totals:
    """The state of one column: exact integers of an epoch, and what was released of it and before it."""

    def __init__(self, plan):
        self.plan, self.epoch, self.at, self.state = plan, 0, 0, plan.factor(0).begin()
        #: The exact total of this epoch, what was released of earlier ones, and releases of windows.
        self.exact, self.base, self.before, self.now = 0, 0.0, None, []

    def take(self, x, noise, cell):
        """Return releases of the next steps, in units: an array of floats."""
        out, done = np.empty(len(x)), 0
        while done < len(x):
            factor = self.plan.factor(self.epoch)
            part = x[done : done + self.plan.length(self.epoch) - self.at]
            found = factor.take(self.state, part, noise.take(factor.law, cell, len(part)))
            out[done : done + len(part)] = self._shown(found)
            self.at, self.exact, done = self.at + len(part), self.exact + int(part.sum()), done + len(part)
            if self.at == self.plan.length(self.epoch) and self.plan.horizon is None:
                self._next(noise, cell, float(found[-1]))
        return out

    def _shown(self, found):
        if not self.plan.window:
            return self.base + found
        self.now.append(found)
        if self.before is None:
            return found
        return found + self.before[-1] - self.before[self.at : self.at + len(found)]

    def _next(self, noise, cell, last):
        """Start the next epoch."""
        if self.plan.window:
            self.before, self.now = np.concatenate(self.now), []
        else:
            law = self.plan.law_of_totals
            self.base += last if law is None else self.exact + int(noise.take(law, cell, 1)[0])
        self.epoch, self.at, self.exact = self.epoch + 1, 0, 0
        self.state = self.plan.factor(self.epoch).begin()


class Meter:
    """Variances of the releases of one column, in squared units, step by step."""

    def __init__(self, plan):
        self.plan, self.epoch, self.at, self.base, self.nodes = plan, 0, 0, 0.0, ()
        self._begin()

    def _begin(self):
        self._state, self._sum = None, 0.0

    def take(self, n):
        """Return (variances of the next n releases, and for a tree a list of (laws before, law, numbers of nodes))."""
        variances, keys = np.empty(n), [] if self.plan.method == "tree" else None
        done = 0
        while done < n:
            length = self.plan.length(self.epoch)
            size = min(n - done, length - self.at)
            found, nodes = self._epoch(size)
            variances[done : done + size] = self.base + found
            if keys is not None:
                keys.append((self.nodes, self.plan.factor(self.epoch).law, nodes))
            self.at, done = self.at + size, done + size
            if self.at == length and self.plan.horizon is None:
                law = self.plan.law_of_totals
                if self.plan.doubles:
                    self.base += float(found[-1]) if law is None else law.variance_steps
                    self.nodes = (*self.nodes, self.plan.factor(self.epoch).law)
                self.epoch, self.at = self.epoch + 1, 0
                self._begin()
        return variances, keys

    def _epoch(self, size):
        """Return variances within an epoch, and how many nodes of a tree they are."""
        factor, steps = self.plan.factor(self.epoch), np.arange(self.at + 1, self.at + size + 1)
        if isinstance(factor, TreeFactor):
            nodes = ones(steps)
            if self.plan.window and self.epoch:
                nodes = nodes + _apart(steps, self.plan.window)
            return nodes * float(factor.law.variance_steps), nodes
        if self.plan.window:
            return _window_gains(factor)[min(self.epoch, 1)][steps - 1] * _unit(factor), None
        if self._state is None:
            self._state = factor.begin()[1]
        squares = np.cumsum(factor.gains(self._state, size) ** 2) + self._sum
        self._sum = float(squares[-1])
        return squares * _unit(factor), None


def _unit(factor: Factor):
    return factor.law.variance_steps * 4.0**-factor.scale


@lru_cache(maxsize=4)
def _window_gains(factor):
    """Return sums of squares for windows of the first epoch, and of later ones, with the end of the epoch before."""
    length = factor.horizon
    gains = factor.gains(factor.begin()[1], length)
    first = np.cumsum(gains**2)
    # the noise of step i of the epoch before is in its total by gains[w - i], in that of j steps by gains[j - i]
    both = [float(gains[: j + 1] @ gains[length - 1 - j :]) for j in range(length)]
    return first, first + first[-1] + first - 2 * np.array(both)


def ones(steps):
    """Return how many ones integers have in binary."""
    found, rest = np.zeros(len(steps), np.int64), np.array(steps, np.int64)
    while rest.any():
        found += rest & 1
        rest >>= 1
    return found


def _apart(steps, length):
    """Return how many nodes are in one only of the prefixes of so many steps, and of `length`."""
    found = np.zeros(len(steps), np.int64)
    for k, step in enumerate(steps.tolist()):
        differ = (step ^ length).bit_length()
        found[k] = (step & (1 << differ) - 1).bit_count() + (length & (1 << differ) - 1).bit_count()
    return found
