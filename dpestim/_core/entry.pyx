"""A release that is entered in a ledger again: the one before it had the same guarantee, estimator and columns.

What such an entry costs beside SQLite is how much code and data are touched after the disk was waited for, when no cache
holds them. So nothing of Python's runs between the statements, and what is known of the file, of the account and of the
entry lies in one object. Whatever is out of the ordinary is left to `dpestim.privacy.entering`, and nothing is entered.
"""

from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef enum:
    MOST = 0x7fffffff  # of numerators and denominators: sums of two products fit 64 bits
    MORE = 256  # bytes of an entry's text besides what is the same each time and the hash before it

cdef extern from "entry.h" nogil:
    void dpestim_sha256(const char *text, size_t n, char *digits) noexcept
    int dpestim_time(int64_t since, int64_t nanoseconds, char *text) noexcept
    int dpestim_clock(int64_t *seconds, int64_t *nanoseconds) noexcept
    int dpestim_facts(const char *path, uint64_t *facts) noexcept
    char *dpestim_decimal(char *to, uint64_t number) noexcept
    int dpestim_is_there(const char *path) noexcept
    int dpestim_process() noexcept


def sha256(bytes text not None):
    """Return the hexadecimal digits of a text's SHA-256."""
    cdef char digits[64]
    dpestim_sha256(text, <size_t>len(text), digits)
    return PyUnicode_DecodeASCII(digits, 64, NULL)


def time_text(int64_t seconds, int64_t nanoseconds):
    """Return a time since 1970 as an entry has it, or None where it is not of the years 2000 to 2999."""
    cdef char text[32]
    return PyUnicode_DecodeASCII(text, 32, NULL) if dpestim_time(seconds, nanoseconds, text) else None


cdef uint64_t _common(uint64_t a, uint64_t b):
    while b:
        a, b = b, a % b
    return a


cdef inline char *_put(char *to, const char *text, size_t n) noexcept:
    memcpy(to, text, n)
    return to + n


cdef class Repeats:
    """What holds in a file, and in it enters the release that was entered last once more.

    The file must be one in which epsilons add up and nothing has a label. All is looked at under the lock of the path.
    """

    cdef object file, connection, execute, lock, connections, longest, key, blocks, failed
    cdef object name, uuid, durability, guarantee, estimator, columns, version, insert
    cdef tuple fields, rest
    cdef bytes path, log, middle, end
    cdef uint64_t above, below, more, under, most, least, device, inode
    cdef int process
    cdef bint keeps
    cdef char *text
    cdef char last[64]
    #: How many entries there are.
    cdef readonly int64_t length

    def __cinit__(self):
        self.text = NULL

    def __init__(self, file, store, handle, paths, blocks, release, state, row, totals):
        """Take over what was read and written.

        file: of `dpestim.privacy.store`; store: (lock of the path, its connections, longest ledgers, what ends a
        transaction that fails); handle: its path, UUID and durability; paths: of the file and of a log beside it, bytes;
        blocks: while one is open, nothing is entered; release: guarantee, estimator, whether the number of rows is kept,
        columns; state: version, length, head; row: the statement, what stands before the number of rows in a row, what
        stands behind the sum of epsilons, and both as they are hashed; totals: epsilons as pairs of ints, spent, of the release, and of the budget, (1, 0) if infinite.
        """
        self.file, self.connection, self.execute = file, file.connection, file.execute
        self.process, self.device, self.inode = file.key[:3]
        self.lock, self.connections, self.longest, self.failed = store
        self.name, self.uuid, self.durability = handle
        self.key = self.name, self.uuid
        (self.path, self.log), self.blocks = paths, blocks
        self.guarantee, self.estimator, self.keeps, self.columns = release
        cdef bytes head
        self.version, self.length, head = state
        self.insert, self.fields, self.rest, self.middle, self.end = row
        (self.above, self.below), (self.more, self.under), (self.most, self.least) = totals
        if len(head) != 64 or max(*totals[0], *totals[1], *totals[2]) > MOST:
            raise ValueError("numbers are of 31 bits, and hashes of 64 digits")
        memcpy(self.last, <const char *>head, 64)
        self.text = <char *>malloc(len(self.middle) + len(self.end) + MORE)
        if self.text == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.text)

    @property
    def head(self):
        """The hash of the last entry."""
        return PyUnicode_DecodeASCII(self.last, 64, NULL)

    @property
    def total(self):
        """The sum of epsilons: numerator and denominator."""
        return self.above, self.below

    def enter(self, handle, guarantee, estimator, n_rows, columns):
        """Enter a release and return its number; 0: nothing was done, because it is another one, or refused."""
        cdef int64_t rows = -1
        if handle.users or handle._reservations or not self._is_like(guarantee):
            return 0
        if handle.uuid != self.uuid or handle.durability != self.durability:
            return 0
        if type(estimator) is not str or estimator != self.estimator:
            return 0
        if columns is not self.columns and not self._are_same(columns):
            return 0
        if n_rows is not None:
            if type(n_rows) is not int or not 0 <= n_rows <= MOST:
                return 0
            if self.keeps:
                rows = n_rows
        for block in self.blocks:
            if block.are_open:
                return 0
        self.lock.acquire()
        try:
            return self._entered(rows) if self._is_current() else 0
        finally:
            self.lock.release()

    # ---------------------------------------------------------------- inside

    cdef bint _is_like(self, guarantee) except -1:
        """Whether a guarantee is entered as the one before was."""
        mine = self.guarantee
        if guarantee is mine:
            return True
        if type(guarantee) is not type(mine) or guarantee.neighbours is not mine.neighbours:
            return False
        if guarantee.seeded is not mine.seeded or guarantee.model != mine.model:
            return False
        if mine.relaxation is not None or guarantee.relaxation is not None or guarantee.delta:
            return False
        a, b = guarantee.epsilon, mine.epsilon
        return a is b or (type(a) is type(b) and a.numerator == b.numerator and a.denominator == b.denominator)

    cdef bint _are_same(self, columns) except -1:
        if type(columns) is not tuple or len(columns) != len(self.columns):
            return False
        for mine, other in zip(self.columns, columns):
            if type(other) is not str or mine != other:
                return False
        return True

    cdef bint _is_current(self) except -1:
        """Whether the connection is still that of the file at the path, which has no log and has not become shorter."""
        cdef uint64_t facts[3]
        if self.connections.get(self.name) is not self.file or self.file.repeats is not self:
            return False
        if dpestim_process() != self.process or not dpestim_facts(self.path, facts):
            return False
        if facts[0] != self.device or facts[1] != self.inode or facts[2] < <uint64_t>self.file.size or dpestim_is_there(self.log):
            return False
        return not self.connection.in_transaction

    cdef _entered(self, int64_t rows):
        cdef uint64_t total, whole
        cdef uint64_t facts[3]
        cdef char digest[64]
        cdef int64_t number
        try:
            self.execute("BEGIN IMMEDIATE")
            row = None
            # (what is collected before the lock is taken may charge by another way: then this object is not the file's)
            if self.file.repeats is self and self.execute("PRAGMA data_version").fetchone()[0] == self.version:
                row = self._row(rows, &total, &whole, digest)
            if row is None:
                self.execute("ROLLBACK")
                return 0
            number = self.length + 1
            self.execute(self.insert, row)
            self.execute(f"PRAGMA user_version = {number}")
            self.execute("COMMIT")
        except BaseException as error:
            self.failed(self.name, self.file, error)
            raise
        self.length, self.above, self.below = number, total, whole
        memcpy(self.last, digest, 64)
        if self.longest.get(self.key, 0) < number:
            self.longest[self.key] = number
        if dpestim_facts(self.path, facts):
            self.file.size = facts[2]
        else:  # gone already: the next one to charge will say so
            self.file.known = None
        return number

    cdef _row(self, int64_t rows, uint64_t *total, uint64_t *whole, char *digest):
        """Return the row, or None where too little is left, numbers are large, or the clock is."""
        cdef uint64_t sum = self.above * self.under + self.more * self.below, of = self.below * self.under
        cdef uint64_t common = _common(sum, of)
        cdef int64_t seconds, nanoseconds
        cdef char now[32]
        cdef char amount[24]
        total[0], whole[0] = sum // common, of // common
        if total[0] > MOST or whole[0] > MOST or total[0] * self.least > self.most * whole[0]:
            return None
        if self.length >= MOST or not dpestim_clock(&seconds, &nanoseconds):
            return None
        if not dpestim_time(seconds, nanoseconds, now):
            return None
        cdef char *end = dpestim_decimal(amount, total[0])
        if whole[0] != 1:
            end[0] = b"/"
            end = dpestim_decimal(end + 1, whole[0])
        # the text of an entry, as `dpestim.privacy.account.link` has it
        cdef char *to = _put(self.text, b'["', 2)
        to = _put(to, self.last, 64)
        to = dpestim_decimal(_put(to, b'", ', 3), <uint64_t>self.length + 1)
        to = _put(_put(to, b', "', 3), now, 32)
        to = _put(_put(to, b'", ', 3), <const char *>self.middle, <size_t>len(self.middle))
        to = _put(to, b", ", 2)
        to = _put(to, b"null", 4) if rows < 0 else dpestim_decimal(to, <uint64_t>rows)
        to = _put(_put(to, b', "', 3), amount, <size_t>(end - amount))
        to = _put(_put(to, b'", ', 3), <const char *>self.end, <size_t>len(self.end))
        to[0] = b"]"
        dpestim_sha256(self.text, <size_t>(to + 1 - self.text), digest)
        return (self.length + 1, PyUnicode_DecodeASCII(now, 32, NULL), *self.fields, None if rows < 0 else rows,
                PyUnicode_DecodeASCII(amount, end - amount, NULL), *self.rest, PyUnicode_DecodeASCII(digest, 64, NULL))
