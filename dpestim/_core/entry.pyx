"""Plain releases are entered in a ledger: pure ones of everybody, where epsilons add up; what is not plain is left.

What an entry costs beside SQLite is how much code and data are touched after the disk was waited for, when no cache
holds them. So what is known of the file and of the account lies in one object, and little of Python's runs between the
statements. Whatever is out of the ordinary is left to `dpestim.privacy.entering`, and nothing is entered.
"""

import hashlib
import os
import sys
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as quoted
from time import time_ns

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    MOST = 0x7fffffff  # of numerators and denominators: sums of two products fit 64 bits

cdef extern from "Python.h":
    int PyGC_Disable() noexcept
    int PyGC_Enable() noexcept

cdef extern from "entry.h" nogil:
    int dpestim_facts(const char *path, uint64_t *facts) noexcept
    int dpestim_is_there(const char *path) noexcept
    int dpestim_process() noexcept

#: Of nothing: it is copied, and never changed.
cdef object SHA256 = hashlib.sha256()
#: Whether Python collects garbage inside of SQLite's calls, as it did before version 3.12.
cdef bint COLLECTS_INSIDE = sys.version_info < (3, 12)
#: How many entries are being made (one for each path, at most), and whether garbage was collected before the first.
cdef int n_inside = 0
cdef bint collected = False


cdef void _stop_collecting() noexcept:
    """Let no finalizer run until `_go_on_collecting`: one that charges would close the connection under SQLite's call."""
    global n_inside, collected
    if COLLECTS_INSIDE:  # (there one thread of Python's runs at a time)
        if not n_inside:
            collected = PyGC_Disable()
        n_inside += 1


cdef void _go_on_collecting() noexcept:
    global n_inside
    if COLLECTS_INSIDE:
        n_inside -= 1
        if collected and not n_inside:
            PyGC_Enable()


def _forget_threads():
    """Go on collecting in a forked child: the threads of its parent that were making entries are not there."""
    global n_inside
    if COLLECTS_INSIDE:
        if collected and n_inside:
            PyGC_Enable()
        n_inside = 0


if COLLECTS_INSIDE and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


cdef uint64_t _common(uint64_t a, uint64_t b):
    while b:
        a, b = b, a % b
    return a


cdef class PlainEntries:
    """What holds in a file, as one connection knows it, and enters plain releases there."""

    cdef object file, connection, execute, lock, connections, failed, longest, blocks, plain, zero, name, durability
    cdef object local, substitution, add_remove, uuid, relation, version, insert, key, after
    cdef bytes path, log
    cdef tuple names
    cdef str rest, relation_name, date
    cdef int64_t second
    cdef uint64_t above, below, most, least, device, inode
    cdef int process
    cdef bint holds
    #: How many entries there are; the hash of the last one; the sum of epsilons.
    cdef readonly int64_t length
    cdef readonly str head, total
    #: Whether the file's `known` is not what is known: something was entered since, or (no total) nothing is known.
    cdef readonly bint is_ahead

    def __init__(self, file, paths, shared, longest, blocks, plain, neighbours, zero):
        """Hold nothing yet.

        file: of `dpestim.privacy.store`; paths: its name, and as bytes, and that of a log beside it; shared: lock of the
        path, connections, what ends a transaction that fails; longest: (path, UUID) -> the most entries seen; blocks:
        while one is open, nothing is plain; plain: the class of guarantees; neighbours: that of relations; zero: no delta.
        """
        self.file, self.connection, self.execute = file, file.connection, file.execute
        self.process, self.device, self.inode, self.durability = file.key[:4]
        self.name, self.path, self.log = paths
        self.lock, self.connections, self.failed = shared
        self.longest, self.blocks, self.plain, self.zero = longest, blocks, plain, zero
        self.local, self.substitution, self.add_remove = neighbours.LOCAL, neighbours.SUBSTITUTION, neighbours.ADD_REMOVE
        self.relation, self.relation_name = file.known.relation, file.known.relation.value
        self.second = -1  # (a clock may start at 0)

    def lose(self):
        """Hold nothing, and note at once, whatever may interrupt the caller, that nothing is known."""
        self.holds, self.is_ahead, self.total = False, True, None

    def is_known(self):
        """Note that the file's `known` is what is known."""
        self.is_ahead = False

    def enter(self, handle, guarantee, estimator, n_rows, columns):
        """Enter a release and return its number; 0: nothing was done, because it is not plain, or refused."""
        # what others most often charge comes first, so that it costs next to nothing here
        if type(guarantee) is not self.plain or handle.users or handle._reservations:
            return 0
        local = guarantee.neighbours is self.local
        if guarantee.neighbours is not self.relation and not (local and self.relation is self.substitution):
            return 0
        if guarantee.relaxation is not None or (guarantee.delta is not self.zero and guarantee.delta):
            return 0
        for block in self.blocks:
            if block.are_open:
                return 0
        if type(estimator) is not str or type(guarantee.model) is not str or handle.durability != self.durability:
            return 0
        if type(columns) is not tuple and type(columns) is not list:
            return 0
        if self.relation is self.add_remove:
            n_rows = None
        elif n_rows is not None and type(n_rows) is not int:
            return 0
        epsilon, seeded = guarantee.epsilon, guarantee.seeded
        if isinstance(epsilon, float) or (seeded is not False and seeded is not True and seeded is not None):
            return 0
        # (read once, as another thread may put those of its release there)
        cdef tuple names = self.names
        if names is None or names[0] is not columns or names[1] is not estimator:
            names = self._named(estimator, columns)
            if names is None:
                return 0
        cdef str model = guarantee.model
        # (Python asks for signals, and may collect garbage, while it writes an int: in no transaction)
        cdef str rows = "null" if n_rows is None else str(n_rows)
        more, under = epsilon.as_integer_ratio()
        if more > MOST or under > MOST:
            return 0
        self.lock.acquire()
        _stop_collecting()
        try:
            if not self._holds(handle.uuid) or not self._is_current():  # (of these only the first runs Python)
                return 0
            return self._entered(names, more, under, model, "local" if local else self.relation_name,
                                 "yes" if seeded else "no" if seeded is False else "unknown", n_rows, rows)
        finally:
            _go_on_collecting()
            self.lock.release()

    # ---------------------------------------------------------------- inside

    cdef tuple _named(self, str estimator, columns):
        """Return (columns, estimator, columns as text, both as JSON) and keep it; None where a column is no string."""
        cdef list parts = []
        for column in columns:
            if type(column) is not str:
                return None
            parts.append(quoted(column))
        cdef str what = "[" + ", ".join(parts) + "]"
        names = columns, estimator, what, f"{quoted(estimator)}, {quoted(what)}"
        if type(columns) is tuple:  # (a list may hold others by then)
            self.names = names
        return names

    cdef bint _holds(self, uuid) except -1:
        """Whether all is known of this ledger, in numbers that are the kernel's."""
        if self.holds:
            return uuid == self.uuid
        state = self.file.known
        if state is None or state.relation is not self.relation:
            return False
        spent, budget = state.everybody[0], state.budget[0]
        above, below = (1, 0) if isinstance(spent, float) else spent.as_integer_ratio()
        most, least = (1, 0) if isinstance(budget, float) else budget.as_integer_ratio()
        if any(state.label) or not below or max(above, below, most, least) > MOST:
            self.file.plain = False  # (labels stay, and so do large numbers, but for exceptions: it is not asked again)
            return False
        total, *after = state.texts(state.everybody, state.label)
        rest = ", ".join([f'"{amount}"' for amount in after])
        # a handler that ran in one of these functions of Python's may have charged: then what was read is not the last
        if self.file.known is not state or self.holds:
            return False
        self.above, self.below, self.most, self.least = above, below, most, least
        self.uuid, self.version, self.length, self.head = state.terms["uuid"], state.version, state.length, state.head
        self.insert, self.total, self.after, self.rest = state.layout.insert, total, after, rest
        self.key = self.name, self.uuid
        self.holds = True
        return uuid == self.uuid

    cdef bint _is_current(self) except -1:
        """Whether the connection is still that of the file at the path, which has no log and has not become shorter."""
        cdef uint64_t facts[3]
        if self.connections.get(self.name) is not self.file or self.file.plain is not self:
            return False
        if dpestim_process() != self.process or not dpestim_facts(self.path, facts) or dpestim_is_there(self.log):
            return False
        if facts[0] != self.device or facts[1] != self.inode or facts[2] < <uint64_t>self.file.size:
            return False
        if len(self.connections) > 1:  # the one used last is closed last
            self.connections[self.name] = self.connections.pop(self.name)
        return not self.connection.in_transaction

    cdef _entered(self, tuple names, uint64_t more, uint64_t under, str model, str relation, str seeded, n_rows, str rows):
        cdef uint64_t facts[3]
        try:
            self.execute("BEGIN IMMEDIATE")
            # (what is collected before the lock is taken may charge by another way: then nothing is held)
            if (not self.holds or self.execute("PRAGMA data_version").fetchone()[0] != self.version
                    or not self._write(names, more, under, model, relation, seeded, n_rows, rows)):
                self.execute("ROLLBACK")
                return 0
            self.execute("COMMIT")
        except BaseException as error:
            self.lose()
            self.failed(self.name, self.file, error)
            raise
        number = self.length
        if self.longest.get(self.key, 0) < number:
            self.longest[self.key] = number
        if dpestim_facts(self.path, facts):
            self.file.size = facts[2]
        else:  # gone already: the next one to charge will say so
            self.file.known = None
        return number

    cdef bint _write(self, tuple names, uint64_t more, uint64_t under, str model, str relation, str seeded, n_rows,
                     str rows) except -1:
        """Write an entry, and hold what is after it; False where too little is left or a number is large."""
        cdef uint64_t above = self.above * under + more * self.below, below = self.below * under
        cdef uint64_t common = _common(above, below)
        above, below = above // common, below // common
        if above > MOST or below > MOST or above * self.least > self.most * below or self.length >= MOST:
            return False
        cdef int64_t number = self.length + 1
        cdef str one = f"{more}/{under}" if under != 1 else f"{more}"
        cdef str total = f"{above}/{below}" if below != 1 else f"{above}"
        cdef int64_t now = time_ns()
        if now < 0:  # (C's division is towards 0)
            return False
        if now // 1_000_000_000 != self.second:  # (a call that writes dates, once a second)
            self.date = datetime.fromtimestamp(now // 1_000_000_000, UTC).isoformat()[:19]
            self.second = now // 1_000_000_000
        cdef str time = f"{self.date}.{now // 1000 % 1_000_000:06d}+00:00"
        # as `dpestim.privacy.account.link` has it
        cdef str text = (f'["{self.head}", {number}, "{time}", "release", {names[3]}, "", '
                         f'"{one}", "0", "{one}", "0", "{model}", "{relation}", "{seeded}", '
                         f'{rows}, "{total}", {self.rest}]')
        found = SHA256.copy()
        found.update(text.encode())
        cdef str head = found.hexdigest()
        self.execute(self.insert, (number, time, "release", names[1], names[2], "", one, "0", one, "0", model, relation,
                                   seeded, n_rows, total, *self.after, head))
        self.execute(f"PRAGMA user_version = {number}")
        self.length, self.above, self.below, self.head, self.total = number, above, below, head, total
        self.is_ahead = True
        return True
