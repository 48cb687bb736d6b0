"""A share of discrete Laplace noise, exactly: integers of which enough add up to that law (`owners.md`)."""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np

from dpestim.central.exact_bernoulli import exp_bounds, threshold
from dpestim.distributed.exact_poisson import PoissonCounts
from dpestim.exact_reals import BitStream, Real
from dpestim.records import record
from dpestim.rng import Stage

#: Weights of levels are multiples of 2^-20; beyond the last level, e^-16 and less, they are parts of one.
_BITS, _FAR = 20, 16
#: Columns of words: how many jumps are proposed, what ties there, and the jumps.
_COUNTS, _TIES, _JUMPS = range(3)
#: Words that are drawn at once, and sizes of jumps of which the coin is remembered.
_AHEAD, _REMEMBERED = 1 << 10, 1 << 14
_WORD = (1 << 64) - 1


@record
class PolyaShare(PoissonCounts):
    """The law NB(1 / honest, 1 - a) - NB(1 / honest, 1 - a), a = e^-rate: jumps +-g, each at the rate a^g / (honest g).

    Parameters
    ----------
    rate : Fraction
        `honest` shares add up to a law that falls by e^-rate a step.
    honest : int
    """

    rate: Fraction
    honest: int
    #: a share is in steps, not in parts of them
    bits: ClassVar[int] = 0

    @cached_property
    def weights(self):
        """Integers of at least 2^20 e^-(rate 2^l), for levels l = 0, 1, ... of jumps from 2^l to below 2^(l + 1)."""
        n_levels = next(n for n in range(1, 200) if self.rate * (1 << n) >= _FAR)
        return [math.ceil(exp_bounds(self.rate * (1 << level), 30)[1] * (1 << _BITS)) for level in range(n_levels)]

    @cached_property
    def mean(self):
        """How many jumps are proposed for an integer, on average: those of all levels, and of all beyond."""
        return Fraction(2 * (sum(self.weights) + 1), self.honest << _BITS)

    def draw(self, source, size):
        """Return so many integers modulo 2^64, an array of uint64."""
        words = source.reader().dense(Stage.NOISE, _COUNTS, 0, 0, size)
        counts = self.counts(words, BitStream(source.reader(), _TIES, 0))
        out, stream = np.zeros(size, np.uint64), BitStream(source.reader(), _JUMPS, 0, _AHEAD)
        for at in np.flatnonzero(counts).tolist():
            out[at] = sum(self.jump(stream) for _ in range(counts[at])) & _WORD
        return out

    def jump(self, stream):
        """Return a jump that is proposed, 0 where it is rejected."""
        level = bisect_right(self._upto, stream.below(self._upto[-1] + 1))
        if level == len(self.weights):  # (beyond: half of one for the first level, a quarter for the next, ...)
            while stream.below(2):
                level += 1
        size = (1 << level) + stream.below(1 << level)
        if stream.below(size) >= 1 << level or not self._accepts(level, size, stream):
            return 0
        return size if stream.below(2) else -size

    @cached_property
    def _upto(self):
        return list(accumulate(self.weights))

    @cached_property
    def _known(self):
        return {}

    def _accepts(self, level, size, stream):
        """Tell whether a coin of probability 2^20 e^-(rate size) / weight shows."""
        word, first = stream.word(), self._known.get(size)
        if first is None:
            first = threshold(self.accepted(level, size), 64)
            if len(self._known) < _REMEMBERED:
                self._known[size] = first
        return word < first if word != first else Real(stream, word, 64).is_below(self.accepted(level, size))

    def accepted(self, level, size):
        """Return that probability, for comparisons."""
        beyond = level - len(self.weights)
        weight = self.weights[level] if beyond < 0 else Fraction(1, 2 << beyond)
        return lambda n_digits: tuple(end * (1 << _BITS) / weight for end in exp_bounds(self.rate * size, n_digits))


@lru_cache(maxsize=64)
def polya_share(rate, honest):
    """Return the `PolyaShare`, from a cache where it was made before."""
    return PolyaShare(rate, honest)
