/* What compilers spell differently, in this one place; wide_int.h has 128-bit integers, wide.h the choice of vectors.
 * GNU C is gcc and clang. Everything else (MSVC, or -DDPESTIM_PLAIN) compiles ISO C11 with the same results. */
#ifndef DPESTIM_PORTABLE_H
#define DPESTIM_PORTABLE_H
#include <stdint.h>

#if defined(__GNUC__) && !defined(DPESTIM_PLAIN)
#define DPESTIM_GNU 1
#else
#define DPESTIM_GNU 0
#endif

#if DPESTIM_GNU
#define DPESTIM_INLINE static inline __attribute__((always_inline))
#define DPESTIM_FETCH_TO_READ(address) __builtin_prefetch((address), 0, 2)
#define DPESTIM_FETCH_TO_WRITE(address) __builtin_prefetch((address), 1)
#define DPESTIM_TARGET(features) __attribute__((target(features)))
/* A vector of `bytes` that may stand anywhere and be read in place of other types. */
#define DPESTIM_VECTOR(type, bytes, name) \
    typedef type name __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias))
#define DPESTIM_SHUFFLED(vector, order) __builtin_shuffle(vector, order) /* (gcc alone has it) */
#define DPESTIM_CHOSEN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__) /* elements of two vectors, by number */
/* In this function a product and an addition may be rounded once, together: gcc alone knows it for one function. */
#define DPESTIM_FUSED __attribute__((optimize("fp-contract=fast")))
#elif defined(_MSC_VER)
#define DPESTIM_INLINE static __forceinline
#define DPESTIM_FETCH_TO_READ(address) ((void)0)
#define DPESTIM_FETCH_TO_WRITE(address) ((void)0)
#else
#define DPESTIM_INLINE static inline
#define DPESTIM_FETCH_TO_READ(address) ((void)0)
#define DPESTIM_FETCH_TO_WRITE(address) ((void)0)
#endif

/* What an int32_t was before this added 1: threads that count with it get different numbers. */
#if DPESTIM_GNU
#define DPESTIM_NEXT(number) __atomic_fetch_add((number), 1, __ATOMIC_RELAXED)
#elif defined(_MSC_VER)
#include <intrin.h>
#define DPESTIM_NEXT(number) ((int32_t)_InterlockedExchangeAdd((volatile long *)(number), 1))
#else
#include <stdatomic.h>
#define DPESTIM_NEXT(number) atomic_fetch_add_explicit((_Atomic int32_t *)(number), 1, memory_order_relaxed)
#endif

/* Before a loop whose steps do not depend on each other. */
#if DPESTIM_GNU && defined(__clang__)
#define DPESTIM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif DPESTIM_GNU
#define DPESTIM_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define DPESTIM_INDEPENDENT __pragma(loop(ivdep))
#else
#define DPESTIM_INDEPENDENT
#endif

/* How many ones (macros: what is inlined into a loop for wide vectors must not be a function for narrow ones); whether
 * their number is odd; the number of zeros below the lowest one of x > 0. */
#if DPESTIM_GNU
#define dpestim_ones(x) __builtin_popcountll(x)
#define dpestim_odd_ones(x) ((uint64_t)__builtin_parityll(x))
#define dpestim_lowest_one(x) ((uint64_t)__builtin_ctzll(x))
#else
static inline int dpestim_ones(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (int)((x * 0x0101010101010101u) >> 56);
}
static inline uint64_t dpestim_odd_ones(uint64_t x) { return (uint64_t)(dpestim_ones(x) & 1); }
static inline uint64_t dpestim_lowest_one(uint64_t x) { return (uint64_t)dpestim_ones((x & (0 - x)) - 1); }
#endif
#endif
