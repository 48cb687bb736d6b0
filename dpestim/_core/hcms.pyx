"""Reports of Hadamard count-mean sketches, and their counts: a cell, which is a hash and a row, and a sign.

Hashes are those of `sketch`.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dpestim._core.grr cimport dpestim_join, dpestim_u128
from dpestim._core.rare cimport (
    dpestim_aes_blocks, dpestim_aes_counter, dpestim_aes_keys, dpestim_aes_schedule, dpestim_aes_stream, dpestim_has_aes)

cdef extern from "hadamard.h" nogil:
    bint dpestim_less(dpestim_u128 a, dpestim_u128 b) noexcept

cdef extern from "rare.h" nogil:
    size_t dpestim_rare_places(const uint8_t *lanes, size_t n, uint8_t least, uint8_t most, int64_t *places) noexcept

cdef extern from "sketch.h" nogil:
    enum:
        DPESTIM_SKETCH_ROWS
        DPESTIM_SKETCH_FEW
    void DPESTIM_SKETCH_FETCH(const void *at, size_t n_bytes) noexcept
    uint32_t dpestim_sketch_bucket(uint64_t code, const uint32_t *columns, size_t n_bits) noexcept
    bint dpestim_sketch_same(const uint32_t *columns, size_t k, size_t n_bits) noexcept
    void dpestim_sketch_cells(const uint64_t *u, size_t n, uint64_t n_cells, uint32_t *cells) noexcept
    void dpestim_sketch_first(const uint32_t *u, size_t n, int down, uint32_t *cells) noexcept
    void dpestim_sketch_turns(const uint64_t *u, size_t n, uint64_t keep, uint32_t *turns) noexcept
    void dpestim_sketch_turns_8(const uint8_t *u, size_t n, uint8_t first, uint32_t *turns) noexcept
    void dpestim_sketch_sent(const uint32_t *cells, const uint32_t *buckets, const uint32_t *turns, size_t n, int log_m,
                             uint32_t *places) noexcept
    void dpestim_sketch_add_64(const uint32_t *places, size_t n, int64_t *counts) noexcept
    void dpestim_sketch_add_tables(const uint32_t *places, size_t n, uint32_t (*tables)[DPESTIM_SKETCH_FEW]) noexcept
    size_t dpestim_sketch_add(const uint32_t *places, size_t n, uint8_t *lanes, uint32_t *full, size_t room) noexcept
    size_t dpestim_sketch_add_quarters(const uint32_t *places, size_t n, uint8_t *lanes, uint32_t *full,
                                       size_t room) noexcept
    size_t dpestim_sketch_join_quarters(uint8_t *lanes, const uint8_t *others, size_t n, uint32_t *full,
                                        size_t room) noexcept
    size_t dpestim_sketch_join(uint8_t *lanes, const uint8_t *others, size_t n, uint32_t *full, size_t room) noexcept
    void dpestim_sketch_write_8(const uint32_t *places, size_t n, int log_m, uint8_t *out) noexcept
    void dpestim_sketch_write_16(const uint32_t *places, size_t n, int log_m, uint16_t *out) noexcept
    void dpestim_sketch_write_32(const uint32_t *places, size_t n, int log_m, uint32_t *out) noexcept
    bint dpestim_sketch_places_8(const uint8_t *reports, size_t n, uint32_t k, int log_m, uint32_t *places) noexcept
    bint dpestim_sketch_places_16(const uint16_t *reports, size_t n, uint32_t k, int log_m, uint32_t *places) noexcept
    bint dpestim_sketch_picks_8(uint32_t k, int log_m) noexcept
    bint dpestim_sketch_picks_16(uint32_t k, int log_m) noexcept
    bint dpestim_sketch_few_8(const uint8_t *reports, size_t n, uint32_t k, int log_m,
                              uint32_t (*tables)[DPESTIM_SKETCH_FEW]) noexcept
    bint dpestim_sketch_few_16(const uint16_t *reports, size_t n, uint32_t k, int log_m,
                               uint32_t (*tables)[DPESTIM_SKETCH_FEW]) noexcept
    void dpestim_sketch_add_up(uint32_t (*tables)[DPESTIM_SKETCH_FEW], size_t n_counts, size_t k,
                               int64_t *counts) noexcept
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


cdef enum:
    MADE_ROWS = 2048  # whose words are made at a time: a multiple of those of a counter and of DPESTIM_SKETCH_ROWS
    TALLY_ROWS = 128  # reports that are read before they are counted, while those AHEAD of them are fetched,
    FETCH_ROWS = 16  # so many at a time (of few counters, which are counted in less time than that, all at once)
    AHEAD = 256
    BATCH = 8  # ties whose words are made at a time, as many as a tile has on average


cdef struct Made:  # words that are made here: three streams of counters, of which the first two begin within one
    dpestim_aes_keys keys
    uint64_t cell_head, cell_first, sign_head, sign_first, rare_head, rare_first
    Py_ssize_t cell_skip, sign_skip
    uint32_t halves[MADE_ROWS + 4]
    uint8_t lanes[MADE_ROWS + 16]
    int64_t kept[MADE_ROWS]


cdef struct Draws:  # what cells and signs of records are made of, and the public hashes
    const uint64_t *seeds      # a word a record,
    const uint32_t *halves     # or half of one, whose first digits are the cell
    const uint64_t *words      # one or two a record, high word first,
    const uint8_t *lanes       # or the first 8 digits of one
    const int64_t *kept        # records whose digits after these first ones say that the sign is kept, in order
    Py_ssize_t n_kept, n_next
    Py_ssize_t n, base         # records, and that to which the first of halves and lanes belong
    bint one, same, makes
    dpestim_u128 keep
    uint64_t low
    const uint32_t *columns
    Py_ssize_t n_bits
    uint64_t n_cells
    int log_m, log_cells
    Made made


cdef int _prepare(Draws *draws, Py_ssize_t n, seeds, response, keep, const uint32_t[:, ::1] columns,
                  int log_m) except -1:
    """Check lengths and fill in what all records share; the caller holds the arrays."""
    cdef const uint64_t[::1] whole
    cdef const uint32_t[::1] halves
    cdef const uint8_t[::1] lanes
    cdef const int64_t[::1] kept
    cdef Py_ssize_t i, n_kept
    if (columns.shape[0] == 0 or not 0 < columns.shape[1] <= 64 or not 0 <= log_m < 31
            or columns.shape[0] << log_m >= 1 << 31):
        raise ValueError("columns must hold at least one hash, and cells must be fewer than 2^31")
    draws.columns, draws.n_bits, draws.log_m = &columns[0, 0], columns.shape[1], log_m
    draws.n_cells, draws.log_cells = <uint64_t>columns.shape[0] << log_m, 0
    draws.same = dpestim_sketch_same(&columns[0, 0], columns.shape[0], columns.shape[1])
    draws.low = keep & 0xFFFFFFFFFFFFFFFF
    draws.keep = dpestim_join(keep >> 64, draws.low)
    draws.seeds = draws.words = NULL
    draws.halves, draws.lanes, draws.kept = NULL, NULL, NULL
    draws.n_kept = draws.n_next = draws.base = 0
    draws.one, draws.n, draws.makes = True, n, isinstance(seeds, tuple)
    if not draws.makes and len(seeds) != n:
        raise ValueError("codes and seeds differ in length")
    if draws.makes or seeds.itemsize == 4:
        while draws.n_cells >> draws.log_cells > 1:
            draws.log_cells += 1
        if draws.n_cells & (draws.n_cells - 1) or draws.log_cells == 0:
            raise ValueError("cells must be a power of two, more than one, to be drawn by half a word")
    if draws.makes:
        return _begin(&draws.made, seeds, response, keep)
    if seeds.itemsize == 4:
        halves = seeds
        draws.halves = &halves[0] if n else NULL
    else:
        whole = seeds
        draws.seeds = &whole[0] if n else NULL
    if isinstance(response, tuple):
        lanes, kept = response
        n_kept = kept.shape[0]
        if lanes.shape[0] != n or keep > <object>0xFFFFFFFFFFFFFFFF or keep < 1:
            raise ValueError("codes and lanes differ in length, or keep must be a word")
        for i in range(n_kept):
            if not (kept[i - 1] if i else -1) < kept[i] < n:
                raise ValueError("records whose signs are kept must be in order, and below their number")
        draws.lanes, draws.kept, draws.n_kept = &lanes[0] if n else NULL, &kept[0] if n_kept else NULL, n_kept
    else:
        whole = response
        draws.one = whole.shape[0] == n
        if not draws.one and whole.shape[0] != 2 * n:
            raise ValueError("codes and words differ in length")
        draws.words = &whole[0] if n else NULL
    return 0


cdef int _begin(Made *made, tuple cipher, response, keep) except -1:
    """Take the key and the streams."""
    cdef bytes key = cipher[0]
    if (response is not None or keep > <object>0xFFFFFFFFFFFFFFFF or keep < 1 or len(key) != 32
            or not dpestim_has_aes()):
        raise ValueError("keep must be a word, and a cipher have a key and a processor that encrypts")
    _, made.cell_head, made.cell_first, made.cell_skip, made.sign_head, made.sign_first, made.sign_skip, \
        made.rare_head, made.rare_first = cipher
    if not (0 <= made.cell_skip < 4 and 0 <= made.sign_skip < 16):
        raise ValueError("streams must begin within their first counter")
    dpestim_aes_schedule(<const uint8_t *>key, &made.keys)
    return 0


cdef void _make(Draws *draws, Py_ssize_t start) noexcept nogil:
    """Make the words of up to MADE_ROWS records, whose counters of cells and signs are whole but for the ends."""
    cdef Made *made = &draws.made
    cdef Py_ssize_t n = min(<Py_ssize_t>MADE_ROWS, draws.n - start), at = 0, m, k
    cdef uint64_t last = draws.low - 1, u
    cdef uint8_t first = <uint8_t>(last >> 56)
    cdef uint8_t blocks[BATCH][16]
    cdef size_t n_ties
    dpestim_aes_stream(&made.keys, made.cell_head, made.cell_first + <uint64_t>start // 4, <uint8_t *>made.halves,
                       <size_t>(made.cell_skip + n + 3) // 4)
    dpestim_aes_stream(&made.keys, made.sign_head, made.sign_first + <uint64_t>start // 16, made.lanes,
                       <size_t>(made.sign_skip + n + 15) // 16)
    draws.halves, draws.lanes, draws.base = made.halves + made.cell_skip, made.lanes + made.sign_skip, start
    draws.kept, draws.n_kept, draws.n_next = made.kept, 0, 0
    n_ties = dpestim_rare_places(draws.lanes, <size_t>n, first, first, made.kept)
    while at < <Py_ssize_t>n_ties:
        m = min(<Py_ssize_t>BATCH, <Py_ssize_t>n_ties - at)
        for k in range(m):
            dpestim_aes_counter(made.rare_head, made.rare_first + <uint64_t>(start + made.kept[at + k]), blocks[k])
        dpestim_aes_blocks(&made.keys, blocks[0], <size_t>m)
        for k in range(m):
            memcpy(&u, blocks[k], 8)
            made.kept[draws.n_kept] = made.kept[at + k]  # (what is written lies below what is unread)
            draws.n_kept += <uint64_t>first << 56 | u >> 8 <= last
        at += m


cdef void _places(Draws *draws, const code_t *codes, Py_ssize_t start, Py_ssize_t n, uint32_t *places) noexcept nogil:
    """Write the counter of each of some records, 2 cell + sign; calls go through all records in order."""
    cdef uint32_t cells[DPESTIM_SKETCH_ROWS]
    cdef uint32_t buckets[DPESTIM_SKETCH_ROWS]
    cdef uint32_t turns[DPESTIM_SKETCH_ROWS]
    cdef uint32_t mask = <uint32_t>((<uint64_t>1 << (draws.n_bits if draws.n_bits < 32 else 32)) - 1)
    cdef const uint64_t *words
    cdef Py_ssize_t i, at
    if draws.makes and start % MADE_ROWS == 0:
        _make(draws, start)
    at = start - draws.base
    if draws.halves != NULL:
        dpestim_sketch_first(draws.halves + at, n, 32 - draws.log_cells, cells)
    else:
        dpestim_sketch_cells(draws.seeds + start, n, draws.n_cells, cells)
    if draws.same:
        for i in range(n):
            buckets[i] = <uint32_t>codes[start + i] & mask
    else:
        for i in range(n):
            buckets[i] = dpestim_sketch_bucket(codes[start + i], draws.columns + (cells[i] >> draws.log_m) * draws.n_bits,
                                 draws.n_bits)
    if draws.lanes != NULL:
        dpestim_sketch_turns_8(draws.lanes + at, n, <uint8_t>(draws.low - 1 >> 56), turns)
        while draws.n_next < draws.n_kept and draws.kept[draws.n_next] < at + n:
            turns[draws.kept[draws.n_next] - at] = 0
            draws.n_next += 1
    elif draws.one:
        dpestim_sketch_turns(draws.words + start, n, draws.low, turns)
    else:
        for i in range(n):
            words = draws.words + 2 * (start + i)
            turns[i] = not dpestim_less(dpestim_join(words[0], words[1]), draws.keep)
    dpestim_sketch_sent(cells, buckets, turns, n, draws.log_m, places)


def answer(
    const code_t[::1] codes,         # IN   values
    seeds,                           # IN   a word u a record: the cell, hash and row, of k m is floor(u k m / 2^64);
                                     #      or half a word, where k m is a power of two: its first digits; or (key,
                                     #      head, counter, halves to skip; head, counter, first digits to skip; head,
                                     #      counter of the rest), of which all words are made, some rows at a time
    response,                        # IN   one or two words a record, high word first; or (the first 8 digits of one,
                                     #      the records where these are those of keep - 1, and the rest is below); or
                                     #      None, where words are made
    keep,                            # IN   the sign is kept below this, out of 2^64 or 2^128
    const uint32_t[:, ::1] columns,  # IN   (k, bits of a code)
    int log_m,                       # IN   there are m = 2^log_m buckets
    field_t[:, ::1] out,             # OUT  (n, 3): hash, row, sign
):
    """Write a Hadamard report of every record in one pass: cell, sign of its bucket, randomised response."""
    cdef Py_ssize_t n = codes.shape[0], start, size
    cdef uint32_t places[DPESTIM_SKETCH_ROWS]
    cdef Draws draws
    _prepare(&draws, n, seeds, response, keep, columns, log_m)
    if out.shape[0] != n or out.shape[1] != 3:
        raise ValueError("codes and out differ in length")
    with nogil:
        start = 0
        while start < n:
            size = DPESTIM_SKETCH_ROWS if n - start > DPESTIM_SKETCH_ROWS else n - start
            _places(&draws, &codes[0], start, size, places)
            if field_t is uint8_t:
                dpestim_sketch_write_8(places, size, log_m, &out[start, 0])
            elif field_t is uint16_t:
                dpestim_sketch_write_16(places, size, log_m, &out[start, 0])
            else:
                dpestim_sketch_write_32(places, size, log_m, &out[start, 0])
            start += size


# ---------------------------------------------------------------- counters
#
# Many counters are bytes until all reports are counted, and after that, where none has overflowed. A counter whose byte
# overflows goes into a list, with room for one in 256 reports. Where reports are few for them, four lie in a byte, and
# the list has room for one in 4 reports: what is spread over less memory is nearer. Few are counted in four tables: by
# 2 cell + sign, or by hash, row and sign from the lowest digit up.


cdef struct Counters:
    int64_t *counts      # added to,
    uint8_t *lanes       # unless there are bytes
    bint quarters        # with four counters in each
    uint32_t *full       # counters whose bytes have overflowed
    size_t n_full, room
    Py_ssize_t n_few     # counters that are in tables until the end, or 0
    uint32_t k           # hashes, where hash, row and sign number the entries of tables, or 0
    uint32_t tables[4][DPESTIM_SKETCH_FEW]


cdef int _hold(Counters *held, counters, uint32_t[::1] full, Py_ssize_t n_counts, Py_ssize_t n,
               bint quarters) except -1:
    """Say where n reports are counted; the caller holds the arrays. The last entry of a list says how many it has."""
    cdef int64_t[::1] counts
    cdef uint8_t[::1] lanes
    cdef int table
    held.counts, held.lanes, held.full, held.n_full, held.room, held.n_few = NULL, NULL, NULL, 0, 0, 0
    held.k, held.quarters = 0, quarters
    if len(counters) != (n_counts // 4 if quarters else n_counts) or n_counts == 0 or quarters and (
            n_counts % 4 or full is None):
        raise ValueError("counts must have one entry for each report")
    if full is None:
        counts = counters
        held.counts = &counts[0]
        if n_counts <= DPESTIM_SKETCH_FEW and 4 * n_counts <= n < <Py_ssize_t>1 << 32:
            held.n_few = n_counts
            for table in range(4):
                memset(held.tables[table], 0, 4 * <size_t>n_counts)
    else:
        lanes = counters
        if full.shape[0] == 0:
            raise ValueError("the list of full counters must have room for its length")
        held.lanes, held.full = &lanes[0], &full[0]
        held.room, held.n_full = full.shape[0] - 1, min(full[full.shape[0] - 1], full.shape[0] - 1)
    return 0


cdef int _release(Counters *held) except -1:
    """Add what tables have, or write how many counters are full."""
    if held.n_few:
        dpestim_sketch_add_up(held.tables, <size_t>held.n_few, held.k, held.counts)
    if held.full != NULL:
        held.full[held.room] = <uint32_t>held.n_full
        if held.n_full == held.room:
            raise ValueError("the list of full counters must have room for one in 256 reports, or one in "
                             "4, and one more")
    return 0


cdef inline void _add(Counters *held, const uint32_t *places, Py_ssize_t n) noexcept nogil:
    if held.quarters:
        held.n_full += dpestim_sketch_add_quarters(places, n, held.lanes, held.full + held.n_full,
                                                   held.room - held.n_full)
    elif held.lanes != NULL:
        held.n_full += dpestim_sketch_add(places, n, held.lanes, held.full + held.n_full, held.room - held.n_full)
    elif held.n_few:
        dpestim_sketch_add_tables(places, n, held.tables)
    else:
        dpestim_sketch_add_64(places, n, held.counts)


def send(
    const code_t[::1] codes,         # IN   values
    seeds,                           # IN   as `answer` has them
    response,                        # IN
    keep,                            # IN
    const uint32_t[:, ::1] columns,  # IN
    int log_m,                       # IN
    counts,                          # OUT  (2 k m), int64, added to; or, with a list `full`, uint8, see `sketch.settle`
    uint32_t[::1] full=None,         # OUT  counters whose bytes have overflowed, and at the end how many; or none
    bint quarters=False,             # IN   whether a byte has four counters, lowest digits first
):
    """Add a histogram of the reports that `answer` would write, which are written nowhere."""
    cdef Py_ssize_t n = codes.shape[0], start, size
    cdef uint32_t places[DPESTIM_SKETCH_ROWS]
    cdef Draws draws
    cdef Counters held
    _prepare(&draws, n, seeds, response, keep, columns, log_m)
    _hold(&held, counts, full, columns.shape[0] << (log_m + 1), n, quarters)
    with nogil:
        start = 0
        while start < n:
            size = DPESTIM_SKETCH_ROWS if n - start > DPESTIM_SKETCH_ROWS else n - start
            _places(&draws, &codes[0], start, size, places)
            _add(&held, places, size)
            start += size
    _release(&held)


def tally(
    const field_t[:, ::1] reports,   # IN   (n, 3): hash, row, sign
    int log_m,                       # IN   there are m = 2^log_m buckets
    counts,                          # OUT  (2 k m), as `send` has them
    uint32_t[::1] full=None,         # OUT
    bint quarters=False,             # IN
):
    """Add a histogram of Hadamard reports; return whether all had a cell and a sign (if not, `counts` is of no use).

    A field is read once and compared before it is used as an index, as `dpestim._core.grr.count` does. Places are
    worked out some at a time, so that many counters far from each other are fetched at once, and reports are fetched
    before they are wanted: reading them takes longer than all else.
    """
    cdef Py_ssize_t n = reports.shape[0], n_counts = len(counts) * (4 if quarters else 1), start, size, at, step
    cdef uint32_t places[TALLY_ROWS]
    cdef uint32_t k
    cdef Counters held
    cdef bint good = True
    if reports.shape[1] != 3 or not 0 <= log_m < 31 or n_counts == 0 or n_counts % (<Py_ssize_t>2 << log_m):
        raise ValueError("reports and counts differ in width")
    if n_counts >= <Py_ssize_t>1 << 32:
        raise ValueError("counts must be fewer than 2^32")
    k = <uint32_t>(n_counts >> (log_m + 1))
    _hold(&held, counts, full, n_counts, n, quarters)
    step = FETCH_ROWS if held.lanes != NULL else TALLY_ROWS
    start = 0
    with nogil:
        if field_t is uint8_t:
            if held.n_few and dpestim_sketch_picks_8(k, log_m):
                good, held.k, start = dpestim_sketch_few_8(&reports[0, 0], n, k, log_m, held.tables), k, n
        elif field_t is uint16_t:
            if held.n_few and dpestim_sketch_picks_16(k, log_m):
                good, held.k, start = dpestim_sketch_few_16(&reports[0, 0], n, k, log_m, held.tables), k, n
        while start < n:
            size = TALLY_ROWS if n - start > TALLY_ROWS else n - start
            if field_t is uint8_t:
                good = dpestim_sketch_places_8(&reports[start, 0], size, k, log_m, places)
            elif field_t is uint16_t:
                good = dpestim_sketch_places_16(&reports[start, 0], size, k, log_m, places)
            else:
                good = dpestim_sketch_places_32(&reports[start, 0], size, k, log_m, places)
            if not good:
                break
            at = 0
            while at < size:
                if n - start - at >= AHEAD + step:
                    DPESTIM_SKETCH_FETCH(&reports[start + at + AHEAD, 0], 3 * step * sizeof(field_t))
                _add(&held, places + at, step if size - at > step else size - at)
                at += step
            start += size
    _release(&held)
    return good


def join(
    uint8_t[::1] lanes,              # IN and OUT  bytes of counters, as `send` and `tally` left them
    uint32_t[::1] full,              # IN and OUT  those that have overflowed, each time, and at the end how many
    const uint8_t[::1] more,         # IN   bytes of counters of other reports
    const uint32_t[::1] more_full,   # IN   those of them that have overflowed
    bint quarters=False,             # IN   whether a byte has four counters
):
    """Add the bytes of other counters; a list for all reports together has room for all that overflow."""
    cdef Py_ssize_t n = lanes.shape[0], i, n_more
    cdef Counters held
    if (more.shape[0] != n or n == 0 or full is None or more_full.shape[0] == 0
            or more_full[more_full.shape[0] - 1] >= more_full.shape[0]):
        raise ValueError("counts and lists of full counters must fit")
    _hold(&held, lanes, full, 4 * n if quarters else n, 0, quarters)
    n_more = more_full[more_full.shape[0] - 1]
    if n_more > <Py_ssize_t>(held.room - held.n_full):
        raise ValueError("the list of full counters must have room for those of both")
    for i in range(n_more):
        held.full[held.n_full] = more_full[i]
        held.n_full += 1
    with nogil:
        if quarters:
            held.n_full += dpestim_sketch_join_quarters(held.lanes, &more[0], n, held.full + held.n_full,
                                                        held.room - held.n_full)
        else:
            held.n_full += dpestim_sketch_join(held.lanes, &more[0], n, held.full + held.n_full,
                                               held.room - held.n_full)
    _release(&held)
