"""Sentences that the docstrings of this room share."""

TEXTS = {
    "graph": """
Parameters
----------
X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
    An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal.
    `dpestim.graph.adjacency` makes one of a table of edges. Row i is the neighbour list of user i.
y : ignored
""",
    "graph or rows": """
Parameters
----------
X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
    The graph, as for `fit`; or, if `users` are given, rows of its adjacency matrix, of shape (n_users, n_nodes).
users : array of int, default=None
    The numbers of the nodes whose lists are the rows of X, ascending. None: X is the whole graph.
""",
    "lists": """
lists : {"half", "whole"}, default="half"
    "half": the user of node i reports on the nodes j > i, so that each pair of nodes is reported once. "whole": a user
    reports on all other nodes, so that two users report each relationship.
""",
    "reports": """
reports : {"packed", "sparse"}, default="sparse"
    How reports are sent; their law is the same. "packed": uint8, a bit for each node, bit j at byte j // 8, lowest
    first. "sparse": a csr_array of the ones.
""",
}
