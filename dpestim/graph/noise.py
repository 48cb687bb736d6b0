"""Noise that follows a graph: what is drawn for a pattern whose A(0), A(1), ... are known (`patterns.py`).

Each of these is made of a pattern and its estimator, raises what is wrong when it is made, and has `draw(source)`, the
attributes of a fit, and `log_law(places)`, the logarithm of the probability or density of what is published at values.
All of it but `draw` is secret. Proof: ``subgraph_count.md``.
"""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.law import COLUMNS
from dpestim.central.base import checked_delta
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.central.stability.grid import ClippedGrid
from dpestim.central.stability.heavy import heavy_noise
from dpestim.central.stability.rows import checked_share
from dpestim.central.stability.statistics import smooth_weights
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import canonical_epsilon

#: Rungs further away than so many times 2 / epsilon weigh less than e^-60 together with all beyond: they are one.
_FAR = 60
#: The most rungs, and the most numbers A(t) that are looked at, where epsilon is close to 0.
_MOST = 1 << 16
#: Integers of the grid of smooth noise have so many binary digits at most.
_DIGITS = 52


class PlainNoise:
    """Discrete Laplace noise for a change of 1."""

    def __init__(self, seen, mechanism):
        self.seen, self.law = seen, _laplace(canonical_epsilon(mechanism.epsilon), 1)

    def draw(self, source):
        """Return what a fit learns."""
        return _learned(self.seen, self.seen.value + int(self.law.draw(source, 1)[0]), self.law)

    def log_law(self, places):
        """Return the logarithms of the probabilities of integers, before they are clipped."""
        return _log_laplace(self.law, places - self.seen.value)


class Ladder:
    """The exponential mechanism over integers, by the rung of each: rung t is where t - 1 edges, and no less, may lead.

    Rung 0 is the count, and rung t + 1 the A(t) integers next to rung t on either side; what is on no rung up to the
    last one is on one more.
    """

    def __init__(self, seen, mechanism):
        epsilon = canonical_epsilon(mechanism.epsilon)
        self.seen, self.law = seen, ExponentialLaw(epsilon, 1, 0, False)
        n = min(math.ceil(2 * _FAR / epsilon) + 1, _MOST)
        most, low, high = seen.largest, seen.value, seen.value + 1
        scores, below, above = [0], [low], [high]
        for t, width in enumerate(seen.moves(n)):
            if low == 0 and high == most + 1:
                break
            low, high = max(low - width, 0), min(high + width, most + 1)
            scores.append(-(t + 1))
            below.append(low)
            above.append(high)
        self.scores = np.array([-n - 1, *scores[:0:-1], *scores, -n - 1], np.int64)
        self.starts = np.array([0, *below[::-1], *above, most + 1], np.int64)

    def draw(self, source):
        """Return what a fit learns."""
        return _learned(self.seen, self.law.draw_point(self.scores, self.starts, source))

    def log_law(self, places):
        """Return the logarithms of the probabilities of integers from 0 to the largest count."""
        shares, sizes = self.law.shares(self.scores, np.diff(self.starts)), np.diff(self.starts)
        which = np.searchsorted(self.starts, places, side="right") - 1
        return np.log(shares[which] / sizes[which])


class SmoothNoise:
    """Student's t noise, of 3 degrees of freedom, whose scale is a smooth sensitivity."""

    def __init__(self, seen, mechanism):
        self.seen, most = seen, seen.largest
        self.law = heavy_noise("student", canonical_epsilon(mechanism.epsilon), Fraction(0), Fraction(1, 2))
        weights = smooth_weights(self.law.ratio, min(math.comb(seen.n, 2), _MOST))
        tops = [a * w for a, w in zip(seen.moves(len(weights)), weights)]
        # the last weight goes on for ever, while A may rise; and there is never less noise than for a change of 1
        smooth = max(*tops, seen.bound(seen.n) * weights[-1], weights[0])
        self.scale = self.law.multiplier * Fraction(smooth, weights[0])
        exponent = max(most.bit_length() - _DIGITS, 0)
        self.grid, self.step = ClippedGrid(0, -(-most >> exponent), 0), 1 << exponent

    def draw(self, source):
        """Return what a fit learns."""
        stream = BitStream(source.reader(), 0, 0)
        steps = self.law.nearest(Fraction(self.seen.value, self.step), self.scale / self.step, self.grid, stream)
        return _learned(self.seen, steps * self.step)

    def log_law(self, places):
        """Return the logarithms of the densities at numbers, before these are rounded and clipped."""
        scale = float(self.scale)
        return self.law.log_density((places - self.seen.value) / scale) - math.log(scale)


class BoundedNoise:
    """A noisy bound of what one edge changes, and discrete Laplace noise for it."""

    def __init__(self, seen, mechanism):
        epsilon, delta = canonical_epsilon(mechanism.epsilon), checked_delta(mechanism.delta)
        share = checked_share(mechanism.bound_fraction, "bound_fraction")
        self.seen, self.first, self._rest = seen, _laplace(share * epsilon, 1), (1 - share) * epsilon
        _laplace(self._rest, seen.bound(seen.n))  # (ValueError: too small an epsilon for the largest bound)
        low, self.above = 0, 1  # the least number that noise is below by more with a probability of delta at most
        while not self._is_enough(self.above, delta):
            low, self.above = self.above, 2 * self.above
        while low < self.above:
            middle = (low + self.above) // 2
            low, self.above = (low, middle) if self._is_enough(middle, delta) else (middle + 1, self.above)

    def _is_enough(self, above, delta):
        return self.first.beyond(above + 1) / 2 <= delta

    def _second(self, level):
        """Return (the bound, the noise for it) of a noisy level."""
        bound = max(self.seen.bound(max(level, 0)), 1)
        return bound, _laplace(self._rest, bound)

    def draw(self, source):
        """Return what a fit learns."""
        bound, law = self._second(self.seen.level + int(self.first.draw(source, 1)[0]) + self.above)
        value = self.seen.value + int(law.draw(source, 1, COLUMNS)[0])
        return {**_learned(self.seen, value, law), "bound_": bound}

    def log_law(self, places, levels=None):
        """Return the logarithms of the probabilities of (noisy level, integer before it is clipped)."""
        levels = np.arange(-400, 400) if levels is None else levels
        chances = _log_laplace(self.first, levels - self.seen.level - self.above)
        second = [self._second(level)[1] for level in levels.tolist()]
        known = {law: _log_laplace(law, places - self.seen.value) for law in set(second)}
        return np.array([chance + known[law] for chance, law in zip(chances, second)])


def _laplace(epsilon, sensitivity):
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(sensitivity), 0)


def _log_laplace(law, z):
    rate = float(law.rate_of_decay)
    return math.log(math.tanh(rate / 2)) - rate * np.abs(z)


def _learned(seen, value, law=None):
    """Return attributes of a fit: the value within what there can be, and the law of its noise where it is public."""
    return {"value_": float(min(max(value, 0), seen.largest)), "_law": law}


METHODS = {"ladder": Ladder, "local": BoundedNoise, "smooth": SmoothNoise}
