"""Each step of a stream as noisy Haar coefficients: for rows of counts whose neighbouring cells are alike."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.records import record
from dpestim.stream.reading import Steps, steps_of
from dpestim.stream.rows import RowStream, check_rate
from dpestim.stream.widths import ChernoffWidths


@record
class HaarOf:
    """How a row is turned into integers, and how they get noise."""

    steps: Steps
    epsilon: Fraction
    events: int
    weights: str
    shrink: str | None
    threshold: float

    def read(self, X, strict):
        """Return integers of the steps, and whether it was one step."""
        return self.steps.read(X, strict)

    def begin(self):
        """Return the state: there is none."""

    @property
    def n_levels(self):
        """The number m of levels of 2^m cells."""
        return self.steps.width.bit_length() - 1

    @cached_property
    def laws(self):
        """Laws of the noise: of the total, and of nodes of 2, 4, ... cells."""
        m = self.n_levels
        sizes = [m, *range(1, m + 1)]
        parts = [1 if self.weights == "equal" else Fraction(math.floor(2.0 ** (40 - size / 2))) for size in sizes]
        each = self.epsilon / (self.events * max(1, self.steps.change) * sum(parts))
        return [law_of_rate(each * part) for part in parts]

    @property
    def sizes(self):
        """The sizes of nodes of the levels of `laws`."""
        return [self.steps.width, *(1 << level for level in range(1, self.n_levels + 1))]

    def coefficients(self, steps):
        """Return the exact integers of each level."""
        found, sums = [], steps
        for _ in range(self.n_levels):
            found.append(sums[:, ::2] - sums[:, 1::2])
            sums = sums[:, ::2] + sums[:, 1::2]
        return [sums, *found]

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        found, sums = [], None
        for level, (law, exact) in enumerate(zip(self.laws, self.coefficients(steps))):
            noisy = exact + noise.take(law, level, exact.size).reshape(exact.shape)
            found.append(self._shrunk(noisy.astype(float), law) if level else noisy.astype(float))
        sums = found[0]
        for differences in reversed(found[1:]):
            halves = np.empty((len(sums), 2 * sums.shape[1]))
            halves[:, ::2], halves[:, 1::2] = (sums + differences) / 2, (sums - differences) / 2
            sums = halves
        unit = float(self.steps.unit)
        known = {"values": sums * unit}
        if self.shrink is None:
            error = math.sqrt(sum(law.variance_steps / size**2 for law, size in zip(self.laws, self.sizes)))
            rates = [float(law.rate_of_decay) * size for law, size in zip(self.laws, self.sizes)]
            known |= {"errors": np.array(error * unit), "widths": ChernoffWidths(rates, unit)}
        return known

    def _shrunk(self, noisy, law):
        if self.shrink is None:
            return noisy
        limit = self.threshold * math.sqrt(law.variance_steps)
        if self.shrink == "hard":
            return np.where(np.abs(noisy) > limit, noisy, 0.0)
        return np.sign(noisy) * np.maximum(np.abs(noisy) - limit, 0.0)

    def exact(self, steps):
        """Return what releases would be without noise."""
        return steps * float(self.steps.unit)

    def loss(self, one, two, noise):
        """Return how much epsilon two streams cost at most."""
        return sum(law.rate_of_decay * int(np.abs(a - b).sum())
                   for law, a, b in zip(self.laws, self.coefficients(one), self.coefficients(two)))


class HaarRelease(RowStream):
    """Release every step of a stream, a row of counts, by noisy Haar coefficients.

    Noise on sums of neighbouring cells and on differences of halves adds up less in ranges of cells than noise on each
    cell does, and coefficients that are mostly noise may be set to 0.

    **Privacy.** Pure epsilon in the central model, for all steps together, for streams that differ in one event, which
    changes one cell of one step by `change`, or in at most `user_events` events. Each event is in one step, so that
    steps do not share the budget. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased without `shrink`. A range of cells has noise from two nodes of each level only. A single cell
    has more noise than Laplace noise on each cell has: do not take it for single cells. "hard" and "soft" err less
    where neighbouring cells are alike, and are biased.

    **Complexity.** O(cells) time a step, and no state.

    {parameters}
    References
    ----------
    Xiao, Wang, Gehrke (2011), "Differential privacy via wavelet transforms", TKDE. Ghane, Jolfaei, Kulik et al.
    (2020), "Preserving privacy in the internet of connected vehicles", IEEE TITS 22(8), for rows of a stream; what
    surveys say of it is not enough for epsilon, and the proof says why: ``haar.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.stream import HaarRelease
    >>> traffic = np.repeat([[40, 10]], 8, axis=1).reshape(1, 16)
    >>> haar = HaarRelease(1.0, n_cells=16, bounds=(0, 100), change=1, shrink="hard", random_state=0)
    >>> haar.partial_fit(traffic).shape
    (1, 16)
    """

    _more_parameters = """
    n_cells : int, default=2
        The number of cells, a power of two from 2 to 65,536.
    {values}
    weights : {"haar", "equal"}, default="haar"
        How levels share epsilon: by scales of orthonormal coefficients, or in equal parts, which is better for ranges.
    shrink : {None, "hard", "soft"}, default=None
        Set small noisy differences to 0, or move all towards 0: it costs no privacy.
    threshold : float, default=2.0
        Of `shrink`: in standard deviations of the noise of a level.
    {user events}
    """
    _more_attributes = """
    {latest releases}
    standard_errors_ : ndarray
        Without `shrink`: the standard deviation of the noise of each of `values_`.
    """
    _no_intervals = "what is shrunk is biased; take shrink=None"
    _quantity = "count of a cell"
    _test_wrong = {"n_cells": (0, 3, 1, None, True), "weights": (None, "w", 1), "shrink": ("no", 1), "threshold":
                   (-1, "a", None)}

    def __init__(self, epsilon=1.0, *, n_cells=2, bounds=(0, 1), change=None, resolution=1, weights="haar", shrink=None,
                 threshold=2.0, user_events=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.n_cells = n_cells
        self.bounds = bounds
        self.change = change
        self.resolution = resolution
        self.weights = weights
        self.shrink = shrink
        self.threshold = threshold
        self.user_events = user_events
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _spec(self):
        cells = self._cells()
        if cells < 2 or cells & (cells - 1):
            raise ValueError("n_cells must be a power of two, from 2 to 65,536: add cells that are always 0")
        if self.weights not in ("haar", "equal"):
            raise ValueError('weights must be "haar" or "equal"')
        if self.shrink not in (None, "hard", "soft"):
            raise ValueError('shrink must be None, "hard" or "soft"')
        limit = float(canonical_amount(self.threshold, "threshold"))
        steps = steps_of(self.bounds, self.change, self.resolution, cells)
        if max(abs(steps.low), abs(steps.high)) * cells >= 1 << 60:
            raise ValueError("bounds must be closer for n_cells cells: take a coarser resolution")
        spec = HaarOf(steps, canonical_epsilon(self.epsilon), self._events(), self.weights, self.shrink, limit)
        check_rate(lambda: min(law.rate_of_decay for law in spec.laws))
        return spec

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "n_cells": 4},
            {"epsilon": 2.0, "n_cells": 2, "bounds": (0, 3), "change": 1, "weights": "equal", "user_events": 2},
            {"epsilon": 1.0, "n_cells": 4, "shrink": "soft", "threshold": 1.5, "resolution": 0.5},
        ]
