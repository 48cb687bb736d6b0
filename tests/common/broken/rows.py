"""Rows of several numbers: draws that look at the values, numbers that are not scaled, a budget that is not shared."""

from fractions import Fraction

import numpy as np

from broken._make import JOINT, SAMPLED
from dpestim.local import DuchiTransformer, PMTransformer
from dpestim.local.numbers.duchi import JointDuchi
from dpestim.local.sampling import SampledColumns
from dpestim.privacy import exact
from dpestim.rng import Stage


class _Sampled(SampledColumns):
    """The columns of a broken face."""

    def with_columns(self, columns):
        return type(self)(columns, self.inferred, self.keys, n_sampled=self.n_sampled)


class ByValue(_Sampled):
    """A row whose first value is the larger half of its range reports the first columns."""

    def randomize(self, data, source, first, n_jobs):
        out = super().randomize(data, source, first, n_jobs).reshape(len(data[0]), self.n_sampled, -1)
        out[data[0] > self.columns[0].middles[0], :, 0] = np.arange(self.n_sampled)
        return out.reshape(len(out), -1)


class Unscaled(_Sampled):
    """A number that was drawn stands for itself alone."""

    def decode(self, reports):
        return self._middles + (super().decode(reports) - self._middles) * self.n_sampled / len(self)


class FewFirst(_Sampled):
    """The first columns are drawn by one row in twenty more than by chance."""

    def randomize(self, data, source, first, n_jobs):
        out = super().randomize(data, source, first, n_jobs).reshape(len(data[0]), self.n_sampled, -1)
        out[::20, :, 0] = np.arange(self.n_sampled)
        return out.reshape(len(out), -1)


class _Face(PMTransformer):
    """PM with broken columns."""

    _columns_kind = SampledColumns

    def _made(self, *args, **more):
        made = super()._made(*args, **more)
        return self._columns_kind(made.columns, made.inferred, made.keys, n_sampled=made.n_sampled)


class DrawnByValue(_Face):
    """Tells a value by what is drawn."""

    _columns_kind = ByValue


class NotScaled(_Face):
    """Draws numbers to the middle."""

    _columns_kind = Unscaled


class DrawnUnevenly(_Face):
    """Some columns are drawn more often."""

    _columns_kind = FewFirst


class NotShared(PMTransformer):
    """Each of the columns that are drawn has all of epsilon."""

    def _share(self, n_columns):
        return exact.canonical_epsilon(self.epsilon)


class Original(JointDuchi):
    """The first publication: for even d ties are on both sides, and the epsilon is ln(e^epsilon + 1)."""

    def transition_matrix(self):
        d, corners = self.n_numbers, self._corners()
        side = (corners[:, None] == corners).sum(axis=2) * 2 - d
        one = Fraction(self.weights.keep, exact.WORD) / int((side[0] >= 0).sum())
        two = Fraction(self.weights.light, self.weights.light + self.weights.heavy) / int((side[0] <= 0).sum())
        return [[one * (s >= 0) + two * (s <= 0) for s in row] for row in side.tolist()]


class OneNumber(JointDuchi):
    """What a sign stands for is that of one number alone."""

    @property
    def scale(self):
        return Fraction(exact.WORD, 2 * self.weights.keep - exact.WORD)


class OneTooMany(JointDuchi):
    """Counts one report more at every call."""

    def count(self, reports, counts):
        super().count(reports, counts)
        counts[-1] += 1


class Nearest(JointDuchi):
    """Rounds every number to the nearest sign."""

    def privatize(self, codes, words, out):
        super().privatize((codes >> 31 > 0).astype(np.int64) << 32, words, out)


class InOrder(JointDuchi):
    """One word decides all bits of a row within the bounds: their means are right, and patterns tell their order."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        inside = ((codes > 0) & (codes < 1 << 32)).any(axis=1)
        one = words.dense(Stage.NOISE, 1)[inside, None] / 2.0**64
        bits = one < 0.5 + (codes[inside] / 2.0**32 - 0.5) / float(self.scale)
        out[inside] = np.packbits(bits, axis=1, bitorder="little")


class Unclipped(JointDuchi):
    """What lies beyond the bounds is taken for the other end."""

    def encode(self, block, lows, highs, out):
        super().encode(block, lows, highs, out)
        out[block > highs] = 0


BROKEN = [
    (DrawnByValue, SAMPLED, "check_columns_are_drawn"),
    (DrawnByValue, SAMPLED, "check_what_is_sent"),
    (DrawnUnevenly, SAMPLED, "check_columns_are_drawn"),
    (NotScaled, SAMPLED, "check_decoded_numbers"),
    (NotShared, SAMPLED, "check_promises"),
    *((type(law.__name__ + "Rows", (DuchiTransformer,), {"_joint": law}), JOINT, check) for law, check in (
        (Original, "check_promises"),
        (OneNumber, "check_joint_mean_is_exact"),
        (OneNumber, "check_decoded_numbers"),
        (OneTooMany, "check_joint_counts"),
        (Nearest, "check_joint_rounding"),
        (InOrder, "check_joint_rounding"),
        (Unclipped, "check_joint_encoding"),
    )),
]
