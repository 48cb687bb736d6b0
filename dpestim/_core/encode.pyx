"""Category codes of a column: contiguous integers by range check, strings and objects by hash look-up.

`objects` and `strings` return the first row whose value is not a category, or -1 when all rows were encoded.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "encode.h" nogil:
    bint dpestim_encode8_8(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint8_t *out) noexcept
    bint dpestim_encode8_16(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint16_t *out) noexcept
    bint dpestim_encode8_32(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint32_t *out) noexcept
    bint dpestim_encode16_8(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint8_t *out) noexcept
    bint dpestim_encode16_16(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint16_t *out) noexcept
    bint dpestim_encode16_32(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint32_t *out) noexcept
    bint dpestim_encode32_8(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint8_t *out) noexcept
    bint dpestim_encode32_16(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint16_t *out) noexcept
    bint dpestim_encode32_32(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint32_t *out) noexcept
    bint dpestim_encode64_8(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint8_t *out) noexcept
    bint dpestim_encode64_16(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint16_t *out) noexcept
    bint dpestim_encode64_32(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint32_t *out) noexcept

ctypedef fused uint_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def integers(
    const uint_t[::1] values,     # IN   a column; signed types are viewed as unsigned of the same width
    uint_t low,                   # IN   the smallest category that the type can hold, modulo 2^width
    uint_t span,                  # IN   the largest such category minus the smallest
    uint32_t first,               # IN   the code of `low`
    code_t[::1] out,              # OUT  codes
):
    """Encode values of a contiguous range; return whether any was outside."""
    cdef size_t n = values.shape[0]
    cdef bint bad = False
    if out.shape[0] != values.shape[0]:
        raise ValueError("values and out differ in length")
    if n == 0:
        return False
    with nogil:
        if uint_t is uint8_t and code_t is uint8_t:
            bad = dpestim_encode8_8(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint8_t and code_t is uint16_t:
            bad = dpestim_encode8_16(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint8_t and code_t is uint32_t:
            bad = dpestim_encode8_32(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint16_t and code_t is uint8_t:
            bad = dpestim_encode16_8(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint16_t and code_t is uint16_t:
            bad = dpestim_encode16_16(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint16_t and code_t is uint32_t:
            bad = dpestim_encode16_32(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint32_t and code_t is uint8_t:
            bad = dpestim_encode32_8(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint32_t and code_t is uint16_t:
            bad = dpestim_encode32_16(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint32_t and code_t is uint32_t:
            bad = dpestim_encode32_32(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint64_t and code_t is uint8_t:
            bad = dpestim_encode64_8(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint64_t and code_t is uint16_t:
            bad = dpestim_encode64_16(&values[0], n, low, span, first, &out[0])
        elif uint_t is uint64_t and code_t is uint32_t:
            bad = dpestim_encode64_32(&values[0], n, low, span, first, &out[0])
    return bad


def objects(
    list values,                  # IN   Python objects (a memoryview of objects cannot be read-only)
    dict table,                   # IN   category -> code
    code_t[::1] out,              # OUT  codes
):
    """Encode hashable objects; an unhashable one counts as unknown."""
    cdef Py_ssize_t n = len(values), i
    cdef object code
    if out.shape[0] != n:
        raise ValueError("values and out differ in length")
    try:
        for i in range(n):
            code = table.get(values[i])
            if code is None:
                return i
            out[i] = code
    except TypeError:
        return i
    return -1


cdef inline uint64_t _hash(const uint32_t *row, Py_ssize_t width) noexcept nogil:
    cdef uint64_t h = <uint64_t>0x9E3779B97F4A7C15ULL
    cdef Py_ssize_t k
    for k in range(width):
        if row[k] == 0:  # padding
            break
        h = (h ^ row[k]) * <uint64_t>0xD6E8FEB86659FD93ULL
        h ^= h >> 32
    return h


cdef inline bint _equal(const uint32_t *a, const uint32_t *b, Py_ssize_t width) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(width):
        if a[k] != b[k]:
            return False
    return True


def build_slots(
    const uint32_t[:, ::1] categories,   # IN   (d, width) code points, padded with zeros
    int64_t[::1] slots,                  # OUT  open addressing, a power of two above d: category index or -1
):
    """Fill the hash table of fixed-width strings; the first of two equal categories wins."""
    cdef Py_ssize_t i, width = categories.shape[1]
    cdef uint64_t k, mask = slots.shape[0] - 1
    if slots.shape[0] & mask or slots.shape[0] <= categories.shape[0]:
        raise ValueError("slots must be a power of two above the number of categories")
    slots[:] = -1
    for i in range(categories.shape[0]):
        k = _hash(&categories[i, 0], width) & mask
        while slots[k] >= 0:
            k = (k + 1) & mask
        slots[k] = i


def strings(
    const uint32_t[:, ::1] values,       # IN   (n, width) code points, padded with zeros
    const uint32_t[:, ::1] categories,   # IN   (d, width)
    const int64_t[::1] slots,            # IN   from build_slots
    const uint32_t[::1] codes,           # IN   (d) code of each category
    code_t[::1] out,                     # OUT  codes
):
    """Encode fixed-width strings."""
    cdef Py_ssize_t n = values.shape[0], i, width = values.shape[1]
    cdef uint64_t k, mask = slots.shape[0] - 1
    cdef int64_t c
    cdef Py_ssize_t bad = -1
    if out.shape[0] != n or categories.shape[1] != width or width == 0:
        raise ValueError("values, categories and out differ in shape")
    with nogil:
        for i in range(n):
            k = _hash(&values[i, 0], width) & mask
            c = slots[k]
            while c >= 0 and not _equal(&values[i, 0], &categories[c, 0], width):
                k = (k + 1) & mask
                c = slots[k]
            if c < 0:
                bad = i
                break
            out[i] = <code_t>codes[c]
    return bad
