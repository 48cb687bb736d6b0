"""Users of different settings: ten groups of users beside one, around the same estimator."""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.local import (
    GRRFrequencyEstimator,
    MeanEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
)

#: Ten groups may take so many times what one takes.
MOST, N_GROUPS = 1.3, 10


def rows(settings):
    """Yield the rows: arrays of numbers, and of objects with the groups as strings."""
    rng, n = np.random.default_rng(0), settings.n
    group, value, number = rng.integers(0, N_GROUPS, n), rng.integers(0, 16, n), rng.uniform(-1, 1, n)
    names = np.array([f"group {k}" for k in range(N_GROUPS)], object)
    for name, estimator, prefix, values in (
        ("GRR", GRRFrequencyEstimator(categories=[range(16)]), "", value),
        ("OUE", OUEFrequencyEstimator(categories=[range(16)]), "", value),
        ("mean of PM", MeanEstimator(PMTransformer(bounds=(-1.0, 1.0))), "transformer__", number),
    ):
        yield _row(settings, f"{name}, an array of numbers", estimator, prefix, group, values, range(N_GROUPS))
    objects = np.empty(n, object)
    objects[:] = value.tolist()
    estimator = GRRFrequencyEstimator(categories=[range(16)])
    yield _row(settings, "GRR, objects with strings", estimator, "", names[group], objects, list(names))


def _row(settings, text, estimator, prefix, group, values, names):
    own = {name: {f"{prefix}epsilon": 0.5 + 0.1 * k} for k, name in enumerate(names)}
    ten = PersonalizedEstimator(estimator, settings=own)
    one = PersonalizedEstimator(estimator, settings={names[0]: own[names[0]]})
    X = np.stack([group, values], axis=1)
    same = np.stack([np.full(len(group), names[0], group.dtype), values], axis=1)
    times, results, repeats = interleave({"ten": lambda: ten.fit(X), "one": lambda: one.fit(same)})
    if results["ten"].n_users_ != len(X):
        raise RuntimeError("not everybody was counted")
    return Row(
        f"{text}: fit of {N_GROUPS} groups, {len(X):,}",
        ours=times["ten"],
        peer="one group",
        baseline=times["one"],
        ratio=times["one"] / times["ten"],
        repeats=repeats,
        target=f"{1 / MOST:.2f}x",
        met=None if settings.quick else times["ten"] <= MOST * times["one"],
    )
