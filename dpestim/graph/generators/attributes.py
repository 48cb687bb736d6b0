"""Attributes of nodes as numbers of their combinations, and the edges that count for the attributes of edges."""

import copy
import math

import numpy as np

from dpestim.inputs import CategoryEncoder, category_rows, columns_of, lists_of
from dpestim.inputs.safe_errors import attempt

#: The most combinations of categories.
_MOST = 256


class Attributes:
    """The attributes of all nodes: `codes` are numbers of combinations of categories, None where nodes have none."""

    def __init__(self, categories, y, n_nodes, strict):
        if (y is None) != (categories is None):
            raise ValueError("categories must be declared where nodes have attributes, and only there: pass both "
                             "categories and y, or neither")
        self.codes, self.n_kinds = None, 1
        if y is None:
            return
        shape, error = attempt(np.shape, y)
        if error:
            raise ValueError("y must have one row for each node, with as many attributes as categories has lists")
        self.flat = len(shape) == 1
        if self.flat:
            y = y.to_frame() if hasattr(y, "to_frame") else np.reshape(y, (-1, 1)) if hasattr(y, "dtype") else [
                [value] for value in y]
        table = category_rows(y, strict=strict)
        if table.shape[0] != n_nodes:
            raise ValueError("y must have the attributes of each node of the graph: as many rows as nodes")
        columns = columns_of(table)
        names = list(table.columns) if hasattr(table, "columns") else None
        lists = lists_of(categories, len(columns), names)
        self.encoders = [CategoryEncoder(values, f"attribute {j}", fewest=1) for j, values in enumerate(lists)]
        self.sizes = tuple(len(encoder.categories) for encoder in self.encoders)
        self.n_kinds = math.prod(self.sizes)
        if self.n_kinds > _MOST:
            raise ValueError(f"categories must have at most {_MOST} combinations: take fewer attributes or categories")
        codes = [encoder.encode_total(column) if strict else encoder.encode(column)
                 for encoder, column in zip(self.encoders, columns)]
        self.codes = np.ravel_multi_index([own.astype(np.int64) for own in codes], self.sizes)

    def public(self):
        """Return what is declared, without the codes of nodes."""
        out = copy.copy(self)
        out.codes = None
        return out

    def values(self, codes):
        """Return categories of numbers of combinations."""
        columns = [encoder.categories[own] for encoder, own in zip(
            self.encoders, np.unravel_index(codes, self.sizes))]
        return columns[0] if self.flat else np.stack(columns, axis=1)


def kept_edges(graph, order, most):
    """Return (ends, other ends) of the edges that are among the first `most` ones of both ends, each edge once.

    `order` is the public order of nodes: neighbours of a node that stand earlier come first.
    """
    ranks = np.empty(graph.n_nodes, np.int64)
    ranks[order] = np.arange(graph.n_nodes)
    rows = np.repeat(np.arange(graph.n_nodes, dtype=np.int64), graph.degrees)
    listed = np.lexsort((ranks[graph.neighbours], rows))
    first = np.empty(len(rows), bool)
    first[listed] = np.arange(len(rows)) - graph.starts[rows] < most
    # rows ascend, and so do neighbours in a row: sorted by neighbour, entries are those of the transpose
    both = first & first[np.argsort(graph.neighbours, kind="stable")]
    some = both & (rows < graph.neighbours)
    return rows[some], graph.neighbours[some].astype(np.int64)


def edge_kinds(ends, others, codes, n_kinds):
    """Return the number of edges between each two kinds of nodes, as the lower triangle of a matrix, row by row."""
    high, low = np.maximum(codes[ends], codes[others]), np.minimum(codes[ends], codes[others])
    return np.bincount(high * (high + 1) // 2 + low, minlength=n_kinds * (n_kinds + 1) // 2).astype(np.int64)
