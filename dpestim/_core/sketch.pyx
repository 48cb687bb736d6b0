"""Count-mean sketches over linear hashes: buckets, signs and their reports, counts, and sums over all hashes.

Hash j maps the bits of a code to the exclusive or of columns: bit i of the code brings columns[j, i].
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from dpestim._core.grr cimport dpestim_join, dpestim_u128

cdef extern from "hadamard.h" nogil:
    uint64_t dpestim_odd_ones(uint64_t x) noexcept
    bint dpestim_less(dpestim_u128 a, dpestim_u128 b) noexcept

cdef extern from "sketch.h" nogil:
    enum:
        DPESTIM_SKETCH_ROWS
    void dpestim_sketch_cells(const uint64_t *u, size_t n, uint64_t n_cells, uint32_t *cells) noexcept
    void dpestim_sketch_turns(const uint64_t *u, size_t n, uint64_t keep, uint32_t *turns) noexcept
    void dpestim_sketch_sent(const uint32_t *cells, const uint32_t *buckets, const uint32_t *turns, size_t n, int log_m, uint32_t *places) noexcept
    size_t dpestim_sketch_bits(const uint8_t *reports, size_t n, size_t width, size_t k, uint8_t *lanes, uint8_t *waiting) noexcept
    void dpestim_sketch_write_8(const uint32_t *cells, const uint32_t *buckets, const uint32_t *turns, size_t n, int log_m, uint8_t *out) noexcept
    void dpestim_sketch_write_16(const uint32_t *cells, const uint32_t *buckets, const uint32_t *turns, size_t n, int log_m, uint16_t *out) noexcept
    void dpestim_sketch_write_32(const uint32_t *cells, const uint32_t *buckets, const uint32_t *turns, size_t n, int log_m, uint32_t *out) noexcept
    bint dpestim_sketch_places_8(const uint8_t *reports, size_t n, uint32_t k, int log_m, uint32_t *places) noexcept
    bint dpestim_sketch_places_16(const uint16_t *reports, size_t n, uint32_t k, int log_m, uint32_t *places) noexcept
    bint dpestim_sketch_places_32(const uint32_t *reports, size_t n, uint32_t k, int log_m, uint32_t *places) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused field_t:
    uint8_t
    uint16_t
    uint32_t

#: Counters from which on reports are first counted in bytes, which take an eighth of the memory.
DEF MANY = 1 << 17
#: Values that are summed up at a time: their sums stay in the first-level cache while all hashes pass.
DEF BLOCK = 4096


cdef inline uint32_t _bucket(uint64_t code, const uint32_t *columns, Py_ssize_t n_bits) noexcept nogil:
    cdef uint32_t out = 0
    cdef Py_ssize_t i
    for i in range(n_bits):
        out ^= columns[i] & <uint32_t>(-<int64_t>((code >> i) & 1))
    return out


cdef bint _is_identity(const uint32_t[:, ::1] columns) noexcept:
    """Tell whether there is one hash, which leaves values as they are: there is nothing to be looked up then."""
    cdef Py_ssize_t i
    if columns.shape[1] > 32:
        return False
    for i in range(columns.shape[1]):
        if columns[0, i] != <uint32_t>1 << i:
            return False
    return columns.shape[0] == 1


def buckets(
    const code_t[::1] codes,         # IN   values
    const uint32_t[::1] hashes,      # IN   which hash each takes, below columns.shape[0]
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    uint32_t[::1] out,               # OUT  the bucket of each value under its hash
):
    """Hash every value with a hash of its own."""
    cdef Py_ssize_t n = codes.shape[0], n_bits = columns.shape[1], i
    cdef uint32_t k = <uint32_t>columns.shape[0], mask = <uint32_t>((<uint64_t>1 << (n_bits if n_bits < 32 else 32)) - 1)
    cdef bint same
    if hashes.shape[0] != n or out.shape[0] != n or n_bits > 64:
        raise ValueError("codes, hashes and out differ in length")
    if k == 0 or n_bits == 0:
        raise ValueError("columns must hold at least one hash")
    same = _is_identity(columns)
    with nogil:
        if same:
            for i in range(n):
                out[i] = <uint32_t>(codes[i] & mask)
        else:
            for i in range(n):
                out[i] = _bucket(codes[i], &columns[hashes[i] if hashes[i] < k else 0, 0], n_bits)


def bucket(
    uint64_t code,                   # IN   a value
    Py_ssize_t which,                # IN   the hash that it takes
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
):
    """Return the bucket of one value."""
    if not 0 <= which < columns.shape[0] or not 0 < columns.shape[1] <= 64:
        raise ValueError("columns must hold the hash")
    return _bucket(code, &columns[which, 0], columns.shape[1])


def signs(
    const code_t[::1] codes,         # IN   values
    const uint32_t[::1] hashes,      # IN   which hash each takes
    const uint32_t[::1] rows,        # IN   which row of the Hadamard matrix each takes
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    uint8_t[::1] out,                # OUT  1 where the entry (row, bucket) of the Hadamard matrix is -1
):
    """Hash every value and look up the sign of its bucket in a row of the Hadamard matrix."""
    cdef Py_ssize_t n = codes.shape[0], n_bits = columns.shape[1], i
    cdef uint32_t k = <uint32_t>columns.shape[0], mask = <uint32_t>((<uint64_t>1 << (n_bits if n_bits < 32 else 32)) - 1)
    cdef bint same
    if hashes.shape[0] != n or rows.shape[0] != n or out.shape[0] != n or n_bits > 64:
        raise ValueError("codes, hashes, rows and out differ in length")
    if k == 0 or n_bits == 0:
        raise ValueError("columns must hold at least one hash")
    same = _is_identity(columns)
    with nogil:
        if same:
            for i in range(n):
                out[i] = <uint8_t>dpestim_odd_ones(rows[i] & codes[i] & mask)
        else:
            for i in range(n):
                out[i] = <uint8_t>dpestim_odd_ones(
                    rows[i] & _bucket(codes[i], &columns[hashes[i] if hashes[i] < k else 0, 0], n_bits))


cdef int _check(const uint32_t[:, ::1] columns, int log_m) except -1:
    if columns.shape[0] == 0 or not 0 < columns.shape[1] <= 64 or not 0 <= log_m < 31 or columns.shape[0] << log_m >= 1 << 31:
        raise ValueError("columns must hold at least one hash, and cells must be fewer than 2^31")
    return 0


cdef inline void _draw(const code_t *codes, const uint32_t[:, ::1] columns, bint same, int log_m, Py_ssize_t n,
                       const uint32_t *cells, uint32_t *buckets) noexcept nogil:
    """Write the bucket of each value under the hash of its cell."""
    cdef Py_ssize_t n_bits = columns.shape[1], i
    cdef uint32_t mask = <uint32_t>((<uint64_t>1 << (n_bits if n_bits < 32 else 32)) - 1)
    if same:
        for i in range(n):
            buckets[i] = <uint32_t>codes[i] & mask
    else:
        for i in range(n):
            buckets[i] = _bucket(codes[i], &columns[cells[i] >> log_m, 0], n_bits)


cdef inline void _turn(const uint64_t *words, bint one, uint64_t low, dpestim_u128 keep, Py_ssize_t n,
                       uint32_t *turns) noexcept nogil:
    """Write whether each sign is turned, by one word or by two."""
    cdef Py_ssize_t i
    if one:
        dpestim_sketch_turns(words, n, low, turns)
    else:
        for i in range(n):
            turns[i] = not dpestim_less(dpestim_join(words[2 * i], words[2 * i + 1]), keep)


cdef inline void _add(const uint32_t *places, Py_ssize_t n, uint8_t *lanes, int64_t *counts) noexcept nogil:
    """Count places, in bytes where there are any: one that overflows brings 256."""
    cdef Py_ssize_t i
    if lanes == NULL:
        for i in range(n):
            counts[places[i]] += 1
    else:
        for i in range(n):
            lanes[places[i]] += 1
            if lanes[places[i]] == 0:
                counts[places[i]] += 256


def answer(
    const code_t[::1] codes,         # IN   values
    const uint64_t[::1] seeds,       # IN   a word a record: the cell, hash and row, of k m is floor(word k m / 2^64)
    const uint64_t[::1] words,       # IN   one or two words a record, high word first
    keep,                            # IN   the sign is kept below this, out of 2^64 or 2^128
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    int log_m,                       # IN   there are m = 2^log_m buckets
    field_t[:, ::1] out,             # OUT  (n, 3): hash, row, sign
):
    """Write a Hadamard report of every record in one pass: cell, sign of its bucket, randomised response."""
    cdef Py_ssize_t n = codes.shape[0], start, size
    cdef uint32_t cells[DPESTIM_SKETCH_ROWS]
    cdef uint32_t buckets[DPESTIM_SKETCH_ROWS]
    cdef uint32_t turns[DPESTIM_SKETCH_ROWS]
    cdef uint64_t low = keep & 0xFFFFFFFFFFFFFFFF
    cdef dpestim_u128 keep2 = dpestim_join(keep >> 64, low)
    cdef bint one = words.shape[0] == n, same
    if seeds.shape[0] != n or out.shape[0] != n or out.shape[1] != 3 or (not one and words.shape[0] != 2 * n):
        raise ValueError("codes, words and out differ in length")
    _check(columns, log_m)
    same = _is_identity(columns)
    with nogil:
        start = 0
        while start < n:
            size = DPESTIM_SKETCH_ROWS if n - start > DPESTIM_SKETCH_ROWS else n - start
            dpestim_sketch_cells(&seeds[start], size, <uint64_t>columns.shape[0] << log_m, cells)
            _draw(&codes[start], columns, same, log_m, size, cells, buckets)
            _turn(&words[start if one else 2 * start], one, low, keep2, size, turns)
            if field_t is uint8_t:
                dpestim_sketch_write_8(cells, buckets, turns, size, log_m, &out[start, 0])
            elif field_t is uint16_t:
                dpestim_sketch_write_16(cells, buckets, turns, size, log_m, &out[start, 0])
            else:
                dpestim_sketch_write_32(cells, buckets, turns, size, log_m, &out[start, 0])
            start += size


def send(
    const code_t[::1] codes,         # IN   values
    const uint64_t[::1] seeds,       # IN   as `answer` has them
    const uint64_t[::1] words,       # IN
    keep,                            # IN
    const uint32_t[:, ::1] columns,  # IN
    int log_m,                       # IN
    uint8_t[::1] lanes,              # OUT  (2 k m, or none) a byte of each counter, added to; `settle` adds them up
    int64_t[::1] counts,             # OUT  (2 k m), added to
):
    """Add a histogram of the reports that `answer` would write, which are written nowhere."""
    cdef Py_ssize_t n = codes.shape[0], start, size
    cdef uint32_t cells[DPESTIM_SKETCH_ROWS]
    cdef uint32_t buckets[DPESTIM_SKETCH_ROWS]
    cdef uint32_t turns[DPESTIM_SKETCH_ROWS]
    cdef uint32_t places[DPESTIM_SKETCH_ROWS]
    cdef uint64_t low = keep & 0xFFFFFFFFFFFFFFFF
    cdef dpestim_u128 keep2 = dpestim_join(keep >> 64, low)
    cdef bint one = words.shape[0] == n, same
    if seeds.shape[0] != n or not one and words.shape[0] != 2 * n:
        raise ValueError("codes and words differ in length")
    _check(columns, log_m)
    if counts.shape[0] != columns.shape[0] << (log_m + 1) or lanes.shape[0] not in (0, counts.shape[0]):
        raise ValueError("counts must have one entry for each report, and lanes as many, or none")
    same = _is_identity(columns)
    with nogil:
        start = 0
        while start < n:
            size = DPESTIM_SKETCH_ROWS if n - start > DPESTIM_SKETCH_ROWS else n - start
            dpestim_sketch_cells(&seeds[start], size, <uint64_t>columns.shape[0] << log_m, cells)
            _draw(&codes[start], columns, same, log_m, size, cells, buckets)
            _turn(&words[start if one else 2 * start], one, low, keep2, size, turns)
            dpestim_sketch_sent(cells, buckets, turns, size, log_m, places)
            _add(places, size, &lanes[0] if lanes.shape[0] else NULL, &counts[0])
            start += size


def settle(
    const uint8_t[::1] lanes,        # IN   what `send` and `tally` have left
    int64_t[::1] counts,             # OUT  added to
):
    """Add the bytes of counters to the counters."""
    cdef Py_ssize_t i
    if lanes.shape[0] != counts.shape[0]:
        raise ValueError("lanes and counts differ in length")
    with nogil:
        for i in range(counts.shape[0]):
            counts[i] += lanes[i]


def tally(
    const field_t[:, ::1] reports,   # IN   (n, 3): hash, row, sign
    int log_m,                       # IN   there are m = 2^log_m buckets
    int64_t[::1] counts,             # OUT  (2 k m), added to
):
    """Add a histogram of Hadamard reports; return whether all had a cell and a sign (if not, `counts` is of no use).

    A field is read once and compared before it is used as an index, as `dpestim._core.grr.count` does. Places are
    worked out some hundred at a time, so that many counters far from each other are fetched at once. Of many counters
    each has a byte until all reports are counted: one that overflows brings 256.
    """
    cdef Py_ssize_t n = reports.shape[0], start, size, i
    cdef uint32_t places[DPESTIM_SKETCH_ROWS]
    cdef uint32_t k
    cdef uint8_t *lanes = NULL
    cdef bint good = True
    if reports.shape[1] != 3 or not 0 <= log_m < 31 or counts.shape[0] % (<Py_ssize_t>2 << log_m):
        raise ValueError("reports and counts differ in width")
    if counts.shape[0] >= <Py_ssize_t>1 << 32:
        raise ValueError("counts must be fewer than 2^32")
    k = <uint32_t>(counts.shape[0] >> (log_m + 1))
    if counts.shape[0] >= MANY and n >= counts.shape[0] // 4:
        lanes = <uint8_t *>calloc(counts.shape[0], 1)
        if lanes == NULL:
            raise MemoryError("not enough memory to count reports")
    with nogil:
        start = 0
        while start < n:
            size = DPESTIM_SKETCH_ROWS if n - start > DPESTIM_SKETCH_ROWS else n - start
            if field_t is uint8_t:
                good = dpestim_sketch_places_8(&reports[start, 0], size, k, log_m, places)
            elif field_t is uint16_t:
                good = dpestim_sketch_places_16(&reports[start, 0], size, k, log_m, places)
            else:
                good = dpestim_sketch_places_32(&reports[start, 0], size, k, log_m, places)
            if not good:
                break
            _add(places, size, lanes, &counts[0])
            start += size
        if lanes != NULL:
            for i in range(counts.shape[0]):
                counts[i] += lanes[i]
    free(lanes)
    return good


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
                        out[i] += row[_bucket(codes[i], own, n_bits)]
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
