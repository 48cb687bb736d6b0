"""Whole nodes: what may be known of a graph if a person with all relationships is private, and so is who takes part.

How data flows::

    graph --truncation, packing--> what is kept, for each bound --choosing--> a bound --noise--> answers

* `truncation.py`   graphs that are cut to a bound: by a random order of edges, or by flows
* `packing.py`      copies of a pattern that fit, by linear programs whose floats decide nothing
* `choosing.py`     the private choice of a bound
* `base.py`         one release: cut, choose, add noise
* `degree_distribution.py`, `subgraph_count.py`   the estimators

The relation is `Neighbours.NODE`: graphs of which one has one node more, with all its edges, so that the number of
nodes is private. Rewiring a node of a public number of nodes is a removal and an addition, and costs twice.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.graph.nodes.degree_distribution import NodeDegreeDistribution
    from dpestim.graph.nodes.subgraph_count import NodeSubgraphCount

__getattr__, __dir__ = lazy.attach(__name__, {
    "degree_distribution": "NodeDegreeDistribution",
    "subgraph_count": "NodeSubgraphCount",
})

__all__ = ["NodeDegreeDistribution", "NodeSubgraphCount"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs, central model, whole nodes"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("degrees of a network are wanted, and persons are protected", "NodeDegreeDistribution",
     "edges are cut so that one node changes little"),
    ("edges, triangles or stars are counted, and persons are protected", "NodeSubgraphCount",
     "flows and linear programs keep the count of graphs within a bound"),
)
