"""What one record can do to the integers that get noise: recorded where the noise is added, compared with the claim."""

import numpy as np


class _Recorder:
    """In place of a law: keeps the integers, adds nothing."""

    def __init__(self, l1, l2_squared):
        self.l1, self.l2_squared, self.numbers, self.variance = l1, l2_squared, None, 1.0

    def add(self, numbers, source):
        """Keep the integers."""
        self.numbers = [int(number) for number in np.ravel(np.asarray(numbers, object))]
        return np.asarray(numbers, float)


def recorded(monkeypatch, module, fit):
    """Return (the integers that a fit would add noise to, their claimed sensitivities)."""
    made = []

    def noise_for(epsilon, delta, l1, l2_squared, size, parts=1):
        made.append(_Recorder(l1, l2_squared))
        return made[-1]

    with monkeypatch.context() as patched:
        patched.setattr(module, "noise_for", noise_for)
        fit()
    (one,) = made
    return one


def check_sensitivity(monkeypatch, module, pairs, reached=0.9):
    """Require that no pair of fits moves more than was claimed, and that one moves nearly as much."""
    most = squares = 0.0
    for fit, other in pairs:
        a, b = (recorded(monkeypatch, module, one) for one in (fit, other))
        assert a.l1 == b.l1
        moved = [abs(x - y) for x, y in zip(a.numbers, b.numbers, strict=True)]
        assert sum(moved) <= a.l1
        assert sum(m * m for m in moved) <= a.l2_squared
        most, squares = max(most, sum(moved) / a.l1), max(squares, sum(m * m for m in moved) / a.l2_squared)
    assert most > reached, "the claim is not tight: a wrong one might pass"
    assert squares > reached**2
