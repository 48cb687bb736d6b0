"""Sets of (key, value) pairs: which pair is sampled, what is answered about a key, and two planes of bits."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "wide_int.h" nogil:
    uint64_t dpestim_high(uint64_t a, uint64_t b) noexcept

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def choose(
    const int64_t[::1] start,       # IN   (n + 1) where the pairs of each row begin
    const int32_t[::1] index,       # IN   keys of the pairs
    const int64_t[::1] places,      # IN   values of the pairs, from 0 to 2^32 between the bounds
    const uint64_t[:, :] words,     # IN   (n, 2) the slot; the upper half of the second rounds the value
    uint64_t length,                # IN   slots of a row, at least
    uint64_t n_keys,
    uint32_t[::1] out,              # OUT  2 key + (1 where the sign is minus), or 2 n_keys + slot where it is empty
):
    """Sample one pair of each row, each of max(its pairs, length) slots equally often, and round its value to a sign."""
    cdef Py_ssize_t n = out.shape[0], i
    cdef uint64_t size, slot
    cdef int64_t at
    if (start.shape[0] != n + 1 or words.shape[0] != n or words.shape[1] != 2 or places.shape[0] != index.shape[0]
            or length < 1 or 2 * n_keys + length >= <uint64_t>1 << 32):
        raise ValueError("start, words, places and out differ in length")
    if n == 0:
        return
    if start[0] < 0 or start[n] > index.shape[0]:
        raise ValueError("start must lie within the pairs")
    with nogil:
        for i in range(n):
            size = <uint64_t>(start[i + 1] - start[i])
            slot = dpestim_high(words[i, 0], size if size > length else length)
            if slot < size:
                at = start[i] + <int64_t>slot
                out[i] = 2 * <uint32_t>index[at] + <uint32_t>(<int64_t>(words[i, 1] >> 32) >= places[at])
            else:
                out[i] = <uint32_t>(2 * n_keys + slot)


def ask(
    const int64_t[::1] start,       # IN   as above; the keys of a row ascend
    const int32_t[::1] index,
    const int64_t[::1] places,
    const uint64_t[:, ::1] words,   # IN   (n, 3) the key that is asked for; the value's rounding; the answer
    uint64_t n_keys,
    uint64_t heavy,                 # IN   of 2^64 answers those that keep the sign
    uint64_t light,                 # IN   ... and those that turn it; heavy + light is at most 2^64
    const int64_t[::1] fake,        # IN   (n_keys) values for who lacks the key; (0): each sign has `light` then
    code_t[::1] out,                # OUT  3 key + (0 plus, 1 minus, 2 nothing)
):
    """Ask each row for one key, drawn without looking at it, and answer by the sign of its value."""
    cdef Py_ssize_t n = out.shape[0], i
    cdef uint64_t key, low, high, middle, answer, last = heavy + light - 1
    cdef uint32_t side, said
    cdef bint held
    cdef int64_t place
    if (start.shape[0] != n + 1 or words.shape[0] != n or words.shape[1] != 3 or places.shape[0] != index.shape[0]
            or n_keys < 1 or 3 * n_keys > <uint64_t>1 << 8 * sizeof(code_t) or heavy < 1 or light < 1
            or (fake.shape[0] and <uint64_t>fake.shape[0] != n_keys)):
        raise ValueError("start, words, places, fake and out differ in length")
    if n == 0:
        return
    if start[0] < 0 or start[n] > index.shape[0]:
        raise ValueError("start must lie within the pairs")
    with nogil:
        for i in range(n):
            key = dpestim_high(words[i, 0], n_keys)
            low, high = <uint64_t>start[i], <uint64_t>start[i + 1]
            while low < high:
                middle = (low + high) // 2
                if <uint64_t>index[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            held = low < <uint64_t>start[i + 1] and <uint64_t>index[low] == key
            answer = words[i, 2]
            if held or fake.shape[0]:
                place = places[low] if held else fake[key]
                side = <uint32_t>(<int64_t>(words[i, 1] >> 32) >= place)
                said = side if answer < heavy else 1 - side if answer <= last else 2
            else:
                said = 0 if answer < light else 1 if answer < 2 * light else 2
            out[i] = <code_t>(3 * key + said)


def planes(
    const uint32_t[::1] codes,      # IN   as `choose` writes them
    const uint8_t[:, ::1] on,       # IN   (n, width) bits of the cells of keys that were not sampled
    const uint64_t[:, ::1] coins,   # IN   (n, 2 + ceil(width / 8)) lowest bit: whether the own cell is on; its sign; all
                                    #      other signs
    uint64_t keep,                  # IN   of 2^64 words, those that keep the own sign
    Py_ssize_t n_keys,              # IN   8 * width or up to 7 less: surplus bits are dropped
    uint8_t[:, ::1] out,            # OUT  (n, 2 width) which cells are on; which of these say plus
):
    """Give every cell that is on a sign, and put the own one."""
    cdef Py_ssize_t n = codes.shape[0], width = on.shape[1], i, j
    cdef const uint8_t *row
    cdef const uint8_t *signs
    cdef uint8_t *wide
    cdef uint8_t bit, plus, inside = <uint8_t>(255 >> (8 * width - n_keys))
    cdef uint32_t key
    if (on.shape[0] != n or coins.shape[0] != n or coins.shape[1] != 2 + (width + 7) // 8 or out.shape[0] != n
            or out.shape[1] != 2 * width or n_keys < 1 or width != (n_keys + 7) // 8):
        raise ValueError("codes, on, coins and out differ in length")
    with nogil:
        for i in range(n):
            row, signs, wide = &on[i, 0], <const uint8_t *>&coins[i, 2], &out[i, 0]
            for j in range(width):
                wide[j] = row[j]
            wide[width - 1] &= inside
            for j in range(width):
                wide[width + j] = wide[j] & signs[j]
            key = codes[i] >> 1
            if key < <uint32_t>n_keys:
                bit = <uint8_t>(1 << (key & 7))
                plus = <uint8_t>((codes[i] & 1) ^ (coins[i, 1] < keep))
                wide[key >> 3] &= <uint8_t>~bit
                wide[width + (key >> 3)] &= <uint8_t>~bit
                if coins[i, 0] & 1:
                    wide[key >> 3] |= bit
                    if plus:
                        wide[width + (key >> 3)] |= bit
