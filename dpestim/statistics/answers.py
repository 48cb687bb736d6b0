"""Rounds of noisy integers: each answer takes words of its own, and nothing else leaves those who hold the rows."""

import numpy as np

from dpestim.central.additive.law import LARGEST


class Answers:
    """What adds noise to integers, answer by answer; the laws are what a proof says they are.

    Parameters
    ----------
    source : dpestim.rng.WordSource
        From which nobody else draws.
    """

    def __init__(self, source):
        self._source, self._n_answers = source, 0

    def __reduce__(self):
        """Refuse: a copy would answer again, with the same noise."""
        raise TypeError("answers cannot be pickled or copied: their noise would be used twice")

    def add(self, law, integers):
        """Return integers with the noise of a law, an array of int64 of the same shape."""
        at, self._n_answers = self._n_answers, self._n_answers + 1
        whole = np.clip(np.asarray(integers, np.int64), -(LARGEST // 2), LARGEST // 2)
        return whole + law.draw(self._source.part(at), whole.size).reshape(whole.shape)
