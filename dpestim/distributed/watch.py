"""Lines on standard error for those who wait for rows in parts: how many parts were read, and how fast."""

import sys
import time
from contextlib import contextmanager, suppress

from dpestim.progress import check_verbose, hand_on, level_of

#: Seconds between two lines at verbose=1.
_EVERY = 1.0


class Watch:
    """Tells how far a fit of rows in parts has come; nothing where `verbose` is 0.

    How the data are cut into parts is public. How many rows there are is told only where neighbours have one row
    replaced, and not in strict mode. The seconds are not protected (`dpestim.progress`).
    """

    def __init__(self, estimator, verbose):
        check_verbose(verbose)
        self._verbose, self._name, self._n_readings = level_of(verbose), type(estimator).__name__, 0
        self._tells_rows = bool(self._verbose) and not estimator._is_strict() and estimator._replaces

    @contextmanager
    def reading(self, parts):
        """Watch one reading of all parts."""
        self._n_readings += 1
        self._n_parts = self._n_rows = 0
        self._start = self._told = time.perf_counter()
        if hasattr(parts, "done"):
            parts.done = self._done
        yield
        self._tell("done", getattr(parts, "n_parts", None) or self._n_parts)

    def _done(self, n_rows):
        self._n_parts, self._n_rows = self._n_parts + 1, self._n_rows + n_rows
        hand_on(self._name, f"reading {self._n_readings}: part", self._n_parts,
                seconds=time.perf_counter() - self._start)
        if self._verbose > 1 or (self._verbose and time.perf_counter() - self._told >= _EVERY):
            self._told = time.perf_counter()
            self._tell("part", self._n_parts)

    def _tell(self, what, n_parts):
        if not self._verbose:
            return
        seconds = time.perf_counter() - self._start
        text = f"part {n_parts}" if what == "part" else f"{n_parts or 'all'} parts"
        if self._tells_rows and self._n_rows:
            text += f", {self._n_rows / max(seconds, 1e-9):,.0f} rows a second"
        with suppress(OSError, ValueError):  # (a closed output must not end a fit that was paid)
            print(f"[{self._name}] reading {self._n_readings}: {text}, {seconds:.1f} s\n", end="", file=sys.stderr,
                  flush=True)
