"""Patterns of noisy graphs: common neighbours of all pairs of nodes, in rows of bits or in lists; products with rows.

A noisy graph is dense where epsilon is small: rows of bits take n^2 / 8 bytes, and all pairs n^3 / 128 words. Where it
is sparse, lists take as many steps as there are paths of two edges.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "list_patterns.h" nogil:
    void dpestim_common(const uint64_t *rows, size_t width, size_t first, size_t last, const uint64_t *row,
                        int64_t *counts) noexcept
    void dpestim_common_before(const uint64_t *rows, size_t width, size_t first, size_t last, const uint64_t *row,
                               int64_t *counts) noexcept

#: Rows that are compared with others while these are at hand.
cdef enum:
    TILE = 128


def rows_of_bits(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   nodes below n
    uint64_t[:, ::1] out,           # OUT  (n, ceil(n / 64)) zeros; afterwards bit j of row i, and bit i of row j
):
    """Set the bits of all edges, in either direction."""
    cdef Py_ssize_t n = out.shape[0], i
    cdef int64_t p
    cdef int32_t j
    if starts.shape[0] != n + 1 or starts[n] > neighbours.shape[0] or out.shape[1] != (n + 63) // 64:
        raise ValueError("starts, neighbours and out differ in length")
    with nogil:
        for i in range(n):
            for p in range(starts[i], starts[i + 1]):
                j = neighbours[p]
                out[i, j >> 6] |= <uint64_t>1 << (j & 63)
                out[j, i >> 6] |= <uint64_t>1 << (i & 63)
    return 0


def common_of_bits(
    const uint64_t[:, ::1] rows,  # IN   (n, ceil(n / 64)) of a symmetric matrix
    const int64_t[::1] weights,   # IN   (n,) of each node
    bint before,                  # IN   whether only common neighbours below both nodes count
    Py_ssize_t first,             # IN   the pairs j < k with first <= k < last
    Py_ssize_t last,
    int64_t[:, ::1] counts,       # TMP  (at least 128, n)
    int64_t[:, ::1] out,          # OUT  (n, 6) zeros; row k: sums over pairs j < k of what follows
):
    """Sum over pairs u, u^2, u w_j, u j, u r and u a: u common neighbours, r neighbours of k below j, a whether joined.

    (Sums of u r are those of `before`, and 0 otherwise.)
    """
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], k, j, block, end, stop
    cdef int64_t u, rank
    cdef uint64_t joined
    if (width != (n + 63) // 64 or weights.shape[0] != n or out.shape[0] != n or out.shape[1] != 6
            or counts.shape[0] < TILE or counts.shape[1] < n or not 0 <= first <= last <= n):
        raise ValueError("rows, weights, counts and out differ in length")
    with nogil:
        while first < last:
            end = min(first + TILE, last)
            block = 0
            while block < end:
                stop = min(block + TILE, end)
                for k in range(max(first, block + 1), end):
                    if before:
                        dpestim_common_before(&rows[0, 0], width, block, min(stop, k), &rows[k, 0], &counts[k - first, 0])
                    else:
                        dpestim_common(&rows[0, 0], width, block, min(stop, k), &rows[k, 0], &counts[k - first, 0])
                block = stop
            for k in range(first, end):
                rank = 0
                for j in range(k):
                    u = counts[k - first, j]
                    joined = rows[k, j >> 6] >> (j & 63) & 1
                    out[k, 0] += u
                    out[k, 1] += u * u
                    out[k, 2] += u * weights[j]
                    out[k, 3] += u * j
                    out[k, 4] += u * rank
                    out[k, 5] += u if joined else 0
                    if before:
                        rank += <int64_t>joined
            first = end
    return 0


def common_of_lists(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   (2 m,) ascending within a node, each edge at both of its ends
    const int64_t[::1] weights,     # IN   (n,) of each node
    bint before,                    # IN   as for `common_of_bits`
    int32_t[::1] common,            # TMP  (n,) zeros; zeros again at the end
    int32_t[::1] touched,           # TMP  (n,)
    int64_t[:, ::1] out,            # OUT  (n, 6) zeros; as for `common_of_bits`
):
    """Write the same sums by going through all paths of two edges."""
    cdef Py_ssize_t n = starts.shape[0] - 1, k, n_touched, x
    cdef int64_t p, q, u, rank, low, high, middle
    cdef int32_t i, j
    if (n < 0 or starts[n] != neighbours.shape[0] or weights.shape[0] != n or common.shape[0] < n
            or touched.shape[0] < n or out.shape[0] != n or out.shape[1] != 6):
        raise ValueError("starts, neighbours and what is theirs differ in length")
    with nogil:
        for k in range(n):
            n_touched = 0
            for p in range(starts[k], starts[k + 1]):
                i = neighbours[p]
                if before and i >= k:
                    break
                for q in range(starts[i], starts[i + 1]):
                    j = neighbours[q]
                    if j >= k:
                        break
                    if before and j <= i:
                        continue
                    if common[j] == 0:
                        touched[n_touched] = j
                        n_touched += 1
                    common[j] += 1
            for x in range(n_touched):
                j = touched[x]
                u = common[j]
                common[j] = 0
                low, high = starts[k], starts[k + 1]
                while low < high:  # the first neighbour of k that is not below j
                    middle = (low + high) >> 1
                    if neighbours[middle] < j:
                        low = middle + 1
                    else:
                        high = middle
                rank = low - starts[k] if before else 0
                out[k, 0] += u
                out[k, 1] += u * u
                out[k, 2] += u * weights[j]
                out[k, 3] += u * j
                out[k, 4] += u * rank
                if low < starts[k + 1] and neighbours[low] == j:
                    out[k, 5] += u
    return 0


def within(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   ascending within a node, each edge at its end of lower number
    const int64_t[::1] firsts,      # IN   (n_lists + 1,)
    const int32_t[::1] nodes,       # IN   nodes below n, ascending within a list
    int64_t[::1] out,               # OUT  (n_lists,)
):
    """Write how many pairs of nodes of each list are joined."""
    cdef Py_ssize_t n_lists = out.shape[0], r
    cdef int64_t p, q, found, low, high, middle
    cdef int32_t i, j
    if starts.shape[0] < 1 or firsts.shape[0] != n_lists + 1 or (n_lists and firsts[n_lists] > nodes.shape[0]) or (
            starts[starts.shape[0] - 1] > neighbours.shape[0]):
        raise ValueError("starts, neighbours, firsts, nodes and out differ in length")
    with nogil:
        for r in range(n_lists):
            found = 0
            for p in range(firsts[r], firsts[r + 1]):
                i = nodes[p]
                low = starts[i]
                for q in range(p + 1, firsts[r + 1]):
                    j = nodes[q]
                    high = starts[i + 1]
                    while low < high:
                        middle = (low + high) >> 1
                        if neighbours[middle] < j:
                            low = middle + 1
                        else:
                            high = middle
                    found += low < starts[i + 1] and neighbours[low] == j
            out[r] = found
    return 0


def times(
    const uint8_t[:, ::1] rows,  # IN   (n, width) bits, lowest first
    const double[::1] x,         # IN   (8 width,)
    double[:, ::1] sums,         # TMP  (width, 256)
    double[::1] out,             # OUT  (n,)
):
    """Write the product of a matrix of bits with a vector: sums of eight entries are looked up by a byte."""
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], i, b, byte, low
    cdef double total
    if x.shape[0] != 8 * width or sums.shape[0] != width or sums.shape[1] != 256 or out.shape[0] != n:
        raise ValueError("rows, x, sums and out differ in length")
    with nogil:
        for b in range(width):
            sums[b, 0] = 0
            for byte in range(1, 256):
                low = 0
                while not byte >> low & 1:
                    low += 1
                sums[b, byte] = sums[b, byte & (byte - 1)] + x[8 * b + low]
        for i in range(n):
            total = 0
            for b in range(width):
                total += sums[b, rows[i, b]]
            out[i] = total
    return 0
