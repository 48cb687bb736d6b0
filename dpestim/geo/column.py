"""Two columns that are a place: coordinates in degrees or in metres, and places of a grid."""

import math

import numpy as np

from dpestim.local.numbers.joint import JointColumn

_NO_MEAN = ("transformer must report numbers whose mean is known, and reports of places are moved into the region: "
            "take LDPartEstimator for counts of places, or PMTransformer for means of coordinates")


class PlaceColumn(JointColumn):
    """Both columns of X: places, which are rounded to a grid.

    Parameters
    ----------
    names : sequence of str
    law : Randomizer
    lows, highs : sequences of float
        The region, in the user's units; places beyond are moved to its border.
    metres : sequence of float
        Metres of a unit of each coordinate.
    metric : str
        How the name of the relaxation calls the distances.
    """

    def __init__(self, names, law, lows, highs, metres, metric):
        super().__init__(names, law, lows, highs)
        self.metres, self.metric = [float(m) for m in metres], metric

    def named(self, *names):
        """Return the same columns under other names."""
        return self if list(names) == self._names else type(self)(names, self.law, self.lows, self.highs, self.metres,
                                                                  self.metric)

    def identity(self):
        """Return the region, the metric and the law."""
        return self.lows, self.highs, self.metres, self.law

    @property
    def domain(self):
        """The region."""
        return {"kind": "places", "lows": list(map(float, self.lows)), "highs": list(map(float, self.highs)),
                "metres": self.metres}

    def relaxed_inputs(self):
        """Return what distances are, which is what the promise depends on."""
        return self.metric

    def coder(self):
        """Return a function from a block of rows to places of the grid."""
        return coder_of(self.lows, self.metres, self.law.step, (self.law.n_first, self.law.n_second))

    def number_of(self, places):
        """Return the numbers of the places of the grid that are nearest to some places."""
        codes = self.coder()(places).astype(np.int64)
        return codes[:, 0] * self.law.n_second + codes[:, 1]

    def places_of(self, numbers):
        """Return an (n, 2) array: where places of these numbers are, in the user's units."""
        at = np.stack(np.divmod(np.asarray(numbers, np.int64), self.law.n_second), axis=-1)
        return np.array(self.lows) + at * (float(self.law.step) / np.array(self.metres))

    def decode(self, reports):
        """Return where reported places are, in the user's units."""
        return self.places_of(reports[:, 0])

    def check_mean(self):
        """Refuse: the mean of reported places is not known."""
        raise ValueError(_NO_MEAN)


def coder_of(lows, metres, step, sides):
    """Return a function from places, in the user's units, to places (i, j) of a grid."""
    lows, per = np.array(lows), np.array(metres) / float(step)
    last = np.array(sides, np.float64) - 1

    def codes_of(block):
        with np.errstate(all="ignore"):  # (in strict mode NaN counts as the lower bound)
            steps = np.fmin(np.fmax((np.asarray(block, np.float64) - lows) * per, 0.0), last)
            return np.floor(steps + 0.5).astype(np.int32)

    return codes_of


def n_places(low, high, metres, step):
    """Return how many places of a grid lie from one bound to the other."""
    return math.floor((high - low) * metres / float(step) + 1e-9) + 1
