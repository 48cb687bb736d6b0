"""Graphs as they go out: an adjacency matrix as a networkx graph, or as a table of edges, with the names of nodes."""

import numpy as np

from dpestim.graph.reading import read_graph

#: What a graph can be given back as.
KINDS = ("networkx", "pandas", "polars", "pairs")


def export_graph(graph, kind="networkx", *, nodes=None):
    """Return a graph as a networkx graph, or as a table of edges, with the names of its nodes.

    It takes what the estimators of `dpestim.graph` take and give: ``generator.sample()``, for instance. `adjacency` is
    the way back.

    Parameters
    ----------
    graph : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
        An undirected graph, as the estimators take it.
    kind : {"networkx", "pandas", "polars", "pairs"}, default="networkx"
        A networkx.Graph, which holds nodes without an edge, too; a pandas or polars frame with a row for each edge and
        the columns "source" and "target"; or a list of pairs.
    nodes : sequence, networkx.Graph or None, default=None
        The names of the nodes, in the order of the rows of the matrix, as `adjacency` took them; of a networkx graph
        its nodes are taken. None: the numbers from 0 on, or the nodes of a networkx graph that is passed as `graph`.

    Returns
    -------
    networkx.Graph, pandas.DataFrame, polars.DataFrame or list of tuples
        Each edge once: the source is the node of the earlier row.

    Raises
    ------
    ValueError
        For names that are too few, too many or equal, an unknown kind, and what is no graph.

    Examples
    --------
    >>> from dpestim.graph import adjacency, export_graph
    >>> names = ["ann", "bob", "cleo", "dan"]
    >>> matrix = adjacency([("bob", "ann"), ("bob", "cleo")], names)
    >>> export_graph(matrix, "pairs", nodes=names)
    [('ann', 'bob'), ('bob', 'cleo')]
    >>> export_graph(matrix, "pandas", nodes=names)["target"].tolist()
    ['bob', 'cleo']
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {list(KINDS)}")
    read = read_graph(graph)
    if nodes is None and hasattr(graph, "is_directed"):  # (a networkx graph, or it would not have been read)
        nodes = graph
    names = list(range(read.n_nodes)) if nodes is None else _names(nodes, read.n_nodes)
    rows = np.repeat(np.arange(read.n_nodes), read.degrees)
    once = rows < read.neighbours
    ends = [[names[place] for place in places[once].tolist()] for places in (rows, read.neighbours)]
    if kind == "pandas":
        return _library("pandas").DataFrame(dict(zip(("source", "target"), ends)))
    if kind == "polars":
        return _library("polars").DataFrame(dict(zip(("source", "target"), ends)))
    if kind == "pairs":
        return list(zip(*ends))
    found = _library("networkx").Graph()
    found.add_nodes_from(names)
    found.add_edges_from(zip(*ends))
    return found


def _names(nodes, n_nodes):
    names = list(nodes)
    try:
        differ = len(set(names)) == len(names)
    except TypeError:
        raise ValueError("nodes must hold names that can be hashed, such as numbers and text") from None
    if len(names) != n_nodes or not differ:
        raise ValueError("nodes must be names that differ, one for each row of the adjacency matrix, in that order")
    return names


def _library(name):
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(f'export_graph to "{name}" needs {name}: pip install {name}') from error
