"""Rows of a stream for ever: whatever a user does within w successive steps is protected (w-event privacy)."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.records import record
from dpestim.stream.reading import Steps, checked_count
from dpestim.stream.rows import RepeatedRows, check_rate
from dpestim.stream.sampled import SampledOf
from dpestim.stream.w_event_budget import LEAST, short
from dpestim.stream.widths import RepeatedWidths

#: Columns of noise: of distances, and of rows.
_FAR, _ROW = range(2)
_LONGEST = 1 << 16


@record
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
            return short((self.epsilon / 2 - before) / 2, self.epsilon)
        since = state["steps"] + 1 - (state["last"] + max(state["shares"] - 1, 0))
        return self._share * min(since, self.window) if since > 0 else Fraction(0)

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        values, costs, far_off = np.empty(steps.shape), [], []
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
            far_off.append(far)
            values[t] = state["latest"]
        # (the noisy distance is paid for, and may be told)
        widths = RepeatedWidths(self.steps, values, [self.law(cost) if cost else None for cost in costs], far_off,
                                (self.law(self._share),))
        return {"values": values * float(self.steps.unit), "widths": widths,
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


class WEventRelease(RepeatedRows):
    """Release a row of numbers at every step of a stream without an end, for one budget within any w steps.

    "bd" and "ba" spend half of the budget on how far each row is from the latest release, and the other half on new
    releases, where these are worth their noise. "adaptive" spends all of it on new releases, whose times follow from
    earlier releases, and filters these. At all other steps the latest release is repeated.

    **Privacy.** Pure epsilon in the central model, for all releases together, for streams that differ within any
    `window` successive steps, by `change` in the L1 norm of each row (w-event privacy). A user who is in longer
    stretches of the stream is protected less: epsilon for each `window` steps. One charge pays for ever. The curator,
    who holds the data, must be trusted.

    **Utility.** "bd" gives half of what is left to each new release: good where changes come in groups. "ba" saves what
    was not used, up to `window` shares: good where they come seldom. "adaptive" errs less than both where rows drift or
    where noise is large, and more where rows jump and noise is small: it looks at nothing between two releases. Its
    filter makes it biased. Intervals hold at every step. Those of a repeated row are as wide as its noisy distance from
    the exact one, and as wide as the bounds for "adaptive".

    **Complexity.** O(cells + window) time a step, O(cells + window) memory.

    {parameters}
    References
    ----------
    Kellaris, Papadopoulos, Xiao, Papadias (2014), "Differentially private event sequences over infinite streams",
    PVLDB 7(12). Wang, Zhang, Lu, Wang, Qin, Ren (2018), "Real-time and spatio-temporal crowd-sourced social network
    data publishing with differential privacy", IEEE TDSC 15(4), for "adaptive", whose rule for budgets has a floor of
    ours, and whose filter estimates how much rows move. The proof: ``w_event.md``.

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
    {rows}
    window : int, default=10
        The number of successive steps within which neighbours differ, up to 65,536.
    method : {"bd", "ba", "adaptive"}, default="ba"
        How the budget is shared: distributed, absorbed, or among releases whose times follow from earlier releases.
    {row values}
    """
    _more_attributes = """
    {latest releases}
    {renewed}
    """
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

    def _spec(self):
        window = checked_count("window", self.window, _LONGEST, none=False)
        if self.method not in ("ba", "bd", "adaptive"):
            raise ValueError('method must be "ba", "bd" or "adaptive"')
        steps, epsilon = self._rows(), canonical_epsilon(self.epsilon)
        check_rate(lambda: min(epsilon / (2 * window), epsilon * LEAST) / max(1, steps.change))
        if self.method == "adaptive":
            return SampledOf(steps, epsilon, window)
        return WEventOf(steps, epsilon, window, self.method)

    def _notes(self):
        return (f"w-event privacy: it holds for streams that differ within {self._spec().window} successive steps, by "
                f"at most {self._spec().steps.change} units of resolution in the L1 norm of each row. Over longer "
                "stretches epsilon counts once for each such number of steps.",)

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 8.0, "n_cells": 2, "window": 3},
            {"epsilon": 8.0, "n_cells": 2, "window": 2, "method": "bd", "bounds": (0, 2), "change": 1},
            {"epsilon": 8.0, "n_cells": 1, "window": 3, "method": "adaptive"},
            {"epsilon": 8.0, "n_cells": 3, "window": 1, "resolution": 0.5},
        ]
