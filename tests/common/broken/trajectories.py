"""Broken trajectories."""

import numpy as np

from dpestim.geo import TrajectorySynthesizer
from dpestim.geo.trajectories import tables_of, walks_of


class HidesOneStep(TrajectorySynthesizer):
    """Noise of steps is for one step of a row, and not for all of them."""

    def _noises(self):
        made = super()._noises()
        made[2] = made[1]
        return made


class CountsAllCells(TrajectorySynthesizer):
    """Walks are cut after twice as many cells as the noise is for."""

    def _counted(self, rows, lows, highs):
        walks = walks_of(rows, lows, highs, int(self.cells), 2 * int(self.max_length))
        lengths, starts, steps = tables_of(walks, int(self.cells))
        return lengths[: int(self.max_length)], starts, steps


class Jumps(TrajectorySynthesizer):
    """Drawn trajectories go anywhere."""

    def sample(self, n_samples, random_state=None):
        drawn = super().sample(n_samples, random_state)
        return np.random.default_rng(0).permutation(drawn.reshape(-1, 2)).reshape(drawn.shape)


class StatesAnotherNoise(TrajectorySynthesizer):
    """Adds the noise of the first table to all of them."""

    def _add(self, noises, tables, source):
        return super()._add([noises[0]] * 3, tables, source)


class GoesOnByOne(TrajectorySynthesizer):
    """Drawn trajectories have a place more than was counted."""

    def sample(self, n_samples, random_state=None):
        kept, self.lengths_ = self.lengths_, np.roll(self.lengths_, 1)
        drawn = super().sample(n_samples, random_state)
        self.lengths_ = kept
        return drawn


_SMALL = TrajectorySynthesizer._test_params()[1]
BROKEN = [
    (HidesOneStep, _SMALL, "check_trajectories_keep_epsilon"),
    (CountsAllCells, TrajectorySynthesizer._test_params()[0], "check_trajectories_keep_epsilon"),
    (Jumps, _SMALL, "check_trajectories_are_free_and_of_the_region"),
    (GoesOnByOne, _SMALL, "check_trajectories_follow_their_tables"),
    (StatesAnotherNoise, _SMALL, "check_trajectories_have_the_noise_of_their_tables"),
]
