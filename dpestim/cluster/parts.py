"""k-means of rows in parts: each answers with exact sums, which add up."""

from dataclasses import replace

import numpy as np

from dpestim.cluster.rounds import Rows
from dpestim.passes import Blueprint, Request
from dpestim.records import record


@record
class Tally(Request):
    """Asks rows in parts for the exact sums of `Rows`."""

    blueprint: Blueprint
    low: np.ndarray
    high: np.ndarray
    free: np.ndarray
    #: (centers, scales, limits)
    asked: tuple

    def of_rows(self, rows, place):
        """Return exact sums and squares."""
        X = self.blueprint.build()._read_part(rows)[:, self.free]
        part = Rows(np.ascontiguousarray(X), self.low, self.high, None, None)
        return part._sums(part._blocks, len(X), *self.asked)

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return tuple(a + b for a, b in zip(one, other))


class PartRows(Rows):
    """Rows in parts, that answer as `Rows` do: they are asked by a function, and none of them is here.

    Parameters
    ----------
    ask : callable
        Returns the merged answer to a request.
    tally : Tally
        Of which `asked` is replaced.
    n_rows : int or None
        Public, or None where it is secret.
    """

    def __init__(self, ask, tally, n_rows, answers):
        half = (tally.high - tally.low) / 2
        self.unit, self.middle = half.max(), tally.low + half
        self.half = np.maximum(half / self.unit, 2.0**-20)
        self._ask, self._tally, self._n, self._answers = ask, tally, n_rows, answers
        self._replaces, self.known, self._blocks = n_rows is not None, n_rows, tally

    def _sums(self, blocks, n, *asked):
        # (copies: weights and noise are put on in place, and an engine may use its answers again)
        return tuple(np.array(part) for part in self._ask(replace(blocks, asked=asked)))

    def sample(self):
        """Return (the request, how many rows there are as far as is known): all rows.

        Which part a row is in may follow from its values. A row that is replaced may then move from one part to another
        and shift the places of all between, so that a sample by places would differ in many rows.
        """
        return self._tally, self.known
