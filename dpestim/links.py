"""Losses of linear models: from the margins of a row to the slopes of its loss, of a declared largest norm."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import expit, logsumexp

from dpestim.records import record

#: For squared errors in half ranges of the target; that of logistic losses was chosen on yrbss and Adult, and half or
#: twice as much is nearly as good there.
_SQUARED_CAUTION = 50.0


@record
class Link:
    """A loss of a row: `slopes(margins, targets)` are its derivatives by the margins, of norm at most `most`.

    `caution`: how many times the variance of a step's noise a regulariser is that is even with it; `n_classes`: 0 for
    numbers.
    """

    slopes: object
    losses: object
    most: float
    curvature: float
    n_outputs: int = 1
    caution: float = 5.0
    n_classes: int = 0

    def reach(self, bits):
        """Return a bound of the Euclidean norm of the slopes of a row in whole steps of the grid of 2^-bits."""
        # (several are rounded each by half a step at most; floats that make them up err by far less than one)
        return Fraction(1 << bits) if self.n_outputs == 1 else (
            Fraction(self.most) * (1 << bits) + Fraction(math.isqrt(self.n_outputs) + 1, 2) + 1)


def _logistic_slopes(margins, signs):
    return -signs * expit(-signs * margins)


def _logistic_losses(margins, signs):
    return np.where(signs, np.logaddexp(0.0, -signs * margins), 0.0)


def _softmax_slopes(margins, codes):
    shifted = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares = shifted / shifted.sum(axis=1, keepdims=True)
    shares[np.arange(len(codes)), codes] -= 1.0
    shares[codes < 0] = 0.0
    return shares


def _softmax_losses(margins, codes):
    top = margins.max(axis=1)
    logs = top + np.log(np.exp(margins - top[:, None]).sum(axis=1))
    return np.where(codes < 0, 0.0, logs - margins[np.arange(len(codes)), codes])


def _squared_slopes(most, margins, targets):
    return np.clip(np.nan_to_num(margins - targets), -most, most)


def _squared_losses(most, margins, targets):
    off = np.abs(np.nan_to_num(margins - targets))
    return np.where(off <= most, off * off / 2, most * (off - most / 2))


LOGISTIC = Link(_logistic_slopes, _logistic_losses, 1.0, 0.25, n_classes=2)


def softmax(n_classes):
    """Return the link of a softmax over classes; targets are codes, -1 for a row that does not count."""
    return Link(_softmax_slopes, _softmax_losses, math.nextafter(math.sqrt(2), 2), 0.5, n_classes,
                n_classes=n_classes)


def _cut_slopes(slopes, most, margins, targets):
    found = slopes(margins, targets)
    if found.ndim == 1:
        return np.clip(found, -most, most)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return found * (most / np.maximum(lengths, most))


def cut(link):
    """Return a loss of classes whose slopes are never longer than where all margins are 0: linear where rows are wrong.

    What is randomised in parts of the largest slope then has a half to three quarters less variance. Minimisers have
    other margins: `cut_logs` says of which probabilities.
    """
    most = 0.5 if link.n_outputs == 1 else math.nextafter(math.sqrt(1 - 1 / link.n_classes), 2)
    return replace(link, slopes=partial(_cut_slopes, link.slopes, most), losses=None, most=most)


def cut_logs(logs):
    """Return the logarithms of the probabilities at which margins that would have `logs` minimise a loss of `cut`.

    At the minimum the slopes' mean is 0, and that of class j is cut by max(1, |p - e_j| / c): so its probability is p_j
    times that, but for a factor of all. The order of classes stays.
    """
    shares = np.exp(logs)
    squares = np.maximum(np.square(shares).sum(axis=1, keepdims=True) + 1 - 2 * shares, 0)
    found = logs + np.log(np.maximum(squares / (1 - 1 / logs.shape[1]), 1)) / 2
    return found - logsumexp(found, axis=1, keepdims=True)


def squared(most=2.0):
    """Return the link of squared errors, linear beyond `most`; a target that is NaN does not count."""
    return Link(partial(_squared_slopes, most), partial(_squared_losses, most), most, 1.0,
                caution=_SQUARED_CAUTION)
