"""`dpestim audit`."""

import os

from dpestim.commands import code_audits
from dpestim.commands.parser import DONE, REJECTED, USAGE
from dpestim.commands.streams import Facts, say, show
from dpestim.commands.surveys import load


def run(args):
    """Audit code where there is a claim, and else a survey."""
    if args.epsilon is not None:
        return code_audits.run(args)
    if args.pair or (":" in args.target and not os.path.exists(args.target)):
        say("dpestim audit: give --epsilon, what the code claims")
        return USAGE
    return of_survey(args)


def of_survey(args):
    """Print the epsilon of each column's exact law, and how often the best guess is right; 3 where a law is worse."""
    from dpestim.audit import BayesianAdversary, exact_epsilon
    from dpestim.privacy.rounding import float_up

    survey = load(args.target)
    client = survey.client()
    columns = client._columns_now()
    rows, kept = [], True
    for number, (column, law) in enumerate(zip(columns, columns.laws)):
        real = float(exact_epsilon(law))
        kept &= real <= float_up(law.plain_epsilon)  # (both are rounded up)
        try:
            share, blind = BayesianAdversary(client, column=number).expected_success(), 1 / len(law.input_codes)
        except ValueError:  # (laws of open columns have no list of values to guess among)
            share = blind = None
        name = column.name.removeprefix("column ").strip("'")
        rows.append((name, type(law).__name__, float(law.plain_epsilon), real, share, blind))
    show(Facts(("column", "law", "epsilon", "exact epsilon", "best guess right", "without report"), rows), args.json,
         kept=kept)
    return DONE if kept else REJECTED
