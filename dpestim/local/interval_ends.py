"""Ends of intervals whose error depends on where the end is."""

import numpy as np


def ends(f, z, error):
    """Solve end = f - z error(end) and end = f + z error(end), (lower, upper), by bisection.

    It starts between f and the farthest that an end can be, and stops where no float lies between its two sides.

    The square of `error` must be a line, the p (1 - p) / n of a share, or their sum: it is largest at 0, at 1 or in
    their middle, or at most the sum of what it is at two of them.
    """
    at = [error(np.full_like(f, p)) for p in (0.0, 0.5, 1.0)]
    reach = z * np.hypot(np.maximum(at[0], at[2]), at[1])
    near, far = np.stack([f, f]), np.stack([f - reach, f + reach])
    for step in range(70):
        middle = (near + far) / 2
        settled = step > 40 and ((middle == near) | (middle == far)).all()  # (never before: it would be asked in vain)
        beyond = np.abs(middle - f) >= z * error(np.minimum(np.maximum(middle, 0.0), 1.0))
        near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
        if settled:
            break
    return far
