"""Counts of graphs whose noise knows only this graph, or not even that."""

import numpy as np

from dpestim.graph import SubgraphCount
from dpestim.graph.noise import BoundedNoise, Ladder


class KnowsOneGraph(SubgraphCount):
    """Noise follows what an edge changes in this graph: in one next to it that may be more."""

    def _choices(self):
        pattern, method = super()._choices()

        class Near(pattern):
            def moves(self, n):
                return super().moves(1) * n

        return Near, method


class TakesTheMean(SubgraphCount):
    """Noise for what an edge changes in most places."""

    def _choices(self):
        pattern, method = super()._choices()

        class Mean(pattern):
            def moves(self, n):
                return [max(1, move // 2) for move in super().moves(n)]

        return Mean, method


class TrustsTheBound(SubgraphCount):
    """A noisy bound that is below the truth half of the time."""

    def _choices(self):
        class Low(BoundedNoise):
            def _is_enough(self, above, delta):
                return True

        return super()._choices()[0], Low


class HalfTheNoise(SubgraphCount):
    """Releases half of the noise that is stated."""

    def _choices(self):
        class Half(Ladder):
            def draw(self, source):
                drawn = super().draw(source)
                return {**drawn, "value_": (drawn["value_"] + self.seen.value) // 2}

        return super()._choices()[0], Half


class ReadsWholeNumbers(SubgraphCount):
    """Takes an array of floats for one without edges."""

    def _noise(self, X):
        return super()._noise(np.zeros_like(X) if getattr(X, "dtype", None) == np.float32 else X)


_LADDER, _BOUND, _SMOOTH = SubgraphCount._test_params()[:3]
BROKEN = [
    (KnowsOneGraph, _LADDER, "check_graph_keeps_epsilon"),
    (KnowsOneGraph, _SMOOTH, "check_graph_keeps_epsilon"),
    (TakesTheMean, _LADDER, "check_graph_keeps_epsilon"),
    (TrustsTheBound, _BOUND, "check_graph_keeps_epsilon"),
    (HalfTheNoise, _LADDER, "check_graph_follows_law"),
    (ReadsWholeNumbers, _LADDER, "check_graph_containers"),
]
