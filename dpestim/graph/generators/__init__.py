"""Graphs that are made up: what is learned of a graph with noise, and random graphs that are like it.

* `base.py`     `GraphSampler` (`sample`) and `GraphGenerator`, what learns of a graph that a curator holds
* `bter.py`     graphs of given degrees and clustering, without data: `bter`
* `degrees.py`  degrees from noisy degrees
* `dgg.py`      `DGGGenerator`: noisy degrees, local model
* `ldpgen.py`   `LDPGenGenerator`: numbers of neighbours in groups, in two rounds, local model
* `rnl.py`      `RNLGenerator`: noisy neighbour lists, local model
"""

from dpestim.graph.generators.bter import bter
from dpestim.graph.generators.dgg import DGGGenerator
from dpestim.graph.generators.ldpgen import LDPGenGenerator
from dpestim.graph.generators.rnl import RNLGenerator

__all__ = ["DGGGenerator", "LDPGenGenerator", "RNLGenerator", "bter"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Graphs that are drawn"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("degrees and paths matter, and no curator is trusted", "DGGGenerator", "each user reports one number"),
)
