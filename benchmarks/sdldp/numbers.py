"""Means: variances of a report (Figure 4), errors (7 and 8), and whose gain it is."""

import math

import numpy as np

from benchmarks.sdldp import EPSILONS, SHARES
from benchmarks.sdldp.categories import _mean, with_groups
from dpestim.local import DistributionEstimator, MeanEstimator, PersonalizedEstimator, PMTransformer, SDPMTransformer

BOUNDS = (-1.0, 1.0)
N_BINS = 64


def low_interval(percent, centre=0.0, half=1.0):
    """Return the low interval: the middle of [centre - half, centre + half], all but a high share of it."""
    reach = half * (1 - percent / 100)
    return centre - reach, centre + reach


def n_cells(interval):
    """Return how many cells are as wide as the bins."""
    return max(2, round(N_BINS * (interval[1] - interval[0]) / (BOUNDS[1] - BOUNDS[0])))


def sdpm(epsilon, interval, seed=None, form="discretised"):
    """Return the transformer for a low interval."""
    return SDPMTransformer(epsilon, bounds=BOUNDS, low_sensitivity=interval, n_cells=n_cells(interval), form=form,
                           random_state=seed)


def pm(epsilon, seed=None):
    """Return the transformer that protects all alike."""
    return PMTransformer(epsilon, bounds=BOUNDS, random_state=seed)


def em(transformer, epsilon, patience=1):
    """Return the paper's estimator: expectation maximisation from uniform shares, stopped as in its Algorithm 1.

    With patience it goes on until an iteration gains so many times less.
    """
    return DistributionEstimator(transformer, n_bins=N_BINS, smoothing=False, max_iter=10_000 * patience,
                                 tol=1e-3 * math.exp(epsilon) / patience)


def personalised(epsilon, seed):
    """Return the estimator of users who choose their own low interval."""
    settings = {}
    for percent in SHARES:
        interval = low_interval(percent)
        settings[percent] = {"transformer__low_sensitivity": interval, "transformer__n_cells": n_cells(interval)}
    return PersonalizedEstimator(em(sdpm(epsilon, low_interval(50), seed), epsilon), settings, weights="stratified")


def errors(column, repetitions, seeds, epsilons=EPSILONS):
    """Yield a row for each mechanism and epsilon: the mean squared error of the mean, with its standard error.

    PM stands there twice: with the plain mean of its reports, which is the paper's estimator for it, and with EM.
    Beside them what needs no mechanism: the centre of the bounds, and the mean of as many low users as reveal
    themselves under SDPM, had they just been asked.
    """
    rng = np.random.default_rng(0)
    for epsilon in epsilons:
        found = {}
        for _ in range(repetitions):
            transformer = pm(epsilon, next(seeds))
            reports = transformer.privatize(column.x)
            found.setdefault("PM", []).append(float(transformer.decode(reports).mean()))
            found.setdefault("PM, EM", []).append(float(em(transformer, epsilon).aggregate(reports).mean_[0]))
            for percent in SHARES:
                transformer = sdpm(epsilon, low_interval(percent), next(seeds))
                mean = em(transformer, epsilon).fit(column.x).mean_[0]
                found.setdefault(f"SDPM-{percent}", []).append(float(mean))
            estimator = personalised(epsilon, next(seeds)).fit(with_groups(column.x, rng))
            found.setdefault("SDPM-P", []).append(float(estimator.mean_[0]))
        common = {"column": column.name, "n": len(column.x), "epsilon": epsilon}
        for name, means in found.items():
            yield {**common, "mechanism": name, **_mean("mse", np.square(np.array(means) - column.mean))}
        yield {**common, "mechanism": "centre of the bounds", "mse": float(column.mean**2), "mse_se": 0.0}
        for percent in SHARES:
            asked = _open(column.x, epsilon, low_interval(percent))
            yield {**common, "mechanism": f"asked openly-{percent}", "mse_se": 0.0, **asked}


def _open(x, epsilon, interval):
    """Return the error of a plain mean over the low users who reveal themselves: exact for a random choice of them."""
    low, high = interval
    inside = x[(x >= low) & (x <= high)]
    n_open = own_probability(epsilon, high - low) * len(inside)
    bias, spread = inside.mean() - x.mean(), inside.var() / n_open * (1 - n_open / len(inside))
    return {"mse": float(bias**2 + spread), "bias": float(bias), "share high": 1 - len(inside) / len(x),
            "share open": float(n_open / len(x))}


def own_probability(epsilon, width):
    """Return p' of equation (14): how likely a low value is reported as it is."""
    s = math.exp(epsilon / 2)
    p = (s * s - s) / (2 * s + 2)
    return 1 - (2 * (s + 1) / (s - 1) - width) * p / (s * s)


# ---------------------------------------------------------------- Figure 4, and the bias of a report


def variances(repetitions, seeds, epsilons=EPSILONS, n=20_000):
    """Yield a row for each low interval and epsilon: the largest variance of a report, and the bias there.

    By the paper's equation (15), exact from the law, and measured from reports of the continuous form; PM's largest
    beside them. The largest is that of a value at the end of the low interval, whose report has the largest bias, too.
    """
    for epsilon in epsilons:
        s = math.exp(epsilon / 2)
        p, c_all = (s * s - s) / (2 * s + 2), (s + 1) / (s - 1)
        for percent in SHARES:
            interval = low_interval(percent)
            c = interval[1]
            transformer = sdpm(epsilon, interval, form="continuous").set_params(grid=4096)  # finer is slower only
            law = transformer.randomizer()
            y = 2 * law.positions - 1
            mean, square = law.expect(y), law.expect(y * y)
            level = len(mean) - 1  # the last row: the upper end of the low interval
            X, means, spreads = np.full((n, 1), c), [], []
            for _ in range(repetitions):
                reports = transformer.set_params(random_state=next(seeds)).fit(X).transform(X)
                means.append(reports.mean())
                spreads.append(reports.var())
            own = own_probability(epsilon, 2 * c)
            yield {"epsilon": epsilon, "high percent": percent, "end": c, "PM": 4 * s / (3 * (s - 1) ** 2),
                   "paper": 2 * p * (c_all**3 - c**3) / (3 * s * s), "exact": float(square[level] - mean[level] ** 2),
                   "formula": 2 * p * (c_all**3 - c**3) / (3 * s * s) + own * (1 - own) * c * c,
                   "bias": float(mean[level] - c), "bias of formula": (own - 1) * c, "own": own,
                   **_mean("measured", spreads), **_mean("measured bias", np.array(means) - c)}


# ---------------------------------------------------------------- whose gain it is


def settings(column):
    """Return {what: (data, low interval)}: in the centre of the bounds, and far from it.

    Far off, the bounds reach as far again beyond the largest value, so that the data lie in [-1, 0]. The low interval
    stays in the middle of the bounds, or moves along with the data.
    """
    shifted = (column.x - 1) / 2
    return {
        "centred": (column.x, low_interval(50)),
        "off centre": (shifted, low_interval(50)),
        "off centre, low interval moved along": (shifted, low_interval(50, centre=-0.5, half=0.5)),
    }


ESTIMATORS = {
    "plain mean": None,
    "unbiased": lambda transformer, epsilon: MeanEstimator(transformer),
    "EM": em,
    "EM, 100 times finer stop": lambda transformer, epsilon: em(transformer, epsilon, 100),
    "default of dpestim": lambda transformer, epsilon: DistributionEstimator(transformer),
}


def whose_gain(column, repetitions, seeds, epsilon=EPSILONS[0]):
    """Yield a row for each data, mechanism and estimator: the error of the mean, and the bias in it.

    All estimators read the same reports.
    """
    for what, (x, interval) in settings(column).items():
        truth, low = float(x.mean()), (x >= interval[0]) & (x <= interval[1])
        found = {}
        for _ in range(repetitions):
            both = {"PM": pm(epsilon, next(seeds)), "SDPM": sdpm(epsilon, interval, next(seeds))}
            for name, transformer in both.items():
                reports = transformer.privatize(x)
                for how, make in ESTIMATORS.items():
                    if make is None:
                        mean = transformer.decode(reports).mean()
                    else:
                        mean = make(transformer, epsilon).aggregate(reports).mean_[0]
                    found.setdefault((name, how), []).append(float(mean))
        common = {"column": column.name, "data": what, "epsilon": epsilon, "truth": truth,
                  "share low": float(low.mean())}
        for (name, how), means in found.items():
            off = np.array(means) - truth
            yield {**common, "mechanism": name, "estimator": how, **_mean("mse", off**2), **_mean("bias", off)}
        yield {**common, "mechanism": "none", "estimator": "centre of the bounds", "mse": truth**2, "mse_se": 0.0,
               "bias": -truth, "bias_se": 0.0}
        yield {**common, "mechanism": "none", "estimator": "asked openly", "mse_se": 0.0, "bias_se": 0.0,
               **_open(x, epsilon, interval)}
