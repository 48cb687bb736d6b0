"""Rows put in the order of their groups: one pass over numbers of groups, no sort."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused group_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused value_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef inline int64_t _place(uint64_t group, int64_t[::1] starts, Py_ssize_t n) noexcept nogil:
    """Return the next place of a group, which then is taken, or -1 where it has none below n."""
    cdef int64_t at
    if group >= <uint64_t>starts.shape[0]:
        return -1
    at = starts[group]
    if at < 0 or at >= n:
        return -1
    starts[group] = at + 1
    return at


def places(
    const group_t[::1] groups,    # IN   number of the group of every row, below len(starts)
    int64_t[::1] starts,          # IN/OUT  where each group starts in `out`; afterwards where it ends
    int64_t[::1] out,             # OUT  row numbers, group by group, ascending within each
):
    """Write which row stands at each place; return whether every row had one."""
    cdef Py_ssize_t n = groups.shape[0], i
    cdef int64_t at = 0
    if out.shape[0] != n:
        raise ValueError("groups and out differ in length")
    with nogil:
        for i in range(n):
            at = _place(groups[i], starts, n)
            if at < 0:
                break
            out[at] = i
    return at >= 0


def gather(
    const group_t[::1] groups,    # IN   as above
    int64_t[::1] starts,          # IN/OUT  as above
    const value_t[:] values,      # IN   one value a row, in steps of any length
    value_t[::1] out,             # OUT  the values, group by group
):
    """Write the values in the order of `places`; return whether every row had a place."""
    cdef Py_ssize_t n = groups.shape[0], i
    cdef int64_t at = 0
    if out.shape[0] != n or values.shape[0] != n:
        raise ValueError("groups, values and out differ in length")
    with nogil:
        for i in range(n):
            at = _place(groups[i], starts, n)
            if at < 0:
                break
            out[at] = values[i]
    return at >= 0


def gather_objects(
    const group_t[::1] groups,    # IN   as above
    int64_t[::1] starts,          # IN/OUT  as above
    object[:] values,             # IN   one object a row, in steps of any length
    object[::1] out,              # OUT  the same objects, group by group
):
    """Do what `gather` does for Python objects."""
    cdef Py_ssize_t n = groups.shape[0], i
    cdef int64_t at = 0
    if out.shape[0] != n or values.shape[0] != n:
        raise ValueError("groups, values and out differ in length")
    for i in range(n):
        at = _place(groups[i], starts, n)
        if at < 0:
            return False
        out[at] = values[i]
    return True
