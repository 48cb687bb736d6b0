"""Broken estimates from views of rows: of ranges, of heavy hitters, and of many columns."""

from copy import copy

import numpy as np

from dpestim.local import HeavyHitterEstimator, MultiAttributeFrequencyEstimator, RangeEstimator
from dpestim.privacy.config import get_config


class CountsFromTheEnd(RangeEstimator):
    """Counts of a view are kept in the opposite order."""

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, names, [np.append(own[:-1][::-1], own[-1]) for own in counts], n)


class LosesUsersWhenPickled(HeavyHitterEstimator):
    """A copy knows of fewer users."""

    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "_n_users": max(state.get("_n_users", 0) - 1, 0)}


class FindsHalves(HeavyHitterEstimator):
    """Frequencies are half of what they should be."""

    @property
    def heavy_hitters_(self):
        found = super().heavy_hitters_
        return found._replace(frequencies=found.frequencies / 2)


class TakesAnything(HeavyHitterEstimator):
    """What is no value counts as one, also where errors are wanted."""

    def _is_strict(self):
        return True


class DropsWhatIsNoValue(HeavyHitterEstimator):
    """In strict mode rows that hold no value are not sent, so that everybody sees how many there are."""

    def fit(self, X, y=None):
        if get_config()["strict"]:
            X = X[[isinstance(value, type(X[0, 0])) for value in X[:, 0]]]
        return super().fit(X)


class SpendsMore(MultiAttributeFrequencyEstimator):
    """A report has more than epsilon."""

    def _columns_of(self, encoders, **more):
        spent = copy(self)
        spent.epsilon = 2 * self.epsilon
        return super(SpendsMore, spent)._columns_of(encoders, **more)


class DrawsTwice(MultiAttributeFrequencyEstimator):
    """Fakes of the second column do not depend on whether the first one is true."""

    def privatize(self, X):
        own, other = super().privatize(X), copy(self).set_params(random_state=1)
        return np.where(np.arange(own.shape[1]) == 0, MultiAttributeFrequencyEstimator.privatize(other, X), own)


class TellsHalves(MultiAttributeFrequencyEstimator):
    """Shares are half of what they should be."""

    def _told_of(self, row):
        return [(column, f / 2, errors) for column, f, errors in super()._told_of(row)]


class TakesAnyRow(MultiAttributeFrequencyEstimator):
    """What is no category counts as one, also where errors are wanted."""

    def _is_strict(self):
        return True


_RANGES, _VALUES = RangeEstimator._test_params()[0], HeavyHitterEstimator._test_params()[0]
_COLUMNS = MultiAttributeFrequencyEstimator._test_params()[0]
BROKEN = [
    (CountsFromTheEnd, _RANGES, "check_views_are_reported"),
    (LosesUsersWhenPickled, _VALUES, "check_finder_state"),
    (FindsHalves, _VALUES, "check_finder_finds"),
    (TakesAnything, _VALUES, "check_finder_refusals"),
    (DropsWhatIsNoValue, _VALUES, "check_finder_is_total_in_strict_mode"),
    (SpendsMore, _COLUMNS, "check_attributes_promise"),
    (DrawsTwice, MultiAttributeFrequencyEstimator._test_params()[1], "check_attributes_hidden"),
    (TellsHalves, _COLUMNS, "check_attributes_truth"),
    (TakesAnyRow, _COLUMNS, "check_attributes_refusals"),
]
