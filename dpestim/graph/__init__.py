"""Graphs: what may be known of a network whose edges, or nodes, are private.

How data flows::

    adjacency matrix, networkx graph --reading--> Graph --patterns--> count, A(0), A(1), ... --noise--> value_
    table of edges --adjacency--^             (_core/graphs)

* `reading.py`        graphs as they come in, and `adjacency`
* `patterns.py`       what is counted, and how far edges can move the count, exactly
* `noise.py`          noise that follows the graph
* `giving.py`         graphs as they go out: `export_graph`
* `subgraph_count.py`  `SubgraphCount`: the estimator
* `lists/`            what users report on their neighbour lists, where no curator is trusted

A graph is one record: edges of all parts make its triangles, so that nothing here merges. What is protected is said by
the relation of the guarantee: `Neighbours.EDGE`, for graphs on the same nodes of which one has one edge more. A ledger
of edges is one with ``neighbours="edge"``; no guarantee for rows follows from one for edges.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

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
from dpestim.graph.reading import adjacency
from dpestim.graph.subgraph_count import SubgraphCount

__all__ = [
    "ClusteringCoefficientEstimator",
    "CommunityEstimator",
    "DegreeEstimator",
    "EdgeCountEstimator",
    "KStarEstimator",
    "ModularityEstimator",
    "RNLTransformer",
    "SubgraphCount",
    "TriangleEstimator",
    "adjacency",
    "export_graph",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("edges, triangles or stars of a network are counted", "SubgraphCount", "noise follows what one edge can change"),
)
