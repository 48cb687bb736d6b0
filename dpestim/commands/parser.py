"""Commands and their options. Modules that do the work are imported when their command runs."""

import argparse
import importlib
import os
import sys

#: What a command returns.
DONE, FAILED, USAGE, REJECTED, INTERRUPTED = 0, 1, 2, 3, 130

_EXIT_CODES = """\
exit codes:
  0  done
  1  refused or failed; one line on the standard error names the reason
  2  the arguments do not fit
  3  done, but some reports were rejected (collect), or a check failed (survey check, ledger verify)
  audit of code: 0 no violation was found, 1 the claim is wrong, 2 the arguments do not fit
  verify: 0 proved, 1 refuted, 3 unknown
  130  interrupted
"""


def build_parser():
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="dpestim", description="Collect statistics under local differential privacy, and look after budgets.",
        epilog=_EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add in (_plan, _survey, _privatize, _collect, _report, _ledger, _audit, _verify, _demo, _completion):
        add(commands)
    return parser


def main(argv=None):
    """Run one command; returns its exit code.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments. None: those of the process.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.version:
        from dpestim.version import __version__

        print(__version__)
        return DONE
    run = getattr(args, "run", None)
    if run is None:
        parser.print_help()
        return USAGE
    module, name = run.split(":")
    try:
        code = getattr(importlib.import_module(f"dpestim.commands.{module}"), name)(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("dpestim: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except FileNotFoundError as error:
        print(f"dpestim {args.command}: {_missing(error)}", file=sys.stderr)
        return FAILED
    except (ValueError, ImportError, OSError) as error:  # (a LedgerError is a ValueError)
        print(f"dpestim {args.command}: {error}", file=sys.stderr)
        return FAILED


def _missing(error):
    """Return what to do about a file or a folder that is not there."""
    if error.errno is None:  # (the library's own words)
        return str(error)
    folder = os.path.dirname(os.fspath(error.filename))
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder}: make it, or give another path"
    return f"there is no file {error.filename}: check the path"


def _command(commands, name, run, text, more=None):
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=more,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    if run:
        parser.set_defaults(run=run)
    return parser


def _json(parser):
    parser.add_argument("--json", action="store_true", help="print JSON for programs in place of a table")


def _survey_of(parser):
    parser.add_argument("-s", "--survey", required=True, metavar="FILE", help="the survey file")


def _plan(commands):
    parser = _command(commands, "plan", "plans:run", "compare mechanisms before a survey is taken", """\
Give two of --users, --epsilon and --target-rmse: the third is found. A plan reads no data.

example:
  dpestim plan --categories 1024 --users 1000000 --epsilon 1
""")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--categories", type=int, metavar="D", help="frequencies of D categories")
    what.add_argument("--numbers", type=int, metavar="K", help="means of K columns of numbers")
    parser.add_argument("--users", type=_count, metavar="N", help="number of users")
    parser.add_argument("--epsilon", type=_number, metavar="E", help="privacy budget of a user")
    parser.add_argument("--target-rmse", type=_number, metavar="R", help="root mean squared error to reach")
    parser.add_argument("--probability", type=_number, default=0.95, metavar="P",
                        help="probability of the largest error (default: %(default)s)")
    _json(parser)


def _survey(commands):
    parser = _command(commands, "survey", None, "make, show and check survey files")
    parser.set_defaults(run="surveys:usage", parser=parser)
    own = parser.add_subparsers(dest="action", metavar="ACTION")
    new = _command(own, "new", "surveys:new", "make a survey file from a domain file", """\
The domain file (TOML or JSON, as dpestim.Domain saves it) has the categories and bounds of the columns that are
asked for. Without --mechanism each column gets the mechanism with the smallest error for its domain and epsilon.

example:
  dpestim survey new --domain domain.toml --epsilon 2 --name "Drinks" -o survey.json
""")
    new.add_argument("--domain", required=True, metavar="FILE", help="the domain file (TOML or JSON)")
    new.add_argument("--epsilon", required=True, type=_text_number, metavar="E", help="privacy budget of a user")
    new.add_argument("--name", required=True, help="the name of the survey")
    new.add_argument("--mechanism", metavar="NAME", help="a class of dpestim.local for all columns, such as OUE or PM")
    new.add_argument("--valid-from", metavar="DATE", help="the first day, such as 2027-01-31")
    new.add_argument("--valid-until", metavar="DATE", help="the last day")
    new.add_argument("--question", action="append", default=[], metavar="COLUMN=TEXT",
                     help="what users are asked; may be repeated")
    new.add_argument("--language", choices=["en", "de"], help="the language of the users, for what they are promised")
    new.add_argument("-o", "--output", default="-", metavar="FILE", help="the survey file (default: standard output)")
    show = _command(own, "show", "surveys:show_survey", "print what a survey asks and what it promises")
    show.add_argument("survey", metavar="FILE", help="the survey file, or -")
    _json(show)
    check = _command(own, "check", "surveys:check", "derive all numbers of a survey file again and compare them")
    check.add_argument("survey", metavar="FILE", help="the survey file, or -")
    _json(check)


def _privatize(commands):
    parser = _command(commands, "privatize", "reports:privatize", "randomise the rows of a CSV file into reports", """\
Each row is one user's. The columns of the survey are found by name; others are not read. The file has commas between
values, decimal points, and UTF-8. A number beyond the bounds of the survey counts as the bound. Run the command once
for each row: two reports of one row cost twice. The ledger, if one is given, is charged when all rows are read, before
there is an output: rows that cannot be read cost nothing.

examples:
  dpestim privatize in.csv -s survey.json -o reports.parquet
  cat in.csv | dpestim privatize - -s survey.json -o - | gzip > reports.jsonl.gz
""")
    parser.add_argument("rows", metavar="CSV", help="rows with a header, or - for the standard input")
    _survey_of(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="reports: .parquet, .csv or .jsonl; - is the standard output (JSON lines)")
    parser.add_argument("--ledger", metavar="FILE", help="a ledger that pays")
    parser.add_argument("--batch", metavar="NAME", help="a name of these reports, stored with them")
    parser.add_argument("--quiet", action="store_true", help="no progress on the standard error")


def _collect(commands):
    parser = _command(commands, "collect", "reports:collect", "count files of reports, each exactly once", """\
The state file remembers which files were counted: run the command again as files arrive. An interrupted run is
continued by the next one. Reports that cannot be counted are rejected and named by their reason.

example:
  dpestim collect 'reports/*.parquet' -s survey.json --state drinks.sqlite
""")
    parser.add_argument("reports", nargs="+", metavar="FILE", help="files or quoted patterns; - is JSON lines from the "
                        "standard input")
    _survey_of(parser)
    parser.add_argument("--state", required=True, metavar="FILE", help="the state file; made if there is none")
    parser.add_argument("--received", metavar="DATE", help="the day on which reports came in, where files do not say")
    parser.add_argument("--keep-rejected", metavar="DIR", help="a folder for rejected reports")
    parser.add_argument("--quiet", action="store_true", help="no progress on the standard error")
    _json(parser)


def _report(commands):
    parser = _command(commands, "report", "reports:report", "print the estimates of what was collected", """\
example:
  dpestim report drinks.sqlite --html drinks.html
""")
    parser.add_argument("state", metavar="FILE", help="the state file of `dpestim collect`")
    parser.add_argument("--html", metavar="FILE", help="write a page with estimates, intervals and the privacy card")
    _json(parser)


def _ledger(commands):
    parser = _command(commands, "ledger", None, "make a ledger file, and look at it")
    parser.set_defaults(run="ledgers:usage", parser=parser)
    own = parser.add_subparsers(dest="action", metavar="ACTION")
    new = _command(own, "new", "ledgers:new_ledger", "make a ledger file with a budget")
    new.add_argument("ledger", metavar="FILE", help="the ledger file, which must not exist")
    new.add_argument("--epsilon", required=True, type=_text_number, metavar="E", help="the budget")
    new.add_argument("--delta", default=0.0, type=_number, metavar="D", help="the budget of delta (default: 0)")
    for name, text in (("show", "print what was spent and what is left"),
                       ("verify", "check the hash chain and the totals of all entries")):
        action = _command(own, name, f"ledgers:{name}_ledger", text)
        action.add_argument("ledger", metavar="FILE", help="the ledger file")
        _json(action)


def _audit(commands):
    parser = _command(commands, "audit", "audits:run", "compute what a report of a survey reveals, or audit code", """\
Of a survey file, for each column: the epsilon of the exact law, and how often the best guess of a value from its report
is right where all values are equally likely.

Of code, with --epsilon: the function is called many times with data and with a neighbour, and the outputs tell a lower
bound on its epsilon. Exit codes: 0 no violation was found, which is no proof; 1 the claim is wrong; 2 the arguments do
not fit.

examples:
  dpestim audit survey.json
  dpestim audit my_package.counts:noisy_count --epsilon 1 --pair 10 11
""")
    parser.add_argument("target", metavar="FILE|MODULE:FUNCTION", help="the survey file, or -; or a function of one "
                        "argument, or an estimator, of a module")
    code = parser.add_argument_group("code")
    code.add_argument("--epsilon", type=_number, metavar="E", help="the claim")
    code.add_argument("--delta", type=_number, default=0.0, metavar="D", help="the delta of the claim (default: 0)")
    code.add_argument("--pair", nargs=2, action="append", default=[], metavar=("DATA", "NEIGHBOUR"),
                      help="data of two neighbours, as Python writes them; may be repeated. An estimator needs none")
    code.add_argument("--time", type=_number, default=60.0, metavar="S", help="seconds (default: %(default)g)")
    code.add_argument("--samples", type=_count, metavar="N", help="outputs in all (default: what the time allows)")
    code.add_argument("--confidence", type=_number, default=0.999, metavar="C", help="with which a violation is one "
                      "(default: %(default)s)")
    code.add_argument("--seed", type=_count, metavar="N", help="of the audit (default: a new one, which is printed)")
    _json(parser)


def _verify(commands):
    parser = _command(commands, "verify", "proofs:run", "prove that a program is private, or show that it is not", """\
The program is a function with the decorator dpestim.verify.program. It is read, and not run. Exit codes: 0 proved,
1 refuted, 3 unknown, 2 the arguments do not fit.

example:
  dpestim verify my_package.programs:noisy_max
""")
    parser.add_argument("target", metavar="MODULE:FUNCTION", help="a program of a module")
    parser.add_argument("--time", type=_number, default=60.0, metavar="S", help="seconds (default: %(default)g)")
    _json(parser)


def _demo(commands):
    parser = _command(commands, "demo", "demos:run", "run a survey on real data from plan to report")
    parser.add_argument("--output", default="dpestim-demo", metavar="DIR", help="folder of the files (default: "
                        "%(default)s)")
    parser.add_argument("--epsilon", type=_text_number, default="2", metavar="E", help="budget (default: %(default)s)")


def _completion(commands):
    parser = _command(commands, "completion", "completion:run", "print completions for a shell", """\
examples:
  source <(dpestim completion bash)
  dpestim completion fish > ~/.config/fish/completions/dpestim.fish
""")
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    parser.set_defaults(build=build_parser)


def _number(text):
    """Return a number of the command line."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _count(text):
    """Return a whole number, which may be written as 1e6."""
    number = _number(text)
    if not number.is_integer():  # (so are neither infinity nor nan)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(number)


def _text_number(text):
    """Return the text of a decimal number or a fraction, exactly."""
    from fractions import Fraction

    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number: give a decimal or a fraction, 0.5 or 1/3") from None
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0: give a decimal or a fraction, 0.5 or 1/3")
    return number
