"""All copies of a pattern in a graph: an array of the nodes of each, one row a copy; nodes may share several."""

from itertools import combinations

import numpy as np

from dpestim._core import graphs, nodes


def triangles(graph, k):
    """Return the three nodes of each triangle."""
    ranked, n = graph.ranked, graph.n_nodes
    many = graphs.triangles(ranked.starts, ranked.neighbours, np.zeros(n, np.int32),
                            np.zeros(len(ranked.neighbours), np.int32))
    corners = np.empty((many, 3), np.int32)
    nodes.list_triangles(ranked.starts, ranked.neighbours, np.zeros(n, np.int32), corners)
    return corners


def stars(graph, k):
    """Return the center of each k-star, and k of its neighbours."""
    found = []
    for center, (start, stop) in enumerate(zip(graph.starts[:-1].tolist(), graph.starts[1:].tolist())):
        near = graph.neighbours[start:stop]
        if len(near) >= k:
            leaves = near[np.array(list(combinations(range(len(near)), k)))]
            found.append(np.column_stack([np.full(len(leaves), center, np.int32), leaves]))
    return np.concatenate(found) if found else np.empty((0, k + 1), np.int32)


def squares(graph, k):
    """Return the four nodes of each cycle of four: the lowest, its two neighbours, and the opposite one."""
    near = [set(graph.neighbours[a:b].tolist()) for a, b in zip(graph.starts[:-1].tolist(), graph.starts[1:].tolist())]
    found = [(low, one, two, far) for low, own in enumerate(near)
             for one, two in combinations(sorted(v for v in own if v > low), 2)
             for far in near[one] & near[two] if far > low]
    return np.array(found, np.int32).reshape(-1, 4)


COPIES = {"k-star": stars, "square": squares, "triangle": triangles}
