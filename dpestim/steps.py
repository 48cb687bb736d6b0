"""A step of a long fit, as those hear of it who wait (`dpestim.progress`); most fits have no listener."""

from typing import NamedTuple


class Step(NamedTuple):
    """What a callback of `show_progress` gets; ``str(step)`` is a line.

    Attributes
    ----------
    name : str
        The class of the estimator, or the function.
    what : str
        What is counted, such as "round"; or what is over, where nothing is counted.
    done, total : int or None
        How many are over, and how many there are; None where nothing is counted, or nobody knows.
    at_most : bool
        Whether there may be fewer than `total`.
    seconds : float or None
        Since the start; None where the time is secret.
    """

    name: str
    what: str
    done: int | None
    total: int | None = None
    at_most: bool = False
    seconds: float | None = None

    def __str__(self):
        counted = "" if self.done is None else f" {self.done}"
        if self.total is not None:
            counted += f" {'of at most' if self.at_most else 'of'} {self.total}"
        return f"[{self.name}] {self.what}{counted}" + ("" if self.seconds is None else f", {self.seconds:.1f} s")
