"""The file of a ledger: made whole or not at all, opened once a process, and never carried across a fork."""

import atexit
import contextlib
import math
import os
import re
import secrets
import stat
import tempfile
import threading
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on POSIX: drafts of killed processes stay
    fcntl = None

from dpestim.exceptions import LedgerError

#: What the first page of a ledger's file says, besides that it is SQLite's.
_APPLICATION = 0x64706573
#: Bytes of a page: an entry is written in whole pages, twice, and takes about half of one of these. (As SQLite does by
#: default, this relies on a disk that loses power to leave alone what lies beside the bytes that it writes. Where one
#: does not, entries beside the last ones may be damaged, which whoever opens the file notices.)
_PAGE = 1024
#: Seconds that a process waits for others that are charging.
_PATIENCE = 60

#: Names of temporary ledgers: those that other processes made, and all, with the number of the process.
_OF_OTHERS = r"dpestim-ledger-(?!{}-)\d+-[0-9a-f]{{16}}\.sqlite"
_TEMPORARY = r"dpestim-ledger-(\d+)-[0-9a-f]{16}\.sqlite"
#: Seconds for which a temporary ledger of a dead process was not charged before it is removed.
_UNUSED = 3600

#: Open connections that a process keeps; those used longest ago are closed first.
_MOST_CONNECTIONS = 32

#: held for moments only: the dictionaries below
_lock = threading.RLock()
#: path -> lock of its transactions
_locks = {}
#: path -> `_File`; oldest use first
_connections = {}
#: connections of the parent, kept so that a forked child does not close what is not its own
_inherited = []
#: paths in the middle of whose transactions this process was forked: it has no locks there, and SQLite believes in them
_cut = set()
#: folder of temporary ledgers -> when it is looked through again for those of dead processes
_next_sweep = {}
#: paths of the ledgers that this process has used
_known = set()


def remember(path):
    """Note that a ledger was here: another one in its place would forget what was spent."""
    _known.add(path)


def create(path, schema, insert, row):
    """Make a new file, whole or not at all, and never in place of another."""
    import sqlite3

    if path in _known:
        raise LedgerError(f"{path} was a ledger of this process and was deleted: restore the file, because a new "
                          "ledger would not count earlier releases")
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"the folder of {path} does not exist: create the folder first")
    with _lock_of(path):
        draft = descriptor = None
        try:
            draft, descriptor = _draft(path)
            connection = sqlite3.connect(draft, isolation_level=None)
            connection.executescript(f"PRAGMA page_size={_PAGE}; PRAGMA application_id={_APPLICATION}; BEGIN; {schema}")
            connection.execute(insert, row)
            connection.execute("COMMIT")
            connection.close()
            with contextlib.suppress(FileExistsError):  # somebody was faster: theirs is joined
                os.link(draft, path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"{path} cannot be made: {error}") from error
        finally:
            if draft is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft)
                os.close(descriptor)


def _draft(path):
    """Return a new empty file's path, and a descriptor which, while it is open, shows that somebody works on it."""
    while True:
        draft = f"{path}.{secrets.token_hex(8)}.new"
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            _flock(descriptor)
            swept = not os.fstat(descriptor).st_nlink  # before it was locked
        except BlockingIOError:  # somebody sweeps it at this moment
            swept = True
        except OSError:  # a file system without such locks: then `sweep` gets none either
            swept = False
        if not swept:
            return draft, descriptor
        os.close(descriptor)


def sweep(path, names=None):
    """Remove the drafts that died with their process, of the ledger at this path or, in its folder, of those `names`.

    A draft belongs to somebody as long as it is locked; the kernel ends the lock with the process.
    """
    folder, name = os.path.split(path)
    pattern = re.compile(f"(?:{names or re.escape(name)})\\.[0-9a-f]{{16}}\\.new")
    with _lock_of(path), contextlib.suppress(OSError):
        for found in filter(pattern.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):  # locked, gone already, or not ours
                _remove_if_left(os.path.join(folder, found))


def temporary_path():
    """Return a new path for a temporary ledger; once an hour what dead processes left in its folder is removed."""
    path = os.path.realpath(Path(tempfile.gettempdir()) / f"dpestim-ledger-{os.getpid()}-{secrets.token_hex(8)}.sqlite")
    folder, now = os.path.dirname(path), time.monotonic()
    if now > _next_sweep.get(folder, -math.inf):
        _next_sweep[folder] = now + _UNUSED
        sweep(path, _OF_OTHERS.format(os.getpid()))
        _sweep_temporary(folder)
    return path


def _sweep_temporary(folder):
    """Remove temporary ledgers of this user whose process is dead, and which nobody charged for an hour.

    An hour, as another process may hold a handle that was passed to it, and charges: that makes the file young again.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            found = re.fullmatch(_TEMPORARY, name)
            if found is None or _is_alive(int(found[1])):
                continue
            with contextlib.suppress(OSError):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                mine = stat.S_ISREG(status.st_mode) and status.st_uid == getattr(os, "getuid", lambda: -1)()
                if mine and status.st_mtime < time.time() - _UNUSED:
                    os.unlink(path)
                    os.unlink(f"{path}-journal")


def _is_alive(process):
    """Tell whether there is a process of this number; where it cannot be known, say so."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _remove_if_left(draft):
    status = os.lstat(draft)
    if status.st_nlink > 1:  # the ledger itself by a second name: closing it here would end this process's locks on it
        os.unlink(draft)
    elif stat.S_ISREG(status.st_mode):
        descriptor = os.open(draft, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            _flock(descriptor)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{draft}-journal")
            os.unlink(draft)
        finally:
            os.close(descriptor)


def _flock(descriptor):
    """Lock a file for as long as the descriptor is open, or raise OSError."""
    if fcntl is None:
        raise OSError("no such locks here")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_of(path):
    """Return the lock of a path in this process."""
    lock = _locks.get(path)
    if lock is None:
        with _lock:
            lock = _locks.setdefault(path, threading.RLock())
    return lock


class _File:
    """A connection of this process to a file, and what it remembers of it."""

    __slots__ = ("_known", "connection", "execute", "key", "plain", "size")

    def __init__(self, connection, key, size):
        self.connection, self.execute = connection, connection.cursor().execute
        self._known = None
        self.key = key  # what makes another connection necessary where it differs
        self.size = size  # when it was last used
        self.plain = None  # for the caller: what enters plain releases (`dpestim._core.entry`), and holds what is known

    @property
    def known(self):
        """For the caller: what holds in the file; forgotten whenever a transaction fails."""
        plain = self.plain
        if plain and plain.is_ahead:
            self._known = plain.total and self._known.plainly(plain)
            plain.is_known()
        return self._known

    @known.setter
    def known(self, known):
        if known is not self._known or known is None:
            plain = self.plain
            if plain:  # (an interrupt between these steps leaves nothing known)
                plain.lose()
            self._known = known
            if plain:
                plain.is_known()


def transacted(path, durability, write, use, *arguments):
    """Return ``use(file, *arguments)``, `file` a `_File`, done in one transaction, which an exception rolls back.

    What SQLite raises becomes LedgerError. (A call and no block of ``with``: an interrupt may end a class's `__exit__`
    before its first step, and the lock would be held for good.)
    """
    with _locks.get(path) or _lock_of(path):
        file, done = None, False
        try:
            file = _connect(path, durability, write)
            # the last one could not be ended for an interrupt; or it goes on in this thread, and this is a signal
            # handler, or a block that is collected: what it does from now on must fail, all of it
            if file.connection.in_transaction:
                _disconnect(path)
                file = _connect(path, durability, write)
            file.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if write and _has_log(path):  # begun here, as another program had changed the mode: the next one has none
                _disconnect(path)
                file = _connect(path, durability, write)
                file.execute("BEGIN IMMEDIATE")
            found = use(file, *arguments)
            file.execute("COMMIT")
            done = True
            if write:
                try:
                    file.size = os.stat(path).st_size
                except OSError:  # gone already: the next one to charge will say so
                    file.known = None
            return found
        except Exception as error:
            _raise_as_ledger_error(error, path, file)
            raise
        finally:
            if file is not None and not done:
                _undo(path, file)


def failed(path, file, error):
    """Undo what was done in a transaction that an error ended, or raise what is said of an error of SQLite."""
    try:
        if isinstance(error, Exception):
            _raise_as_ledger_error(error, path, file)
    finally:
        _undo(path, file)


def _undo(path, file):
    file.known = None
    if _connections.get(path) is file and file.connection.in_transaction:
        file.execute("ROLLBACK")


def opened(path):
    """Return this process's connection to a file, which may be that of a file of before; None where there is none."""
    return _connections.get(path)


def shared(path):
    """Return what a transaction needs that is made elsewhere: the path's lock, connections, what ends a failed one."""
    return _lock_of(path), _connections, failed


def _raise_as_ledger_error(error, path, file):
    """Raise what is said of an error of SQLite; of others nothing."""
    import sqlite3

    if isinstance(error, sqlite3.OperationalError):
        if "locked" in str(error):
            raise LedgerError(f"{path} was locked by other processes for {_PATIENCE} s: try again") from error
        raise LedgerError(f"{path} cannot be used as a ledger: {error}") from error
    if isinstance(error, sqlite3.ProgrammingError):
        if file is None or _connections.get(path) is file:
            raise LedgerError(f"{path} cannot be used as a ledger: {error}") from error
        raise LedgerError(f"{path} was used by a signal handler or a finalizer during this operation, which was not "
                          "entered: try again") from error
    if isinstance(error, sqlite3.Error | UnicodeDecodeError):  # (SQLite's own words quote the damage)
        _disconnect(path)
        raise LedgerError(f"{path} is not a ledger, or is damaged ({error}): restore a backup") from error


def _connect(path, durability, write):
    """Return this process's connection to the file that is at the path now."""
    if path in _cut:
        raise LedgerError(f"{path} cannot be used here, because this process was forked in the middle of an operation "
                          "on it, by a signal handler or a finalizer: use it in another process")
    try:
        status = os.stat(path)
    except OSError:
        _disconnect(path)
        raise LedgerError(
            f"{path} is missing: restore the file, because a ledger that was moved or deleted cannot be charged. (An "
            "estimator that was made, cloned, pickled or used inside `with ledger:` stays bound to that ledger; "
            "set_params(ledger=...) binds it to another one.)"
        ) from None
    if _has_log(path):
        _disconnect(path)  # whoever closes such a file last ends the log; and the command below works if none is open
    if _has_log(path):
        raise LedgerError(f"{path} was put in WAL mode by another program, so that part of the account is in another "
                          "file: run PRAGMA journal_mode=DELETE")
    key = (os.getpid(), status.st_dev, status.st_ino, durability)
    with _lock:
        file = _connections.get(path)
        # a file that got shorter is read anew, so that SQLite sees what is missing instead of what it remembers
        if file is not None and file.key == (*key, write or file.key[-1]) and file.size <= status.st_size:
            _connections[path] = _connections.pop(path)
            return file
    _disconnect(path)
    writable = os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)
    if write and not writable:
        raise LedgerError(f"{path} is read-only and cannot be charged: change the permissions of the file")
    import sqlite3

    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={'rw' if writable else 'ro'}", uri=True, isolation_level=None, timeout=_PATIENCE,
        check_same_thread=False, cached_statements=16,  # (few: each new count of entries is another statement)
    )
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise LedgerError(f"{path} is not a ledger of dpestim: pass the path of a ledger, or of a new file")
        if writable:
            # PERSIST is cheaper than a new journal each time, and as safe
            if connection.execute("PRAGMA journal_mode=PERSIST").fetchone()[0] != "persist":
                raise LedgerError(f"{path} was put in another journal mode by another program: run PRAGMA "
                                  "journal_mode=DELETE")
            connection.execute(f"PRAGMA synchronous={'OFF' if durability == 'fast' else 'FULL'}")
    except BaseException:
        connection.close()
        raise
    file = _File(connection, (*key, writable), status.st_size)
    with _lock:
        _connections[path] = file
    _close_oldest()
    return file


def _has_log(path):
    """Tell whether a file was put in WAL mode, so that what was written last is beside it."""
    return os.access(f"{path}-wal", os.F_OK)


def _close_oldest():
    """Close connections that were not used for long, but none in use."""
    for path in list(_connections)[:-_MOST_CONNECTIONS]:
        lock = _locks[path]
        if lock.acquire(blocking=False):
            try:
                _disconnect(path)
            finally:
                lock.release()


def _disconnect(path):
    with _lock:
        known = _connections.pop(path, None)
    if known is None:
        return
    if known.key[0] == os.getpid():
        with contextlib.suppress(Exception):  # (a statement that something still holds would keep the lock)
            if known.connection.in_transaction:
                known.connection.rollback()
        known.connection.close()
    else:
        _inherited.append(known.connection)  # closing the parent's connection here could drop its locks


@atexit.register
def _close_all():
    for path in list(_connections):
        _disconnect(path)


_held = []


def _before_fork():
    """Let no fork happen in the middle of a transaction: the child would inherit SQLite's belief in a lock it lacks.

    A signal handler or finalizer in this thread's own transaction may fork all the same: `_cut` has the path then.
    """
    while True:
        for lock in [lock for lock in list(_locks.values()) if lock not in _held]:
            lock.acquire()  # first these: whoever holds one of them may be waiting for the other
            _held.append(lock)
        _lock.acquire()
        if len(_held) == len(_locks):
            return
        _lock.release()


def _after_fork():
    for lock in _held:
        lock.release()
    _held.clear()
    _lock.release()


def _after_fork_in_child():
    """Give a forked child locks of its own and no connection."""
    global _lock
    _lock = threading.RLock()
    _held.clear()
    _locks.clear()
    found = dict(_connections)
    _inherited.extend(file.connection for file in found.values())
    _connections.clear()
    _cut.update(path for path, file in found.items() if file.connection.in_transaction)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def real_path(path):
    """Return the path of a file without links, or raise ValueError for what is no path."""
    if not isinstance(path, str | bytes | os.PathLike) or "\0" in os.fsdecode(path):
        raise ValueError("path must be a path: a string or a path-like object, without a null character")
    return os.path.realpath(os.fsdecode(path))
