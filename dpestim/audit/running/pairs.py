"""Neighbouring data that an audit tries: those that are given, or the extremes of what is declared."""

import numpy as np

from dpestim.inputs.domain import Domain
from dpestim.inputs.kinds import Categories, Numbers
from dpestim.privacy import Neighbours

#: Rows of a table that is made.
_ROWS = 4
#: What pairs must be.
WANTED = ("pairs must be a list of pairs of neighbouring data, such as [(0, 1)], or what a person's value is: "
           "Numbers(0, 1), Categories(['a', 'b']), a list of these for a row, or a Domain for a table")


def pairs_of(pairs, claim):
    """Return a list of (data, neighbour), from pairs or from a declared kind of data."""
    if isinstance(pairs, Domain):
        return _of_tables(pairs, claim.neighbours)
    if isinstance(pairs, Numbers | Categories):
        return _both_ways(_values(pairs))
    if not isinstance(pairs, list | tuple) or not pairs:
        raise ValueError(WANTED)
    if all(isinstance(each, Numbers | Categories) for each in pairs):
        return _rows_of([_values(each) for each in pairs], list)
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(WANTED)
    return [tuple(pair) for pair in pairs]


def _values(kind):
    """Return some values of a declared column, the extremes first."""
    if isinstance(kind, Numbers):
        low, high = float(kind.low), float(kind.high)
        return [low, high, *{low + (high - low) / 2, low + (high - low) / 3}]
    values = kind.all_values
    return [values[0], values[-1], *values[1:-1][:2]]


def _both_ways(values):
    """Return the pair of extremes, and each of them with other values."""
    return [(values[0], values[1]), *((values[0], other) for other in values[2:4]), *(
        (other, values[1]) for other in values[2:4])]


def _rows_of(columns, make):
    """Return pairs of rows: all columns change, or one does."""
    first = [values[0] for values in columns]
    pairs = [(make(first), make([values[1 % len(values)] for values in columns]))]
    if len(columns) > 1:
        for k in list(range(len(columns)))[:4]:
            pairs.append((make(first), make([*first[:k], columns[k][1 % len(columns[k])], *first[k + 1:]])))
    return pairs


def _of_tables(domain, relation):
    """Return pairs of tables of a few rows: the last row is another one, or is gone."""
    if relation not in (Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE):
        raise ValueError("claim must be a PrivacyGuarantee with the neighbours substitution or add_remove, where pairs "
                         "is a Domain: whether a row is replaced or removed is part of the claim")
    kinds = [domain[name] for name in domain.names]
    if not all(isinstance(kind, Numbers | Categories) for kind in kinds):
        raise ValueError("pairs must be a Domain of Numbers and Categories, or a list of pairs")
    columns = [_values(kind) for kind in kinds]
    dtype = float if all(isinstance(kind, Numbers) for kind in kinds) else object
    rows = [[row] for pair in _rows_of(columns, list) for row in pair]
    low, others = rows[0][0], [row[0] for row in rows[1::2]]
    return neighbours_of(_table([low] * _ROWS, dtype), [_table([row], dtype) for row in others], relation)


def _table(rows, dtype):
    out = np.empty((len(rows), len(rows[0])), dtype)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def neighbours_of(table, others, relation):
    """Return pairs of tables: with the last row replaced by others, or with another row more."""
    if relation is Neighbours.SUBSTITUTION:
        return [(table, np.concatenate([table[:-1], row])) for row in others]
    return [(np.concatenate([table, row]), table) for row in [table[-1:], *others]]


def graph_pairs(n_nodes):
    """Return pairs of adjacency matrices of which one has one edge more: it is rare, common, or joins hubs."""
    empty = np.zeros((n_nodes, n_nodes), np.uint8)
    full = 1 - np.eye(n_nodes, dtype=np.uint8)
    hubs = empty.copy()  # (nodes 0 and 1 are joined with all others: no edge makes more triangles)
    hubs[:2, 2:], hubs[2:, :2] = 1, 1
    path = np.eye(n_nodes, k=1, dtype=np.uint8)
    path += path.T
    return [(graph, _flipped(graph, *edge)) for graph, edge in (
        (hubs, (0, 1)), (empty, (0, 1)), (full, (0, 1)), (path, (0, n_nodes - 1)), (hubs, (0, n_nodes - 1)))]


def _flipped(graph, i, j):
    other = graph.copy()
    other[i, j] = other[j, i] = 1 - graph[i, j]
    return other


def list_pairs(n_nodes):
    """Return pairs of ((the row of user 0), [0]) that differ in one entry: of no neighbours, of many, of all."""
    rows = np.zeros((3, n_nodes), np.uint8)
    rows[1, n_nodes // 2:], rows[2, 1:] = 1, 1
    found = []
    for row in rows:
        other = row.copy()
        other[1] ^= 1
        found.append(((row[None], [0]), (other[None], [0])))
    return found


def node_pairs(n_nodes):
    """Return pairs of adjacency matrices of which one has one node more: joined with all, with none, with a hub."""
    full = 1 - np.eye(n_nodes, dtype=np.uint8)
    empty = np.zeros_like(full)
    star = empty.copy()
    star[-1, :-1] = star[:-1, -1] = 1
    return [(graph, graph[:-1, :-1]) for graph in (star, full, empty, star[::-1, ::-1])]


#: What graphs are tried for a relation of graphs, by the number of nodes.
PAIRS_OF_GRAPHS = {Neighbours.EDGE: graph_pairs, Neighbours.NODE: node_pairs}
