"""Strict mode: a switch of the block, which clones and pickles take along.

The value seen by a piece of code is, in this order: that of the innermost `config_context` around it in its own
thread; strict, where such a block with ``strict=True`` is open in any thread of the process (code that cannot see the
block must not escape it); that of `set_config`.
"""

from contextlib import contextmanager

from dpestim.privacy._blocks import Blocks

_default = False
_blocks = Blocks("dpestim_strict")


def get_config():
    """Return the configuration as code at this place sees it.

    Returns
    -------
    dict
        ``{"strict": bool}``

    Examples
    --------
    >>> import dpestim
    >>> with dpestim.config_context(strict=True):
    ...     dpestim.get_config()
    {'strict': True}
    """
    here = _blocks.innermost()
    return {"strict": here if here is not None else True in _blocks.values() or _default}


def set_config(*, strict):
    """Set the configuration of the process, where no `config_context` is open.

    Parameters
    ----------
    strict : bool
        Whether the caller is the analyst, who must not learn a value from an error, a warning or a shape.

    Examples
    --------
    >>> import dpestim
    >>> dpestim.set_config(strict=False)
    """
    global _default
    _default = _checked(strict)


@contextmanager
def config_context(*, strict):
    """Set the configuration of a block.

    In strict mode the caller is taken to be the analyst, who sees outcomes only: before a release is charged, dtype,
    shape and parameters are checked and nothing else; a value outside its declared domain counts as a fallback (the
    first category, say) instead of raising; whatever would have to be learned from the data is an error, and so is
    `score` of an estimator that compares with raw data.
    What the caller writes by hand, such as the labels of `Ledger.for_users`, is taken to be public.
    Estimators that are made, cloned or pickled inside the block stay strict, wherever they go; what a worker process
    makes by itself is not.

    Parameters
    ----------
    strict : bool

    Examples
    --------
    >>> import dpestim
    >>> import numpy as np
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> with dpestim.config_context(strict=True):
    ...     GRRFrequencyEstimator(1.0).fit(np.array([[0], [1]]))
    Traceback (most recent call last):
        ...
    ValueError: strict mode: categories='auto' would be learned from the data: declare them
    """
    token = _blocks.enter(_checked(strict))
    try:
        yield
    finally:
        _blocks.leave(token)


def _checked(strict):
    if not isinstance(strict, bool):
        raise ValueError("strict must be True or False")
    return strict
