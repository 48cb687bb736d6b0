"""Unary encoding on packed bits: privatize (eight bits from 16 random ones, ties settled exactly) and column sums."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dpestim._core.rare cimport (
    dpestim_aes_blocks, dpestim_aes_counter, dpestim_aes_keys, dpestim_aes_schedule, dpestim_aes_stream, dpestim_has_aes)

cdef enum:
    TILE_WORDS = 2048  # made at a time, where records are not longer: they stay in the first-level cache
    BATCH = 32  # ties whose words are made at a time
    _MOST_COINS = TILE_WORDS // 2
    RARE_WORDS = 8  # places a pattern has among rare words

cdef extern from "unary.h" nogil:
    size_t dpestim_unary_draw(const uint16_t *random, size_t stride, size_t n, size_t width, const uint8_t *table,
                              const uint8_t *columns, uint8_t *out, uint32_t *ties) noexcept
    size_t dpestim_rank(const uint64_t *edges, uint64_t u) noexcept
    uint8_t dpestim_pattern(const uint8_t *columns, uint16_t random) noexcept
    void dpestim_unary_compare(const uint64_t *words, const uint64_t *thresholds, size_t n, uint8_t *out) noexcept
    void dpestim_unary_count(const uint8_t *reports, size_t n, size_t width, int64_t *counts) noexcept

#: Words of coins a record, up to which `toss` makes them.
MOST_COINS = _MOST_COINS

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t


def draw(
    const uint64_t[:, ::1] words,   # IN   (n, 1 + ceil(width / 4)): a word for `finish`, then 16 random bits a pattern
    const uint8_t[::1] table,       # IN   (65536) the pattern that 16 random bits decide on, 255 where they do not
    const uint8_t[:, ::1] columns,  # IN   (3, 256) the same: two patterns a column, first one's end
    uint8_t[:, ::1] out,            # OUT  (n, width) patterns of eight bits
    uint32_t[::1] ties,             # OUT  capacity n * width + 1: record * width + number of the pattern, where open
):
    """Draw every bit as if it were false, but for the ties, whose number is returned; `settle` and `finish` follow."""
    cdef Py_ssize_t n = words.shape[0], width = out.shape[1]
    cdef size_t n_ties
    if (words.shape[1] != 1 + (width + 3) // 4 or out.shape[0] != n or table.shape[0] != 65536 or width < 1
            or columns.shape[0] != 3 or columns.shape[1] != 256 or ties.shape[0] <= n * width
            or n * width >= <int64_t>1 << 32):
        raise ValueError("words, table, columns, out and ties differ in length")
    if n == 0:
        return 0
    with nogil:
        n_ties = dpestim_unary_draw(<const uint16_t *>&words[0, 1], 4 * words.shape[1], n, width, &table[0],
                                    &columns[0, 0], &out[0, 0], &ties[0])
    return n_ties


def tile_rows(
    Py_ssize_t width,               # IN   bytes of a report, above 0
):
    """Return (how many records `encode` draws at a time, words that these take), for its scratch."""
    cdef Py_ssize_t size = 1 + (width + 3) // 4, rows = max(2, TILE_WORDS // size // 2 * 2)
    return rows, rows * size + 2


def encode(
    const code_t[::1] codes,        # IN   as for `finish`
    bint has_codes,                 # IN   else all bits are drawn as if they were false, and none is dropped
    tuple cipher not None,          # IN   (key, head, counter, skip, head, counter) of a stage's words and rare words
    const uint8_t[::1] table,       # IN   as for `draw`
    const uint8_t[:, ::1] columns,  # IN   as for `draw`
    const uint64_t[::1] edges,      # IN   as for `settle`
    Py_ssize_t n_bits,              # IN   as for `finish`
    uint64_t true_threshold,        # IN   as for `finish`
    uint8_t[:, ::1] out,            # OUT  (n, width) complete reports, but for what is left open
    uint64_t[::1] scratch,          # OUT  as long as `tile_rows` says
    uint32_t[::1] ties,             # OUT  capacity: a tile's rows * width + 1
    uint64_t[::1] firsts,           # OUT  the first word of each record, or empty
):
    """Do what `draw`, `settle` and `finish` do, and make the words, tile by tile: threads hand nothing over meanwhile.

    Returns how many ties 64 digits left open.
    """
    if len(cipher) != 6:  # (before anything of it is read)
        raise ValueError("cipher must have six parts")
    cdef bytes key = cipher[0]
    cdef uint64_t head = cipher[1], first = cipher[2], rare_head = cipher[4], rare_first = cipher[5]
    cdef Py_ssize_t n = out.shape[0], width = out.shape[1], n_firsts = firsts.shape[0]
    cdef Py_ssize_t size = 1 + (width + 3) // 4, skip = cipher[3], rows, low = 0, m, i
    cdef size_t n_ties, n_open = 0
    cdef dpestim_aes_keys keys
    cdef uint64_t *words
    rows = max(2, TILE_WORDS // size // 2 * 2)
    if (len(key) != 32 or not dpestim_has_aes() or not 0 <= skip <= 1 or width < 1 or table.shape[0] != 65536
            or columns.shape[0] != 3 or columns.shape[1] != 256 or edges.shape[0] != 255
            or (has_codes and (codes.shape[0] != n or width != (n_bits + 7) // 8 or n_bits < 1))
            or scratch.shape[0] < rows * size + 2 or ties.shape[0] <= rows * width or n_firsts not in (0, n)):
        raise ValueError("cipher, table, columns, edges, codes, out, scratch or firsts differ in length")
    if n == 0:
        return 0
    dpestim_aes_schedule(<const uint8_t *>key, &keys)
    words = &scratch[skip]
    with nogil:
        while low < n:
            m = min(rows, n - low)  # (an even number of records takes an even number of words, and so whole counters)
            dpestim_aes_stream(&keys, head, first + <uint64_t>(low // 2 * size), <uint8_t *>&scratch[0],
                               <size_t>(skip + m * size + 1) // 2)
            n_ties = dpestim_unary_draw(<const uint16_t *>(words + 1), <size_t>(4 * size), <size_t>m, <size_t>width,
                                        &table[0], &columns[0, 0], &out[low, 0], &ties[0])
            n_open += _settle(&keys, rare_head, rare_first + <uint64_t>(RARE_WORDS * low * width), words, size, width,
                              &ties[0], n_ties, &edges[0], &out[low, 0])
            for i in range(m if has_codes else 0):
                _finish(&out[low + i, 0], width, n_bits, codes[low + i], words[i * size] < true_threshold)
            for i in range(m if n_firsts else 0):
                firsts[low + i] = words[i * size]
            low += rows
    return n_open


cdef size_t _settle(const dpestim_aes_keys *keys, uint64_t head, uint64_t first, const uint64_t *words,
                    Py_ssize_t size, Py_ssize_t width, const uint32_t *ties, size_t n_ties, const uint64_t *edges,
                    uint8_t *out) noexcept nogil:
    """Settle the ties of a tile by 64 digits, as `settle` does; return how many these leave open."""
    cdef uint8_t blocks[BATCH][16]
    cdef size_t at = 0, m, k, rank, n_open = 0
    cdef uint64_t u
    cdef uint32_t record, group
    while at < n_ties:
        m = min(<size_t>BATCH, n_ties - at)
        for k in range(m):
            dpestim_aes_counter(head, first + <uint64_t>RARE_WORDS * ties[at + k], blocks[k])
        dpestim_aes_blocks(keys, blocks[0], m)
        for k in range(m):
            record = ties[at + k] // <uint32_t>width
            group = ties[at + k] - record * <uint32_t>width
            memcpy(&u, blocks[k], 8)
            u = u >> 16 | <uint64_t>(<const uint16_t *>(words + record * size + 1))[group] << 48
            rank = dpestim_rank(edges, u)
            n_open += rank < 255 and edges[rank] == u
            out[ties[at + k]] = <uint8_t>rank
        at += m
    return n_open


def draw_one(
    bytes words not None,           # IN   words of one record, eight bytes each
    Py_ssize_t start,               # IN   the first of those that are as for `draw`
    Py_ssize_t spare,               # IN   that of spare ones for ties: start + 1 + ceil(width / 4)
    Py_ssize_t end,                 # IN   where these end
    bytes law not None,             # IN   the bytes of `columns` as for `draw`, and of `edges` as for `settle`
    bint inverted,                  # IN   whether every bit is turned
    Py_ssize_t code,                # IN   the true value; below 0, where no bit is the true one
    Py_ssize_t n_bits,              # IN   as for `finish`, as is
    uint64_t true_threshold,        # IN   the threshold
    uint8_t[:, ::1] out,            # OUT  (1, width) a complete report, but for what is left open
):
    """Do what `draw`, `settle` and `finish` do, for one record; return how many patterns spare words left open.

    Bytes are read as they are: a view of an array takes as long as a hundred bits.
    """
    cdef Py_ssize_t width = out.shape[1], n_open = 0, i
    cdef const uint8_t *columns = law
    cdef const uint64_t *edges = <const uint64_t *>(columns + 768)
    cdef const uint64_t *drawn = <const uint64_t *><const uint8_t *>words
    cdef const uint16_t *random = <const uint16_t *>(drawn + start + 1)
    cdef bint one
    cdef uint8_t pattern, turned = 255 if inverted else 0
    cdef uint64_t u
    cdef size_t rank
    if (out.shape[0] != 1 or width < 1 or start < 0 or spare - start != 1 + (width + 3) // 4 or end < spare
            or end > len(words) // 8 or len(law) != 768 + 8 * 255 or not 8 * width - 8 < n_bits <= 8 * width
            or code >= n_bits):
        raise ValueError("words, law and out differ in length")
    one = drawn[start] < true_threshold
    for i in range(width):
        pattern = dpestim_pattern(columns, random[i])
        if pattern == 255:
            if spare == end:
                n_open += 1
            else:
                u = <uint64_t>random[i] << 48 | drawn[spare] >> 16
                spare += 1
                rank = dpestim_rank(edges, u)
                n_open += rank < 255 and edges[rank] == u
                pattern = <uint8_t>rank
        out[0, i] = pattern ^ turned
    _finish(&out[0, 0], width, n_bits, code, one)
    return n_open


cdef inline void _finish(uint8_t *out, Py_ssize_t width, Py_ssize_t n_bits, Py_ssize_t code, bint one) noexcept nogil:
    """Drop the surplus bits of the last pattern, and put the true bit, if there is one."""
    out[width - 1] &= <uint8_t>(255 >> (8 * width - n_bits))
    if code >= 0:
        out[code >> 3] = (out[code >> 3] & <uint8_t>~(1 << (code & 7))) | <uint8_t>(one << (code & 7))


def settle(
    const uint64_t[:, ::1] words,   # IN   the same as for `draw`
    uint32_t[::1] ties,             # IN   from `draw`;  OUT  in front: those that are still open
    const uint64_t[:] rare,         # IN   one word a tie: its upper 48 bits are the next digits after the 16
    const uint64_t[::1] edges,      # IN   (255) ascending: the first 64 digits of the boundaries between patterns
    uint8_t[:, ::1] out,            # OUT  their patterns: how many of the boundaries are not above the number
):
    """Settle the ties by 64 digits; return how many equal a boundary's, so that only more digits can tell."""
    cdef Py_ssize_t width = out.shape[1], i, n_open = 0
    cdef uint32_t record, group
    cdef uint64_t u
    cdef size_t rank
    if (rare.shape[0] != ties.shape[0] or words.shape[0] != out.shape[0] or words.shape[1] != 1 + (width + 3) // 4
            or edges.shape[0] != 255):
        raise ValueError("words, ties, rare, edges and out differ in length")
    with nogil:
        for i in range(ties.shape[0]):
            record = ties[i] // <uint32_t>width
            group = ties[i] - record * <uint32_t>width
            u = <uint64_t>(<const uint16_t *>&words[record, 1])[group] << 48 | rare[i] >> 16
            rank = dpestim_rank(&edges[0], u)
            if rank < 255 and edges[rank] == u:
                ties[n_open] = ties[i]
                n_open += 1
            else:
                out[record, group] = <uint8_t>rank
    return n_open


def finish(
    const code_t[::1] codes,        # IN   true values, below n_bits
    const uint64_t[:, ::1] words,   # IN   the same as for `draw`; the first word of a record decides its true bit
    Py_ssize_t n_bits,              # IN   8 * width or up to 7 less: surplus bits are dropped
    uint64_t true_threshold,        # IN   Pr[1] of the true bit is true_threshold / 2^64
    uint8_t[:, ::1] out,            # OUT  complete reports
):
    """Drop the surplus bits of the last patterns and put the true bits."""
    cdef Py_ssize_t n = codes.shape[0], i
    if words.shape[0] != n or out.shape[0] != n or out.shape[1] != (n_bits + 7) // 8 or n_bits < 1:
        raise ValueError("codes, words and out differ in length")
    with nogil:
        for i in range(n):
            _finish(&out[i, 0], out.shape[1], n_bits, codes[i], words[i, 0] < true_threshold)


def compare(
    const code_t[::1] codes,        # IN   true values, below the number of bits
    const uint64_t[::1] words,      # IN   (n * bits) a word for each bit
    const uint64_t[:, ::1] odds,    # IN   (2, bits) Pr[1] * 2^64 of each bit, where its value is held, and where not
    uint8_t[:, ::1] out,            # OUT  (n, ceil(bits / 8)) complete reports
):
    """Decide about every bit by a word and a threshold of its own."""
    cdef Py_ssize_t n = codes.shape[0], n_bits = odds.shape[1], i, code
    if (odds.shape[0] != 2 or n_bits < 1 or words.shape[0] != n * n_bits or out.shape[0] != n
            or out.shape[1] != (n_bits + 7) // 8):
        raise ValueError("codes, words, odds and out differ in length")
    with nogil:
        for i in range(n):
            dpestim_unary_compare(&words[i * n_bits], &odds[1, 0], n_bits, &out[i, 0])
            code = codes[i]
            _finish(&out[i, 0], out.shape[1], n_bits, code, words[i * n_bits + code] < odds[0, code])


def flip(
    const uint8_t[:, ::1] kept,     # IN   (n, width) packed bits
    const uint64_t[::1] coins,      # IN   (n * words) bits that a kept 1 becomes; empty: the turn of what a 0 becomes
    Py_ssize_t n_bits,              # IN   8 * width or up to 7 less: surplus bits are dropped
    uint8_t[:, ::1] out,            # IN   what a kept 0 becomes   OUT  what each bit does
):
    """Answer every kept bit."""
    cdef Py_ssize_t n = kept.shape[0], width = kept.shape[1], n_coins = coins.shape[0], i
    if (out.shape[0] != n or out.shape[1] != width or (n_bits + 7) // 8 != width or width < 1
            or (n_coins and n_coins != n * ((width + 7) // 8))):
        raise ValueError("kept, coins and out differ in length")
    if n == 0:
        return
    with nogil:
        if n_coins:
            for i in range(n):
                _toss(&kept[i, 0], <const uint8_t *>&coins[i * ((width + 7) // 8)], width, n_bits, &out[i, 0])
        else:
            _turn(&kept[0, 0], n, width, n_bits, &out[0, 0])


cdef void _turn(const uint8_t *kept, Py_ssize_t n, Py_ssize_t width, Py_ssize_t n_bits, uint8_t *out) noexcept nogil:
    """Turn the bits of all records where a kept one is 1, as one run of bytes (records may be of a byte or two)."""
    cdef Py_ssize_t i
    cdef uint8_t inside = <uint8_t>(255 >> (8 * width - n_bits))
    for i in range(n * width):
        out[i] ^= kept[i]
    if inside != 255:
        for i in range(n):
            out[i * width + width - 1] &= inside


def toss(
    const uint8_t[:, ::1] kept,     # IN   as for `flip`, up to MOST_COINS words of coins a record
    tuple cipher not None,          # IN   (key, head, counter, words to skip) of the coins
    Py_ssize_t n_bits,              # IN   as for `flip`
    uint8_t[:, ::1] out,            # IN   as for `flip`   OUT  as for `flip`
):
    """Do what `flip` does with coins, and make these, tile by tile."""
    if len(cipher) != 4:  # (before anything of it is read)
        raise ValueError("cipher must have four parts")
    cdef bytes key = cipher[0]
    cdef uint64_t head = cipher[1], first = cipher[2]
    cdef Py_ssize_t n = kept.shape[0], width = kept.shape[1], skip = cipher[3], size = (width + 7) // 8
    cdef Py_ssize_t low = 0, rows, m, i
    cdef dpestim_aes_keys keys
    cdef uint64_t coins[TILE_WORDS + 2]
    if (out.shape[0] != n or out.shape[1] != width or (n_bits + 7) // 8 != width or width < 1 or size > _MOST_COINS
            or not 0 <= skip <= 1 or len(key) != 32 or not dpestim_has_aes()):
        raise ValueError("kept, cipher and out differ in length")
    dpestim_aes_schedule(<const uint8_t *>key, &keys)
    rows = TILE_WORDS // size // 2 * 2
    with nogil:
        while low < n:
            m = min(rows, n - low)
            dpestim_aes_stream(&keys, head, first + <uint64_t>(low // 2 * size), <uint8_t *>&coins[0],
                               <size_t>(skip + m * size + 1) // 2)
            for i in range(m):
                _toss(&kept[low + i, 0], <const uint8_t *>&coins[skip + i * size], width, n_bits, &out[low + i, 0])
            low += m


cdef inline void _toss(const uint8_t *kept, const uint8_t *coins, Py_ssize_t width, Py_ssize_t n_bits,
                       uint8_t *out) noexcept nogil:
    """Put a coin where a kept bit is 1, and drop the surplus bits."""
    cdef Py_ssize_t j
    for j in range(width):
        out[j] = (out[j] & <uint8_t>~kept[j]) | (coins[j] & kept[j])
    _finish(out, width, n_bits, -1, False)


def count(
    const uint8_t[:, ::1] reports,  # IN   (n, width) packed bits
    int64_t[::1] counts,            # OUT  (8 * width), added to
):
    """Add the column sums of packed bits."""
    if counts.shape[0] != 8 * reports.shape[1]:
        raise ValueError("counts must have 8 places a byte")
    if reports.shape[0] == 0 or reports.shape[1] == 0:
        return
    with nogil:
        dpestim_unary_count(&reports[0, 0], reports.shape[0], reports.shape[1], &counts[0])
