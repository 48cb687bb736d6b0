"""From counts to what a reader sees: interval ends, post-processing, names."""

import numpy as np

from dpestim import postprocessing


def end(f, z, error):
    """Solve end = f + z error(end) by bisection between f and the farthest that an end can be.

    The square of `error` must be a line or the p (1 - p) / n of a share: it is largest at 0, at 1 or in their middle.
    """
    near, far = f, f + z * np.max([error(np.full_like(f, p)) for p in (0.0, 0.5, 1.0)], axis=0)
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
