"""Files of reports: which rows, or lines, of them are counted already, by their content; and those that are not.

A whole file (Parquet, Arrow) has the digest of its bytes, and is counted in blocks, each a transaction that also says
how many rows are dealt with. A file of lines may grow: a piece of it, from where it was read to before, has the digest
of all bytes up to its end. Pieces end at the first line that ends beyond 4 KiB and each MiB, so that two machines that
count one file share such a digest, and beyond that where the file ends now.
"""

import hashlib
import io
import os

from dpestim.collection import batches, rows, store
from dpestim.collection.incoming import FOREIGN, MALFORMED, REPEATED, TRUNCATED, Added, Tally, row_count

#: Files of lines, files that are whole, and what the first bytes of the latter are, and so the last.
LINES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "txt"}
WHOLE = {".parquet": b"PAR1", ".arrow": b"ARROW1", ".feather": b"ARROW1"}
#: Whole files up to this size are read into memory, so that nobody changes what was digested.
_IN_MEMORY = 1 << 26
_FIRST_CUT, _CUT, _LONGEST_LINE = 1 << 12, 1 << 20, 1 << 22
#: Rows that an unreadable file may say that it has.
_MOST = 1 << 32


def add_file(collector, path, durable=True):
    """Count what is not counted of a file; returns `Added`. What stands last is on the disk if `durable`."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in LINES and suffix not in WHOLE:
        raise ValueError(f"the name of a file must end in {', '.join([*WHOLE, *LINES])}")
    with open(path, "rb") as file:
        source = _Source(collector, path, file)
        if source.is_known():
            return Added(known=1)
        if suffix in WHOLE:
            batches.arrow()
            return _Whole(source, suffix).add(durable)
        return _Lines(source, LINES[suffix]).add(durable)


def bytes_of(messages):
    """Return whole reports as bytes, from bytes or text; what is no base64url is no report either."""
    return [_of_text(message) if isinstance(message, str) else bytes(message) for message in messages]


def _of_text(message):
    try:
        return rows.read_text(message)
    except ValueError:
        return b"\0" + message.encode("utf-8", "surrogatepass")  # (kept with what is rejected)


class _Source:
    """An open file, with what the state knows of its path."""

    def __init__(self, collector, path, file):
        self.collector, self.path, self.file = collector, path, file
        self.transaction = collector._store.transaction
        status = os.fstat(file.fileno())
        self.size, self.id = status.st_size, f"{status.st_dev}:{status.st_ino}"
        self.stamp = self._stamp(status)

    def _stamp(self, status):
        return f"{self.id}:{status.st_size}:{status.st_mtime_ns}"

    def is_known(self):
        """Tell whether the file was read to its end, and is as it was then."""
        with self.transaction(write=False) as execute:
            return store.source_of(execute, self.path) == self.stamp

    def is_new(self, execute):
        """Tell whether this file was never read, under this path or another."""
        return store.source_of(execute, self.path) is None and not store.is_known_file(execute, self.id)

    def note(self, execute, stamp=None):
        """Note that the file was read to its end, or that it was seen."""
        store.set_source(execute, self.path, self.id, self.stamp if stamp is None else stamp)

    def is_unchanged(self):
        """Tell whether nobody has written to the file since it was opened."""
        return self._stamp(os.fstat(self.file.fileno())) == self.stamp


class _Whole:
    """A file of Arrow record batches."""

    def __init__(self, source, suffix):
        self.source, self.collector, self.suffix = source, source.collector, suffix
        if source.size <= _IN_MEMORY:
            content = source.file.read()
            self.file, sha = io.BytesIO(content), hashlib.sha256(content)
        else:
            self.file, sha = source.file, hashlib.file_digest(source.file, "sha256")
        self.identity = hashlib.sha256(b"file" + sha.digest()).digest()

    def add(self, durable):
        source = self.source
        with source.transaction(write=False) as execute:
            done = store.rows_done(execute, self.identity)
        if done is None:
            return self._again()
        total, survey, day = Added(), self.collector.survey, self.collector._day()
        for batch, fault in self._read(done):
            tally, n_rows = Tally(), 0
            if fault is not None:
                tally.rejected[fault[0]] += fault[1]
                if self.collector.keep_rejected is not None and source.size <= _IN_MEMORY:
                    tally.kept.append((fault[0], self.file.getvalue()))
            elif batch is not None:
                n_rows = batch.num_rows
                self.collector._examiner.add(batches.block_of(survey, batch), tally, day)
            last = batch is None
            with source.transaction(durable=last and durable) as execute:
                if store.rows_done(execute, self.identity) != done:  # somebody else counts this file now
                    return total + Added(known=1)
                if self.file is source.file and not source.is_unchanged():
                    raise ValueError(f"{source.path} was changed while it was read: write files under another name, "
                                     "and rename them when they are whole")
                self.collector._enter(execute, tally, hashlib.sha256(self.identity + b"%d" % done).digest())
                store.add_batch(execute, self.identity, tally.n)
                done = done + n_rows
                store.set_rows_done(execute, self.identity, None if last else done)
                if last:
                    source.note(execute)
            total += Added(tally.n, dict(tally.rejected))
        return total

    def _again(self):
        """Deal with a file whose content was counted."""
        source = self.source
        with source.transaction() as execute:
            n = (store.reports_of_batch(execute, self.identity) or 0) if source.is_new(execute) else 0
            rejected = {REPEATED: n} if n else {}
            store.add_rejected(execute, rejected)
            source.note(execute)
        return Added(0, rejected, 1)

    def _read(self, done):
        """Yield (record batch, None) of the rows after `done`; at last (None, None), or (None, (reason, number))."""
        try:
            schema, n_rows, parts = self._open(done)
        except Exception as error:  # (a parser of hostile bytes may raise anything)
            _raise_of_system(error)
            yield None, (self._fault(), 1)
            return
        if not batches.is_of(self.collector.survey, schema):
            yield None, (FOREIGN, min(max(n_rows, 1), _MOST))
            return
        while True:
            try:
                batch = next(parts, None)
                if batch is not None:
                    batch.validate()
            except Exception as error:
                _raise_of_system(error)
                yield None, (self._fault(), 1)
                return
            yield batch, None
            if batch is None:
                return

    def _open(self, done):
        """Return (schema, number of rows, an iterator of record batches after so many rows)."""
        pa, limit = batches.arrow(), row_count(self.collector.survey)
        self.file.seek(0)
        if self.suffix == ".parquet":
            # (without a buffer of its own a column of a row group is read at once)
            parquet = pa.parquet.ParquetFile(self.file, buffer_size=1 << 20, pre_buffer=False,
                                            page_checksum_verification=True)
            groups, skip = range(parquet.num_row_groups), done
            while groups and skip >= parquet.metadata.row_group(groups[0]).num_rows:
                skip -= parquet.metadata.row_group(groups[0]).num_rows
                groups = groups[1:]
            names = [name for name in ("report", "nonce", "received_on") if name in parquet.schema_arrow.names]
            parts = parquet.iter_batches(limit, row_groups=list(groups), columns=names, use_threads=False)
            return parquet.schema_arrow, parquet.metadata.num_rows, _without(skip, parts if groups else iter(()))
        reader = pa.ipc.open_file(self.file)
        parts = (part for i in range(reader.num_record_batches)
                 for part in batches.record_batches(reader.get_batch(i), limit))
        return reader.schema, 1, _without(done, parts)

    def _fault(self):
        """Return why a file cannot be read: what begins as one and does not end as one was cut off."""
        magic = WHOLE[self.suffix]
        self.file.seek(0)
        head = self.file.read(len(magic))
        self.file.seek(max(0, self.source.size - len(magic)))
        return TRUNCATED if head == magic[: len(head)] and self.file.read() != magic else MALFORMED


def _raise_of_system(error):
    """Raise again what the system says of a disk, which is no fault of the file; Arrow's own OSError has no number."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error


def _without(n_rows, parts):
    """Yield record batches without the first rows."""
    for part in parts:
        if n_rows >= part.num_rows:
            n_rows -= part.num_rows
        else:
            yield part.slice(n_rows)
            n_rows = 0


class _Lines:
    """A file of lines, which may grow."""

    def __init__(self, source, kind):
        self.source, self.collector, self.kind = source, source.collector, kind
        self.file, self.header = source.file, None

    def add(self, durable):
        source, out = self.source, Added()
        with source.transaction(write=False) as execute:
            changes, is_new = store.changes_of(execute), source.is_new(execute)
            start, total, sha = self._counted(execute)
        if is_new and start:
            out += self._copied(total)
        while True:
            data, waiting = self._piece(start)
            tally, ahead = Tally(), sha.copy()
            ahead.update(data)
            if data:
                block = rows.of_lines(self.collector.survey, self._lines(data, start), self.kind, self.header)
                self.collector._examiner.add(block, tally, self.collector._day())
            end = start + len(data)
            last = end + waiting >= source.size
            with source.transaction(durable=last and durable) as execute:
                if store.changes_of(execute) != changes:  # somebody has counted something: this file?
                    changes, (found, *rest) = store.changes_of(execute), self._counted(execute)
                    if found != start:
                        start, (total, sha) = found, rest
                        continue
                if data:
                    self.collector._enter(execute, tally, ahead.digest())
                    total += tally.n
                    store.add_batch(execute, ahead.digest(), tally.n, length=end, total=total)
                source.note(execute, None if last else "")
                changes = store.changes_of(execute)
            out += Added(tally.n, dict(tally.rejected))
            start, sha = end, ahead
            if last:
                return out + Added(known=int(not data and not out.n and not out.rejected), waiting=waiting)

    def _copied(self, total):
        """Deal with a new file whose beginning was counted in another one."""
        source = self.source
        with source.transaction() as execute:
            if not source.is_new(execute):
                return Added()
            rejected = {REPEATED: total} if total else {}
            store.add_rejected(execute, rejected)
            source.note(execute, "")
        return Added(0, rejected)

    def _counted(self, execute):
        """Return (length, reports, SHA-256) of the longest beginning of the file that was counted."""
        self.file.seek(0)
        sha = hashlib.sha256(f"lines {self.kind} ".encode())
        found, at = (0, 0, sha.copy()), 0
        for length, identity, total in store.pieces_up_to(execute, self.source.size):
            while at < length:
                data = self.file.read(min(length - at, _CUT))
                if not data:
                    return found
                sha.update(data)
                at += len(data)
            if sha.digest() == identity:
                found = length, total, sha.copy()
        return found

    def _piece(self, start):
        """Return (whole lines from here on, bytes behind them that are no whole line yet)."""
        self.file.seek(start)
        cut = _FIRST_CUT if start < _FIRST_CUT else (start // _CUT + 1) * _CUT
        data = self.file.read(min(cut, self.source.size) - start)
        if cut < self.source.size:
            data += self.file.readline(min(_LONGEST_LINE, self.source.size - start - len(data)))
        if data.endswith(b"\n") or len(data) >= _LONGEST_LINE or not data:
            return data, 0
        lines, tail = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
        if self._is_whole(tail, start, lines):
            return data, 0
        return lines, len(tail)

    def _is_whole(self, tail, start, lines):
        """Tell whether a line without an end is a report all the same."""
        if self.kind == "csv" and not start and not lines:
            return False
        self._lines(lines, start)
        block = rows.of_lines(self.collector.survey, [tail], self.kind, self.header)
        return len(block) == 1 and block.reasons[0] == 0

    def _lines(self, data, start):
        """Return the lines of a piece, without the header of a CSV file."""
        lines = data.split(b"\n")
        if self.kind == "csv":
            if not start:
                self.header = lines[0]
                lines = lines[1:] if rows.is_header(self.header) else lines
            elif self.header is None:
                self.file.seek(0)
                self.header = self.file.readline(_LONGEST_LINE).rstrip(b"\n")
        return lines
