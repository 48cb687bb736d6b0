"""`dpestim ledger new`, `show` and `verify`."""

import os

from dpestim.commands.parser import DONE, REJECTED, USAGE
from dpestim.commands.streams import say, show, show_facts


def usage(args):
    """Print the actions."""
    args.parser.print_help()
    return USAGE


def new_ledger(args):
    """Make a ledger file."""
    from dpestim.accounting import Ledger

    if os.path.lexists(args.ledger):
        raise ValueError(f"{args.ledger} exists: name another file, or look at this one by `dpestim ledger show`")
    Ledger(args.epsilon, delta=args.delta, path=args.ledger)
    return DONE


def show_ledger(args):
    """Print what was spent and what is left."""
    from dpestim.accounting import Ledger

    ledger = Ledger.open(args.ledger)
    spent, left = ledger.spent(), ledger.remaining()
    show(ledger._account(), args.json, neighbours=ledger.neighbours, composition=ledger.composition,
         spent={"epsilon": spent.epsilon, "delta": spent.delta}, remaining={"epsilon": left.epsilon,
                                                                            "delta": left.delta})
    return DONE


def verify_ledger(args):
    """Check the file: 3 where it was changed."""
    from dpestim.accounting import Ledger, LedgerError

    try:
        ledger = Ledger.open(args.ledger)
    except FileNotFoundError:
        raise
    except LedgerError as error:
        say(f"dpestim ledger verify: {error}")
        show_facts({"intact": False}, args.json)
        return REJECTED
    show_facts({"intact": True, "entries": len(ledger)}, args.json)
    return DONE
