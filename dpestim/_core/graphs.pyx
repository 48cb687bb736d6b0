"""Undirected graphs without loops, as compressed sparse rows: triangles, common neighbours of any two nodes, sums over these.

Nodes are numbered from the highest degree down, and the neighbours of a node are listed in this order. So a node has at
most sqrt(2 m) neighbours of lower number, where m is the number of edges.
"""

from libc.stdint cimport int32_t, int64_t


def triangles(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   (2 m,) ascending within a node
    int32_t[::1] marks,             # TMP  (n,) zeros; zeros again at the end
    int32_t[::1] counts,            # OUT  (2 m,) zeros: triangles of the edge (u, v), v < u, at its place in u's list
):
    """Count the triangles of each edge; return those of the graph. O(m^1.5)."""
    cdef Py_ssize_t n = starts.shape[0] - 1, u
    cdef int64_t p, q, total = 0, last
    cdef int32_t v, w
    if n < 0 or marks.shape[0] < n or counts.shape[0] != neighbours.shape[0] or starts[n] != neighbours.shape[0]:
        raise ValueError("starts, neighbours, marks and counts differ in length")
    with nogil:
        for u in range(n):
            last = starts[u]
            while last < starts[u + 1] and neighbours[last] < u:
                marks[neighbours[last]] = <int32_t>(last - starts[u]) + 1
                last += 1
            for p in range(starts[u], last):
                v = neighbours[p]
                q = starts[v]
                while q < starts[v + 1] and neighbours[q] < v:
                    w = neighbours[q]
                    if marks[w]:
                        counts[p] += 1
                        counts[q] += 1
                        counts[starts[u] + marks[w] - 1] += 1
                        total += 1
                    q += 1
            for p in range(starts[u], last):
                marks[neighbours[p]] = 0
    return total


def most_common(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   (2 m,) ascending within a node
    int64_t[::1] ahead,             # TMP  (n,) starts of the lists; afterwards places in them
    int32_t[::1] common,            # TMP  (n,) zeros; zeros again at the end
    int32_t[::1] touched,           # TMP  (n,)
    int32_t[::1] most,              # OUT  (2 largest degree + 1,) minus ones
):
    """Write the most common neighbours of two nodes by the other neighbours that they have.

    Afterwards most[s] is the largest number of common neighbours of any two nodes that have at least s neighbours
    between them (common ones count twice, the two nodes themselves not), -1 where no two nodes with a common neighbour
    have so many. Pairs that a pair known already beats in both are not looked at: of a node with d neighbours those of
    at most t neighbours, where most[d + t] >= t.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, i, k, n_touched, x
    cdef int64_t p, q, degree, other, least, both, place
    cdef int32_t j, found
    if n < 0 or starts[n] != neighbours.shape[0] or ahead.shape[0] < n or common.shape[0] < n or touched.shape[0] < n:
        raise ValueError("starts, neighbours and what is theirs differ in length")
    if n and most.shape[0] < 2 * (starts[1] - starts[0]) + 1:
        raise ValueError("most must have a place for every number of neighbours")
    with nogil:
        for i in range(n):
            degree = starts[i + 1] - starts[i]
            least = degree
            while least > 0 and most[degree + least] < least:
                least -= 1
            if least >= degree:  # (and so it is for all that follow, whose degrees are no larger)
                break
            n_touched = 0
            for p in range(starts[i], starts[i + 1]):
                k = neighbours[p]
                ahead[k] += 1  # (its neighbours up to i were met before)
                for q in range(ahead[k], starts[k + 1]):
                    j = neighbours[q]
                    if starts[j + 1] - starts[j] <= least:
                        break
                    if common[j] == 0:
                        touched[n_touched] = j
                        n_touched += 1
                    common[j] += 1
            for p in range(starts[i], starts[i + 1]):  # neighbours of i: the edge between the two is no neighbour's
                j = neighbours[p]
                if j > i and common[j] > 0:
                    both = degree + starts[j + 1] - starts[j] - 2
                    found = common[j]
                    common[j] = 0
                    place = both
                    while place >= 0 and most[place] < found:
                        most[place] = found
                        place -= 1
            for x in range(n_touched):
                j = touched[x]
                found = common[j]
                if found == 0:
                    continue
                common[j] = 0
                place = degree + starts[j + 1] - starts[j]
                while place >= 0 and most[place] < found:
                    most[place] = found
                    place -= 1
    return 0


def most_beside(
    const int64_t[::1] starts,      # IN   (n + 1,)
    const int32_t[::1] neighbours,  # IN   (2 m,)
    const int32_t[::1] counts,      # IN   (2 m,) triangles of each edge, at both of its places
    const int64_t[::1] weights,     # IN   rising, for each number of triangles; no sum below exceeds 2^62
    const int64_t[::1] sums,        # IN   (n,) the sum of the weights of a node's edges
    const int32_t[::1] order,       # IN   (n,) nodes from the largest sum down
    const int32_t[::1] ranks,       # IN   (n,) the place of each node in this order
    int64_t[::1] beside,            # TMP  (n,) zeros; zeros again at the end
    int32_t[::1] joined,            # TMP  (n,) zeros; zeros again at the end
    int32_t[::1] touched,           # TMP  (n,)
):
    """Return the largest sum, over two nodes i and j, of the weights of all edges from their common neighbours to them.

    Triangles with i and j both are left out of the number of an edge. The sum of two nodes is at most that of the sums
    of their edges, so that nodes are looked at from the largest sum down, until no pair can be larger.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, at, n_touched, x
    cdef int64_t p, q, best = 0, mine
    cdef int32_t i, j, w, less
    if (n < 0 or starts[n] != neighbours.shape[0] or counts.shape[0] != neighbours.shape[0] or sums.shape[0] != n
            or order.shape[0] != n or ranks.shape[0] != n or beside.shape[0] < n or joined.shape[0] < n
            or touched.shape[0] < n):
        raise ValueError("starts, neighbours and what is theirs differ in length")
    with nogil:
        for at in range(n):
            i = order[at]
            if 2 * sums[i] <= best:
                break
            n_touched = 0
            for p in range(starts[i], starts[i + 1]):
                joined[neighbours[p]] = 1
            for p in range(starts[i], starts[i + 1]):
                w = neighbours[p]
                for q in range(starts[w], starts[w + 1]):
                    j = neighbours[q]
                    if ranks[j] <= at or sums[i] + sums[j] <= best:  # (best does not change before all were added)
                        continue
                    if beside[j] == 0:
                        touched[n_touched] = j
                        n_touched += 1
                        beside[j] = 1  # (a sum of zeros was touched, too)
                    less = joined[j]
                    beside[j] += weights[counts[p] - less] + weights[counts[q] - less]
            for p in range(starts[i], starts[i + 1]):
                joined[neighbours[p]] = 0
            for x in range(n_touched):
                j = touched[x]
                mine = beside[j] - 1
                beside[j] = 0
                if mine > best:
                    best = mine
    return best
