"""What the privacy calculus knows of the loss of a row: public numbers, for rows of norm at most 1.

Two data sets that differ in one row differ in gradient by
g = (p - e_y) z - (p' - e_y') z'. It is affine in the probabilities of
the two rows, so every convex function of g is largest at a corner, where each row is either right or certain of a
wrong class. A corner here is (how many there are, length of g at most, cost of the Hessian there at most); the corner
g = 0 costs nothing and is not listed. Notation and proofs: `logistic.md`.
"""

import math
from decimal import Decimal, getcontext
from functools import lru_cache

from dpestim.records import record


@record
class Softmax:
    """The loss ln sum_j e^(w_j z) - w_y z of K classes, in the K - 1 dimensions that it sees."""

    n_classes: int
    #: Squared factor of rows: the binary loss ln(1 + e^-m) is the softmax of two classes for rows shorter by sqrt 2.
    square: Decimal = Decimal(1)

    #: Problems that are minimised one by one, under one noise.
    parts = 1
    #: Whether the cost of the Hessian depends on no rate.
    flat = False

    @property
    def blocks(self):
        """Vectors of coefficients in a problem."""
        return self.n_classes - 1

    @property
    def steepest(self):
        """The largest norm of the gradient of a row."""
        return (2 * self.square).sqrt()

    @property
    def trace(self):
        """The largest trace of the Hessian of a row."""
        return self.square * self.blocks / self.n_classes

    def corners(self, e, strength):
        """Return the corners; the budget only decides which valid bound of the Hessian is taken."""
        k, c = self.blocks, self.square
        cost, slope = self._tangent(e, strength)
        far = max(cost + slope, Decimal(0))
        found = [(k, 8 * c, far), (k * (k - 1), 6 * c, far), (k, 2 * c, far), (k, 2 * c, cost)]
        return [(count, square.sqrt(), cost) for count, square, cost in found if count]

    def _tangent(self, e, strength):
        """Return (a, b): the Hessian costs at most a + b q where the row's own class has probability 1 - q.

        The cost is concave in q, so every tangent will do. From the top on (b = 0) towards q = 1, the cost of corners
        with q = 1, the long ones, falls, and that of the others, a, rises. These are at most half as long as the
        longest, so that they hardly count up to a = 0.45 e.
        """
        k, c = self.blocks, self.square

        def line(q):
            trace, turn = c * (2 * q - q * q * (k + 1) / k), c * (2 - 2 * q * (k + 1) / k)
            slope = turn / (strength + trace / k)
            return k * (1 + trace / (k * strength)).ln() - q * slope, slope

        most, low, high = Decimal("0.45") * e, Decimal(k) / (k + 1), Decimal(1)
        if line(high)[0] <= most:
            return line(high)
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if line(middle)[0] <= most else (low, middle)
        return line(low)

    def hessian_cost(self, rate, strength):
        """Return at least the largest ln det ratio - rate (steepest - length), length being that of the row's gradient.

        What the change of the Hessian costs beyond 2 steepest rate, which the change of the gradient costs: the two are
        never at their worst at once.
        """
        if self.n_classes == 2:
            return _binary_cost(rate * self.steepest, strength / (2 * self.square))
        k, c = self.blocks, self.square
        unit = rate * c.sqrt()

        # u = |p|^2 in [1 / K, 1]: the trace is 1 - u, and the length at most sqrt(1 + u)
        def value(u):
            trace = c * (1 - u)
            return k * (1 + trace / (k * strength)).ln() - unit * (Decimal(2).sqrt() - (1 + u).sqrt())

        def slope(u):  # (by itself: it needs no logarithm, which is what costs time here)
            return unit / (2 * (1 + u).sqrt()) - c / (strength + c * (1 - u) / k)

        low, high = 1 / Decimal(self.n_classes), Decimal(1)
        if slope(high) >= 0:
            return Decimal(0)
        if slope(low) <= 0:
            return value(low)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) >= 0 else (low, middle)
        return value(low) + slope(low) * (high - low)  # the tangent of a concave function, where its maximum lies


#: ln(1 + e^-m), m the signed margin of a row.
BINARY = Softmax(2, Decimal("0.5"))


def _binary_cost(rate, strength):
    """Return the largest value of -rate p + ln(1 + p (1 - p) / strength) over p in [0, 1].

    It is 0 from strength 1 / rate on, and ln(1 + 1 / (4 strength)) at rate 0.
    """
    if rate * strength >= 1:
        return Decimal(0)
    # the function is concave in p; this is where its derivative, -rate + (1 - 2 p) / (strength + p (1 - p)), is 0
    rest = 1 - rate * strength
    p = 2 * rest / (rate + 2 + ((rate + 2) ** 2 - 4 * rate * rest).sqrt())
    return (1 + p * (1 - p) / strength).ln() - rate * p


@record
class OneVersusRest:
    """K losses of a margin with slopes in [-1, 0], one for each class against the rest, under one joint noise."""

    n_classes: int
    #: the shape of each of them
    each: object = BINARY

    blocks, flat = 1, True

    @property
    def parts(self):
        """Number of parts of the loss: one for each class."""
        return self.n_classes

    @property
    def steepest(self):
        """Largest norm of the gradient: that of all classes together."""
        return Decimal(self.n_classes).sqrt()

    @property
    def trace(self):
        """Largest trace of the second derivative: that of all classes together."""
        return self.n_classes * self.each.trace

    def corners(self, e, strength):
        """Return the corners: in each problem g is 0, one of two vectors of norm 1, or their sum, of norm at most 2."""
        cost = self.hessian_cost(0, strength)
        counts = [1]  # of squared lengths
        for _ in range(self.n_classes):
            grown = [0] * (len(counts) + 4)
            for t, count in enumerate(counts):
                for more, ways in ((0, 1), (1, 2), (4, 1)):
                    grown[t + more] += count * ways
            counts = grown
        # lengths are rounded up to one of 24: a hundred classes would have 400 of them
        step = math.ceil(len(counts) / 24)
        return [
            (sum(counts[max(t - step + 1, 1) : t + 1]), Decimal(t).sqrt(), cost)
            for t in range(len(counts) - 1, 0, -step)
        ]

    def hessian_cost(self, _, strength):
        """Return the largest logarithm of the ratio of the determinants."""
        return self.n_classes * self.each.hessian_cost(0, strength)


@record
class Slopes:
    """Any convex loss of a margin whose slopes lie in [-1, 1], and whose curvature is at most this (`margins.md`)."""

    curvature: Decimal
    falling: bool  # whether slopes lie in [-1, 0]

    blocks = parts = 1
    flat = True
    steepest = Decimal(1)

    @property
    def trace(self):
        """Largest trace of the second derivative."""
        return self.curvature

    def corners(self, e, strength):
        """Return the corners: slopes of both rows at an end; the length of g is the sum of their sizes at most."""
        cost = self.hessian_cost(0, strength)
        return [(1, Decimal(2), cost), (2, Decimal(1), cost)] if self.falling else [(4, Decimal(2), cost)]

    def hessian_cost(self, _, strength):
        """Return the largest logarithm of the ratio of the determinants."""
        return _log(1 + self.curvature / strength, getcontext().prec)


@lru_cache(maxsize=64)  # it depends on no rate, and whoever looks for a rate asks for it forty times
def _log(x, _):
    """Return the logarithm of a number, to the digits of the context."""
    return x.ln()
