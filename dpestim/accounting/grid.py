"""Losses on a grid: how the outcomes of a pair of laws become masses at multiples of a step, never below the truth.

Always for several pairs at once, one a row. The proof is ``loss.md``, "Cells" and "Single points".
"""


import numpy as np

from dpestim.records import record

#: How much of Q's mass is left out when a cell is split: more than all errors of masses together.
SHORT = 2.0**-38
#: Masses are enlarged by this factor, which exceeds their relative errors.
EXCESS = 2.0**-40
_UNIT = 2.0**-53


@record
class Losses:
    """Masses of losses at ``(first + i) * step``, one pair a row, and at infinity (one number a row, or for all).

    `moved` is the mass of tails within them that was moved by more than a step; `excess` bounds how much the masses
    were enlarged, as a factor; no loss is split between places more than `widest` steps apart.
    """

    first: int
    mass: np.ndarray
    infinity: np.ndarray | float = 0.0
    moved: np.ndarray | float = 0.0
    excess: float = 2 * EXCESS
    widest: int = 1

    @property
    def last(self):
        """The number of the last place that has mass, of each row (the first where none has)."""
        there = self.mass > 0
        return self.first + np.where(there.any(axis=1), there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1), 0)


def margin(largest):
    """Return t, far above the errors of losses of at most this absolute value."""
    return 2.0**-45 * (1 + largest)


def split_points(loss, mass, step):
    """Return single points on the grid, each split between its neighbours so that the mean of e^-loss is kept.

    Both are arrays of shape (pairs, points).
    """
    loss = loss + margin(np.abs(loss).max())
    cell = np.floor(loss / step)
    upper = np.minimum(np.expm1(cell * step - loss) / np.expm1(-step) * (1 + 16 * _UNIT), 1.0)
    first = int(cell.min())
    n_rows, width = loss.shape[0], int(cell.max()) - first + 2
    place = (cell - first).astype(np.int64) + width * np.arange(n_rows)[:, None]
    excess = EXCESS + 2 * loss.shape[1] * _UNIT
    sums = np.bincount(np.concatenate([place, place + 1], axis=1).reshape(-1),
                       np.concatenate([mass * (1 - upper), mass * upper], axis=1).reshape(-1), n_rows * width)
    return Losses(first, sums.reshape(n_rows, width) * (1 + excess), excess=2 * excess)


def split_cells(places, p, q, step, largest):
    """Return the masses of cells, of which number i has losses from ``places[i]`` steps to ``places[i + 1]`` steps."""
    eta = SHORT + 4 * margin(largest)
    upper = p - q * ((1 - eta) * np.exp(places[:-1] * step))
    upper = np.clip(upper / -np.expm1(np.diff(places) * -step), 0.0, p)
    mass = np.zeros((p.shape[0], int(places[-1] - places[0]) + 1))
    mass[:, places[:-1] - places[0]] = p - upper
    mass[:, places[1:] - places[0]] += upper
    mass *= 1 + EXCESS
    return Losses(int(places[0]), mass, widest=int(np.diff(places).max()))


def cell_ends(first, last, bulk):
    """Return the ends of cells from `first` to `last`: every place up to `bulk` (a power of two) from 0, fewer beyond.

    Twice as far from 0 cells are twice as wide: there is little mass, and splitting it more coarsely costs little.
    """
    near, width = np.arange(bulk + 1), 1
    far = [near]
    while bulk * width < max(abs(first), abs(last)):
        far.append(np.arange(bulk * width + 2 * width, 2 * bulk * width + 1, 2 * width))
        width *= 2
    far = np.concatenate(far)
    places = np.concatenate([-far[:0:-1], far])
    return np.concatenate([[first], places[(places > first) & (places < last)], [last]])


def together(parts, infinity=0.0, below=0.0, moved=0.0):
    """Return losses that are the sums of several measures, of what is infinite, and of a tail below all of them."""
    first = min(part.first for part in parts)
    mass = np.zeros((len(parts[0].mass), max(part.first + part.mass.shape[1] for part in parts) - first))
    for part in parts:
        mass[:, part.first - first : part.first - first + part.mass.shape[1]] += part.mass
    mass[:, 0] += below
    return Losses(first, mass, infinity, moved, max(part.excess for part in parts),
                  max(part.widest for part in parts))
