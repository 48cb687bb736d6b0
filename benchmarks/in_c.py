"""What counting takes in plain C without a check: what ours is put beside. No table of counters takes less."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

#: A list of values is read once, and so are reports of three numbers, each of which turns one bit of a table: of less
#: memory than any in which they can be counted. Nothing is compared, cleared or given out.
_SOURCE = """
#include <stddef.h>
#include <stdint.h>
uint64_t read_values(const uint64_t *values, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += 64) {
        for (size_t j = i + 512; j < i + 576; j += 8) __builtin_prefetch(values + (j < n ? j : n - 1), 0, 2);
        for (size_t j = i; j < (n < i + 64 ? n : i + 64); j++) sum += values[j];
    }
    return sum;
}
void count_reports(const uint32_t *reports, size_t n, uint64_t *bits) {
    for (size_t i = 0; i < n; i += 16) {
        for (size_t j = i + 256; j < i + 272; j += 5) __builtin_prefetch(reports + 3 * (j < n ? j : n - 1), 0, 3);
        for (size_t j = i; j < (n < i + 16 ? n : i + 16); j++) {
            const uint32_t place = reports[3 * j + 1] << 1 | reports[3 * j + 2];
            bits[place >> 6] ^= (uint64_t)1 << (place & 63);
        }
    }
}
"""


@cache
def library():
    """Return the compiled functions, or None where there is no compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "least.c", Path(folder) / "least.so"
        source.write_text(_SOURCE)
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", target, source], check=True)
        return ctypes.CDLL(target)


def least_count(reports, n_counts, values=()):
    """Return what reads a list of 64-bit values, if any, and reports of 32-bit numbers; None without a compiler."""
    found = library()
    if found is None:
        return None
    bits = np.zeros(-(-n_counts // 64), np.uint64)

    def address(array):
        return ctypes.c_void_p(array.ctypes.data)

    def count():
        if len(values):
            found.read_values(address(values), ctypes.c_size_t(len(values)))
        found.count_reports(address(reports), ctypes.c_size_t(len(reports)), address(bits))

    return count
