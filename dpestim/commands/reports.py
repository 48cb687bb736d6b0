"""`dpestim privatize`, `dpestim collect` and `dpestim report`."""

import sys
from contextlib import nullcontext

from dpestim.commands.parser import DONE, REJECTED
from dpestim.commands.streams import say, show, show_facts
from dpestim.commands.surveys import load


def privatize(args):
    """Write a report for each row of a CSV file."""
    from dpestim.accounting import Ledger
    from dpestim.collection import privatize_csv

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

    survey = load(args.survey)
    collector = Collector(survey, args.state, received=args.received, keep_rejected=args.keep_rejected)
    before = dict(collector.rejected_)
    for pattern in args.reports:
        if pattern == "-":
            collector.add_lines(sys.stdin.buffer)
        else:
            collector.scan(pattern, verbose=not args.quiet)
    rejected = {reason: n - before.get(reason, 0) for reason, n in collector.rejected_.items()}
    rejected = {reason: n for reason, n in rejected.items() if n}
    facts = {"reports": collector.n_reports_, "batches": len(collector.batches_)}
    show_facts({**facts, **({"rejected": rejected} if args.json else
                            {f"rejected: {reason}": n for reason, n in rejected.items()})}, args.json)
    return REJECTED if rejected else DONE


def report(args):
    """Print estimates, and write them as a page."""
    from dpestim.collection import Collector
    from dpestim.inspection import privacy_card

    collector = Collector.open(args.state)
    server = collector.server()
    if args.html:
        with open(args.html, "w", encoding="utf-8") as file:
            file.write(privacy_card(server).html)
        say(f"wrote {args.html}")
    show(server.result_, args.json, survey=collector.survey.id, n_users=server.n_users_,
         epsilon=server.privacy_.epsilon, rejected=dict(collector.rejected_))
    return DONE
