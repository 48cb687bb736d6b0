"""Few words: keystream by the processor's own AES, and numbers of 64 digits below a limit, of which the first 8 rule out
nearly all. Words: `dpestim.rng`.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum:
    FEW_BLOCKS = 1 << 12  # of AES, in which the interpreter's lock is kept: half of what threads take to hand it over
    LONG = 1 << 15  # places from which on the interpreter's lock is released: waiting for it takes longer than a few

cdef extern from "rare.h" nogil:
    size_t dpestim_rare_places(const uint8_t *lanes, size_t n, uint8_t least, uint8_t most, int64_t *places) noexcept

#: Whether `encrypt` and `keystream` work here: the processor and the compiler have instructions for AES.
HAS_AES = bool(dpestim_has_aes())
#: Whether they encrypt four blocks by one instruction, as fast as OpenSSL does.
VECTOR_AES = HAS_AES and bool(dpestim_vector_aes())


def encrypt(
    bytes key not None,       # IN   32 bytes
    uint8_t[::1] blocks,      # IN   16 bytes each   OUT  these, encrypted
):
    """Encrypt blocks by AES-256. The interpreter's lock is kept where these are few."""
    cdef dpestim_aes_keys keys
    cdef size_t n = <size_t>blocks.shape[0] // 16
    if len(key) != 32 or blocks.shape[0] % 16 or not HAS_AES:
        raise ValueError("key or blocks have another length, or the processor has no AES")
    if n == 0:
        return
    dpestim_aes_schedule(<const uint8_t *>key, &keys)
    if n < FEW_BLOCKS:
        dpestim_aes_blocks(&keys, &blocks[0], n)
    else:
        with nogil:
            dpestim_aes_blocks(&keys, &blocks[0], n)


def keystream(
    bytes key not None,       # IN   32 bytes
    uint64_t head,            # IN   the first half of every counter
    uint64_t first,           # IN   the second half of the first counter; that of the last does not overflow
    uint8_t[::1] out,         # OUT  16 bytes for each counter, of which there is one at least
):
    """Write what counter mode makes of zeros by consecutive counters."""
    if out.shape[0] == 0:
        raise ValueError("key or blocks have another length, or the processor has no AES")
    _stream(key, head, first, &out[0], out.shape[0])


def fresh(
    bytes key not None,       # IN   32 bytes
    uint64_t head,            # IN   as for `keystream`
    uint64_t first,           # IN
    Py_ssize_t n_bytes,       # IN   a multiple of 16, not 0
):
    """Return the same as bytes: an array, and a view of it, would take as long as a hundred words."""
    cdef bytes out
    if n_bytes < 1:
        raise ValueError("key or blocks have another length, or the processor has no AES")
    out = PyBytes_FromStringAndSize(NULL, n_bytes)
    _stream(key, head, first, <uint8_t *><const uint8_t *>out, n_bytes)  # (nobody else has it yet)
    return out


cdef int _stream(bytes key, uint64_t head, uint64_t first, uint8_t *out, Py_ssize_t n_bytes) except -1:
    cdef dpestim_aes_keys keys
    cdef size_t n = <size_t>n_bytes // 16
    if len(key) != 32 or n_bytes % 16 or not HAS_AES:
        raise ValueError("key or blocks have another length, or the processor has no AES")
    dpestim_aes_schedule(<const uint8_t *>key, &keys)
    if n < FEW_BLOCKS:
        dpestim_aes_stream(&keys, head, first, out, n)
    else:
        with nogil:
            dpestim_aes_stream(&keys, head, first, out, n)
    return 0


def open_places(
    const uint8_t[::1] lanes,     # IN   the first 8 digits of each number
    uint8_t most,                 # IN   the first 8 digits of the limit, less 1
    uint64_t head,                # IN   the first half of every counter
    uint64_t first,               # IN   the second half of that of place 0
    int64_t[::1] places,          # OUT  where numbers may be below; has room for all
    uint8_t[:, ::1] counters,     # OUT  the 16 bytes of the counter of each of these places; has room for all
    uint8_t least=0,              # IN   places of smaller first digits are left out, though their numbers are below
):
    """Write the places that the first digits leave open, in order, with their counters; return how many they are."""
    cdef Py_ssize_t n = lanes.shape[0], found = 0, k
    if places.shape[0] < lanes.shape[0] or counters.shape[0] < lanes.shape[0] or counters.shape[1] != 16:
        raise ValueError("places and counters must have room for all lanes")
    if n == 0:
        return 0
    with nogil:
        found = <Py_ssize_t>dpestim_rare_places(&lanes[0], n, least, most, &places[0])
        for k in range(found):
            _write(&counters[k, 0], head, first + <uint64_t>places[k])
    return found


cdef inline void _write(uint8_t *counter, uint64_t head, uint64_t place) noexcept nogil:
    """Write a counter, the highest byte first. (Two loops, of each of which compilers make one turned word.)"""
    cdef int j
    for j in range(8):
        counter[j] = <uint8_t>(head >> (56 - 8 * j))
    for j in range(8):
        counter[8 + j] = <uint8_t>(place >> (56 - 8 * j))


cdef uint64_t _counters_of(const uint64_t *places, size_t n, uint64_t head, uint64_t first,
                           uint8_t *out) noexcept nogil:
    cdef uint64_t largest = 0
    cdef size_t k
    for k in range(n):
        largest = max(largest, places[k])
        _write(out + 16 * k, head, first + places[k])
    return largest


def counters_of(
    const uint64_t[::1] places,   # IN   one or more
    uint64_t head,                # IN   the first half of every counter
    uint64_t first,               # IN   the second half of that of place 0
    uint8_t[:, ::1] counters,     # OUT  the 16 bytes of the counter of each place
):
    """Write the counters of places; return the largest place, which tells whether their sums did not overflow."""
    cdef size_t n = places.shape[0]
    cdef uint64_t largest
    if not n or counters.shape[0] != places.shape[0] or counters.shape[1] != 16:
        raise ValueError("places and counters differ in length, or are none")
    if n < LONG:
        return _counters_of(&places[0], n, head, first, &counters[0, 0])
    with nogil:
        largest = _counters_of(&places[0], n, head, first, &counters[0, 0])
    return largest


def settle(
    const uint8_t[::1] lanes,     # IN   the first 8 digits of each number
    const uint64_t[::1] words,    # IN   two for each open place: the first 56 digits of the first are the number's last
    uint64_t last,                # IN   the limit, less 1
    int64_t[::1] places,          # IN   the open places   OUT  those whose numbers are below the limit
    uint64_t[::1] numbers,        # OUT  these numbers
):
    """Keep the open places whose numbers are below the limit; return how many they are."""
    cdef Py_ssize_t n = places.shape[0], k, found = 0
    cdef uint64_t number
    cdef int64_t place
    if words.shape[0] != 2 * n or numbers.shape[0] != n:
        raise ValueError("words, places and numbers differ in length")
    for k in range(n):
        if not 0 <= places[k] < lanes.shape[0]:
            raise ValueError("places must be those of lanes")
    with nogil:
        for k in range(n):
            place = places[k]
            number = <uint64_t>lanes[place] << 56 | words[2 * k] >> 8
            places[found] = place
            numbers[found] = number
            found += number <= last
    return found
