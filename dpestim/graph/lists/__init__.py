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
"""

from dpestim.graph.lists.degree import DegreeEstimator
from dpestim.graph.lists.edge_count import EdgeCountEstimator
from dpestim.graph.lists.rnl import RNLTransformer

__all__ = ["DegreeEstimator", "EdgeCountEstimator", "RNLTransformer"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs, local model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("the number of edges is wanted, and nobody holds the graph", "EdgeCountEstimator", "users report noisy degrees"),
    ("degrees of nodes or their distribution are wanted", "DegreeEstimator",
     "users report noisy degrees, or one user of each pair reports a bit"),
    ("users randomise their lists of friends, and questions come later", "RNLTransformer",
     "every bit of a list is reported"),
)
