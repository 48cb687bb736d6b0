"""Neighbour lists as they come in: those of all nodes of a graph, or of some users; and as reports.

In strict mode the list of a user is what the user's own row says, whatever the others say: nodes whose entry is not 0.
"""


import numpy as np
from scipy import sparse

from dpestim._core import lists
from dpestim.graph.reading import read_graph
from dpestim.inputs.frames import refuse_masked, refuse_parts
from dpestim.inputs.matrices import entries_of
from dpestim.records import record


@record(eq=False)
class Lists:
    """Lists of nodes: that of ``users[r]`` is ``nodes[starts[r]:starts[r + 1]]``, ascending."""

    users: np.ndarray
    starts: np.ndarray
    nodes: np.ndarray
    n_nodes: int

    @property
    def lengths(self):
        """The number of nodes in each list."""
        return np.diff(self.starts)

    @property
    def rows(self):
        """The number of the user of each entry."""
        return np.repeat(self.users, self.lengths)

    def after(self):
        """Return the lists of nodes of higher number than that of their user."""
        kept = self.nodes > self.rows
        ends = np.concatenate([[0], np.cumsum(kept)])
        return Lists(self.users, ends[self.starts].astype(np.int64), self.nodes[kept], self.n_nodes)

    def matrix(self):
        """Return a csr_array with a row for each user."""
        return sparse.csr_array((np.ones(len(self.nodes), np.uint8), self.nodes, self.starts),
                                shape=(len(self.users), self.n_nodes))


def checked_users(users, n_nodes, n_rows):
    """Return the numbers of the users of rows: int64, ascending, each once; None: all nodes, in order."""
    if users is None:
        if n_rows != n_nodes:
            raise ValueError("users must be given if X has rows of some nodes only: the number of the node of each row")
        return np.arange(n_nodes, dtype=np.int64)
    found = np.asarray(users)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) != n_rows or not n_rows:
        raise ValueError("users must be integers, the number of the node of each row, and there must be at least one")
    found = found.astype(np.int64)
    if found[0] < 0 or found[-1] >= n_nodes or (np.diff(found) <= 0).any():
        raise ValueError(f"users must be numbers of nodes from 0 to {n_nodes - 1}, ascending, each once: sort the rows "
                         "by their users")
    return found


def read_lists(X, users=None, *, strict=False):
    """Return the `Lists` of a graph, or of rows of an adjacency matrix, or raise ValueError."""
    refuse_parts(X, "X")
    refuse_masked(X, "X")
    if users is None and not (strict and (sparse.issparse(X) or isinstance(X, np.ndarray))):
        graph = read_graph(X, strict=strict)
        found = Lists(np.arange(graph.n_nodes, dtype=np.int64), graph.starts, graph.neighbours, graph.n_nodes)
    else:
        found = _read_rows(X, users, strict)
    if found.n_nodes < 2:
        raise ValueError("X must have at least 2 nodes, because lists of one node are empty")
    return found


def _read_rows(X, users, strict):
    is_array = isinstance(X, np.ndarray)
    if not (is_array or sparse.issparse(X)) or X.ndim != 2 or X.dtype.kind not in "bifu":
        raise ValueError("X must be rows of an adjacency matrix of zeros and ones: a SciPy sparse matrix or array, or "
                         "a NumPy array of two dimensions")
    if users is None and X.shape[0] != X.shape[1]:
        raise ValueError("the adjacency matrix must be square, with a row and a column for each node")
    users = checked_users(users, X.shape[1], X.shape[0])
    if is_array:
        rows, nodes = np.nonzero(X)
        values = X[rows, nodes]
    else:
        entries = entries_of(X)
        some = entries.data != 0  # (NaN is not 0)
        rows, nodes, values = entries.row[some], entries.col[some], entries.data[some]
    loops = users[rows] == nodes
    if not strict:
        if loops.any():
            raise ValueError("the graph must have no loops, which are entries of a user for itself: set them to 0")
        if (values != 1).any():
            raise ValueError("X must hold zeros and ones, with no weights and no missing values: pass (X != 0), for "
                             "instance")
    matrix = sparse.coo_array((np.ones(len(rows), np.int32)[~loops], (rows[~loops], nodes[~loops])),
                              shape=X.shape).tocsr()
    matrix.sum_duplicates()
    if not strict and (matrix.data != 1).any():
        raise ValueError("the graph must have no multiple edges: list each edge once")
    return Lists(users, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), X.shape[1])


def packed(found):
    """Return lists as rows of bits: uint8, bit j at byte j // 8, lowest first."""
    out = np.zeros((len(found.users), (found.n_nodes + 7) // 8), np.uint8)
    lists.pack(found.starts, found.nodes, out)
    return out


def read_reports(reports, users, n_nodes, half):
    """Return the `Lists` of reports, packed or sparse, or raise ValueError for what no client sends."""
    if sparse.issparse(reports):
        if reports.ndim != 2 or reports.dtype != np.uint8:
            raise ValueError("reports must be a csr_array of uint8, as privatize returns it")
        width = reports.shape[1]
        if n_nodes is not None and n_nodes != width:
            raise ValueError("n_nodes must be the number of columns of sparse reports, or None")
        users = checked_users(users, width, reports.shape[0])
        entries_of(reports)
        reports = reports.tocsr(copy=True)
        if (reports.data != 1).any() or not reports.has_canonical_format:
            raise ValueError("reports must hold each reported node once, as a 1, as privatize returns it")
        found = Lists(users, reports.indptr.astype(np.int64), reports.indices.astype(np.int32, copy=False), width)
    else:
        found = _unpacked(reports, users, n_nodes)
    rows = found.rows
    if (found.nodes <= rows).any() if half else (found.nodes == rows).any():
        which = "of higher number" if half else "other"
        raise ValueError(f"reports must name nodes {which} than that of their user: pass those of the same lists")
    return found


def _unpacked(reports, users, n_nodes):
    if not isinstance(reports, np.ndarray) or reports.ndim != 2 or reports.dtype != np.uint8 or np.ma.isMA(reports):
        raise ValueError("reports must be an array of uint8 of two dimensions, or a csr_array, as privatize returns it")
    if n_nodes is None:
        if users is not None:
            raise ValueError("n_nodes must be given for packed reports of some users: the public number of nodes")
        n_nodes = len(reports)
    n_nodes = checked_nodes(n_nodes)
    if reports.shape[1] != (n_nodes + 7) // 8:
        raise ValueError(f"reports must have a bit for each of the {n_nodes} nodes: {(n_nodes + 7) // 8} bytes a row")
    users = checked_users(users, n_nodes, len(reports))
    reports = np.ascontiguousarray(reports)
    ends = np.empty(len(reports), np.int64)
    nodes = np.empty(lists.unpack(reports, ends, np.empty(0, np.int32)), np.int32)
    lists.unpack(reports, ends, nodes)
    if n_nodes % 8 and (reports[:, -1] >> (n_nodes % 8)).any():
        raise ValueError(f"reports must have no bits beyond the {n_nodes} nodes")
    return Lists(users, np.concatenate([[0], ends]), nodes, n_nodes)


def checked_nodes(n_nodes):
    """Return a public number of nodes."""
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, int | np.integer) or not 2 <= n_nodes < 1 << 31:
        raise ValueError("n_nodes must be an int from 2 to 2^31 - 1, the public number of nodes")
    return int(n_nodes)


def joined(mine, theirs):
    """Return the lists of the users of both; ValueError where a user is in both."""
    users = np.concatenate([mine.users, theirs.users])
    order = np.argsort(users, kind="stable")
    matrix = sparse.vstack([mine.matrix(), theirs.matrix()], format="csr")[order]
    nodes = matrix.indices.astype(np.int32, copy=False)
    return Lists(users[order], matrix.indptr.astype(np.int64), nodes, mine.n_nodes)
