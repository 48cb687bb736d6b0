"""What noise and penalty took from coefficients, given back: a function of what is released (`_logistic.md`)."""

import math

import numpy as np

#: How curvature falls with the number of coefficients, how many standard deviations above its mean the squared noise
#: is taken to be, how near to their limit slopes may come, and how much of the bend of the loss is believed: chosen on
#: six tables, judged on ten others (`_logistic.md`).
_POWER, _CAUTION, _MOST, _BELIEF = 0.75, 2.0, 0.85, 0.25


def stretched(w, law, n_rows):
    """Return coefficients of objective perturbation times a number of at least 1.

    A strength s that is large beside the curvature h of the loss where classes are equal makes coefficients small: by
    h / (s + h) where margins are small, by more where they are large and slopes come near their limit. With margins v t
    of rows, v the length of w and t normal, and the normal integral for the logistic function, the length k v that a
    strength pulls down to v has a closed form. Of the number k a quarter is believed, in logarithms,
    and it is multiplied by what is left of the square of w when that of the noise, whose law is known, is taken from it
    (the positive part of James and Stein 1961). Ranks of rows stay as they are.

    Parameters
    ----------
    w : ndarray of shape (n_problems or n_classes, n_coefficients)
    law : Calibration
    n_rows : int
    """
    size, s = law.shape.blocks * w.shape[1], float(law.strength)
    own = law.scale**2 if law.delta else law.scale**2 * (size + 1)  # the variance of an entry of the noise
    curvature = float(law.shape.trace) / law.shape.parts / law.shape.blocks
    n, spread = max(n_rows, 1), w.shape[1] ** (-_POWER / 2)
    h = n * curvature * spread**2
    drowned = (size + _CAUTION * math.sqrt(2 * size)) * own
    axis = 1 if law.shape.parts > 1 else None  # (of one class against the rest each has a noise of its own)
    with np.errstate(all="ignore"):
        length = np.sqrt(np.square(w).sum(axis=axis, keepdims=True))
        left = np.maximum(0.0, 1.0 - drowned / (length * (s + h)) ** 2)
        line = (s + h) / h
        # slopes summed over rows, over their limit, as they are and as they were before the strength pulled at them
        steep = math.sqrt(math.pi / 8) * spread * length
        slope = steep / np.sqrt(1 + steep**2)
        slope += np.minimum(s * length * math.sqrt(2 * math.pi) / (4 * n * curvature * spread), _MOST * (1 - slope))
        curve = slope / np.sqrt(1 - slope**2) / steep
        factor = line * np.maximum(curve / line, 1.0) ** _BELIEF * left
    return w * np.where(np.isfinite(factor), np.maximum(factor, 1.0), 1.0)
