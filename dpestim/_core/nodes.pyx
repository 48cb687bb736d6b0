"""Graphs for whole nodes: the projection to a largest degree, and the triangles themselves."""

from libc.stdint cimport int32_t, int64_t


def project(
    const int32_t[::1] first,   # IN   (m,) one end of each edge, in the order in which edges are looked at
    const int32_t[::1] second,  # IN   (m,) the other end
    int32_t bound,              # IN   the largest degree
    int32_t[::1] degrees,       # OUT  (n,) zeros: degrees of the edges that are kept
):
    """Keep each edge whose two ends have less than `bound` kept ones so far; return how many are kept. O(m)."""
    cdef Py_ssize_t e, m = first.shape[0]
    cdef int32_t u, v
    cdef int64_t kept = 0
    if second.shape[0] != m:
        raise ValueError("first and second differ in length")
    with nogil:
        for e in range(m):
            u = first[e]
            v = second[e]
            if degrees[u] < bound and degrees[v] < bound:
                degrees[u] += 1
                degrees[v] += 1
                kept += 1
    return kept


def list_triangles(
    const int64_t[::1] starts,      # IN   (n + 1,) of nodes from the highest degree down, as `graphs.triangles`
    const int32_t[::1] neighbours,  # IN   (2 m,) ascending within a node
    int32_t[::1] marks,             # TMP  (n,) zeros; zeros again at the end
    int32_t[:, ::1] corners,        # OUT  (number of triangles, 3)
):
    """Write the corners of each triangle; return how many there are. O(m^1.5)."""
    cdef Py_ssize_t n = starts.shape[0] - 1, u
    cdef int64_t p, q, total = 0, last, room = corners.shape[0]
    cdef int32_t v, w
    if n < 0 or marks.shape[0] < n or starts[n] != neighbours.shape[0] or corners.shape[1] != 3:
        raise ValueError("starts, neighbours, marks and corners differ in length")
    with nogil:
        for u in range(n):
            last = starts[u]
            while last < starts[u + 1] and neighbours[last] < u:
                marks[neighbours[last]] = 1
                last += 1
            for p in range(starts[u], last):
                v = neighbours[p]
                q = starts[v]
                while q < starts[v + 1] and neighbours[q] < v:
                    w = neighbours[q]
                    if marks[w]:
                        if total < room:
                            corners[total, 0] = <int32_t>u
                            corners[total, 1] = v
                            corners[total, 2] = w
                        total += 1
                    q += 1
            for p in range(starts[u], last):
                marks[neighbours[p]] = 0
    return total
