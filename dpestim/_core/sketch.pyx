"""Count-mean sketches over linear hashes: buckets, signs, counts of bits, and sums over all hashes.

Hash j maps the bits of a code to the exclusive or of columns: bit i of the code brings columns[j, i]. Reports of Hadamard
sketches are those of `hcms`.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "hadamard.h" nogil:
    uint64_t dpestim_odd_ones(uint64_t x) noexcept

cdef extern from "sketch.h" nogil:
    uint32_t dpestim_sketch_bucket(uint64_t code, const uint32_t *columns, size_t n_bits) noexcept
    bint dpestim_sketch_same(const uint32_t *columns, size_t k, size_t n_bits) noexcept
    size_t dpestim_sketch_bits(const uint8_t *reports, size_t n, size_t width, size_t k, uint8_t *lanes,
                               uint8_t *waiting) noexcept
    void dpestim_sketch_widen(const uint8_t *lanes, size_t n, int64_t *counts) noexcept
    void dpestim_sketch_widen_quarters(const uint8_t *lanes, size_t n, int64_t *counts) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

#: Values that are summed up at a time: their sums stay in the first-level cache while all hashes pass.
DEF BLOCK = 4096


def buckets(
    const code_t[::1] codes,         # IN   values
    const uint32_t[::1] hashes,      # IN   which hash each takes, below columns.shape[0]
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    uint32_t[::1] out,               # OUT  the bucket of each value under its hash
):
    """Hash every value with a hash of its own."""
    cdef Py_ssize_t n = codes.shape[0], n_bits = columns.shape[1], i
    cdef uint32_t k = <uint32_t>columns.shape[0]
    cdef uint32_t mask = <uint32_t>((<uint64_t>1 << (n_bits if n_bits < 32 else 32)) - 1)
    cdef bint same
    if hashes.shape[0] != n or out.shape[0] != n or n_bits > 64:
        raise ValueError("codes, hashes and out differ in length")
    if k == 0 or n_bits == 0:
        raise ValueError("columns must hold at least one hash")
    same = dpestim_sketch_same(&columns[0, 0], k, n_bits)
    with nogil:
        if same:
            for i in range(n):
                out[i] = <uint32_t>(codes[i] & mask)
        else:
            for i in range(n):
                out[i] = dpestim_sketch_bucket(codes[i], &columns[hashes[i] if hashes[i] < k else 0, 0], n_bits)


def bucket(
    uint64_t code,                   # IN   a value
    Py_ssize_t which,                # IN   the hash that it takes
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
):
    """Return the bucket of one value."""
    if not 0 <= which < columns.shape[0] or not 0 < columns.shape[1] <= 64:
        raise ValueError("columns must hold the hash")
    return dpestim_sketch_bucket(code, &columns[which, 0], columns.shape[1])


def signs(
    const code_t[::1] codes,         # IN   values
    const uint32_t[::1] hashes,      # IN   which hash each takes
    const uint32_t[::1] rows,        # IN   which row of the Hadamard matrix each takes
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    uint8_t[::1] out,                # OUT  1 where the entry (row, bucket) of the Hadamard matrix is -1
):
    """Hash every value and look up the sign of its bucket in a row of the Hadamard matrix."""
    cdef Py_ssize_t n = codes.shape[0], n_bits = columns.shape[1], i
    cdef uint32_t k = <uint32_t>columns.shape[0]
    cdef uint32_t mask = <uint32_t>((<uint64_t>1 << (n_bits if n_bits < 32 else 32)) - 1)
    cdef bint same
    if hashes.shape[0] != n or rows.shape[0] != n or out.shape[0] != n or n_bits > 64:
        raise ValueError("codes, hashes, rows and out differ in length")
    if k == 0 or n_bits == 0:
        raise ValueError("columns must hold at least one hash")
    same = dpestim_sketch_same(&columns[0, 0], k, n_bits)
    with nogil:
        if same:
            for i in range(n):
                out[i] = <uint8_t>dpestim_odd_ones(rows[i] & codes[i] & mask)
        else:
            for i in range(n):
                out[i] = <uint8_t>dpestim_odd_ones(
                    rows[i] & dpestim_sketch_bucket(codes[i], &columns[hashes[i] if hashes[i] < k else 0, 0], n_bits))


cdef inline void _flush(uint8_t *lanes, int64_t *row, Py_ssize_t m, Py_ssize_t width) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(m):
        row[c] += lanes[(c & 7) * width + (c >> 3)]
    for c in range(8 * width):  # (also what is beyond m, or it would overflow)
        lanes[c] = 0


def count(
    const uint8_t[:, ::1] reports,   # IN   (n, 2 + width): the number of a hash, low byte first, then packed bits
    int64_t[:, ::1] counts,          # OUT  (k, 8 * width or up to 7 less), added to
):
    """Add the bits of every report to the row of its hash; return whether all reports had a row and its bits.

    Bits are added as bytes, and to the row after 255 reports at the latest, before a byte overflows.
    """
    cdef Py_ssize_t n = reports.shape[0], width = reports.shape[1] - 2, i = 0
    cdef Py_ssize_t k = counts.shape[0], m = counts.shape[1], j
    cdef uint8_t *lanes
    cdef uint8_t *waiting
    cdef bint good = True
    if width != (m + 7) // 8 or m == 0:
        raise ValueError("reports and counts differ in width")
    lanes, waiting = <uint8_t *>calloc(8 * k * width + 1, 1), <uint8_t *>calloc(k + 1, 1)
    if lanes == NULL or waiting == NULL:
        free(lanes)
        free(waiting)
        raise MemoryError("not enough memory to count reports")
    with nogil:
        while i < n:
            i += dpestim_sketch_bits(&reports[i, 0], n - i, width, k, lanes, waiting)
            if i < n:
                j = <Py_ssize_t>reports[i, 0] | <Py_ssize_t>reports[i, 1] << 8
                if j >= k:
                    good = False
                    break
                _flush(lanes + 8 * j * width, &counts[j, 0], m, width)
                waiting[j] = 0
        for j in range(k):
            if waiting[j]:
                _flush(lanes + 8 * j * width, &counts[j, 0], m, width)
    free(lanes)
    free(waiting)
    return good


def query(
    const int64_t[:, ::1] table,     # IN   (k, m)
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code), entries below m
    const code_t[::1] codes,         # IN   values
    int64_t[::1] out,                # OUT  for each value the sum over all hashes of table[j, its bucket], added to
):
    """Sum up what all hashes say of each value."""
    cdef Py_ssize_t n = codes.shape[0], k = table.shape[0], n_bits = columns.shape[1], start, stop, j, i, b, size
    cdef Py_ssize_t n_bytes = (n_bits + 7) // 8, byte
    cdef uint32_t tables[8][256]  # what each value of each byte of a code brings
    cdef uint32_t high, m = <uint32_t>table.shape[1]
    cdef uint64_t last, rest
    cdef const uint32_t *own
    cdef const int64_t *row
    if out.shape[0] != n or columns.shape[0] != k or n_bits > 64 or n_bits == 0 or m == 0:
        raise ValueError("table, columns, codes and out differ in length")
    for j in range(k):
        for i in range(n_bits):
            if columns[j, i] >= m or m & (m - 1):
                raise ValueError("columns must lie below the number of buckets, a power of two")
    with nogil:
        start = 0
        while start < n:
            stop = start + BLOCK if n - start > BLOCK else n
            for j in range(k):
                own, row = &columns[j, 0], &table[j, 0]
                if stop - start < 64:  # tables would cost more
                    for i in range(start, stop):
                        out[i] += row[dpestim_sketch_bucket(codes[i], own, n_bits)]
                    continue
                for byte in range(n_bytes):
                    tables[byte][0] = 0
                    for b in range(8):
                        size = 1 << b
                        for i in range(size):
                            tables[byte][size + i] = tables[byte][i] ^ (
                                own[8 * byte + b] if 8 * byte + b < n_bits else 0)
                last, high = ~(<uint64_t>codes[start] >> 8), 0
                for i in range(start, stop):
                    rest = <uint64_t>codes[i] >> 8
                    if rest != last:  # of neighbouring values most share what the upper bits say
                        last, high = rest, 0
                        for byte in range(1, n_bytes):
                            high ^= tables[byte][rest & 255]
                            rest >>= 8
                    out[i] += row[high ^ tables[0][codes[i] & 255]]
            start = stop


def settle(
    const uint8_t[::1] lanes,        # IN   bytes of counters, as `hcms.send` and `hcms.tally` left them
    const uint32_t[::1] full,        # IN   those that have overflowed, each time, and at the end how many
    int64_t[::1] counts,             # OUT  as many as bytes, or four times as many
    bint quarters=False,             # IN   whether a byte has four counters
):
    """Turn bytes of counters, and what they have lost, into counts."""
    cdef Py_ssize_t n = counts.shape[0], i, n_full, each = 4 if quarters else 1
    if full.shape[0] == 0 or full[full.shape[0] - 1] >= full.shape[0] or lanes.shape[0] * each != n or n == 0:
        raise ValueError("counts and the list of full counters do not fit")
    n_full = full[full.shape[0] - 1]
    for i in range(n_full):
        if full[i] >= n:
            raise ValueError("full counters must be some of counts")
    with nogil:
        if quarters:
            dpestim_sketch_widen_quarters(&lanes[0], n // 4, &counts[0])
        else:
            dpestim_sketch_widen(&lanes[0], n, &counts[0])
        for i in range(n_full):
            counts[full[i]] += 4 if quarters else 256
