"""Mechanisms as pairs of laws, whose losses are put on a grid: what a `PrivacyLossDistribution` is made of.

A pair is a frozen dataclass, its fields its identity. It answers

    kind        pairs of one kind can be put on a grid together
    reach       no finite loss is larger, in absolute value
    variance    of the loss, about
    work        what putting it on a grid costs, about: floats, times the step, without and with `thin`
    symmetric   whether removing and adding a record have the same losses
    rho, order, of_groups   what a piece of a `Series` answers

and the class, for a list of pairs of one kind,

    losses      their `Losses` on the grid of a step, for removing (reverse=False) or adding (True) a record; `thin`:
                with wider cells in the tails

Which pair dominates which mechanism, and why, is in ``loss.md``.
"""

import math
from fractions import Fraction
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from dpestim.accounting.grid import Losses, cell_ends, margin, split_cells, split_points, together
from dpestim.privacy.rounding import LARGEST, float_up
from dpestim.records import record

#: Normal numbers are cut this far from their mean, where less than `_TAIL` is left.
_FAR, _TAIL = 15.0, 1e-50
#: Where cells in the tails are wider, those within so many standard deviations are as wide as a step.
_BULK = 4


@cache
def _quadrature():
    """Return the nodes and the weights of Gauss's rule between 0 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return 0.5 * (nodes + 1), 0.5 * weights


@record
class Approximate:
    """The pair that dominates all (epsilon, delta)-private mechanisms; randomised response where delta is 0.

    Both are Fractions: basic composition is exact.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    symmetric: ClassVar = True
    kind: ClassVar = "approximate"

    @property
    def rho(self):
        """epsilon^2 / 2; None where there is a delta."""
        return None if self.delta else self.epsilon**2 / 2

    @property
    def order(self):
        """Its family and its size."""
        return (Approximate, self.delta), self.epsilon

    def of_groups(self, size):
        """Return that for groups, where it is pure and no loss gets too large."""
        moved = size * self.epsilon
        return None if self.delta or moved > LARGEST else Approximate(moved)

    @property
    def work(self):
        """What putting it on a grid of step 1 costs."""
        return 2 * self.reach

    @cached_property
    def reach(self):
        """No finite loss is larger."""
        return float_up(self.epsilon)

    @property
    def variance(self):
        """The variance of the loss, or a little more."""
        return self.reach**2 * (1 - math.tanh(self.reach / 2) ** 2 + 1e-3)

    @staticmethod
    def losses(pairs, step, reverse=False, thin=False):
        """Return the losses of several."""
        epsilon, delta = np.array([(pair.reach, float_up(pair.delta)) for pair in pairs]).T
        likely = (1 - delta) / (1 + np.exp(-epsilon))
        points = split_points(np.stack([-epsilon, epsilon], 1), np.stack([np.exp(-epsilon) * likely, likely], 1), step)
        return Losses(points.first, points.mass, delta, excess=points.excess)


@record
class Points:
    """Single points: (losses, masses, what is infinite, below all, moved), and the same of the other direction."""

    forward: tuple
    backward: tuple | None = None

    @property
    def is_pure(self):
        """Whether no loss is infinite; then none is above `reach`, but for its rounding."""
        return not any(part[2] for part in (self.forward, self.backward) if part)

    @property
    def rho(self):
        """That of a pure release; None where a loss may be infinite."""
        return Fraction(self.reach + margin(self.reach)) ** 2 / 2 if self.is_pure else None

    @property
    def order(self):
        """It is compared with itself only."""
        return (self,), 0

    def of_groups(self, size):
        """Return None: the laws of two neighbours do not say what happens further away."""
        return

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)], for a pure pair."""
        t, out = np.asarray(t, np.float64), []
        for loss, mass, *_ in filter(None, (self.forward, self.backward)):
            logs = t[..., None] * np.array(loss) + np.log(np.maximum(mass, 1e-300))
            out.append(logsumexp(logs, axis=-1))
        return np.maximum.reduce(out) + 2.0**-40 * (1 + t * self.reach)

    @property
    def work(self):
        """What putting it on a grid of step 1 costs."""
        return 2 * self.reach

    @property
    def kind(self):
        """Each is of a kind of its own."""
        return self

    @property
    def symmetric(self):
        """Whether both directions are the same."""
        return self.backward is None

    @cached_property
    def reach(self):
        """No finite loss is larger."""
        return max(max(map(abs, part[0]), default=0.0) for part in (self.forward, self.backward) if part)

    @cached_property
    def variance(self):
        """The variance of the loss."""
        loss, mass = (np.array(x) for x in self.forward[:2])
        return float(mass @ loss**2 - (mass @ loss) ** 2) if loss.size else 0.0

    @staticmethod
    def losses(pairs, step, reverse=False, thin=False):
        """Return the losses of the only one."""
        (pair,) = pairs
        loss, mass, *tails = pair.backward if reverse and pair.backward else pair.forward
        if not loss:
            return Losses(0, np.zeros((1, 1)), tails[0])
        return together([split_points(np.array([loss]), np.array([mass]), step)], *tails)


@record
class Gaussian:
    """N(0, 1) and N(shift, 1)."""

    shift: float
    work: ClassVar = 4.0
    #: the largest shift: losses of more are too large
    farthest: ClassVar = 20

    @property
    def ends(self):
        """The losses between which cells lie."""
        return (-_FAR - self.shift / 2) * self.shift, (_FAR + self.shift / 2) * self.shift

    @property
    def variance(self):
        """The variance of the loss."""
        return self.shift**2

    @property
    def apart(self):
        """The variance of the ratio of both laws under the second, as far as floats need it."""
        return math.expm1(min(self.shift**2, 50))

    @staticmethod
    def atoms(shift):
        """No point has a mass of its own."""
        return None

    @staticmethod
    def masses(shift, edges):
        """Return the masses of losses between neighbouring edges under both laws, relative error below 2^-41."""
        x = edges / shift + shift / 2
        start, width = x[:, :-1], np.diff(x)
        panels = np.ceil((width * (np.maximum(-start, x[:, 1:]) + shift + 6)).max(axis=0) / 10)
        one, two = np.zeros(width.shape), np.zeros(width.shape)
        for few in (True, False):  # those that need one panel, nearly all; and those that need more
            which = (panels <= 1) == few
            if which.any():
                one[:, which], two[:, which] = _normal(start[:, which], width[:, which], shift,
                                                       max(1, int(panels[which].max())))
        return one, two

    #: What is cut: (above the ends, below them, in all)
    tails: ClassVar = (_TAIL, _TAIL, 2 * _TAIL)


def _normal(start, width, shift, panels):
    """Return the masses of intervals under N(0, 1) and N(shift, 1), by Gauss and Legendre on so many panels."""
    one, two = np.zeros(width.shape), np.zeros(width.shape)
    for panel in range(panels):
        for node, weight in zip(*_quadrature()):
            place = start + width * ((panel + node) / panels)
            share = weight / panels / math.sqrt(2 * math.pi) * width
            one += share * np.exp(place * place * -0.5)
            two += share * np.exp((place - shift) ** 2 * -0.5)
    return one, two


@record
class Laplace:
    """Lap(0) and Lap(sensitivity), `shift` scales apart."""

    shift: float
    work: ClassVar = 1.0
    farthest: ClassVar = LARGEST
    tails: ClassVar = (0.0, 0.0, 0.0)

    @property
    def ends(self):
        """The losses between which cells lie."""
        return -self.shift, self.shift

    @property
    def variance(self):
        """The variance of the loss, or a little more."""
        return self.shift**2 if self.shift < 2 else 4.0

    @property
    def apart(self):
        """The variance of the ratio of both laws under the second, as far as floats need it."""
        far = min(self.shift, 50)
        return (2 * math.expm1(far) + math.expm1(-2 * far)) / 3

    @staticmethod
    def atoms(shift):
        """Return the masses at the least and at the greatest loss, under the first and the second law."""
        rare, half = 0.5 * np.exp(-shift), np.full(shift.shape, 0.5)
        return np.concatenate([half, rare], axis=1), np.concatenate([rare, half], axis=1)

    @staticmethod
    def masses(shift, edges):
        """Return the masses of losses between neighbouring edges under both laws."""
        half, low = np.diff(edges) / 2, edges[:, :-1] / 2
        one = 0.5 * np.exp(-low - shift / 2) * -np.expm1(-half)
        return one, one * np.exp(2 * low + half)


@record
class Sampled:
    """A mechanism of a base pair on a Poisson sample: each record is in it with probability `rate`, by itself."""

    base: Gaussian | Laplace
    rate: float = 1.0

    @property
    def kind(self):
        """Pairs with one base, and one way to compute."""
        return type(self.base), self.rate == 1, self.rate > 0.5

    @property
    def rho(self):
        """shift^2 / 2 of Gaussians; what a pure release has of Laplace noise; None of sampled Gaussians."""
        if type(self.base) is Laplace:
            return Fraction(self.base.shift if self.rate == 1 else self.reach + margin(self.reach)) ** 2 / 2
        return Fraction(self.base.shift) ** 2 / 2 if self.rate == 1 else None

    @property
    def order(self):
        """Its family and its size; rhos of Gaussians add up."""
        return (type(self.base), self.rate, type(self.base) is Gaussian and self.rate == 1), self.base.shift

    def of_groups(self, size):
        """Return that for groups: as many times as far, unless sampled or where losses get too large."""
        moved = size * Fraction(self.base.shift)
        if self.rate < 1 or moved > self.base.farthest:
            return None
        return Sampled(type(self.base)(float_up(moved)))

    @property
    def symmetric(self):
        """Whether both directions are the same."""
        return self.rate == 1

    @property
    def work(self):
        """What putting it on a grid of step 1 costs, with cells of one width and with fewer in the tails."""
        bulk = min(_BULK * math.sqrt(self.variance), self.reach)
        return np.array([self.reach, bulk * (1 + math.log2(self.reach / bulk) / 4)]) * 2 * self.base.work

    @cached_property
    def reach(self):
        """No finite loss is larger."""
        return float(np.abs(_mixed(np.array(self.base.ends), self.rate)).max())

    @property
    def variance(self):
        """The variance of the loss, about."""
        return min(self.base.variance, self.rate**2 * self.base.apart) if self.rate < 1 else self.base.variance

    @staticmethod
    def losses(pairs, step, reverse=False, thin=False):
        """Return the losses of mixtures over first laws; reversed, those of first laws over mixtures."""
        base, reverse = type(pairs[0].base), reverse and pairs[0].rate < 1
        shift, rate = np.array([[pair.base.shift] for pair in pairs]), np.array([[pair.rate] for pair in pairs])
        low, high = (np.array([[pair.base.ends[i]] for pair in pairs]) for i in (0, 1))
        reach, sign = max(pair.reach for pair in pairs), -1 if reverse else 1
        order = slice(None, None, sign)
        error = margin(reach)
        ends = sign * _mixed(np.concatenate([low, high], axis=1), rate)
        first, last = math.floor((ends.min() - error) / step), math.ceil((ends.max() + error) / step)
        bulk = _BULK * math.sqrt(max(pair.variance for pair in pairs)) if thin else reach + error + step
        bulk = 2 ** max(2, math.ceil(math.log2(bulk / step)))
        places = cell_ends(first, last, bulk)
        inner = np.clip(places[1:-1] * step - 1.5 * error, ends.min(1)[:, None], ends.max(1)[:, None])
        inner = np.clip(_base_loss(sign * inner, rate), low, high)[:, order]
        edges = np.maximum.accumulate(np.concatenate([low, inner, high], axis=1), axis=1)

        def laws(one, two):
            mixture = two if rate[0] == 1 else (1 - rate) * one + rate * two
            return (one, mixture) if reverse else (mixture, one)

        p, q = (part[:, order] for part in laws(*base.masses(shift, edges)))
        parts, atoms = [split_cells(places, p, q, step, reach)], base.atoms(shift)
        if atoms:
            parts.append(split_points(ends, laws(*atoms)[0], step))
        return together(parts, *base.tails)


def _mixed(loss, rate):
    """Return ln(1 - rate + rate e^loss), absolute error below u (8 + 2 |loss|); all rates of one kind."""
    some = np.ravel(rate)[0]
    if some == 1:
        return loss
    if some > 0.5:
        return np.log((1 - rate) + rate * np.exp(loss))
    return np.log1p(rate * np.expm1(loss))


def _base_loss(mixed, rate):
    """Return the loss that `_mixed` maps there."""
    some = np.ravel(rate)[0]
    if some == 1:
        return mixed
    if some > 0.5:
        return np.log(np.maximum((np.exp(mixed) - (1 - rate)) / rate, 1e-300))
    return np.log1p(np.maximum(np.expm1(mixed) / rate, -1 + 2.0**-53))


def _numbers(array):
    return tuple(array.tolist())


def discrete_pair(p, q):
    """Return the points of two finite laws (arrays of floats, taken as they are)."""

    def direction(p, q):
        both = (p > 0) & (q > p * math.exp(-LARGEST))
        alone = (p > 0) & ~both
        a, b = p[both], q[both]
        near = np.abs(a - b) <= b / 2
        loss = np.where(near, np.log1p(np.where(near, a - b, 0.0) / b), np.log(a / b))
        return (_numbers(np.maximum(loss, -LARGEST)), _numbers(a),
                min(1.0, math.fsum(p[alone]) + max(0.0, 1 - math.fsum(p))), 0.0, math.fsum(p[alone & (q > 0)]))

    return Points(direction(p, q), direction(q, p))


def discrete_laplace(epsilon, shift):
    """Return the points of discrete Laplace noise, for integers that move by `shift` and a loss of at most epsilon."""
    # P[Z <= 0], P[Z = 1], ..., P[Z = shift - 1], P[Z >= shift]
    rate = epsilon / shift
    z = np.arange(shift + 1, dtype=np.float64)
    mass = np.exp(-rate * z) / (1 + math.exp(-rate))
    mass[1:-1] *= -math.expm1(-rate)
    return Points((_numbers(rate * (shift - 2 * z)), _numbers(mass), 0.0, 0.0, 0.0))


def discrete_gaussian(sigma, shift):
    """Return the points of discrete Gaussian noise, for one integer that moves by `shift`."""
    last = math.ceil(_FAR * sigma) + 1
    z = np.arange(-last, last + 1, dtype=np.float64)
    mass = np.exp(-((z / sigma) ** 2) / 2)
    mass /= mass.sum()
    return Points((_numbers(shift * (shift - 2 * z) / (2 * sigma**2)), _numbers(mass), _TAIL, _TAIL, 2 * _TAIL))
