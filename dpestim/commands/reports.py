"""`dpestim privatize`, `dpestim collect` and `dpestim report`."""

import glob
import os
import shutil
import sys
import tempfile
from contextlib import nullcontext
from html import escape

from dpestim.commands.parser import DONE, REJECTED
from dpestim.commands.streams import say, show, show_facts
from dpestim.commands.surveys import load


def privatize(args):
    """Write a report for each row of a CSV file."""
    from dpestim.accounting import Ledger
    from dpestim.collection import privatize_csv

    if args.output != "-" and not args.output.lower().endswith((".parquet", ".csv", ".jsonl")):
        raise ValueError("--output must end in .parquet, .csv or .jsonl, or be -: by its end `dpestim collect` knows "
                         "what is in a file")
    survey = load(args.survey)
    if args.rows == args.survey == "-":
        raise ValueError("the survey or the rows must come from a file: the standard input can be read once")
    ledger = Ledger.open(args.ledger) if args.ledger else None
    with ledger or nullcontext():
        n = privatize_csv(sys.stdin.buffer if args.rows == "-" else args.rows, survey,
                          sys.stdout.buffer if args.output == "-" else args.output, batch=args.batch,
                          verbose=not args.quiet)
    if not args.quiet:
        say(f"{n:,} reports of {survey.report_bytes} bytes each")
    return DONE


def collect(args):
    """Count files of reports; 3 where reports were rejected in this run."""
    from dpestim.collection import Collector
    from dpestim.collection.incoming import Added

    survey = load(args.survey)
    collector = Collector(survey, args.state, received=args.received, keep_rejected=args.keep_rejected)
    patterns = [pattern if pattern == "-" else _pattern(pattern) for pattern in args.reports]
    for pattern in patterns:
        _refuse_raw(pattern)
    added = Added()
    for pattern in patterns:
        added += _from_input(collector) if pattern == "-" else collector.scan(pattern, verbose=not args.quiet)
    rejected = {reason: n for reason, n in added.rejected.items() if n}
    facts = {"added": added.n, "reports": collector.n_reports_, "batches": collector.batches_}
    collector.close()
    show_facts({**facts, **({"rejected": rejected} if args.json else
                            {f"rejected: {reason}": n for reason, n in rejected.items()})}, args.json)
    return REJECTED if rejected else DONE


def _pattern(given):
    """Return a pattern for `scan`: a file that is there is that file, though its name has signs of patterns."""
    if os.path.isfile(given):
        return glob.escape(given)
    if not glob.has_magic(given):
        raise ValueError(f"there is no file {given}: check the path, or give a quoted pattern")
    return given


def _refuse_raw(pattern):
    """Raise ValueError for CSV files without a column of reports: raw rows would be kept as rejected reports."""
    from dpestim.collection.rows import is_header

    for path in glob.glob(pattern, recursive=True):
        if path.endswith(".csv") and os.path.isfile(path):
            with open(path, "rb") as file:
                first = file.readline(1 << 20)
            if first.endswith(b"\n") and not is_header(first):
                raise ValueError(f"{path} has no column 'report' and is no file of reports. Nothing was counted: "
                                 "make reports of raw rows by `dpestim privatize`")


def _from_input(collector):
    """Count JSON lines of the standard input, by way of a file: a batch is known by its content."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "input.jsonl")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return collector.add_file(path)


def report(args):
    """Print estimates, and write them as a page."""
    from dpestim.collection import Collector
    from dpestim.inspection import privacy_card

    collector = Collector.open(args.state)
    if not collector.n_reports_:
        raise ValueError(f"{args.state} has no counted report yet: run `dpestim collect` first")
    server = collector.server()
    if args.html:
        with open(args.html, "w", encoding="utf-8") as file:
            name, card = escape(collector.survey.name), privacy_card(server, collector.survey.language or "en")
            file.write(f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{name}</title></head>"
                       f"<body style='font-family:sans-serif;margin:2em'><h1>{name}</h1>"
                       f"{server.result_._repr_html_()}{card.html}</body></html>")
        say(f"wrote {args.html}")
    show(server.result_, args.json, survey=collector.survey.id, n_users=server.n_users_,
         epsilon=server.privacy_.epsilon, rejected=dict(collector.rejected_))
    return DONE
