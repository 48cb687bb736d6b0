"""What this build is: `DEBUG` (checked loops) and `VECTOR_BITS` (the width the loader chose, 0 where it has no choice).

`VECTOR_AES` says whether the processor encrypts several blocks in one instruction.
"""

cdef extern from "wide.h":
    int dpestim_wide_bits() noexcept
    int dpestim_vector_aes() noexcept
    int DPESTIM_DEBUG

DEBUG = bool(DPESTIM_DEBUG)
VECTOR_BITS = dpestim_wide_bits()
VECTOR_AES = bool(dpestim_vector_aes())
