"""How far a long fit has come, for those who wait: public numbers and the time, nothing of the data.

A line names the estimator, what is done, how much of it there is, and the seconds since it began. All numbers are
public, or computed from what was released. The seconds are not protected, and nobody needs a line to measure them.
"""

import time
from contextlib import suppress
from copy import copy
from numbers import Integral

#: Lines of one fit at verbose=1, about.
_LINES = 10


def check_verbose(verbose):
    """Raise ValueError unless it says how many lines are wanted."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError("verbose must be 0 (no lines), 1 (about ten) or 2 (one for each round)")


class Progress:
    """Lines of one fit of an estimator, which has a parameter `verbose`; nothing where that is 0.

    Parameters
    ----------
    estimator : estimator
    total : int
        How many rounds there are, as far as that is public.
    what : str, default="round"
    most : bool, default=False
        Whether there may be fewer.
    """

    def __init__(self, estimator, total, what="round", most=False):
        self._verbose, self._name = int(estimator.verbose), type(estimator).__name__
        self._total, self._what, self._of = total, what, "of at most" if most else "of"
        self._start, self._told = time.perf_counter(), 0

    def part(self, total, what):
        """Return the lines of a part of this fit, on the same clock."""
        part = copy(self)
        part._total, part._what, part._of, part._told = total, what, "of", 0
        return part

    def done(self, number):
        """Tell that so many rounds are over: in about ten lines, or one for each round."""
        shares = [_LINES * n // self._total for n in (self._told, number)]
        if self._verbose > 1 or (self._verbose and (shares[0] < shares[1] or self._total <= _LINES)):
            self.tell(f"{self._what} {number} {self._of} {self._total}")
            self._told = number

    def tell(self, text, timed=True):
        """Print a line, where lines are wanted: in one piece, as several processes may share the output."""
        if self._verbose:
            seconds = f", {time.perf_counter() - self._start:.1f} s" if timed else ""
            with suppress(OSError, ValueError):  # (a closed output must not end a fit that was paid)
                print(f"[{self._name}] {text}{seconds}\n", end="", flush=True)
