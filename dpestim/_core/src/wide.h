/* DPESTIM_WIDE marks an integer loop that is compiled three times, for 512-bit, 256-bit and plain vectors; the loader
 * picks one at run time. Loops of floats may have it only where no product is added to anything, or under
 * -ffp-contract=off (setup.py): a fused multiply-add would change float results between processors.
 * Empty where the platform cannot choose at load time (needs gcc >= 12 and glibc on x86-64). */
#ifndef DPESTIM_WIDE_H
#define DPESTIM_WIDE_H
#include "portable.h"

#if defined(__x86_64__) && DPESTIM_GNU && !defined(__clang__)
#include <features.h>
#if __GNUC__ >= 12 && defined(__GLIBC__) && !DPESTIM_DEBUG
#define DPESTIM_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* Where gcc's comparisons of 512 bits cost more than they gain: they go through mask registers. */
#define DPESTIM_WIDE256 __attribute__((target_clones("arch=x86-64-v3", "default")))
#define DPESTIM_HAS_WIDE 1
#endif
#endif

#ifndef DPESTIM_WIDE
#define DPESTIM_WIDE
#define DPESTIM_WIDE256
#define DPESTIM_HAS_WIDE 0
#endif

/* Before a loop over rows side by side: what gcc unrolls it does not turn into vectors. */
#if DPESTIM_HAS_WIDE
#define DPESTIM_AT_ONCE _Pragma("GCC unroll 1")
#else
#define DPESTIM_AT_ONCE
#endif

/* The vector width in bits that the loader chose on this processor, 0 where it has no choice. */
static inline int dpestim_wide_bits(void) {
#if DPESTIM_HAS_WIDE
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd"))
        return 512;
    if (__builtin_cpu_supports("avx2")) return 256;
    return 128;
#else
    return 0;
#endif
}

/* Whether what is compiled for AVX-512's foundation alone may run; asked for where no loader chooses, too. */
static inline int dpestim_avx512(void) {
#if defined(__x86_64__) && DPESTIM_GNU
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return 0;
#endif
}

/* Whether the processor looks up 64 bytes in tables of 128 at a time. */
static inline int dpestim_looks_up_bytes(void) {
#if DPESTIM_HAS_WIDE
    return dpestim_wide_bits() == 512 && __builtin_cpu_supports("avx512vbmi") != 0;
#else
    return 0;
#endif
}

/* Whether digits that a mask names are put side by side by one instruction that is quick: processors before AVX-512 have
 * it, too, and some of them take as long for it as for twenty others. */
#if defined(__x86_64__) && DPESTIM_GNU && DPESTIM_HAS_WIDE
#define DPESTIM_PICKS_DIGITS 1
#define DPESTIM_PICKED(x, digits) __builtin_ia32_pext_di((x), (digits)) /* in a DPESTIM_TARGET("bmi2") */
static inline int dpestim_picks_digits(void) { return dpestim_wide_bits() == 512 && __builtin_cpu_supports("bmi2"); }
#else
#define DPESTIM_PICKS_DIGITS 0
static inline int dpestim_picks_digits(void) { return 0; }
#endif

/* Whether processor and compiler encrypt by instructions of their own (aes.h). */
#if defined(__x86_64__) && DPESTIM_GNU
#define DPESTIM_AES_COMPILED 1
#else
#define DPESTIM_AES_COMPILED 0
#endif
static inline int dpestim_has_aes(void) {
#if DPESTIM_AES_COMPILED
    return __builtin_cpu_supports("aes") != 0;
#else
    return 0;
#endif
}

/* Whether the processor has all that OpenSSL's fast Galois/counter mode asks for. */
static inline int dpestim_vector_aes(void) {
#if DPESTIM_HAS_WIDE
    __builtin_cpu_init();
    return dpestim_wide_bits() == 512 && __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq");
#else
    return 0;
#endif
}
#endif
