"""Sparse vectors: queries that are all below their threshold, as an array and one by one.

Against loops and arrays of floating-point noise of NumPy, which protect nobody.
"""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.central import SparseVector

_FAR = 1e4  # standard deviations, nearly: nothing is positive, and so nothing ends early
_LARGEST_SECONDS = 0.2  # for a million queries


def rows(settings):
    """Yield rows: an array of queries, and queries of an iterator."""
    rng = np.random.default_rng(0)
    yield _array(settings, rng)
    yield _one_by_one(settings, rng)


def _ours(queries):
    return list(SparseVector(1.0, sensitivity=1).process(queries, _FAR))


def _array(settings, rng):
    n = settings.n
    queries = np.zeros(n)

    def vectorised():
        return (queries + rng.laplace(0.0, 3.3, n) >= _FAR + rng.laplace(0.0, 2.6)).tolist()

    def loop():
        threshold = _FAR + rng.laplace(0.0, 2.6)
        return [query + rng.laplace(0.0, 3.3) >= threshold for query in queries.tolist()]

    times, results, repeats = interleave({"ours": lambda: _ours(queries), "numpy": vectorised, "loop": loop})
    assert results["ours"] == results["numpy"]
    row = Row(
        f"SparseVector, {n:,} queries of an array",
        ours=times["ours"],
        peer="Generator.laplace, compared as arrays",
        baseline=times["numpy"],
        ratio=times["numpy"] / times["ours"],
        target=f"<{_LARGEST_SECONDS} s",
        repeats=repeats,
        note=f"a Python loop over the same: {times['loop'] / times['ours']:.1f}x our time",
    )
    if not settings.quick:
        row.met = times["ours"] < _LARGEST_SECONDS
    return row


def _one_by_one(settings, rng):
    n = max(settings.n // 50, 1)
    queries = np.zeros(n).tolist()

    def loop():
        threshold = _FAR + rng.laplace(0.0, 2.6)
        return [query + rng.laplace(0.0, 3.3) >= threshold for query in queries]

    times, _, repeats = interleave({"ours": lambda: _ours(iter(queries)), "numpy": loop})
    return Row(
        "SparseVector, a query of an iterator",
        ours=times["ours"] / n,
        peer="Generator.laplace, in a Python loop",
        baseline=times["numpy"] / n,
        ratio=times["numpy"] / times["ours"],
        repeats=repeats,
    )
