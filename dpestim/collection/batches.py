"""Reports as Arrow tables, record batches and Parquet files: the extra ``dpestim[arrow]``, imported when it is used.

A table has a column `report`, ``fixed_size_binary(survey.report_bytes)``, without nulls, and may have `nonce`
(``fixed_size_binary(8)``), `batch` (string) and `received_on` (date32: a date, never a time to the second, because
times tell who was asked with whom). The metadata of its schema hold the survey, canonical, as ``dpestim.survey``, and
``dpestim.batch``, a random name, so that two files with the same few reports are two files.
"""

import contextlib
import os
import secrets
import shutil
import tempfile
from functools import lru_cache

import numpy as np

from dpestim.collection.incoming import CODES, MALFORMED, NO_DAY, Block, day_of, row_count
from dpestim.collection.rows import lines_into
from dpestim.collection.survey import Survey

#: Names in the metadata of a schema.
SURVEY, BATCH = b"dpestim.survey", b"dpestim.batch"


def arrow():
    """Return the module pyarrow, or raise ImportError that says what to install."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Arrow and Parquet need pyarrow: pip install 'dpestim[arrow]'") from error
    return pyarrow


def is_arrow(batch):
    """Tell whether something is an Arrow table or record batch; pyarrow is not imported for it."""
    return hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__")


def to_arrow(survey, reports, batch=None, received_on=None, nonces=False):
    """Return the table of reports, as ``survey.to_arrow`` documents it."""
    pa = arrow()
    if batch is not None and not isinstance(batch, str):
        raise ValueError("batch must be a string or None")
    payload = np.ascontiguousarray(survey.pack(reports))
    n, columns = len(payload), {"report": _binary(payload, survey.report_bytes)}
    if nonces:
        columns["nonce"] = _binary(np.frombuffer(secrets.token_bytes(8 * n), np.uint8).reshape(n, 8), 8)
    if batch is not None:
        columns["batch"] = pa.repeat(pa.scalar(batch, pa.string()), n)
    if received_on is not None:
        columns["received_on"] = pa.repeat(pa.scalar(day_of(received_on), pa.int32()), n).cast(pa.date32())
    return pa.table(columns).replace_schema_metadata(metadata_of(survey))


def metadata_of(survey):
    """Return the metadata of the schema of a new batch."""
    return {SURVEY: survey.canonical_json, BATCH: secrets.token_hex(16)}


def write(path, tables, before=None):
    """Write tables, made by `to_arrow`, into one file: under another name first, so that it is there whole or not.

    A name that ends in ``.csv`` or ``.jsonl`` gets lines, any other one Parquet. `path` may be an open binary file: it
    gets JSON lines, at the end. ``before()`` is called before anybody gets the file; what it raises leaves none.
    """
    is_path = isinstance(path, str | os.PathLike)
    kind = os.path.splitext(os.fsdecode(path))[1].lower() if is_path else ".jsonl"
    draft = f"{os.fsdecode(path)}.{secrets.token_hex(8)}.new" if is_path else None
    with open(draft, "xb") if is_path else tempfile.TemporaryFile() as file:
        try:
            (lines_into if kind in (".csv", ".jsonl") else _parquet_into)(file, tables, kind)
            if before is not None:
                before()
            if is_path:
                file.flush()
                os.replace(draft, path)
            else:
                file.seek(0)
                shutil.copyfileobj(file, path)
        finally:
            if is_path:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft)


def _parquet_into(file, tables, kind):
    pa, writer = arrow(), None
    try:
        for table in tables:
            if writer is None:
                # reports are noise: a dictionary of them takes time and saves little, and so does compression of bytes
                # whose bits are all used
                schema, layout = table.schema, survey_in(table).layout
                plain = {"nonce", "report"} if layout.bits > 7 * layout.bytes else {"nonce"}
                writer = pa.parquet.ParquetWriter(
                    file, schema, use_dictionary=["batch"], write_page_checksum=True,
                    compression={name: "none" if name in plain else "zstd" for name in schema.names})
            writer.write_table(table.replace_schema_metadata(schema.metadata))
        if writer is None:
            raise ValueError("tables must be at least one")
    finally:
        if writer is not None:
            writer.close()


def _binary(rows, width):
    pa = arrow()
    return pa.Array.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows)])


# -------------------------------------------------------------------- reading


def is_of(survey, schema):
    """Tell whether a schema says that its reports are of a survey."""
    found = (schema.metadata or {}).get(SURVEY)
    if found is None or found == survey.canonical_json:
        return found is not None
    try:
        return _survey(found).id == survey.id
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=16)
def _survey(text):
    return Survey.from_json(text)


def survey_in(table):
    """Return the survey in the metadata of a table's schema, or raise ValueError; whole surveys are kept for the next.

    Parameters
    ----------
    table : pyarrow Table, RecordBatch or Schema
    """
    found = (getattr(table, "schema", table).metadata or {}).get(SURVEY)
    if found is None:
        raise ValueError("table must carry its survey in the metadata of its schema, as Survey.to_arrow makes it: "
                         "a table that went through another library may have lost it")
    return _survey(found)


def reports_in(table):
    """Return (numbers a report, a function of a server's columns that yields arrays of reports) of a table.

    The arrays are views of the table where the bytes of a payload are those of a report in memory.
    """
    pa = arrow()
    if not isinstance(table, pa.Table | pa.RecordBatch):
        table = pa.table(table)
    survey = survey_in(table)

    def blocks(columns):
        if not columns.same_law(survey.layout.columns):
            raise ValueError("reports must be of a survey with the mechanism, the domain and the epsilon of this "
                             "estimator: take the estimator from survey.server()")
        if not table.num_rows:
            raise ValueError("reports must not be empty")
        for part in record_batches(table, row_count(survey)):
            payload, missing = fixed_bytes(part, "report", survey.report_bytes)
            if payload is None or missing is not None:
                raise ValueError(f"reports must have a column 'report' of fixed_size_binary({survey.report_bytes}), "
                                 "without nulls")
            yield survey.layout.unpack(payload)

    return survey.layout.columns.report_width, blocks


def record_batches(batch, n_rows):
    """Yield record batches of at most so many rows of a table, a record batch, or a producer of a stream of them."""
    pa = arrow()
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    elif not isinstance(batch, pa.Table):  # (polars and others: views, by the interface of Arrow)
        batch = pa.table(batch)
    yield from batch.to_batches(max_chunksize=n_rows)


def block_of(survey, batch):
    """Return the block of a record batch; every report is malformed where the column `report` is no such."""
    payload, missing = fixed_bytes(batch, "report", survey.report_bytes)
    if payload is None:
        payload, missing = np.zeros((batch.num_rows, survey.report_bytes), np.uint8), np.ones(batch.num_rows, bool)
    block = Block(payload)
    if missing is not None:
        block.reasons[missing] = CODES[MALFORMED]
    nonces, missing = fixed_bytes(batch, "nonce", 8)
    if nonces is not None:
        block.nonces = np.ascontiguousarray(nonces).view("<u8").ravel()
        if missing is not None:
            block.has_nonce = ~missing
    block.days = _days_of(batch)
    return block


def fixed_bytes(batch, name, width):
    """Return (an (n, width) view of a column of bytes, a mask of nulls or None); (None, None) where there is none."""
    pa = arrow()
    if batch.schema.names.count(name) != 1:
        return None, None
    column = batch.column(name)
    if column.type != pa.binary(width):
        return None, None
    buffer = column.buffers()[1]
    n, start = len(column), column.offset * width
    if buffer is None or buffer.size < start + n * width:
        return (None, None) if n else (np.zeros((0, width), np.uint8), None)
    view = np.frombuffer(buffer, np.uint8, n * width, start).reshape(n, width)
    return view, column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None


def _days_of(batch):
    pa = arrow()
    if batch.schema.names.count("received_on") != 1:
        return None
    column = batch.column("received_on")
    if column.type != pa.date32():
        return None
    days = column.cast(pa.int32())
    return days.cast(pa.int64()).fill_null(NO_DAY).to_numpy()
