"""Ranges of 65,536 values, and rectangles: reports of a million users, and counts of a million rows, to one answer.

``python -m benchmarks.ranges`` prints mean squared errors over the stated ones, and what intervals cover, on shapes
that nobody set anything by.
"""

import sys

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.local import RangeEstimator, RectangleEstimator
from dpestim.statistics import RangeCounts

#: Seconds that a fit and the first range may take.
LIMIT, SIZE = 2.0, 1 << 16
METHODS, GRIDS = ("hierarchy", "haar", "hio", "square_wave"), ("uniform", "hdg", "adaptive")


def rows(settings):
    """Yield the rows."""
    n = 2_000 if settings.quick else 1_000_000
    x = np.random.default_rng(0).gamma(4.0, 2000.0, n).clip(0, SIZE - 1)
    pairs = np.column_stack([x, x[::-1]])
    reported = {f"local, {method}": RangeEstimator(1.0, bounds=([0.0], [float(SIZE)]), n_bins=SIZE, method=method)
                for method in METHODS}
    contestants = {name: lambda est=est: est.fit(x[:, None]).range(3000, 20_000) for name, est in reported.items()}
    contestants["rectangles"] = lambda: RectangleEstimator(1.0, bounds=(0, SIZE), n_users=n).fit(pairs).rectangle(
        (3000, 20_000), (3000, 20_000))
    contestants["central"] = lambda: RangeCounts(1.0, bins=SIZE, bounds=(0, SIZE)).fit(x).result_.range(3000, 20_000)
    seconds, found, repeats = interleave(contestants, slow=2.0)
    for name, taken in seconds.items():
        row = Row(f"ranges of {SIZE:,} values: {name}, n={n:,}", ours=taken, repeats=repeats, target=f"{LIMIT:g} s",
                  note=f"standard error {found[name][1]:.3g}")
        row.met = None if settings.quick else taken <= LIMIT
        yield row


#: name -> integers below 64 of so many users.
SHAPES = {
    "even": lambda rng, n: rng.integers(0, 64, n),
    "gamma": lambda rng, n: rng.gamma(4.0, 4.0, n).clip(0, 63).astype(int),
    "zipf": lambda rng, n: np.minimum(rng.zipf(1.4, n), 64) - 1,
    "two spikes": lambda rng, n: np.where(rng.random(n) < 0.5, rng.choice([10, 50], n), rng.integers(0, 64, n)),
    "one value": lambda rng, n: np.full(n, 17),
}
RANGES = ((0, 1), (3, 40), (10, 11), (33, 64), (0, 16), (16, 32), (5, 9))


def errors(n=3000, seeds=60):
    """Print, for each method, shape and epsilon: mean square over the stated one, and the share that is covered."""
    for method in METHODS:
        for epsilon in (0.3, 1.0, 4.0):
            for shape, draw in SHAPES.items():
                x, found = draw(np.random.default_rng(1), n), []
                right = np.array([((low <= x) & (x < high)).mean() for low, high in RANGES])
                for seed in range(seeds):
                    est = RangeEstimator(epsilon, bounds=([0.0], [64.0]), n_bins=64, method=method, random_state=seed)
                    est.fit(x[:, None])
                    found.append([(*est.range(*own), *est.confidence_interval(*own)) for own in RANGES])
                _say(f"{method}, epsilon {epsilon:g}, {shape}", right, found)


def ring(rng, n):
    """Return rows around a circle."""
    angle = rng.uniform(0, 2 * np.pi, n)
    return ((2.5 + rng.normal(0, 0.3, n)) * np.array([np.cos(angle), np.sin(angle)])).T


#: name -> rows of two numbers, between -4 and 4.
PLANES = {
    "ring": ring,
    "line": lambda rng, n: np.add.outer(rng.uniform(-4, 4, n), [0, 0]) + rng.normal(0, 0.1, (n, 2)),
    "skewed": lambda rng, n: np.column_stack([rng.exponential(1, n), rng.lognormal(0, 0.7, n)]) - 4,
}


def plane_errors(n=3000, seeds=60):
    """Print the same for rectangles whose edges are those of cells."""
    for method in GRIDS:
        for epsilon in (1.0, 4.0):
            for shape, draw in PLANES.items():
                X, found, right = draw(np.random.default_rng(1), n).clip(-4, 3.999), [], []
                for seed in range(seeds):
                    est = RectangleEstimator(epsilon, bounds=(-4, 4), n_bins=64, method=method, n_users=n,
                                             random_state=seed).fit(X)
                    rng, told, truth = np.random.default_rng(seed), [], []
                    for _ in range(6):
                        (a, b), (c, d) = (np.sort(rng.choice(own, 2, replace=False)) / 8 - 4
                                          for own in est.cell_edges_)
                        told.append((*est.rectangle((a, b), (c, d)), *est.confidence_interval((a, b), (c, d))))
                        truth.append(((np.array([a, c]) <= X) & (np.array([b, d]) > X)).all(axis=1).mean())
                    found.append(told)
                    right.append(truth)
                _say(f"rectangles, {method}, epsilon {epsilon:g}, {shape}", np.array(right), found)


def _say(name, right, found):
    share, error, low, high = np.moveaxis(np.array(found), -1, 0)
    ratio = np.square(share - right).mean() / np.square(error).mean()
    held = ((low <= right + 1e-9) & (right - 1e-9 <= high)).mean()
    print(f"{name:45s} mean square / stated {ratio:5.2f}  covered {held:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(errors() or plane_errors())
