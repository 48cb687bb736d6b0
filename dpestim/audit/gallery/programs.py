"""The mistakes as programs that run: what an audit samples, and what a search looks at.

Nothing here is private, nor is its noise secure: a program is what somebody wrote who made the mistake.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from dpestim.audit.density import Density
from dpestim.audit.gallery import central, floats, learning, local, sparse, streams
from dpestim.audit.gallery.mistake import event, laplace_below


class Program(NamedTuple):
    """A mistake that runs.

    Attributes
    ----------
    sample : callable
        ``sample(data, n, rng)``: n outputs.
    pair : (data, neighbour)
        What an audit compares.
    law : callable or matrix, or None
        What `dpestim.audit.search_counterexample` takes; None: the sampler.
    domain : dict
        The arguments of the search that say what data are, and which of them are neighbours.
    """

    sample: Callable
    pair: tuple
    law: object
    domain: dict


def programs():
    """Return {name of a mistake: its `Program`}, for all of the gallery."""
    return {**_sparse_vectors(), **_central(), **_floats(), **_local(), **_streams(), **_learning()}


# ---------------------------------------------------------------- sparse vectors


def _above(answers, n, rng, rho, nu):
    """Return (which noisy answers are above one noisy threshold, the noisy answers), n times."""
    noisy = np.asarray(answers, float) + (rng.laplace(scale=nu, size=(n, len(answers))) if nu else 0.0)
    return noisy >= rng.laplace(scale=rho, size=(n, 1)), noisy


def _answers(above, most=None):
    """Return answers 1 and 0, and 2 for what is not asked after so many that are above."""
    if most is None:
        return above.astype(int)
    before = np.cumsum(above, axis=1) - above
    return np.where(before < most, above, 2)


def _first_value(answers, n, rng):
    """Return (the place of the first answer above the threshold, its noisy value), n times; -1 and 0: there is none."""
    above, noisy = _above(answers, n, rng, 2.0, 2.0)
    first = above.argmax(axis=1)
    found = above.any(axis=1)
    return np.stack([np.where(found, first, -1), np.where(found, noisy[np.arange(n), first], 0.0)], axis=1)


def _quarters(answers):
    """Return answers rounded to quarters, between which integrals are exact; those of neighbours stay 1 apart."""
    return (np.round(4 * np.asarray(answers, float)) / 4).tolist()


def _cut(rho, nu, n_below, most=None):
    """Return (sampler, law) of such a technique: the law of "below" n_below times, and "above" then."""

    def sample(answers, n, rng):
        return _answers(_above(answers, n, rng, rho, nu)[0], most)

    def law(answers):
        answers = _quarters(answers)
        return sparse.answered(rho, nu, [(a, 1) for a in answers[:n_below]], [(a, 1) for a in answers[n_below:]])

    return sample, law


def _below_then_above(answers):
    """Return the law of "below, above" without noise on two queries: the threshold is between them."""
    low, high = (float(laplace_below(np.array(a), 2.0)) for a in answers)
    return event(max(0.0, high - low))


def _value_law(answers):
    """Return the law of "below" for all queries but the last one, whose noisy value is above, and at most 0."""
    *before, last = _quarters(answers)

    def between(r):
        return np.where(r < 0, laplace_below(0 - last + 0 * r, 2) - laplace_below(r - last, 2), 0.0)

    return sparse.answered(2, 2, [(a, 1) for a in before], then=between)


def _sparse_vectors():
    steps = {"neighbours": "each", "step": 1, "bounds": (-2, 2)}
    cut, cut_law = _cut(4, 4 / 3, 60, most=5)
    free, free_law = _cut(2, 2, 20)
    monotone, monotone_law = _cut(2, 6, 200, most=3)
    return {
        "Sparse vector that releases the compared value": Program(
            _first_value, ([0.0] * 5, [1.0] * 4 + [0.0]), _value_law, {**steps, "n_values": 21}),
        "Sparse vector, noise that ignores the cut-off": Program(
            cut, ([0.0] * 10, [1.0] * 5 + [-1.0] * 5), cut_law, {**steps, "n_values": 65}),
        "Sparse vector without noise on the queries": Program(
            _cut(2, 0, 1)[0], ([0.0, 1.0], [1.0, 0.0]), _below_then_above, {**steps, "n_values": 2}),
        "Sparse vector without a cut-off": Program(
            free, ([0.0] * 10, [1.0] * 5 + [-1.0] * 5), free_law, {**steps, "n_values": 40}),
        "Sparse vector, noise for monotone queries on others": Program(
            monotone, ([0.0] * 13, [1.0] * 10 + [-1.0] * 3), monotone_law, {**steps, "n_values": 203}),
    }


# ---------------------------------------------------------------- noise on answers


def _cauchy(count, n, rng):
    return count + rng.standard_cauchy(n) * (2 / 3 * math.exp(-1.5))


def _tested(answer, n, rng):
    """Return the noisy answer, or nothing (NaN): the distance 0 passes the test by chance."""
    threshold = math.log(2 / 1e-6) / 2
    passes = rng.laplace(size=n) > threshold
    return np.where(passes, answer + rng.laplace(size=n), math.nan)


def _tested_law(answer):
    passes = 0.5 * math.exp(-math.log(2 / 1e-6) / 2)
    return {answer: passes, "refused": 1 - passes}  # (how far apart the answers may be is not bounded)


def _largest(answers):
    """Return the density of the largest of some answers with Laplace noise of scale 2."""
    answers = np.asarray(answers, float)

    def density(x):
        below, at = (laplace_below(x - answers, 2.0), np.exp(-np.abs(x - answers) / 2) / 4)
        return float(sum(at[k] * np.prod(np.delete(below, k)) for k in range(len(answers))))

    return Density(density, tuple(sorted({*answers.tolist(), float(answers.max()) + 4.0})))


def _central():
    sigma = central.classic_sigma(*central.GAUSSIAN)
    law = central.gaussians(sigma)[0]
    laplace = central.laplaces(0, 10.0)[0]
    a = math.exp(-1)

    def counts(data, n, rng):
        return np.asarray(data) + rng.geometric(1 - a, (n, 2)) - rng.geometric(1 - a, (n, 2))

    def counts_law(group):  # (of each count whether it is above 0; one person is in group 0 or in group 1)
        one, none = 1 / (1 + a), a / (1 + a)
        p = (one, none) if group == 0 else (none, one)
        return {(x, y): (p[0] if x else 1 - p[0]) * (p[1] if y else 1 - p[1]) for x in (0, 1) for y in (0, 1)}

    return {
        "Gaussian noise by the textbook, epsilon = 10": Program(
            lambda x, n, rng: x + sigma * rng.normal(size=n), (0.0, 1.0), law.moved, {"bounds": (0, 1)}),
        "A sum of values in [50, 60], sensitivity 60 - 50": Program(
            lambda values, n, rng: sum(values) + rng.laplace(scale=10.0, size=n), ([55.0], [55.0, 60.0]),
            lambda there: laplace.moved(55.0 + 60.0 * there), {"categories": [[0, 1]]}),
        "Counts of two groups, one person moves": Program(
            counts, ((1, 0), (0, 1)), counts_law, {"categories": [[0, 1]]}),
        "Smooth sensitivity from distance 1": Program(
            _cauchy, (0.0, 1.0), lambda x: central.counts_with_cauchy_noise(3.0, first=1)[0].moved(x),
            {"bounds": (0, 3), "neighbours": "each", "step": 1}),
        "Propose-test-release, threshold ln(2/delta) / (2 epsilon)": Program(
            _tested, (0.0, 1e6), _tested_law, {"categories": [[0.0, 1e6]]}),
        "(0, delta) for every single output": Program(
            lambda x, n, rng: np.stack([np.full(n, x), rng.integers(100, size=n)], axis=1), (0, 1),
            lambda x: central.value_and_uniform(100)[x], {"categories": [[0, 1]]}),
        "Noisy maximum, published with its value": Program(
            lambda answers, n, rng: (np.asarray(answers) + rng.laplace(scale=2.0, size=(n, len(answers)))).max(axis=1),
            ([0.0] * 5, [1.0] * 5), _largest, {"bounds": (0, 5), "n_values": 3, "neighbours": "each", "step": 1}),
    }


# ---------------------------------------------------------------- machine numbers


def _digits(answer, n, rng):
    """Return an answer, in 0, ..., 60, with noise of six independent binary digits."""
    shares = [1 / (1 + math.exp(2.0**i)) for i in range(6)]

    def geometric():
        return sum((rng.random(n) < share).astype(int) << i for i, share in enumerate(shares))

    return np.clip(answer + geometric() - geometric(), 0, 60)


def _floats():
    digits = floats.digits_law(1, 6)

    @cache
    def clamped(answer):
        return floats.clamped(answer, digits, 60)

    return {
        "Laplace noise in floating point": Program(
            lambda x, n, rng: floats.textbook_laplace(x, n, rng), (0.0, 1.0), None, {"bounds": (0, 1)}),
        "Discrete Laplace noise from independent bits": Program(
            _digits, (0, 1), lambda x: clamped(math.floor(x)),
            {"bounds": (0, 60), "neighbours": "each", "step": 1}),
    }


# ---------------------------------------------------------------- reports of users, and a model


def _sampler(law):
    """Return a sampler of laws of finitely many outcomes, dicts or rows, for each data."""

    def sample(data, n, rng):
        own = law(data)
        outcomes, weights = (list(own), list(own.values())) if isinstance(own, dict) else (range(len(own)), own)
        weights = np.array(weights, float)
        return np.array(outcomes)[rng.choice(len(weights), size=n, p=weights / weights.sum())]

    return sample


def _of_rows(rows, pair):
    return Program(_sampler(rows.__getitem__), pair, [list(row) for row in rows], {})


def _local():
    nominal = math.log(2 * math.expm1(1.0) + 1)
    faked, sizes = local.sampled_and_faked(nominal, (2, 5)), (2, 5)
    inputs = list(product(*map(range, sizes)))

    def faked_law(row):
        return dict(zip(inputs, faked[inputs.index(tuple(row))]))

    named = dict(zip(product(range(2), range(2)), local.sampled(nominal, (2, 2))))
    bits = local.two_bits(0.5, 2.0)
    return {
        "Duchi's mechanism for two numbers, first version": _of_rows(local.half_spaces(0.5, 2), (0, 1)),
        "Continuous SDPM, a low value among high ones": _of_rows(local.low_and_high(), (0, 1)),
        "One column drawn, the others faked (RS+FD)": _of_rows(local.sampled_and_faked(nominal, (2, 2)), (0, 3)),
        "One column drawn and named, a larger epsilon for it": Program(
            _sampler(named.__getitem__), ((0, 0), (1, 1)), named.__getitem__, {"categories": [range(2), range(2)]}),
        "RS+FD for columns of 2 and of 5 values": Program(
            _sampler(faked_law), ((0, 0), (0, 1)), faked_law,
            {"categories": [range(2), range(5)], "neighbours": "one"}),
        "An epsilon for each value, each bit by its own": Program(
            _sampler(bits.__getitem__), (0, 1), bits.__getitem__, {"categories": [[0, 1]]}),
    }


def _haar(row, n, rng):
    """Return noisy orthonormal coefficients of a row."""
    exact = streams.haar_rows() @ np.asarray(row, float)
    return exact + rng.laplace(size=(n, len(exact)))


def _haar_law(row):
    """Return the law of which noisy coefficients are at most 0."""
    below = laplace_below(-streams.haar_rows() @ np.asarray(row, float), 1.0).tolist()
    signs = product((True, False), repeat=len(below))
    return {low: math.prod(p if one else 1 - p for p, one in zip(below, low)) for low in signs}


def _changed(count, n, rng):
    """Return the noisy count where it is not the published one, 0, and else nothing (NaN)."""
    return count + rng.laplace(size=n) if count else np.full(n, math.nan)


def _first_row(counts, n, rng):
    """Return (the first step whose noisy count is above 1, this count), n times; -1 and 0: there is none."""
    noisy = np.asarray(counts, float) + rng.laplace(size=(n, len(counts)))
    first = (noisy > 1).argmax(axis=1)
    value, found = noisy[np.arange(n), first], (noisy > 1).any(axis=1)
    return np.stack([np.where(found, first, -1), np.where(found, value, 0.0)], axis=1)


def _streams():
    n = 2**streams.LEVELS
    return {
        "Orthonormal Haar coefficients, noise for a change of 1": Program(
            _haar, ([0.0] * n, [1.0] + [0.0] * (n - 1)), _haar_law,
            {"bounds": (0, 4), "n_values": n, "neighbours": "total", "step": 1}),
        "A row is published only where the exact one has changed": Program(
            _changed, (0, 1), lambda count: {"published" if count else "nothing": 1}, {"categories": [[0, 1]]}),
        "Steps of a stream without a publication, not counted": Program(
            _first_row, ([0.0] * streams.STEPS, [1.0] * streams.STEPS),
            lambda counts: streams.first_publication(counts, 1.0),
            {"bounds": (0, 4), "n_values": streams.STEPS, "neighbours": "each", "step": 1}),
    }


def _coefficients(data, n, rng, rate=0.25, strength=0.011):
    """Return the coefficients of n regressions with perturbed objectives: where the gradient is 0, by bisection."""
    b = rng.laplace(scale=1 / rate, size=n)
    low, high = np.full(n, -1e5), np.full(n, 1e5)
    for _ in range(60):
        w = (low + high) / 2
        gradient = strength * w + b - sum(times * x / (1 + np.exp(np.minimum(x * w, 700.0))) for x, times in data)
        low, high = np.where(gradient < 0, w, low), np.where(gradient < 0, high, w)
    return low


def _learning():
    rest = learning.FIRST[1]
    return {
        "Objective perturbation of 2008": Program(
            _coefficients, (learning.FIRST, learning.SECOND),
            lambda x: learning.coefficient(((x, 1), rest), 0.25, 0.011), {"bounds": (-1, 1)}),
    }
