"""The base rate: a private count of the classes or mean of targets, where margins start (claim 7 of `logistic.md`).

A regularised model shrinks to what it says at w = 0. Without an offset that is 1/2 for every class; with it, nearly
the share of the class, however rare it is. So it is with counts, of which 1 is expected at w = 0, or nearly their mean.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.linear_model.solver import LARGEST_OFFSET

#: The part of epsilon that counting takes at most, and what it takes of it in all, for each row: then the standard
#: deviation of a count is about 0.014 n, for two classes.
LARGEST_SHARE, ENOUGH = Fraction(1, 10), 100
#: The same for a mean: then its standard deviation is about .003 half ranges, as targets may use little of theirs.
ENOUGH_FOR_MEAN = 1000
#: Steps between 0 and 1 of numbers whose mean is taken.
STEPS = 1 << 20


@lru_cache(maxsize=256)  # (of public numbers: fits ask for the same ones again and again)
def share_of(epsilon, n_rows, enough=ENOUGH):
    """Return the part of epsilon that the count takes, a Fraction."""
    return min(epsilon * LARGEST_SHARE, Fraction(enough) / max(n_rows, 1))


@lru_cache(maxsize=256)
def count_law(epsilon, n_classes):
    """Return the law of the counts' noise: of the last of two classes, or of all of more than two."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(1 if n_classes == 2 else 2), 0)


def class_counts(codes, n_classes):
    """Return how many rows each class has; a negative code is no class."""
    return np.bincount(codes[codes >= 0], minlength=n_classes).astype(np.int64)


def signs_of(codes, kind):
    """Return 1 for rows of a class, -1 for those of all others, 0 for a row that does not count."""
    return (codes == kind).view(np.int8) * np.int8(2) - (codes >= 0)


def class_shares(counts, n, epsilon, source, column):
    """Return private shares of the classes, positive and adding up to 1: a release of epsilon.

    Parameters
    ----------
    counts : ndarray of int64
        As `class_counts` returns them.
    n : int
        How many rows there are.
    epsilon : Fraction
    source : dpestim.rng.WordSource
    column : int
        The first of two columns of words that are the count's own.
    """
    counts, n_classes = np.array(counts), len(counts)  # (a copy: noise is added in place)
    law = count_law(epsilon, n_classes)
    if n_classes == 2:
        last = float(np.clip(law.add(counts[1:], source, column)[0], 0, n))
        found = np.array([n - last, last])
    else:
        found = np.clip(law.add(counts, source, column), 0, n).astype(float)
    # towards equal counts where they differ by no more than noise does (the positive part of James and Stein 1961), and
    # away from 0, where a logarithm would make much of little: half of the noise's scale more for each class
    scale, middle = float(law.sensitivity / epsilon), found.mean()
    spread, drowned = float(np.square(found - middle).sum()), 2 * scale**2 * (2 if n_classes == 2 else n_classes - 1)
    found = middle + (found - middle) * max(0.0, 1.0 - drowned / spread if spread else 0.0) + 0.5 + 0.5 * scale
    return found / found.sum()


def sum_law(epsilon, bits):
    """Return the law of the noise in a sum of numbers from -1 to 1, in steps of 2^-bits: one moves it by 2 at most."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(2 << bits), 0)


def _bits(n_rows):
    """Return of how many bits a number from -1 to 1 is, so that sums of them are exact in floats."""
    return min(20, 52 - n_rows.bit_length())


def start_law(epsilon, n_rows, n_classes):
    """Return the law of the noise that says where margins start: of a count, or (no classes) of a sum.

    Made before the charge, as words cannot express every epsilon.
    """
    return count_law(epsilon, n_classes) if n_classes else sum_law(epsilon, _bits(max(n_rows, 1)))


def noisy_mean(values, epsilon, source, column):
    """Return (the private mean of numbers from -1 to 1, the variance of its noise): a release of epsilon.

    Parameters
    ----------
    values : ndarray
        NaN counts as 0.
    epsilon, source, column : as for `class_shares`
    """
    n = max(len(values), 1)
    bits = _bits(n)
    whole = np.rint(np.clip(np.nan_to_num(values), -1.0, 1.0) * 2.0**bits).astype(np.int64)
    law, unit = sum_law(epsilon, bits), 2.0**-bits / n
    return float(law.add(whole.sum(keepdims=True), source, column)[0]) * unit, law.variance_steps * unit**2


@lru_cache(maxsize=256)
def mean_law(epsilon):
    """Return the law of the noise of a sum of numbers in [0, 1], in steps."""
    return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(STEPS), 0)


def mean_of(numbers, epsilon, source, column):
    """Return a private mean of numbers in [0, 1], above 0 and at most 1: a release of epsilon."""
    n = max(len(numbers), 1)
    whole = numbers * STEPS
    np.rint(whole, out=whole)
    # (sums of integers below 2^53 are exact in floats, and take a pass less)
    exact = n < 1 << 32
    total = np.array([int(whole.sum())], np.int64) if exact else whole.astype(np.int64).sum(keepdims=True)
    found, scale = float(mean_law(epsilon).add(total, source, column)[0]) / STEPS / n, 1.0 / float(epsilon * n)
    # as it is where it exceeds the noise, and away from 0, where a logarithm would make much of little
    return min((max(found, -4.0 * scale) + math.hypot(max(found, -4.0 * scale), scale)) / 2.0, 1.0)


def evenness(shares):
    """Return 1 for equal shares of classes, 0 for one class alone: the chance that two rows differ, relative to it."""
    return min(float(shares @ (1.0 - shares)) / (1.0 - 1.0 / len(shares)), 1.0)


def offsets_of(shares, shape):
    """Return the margins of a model that knows nothing but the shares: one for the binary loss, else one a class."""
    logs = np.log(shares)
    if shape.parts > 1:
        logs = logs - np.log1p(-shares)
    elif shape.n_classes == 2:
        logs = logs[1:] - logs[0]
    else:
        logs = logs - logs.mean()
    return np.clip(logs, -LARGEST_OFFSET, LARGEST_OFFSET)
