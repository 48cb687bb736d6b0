"""Cyclic rounds of noisy histograms: sums of residuals in bins leave with noise, and everything else is arithmetic.

    Cost       what all histograms together may change by when a row does, from public numbers, in integers
    Histograms rows of one owner, as codes of bins: noisy counts once, and noisy sums of residuals, so often as was paid
    boost      rounds over terms; it sees noisy histograms alone, besides telling the owner which scores rows now have

A round of a term does not step along its noisy gradient. All noisy sums of a term, of whichever round, are measurements
of one curve: they are averaged, and the curve is estimated anew under smooth priors, by how likely the measurements of
all terms make each scale. With Gaussian noise rounds hence cost next to nothing: twice as many have twice the variance
each, and average it out. Laplace noise grows with their number, so one is best where there is no delta.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpestim import parallel
from dpestim._core import boosting as kernel
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw

#: Residuals are multiples of 2^-16 of the largest one; sums over 2^36 rows are exact in floats.
_BITS = 16
#: Rows that a thread takes at a time, at least; codes of bins there may be.
_BLOCK, _CODES = 1 << 14, 256
#: Counts take this part of what is spent: of the squares, where noise is Gaussian; where it is not (True), of epsilon.
_COUNTS = {False: Fraction(1, 10), True: Fraction(1, 3)}
#: Prior variances of a term's curve between its ends, which the measurements of all terms weigh; scores are of order 1.
_PRIORS = (1e-6, 0.0003, 0.003, 0.03, 0.3, 3.0)
#: The part of a constant in that, of rank one: with none the mean of what other terms have yet to learn is misread
#: as shape, with .2 noise is (measured on Adult, of 0, .03, .2 and 1).
_CONSTANT = 0.03
#: How many terms of which nothing was seen stand for what is common, besides those that are there.
_PSEUDO = 2.0
#: Bins, by the two thirds' power of what noise leaves to see of a column; what its ends count beside its rows.
_BINS, _PLACE = 0.75, 0.2
#: Bins that are counted for one that is kept; standard errors of a count by which rows may be more.
_FINE, _DOUBT = 8, 0.5
#: How often a step is taken anew, by how steep the loss is along the last one: the first step of a term, and others.
_SECANTS = {True: 6, False: 2}
#: Draws of noise for standard errors.
_DRAWS = 64
#: The largest score of a term, of classes and (True) of numbers in [-1, 1].
_MOST = {False: 10.0, True: 2.0}


@dataclass(frozen=True)
class Cost:
    """What is released of a row, in integers: so many terms, so many rounds, outputs, and the weight of a count."""

    n_terms: int
    n_rounds: int
    n_outputs: int
    replaces: bool
    pure: bool

    @property
    def most(self):
        """The largest norm of the residuals of a row, rounded to the grid: each entry is at most 2^bits."""
        if self.n_outputs == 1:
            return 1 << _BITS
        # a softmax's residuals have norm sqrt 2 at most, and L1 norm 2; each is rounded by half a step
        exact = 2 if self.pure else Fraction(math.isqrt(2 << 80) + 1, 1 << 40)
        return math.ceil(exact * (1 << _BITS)) + self.n_outputs

    @property
    def weight(self):
        """The integer a row adds to its bin of a histogram of counts."""
        times = 2 if self.replaces else 1
        if self.pure:
            return max(1, math.ceil(_COUNTS[True] * self.n_rounds * self.most))
        square = _COUNTS[False] * self.n_rounds * (times * self.most) ** 2 / times
        return math.isqrt(math.ceil(square)) + 1

    @property
    def sensitivity(self):
        """How far all histograms, of counts and of residuals, move together: L1 where noise is pure, else L2.

        A replaced row leaves one bin and enters another (counts) or adds to the same one what differs by twice the
        largest residual.
        """
        times = 2 if self.replaces else 1
        if self.pure:
            return Fraction(self.n_terms * times * (self.n_rounds * self.most + self.weight))
        square = self.n_terms * (self.n_rounds * (times * self.most) ** 2 + times * self.weight**2)
        return Fraction(math.isqrt(square << 80) + 1, 1 << 40)

    @property
    def unit(self):
        """What an integer of the sums stands for, per unit of residual."""
        return 2.0**-_BITS

    def law(self, epsilon, delta):
        """Return the noise of every integer, adaptively chosen as they are."""
        if self.pure:
            return DiscreteLaplaceLaw(epsilon, Fraction(0), self.sensitivity, 0)
        return RoundedGaussianLaw(epsilon, delta, self.sensitivity, 0)


class Histograms:
    """Rows that answer with noisy histograms; whoever holds the rows is trusted.

    Parameters
    ----------
    codes : list of ndarray of shape (n_rows,)
        The bin of each row, for each term.
    sizes : list of int
        Bins of each term.
    targets : ndarray of shape (n_rows,)
    kind : int
        0 for numbers, 1 for two classes, else the number of classes.
    cost : Cost
    law : NoiseLaw
    answers : dpestim.statistics.noise.Answers
        Of these rows alone.
    n_jobs : int, default=None
        Threads; what is answered does not depend on it.
    """

    def __init__(self, codes, sizes, targets, kind, cost, law, answers, n_jobs=None):
        self._codes, self._sizes, self._kind = [np.ascontiguousarray(own, np.uint8) for own in codes], list(sizes), kind
        self._targets = np.ascontiguousarray(targets, float)
        self._cost, self._law, self._answers, self._n_jobs = cost, law, answers, n_jobs
        self._scores = np.zeros((len(targets), max(kind, 1)))
        self._pending = None  # (codes, what they add to scores): rows move when they are next asked

    def _noisy(self, integers):
        return self._answers.add(self._law, integers)

    def counts(self, term):
        """Return how many rows each bin of a term has, with noise; once for each term."""
        whole = np.bincount(self._codes[term], minlength=self._sizes[term]).astype(np.int64)
        return self._noisy(whole * self._cost.weight) / self._cost.weight

    def size(self, term):
        """Return how many bins a term has: a public number."""
        return self._sizes[term]

    def sums(self, term):
        """Return the sums of residuals in each bin of a term, of shape (n_bins, n_outputs), with noise."""
        return self._noisy(self._pass(term)) * self._cost.unit

    def _pass(self, term):
        """Return the sums of residuals, in integers, after scores have moved: one pass over rows."""
        codes, n_outputs = self._codes[term], self._scores.shape[1]
        before, change = self._pending or (codes, np.zeros((_CODES, n_outputs)))

        def task(first, last):
            sums = np.zeros((_CODES, n_outputs), np.int64)
            ends = min(first * _BLOCK, len(codes)), min(last * _BLOCK, len(codes))
            kernel.sum_residuals(before, change, codes, self._targets, self._kind, *ends, self._scores, sums)
            return sums

        sums = parallel.run(task, -(-len(codes) // _BLOCK), self._n_jobs)
        self._pending = None
        return np.sum(sums, axis=0)[: self._sizes[term]]

    def merge(self, term, group):
        """Take bins of a term together: a public function of what was released."""
        self._codes[term] = group.astype(np.uint8)[self._codes[term]]
        self._sizes[term] = int(group.max()) + 1

    def add(self, term, change):
        """Add public numbers, one for each bin and output of a term, to the scores of rows."""
        if self._pending:
            self._pass(term)
        table = np.zeros((_CODES, self._scores.shape[1]))
        table[: len(change)] = change
        self._pending = self._codes[term], table


class Curve:
    """What is known of the scores of a term: the average of all its measurements, and how likely each prior is.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Rows of each bin, as far as is known; `uncertain` are their standard errors, and steps are as if there were
        `doubt` of these more.
    steps : ndarray of shape (n_bins, n_bins)
        Covariances of scores, up to a factor.
    curvature : float
        Of the loss of a row, along its score.
    noise : float
        The variance of a sum of residuals.
    start : ndarray of shape (n_outputs,)
        Scores at first; `most` is their largest size.
    trust : float
        What logarithms of likelihoods are multiplied by: less than 1 where squares of noise vary more than normal ones.
    """

    def __init__(self, counts, uncertain, doubt, steps, curvature, noise, start, most, trust):
        self.counts = counts
        self.scores = np.tile(start, (len(counts), 1))
        self.likelihoods = np.zeros(len(_PRIORS))  # logarithms, one for each prior
        # how fast the sum of residuals of a bin falls along its score: for as many rows as there may well be, as steps
        # that are too long run away, and those that are too short are made up for
        self._counted, self._most = (counts + doubt * uncertain)[:, None], most
        self._misread = (uncertain / np.maximum(counts, 1.0 + uncertain))[:, None]
        self._steepest = curvature * self._counted * np.ones(self.scores.shape[1])
        self._steps, self._noise, self._trust = steps, noise, trust
        self._mean, self._slope, self._total, self._squares = np.zeros_like(self.scores), 0.0, 0.0, 0.0

    def measure(self, sums, weight, alike, offset=None):
        """Take noisy sums of residuals at the present scores into account; return how far scores move.

        Parameters
        ----------
        sums : ndarray of shape (n_bins, n_outputs)
        weight : float
        alike : list of Curve
            The terms, this one among them, that tell which priors are common.
        offset : ndarray of shape (n_outputs,), default=None
            What makes scores logits of the probability of a class: then their curvature is that between the present
            score and the one that is estimated.
        """
        first, self._total, self._squares = not self._total, self._total + weight, self._squares + weight * weight
        self._start = weight if first else self._start
        part, self._noisy = weight / self._total, math.sqrt(self._noise * self._squares) / self._total
        (mean, slope), new = (self._mean, self._slope), self.scores
        slopes = self._steepest
        for turn in range(1 if offset is None else _SECANTS[first]):
            if offset is not None and (turn or not first):
                along = self._counted * secants(offset + self.scores, offset + new)
                slopes = np.sqrt(slopes * along) if turn else along  # (half way: steps do not swing to and fro)
            # (slopes of several rounds are averaged, as what they go with is)
            self._slope = slope + part * (slopes - slope)
            self._mean = mean + part * (sums + slopes * self.scores - mean)
            new = self._learned(alike)
        change, self.scores = new - self.scores, new
        return change

    def mean(self, scores):
        """Return the mean of scores of bins over rows, as far as is known, of shape (..., 1, n_outputs)."""
        mass = self.counts + 1e-9
        return (mass / mass.sum()) @ scores[..., None, :, :]

    def deviations(self):
        """Return standard errors of scores less their mean over rows, from noise alone: from draws of more of the same.

        Scales of priors are chosen anew each time, which a formula for fixed ones would miss; bins stay.
        """
        rng = np.random.default_rng(0)  # (of public numbers: nothing is protected by it)
        more = rng.standard_normal((_DRAWS, *self.scores.shape)) * self._noisy
        seen = self._turned((self._mean + more) / self._errors)
        drawn = self._estimate(seen, self._likelihoods(seen))
        spread = (drawn - self.mean(drawn)).std(axis=0)
        # (a step of so many rows too few is too long: later ones begin where that is mended)
        return np.hypot(spread, self._start / self._total * self._misread * self.scores)

    def _learned(self, alike):
        """Return scores, from all measurements."""
        # the noise of the average, and that of rows, of whose sums the slopes are the variance, too
        self._errors = np.sqrt(self._noisy**2 + self._slope)
        self._heads = self._slope / self._errors
        heads = self._heads.T
        shares, self._turns = np.linalg.eigh(heads[:, :, None] * self._steps * heads[:, None, :])
        self._spread = 1.0 + np.multiply.outer(_PRIORS, np.maximum(shares, 0.0))  # (n_priors, n_outputs, n_bins)
        seen = self._turned(self._mean / self._errors)
        self.likelihoods = self._likelihoods(seen)
        self._common = weights_of(np.stack([curve.likelihoods for curve in alike]))
        return self._estimate(seen, self.likelihoods)

    def _turned(self, values):
        """Return values of bins in terms of independent directions, of shape (..., n_outputs, n_bins)."""
        return (np.swapaxes(values, -1, -2)[..., None, :] @ self._turns)[..., 0, :]

    def _likelihoods(self, seen):
        """Return logarithms of how likely each prior makes what was seen, of shape (..., n_priors)."""
        flat = self._spread.reshape(len(_PRIORS), -1)
        misfit = np.square(seen).reshape(*seen.shape[:-2], -1) @ (1 / flat).T
        return -self._trust * (misfit + np.log(flat).sum(axis=1)) / 2

    def _estimate(self, seen, likelihoods):
        # the mean over priors, by how likely each is: the likeliest alone is too sure of itself
        chances = shares_of(likelihoods, self._common)
        gain = np.tensordot(chances, np.array(_PRIORS)[:, None, None] / self._spread, axes=1)
        found = (self._turns @ (gain * seen)[..., None])[..., 0]
        new = self._steps @ (self._heads * np.swapaxes(found, -1, -2))
        if new.shape[-1] > 1:  # (what all classes have in common changes no probability, and nothing holds it back)
            new = new - new.mean(axis=-1, keepdims=True)
        return np.clip(new, -self._most, self._most)


def offset_of(scores, kind, term):
    """Return what makes scores of a term logits, from those that all rows start with; None: targets are numbers."""
    if kind == 0:
        return None
    if kind == 1:
        return scores if term else np.zeros(1)
    shares = np.exp(scores - scores.max())
    shares = np.clip(shares / shares.sum(), 1e-9, 1 - 1e-9)
    return np.log(shares) - np.log1p(-shares) - (0 if term else scores)


def secants(before, after):
    """Return by how much the probabilities of scores rise from `before` to `after`, over how far these are apart."""
    low, high = (1 / (1 + np.exp(-np.clip(scores, -30, 30))) for scores in (before, after))
    far = after - before
    return np.where(np.abs(far) > 1e-4, (high - low) / np.where(far == 0, 1, far), low * (1 - low))


def shares_of(likelihoods, weights=1.0):
    """Return the chances of priors, the last axis, from logarithms of likelihoods and weights."""
    chances = weights * np.exp(likelihoods - likelihoods.max(axis=-1, keepdims=True))
    return chances / chances.sum(axis=-1, keepdims=True)


def weights_of(likelihoods):
    """Return how common each prior is among terms, by what all of them say: of many, most are often noise.

    Parameters
    ----------
    likelihoods : ndarray of shape (n_terms, n_priors)
        Logarithms.
    """
    known = 1 / (1 + len(likelihoods) * np.array(_PRIORS))  # (all terms together are not expected to be much above 1)
    weights = known / known.sum()
    known = _PSEUDO * weights
    likely = np.exp(likelihoods - likelihoods.max(axis=-1, keepdims=True))
    for _ in range(20):  # (steps of expectation and maximisation: `shares_of`, with the exponentials taken once)
        chances = weights * likely
        weights = known + (chances / chances.sum(axis=-1, keepdims=True)).sum(axis=0)
        weights /= weights.sum()
    return weights


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


def bins_for(signal, most):
    """Return into how many bins a column of numbers is to go where noise is what it is.

    A walk over B bins, of variance v, has components of variances v / (pi k)^2; noise has B / signal^2 in each. Those
    with k up to B / 2 are worth their noise where B^3 < (4 v / pi^2) signal^2.
    """
    return int(np.clip(round(_BINS * signal ** (2 / 3)), 2, most))


def merged(counts, n_bins):
    """Return the new code of each of many ordered bins, neighbours with few rows together, at most `n_bins`."""
    mass = _mass(counts)
    before = np.cumsum(mass) - mass / 2
    return np.unique((before * (n_bins / mass.sum())).astype(np.int64).clip(0, n_bins - 1), return_inverse=True)[1]


def _mass(counts):
    """Return how long bins are to a curve: mostly by rows, some by place, lest tails be one bin."""
    return np.maximum(counts, 0.0) + _PLACE * np.maximum(counts, 0.0).mean() + 1e-9


def pair_steps(sides):
    """Return the covariances of scores of pairs of bins; sides: (how many, whether they have an order)."""
    first, second = (1 - np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n if order else np.eye(n)
                     for n, order in sides)
    return np.kron(first, second)


def steps_of(counts, ordered):
    """Return the covariances of scores under the prior, up to a factor: an order makes neighbours alike."""
    if len(counts) == 1:
        return np.eye(1)
    if isinstance(ordered, tuple):
        # (what depends on one side alone is for the terms of single columns: both would drift apart)
        table = np.maximum(counts, 0.0).reshape([n for n, _ in ordered]) + 1e-9
        off = np.kron(*(_less_mean(table.sum(axis=1 - side)) for side in (0, 1)))
        return off @ pair_steps(ordered) @ off.T + _CONSTANT
    if not ordered:
        return _centred(np.eye(len(counts)), counts)
    mass = _mass(counts)
    place = (np.cumsum(mass) - mass / 2) / mass.sum()
    return _centred(1.0 - np.abs(place[:, None] - place), counts)


def _centred(steps, counts):
    """Return covariances of scores less their mean over rows, which is the intercept's, all but a little of it."""
    off = _less_mean(np.maximum(counts, 0.0) + 1e-9)
    return off @ steps @ off.T + _CONSTANT


def _less_mean(mass):
    """Return what takes the mean over rows from each bin."""
    return np.eye(len(mass)) - mass / mass.sum()


def start_of(sums, total, deviation, kind):
    """Return (scores that every row starts with, the curvature there) from the sum of residuals of all rows at 0."""
    # noise of one number cannot make a class all but certain; where it is all there is, shares are even
    spread = 1 / 3 if kind == 0 else 1 / 12
    part = 1 / (total + 2 * deviation) / (1 + (deviation / total) ** 2 / spread)
    shares, even = sums.ravel() * part, 1 / max(kind, 2)
    if kind == 0:
        return np.clip(shares, -1.0, 1.0), 1.0
    least = max(1e-4, min(0.5 * deviation * part, 0.5 * even))
    shares = np.clip(shares + even, least, 1 - least)
    # rows are not as sure as their mean, and some not at all: the curvature is half way to its largest, in logarithms
    curvature = 0.5 * math.sqrt((shares * (1 - shares)).mean())
    return (np.log(shares) - np.log1p(-shares) if kind == 1 else np.log(shares) - np.log(shares).mean()), curvature


def boost(rows, ordered, n_bins, n_rounds, kind, noise, counted, n_rows=None, *, pure=False):
    """Return (curves of terms, which of their bins each bin belongs to) after so many rounds.

    The first term has one bin: all rows start with what its first round says.

    Parameters
    ----------
    rows : Histograms
    ordered : list of bool or tuple
        Whether the bins of a term have an order; then there are at most `n_bins` once they were counted. Of a pair:
        two of (how many bins, whether they have an order).
    n_bins : int
    n_rounds : int
    kind : int
        As in `Histograms`.
    noise : float
        The variance of a sum of residuals.
    counted : float
        The variance of a count.
    n_rows : int, default=None
        Where it is public.
    pure : bool, default=False
        Whether noise is Laplace's: its squares vary by 5/2 of what those of normal noise do, less in an average.
    """
    everybody = float(rows.counts(0)[0])
    total = float(n_rows) if n_rows else max(everybody, math.sqrt(counted), 1.0)
    start, curvature = start_of(rows.sums(0), total, math.sqrt(noise), kind)
    # an average over rounds has 4/3 of the variance that a single one with all the budget would have
    wide = bins_for(curvature * total / math.sqrt(noise * 4 / 3 / n_rounds), n_bins)
    groups, curves, trust = [], [], 2 / (2 + 3 / n_rounds) if pure else 1.0
    for term, in_order in enumerate(ordered):
        size = rows.size(term)
        # (with fewer bins there is less noise in the counts of those that are kept; the rest is by noisy counts)
        group = np.arange(size) * min(size, _FINE * wide) // size if in_order is True else np.arange(size)
        rows.merge(term, group)
        known, left = settled(rows.counts(term), total, counted) if term else (np.array([total]), 0.0)
        joint = merged(known, wide) if in_order is True and len(known) > wide else np.arange(len(known))
        known, uncertain = np.bincount(joint, weights=known), np.sqrt(left * np.bincount(joint))
        doubt = _DOUBT / n_rounds  # (several rounds mend what a long step did)
        rows.merge(term, joint)
        groups.append(joint[group])
        first = np.zeros_like(start) if term else start
        curves.append(Curve(known, np.minimum(uncertain, (total - known) / doubt), doubt, steps_of(known, in_order),
                            curvature, noise, first, _MOST[kind == 0], trust))
    rows.add(0, curves[0].scores)
    for k in range(n_rounds):
        for term, curve in enumerate(curves):
            if term or k:
                alike, offset = curves[1:] if term else curves[:1], offset_of(curves[0].scores[0], kind, term)
                rows.add(term, curve.measure(rows.sums(term), k + 1.0, alike, offset))
    return curves, groups
