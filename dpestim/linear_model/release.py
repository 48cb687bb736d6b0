"""One problem, from exact noise to integers on a public grid (claims 5 and 6 of `logistic.md`)."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim import exact_reals
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.linear_model.losses import LOGISTIC
from dpestim.linear_model.shapes import Softmax
from dpestim.linear_model.softmax import rounding
from dpestim.linear_model.solver import LARGEST_OFFSET, Certificate, minimise
from dpestim.records import record

#: Columns of the random words that one problem may use: two for the perturbation, and those of the law of integers.
COLUMNS = 4


@record
class CoefficientGrid:
    """Where released coefficients lie, and how far two neighbours' rounded minimisers can be apart on it."""

    step: float  # a power of two
    sensitivity: int  # in steps, in L1

    @classmethod
    def of(cls, certificate, size):
        """Return the grid of a problem: as fine as the certificate, so that rounding costs as much as solving."""
        step = 2.0 ** math.floor(math.log2(certificate.distance / math.sqrt(size)))
        apart = 1.0001 * 2 * math.sqrt(size) * certificate.distance / step
        return cls(step, math.ceil(apart) + size)


def last_law(calibration, grid):
    """Return the law of the integers that hide which of two points next to the minimiser was found."""
    return _integers(calibration.approximation_epsilon, grid.sensitivity)


@lru_cache(maxsize=256)  # (of public numbers: fits make the same laws again and again)
def _integers(epsilon, sensitivity):
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(sensitivity), 0)


def certificate_of(calibration, n_rows, size, margin=LOGISTIC, offset=LARGEST_OFFSET):
    """Return the public tolerance of a problem with `size` coefficients in all, and offsets of at most this modulus."""
    reach = calibration.reach(size)
    before, after = (reach, 0.0) if calibration.perturbation == "objective" else (0.0, reach)
    # the last noise is about 9 sqrt(size) / epsilon2 times the tolerance: let it be half a per cent of the first, where
    # rounding lets it (with the default C it does)
    first = calibration.scale * (1.0 if calibration.delta else math.sqrt(size + 1))
    first /= calibration.strength if calibration.perturbation == "objective" else 1.0
    spare = 0.005 * first * float(calibration.approximation_epsilon) / (9 * math.sqrt(size))
    shape = calibration.shape
    more = {"start": margin.drop + offset}
    if isinstance(shape, Softmax) and shape.n_classes > 2:
        more = {"steepest": 1.4143, "start": 1.0001 * math.log(shape.n_classes) + 2 * offset,
                "rounded": lambda norm: rounding(n_rows, size, shape.n_classes, norm)}
    return Certificate(n_rows, size, calibration.strength, before, after, spare, margin, **more)


def release(loss, calibration, source, column):
    """Return (integers, step): the private coefficients are integers * step.

    Parameters
    ----------
    loss : MarginLoss or SoftmaxLoss
    calibration : Calibration
    source : dpestim.rng.WordSource
    column : int
        The first of `COLUMNS` columns of words that are this problem's own.
    """
    size = loss.size
    certificate = certificate_of(calibration, loss.n_rows, size, getattr(loss, "margin", LOGISTIC),
                                 float(np.max(np.abs(loss.offset))))
    draw = exact_reals.gaussian if calibration.delta else exact_reals.gamma_ball
    perturbation = calibration.scale * draw(source.reader(), column, size)
    if calibration.perturbation == "objective":
        w = minimise(loss, perturbation, certificate)
    else:
        w = certificate.folded(minimise(loss, np.zeros(size), certificate, fold=False) + perturbation)
    grid = CoefficientGrid.of(certificate, size)
    # (far inside of what integers hold, and to cut them would move no two further apart)
    codes = np.clip(np.rint(w / grid.step), -(2.0**61), 2.0**61).astype(np.int64)
    return last_law(calibration, grid).add(codes, source, column + 2).tolist(), grid.step
