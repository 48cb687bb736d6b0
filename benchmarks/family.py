"""Kernels of single mechanisms that no verb isolates: the Walsh-Hadamard transform and the draw of subsets."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from benchmarks.frequencies import Case
from dpestim._core import hadamard
from dpestim.local import SSFrequencyEstimator


def rows(settings):
    """Yield the rows."""
    yield from _transform(settings)
    yield from _subsets(settings)


def numpy_fwht(a):
    """Transform in place, stage by stage, every stage two vectorised operations on strided views."""
    h = 1
    while h < a.size:
        pairs = a.reshape(-1, 2, h)
        difference = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
        h *= 2
    return a


def _transform(settings):
    n = 1 << (14 if settings.quick else 20)
    counts = np.random.default_rng(0).integers(0, 9, n)

    def ours(dtype):
        a = counts.astype(dtype).reshape(1, -1)
        hadamard.fwht(a)
        return a[0]

    for name, dtype in (("32", np.int32), ("64", np.int64)):
        times, results, repeats = interleave({
            "ours": lambda dtype=dtype: ours(dtype),
            "numpy": lambda dtype=dtype: numpy_fwht(counts.astype(dtype)),
            "limit": limit("memory"),
        })
        if not np.array_equal(results["ours"], results["numpy"]):
            raise RuntimeError("the two transforms differ")
        yield Row(
            f"Walsh-Hadamard transform of {n:,}, int{name}",
            ours=times["ours"],
            peer=f"NumPy, in place, int{name}",
            baseline=times["numpy"],
            ratio=times["numpy"] / times["ours"],
            limit="memory",
            share=share("memory", times["limit"], 2 * counts.astype(dtype).nbytes, times["ours"]),
            repeats=repeats,
        ).judge(settings, 10)


def subsets_by_keys(case, rows=256):
    """Draw a random key for every value; the true value's key is made extreme, and the k smallest are taken."""
    rng, weights = np.random.default_rng(), case.randomizer.weights
    p, codes = float(case.randomizer.p_star), case.X[:, 0]
    out = np.empty((case.n, -(-case.d // 8)), np.uint8)
    for s in range(0, case.n, rows):
        own = codes[s : s + rows]
        keys = rng.random((len(own), case.d), np.float32)
        keys[np.arange(len(own)), own] = np.where(rng.random(len(own)) < p, -1, 2)
        bits = np.zeros(keys.shape, bool)
        np.put_along_axis(bits, np.argpartition(keys, weights.k, axis=1)[:, : weights.k], True, axis=1)
        out[s : s + rows] = np.packbits(bits, axis=1, bitorder="little")
    return out


def _subsets(settings):
    case = Case(SSFrequencyEstimator, settings.n // 10, 1024)
    times, results, repeats = interleave(
        {"ours": case.privatize, "numpy": lambda: subsets_by_keys(case), "limit": limit("keystream")}
    )
    for name in ("ours", "numpy"):
        case.check(case.counts(results[name]), f"subsets ({name})")
    yield Row(
        f"SS privatize, {case.n:,} x {case.d}",
        ours=times["ours"],
        peer="NumPy, random keys + argpartition",
        baseline=times["numpy"],
        ratio=times["numpy"] / times["ours"],
        limit="keystream",
        share=share("keystream", times["limit"], 8 * case.randomizer.n_words * case.n, times["ours"]),
        repeats=repeats,
    ).judge(settings, 8)
