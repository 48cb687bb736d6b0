"""The C contract of one randomised response, shared by the kernels that answer with it (GRR, local hashing)."""

from libc.stdint cimport uint64_t


cdef extern from "wide_int.h" nogil:
    ctypedef struct dpestim_u128:  # (an integer of the compiler, or two words)
        pass
    dpestim_u128 dpestim_join(uint64_t high, uint64_t low) noexcept


cdef extern from "grr.h" nogil:
    uint64_t dpestim_reciprocal(uint64_t w) noexcept
    uint64_t dpestim_grr64(uint64_t x, uint64_t u, uint64_t keep, uint64_t w, uint64_t reciprocal) noexcept
    uint64_t dpestim_grr128(uint64_t x, uint64_t high, uint64_t low, dpestim_u128 keep, dpestim_u128 w) noexcept
