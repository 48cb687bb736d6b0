"""Kernels that do not follow their law, reports that hold more than it, and words that are used twice."""

import numpy as np

from broken._make import PLAIN, STEPS, face_of
from dpestim._core import grr, olh
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator, PMTransformer
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.olh import OLH
from dpestim.local.categories.unary import OUE
from dpestim.local.numbers.pm import PM
from dpestim.local.reports import FieldReports
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


class Pad(FieldReports, GRR):
    """The value in the clear, in two parts neither of which says anything alone; the law looks at the third field."""

    public_fields = ()

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.n_words += 1
        self.report_dtype = np.dtype(np.uint32)
        self.field_limits = (None, None, n_categories)

    def privatize(self, codes, words, out):
        answer = np.empty((len(codes), 1), self.code_dtype)
        grr.privatize(codes, words.dense(Stage.RESPONSE, 1), self.weights.keep, self.weights.other, answer[:, 0])
        pad = words.dense(Stage.SEED, 1).astype(np.uint32)
        out[:, 0], out[:, 1], out[:, 2] = pad, pad ^ codes, answer[:, 0]

    def public_part(self, reports):
        return reports[:, list(self.public_fields)] if self.public_fields else None

    def count(self, reports, counts):
        counts += np.bincount(reports[:, 2], minlength=self.n_categories)

    def support(self, reports):
        return super().support(reports[:, 2:])

    def law_indices(self, codes, reports):
        return super().law_indices(codes, reports[:, 2:])


class PublicPad(Pad):
    """The same, and the pad is called public."""

    public_fields = (0,)


class PublicPads(Pad):
    """The same, and both parts are called public."""

    public_fields = (0, 1)


class ChosenHash(OLH):
    """One hash in a hundred is drawn until the value falls into bucket 0: the bucket of a value tells who has it."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        hashed = np.empty(len(codes), out.dtype)
        olh.bucket(codes, out, self.n_buckets, hashed)
        some = out[:, 0] % 100 == 0
        out[some, 1] -= (hashed[some].astype(np.uint64) * (1 << 32) // self.n_buckets).astype(np.uint32)
        out[some, 2] = (out[some, 2] + self.n_buckets - hashed[some]) % self.n_buckets


class ToldByTheHash(OLH):
    """The words of the answer can be worked out from the hash, so that the hash tells which answers are true."""

    def privatize(self, codes, words, out):
        super().privatize(codes, SeedsForAnswers(words), out)


class SeedsForAnswers:
    """The words of the public part, mixed, for those of the answer."""

    def __init__(self, words):
        self._words = words

    def dense(self, stage, per_row):
        drawn = self._words.dense(Stage.SEED, per_row).copy()
        for _ in range(2 if stage == Stage.RESPONSE else 0):
            drawn ^= drawn >> np.uint64(31)
            drawn *= np.uint64(0x9E3779B97F4A7C15)
        return drawn ^ drawn >> np.uint64(29) if stage == Stage.RESPONSE else drawn


class RowOfTheAnswer(OLH):
    """Which row of the law a value has depends on the answer: the law of the answers alone is then no guarantee."""

    def law_indices(self, codes, reports):
        rows, columns = super().law_indices(codes, reports)
        others = self.n_buckets - 1
        moved = columns + 1 + (rows - columns) % self.n_buckets % others
        return np.where(rows == columns, rows, moved % self.n_buckets), columns


class RowsBackwards(GRR):
    """Input number k has another row of the law than row k, which is looked at where promises speak of it."""

    def transition_matrix(self):
        return super().transition_matrix()[::-1]

    def law_indices(self, codes, reports):
        rows, columns = super().law_indices(codes, reports)
        return self.n_categories - 1 - rows, columns


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(GRRFrequencyEstimator, WrongThreshold), PLAIN, "check_kernel_follows_law"),
    (face_of(PMTransformer, WindowShifted), STEPS, "check_kernel_follows_law"),
    (face_of(GRRFrequencyEstimator, Pad), PLAIN, "check_nothing_else_is_sent"),
    (face_of(GRRFrequencyEstimator, PublicPad), PLAIN, "check_nothing_else_is_sent"),
    (face_of(GRRFrequencyEstimator, PublicPads), PLAIN, "check_nothing_else_is_sent"),
    (face_of(OLHFrequencyEstimator, ChosenHash), PLAIN, "check_nothing_else_is_sent"),
    (face_of(OLHFrequencyEstimator, ToldByTheHash), PLAIN, "check_nothing_else_is_sent"),
    (face_of(OLHFrequencyEstimator, RowOfTheAnswer), PLAIN, "check_nothing_else_is_sent"),
    (face_of(GRRFrequencyEstimator, RowsBackwards), PLAIN, "check_nothing_else_is_sent"),
    (face_of(GRRFrequencyEstimator, NoDistribution), PLAIN, "check_rows_sum_to_one"),
    (face_of(GRRFrequencyEstimator, BlockOrder), PLAIN, "check_blocks_in_any_order"),
    (face_of(GRRFrequencyEstimator, RepeatedRows), PLAIN, "check_words_are_never_repeated"),
    (face_of(OUEFrequencyEstimator, RepeatedBlocks), PLAIN, "check_words_are_never_repeated"),
    (face_of(OLHFrequencyEstimator, RepeatedColumns), PLAIN, "check_words_are_never_repeated"),
    (face_of(GRRFrequencyEstimator, RepeatedCalls), PLAIN, "check_words_are_never_repeated"),
    (face_of(PMTransformer, OneWord), STEPS, "check_words_are_never_repeated"),
]
