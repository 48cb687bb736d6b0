"""Kernels that do not follow their law, and words that are used twice."""

import numpy as np

from broken._make import PLAIN, STEPS, face_of
from dpestim._core import grr
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator, PMTransformer
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.olh import OLH
from dpestim.local.categories.unary import OUE
from dpestim.local.numbers.pm import PM
from dpestim.rng import Stage, Words


class WrongThreshold(GRR):
    """The kernel keeps the true value 5 % more often than the stated law says."""

    def privatize(self, codes, words, out):
        keep = min(self.weights.keep + self.weights.keep // 20, self.weights.total - self.n_categories)
        other = (self.weights.total - keep) // (self.n_categories - 1)
        keep = self.weights.total - (self.n_categories - 1) * other
        grr.privatize(codes, words.dense(Stage.RESPONSE, self.n_words), keep, other, out.reshape(-1))


class WindowShifted(PM):
    """The window stands one code too high."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] = np.minimum(out[:, 0] + (out[:, 0] > 2), self.n_counts - 1)


class NoDistribution(GRR):
    """The weights of a row do not sum to one."""

    def transition_matrix(self):
        return [[p * 2 for p in row] for row in super().transition_matrix()]


class BlockOrder(GRR):
    """State is carried from block to block."""

    calls = 0

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        type(self).calls += 1
        out[:, 0] = (out[:, 0] + type(self).calls) % self.n_categories


class FirstWord:
    """Words of which every row gets those of the first one."""

    def __init__(self, words):
        self._words = words

    def dense(self, stage, per_row):
        drawn = self._words.dense(stage, per_row).reshape(-1, per_row)
        return np.repeat(drawn[:1], len(drawn), axis=0).reshape(-1)

    def __getattr__(self, name):
        return getattr(self._words, name)


class RepeatedRows(GRR):
    """Every row of a block uses the words of its first row."""

    def privatize(self, codes, words, out):
        super().privatize(codes, FirstWord(words), out)


class RepeatedBlocks(OUE):
    """Every block uses the words of block 0."""

    def privatize(self, codes, words, out):
        column, _ = words._at
        super().privatize(codes, Words(words._reader, column, 0, words._first, words._n_rows), out)


class RepeatedColumns(OLH):
    """Every column uses the words of column 0."""

    def privatize(self, codes, words, out):
        _, block = words._at
        super().privatize(codes, Words(words._reader, 0, block, words._first, words._n_rows), out)


class RepeatedCalls(GRR):
    """The noise is a function of the row alone: every call repeats it."""

    def privatize(self, codes, words, out):
        fixed = np.random.default_rng(words._first).integers(0, 1 << 64, len(codes), dtype=np.uint64)
        grr.privatize(codes, fixed, self.weights.keep, self.weights.other, out.reshape(-1))


class FirstWordOfNumbers(FirstWord):
    """The same, for the words of the rounding too."""

    def halves(self, stage):
        drawn = self._words.halves(stage)
        return np.repeat(drawn[:1], len(drawn))


class OneWord(PM):
    """All rows of a block use the words of its first row."""

    def privatize(self, codes, words, out):
        super().privatize(codes, FirstWordOfNumbers(words), out)


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(GRRFrequencyEstimator, WrongThreshold), PLAIN, "check_kernel_follows_law"),
    (face_of(PMTransformer, WindowShifted), STEPS, "check_kernel_follows_law"),
    (face_of(GRRFrequencyEstimator, NoDistribution), PLAIN, "check_rows_sum_to_one"),
    (face_of(GRRFrequencyEstimator, BlockOrder), PLAIN, "check_blocks_in_any_order"),
    (face_of(GRRFrequencyEstimator, RepeatedRows), PLAIN, "check_words_are_never_repeated"),
    (face_of(OUEFrequencyEstimator, RepeatedBlocks), PLAIN, "check_words_are_never_repeated"),
    (face_of(OLHFrequencyEstimator, RepeatedColumns), PLAIN, "check_words_are_never_repeated"),
    (face_of(GRRFrequencyEstimator, RepeatedCalls), PLAIN, "check_words_are_never_repeated"),
    (face_of(PMTransformer, OneWord), STEPS, "check_words_are_never_repeated"),
]
