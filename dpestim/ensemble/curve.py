"""What is learned of a term from what was released of it: bins by noisy counts, and a curve from noisy sums.

All of it is arithmetic on public numbers: it costs no privacy, and no error in it can (`boosting.md`).
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit, logit, softmax

from dpestim._core import curves as kernel

#: Prior variances of a term's curve between its ends, which the measurements of all terms weigh; scores are of order 1
#: in units of the sampling deviation of a residual.
_PRIORS = (1e-6, 0.0003, 0.003, 0.03, 0.3, 3.0)
#: The part of a constant in that, of rank one: with none the mean of what other terms have yet to learn is misread
#: as shape, with .2 noise is (measured on Adult, of 0, .03, .2 and 1).
_CONSTANT = 0.03
#: How many terms of which nothing was seen stand for what is common, besides those that are there.
_PSEUDO = 2.0
#: Bins, by the two thirds' power of what noise leaves to see of a column, of classes and (True) of numbers; what its
#: ends count beside its rows.
_BINS, _PLACE = {False: 0.75, True: 0.4}, 0.2
#: How often a step is taken anew, by how steep the loss is along the last one: the first step of a term, and others.
_SECANTS = {True: 6, False: 2}
#: The least share of a class in a bin, of what is expected there, that a sum of residuals makes believe.
_LEAST = 0.25
#: The standard deviation of a place in a bin, of which nothing else is known, as a part of its width.
_WITHIN = math.sqrt(1 / 12)
#: By which part of itself a slope is off, for each unit that the noise of a score of a class is.
_STEEP = 0.25
#: Draws of noise for standard errors.
_DRAWS = 64


class Curve:
    """What is known of the scores of a term: the average of all its measurements, and how likely each prior is.

    Parameters
    ----------
    counts : ndarray of shape (n_places,)
        Rows of each place, as far as is known.
    bins : ndarray of int of shape (n_places,)
        The bin of each place: sums of residuals are known of bins, and the prior has scores of all places from those.
    uncertain : ndarray of shape (n_bins,)
        Standard errors of the rows of bins; steps are as if there were `doubt` of these more.
    steps : callable
        Returns covariances of scores, up to a factor, of shape (n_places, n_places).
    curvature : float
        Of the loss of a row, along its score.
    noise : float
        The variance of a sum of residuals.
    start : ndarray of shape (n_outputs,)
        Scores at first; `most` is their largest size.
    trust : float
        What logarithms of likelihoods are multiplied by: less than 1 where squares of noise vary more than normal ones.
    spread : float, default=1
        The sampling variance of a residual, in units of the curvature.
    in_order : bool, default=False
        Whether bins are those of a column of numbers, the last of which is for missing ones.
    """

    def __init__(self, counts, bins, uncertain, doubt, steps, curvature, noise, start, most, trust, spread=1.0,
                 in_order=False):
        self.counts = counts
        self.scores = np.tile(start, (len(counts), 1))
        self.likelihoods = np.zeros(len(_PRIORS))  # logarithms, one for each prior
        self._in_order, self._noise, self._most, self._trust, self._varies = in_order, noise, most, trust, spread
        self._given, self._total, self._squares = (bins, uncertain, doubt, steps, curvature), 0.0, 0.0

    def prepare(self):
        """Make what `measure` needs, unless it is there: it takes a while, and may be done beside a pass over rows."""
        if self._given is None:
            return
        (bins, uncertain, doubt, steps, curvature), counts = self._given, self.counts
        # how fast the sum of residuals of a bin falls along its score: for as many rows as there may well be, as steps
        # that are too long run away, and those that are too short are made up for
        held = np.bincount(bins, weights=counts)
        self._counted = held + doubt * uncertain
        self._misread = (uncertain / np.maximum(held, 1.0 + uncertain))[bins][:, None]
        self._steepest = curvature * self._counted[:, None] * np.ones(self.scores.shape[1])
        # means of bins over their rows, as far as is known
        mass = np.maximum(counts, 0.0) + 1e-9
        self._bins, self._parts = bins.astype(np.int64), mass / np.bincount(bins, weights=mass)[bins]
        means = np.zeros((len(held), len(counts)))
        means[bins, np.arange(len(counts))] = self._parts
        self._between = means @ steps()
        self._steps = self._between @ means.T
        self._priors = np.zeros(kernel.PRIORS)
        self._priors[: len(_PRIORS)] = self._varies * np.array(_PRIORS)
        self._level = means @ self.scores
        self._mean, self._slope = np.zeros_like(self._level), np.zeros_like(self._level)
        self._heads, self._errors = np.zeros((2, *self._level.T.shape))
        self._common, self._given = np.zeros(len(_PRIORS)), None

    def measure(self, sums, weight, times, alike, offset=None):
        """Take noisy sums of residuals at the present scores into account; return how far scores move.

        Parameters
        ----------
        sums : ndarray of shape (n_bins, n_outputs)
        weight : float
        times : int
            Of how many noisy answers the sums are the mean.
        alike : list of Curve
            The terms, this one among them, that tell which priors are common.
        offset : ndarray of shape (n_outputs,), default=None
            What makes scores logits of the probability of a class: then their curvature is that between the present
            score and the one that is estimated.
        """
        self.prepare()
        first, self._total = not self._total, self._total + weight
        self._squares += weight * weight / times
        self._start = weight if first else self._start
        part, self._noisy = weight / self._total, math.sqrt(self._noise * self._squares) / self._total
        if offset is not None:
            offset = self._others(sums, times, offset)
        likelihoods = np.array([curve.likelihoods for curve in alike])
        own = next(k for k, curve in enumerate(alike) if curve is self)
        before, self._level, old = self._level, np.empty_like(self._level), self.scores
        self.scores = np.empty_like(old)
        kernel.learn(self._between, self._steps, self._bins, self._parts, self._counted, self._priors,
                     _usual(len(alike)), _PSEUDO, sums, offset, before, self._steepest.copy(), self._mean, self._slope,
                     likelihoods, own, 1 if offset is None else _SECANTS[first], first, part, self._noisy,
                     self._varies, self._trust, self._most, self._heads, self._errors, self._common, self.scores,
                     self._level)
        self.likelihoods = likelihoods[own]
        return self.scores - old

    def _others(self, sums, times, offset):
        """Return what makes scores of bins logits of what rows are now given, by what residuals tell of that.

        Where a class is rare, a large sum below 0 says that other terms have already raised the rows of a bin, which
        are steeper then than this term alone would have them: columns that are nearly copies would overshoot in turn.
        """
        shares = expit(offset + self._level)
        heard = np.maximum(1 - self._noise / times / np.maximum(np.square(sums), 1e-300), 0.0)
        seen = heard * sums / self._counted[:, None]
        # as if this term were right about the class itself, as far as there can be such a class
        least = _LEAST * np.minimum(shares, 1 - shares)
        most = 1 - least
        given = np.minimum(np.maximum(shares + seen, least), most) - seen
        given = np.minimum(np.maximum(given, least), most)
        return logit(given) - self._level

    def mean(self, scores):
        """Return the mean of scores of bins over rows, as far as is known, of shape (..., 1, n_outputs)."""
        mass = self.counts + 1e-9
        return (mass / mass.sum()) @ scores[..., None, :, :]

    def deviations(self, unsure=0.0):
        """Return standard errors of scores less their mean over rows, from noise alone: from draws of more of the same.

        Scales of priors are chosen anew each time, which a formula for fixed ones would miss; where bins end, and how
        steep the loss is, is added to the first order.

        Parameters
        ----------
        unsure : float or ndarray of shape (n_outputs,), default=0
            By which part of itself the curvature of a class is off, for noise in its share of all rows.
        """
        rng = np.random.default_rng(0)  # (of public numbers: nothing is protected by it)
        more = rng.standard_normal((_DRAWS, *self._level.shape)) * self._noisy
        drawn = self._estimates((self._mean + more).swapaxes(1, 2) / self._errors)
        spread = (drawn - self.mean(drawn)).std(axis=0)
        # (a step of so many rows too few is too long: later ones begin where that is mended)
        spread = np.hypot(spread, self._start / self._total * self._misread * self.scores)
        steep = np.minimum(unsure + (_STEEP * spread if np.any(unsure) else 0.0), 1.0) * self.scores
        return np.sqrt(spread**2 + steep**2 + self._moved() ** 2)

    def _moved(self):
        """Return how far scores at one place differ for where the ends of bins came to be, by noise."""
        moved = np.zeros_like(self.scores)
        if self._in_order and len(moved) > 2:  # (the last bin is for missing numbers)
            moved[:-1] = _WITHIN * np.gradient(self.scores[:-1], axis=0)
        return moved

    def _estimates(self, seen):
        """Return scores for each of many averages in units of their errors, of shape (n, n_outputs, n_bins)."""
        misfit, logs = np.zeros((len(seen), kernel.PRIORS)), np.zeros(kernel.PRIORS)
        found = np.empty((seen.shape[1], len(seen), seen.shape[2], kernel.PRIORS))
        for k, heads in enumerate(self._heads):
            kernel.solve(self._steps, heads, self._priors, np.ascontiguousarray(seen[:, k]), found[k], misfit, logs)
        chances = shares_of((-self._trust * (misfit + logs) / 2)[:, : len(_PRIORS)], self._common)
        found = (found[..., : len(_PRIORS)] @ chances[:, :, None])[..., 0] * self._heads[:, None, :]
        new = np.moveaxis(found @ self._between, 0, -1)
        if new.shape[-1] > 1:
            new = new - new.mean(axis=-1, keepdims=True)
        return np.clip(new, -self._most, self._most)


def offset_of(scores, kind, term):
    """Return what makes scores of a term logits, from those that all rows start with; None: targets are numbers."""
    if kind == 0:
        return None
    if kind == 1:
        return scores if term else np.zeros(1)
    return logit(np.clip(softmax(scores), 1e-9, 1 - 1e-9)) - (0 if term else scores)


def shares_of(likelihoods, weights=1.0):
    """Return the chances of priors, the last axis, from logarithms of likelihoods and weights."""
    chances = weights * np.exp(likelihoods - likelihoods.max(axis=-1, keepdims=True))
    return chances / chances.sum(axis=-1, keepdims=True)


@lru_cache(maxsize=8)
def _usual(n_terms):
    """Return how common each prior is among so many terms, before any was measured: of many, most are often noise."""
    known = 1 / (1 + n_terms * np.array(_PRIORS))  # (all terms together are not expected to be much above 1)
    return known / known.sum()


def settled(counts, total, variance):
    """Return (noisy counts as ones that are at least 0 and sum to `total`, the variance that is left in one).

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
    total : float
    variance : float
        Of the noise of a count.

    Notes
    -----
    They shrink to even ones by as much as noise explains (James and Stein), then lose the same amount each, those that
    have it (the nearest point of the simplex).
    """
    even = total / len(counts)
    spread = np.square(counts - even).mean()
    counts = even + max(1.0 - variance / max(spread, 1e-300), 0.0) * (counts - even)
    # (by how much true counts differ, and an error of that more)
    differ = max(spread - variance, 0.0) + variance * math.sqrt(2.0 / len(counts))
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.maximum(counts - excess.max(), 0.0), variance * differ / max(differ + variance, 1e-300)


def bins_for(signal, numbers=False):
    """Return into how many bins a column of numbers is to go where noise is what it is: at least 2.

    A walk over B bins, of variance v, has components of variances v / (pi k)^2; noise has B / signal^2 in each. Those
    with k up to B / 2 are worth their noise where B^3 < (4 v / pi^2) signal^2.
    """
    return max(2, round(_BINS[numbers] * signal ** (2 / 3)))


def merged(counts, n_bins, most):
    """Return the new code of each of many ordered bins, neighbours with few rows together: `n_bins`, or `most`.

    A bin with more rows than that takes one, and all others are as many as so many rows alone would have.
    """
    if len(counts) <= min(n_bins, most):
        return np.arange(len(counts))
    counts = np.maximum(counts, 0.0)
    heavy = counts * min(n_bins, most) > counts.sum()
    light = np.where(heavy, 0.0, counts)
    if heavy.any() and light.any():  # (by the rule of `bins_for`, whose signal is as large as there are rows)
        own = max(1, round(n_bins * (light.sum() / counts.sum()) ** (2 / 3)))
        n_bins, mass = min(n_bins, most, heavy.sum() + own), _mass(light)
        mass[heavy] = mass[~heavy].sum() / (n_bins - heavy.sum())
    else:
        n_bins, mass = min(n_bins, most), _mass(counts)
    before = np.cumsum(mass) - mass / 2
    return np.unique((before * (n_bins / mass.sum())).astype(np.int64).clip(0, n_bins - 1), return_inverse=True)[1]


def _mass(counts):
    """Return how long bins are to a curve: mostly by rows, some by place, lest tails be one bin."""
    counts = np.maximum(counts, 0.0)
    return counts + _PLACE * counts.mean() + 1e-9


def pair_steps(sides):
    """Return the covariances of scores of pairs of bins; sides: (how many, whether they have an order)."""
    first, second = (walk(np.arange(n - 1) / n) if order else np.eye(n) for n, order in sides)
    return np.kron(first, second)


def walk(place):
    """Return the covariances of a walk at these places, and of the bin for missing numbers, which is like no other."""
    steps = np.eye(len(place) + 1)
    steps[:-1, :-1] = 1.0 - np.abs(place[:, None] - place)
    return steps


def steps_of(counts, ordered):
    """Return the covariances of scores under the prior, up to a factor: an order makes neighbours alike.

    The last bin of a term in order is for missing numbers.
    """
    if len(counts) == 1:
        return np.eye(1)
    if isinstance(ordered, tuple):
        # (what depends on one side alone is for the terms of single columns: both would drift apart)
        table = np.maximum(counts, 0.0).reshape([n for n, _ in ordered]) + 1e-9
        off = np.kron(*(_less_mean(table.sum(axis=1 - side)) for side in (0, 1)))
        return off @ pair_steps(ordered) @ off.T + _CONSTANT
    if not ordered:
        return _centred(np.eye(len(counts)), counts)
    mass = _mass(counts[:-1])
    return _centred(walk((np.cumsum(mass) - mass / 2) / mass.sum()), counts)


def _centred(steps, counts):
    """Return covariances of scores less their mean over rows, which is the intercept's, all but a little of it."""
    mass = np.maximum(counts, 0.0) + 1e-9
    mean = steps @ (mass / mass.sum())
    return steps - mean - mean[:, None] + ((mass / mass.sum()) @ mean + _CONSTANT)


def _less_mean(mass):
    """Return what takes the mean over rows from each bin."""
    return np.eye(len(mass)) - mass / mass.sum()
