"""What protects nodes, and lets one node move more than it says."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph import NodeDegreeDistribution, NodeSubgraphCount
from dpestim.graph.nodes.degree_distribution import ProjectedDegrees
from dpestim.graph.nodes.subgraph_count import FlowEdges, PackedCopies
from dpestim.graph.nodes.truncation import Projection, edges


class LooksAtQuietNodesFirst(NodeDegreeDistribution):
    """The order of edges follows degrees, which a node changes: it is not inherited."""

    def _kind(self):
        class Sorted(ProjectedDegrees):
            @classmethod
            def of(cls, graph, source, estimator):
                first, second = edges(graph)
                busy = np.maximum(graph.degrees[first], graph.degrees[second])
                return cls(Projection(graph, np.argsort(busy, kind="stable")))

        return Sorted


class DropsBusyNodes(NodeDegreeDistribution):
    """Nodes above the bound are left out with all their edges: one node more may make many of them."""

    def _kind(self):
        class Dropped(ProjectedDegrees):
            @classmethod
            def of(cls, graph, source, estimator):
                first, second = edges(graph)
                seen = super().of(graph, source, estimator)

                def degrees(bound):
                    kept = (graph.degrees[first] <= bound) & (graph.degrees[second] <= bound)
                    return np.bincount(np.concatenate([first[kept], second[kept]]), minlength=graph.n_nodes)

                seen.projection.degrees = degrees
                return seen

        return Dropped


class ScoresWhatIsLost(NodeSubgraphCount):
    """The bound is scored by what it leaves out of the graph, as if a node could change that by the bound only."""

    def _kind(self):
        class Lost(FlowEdges):
            def total(self, bound):
                return super().total(bound) - 3 * max(super(Lost, self).total(1 << 20), 0)

            def answers(self, bound):
                return [super().total(bound)]

            def rise(self, bound):
                return 1

        return Lost


class TrustsTheSolver(NodeSubgraphCount):
    """Values of programs are taken as a solver says them, which is off by up to 4 units."""

    def _kind(self):
        class Off(PackedCopies):
            def total(self, bound):
                return super().total(bound) + 3 * len(self.copies) % 5

        return Off


class HalfTheNoise(NodeSubgraphCount):
    """Releases half of the noise that is stated."""

    def _law(self, kind, bound):
        class Half(DiscreteLaplaceLaw):
            def draw(self, source, size, column=0):
                return super().draw(source, size, column) // 2

        law = super()._law(kind, bound)
        return Half(law.epsilon, Fraction(0), law.sensitivity, 0)


class TakesTheSmallestBound(NodeSubgraphCount):
    """Chooses a bound by the graph, and says that it did so at random."""

    def _bounds(self):
        found = super()._bounds()

        class Certain(type(found)):
            def draw(self, seen, source, *_):
                return self.bounds[int(np.argmax(self.scores(seen)))]

        return Certain(found.bounds, found.errors, found.law.epsilon)


class ReadsWholeNumbers(NodeSubgraphCount):
    """Takes an array of floats for one without edges."""

    def fit(self, X, y=None):
        return super().fit(np.zeros_like(X) if getattr(X, "dtype", None) == np.float32 else X)


_CHOSEN, _BOUND = NodeDegreeDistribution._test_params()[0], {"epsilon": 1.0, "bound": 1}
_EDGES, _TRIANGLES = NodeSubgraphCount._test_params()[:2]
BROKEN = [
    (LooksAtQuietNodesFirst, _BOUND, "check_nodes_keep_epsilon"),
    (DropsBusyNodes, _CHOSEN, "check_nodes_keep_epsilon"),
    (ScoresWhatIsLost, _EDGES, "check_nodes_keep_epsilon"),
    (TrustsTheSolver, {"epsilon": 1.0, "pattern": "square", "bound": 1}, "check_nodes_keep_epsilon"),
    (HalfTheNoise, _EDGES, "check_nodes_follow_law"),
    (TakesTheSmallestBound, _EDGES, "check_nodes_follow_law"),
    (ReadsWholeNumbers, _TRIANGLES, "check_graph_containers"),
]
