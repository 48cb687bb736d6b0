"""Rows while a tree grows: exact counts of its nodes and leaves, of rows that are here, or in parts.

A tree asks once a level for the counts of (node, bin, class) of each column, and once for its leaves. All answers are
integers that add up, so that it does not matter which rows are together.
"""

from dataclasses import replace

import numpy as np

from dpestim._core import trees
from dpestim.passes import Blueprint, Request
from dpestim.records import record

#: Numbers in the tables that a part sends at a time: 16 MiB.
_MOST_CELLS = 1 << 21


class Rows:
    """Rows as codes, which know in which node of the last level each of them is.

    Parameters
    ----------
    codes : ndarray of uint8, of shape (n_features, n_rows)
    labels, amounts : ndarray
        As `_core.trees` takes them.
    bins : tuple
        Of columns.
    n_numbers : int
        How many numbers are counted in a node.
    """

    def __init__(self, codes, labels, amounts, bins, n_numbers):
        self._codes, self._labels, self._amounts = codes, labels, amounts
        self._bins, self._n_numbers = bins, n_numbers
        self.start()

    def start(self):
        """Put all rows into the root."""
        self._nodes, self._level = np.zeros(self._codes.shape[1], np.int32), 0

    def counts(self):
        """Return how many rows each node of the level has."""
        return np.bincount(self._nodes, minlength=1 << self._level)

    def tables(self, asked, counts, most):
        """Yield (nodes, their tables of (node, bin, number), one for each column), of so many nodes at most.

        Parameters
        ----------
        asked : ndarray of int
            Ascending; all nodes with rows are among them.
        counts : ndarray of int
            As `counts` returns them.
        most : int
        """
        for now, inside, own in parts_of_level(asked, counts, self._nodes, most):
            yield now, self._tables(inside, own, len(now))

    def tables_of(self, nodes):
        """Return the tables of some nodes."""
        place = np.full(1 << self._level, -1, np.int32)  # (a row of another node is in no table)
        place[nodes] = np.arange(len(nodes))
        return list(self._tables(slice(None), place[self._nodes], len(nodes)))

    def _tables(self, inside, own, n_nodes):
        labels, amounts = (part if len(part) < 2 else part[inside] for part in (self._labels, self._amounts))
        for codes, bins in zip(self._codes[:, inside], self._bins):
            table = np.zeros((n_nodes, bins.size, self._n_numbers), np.int64)
            trees.add_bins(np.ascontiguousarray(codes), own, labels, amounts, table)
            yield table

    def split(self, features, shifts, thresholds):
        """Send rows down one level, by the split of each node."""
        nodes = self._nodes
        right = self._codes[features[nodes], np.arange(len(nodes))] - shifts[nodes] > thresholds[nodes]
        self._nodes, self._level = 2 * nodes + right.astype(np.int32), self._level + 1

    def leaves(self, structure):
        """Return the sums of all leaves, of shape (1, leaves, numbers)."""
        n_leaves = structure[0].shape[1] + 1
        totals = np.zeros((1, n_leaves, self._n_numbers), np.int64)
        trees.add_leaves(self._codes, *structure, n_leaves.bit_length() - 1, np.zeros(0, np.int32), self._labels,
                         self._amounts, totals)
        return totals


def parts_of_level(asked, counts, nodes, most):
    """Yield (nodes that are asked, which rows are in them, in which of these each row is), of so many nodes at most.

    Parameters
    ----------
    asked : ndarray of int
        Nodes of a level, ascending; all that have rows are among them.
    counts : ndarray of int
        How many rows each node has.
    nodes : ndarray of int32
        The node of each row.
    most : int
    """
    place = np.zeros(len(counts), np.int32)
    place[asked] = np.arange(len(asked), dtype=np.int32)
    own = place[nodes]
    if len(asked) <= most:
        yield asked, slice(None), own
        return
    order, ends = np.argsort(own, kind="stable"), np.concatenate([[0], np.cumsum(counts[asked])])
    for first in range(0, len(asked), most):
        now = asked[first : first + most]
        inside = order[ends[first] : ends[first + len(now)]]
        yield now, inside, own[inside] - np.int32(first)


@record
class CountNodes(Request):
    """Asks rows in parts for [the counts of the nodes of a level, the table of each column for some of these]."""

    blueprint: Blueprint
    domain: object
    #: (features, shifts, thresholds) of each level above
    splits: tuple = ()
    nodes: np.ndarray | None = None

    def of_rows(self, rows, place):
        """Return exact counts and tables."""
        part = self.blueprint.build()._read_part(rows, self.domain)
        for split in self.splits:
            part.split(*split)
        return [part.counts(), *part.tables_of(self.nodes)]

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return [a + b for a, b in zip(one, other)]


@record
class SumLeaves(Request):
    """Asks rows in parts for the exact sums of the leaves of a tree."""

    blueprint: Blueprint
    domain: object
    structure: tuple

    def of_rows(self, rows, place):
        """Return exact sums."""
        return self.blueprint.build()._read_part(rows, self.domain).leaves(self.structure)

    @staticmethod
    def add(one, other):
        """Return the sum of both; neither is changed."""
        return one + other


class PartRows(Rows):
    """Rows in parts, that answer as `Rows` do: they are asked by a function, and none of them is here.

    Parameters
    ----------
    ask : callable
        Returns the merged answer to a request.
    request : CountNodes
        Of which splits and nodes are replaced.
    n_numbers : int
    """

    def __init__(self, ask, request, n_numbers):
        self._ask, self._request = ask, request
        self._cells = sum(bins.size for bins in request.domain.bins) * n_numbers
        self.start()

    def start(self):
        """Let all later requests begin at the root."""
        self._request, self._level = replace(self._request, splits=()), 0

    def counts(self):
        """Return how many rows each node of the level has; the tables of all of them come along where they are small.

        Then each level is one pass over the parts.
        """
        width = 1 << self._level
        fits = width * self._cells <= _MOST_CELLS
        counts, *tables = self._ask(replace(self._request, nodes=np.arange(width if fits else 0)))
        self._known = tables if fits else None
        return counts

    def tables(self, asked, counts, most):
        """Yield (nodes, their tables), as those of rows that are here."""
        if self._known is not None:
            yield asked, [table[asked] for table in self._known]
            return
        most = max(1, min(most, _MOST_CELLS // self._cells))
        for first in range(0, len(asked), most):
            now = asked[first : first + most]
            yield now, self._ask(replace(self._request, nodes=now))[1:]

    def split(self, *split):
        """Let all later requests go down one level more."""
        self._request, self._level = replace(self._request, splits=(*self._request.splits, split)), self._level + 1

    def leaves(self, structure):
        """Return the sums of all leaves."""
        return self._ask(SumLeaves(self._request.blueprint, self._request.domain, tuple(structure)))
