"""Secure words against NumPy's default generator."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from dpestim.rng import BLOCK_WORDS, Stage, WordSource


def rows(settings):
    """Yield rows in GB/s; words come in the blocks that mechanisms ask for."""
    calls = 32 if settings.quick else 512
    n_bytes = 8 * BLOCK_WORDS * calls
    rng = np.random.default_rng()
    top = np.iinfo(np.uint64).max

    def secure():
        reader = WordSource().reader()
        for block in range(calls):
            reader.dense(Stage.RESPONSE, 0, block, 0, BLOCK_WORDS)

    def integers():
        for _ in range(calls):
            rng.integers(0, top, BLOCK_WORDS, dtype=np.uint64, endpoint=True)

    def as_bytes():
        for _ in range(calls):
            np.frombuffer(rng.bytes(8 * BLOCK_WORDS), np.uint64)

    times, _, repeats = interleave(
        {"ours": secure, "integers": integers, "bytes": as_bytes, "limit": limit("keystream")}, slow=5
    )
    for peer in ("integers", "bytes"):
        yield Row(
            f"secure words, blocks of {BLOCK_WORDS:,}",
            ours=n_bytes / times["ours"] / 1e9,
            unit="GB/s",
            peer=f"PCG64 Generator.{peer}",
            baseline=n_bytes / times[peer] / 1e9,
            ratio=times[peer] / times["ours"],
            limit="keystream",
            share=share("keystream", times["limit"], n_bytes, times["ours"]),
            repeats=repeats,
        ).judge(settings, 1)
