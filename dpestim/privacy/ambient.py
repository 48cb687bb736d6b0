"""The ledger of the block: what ``with ledger:`` makes the default, and for whom.

A context variable knows the innermost block of this thread. It does not reach the workers of joblib or a bare thread,
so clones and pickles made inside a block bind its ledger; and a release that is bound to none while a block is open
anywhere in this process is refused, because it would be charged to nobody.
"""

import threading
from contextvars import ContextVar

from dpestim.exceptions import LedgerError

_lock = threading.Lock()
_open_blocks = 0
#: (ledger, the block around it) or None
_here = ContextVar("dpestim_ledger", default=None)


def ledger():
    """Return the ledger of the innermost block around this place, or None."""
    here = _here.get()
    return None if here is None else here[0]


def enter(item):
    """Open a block."""
    global _open_blocks
    with _lock:
        _open_blocks += 1
    _here.set((item, _here.get()))


def leave():
    """Close the innermost block of this thread."""
    global _open_blocks
    with _lock:
        _open_blocks -= 1
    _here.set(_here.get()[1])


def refuse_to_slip_through():
    """Raise LedgerError where a block is open in this process which this place cannot see."""
    if _open_blocks:
        raise LedgerError(
            "a `with ledger:` block is open in another thread of this process, and this release would be charged to "
            "nobody: pass ledger=, or clone the estimator inside the block"
        )
