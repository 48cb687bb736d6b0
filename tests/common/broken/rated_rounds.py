"""Matrix factorizations of the local model with one fault each."""

from dataclasses import replace

import numpy as np

from dpestim.recommend import LDPMatrixFactorization


class AnswersTooWell(LDPMatrixFactorization):
    """Randomises by twice the epsilon that it says."""

    def _answers(self, *args):
        twin = LDPMatrixFactorization(**{**self.get_params(), "epsilon": 2 * self.epsilon})
        return LDPMatrixFactorization._answers(twin, *args)


class HasAnotherLaw(LDPMatrixFactorization):
    """Has a law of twice the epsilon, for devices and the server alike."""

    def _client(self, round_):
        return super()._client(round_).set_params(epsilon=2 * self.epsilon)


class LooksAtOthers(LDPMatrixFactorization):
    """Answers with the mean of all ratings of the call taken away."""

    def _read(self, X):
        ratings, values = super()._read(X)
        return ratings, values - np.arange(len(values)) @ values / len(values) ** 2


class RepeatsWords(LDPMatrixFactorization):
    """Takes the words of round 0 in all rounds."""

    def _answers(self, ratings, values, users, round_, source):
        return super()._answers(ratings, values, users, replace(round_, number=0), source)


class ChargesLate(LDPMatrixFactorization):
    """Charges nothing for a fit."""

    def fit(self, X, y=None):
        self.ledger, ledger = None, self.ledger
        try:
            return super().fit(X)
        finally:
            self.ledger = ledger


class SkipsAStep(LDPMatrixFactorization):
    """Forgets what the first round said."""

    def next_round(self):
        if self._round is not None and self._round.number == 0:
            self._group, found = None, self._group
            if found is not None:
                self._round = replace(self._round, number=1)
        return super().next_round()


class RecommendsAnything(LDPMatrixFactorization):
    """Recommends what a user has rated."""

    def _seen(self, X):
        ratings, own, held = super()._seen(X)
        return ratings, own, held * 0


_FIRST, _SECOND = LDPMatrixFactorization._test_params()
BROKEN = [
    (AnswersTooWell, _FIRST, "check_reports_say_the_direction"),
    (AnswersTooWell, _SECOND, "check_reports_say_the_direction"),
    (HasAnotherLaw, _FIRST, "check_reports_say_the_direction"),
    (LooksAtOthers, _FIRST, "check_reports_are_the_users_own"),
    (RepeatsWords, _FIRST, "check_reports_are_the_users_own"),
    (ChargesLate, _FIRST, "check_release_charges"),
    (SkipsAStep, _FIRST, "check_a_fit_is_its_rounds"),
    (RecommendsAnything, _FIRST, "check_recommendations_are_the_users_own"),
]
