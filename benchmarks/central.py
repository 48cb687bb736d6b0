"""Noise on answers: a million at a time, against floating-point noise of NumPy (which protects nobody), and one."""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.base import all_estimators
from dpestim.rng import WordSource

#: What NumPy's user would add, at about the scale of the first setting of each mechanism.
PEERS = {
    "LaplaceMechanism": ("Generator.laplace", lambda rng, n: rng.laplace(0.0, 1.0, n)),
    "DiscreteLaplaceMechanism": (
        "two of Generator.geometric", lambda rng, n: rng.geometric(0.632, n) - rng.geometric(0.632, n)),
    "GaussianMechanism": ("Generator.normal", lambda rng, n: rng.normal(0.0, 3.73, n)),
    "DiscreteGaussianMechanism": ("Generator.normal, rounded", lambda rng, n: np.rint(rng.normal(0.0, 3.74, n))),
}
#: Mechanisms that take longer: so many times fewer answers.
FEWER = {"SnappingMechanism": 100}


def mechanisms():
    """Return (name, class) of all that add noise to answers."""
    return [(cls.__name__, cls) for _, cls in all_estimators() if hasattr(cls, "half_width")]


def rows(settings):
    """Yield rows: the noise of many answers, and the whole release of one."""
    rng = np.random.default_rng(0)
    for name, cls in mechanisms():
        yield _many(settings, name, cls, rng)
        yield _one(name, cls)


def _many(settings, name, cls, rng):
    n = settings.n // FEWER.get(name, 1)
    mechanism, answers = cls(**cls._test_params()[0]), np.zeros(n, int if cls._integers else float)
    law, peer = mechanism.law(), PEERS.get(name)
    runs = {"ours": lambda: mechanism._noisy(answers, law, WordSource())}
    if peer:
        runs["numpy"] = lambda: answers + peer[1](rng, n)
    times, _, repeats = interleave(runs)
    return Row(
        f"{name}, noise of an answer",
        ours=times["ours"] / n,
        peer=peer[0] if peer else "",
        baseline=times["numpy"] / n if peer else None,
        ratio=times["numpy"] / times["ours"] if peer else None,
        repeats=repeats,
    )


def _one(name, cls, calls=200):
    mechanism = cls(**cls._test_params()[0])

    def ours():
        for _ in range(calls):
            mechanism.release(12)

    times, _, repeats = interleave({"ours": ours})
    return Row(f"{name}, release of one answer", ours=times["ours"] / calls, repeats=repeats)
