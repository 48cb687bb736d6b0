"""Vectors in a ball: PrivUnit by ranked candidates, against a continuous cap in NumPy."""

import math

import numpy as np
from scipy.special import betaincinv

from benchmarks._harness import Row, interleave
from dpestim.local import MeanEstimator, PrivUnitTransformer

EPSILON, D = 1.0, 1024
#: The share of the sphere that is likelier: the best one at this epsilon, in many dimensions.
CAP = 0.3456


def transformers():
    """Return (short name, class) of what is timed here."""
    return [("PrivUnit", PrivUnitTransformer)]


def rows(settings):
    """Yield the rows."""
    n = 2_000 if settings.quick else 100_000
    X = np.random.default_rng(0).standard_normal((n, D), np.float32) + np.float32(0.1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X.astype(np.float64)
    yield from _vectors(settings, X)


def heights_numpy(n, d, rng):
    """Draw how far up the own direction a report lies, by quantiles of the beta law."""
    kept = CAP * math.exp(EPSILON) / (CAP * math.expm1(EPSILON) + 1)
    place, inside = rng.random(n), rng.random(n) < kept
    share = np.where(inside, 1 - CAP + CAP * place, (1 - CAP) * place)
    return 2 * betaincinv((d - 1) / 2, (d - 1) / 2, share) - 1


def privunit_numpy(X, rng, take, dtype=np.float32):
    """Draw reports, normal numbers turned to their height on the sphere, and hand them over block by block."""
    for at in range(0, len(X), 256):
        x = X[at : at + 256].astype(dtype)
        height = heights_numpy(len(x), x.shape[1], rng)
        g = rng.standard_normal(x.shape, dtype)
        along = np.einsum("ij,ij->i", g, x)
        across = np.sqrt((1 - np.square(height)) / (np.einsum("ij,ij->i", g, g) - np.square(along))).astype(dtype)
        g *= across[:, None]
        x *= (height - across * along).astype(dtype)[:, None]
        g += x
        take(at, g)


def _vectors(settings, X):
    n, transformer = len(X), PrivUnitTransformer(EPSILON, center=np.zeros(D))

    def reports(dtype):
        return lambda: privunit_numpy(X, np.random.default_rng(), lambda at, block: None, dtype)

    def means():
        total = np.zeros(D)

        def add(at, block):
            total[:] += block.sum(axis=0)

        privunit_numpy(X, np.random.default_rng(), add)
        a = (D - 1) / 2
        t = 2 * betaincinv(a, a, 1 - CAP) - 1
        peak = math.exp(math.lgamma(D / 2) - math.lgamma(a)) / math.sqrt(math.pi) / (D - 1)
        return total / n / (math.expm1(EPSILON) / (CAP * math.expm1(EPSILON) + 1) * peak * (1 - t * t) ** a)

    MeanEstimator(transformer).fit(X[:2]).release()  # the constant is worked out once
    contestants = {
        "ours": lambda: transformer.privatize(X),
        "read": X.sum,
        "numpy": reports(np.float32),
        "numpy, float64": reports(np.float64),
        "our mean": lambda: MeanEstimator(transformer).fit(X).mean_,
        "mean": means,
    }
    times, results, repeats = interleave(contestants)
    # both have about the best variance, D of which are 6,480: the same mean along the mean vector, within six errors
    truth = X.mean(axis=0)
    along = [(results[name] - truth) @ truth / np.linalg.norm(truth) for name in ("our mean", "mean")]
    if not max(map(abs, along)) < 6 * math.sqrt(6480 / D / n):
        raise RuntimeError("PrivUnit: a mean vector is another")
    fastest = min("numpy", "numpy, float64", key=times.get)
    for name, ours, peer, target in (("privatize", "ours", fastest, 5), ("means of", "our mean", "mean", None)):
        row = Row(
            f"PrivUnit {name} {n:,} vectors of {D:,} numbers",
            ours=times[ours],
            peer="NumPy, PCG64, normals and beta quantiles, blocks",
            baseline=times[peer],
            ratio=times[peer] / times[ours],
            limit="reads",
            share=2 * times["read"] / times[ours],  # to be checked before the charge, and to be answered
            repeats=repeats,
            note="ours: secure words, checked input, exact integers; 75 bits sent, not 1,024 floats",
        )
        yield row.judge(settings, target) if target else row
