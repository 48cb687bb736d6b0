"""How far a scan has come: files, reports a second, and the error bar of the first column; nothing of a report."""

import sys
import time
from contextlib import suppress

import numpy as np

from dpestim.progress import check_verbose, hand_on, level_of

#: Lines of one scan, about, where tqdm is not installed.
_LINES = 10


class Watch:
    """Tells how far a scan has come, on standard error: a bar of tqdm where it is installed, or else lines.

    Parameters
    ----------
    collector : Collector
    total : int
        Files.
    verbose : int
        0: tell nothing.
    """

    def __init__(self, collector, total, verbose):
        check_verbose(verbose)
        self._collector, self._total, self._verbose = collector, total, level_of(verbose) if total else 0
        self._start, self._done, self._reports, self._told = time.perf_counter(), 0, 0, 0
        self._bar = _bar(total) if self._verbose else None

    def done(self, n):
        """Note that one more file is done, of which so many reports were counted."""
        self._done, self._reports = self._done + 1, self._reports + n
        hand_on("Collector", "file", self._done, self._total, time.perf_counter() - self._start)
        if not self._verbose:
            return
        share = _LINES * self._done // self._total
        if self._verbose > 1 or share > self._told or self._done == self._total:
            self._told = share
            if self._bar is None:
                self._print(f"file {self._done} of {self._total}, {self._text()}")
            else:
                self._bar.set_postfix_str(self._text(), refresh=False)
        if self._bar is not None:
            self._bar.update()

    def close(self):
        """End the bar."""
        if self._bar is not None:
            self._bar.close()

    def _text(self):
        seconds = max(time.perf_counter() - self._start, 1e-9)
        text = f"{self._reports} reports, {self._reports / seconds:.3g} a second"
        error = error_of(self._collector.server())
        return text if error is None else f"{text}, standard error of the first column {error:.2g}"

    @staticmethod
    def _print(text):
        with suppress(OSError, ValueError):  # (a closed output must not end a scan)
            print(f"[Collector] {text}\n", end="", file=sys.stderr, flush=True)


def _bar(total):
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit="file", desc="Collector", file=sys.stderr)


def error_of(server):
    """Return the largest standard error of the first column of a server, or None where it has none."""
    for name in ("standard_errors_", "standard_error_"):
        with suppress(AttributeError, ValueError):  # (not fitted yet, or not known)
            errors = getattr(server, name)
            first = next(iter(errors.values())) if isinstance(errors, dict) else errors[0]
            largest = float(np.max(first))
            if np.isfinite(largest):
                return largest
    return None
