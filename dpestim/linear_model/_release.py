"""One binary problem, from exact noise to integers on a public grid (claims 4 and 5 of `_logistic.md`)."""

import math
from dataclasses import dataclass

import numpy as np

from dpestim import noise
from dpestim.linear_model._solver import Certificate, minimise

#: Columns of the random words that one problem may use.
COLUMNS = 4


@dataclass(frozen=True)
class Grid:
    """Where released coefficients lie, and how far two neighbours' rounded minimisers can be apart on it."""

    step: float  # a power of two
    sensitivity: int  # in steps, in L1

    @classmethod
    def of(cls, certificate, size):
        """Return the grid of a problem: as fine as the certificate, so that rounding costs as much as solving."""
        step = 2.0 ** math.floor(math.log2(certificate.distance / math.sqrt(size)))
        apart = 1.0001 * 2 * math.sqrt(size) * certificate.distance / step
        return cls(step, math.ceil(apart) + size)


def certificate_of(calibration, n_rows, size):
    """Return the public tolerance of a problem."""
    reach = calibration.reach(size)
    before, after = (reach, 0.0) if calibration.perturbation == "objective" else (0.0, reach)
    # the last noise is about 9 sqrt(size) / epsilon2 times the tolerance: let it be half a per cent of the first, where
    # rounding lets it (with the default C it does)
    first = calibration.scale * (1.0 if calibration.delta else math.sqrt(size + 1))
    first /= calibration.strength if calibration.perturbation == "objective" else 1.0
    spare = 0.005 * first * float(calibration.approximation_epsilon) / (9 * math.sqrt(size))
    return Certificate(n_rows, size, calibration.strength, before, after, spare)


def release(loss, calibration, reader, column):
    """Return (integers, step): the private coefficients are integers * step.

    Parameters
    ----------
    loss : LogisticLoss
    calibration : Calibration
    reader : dpestim.rng.WordReader
    column : int
        The first of `COLUMNS` columns of words that are this problem's own.
    """
    size = loss.size
    certificate = certificate_of(calibration, len(loss.X), size)
    draw = noise.gaussian if calibration.delta else noise.gamma_ball
    perturbation = calibration.scale * draw(reader, column, size)
    if calibration.perturbation == "objective":
        w = minimise(loss, perturbation, certificate)
    else:
        w = certificate.folded(minimise(loss, np.zeros(size), certificate, fold=False) + perturbation)
    grid = Grid.of(certificate, size)
    share = calibration.approximation_epsilon
    t, s = grid.sensitivity * share.denominator, share.numerator
    stream = noise.BitStream(reader, column + COLUMNS - 1, 0, 64)
    codes = [int(c) + noise.discrete_laplace(stream, t, s) for c in np.rint(w / grid.step)]
    return codes, grid.step
