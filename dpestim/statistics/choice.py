"""The part of a plan that chooses: a point of a grid, by its rank."""

import numpy as np

from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.central.selection.weights import accepts, far_gap, propose, surely
from dpestim.exact_reals import BitStream
from dpestim.records import record
from dpestim.statistics.ranks import Cells

#: Ranks are multiples of 2^-30; none is so high as that.
RANK, _FAR = 30, 1 << 61
#: What a draw takes, nearly always: words are drawn together.
_WORDS = 8
_ONE = np.ones(1, np.uint64)


@record(eq=False)
class Choice:
    """A point of a grid, chosen as the one whose rank is nearest to a target."""

    law: ExponentialLaw
    cells: Cells
    target: int

    @property
    def law_of_loss(self):
        """The law that says how much a release may cost."""
        return self.law

    def codes(self):
        """Return the scores of all cells of points."""
        return self.cells.scores(self._aim, RANK)

    def code(self, point):
        """Return the score of a point."""
        return self.cells.score(point, self._aim, RANK)

    def probabilities(self):
        """Return the probabilities of all cells, as floats."""
        return self.law.shares(self.codes(), np.diff(self.cells.weight_before(self.cells.starts())))

    def draw(self, source):
        """Return the point: see ``quantiles.md``."""
        cells, rate, stream = self.cells, self.law.rate, BitStream(source.reader(), 0, 0, _WORDS)
        begin, end = cells.near(self._aim, RANK, far_gap(rate))
        starts, times = cells.spans(begin, end)
        near = self.law.upper_weights(cells.scores(self._aim, RANK, begin, end), 0)
        upper = np.concatenate([_ONE, near, _ONE])  # (there is always a score of 0: what is far weighs less than this)
        while True:
            place = propose(upper, stream, times)
            point = cells.point(*starts[place : place + 2], stream)
            weight, word = int(upper[place]), stream.word()
            if surely(weight, word) or accepts(weight, -rate * self.code(point), stream, word):
                return point

    def exact(self):
        """Return a best point."""
        best = np.diff(self.cells.starts()) * (self.codes() == 0) > 0
        return int(self.cells.starts()[best.argmax()])

    @property
    def _aim(self):
        return max(-_FAR, min(self.target, _FAR))
