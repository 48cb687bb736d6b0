"""Histograms of a stream, at every step: a running total for each cell."""

import numpy as np

from dpestim.stream.counter import StreamCounter
from dpestim.stream.reading import MOST_CELLS, checked_count, steps_of


class ContinualHistogram(StreamCounter):
    """Release a histogram of a stream at every step: running totals of all cells, since the start or of a window.

    A step is a row of counts, one for each cell. An event is in one cell, so that each cell has the noise of a
    `StreamCounter`, and no more.

    **Privacy.** As of `StreamCounter`, for streams that differ in one event, which changes one cell of one step by
    `change`, or in at most `user_events` events. An event that moves from one cell to another is two: one fewer and one
    more. The cells are public. The curator, who holds the data, must be trusted.

    **Utility.** That of `StreamCounter` for each cell; cells are independent.

    **Complexity.** That of `StreamCounter` for each cell.

    {parameters}
    References
    ----------
    Those of `StreamCounter`. The proof: ``counter.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.stream import ContinualHistogram
    >>> visits = np.random.default_rng(0).poisson([5, 20, 1], (500, 3))
    >>> pages = ContinualHistogram(1.0, n_cells=3, delta=1e-6, bounds=(0, 100), change=1, horizon=500, random_state=0)
    >>> bool(np.abs(pages.partial_fit(visits)[-1] - visits.sum(0)).max() < 60)
    True
    """

    _more_parameters = "n_cells : int, default=2\n    The number of cells, up to 65,536.\n" + (
        StreamCounter._more_parameters.replace("\n    ", "\n").strip("\n"))
    _proof_name = "counter"
    _quantity = "total of a cell"

    def __init__(self, epsilon=1.0, *, n_cells=2, delta=None, method="factorization", bounds=(0, 1), change=None,
                 resolution=1, horizon=None, window=None, user_events=None, ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, method=method, bounds=bounds, change=change, resolution=resolution,
                         horizon=horizon, window=window, user_events=user_events, ledger=ledger,
                         random_state=random_state)
        self.n_cells = n_cells

    def _steps(self):
        return steps_of(self.bounds, self.change, self.resolution,
                        checked_count("n_cells", self.n_cells, MOST_CELLS, none=False))

    def _labels(self):
        return (("cell", list(range(self.values_.shape[1]))),)

    def _test_data(self, n_rows, seed=0):
        """Return rows of zeros and ones."""
        return np.random.default_rng(seed).integers(0, 2, (n_rows, self.n_cells)), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "n_cells": 3, "method": "tree", "horizon": 64},
            {"epsilon": 2.0, "n_cells": 2, "delta": 1e-3, "window": 4, "user_events": 2},
        ]
