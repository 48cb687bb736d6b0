"""Servers of users of different settings that mix up who is who, or what who pays."""

import numpy as np

from dpestim.local import GRRFrequencyEstimator, PersonalizedEstimator
from dpestim.local.estimates.groups import Groups

SETTING = {"estimator": GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]]),
           "settings": {"x": {}, "y": {"epsilon": 0.5}, "z": {"epsilon": 0.25}}}
PRECISE = {"estimator": GRRFrequencyEstimator(4.0, categories=[["a", "b", "c"]]), "settings": {"x": {}, "y": {}}}


class TouchesTheEstimator(PersonalizedEstimator):
    """Works on the estimator itself instead of a clone."""

    def _keep(self, groups, servers):
        super()._keep(groups, servers)
        self.estimator.fitted_ = True


class Lenient(Groups):
    """Whoever names no group is counted with the first one."""

    def split(self, X):
        X = X.astype(object)
        known = np.isin(X[:, self.column].astype(str), self.names)
        X[~known, self.column] = self.names[0]
        return super().split(X)


class TakesAnybody(PersonalizedEstimator):
    """Takes rows without a group."""

    def _made(self, base):
        groups, servers = super()._made(base)
        return Lenient(groups.names, groups.column), servers


class ChargesTheLeast(PersonalizedEstimator):
    """A call costs what its best protected users have."""

    def _pay(self, groups, columns, read, present):
        return super()._pay(groups, columns, read[-1:], present[-1:])


class OneStream(Groups):
    """The words of all groups are the same."""

    def words(self, source, k):
        return source


class SharesWords(PersonalizedEstimator):
    """Groups repeat each other's noise."""

    def _made(self, base):
        groups, servers = super()._made(base)
        return OneStream(groups.names, groups.column), servers


class TwoStreams(Groups):
    """Only the first group has words of its own."""

    def words(self, source, k):
        return source.part(min(k, 1))


class HalfOfThem(Groups):
    """Every second report of the last group is that of the group before it."""

    def pack(self, columns, reports, order):
        if len(reports) > 1:
            n = min(map(len, reports))
            reports[-1][:n:2] = reports[-2][:n:2]
        return super().pack(columns, reports, order)


class SharesLater(PersonalizedEstimator):
    """Groups after the first repeat each other's noise."""

    def _made(self, base):
        groups, servers = super()._made(base)
        return TwoStreams(groups.names, groups.column), servers


class SharesSome(PersonalizedEstimator):
    """Groups repeat some of each other's noise."""

    def _made(self, base):
        groups, servers = super()._made(base)
        return HalfOfThem(groups.names, groups.column), servers


class WeighsAlike(PersonalizedEstimator):
    """Every group counts as much as any other, however many users it has."""

    def _category_weights(self, columns, places, size):
        weights = super()._category_weights(columns, places, size)
        return [np.full(size, 1 / len(weights)) for _ in weights]


#: (class, its parameters, the check that must fail)
BROKEN = [
    (TouchesTheEstimator, SETTING, "check_estimator_is_given"),
    (TakesAnybody, SETTING, "check_groups_are_public"),
    (ChargesTheLeast, SETTING, "check_groups_pay_once"),
    (SharesWords, SETTING, "check_groups_share_no_words"),
    (SharesLater, SETTING, "check_groups_share_no_words"),
    (SharesSome, SETTING, "check_groups_share_no_words"),
    (WeighsAlike, PRECISE, "check_estimates_cover"),
]
