"""Fits that hear of rows by answers, and are broken: too little noise for what a row moves, or none."""

from dataclasses import replace

import numpy as np

from dpestim.cluster import DPKMeans, rounds
from dpestim.covariance import DPCovariance
from dpestim.decomposition import DPPCA, power
from dpestim.statistics.moment_noise import MomentRelease


class Halved(MomentRelease):
    """Noise for half of what a row moves."""

    @property
    def law(self):
        law = super().law
        return replace(law, sensitivity=law.sensitivity / 2)


class Half:
    """Matrices with half of the noise that they need."""

    def _plan(self, domain, epsilon, delta):
        plan = super()._plan(domain, epsilon, delta)
        plan.__class__ = Halved
        return plan


class HalfTheNoise(Half, DPCovariance):
    """A matrix with half of the noise that it needs."""


class HalfTheNoiseOfComponents(Half, DPPCA):
    """Components of a matrix with half of the noise that it needs."""


class MeansForFree(DPPCA):
    """The mean is kept as it was."""

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        draw = super()._planned(data, n_rows, n_columns, epsilon, delta)
        return lambda source: {**draw(source), "mean_": np.clip(data, -1, 1).mean(axis=0)}


class Silent:
    """What adds nothing."""

    def add(self, law, integers):
        return np.asarray(integers)


class ExactRounds(power.Rows):
    """Rounds without noise; means have some."""

    def product(self, basis):
        self._answers = Silent()
        return super().product(basis)


class QuietRounds(DPPCA):
    """Only means have noise."""

    _asked = ExactRounds


class LongRows(power.Rows):
    """Rows that are not cut to the norm that is paid for."""

    def _blocks(self):
        for block in super()._blocks():
            yield np.round(1.5 * block)


class LongerThanPaid(DPPCA):
    """Rows that are longer than the norm that is paid for."""

    _asked = LongRows


class ExactSteps(rounds.Rows):
    """Steps without noise."""

    def steps(self, plan, centers, reach):
        self._answers = Silent()
        return super().steps(plan, centers, reach)


class QuietSteps(DPKMeans):
    """Cells have noise, and steps have none."""

    _asked = ExactSteps


class Doubled(rounds.Rows):
    """Rows that count twice."""

    def _sums(self, *asked):
        sums, squares = super()._sums(*asked)
        return 2 * sums, 2 * squares


class CountsTwice(DPKMeans):
    """Rows count twice, and are paid for once."""

    _asked = Doubled


CLUSTERS, MATRIX, COMPONENTS = DPKMeans._test_params(), DPCovariance._test_params(), DPPCA._test_params()
BROKEN = [
    (HalfTheNoise, MATRIX[0], "check_answers_law"),
    (HalfTheNoise, MATRIX[1], "check_answers_law"),
    (HalfTheNoiseOfComponents, COMPONENTS[1], "check_answers_law"),
    (MeansForFree, COMPONENTS[0], "check_answers_law"),
    (QuietRounds, COMPONENTS[2], "check_answers_law"),
    (LongerThanPaid, COMPONENTS[2], "check_answers_law"),
    (QuietSteps, {**CLUSTERS[0], "epsilon": 40.0}, "check_answers_law"),
    (CountsTwice, CLUSTERS[0], "check_answers_law"),
    (CountsTwice, CLUSTERS[1], "check_answers_law"),
]
