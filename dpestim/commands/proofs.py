"""`dpestim verify module:function`: a proof of a program, or a counterexample."""

from dpestim.commands.code_audits import load
from dpestim.commands.parser import DONE, FAILED, REJECTED, USAGE
from dpestim.commands.streams import say, show


def run(args):
    """Print the verdict on a program: 0 proved, 1 refuted, 3 unknown; 2 where it could not be asked."""
    from dpestim.verify import verify

    try:
        verdict = verify(load(args.target), time_limit=args.time)
    except ValueError as error:
        say(f"dpestim verify: {str(error).replace('time_limit', '--time')}")
        return USAGE
    show(verdict, args.json, verdict=verdict.status)
    return {"proved": DONE, "refuted": FAILED}.get(verdict.status, REJECTED)
