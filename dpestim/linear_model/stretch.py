"""What noise and penalty took from coefficients, given back: a function of what is released (`logistic.md`)."""

import math

import numpy as np

#: How curvature falls with the number of coefficients: chosen on three tables (cancer, wine, two digits).
_POWER = 0.75


def stretched(w, law, n_rows):
    """Return coefficients of objective perturbation times a number of at least 1.

    The strength that ranks rows best where noise is large makes coefficients small: by about h / (s + h), s the
    strength and h the curvature of the loss where classes are equal (of rare ones it is less: they are stretched too
    little). They are made as large as they would be without it, times what is left of their square when that of the
    noise, whose law is known, is taken from it (the positive part of James and Stein 1961). The longer they would
    become, the more the noise is taken to be: by sqrt(ln l) standard deviations, l the factor, as what stretched noise
    costs grows like l^2 and its chance must fall as fast. Ranks of rows stay as they are.

    Parameters
    ----------
    w : ndarray of shape (n_problems or n_classes, n_coefficients)
    law : Calibration
    n_rows : int
    """
    size, s = law.shape.blocks * w.shape[1], float(law.strength)
    own = law.scale**2 if law.delta else law.scale**2 * (size + 1)  # the variance of an entry of the noise
    curvature = float(law.shape.trace) / law.shape.parts / law.shape.blocks
    h = max(n_rows, 1) * curvature / w.shape[1] ** _POWER
    longer = (s + h) / h
    deviation = math.sqrt((2 if law.delta else 4) * size)  # of the squared noise, over `own`
    drowned = (size + math.sqrt(math.log(longer)) * deviation) * own
    axis = 1 if law.shape.parts > 1 else None  # (of one class against the rest each has a noise of its own)
    with np.errstate(all="ignore"):
        seen = np.square(w).sum(axis=axis, keepdims=True) * (s + h) ** 2
        factor = longer * np.maximum(0.0, 1.0 - drowned / seen)
    return w * np.where(np.isfinite(factor), np.maximum(factor, 1.0), 1.0)
