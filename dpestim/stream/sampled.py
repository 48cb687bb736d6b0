"""Rows of a stream at times that follow from earlier releases, filtered: adaptive w-event privacy."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.records import record
from dpestim.stream.reading import Steps
from dpestim.stream.w_event_budget import short
from dpestim.stream.widths import RepeatedWidths

#: What a release costs of what is left: the logarithm of 1 + the steps since the one before it times this, or these
#: steps by those of a window (ours: short windows use more), and this at most.
_SHARE, _MOST = 0.2, 0.6
#: How the next release is timed: by the latest change, and by the mean of so many.
_LATEST, _MEAN, _KEPT = 0.9, 0.1, 5


@record
class SampledOf:
    """When a row is released, for how much, and what is made of it."""

    steps: Steps
    epsilon: Fraction
    window: int

    #: Neighbours differ within successive steps; few runs of few steps reach the worst case.
    successive, n_short, tight = True, 4, 0.05

    def read(self, X, strict):
        """Return integers of the steps, and whether it was one step."""
        return self.steps.read(X, strict)

    def begin(self):
        """Return the state, which follows from releases alone: the latest one, its error, and when the next one is."""
        return {"latest": None, "error": 0.0, "spent": [], "wait": 0, "pause": 1.0, "changes": []}

    def law(self, epsilon):
        """Return the law of the noise of what neighbours move by `change`."""
        return law_of_rate(epsilon / max(1, self.steps.change))

    def offered(self, state):
        """Return what a release at the next step costs (0: there is none)."""
        if state["wait"] > 0:
            return Fraction(0)
        if self.window == 1:
            return self.epsilon
        left = self.epsilon - sum(state["spent"][-(self.window - 1) :])
        share = max(_SHARE * math.log1p(state["pause"]), state["pause"] / self.window)
        return short(left * Fraction(min(share, _MOST)), self.epsilon)

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        values, costs, off = np.empty(steps.shape), [], np.zeros(steps.shape)
        for t, row in enumerate(steps):
            cost = self.offered(state)
            if cost:
                law = self.law(cost)
                seen = row + noise.take(law, 0, len(row))
                learn(state, seen.astype(float), float(1 / law.rate_of_decay), self.window)
                off[t] = np.abs(seen - state["latest"])
            state["wait"] -= 1
            state["spent"] = [*state["spent"], cost][-self.window :]
            costs.append(cost)
            values[t] = 0 if state["latest"] is None else state["latest"]
        laws = [self.law(cost) if cost else None for cost in costs]
        widths = RepeatedWidths(self.steps, values, laws, [math.inf] * len(costs), (self.law(self.epsilon),), off)
        return {"values": values * float(self.steps.unit), "widths": widths,
                "more": {"renewed_": np.array([cost > 0 for cost in costs]), "_costs": costs}}

    def loss(self, one, two, noise):
        """Return how much epsilon two streams cost at most, given the releases of one of them."""
        state, total = self.begin(), Fraction(0)
        for a, b in zip(one, two):
            cost = self.take(state, a[None], noise)["more"]["_costs"][0]
            if cost:
                total += self.law(cost).rate_of_decay * int(np.abs(a - b).sum())
        return total


def learn(state, seen, scale, window):
    """Change the state by a noisy row whose noise has this scale: a Kalman filter, and the time of the next row.

    How much the stream moves is estimated from how far the row is from the release before it.
    """
    noise = 2 * scale**2
    if state["latest"] is None:
        state.update(latest=seen, error=noise)
    else:
        apart = seen - state["latest"]
        before = max(state["error"], float(np.mean(apart**2)) - noise)  # (what the filter predicts, and what it moves)
        gain = before / (before + noise)
        state.update(latest=state["latest"] + gain * apart, error=(1 - gain) * before)
        state["changes"] = [*state["changes"], gain * float(np.mean(np.abs(apart)))][-_KEPT:]
        change = _LATEST * state["changes"][-1] + _MEAN * float(np.mean(state["changes"]))
        state["pause"] = float(min(max(1.0, state["pause"] + 1 - (change / scale) ** 2), window))
    state["wait"] = int(state["pause"])
