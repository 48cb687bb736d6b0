/* A number below b, as a word a says it: the upper half of their product. */
#ifndef DPESTIM_KEYVALUE_H
#define DPESTIM_KEYVALUE_H
#include <stdint.h>

static inline uint64_t dpestim_high(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
#endif
