"""Two ways to put noise on all running totals of a stream, each of them integers with exact noise: ``counter.md``.

A factor is made for a number of steps, of integers that neighbours change by `change` in each of `events` steps. It has
the `law` of its noise, `begin()`, the state of a stream that has no step yet, and `take(state, x, z)`, the running
totals of the next steps with one integer of noise for each, which changes the state.
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import streams
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.privacy.rounding import float_up
from dpestim.records import record

#: Weights of the factor in units of 2^-30: of the step itself, of the first three sums, and 2^(a / 2) times that of a
#: sum which decays by 1 - 2^-a a step, a even. The last is 2 ln(2) / pi, by which such sums are close to the square
#: root of the running sum; the others are a least squares fit to it. Any weights keep the guarantee.
_UNIT = 30
_DIRECT, _FIRST, _OTHERS = 357127282, (259549958, 211716547, 126895202), 473811343
#: A code is a multiple of 1 / 2^digits, where so many digits more than half of those of the horizon are taken.
_DIGITS, _GUARD = 12, 24
#: The longest horizon, and the largest integer of the kernel.
LONGEST, _LARGEST = 1 << 40, 1 << 126
#: Noise of a larger standard deviation might not fit into 64 bits.
_WIDEST = 1 << 50
#: Digits of powers below.
_POWER = 256


@record
class Factor:
    """What both share: the fields are all that a factor follows from."""

    epsilon: Fraction
    delta: Fraction
    #: The part of the concentrated budget that is kept for other numbers.
    kept: Fraction
    horizon: int
    change: int
    events: int
    most: int

    def _checked(self, law):
        if law.variance_steps >= _WIDEST**2:
            raise ValueError("epsilon is too small for the horizon and the bounds, because the noise would exceed "
                             "64-bit integers: take a larger epsilon, or a shorter horizon")
        return law

    def gaussian(self, square, part):
        """Return discrete Gaussian noise for a move of this squared L2 norm, at a part of the concentrated budget."""
        return self._checked(DiscreteGaussianLaw(self.epsilon, self.delta, root_above(square / part), 0, 2))

    def cost(self, moves):
        """Return how much epsilon, or rho where noise is Gaussian, these moves of the integers cost."""
        if isinstance(self.law, DiscreteLaplaceLaw):
            return self.law.rate_of_decay * sum(map(abs, moves))
        return Fraction(sum(m * m for m in moves)) / (2 * Fraction(self.law.sigma) ** 2)


class SmoothFactor(Factor):
    """Codes that are the stream weighted by about 1 / sqrt(pi k) after k steps: sums that decay in integers."""

    @cached_property
    def shifts(self):
        """Each sum decays by 1 - 2^-shift a step."""
        top = max(4, 2 * math.ceil((self.horizon - 1).bit_length() / 2) + 2)
        return np.array([1, 2, *range(4, top + 1, 2)], np.int32)

    @cached_property
    def weights(self):
        """Weights of the sums, integers of 2^-30; the last stands for all slower ones, too."""
        found = [*_FIRST, *(_OTHERS >> int(a) // 2 for a in self.shifts[3:])]
        found[-1] *= 2
        return np.array(found, np.int64)

    @cached_property
    def scale(self):
        """Binary digits of the codes."""
        return _DIGITS + -(-(self.horizon - 1).bit_length() // 2)

    @property
    def fraction(self):
        """Binary digits of the sums."""
        return self.scale + _GUARD

    @property
    def _down(self):
        return _UNIT + self.fraction - self.scale

    @cached_property
    def _lag(self):
        """How far codes are apart beyond what weights say, at most, because sums and codes are rounded down."""
        late = sum(int(weight) << int(shift) for weight, shift in zip(self.weights, self.shifts))
        return 1 + Fraction(late, 1 << self._down)

    @cached_property
    def square(self):
        """A bound of the squared L2 norm by which neighbours change all codes: a Fraction."""
        linear = self.change * root_above(self._column) * (1 << self.scale)
        return (self.events * (linear + self._lag * root_above(Fraction(self.horizon)))) ** 2

    @cached_property
    def _column(self):
        """A bound of the squared norm of what one step of size 1 adds to the codes of `horizon` steps."""
        kept = [Fraction((1 << int(a)) - 1, 1 << int(a)) for a in self.shifts]
        weights = [Fraction(int(w), 1 << _UNIT) for w in self.weights]
        direct = Fraction(_DIRECT, 1 << _UNIT)
        total = direct**2 + 2 * direct * sum(weights)
        for k, (one, w) in enumerate(zip(kept, weights)):
            for other, v in zip(kept[k:], weights[k:]):
                both = one * other
                total += w * v * (1 - _power_below(both, self.horizon)) / (1 - both) * (1 if one == other else 2)
        return total

    @cached_property
    def law(self):
        """The law of the noise of a code."""
        reach = max(self.most, 1) << self.fraction
        top = reach * (_DIRECT + sum(int(w) << int(a) for w, a in zip(self.weights, self.shifts)))
        if max(top, reach << int(self.shifts[-1]) + 1) >= _LARGEST:
            raise ValueError("bounds are too far apart for the horizon: take a coarser resolution, or a shorter "
                             "horizon")
        return self.gaussian(self.square, 1 - self.kept)

    @cached_property
    def _floats(self):
        rest = 1 - np.ldexp(1.0, -self.shifts)
        omega = np.ldexp(self.weights.astype(float), -_UNIT)
        return omega, rest, float(omega.sum() + _DIRECT / (1 << _UNIT))

    def begin(self):
        """Return the state of a stream without a step."""
        return np.zeros((len(self.shifts), 2), np.uint64), np.zeros(len(self.shifts) + 1)

    def codes(self, state, x, z):
        """Return the codes of the next steps, with noise, in units of a step of the stream."""
        out = np.empty(len(x))
        streams.codes(x, z, self.shifts, self.weights, _DIRECT, self.fraction, self._down, math.ldexp(1.0, -self.scale),
                      state[0], out)
        return out

    def take(self, state, x, z):
        """Return the running totals of the next steps."""
        out = self.codes(state, x, z)
        streams.totals(out, *self._floats, state[1])
        return out

    def moved(self, x):
        """Return the integers of a stream that get noise, exactly: a list."""
        return [int(code * (1 << self.scale)) for code in self.codes(self.begin(), x, np.zeros_like(x))]

    def gains(self, state, n):
        """Return what a total of each of the next n steps makes of the noise of its first step; a state of its own."""
        out = np.zeros(n)
        out[:1] = not state.any()
        streams.totals(out, *self._floats, state)
        return out


class TreeFactor(Factor):
    """A binary tree: step t is the last of a node that sums as many steps as the lowest one bit of t says."""

    @property
    def levels(self):
        """How many nodes hold a step, at most."""
        return self.horizon.bit_length()

    @cached_property
    def square(self):
        """The squared L2 norm by which neighbours change all nodes."""
        return Fraction(self.events * self.change) ** 2 * self.levels

    @cached_property
    def law(self):
        """The law of the noise of a node: Laplace without a delta, Gaussian with one."""
        if self.delta:
            return self.gaussian(self.square, 1 - self.kept)
        moved = Fraction(self.events * self.change * self.levels)
        return self._checked(DiscreteLaplaceLaw(self.epsilon, Fraction(0), moved, 0))

    def begin(self):
        """Return the state of a stream without a step."""
        return np.zeros(65, np.int64), np.zeros(1, np.uint64)

    def take(self, state, x, z):
        """Return the running totals of the next steps."""
        out = np.empty(len(x), np.int64)
        streams.tree(x, z, int(state[1][0]) + 1, state[0], out)
        state[1][0] += np.uint64(len(x))
        return out.astype(float)

    def moved(self, x):
        """Return the integers of a stream that get noise, exactly: a list."""
        total = [0, *np.cumsum(x).tolist()]
        return [total[t] - total[t & (t - 1)] for t in range(1, len(total))]


def root_above(square):
    """Return a Fraction of at least the square root, by 1e-12 of it at most more."""
    shift = max(0, 100 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    inside = -(-(square.numerator << shift) // square.denominator)
    return Fraction(float_up(Fraction(math.isqrt(inside) + 1, 1 << shift // 2)))


def _power_below(base, n):
    """Return a Fraction of at most base^n, 0 <= base <= 1."""
    one, found = (base.numerator << _POWER) // base.denominator, 1 << _POWER
    while n:
        if n & 1:
            found = found * one >> _POWER
        one, n = one * one >> _POWER, n >> 1
    return Fraction(found, 1 << _POWER)
