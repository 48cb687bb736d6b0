"""Graphs that are made up: what is learned of a graph with noise, and random graphs that are like it.

* `base.py`  `GraphGenerator`: `fit` learns with noise, `sample` draws as many graphs as you like, which cost nothing
* `tmf.py`   `TmFGenerator`: pairs of nodes with the largest noisy cells; `cells.py`: cells, and coins for all of them
* `privgraph.py`  `PrivGraphGenerator`: communities, degrees within and edges between them; `communities.py`
* `blocks.py`     random edges within and between blocks of nodes
"""

from dpestim.graph.generators.privgraph import PrivGraphGenerator
from dpestim.graph.generators.tmf import TmFGenerator

__all__ = ["PrivGraphGenerator", "TmFGenerator"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Synthetic graphs"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("communities matter, and groups of nodes are public", "PrivGraphGenerator",
     "communities, degrees within them and edges between them get noise"),
    ("single edges are to be kept, with an epsilon above ln(1 / density)", "TmFGenerator",
     "pairs with the largest noisy cells are edges"),
)
