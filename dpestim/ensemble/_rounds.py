"""Cyclic rounds of noisy histograms: sums of residuals in bins leave with noise, and everything else is arithmetic.

    Cost       what all histograms together may change by when a row does, from public numbers, in integers
    Histograms rows of one owner, as codes of bins: noisy counts once, and noisy sums of residuals, so often as was paid
    boost      rounds over terms; it sees noisy histograms alone, besides telling the owner which scores rows now have

A round of a term does not step along its noisy gradient. All noisy sums of a term, of whichever round, are measurements
of one curve: they are averaged, and the curve is estimated anew under a smooth prior whose scale the measurements
themselves choose. Rounds hence cost next to nothing: twice as many have twice the variance each, and average it out.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import expit

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw

#: Residuals are multiples of 2^-16 of the largest one; sums over 2^36 rows are exact in floats.
_BITS = 16
#: Counts take this part of what is spent (of the squares, where noise is Gaussian).
_COUNTS = Fraction(1, 10)
#: Prior variances of a term's curve between its ends, of which the measurements choose; scores are of order 1.
_PRIORS = (1e-6, 0.0003, 0.003, 0.03, 0.3, 3.0, 30.0)
#: The part of a constant in that, of rank one: with none the mean of what other terms have yet to learn is misread
#: as shape, with .2 noise is (measured on Adult, of 0, .03, .2 and 1).
_CONSTANT = 0.03


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
            return max(1, math.ceil(_COUNTS * self.n_rounds * self.most))
        square = _COUNTS * self.n_rounds * (times * self.most) ** 2 / times
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


def residuals_of(scores, targets, n_outputs):
    """Return targets less what scores predict, each in [-1, 1], of shape (n_rows, n_outputs).

    Targets are codes of classes (n_outputs above 0; -1 does not count), or numbers in [-1, 1] (n_outputs 0).
    """
    if n_outputs == 0:
        return targets[:, None] - scores
    if n_outputs == 1:
        return np.where(targets < 0, 0.0, targets - expit(scores[:, 0]))[:, None]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= -shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(targets)), np.maximum(targets, 0)] += 1.0
    shares[targets < 0] = 0.0
    return shares


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
    source : dpestim.rng.WordSource
        Of these rows alone.
    """

    def __init__(self, codes, sizes, targets, kind, cost, law, source):
        self._codes, self._sizes, self._targets, self._kind = list(codes), list(sizes), targets, kind
        self._cost, self._law, self._source = cost, law, source
        self._scores, self._residuals = np.zeros((len(targets), max(kind, 1))), None
        self._n_answers = 0

    def __reduce__(self):
        """Refuse: a copy would answer again, with the same noise."""
        raise TypeError("Histograms cannot be pickled or copied: their noise would be used twice")

    def _noisy(self, integers):
        at, self._n_answers = self._n_answers, self._n_answers + 1
        drawn = self._law.draw(self._source.part(at), integers.size)
        return integers + drawn.reshape(integers.shape)

    def counts(self, term):
        """Return how many rows each bin of a term has, with noise; once for each term."""
        whole = np.bincount(self._codes[term], minlength=self._sizes[term]).astype(np.int64)
        return self._noisy(whole * self._cost.weight) / self._cost.weight

    def sums(self, term):
        """Return the sums of residuals in each bin of a term, of shape (n_bins, n_outputs), with noise."""
        # residuals are functions of a row and public scores; how floats round them is part of that function
        off = residuals_of(self._scores, self._targets, self._kind)
        whole = np.rint(np.clip(np.nan_to_num(off), -1.0, 1.0) * 2.0**_BITS)
        # integers below 2^53: exact in floats, in whatever order they are added
        sums = np.stack([np.bincount(self._codes[term], weights=column, minlength=self._sizes[term])
                         for column in whole.T], axis=1)
        return self._noisy(sums.astype(np.int64)) * 2.0**-_BITS

    def merge(self, term, group):
        """Take bins of a term together: a public function of what was released."""
        self._codes[term] = group[self._codes[term]]
        self._sizes[term] = int(group.max()) + 1

    def add(self, term, change):
        """Add public numbers, one for each bin and output of a term, to the scores of rows."""
        self._scores += change[self._codes[term]]


class Curve:
    """What is known of the scores of a term: the average of all its measurements, and the prior."""

    def __init__(self, counts, steps, curvature, n_outputs, noise):
        self.counts = np.maximum(counts, 0.0)
        self.scores = np.zeros((len(counts), n_outputs))
        self.deviations = np.zeros_like(self.scores)
        self._slopes = curvature * self.counts  # of the sum of residuals of a bin, along its score
        self._steps, self._noise, self._n_outputs = steps, noise, n_outputs
        self._mean, self._total, self._squares = np.zeros_like(self.scores), 0.0, 0.0

    def measure(self, sums, weight):
        """Take noisy sums of residuals at the present scores into account."""
        self._total += weight
        self._squares += weight * weight
        part = weight / self._total
        self._mean += part * (sums + self._slopes[:, None] * self.scores - self._mean)
        # the noise of the average, and that of rows, of whose sums the slopes are the variance, too
        errors = np.sqrt(self._noise * self._squares / self._total**2 + self._slopes)
        heads = self._slopes / errors
        shares, turns = np.linalg.eigh(heads[:, None] * self._steps * heads)
        shares, seen = np.maximum(shares, 0.0), turns.T @ (self._mean / errors[:, None])

        def misfit(prior):
            spread = 1.0 + prior * shares
            return (np.square(seen) / spread[:, None]).sum() + self._n_outputs * np.log(spread).sum()

        prior = min(_PRIORS, key=misfit)
        gain = (self._steps * heads) @ (turns * (prior / (1.0 + prior * shares)))
        new = gain @ seen
        noisy = self._noise * self._squares / self._total**2 / errors**2
        self.deviations = np.sqrt(np.square(gain @ turns.T) @ noisy)[:, None] + np.zeros_like(new)
        new = np.clip(new, -30.0, 30.0)
        change, self.scores = new - self.scores, new
        return change


def merged(counts, n_bins):
    """Return the new code of each of many ordered bins, neighbours with few rows together, at most `n_bins`."""
    mass = np.maximum(counts, 0.0) + 1e-9
    before = np.cumsum(mass) - mass / 2
    return np.unique((before * (n_bins / mass.sum())).astype(np.int64).clip(0, n_bins - 1), return_inverse=True)[1]


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
        return _centred(pair_steps(ordered), counts)
    if not ordered:
        return _centred(np.eye(len(counts)), counts)
    mass = np.maximum(counts, 0.0) + 0.1 * np.maximum(counts, 0.0).mean() + 1e-9  # mostly by mass, some by place
    place = (np.cumsum(mass) - mass / 2) / mass.sum()
    return _centred(1.0 - np.abs(place[:, None] - place), counts)


def _centred(steps, counts):
    """Return covariances of scores less their mean over rows, which is the intercept's, all but a little of it."""
    mass = np.maximum(counts, 0.0) + 1e-9
    off = np.eye(len(counts)) - mass / mass.sum()
    return off @ steps @ off.T + _CONSTANT


def start_of(sums, count, deviation, kind):
    """Return (scores that every row starts with, the curvature there) from the sum of residuals of all rows at 0."""
    # noise of one number cannot make a class all but certain
    shares = sums.ravel() / (max(count, 0.0) + 2 * deviation + 1e-9)
    if kind == 0:
        return np.clip(shares, -1.0, 1.0), 1.0
    shares = np.clip(shares + 1 / max(kind, 2), 1e-4, 1 - 1e-4)
    # rows are not as sure as their mean, and some not at all: the curvature is half way to its largest, in logarithms
    curvature = 0.5 * math.sqrt((shares * (1 - shares)).mean())
    return (np.log(shares) - np.log1p(-shares) if kind == 1 else np.log(shares) - np.log(shares).mean()), curvature


def boost(rows, ordered, n_bins, n_rounds, kind, noise):
    """Return (curves of terms, which of them each bin belongs to) after so many rounds.

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
    """
    groups, measured = [], []
    for term, in_order in enumerate(ordered):
        counts = rows.counts(term)
        group = merged(counts, n_bins) if in_order is True and len(counts) > n_bins else np.arange(len(counts))
        counts = np.bincount(group, weights=counts)
        rows.merge(term, group)
        measured.append((counts, steps_of(np.maximum(counts, 0), in_order)))
        groups.append(group)
    start, curvature = start_of(rows.sums(0), measured[0][0][0], math.sqrt(noise), kind)
    curves = [Curve(*known, curvature, max(kind, 1), noise) for known in measured]
    curves[0].scores += start
    rows.add(0, curves[0].scores)
    for k in range(n_rounds):
        for term, curve in enumerate(curves):
            if term or k:
                rows.add(term, curve.measure(rows.sums(term), k + 1.0))
    return curves, groups
