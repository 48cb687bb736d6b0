"""How near distributions come: the default against EM and EMS on 64 and 256 bins, coverage, time.

``python -m benchmarks.distributions`` compares them from few users to many.
"""

import time

import numpy as np

from benchmarks._harness import Row
from dpestim.local import DistributionEstimator, PMTransformer, SDPMTransformer, SWTransformer

RIVALS = [{"n_bins": n, "smoothing": smoothing} for n in (64, 256) for smoothing in (False, True)]
#: Bins of the intervals that are counted.
BINS = 64
#: Within ten percent of the best rival.
NEAR = 1 / 1.1
LONGEST = 0.05

SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "bell": lambda rng, n: rng.normal(0.5, 0.09, n),
    "skewed": lambda rng, n: rng.gamma(2.0, 0.07, n),
    "two humps": lambda rng, n: rng.normal(*np.where(rng.random(n) < 0.4, [[0.25], [0.06]], [[0.7], [0.08]])),
    "a point": lambda rng, n: np.full(n, 0.3),
    "96 % at 0": lambda rng, n: np.where(rng.random(n) < 0.96, 0.0, rng.gamma(2.0, 0.1, n)),
    "spike on bell": lambda rng, n: np.where(rng.random(n) < 0.45, 0.4, rng.normal(0.42, 0.12, n)),
    "whole percents": lambda rng, n: np.rint(rng.normal(40, 14, n)) / 100,
}
#: Shapes by which nothing was chosen: neither constants nor rules.
UNSEEN = {
    "gamma": lambda rng, n: rng.gamma(3.0, 0.1, n),
    "beta": lambda rng, n: rng.beta(2, 8, n),
    "three humps": lambda rng, n: rng.normal(
        *np.array([[0.2, 0.04], [0.5, 0.06], [0.8, 0.05]])[rng.choice(3, n, p=[0.3, 0.4, 0.3])].T),
    "two points": lambda rng, n: np.where(rng.random(n) < 0.35, 0.22, 0.71),
    "triangle": lambda rng, n: rng.triangular(0, 0.35, 1, n),
}


def clients(epsilon, seed):
    """Return a client of each mechanism."""
    shared = {"bounds": (0.0, 1.0), "random_state": seed}
    return {
        "PM": PMTransformer(epsilon, **shared),
        "SDPM": SDPMTransformer(epsilon, low_sensitivity=(0.25, 0.5), **shared),
        "SW": SWTransformer(epsilon, **shared),
    }


def rows(settings):
    """Yield one row for each mechanism, epsilon and shape; a quick run takes each shape once, mechanisms in turn."""
    n, seeds = (20_000, 1) if settings.quick else (100_000, 3)
    for epsilon in (1.0,) if settings.quick else (0.5, 1.0, 2.0):
        names, shapes = [*clients(epsilon, 0)], [*(SHAPES | UNSEEN).items()]
        for k, name in enumerate(names):
            for shape, draw in shapes[k :: len(names)] if settings.quick else shapes:
                found = np.array([measure(clients(epsilon, seed)[name], draw, n, seed) for seed in range(seeds)])
                ours, *rivals, covered, seconds = found.mean(axis=0)
                best = min(rivals)
                row = Row(f"distribution, {shape}, {name}, epsilon {epsilon:g}", ours=ours, unit="of the range",
                          peer="best of {EM, EMS} x {64, 256}", baseline=best, ratio=best / ours, repeats=seeds,
                          note=f"covered {covered:.3f} of {BINS} bins, chosen in {seconds * 1e3:.0f} ms CPU; rivals "
                               + ", ".join(f"{r:.4f}" for r in rivals))
                row.judge(settings, round(NEAR, 2))
                if row.met is not None:
                    row.met = row.met and (np.isnan(covered) or 0.9 <= covered <= 0.97) and seconds < LONGEST
                yield row


def collected(client, draw, n, seed):
    """Return numbers and their reports."""
    X = np.clip(draw(np.random.default_rng(seed), n), 0, 1)[:, None]
    return X, client.privatize(X)


def measure(client, draw, n, seed):
    """Return W1 of the default and of its rivals, the share of bins covered, seconds of CPU of the choice."""
    X, reports = collected(client, draw, n, seed)
    ours = DistributionEstimator(client).aggregate(reports)
    _ = ours.distribution_  # the channel is known from now on
    again = DistributionEstimator(client).aggregate(reports)
    start = time.process_time()
    _ = again.distribution_
    seconds = time.process_time() - start
    rivals = [DistributionEstimator(client, **rival).aggregate(reports) for rival in RIVALS]
    truth = np.histogram(X, np.linspace(0, 1, BINS + 1))[0] / n
    try:
        low, high = ours.confidence_interval(n_bins=BINS)[0].T
        covered = ((low <= truth) & (truth <= high)).mean()
    except ValueError:  # refused
        covered = np.nan
    return [*(-est.score(X) for est in (ours, *rivals)), covered, seconds]


def by_users(name="PM", seeds=range(4)):
    """Print the ratio to the best rival of a cell, which is known afterwards alone, and to each; means of seeds."""
    all_ratios = []
    for label, shapes in (("chosen by", SHAPES), ("unseen", UNSEEN)):
        for n in (500, 2000, 20_000, 200_000):
            cells = {}
            for shape, draw in shapes.items():
                for epsilon in (0.5, 1.0, 3.0):
                    found = []
                    for seed in seeds:
                        client = clients(epsilon, seed)[name]
                        X, reports = collected(client, draw, n, seed)
                        found.append([-DistributionEstimator(client, **params).aggregate(reports).score(X)
                                      for params in ({}, *RIVALS)])
                    cells[shape, epsilon] = np.mean(found, axis=0)
            ratios = np.array([each[0] / each[1:] for each in cells.values()])
            all_ratios.append(ratios)
            best = ratios.max(axis=1)
            print(f"{label}, {n} users: {len(best)} cells, {(best <= 1.1).sum()} within 10 % of the best, mean "
                  f"{best.mean():.2f}, worst {best.max():.2f} ({list(cells)[np.argmax(best)]}); more than 10 % worse "
                  f"than each rival in {(ratios > 1.1).sum(axis=0)}; two humps "
                  f"{[round(float(b), 2) for b, (shape, _) in zip(best, cells) if shape == 'two humps']}", flush=True)
    ratios = np.concatenate(all_ratios)
    print(f"all: mean ratio to each rival {ratios.mean(axis=0).round(2)}, to the best {ratios.max(axis=1).mean():.2f}")


if __name__ == "__main__":
    by_users()
