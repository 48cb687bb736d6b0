"""Graphs as they come in: undirected, without loops, weights and multiple edges; one representation for all estimators.

Strict mode reads any square matrix as a graph, so that no error depends on an edge: nodes are joined where either entry
is not 0, and loops are left out. One entry of the matrix then decides about one edge at most.
"""

from functools import cached_property

import numpy as np
from scipy import sparse

from dpestim.inputs.frames import is_frame, refuse_masked, refuse_parts
from dpestim.inputs.matrices import entries_of
from dpestim.inputs.safe_errors import attempt
from dpestim.records import record


@record(eq=False)
class Graph:
    """An undirected graph: the neighbours of node i are ``neighbours[starts[i]:starts[i + 1]]``, ascending."""

    starts: np.ndarray
    neighbours: np.ndarray

    @property
    def n_nodes(self):
        """The number of nodes, which is public."""
        return len(self.starts) - 1

    @property
    def n_edges(self):
        """The number of edges."""
        return len(self.neighbours) // 2

    @cached_property
    def degrees(self):
        """The number of neighbours of each node."""
        return np.diff(self.starts)

    @cached_property
    def ranked(self):
        """The same graph with nodes numbered from the highest degree down, as kernels take it."""
        order = np.argsort(-self.degrees, kind="stable")
        numbers = np.empty(self.n_nodes, np.int32)
        numbers[order] = np.arange(self.n_nodes, dtype=np.int32)
        rows = np.repeat(numbers, self.degrees)
        return _from_pairs(rows, numbers[self.neighbours], self.n_nodes)


def read_graph(X, *, strict=False):
    """Return a `Graph` from an adjacency matrix (sparse or array) or a networkx graph, or raise ValueError."""
    refuse_parts(X, "X")
    refuse_masked(X, "X")
    if any(base.__module__.startswith("networkx.") for base in type(X).__mro__):
        return _from_networkx(X, strict)
    if is_frame(X):  # (nodes without an edge are not in it, and those in it are private)
        raise ValueError("the graph must not be a data frame, which does not list the nodes: for a frame of edges pass "
                         "dpestim.graph.adjacency(frame, nodes), for an adjacency matrix frame.to_numpy()")
    if sparse.issparse(X):
        if X.ndim != 2:
            raise ValueError("the graph must be a matrix of two dimensions: pass its adjacency matrix")
        entries = entries_of(X)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "bifu":
        entries = sparse.coo_array(X.astype(np.float32) if X.dtype == np.float16 else X)  # (SciPy has no float16)
    else:
        raise ValueError("the graph must be an adjacency matrix (a SciPy sparse matrix or array, or a NumPy array of "
                         "two dimensions) or a networkx graph; make one of a table of edges by dpestim.graph.adjacency")
    if entries.shape[0] != entries.shape[1]:
        raise ValueError("the adjacency matrix must be square, with a row and a column for each node")
    if entries.data.dtype.kind not in "bifu":
        raise ValueError("the adjacency matrix must hold zeros and ones: pass numbers or booleans")
    rows, columns = (places.astype(np.int32) for places in (entries.row, entries.col))
    return _checked(rows, columns, entries.data, entries.shape[0], strict)


def adjacency(edges, nodes):
    """Return the adjacency matrix of a table of edges.

    Parameters
    ----------
    edges : array-like or data frame of shape (n_edges, 2)
        The two nodes of each edge, in any order; each edge once, and no node with itself.
    nodes : int or sequence
        All nodes: their public number, if they are numbered from 0 on, or their public names. Nodes without an edge
        belong to them. They must not be learned from the edges, which are private.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        Of uint8, symmetric; node i is the i-th of `nodes`.

    Raises
    ------
    ValueError
        For an edge whose nodes are not listed, an edge twice, and a loop; it names no node.

    Examples
    --------
    >>> from dpestim.graph import adjacency
    >>> adjacency([("ann", "bob"), ("bob", "cleo")], ["ann", "bob", "cleo", "dan"]).toarray()
    array([[0, 1, 0, 0],
           [1, 0, 1, 0],
           [0, 1, 0, 0],
           [0, 0, 0, 0]], dtype=uint8)
    """
    table = np.asarray(edges, dtype=object) if not hasattr(edges, "to_numpy") else edges.to_numpy()
    if table.size == 0:
        table = table.reshape(0, 2)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError("edges must have two columns, the two nodes of each edge")
    numbered = isinstance(nodes, int | np.integer) and not isinstance(nodes, bool)
    names, _ = attempt(lambda: range(int(nodes)) if numbered and nodes >= 0 else list(nodes))
    places, error = attempt(lambda: {name: place for place, name in enumerate(names)})
    if error or len(places) != len(names):
        raise ValueError("nodes must be the number of all nodes, an int of at least 0, or a list of names that differ")
    found, error = attempt(lambda: [places[node] for node in table.ravel().tolist()])
    if error:
        raise ValueError("edges must join nodes that are listed in nodes: add the missing ones, or remove their edges")
    ends = np.array(found, np.int32).reshape(-1, 2)
    both = np.concatenate([ends, ends[:, ::-1]])
    graph = _checked(both[:, 0], both[:, 1], np.ones(len(both), np.uint8), len(names), False)
    return sparse.csr_array((np.ones(len(graph.neighbours), np.uint8), graph.neighbours, graph.starts),
                            shape=(len(names), len(names)))


def _from_networkx(X, strict):
    nodes = {node: place for place, node in enumerate(X)}
    if X.is_directed():
        raise ValueError("the graph must be undirected: call to_undirected() first, if an edge in either direction "
                         "joins two nodes")
    if X.is_multigraph():
        raise ValueError("the graph must have no multiple edges: pass networkx.Graph(graph), which joins two nodes "
                         "once")
    ends = np.array([(nodes[u], nodes[v]) for u, v, *_ in X.edges()], np.int32).reshape(-1, 2)
    both = np.concatenate([ends, ends[ends[:, 0] != ends[:, 1]][:, ::-1]])  # (a loop is one entry)
    return _checked(both[:, 0], both[:, 1], np.ones(len(both), np.uint8), len(nodes), strict)


def _checked(rows, columns, values, n_nodes, strict):
    """Return the graph of the entries of a matrix; other entries are an error, and left out in strict mode."""
    some = values != 0  # (NaN is not 0)
    rows, columns, values = rows[some], columns[some], values[some]
    loops = rows == columns
    if strict:
        rows, columns = (np.concatenate(pair)[~np.tile(loops, 2)] for pair in ((rows, columns), (columns, rows)))
        return _from_pairs(rows, columns, n_nodes)
    if loops.any():
        raise ValueError("the graph must have no loops, which are entries on the diagonal: set the diagonal to 0")
    if (values != values).any():
        raise ValueError("the graph must have no missing values (NaN): put 0 where no edge is known")
    if (values != 1).any():
        raise ValueError("the graph must have no weights: every entry must be 0 or 1, for instance (matrix != 0)")
    graph, mirrored = _from_pairs(rows, columns, n_nodes), _from_pairs(columns, rows, n_nodes)
    if len(graph.neighbours) != len(rows):
        raise ValueError("the graph must have no multiple edges: list each edge once")
    if not np.array_equal(graph.neighbours, mirrored.neighbours) or not np.array_equal(graph.starts, mirrored.starts):
        raise ValueError("the graph must be undirected, which makes its matrix symmetric: pass "
                         "matrix.maximum(matrix.T), if an edge in either direction joins two nodes")
    return graph


def _from_pairs(rows, columns, n_nodes):
    """Return the graph of (row, column), in order, each pair once; both directions must be given. O(m + n)."""
    ones = np.ones(len(rows), np.int32)
    # (rows of a transposed matrix are in order, and so are those of what is transposed twice)
    matrix = sparse.coo_array((ones, (columns, rows)), shape=(n_nodes, n_nodes)).tocsr().T.tocsr()
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))
