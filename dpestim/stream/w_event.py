"""Rows of a stream for ever: whatever a user does within w successive steps is protected (w-event privacy)."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.stream.base import StreamMechanism
from dpestim.stream.reading import MOST_CELLS, Steps, checked_count, steps_of

#: Columns of noise: of distances, and of rows.
_FAR, _ROW = range(2)
#: "bd" publishes nothing for less than this part of epsilon.
_LEAST = Fraction(1, 1 << 20)
_LONGEST = 1 << 16


@dataclass(frozen=True)
class WEventOf:
    """How a row is compared with the latest release, and what a new one may cost."""

    steps: Steps
    epsilon: Fraction
    window: int
    method: str

    #: Neighbours differ within successive steps; few runs of few steps reach the worst case.
    successive, n_short, tight = True, 4, 0.2

    def read(self, X, strict):
        """Return integers of the steps, and whether it was one step."""
        return self.steps.read(X, strict)

    def begin(self):
        """Return the state: the latest release, its noise, and what the latest publications cost."""
        return {"latest": np.zeros(self.steps.width, np.int64), "spent": [], "steps": 0, "last": 0, "shares": 0}

    @property
    def _share(self):
        return self.epsilon / (2 * self.window)

    def law(self, epsilon):
        """Return the law of the noise of what neighbours move by `change`."""
        return law_of_rate(epsilon / max(1, self.steps.change))

    def offered(self, state):
        """Return what a publication at the next step may cost (0: it is not allowed)."""
        if self.method == "bd":
            before = sum(state["spent"][-(self.window - 1):] if self.window > 1 else ())
            return _short((self.epsilon / 2 - before) / 2, self.epsilon)
        since = state["steps"] + 1 - (state["last"] + max(state["shares"] - 1, 0))
        return self._share * min(since, self.window) if since > 0 else Fraction(0)

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        values, costs = np.empty(steps.shape), []
        for t, row in enumerate(steps):
            far = int(np.abs(row - state["latest"]).sum()) + int(noise.take(self.law(self._share), _FAR, 1)[0])
            cost = self.offered(state)
            # (the error of a publication, in the L1 norm, is about cells times change over its budget)
            if cost and far * cost > self.steps.width * max(1, self.steps.change):
                state["latest"] = row + noise.take(self.law(cost), _ROW, len(row))
                state["last"], state["shares"] = state["steps"] + 1, int(cost / self._share)
            else:
                cost = Fraction(0)
            state["steps"] += 1
            state["spent"] = [*state["spent"], cost][-self.window :]
            costs.append(cost)
            values[t] = state["latest"]
        return {"values": values * float(self.steps.unit),
                "more": {"renewed_": np.array([cost > 0 for cost in costs]), "_costs": costs}}

    def loss(self, one, two, noise):
        """Return how much epsilon two streams cost at most, given the releases of one of them."""
        state, total = self.begin(), Fraction(0)
        for a, b in zip(one, two):
            latest = state["latest"]
            cost = self.take(state, a[None], noise)["more"]["_costs"][0]
            moved = abs(int(np.abs(a - latest).sum() - np.abs(b - latest).sum()))
            total += self.law(self._share).rate_of_decay * moved
            if cost:
                total += self.law(cost).rate_of_decay * int(np.abs(a - b).sum())
        return total


def _short(amount, epsilon):
    """Return an amount with four binary digits, rounded down, or 0 where it is not worth a publication."""
    if amount < epsilon * _LEAST:
        return Fraction(0)
    step = Fraction(2) ** (math.floor(math.log2(amount)) - 4)
    return math.floor(amount / step) * step


class WEventRelease(StreamMechanism):
    """Release a row of numbers at every step of a stream without an end, for one budget within any w steps.

    Half of the budget says at each step how far the row is from the latest release, the other half pays for new
    releases, where these are worth their noise; elsewhere the latest one is repeated.

    **Privacy.** Pure epsilon in the central model, for all releases together, for streams that differ within any
    `window` successive steps, by `change` in the L1 norm of each row (w-event privacy). A user who is in longer
    stretches of the stream is protected less: epsilon for each `window` steps. One charge pays for ever. The curator,
    who holds the data, must be trusted.

    **Utility.** "bd" gives half of what is left to each new release: good where changes come in groups. "ba" saves what
    was not used, up to `window` shares: good where they come seldom. How far a repeated release is from the truth is
    private: there are no intervals.

    **Complexity.** O(cells + window) time a step, O(cells + window) memory.

    {parameters}
    References
    ----------
    Kellaris, Papadopoulos, Xiao, Papadias (2014), "Differentially private event sequences over infinite streams",
    PVLDB 7(12). The proof: ``w_event.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.stream import WEventRelease
    >>> people = np.repeat([[900, 20], [100, 820]], 50, axis=0)  # in two rooms
    >>> rooms = WEventRelease(2.0, n_cells=2, window=10, method="ba", bounds=(0, 1000), change=2, random_state=0)
    >>> int(rooms.fit(people).renewed_.sum())
    24
    """

    _more_parameters = """
    n_cells : int, default=2
        The number of numbers of a row, up to 65,536.
    window : int, default=10
        The number of successive steps within which neighbours differ, up to 65,536.
    method : {"bd", "ba"}, default="ba"
        How the budget is shared: distributed, or absorbed.
    bounds : (low, high), default=(0, 1)
        The public range of a number; values are clipped to it. The ends must be multiples of `resolution`.
    change : float, default=None
        The most by which one user changes one row, in the L1 norm, after values are rounded: a user who moves from one
        cell to another changes two. None: one number, from one end of the bounds to the other.
    resolution : float, default=1
        Values are rounded down to multiples of it. Rows are protected as they are after that: a user who changes
        fractions of it in several cells may change more units than the sum of these fractions.
    """
    _more_attributes = """
    values_ : ndarray
        The releases of the latest call.
    value_ : ndarray
        The release of the latest step.
    n_steps_ : int
        Steps so far.
    renewed_ : ndarray of bool
        At which steps of the latest call the release is a new one.
    """
    _no_intervals = "how far the stream has moved since the latest release is private"
    _quantity = "latest release"
    _test_wrong = {"n_cells": (0, None, True), "window": (0, None, 1.5)}

    def __init__(self, epsilon=1.0, *, n_cells=2, window=10, method="ba", bounds=(0, 1), change=None, resolution=1,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.n_cells = n_cells
        self.window = window
        self.method = method
        self.bounds = bounds
        self.change = change
        self.resolution = resolution
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _relation(self):
        return Neighbours.EVENT

    def _events(self):
        return 1

    def _budget(self):
        self._spec()
        return canonical_epsilon(self.epsilon), Fraction(0), None

    def _spec(self):
        cells = checked_count("n_cells", self.n_cells, MOST_CELLS, none=False)
        window = checked_count("window", self.window, _LONGEST, none=False)
        if self.method not in ("ba", "bd"):
            raise ValueError('method must be "ba" or "bd"')
        steps = steps_of(self.bounds, self.change, self.resolution, cells, rows=True)
        spec = WEventOf(steps, canonical_epsilon(self.epsilon), window, self.method)
        least = min(spec.epsilon / (2 * window), spec.epsilon * _LEAST) / max(1, steps.change)
        if least < Fraction(1, 1 << 50):
            raise ValueError("epsilon is too small, because the noise would exceed 64-bit integers: take a larger one")
        return spec

    def _notes(self):
        return (f"w-event privacy: it holds for streams that differ within {self._spec().window} successive steps, by "
                f"at most {self._spec().steps.change} units of resolution in the L1 norm of each row. Over longer "
                "stretches epsilon counts once for each such number of steps.",)

    def _labels(self):
        return (("cell", list(range(self.values_.shape[1]))),)

    def _test_data(self, n_rows, seed=0):
        """Return rows of zeros and ones."""
        return np.random.default_rng(seed).integers(0, 2, (n_rows, self.n_cells)), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 8.0, "n_cells": 2, "window": 3},
            {"epsilon": 8.0, "n_cells": 2, "window": 2, "method": "bd", "bounds": (0, 2), "change": 1},
            {"epsilon": 8.0, "n_cells": 3, "window": 1, "resolution": 0.5},
        ]
