"""What a release draws, and what it makes of that: everything private is in the parts, all else is public.

A plan is the exact law of a release: its parts are drawn independently of each other, and what comes out is one
function of their outcomes. Neighbouring data sets must have parts of the same laws, and the same function; so the
checks of `dpestim.testing` work out by how much likelier any outcome is for one of them.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpestim import accounting
from dpestim.records import record
from dpestim.statistics.calibrated_noise import Noise


@record(eq=False)
class Plan:
    """A release: called with a source of words it returns (value, standard error, ends of intervals), keys of a table.

    Parameters
    ----------
    parts : tuple of Noisy, Frequent or Choice (`dpestim.statistics.choice`)
    finish : callable
        From the list of their outcomes to what is released; it knows public facts alone.
    """

    parts: tuple
    finish: Callable

    def __call__(self, source):
        """Draw, and return what is released."""
        if len(self.parts) == 1:
            return self.finish([self.parts[0].draw(source)])
        return self.finish([part.draw(source.part(k)) for k, part in enumerate(self.parts)])

    @property
    def curve(self):
        """What is known of a release besides (epsilon, delta): the sum of what is known of its parts, or None.

        It follows from laws alone. Parts are drawn independently, and a record may change all of them.
        """
        if len(self.parts) == 1:
            (law,) = (part.law_of_loss for part in self.parts)
            return None if law is None else _curve_of(law)
        often = Counter(part.law_of_loss for part in self.parts)
        if None in often:
            return None
        return sum(_curve_of(law).compose(n) for law, n in often.items())


def _curve_of(law):
    """Return that of one part: of normal noise its own, and else that of anything that keeps its epsilon."""
    return law.curve if getattr(law, "delta", 0) else _pure(law.epsilon)


@lru_cache(maxsize=256)
def _pure(epsilon):
    return accounting.RenyiCurve.pure(epsilon)


@record(eq=False)
class Noisy:
    """Integers that get noise of one law, each by itself."""

    noise: Noise
    numbers: object

    @property
    def law_of_loss(self):
        """The law that says how much a release may cost."""
        return self.noise.law

    def draw(self, source):
        """Return the noisy integers."""
        return self.noise.add(self.numbers, source)

    def exact(self):
        """Return what noise is added to, as it comes out without noise."""
        return self.noise.scaled(self.noise.codes(self.numbers))


@record(eq=False)
class Frequent:
    """Counts of what occurs, with noise, of which those that reach a public threshold are shown."""

    noise: Noise
    counts: dict
    least: int
    #: what is shown costs a delta, besides which nothing is known
    law_of_loss: ClassVar = None

    def draw(self, source):
        """Return what is shown, in the order of the counts: a dict from keys to noisy counts."""
        noisy = self.noise.add(np.array(list(self.counts.values()), np.int64), source) if self.counts else []
        return {key: int(count) for key, count in zip(self.counts, noisy) if count >= self.least}

    def exact(self):
        """Return what would be shown without noise."""
        return {key: count for key, count in self.counts.items() if count >= self.least}
