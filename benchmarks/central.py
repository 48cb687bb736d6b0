"""Noise on answers: a million at a time, and one.

Against floating-point noise of NumPy, which protects nobody, and in the same run against the exact noise of opendp,
where that is installed (``pip install opendp``: it is no dependency).
"""

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
#: What opendp's user would add, and how many times our speed is the goal; its constructor takes a domain and a metric.
EXACT_PEERS = {
    "LaplaceMechanism": ("make_laplace", float, "l1_distance", 1.0, 10),
    "DiscreteLaplaceMechanism": ("make_laplace", int, "l1_distance", 1.0, 40),
    "GaussianMechanism": ("make_gaussian", float, "l2_distance", 3.73, 10),
    "DiscreteGaussianMechanism": ("make_gaussian", int, "l2_distance", 3.74, 10),
}
#: opendp draws so many times fewer answers than we do.
FEWER_OF_PEER = 100
#: Mechanisms that take longer: so many times fewer answers.
FEWER = {"SnappingMechanism": 100}


def mechanisms():
    """Return (name, class) of all that add noise to answers."""
    return [(cls.__name__, cls) for _, cls in all_estimators() if hasattr(cls, "half_width")]


def rows(settings):
    """Yield rows: the noise of many answers, and the whole release of one."""
    rng = np.random.default_rng(0)
    for name, cls in mechanisms():
        yield from _many(settings, name, cls, rng)
        yield _one(name, cls)


def _many(settings, name, cls, rng):
    n = settings.n // FEWER.get(name, 1)
    mechanism, answers = cls(**cls._test_params()[0]), np.zeros(n, int if cls._integers else float)
    law, peer, opendp = mechanism.law(), PEERS.get(name), _opendp(name)
    few = answers[: n // FEWER_OF_PEER].tolist()
    runs = {"ours": lambda: mechanism._noisy(answers, law, WordSource())}
    if peer:
        runs["numpy"] = lambda: answers + peer[1](rng, n)
    if opendp:
        runs["opendp"] = lambda: opendp(few)
    times, _, repeats = interleave(runs)
    ours = times["ours"] / n
    for key, title, size in (("numpy", peer and peer[0], n), ("opendp", "opendp's " + _peer_name(name), len(few))):
        if key in times:
            theirs = times[key] / size
            exact = ", exact" if key == "opendp" else ""
            row = Row(f"{name}, noise of an answer{exact}", ours=ours, peer=title, baseline=theirs,
                      ratio=theirs / ours, repeats=repeats)
            yield row.judge(settings, EXACT_PEERS[name][-1]) if exact else row
    if len(times) == 1:
        yield Row(f"{name}, noise of an answer", ours=ours, repeats=repeats)


def _peer_name(name):
    return EXACT_PEERS.get(name, ("", None))[0].removeprefix("make_")


def _opendp(name):
    """Return a function of a list of answers that adds noise by opendp, or None where there is none."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    if name not in EXACT_PEERS:
        return None
    make, kind, distance, scale, _ = EXACT_PEERS[name]
    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=kind, nan=False) if kind is float else dp.atom_domain(T=kind)
    metric = getattr(dp, distance)(T=float if distance == "l2_distance" else kind)
    return getattr(dp.m, make)(dp.vector_domain(atoms), metric, scale=scale)


def _one(name, cls, calls=200):
    mechanism = cls(**cls._test_params()[0])

    def ours():
        for _ in range(calls):
            mechanism.release(12)

    times, _, repeats = interleave({"ours": ours})
    return Row(f"{name}, release of one answer", ours=times["ours"] / calls, repeats=repeats)
