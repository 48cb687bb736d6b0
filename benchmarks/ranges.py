"""Ranges of 65,536 values: reports of a million users, and counts of a million rows, from rows to a range."""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.local import RangeEstimator
from dpestim.statistics import RangeCounts

#: Seconds that a fit and the first range may take.
LIMIT, SIZE = 2.0, 1 << 16


def rows(settings):
    """Yield the rows."""
    n = 2_000 if settings.quick else 1_000_000
    x = np.random.default_rng(0).gamma(4.0, 2000.0, n).clip(0, SIZE - 1)
    reported = {f"local, {method}": RangeEstimator(1.0, bounds=([0.0], [float(SIZE)]), n_bins=SIZE, method=method)
                for method in ("hierarchy", "hio")}
    contestants = {name: lambda est=est: est.fit(x[:, None]).range(3000, 20_000) for name, est in reported.items()}
    contestants["central"] = lambda: RangeCounts(1.0, bins=SIZE, bounds=(0, SIZE)).fit(x).result_.range(3000, 20_000)
    seconds, found, repeats = interleave(contestants, slow=2.0)
    for name, taken in seconds.items():
        row = Row(f"ranges of {SIZE:,} values: {name}, n={n:,}", ours=taken, repeats=repeats, target=f"{LIMIT:g} s",
                  note=f"standard error {found[name][1]:.3g}")
        row.met = None if settings.quick else taken <= LIMIT
        yield row
