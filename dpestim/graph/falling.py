"""Numbers with noise whose exact values fall: isotonic regression, and intervals that hold all at once."""

from fractions import Fraction

import numpy as np


def fall(noisy, low, high):
    """Return the falling sequence that is closest to these numbers, within a range."""
    from sklearn.isotonic import isotonic_regression

    return np.clip(isotonic_regression(noisy, increasing=False), low, high) if len(noisy) else np.zeros(0)


def band(noisy, fit, law, level):
    """Return (low, high), which enclose all exact values at once with at least this probability.

    `noisy` are the exact values, which fall, with independent noise of a law, and `fit` is what `fall` makes of them.
    """
    if isinstance(level, bool) or not 0 < level < 1:
        raise ValueError("level must be a number between 0 and 1")
    half = law.half_width(1 - (1 - Fraction(level)) / max(len(noisy), 1))
    near = half * (1 + 1e-9) + 1e-6  # (the fit is rounded)
    low = np.maximum.accumulate((noisy - half)[::-1])[::-1]  # each is at least what comes later
    high = np.minimum.accumulate(noisy + half)
    return np.minimum(np.maximum(low, fit - near), fit), np.maximum(np.minimum(high, fit + near), fit)
