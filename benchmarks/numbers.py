"""Numbers: the piecewise mechanisms and expectation maximisation."""

import math

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, interleave, limit, share
from benchmarks.one_record import latency_rows
from dpestim.base import all_estimators
from dpestim.local import PMTransformer
from dpestim.local.channel import Dense
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.rng import WordSource

EPSILON = 1.0
#: What SDPM takes as low where nothing is declared: the middle half.
LOW = (-0.5, 0.5)


def transformers():
    """Return (short name, class) of the registry's transformers of numbers."""
    return [(c.__name__.removesuffix("Transformer"), c) for _, c in all_estimators()
            if issubclass(c, NumericTransformer) and hasattr(c(), "bounds") and c._checked_as != "places"]


def rows(settings):
    """Yield the rows."""
    X = np.random.default_rng(0).uniform(-1, 1, (settings.n_large, 1))
    for name, cls in transformers():
        yield _privatize(settings, name, cls(EPSILON, bounds=(-1.0, 1.0)), X)
        if not settings.short:
            client, server = (cls(EPSILON, bounds=(-1.0, 1.0)) for _ in range(2))
            yield from latency_rows(settings, f"{name} privatize one record", client, server.fit(X[:100]), X[:1])
    yield from _maximise(settings)


# ---------------------------------------------------------------- privatize


def pm_numpy(x, out, rng):
    """Draw reports of the continuous mechanism, two floats a value, a block at a time."""
    s = math.exp(EPSILON / 2)
    C = (s + 1) / (s - 1)
    for at in range(0, len(x), 1 << 14):
        block = x[at : at + (1 << 14)]
        coin, place = rng.random((2, len(block)), np.float32)
        left = (C + 1) / 2 * block - (C - 1) / 2
        inside = left + (C - 1) * place
        place *= C + 1
        place -= C
        outside = np.where(place < left, place, place + (C - 1))
        out[at : at + (1 << 14)] = np.where(coin < s / (s + 1), inside, outside)
    return out


def sdpm_numpy(x, out, rng):
    """Draw the same, where low values report themselves or a uniform high output (the continuous form)."""
    s, width = math.exp(EPSILON / 2), LOW[1] - LOW[0]
    C = (s + 1) / (s - 1)
    own = 1 - (2 * C - width) * (s * s - s) / (2 * s + 2) / (s * s)
    for at in range(0, len(x), 1 << 14):
        block = x[at : at + (1 << 14)]
        coin, place = rng.random((2, len(block)), np.float32)
        left = (C + 1) / 2 * block - (C - 1) / 2
        inside = left + (C - 1) * place
        other = place * (C + 1) - C
        outside = np.where(other < left, other, other + (C - 1))
        high = np.where(coin < s / (s + 1), inside, outside)
        place *= 2 * C - width
        place -= C
        low = np.where(coin < own, block, np.where(place < LOW[0], place, place + width))
        out[at : at + (1 << 14)] = np.where((block >= LOW[0]) & (block <= LOW[1]), low, high)
    return out


def sw_numpy(x, out, rng):
    """Draw the continuous square wave, and undo its pull to the middle, so that plain means are right."""
    e = math.exp(EPSILON)
    b = (EPSILON * e - e + 1) / (2 * e * (e - 1 - EPSILON))
    inside = 2 * b * e / (2 * b * e + 1)
    gain = inside * (1 - 1 / e)
    for at in range(0, len(x), 1 << 14):
        block = (x[at : at + (1 << 14)] + 1) / 2
        coin, place = rng.random((2, len(block)), np.float32)
        near = block - b + 2 * b * place
        far = np.where(place < block, place - b, place + b)
        y = np.where(coin < inside, near, far)
        out[at : at + (1 << 14)] = 2 * ((y - 0.5) / gain + 0.5) - 1
    return out


def hm_numpy(x, out, rng):
    """Draw the continuous hybrid mechanism: one float decides which mechanism, and where in it; two a value."""
    s, e = math.exp(EPSILON / 2), math.exp(EPSILON)
    C, far, coin_of_pm = (s + 1) / (s - 1), (e + 1) / (e - 1), 1 - 1 / s
    for at in range(0, len(x), 1 << 14):
        block = x[at : at + (1 << 14)]
        coin, place = rng.random((2, len(block)), np.float32)
        left = (C + 1) / 2 * block - (C - 1) / 2
        inside = left + (C - 1) * place
        place *= C + 1
        place -= C
        outside = np.where(place < left, place, place + (C - 1))
        piecewise = np.where(coin < coin_of_pm * s / (s + 1), inside, outside)
        sign = np.where(coin < coin_of_pm + (1 - coin_of_pm) / 2 * (1 + block / far), far, -far)
        out[at : at + (1 << 14)] = np.where(coin < coin_of_pm, piecewise, sign)
    return out


def duchi_numpy(x, out, rng):
    """Draw one of two far positions, one float a value."""
    far = (math.exp(EPSILON) + 1) / (math.exp(EPSILON) - 1)
    for at in range(0, len(x), 1 << 14):
        block = x[at : at + (1 << 14)]
        coin = rng.random(len(block), np.float32)
        out[at : at + (1 << 14)] = np.where(coin < (1 + block / far) / 2, far, -far)
    return out


def laplace_numpy(x, out, rng):
    """Draw Laplace noise by inversion, one float a value; what passes a bound becomes the mean of what does."""
    scale = 2 / EPSILON
    for at in range(0, len(x), 1 << 14):
        block = x[at : at + (1 << 14)]
        u = rng.random(len(block), np.float32)
        u -= np.float32(0.5)
        noise = np.log1p(-2 * np.abs(u) * np.float32(1 - 1e-7))
        y = block - scale * np.copysign(noise, u)
        y[y < -1] = -1 - scale
        y[y > 1] = 1 + scale
        out[at : at + (1 << 14)] = y
    return out


#: short name -> baseline; a newcomer is timed without one
PEERS = {"PM": pm_numpy, "SDPM": sdpm_numpy, "SW": sw_numpy, "HM": hm_numpy, "Duchi": duchi_numpy,
         "Laplace": laplace_numpy}


def _privatize(settings, name, transformer, X):
    contestants = {"ours": lambda: transformer.privatize(X), "limit": limit("keystream")}
    if name in PEERS:
        contestants["numpy"] = lambda: PEERS[name](X[:, 0], np.empty(len(X)), np.random.default_rng())
    times, results, repeats = interleave(contestants)
    amount = 12 * len(X)  # a word for the answer, and half of one for the rounding
    text = f"{name} privatize, {len(X):,} values"
    common = dict(
        ours=times["ours"],
        limit="keystream",
        share=share("keystream", times["limit"], amount, times["ours"]),
        repeats=repeats,
        note="ours: secure words, checked input, exact integers",
    )
    if name not in PEERS:
        return Row(text, **common)
    # the baseline draws the same law: equal means of what reports stand for, within six standard errors
    values = transformer.decode(results["ours"])[:, 0]
    apart = abs(values.mean() - results["numpy"].mean())
    if not apart < 6 * math.sqrt((values.var() + results["numpy"].var()) / len(X)):
        raise RuntimeError(f"{name}: the baseline has another mean")
    return Row(
        text,
        peer="NumPy, PCG64, float32 draws, blocks",
        baseline=times["numpy"],
        ratio=times["numpy"] / times["ours"],
        **common,
    ).judge(settings, 3)


# ---------------------------------------------------------------- expectation maximisation


class PrefixSums:
    """The same channel in NumPy, by first-order prefix sums: bins are whole numbers of codes, so rows are shifts."""

    def __init__(self, randomizer, n_bins):
        w = randomizer.weights
        self.n_bins, self.size = n_bins, randomizer.grid // n_bins
        self.whole, rest = divmod(w.window, self.size)
        b = self.size
        self.n_outputs = -(-w.n_outputs // b)
        counts = np.diff(np.minimum(np.arange(self.n_outputs + 1) * b, w.n_outputs))
        total = 2.0**64
        self.base, gain = w.outside / total * counts, (w.inside - w.outside) / total
        # the window's share of an output grows over one bin's distance and falls over two
        self.full, self.first = gain * b, gain * b / 2
        self.last0 = gain * (b - rest) ** 2 / (2 * b)
        self.last1 = gain * ((b * b - (b - rest) ** 2) / (2 * b) + b - rest)
        self.pad = self.whole + 2

    def iterate(self, f, counts, n_steps):
        d, k, pad = self.n_bins, self.whole, self.pad
        fp, S = np.zeros(self.n_outputs + 2 * pad), np.zeros(self.n_outputs + 2 * pad + 1)
        rp, R = np.zeros(self.n_outputs + 2 * pad), np.zeros(self.n_outputs + 2 * pad + 1)
        n, m = counts.sum(), self.n_outputs
        for _ in range(n_steps):
            fp[pad : pad + d] = f
            np.cumsum(fp, out=S[1:])
            p = self.full * (S[pad : pad + m] - S[pad - k - 1 : pad - k - 1 + m])
            p += self.first * fp[pad : pad + m]
            p -= self.last0 * fp[pad - k : pad - k + m]
            p -= self.last1 * fp[pad - k - 1 : pad - k - 1 + m]
            p += self.base
            r = counts / p
            rp[pad : pad + m] = r
            np.cumsum(rp, out=R[1:])
            g = self.full * (R[pad + k + 2 : pad + k + 2 + d] - R[pad + 1 : pad + 1 + d])
            g += self.first * rp[pad : pad + d]
            g -= self.last0 * rp[pad + k : pad + k + d]
            g -= self.last1 * rp[pad + k + 1 : pad + k + 1 + d]
            g += r @ self.base
            f = f * g / n
        return f


def _maximise(settings):
    d, n_steps = (64, 100) if settings.quick else (1024, 1000)
    randomizer = PMTransformer(EPSILON, bounds=(-1.0, 1.0)).randomizer()
    X = np.random.default_rng(0).normal(0.1, 0.3, 100_000)
    fixed = np.empty(len(X), np.int64)
    randomizer.encode(X, -1.0, 1.0, fixed)
    reports = np.empty((len(X), 1), np.uint16)
    randomizer.privatize(fixed, WordSource(0).reader().words(0, 0, 0, len(X)), reports)
    _, output, channel = randomizer.channel(d)
    counts = np.bincount(output[reports[:, 0]], minlength=channel.n_outputs).astype(float)
    start = np.full(d, 1 / d)
    prefix, dense = PrefixSums(randomizer, d), Dense(channel.matrix())

    def ours():
        f = start.copy()
        channel.steps(f, counts, n_steps, False)
        return f

    def by_matrix():
        f = start.copy()
        with threadpool_limits(1):
            dense.steps(f, counts, n_steps, False)
        return f

    times, results, repeats = interleave(
        {"ours": ours, "prefix": lambda: prefix.iterate(start.copy(), counts, n_steps), "dense": by_matrix}
    )
    for name in ("prefix", "dense"):
        if not np.allclose(results[name], results["ours"], rtol=1e-6, atol=1e-12):
            raise RuntimeError(f"{name}: another distribution")
    peers = (("dense", "NumPy, dense product (BLAS, one thread)", 40), ("prefix", "NumPy, prefix sums", 4))
    for name, peer, target in peers:
        yield Row(
            f"EM of PM, {n_steps:,} iterations, {d:,} bins x {channel.n_outputs:,} outputs",
            ours=times["ours"],
            peer=peer,
            baseline=times[name],
            ratio=times[name] / times["ours"],
            repeats=repeats,
            note="the same distribution in every run",
        ).judge(settings, target)
