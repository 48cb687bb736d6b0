"""Strict mode and the default relation: settings of the block, which clones and pickles take along.

The strict mode seen by a piece of code is, in this order: that of the innermost `config_context` around it in its own
thread; strict, where such a block with ``strict=True`` is open in any thread of the process (code that cannot see the
block must not escape it); that of `set_config`. The relation seen is that of the innermost block in its own thread;
that of the block in which an estimator was made; that of `set_config`; that of the ledger that pays; "substitution".
"""

from contextlib import contextmanager

from dpestim.privacy.blocks import Blocks
from dpestim.privacy.neighbours import CENTRAL

_default = {"strict": False, "neighbours": "ledger"}
_blocks, _relations = Blocks("dpestim_strict"), Blocks("dpestim_neighbours")


def get_config():
    """Return the configuration as code at this place sees it.

    Returns
    -------
    dict
        ``{"strict": bool, "neighbours": str}``

    Examples
    --------
    >>> import dpestim
    >>> with dpestim.config_context(strict=True):
    ...     dpestim.get_config()
    {'strict': True, 'neighbours': 'ledger'}
    """
    return {"strict": is_strict(), "neighbours": relation_of_block() or relation_of_process()}


def is_strict():
    """Tell whether code at this place is in strict mode."""
    if not _blocks.are_open:
        return _default["strict"]
    here = _blocks.innermost()
    return here if here is not None else True in _blocks.values() or _default["strict"]


def relation_of_block():
    """Return the name of the relation that the innermost block around this place sets, or None."""
    return _relations.innermost()


def relation_of_process():
    """Return the name of the relation without a block, or "ledger"."""
    return _default["neighbours"]


def set_config(*, strict=None, neighbours=None):
    """Set the configuration of the process, where no `config_context` is open.

    Parameters
    ----------
    strict : bool, default=None
        Whether the caller is the analyst, who must not learn a value from an error, a warning or a shape. None: as it
        is.
    neighbours : {"ledger", "substitution", "add_remove"}, default=None
        The relation of estimators of the central model whose parameter `neighbours` is None. "ledger", as at the start:
        that of the ledger that pays, and "substitution" without one. None: as it is.

    Examples
    --------
    >>> import dpestim
    >>> dpestim.set_config(strict=False, neighbours="ledger")
    """
    _checked(strict, neighbours, ("ledger", *CENTRAL))
    _default.update({name: value for name, value in (("strict", strict), ("neighbours", neighbours))
                     if value is not None})


@contextmanager
def config_context(*, strict=None, neighbours=None):
    """Set the configuration of a block.

    In strict mode the caller is taken to be the analyst, who sees outcomes only: before a release is charged, dtype,
    shape and parameters are checked and nothing else; a value outside its declared domain counts as a fallback (the
    first category, say) instead of raising; parameters that would be learned from the data are an error, and so is
    `score` of an estimator that compares with raw data. What the caller writes by hand, such as the labels of
    `Ledger.for_users`, is taken to be public. Estimators that are made, cloned or pickled inside the block stay strict,
    wherever they go; what a worker process makes by itself is not.

    The relation of a block is the default of all estimators in it, also beside a ledger of another relation, which then
    converts what it is charged or refuses it. Estimators that are made, cloned or pickled in the block keep it, and so
    do those that summarise rows in it.

    Parameters
    ----------
    strict : bool, default=None
        None: as around the block.
    neighbours : {"substitution", "add_remove"}, default=None
        The relation of estimators of the central model whose parameter `neighbours` is None: one record replaced, or
        one more or less. None: as around the block.

    Examples
    --------
    >>> import dpestim
    >>> import numpy as np
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> with dpestim.config_context(strict=True):
    ...     GRRFrequencyEstimator(1.0).fit(np.array([[0], [1]]))
    Traceback (most recent call last):
        ...
    ValueError: strict mode: declare categories, which cannot be inferred from the data

    >>> from dpestim.statistics import Count
    >>> with dpestim.config_context(neighbours="add_remove"):
    ...     print(Count(1.0).privacy_.neighbours.value)
    add_remove
    """
    _checked(strict, neighbours, CENTRAL)
    tokens = [(blocks, blocks.enter(value)) for blocks, value in ((_blocks, strict), (_relations, neighbours))
              if value is not None]
    try:
        yield
    finally:
        for blocks, token in tokens:
            blocks.leave(token)


def _checked(strict, neighbours, relations):
    """Raise ValueError for a setting that there is not."""
    if strict is not None and not isinstance(strict, bool):
        raise ValueError("strict must be True or False")
    if neighbours is not None and (not isinstance(neighbours, str) or neighbours not in relations):
        raise ValueError(f"neighbours must be one of {list(relations)}")
