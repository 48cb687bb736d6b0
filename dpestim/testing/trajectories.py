"""Trajectories in the central model: how far one row moves all tables, and walks that are drawn from these."""

import itertools
import math

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import require, same_state


class Trajectories(Releases):
    """An estimator of trajectories, and how it is used."""

    wrong = {"cells": (0, 1, 65, 2.5, "3", True, None), "max_length": (0, 1, 2.5, "3", True, None, 1001),
             "method": (None, 3, "privtree", ["ag"]),
             "units": (None, "miles"), "region": (None, 3, (1,), (1, 1), (2, 1), (0, math.inf), "ab")}

    def checks(self):
        """Return the checks of what takes trajectories."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """Rows."""
        return self.estimator._test_data(40)[0]

    def bad(self):
        """Return rows that are none."""
        rows = self.data
        yield rows[:, :3]
        for value, at in ((math.nan, (3, 0)), (math.inf, (3, 5))):
            bad = rows.copy()
            bad[at] = value
            yield bad

    def odd(self):
        """Return rows that differ in one value."""
        yield self.data
        for value in (math.nan, math.inf, -1e300):
            rows = self.data.copy()
            rows[3, 1] = value
            yield rows

    def shown(self, released):
        """Return shapes and types."""
        return [(part.shape, part.dtype) for part in released]


def check_trajectories_keep_epsilon(subject):
    """One row moves all tables by no more than the noise hides: for all rows of a few places of a small grid, exactly.

    Places are those of the grid's cells, missing ones, and ones beyond the border, so that walks have jumps.
    """
    est = subject.fresh()
    lows, highs = est._region()
    epsilon, rates = canonical_epsilon(est.epsilon), [noise.rate_of_decay for noise in est._noises()]
    side = int(est.cells)
    places = [lows + (highs - lows) * (np.array(at) + 0.5) / side for at in np.ndindex(side, side)]
    places += [np.full(2, math.nan), highs + 7 * (highs - lows)]
    rows = np.array([np.concatenate(own) for own in itertools.product(places, repeat=4 if side == 2 else 3)])
    seen = set()
    for row in rows:
        seen.add(tuple(tuple(table.ravel().tolist()) for table in est._counted(row[None], lows, highs)))
    tables = [[np.array(table) for table in own] for own in seen]
    costs = [sum(rate * int(table.sum()) for rate, table in zip(rates, own)) for own in tables]
    if est._replaces:
        largest = [own for own, _ in sorted(zip(tables, costs), key=lambda pair: -pair[1])[:40]]
        costs = [sum(rate * int(np.abs(a - b).sum()) for rate, a, b in zip(rates, one, two))
                 for one, two in itertools.combinations(largest, 2)]
    require(max(costs) <= epsilon, "one row moves the tables by more than the noise hides")
    require(max(costs) >= epsilon * 3 / 4, "much less than epsilon is used")


def check_trajectories_are_free_and_of_the_region(subject):
    """Trajectories lie in the region, go through neighbours, end with NaN, and repeat with a seed."""
    est = subject.fresh().fit(subject.data)
    lows, highs = est.bounds_
    drawn = est.sample(300, random_state=1)
    require(drawn.shape == (300, 2 * int(est.max_length)), "a trajectory is a row")
    require(same_state(drawn.tolist(), est.sample(300, random_state=1).tolist()), "a seed must reproduce a sample")
    places = drawn.reshape(300, -1, 2)
    there = ~np.isnan(places).any(axis=2)
    require(there[:, 0].all() and (np.diff(there.astype(int), axis=1) <= 0).all(), "NaN must stand after the end only")
    require(bool(((places >= lows) & (places <= highs))[there].all()), "places must lie in the region")
    cell = np.floor((places - lows) / (highs - lows) * int(est.cells))
    step = np.abs(np.diff(cell, axis=1))[there[:, 1:]]
    require(step.max(initial=0) <= 1, "steps must go to neighbouring cells")


def check_trajectories_have_the_noise_of_their_tables(subject):
    """Noise of each table has the variance of its law (n = 300 tables, five standard errors)."""
    est, rows = subject.fresh(), subject.data
    exact = est._counted(rows, *est._region())
    drawn = [subject.fresh(random_state=seed).release(rows) for seed in range(300)]
    for k, (noise, table) in enumerate(zip(est._noises(), exact)):
        off = np.concatenate([_off(est, own, k, table) for own in drawn])
        ratio, room = np.square(off).mean() / noise.variance_steps, 5 * math.sqrt(6 / len(off))
        require(abs(ratio - 1) < room, "a table has not the noise that is stated")
    first = np.array([[_off(est, own, k, table)[0] for k, table in enumerate(exact)] for own in drawn], float)
    related = np.abs(np.corrcoef(first.T) - np.eye(len(exact))).max()
    require(related < 5 / math.sqrt(len(drawn)), "the noise of two tables is correlated: words are repeated")


def _off(est, released, k, table):
    """Return the errors of a table; of places those of parts, each of which has one draw of noise."""
    if k < 3:
        return (released[k] - table).ravel().astype(float)
    return est._in_parts(released[3] - table, released[2])


def check_trajectories_follow_their_tables(subject):
    """Lengths, starts and steps of a sample are those of the tables; steps out of the region are left out."""
    est = subject.fresh().fit(subject.data)
    for table in (est.lengths_, est.starts_, est.steps_):
        table[:] = 0
    est.lengths_[1] = est.starts_[0, 0] = est.steps_[0, 0, 8] = 1_000
    est.steps_[0, 0, 0] = 10**9  # (that leaves the region)
    lows, highs = est.bounds_
    places = est.sample(50, random_state=2).reshape(50, -1, 2)
    require((np.isnan(places).any(axis=2).sum(axis=1) == places.shape[1] - 2).all(), "lengths must be those counted")
    cell = np.floor((places[:, :2] - lows) / (highs - lows) * int(est.cells))
    require((cell[:, 0] == 0).all(), "starts must be those that were counted")
    require((cell[:, 1] == 1).all(), "steps must be those that were counted, and stay in the region")
    if est.places_ is not None:
        est.places_[:], side = 0, est.places_.shape[-1]
        est.places_[0, 0, 5, 2] = est.places_[1, 1, 0, 7] = 1_000
        places = est.sample(50, random_state=2).reshape(50, -1, 2)[:, :2]
        fine = np.floor((places - lows) / (highs - lows) * int(est.cells) * side)
        require((fine == [[5, 2], [side, side + 7]]).all(), "places within a cell must be those that were counted")


CHECKS = (check_trajectories_keep_epsilon, check_trajectories_are_free_and_of_the_region,
          check_trajectories_follow_their_tables, check_trajectories_have_the_noise_of_their_tables)
