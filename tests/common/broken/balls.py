"""Laws of vectors that promise too much, are biased, or read rows wrongly."""

import numpy as np

from broken._make import BALL, face_of
from dpestim.local import PrivUnitTransformer
from dpestim.local.numbers.privunit import RADIUS, PrivUnit
from dpestim.privacy import exact
from dpestim.rng import Stage


class TwiceTheBall(PrivUnit):
    """Weights of twice the epsilon."""

    def __init__(self, epsilon, n_numbers, candidates):
        super().__init__(2 * exact.canonical_epsilon(epsilon), n_numbers, candidates)
        self.epsilon = self.epsilon / 2


class KnowsTheValue(PrivUnit):
    """The seed is not drawn before the vector is looked at."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] ^= (codes[:, 0] > 0).astype(np.uint64)


class TooLong(PrivUnit):
    """Reports stand for what is a tenth too long."""

    @property
    def scale(self):
        scale, relative = super().scale
        return 1.1 * scale, relative


class AlwaysFull(PrivUnit):
    """Short vectors are reported as if they were of full length."""

    def privatize(self, codes, words, out):
        length = np.sqrt(np.square(codes.astype(float)).sum(axis=1, keepdims=True))
        super().privatize(np.trunc(codes * (2.0**30 / np.maximum(length, 1.0))).astype(np.int32), words, out)


class TooSure(PrivUnit):
    """Standard errors are those of twice the users."""

    def means(self, counts):
        means, errors, biases = super().means(counts)
        return means, errors / np.sqrt(2), biases


class OnlyBest(PrivUnit):
    """Shorter vectors answer with one of the best candidates or its opposite: the mean is right, others are not seen.

    (Where half of all candidates are best, at an epsilon of 1, there are no others, and this is the law.)
    """

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        r = np.sqrt(np.square(codes.astype(float)).sum(axis=1)) / RADIUS
        few = np.flatnonzero(r < 0.9995)
        if not len(few):
            return
        which, sign = words.dense(Stage.NOISE, 2).reshape(-1, 2)[few].T / 2.0**64
        u = np.where(r[few, None] > 0, codes[few] / np.maximum(r[few, None] * RADIUS, 1), np.eye(self.n_numbers)[0])
        y = self.products(out[few, 0], u)
        best = np.argsort(-np.abs(y), axis=1, kind="stable")
        at, rows = best[np.arange(len(few)), (which * self.n_top).astype(int)], np.arange(len(few))
        gain = (self.inside - self.outside) / 2.0**64 * self.n_top
        opposite = sign >= (1 + gain * r[few]) / 2
        out[few, 1] = at + self.n_half * ((y[rows, at] < 0) ^ opposite)


class _Given:
    """Words of some rows."""

    def __init__(self, words, seeds, answers):
        self.scratch, self.seeds, self.answers = words.scratch, seeds, answers

    def dense(self, stage, per_row):
        return np.ascontiguousarray(self.seeds if stage == Stage.SEED else self.answers)


class _ShorterOnes(PrivUnit):
    """Base of laws that only vectors of full length follow: others have other words."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        few = np.square(codes.astype(float)).sum(axis=1) < 0.999 * RADIUS**2
        seeds, answers = words.dense(Stage.SEED, 1)[few], words.dense(Stage.RESPONSE, 2).reshape(-1, 2)[few].ravel()
        part = np.empty((len(seeds), 2), np.uint64)
        super().privatize(codes[few], _Given(words, *self.other(codes[few], seeds, answers)), part)
        out[few] = part


class KnowsShorterOnes(_ShorterOnes):
    """The seed of a shorter vector tells the sign of its first number."""

    def other(self, codes, seeds, answers):
        return seeds >> np.uint64(1) << np.uint64(1) | (codes[:, 0] > 0).astype(np.uint64), answers


class AnswersBySeed(_ShorterOnes):
    """What is drawn for a shorter vector follows from its seed."""

    def other(self, codes, seeds, answers):
        return seeds, np.stack([seeds << np.uint64(7), seeds * np.uint64(0x9E3779B97F4A7C15)], axis=1).ravel()


class NotShortened(PrivUnit):
    """Rows beyond the ball are clipped number by number."""

    def encode(self, block, centre, radius, out):
        out[:] = np.clip(np.nan_to_num((block - centre) / radius), -1, 1) * 2.0**30


class OneSide(PrivUnit):
    """Of each pair the same side is always near."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 1] %= self.n_half


BROKEN = [
    (face_of(PrivUnitTransformer, TwiceTheBall), BALL, "check_promises"),
    (face_of(PrivUnitTransformer, KnowsTheValue), BALL, "check_nothing_else_is_sent"),
    (face_of(PrivUnitTransformer, OneSide), BALL, "check_kernel_follows_law"),
    (face_of(PrivUnitTransformer, TooLong), BALL, "check_mean_of_vectors"),
    (face_of(PrivUnitTransformer, AlwaysFull), BALL, "check_mean_of_vectors"),
    (face_of(PrivUnitTransformer, TooSure), BALL, "check_mean_of_vectors"),
    (face_of(PrivUnitTransformer, OnlyBest), {**BALL, "epsilon": 3.0}, "check_short_vectors"),
    (face_of(PrivUnitTransformer, KnowsShorterOnes), BALL, "check_short_vectors"),
    (face_of(PrivUnitTransformer, AnswersBySeed), BALL, "check_short_vectors"),
    (face_of(PrivUnitTransformer, NotShortened), BALL, "check_points"),
]
