"""Releases that are entered again, by a kernel: the one before had the same guarantee, estimator and columns.

It makes the row and the hash that `entering.Entering` makes, and refuses nothing: it leaves to that what is not plain.
"""

import os
from fractions import Fraction

from dpestim.privacy import account, ambient
from dpestim.privacy.exact import exceeds
from dpestim.privacy.neighbours import Neighbours
from dpestim.privacy.store import shared

#: From here on numerators and denominators are not the kernel's.
_LARGE = 1 << 31


def note(file, ledger, entering, release, longest):
    """Keep what a handle has entered; from the second time on, a kernel that enters it again.

    Parameters
    ----------
    file : dpestim.privacy.store._File
    ledger : Ledger
    entering : dpestim.privacy.entering.Entering
    release : tuple
        guarantee, estimator, n_rows and columns, as they were passed.
    longest : dict
        (path, UUID) -> the most entries that this process has seen.
    """
    row, _ = entering.written
    before, file.last = file.last, row[1 : -len(entering.state.layout.after) - 1]  # (to the number of rows)
    if before == file.last and _is_plain(entering, *release):
        file.repeats = _repeats(file, ledger, entering, release, longest)


def _is_plain(entering, guarantee, estimator, n_rows, columns):
    """Tell whether the kernel can see by what is passed that a release is entered as this one was."""
    return (not entering.reservations and type(estimator) is str and type(columns) is tuple
            and all(type(name) is str for name in columns))


def _repeats(file, ledger, entering, release, longest):
    """Return the kernel's object, or None where amounts are not its."""
    state, (row, charged) = entering.state, entering.written
    layout, budget = state.layout, state.budget[0]
    amounts = [amount.as_integer_ratio() if isinstance(amount, Fraction) else (1, 0)
               for amount in (state.everybody[0], charged[0], budget)]
    if (layout.way.name != "basic" or any(state.label) or charged[1] or not charged[0] or exceeds(charged[0], _LARGE)
            or isinstance(state.everybody[0], float) or max(map(max, amounts)) >= _LARGE):
        return None
    from dpestim._core.entry import Repeats

    first = len(row) - len(layout.after)  # where the sum of epsilons stands, behind the number of rows
    rest = row[first + 1 :]
    guarantee, estimator, _, columns = release
    keeps = Neighbours.ADD_REMOVE not in (state.relation, guarantee.neighbours)
    lock, connections, failed = shared(ledger.path)
    return Repeats(
        file, (lock, connections, longest, failed), (ledger.path, ledger.uuid, ledger.durability),
        (os.fsencode(ledger.path), os.fsencode(f"{ledger.path}-wal")), ambient.asked_by_entries,
        (guarantee, estimator, keeps, columns),
        (state.version, state.length, state.head.encode()),
        (layout.insert, file.last, rest, account.hashed(file.last).encode(), account.hashed(rest).encode()), amounts)
