"""From degrees to metres and back, near one latitude."""

import math
from fractions import Fraction

import numpy as np

from dpestim.privacy.exact import canonical_amount

#: Of the ellipsoid WGS 84: the semi-major axis in metres, and the square of the eccentricity.
_AXIS, _SQUARE = 6378137.0, 0.00669437999014
#: How much distances of a projection may differ from those on the ellipsoid.
_MOST_DISTORTION = 0.02
#: Steps are shorter, in metres.
_LONGEST = Fraction(10**12)
#: What coordinates may be in.
UNITS = ("degrees", "metres")


def metres_per_degree(latitude):
    """Return (metres of a degree of latitude, of longitude) at a latitude in degrees, on WGS 84."""
    sine = math.sin(math.radians(latitude))
    w = 1 - _SQUARE * sine**2
    return (math.radians(_AXIS * (1 - _SQUARE) / w**1.5),
            math.radians(_AXIS / math.sqrt(w)) * math.cos(math.radians(latitude)))


def scale_of(units, lows, highs):
    """Return (metres of a unit of each coordinate, the largest relative error of a distance within the bounds).

    A local projection: both coordinates are multiplied by what a degree has at the latitude in the middle.

    Raises
    ------
    ValueError
        For what is no latitude and longitude, or bounds so wide that distances are off by more than 2 percent.
    """
    if not isinstance(units, str) or units not in UNITS:
        raise ValueError(f"units must be one of {list(UNITS)}")
    if units == "metres":
        return np.ones(2), 0.0
    if lows[0] < -85 or highs[0] > 85 or lows[1] < -360 or highs[1] > 360:
        raise ValueError("bounds must be (latitude, longitude) in degrees, from -85 to 85 and from -360 to 360: order "
                         "the columns so, or set units='metres'")
    middle = (lows[0] + highs[0]) / 2
    scale = np.array(metres_per_degree(middle))
    error = max(abs(there / here - 1) for end in (lows[0], highs[0], 0.0 if lows[0] < 0 < highs[0] else middle)
                for there, here in zip(metres_per_degree(end), scale))
    if error > _MOST_DISTORTION:
        raise ValueError("bounds must be closer, because distances of one projection would be off by more than 2 "
                         "percent: declare a smaller region, or project the places and set units='metres'")
    return scale, error


def step_of(step, epsilon, part=Fraction(1, 20)):
    """Return the step of a grid in metres as a Fraction; None: a round number of at most `part` / epsilon.

    That is 1, 2 or 5 times a power of ten.
    """
    if step is None:
        ideal = min(part / epsilon, _LONGEST)
        return max(one for one in _round_numbers(ideal) if one <= ideal)
    value = canonical_amount(step, "step")
    if not 0 < value < _LONGEST:
        raise ValueError("step must be a number of metres above 0, and finite")
    return value


def round_above(length):
    """Return the least round number of metres that is at least a length: 1, 2 or 5 times a power of ten."""
    return min(one for one in _round_numbers(length) if one >= length)


def _round_numbers(length):
    """Return round numbers near a length, Fractions."""
    power = Fraction(10) ** math.floor(math.log10(length))
    return [lead * power for lead in (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), 1, 2, 5, 10, 20, 50)]
