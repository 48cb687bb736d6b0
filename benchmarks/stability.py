"""Medians with noise as the data need it: a million values, and the published loop at a size that it can bear."""

import math

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.central import SmoothSensitivity

#: Values for the published double loop.
_LOOP = 2_000


def published(x, low, high, beta):
    """Return the median and its smooth sensitivity by the definition, O(n^2); in floats, which protect nobody."""
    x, n = np.sort(np.clip(x, low, high)), len(x)
    m = (n + 1) // 2
    padded = np.r_[np.full(n + 1, low), x, np.full(n + 1, high)]
    at = n + m
    best = 0.0
    for k in range(n + 1):
        b = np.arange(k + 2)
        best = max(best, math.exp(-beta * k) * (padded[at + b] - padded[at + b - k - 1]).max())
    return x[m - 1], best


def rows(settings):
    """Yield rows: a release of a median of many values, and of few against the published loop."""
    rng = np.random.default_rng(0)
    mechanism = SmoothSensitivity(1.0, bounds=(-10.0, 10.0))
    for n, peer in ((settings.n, False), (_LOOP, True)):
        x = rng.normal(size=n)
        runs = {"ours": lambda x=x: mechanism.release(x)}
        if peer:
            runs["numpy"] = lambda x=x: published(x, -10.0, 10.0, 0.5)[0] + rng.standard_cauchy()
        times, _, repeats = interleave(runs)
        yield Row(
            f"SmoothSensitivity, median of {n:,} values",
            ours=times["ours"],
            peer="NumPy, by the definition" if peer else "",
            baseline=times["numpy"] if peer else None,
            ratio=times["numpy"] / times["ours"] if peer else None,
            repeats=repeats,
        )
