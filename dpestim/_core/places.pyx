"""Places on a grid of the plane: noise that is uniform in a disc (or a diamond) of a random size, and what is nearest in
a region."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


def scatter(
    const int32_t[:, ::1] places,   # IN   (n, 2): places of the region
    const uint64_t[:, ::1] words,   # IN   (n, 2 * attempts): random words
    const uint64_t[::1] ends,       # IN   (k): a first word below end i, and not below one before, is of interval i
    const int32_t[::1] guide,       # IN   (4097): the first interval of words with these 12 upper bits
    const int64_t[::1] starts,      # IN   (k): the least size in each interval
    const uint8_t[::1] counts,      # IN   (k): each has 2**counts sizes
    const uint8_t[::1] bits,        # IN   (k): and is drawn in a square with a side of 2**bits
    int box_bits,                   # IN   other words are of a box with a side of 2**box_bits
    int64_t n_first,                # IN   places of the region in the first coordinate
    int64_t n_second,               # IN   and in the second
    bint manhattan,                 # IN   whether sizes are |i| + |j|; else they are i * i + j * j
    uint64_t[::1] out,              # OUT  number of a place of the region, row after row; untouched where no attempt hits
    uint8_t[::1] done,              # OUT  1 where an attempt has hit
):
    """Write for each place the place of the region that is nearest to the place and its noise."""
    cdef Py_ssize_t n = places.shape[0], row, k = ends.shape[0], low, high, middle, attempt
    cdef Py_ssize_t attempts = words.shape[1] // 2
    cdef uint64_t first, second, mask
    cdef int64_t i, j, size, box0 = (((<int64_t>1) << box_bits) - n_first) // 2
    cdef int64_t box1 = (((<int64_t>1) << box_bits) - n_second) // 2
    if words.shape[0] != n or out.shape[0] != n or done.shape[0] != n or places.shape[1] != 2:
        raise ValueError("places, words, out and done differ in length")
    if starts.shape[0] != k or counts.shape[0] != k or bits.shape[0] != k or guide.shape[0] != 4097:
        raise ValueError("the intervals differ in length")
    with nogil:
        for row in range(n):
            for attempt in range(attempts):
                first, second = words[row, 2 * attempt], words[row, 2 * attempt + 1]
                low, high = guide[first >> 52], guide[(first >> 52) + 1]
                while low < high:  # the number of ends that are at most the word
                    middle = (low + high) >> 1
                    if ends[middle] <= first:
                        low = middle + 1
                    else:
                        high = middle
                if low == k:  # the same for all places
                    mask = ((<uint64_t>1) << box_bits) - 1
                    i = <int64_t>(second & mask) - box0
                    j = <int64_t>((second >> box_bits) & mask) - box1
                else:
                    mask = ((<uint64_t>1) << bits[low]) - 1
                    i = <int64_t>(second & mask) - <int64_t>((mask + 1) >> 1)
                    j = <int64_t>((second >> bits[low]) & mask) - <int64_t>((mask + 1) >> 1)
                    size = starts[low] + <int64_t>((second >> (2 * bits[low])) & (((<uint64_t>1) << counts[low]) - 1))
                    if manhattan:
                        if (i if i >= 0 else -i) + (j if j >= 0 else -j) > size:
                            continue
                    elif i * i + j * j > size:
                        continue
                    i, j = i + places[row, 0], j + places[row, 1]
                i = 0 if i < 0 else n_first - 1 if i >= n_first else i
                j = 0 if j < 0 else n_second - 1 if j >= n_second else j
                out[row] = <uint64_t>(i * n_second + j)
                done[row] = 1
                break
