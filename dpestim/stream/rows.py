"""What streams of rows share: their cells, their axes, and noise that fits into 64-bit integers."""

from fractions import Fraction

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.stream.base import StreamMechanism
from dpestim.stream.reading import MOST_CELLS, checked_count, steps_of

_LEAST_RATE = Fraction(1, 1 << 50)


class RowStream(StreamMechanism):
    """Base of streams of rows with pure epsilon: sub-classes have ``__init__`` and `_spec`."""

    _texts = {"rows": """\
        n_cells : int, default=2
            The number of numbers of a row, up to 65,536.
    """, "row values": """\
        bounds : (low, high), default=(0, 1)
            The public range of a number; values are clipped to it. The ends must be multiples of `resolution`.
        change : float, default=None
            The most by which one user changes one row, in the L1 norm, after values are rounded: a user who moves from
            one cell to another changes two. None: all cells, from one end of the bounds to the other. Declare less
            where you can, as the noise is in proportion to it.
        resolution : float, default=1
            Values are rounded down to multiples of it. Rows are protected as they are after that: a user who changes
            fractions of it in several cells may change more units than the sum of these fractions.
    """, "renewed": """\
        renewed_ : ndarray of bool
            At which steps of the latest call the release is a new one.
    """}

    def _budget(self):
        self._spec()
        return canonical_epsilon(self.epsilon), Fraction(0), None

    def _cells(self):
        return checked_count("n_cells", self.n_cells, MOST_CELLS, none=False)

    def _labels(self):
        return (("cell", list(range(self.values_.shape[1]))),)

    def _test_data(self, n_rows, seed=0):
        """Return rows of zeros and ones."""
        return np.random.default_rng(seed).integers(0, 2, (n_rows, self.n_cells)), None


class RepeatedRows(RowStream):
    """Base of streams that repeat a row until the stream has moved; a user may change several cells of a row."""

    def _events(self):
        return 1

    def _rows(self):
        """Return the `Steps` of rows that may change in several cells."""
        return steps_of(self.bounds, self.change, self.resolution, self._cells(), rows=True)


def check_rate(least):
    """Raise ValueError where noise of this rate, a function that returns it, exceeds 64-bit integers."""
    try:
        fits = least() >= _LEAST_RATE
    except ValueError:  # (of the law itself)
        fits = False
    if not fits:
        raise ValueError("epsilon is too small, because the noise would exceed 64-bit integers: take a larger one")
