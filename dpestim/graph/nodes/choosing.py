"""Which bound: a private choice among bounds whose cut graphs tell different amounts of a node.

A small bound leaves much out, and a large one needs much noise. How much a bound keeps is a private number, which one
node moves by more where the bound is larger. So scores are differences of two bounds, divided by what a node can move
them (Raskhodnikova, Smith 2016). Proof: ``choosing.md``.
"""

import math

import numpy as np

from dpestim.central.selection.exponential import ExponentialLaw

#: Scores are integers: one node moves them by the first number at most. Those beyond the last are equal.
_STEPS, _WORST = 1 << 10, 1 << 40


class Bounds:
    """The choice among bounds 1, 2, 4, ... or no choice, where one is declared; all of it is public."""

    def __init__(self, bounds, errors, epsilon):
        self.bounds, self.errors, self.law = bounds, errors, None
        if len(bounds) > 1:
            self.law = ExponentialLaw(epsilon, _STEPS, 0, False)
            self.reserve = 2 * math.log(2 * len(bounds)) / float(epsilon)

    def scores(self, seen, each=iter):
        """Return minus how much worse each bound is than the best, in steps, an array of int64; secret."""
        totals = [seen.total(b) for b in each(self.bounds)]
        rises, falls = [seen.rise(b) for b in self.bounds], [seen.fall(b) for b in self.bounds]
        lost = [math.ceil(error + self.reserve * rise) - total
                for total, error, rise in zip(totals, self.errors, rises)]
        places = range(len(self.bounds))
        worse = [max(_STEPS * (lost[i] - lost[j]) // max(rises[i] + falls[j], rises[j] + falls[i]) for j in places)
                 for i in places]
        return -np.minimum(np.array(worse, object), _WORST).astype(np.int64)

    def draw(self, seen, source, each=iter):
        """Return a bound; `each` looks at every bound when its graph is cut."""
        return self.bounds[0] if self.law is None else self.bounds[self.law.draw(self.scores(seen, each), source)]

    def probabilities(self, seen):
        """Return the probability of each bound, as floats; secret."""
        return np.ones(1) if self.law is None else self.law.probabilities(self.scores(seen))
