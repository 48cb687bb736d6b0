"""A column of vectors: all columns of X together are points of a ball; and how a ball is declared."""

from numbers import Real

import numpy as np

from dpestim.local.numbers.joint import JointColumn


class BallColumn(JointColumn):
    """All columns of X together: rows are vectors in a ball.

    Parameters
    ----------
    names : sequence of str
    law : PrivUnit
    centre : sequence of float
    radius : float
        Vectors further from the centre are shortened to it; in strict mode NaN counts as the centre's number.
    """

    def __init__(self, names, law, centre, radius):
        self.centre, self.radius = np.array(centre, np.float64), float(radius)
        super().__init__(names, law, (self.centre - radius).tolist(), (self.centre + radius).tolist())

    def named(self, *names):
        """Return the same columns under other names."""
        return self if list(names) == self._names else type(self)(names, self.law, self.centre, self.radius)

    def identity(self):
        """Return the ball and the law."""
        return self.centre.tolist(), self.radius, self.law

    @property
    def domain(self):
        """The ball."""
        return {"kind": "ball", "centre": self.centre.tolist(), "radius": self.radius}

    @property
    def _ends(self):
        """The ball."""
        return self.centre, self.radius

    @property
    def middles(self):
        """The centre."""
        return self.centre.tolist()

    @property
    def _scale(self):
        return self.centre, self.radius


def radius_of(radius):
    """Return a radius as a float."""
    number = isinstance(radius, Real) and not isinstance(radius, bool | np.bool_)
    if not number or not 1e-100 <= radius <= 1e100:
        raise ValueError("radius must be a number above 0 (from 1e-100 to 1e100)")
    return float(radius)


def centre_of(center, n_columns):
    """Return a centre as an array of floats; n_columns None: as many as it has, or 1."""
    if center is None:
        return np.zeros(n_columns or 1)
    wrong = "center must have one finite number for each column"
    if isinstance(center, str | dict | np.ma.MaskedArray):
        raise ValueError(wrong)
    try:
        values = np.array(center, dtype=object)
        floats = np.array([float(v) for v in values.tolist()]) if values.ndim == 1 else None
    except (TypeError, ValueError, OverflowError):
        raise ValueError(wrong) from None
    if floats is None or not len(floats) or not np.isfinite(floats).all() or (
        any(isinstance(v, str | bytes | bool | np.bool_) for v in values.tolist())
    ):
        raise ValueError(wrong)
    if n_columns is not None and len(floats) != n_columns:
        raise ValueError(f"center must have one number for each of the {n_columns} columns")
    return floats
