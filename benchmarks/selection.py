"""Choosing among a million candidates, against what NumPy's user would write (which protects nobody), and among ten."""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.base import all_estimators

#: The largest of scores with noise, for epsilon 1 and sensitivity 1.
PEERS = {
    "ExponentialMechanism": ("argmax with Generator.gumbel", lambda rng, u: np.argmax(u / 2 + rng.gumbel(size=u.size))),
    "PermuteAndFlip": ("argmax with Generator.exponential",
                       lambda rng, u: np.argmax(u / 2 + rng.exponential(size=u.size))),
    "ReportNoisyMax": ("argmax with Generator.laplace", lambda rng, u: np.argmax(u / 2 + rng.laplace(size=u.size))),
}
#: What is asked of one thread, in seconds for a million candidates.
TARGET = {"ExponentialMechanism": 0.05}


def mechanisms():
    """Return (name, class) of all that choose."""
    return [(cls.__name__, cls) for _, cls in all_estimators() if getattr(cls, "_checked_as", None) == "choice"]


def rows(settings):
    """Yield rows: a choice among many candidates, among few, and a quantile."""
    scores = 10 * np.random.default_rng(0).normal(size=settings.n)
    for name, cls in mechanisms():
        yield _many(name, cls, scores)
        yield _few(name, cls)
    yield _quantile(settings)


def _many(name, cls, scores):
    rng, peer = np.random.default_rng(1), PEERS.get(name)
    mechanism = cls(**cls._test_params()[0])
    runs = {"ours": lambda: mechanism.release(scores)}
    if peer:
        runs["numpy"] = lambda: peer[1](rng, scores)
    times, _, repeats = interleave(runs)
    row = Row(
        f"{name}, {len(scores):,} candidates",
        ours=times["ours"],
        peer=peer[0] if peer else "",
        baseline=times["numpy"] if peer else None,
        ratio=times["numpy"] / times["ours"] if peer else None,
        repeats=repeats,
    )
    if name in TARGET:
        row.target = f"{1000 * TARGET[name]:g} ms"
        row.met = times["ours"] <= TARGET[name] if len(scores) >= 1_000_000 else None
    return row


def _few(name, cls, calls=100):
    mechanism, scores = cls(**cls._test_params()[0]), np.arange(10.0)

    def ours():
        for _ in range(calls):
            mechanism.release(scores)

    times, _, repeats = interleave({"ours": ours})
    return Row(f"{name}, 10 candidates", ours=times["ours"] / calls, repeats=repeats)


def _quantile(settings):
    data = np.sort(np.random.default_rng(2).normal(size=settings.n))
    cls = dict(mechanisms())["ExponentialMechanism"]
    mechanism = cls(1.0, sensitivity=1, bounds=(-10.0, 10.0))
    scores = -np.abs(np.arange(settings.n + 1) - settings.n // 2)
    times, _, repeats = interleave({"ours": lambda: mechanism.release(scores, edges=data)})
    return Row(f"ExponentialMechanism, {settings.n:,} edges", ours=times["ours"], repeats=repeats)
