"""Trees on small codes: numbers to bins, rows to leaves, and sums in leaves and nodes. Each row by itself.

A tree is complete: children of node k are 2 k + 1 and 2 k + 2. A row goes left where its code, counted from the shift
of the node (modulo 256), is at most the threshold: with shift 0 that is an order, with threshold 0 one code alone.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np


def bin_column(
    const double[::1] values,   # IN   a column
    const double[::1] edges,    # IN   inner edges, ascending, at most 255
    double per,                 # IN   bins a unit where they are equally wide, else 0
    double low,                 # IN   where the first bin starts, where they are equally wide
    uint8_t[::1] out,           # OUT  how many edges are at most the value; of NaN, the bin in the middle
):
    """Write the bin of each row."""
    cdef Py_ssize_t i, n = values.shape[0], m = edges.shape[0], at, size, half
    cdef double value, guess
    if out.shape[0] != n or not 0 < m <= 255:
        raise ValueError("out differs in length, or there are no edges, or too many")
    with nogil:
        for i in range(n):
            value = values[i]
            if value != value:
                at = (m + 1) // 2
            elif per > 0:
                guess = (value - low) * per
                at = 0 if not guess > 0 else m if guess >= m else <Py_ssize_t>guess
                while at > 0 and value < edges[at - 1]:
                    at -= 1
                while at < m and value >= edges[at]:
                    at += 1
            else:
                at, size = 0, m
                while size > 0:
                    half = size // 2
                    if value >= edges[at + half]:
                        at += half + 1
                        size -= half + 1
                    else:
                        size = half
            out[i] = <uint8_t>at


#: Rows that go down a tree together: level by level, so that no row waits for another, and codes stay in the cache.
cdef enum:
    BLOCK = 1024


cdef node_table(features, shifts, thresholds, Py_ssize_t n_features, Py_ssize_t n_rows, int depth):
    """Return nodes as one integer each: where codes of its feature start, its shift and its threshold."""
    cdef int64_t inner = ((<int64_t>1) << depth) - 1
    if not 0 <= depth <= 20 or features.shape[1] != inner or shifts.shape != features.shape or \
            thresholds.shape != features.shape:
        raise ValueError("features, shifts and thresholds must have an entry for each inner node")
    if features.size and not (0 <= features.min() and features.max() < n_features):
        raise ValueError("features must be rows of codes")
    if n_rows * n_features >= (<int64_t>1) << 46:
        raise ValueError("codes must be fewer than 2^46")
    nodes = (features.astype(np.int64) * n_rows) << 16 | shifts.astype(np.int64) << 8 | thresholds
    return np.ascontiguousarray(nodes) if nodes.size else np.zeros((features.shape[0], 1), np.int64)


cdef inline void descend(const uint8_t* codes, Py_ssize_t n, const int64_t* nodes, const int32_t* starts, int depth,
                         int32_t* at) noexcept nogil:
    """Write the leaves of n <= BLOCK rows, in one tree, or each in the tree whose nodes start where `starts` says."""
    cdef Py_ssize_t i
    cdef int64_t node
    cdef int level
    cdef int32_t inner = (<int32_t>1 << depth) - 1
    for i in range(n):
        at[i] = 0
    for level in range(depth):
        if starts == NULL:
            for i in range(n):
                node = nodes[at[i]]
                at[i] = 2 * at[i] + 1 + (<uint8_t>(codes[(node >> 16) + i] - <uint8_t>(node >> 8)) > <uint8_t>node)
        else:
            for i in range(n):
                node = nodes[starts[i] + at[i]]
                at[i] = 2 * at[i] + 1 + (<uint8_t>(codes[(node >> 16) + i] - <uint8_t>(node >> 8)) > <uint8_t>node)
    for i in range(n):
        at[i] -= inner


def leaves(
    const uint8_t[:, ::1] codes,     # IN   a row for each feature
    features, shifts, thresholds,    # IN   (int32, uint8, uint8) of shape (1, inner nodes)
    int depth,
    int32_t[::1] out,                # OUT  the leaf of each row
):
    """Write the leaf of each row in one tree."""
    cdef Py_ssize_t block, first, n = codes.shape[1]
    cdef const int64_t[:, ::1] nodes = node_table(features, shifts, thresholds, codes.shape[0], n, depth)
    if out.shape[0] != n:
        raise ValueError("out differs in length")
    if not n or not codes.shape[0]:
        return
    with nogil:
        for block in range((n + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            descend(&codes[0, first], min(BLOCK, n - first), &nodes[0, 0], NULL, depth, &out[first])


def add_leaves(
    const uint8_t[:, ::1] codes,     # IN   a row for each feature
    features, shifts, thresholds,    # IN   (int32, uint8, uint8) of shape (trees, inner nodes)
    int depth,
    const int32_t[::1] trees,        # IN   the tree of each row, or nothing: each row is in all trees
    const int32_t[::1] labels,       # IN   the class of each row, or one entry, for all rows
    const int64_t[::1] amounts,      # IN   a number of each row, or none
    int64_t[:, :, ::1] totals,       # IO   (trees, leaves, classes), and where there are amounts one more, their sum
):
    """Add rows to the sums of their leaves."""
    cdef Py_ssize_t n = codes.shape[1], inner = ((<Py_ssize_t>1) << depth) - 1, block, first, size, i, tree, k
    cdef bint in_all = trees.shape[0] == 0, one_label = labels.shape[0] == 1, summed = amounts.shape[0] > 0
    cdef Py_ssize_t n_trees = totals.shape[0], last = totals.shape[2] - 1
    cdef const int64_t[:, ::1] nodes = node_table(features, shifts, thresholds, codes.shape[0], n, depth)
    if features.shape[0] != n_trees or totals.shape[1] != inner + 1 or last < summed:
        raise ValueError("totals must have an entry for each tree, leaf and class")
    if (not in_all and trees.shape[0] != n) or (not one_label and labels.shape[0] != n) or \
            (summed and amounts.shape[0] != n):
        raise ValueError("trees, labels and amounts must have one entry for each row, or none, or one label")
    if not n or not codes.shape[0] or not n_trees:
        return
    cdef int32_t at[BLOCK]
    cdef int32_t starts[BLOCK]
    with nogil:
        for block in range((n + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            size = min(BLOCK, n - first)
            if not in_all:
                for i in range(size):
                    tree = trees[first + i]
                    starts[i] = <int32_t>(tree * inner) if 0 <= tree < n_trees else 0
                descend(&codes[0, first], size, &nodes[0, 0], starts, depth, at)
                for i in range(size):
                    tree, k = trees[first + i], labels[0 if one_label else first + i]
                    if 0 <= tree < n_trees and 0 <= k <= last - summed:
                        totals[tree, at[i], k] += 1
                        if summed:
                            totals[tree, at[i], last] += amounts[first + i]
                continue
            for tree in range(n_trees):
                descend(&codes[0, first], size, &nodes[tree, 0], NULL, depth, at)
                for i in range(size):
                    k = labels[0 if one_label else first + i]
                    if 0 <= k <= last - summed:
                        totals[tree, at[i], k] += 1
                        if summed:
                            totals[tree, at[i], last] += amounts[first + i]


def add_bins(
    const uint8_t[::1] codes,        # IN   of one feature
    const int32_t[::1] nodes,        # IN   of each row
    const int32_t[::1] labels,       # IN   the class of each row, or one entry, for all rows
    const int64_t[::1] amounts,      # IN   a number of each row, or none
    int64_t[:, :, ::1] totals,       # IO   (nodes, bins, classes), and where there are amounts one more, their sum
):
    """Add rows to the histogram of one feature in each node."""
    cdef Py_ssize_t i, n = codes.shape[0], k
    cdef bint one_label = labels.shape[0] == 1, summed = amounts.shape[0] > 0
    cdef Py_ssize_t last = totals.shape[2] - 1
    if nodes.shape[0] != n or (not one_label and labels.shape[0] != n) or (summed and amounts.shape[0] != n) or \
            last < summed:
        raise ValueError("nodes, labels and amounts must have an entry for each row")
    with nogil:
        for i in range(n):
            k = labels[0 if one_label else i]
            if not (0 <= nodes[i] < totals.shape[0] and codes[i] < totals.shape[1] and 0 <= k <= last - summed):
                continue
            totals[nodes[i], codes[i], k] += 1
            if summed:
                totals[nodes[i], codes[i], last] += amounts[i]
