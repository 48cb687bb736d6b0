"""What one transaction adds to the file of a ledger: releases, and reservations of those that will follow.

A reservation is an entry that counts as a release does. A release that draws on it is entered in one transaction with
an entry that takes the same amount back; so what is left of a reservation, which may be given back, is never more than
the part for which nothing was drawn. All of this is in the file and nothing in a process (the proof: ``ledger.md``).
"""

import contextlib
import os
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Integral

from dpestim.exceptions import BudgetExceededError
from dpestim.privacy import account, ambient
from dpestim.privacy.account import GIVEN_BACK, RELEASE, RESERVATION, add, down, less, names_of, number, signed, text
from dpestim.privacy.exact import ZERO
from dpestim.privacy.guarantee import PrivacyGuarantee
from dpestim.privacy.neighbours import Neighbours
from dpestim.privacy.store import shared
from dpestim.privacy.text import bound

#: What costs nothing, and entries that are no releases.
_NOTHING = PrivacyGuarantee(0, model="central", neighbours=Neighbours.SUBSTITUTION)
#: How an entry says whether noise had a seed.
_SEEDED = {True: "yes", False: "no", None: "unknown"}
#: (UUID of a ledger, number) of reservations of which nothing is left, as was committed; nothing is ever added to one.
_empty = set()


class Entering:
    """What a handle sees in one transaction, and adds.

    Parameters
    ----------
    file : dpestim.privacy.store._File
    state : State
        What holds in it.
    path : str
    users : str
        The label of the handle.
    reservations : tuple of int
        Numbers of their entries, for the same users: what is paid for is taken from the first of them that has some.
    """

    def __init__(self, file, state, path, users, reservations=()):
        self.file, self.state, self.path, self.users, self.reservations = file, state, path, users, reservations

    def enter(self, kind, guarantee=_NOTHING, estimator="", n_rows=None, columns=()):
        """Enter a release, or what costs nothing; return its number, or raise BudgetExceededError."""
        charged = self.state.layout.nothing if kind != RELEASE else account.costs(guarantee, self.state)
        parts, beside = self._covered(charged) if self.reservations else ((), charged)
        mine = self._refuse_overdraft(beside, guarantee)
        for one, part in parts:
            self._take_back(one, part)
        public = Neighbours.ADD_REMOVE not in (self.state.relation, guarantee.neighbours)
        self._append(kind, charged, guarantee, estimator, columns, n_rows if public else None, None if parts else mine)
        return self.state.length

    def foresee(self, guarantees):
        """Return what releases cost together, or raise what `enter` would raise for them in turn."""
        guarantees = list(guarantees)
        if not all(isinstance(guarantee, PrivacyGuarantee) for guarantee in guarantees):
            raise ValueError("guarantees must be a list of dpestim.privacy.PrivacyGuarantee")
        total, several = self.state.layout.nothing, False
        for guarantee in guarantees:
            total = tuple(map(add, total, account.costs(guarantee, self.state)))
            self._refuse_overdraft(self._covered(total)[1], guarantee, several)
            several = True
        return total

    def reserve(self, guarantees, estimator):
        """Enter a reservation for releases; returns its number, None where nothing of theirs could be refused."""
        total = self.foresee(guarantees)
        held = tuple(Fraction(0) if isinstance(most, float) else cost for cost, most in zip(total, self.state.budget))
        if not any(held):
            return None
        for one, part in self._covered(held)[0]:
            self._take_back(one, part)
        self._append(RESERVATION, held, _NOTHING, estimator, ())
        return self.state.length

    def give_back(self, one):
        """Give back what is left of a reservation, or raise ValueError where there is none of this number."""
        # an int alone: SQLite takes 1.0 and "1.0" for 1, and what was given back to "entry 1" is not found by them
        known = isinstance(one, Integral) and not isinstance(one, bool) and 0 < one <= self.state.length
        found = self.file.execute(self.state.layout.reservation, (int(one),)).fetchone() if known else None
        if found is None:
            raise ValueError("number must be an int, the number of the entry of a reservation")
        one, self.users = int(one), found[0]
        self._take_back(one, tuple(map(down, self._left(one))))

    # ---------------------------------------------------------------- inside

    def _left(self, one):
        """Return what is left of a reservation; nothing of another's. Asked before anything of it is taken back."""
        layout, key = self.state.layout, (self.state.terms["uuid"], one)
        if key in _empty:
            return layout.nothing
        with account.suspicious(self.path):
            found = self.file.execute(layout.reservation, (one,)).fetchone()
            if found is None or found[0] != self.users:
                return layout.nothing
            left = list(map(number, found[2:]))
            for row in self.file.execute(layout.given_back, (one, names_of(one))):
                left = [a + signed(GIVEN_BACK, b) for a, b in zip(left, row)]
        left = tuple(max(amount, Fraction(0)) for amount in left)
        if not any(left):  # (what others gave back is read once, and not for each charge)
            _empty.add(key)
        return left

    def _covered(self, charged):
        """Return ([(number of a reservation, what it has of an amount)], what is to be paid beside them)."""
        parts = []
        for one in self.reservations if any(charged) else ():
            part = tuple(down(min(a, b)) for a, b in zip(charged, self._left(one)))
            if any(part):
                parts.append((one, part))
                charged = tuple(map(less, charged, part))
        return parts, charged

    def _take_back(self, one, part):
        """Enter that a part of a reservation is not reserved any more."""
        if any(part):
            estimator = self.file.execute(self.state.layout.reservation, (one,)).fetchone()[1]
            self._append(GIVEN_BACK, tuple(-amount for amount in part), _NOTHING, estimator, (f"entry {one}",))

    def _append(self, kind, charged, guarantee, estimator, columns, n_rows=None, mine=None):
        """Write an entry and what holds after it; mine: what these users will have spent, where that is known."""
        state, file = self.state, self.file
        layout, everybody, label = state.layout, state.everybody, state.label
        if mine is None:
            mine = tuple(map(add, self._totals()[0], charged))
        if not self.users:
            everybody = mine
        else:
            file.execute(layout.insert_total, (self.users, *map(text, mine)))
            label = tuple(map(max, label, mine)) if kind != GIVEN_BACK else self._most_of_any_label()
        after, epsilon, delta = state.texts(everybody, label), text(guarantee.epsilon), text(guarantee.delta)
        now = datetime.now(UTC)
        row = (
            now.isoformat() if now.microsecond else now.isoformat(timespec="microseconds"), kind, str(estimator),
            account.names(tuple(map(str, columns))), self.users, epsilon, delta,
            *[epsilon if a is guarantee.epsilon else delta if a is guarantee.delta else text(a) for a in charged],
            guarantee.model, guarantee.neighbours.value, _SEEDED[guarantee.seeded],
            None if n_rows is None else int(n_rows), *after,
        )
        length = state.length + 1
        head = account.link(state.head, length, row)
        file.execute(layout.insert, (length, *row, head))
        file.execute(f"PRAGMA user_version = {length}")
        self.state = state.after(length, head, everybody, label, after)

    def _totals(self):
        """Return (what these users have spent, what is added to it)."""
        state = self.state
        if not self.users:
            return state.everybody, state.label
        found = self.file.execute(state.layout.total, (self.users,)).fetchone()
        with account.suspicious(self.path):
            return state.layout.nothing if found is None else tuple(map(number, found)), state.everybody

    def _most_of_any_label(self):
        with account.suspicious(self.path):
            rows = self.file.execute(self.state.layout.all_totals).fetchall()
            return tuple(max(map(number, amounts)) for amounts in zip(*rows))

    def _refuse_overdraft(self, charged, guarantee, several=False):
        """Raise BudgetExceededError where an amount is more than is left; returns what these users will have spent."""
        state, (mine, beside) = self.state, self._totals()
        way, budget = state.layout.way, state.budget
        after = tuple(map(add, mine, charged))
        k = way.short(after if beside == state.layout.nothing else tuple(map(add, after, beside)), budget, charged)
        if k is None:
            return after
        needed, notes, spent = charged[k], guarantee.notes, tuple(map(add, mine, beside))
        if guarantee.relaxation is not None and isinstance(needed, float):
            notes = (f"Under the relaxation {guarantee.relaxation} the epsilon is {bound(guarantee.relaxed_epsilon)}: "
                     "open a ledger with this relaxation= to pay for the release.",
                     *notes)
        people = f" for {self.users!r}" if self.users else ""
        raise BudgetExceededError(
            f"this release{(', with those before it,' if several else '')} needs {way.labels[k]} = {bound(needed)} and "
            f"{bound(less(budget[k], spent[k]), down=True)} of {bound(budget[k])} is left{people}: "
            f"Ledger.open({self.path!r}).report() lists the releases so far."
            + ("" if isinstance(needed, float) else way.advice(spent, budget))
            + (" To spend a delta, open the ledger with one: Ledger(epsilon, "
               "delta=1e-6)." if way.units[k] == "delta" and not budget[k] else "")
            + (f" {' '.join(notes)}" if notes and isinstance(needed, float) else "")
            + " (An estimator that was made or used in `with ledger:` stays bound to that ledger: call "
              "`estimator.set_params(ledger=None)` or `ledger.detach(estimator)` to unbind it.)"
        )


def plain_entries(file, path, longest):
    """Return what enters plain releases as `Entering` does, in half the time; False where nothing does."""
    state = file.known
    if state.layout.way.name != "basic" or any(state.label) or os.name == "nt":  # (where files have other numbers)
        return False
    try:
        from dpestim._core.entry import PlainEntries

        return PlainEntries(file, (path, os.fsencode(path), os.fsencode(f"{path}-wal")), shared(path), longest,
                            ambient.asked_by_entries, PrivacyGuarantee, Neighbours, ZERO)
    # (devices have negative numbers on some systems; a signal handler may charge in the middle of the kernel's import)
    except (ImportError, OverflowError, RuntimeError):
        return False


@contextlib.contextmanager
def reserved(ledger, guarantees, estimator):
    """Reserve what releases cost until the block ends; yield a handle that draws on it wherever it is used."""
    number, others = ledger._entered(lambda entering: (entering.reserve(guarantees, estimator), entering.reservations))
    numbers = others if number is None else (number, *others)
    handle = ledger._handle(ledger.path, ledger.uuid, ledger.users, ledger.durability, numbers)
    process, block = os.getpid(), ambient.enter_reservation(handle)
    try:
        yield handle
    finally:
        ambient.leave_reservation(block)
        if number is not None and os.getpid() == process:  # (a forked child ends nothing of its parent's)
            ledger.give_back(number)
