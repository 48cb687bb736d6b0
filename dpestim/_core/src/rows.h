/* Which columns of a row are reported: k distinct numbers below d, every set of them equally likely. */
#include <stddef.h>
#include <stdint.h>
#include "wide_int.h"

/* Write k ascending numbers below d; return 0, and nothing of use, where a word falls beyond the multiples of a range,
 * so that a draw from it would not be uniform (Lemire 2019): then all of the row is to be drawn again. */
static inline int dpestim_choose(const uint64_t *words, uint64_t d, size_t k, uint16_t *out) {
    for (size_t j = 0; j < k; j++) {
        const uint64_t range = d - j;
        const dpestim_u128 product = dpestim_times(words[j], range);
        const uint64_t low = dpestim_low_word(product);
        if (low < range && low < (0 - range) % range)
            return 0;
        uint64_t number = dpestim_high_word(product); /* of those that are left, in ascending order */
        size_t place = 0;
        while (place < j && out[place] <= number) {
            number++;
            place++;
        }
        for (size_t i = j; i > place; i--)
            out[i] = out[i - 1];
        out[place] = (uint16_t)number;
    }
    return 1;
}
