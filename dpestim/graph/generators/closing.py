"""Triangles in a random graph: edges that close paths of two edges take the place of others of the same kind.

No data, and no privacy: all of it follows from numbers that were released. A path begins with a random edge, so that
nodes are chosen in proportion to their degrees; which paths are closed, and which edges go, keeps degrees close to what
they were.
"""

import numpy as np

from dpestim._core import graphs
from dpestim.graph.generators.cells import cell_of, ends_of, is_among
from dpestim.graph.reading import Graph

#: So often paths are closed, at most; the part of the edges at first, and at most; and how close triangles should come.
ROUNDS, _FIRST, _MOST, _CLOSE = 16, 0.04, 0.1, 0.02


def graph_of(cells, n_nodes):
    """Return the `Graph` of different cells."""
    i, j = ends_of(cells)
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(rows * n_nodes + columns)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_nodes))])
    return Graph(starts.astype(np.int64), columns[order].astype(np.int32))


def closed(cells, kinds, n_nodes, wanted, kind_of, rng, each=iter):
    """Return cells of a graph with about so many triangles, with as many edges of each kind as there were.

    Cells ascend; `kind_of(i, j)` are the kinds of pairs of nodes, numbers from 0 on. Edges of few triangles go
    first, and those whose ends have more edges than before. `each` looks at every round when it is over.
    """
    i, j = ends_of(cells)
    names = np.argsort(-(np.bincount(i, minlength=n_nodes) + np.bincount(j, minlength=n_nodes)), kind="stable")
    numbers = np.empty(n_nodes, np.int64)
    numbers[names] = np.arange(n_nodes)  # (kernels take nodes from the highest degree down)
    cells, kinds = _sorted(cell_of(numbers[i], numbers[j]), kinds)
    have, of_edges, graph = _triangles(cells, n_nodes)
    degrees = graph.degrees
    step = _FIRST * len(cells)
    for _ in each(range(ROUNDS)):
        size = int(min(step, _MOST * len(cells)))
        if have >= (1 - _CLOSE) * wanted or size < 1:
            break
        above = (graph.degrees - degrees) / np.sqrt(degrees + 1.0)
        added = _paths(graph, 2 * size, cells, rng)
        i, j = ends_of(added)
        best = np.argsort(above[i] + above[j])[:size]  # (where ends miss edges rather than have too many)
        added, own = added[best], kind_of(names[i[best]], names[j[best]])
        i, j = ends_of(cells)
        order = np.argsort(of_edges - above[i] - above[j] + rng.random(len(cells)))
        n_kinds = int(max(kinds.max(), own.max(initial=0))) + 1
        fits = _place_in_kind(own) < np.bincount(kinds, minlength=n_kinds)[own]
        added, own = added[fits], own[fits]
        keep = np.ones(len(cells), bool)
        keep[order[_place_in_kind(kinds[order]) < np.bincount(own, minlength=n_kinds)[kinds[order]]]] = False
        new = _sorted(np.concatenate([cells[keep], added]), np.concatenate([kinds[keep], own]))
        found = _triangles(new[0], n_nodes)
        if found[0] <= have:  # (no more can be closed in this way)
            break
        (cells, kinds), before, (have, of_edges, graph) = new, have, found
        step = len(added) * max((wanted - have) / (have - before), 0.0)
    i, j = ends_of(cells)
    return cell_of(names[i], names[j])


def _sorted(cells, kinds):
    order = np.argsort(cells)
    return cells[order], kinds[order]


def _triangles(cells, n_nodes):
    """Return (how many triangles, those of each edge, the graph) of ascending cells."""
    graph = graph_of(cells, n_nodes)
    counts = np.zeros(len(graph.neighbours), np.int32)
    total = graphs.triangles(graph.starts, graph.neighbours, np.zeros(n_nodes, np.int32), counts)
    return total, counts[graph.neighbours < np.repeat(np.arange(n_nodes), graph.degrees)], graph


def _paths(graph, size, cells, rng):
    """Return the pairs of nodes at the ends of so many random paths of two edges that are not joined, each once."""
    first = rng.integers(0, len(graph.neighbours), size)
    i, middle = np.searchsorted(graph.starts, first, side="right") - 1, graph.neighbours[first]
    j = graph.neighbours[graph.starts[middle] + (rng.random(size) * graph.degrees[middle]).astype(np.int64)]
    found = np.unique(cell_of(i, j)[i != j])
    return rng.permutation(found[~is_among(found, cells)])


def _place_in_kind(kinds):
    """Return for each entry how many before it are of the same kind."""
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    out = np.empty(len(kinds), np.int64)
    out[order] = np.arange(len(kinds)) - np.searchsorted(ordered, ordered)
    return out
