"""Bloom filters of codes: for each cohort a few different bits, public and fixed."""

import numpy as np

#: What spreads the bits of a seed: the increment and the multipliers of SplitMix64.
MIX = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


def bloom_filters(codes, cohorts, n_bits, n_hashes):
    """Return the Bloom filter of each code in its cohort, packed: n_hashes different bits of n_bits."""
    codes, cohorts = np.asarray(codes, np.uint64), np.asarray(cohorts, np.uint64)
    seed = (codes << np.uint64(8) | cohorts) * MIX[0]
    chosen = np.empty((n_hashes, len(codes)), np.int64)
    for i in range(n_hashes):
        seed = seed + MIX[0]
        x = (seed ^ seed >> np.uint64(30)) * MIX[1]
        x = (x ^ x >> np.uint64(27)) * MIX[2]
        place = ((x >> np.uint64(32)) * np.uint64(n_bits - i) >> np.uint64(32)).astype(np.int64)
        for before in np.sort(chosen[:i], axis=0):  # the place-th of those that are left
            place += place >= before
        chosen[i] = place
    out, rows = np.zeros((len(codes), n_bits // 8), np.uint8), np.arange(len(codes))
    for place in chosen:
        out[rows, place >> 3] |= (1 << (place & 7)).astype(np.uint8)
    return out
