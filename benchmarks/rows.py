"""Rows of several columns: what users send about all of a row at once, and about some of its columns."""

import math
from math import comb

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from dpestim.local import DuchiTransformer, GRRFrequencyEstimator, MixedEstimator, PMTransformer

EPSILON, D = 1.0, 64
#: Columns of each kind in a mixed row, and categories of one.
KINDS, VALUES = 10, 8


def rows(settings):
    """Yield the rows."""
    n = 2_000 if settings.quick else 100_000
    X = np.random.default_rng(0).uniform(-1, 1, (n, D))
    bounds = (np.full(D, -1.0), np.full(D, 1.0))
    yield from _joint_duchi(settings, DuchiTransformer(EPSILON, bounds=bounds, strategy="joint"), X)
    yield _sampled(settings, PMTransformer(EPSILON, bounds=bounds, strategy="sample"), X)
    yield _mixed(settings, 20_000 if settings.quick else 1_000_000)


def duchi_numpy(x, rng):
    """Draw packed reports of Duchi's joint mechanism: signs, a draw, its mirror image or, of ties, another draw."""
    n, d = x.shape
    e, ties = math.exp(EPSILON), comb(d, d // 2)
    upper = (2**d - ties) / 2
    keep = e / (e + 1)
    # the probability of a tie in the end, and so that of keeping one at first, where there are two rounds
    wanted, first = ties / (e * upper + upper + ties), ties / 2**d
    kept = (wanted - first**2) / (first * (1 - first))
    out = np.empty((n, d // 8), np.uint8)
    for at in range(0, n, 1 << 11):
        block = x[at : at + (1 << 11)]
        v = rng.random(block.shape, np.float32) < (block + 1) / 2
        u = np.unpackbits(np.frombuffer(rng.bytes(v.size // 8), np.uint8).reshape(len(v), -1), axis=1).view(bool)
        agree = (u == v).sum(axis=1)
        again = np.flatnonzero((2 * agree == d) & (rng.random(len(v)) > kept))
        u[again] = rng.random((len(again), d), np.float32) < 0.5
        agree[again] = (u[again] == v[again]).sum(axis=1)
        flip = (2 * agree != d) & ((2 * agree > d) != (rng.random(len(v)) < keep))
        out[at : at + (1 << 11)] = np.packbits(u ^ flip[:, None], axis=1, bitorder="little")
    return out


def published_numpy(x, rng):
    """Draw the same as it is published: how many signs agree, from its law, and at random which."""
    n, d = x.shape
    e, sizes = math.exp(EPSILON), np.array([float(comb(d, a)) for a in range(d + 1)])
    law = np.cumsum(sizes * np.where(2 * np.arange(d + 1) > d, e, 1.0))
    out = np.empty((n, d // 8), np.uint8)
    for at in range(0, n, 1 << 11):
        block = x[at : at + (1 << 11)]
        v = rng.random(block.shape, np.float32) < (block + 1) / 2
        agree = np.searchsorted(law, rng.random(len(v)) * law[-1], side="right")
        flip = np.argsort(rng.random(v.shape, np.float32), axis=1) >= agree[:, None]
        out[at : at + (1 << 11)] = np.packbits(v ^ flip, axis=1, bitorder="little")
    return out


def _joint_duchi(settings, transformer, X):
    contestants = {
        "ours": lambda: transformer.privatize(X),
        "limit": limit("keystream"),
        "read": X.sum,
        "mirrored": lambda: duchi_numpy(X, np.random.default_rng()),
        "published": lambda: published_numpy(X, np.random.default_rng()),
    }
    times, results, repeats = interleave(contestants)
    law = transformer.randomizer()
    # the baselines draw the same law: equal products with the values, within six standard errors
    mine, *theirs = (np.mean((law.decode(results[name]) - 0.5) * X) for name in ("ours", "mirrored", "published"))
    if not np.abs(mine - np.array(theirs)).max() < 6 * math.sqrt(2 / 3 * float(law.scale) ** 2 / 4 / X.size):
        raise RuntimeError("Duchi: a baseline has another mean")
    peers = (("published", "NumPy, as published (agreements, then places)", 5), ("mirrored", "NumPy, our draw", 5))
    for name, peer, target in peers:
        row = Row(
            f"Duchi privatize, {len(X):,} rows of {D} numbers jointly",
            ours=times["ours"],
            peer=peer,
            baseline=times[name],
            ratio=times[name] / times["ours"],
            limit="reads, words",
            share=times["read"] / times["ours"]  # (without a ledger rows are checked as they are answered)
            + share("keystream", times["limit"], 8 * law.n_words * len(X), times["ours"]),
            repeats=repeats,
            note="ours: secure words, checked input, exact integers; PCG64, float32 draws, blocks",
        )
        yield row.judge(settings, target)


def _sampled(settings, transformer, X):
    law, n = transformer.randomizer(), len(X)
    s = math.exp(EPSILON / 2)
    C = (s + 1) / (s - 1)

    def in_numpy():
        rng = np.random.default_rng()
        which = rng.integers(0, D, n)
        x = X[np.arange(n), which]
        coin, place = rng.random((2, n), np.float32)
        left = (C + 1) / 2 * x - (C - 1) / 2
        other = place * (C + 1) - C
        outside = np.where(other < left, other, other + (C - 1))
        return which, np.where(coin < s / (s + 1), left + (C - 1) * place, outside)

    contestants = {"ours": lambda: transformer.privatize(X), "numpy": in_numpy, "read": X.sum}
    times, results, repeats = interleave(contestants)
    mine, theirs = 2 * law.positions[results["ours"][:, 1]] - 1, results["numpy"][1]
    if not abs(mine.mean() - theirs.mean()) < 6 * math.sqrt((mine.var() + theirs.var()) / n):
        raise RuntimeError("PM of one of the columns: the baseline has another mean")
    return Row(
        f"PM privatize, {n:,} rows of {D} numbers, one of them drawn",
        ours=times["ours"],
        peer="NumPy, PCG64, float32 draws",
        baseline=times["numpy"],
        ratio=times["numpy"] / times["ours"],
        limit="reads",
        share=times["read"] / times["ours"],  # (all values are checked; NumPy's way reads one a row)
        repeats=repeats,
        note="ours: secure words, all columns checked, exact integers",
    )


def _mixed(settings, n):
    """Return the row of a fit of numbers and categories together, one of all columns drawn by each user."""
    rng, d = np.random.default_rng(0), 2 * KINDS
    X = np.concatenate([rng.integers(0, VALUES, (KINDS, n)), rng.uniform(-1, 1, (KINDS, n))]).T  # as frames keep them
    est = MixedEstimator([
        ("answers", GRRFrequencyEstimator(categories=[list(range(VALUES))] * KINDS), slice(0, KINDS)),
        ("sizes", PMTransformer(bounds=(-1, 1)), slice(KINDS, d)),
    ], epsilon=EPSILON, n_sampled=1)
    e, s = math.exp(EPSILON), math.exp(EPSILON / 2)
    p, q, C = e / (e + VALUES - 1), 1 / (e + VALUES - 1), (s + 1) / (s - 1)

    def ours():
        fitted = est.fit(X)
        return np.array([f[0] for f in fitted.frequencies_.values()]), np.array(list(fitted.means_.values()))

    def in_numpy():
        rng = np.random.default_rng()
        which, shares, means = rng.integers(0, d, n), np.empty(KINDS), np.empty(KINDS)
        for j in range(d):
            x = X[which == j, j]
            coin, place = rng.random((2, len(x)), np.float32)
            if j < KINDS:
                kept, other = x.astype(np.int64), (place * (VALUES - 1)).astype(np.int64)
                counts = np.bincount(np.where(coin < p, kept, other + (other >= kept)), minlength=VALUES)
                shares[j] = (counts[0] / len(x) - q) / (p - q)
                continue
            left = (C + 1) / 2 * x - (C - 1) / 2
            outside = place * (C + 1) - C
            outside = np.where(outside < left, outside, outside + (C - 1))
            means[j - KINDS] = np.where(coin < s / (s + 1), left + (C - 1) * place, outside).mean()
        return shares, means

    times, results, repeats = interleave({"ours": ours, "numpy": in_numpy})
    errors = [[np.square(got - np.mean(truth)).mean() ** 0.5 for got, truth in zip(pair, (X[:, 0] == 0, X[:, KINDS:]))]
              for pair in (results["ours"], results["numpy"])]
    if not all(1 / 3 < a / b < 3 for a, b in zip(*errors)):
        raise RuntimeError("mixed rows: the baseline has other errors")
    return Row(
        f"Mixed fit and estimates, {n:,} rows of {KINDS} categories and {KINDS} numbers, one of them drawn",
        ours=times["ours"],
        peer="NumPy, PCG64, float32 draws",
        baseline=times["numpy"],
        ratio=times["numpy"] / times["ours"],
        repeats=repeats,
        note="ours: secure words, checked input, exact integers, errors and intervals at hand",
    )
