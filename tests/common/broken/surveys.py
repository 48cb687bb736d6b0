"""What does not travel: clients that a survey cannot make again, or whose laws contradict themselves."""

import itertools

from broken._make import PLAIN, face_of
from dpestim.local import GRRFrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.local.extend import FrequencyEstimator
from dpestim.local.fields import Field

_numbers = itertools.count(1)


class KnowsMoreThanItsParameters(GRRFrequencyEstimator):
    """Of which no two are equal: epsilon depends on how many were made before."""

    def __init__(self, epsilon=1.0, *, categories="auto", postprocess=None, sparse_output=False, ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self._number = next(_numbers)

    def _share(self, n_columns):
        return super()._share(n_columns) / self._number


class ReportsAsItLikes(GRRFrequencyEstimator):
    """Sends other reports where epsilon is a fraction, as it is in a survey."""

    def privatize(self, X):
        reports = super().privatize(X)
        return reports[::-1].copy() if not isinstance(self.epsilon, float) else reports


class CountsAsItLikes(GRRFrequencyEstimator):
    """Counts twice where epsilon is a fraction, as it is in a survey."""

    def _aggregate(self, reports):
        super()._aggregate(reports)
        return self if isinstance(self.epsilon, float) else super()._aggregate(reports)


class OneBit(GRR):
    """A law of four codes whose reports have one bit, as it says."""

    @property
    def fields(self):
        return (Field("code", 1, 2),)


class DislikesOthers(GRRFrequencyEstimator):
    """Raises what is no ValueError where a parameter is another one."""

    def __init__(self, epsilon=1.0, *, note="", categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.note = note

    def _share(self, n_columns):
        if self.note != NOTE:
            raise RuntimeError("another note")
        return super()._share(n_columns)


NOTE = "a long note, of which every edit is another one" * 100
#: (class, its parameters, the check that must fail)
BROKEN = [
    (KnowsMoreThanItsParameters, PLAIN, "check_survey_survives_its_file"),
    (ReportsAsItLikes, PLAIN, "check_survey_client_sends_the_same"),
    (CountsAsItLikes, PLAIN, "check_survey_server_counts_the_same"),
    (face_of(FrequencyEstimator, OneBit), PLAIN, "check_messages_are_reports"),
    (DislikesOthers, {**PLAIN, "note": NOTE}, "check_survey_refuses_changes"),
    (DislikesOthers, {**PLAIN, "note": NOTE}, "check_survey_survives_noise"),
]
