"""A distribution chosen by the reports: a smooth one of penalised likelihood, and the likeliest one, as they predict.

Pure functions of counts, so all of it is post-processing and costs no privacy; see `distribution.md`.
"""

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from dpestim.local.channel import least_variance
from dpestim.postprocessing.em import log_likelihood, maximise

#: Bins of a fit.
BINS = 256
#: Curves that the logarithm of a smooth density is a sum of: the smoothest ones.
CURVES = 48
#: What halves are drawn with, so that the same counts give the same estimate.
SEED = 0
#: Newton steps, and bounds of the roughness's weight.
MOST_STEPS, LEAST_WEIGHT, MOST_WEIGHT = 20, 1e-12, 10.0


class Fit(NamedTuple):
    """What a fit has found: shares of the bins, EM iterations of the likeliest part, whether these converged."""

    shares: np.ndarray
    n_iter: int
    converged: bool


class Model:
    """A law between bins and counts, with what fits read again and again; `model_of` keeps some."""

    def __init__(self, law, n_bins):
        self.edges, self.output, self.channel = law.channel(n_bins)
        self.widths = np.diff(self.edges)
        self.middles = (self.edges[1:] + self.edges[:-1]) / 2

    def seen(self, counts):
        """Return the counts of the outputs of the channel from those of codes."""
        return np.bincount(self.output, weights=counts, minlength=self.channel.n_outputs)

    @property
    def even(self):
        """Shares of bins over which values are spread evenly."""
        return self.widths / self.widths.sum()

    @cached_property
    def rows(self):
        """The law of the outputs, a row for each bin."""
        return self.channel.rows()

    @cached_property
    def curves(self):
        """(Curves at the middles of the bins, roughness of each): a line, then ever rougher ones."""
        n = len(self.widths)
        second = np.diff(np.eye(n), 2, axis=0)
        roughness, curves = np.linalg.eigh(second.T @ second)
        size = min(CURVES, n)
        roughness, curves = roughness[:size] * n**4, curves[:, :size] * np.sqrt(n)
        roughness[:2] = 0
        lattice = (np.arange(n) + 0.5) / n
        return np.stack([np.interp(self.middles, lattice, c) for c in curves.T], axis=1), roughness

    @cached_property
    def mean_numbers(self):
        """(A number for each output whose mean is the middle of the input's bin, the largest deviation)."""
        return least_variance(self.rows, self.middles)


@lru_cache(maxsize=16)
def model_of(law, n_bins):
    """Return the model of a law."""
    return Model(law, n_bins)


def chosen(law, counts, max_iter, tol, n_bins=BINS):
    """Return the `Fit` for counts of codes: a mixture of the smooth and the likeliest distribution.

    The log-odds of the two are by how much better the likeliest one predicts either half of the reports from the other.
    """
    model, limits = model_of(law, n_bins), {"smooth": False, "max_iter": max_iter, "tol": tol, "leaps": True}
    seen, better = model.seen(counts), 0.0
    half = np.random.default_rng(SEED).binomial(seen.astype(np.int64), 0.5).astype(np.float64)
    for told, asked in ((half, seen - half), (seen - half, half)):
        if told.any():  # (without any reports both fits are even)
            likeliest, smoothest = maximise(model.channel, told, model.even, **limits)[0], smooth(model, told)
            better += log_likelihood(model.channel, likeliest, asked)
            better -= log_likelihood(model.channel, smoothest, asked)
    likeliest, _, n_iter, converged = maximise(model.channel, seen, model.even, **limits)
    weight = expit(better)
    return Fit(weight * likeliest + (1 - weight) * smooth(model, seen), n_iter, converged)


def smooth(model, seen):
    """Return shares of the bins: exp(sum of curves), the curves weighed by roughness as the reports demand.

    Newton's method for the penalised likelihood of Poisson counts (whose total is then that of the reports), and
    between its steps the update of Fellner and Schall for the weight of the roughness.
    """
    curves, roughness = model.curves
    rows, widths, n = model.rows, model.widths, seen.sum()
    size, free = len(roughness), int((roughness == 0).sum())
    if size <= free or n == 0:
        return model.even

    def at(where):
        shares = widths * np.exp(np.clip(curves @ where, -60, 60))
        expected = shares @ rows
        return shares, expected, seen @ np.log(np.maximum(expected, 1e-300)) - expected.sum()

    where = np.zeros(size)
    where[:2] = np.linalg.lstsq(curves[:, :2], np.full(len(widths), np.log(n)), rcond=None)[0]
    weight = 1e-3
    shares, expected, likelihood = at(where)
    for step in range(MOST_STEPS):
        ratio = np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 1e-300)
        slope = curves.T @ (shares * (rows @ (ratio - 1))) - weight * roughness * where
        change = (curves * shares[:, None]).T @ rows
        bend = (change / np.maximum(expected, 1e-300)) @ change.T
        bend[np.diag_indices(size)] += weight * roughness + 1e-9 * n
        factor = cho_factor(bend, check_finite=False)
        move = cho_solve(factor, slope, check_finite=False)
        gain, length = slope @ move, min(1.0, 3.0 / max((curves @ move).max(), 1e-9))
        before = likelihood - weight / 2 * roughness @ np.square(where)
        while True:
            there = where + length * move
            shares, expected, likelihood = at(there)
            if likelihood - weight / 2 * roughness @ np.square(there) >= before - 1e-6 or length < 1e-3:
                break
            length /= 2
        where = there
        new = weight
        if step:
            spent = weight * np.diag(cho_solve(factor, np.eye(size), check_finite=False)) @ roughness
            new = (size - free - spent) / max(roughness @ np.square(where), 1e-300)
            new = min(max(new, weight / 30, LEAST_WEIGHT), weight * 30, MOST_WEIGHT)
            if gain < 0.1 and abs(np.log(new / weight)) < 0.2:
                break
        weight = new
    return shares / shares.sum()


def rebinned(shares, edges, onto):
    """Return the shares of other bins, values spread evenly within the old ones."""
    reached = np.concatenate([[0.0], np.cumsum(shares)])
    return np.diff(np.interp(onto, edges, reached / reached[-1]))


def likelihood_of(model, shares, counts):
    """Return the log-likelihood of counts of codes."""
    return log_likelihood(model.channel, shares, model.seen(counts))
