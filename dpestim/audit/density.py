"""Densities on the line: hockey-stick divergences by adaptive quadrature, with an error that is known, and losses."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from dpestim.privacy.divergence import exponential_below
from dpestim.records import record

#: The error of an integral must be below this part of it, or below what floats can tell of a probability.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-13
#: A density must integrate to 1 up to this.
_OFF = 1e-6
#: Densities below this are too near to where floats end for a ratio of two of them.
_SMALL = 1e-280
#: e^epsilon is taken for that of this epsilon beyond, which makes a delta larger.
_LARGEST = 700
_INF = (-math.inf, math.inf)
#: One of so many points between two edges tells the sign there.
_EVERY = 7


class Estimate(float):
    """A float that was found by numerical integration, and carries the estimate of its error.

    Attributes
    ----------
    error : float
        An estimate of the absolute error, by the differences of quadrature rules, and by the mass of the densities
        that they missed.

    Examples
    --------
    >>> from dpestim.audit import Estimate
    >>> Estimate(0.25, 1e-12).error
    1e-12
    """

    def __new__(cls, value, error):
        """Return the float with its error."""
        self = super().__new__(cls, value)
        self.error = error
        return self

    def __getnewargs__(self):
        return float(self), self.error


@record
class Density:
    """A probability density on the line, with the places where it is not smooth.

    Parameters
    ----------
    f : callable
        The density: takes a float and returns a float of at least 0. It is asked for points of the support only.
    breakpoints : sequence of float, default=()
        Where f has kinks, jumps or narrow peaks; also any point near which its mass is, where that is not near 0.
    support : (float, float), default=(-inf, inf)
        The interval outside which it is 0.

    Raises
    ------
    ValueError
        Where a parameter is not of that form; when it is used, where f does not integrate to 1 (to 1e-6).

    Examples
    --------
    >>> import math
    >>> from dpestim.audit import Density, hockey_stick, max_loss
    >>> laplace = Density(lambda x: 0.5 * math.exp(-abs(x)), breakpoints=(0,))
    >>> moved = laplace.moved(0.5)
    >>> delta = hockey_stick(laplace, moved, 0.25)
    >>> abs(delta - (1 - math.exp((0.25 - 0.5) / 2))) < 1e-9, delta.error < 1e-9
    (True, True)
    >>> print(f"{max_loss(laplace, moved):.6f}")
    0.500000
    """

    f: Callable
    breakpoints: tuple = ()
    support: tuple = _INF

    def __post_init__(self):
        if not callable(self.f):
            raise ValueError("f must be a function of a number")
        try:
            breakpoints, support = (tuple(float(x) for x in part) for part in (self.breakpoints, self.support))
        except (TypeError, ValueError):
            raise ValueError("breakpoints and support must be sequences of numbers") from None
        if not all(map(math.isfinite, breakpoints)):
            raise ValueError("breakpoints must be finite numbers")
        if len(support) != 2 or not support[0] < support[1]:
            raise ValueError("support must be a pair (low, high) of numbers with low below high")
        object.__setattr__(self, "breakpoints", breakpoints)
        object.__setattr__(self, "support", support)

    def __call__(self, x):
        """Return the density at x, a float; 0 outside the support."""
        if not self.support[0] <= x <= self.support[1]:
            return 0.0
        value = float(self.f(x))
        if not 0 <= value < math.inf:
            raise ValueError("f must return finite numbers of at least 0")
        return value

    def moved(self, shift=0.0, scale=1.0):
        """Return the density of shift + scale X, for a scale above 0."""
        if not (math.isfinite(shift) and 0 < scale < math.inf):
            raise ValueError("shift must be a finite number, and scale one above 0")
        # 0 is where quadrature looks first, if nothing else is said: so is what it becomes
        breakpoints, support = (tuple(shift + scale * x for x in part) for part in (self._places, self.support))
        return Density(lambda x: self.f((x - shift) / scale) / scale, breakpoints, support)

    @property
    def _places(self):
        return self.breakpoints or ((0.0,) if self.support == _INF else ())

    @cached_property
    def _mass(self):
        return _integral(self, _edges(self))[0]

    @property
    def _missed(self):
        """The mass that quadrature did not see, or saw twice; 0 where it is rounding."""
        off = abs(1 - self._mass)
        return off if off > _ABSOLUTE else 0.0


def density_excess(p, q, epsilon):
    """Return the integral of (p - e^epsilon q)_+ as an `Estimate`, or raise ValueError."""
    _check_masses(p, q)
    if epsilon == math.inf:
        return _checked(*_integral(lambda x: 0.0 if q(x) else p(x), _edges(p, q)), p._missed)
    e, over, edges = _crossings(p, q, epsilon)
    value, error = _integral(lambda x: max(over(x), 0.0), edges)
    return _checked(value, error, p._missed + e * q._missed)


def density_masses(p, q, epsilon):
    """Return (the mass of p, that of q, intervals) where p is above e^epsilon q: two `Estimate`, pairs of floats.

    That is the event of the largest P - e^epsilon Q. The errors are those of the two integrals, and what the densities
    miss; the event is what the intervals say, so that no error of them matters.
    """
    _check_masses(p, q)
    _, over, edges = _crossings(p, q, Fraction(epsilon))
    places = []
    for a, b in pairwise(edges):
        if max((over(x) for x in _between(a, b)[::_EVERY]), key=abs) > 0:  # (the sign is one between two edges)
            if places and places[-1][1] == a:
                places[-1] = (places[-1][0], b)
            else:
                places.append((a, b))
    sums = []
    for density in (p, q):
        parts = [_integral(density, [a, *(x for x in edges if a < x < b), b]) for a, b in places]
        sums.append(Estimate(sum(value for value, _ in parts), sum(error for _, error in parts) + density._missed))
    return *sums, places


def _check_masses(p, q):
    for name, density in (("p", p), ("q", q)):
        if not abs(density._mass - 1) <= _OFF:
            raise ValueError(f"{name} must integrate to 1, and quadrature finds another mass: pass its kinks, and "
                             "points near its mass, as breakpoints")


def _crossings(p, q, epsilon):
    """Return (e^epsilon, the function p - e^epsilon q, all edges and the places where it changes its sign)."""
    e = float(exponential_below(min(epsilon, _LARGEST)))

    def over(x):
        one, two = p(x), q(x)
        return one - e * two if one > 0 else -two

    edges, roots = _edges(p, q), []
    for a, b in pairwise(edges):
        points = _between(a, b)
        values = [over(x) for x in points]
        for k in range(len(points) - 1):
            if values[k] * values[k + 1] < 0:
                roots.append(brentq(over, points[k], points[k + 1], xtol=1e-300, rtol=1e-14))
    return e, over, sorted({*edges, *roots})


def density_loss(p, q):
    """Return the largest ln(p / q) that is found; inf where q has nothing, or the ratio never stops growing."""
    worst, edges = -math.inf, _edges(p, q)

    def loss(x):
        one, two = p(x), q(x)
        if one <= _SMALL or (two <= _SMALL and one <= math.sqrt(_SMALL)):
            return -math.inf
        return math.log(one) - math.log(two) if two else math.inf

    for a, b in pairwise(edges):
        points = _between(a, b)
        values = np.array([loss(x) for x in points])
        worst = max(worst, values.max())
        for end, far in ((b, values), (a, values[::-1])):
            seen = far[far > -math.inf]
            if math.isinf(end) and len(seen) > 20 and seen[-1] > seen[-20] + 1e-6 * (1 + abs(seen[-20])):
                return math.inf
        for k in np.argsort(values)[-3:].tolist():
            if 0 < k < len(points) - 1 and math.isfinite(worst) and values[k] > -math.inf:
                found = minimize_scalar(lambda x: min(-loss(x), 1e300), bounds=(points[k - 1], points[k + 1]),
                                        method="bounded", options={"xatol": 1e-12 * (1 + abs(points[k]))})
                worst = max(worst, -float(found.fun))
    return float(worst)


# ---------------------------------------------------------------- inside


def _edges(*densities):
    """Return all breakpoints and ends of supports, in order."""
    low, high = min(d.support[0] for d in densities), max(d.support[1] for d in densities)
    return sorted({low, high, *(x for d in densities for x in (*d._places, *d.support) if low < x < high)})


def _between(a, b):
    """Return points strictly between two edges, close together near both."""
    steps = np.geomspace(1e-9, 1e15, 481)
    if math.isinf(a) or math.isinf(b):
        end = a if math.isfinite(a) else b
        points = end + steps if math.isfinite(a) else (end - steps)[::-1]
    else:
        near = np.geomspace(1e-12, 0.5, 121) * (b - a)
        ends = [math.nextafter(a, b), math.nextafter(b, a)]
        points = np.concatenate([ends, a + near, np.linspace(a, b, 65), b - near])
    return np.unique(points[(points > a) & (points < b)]).tolist()


def _integral(f, edges):
    """Return (the integral over all pieces, an estimate of its error)."""
    value, error = 0.0, 0.0
    for a, b in pairwise(edges):  # (full_output: what is not reached is told by the error, not by a warning)
        part, off, *_ = quad(f, a, b, epsabs=0.0, epsrel=1e-10, limit=400, full_output=1)
        value, error = value + part, error + off
    return value, error


def _checked(value, error, missed):
    """Return an `Estimate` of an integral, or raise ValueError where its error is too large; `missed` adds to it."""
    if not error <= max(_RELATIVE * value, _ABSOLUTE):
        raise ValueError(f"p and q cannot be integrated accurately (error {error:.1e} of {value:.1e}): pass all kinks "
                         "and narrow peaks as breakpoints")
    return Estimate(min(max(value, 0.0), 1.0), min(error + missed, 1.0))
