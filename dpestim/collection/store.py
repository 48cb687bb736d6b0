"""The file of a collector: counts, what was counted, and what was rejected, changed together or not at all.

One SQLite file in WAL mode. A batch is one transaction: its counts, its identity, its nonces and its rejected reports
are there together, or none of them is. A process that is killed leaves the state of its last whole transaction, and
several processes take turns (``BEGIN IMMEDIATE``). A connection belongs to one process: a forked child opens its own.

Tables: `about` (survey, name of this state), `counts` (a vector of 64-bit integers for each column), `totals`,
`batches` (identities, for ever), `parts` (files of which some rows are counted), `sources` (files that need not be read
again), `rejected`, `nonces` (for a window of days), `merged` (states of other machines). There is no address and no
report in it, and no time but that of files. An identity is a digest: of few reports without nonces it tells these
reports to whoever tries all that there could be.
"""

import contextlib
import os
import secrets
import threading
import time
import weakref
from pathlib import Path

import numpy as np

from dpestim.exceptions import CollectionError

#: What the first page of the file says, besides that it is SQLite's.
_APPLICATION = 0x64706363
#: The version of the tables. Another one is refused.
_SCHEMA = 1
#: Seconds that a process waits for others that write.
_PATIENCE = 60
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE counts (number INTEGER PRIMARY KEY, counts BLOB NOT NULL)",
    "CREATE TABLE totals (reports INTEGER NOT NULL, changes INTEGER NOT NULL, swept INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0, 0)",
    # n: reports counted; length, total: of a piece of a growing file, where it ends and the reports up to there
    "CREATE TABLE batches (identity BLOB PRIMARY KEY, name TEXT, n INTEGER NOT NULL, length INTEGER, total INTEGER)"
    " WITHOUT ROWID",
    "CREATE UNIQUE INDEX names ON batches (name) WHERE name IS NOT NULL",
    "CREATE INDEX lengths ON batches (length) WHERE length IS NOT NULL",
    "CREATE TABLE parts (identity BLOB PRIMARY KEY, done INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE sources (path TEXT PRIMARY KEY, file TEXT NOT NULL, stamp TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rejected (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE nonces (digest INTEGER PRIMARY KEY, day INTEGER NOT NULL)",
    "CREATE TABLE merged (origin TEXT PRIMARY KEY) WITHOUT ROWID",
)

_stores = weakref.WeakSet()
#: connections of the parent, kept so that a forked child does not close what is not its own
_inherited = []


class Store:
    """The state file at a path; made where there is none.

    Parameters
    ----------
    path : str
    survey_id, survey : str
        The id of the survey and its canonical JSON, kept in a new file and compared with those of an old one. None:
        the file exists, and says what it is of.
    """

    def __init__(self, path, survey_id, survey):
        self.path, self._survey_id = path, survey_id
        self._lock, self._connection, self._key = threading.RLock(), None, None
        _stores.add(self)
        self._open(survey)

    @contextlib.contextmanager
    def transaction(self, write=True, durable=True):
        """Yield `execute` of one transaction, which an exception rolls back; SQLite's errors become CollectionError.

        With ``durable`` it is on the disk afterwards. Without, the last ones may be lost together when the machine
        loses its power, and never in parts; a process that is killed loses nothing.
        """
        import sqlite3

        with self._lock:
            connection = None
            try:
                connection = self._connected()
                execute = connection.execute
                if write:
                    execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield execute
                execute("COMMIT")
            except sqlite3.Error as error:
                raise CollectionError(self._explain(error)) from error
            finally:
                if connection is not None and connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def close(self):
        """Close the connection of this process: all is in one file then, unless others have it open."""
        with self._lock:
            self._disconnect()

    # ---------------------------------------------------------------- inside

    def _open(self, survey):
        """Make the tables of a new file, or compare those of an old one."""
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise CollectionError(f"the folder of {self.path} does not exist: create the folder first")
        writable = os.access(self.path if os.path.exists(self.path) else folder, os.W_OK)
        with self.transaction(write=writable) as execute:
            found = _number(execute, "PRAGMA application_id")
            if not found and not execute("SELECT 1 FROM sqlite_master").fetchone():
                if self._survey_id is None:
                    raise CollectionError(f"{self.path} is not the state of a collector: pass another path")
                for statement in _TABLES:
                    execute(statement)
                execute(f"PRAGMA application_id={_APPLICATION}")
                execute(f"PRAGMA user_version={_SCHEMA}")
                about = {"survey": survey, "survey_id": self._survey_id, "origin": secrets.token_hex(16)}
                for item in about.items():
                    execute("INSERT INTO about VALUES (?, ?)", item)
            if self._survey_id is not None and about_of(execute, "survey_id") != self._survey_id:
                raise CollectionError(f"{self.path} is the state of another survey: pass another path, or the survey "
                                      "that it is of")

    def _connected(self):
        """Return this process's connection to the file."""
        import sqlite3

        if self._connection is not None:
            if self._key == _key_of(self.path):
                return self._connection
            self._disconnect()
            if not os.path.exists(self.path):
                raise CollectionError(f"{self.path} is missing: restore the file, because a new one would not know "
                                      "what was counted")
        if os.path.isdir(self.path):
            raise CollectionError(f"{self.path} is a folder: pass the path of a file")
        exists = os.path.exists(self.path)
        writable = os.access(self.path if exists else os.path.dirname(self.path), os.W_OK)
        mode = "rwc" if writable else "ro"
        connection = sqlite3.connect(f"{Path(self.path).as_uri()}?mode={mode}", uri=True, isolation_level=None,
                                     timeout=_PATIENCE, check_same_thread=False)
        try:
            self._check_kind(connection)
            if writable:
                _use_wal(connection)
            if not exists:
                with contextlib.suppress(OSError):
                    os.chmod(self.path, 0o600)
        except BaseException:
            connection.close()
            raise
        self._connection, self._key = connection, _key_of(self.path)
        return connection

    def _check_kind(self, connection):
        """Raise CollectionError for the file of another program, or of another version, before anything is changed."""
        found = _number(connection.execute, "PRAGMA application_id")
        empty = not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        if found != _APPLICATION and not (found == 0 and empty):
            raise CollectionError(f"{self.path} is not the state of a collector: pass another path")
        version = _number(connection.execute, "PRAGMA user_version")
        if found == _APPLICATION and not empty and version != _SCHEMA:
            raise CollectionError(f"{self.path} has version {version} of the tables, and this dpestim reads version "
                                  f"{_SCHEMA}: use the version of dpestim that made the file")

    def _disconnect(self):
        connection, key = self._connection, self._key
        self._connection = self._key = None
        if connection is not None:
            if key[0] == os.getpid():
                connection.close()
            else:
                _inherited.append(connection)

    def _explain(self, error):
        """Return what happened to the file, and what to do."""
        text = str(error)
        if "locked" in text or "busy" in text:
            return f"{self.path} was locked by other processes for {_PATIENCE} s: try again"
        if "full" in text:
            return f"the disk of {self.path} is full, and nothing of this batch was counted: free space and try again"
        if "readonly" in text or "unable to open" in text:
            return (f"{self.path} or its folder cannot be written, and nothing of this batch was counted: change the "
                    "permissions")
        if "not a database" in text or "malformed" in text:
            return f"{self.path} is not the state of a collector, or is damaged: restore a backup"
        return f"{self.path} cannot be used ({error}), and nothing of this batch was counted: check the disk"


def _key_of(path):
    """Return what makes another connection necessary where it differs: the process and the file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return os.getpid(), status.st_dev, status.st_ino


def _number(execute, statement):
    return execute(statement).fetchone()[0]


def _use_wal(connection):
    """Put the file in WAL mode: SQLite does not wait for others here by itself."""
    import sqlite3

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal":
                return
            raise CollectionError("the file system of the state file has no shared memory, which SQLite's WAL mode "
                                  "needs: put the file on a local disk")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _after_fork_in_child():
    """Give a forked child a lock of its own, and leave the connection to the parent."""
    for store in _stores:
        store._lock = threading.RLock()
        if store._connection is not None:
            _inherited.append(store._connection)
            store._connection = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


# -------------------------------------------------------------------- what a transaction does


def about_of(execute, name):
    """Return what the file says about itself."""
    return execute("SELECT value FROM about WHERE name=?", (name,)).fetchone()[0]


def survey_in(path):
    """Return the canonical JSON of the survey that a state file is of."""
    file = Store(path, None, None)
    try:
        with file.transaction(write=False) as execute:
            return about_of(execute, "survey")
    finally:
        file.close()


def counts_of(execute):
    """Return the vectors of counts, none where nothing was counted."""
    return [np.frombuffer(blob, "<i8").astype(np.int64)
            for blob, in execute("SELECT counts FROM counts ORDER BY number")]


def add_counts(execute, counts, n):
    """Add vectors of counts, of n reports."""
    known = counts_of(execute)
    for number, vector in enumerate(counts):
        total = vector + known[number] if known else vector
        execute("INSERT OR REPLACE INTO counts VALUES (?, ?)", (number, total.astype("<i8").tobytes()))
    execute("UPDATE totals SET reports=reports+?", (n,))


def changes_of(execute):
    """Return a number that every batch changes."""
    return _number(execute, "SELECT changes FROM totals")


def reports_of_batch(execute, identity):
    """Return how many reports of a batch were counted; None where it is not known."""
    found = execute("SELECT n FROM batches WHERE identity=?", (identity,)).fetchone()
    return found and found[0]


def identity_of_name(execute, name):
    """Return the identity of the batch of this name, or None."""
    found = execute("SELECT identity FROM batches WHERE name=?", (name,)).fetchone()
    return found and found[0]


def add_batch(execute, identity, n, name=None, length=None, total=None):
    """Note that n reports of a batch, or of a part of it, were counted."""
    execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?) ON CONFLICT (identity) DO UPDATE SET n=n+excluded.n",
            (identity, name, n, length, total))
    execute("UPDATE totals SET changes=changes+1")


def rows_done(execute, identity):
    """Return how many rows of a file are dealt with; None: all of them."""
    found = execute("SELECT done FROM parts WHERE identity=?", (identity,)).fetchone()
    return found[0] if found else None if reports_of_batch(execute, identity) is not None else 0


def set_rows_done(execute, identity, done):
    """Note how many rows of a file are dealt with; None: all of them."""
    if done is None:
        execute("DELETE FROM parts WHERE identity=?", (identity,))
    else:
        execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (identity, done))


def pieces_up_to(execute, length):
    """Return (length, identity, reports up to there) of all pieces of growing files, in ascending order."""
    return execute("SELECT length, identity, total FROM batches WHERE length <= ? ORDER BY length",
                   (length,)).fetchall()


def source_of(execute, path):
    """Return the stamp of a file when it was read to its end, or None."""
    found = execute("SELECT stamp FROM sources WHERE path=?", (path,)).fetchone()
    return found and found[0]


def is_known_file(execute, file):
    """Tell whether this file was read under any path."""
    return execute("SELECT 1 FROM sources WHERE file=?", (file,)).fetchone() is not None


def touch(execute):
    """Write something, so that this and all before is on the disk after a durable transaction."""
    execute("UPDATE totals SET changes=changes+1")


def reports_of(execute):
    """Return the number of reports counted."""
    return _number(execute, "SELECT reports FROM totals")


def batches_of(execute):
    """Return the number of batches counted."""
    return _number(execute, "SELECT count(*) FROM batches")


def origins_of(execute):
    """Return the names of this state and of those that were merged into it."""
    return {about_of(execute, "origin"), *(origin for origin, in execute("SELECT origin FROM merged"))}


def set_source(execute, path, file, stamp):
    """Note that a file was read to its end."""
    execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (path, file, stamp))


def add_rejected(execute, rejected):
    """Add numbers of rejected reports by reason."""
    for reason, n in rejected.items():
        if n:
            execute("INSERT INTO rejected VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET n=n+excluded.n",
                    (reason, int(n)))


def rejected_of(execute):
    """Return the numbers of rejected reports by reason."""
    return dict(execute("SELECT reason, n FROM rejected ORDER BY reason"))


def take_nonces(execute, digests, today, oldest):
    """Keep digests of nonces, as of today; returns a mask of those that were there, or stand here before.

    `oldest` is the first day of the window: once a day those of days before are forgotten.
    """
    if _number(execute, "SELECT swept FROM totals") < oldest:
        execute("DELETE FROM nonces WHERE day < ?", (oldest,))
        execute("UPDATE totals SET swept=?", (oldest,))
    seen, order = np.zeros(len(digests), bool), np.argsort(digests, kind="stable")  # (the order of the tree is fast)
    rows, connection = digests[order].tolist(), execute.__self__
    before = connection.total_changes
    execute("SAVEPOINT nonces")
    connection.executemany("INSERT OR IGNORE INTO nonces VALUES (?, ?)", ((digest, today) for digest in rows))
    if connection.total_changes - before != len(rows):  # rare: which ones?
        execute("ROLLBACK TO nonces")
        for place, digest in zip(order.tolist(), rows):
            seen[place] = not execute("INSERT OR IGNORE INTO nonces VALUES (?, ?)", (digest, today)).rowcount
    execute("RELEASE nonces")
    return seen


# -------------------------------------------------------------------- what travels to another state


def all_batches(execute):
    """Return all that is known of batches."""
    return execute("SELECT identity, name, n, length, total FROM batches").fetchall()


def all_nonces(execute):
    """Return the nonces of the window, with their days."""
    return execute("SELECT digest, day FROM nonces ORDER BY digest").fetchall()


def add_merged(execute, origins, known):
    """Note states that are merged, with their batches; names of batches stay where they were given."""
    for origin in origins:
        execute("INSERT INTO merged VALUES (?)", (origin,))
    for identity, _, n, length, total in known:
        add_batch(execute, identity, n, None, length, total)


def add_nonces(execute, nonces):
    """Add nonces with their days; returns how many were there."""
    return sum(1 - execute("INSERT OR IGNORE INTO nonces VALUES (?, ?)", each).rowcount for each in nonces)
