"""The collector: counts reports that arrive over months, in files or as batches, each exactly once."""

import datetime
import glob
import hashlib
import os
import random

import numpy as np

from dpestim.collection import batches, sources, store
from dpestim.collection.incoming import REPEATED, Added, Examiner, Tally, day_of, of_messages, row_count, today
from dpestim.collection.keeping import keep
from dpestim.collection.store import Store
from dpestim.collection.survey import Survey
from dpestim.collection.watching import Watch
from dpestim.exceptions import CollectionError


class Collector:
    """Count the reports to a survey, each exactly once, in a state file that survives whatever stops the process.

    A batch is identified by its content. Its counts, its identity and the numbers of what was rejected enter the file
    in one transaction. A process may be killed at any instant and started again, and several processes may use one
    file. What is not counted is counted as rejected, with the reason.

    **Who sees what.** The operator of the collector sees reports: local differential privacy protects the answers. A
    reader of the state file sees counts, paths of files, and digests of batches and of nonces. The digest of a batch of
    few reports without nonces tells these reports to whoever tries all that there could be: add many reports at once,
    or reports with nonces. Whoever knows the nonce of a report sees on which day it was collected. The law protects
    nothing that is kept beside reports: do not log addresses, times to the second, cookies or user agents. A date is
    enough for ``received_on``. A nonce must be random: the number of a device links all reports of its owner. Nonces do
    not stop malicious clients, which can make up reports: `dpestim.audit.poisoning` computes how far these move an
    estimate.

    **Complexity.** A batch costs its digest (SHA-256), its counting, and a transaction: about 0.3 ms and a wait for the
    disk. Memory does not grow with the size of a file: a block of at most 16 MiB and its reports. The state file holds
    the counts, about 100 bytes a batch, and about 25 bytes for each nonce within the window: 750 MB for a million
    reports with a nonce a day and 30 days. A report that is impossible costs about 10 microseconds.

    Parameters
    ----------
    survey : Survey
    path : path-like
        Of the state file, on a local disk; made where there is none. With it belong the files beside it that end in
        ``-wal`` and ``-shm``, until `close`.
    received : date or str, default=None
        The day on which reports were received that do not say it themselves (a column ``received_on``), such as
        "2026-11-26"; None: today in UTC. Reports of days outside of the survey's dates are not counted; one day more
        on either side is, because a day is another one elsewhere on earth.
    nonce_window : int or None, default=30
        Days for which the nonce of a report is remembered, from the day on which it was collected: a report with the
        same nonce is a duplicate. None: nonces are ignored.
    keep_rejected : path-like, default=None
        A folder for what was rejected: one file of JSON lines for each batch, with the reason and the bytes in
        base64url. It may hold anything that was sent, raw values of broken clients included: nobody else should read
        it.

    Attributes
    ----------
    n_reports_ : int
        Reports counted.
    batches_ : int
        Batches, files, and pieces of growing files that were counted.
    rejected_ : dict
        Numbers of reports that were not counted, by reason (`dpestim.collection.incoming.REASONS`). A file that cannot
        be read counts as one report.
    privacy_ : PrivacyGuarantee
        What the survey promises to each user.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpestim.collection import Collector, Survey
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> survey = Survey(GRRFrequencyEstimator(1.0, categories=[["tea", "coffee"]]), name="drinks")
    >>> reports = survey.client(random_state=0).privatize([["tea"]] * 600 + [["coffee"]] * 400)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     collector = Collector(survey, Path(folder) / "state.sqlite")
    ...     added = collector.add(survey.encode(reports), name="monday")
    ...     again = collector.add(survey.encode(reports), name="monday")
    ...     collector.close()
    >>> added.n, again.n, again.known
    (1000, 0, 1)
    """

    def __init__(self, survey, path, *, received=None, nonce_window=30, keep_rejected=None):
        if nonce_window is not None and (isinstance(nonce_window, bool) or not isinstance(nonce_window, int)
                                         or nonce_window < 1):
            raise ValueError("nonce_window must be a number of days, at least 1, or None to ignore nonces")
        self.survey, self.path = survey, os.path.realpath(os.fsdecode(path))
        self.received, self.nonce_window, self.keep_rejected = received, nonce_window, keep_rejected
        self._received = _day(received)
        self._start()

    @classmethod
    def open(cls, path, **more):
        """Return the collector of a state file that exists, with the survey that the file holds.

        Parameters
        ----------
        path : path-like
        **more
            The other parameters of the class.
        """
        path = os.path.realpath(os.fsdecode(path))
        if not os.path.exists(path):
            raise CollectionError(f"{path} is missing: pass the state file of a collector")
        return cls(Survey.from_json(store.survey_in(path)), path, **more)

    def _start(self):
        self._examiner = Examiner(self.survey, self.nonce_window is not None, self.keep_rejected is not None)
        self._store = Store(self.path, self.survey.id, self.survey.canonical_json.decode())

    def __repr__(self):
        return f"Collector({self.survey!r}, {self.path!r})"

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_examiner", "_store")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._start()

    # ---------------------------------------------------------------- reports come in

    def add(self, batch, *, name=None, durable=True):
        """Count a batch that is handed over, in one transaction.

        Parameters
        ----------
        batch : Arrow table or record batch, bytes, str, list of bytes or str, or ndarray of uint8
            A table as ``survey.to_arrow`` makes it; or whole reports as ``survey.encode`` or ``survey.encode_text``
            makes them, with or without nonces.
        name : str, default=None
            What the caller calls this batch. The same name with the same content is known, and nothing happens: so a
            batch of which nobody knows whether it was counted can be added again. The same name with other content is
            a ValueError. Without a name, content that was counted before is rejected as a "repeated batch": two
            batches of few reports without nonces may be equal by chance, so give them names.
        durable : bool, default=True
            Whether the batch is on the disk when this returns. Otherwise the last batches, each as a whole, may be lost
            where the machine loses its power before `flush`; a process that is killed loses nothing either way. Add
            many batches without, then flush, and only then forget them.

        Returns
        -------
        Added
        """
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError("name must be a string that is not empty, or None")
        if batches.is_arrow(batch):
            identity, parts = self._of_arrow(batch)
        else:
            identity, parts = self._of_messages(batch)
        if name is not None:
            identity = _digest(b"name", name.encode("utf-8", "surrogatepass"), identity)
        tally = Tally()

        def known(execute):
            return store.reports_of_batch(execute, identity) is not None

        with self._store.transaction(write=False) as execute:
            self._check_name(execute, name, identity)
            if name is not None and known(execute):
                return Added(known=1)
        n_rows, day = 0, self._day()
        for block in parts:
            self._examiner.add(block, tally, day)
            n_rows += len(block)
        with self._store.transaction(durable=durable) as execute:
            self._check_name(execute, name, identity)
            if known(execute):
                if name is not None:
                    return Added(known=1)
                store.add_rejected(execute, {REPEATED: n_rows})
                return Added(0, {REPEATED: n_rows}, 1)
            self._enter(execute, tally, identity)
            store.add_batch(execute, identity, tally.n, name)
        return Added(tally.n, dict(tally.rejected))

    def add_file(self, path):
        """Count a file: .parquet, .arrow or .feather, .csv, .jsonl, .txt (a report in base64url a line).

        Files of lines may grow: what was counted of them is known by its content, wherever the file is moved, and what
        was added is counted. A last line without an end counts when it is whole; until then it waits. Other files are
        read once they are whole: write them under another name, and rename them. A copy of a file that was counted is
        rejected as a "repeated batch". A file that cannot be read is one rejected report.

        Returns
        -------
        Added
        """
        return sources.add_file(self, os.path.realpath(os.fsdecode(path)))

    def scan(self, pattern, *, verbose=0):
        """Count all files that match a pattern such as ``"reports/*.parquet"``, and that are not counted yet.

        A file whose size, time and number are as they were is not read again. Several processes may scan one folder:
        each begins at another file, and what one has counted the others leave.

        Parameters
        ----------
        pattern : str
            As `glob.glob` takes it; ``**`` is any folders.
        verbose : int, default=0
            1: a progress bar (tqdm, where it is installed), or else about ten lines, on standard error, with reports a
            second and the error bar of the first column.

        Returns
        -------
        Added
        """
        paths = sorted(path for path in glob.glob(os.fspath(pattern), recursive=True) if os.path.isfile(path))
        start = random.randrange(len(paths)) if paths else 0
        total, watch = Added(), Watch(self, len(paths), verbose)
        try:
            for path in paths[start:] + paths[:start]:
                try:
                    added = sources.add_file(self, os.path.realpath(path), durable=False)
                except FileNotFoundError:  # it was moved meanwhile
                    continue
                total += added
                watch.done(added.n)
        finally:
            watch.close()
        if total.n or total.rejected:
            self.flush()
        return total

    def flush(self):
        """Wait until all that was counted is on the disk."""
        with self._store.transaction() as execute:
            store.touch(execute)

    # ---------------------------------------------------------------- what is known

    def server(self):
        """Return the estimator with all counts; a new object each time, which later reports do not change."""
        with self._store.transaction(write=False) as execute:
            counts, n, names = store.counts_of(execute), store.reports_of(execute), store.origins_of(execute)
            n_batches = store.batches_of(execute)
        server = self.survey.server()
        return server._take_counts(counts, n, n_batches, names) if n else server

    @property
    def n_reports_(self):
        """Reports counted."""
        return self._read(store.reports_of)

    @property
    def batches_(self):
        """Batches, files, and pieces of growing files that were counted."""
        return self._read(store.batches_of)

    @property
    def rejected_(self):
        """Numbers of reports that were not counted, by reason."""
        return self._read(store.rejected_of)

    @property
    def privacy_(self):
        """What the survey promises to each user."""
        return self.survey.privacy_

    def merge(self, other):
        """Add what the collector of another machine has counted, once; returns self.

        Identities of batches travel with the counts, so that no batch is counted twice. To merge machines that go on
        collecting, make a new state file each time, and merge all of them into it.

        Parameters
        ----------
        other : Collector or path-like
            Its survey must be this one.

        Raises
        ------
        ValueError
            Where some batch is in both, or `other` was merged before, with what it has counted since or without:
            nothing is changed.

        Notes
        -----
        Nonces travel, too. A report that reached two machines was counted by both, and cannot be taken out any more:
        a UserWarning says how many there are.
        """
        from dpestim.collection.merging import merge

        if not isinstance(other, Collector):
            path = os.path.realpath(os.fsdecode(other))
            if not os.path.exists(path):
                raise CollectionError(f"{path} is missing: pass the state file of another collector")
            other = Collector(self.survey, path)
        if other.survey.id != self.survey.id:
            raise ValueError("other must be a collector of the same survey")
        merge(self._store, other._store)
        return self

    def close(self):
        """Close the state file: all of it is in one file then, unless other processes have it open."""
        self._store.close()

    # ---------------------------------------------------------------- inside

    def _read(self, function):
        with self._store.transaction(write=False) as execute:
            return function(execute)

    def _day(self):
        return today() if self._received is None else self._received

    def _enter(self, execute, tally, identity):
        """Add a tally in a transaction: duplicates are known now; what was rejected is kept before it is counted."""
        if self.nonce_window is not None and tally.nonces:
            now = today()
            self._examiner.remove_duplicates(
                tally, lambda digests: store.take_nonces(execute, digests, now, now - self.nonce_window))
        if self.keep_rejected is not None and tally.kept:
            keep(self.keep_rejected, identity, tally.kept)
        if tally.n:
            store.add_counts(execute, tally.counts, tally.n)
        store.add_rejected(execute, tally.rejected)

    @staticmethod
    def _check_name(execute, name, identity):
        found = None if name is None else store.identity_of_name(execute, name)
        if found not in (None, identity):
            raise ValueError("name is that of another batch, which was counted: give every batch a name of its own")

    def _of_arrow(self, batch):
        """Return (identity, an iterable of blocks) of a table."""
        parts = list(batches.record_batches(batch, row_count(self.survey)))
        if any(not batches.is_of(self.survey, part.schema) for part in parts):
            raise ValueError("batch must be a table of this survey, with the survey in the metadata of its schema: "
                             "make it by survey.to_arrow")
        sha = hashlib.sha256(b"arrow")
        if parts:
            sha.update((parts[0].schema.metadata or {}).get(batches.BATCH, b""))
        blocks = [batches.block_of(self.survey, part) for part in parts]
        for block in blocks:
            for own in (block.payload, block.nonces, block.days, None if block.fine() is None else block.reasons):
                if own is not None:
                    sha.update(memoryview(np.ascontiguousarray(own)).cast("B") if len(own) else b"")
        return sha.digest(), blocks

    def _of_messages(self, batch):
        """Return (identity, an iterable of blocks) of whole reports."""
        if isinstance(batch, bytes | bytearray | memoryview | str):
            batch = [batch]
        if isinstance(batch, np.ndarray) and batch.dtype == np.uint8 and batch.ndim == 2:
            batch = np.ascontiguousarray(batch)
            identity = _digest(b"rows", str(batch.shape[1]).encode(),
                               memoryview(batch).cast("B") if batch.size else b"")
        elif isinstance(batch, list | tuple) and all(
                isinstance(own, bytes | bytearray | memoryview | str) for own in batch):
            batch = sources.bytes_of(batch)
            identity = _digest(b"list", np.array([len(m) for m in batch], "<i8").tobytes(), b"".join(batch))
        else:
            raise ValueError("batch must be an Arrow table or record batch of survey.to_arrow, or reports as "
                             "survey.encode or survey.encode_text returns them: bytes, strings, or an array of uint8")
        step = row_count(self.survey)
        return identity, (of_messages(self.survey, batch[i : i + step]) for i in range(0, len(batch), step))


def _digest(*parts):
    """Return SHA-256 of parts, each with its length, so that no two lists of parts are alike."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.digest()


def _day(received):
    if received is None or (isinstance(received, datetime.date) and not isinstance(received, datetime.datetime)):
        return day_of(received)
    try:
        return day_of(datetime.date.fromisoformat(received))
    except (TypeError, ValueError):
        raise ValueError("received must be a date, or text such as '2026-11-26'") from None

