"""The C contract of AES by the processor's instructions, shared by the kernels that make words (`aes.h`)."""

from libc.stdint cimport uint8_t, uint64_t


cdef extern from "aes.h" nogil:
    ctypedef struct dpestim_aes_keys:
        pass
    int dpestim_has_aes() noexcept
    int dpestim_vector_aes() noexcept
    void dpestim_aes_schedule(const uint8_t *key, dpestim_aes_keys *keys) noexcept
    void dpestim_aes_counter(uint64_t head, uint64_t place, uint8_t *block) noexcept
    void dpestim_aes_blocks(const dpestim_aes_keys *keys, uint8_t *blocks, size_t n) noexcept
    void dpestim_aes_stream(const dpestim_aes_keys *keys, uint64_t head, uint64_t first, uint8_t *out,
                            size_t n) noexcept
