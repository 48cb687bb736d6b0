"""The ledger of the block: what ``with ledger:`` makes the default, and for whom.

The innermost block is seen by code in its own context. Workers of joblib and bare threads do not see it, so estimators
that are made, cloned or pickled inside a block bind its ledger; and a release that is bound to none while a block is
open anywhere in this process is refused, because it would be charged to nobody.
"""

from contextlib import contextmanager

from dpestim.exceptions import LedgerError
from dpestim.privacy.blocks import Blocks

#: What is said of code that charges a ledger while it is audited.
CHARGED_BY_AUDIT = ("mechanism must not charge a ledger, because each call of an audit would be charged: give the code "
                    "an estimator without a ledger")
#: Blocks of ledgers; `open_blocks.are_open` is falsy where nobody need ask.
open_blocks = _blocks = Blocks("dpestim_ledger")
_reservations = Blocks("dpestim_reservation")
_unnoted = Blocks("dpestim_unnoted")
_audits = Blocks("dpestim_audit")
#: While one of these is open anywhere, an entry may have to be refused, or be more than one.
asked_by_entries = (_audits, _reservations)


def ledger():
    """Return the ledger of the innermost block around this place, or None."""
    return _blocks.innermost() if _blocks.are_open else None


def to_bind():
    """Return the ledger that what leaves this place must take along: of the innermost block, else the only open one.

    A pool pickles in a thread of its own, where no block is seen: what leaves the process there must be paid for too.
    Raise LedgerError where several ledgers are open which this place cannot see, as nobody knows which one pays.
    """
    here = ledger()
    if here is not None:
        return here
    one, *others = {(item.path, item.uuid, item.users): item for item in _blocks.values()}.values() or (None,)
    if others:
        raise LedgerError(
            "`with ledger:` blocks of several ledgers are open in this process, and this estimator is pickled, cloned "
            "or copied outside of these blocks: pass ledger= to the estimator, or make it inside its block"
        )
    return one


def is_open(item):
    """Tell whether a block of a ledger, for whichever users, is open anywhere in this process."""
    return any(getattr(item, "uuid", item) == getattr(own, "uuid", own) for own in _blocks.values())


def enter(item):
    """Open a block."""
    _blocks.enter(item)


def leave(item):
    """Close the innermost block of a ledger."""
    _blocks.leave(_blocks.token_of(item))


def refuse_to_slip_through():
    """Raise LedgerError where a block is open in this process which this place cannot see."""
    if _blocks.are_open:
        raise LedgerError(
            "a `with ledger:` block is open in another thread or task of this process, and this release would not be "
            "charged: pass ledger=, or make or clone the estimator inside the block"
        )


@contextmanager
def audited():
    """Open a block in which code is called many times to be audited: no ledger that was there before pays for that."""
    token = _audits.enter(set())
    try:
        yield
    finally:
        _audits.leave(token)


def note_made(uuid):
    """Note a ledger that is made here: within an audit it pays for what is audited."""
    for made in _audits.seen():
        made.add(uuid)


def refuse_in_audits(uuid):
    """Raise LedgerError for a charge to a ledger that an audit around this place would spend."""
    for made in _audits.seen() if _audits.are_open else ():
        if uuid not in made:
            raise LedgerError(CHARGED_BY_AUDIT)


def enter_reservation(handle):
    """Open the block of a reservation, on which all charges to its ledger in this context draw; returns its token."""
    return _reservations.enter(handle)


def leave_reservation(token):
    """Close the block of a reservation."""
    _reservations.leave(token)


def reservation_of(ledger):
    """Return the handle of the innermost reservation around this place of a ledger, for the same users, or None."""
    for handle in reversed(_reservations.seen()) if _reservations.are_open else ():
        if handle == ledger:
            return handle
    return None


@contextmanager
def unnoted():
    """Open a block in which nobody is shown predictions, and in which their number must stay secret."""
    token = _unnoted.enter(True)
    try:
        yield
    finally:
        _unnoted.leave(token)


def is_noted():
    """Tell whether predictions and scores at this place are entered in ledgers."""
    return not _unnoted.seen()
