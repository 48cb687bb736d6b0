"""Graphs: what may be known of a network whose edges, or nodes, are private.

How data flows::

    adjacency matrix, networkx graph --reading--> Graph --patterns--> count, A(0), A(1), ... --noise--> value_
    table of edges --adjacency--^             (_core/graphs)

* `reading.py`        graphs as they come in, and `adjacency`
* `patterns.py`       what is counted, and how far edges can move the count, exactly
* `noise.py`          noise that follows the graph
* `giving.py`         graphs as they go out: `export_graph`
* `tags.py`           what scikit-learn reads of estimators of a graph
* `subgraph_count.py`  `SubgraphCount`: the estimator
* `generators/`       graphs that are made up, like one that is private
* `lists/`            what users report on their neighbour lists, where no curator is trusted
* `nodes/`            what protects whole nodes
* `edge_release.py`   what estimators share that add noise of a public law to facts of a graph, one after another:
* `degree_distribution.py`  `DegreeDistribution`, and `falling.py`, intervals of numbers that fall
* `spectrum.py`       `GraphSpectrum`: the largest eigenvalues
* `coverage.py`       `ControlFlowCoverage`, and `flow.py`, control-flow graphs and their dominator trees
* `pagerank.py`       `PageRankEstimator`: PageRank and degrees of all nodes
* `cuts.py`           `CutEstimator`, and `pairs.py`, all pairs of nodes by randomised response
* `generators/`       graphs that are drawn from what was learned with noise

A graph is one record: edges of all parts make its triangles, so that nothing here merges. What is protected is said by
the relation of the guarantee: `Neighbours.EDGE`, for graphs on the same nodes of which one has one edge more. A ledger
of edges is one with ``neighbours="edge"``; no guarantee for rows follows from one for edges.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.graph.coverage import ControlFlowCoverage
    from dpestim.graph.cuts import CutEstimator
    from dpestim.graph.degree_distribution import DegreeDistribution
    from dpestim.graph.generators import (
        AGMGenerator,
        DGGGenerator,
        LDPGenGenerator,
        PrivGraphGenerator,
        RNLGenerator,
        TmFGenerator,
        bter,
    )
    from dpestim.graph.giving import export_graph
    from dpestim.graph.lists import (
        ClusteringCoefficientEstimator,
        CommunityEstimator,
        DegreeEstimator,
        EdgeCountEstimator,
        KStarEstimator,
        ModularityEstimator,
        RNLTransformer,
        TriangleEstimator,
    )
    from dpestim.graph.nodes import NodeDegreeDistribution, NodeSubgraphCount
    from dpestim.graph.pagerank import PageRankEstimator
    from dpestim.graph.reading import adjacency
    from dpestim.graph.spectrum import GraphSpectrum
    from dpestim.graph.subgraph_count import SubgraphCount

__getattr__, __dir__ = lazy.attach(__name__, {
    "coverage": "ControlFlowCoverage",
    "cuts": "CutEstimator",
    "degree_distribution": "DegreeDistribution",
    "generators": "AGMGenerator DGGGenerator LDPGenGenerator PrivGraphGenerator RNLGenerator TmFGenerator bter",
    "giving": "export_graph",
    "lists": "ClusteringCoefficientEstimator CommunityEstimator DegreeEstimator EdgeCountEstimator KStarEstimator "
             "ModularityEstimator RNLTransformer TriangleEstimator",
    "nodes": "NodeDegreeDistribution NodeSubgraphCount",
    "pagerank": "PageRankEstimator",
    "reading": "adjacency",
    "spectrum": "GraphSpectrum",
    "subgraph_count": "SubgraphCount",
})

__all__ = [
    "AGMGenerator",
    "ClusteringCoefficientEstimator",
    "CommunityEstimator",
    "ControlFlowCoverage",
    "CutEstimator",
    "DGGGenerator",
    "DegreeDistribution",
    "DegreeEstimator",
    "EdgeCountEstimator",
    "GraphSpectrum",
    "KStarEstimator",
    "LDPGenGenerator",
    "ModularityEstimator",
    "NodeDegreeDistribution",
    "NodeSubgraphCount",
    "PageRankEstimator",
    "PrivGraphGenerator",
    "RNLGenerator",
    "RNLTransformer",
    "SubgraphCount",
    "TmFGenerator",
    "TriangleEstimator",
    "adjacency",
    "bter",
    "export_graph",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("edges, triangles or stars of a network are counted", "SubgraphCount", "noise follows what one edge can change"),
    ("it is asked how many nodes have each degree", "DegreeDistribution", "one edge moves sorted numbers by 2 in all"),
    ("it is asked how many edges join two groups of nodes", "CutEstimator", "unbiased, with proven error bounds"),
    ("nodes are ranked, or their degrees are wanted", "PageRankEstimator", "PageRank is close to degrees"),
    ("users' runs of a program cover its blocks", "ControlFlowCoverage", "nobody sees a run of another"),
    ("the largest eigenvalues are wanted", "GraphSpectrum", "one edge moves all of them together by 2 at most"),
)
