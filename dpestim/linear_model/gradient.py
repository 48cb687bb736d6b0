"""Noisy gradient descent: whoever holds rows answers each step with one noisy sum of gradients, and nothing else.

    Schedule        how many steps, how long: from public numbers
    GradientSums    exact sums of gradients of rows, on a grid of integers
    GradientOwner   rows of one owner, whose sums get noise: so many answers as were paid for
    descend         the server's side: accelerated steps on what owners answered; it sees no row

Rows and slopes are integers, and products and sums of integers below 2^53 are exact in floats, in whatever order they
are added: the sums are BLAS products, and still exact. The proof: ``gradient.md``.
"""

import math
import threading
from fractions import Fraction

import numpy as np
from scipy.sparse import issparse

from dpestim import accounting
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.gaussian import RoundedGaussianLaw
from dpestim.links import LOGISTIC, Link, softmax
from dpestim.records import record

#: Rows and slopes have at most so many binary digits.
_FINEST = 16
#: Coefficients are rounded to multiples of 2^-22 for margins: products with rows add up below 2^53.
_COARSEST = 22
_MOST_STEPS = 256
#: Where w is kept, and where owners are asked: no fit comes near it, and floats stay finite whatever the noise.
_RADIUS = 1e4


@record
class Schedule:
    """Steps of a descent, and how much of the objective is a regulariser; public."""

    n_steps: int
    length: float
    strength: float  # of the mean objective

    @classmethod
    def of(cls, variance, size, link, strength=0.0, n_steps=None, pure=False):
        """Return a schedule for noise of this variance in an entry of the mean gradient, were there one step.

        Accelerated steps of length l reach after n of them what a regulariser of 4 / (l n^2) leaves: that is where
        noise of this variance and the shrinking are about even (as in `_objective`). Noise of n steps
        has n times the variance in each, which shorter steps make up for, and n^2 times where it is pure.
        """
        longest = 0.97 / (link.curvature + strength)
        even = 1 / max(link.caution * size * variance, 1e-12)
        if n_steps is None:
            wanted = (4 * even / longest) ** (1 / 3 if pure else 1 / 2)
            n_steps = min(max(math.ceil(wanted), 4), _MOST_STEPS)
        even /= n_steps if pure else 1
        return cls(n_steps, min(longest, 4 * even / n_steps**2), strength)

    def path(self, curvature):
        """Return (what is left of a start, the responses to noise in each step) along this curvature."""
        shrink = 1 - self.length * (curvature + self.strength)
        now, before = np.zeros(self.n_steps + 1), np.zeros(self.n_steps + 1)
        now[-1] = before[-1] = 1.0  # (the last entry is the start)
        total = np.zeros(self.n_steps + 1)
        for k in range(self.n_steps):
            now, before = shrink * (now + k / (k + 3) * (now - before)), now
            now[k] -= self.length
            total += now * (k >= self.first_kept)
        total /= self.n_steps - self.first_kept
        return float(total[-1]), total[:-1]

    @property
    def first_kept(self):
        """The first step whose end counts: coefficients are the mean of those of the second half."""
        return self.n_steps // 2


def margins_of(link, rows):
    """Return a function of w: what the slopes of rows are made from, one number a row, or one for each output."""
    return lambda w: rows @ w[0] if link.n_outputs == 1 else rows @ w.T


@record
class Agreement:
    """What an owner will answer, from public numbers: so many sums, on which grid, with which noise."""

    law: object
    bits: int
    n_steps: int

    @classmethod
    def of(cls, epsilon, delta, n_rows, size, link, n_steps):
        """Return the agreement that costs (epsilon, delta) in all; ValueError where integers are too small for it."""
        bits = min(_FINEST, (52 - max(n_rows, 1).bit_length()) // 2)
        if bits < 4:
            raise ValueError("X must have fewer than 2^44 rows")
        apart = 2 * link.reach(bits) * (1 << bits)  # of two rows' gradients, in Euclidean norm
        if delta:  # all steps together are one normal vector
            root = Fraction(math.isqrt(n_steps << 80) + 1, 1 << 40)
            return cls(RoundedGaussianLaw(epsilon, delta, apart * root, 0), bits, n_steps)
        entries = Fraction(math.isqrt(size * link.n_outputs << 80) + 1, 1 << 40)
        return cls(DiscreteLaplaceLaw(epsilon / n_steps, Fraction(0), apart * entries, 0), bits, n_steps)

    @property
    def unit(self):
        """What an integer of the sums stands for, per unit of slope."""
        return 2.0 ** (-2 * self.bits)

    def deviation(self, link):
        """Return the standard deviation of the noise in an entry of a sum of gradients."""
        return math.sqrt(self.law.variance_steps) * self.unit * _scale(link)


def _scale(link):
    """Return what a slope of 1 on the grid stands for."""
    return link.most if link.n_outputs == 1 else 1.0


class GradientSums:
    """The exact sums of gradients of rows, as a function of coefficients: integers, whatever rows are together.

    Coefficients are rounded to a grid first. Then margins are exact, too, and the slope of a row does not depend on its
    place among others.

    Parameters
    ----------
    rows, targets, link, offset : as for `GradientOwner`
    bits : int
        Of the grid of rows and slopes.
    """

    def __init__(self, rows, targets, link, bits, offset=0.0):
        scaled = rows * 2.0**bits
        self._rows = scaled.trunc() if issparse(rows) else np.trunc(scaled)  # (towards 0: norms shrink)
        self._targets, self._bits, self._offset, self.link = targets, bits, offset, link
        self.n_rows, self.shape = rows.shape[0], (link.n_outputs, rows.shape[1])

    def __call__(self, w):
        """Return the sum at w, of norm at most `_RADIUS`, in units of `Agreement.unit`."""
        link, whole = self.link, np.rint(w * 2.0**_COARSEST)
        # slopes are functions of a row, its target and w; how floats round them is part of that function
        margins = margins_of(link, self._rows)(whole) * 2.0 ** -(_COARSEST + self._bits) + self._offset
        slopes = np.nan_to_num(link.slopes(margins, self._targets) / _scale(link))
        steps = np.rint(np.clip(slopes, -1.0, 1.0) * 2.0**self._bits)
        # integers below 2^53: exact in any order
        return (self._rows.T @ steps.reshape(self.n_rows, link.n_outputs)).T.astype(np.int64)


class GradientOwner:
    """Rows that answer with noisy sums of gradients, as often as was agreed; whoever holds the rows is trusted.

    Parameters
    ----------
    rows : ndarray or sparse array of shape (n_rows, size)
        Each of norm at most 1.
    targets : ndarray of shape (n_rows,)
    link : Link
    agreement : Agreement
    source : dpestim.rng.WordSource
        Of this owner alone.
    offset : float or ndarray of shape (n_outputs,), default=0
        Public; added to all margins.
    """

    def __init__(self, rows, targets, link, agreement, source, offset=0.0):
        self._hold(GradientSums(rows, targets, link, agreement.bits, offset), agreement, source)

    @classmethod
    def of(cls, sums, agreement, source):
        """Return the owner of exact sums of gradients, as `GradientSums` gives them."""
        made = cls.__new__(cls)
        made._hold(sums, agreement, source)
        return made

    def _hold(self, sums, agreement, source):
        self._sums, self._agreement, self._source = sums, agreement, source
        self._n_answers, self._lock = 0, threading.Lock()
        self.n_rows = sums.n_rows

    def __reduce__(self):
        """Refuse: a copy would answer again, with the same noise."""
        raise TypeError("a GradientOwner cannot be pickled or copied, because its noise would be used twice: make a "
                        "new one")

    def answer(self, w):
        """Return the noisy sum of the gradients at w, of shape (n_outputs, size) and norm at most `_RADIUS`."""
        agreement, shape = self._agreement, self._sums.shape
        w = np.array(w, np.float64)  # a copy: nobody changes it after it was looked at
        # what is no number times 0 is none either, and would be an integer that no sensitivity knows
        if w.shape != shape or not np.isfinite(w).all() or not np.sqrt(np.square(w).sum()) <= _RADIUS:
            raise ValueError(f"w must have shape {shape}, finite numbers, and a norm of at most {_RADIUS:g}")
        with self._lock:  # (two answers with one noise would differ by what is secret)
            if self._n_answers == agreement.n_steps:
                raise ValueError("all answers that were paid for have been given: make a new owner, which charges "
                                 "again")
            at, self._n_answers = self._n_answers, self._n_answers + 1
        # (a copy: noise is added in place)
        noisy = agreement.law.add(self._sums(w).flatten(), self._source.part(at))
        return noisy.reshape(shape) * (agreement.unit * _scale(self._sums.link))


def _held(w):
    """Return w, pulled back to where it is kept."""
    norm = float(np.sqrt(np.square(w).sum()))
    return w if norm <= _RADIUS else w * (0.999 * _RADIUS / norm)


def descend(answers, weights, schedule, shape, done=None):
    """Return the mean w of the second half of the steps from 0, from `answers(w)`, noisy mean gradients of owners.

    Parameters
    ----------
    answers : list of callables
        Each takes w and returns the noisy mean gradient of an owner, of the shape of w.
    weights : ndarray
        Of owners; they sum to 1.
    schedule : Schedule
    shape : tuple
        That of w: (n_outputs, size).
    done : callable, default=None
        Told how many steps are over.
    """
    w, before, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for k in range(schedule.n_steps):
        ahead = _held(w + k / (k + 3) * (w - before))
        slope = schedule.strength * ahead
        for weight, answer in zip(weights, answers):
            slope = slope + weight * answer(ahead)
        before = w
        w = _held(ahead - schedule.length * slope)
        if k >= schedule.first_kept:
            total += w
        if done is not None:
            done(k + 1)
    return total / (schedule.n_steps - schedule.first_kept)


@record
class Plan:
    """How one owner's classifier is fitted: all of it public, made before anything is charged."""

    link: Link
    schedule: Schedule
    agreement: Agreement
    n_rows: int

    @classmethod
    def of(cls, epsilon, delta, n_rows, size, n_classes, strength):
        """Return the plan for (epsilon, delta); `strength` is that of the sum of losses, or None."""
        link = LOGISTIC if n_classes == 2 else softmax(n_classes)
        single = Agreement.of(epsilon, delta, n_rows, size, link, 1).deviation(link) / max(n_rows, 1)
        schedule = Schedule.of(single**2, size * link.n_outputs, link, float(strength or 0) / max(n_rows, 1),
                               pure=not delta)
        return cls(link, schedule, Agreement.of(epsilon, delta, n_rows, size, link, schedule.n_steps), n_rows)

    @property
    def delta(self):
        """What is spent of delta."""
        return self.agreement.law.delta

    def curve_of(self, epsilon):
        """Return what is known of a fit of this epsilon in all: of the noise of all steps, and of counts of classes."""
        law = self.agreement.law
        if not law.delta:
            return None
        return law.curve if epsilon == law.epsilon else law.curve + accounting.RenyiCurve.pure(epsilon - law.epsilon)

    @property
    def strength(self):
        """The strength of the regulariser of the sum of losses; 0: stopping early is all there is."""
        return self.schedule.strength * max(self.n_rows, 1)

    @property
    def scale(self):
        """The standard deviation of the noise in an entry of each step's sum of gradients."""
        return self.agreement.deviation(self.link)

    def fit(self, sums, source):
        """Return the coefficients of exact sums of gradients: (1, size) for two classes, else one row for each.

        The source must be the owner's alone.
        """
        owner = GradientOwner.of(sums, self.agreement, source)
        n = max(owner.n_rows, 1)
        return descend([lambda w: owner.answer(w) / n], np.ones(1), self.schedule, sums.shape)
