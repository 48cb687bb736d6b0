"""From exact integers to noisy ones: which law of `dpestim.central`, and how far off a number may be."""

import math
from collections import deque
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim import accounting
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.law import LARGEST, NoiseLaw
from dpestim.records import record

#: Large integers are rounded to multiples of 2^k, at least so many of which the sensitivity is, for each of them.
_FINE = 20
#: Equal shares of a budget are equal but for a 2^8th.
_EVEN = 8


@record
class Noise:
    """A law of `dpestim.central`, in a unit that is a power of two."""

    law: NoiseLaw
    unit: int

    @property
    def variance(self):
        """The variance of a number."""
        return self.law.variance_steps * float(self.unit) ** 2

    def half_width(self, confidence):
        """Return what the error of a number exceeds with probability 1 - confidence at most."""
        return (_half_width(self.law, confidence) + (0.5 if self.unit > 1 else 0.0)) * self.unit

    def codes(self, numbers):
        """Return integers in units, an array of int64: what noise is added to."""
        if self.unit > 1:
            numbers = [(2 * number + self.unit) // (2 * self.unit) for number in numbers]
        if not isinstance(numbers, np.ndarray):
            numbers = np.array([min(max(number, -LARGEST // 2), LARGEST // 2) for number in numbers], np.int64)
        return numbers

    def scaled(self, codes):
        """Return integers in units as numbers: an array of int64 where the unit is 1, else of floats."""
        return codes if self.unit == 1 else codes.astype(np.float64) * float(self.unit)

    def add(self, numbers, source):
        """Return integers with noise, `scaled`."""
        codes = self.codes(numbers)
        return self.scaled(self.law.add(codes.copy(), source))


@lru_cache(maxsize=128)
def _half_width(law, confidence):
    return law.half_width(confidence)


@lru_cache(maxsize=128)
def noise_for(epsilon, delta, l1, l2_squared, size, parts=1):
    """Return the noise for so many integers that change by (l1, sqrt(l2_squared)) at most, all together.

    A record may share its change among `parts` releases of so many integers, each of which is rounded (then without a
    delta).

    Where delta is above 0 it is Gaussian or Laplace noise, whichever has the smaller variance (both facts are public).
    What is charged is the declared (epsilon, delta) in either case: it is known before any size is.
    """
    unit = 1 << max(0, l1.bit_length() - (size * parts).bit_length() - _FINE - 1)
    rounding = size * parts if unit > 1 else 0
    laws = []
    try:
        laws.append(DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(l1, unit) + rounding, 0))
    except ValueError:
        if not delta:
            raise
    if delta:
        from dpestim.central.additive.gaussian import RoundedGaussianLaw

        root = Fraction(math.isqrt(l2_squared << 80) + 1, unit << 40)
        moved = root + (Fraction(math.isqrt(size << 80) + 1, 1 << 40) if rounding else 0)
        if math.isqrt(l2_squared) ** 2 == l2_squared and not rounding:
            moved = Fraction(math.isqrt(l2_squared))
        laws.append(RoundedGaussianLaw(epsilon, delta, moved, 0))
    return Noise(min(laws, key=lambda law: law.variance_steps), unit)


def curve_of_either(epsilon, delta):
    """Return what is known of noise of this budget, normal or not: which it is may follow from private bounds."""
    from dpestim.central.additive.gaussian import RoundedGaussianLaw

    normal = RoundedGaussianLaw(epsilon, delta, Fraction(1), 0).curve.rho
    renyi = accounting.RenyiCurve
    return renyi.largest([renyi.concentrated(normal), renyi.pure(epsilon)])


def equal_shares(changes):
    """Return (weights, l1, l2_squared): weighted numbers, of which all may change, cost equal shares of a budget."""
    if len(changes) == 1:
        return [1], changes[0], changes[0] ** 2
    top = max(changes) << _EVEN
    weights = [top // change for change in changes]
    common = math.gcd(*weights)
    weights = [weight // common for weight in weights]
    moved = [weight * change for weight, change in zip(weights, changes)]
    return weights, sum(moved), sum(m * m for m in moved)


class Answers:
    """What adds noise to integers, answer by answer; the laws are what a proof says they are.

    Parameters
    ----------
    source : dpestim.rng.WordSource
        From which nobody else draws.
    """

    def __init__(self, source):
        self._source, self._n_answers = source, 0
        self._drawn = deque()  # noise of the next answers, first one first: (law, where it is from, integers)

    def __reduce__(self):
        """Refuse: a copy would answer again, with the same noise."""
        raise TypeError("answers cannot be pickled or copied, because their noise would be used twice: make new ones")

    def add(self, law, integers):
        """Return integers with the noise of a law, an array of int64 of the same shape."""
        codes = np.array(integers, np.int64)
        if not self._drawn:
            return law.add(codes, self._next())
        of, source, noise = self._drawn.popleft()  # (so that it is used once)
        if of is not law or (noise is not None and len(noise) != codes.size):
            raise RuntimeError("answers are not those that noise was drawn for: ask them in the order of `draw`")
        return law.add(codes, source) if noise is None else law.add_drawn(codes, noise)

    def draw(self, law, sizes):
        """Draw the noise of the next answers, of so many integers each: the same that each would draw by itself.

        It takes less time than one by one, each after a pass over rows that has emptied the caches. Nothing else is
        answered before these.
        """
        for size in sizes:
            source = self._next()
            self._drawn.append((law, source, None if source.sums is not None else law.draw(source, size)))

    def choose(self, law, scores):
        """Return the place that a law of choices draws by integer scores."""
        if self._drawn:
            raise RuntimeError("answers are not those that noise was drawn for: ask them in the order of `draw`")
        return law.draw(np.array(scores, np.int64), self._next())

    def _next(self):
        """Return the source of the next answer: nobody else draws from it."""
        at, self._n_answers = self._n_answers, self._n_answers + 1
        return self._source.part(at)
