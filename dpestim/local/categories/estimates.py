"""From counts to what a reader sees: interval ends, post-processing, names."""

import numpy as np

from dpestim import postprocessing


def end(f, z, error):
    """Solve end = f + z error(end) by bisection between f and the farthest that an end can be."""
    near, far = f, f + z * np.maximum(error(np.zeros_like(f)), error(np.ones_like(f)))
    for _ in range(70):
        middle = (near + far) / 2
        beyond = np.abs(middle - f) >= np.abs(z) * error(np.clip(middle, 0.0, 1.0))
        near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
    return far


def shown(categories):
    """Return categories as they are written in a name."""
    return (categories.astype(str) if categories.dtype.kind in "mM" else categories).tolist()


def postprocessor(postprocess):
    """Return the function that a parameter names, or None."""
    if postprocess is None or callable(postprocess):
        return postprocess
    if isinstance(postprocess, str) and postprocess in postprocessing.__all__:
        return getattr(postprocessing, postprocess)
    raise ValueError(f"postprocess must be None, a callable or one of {postprocessing.__all__}, got {postprocess!r}")
