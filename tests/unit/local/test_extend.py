"""A relaxed law of a third party, made by CONTRIBUTING's third recipe from public names alone."""

import math
from fractions import Fraction

import numpy as np

from dpestim.local.extend import (
    ALL,
    CategoricalRandomizer,
    CodeReports,
    FrequencyEstimator,
    Promise,
    Relaxed,
    Stage,
)
from dpestim.privacy.exact import exp_lower
from dpestim.testing import check_mechanism


class Truthful(Relaxed, CodeReports, CategoricalRandomizer):
    """Two sensitive categories hide behind each other, and everybody else tells."""

    relaxation, relaxed_kind = "truth", "open"

    def __init__(self, epsilon, n_categories, non_sensitive=()):
        super().__init__(epsilon, n_categories)
        self.relax(non_sensitive)
        if self.n_full != 2:
            raise ValueError("non_sensitive must leave two categories of each column")
        self.n_words, self.report_dtype = 1, self.code_dtype
        self.keep = math.floor(2**64 * exp_lower(self.epsilon) / (1 + exp_lower(self.epsilon)))
        self.p_star = Fraction(self.keep, 2**64)
        self.q_star = 1 - self.p_star
        self.pair = np.flatnonzero(~self.is_relaxed)

    def privatize(self, codes, words, out):
        lies = ~self.is_relaxed[codes] & (words.dense(Stage.RESPONSE, 1) >= np.uint64(self.keep))
        out[:, 0] = np.where(lies, self.pair.sum() - codes, codes)

    def support(self, reports):
        return (reports == np.arange(self.n_categories)).astype(np.uint8)

    def transition_matrix(self):
        rows = [[Fraction(int(x == y)) for y in range(self.n_categories)] for x in range(self.n_categories)]
        for x, y in (self.pair, self.pair[::-1]):
            rows[x][x], rows[x][y] = self.p_star, self.q_star
        return rows

    support_law = transition_matrix

    def law_indices(self, codes, reports):
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)

    @property
    def promises(self):
        if not self.n_relaxed:
            return super().promises
        others = math.inf if self.n_relaxed > 1 else Fraction(0)
        return (Promise("high", "high", ALL, self.epsilon), Promise("high", "open", ALL, math.inf),
                Promise("open", "high", ALL, math.inf), Promise("open", "open", ALL, others),
                Promise(ALL, ALL, ALL, math.inf))

    @property
    def notes(self):
        return ("Only two categories are protected, and only from each other.",) if self.n_relaxed else ()

    def estimate(self, counts, n):
        share = counts / n
        total = share[self.pair].sum()
        hidden = (share - float(self.q_star) * total) / float(self.p_star - self.q_star)
        return np.where(self.is_relaxed, share, hidden)

    def variance_line(self, counts, n):
        noise = float(self.p_star * self.q_star / (self.p_star - self.q_star) ** 2)
        return np.where(self.is_relaxed, 0.0, noise * counts[self.pair].sum() / n), 0.0

    def variance(self, n, f):
        return self.variance_line(np.broadcast_to(f, self.n_categories), 1)[0] / n


class TruthfulFrequencyEstimator(FrequencyEstimator):
    _randomizer = Truthful

    def __init__(self, epsilon=1.0, *, non_sensitive=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.non_sensitive = non_sensitive

    def _law_arguments(self, column, n_columns, encoder):
        return {"non_sensitive": self._codes_of("non_sensitive", column, n_columns, encoder)}

    _test_values = {"non_sensitive": [[["b", "c"]]]}


def test_the_recipe_for_a_relaxed_law_of_a_third_party():
    est = TruthfulFrequencyEstimator(1.0, categories=[["a", "b", "c", "d"]], non_sensitive=[["a", "d"]])
    assert len(check_mechanism(est)) == 35
