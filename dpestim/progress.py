"""How far a long fit has come, for those who wait: public numbers and the time, nothing of the data.

A line names the estimator, what is done, how much of it there is, and the seconds since it began. All numbers are
public, or computed from what was released. The seconds are not protected, and nobody needs a line to measure them.
`show_progress` hands the same to a function, also of estimators that have no parameter `verbose`.
"""

import time
import warnings
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from numbers import Integral

from dpestim import lazy

__getattr__, __dir__ = lazy.attach(__name__, {"dpestim.steps": "Step"})

#: Lines of one fit at verbose=1, about.
_LINES = 10


class _Block:
    """What an open block wants to be told."""

    def __init__(self, verbose=0, callback=None):
        self.verbose, self.callback, self.failure = verbose, callback, None

    def tell(self, verbose, *told):
        """Return a step, given to the callback if there is one; None where nobody listens, and no line is wanted."""
        if self.callback is None and not verbose:
            return None
        from dpestim.steps import Step  # (loaded with the first listener)

        step = Step(*told)
        if self.callback is not None:
            self._call(step)
        return step

    def _call(self, step):
        try:
            with silent():  # (a fit in the callback would call the callback, without end)
                self.callback(step)
        except Exception as error:  # (which must not end a fit that was paid)
            self.callback = None
            try:
                warnings.warn(f"the callback of show_progress raised {type(error).__name__}, and is not called again "
                              "in this block: mend the function", RuntimeWarning, stacklevel=5)
            except RuntimeWarning as failure:  # (where warnings are errors, the block ends with it, and not the fit)
                self.failure = failure


_SILENT = _Block()
#: The innermost block.
_here = ContextVar("dpestim_progress", default=_SILENT)


@contextmanager
def show_progress(callback=None, *, verbose=None):
    """Tell how far long computations in this block have come: fits, audits, searches and proofs.

    Nothing that is told depends on data: numbers are public, or follow from what was released. A fit in a thread or a
    process that starts in the block tells nothing, nor does a fit in the callback.

    Parameters
    ----------
    callback : callable or None, default=None
        It is called with a `dpestim.progress.Step` whenever a round is over. An error in it becomes a warning, and ends
        no fit. Where warnings are errors, the block raises it at its end.
    verbose : {0, 1, 2} or None, default=None
        Lines that are printed, as by the parameter of the same name: about ten for a fit, or one for each round. None:
        1 without a callback, else 0. An estimator with a larger `verbose` keeps to its own.

    Examples
    --------
    >>> import numpy as np
    >>> import dpestim
    >>> from dpestim.decomposition import DPPCA
    >>> steps = []
    >>> with dpestim.show_progress(steps.append):
    ...     _ = DPPCA(1.0, delta=1e-6, method="power", n_components=1, data_norm=1.0).fit(np.eye(3))
    >>> [(step.name, step.what, step.done) for step in steps][:2]
    [('DPPCA', 'round', 1), ('DPPCA', 'round', 2)]
    """
    if callback is not None and not callable(callback):
        raise ValueError("callback must be None or a function of one argument, a dpestim.progress.Step")
    verbose = int(callback is None) if verbose is None else verbose
    check_verbose(verbose)
    block = _Block(int(verbose), callback)
    with _opened(block):
        yield
    if block.failure is not None:
        raise block.failure


def silent():
    """Tell nothing of the fits in this block: how many there are, or how long they take, is secret."""
    return _opened(_SILENT)


@contextmanager
def _opened(block):
    token = _here.set(block)
    try:
        yield
    finally:
        _here.reset(token)


def level_of(verbose):
    """Return how many lines are wanted: by a parameter `verbose`, or by the block."""
    return max(int(verbose), _here.get().verbose)


def hand_on(name, what, done, total=None, seconds=None):
    """Give a step to the callback of the block, if there is one."""
    _here.get().tell(0, name, what, done, total, False, seconds)


def check_verbose(verbose):
    """Raise ValueError unless it says how many lines are wanted."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError("verbose must be 0 (no lines), 1 (about ten) or 2 (one for each round)")


class Progress:
    """Lines of one fit of an estimator, which may have a parameter `verbose`; nothing where nobody wants them.

    Parameters
    ----------
    who : estimator, or str
        The name of a function, where there is no estimator.
    total : int
        How many rounds there are, as far as that is public.
    what : str, default="round"
    most : bool, default=False
        Whether there may be fewer.
    """

    def __init__(self, who, total, what="round", most=False):
        self._block, self._verbose = _here.get(), level_of(getattr(who, "verbose", 0))
        self._name = who if isinstance(who, str) else type(who).__name__
        self._total, self._what, self._most = total, what, most
        self._start, self._told = time.perf_counter(), 0

    def part(self, total, what):
        """Return the lines of a part of this fit, on the same clock."""
        part = copy(self)
        part._total, part._what, part._most, part._told = total, what, False, 0
        return part

    def done(self, number):
        """Tell that so many rounds are over: in about ten lines, or one for each round; a callback gets all."""
        step = self._block.tell(self._verbose, self._name, self._what, number, self._total, self._most,
                                time.perf_counter() - self._start)
        shares = [_LINES * n // max(self._total, 1) for n in (self._told, number)]
        if self._verbose > 1 or (self._verbose and (shares[0] < shares[1] or self._total <= _LINES)):
            self._print(step)
            self._told = number

    def of(self, items):
        """Yield items, and tell of each when it is over."""
        for number, item in enumerate(items, 1):
            yield item
            self.done(number)

    def tell(self, text, timed=True):
        """Tell what is over."""
        step = self._block.tell(self._verbose, self._name, text, None, None, False,
                                time.perf_counter() - self._start if timed else None)
        if self._verbose:
            self._print(step)

    @staticmethod
    def _print(step):
        """Print a line in one piece, as several processes may share the output."""
        with suppress(OSError, ValueError):  # (a closed output must not end a fit that was paid)
            print(f"{step}\n", end="", flush=True)
