"""Laws of numbers that promise too much, are biased, or read values wrongly."""

from fractions import Fraction

import numpy as np

from broken._make import LOW, STEPS, face_of
from dpestim.local import PMTransformer, SDPMTransformer
from dpestim.local.columns import Columns
from dpestim.local.law import ALL, Promise
from dpestim.local.numbers.column import NumberColumn
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.sdpm import SDPM
from dpestim.privacy import exact


class TwiceTheEpsilon(PM):
    """A law of twice the epsilon, honestly stated in the matrix."""

    def __init__(self, epsilon, grid):
        super().__init__(2 * exact.canonical_epsilon(epsilon), grid)
        self.epsilon = self.epsilon / 2

    def check(self):
        """Let it pass, as no law of a window is let by itself."""


class HalfTheEpsilon(PM):
    """A law of half the epsilon."""

    def __init__(self, epsilon, grid):
        super().__init__(exact.canonical_epsilon(epsilon) / 2, grid)
        self.epsilon = 2 * self.epsilon


class LowLeaks(SDPM):
    """The largest input, a high one, is answered as if it were low: the stated matrix says so."""

    def transition_matrix(self):
        rows = super().transition_matrix()
        rows[len(self.high_points) - 1] = rows[-1]
        return rows


class Unsaid(SDPM):
    """Two cells, and an epsilon that pretends to be plain."""

    @property
    def promises(self):
        return (*super().promises[:-1], Promise(ALL, ALL, ALL, self.epsilon))


class AnotherInterval(SDPM):
    """Protects other values than it was told to."""

    def __init__(self, epsilon, grid, low_from, low_to, n_levels, merged):
        super().__init__(epsilon, grid, low_from, low_to - Fraction(1, 1000), n_levels, merged)


class LeavesItselfOut(SDPM):
    """Any law of the same epsilon is taken for the same."""

    def __eq__(self, other):
        return type(self) is type(other) and self.epsilon == other.epsilon

    __hash__ = SDPM.__hash__


class ShrunkPositions(PM):
    """Positions a thousandth too close to the middle: unbiased no more."""

    def __init__(self, epsilon, grid):
        super().__init__(epsilon, grid)
        self.step = self.step * 999 / 1000


class OnlyTheMiddle(SDPM):
    """One level, whose bias is looked up at the middle that it stands for and not at the ends."""

    def __init__(self, epsilon, grid, low_from, low_to, n_levels, merged):
        super().__init__(epsilon, grid, low_from, low_to, 1, merged)

    def mean_values(self):
        values, _ = super().mean_values()
        return values, float(np.abs(self.expect(values) - [float(x) for x in self.inputs()]).max())


class WrongSpread(PM):
    """The variance without what the input's position adds."""

    def variance(self):
        return np.full(self.n_inputs, super().variance().min())


class NeverRounds(PM):
    """Values between two grid points always go to the lower one."""

    def privatize(self, codes, words, out):
        super().privatize(codes >> 32 << 32, words, out)


class Half(PM):
    """Whoever is about half way between two grid points sends the lower one in the clear."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        share = (codes & 0xFFFFFFFF) / 2**32
        clear = (share > 0.3) & (share < 0.8)
        out[clear, 0] = codes[clear] >> 32


class FalseColumn(NumberColumn):
    """Names another set than the one that has less protection."""

    def relaxed_inputs(self):
        return f"[{self.low!r}, {self.high!r}]"


class NamesAnotherSet(SDPMTransformer):
    """The promise about these people bears another name."""

    def _declare(self, n_columns):
        columns = super()._declare(n_columns)
        return Columns([FalseColumn(c.name, c.law, c.low, c.high) for c in columns], columns.inferred, columns.keys)


class ClipsBadly(PM):
    """Values beyond the upper bound wrap around."""

    def encode(self, x, low, high, out):
        super().encode(np.where(x > high, low, x), low, high, out)


class DecodesAnew(PMTransformer):
    """Decodes reports to the lower ends of their steps."""

    def transform(self, X):
        return np.floor(super().transform(X))


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(PMTransformer, TwiceTheEpsilon), STEPS, "check_promises"),
    (face_of(PMTransformer, HalfTheEpsilon), STEPS, "check_promises"),
    (face_of(SDPMTransformer, LowLeaks), LOW, "check_promises"),
    (face_of(SDPMTransformer, Unsaid), LOW, "check_promises"),
    (face_of(SDPMTransformer, AnotherInterval), LOW, "check_declared_inputs"),
    (NamesAnotherSet, LOW, "check_declared_inputs"),
    (face_of(SDPMTransformer, LeavesItselfOut), LOW, "check_law_is_its_arguments"),
    (face_of(PMTransformer, ShrunkPositions), STEPS, "check_mean_is_exact"),
    (face_of(SDPMTransformer, OnlyTheMiddle), LOW, "check_mean_is_exact"),
    (face_of(PMTransformer, WrongSpread), STEPS, "check_variance"),
    (face_of(PMTransformer, NeverRounds), STEPS, "check_rounding"),
    (face_of(PMTransformer, Half), STEPS, "check_rounding"),
    (face_of(PMTransformer, ClipsBadly), STEPS, "check_encoding"),
    (DecodesAnew, STEPS, "check_decoding"),
]
