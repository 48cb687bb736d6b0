"""Streams with too little noise, with the noise of another horizon, and with a state that goes on twice."""

import math
from dataclasses import replace

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.stream import HaarRelease, StreamCounter, SVTRelease, WEventRelease
from dpestim.stream import counter as counters
from dpestim.stream.run import Run


class ForgetsHalf(StreamCounter):
    """Noise for half of what an event changes."""

    def _plan(self):
        plan = super()._plan()
        return replace(plan, change=max(1, plan.change // 2), events=1)


class OneNode(StreamCounter):
    """Noise for one node of a tree, as if a step were in no other."""

    def _plan(self):
        plan = super()._plan()
        return replace(plan, horizon=1 if plan.horizon else None)

    def _spec(self):
        spec = super()._spec()
        return _Long(spec.steps, replace(spec.plan, horizon=self.horizon), spec.plan)


class _Long(counters.TotalsOf):
    def __init__(self, steps, plan, short):
        super().__init__(steps, plan)
        object.__setattr__(self, "short", short)

    def loss(self, one, two, noise):
        factor = self.plan.factor(0)
        factor.__dict__["law"] = self.short.factor(0).law
        return super().loss(one, two, noise)


class CountsLessNoise(StreamCounter):
    """States standard errors that are too small."""

    def _spec(self):
        return _Sure(*(getattr(super(CountsLessNoise, self)._spec(), name) for name in ("steps", "plan")))


class _Sure(counters.TotalsOf):
    def take(self, state, steps, noise):
        found = super().take(state, steps, noise)
        return {**found, "errors": found["errors"] * 0.7}


class GoesOnTwice(StreamCounter):
    """Two copies of a stream may both go on."""

    def _advance(self, X, run):
        if run is not None:
            run._handed = False
        return super()._advance(X, run)


class RepeatsNoise(StreamCounter):
    """Every call starts with the same noise."""

    def _advance(self, X, run):
        if isinstance(run, Run):
            run._noise = None
        return super()._advance(X, run)


class PrintedHaar(HaarRelease):
    """Noise of each orthonormal coefficient for a change of 1, as it was published."""

    def _spec(self):
        spec = super()._spec()
        spec.__dict__["laws"] = [law_of_rate(spec.epsilon / max(1, math.ceil(size**0.5))) for size in spec.sizes]
        return spec


class ForgetsTheWindow(WEventRelease):
    """Each step may cost what a whole window may."""

    def _spec(self):
        return replace(super()._spec(), window=1)


class LooksForNothing(SVTRelease):
    """Numbers of all releases have the noise of one."""

    def _spec(self):
        spec = super()._spec()
        spec.law.__dict__["number"] = law_of_rate(spec.law.epsilon / spec.steps.change)
        return spec


_SMOOTH, _TREE = StreamCounter._test_params()[:2]
BROKEN = [
    (ForgetsHalf, {**_SMOOTH, "bounds": (0, 2)}, "check_stream_keeps_epsilon"),
    (ForgetsHalf, _TREE, "check_stream_keeps_epsilon"),
    (OneNode, {"epsilon": 1.0, "method": "tree", "horizon": 60}, "check_stream_keeps_epsilon"),
    (CountsLessNoise, _TREE, "check_stream_follows_law"),
    (GoesOnTwice, _SMOOTH, "check_stream_goes_on"),
    (RepeatsNoise, _TREE, "check_stream_goes_on"),
    (PrintedHaar, {"epsilon": 1.0, "n_cells": 4}, "check_stream_keeps_epsilon"),
    (ForgetsTheWindow, {"epsilon": 8.0, "n_cells": 1, "window": 3}, "check_stream_keeps_epsilon"),
    (LooksForNothing, {"epsilon": 1.0, "n_cells": 1, "max_releases": 3}, "check_stream_keeps_epsilon"),
]
