"""Mechanisms on rows that are broken: published slips, scales that change too fast, summaries that lose rows."""

import dataclasses
import itertools
import math
import warnings
from fractions import Fraction

import numpy as np

from dpestim.central import ProposeTestRelease, SampleAndAggregate, SmoothSensitivity, StableRelease
from dpestim.central.stability.distance_test import passes
from dpestim.central.stability.heavy import Cauchy
from dpestim.central.stability.statistics import WHOLE, smooth_weights
from dpestim.summaries import RowSummary

SMOOTH = {"epsilon": 4.0, "bounds": (0.0, 1.0)}
TEST = {"epsilon": 2.0, "delta": 1e-3, "proposed_bound": 0.25, "bounds": (0.0, 1.0)}


class FromOne(SmoothSensitivity):
    """The maximum starts at k = 1, as in the published text: S is less than the local sensitivity."""

    def _look(self, rows, plan):
        (grid,), weights = plan["grids"], smooth_weights(plan["noise"].ratio, len(rows))
        seen = self._statistic(len(rows)).look(rows[:, 0], grid, len(rows))
        ends = seen._left.tolist(), seen._right.tolist()
        most = max((right - left) * weights[min(a + b - 1, len(weights) - 1)]
                   for (a, left), (b, right) in itertools.product(*map(enumerate, ends)) if a + b > 1)
        return [(seen.value, plan["noise"].multiplier * Fraction(most, WHOLE))]


class Local(SmoothSensitivity):
    """Noise scaled to the local sensitivity, which changes as fast as it likes."""

    def _look(self, rows, plan):
        (grid,) = plan["grids"]
        seen = self._statistic(len(rows)).look(rows[:, 0], grid, len(rows))
        return [(seen.value, plan["noise"].multiplier * max(seen.smooth([WHOLE, 1]), Fraction(1)))]


class TooSteep(SmoothSensitivity):
    """Beta three times too large."""

    def _plan(self, n_columns):
        plan = super()._plan(n_columns)

        class Steep(Cauchy):
            @property
            def beta(self):
                return 3 * super().beta

        return {**plan, "noise": Steep(*(getattr(plan["noise"], f.name) for f in dataclasses.fields(Cauchy)))}


class ShortSight(SmoothSensitivity):
    """Looks at A(0), ..., A(3) only."""

    def _look(self, rows, plan):
        (grid,), noise = plan["grids"], plan["noise"]
        seen = self._statistic(len(rows)).look(rows[:, 0], grid, len(rows))
        weights = smooth_weights(noise.ratio, len(rows))
        most = max(seen._most(k) * weights[min(k, len(weights) - 1)] for k in range(4))
        return [(seen.value, noise.multiplier * max(Fraction(most, WHOLE), Fraction(1, 1 << 20)))]


class NoSplit(SmoothSensitivity):
    """Every column gets the whole epsilon."""

    def _plan(self, n_columns):
        return {**super()._plan(n_columns), "noise": super()._plan(1)["noise"]}


class HalfTheNoise(SmoothSensitivity):
    """Half of the noise that it states."""

    def _answer(self, seen, plan, source):
        return super()._answer([(value, scale / 2) for value, scale in seen], plan, source)


class LosesRows(SmoothSensitivity):
    """Keeps every other row of large tables: parts lose other rows than the whole."""

    def _kept(self, rows, y, plan, strict):
        return super()._kept(rows[::2] if len(rows) > 30 else rows, y, plan, strict)


class KeepsRows(SmoothSensitivity):
    """Keeps the scale of the noise after a fit."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.noise_scale_ = self._look(self.summarize(X).totals, self._plan(X.shape[1]))
        return self


class PaysTwice(SmoothSensitivity):
    """Charges for summaries too."""

    def summarize(self, X, y=None):
        self._pay()
        return super().summarize(X, y)


class NoBounds(SmoothSensitivity):
    """Takes the range of nothing for granted where no bounds are declared."""

    def _plan(self, n_columns):
        bounds, self.bounds = self.bounds, self.bounds or (0.0, 1.0)
        try:
            return super()._plan(n_columns)
        finally:
            self.bounds = bounds


class Remembers(SmoothSensitivity):
    """Keeps the rows."""

    def _look(self, rows, plan):
        self.rows_ = rows
        return super()._look(rows, plan)


class Warns(SmoothSensitivity):
    """Warns of rows that are clipped, in strict mode too."""

    def _read_table(self, X, strict):
        rows = super()._read_table(X, strict)
        if np.nanmax(np.abs(rows)) > 1e100:
            warnings.warn("values are clipped", stacklevel=2)
        return rows


class PublishedThreshold(ProposeTestRelease):
    """The threshold ln(2 / delta) / (2 epsilon) of the published text, about half of what it takes."""

    def _test(self, n_columns):
        test, _, rest = super()._test(n_columns)
        return test, math.ceil(math.log(2 / self.delta) / (2 * float(test))), rest


class NoNoise(ProposeTestRelease):
    """The distance is compared with the threshold as it is."""

    def _outcomes(self, summary, places):
        plan = self._plan(1)
        ((_, distance),), (test, threshold, _) = self._look(summary.totals, plan), plan["test"]
        density, _ = super()._outcomes(summary, places)
        passed = distance >= threshold
        chance = passes(distance, threshold, float(test))
        return density - math.log(chance) - 1e3 * (not passed), {None: -1e3 * passed}


class SortedBlocks(SampleAndAggregate):
    """Blocks are slices of the sorted rows: one record moves others to other blocks."""

    def _blocks(self, rows, source):
        return (np.argsort(np.argsort(rows[:, 0], kind="stable")) * self.n_blocks) // len(rows)


class ForgetsP(SampleAndAggregate):
    """Noise for a change of half the width."""

    def _plan(self, n_columns):
        plan = super()._plan(n_columns)
        return {**plan, "epsilon": 2 * plan["epsilon"]}


class WholeLead(StableRelease):
    """Takes the lead for the distance: one record that changes sides moves it by two."""

    def _sampled(self, seen, plan, source):
        return [(code, 2 * distance + 1) for code, distance in super()._sampled(seen, plan, source)]


class Nameless(RowSummary):
    """Forgets what it was made of."""

    def merge(self, other):
        other = RowSummary(other.identity, other.n_rows, other.totals) if isinstance(other, RowSummary) else other
        return super().merge(other)


class CountsTwice(SmoothSensitivity):
    """Merges rows with themselves."""

    def summarize(self, X, y=None):
        one = super().summarize(X, y)
        return Nameless(one.identity, one.n_rows, one.totals)


def mixed(block):
    """Tell whether a block has several values, or a large one."""
    return float(block.max() > block.min() or block.max() == 1)


BROKEN = [
    (FromOne, SMOOTH, "check_rows_keep_epsilon"),
    (Local, SMOOTH, "check_rows_keep_epsilon"),
    (TooSteep, SMOOTH, "check_rows_keep_epsilon"),
    (PublishedThreshold, TEST, "check_rows_keep_epsilon"),
    (NoNoise, {**TEST, "epsilon": 8.0, "delta": 0.2}, "check_rows_keep_epsilon"),
    (SortedBlocks, {**SMOOTH, "n_blocks": 2, "function": mixed}, "check_rows_keep_epsilon"),
    (WholeLead, {"epsilon": 1.0, "delta": 1e-3, "candidates": [0, 1]}, "check_rows_keep_epsilon"),
    (ForgetsP, {**SMOOTH, "n_blocks": 3}, "check_rows_keep_epsilon"),
    (ShortSight, {**SMOOTH, "epsilon": 1.0}, "check_many_rows_keep_epsilon"),
    (NoSplit, SMOOTH, "check_columns_share_epsilon"),
    (HalfTheNoise, SMOOTH, "check_rows_follow_their_law"),
    (LosesRows, SMOOTH, "check_summaries_merge"),
    (CountsTwice, SMOOTH, "check_summaries_merge"),
    (KeepsRows, SMOOTH, "check_summaries_stay_secret"),
    (PaysTwice, SMOOTH, "check_release_charges"),
    (NoBounds, SMOOTH, "check_release_refuses"),
    (Remembers, SMOOTH, "check_release_seeds"),
    (Warns, SMOOTH, "check_release_is_total_in_strict_mode"),
]
