"""Neighbour lists under local privacy: each user randomises the user's list, and nobody else must be trusted.

How data flows::

    adjacency matrix, or rows of users --reading--> Lists --flips, noise--> reports      (on the users' side)
    reports --reading--> what all users say --estimates--> edges_, degrees_, ...          (on the server's side)

* `reading.py`     lists and reports as they come in
* `flips.py`       randomised response of all bits of lists, drawn by the gaps between flips; `BitLaw`
* `base.py`        `ListMechanism` (verbs of users), `ListEstimator` (verbs of a server), `BitReports` (reports of bits)
* `rnl.py`         `RNLTransformer`
* `two_sided.py`   noise for numbers of neighbours; `either.py`: estimators that read such numbers, or bits
* `edge_count.py`  `EdgeCountEstimator`
* `degree.py`      `DegreeEstimator`
* `intervals.py`   intervals for numbers of neighbours from numbers of bits
* `noisy_graph.py` counts of a noisy graph, and what follows about the exact one; `one_number.py`: intervals by it
* `clipped.py`     counts of users with noise for noisy bounds of their degrees; `rounds.py`: two rounds
* `triangle.py`    `TriangleEstimator`
* `k_star.py`      `KStarEstimator`; `stars.py`: debiased stars
* `clustering.py`  `ClusteringCoefficientEstimator`
* `modularity.py`  `ModularityEstimator`; `partition.py`: edges between parts
* `community.py`   `CommunityEstimator`; `spectral.py`: eigenvectors of a noisy graph
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.graph.lists.clustering import ClusteringCoefficientEstimator
    from dpestim.graph.lists.community import CommunityEstimator
    from dpestim.graph.lists.degree import DegreeEstimator
    from dpestim.graph.lists.edge_count import EdgeCountEstimator
    from dpestim.graph.lists.k_star import KStarEstimator
    from dpestim.graph.lists.modularity import ModularityEstimator
    from dpestim.graph.lists.rnl import RNLTransformer
    from dpestim.graph.lists.triangle import TriangleEstimator

__getattr__, __dir__ = lazy.attach(__name__, {
    "clustering": "ClusteringCoefficientEstimator",
    "community": "CommunityEstimator",
    "degree": "DegreeEstimator",
    "edge_count": "EdgeCountEstimator",
    "k_star": "KStarEstimator",
    "modularity": "ModularityEstimator",
    "rnl": "RNLTransformer",
    "triangle": "TriangleEstimator",
})

__all__ = ["ClusteringCoefficientEstimator", "CommunityEstimator", "DegreeEstimator", "EdgeCountEstimator",
           "KStarEstimator", "ModularityEstimator", "RNLTransformer", "TriangleEstimator"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("the number of edges is wanted, and nobody holds the graph", "EdgeCountEstimator", "users report noisy degrees"),
    ("degrees of nodes or their distribution are wanted", "DegreeEstimator",
     "users report noisy degrees, or one user of each pair reports a bit"),
    ("triangles are counted, and nobody holds the graph", "TriangleEstimator",
     "one round of bits, or a second round of counts in the noisy graph"),
    ("stars of k edges are counted", "KStarEstimator", "noise is for each user's own bound of the degree"),
    ("the share of closed wedges is wanted", "ClusteringCoefficientEstimator", "triangles and wedges of the same bits"),
    ("a public partition of the nodes is judged", "ModularityEstimator",
     "users report neighbours in each part, with noise"),
    ("groups of nodes are to be found", "CommunityEstimator", "eigenvectors of the debiased noisy graph"),
    ("users randomise their lists of friends, and questions come later", "RNLTransformer",
     "every bit of a list is reported"),
)
