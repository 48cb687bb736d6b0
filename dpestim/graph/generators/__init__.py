"""Graphs that are made up: what is learned of a graph with noise, and random graphs that are like it.

* `base.py`       `GraphSampler` (`sample`) and `GraphGenerator`, what learns of a graph that a curator holds
* `bter_edges.py` graphs of given degrees and clustering, without data: `bter`
* `degrees.py`    degrees from noisy degrees
* `dgg.py`        `DGGGenerator`: noisy degrees, local model
* `ldpgen.py`     `LDPGenGenerator`: numbers of neighbours in groups, in two rounds, local model
* `rnl.py`        `RNLGenerator`: noisy neighbour lists, local model
* `tmf.py`        `TmFGenerator`: pairs of nodes with the largest noisy cells; `cells.py`: cells, and their coins
* `privgraph.py`  `PrivGraphGenerator`: communities, degrees within and edges between them; `communities.py`
* `agm.py`        `AGMGenerator`: attributes, degrees and triangles; `attributes.py`, `closing.py`
* `blocks.py`     random edges within and between blocks of nodes
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.graph.generators.agm import AGMGenerator
    from dpestim.graph.generators.bter_edges import bter
    from dpestim.graph.generators.dgg import DGGGenerator
    from dpestim.graph.generators.ldpgen import LDPGenGenerator
    from dpestim.graph.generators.privgraph import PrivGraphGenerator
    from dpestim.graph.generators.rnl import RNLGenerator
    from dpestim.graph.generators.tmf import TmFGenerator

__getattr__, __dir__ = lazy.attach(__name__, {
    "agm": "AGMGenerator",
    "bter_edges": "bter",
    "dgg": "DGGGenerator",
    "ldpgen": "LDPGenGenerator",
    "privgraph": "PrivGraphGenerator",
    "rnl": "RNLGenerator",
    "tmf": "TmFGenerator",
})

__all__ = [
    "AGMGenerator",
    "DGGGenerator",
    "LDPGenGenerator",
    "PrivGraphGenerator",
    "RNLGenerator",
    "TmFGenerator",
    "bter",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Synthetic graphs"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("degrees matter, and no curator is trusted", "DGGGenerator", "each user reports one number"),
    ("nodes have attributes, or degrees and triangles matter", "AGMGenerator",
     "attributes, degrees and triangles get noise, and edges and attributes are protected"),
    ("communities matter, and groups of nodes are public", "PrivGraphGenerator",
     "communities, degrees within them and edges between them get noise"),
    ("single edges are to be kept, with an epsilon above ln(1 / density)", "TmFGenerator",
     "pairs with the largest noisy cells are edges"),
)
