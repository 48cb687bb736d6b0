"""The file of a ledger: made whole or not at all, opened once a process, and never carried across a fork."""

import atexit
import contextlib
import os
import secrets
import threading
from pathlib import Path

from dpestim.exceptions import LedgerError

#: What the first page of a ledger's file says, besides that it is SQLite's.
_APPLICATION = 0x64706573
#: Seconds that a process waits for others that are charging.
_PATIENCE = 60

#: Open connections that a process keeps; those used longest ago are closed first.
_MOST_CONNECTIONS = 32

#: held for moments only: the dictionaries below
_lock = threading.RLock()
#: path -> lock of its transactions
_locks = {}
#: path -> (what makes a connection another one, connection, size of the file when it was last used); oldest use first
_connections = {}
#: connections of the parent, kept so that a forked child does not close what is not its own
_inherited = []
#: paths of the ledgers that this process has used
_known = set()


def remember(path):
    """Note that a ledger was here: another one in its place would forget what was spent."""
    _known.add(path)


def create(path, schema, insert, row):
    """Make a new file, whole or not at all, and never in place of another."""
    import sqlite3

    if path in _known:
        raise LedgerError(f"{path} was a ledger of this process and is gone: a new one would forget what was spent")
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"the folder of {path} does not exist")
    draft = f"{path}.{secrets.token_hex(8)}.new"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        connection.executescript(f"PRAGMA application_id={_APPLICATION}; BEGIN; {schema}")
        connection.execute(insert, row)
        connection.execute("COMMIT")
        connection.close()
        with contextlib.suppress(FileExistsError):  # somebody was faster: theirs is joined
            os.link(draft, path)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"{path} cannot be made: {error}") from error
    finally:
        if os.path.lexists(draft):
            os.unlink(draft)


@contextlib.contextmanager
def transaction(path, durability, write):
    """Yield a connection in one transaction, which an exception rolls back; what SQLite raises becomes LedgerError."""
    import sqlite3

    with _lock:
        lock = _locks.setdefault(path, threading.RLock())
    with lock:
        connection = None
        try:
            connection = _connect(path, durability, write)
            if connection.in_transaction:  # an interrupt came before the last one could be ended
                connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection
            connection.execute("COMMIT")
            with contextlib.suppress(OSError):  # gone already: the next one to charge will say so
                _connections[path] = (*_connections[path][:2], os.stat(path).st_size)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise LedgerError(f"{path} was locked by others for {_PATIENCE} s") from error
            raise LedgerError(f"{path} cannot be used as a ledger: {error}") from error
        except sqlite3.DatabaseError as error:
            _disconnect(path)
            connection = None
            raise LedgerError(f"{path} is no ledger, or is damaged: {error}") from error
        finally:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")


def _connect(path, durability, write):
    """Return this process's connection to the file that is at the path now."""
    import sqlite3

    try:
        status = os.stat(path)
    except OSError:
        _disconnect(path)
        raise LedgerError(
            f"{path} is missing: a ledger that is moved or deleted cannot be charged. (An estimator that was made, "
            "cloned or pickled inside `with ledger:` stays bound to it; set_params(ledger=...) gives it another one.)"
        ) from None
    if os.path.exists(f"{path}-wal"):
        raise LedgerError(f"{path} was put in WAL mode from outside: part of the account is in another file")
    key = (os.getpid(), status.st_dev, status.st_ino, durability)
    with _lock:
        known = _connections.get(path)
        # a file that got shorter is read anew, so that SQLite sees what is missing instead of what it remembers
        if known is not None and known[0] == (*key, write or known[0][-1]) and known[2] <= status.st_size:
            _connections[path] = _connections.pop(path)
            return known[1]
    _disconnect(path)
    writable = os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)
    if write and not writable:
        raise LedgerError(f"{path} may not be written, and so not charged")
    key = (*key, writable)
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={'rw' if writable else 'ro'}", uri=True, isolation_level=None, timeout=_PATIENCE,
        check_same_thread=False,
    )
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise LedgerError(f"{path} is no ledger of dpestim")
        if writable:
            # PERSIST is cheaper than a new journal each time, and as safe
            if connection.execute("PRAGMA journal_mode=PERSIST").fetchone()[0] != "persist":
                raise LedgerError(f"{path} was put in another journal mode from outside")
            connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'OFF'}")
    except BaseException:
        connection.close()
        raise
    with _lock:
        _connections[path] = (key, connection, status.st_size)
    _close_oldest()
    return connection


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
    if known[0][0] == os.getpid():
        known[1].close()
    else:
        _inherited.append(known[1])  # closing the parent's connection here could drop its locks


@atexit.register
def _close_all():
    for path in list(_connections):
        _disconnect(path)


_held = []


def _before_fork():
    """Let no fork happen in the middle of a transaction: the child would inherit SQLite's belief in a lock it lacks."""
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
    _inherited.extend(connection for _, connection, _ in _connections.values())
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
