"""Shuffles of rows of bytes: swaps at uniform places, and buckets through a network. Proofs: shuffle/transport."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "shuffle.h" nogil:
    void dpestim_swaps(uint8_t *rows, size_t width, size_t first, size_t last, const uint64_t *words,
                       const uint64_t *spare, size_t n_spare, size_t *used) noexcept
    void dpestim_slot(uint8_t *to, const uint8_t *source, size_t width) noexcept


def swaps(
    uint8_t[:, ::1] rows,        # IN and OUT  what is shuffled
    Py_ssize_t first,            # IN   the steps of places first .. last - 1, from the last one down
    Py_ssize_t last,             # IN
    const uint64_t[::1] words,   # IN   one for each step
    const uint64_t[::1] spare,   # IN   for words that must be rejected
    Py_ssize_t used,             # IN   of the spare words, so far
):
    """Do a run of steps of the shuffle of Fisher and Yates; return how many spare words are used, or one more than all."""
    cdef size_t count = used
    if not 0 <= first <= last <= rows.shape[0] or words.shape[0] != last - first or not 0 <= used <= spare.shape[0]:
        raise ValueError("first, last, words and used do not fit")
    if first == last or not rows.shape[1] or not spare.shape[0]:
        return used
    with nogil:
        dpestim_swaps(&rows[0, 0], rows.shape[1], first, last, &words[0], &spare[0], spare.shape[0], &count)
    return <Py_ssize_t>count


def route(
    uint8_t[:, ::1] slots,       # IN and OUT  buckets * size rows, the loads[b] first of each bucket are real
    uint32_t[::1] keys,          # IN and OUT  where each is to go
    uint32_t[::1] loads,         # IN and OUT  real rows, for each bucket
    Py_ssize_t size,             # IN   slots of a bucket
    int shift,                   # IN   the lowest bit of this pass
    int bits,                    # IN   how many
    uint8_t[:, ::1] private_slots,    # WORK 2 * 2^bits * size rows
    uint32_t[::1] private_keys,       # WORK
    int64_t[::1] trace,          # OUT  the buckets in the order in which they are read, then written; or nothing
):
    """Send all to buckets that agree with their keys in some bits; return whether every bucket could hold its own.

    Buckets are read whole and written whole, 2^bits at a time, in an order that depends on nothing else.
    """
    cdef Py_ssize_t n_buckets = loads.shape[0], ways = (<Py_ssize_t>1) << bits, width = slots.shape[1]
    cdef Py_ssize_t group, base, w, i, to, half = ways * size, touched = 0
    cdef uint32_t count[16]
    cdef uint32_t key
    cdef bint fits = True
    if (not 1 <= bits <= 4 or shift < 0 or shift + bits > 31 or n_buckets % (ways << shift) or width < 1 or size < 1
            or slots.shape[0] != n_buckets * size or keys.shape[0] != slots.shape[0]
            or private_slots.shape[0] < 2 * half or private_slots.shape[1] != width
            or private_keys.shape[0] < 2 * half or (trace.shape[0] and trace.shape[0] != 2 * n_buckets)):
        raise ValueError("lengths or bits do not fit")
    with nogil:
        for group in range(n_buckets // ways):
            base = ((group >> shift) << (shift + bits)) | (group & (((<Py_ssize_t>1) << shift) - 1))
            for w in range(ways):
                i = base + (w << shift)
                memcpy(&private_slots[w * size, 0], &slots[i * size, 0], size * width)
                memcpy(&private_keys[w * size], &keys[i * size], 4 * size)
                if trace.shape[0]:
                    trace[touched] = i
                    touched += 1
                count[w] = 0
            for w in range(ways):
                for i in range(w * size, w * size + loads[base + (w << shift)]):
                    key = private_keys[i]
                    to = (key >> shift) & (ways - 1)
                    if count[to] == size:
                        fits = False
                        continue
                    private_keys[half + to * size + count[to]] = key
                    dpestim_slot(&private_slots[half + to * size + count[to], 0], &private_slots[i, 0], width)
                    count[to] += 1
            for w in range(ways):
                i = base + (w << shift)
                memcpy(&slots[i * size, 0], &private_slots[half + w * size, 0], size * width)
                memcpy(&keys[i * size], &private_keys[half + w * size], 4 * size)
                loads[i] = count[w]
                if trace.shape[0]:
                    trace[touched] = i
                    touched += 1
    return fits


def gather(
    const uint8_t[:, ::1] slots,   # IN   buckets * size rows
    const uint32_t[::1] loads,     # IN   real rows, for each bucket
    Py_ssize_t size,               # IN   slots of a bucket
    const uint64_t[::1] words,     # IN   one for each row
    const uint64_t[::1] spare,     # IN   for words that must be rejected
    uint8_t[:, ::1] out,           # OUT  all rows, each bucket's in an order of their own
):
    """Shuffle each bucket and put them one after another; return how many spare words it took, or one more than all."""
    cdef Py_ssize_t b, at = 0, n = out.shape[0], width = out.shape[1]
    cdef size_t count = 0
    for b in range(loads.shape[0]):
        at += loads[b] if loads[b] <= size else n + 1
    if at != n or width < 1 or slots.shape[1] != width or slots.shape[0] != loads.shape[0] * size or words.shape[0] != n:
        raise ValueError("lengths do not fit")
    if n == 0 or not spare.shape[0]:
        return 0
    at = 0
    with nogil:
        for b in range(loads.shape[0]):
            if loads[b]:
                memcpy(&out[at, 0], &slots[b * size, 0], loads[b] * width)
                dpestim_swaps(&out[at, 0], width, 0, loads[b], &words[at], &spare[0], spare.shape[0], &count)
                if count > <size_t>spare.shape[0]:
                    break
                at += loads[b]
    return <Py_ssize_t>count
