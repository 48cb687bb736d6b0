"""Category codes of a column: integers by range check or table, numbers by bisection, strings and objects by hash.

A value that is no category gets the fallback code and the loop goes on, so that one stranger costs what a citizen does;
whether there was one (for `objects`: in which rows) is returned.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "encode.h" nogil:
    bint dpestim_encode8_8(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint32_t fallback, uint8_t *out) noexcept
    bint dpestim_encode8_16(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint32_t fallback, uint16_t *out) noexcept
    bint dpestim_encode8_32(const uint8_t *v, size_t n, uint8_t low, uint8_t span, uint32_t first, uint32_t fallback, uint32_t *out) noexcept
    bint dpestim_encode16_8(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint32_t fallback, uint8_t *out) noexcept
    bint dpestim_encode16_16(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint32_t fallback, uint16_t *out) noexcept
    bint dpestim_encode16_32(const uint16_t *v, size_t n, uint16_t low, uint16_t span, uint32_t first, uint32_t fallback, uint32_t *out) noexcept
    bint dpestim_encode32_8(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint32_t fallback, uint8_t *out) noexcept
    bint dpestim_encode32_16(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint32_t fallback, uint16_t *out) noexcept
    bint dpestim_encode32_32(const uint32_t *v, size_t n, uint32_t low, uint32_t span, uint32_t first, uint32_t fallback, uint32_t *out) noexcept
    bint dpestim_encode64_8(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint32_t fallback, uint8_t *out) noexcept
    bint dpestim_encode64_16(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint32_t fallback, uint16_t *out) noexcept
    bint dpestim_encode64_32(const uint64_t *v, size_t n, uint64_t low, uint64_t span, uint32_t first, uint32_t fallback, uint32_t *out) noexcept
    bint dpestim_steps8(const uint8_t *v, size_t n) noexcept
    bint dpestim_steps16(const uint16_t *v, size_t n) noexcept
    bint dpestim_steps32(const uint32_t *v, size_t n) noexcept
    bint dpestim_steps64(const uint64_t *v, size_t n) noexcept
    void dpestim_outside8(const uint8_t *v, size_t rows, size_t d, const uint8_t *low, const uint8_t *span, uint8_t *bad) noexcept
    void dpestim_turn8(const uint8_t *v, size_t rows, size_t d, uint8_t shift, uint8_t *out) noexcept
    void dpestim_outside16(const uint16_t *v, size_t rows, size_t d, const uint16_t *low, const uint16_t *span, uint16_t *bad) noexcept
    void dpestim_turn16(const uint16_t *v, size_t rows, size_t d, uint16_t shift, uint8_t *out) noexcept
    void dpestim_outside32(const uint32_t *v, size_t rows, size_t d, const uint32_t *low, const uint32_t *span, uint32_t *bad) noexcept
    void dpestim_turn32(const uint32_t *v, size_t rows, size_t d, uint32_t shift, uint8_t *out) noexcept
    void dpestim_outside64(const uint64_t *v, size_t rows, size_t d, const uint64_t *low, const uint64_t *span, uint64_t *bad) noexcept
    void dpestim_turn64(const uint64_t *v, size_t rows, size_t d, uint64_t shift, uint8_t *out) noexcept

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
    uint32_t fallback,            # IN   the code of what is outside
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
            bad = dpestim_encode8_8(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint8_t and code_t is uint16_t:
            bad = dpestim_encode8_16(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint8_t and code_t is uint32_t:
            bad = dpestim_encode8_32(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint16_t and code_t is uint8_t:
            bad = dpestim_encode16_8(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint16_t and code_t is uint16_t:
            bad = dpestim_encode16_16(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint16_t and code_t is uint32_t:
            bad = dpestim_encode16_32(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint32_t and code_t is uint8_t:
            bad = dpestim_encode32_8(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint32_t and code_t is uint16_t:
            bad = dpestim_encode32_16(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint32_t and code_t is uint32_t:
            bad = dpestim_encode32_32(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint64_t and code_t is uint8_t:
            bad = dpestim_encode64_8(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint64_t and code_t is uint16_t:
            bad = dpestim_encode64_16(&values[0], n, low, span, first, fallback, &out[0])
        elif uint_t is uint64_t and code_t is uint32_t:
            bad = dpestim_encode64_32(&values[0], n, low, span, first, fallback, &out[0])
    return bad


def steps(
    const uint_t[::1] values,     # IN   integers; signed types are viewed as unsigned of the same width
):
    """Tell whether each value is the one before it and 1, modulo 2^width."""
    cdef size_t n = values.shape[0]
    cdef bint good = True
    if n < 2:
        return True
    with nogil:
        if uint_t is uint8_t:
            good = dpestim_steps8(&values[0], n)
        elif uint_t is uint16_t:
            good = dpestim_steps16(&values[0], n)
        elif uint_t is uint32_t:
            good = dpestim_steps32(&values[0], n)
        else:
            good = dpestim_steps64(&values[0], n)
    return good


def together(
    const uint_t[:, ::1] values,  # IN   (n, d) rows; signed types are viewed as unsigned of the same width
    const uint_t[::1] low,        # IN   (d) as `integers` has it of each column
    const uint_t[::1] span,       # IN   (d)
    const uint_t[::1] first,      # IN   (d)
    uint_t[::1] bad,              # OUT  (d) whether a value of the column was outside
    uint8_t[:, :] out,            # OUT  (d, n) codes, each column in one piece; of no meaning where a column is bad
):
    """Encode columns of contiguous ranges row by row, each line of the cache once."""
    cdef Py_ssize_t n = values.shape[0], d = values.shape[1], j, at = 0, rows
    if out.shape[0] != d or out.shape[1] != n or not low.shape[0] == span.shape[0] == first.shape[0] == bad.shape[0] == d:
        raise ValueError("values and out differ in shape, or low, span, first and bad in length")
    if n > 1 and out.strides[1] != 1:
        raise ValueError("places of a column of out must lie side by side")
    bad[:] = 0
    if n == 0 or d == 0:
        return
    with nogil:
        while at < n:
            rows = min(64, n - at)  # (which stay in the nearest cache)
            if uint_t is uint8_t:
                dpestim_outside8(&values[at, 0], rows, d, &low[0], &span[0], &bad[0])
                for j in range(d):
                    dpestim_turn8(&values[at, j], rows, d, <uint_t>(low[j] - first[j]), &out[j, at])
            elif uint_t is uint16_t:
                dpestim_outside16(&values[at, 0], rows, d, &low[0], &span[0], &bad[0])
                for j in range(d):
                    dpestim_turn16(&values[at, j], rows, d, <uint_t>(low[j] - first[j]), &out[j, at])
            elif uint_t is uint32_t:
                dpestim_outside32(&values[at, 0], rows, d, &low[0], &span[0], &bad[0])
                for j in range(d):
                    dpestim_turn32(&values[at, j], rows, d, <uint_t>(low[j] - first[j]), &out[j, at])
            else:
                dpestim_outside64(&values[at, 0], rows, d, &low[0], &span[0], &bad[0])
                for j in range(d):
                    dpestim_turn64(&values[at, j], rows, d, <uint_t>(low[j] - first[j]), &out[j, at])
            at += rows


def table(
    const uint_t[::1] values,     # IN   as for `integers`
    uint_t low,                   # IN
    uint_t span,                  # IN
    const int64_t[::1] codes,     # IN   (span + 1) the code of low + k, or -1
    uint32_t fallback,            # IN
    code_t[::1] out,              # OUT
):
    """Encode integers that lie close together; return whether any was no category."""
    cdef Py_ssize_t n = values.shape[0], i
    cdef int64_t c
    cdef uint_t x
    cdef bint bad = False
    if out.shape[0] != n or <uint64_t>codes.shape[0] != <uint64_t>span + 1:
        raise ValueError("values and out differ in length, or the table does not fit")
    with nogil:
        for i in range(n):
            x = <uint_t>(values[i] - low)
            c = codes[x] if x <= span else -1
            bad |= c < 0
            out[i] = <code_t>(fallback if c < 0 else c)
    return bad


ctypedef fused number_t:
    int64_t
    uint64_t
    float
    double


def numbers(
    const number_t[::1] values,   # IN   a column
    const number_t[::1] known,    # IN   (d) categories, ascending
    const uint32_t[::1] codes,    # IN   (d) their codes
    uint32_t missing,             # IN   the code of NaN
    uint32_t fallback,            # IN
    code_t[::1] out,              # OUT
):
    """Encode numbers by bisection; return whether any was no category, and whether any was NaN."""
    cdef Py_ssize_t n = values.shape[0], d = known.shape[0], i, at, half, left
    cdef bint bad = False, nan = False, hit
    if out.shape[0] != n or codes.shape[0] != d:
        raise ValueError("values and out, or known and codes, differ in length")
    with nogil:
        for i in range(n):
            at, left = 0, d
            while left > 1:  # known[at] is the last candidate
                half = left >> 1
                at += half if known[at + half] <= values[i] else 0
                left -= half
            hit = d > 0 and known[at] == values[i]
            if hit:
                out[i] = <code_t>codes[at]
            elif values[i] != values[i]:
                nan = True
                out[i] = <code_t>missing
            else:
                bad = True
                out[i] = <code_t>fallback
    return bad, nan


def objects(
    list values,                  # IN   Python objects (a memoryview of objects cannot be read-only)
    dict table,                   # IN   category -> code
    uint32_t fallback,            # IN
    code_t[::1] out,              # OUT
):
    """Encode hashable objects; return the list of rows that are no category, whatever they do when they are looked at."""
    cdef Py_ssize_t n = len(values), i = 0
    cdef object code
    cdef list bad = []
    if out.shape[0] != n:
        raise ValueError("values and out differ in length")
    while i < n:
        try:
            while i < n:
                code = table.get(values[i])
                if code is None:
                    out[i] = <code_t>fallback
                    bad.append(i)
                else:
                    out[i] = code
                i += 1
        except KeyboardInterrupt:
            raise
        except BaseException:  # no hash, or a comparison that fails (even one that asks the interpreter to end)
            out[i] = <code_t>fallback
            bad.append(i)
            i += 1
    return bad


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
    uint32_t fallback,                   # IN
    code_t[::1] out,                     # OUT  codes
):
    """Encode fixed-width strings; return whether any was no category."""
    cdef Py_ssize_t n = values.shape[0], i, width = values.shape[1]
    cdef uint64_t k, mask = slots.shape[0] - 1
    cdef int64_t c
    cdef bint bad = False
    if out.shape[0] != n or categories.shape[1] != width or width == 0:
        raise ValueError("values, categories and out differ in shape")
    with nogil:
        for i in range(n):
            k = _hash(&values[i, 0], width) & mask
            c = slots[k]
            while c >= 0 and not _equal(&values[i, 0], &categories[c, 0], width):
                k = (k + 1) & mask
                c = slots[k]
            bad |= c < 0
            out[i] = <code_t>(fallback if c < 0 else codes[c])
    return bad
