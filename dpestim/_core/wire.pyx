"""Reports as bytes: numbers of any width side by side in a string of bits, and a checksum at the end of each row."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused number_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

cdef uint32_t TABLES[8][256]  # of CRC-32 with the polynomial of zlib, for eight bytes at a time


cdef void fill_tables() noexcept nogil:
    cdef uint32_t c
    cdef int i, k
    for i in range(256):
        c = i
        for k in range(8):
            c = (c >> 1) ^ (0xEDB88320u if c & 1 else 0)
        TABLES[0][i] = c
    for i in range(256):
        for k in range(1, 8):
            TABLES[k][i] = (TABLES[k - 1][i] >> 8) ^ TABLES[0][TABLES[k - 1][i] & 0xFF]


fill_tables()


cdef inline uint32_t crc_of(const uint8_t *at, Py_ssize_t n, uint32_t crc) noexcept nogil:
    """Continue an (inverted) checksum over n bytes."""
    cdef uint32_t low
    crc = ~crc
    while n >= 8:
        low = crc ^ (at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24)
        crc = (TABLES[7][low & 0xFF] ^ TABLES[6][low >> 8 & 0xFF] ^ TABLES[5][low >> 16 & 0xFF] ^ TABLES[4][low >> 24]
               ^ TABLES[3][at[4]] ^ TABLES[2][at[5]] ^ TABLES[1][at[6]] ^ TABLES[0][at[7]])
        at += 8
        n -= 8
    while n:
        crc = (crc >> 8) ^ TABLES[0][(crc ^ at[0]) & 0xFF]
        at += 1
        n -= 1
    return ~crc


cdef inline void write_bits(uint8_t *out, int64_t at, uint64_t value, int width) noexcept nogil:
    """Set the bits of a value, which are 0 in `out`, lowest first."""
    cdef int shift = at & 7, left = width
    out += at >> 3
    out[0] |= <uint8_t>(value << shift)
    left -= 8 - shift
    value >>= 8 - shift
    while left > 0:
        out += 1
        out[0] |= <uint8_t>value
        value >>= 8
        left -= 8


cdef inline uint64_t read_bits(const uint8_t *at, int64_t first, int width) noexcept nogil:
    """Return the value of some bits, lowest first."""
    cdef int shift = first & 7, have = 8 - shift
    cdef uint64_t value
    at += first >> 3
    value = at[0] >> shift
    while have < width:
        at += 1
        value |= <uint64_t>at[0] << have
        have += 8
    return value if width == 64 else value & ((<uint64_t>1 << width) - 1)


cdef int64_t total(const uint8_t[::1] widths, Py_ssize_t n, Py_ssize_t size) except -1:
    """Return how many bits a row has, or raise ValueError where lengths do not fit together."""
    cdef int64_t bits = 0
    cdef Py_ssize_t j
    for j in range(n):
        if widths[j] > 8 * size:
            raise ValueError("a width does not fit the numbers")
        bits += widths[j]
    return bits


def pack(
    const number_t[:, ::1] numbers,  # IN   (n, k), each below 2^width
    const uint8_t[::1] widths,       # IN   bits of each of the k numbers; 0: it is 0
    const int64_t[::1] rows,         # IN   the row of `out` that each row of numbers goes to; empty: their own
    const int64_t[::1] starts,       # IN   the bit at which it begins there; empty: 0
    uint8_t[:, ::1] out,             # OUT  zeros in, bits out
):
    """Write rows of numbers as bits, without gaps, lowest bit first."""
    cdef Py_ssize_t n = numbers.shape[0], k = numbers.shape[1], i, j
    cdef int64_t at, bits, room = 8 * out.shape[1]
    cdef bint placed = rows.shape[0] > 0
    if widths.shape[0] != k or (placed and (rows.shape[0] != n or starts.shape[0] != n)) or (
            not placed and out.shape[0] != n):
        raise ValueError("numbers, widths, rows, starts and out differ in length")
    bits = total(widths, k, sizeof(number_t))
    if bits > room:
        raise ValueError("out is too narrow")
    if n == 0 or k == 0:
        return
    if placed:
        for i in range(n):
            if not (0 <= rows[i] < out.shape[0] and 0 <= starts[i] <= room - bits):
                raise ValueError("a place lies outside of out")
    with nogil:
        for i in range(n):
            at = starts[i] if placed else 0
            for j in range(k):
                if widths[j]:  # (behind the last bit of a row there may be no byte)
                    write_bits(&out[rows[i] if placed else i, 0], at, numbers[i, j], widths[j])
                    at += widths[j]


def unpack(
    const uint8_t[:, ::1] packed,  # IN   bits
    const uint8_t[::1] widths,     # IN   bits of each of the k numbers
    const int64_t[::1] rows,       # IN   the row of `packed` that each row of numbers is in; empty: their own
    const int64_t[::1] starts,     # IN   the bit at which it begins there; empty: 0
    number_t[:, ::1] numbers,      # OUT  (n, k)
):
    """Read rows of numbers, as `pack` wrote them."""
    cdef Py_ssize_t n = numbers.shape[0], k = numbers.shape[1], i, j
    cdef int64_t at, bits, room = 8 * packed.shape[1]
    cdef bint placed = rows.shape[0] > 0
    if widths.shape[0] != k or (placed and (rows.shape[0] != n or starts.shape[0] != n)) or (
            not placed and packed.shape[0] != n):
        raise ValueError("numbers, widths, rows, starts and packed differ in length")
    bits = total(widths, k, sizeof(number_t))
    if bits > room:
        raise ValueError("packed is too narrow")
    if n == 0 or k == 0:
        return
    if placed:
        for i in range(n):
            if not (0 <= rows[i] < packed.shape[0] and 0 <= starts[i] <= room - bits):
                raise ValueError("a place lies outside of packed")
    with nogil:
        for i in range(n):
            at = starts[i] if placed else 0
            for j in range(k):
                if widths[j]:
                    numbers[i, j] = <number_t>read_bits(&packed[rows[i] if placed else i, 0], at, widths[j])
                    at += widths[j]
                else:
                    numbers[i, j] = 0


def write_checks(
    uint8_t[:, ::1] rows,  # IN/OUT  the last four bytes of each are written
    Py_ssize_t start,      # IN      where what differs between rows begins
    uint32_t before,       # IN      the checksum of what all rows begin with
):
    """Write the checksum of each row, CRC-32 as zlib has it, at its end: little endian."""
    cdef Py_ssize_t n = rows.shape[0], size = rows.shape[1] - 4, i
    cdef uint32_t crc
    if not 0 <= start <= size:
        raise ValueError("start lies outside of rows")
    with nogil:
        for i in range(n):
            crc = crc_of(&rows[i, 0] + start, size - start, before)
            rows[i, size] = crc & 0xFF
            rows[i, size + 1] = crc >> 8 & 0xFF
            rows[i, size + 2] = crc >> 16 & 0xFF
            rows[i, size + 3] = crc >> 24


def compare_checks(
    const uint8_t[:, ::1] rows,  # IN   rows with their checksums
    uint8_t[::1] wrong,          # OUT  1 where the checksum is another
):
    """Return how many rows have another checksum than that at their end."""
    cdef Py_ssize_t n = rows.shape[0], size = rows.shape[1] - 4, i, found = 0
    cdef uint32_t crc
    cdef const uint8_t *end
    if size < 0 or wrong.shape[0] != n:
        raise ValueError("rows are too short, or wrong has another length")
    with nogil:
        for i in range(n):
            crc = crc_of(&rows[i, 0], size, 0)
            end = &rows[i, 0] + size
            wrong[i] = crc != (end[0] | <uint32_t>end[1] << 8 | <uint32_t>end[2] << 16 | <uint32_t>end[3] << 24)
            found += wrong[i]
    return found
