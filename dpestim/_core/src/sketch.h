/* Reports of the Hadamard count-mean sketch, some hundred at a time: loops that are simple enough to become vectors. */
#ifndef DPESTIM_SKETCH_H
#define DPESTIM_SKETCH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "portable.h"
#include "wide.h"

#define DPESTIM_SKETCH_ROWS 512
/* Counters that are few: four tables of them lie in the nearest cache. */
#define DPESTIM_SKETCH_FEW 2048

/* The bucket of a code: bit i of the code brings columns[i]. */
static inline uint32_t dpestim_sketch_bucket(uint64_t code, const uint32_t *columns, size_t n_bits) {
    uint32_t out = 0;
    for (size_t i = 0; i < n_bits; i++) out ^= columns[i] & (uint32_t)-(int64_t)(code >> i & 1);
    return out;
}

/* Whether there is one hash, which leaves values as they are: there is nothing to be looked up then. */
static inline int dpestim_sketch_same(const uint32_t *columns, size_t k, size_t n_bits) {
    if (k != 1 || n_bits > 32) return 0;
    for (size_t i = 0; i < n_bits; i++)
        if (columns[i] != (uint32_t)1 << i) return 0;
    return 1;
}

/* floor(u n_cells / 2^64), for n_cells < 2^32. */
DPESTIM_WIDE static void dpestim_sketch_cells(const uint64_t *restrict u, size_t n, uint64_t n_cells,
                                              uint32_t *restrict cells) {
    for (size_t i = 0; i < n; i++)
        cells[i] = (uint32_t)(((u[i] >> 32) * n_cells + ((u[i] & 0xFFFFFFFFu) * n_cells >> 32)) >> 32);
}

/* The first digits of 32. */
DPESTIM_WIDE static void dpestim_sketch_first(const uint32_t *restrict u, size_t n, int down,
                                              uint32_t *restrict cells) {
    for (size_t i = 0; i < n; i++) cells[i] = u[i] >> down;
}

/* 1 where a word is `keep` or more: the sign is turned. */
DPESTIM_WIDE static void dpestim_sketch_turns(const uint64_t *restrict u, size_t n, uint64_t keep,
                                              uint32_t *restrict turns) {
    for (size_t i = 0; i < n; i++) turns[i] = u[i] >= keep;
}

/* 1 where the first 8 digits of a word are `first` or more. */
DPESTIM_WIDE static void dpestim_sketch_turns_8(const uint8_t *restrict u, size_t n, uint8_t first,
                                                uint32_t *restrict turns) {
    for (size_t i = 0; i < n; i++) turns[i] = u[i] >= first;
}

/* Counters of what is reported, 2 cell + sign: the sign is that of the row at the bucket, turned or not. */
DPESTIM_WIDE static void dpestim_sketch_sent(const uint32_t *restrict cells, const uint32_t *restrict buckets,
                                             const uint32_t *restrict turns, size_t n, int log_m,
                                             uint32_t *restrict places) {
    const uint32_t mask = ((uint32_t)1 << log_m) - 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t x = cells[i] & buckets[i] & mask;
        x ^= x >> 16;
        x ^= x >> 8;
        x ^= x >> 4;
        places[i] = cells[i] << 1 | ((0x6996u >> (x & 15) & 1) ^ turns[i]);
    }
}

/* Reads some lines that will be wanted soon: a processor's own look ahead ends with the page, and begins anew behind it.
 * (a macro, as what is inlined into loops for wide vectors must be) */
#define DPESTIM_SKETCH_FETCH(from, bytes) \
    for (size_t line = 0; line < (bytes); line += 64) DPESTIM_FETCH_TO_READ((const char *)(from) + line)

/* Adds 1 to the count of each place. */
static inline void dpestim_sketch_add_64(const uint32_t *restrict places, size_t n, int64_t *restrict counts) {
    for (size_t i = 0; i < n; i++) counts[places[i]]++;
}

/* The same in four tables side by side: two reports of one place that follow each other need not wait for each other. */
static inline void dpestim_sketch_add_tables(const uint32_t *restrict places, size_t n,
                                             uint32_t (*restrict tables)[DPESTIM_SKETCH_FEW]) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        tables[0][places[i]]++;
        tables[1][places[i + 1]]++;
        tables[2][places[i + 2]]++;
        tables[3][places[i + 3]]++;
    }
    for (; i < n; i++) tables[0][places[i]]++;
}

/* Adds 1 to the byte of each place; writes the places of those that overflow, as many as there is room for, and returns
 * how many they are. */
static inline size_t dpestim_sketch_add(const uint32_t *restrict places, size_t n, uint8_t *restrict lanes,
                                        uint32_t *restrict full, size_t room) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t place = places[i];
        if (++lanes[place] == 0 && found < room) full[found++] = place; /* (a branch, because it is rare) */
    }
    return found;
}

/* Adds bytes to bytes; writes the places of those that overflow, as many as there is room for, and returns how many. */
DPESTIM_WIDE static size_t dpestim_sketch_join(uint8_t *restrict lanes, const uint8_t *restrict others, size_t n,
                                               uint32_t *restrict full, size_t room) {
    size_t found = 0;
    for (size_t at = 0; at < n; at += DPESTIM_SKETCH_ROWS) {
        const size_t end = n - at < DPESTIM_SKETCH_ROWS ? n : at + DPESTIM_SKETCH_ROWS;
        uint8_t overflow = 0;
        for (size_t i = at; i < end; i++) {
            lanes[i] = (uint8_t)(lanes[i] + others[i]);
            overflow |= lanes[i] < others[i];
        }
        if (!overflow) continue;
        for (size_t i = at; i < end; i++)
            if (lanes[i] < others[i] && found < room) full[found++] = (uint32_t)i;
    }
    return found;
}

/* Bytes become counts. */
DPESTIM_WIDE static void dpestim_sketch_widen(const uint8_t *restrict lanes, size_t n, int64_t *restrict counts) {
    for (size_t i = 0; i < n; i++) counts[i] = lanes[i];
}

/* Bits of reports, behind the number of a hash in two bytes, to the lanes of their hash, a byte for each bit: bit b of
 * byte j is lane b width + j, so that bytes of a report and their lanes lie side by side. Returns how many reports were
 * taken: one of a hash that does not exist, or whose lanes have 255 reports and may be full, ends it. */
DPESTIM_WIDE256 static size_t dpestim_sketch_bits(const uint8_t *restrict reports, size_t n, size_t width, size_t k,
                                                  uint8_t *restrict lanes, uint8_t *restrict waiting) {
    for (size_t i = 0; i < n; i++, reports += 2 + width) {
        const size_t hash = reports[0] | (size_t)reports[1] << 8;
        const uint8_t *const bits = reports + 2;
        if (hash >= k || waiting[hash] == 255) return i;
        waiting[hash]++;
        uint8_t *const own = lanes + 8 * width * hash;
        DPESTIM_INDEPENDENT
        for (size_t j = 0; j < width; j++) {
            const uint8_t x = bits[j];
            own[j] += x & 1;
            own[width + j] += x >> 1 & 1;
            own[2 * width + j] += x >> 2 & 1;
            own[3 * width + j] += x >> 3 & 1;
            own[4 * width + j] += x >> 4 & 1;
            own[5 * width + j] += x >> 5 & 1;
            own[6 * width + j] += x >> 6 & 1;
            own[7 * width + j] += x >> 7;
        }
    }
    return n;
}

/* Reports of counters, 2 (hash 2^log_m + row) + sign; and counters of reports. */
#define DPESTIM_SKETCH(bits, type)                                                                                  \
    DPESTIM_WIDE static void dpestim_sketch_write_##bits(const uint32_t *restrict places, size_t n, int log_m,      \
                                                         type *restrict out) {                                      \
        const uint32_t mask = ((uint32_t)1 << log_m) - 1;                                                           \
        for (size_t i = 0; i < n; i++) {                                                                            \
            out[3 * i] = (type)(places[i] >> 1 >> log_m);                                                           \
            out[3 * i + 1] = (type)(places[i] >> 1 & mask);                                                         \
            out[3 * i + 2] = (type)(places[i] & 1);                                                                 \
        }                                                                                                           \
    }                                                                                                               \
    /* Whether all fields are within their limits; else counters are of no use. */                                  \
    DPESTIM_WIDE static int dpestim_sketch_places_##bits(const type *restrict reports, size_t n, uint32_t k,        \
                                                         int log_m, uint32_t *restrict places) {                    \
        uint32_t bad = 0;                                                                                           \
        for (size_t i = 0; i < n; i++) {                                                                            \
            const uint32_t hash = reports[3 * i], row = reports[3 * i + 1], sign = reports[3 * i + 2];              \
            bad |= (uint32_t)(hash >= k) | row >> log_m | sign >> 1;                                                \
            places[i] = (hash << log_m | row) << 1 | sign;                                                          \
        }                                                                                                           \
        return bad == 0;                                                                                            \
    }

/* Counts n reports of which the digits `kept` are read, hash lowest, then row, then sign, as the number of a counter: no
 * place is written and read again. Returns the other digits of all reports, which must be 0. It reads beyond a report
 * what a word has more bytes than it. */
#if DPESTIM_PICKS_DIGITS
#define DPESTIM_SKETCH_PICKED(bits, type, word)                                                                  \
    DPESTIM_TARGET("bmi2") static uint64_t dpestim_sketch_picked_##bits(                                            \
        const type *restrict reports, size_t n, uint64_t kept, uint32_t (*restrict tables)[DPESTIM_SKETCH_FEW]) {   \
        uint64_t seen = 0;                                                                                          \
        size_t i = 0;                                                                                               \
        for (; i + 4 <= n; i += 4) {                                                                                \
            word x[4];                                                                                              \
            for (int j = 0; j < 4; j++) memcpy(x + j, reports + 3 * (i + j), sizeof(word));                         \
            seen |= (uint64_t)x[0] | x[1] | x[2] | x[3];                                                            \
            for (int j = 0; j < 4; j++) tables[j][DPESTIM_PICKED(x[j], kept)]++;                                    \
        }                                                                                                           \
        for (; i < n; i++) {                                                                                        \
            word x;                                                                                                 \
            memcpy(&x, reports + 3 * i, sizeof(word));                                                              \
            seen |= x;                                                                                              \
            tables[0][DPESTIM_PICKED(x, kept)]++;                                                                   \
        }                                                                                                           \
        return seen & (((uint64_t)1 << 3 * bits) - 1) & ~kept;                                                      \
    }
#else
#define DPESTIM_SKETCH_PICKED(bits, type, word)                                                                  \
    static inline uint64_t dpestim_sketch_picked_##bits(const type *reports, size_t n, uint64_t kept,               \
                                                        uint32_t (*tables)[DPESTIM_SKETCH_FEW]) {                   \
        (void)reports, (void)n, (void)kept, (void)tables; /* (never called: dpestim_picks_digits) */                \
        return 1;                                                                                                   \
    }
#endif

/* Whether there are so few hashes and rows, and both powers of two, that such digits number them; counts all reports then
 * (which are not read beyond the last), and returns whether all were within their limits. */
#define DPESTIM_SKETCH_FEW_OF(bits, type)                                                                           \
    static inline int dpestim_sketch_picks_##bits(uint32_t k, int log_m) {                                          \
        return dpestim_picks_digits() && !(k & (k - 1)) && k <= (uint32_t)1 << bits && log_m <= bits;               \
    }                                                                                                               \
    static int dpestim_sketch_few_##bits(const type *reports, size_t n, uint32_t k, int log_m,                      \
                                         uint32_t (*tables)[DPESTIM_SKETCH_FEW]) {                                  \
        const uint64_t kept = (k - 1) | (((uint64_t)1 << log_m) - 1) << bits | (uint64_t)1 << 2 * bits;             \
        type last[4] = {0};                                                                                         \
        memcpy(last, reports + 3 * (n - 1), 3 * sizeof(type));                                                      \
        return (dpestim_sketch_picked_##bits(reports, n - 1, kept, tables)                                          \
                | dpestim_sketch_picked_##bits(last, 1, kept, tables)) == 0;                                        \
    }
/* The number by which such digits call counter i, 2 cell + sign. */
static inline size_t dpestim_sketch_place_of(size_t i, uint32_t k, size_t n_counts) {
    const size_t m = n_counts / 2 / k, cell = i >> 1;
    return cell / m + cell % m * k + (i & 1) * k * m;
}

DPESTIM_SKETCH(8, uint8_t)
DPESTIM_SKETCH(16, uint16_t)
DPESTIM_SKETCH(32, uint32_t)
DPESTIM_SKETCH_PICKED(8, uint8_t, uint32_t)
DPESTIM_SKETCH_PICKED(16, uint16_t, uint64_t)
DPESTIM_SKETCH_FEW_OF(8, uint8_t)
DPESTIM_SKETCH_FEW_OF(16, uint16_t)
#endif
