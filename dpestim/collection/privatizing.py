"""A CSV file of raw rows to a file of reports, block by block: what a site runs that holds rows of many people.

The raw file is read once, and nothing of it but line numbers is ever in a message. Reports go into a draft. When all
rows are read the ledger is charged, where there is one, and then the draft gets its name: a file that cannot be read
to its end costs nothing. A process that is killed before leaves the draft, whose name ends in ``.new`` and whose
reports were not charged: delete it.
"""

import contextlib
import os
import sys
import time
from csv import reader
from functools import partial

import numpy as np

from dpestim.collection import batches
from dpestim.collection.file import labels_of
from dpestim.inputs.safe_errors import attempt
from dpestim.local.columns import passing
from dpestim.progress import check_verbose, hand_on, level_of
from dpestim.rng import WordSource

#: Bytes of the file that are read at a time.
_BLOCK_BYTES = 1 << 23
#: Seconds between two lines of progress.
_TELL = 2


def privatize_csv(path_in, survey, path_out, *, ledger=None, random_state=None, n_jobs=None, batch=None,
                  received_on=None, nonces=None, verbose=0):
    """Randomise the rows of a CSV file and write their reports into a file; returns the number of rows.

    Columns are found by their names in the first line where the survey names them; else the file must have the columns
    of the survey, in order. Every line after the first is a row: a value is the text of a category, a number, or
    nothing where the survey says that it may be missing. Memory does not grow with the file.

    Parameters
    ----------
    path_in : path-like or binary file
    survey : Survey
    path_out : path-like or binary file
        A path is there whole or not at all: Parquet, or lines where its name ends in ``.csv`` or ``.jsonl``. A binary
        file gets JSON lines, at the end.
    ledger : Ledger, default=None
        Charged once, for all rows together.
    random_state : int or Generator, default=None
        None draws from the system's secure source. Anything else is reproducible, and must not be published.
    n_jobs : int, default=None
        Threads.
    batch, received_on
        As ``survey.to_arrow`` takes them.
    nonces : bool, default=None
        Whether each report gets a nonce. None: in files of lines, which carry no name that tells two of them apart.
    verbose : int, default=0
        1: lines with the number of rows and rows a second on standard error, every two seconds.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For a line that is no row of the survey, with its number and nothing of its content. In strict mode always,
        because which lines are none is not the analyst's to know.
    """
    batches.arrow()
    if survey.keeps_answers:
        raise ValueError("survey must be one whose clients keep no answers between reports: use privatize of "
                         "survey.client() with client_state")
    client = survey.client(ledger, random_state, n_jobs)
    if client._is_strict():  # (what is refused depends on values, and nothing is charged yet)
        raise ValueError("strict mode: privatize_csv tells which line is no answer, before anything is charged: read "
                         "the file into a data frame with fixed dtypes, and use privatize of survey.client()")
    client._check_call_parameters()
    columns, n_rows = survey.layout.columns, 0
    check_verbose(verbose)
    verbose = level_of(verbose)
    source, start, told = WordSource(random_state), time.perf_counter(), 0.0
    if nonces is None:
        nonces = not isinstance(path_out, str | os.PathLike) or os.fsdecode(path_out).lower().endswith(
            (".csv", ".jsonl"))

    def tables():
        nonlocal n_rows, told
        for data, n in _data(path_in, survey, n_jobs):
            reports = columns.randomize(data, source, n_rows, n_jobs)
            n_rows += n
            seconds = time.perf_counter() - start
            hand_on("privatize_csv", "row", n_rows, seconds=seconds)
            if verbose and seconds > told + _TELL:
                told = seconds
                with contextlib.suppress(OSError, ValueError):  # (a closed output must not end what was paid)
                    print(f"[privatize] {n_rows:,} rows, {n_rows / seconds:.3g} a second", file=sys.stderr, flush=True)
            yield survey.to_arrow(reports, batch=batch, received_on=received_on, nonces=nonces)

    def charge():
        if client._find_ledger() is not None:
            client._charge(columns.guarantee(random_state is not None), n_rows, columns.names)

    batches.write(path_out, tables(), before=charge)
    return n_rows


def _data(path, survey, n_jobs):
    """Yield (the rows of each column as `Column.read` gives them, how many) of blocks of lines."""
    columns, first = survey.layout.columns, 2  # (the first line has the names)
    readers = [_reader(column, n_jobs) for column in columns]
    with open(path, "rb") if isinstance(path, str | os.PathLike) else contextlib.nullcontext(path) as file:
        for block in _text_blocks(file, _features(survey)):
            data = []
            for reader, features in zip(readers, columns.features):
                values, bad = reader([block.column(j) for j in range(features.start, features.stop)])
                if bad is not None:
                    raise ValueError(f"line {first + bad}: the value of {columns.names[features.start]} must be in the "
                                     f"domain that the survey declares: {reader.expects}")
                data.append(values)
            yield data, block.num_rows
            first += block.num_rows


def _features(survey):
    """Return the names of the features of a row, or how many there are, where the survey has places."""
    labels = []
    for own, column in zip(labels_of(survey.server(), survey.layout.columns), survey.layout.columns):
        labels += own if column.n_joint is not None else [own]
    return labels if all(isinstance(label, str) for label in labels) else len(labels)


def _text_blocks(file, labels):
    """Yield record batches of the lines of a file: columns of bytes, those of the survey in their order."""
    pa = batches.arrow()
    from pyarrow import csv

    names, bad = _names(file.readline(1 << 20)), []
    wanted = labels if isinstance(labels, list) else names
    if isinstance(labels, list):
        _check_names(names, labels)
    elif names is None or not all(names) or len(set(names)) < len(names):
        raise ValueError("the first line must name the columns, each by a name of its own, with commas between them, "
                         "in UTF-8")
    elif len(names) != labels:
        raise ValueError(f"the file must have the {labels} columns of the survey, in order, because the survey does "
                         "not name them")

    def note(row):
        bad.append(row.number)
        return "error"

    read = csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False, column_names=names)
    parse = csv.ParseOptions(newlines_in_values=False, ignore_empty_lines=False, invalid_row_handler=note)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()), include_columns=wanted,
                                 strings_can_be_null=False, null_values=[])
    opened, error = attempt(csv.open_csv, pa.PythonFile(file, "r"), read, parse, convert)
    while not error:
        block, error = attempt(_next, opened)
        if block is None and not error:
            return
        if not error:
            yield block
    if bad:
        raise ValueError(f"line {bad[0] + 1}: the line must have as many values as the first line has names")
    raise ValueError("the file must be CSV, with at least one line below the names, and no line longer than 8 MiB")


def _next(opened):
    """Return the next record batch, or None."""
    try:
        return opened.read_next_batch()
    except StopIteration:
        return None


def _names(line):
    """Return the names in the first line, or None."""
    found, error = attempt(lambda: next(reader([line.decode("utf-8-sig").rstrip("\r\n")], strict=True)))
    return None if error else found


def _check_names(names, wanted):
    """Raise ValueError where a column of the survey is not named once; the message has names of the survey only."""
    what = "the first line must name each column of the survey once, with commas between names, in UTF-8"
    if names is None:
        raise ValueError(f"{what}: the line cannot be read as such, save the file as CSV in UTF-8")
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"{what}: {name!r} is there {names.count(name)} times, rename the others")
        if name not in names:
            other = next((word for mark, word in ((";", "semicolons"), ("\t", "tabs"))
                          if len(names) == 1 and mark in names[0]), None)
            raise ValueError(f"{what}: {name!r} is not there, " + (
                f"and the line has {other}, save the file with commas and with decimal points" if other
                else "in the same letters and without spaces around it"))


def _reader(column, n_jobs):
    """Return a function of the texts of a column's features: (rows as `Column.read` gives them, the first bad one).

    Its `expects` says which values it takes.
    """
    kind = column.domain["kind"]
    if kind in ("numbers", "row"):
        found = partial(_numbers, column, n_jobs)
        found.expects = "a number with a decimal point, such as 1234.5" + (", or nothing" if column.may_be_missing else
                                                                           ", and no empty value")
        return found
    if kind in ("categories", "text") and column.n_joint is None:
        known = _known_texts(column.domain.get("values", ()))
        found = partial(_categories, column, n_jobs, known)
        found.expects = ("one of its values, in the same letters and without spaces around it"
                         if kind == "categories" else "a text in UTF-8")
        found.expects += ", or nothing" if "" in known else ", and no empty value"
        return found
    raise ValueError(f"survey must have columns of numbers or categories, and {column.name} is another one: use "
                     "privatize of survey.client()")


def _known_texts(values):
    """Return {text: value} of categories that are no text, or raise ValueError where two have the same text."""
    known = {}
    for value in values:
        text = "" if value is None else str(value)
        for each in {text, text.lower()} if isinstance(value, bool) else {text}:
            if known.setdefault(each, value) is not value:
                raise ValueError("survey must have categories whose texts differ: use privatize of survey.client()")
    return known


def _categories(column, n_jobs, known, texts):
    found = texts[0].dictionary_encode()
    kinds, rows = found.dictionary.to_pylist(), found.indices.to_numpy()
    values, wrong = np.empty(len(kinds), object), np.zeros(len(kinds), bool)
    for number, each in enumerate(kinds):
        try:
            text = each.decode("utf-8")
            values[number] = known.get(text, text)
        except UnicodeDecodeError:
            wrong[number] = True
            values[number] = ""
    wrong |= ~passing(lambda part: column.read(part, n_jobs, False), values)
    if wrong.any():
        return None, int(np.argmax(wrong[rows]))
    return column.read(values, n_jobs, False)[rows], None


def _numbers(column, n_jobs, texts):
    pc, out = batches.arrow().compute, np.empty((len(texts[0]), len(texts)))
    for number, own in enumerate(texts):
        empty = pc.equal(pc.binary_length(own), 0).to_numpy(zero_copy_only=False)
        if column.may_be_missing:
            own = pc.if_else(batches.arrow().array(empty), b"0", own)
        given, error = attempt(_as_floats, own)
        wrong = ~passing(_check_floats, own) if error else ~np.isfinite(given)
        if wrong.any():
            return None, int(np.argmax(wrong))
        out[:, number] = np.where(empty, np.nan, given)
    rows = out if column.n_joint is not None else out[:, 0]
    return column.read(rows, n_jobs, False), None


def _as_floats(texts):
    pa = batches.arrow()
    return texts.cast(pa.string()).cast(pa.float64()).to_numpy()


def _check_floats(texts):
    if attempt(_as_floats, texts)[1]:
        raise ValueError
