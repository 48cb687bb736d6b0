"""Graphs that are made up: what is learned of a graph with noise, and random graphs that are like it.

from dpestim.graph.generators.bter import bter
from dpestim.graph.generators.dgg import DGGGenerator
from dpestim.graph.generators.ldpgen import LDPGenGenerator
from dpestim.graph.generators.privgraph import PrivGraphGenerator
from dpestim.graph.generators.rnl import RNLGenerator
from dpestim.graph.generators.tmf import TmFGenerator

__all__ = [
    "DGGGenerator",
    "LDPGenGenerator",
    "PrivGraphGenerator",
    "RNLGenerator",
    "TmFGenerator",
    "bter",
]
)
