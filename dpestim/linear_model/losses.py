"""Losses of a margin m that the solver knows, each in the unit in which its slopes lie in [-1, 1] (`margins.md`)."""

import math
from decimal import Decimal
from functools import lru_cache

from dpestim._core import logistic
from dpestim.linear_model.shapes import BINARY, Slopes
from dpestim.records import record


@record
class Margin:
    """What a proof and a certificate need to know of a loss l(m) with |l'| <= 1, and how the kernel computes it."""

    kind: int
    shape: float  # the kernel's parameter
    curvature: float  # l'' is at most this
    drop: float  # l(0) - l(m) is at most this
    shift: float  # what is subtracted from a margin on the way, or 0

    @property
    def loss_shape(self):
        """What `calibrate` needs to know: of the logistic loss, slope and curvature together."""
        if self.kind == logistic.LOGISTIC:
            return BINARY
        return _slopes(self.curvature, self.kind == logistic.HINGE)


@lru_cache(maxsize=64)
def _slopes(curvature, falling):
    return Slopes(Decimal(curvature), falling)


#: ln(1 + e^-m)
LOGISTIC = Margin(logistic.LOGISTIC, 0.0, 0.25, 0.7, 0.0)


def hinge(h):
    """Return max(0, 1 - m), rounded by a parabola over 1 - h <= m <= 1 + h."""
    h = float(h)
    curvature = math.nextafter(0.5 / h, math.inf)
    return Margin(logistic.HINGE, h, curvature, max(1.0, 1.01 * (1 + h) ** 2 / (4 * h)), 1.0 + h)


def poisson(top):
    """Return e^(m - top) - t m, with its tangent beyond top: Poisson's loss, divided by the largest rate e^top."""
    return Margin(logistic.POISSON, float(top), 1.0, max(1.0, 1.01 * top), float(top))
