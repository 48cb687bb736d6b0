"""Reports as lines of text, for small uses: CSV, JSON lines, and one report in base64url a line.

A CSV file has a line of names, with a column `report`; a JSON line is an object with a key `report`. It holds the
payload in base64url, or a whole report as ``Survey.encode_text`` writes it. Optional: `nonce` (8 bytes in base64url)
and `received_on` (a date such as 2026-11-26, never a time to the second: times tell who was asked with whom). Other
columns are not read. About 300,000 lines a second; Arrow and Parquet are a hundred times as fast.
"""

import csv
import io
import json
import re

import numpy as np

from dpestim.collection.incoming import CODES, MALFORMED, NO_DAY, TRUNCATED, day_of, of_messages
from dpestim.collection.messages import from_text, to_text

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_text(text):
    """Return the bytes that base64url stands for, or raise ValueError."""
    found = from_text(text if isinstance(text, str) else text.decode("ascii"))[0]
    if not found:
        raise ValueError("no base64url")
    return found


def of_lines(survey, lines, kind, header=None):
    """Return the block of lines, without their ends, of a file of this kind: "csv", "jsonl" or "txt".

    `header` is the first line of a CSV file. Empty lines are left out.
    """
    lines = [line.rstrip(b"\r") for line in lines]
    lines = [line for line in lines if line]
    read = {"csv": lambda line: _cells(line, names), "jsonl": _object, "txt": lambda line: {"report": line}}[kind]
    names = header and _names(header)
    messages, nonces, days, whole = [], [], [], np.zeros(len(lines), bool)
    for number, line in enumerate(lines):
        message, nonce, day = b"", None, NO_DAY
        try:
            found = read(line)
            message = read_text(found["report"])
            whole[number] = True
            if found.get("nonce"):
                nonce = read_text(found["nonce"])
                whole[number] = len(nonce) == 8
            if found.get("received_on"):
                day = _day(found["received_on"])
        # (whatever a hostile line makes of JSON or base64)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error):
            message, nonce, day, whole[number] = b"", None, NO_DAY, False
        messages.append(message)
        nonces.append(nonce)
        days.append(day)
    block = of_messages(survey, messages)
    block.came_as(lines.__getitem__)
    if kind != "txt":
        _take_payloads(survey, block, messages, nonces, whole)
    block.days = np.array(days, np.int64)
    return block


def _take_payloads(survey, block, messages, nonces, whole):
    """Fill in what stands as a payload only, and not as a whole report."""
    size = survey.report_bytes
    for row, message in enumerate(messages):
        if not whole[row]:
            block.reasons[row] = CODES[MALFORMED]
        elif len(message) == size:
            block.payload[row], block.reasons[row] = np.frombuffer(message, np.uint8), 0
            if nonces[row] is not None:
                if block.nonces is None:
                    block.nonces = np.zeros(len(block), np.uint64)
                block.nonces[row], block.has_nonce[row] = int.from_bytes(nonces[row], "little"), True
        elif len(message) < size and message[:3] != b"DPR":
            block.reasons[row] = CODES[TRUNCATED]


def lines_into(file, tables, kind):
    """Write Arrow tables of reports as lines into a binary file: ".csv" or ".jsonl"."""
    names = None
    for table in tables:
        if names is None:
            names = table.column_names
            if kind == ".csv":
                file.write((",".join(names) + "\r\n").encode())
        cells = [_texts(table[name]) for name in names]
        if kind == ".csv":
            text = io.StringIO(newline="")
            csv.writer(text).writerows(zip(*cells))
            file.write(text.getvalue().encode())
        else:
            file.write("".join(json.dumps(dict(zip(names, row))) + "\n" for row in zip(*cells)).encode())
    if names is None:
        raise ValueError("tables must be at least one")


def _texts(column):
    values = column.to_pylist()
    return to_text(values) if values and isinstance(values[0], bytes) else list(map(str, values))


def is_header(line):
    """Tell whether a line names columns, one of them `report`."""
    return _names(line) is not None


def _names(header):
    try:
        names = next(csv.reader([header.decode("utf-8-sig").rstrip("\r\n")]))
    except (ValueError, csv.Error, StopIteration):
        return None
    return names if names.count("report") == 1 else None


def _cells(line, names):
    cells = next(csv.reader([line.decode("utf-8")]))
    return dict(zip(names, cells, strict=True))


def _object(line):
    found = json.loads(line)
    if not isinstance(found["report"], str):
        raise ValueError("no text")
    return found


def _day(text):
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        raise ValueError("no date")
    return day_of(text)
