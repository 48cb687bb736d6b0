/* Duchi's mechanism: one number becomes one bit; a row of numbers becomes a row of signs on a likely side. */
#include <stddef.h>
#include <stdint.h>

#include "pm.h"
#include "portable.h"

/* A row of d values as 32-bit fractions of their bounds; clipped, NaN counts as the lower one. */
DPESTIM_WIDE static void dpestim_duchi_encode(const double *restrict x, size_t n, size_t d, const double *restrict low,
                                              const double *restrict high, const double *restrict scale,
                                              int64_t *restrict out) {
    for (size_t i = 0; i < n; i++, x += d, out += d)
        for (size_t j = 0; j < d; j++) out[j] = dpestim_pm_fixed(x[j], low[j], high[j], scale[j], (int64_t)1 << 32);
}

/* The bits of every row, 1 with probability fixed / 2^32: 64 to a word, each row from a new one on. */
DPESTIM_WIDE static void dpestim_duchi_signs(const int64_t *restrict fixed, const uint32_t *restrict lanes, size_t n,
                                             size_t d, size_t stride, uint64_t *restrict out) {
    for (size_t i = 0; i < n; i++, fixed += d, lanes += stride) {
        size_t at = 0;
        for (; at + 64 <= d; at += 64) {
            uint64_t bits = 0;
            for (size_t part = 0; part < 8; part++) {
                const int64_t *f = fixed + at + 8 * part;
                const uint32_t *lane = lanes + at + 8 * part;
                uint64_t eight = 0;
                for (size_t j = 0; j < 8; j++) eight |= (uint64_t)((int64_t)lane[j] < f[j]) << j;
                bits |= eight << 8 * part;
            }
            *out++ = bits;
        }
        if (at < d) {
            uint64_t bits = 0;
            for (size_t j = 0; at + j < d; j++) bits |= (uint64_t)((int64_t)lanes[at + j] < fixed[at + j]) << j;
            *out++ = bits;
        }
    }
}

/* Replace the signs v of rows by the answer to them; return how many rows need another round (their v is left).
 * words: of every row one to decide, then the bits of a draw u. rows: which rows they are for, or NULL for all. */
static inline size_t dpestim_duchi_answer(const uint64_t *words, const uint32_t *rows, size_t n, size_t d,
                                          uint64_t keep, uint64_t ties, int last, uint64_t *signs, uint32_t *again) {
    const size_t width = (d + 63) / 64;
    const uint64_t mask = d % 64 ? ((uint64_t)1 << d % 64) - 1 : ~(uint64_t)0;
    size_t n_again = 0;
    for (size_t i = 0; i < n; i++, words += 1 + width) {
        const size_t row = rows ? rows[i] : i;
        uint64_t *v = signs + row * width;
        size_t agree = 0;
        for (size_t j = 0; j < width; j++)
            agree += (size_t)dpestim_ones(~(v[j] ^ words[1 + j]) & (j + 1 < width ? ~(uint64_t)0 : mask));
        if (2 * agree == d && !last && words[0] >= ties) {
            again[n_again++] = (uint32_t)row;
            continue;
        }
        /* u stays where it is tied, or on the side that the word wants */
        const uint64_t flip = -(uint64_t)(2 * agree != d && (2 * agree > d) != (words[0] < keep));
        for (size_t j = 0; j < width; j++)
            v[j] = (words[1 + j] ^ flip) & (j + 1 < width ? ~(uint64_t)0 : mask);
    }
    return n_again;
}
