"""The mean of the positive part of a sum of many equal terms: an upper bound in few and small transforms.

Terms are doubled, and doubled again; whenever an array gets long, every second place of its grid is split between its
neighbours. Nothing of this makes the mean smaller, so that a billion terms cost thirty short transforms (``sums.md``).
"""

import math
from dataclasses import replace

import numpy as np

from dpestim.accounting.convolution import Tilted, convolve, tilt
from dpestim.accounting.grid import Losses
from dpestim.privacy.rounding import TINY

_UNIT = 2.0**-53
#: Places of the grid that one term has at first, and the longest array before it is made coarser.
_PLACES, _LONGEST = 1 << 11, 1 << 13
#: Values are moved up by this part of the largest term they are made of: more than all their errors.
MARGIN = 2.0**-46
#: Tilts that are tried, times the largest value (any is valid).
_TILTS = np.geomspace(1e-8, 600.0, 300)


def mean_positive(values, masses, n):
    """Return an upper bound of E[(X_1 + ... + X_n)_+] for independent terms of one law.

    Parameters
    ----------
    values : ndarray of shape (n_atoms,)
        At least those of the law.
    masses : ndarray of shape (n_atoms,)
        Probabilities, with relative errors of at most 2^-50; what they leave is the probability of 0.
    n : int
    """
    if values.max() <= 0:
        return 0.0
    rest = max(0.0, 1.0 - math.fsum(masses))
    values, masses = np.append(values, 0.0), np.append(masses, rest)
    reach = float(np.abs(values).max())
    theta = _tilt(values / reach, masses, n) / reach
    step = 2.0 ** math.ceil(math.log2(reach / _PLACES))
    part, log = tilt(_split(values, masses, step), step, theta)
    part = replace(part, error=part.error + 32 * _UNIT * (1 + np.exp(-log)))
    total = part
    for digit in bin(n)[3:]:
        total = convolve([total, total, part]) if digit == "1" else convolve([total], power=2)
        while total.mass.shape[1] > _LONGEST:
            total, part = _coarser(total, theta * step), _coarser(part, theta * step)
            step *= 2
    places = total.first + np.arange(total.mass.shape[1])
    above = step * places[places > 0]
    mean = float(np.sum(total.mass[0, places > 0] * above * np.exp(-theta * above)))
    scale = n * float(log[0])
    if scale > 700:
        return math.inf
    bound = (mean + float(total.error[0]) / (math.e * theta)) * math.exp(scale)
    return bound * (1 + 2.0**-38 + 8 * _UNIT * (abs(scale) + theta * step * abs(places).max())) + TINY


def _tilt(values, masses, n):
    """Return about the tilt at which errors matter least, for values up to 1; a step is tilted by little."""
    most = max(_TILTS[0], 200 / math.sqrt(n * (masses @ np.square(values))))
    tilts = _TILTS[: np.searchsorted(_TILTS, most, side="right")]
    exponents = values[:, None] * tilts
    top = exponents.max(axis=0)
    log = top + np.log(masses @ np.exp(exponents - top))
    return float(tilts[np.argmin(n * log - 2 * np.log(tilts))])


def _split(values, masses, step):
    """Return the law on a grid, every value split between its neighbours so that the mean is kept."""
    cell = np.floor(values / step)
    upper = values / step - cell
    first = int(cell.min())
    place = (cell - first).astype(np.int64)
    mass = np.bincount(np.concatenate([place, place + 1]), np.concatenate([masses * (1 - upper), masses * upper]))
    return Losses(first, mass[None, :])


def _coarser(part, shift):
    """Return masses on every second place: those between are split in halves; `shift` is the tilt of one step."""
    mass, first = part.mass[0], part.first
    if first % 2:
        mass, first = np.concatenate([[0.0], mass]), first - 1
    even, odd = mass[::2], mass[1::2]
    out = np.zeros(max(even.size, odd.size + 1))
    out[: even.size] = even
    out[: odd.size] += odd * (0.5 * math.exp(-shift))
    out[1 : odd.size + 1] += odd * (0.5 * math.exp(shift))
    error = part.error * math.cosh(shift) * (1 + 1e-9) + (16 + abs(shift)) * 2 * _UNIT * out.sum()
    return Tilted(first // 2, out[None, :], error)
