"""Clients and servers that behave badly, whatever their law."""

import copy
import threading
import time

import numpy as np

from broken._make import MEAN, PLAIN, STEPS, face_of
from dpestim.local import (
    AdaptiveFrequencyEstimator,
    GRRFrequencyEstimator,
    MeanEstimator,
    OLHFrequencyEstimator,
    PMTransformer,
)
from dpestim.local.categories.olh import OLH
from dpestim.local.columns import Columns
from dpestim.local.numbers.pm import PM
from dpestim.privacy.config import get_config


def on_the_main_thread():
    """Tell whether this is the main thread, which then waits, so that other threads take blocks, too."""
    here = threading.current_thread() is threading.main_thread()
    if here:
        time.sleep(0.02)
    return here


class ThreadNoise(OLH):
    """Noise belongs to the thread that happens to run the block."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 2] = (out[:, 2] + on_the_main_thread()) % self.n_buckets


class ThreadNumbers(PM):
    """Noise belongs to the thread that happens to run the block."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] = (out[:, 0] + on_the_main_thread()) % self.n_counts


class Louder(Columns):
    """Columns that randomise with three times the epsilon of the laws that they show."""

    def _louder(self):
        columns = [copy.copy(c) for c in self.columns]
        for c in columns:
            c.law = type(c.law)(**{**c.law.arguments, "epsilon": 3 * c.law.epsilon})
        return Columns(columns)

    def named(self, names):
        named = super().named(names)
        return Louder(named.columns, named.inferred, named.keys)

    def randomize(self, *data):
        return self._louder().randomize(*data)

    def randomize_and_count(self, *data):
        return self._louder().randomize_and_count(*data)


class SendsMore(GRRFrequencyEstimator):
    """What is sent follows another law than the one shown."""

    def _declare(self, n_columns):
        columns = super()._declare(n_columns)
        return Louder(columns.columns, columns.inferred, columns.keys)


class ShowsAnother(GRRFrequencyEstimator):
    """The law that is shown has half the epsilon of the one that is used."""

    def randomizer(self, column=0):
        law = super().randomizer(column)
        return type(law).make(**{**law.arguments, "epsilon": law.epsilon / 2})


class OtherFormat(GRRFrequencyEstimator):
    """Reports in a signed dtype."""

    def privatize(self, X):
        return super().privatize(X).astype("i8")


class ListsBackwards(GRRFrequencyEstimator):
    """Reads lists from their end."""

    def privatize(self, X):
        return super().privatize(X[::-1] if isinstance(X, list) else X)


class CountsItsCalls(GRRFrequencyEstimator):
    """Remembers how often it was asked."""

    def transform(self, X):
        self.calls = getattr(self, "calls", 0) + 1
        return super().transform(X)


class FloatEpsilon(OLHFrequencyEstimator):
    """Charges the float's own binary value instead of the canonical epsilon."""

    @property
    def privacy_(self):
        return type(super().privacy_)(float(self.epsilon) * (1 - 1e-12), seeded=super().privacy_.seeded)


class ForgetsItsBounds(PMTransformer):
    """Bounds learned from the data, and a guarantee that does not say so."""

    def _infer(self, X, names):
        columns = super()._infer(X, names)
        columns.inferred = ""
        return columns


class FitCharges(PMTransformer):
    """Fit spends although it releases nothing."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self._charge(self.privacy_, len(X))
        return self


class ChargesTwice(GRRFrequencyEstimator):
    """Every release is charged once more."""

    def _charge(self, guarantee, n_rows, columns=()):
        super()._charge(guarantee, n_rows, columns)
        super()._charge(guarantee, n_rows, columns)


class PaysTwice(MeanEstimator):
    """The estimator charges what its transformer has already charged."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.transformer_.privatize(X)
        return self


class NeverTellsOfScores(MeanEstimator):
    def _note_score(self, n_rows):
        """Tell no ledger."""


class SharesState(GRRFrequencyEstimator):
    """A clone is the same object."""

    def __sklearn_clone__(self):
        return self


class TakesAnyFormat(GRRFrequencyEstimator):
    """Reads pickles of any format."""

    def __setstate__(self, state):
        vars(self).update(state)


class TakesTheNewEpsilon(GRRFrequencyEstimator):
    """A law that is not frozen."""

    def partial_fit(self, X, y=None):
        return self.fit(X)


class ForgetsItWasStrict(PMTransformer):
    """Is as strict as the place where it is called."""

    def _is_strict(self):
        return get_config()["strict"]


class ShowsTheValue(GRRFrequencyEstimator):
    """An error message that shows the private value."""

    def _container(self, X, strict):
        X = super()._container(X, strict)
        for row in np.asarray(X, dtype=object)[:, -1:]:
            if isinstance(row[0], str) and row[0].startswith("value-that"):
                raise ValueError(f"column {X.shape[1] - 1}: unknown category {row[0]}")
        return X


class ChangesBeforeFailing(GRRFrequencyEstimator):
    """State is touched before the input has been checked."""

    def fit(self, X, y=None):
        self._forget()
        return super().fit(X, y)


class TakesAnything(MeanEstimator):
    """Changes before it looks."""

    def fit(self, X, y=None):
        self._forget()
        return super().fit(X, y)


class AnythingGoes(OLH):
    """No report is refused."""

    def check_reports(self, reports):
        pass


class PartialForgets(GRRFrequencyEstimator):
    """Batches of a stream begin at row 0 again: they repeat their noise."""

    def partial_fit(self, X, y=None):
        if not self._n_users:
            return self.fit(X)
        part = type(self)(**self.get_params()).fit(X)
        self._counts = [a + b for a, b in zip(self._counts, part._counts)]
        self._n_users += part._n_users
        return self


class CountsNothing(MeanEstimator):
    """A merge that loses the other's counts."""

    def merge(self, other, *, users="disjoint"):
        return self if self._n_users else super().merge(other, users=users)


class LosesCounts(GRRFrequencyEstimator):
    """A merge that does nothing."""

    def merge(self, other, *, users="disjoint"):
        return self


class SavesNothing(AdaptiveFrequencyEstimator):
    """It always takes the law of the least error, whatever its objective is."""

    def _settings(self):
        return "variance", *super()._settings()[1:]


#: (class, its parameters, the check that must fail)
BROKEN = [
    (face_of(OLHFrequencyEstimator, ThreadNoise), PLAIN, "check_threads"),
    (face_of(PMTransformer, ThreadNumbers), STEPS, "check_threads"),
    (SendsMore, PLAIN, "check_what_is_sent"),
    (ShowsAnother, PLAIN, "check_what_is_sent"),
    (OtherFormat, PLAIN, "check_reports_format"),
    (ListsBackwards, PLAIN, "check_containers"),
    (CountsItsCalls, PLAIN, "check_output"),
    (SavesNothing, PLAIN, "check_law_is_its_arguments"),
    (FloatEpsilon, PLAIN, "check_privacy_statement"),
    (ForgetsItsBounds, STEPS, "check_privacy_statement"),
    (FitCharges, STEPS, "check_charges"),
    (ChargesTwice, PLAIN, "check_charges"),
    (PaysTwice, MEAN, "check_charges"),
    (NeverTellsOfScores, MEAN, "check_charges"),
    (SharesState, PLAIN, "check_clone_and_pickle"),
    (TakesAnyFormat, PLAIN, "check_clone_and_pickle"),
    (TakesTheNewEpsilon, PLAIN, "check_freeze"),
    (ForgetsItWasStrict, STEPS, "check_strict_mode_stays"),
    (ShowsTheValue, PLAIN, "check_bad_input"),
    (ChangesBeforeFailing, PLAIN, "check_bad_input"),
    (TakesAnything, MEAN, "check_bad_input"),
    (face_of(OLHFrequencyEstimator, AnythingGoes), PLAIN, "check_bad_reports"),
    (PartialForgets, PLAIN, "check_verbs"),
    (CountsNothing, MEAN, "check_merge"),
    (LosesCounts, PLAIN, "check_merge"),
]
