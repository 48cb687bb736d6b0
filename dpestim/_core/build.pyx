"""What this build is: `DEBUG` (checked loops) and `VECTOR_BITS` (the width the loader chose, 0 where it has no choice)."""

cdef extern from "wide.h":
    int dpestim_wide_bits() noexcept
    int DPESTIM_DEBUG

DEBUG = bool(DPESTIM_DEBUG)
VECTOR_BITS = dpestim_wide_bits()
