"""What this build is: `DEBUG` (checked loops) and `VECTOR_BITS` (the width the loader chose, 0 where it has no choice).

`VECTOR_AES` says whether the processor encrypts several blocks in one instruction, `INT128` whether the compiler has
integers of 128 bits (else two words stand for one).
"""

cdef extern from "wide.h":
    int dpestim_wide_bits() noexcept
    int dpestim_vector_aes() noexcept
    int DPESTIM_DEBUG

cdef extern from "wide_int.h":
    int DPESTIM_HAS_INT128

DEBUG = bool(DPESTIM_DEBUG)
INT128 = bool(DPESTIM_HAS_INT128)
VECTOR_BITS = dpestim_wide_bits()
VECTOR_AES = bool(dpestim_vector_aes())
