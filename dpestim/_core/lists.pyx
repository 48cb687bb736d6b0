"""Neighbour lists under randomised response: which slots are flipped, and lists with these slots flipped.

A user's slots are numbered from 0: one for each node that the user may report as a neighbour, in ascending order.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


def flips(
    const uint64_t[::1] words,       # IN   `per` words a user
    Py_ssize_t per,                  # IN
    const int64_t[::1] sizes,        # IN   (n,) slots of each user
    const uint64_t[::1] thresholds,  # IN   (B + 1,) 2^64 P[gap < k], rounded down, for k = 0, ..., B
    const int32_t[::1] guide,        # IN   (2^bits,) the largest k whose threshold is at most the least word of a cell
    int bits,                        # IN
    int32_t[::1] out,                # OUT  (n per,) slots that are flipped, ascending, one user after the other
    int32_t[::1] counts,             # OUT  (n,) flips of each user
    int64_t[::1] places,             # OUT  (n,) the slot that was reached; -1 where the user is done
    int32_t[::1] used,               # OUT  (n,) words of each user that were used
):
    """Write the flips of users; return their number.

    A word says how many slots in a row stay as they are: a gap below B, after which a slot is flipped, or B slots, after
    which nothing is. A word that equals a threshold is not enough to decide: it is not used, and the user is not done.
    """
    cdef Py_ssize_t n = sizes.shape[0], last = thresholds.shape[0] - 1, u, k, step, total = 0
    cdef int64_t at, size
    cdef uint64_t word
    if n and (words.shape[0] < n * per or out.shape[0] < n * per or counts.shape[0] < n or places.shape[0] < n
              or used.shape[0] < n):
        raise ValueError("words, sizes and what is written differ in length")
    if last < 1 or not 1 <= bits <= 30 or guide.shape[0] != (<Py_ssize_t>1) << bits:
        raise ValueError("thresholds and guide differ in length")
    with nogil:
        for u in range(n):
            size, at, k = sizes[u], 0, 0
            counts[u] = 0
            while at < size and k < per:
                word = words[u * per + k]
                step = guide[word >> (64 - bits)]
                while step < last and thresholds[step + 1] <= word:
                    step += 1
                if step and thresholds[step] == word:
                    break
                k += 1
                at += step
                if step < last:
                    if at < size:
                        out[total] = <int32_t>at
                        total += 1
                        counts[u] += 1
                    at += 1
            places[u] = -1 if at >= size else at
            used[u] = <int32_t>k
    return total


def exchange(
    const int32_t[::1] flipped,     # IN   slots, ascending, one user after the other
    const int32_t[::1] counts,      # IN   (n,) flips of each user
    const int32_t[::1] neighbours,  # IN   nodes, ascending, one user after the other
    const int64_t[::1] starts,      # IN   (n + 1,) where the list of each user begins
    const int64_t[::1] users,       # IN   (n,) the number of each user, who is no neighbour of itself
    bint half,                      # IN   whether a user reports nodes of higher number only
    int32_t[::1] out,               # OUT  (flips + neighbours,) reported nodes, ascending
    int64_t[::1] lengths,           # OUT  (n,) reported nodes of each user
):
    """Write the neighbours that are reported: those that are not flipped, and flipped ones that are none; return how many.
    """
    cdef Py_ssize_t n = users.shape[0], u, f = 0, stop, total = 0
    cdef int64_t p
    cdef int32_t node, other, none = 2147483647
    if counts.shape[0] != n or starts.shape[0] != n + 1 or lengths.shape[0] != n or (
            out.shape[0] < flipped.shape[0] + neighbours.shape[0]) or (n and starts[n] > neighbours.shape[0]):
        raise ValueError("flipped, counts, neighbours, starts and users differ in length")
    with nogil:
        for u in range(n):
            stop = f + counts[u]
            if stop > flipped.shape[0]:
                break
            p = starts[u]
            lengths[u] = -total
            if half:
                while p < starts[u + 1] and neighbours[p] <= users[u]:
                    p += 1
            while f < stop or p < starts[u + 1]:
                node = none
                if f < stop:
                    node = flipped[f]
                    if half or node >= users[u]:
                        node += 1 + (<int32_t>users[u] if half else 0)
                other = neighbours[p] if p < starts[u + 1] else none
                if node == other:
                    f += 1
                    p += 1
                elif node < other:
                    out[total] = node
                    total += 1
                    f += 1
                else:
                    out[total] = other
                    total += 1
                    p += 1
            lengths[u] += total
    return total


def pack(
    const int64_t[::1] starts,  # IN   (n + 1,)
    const int32_t[::1] nodes,   # IN   below 8 width
    uint8_t[:, ::1] out,        # OUT  (n, width) zeros; afterwards bit j at byte j // 8, lowest first
):
    """Set the bits of nodes."""
    cdef Py_ssize_t n = out.shape[0], u
    cdef int64_t p
    if starts.shape[0] != n + 1 or (n and starts[n] > nodes.shape[0]):
        raise ValueError("starts, nodes and out differ in length")
    with nogil:
        for u in range(n):
            for p in range(starts[u], starts[u + 1]):
                out[u, nodes[p] >> 3] |= <uint8_t>(1 << (nodes[p] & 7))
    return 0


def unpack(
    const uint8_t[:, ::1] rows,  # IN   (n, width)
    int64_t[::1] ends,           # OUT  (n,) ones of each row and of those before it
    int32_t[::1] out,            # OUT  as many as fit
):
    """Write the numbers of bits that are 1, row by row; return how many there are, whether or not they fit."""
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1], u, k, total = 0, room = out.shape[0]
    cdef int bit
    cdef uint8_t byte
    if ends.shape[0] != n:
        raise ValueError("rows and ends differ in length")
    with nogil:
        for u in range(n):
            for k in range(width):
                byte = rows[u, k]
                bit = 0
                while byte:
                    if byte & 1:
                        if total < room:
                            out[total] = <int32_t>(8 * k + bit)
                        total += 1
                    byte >>= 1
                    bit += 1
            ends[u] = total
    return total
