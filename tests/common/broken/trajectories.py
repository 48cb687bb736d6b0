"""Broken trajectories."""

import numpy as np

from dpestim.geo import TrajectorySynthesizer
from dpestim.geo.fine import fine_table
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


class HidesOnePlace(TrajectorySynthesizer):
    """Noise of places is for one place of a row, and not for all of them."""

    def _noises(self):
        made = super()._noises()
        made[3] = made[1]
        return made


class CountsAllPlaces(TrajectorySynthesizer):
    """More places of a row are counted than the noise is for."""

    def _counted(self, rows, lows, highs):
        *tables, _ = super()._counted(rows, lows, highs)
        return *tables, fine_table(rows, lows, highs, int(self.cells), 2 * int(self.max_length))


class ForgetsPlaces(TrajectorySynthesizer):
    """Places within cells are drawn evenly, though they were counted."""

    def sample(self, n_samples, random_state=None):
        kept, self.places_ = self.places_, None
        drawn = super().sample(n_samples, random_state)
        self.places_ = kept
        return drawn


class StatesAnotherNoiseOfPlaces(TrajectorySynthesizer):
    """Adds the noise of starts to counts of places."""

    def _add(self, noises, tables, source):
        return super()._add([*noises[:3], noises[1]], tables, source)


_SMALL, _FINE = TrajectorySynthesizer._test_params()[1:]
BROKEN = [
    (HidesOneStep, _SMALL, "check_trajectories_keep_epsilon"),
    (CountsAllCells, TrajectorySynthesizer._test_params()[0], "check_trajectories_keep_epsilon"),
    (Jumps, _SMALL, "check_trajectories_are_free_and_of_the_region"),
    (GoesOnByOne, _SMALL, "check_trajectories_follow_their_tables"),
    (StatesAnotherNoise, _SMALL, "check_trajectories_have_the_noise_of_their_tables"),
    (HidesOnePlace, _FINE, "check_trajectories_keep_epsilon"),
    (CountsAllPlaces, _FINE, "check_trajectories_keep_epsilon"),
    (ForgetsPlaces, _FINE, "check_trajectories_follow_their_tables"),
    (StatesAnotherNoiseOfPlaces, _FINE, "check_trajectories_have_the_noise_of_their_tables"),
]
