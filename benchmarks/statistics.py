"""Statistics with noise, against NumPy: exact ones where NumPy has no other, else its exponential mechanism."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from dpestim import statistics


def rows(settings):
    """Yield rows: a histogram of many rows, a quantile, three of them, moments."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=10 * settings.n)
    few, ends = x[: settings.n], {"epsilon": 1.0, "bounds": (-5, 5)}
    quartiles = [0.25, 0.5, 0.75]
    for q in (0.5, *quartiles):  # both are near the exact quantile before their times count
        for value in (statistics.quantile(few, q, **ends).value, exponential(few, q, 1.0, -5, 5, rng)):
            assert abs((few < value).mean() - q) < 100 / len(few) + 0.01
    yield _row(settings, "histogram of 100 cells", len(x), "numpy.histogram (exact)", 1,
               lambda: statistics.histogram(x, bins=100, **ends),
               lambda: np.histogram(x, bins=100, range=(-5, 5)))
    peer = "the exponential mechanism on sorted rows"
    yield _row(settings, "median", len(few), peer, None, lambda: statistics.median(few, **ends),
               lambda: exponential(few, 0.5, 1.0, -5, 5, rng))
    yield _row(settings, "three quartiles", len(few), peer, 1, lambda: statistics.quantile(few, quartiles, **ends),
               lambda: [exponential(few, q, 1 / 3, -5, 5, rng) for q in quartiles])
    for name, exact in (("mean", np.mean), ("sum", np.sum), ("var", np.var), ("std", np.std)):
        yield _row(settings, name, len(few), f"numpy.{name} of clipped rows (exact)", 1, lambda name=name: getattr(
            statistics, name)(few, **ends), lambda exact=exact: exact(np.clip(few, -5, 5)), reads=few)
        if settings.short:
            return
    others = np.ones(1 << (20 if settings.quick else 26))  # (more than caches hold, which are full of it then)
    yield _row(settings, "mean, caches evicted,", len(few), "numpy.mean of clipped rows (exact)", 1,
               lambda: statistics.mean(few, **ends), lambda: np.clip(few, -5, 5).mean(), others.sum)
    del others
    # (ten times as many rows do not fit into the cache)
    yield _row(settings, "mean", len(x), "numpy.mean of clipped rows (exact)", 1,
               lambda: statistics.mean(x, **ends), lambda: np.clip(x, -5, 5).mean(), reads=x)
    table = x.reshape(-1, 20)
    for kind, columns in (("", table), (" in Fortran's order", np.asfortranarray(table))):
        yield _row(settings, f"means of 20 columns{kind}", len(table), "numpy.mean of clipped rows (exact)", 1,
                   lambda columns=columns: statistics.mean(columns, **ends),
                   lambda columns=columns: np.clip(columns, -5, 5).mean(axis=0))


def exponential(x, q, epsilon, low, high, rng):
    """Return a quantile as peers choose it: a gap between sorted rows by its length and rank, a place in it."""
    ends = np.concatenate(([low], np.sort(np.clip(x, low, high)), [high]))
    gaps = np.diff(ends)
    weights = gaps * np.exp(-epsilon / 2 * np.abs(np.arange(len(gaps)) - q * len(x)))
    sums = np.cumsum(weights)
    k = np.searchsorted(sums, rng.uniform(0, sums[-1]))
    return rng.uniform(ends[k], ends[k + 1])


def _row(settings, name, n, peer, target, ours, numpy, before=None, reads=None):
    contestants = {"ours": ours, "numpy": numpy, **({} if before is None else {"limit": limit("memory")}),
                   **({} if reads is None else {"reads": reads.sum})}
    times, _, repeats = interleave(contestants, before=before)
    row = Row(f"{name} of {n:,} rows", ours=times["ours"], peer=peer, baseline=times["numpy"],
              ratio=times["numpy"] / times["ours"], repeats=repeats)
    if before is not None:
        row.limit, row.share = "memory", share("memory", times["limit"], 8 * n, times["ours"])
    if reads is not None:  # (from where they are: the caches hold few rows)
        row.limit, row.share = "reads", times["reads"] / times["ours"]
    if target:
        row.judge(settings, target)
    return row
