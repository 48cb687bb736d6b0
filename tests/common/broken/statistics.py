"""Statistics that are broken: slips in sensitivities and thresholds, exact facts in results, unstated noise."""

import numpy as np

from dpestim.privacy import Neighbours
from dpestim.statistics import ContingencyTable, Count, Histogram, Mean, Quantile, Sum, UnknownCategories, Variance
from dpestim.statistics.base import DPStatistic
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.summary import grids_of
from dpestim.summaries import Summary

REPLACED = {"epsilon": 1.0, "bounds": (-3.0, 5.0)}
MORE = {**REPLACED, "neighbours": "add_remove"}


class OneStepLess(Sum):
    """The sensitivity is one step of the grid too small, of a million."""

    def _numbers(self, summary):
        numbers, changes = super()._numbers(summary)
        return numbers, [change - 1 for change in changes]


class OtherRelation(Sum):
    """The sensitivity for one record more or less, where one is replaced."""

    def _numbers(self, summary):
        grids = summary.identity[-1]
        return summary.totals, [max(abs(grid.first), abs(grid.last)) for grid in grids]


class FloatVariance(Variance):
    """The sensitivity of the textbook for n times the variance, without the rows that a record is compared with."""

    def _numbers(self, summary):
        numbers, changes = super()._numbers(summary)
        return numbers, [change // max(1, summary.n_rows - 1) for change in changes]


class AllRows(Sum):
    """Users may have as many rows as they like."""

    def _kept(self, rows, users, n_rows):
        return rows


class HalfForTables(ContingencyTable):
    """A row that is replaced leaves a cell and enters another: noise for one of both."""

    def _plan(self, summary, epsilon):
        return super()._plan(summary, 2 * epsilon)


class OneRankLess(Quantile):
    """Every quantile gets the whole epsilon."""

    def _laws(self, q, epsilon):
        return super()._laws(q, epsilon * np.size(self.q))


class FreeBounds(Mean):
    """Private bounds, which the statistic does not pay for."""

    def _shares(self):
        share, _ = super()._shares()
        return share, self._budget()[0]


class TooLow(UnknownCategories):
    """The threshold is too low by one."""

    def threshold(self):
        return super().threshold() - 1


class ObservedCells(Histogram):
    """Cells without rows are left out."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)
        seen = summary.totals > 0
        (part,) = plan.parts

        def finish(outcomes):
            whole = np.zeros(len(seen), np.int64)
            whole[seen] = outcomes[0]
            return plan.finish([whole])

        return Plan((Noisy(part.noise, summary.totals[seen]),), finish)


class Wasteful(Sum):
    """A third of epsilon is not used."""

    def _plan(self, summary, epsilon):
        return super()._plan(summary, epsilon * 2 / 3)


class ExactCount(Mean):
    """Divides by the exact number of rows, which is secret."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)
        n = plan.parts[0].exact()[0]

        def finish(outcomes):
            return plan.finish([np.array([n, *outcomes[0][1:]])])

        return Plan(plan.parts, finish)


class BoundsOfTheRows(Mean):
    """The value is clipped to the range of the rows, and not to the bounds."""

    def _summary_of(self, rows, one, grids=None):
        if len(rows) and np.ptp(rows) > 0:
            grids = grids_of((rows.min() - 1e-9, rows.max() + 1e-9))
            return Summary((*self._identity(rows.shape[1], one)[:-1], tuple(grids)), len(rows),
                           self._sums(rows, grids))
        return super()._summary_of(rows, one, grids)

    def _refuse_others(self, summary, message):
        pass


class HalfTheNoise(Count):
    """Half of the noise that it states."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)

        class Half(Noisy):
            def draw(self, source):
                return self.exact() + (super().draw(source) - self.exact()) // 2

        return Plan((Half(plan.parts[0].noise, plan.parts[0].numbers),), plan.finish)


class WrongErrors(Mean):
    """States the standard error of a sum with half of the noise."""

    def _plan(self, summary, epsilon):
        plan = super()._plan(summary, epsilon)

        def finish(outcomes):
            value, error, *rest = plan.finish(outcomes)
            return value, error / 2, *rest

        return Plan(plan.parts, finish)


class ShortIntervals(Variance):
    """Intervals of a third of the width."""

    @staticmethod
    def _range(noisy, widths, grids, n):
        return Variance._range(noisy, widths / 3, grids, n)


class CountForgotten(Mean):
    """Intervals of a ratio that are as wide as if its count had no noise."""

    _involved = {True: 1, False: 1}


class RoundedLast(Sum):
    """Rounds what is added, and not each row: parts add up to something else than the whole."""

    def _sums(self, rows, grids):
        return [int(np.rint(rows[:, j].sum() * grid.scale / 4096)) * 4096 for j, grid in enumerate(grids)]


class Talks(Summary):
    """Shows how many rows there are."""

    def __repr__(self):
        return f"<Summary of {self.n_rows} rows>"


class KeepsRows(Count):
    """Its summary says what is in it."""

    def _summary_of(self, rows, one, grids=None):
        made = super()._summary_of(rows, one, grids)
        return Talks(made.identity, made.n_rows, made.totals)


class PaysTwice(Sum):
    """Charges for summaries too."""

    def summarize(self, X, users=None):
        super().summarize(X, users)
        self._pay()
        return self


class NoBounds(Sum):
    """Takes the range of nothing for granted where no bounds are declared."""

    def _check(self):
        if self.bounds == (2, 1):
            self.bounds = (1, 2)
        super()._check()


class Repeats(Sum):
    """Forgets that it has a seed."""

    def fit(self, X, y=None, users=None):
        return super().set_params(random_state=None).fit(X, y, users)

    def release(self):
        seed, self.random_state = self.random_state, None
        try:
            return super().release()
        finally:
            self.random_state = seed


class Refuses(Sum):
    """Refuses what is no number, in strict mode too."""

    def _read(self, X, users):
        rows, one = DPStatistic._read(self, X, users)
        if np.isnan(rows).any():
            raise ValueError("X must have no NaN")
        return rows, one


class NoRelation(Sum):
    """Always speaks of one record more or less."""

    def _guarantee(self):
        made = super()._guarantee()
        return type(made)(made.epsilon, made.delta, made.model, Neighbours.ADD_REMOVE, made.seeded, made.notes)


class RepeatsInFit(Mean):
    """`fit` has the same noise each time; `release` has not."""

    def fit(self, X, y=None, users=None):
        seed, self.random_state = self.random_state, 0
        super().fit(X, y, users)
        self.random_state = seed
        return self


BROKEN = [
    (OneStepLess, REPLACED, "check_statistic_keeps_epsilon"),
    (OneStepLess, MORE, "check_statistic_keeps_epsilon"),
    (OtherRelation, REPLACED, "check_statistic_keeps_epsilon"),
    (FloatVariance, REPLACED, "check_statistic_keeps_epsilon"),
    (AllRows, MORE, "check_statistic_keeps_epsilon"),
    (HalfForTables, {"epsilon": 1.0, "categories": [["a", "b"]]}, "check_statistic_keeps_epsilon"),
    (OneRankLess, {**REPLACED, "q": [0.25, 0.5]}, "check_statistic_keeps_epsilon"),
    (FreeBounds, MORE, "check_statistic_keeps_epsilon"),
    (TooLow, {"epsilon": 1.0, "delta": 1e-3}, "check_statistic_keeps_epsilon"),
    (TooLow, {"epsilon": 1.0, "delta": 1e-3, "neighbours": "add_remove"}, "check_statistic_keeps_epsilon"),
    (ObservedCells, {"epsilon": 1.0, "bins": 4, "bounds": (-3.0, 3.0)}, "check_statistic_keeps_epsilon"),
    (Wasteful, REPLACED, "check_statistic_keeps_epsilon"),
    (ExactCount, MORE, "check_statistic_shows_what_was_drawn"),
    (BoundsOfTheRows, REPLACED, "check_statistic_shows_what_was_drawn"),
    (HalfTheNoise, {"epsilon": 1.0}, "check_statistic_follows_its_law"),
    (WrongErrors, REPLACED, "check_standard_errors_are_those_seen"),
    (ShortIntervals, REPLACED, "check_intervals_hold"),
    (CountForgotten, MORE, "check_intervals_count_numbers"),
    (RoundedLast, {**REPLACED, "epsilon": 80.0}, "check_statistics_merge"),
    (KeepsRows, {"epsilon": 1.0}, "check_statistics_stay_secret"),
    (PaysTwice, REPLACED, "check_release_charges"),
    (NoRelation, REPLACED, "check_release_charges"),
    (NoBounds, REPLACED, "check_release_refuses"),
    (Repeats, REPLACED, "check_release_seeds"),
    (RepeatsInFit, REPLACED, "check_release_seeds"),
    (Refuses, REPLACED, "check_release_is_total_in_strict_mode"),
]
