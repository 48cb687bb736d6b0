"""Graphs that are made up: what is learned of a graph with noise, and random graphs that are like it.

* `base.py`  `GraphGenerator`: `fit` learns with noise, `sample` draws as many graphs as you like, which cost nothing
"""

__all__ = []
