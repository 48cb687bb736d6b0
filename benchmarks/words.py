"""Secure words against NumPy's default generator: many at a time, and those of one record."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from dpestim.rng import BLOCK_WORDS, Stage, WordSource

_TOP = np.iinfo(np.uint64).max


def rows(settings):
    """Yield rows: GB/s in the blocks that mechanisms ask for, and the time of a source of its own for a few words."""
    for block_words in (BLOCK_WORDS, 4 * BLOCK_WORDS):
        yield from _blocks(settings, block_words)
    yield _one_record()


def _blocks(settings, block_words):
    calls = (32 if settings.quick else 512) * BLOCK_WORDS // block_words
    n_bytes = 8 * block_words * calls
    rng = np.random.default_rng()

    def secure():
        reader = WordSource().reader()
        for block in range(calls):
            reader.dense(Stage.RESPONSE, 0, block, 0, block_words)

    def integers():
        for _ in range(calls):
            rng.integers(0, _TOP, block_words, dtype=np.uint64, endpoint=True)

    def as_bytes():
        for _ in range(calls):
            np.frombuffer(rng.bytes(8 * block_words), np.uint64)

    times, _, repeats = interleave(
        {"ours": secure, "integers": integers, "bytes": as_bytes, "limit": limit("keystream")}, slow=5
    )
    for peer in ("integers", "bytes"):
        yield Row(
            f"secure words, blocks of {block_words:,}",
            ours=n_bytes / times["ours"] / 1e9,
            unit="GB/s",
            peer=f"PCG64 Generator.{peer}",
            baseline=n_bytes / times[peer] / 1e9,
            ratio=times[peer] / times["ours"],
            limit="keystream",
            share=share("keystream", times["limit"], n_bytes, times["ours"]),
            repeats=repeats,
        ).judge(settings, 1)


def _one_record(n_words=33, calls=200):
    """A fresh key for every record: what a client pays for randomness; NumPy's generator is as fresh."""

    def ours():
        for _ in range(calls):
            WordSource().reader().words(0, 0, 0, 1).dense(Stage.RESPONSE, n_words)

    def numpy():
        for _ in range(calls):
            np.random.default_rng().integers(0, _TOP, n_words, dtype=np.uint64, endpoint=True)

    times, _, repeats = interleave({"ours": ours, "numpy": numpy})
    return Row(
        f"a fresh source and {n_words} words",
        ours=times["ours"] / calls,
        peer="a fresh PCG64 Generator",
        baseline=times["numpy"] / calls,
        ratio=times["numpy"] / times["ours"],
        repeats=repeats,
    )
