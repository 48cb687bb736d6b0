"""Reports as bytes: numbers of any width side by side in a string of bits, and messages with a head and a checksum."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

ctypedef fused number_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

cdef enum:
    VERSION = 1         # of messages
    VERSION_AT = 3      # where the parts of a head begin, behind three letters
    FLAGS_AT = 4
    ID_AT = 5
    HEAD = 21           # bytes of a head, of a nonce and of a checksum
    NONCE = 8
    CHECK = 4

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


cdef bint no_bits(const uint8_t *at, int64_t first, int64_t last) noexcept nogil:
    """Tell whether all bits of a range are 0."""
    cdef int width
    while first < last:
        width = <int>(last - first if last - first < 32 else 32)
        if read_bits(at, first, width):
            return False
        first += width
    return True


cdef int64_t total(const uint8_t[:, ::1] widths, Py_ssize_t row, Py_ssize_t size) except -1:
    """Return how many bits a row of widths has, or raise ValueError where one does not fit the numbers."""
    cdef int64_t bits = 0
    cdef Py_ssize_t j
    for j in range(widths.shape[1]):
        if widths[row, j] > 8 * size:
            raise ValueError("a width does not fit the numbers")
        bits += widths[row, j]
    return bits


def pack(
    const number_t[:, ::1] numbers,  # IN   (n, k), each below 2^width
    const uint8_t[:, ::1] widths,    # IN   (1, k) bits of each of the k numbers; 0: it is 0
    uint8_t[:, ::1] out,             # OUT  zeros in, bits out
):
    """Write rows of numbers as bits, without gaps, lowest bit first."""
    cdef Py_ssize_t n = numbers.shape[0], k = numbers.shape[1], i, j
    cdef int64_t at
    if widths.shape[0] != 1 or widths.shape[1] != k or out.shape[0] != n:
        raise ValueError("numbers, widths and out differ in length")
    if total(widths, 0, sizeof(number_t)) > 8 * out.shape[1]:
        raise ValueError("out is too narrow")
    with nogil:
        for i in range(n):
            at = 0
            for j in range(k):
                if widths[0, j]:  # (behind the last bit of a row there may be no byte)
                    write_bits(&out[i, 0], at, numbers[i, j], widths[0, j])
                    at += widths[0, j]


def unpack(
    const uint8_t[:, ::1] packed,  # IN   bits
    const uint8_t[:, ::1] widths,  # IN   (1, k) bits of each of the k numbers
    number_t[:, ::1] numbers,      # OUT  (n, k)
):
    """Read rows of numbers, as `pack` wrote them."""
    cdef Py_ssize_t n = numbers.shape[0], k = numbers.shape[1], i, j
    cdef int64_t at
    if widths.shape[0] != 1 or widths.shape[1] != k or packed.shape[0] != n:
        raise ValueError("numbers, widths and packed differ in length")
    if total(widths, 0, sizeof(number_t)) > 8 * packed.shape[1]:
        raise ValueError("packed is too narrow")
    with nogil:
        for i in range(n):
            at = 0
            for j in range(k):
                numbers[i, j] = 0
                if widths[0, j]:
                    numbers[i, j] = <number_t>read_bits(&packed[i, 0], at, widths[0, j])
                    at += widths[0, j]


cdef int check_slots(Py_ssize_t n_slots, Py_ssize_t width, const uint8_t[:, ::1] widths, int number_bits,
                     int64_t slot_bits, Py_ssize_t k, Py_ssize_t n, Py_ssize_t n_bytes, Py_ssize_t size) except -1:
    """Raise ValueError unless k slots of this layout fit a row."""
    cdef Py_ssize_t c
    if k < 1 or n_slots != n * k or width != 1 + widths.shape[1] or widths.shape[0] < 1:
        raise ValueError("slots, widths and rows differ in length")
    if not 1 <= number_bits <= 8 * size or slot_bits < number_bits or k * slot_bits > 8 * n_bytes:
        raise ValueError("a row is too narrow for its slots")
    for c in range(widths.shape[0]):
        if number_bits + total(widths, c, size) > slot_bits:
            raise ValueError("a slot is too narrow for its numbers")
    return 0


def pack_slots(
    const number_t[:, ::1] slots,  # IN   (n k, 1 + w): the number of a column, and what is said of it
    const uint8_t[:, ::1] widths,  # IN   (d, w) bits of each of the numbers of each column
    int number_bits,               # IN   of the number of a column
    int64_t slot_bits,             # IN   of a slot; what is left of it is 0
    Py_ssize_t k,                  # IN   slots of a row
    uint8_t[:, ::1] out,           # OUT  (n, bytes) zeros in, bits out
):
    """Write rows of k slots."""
    cdef Py_ssize_t n = out.shape[0], w = widths.shape[1], i, s, j, bad = 0
    cdef uint64_t c
    cdef int64_t at
    cdef uint8_t *row
    cdef const number_t *slot
    check_slots(slots.shape[0], slots.shape[1], widths, number_bits, slot_bits, k, n, out.shape[1], sizeof(number_t))
    with nogil:
        for i in range(n):
            row, slot = &out[i, 0], &slots[i * k, 0]
            for s in range(k):
                at, c = s * slot_bits, slot[0]
                if c >= <uint64_t>widths.shape[0]:
                    bad, c = bad + 1, 0
                write_bits(row, at, c, number_bits)
                at += number_bits
                for j in range(w):
                    if widths[c, j]:
                        write_bits(row, at, slot[1 + j], widths[c, j])
                        at += widths[c, j]
                slot += 1 + w
    if bad:
        raise ValueError("a slot is of a column that does not exist")


def unpack_slots(
    const uint8_t[:, ::1] packed,  # IN   (n, bytes)
    const uint8_t[:, ::1] widths,  # IN   (d, w)
    int number_bits,               # IN
    int64_t slot_bits,             # IN
    Py_ssize_t k,                  # IN
    number_t[:, ::1] slots,        # OUT  (n k, 1 + w)
    uint8_t[::1] wrong,            # OUT  (n) 1 for a row that `pack_slots` never writes
):
    """Read rows of k slots, as `pack_slots` wrote them; return how many rows are wrong."""
    cdef Py_ssize_t n = packed.shape[0], w = widths.shape[1], found = 0, i, s, j
    cdef uint64_t c
    cdef int64_t at
    cdef const uint8_t *row
    cdef number_t *slot
    check_slots(slots.shape[0], slots.shape[1], widths, number_bits, slot_bits, k, n, packed.shape[1],
                sizeof(number_t))
    if wrong.shape[0] != n:
        raise ValueError("wrong has another length")
    with nogil:
        for i in range(n):
            row, slot = &packed[i, 0], &slots[i * k, 0]
            wrong[i] = not no_bits(row, k * slot_bits, 8 * packed.shape[1])
            for s in range(k):
                at = s * slot_bits
                c = read_bits(row, at, number_bits)
                if c >= <uint64_t>widths.shape[0]:
                    wrong[i], c = 1, 0
                slot[0] = <number_t>c
                at += number_bits
                for j in range(w):
                    slot[1 + j] = 0
                    if widths[c, j]:
                        slot[1 + j] = <number_t>read_bits(row, at, widths[c, j])
                        at += widths[c, j]
                if not no_bits(row, at, (s + 1) * slot_bits):
                    wrong[i] = 1
                slot += 1 + w
            found += wrong[i]
    return found


def seal(
    const uint8_t[::1] head,         # IN   what every message begins with
    uint32_t before,                 # IN   its checksum
    const uint8_t[:, ::1] nonces,    # IN   (n, 8), or (0, 8): there are none
    const uint8_t[:, ::1] payloads,  # IN   (n, b)
    uint8_t[:, ::1] out,             # OUT  (n, 21 + 8 + b + 4): head, nonce where there is one, payload, checksum
):
    """Write messages."""
    cdef Py_ssize_t n = payloads.shape[0], b = payloads.shape[1], i, at
    cdef Py_ssize_t more = NONCE if nonces.shape[0] else 0, size = HEAD + more + b + CHECK
    cdef uint32_t crc
    cdef uint8_t *row
    if (head.shape[0] != HEAD or nonces.shape[1] != NONCE or (more and nonces.shape[0] != n) or out.shape[0] != n
            or out.shape[1] != size or b < 1):
        raise ValueError("head, nonces, payloads and out differ in length")
    with nogil:
        for i in range(n):
            row = &out[i, 0]
            memcpy(row, &head[0], HEAD)
            if more:
                memcpy(row + HEAD, &nonces[i, 0], NONCE)
            memcpy(row + HEAD + more, &payloads[i, 0], b)
            crc = crc_of(row + HEAD, more + b, before)
            for at in range(CHECK):
                row[size - CHECK + at] = crc >> 8 * at & 0xFF


def open_(
    const uint8_t[:, ::1] rows,   # IN   messages of one length
    const uint8_t[::1] head,      # IN   what messages without a nonce begin with
    uint32_t before,              # IN   its checksum,
    uint32_t before_nonce,        # IN   ... and that of the head of messages with a nonce
    uint8_t[::1] reasons,         # OUT  0, or why a message is none: 1 malformed, 2 newer, 3 foreign, 4 damaged
    uint8_t[:, ::1] payloads,     # OUT  (n, b) of those that are
    uint8_t[:, ::1] nonces,       # OUT  (n, 8)
    uint8_t[::1] has_nonce,       # OUT  1 where there is one
):
    """Take messages apart; what is written about a message that is none is 0."""
    cdef Py_ssize_t n = rows.shape[0], size = rows.shape[1], b = payloads.shape[1], i, more
    cdef const uint8_t *row
    cdef const uint8_t *end
    cdef uint32_t crc
    if (head.shape[0] != HEAD or reasons.shape[0] != n or payloads.shape[0] != n or nonces.shape[0] != n
            or nonces.shape[1] != NONCE or has_nonce.shape[0] != n or b < 1):
        raise ValueError("rows, head and what is written differ in length")
    with nogil:
        for i in range(n):
            row, end = &rows[i, 0], &rows[i, 0] + size - CHECK
            memset(&payloads[i, 0], 0, b)
            memset(&nonces[i, 0], 0, NONCE)
            has_nonce[i], reasons[i] = 0, 1
            if size < HEAD + CHECK or memcmp(row, &head[0], VERSION_AT) != 0 or row[VERSION_AT] == 0:
                continue
            if row[VERSION_AT] > VERSION or row[FLAGS_AT] > 1:
                reasons[i] = 2
                continue
            more = NONCE if row[FLAGS_AT] else 0
            if memcmp(row + ID_AT, &head[ID_AT], HEAD - ID_AT) == 0:
                crc = crc_of(row + HEAD, size - CHECK - HEAD, before_nonce if more else before)
                reasons[i] = 0 if size == HEAD + more + b + CHECK else 1
            else:
                crc = crc_of(row, size - CHECK, 0)
                reasons[i] = 3
            if crc != (end[0] | <uint32_t>end[1] << 8 | <uint32_t>end[2] << 16 | <uint32_t>end[3] << 24):
                reasons[i] = 4
            if reasons[i] == 0:
                memcpy(&payloads[i, 0], row + HEAD + more, b)
                if more:
                    memcpy(&nonces[i, 0], row + HEAD, NONCE)
                    has_nonce[i] = 1
