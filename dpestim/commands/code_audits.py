"""`dpestim audit module:function`: an audit of running code."""

import ast
import importlib
import os
import sys

from dpestim.commands.parser import DONE, FAILED, USAGE
from dpestim.commands.streams import say, show

_PAIR = ("give --pair DATA NEIGHBOUR: data of two neighbours as Python writes them, such as --pair 0 1 or "
         "--pair '[1, 0]' '[1]'")


def run(args):
    """Print what an audit of code finds: 0 nothing, 1 that the claim is wrong; 2 where it could not be asked."""
    from dpestim.audit import audit
    from dpestim.audit.running.asserting import refuse_empty

    try:
        mechanism = load(args.target)
        if not args.pair and not hasattr(mechanism, "get_params"):
            raise ValueError(_PAIR)
        pairs = [tuple(map(literal, pair)) for pair in args.pair] or None
        found = audit(mechanism, pairs, claim=(args.epsilon, args.delta), confidence=args.confidence,
                      time_limit=args.time, n_samples=args.samples, random_state=args.seed)
        refuse_empty(found)
    except (ValueError, ImportError) as error:
        say(f"dpestim audit: {_in_options(str(error))}")
        return USAGE
    show(found, args.json, violated=found.violated, epsilon_lower=found.epsilon_lower, event=found.event,
         pair=[repr(data) for data in found.pair], direction=found.direction, n_samples=found.n_samples,
         planned=found.planned, seed=found.seed)
    return FAILED if found.violated else DONE


def _in_options(text):
    """Return a message about parameters in the names of options."""
    for name, option in (("time_limit", "--time"), ("random_state", "--seed"), ("n_samples", "--samples"),
                         ("pairs must", "--pair must"), ("claim must", "--epsilon and --delta must")):
        text = text.replace(name, option)
    return text


def load(target):
    """Return what ``module:name`` names, or raise ValueError; modules of this folder come first."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise ValueError(f"{target!r} must be module:function, such as my_package.counts:noisy_count")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except Exception as error:  # (the module is any code)
        raise ValueError(f"module {module!r} cannot be imported ({type(error).__name__}: {error}): check its name, and "
                         "run the command in its folder or where it is installed") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"module {module!r} has no {name!r}: check the name after the colon")
        found = getattr(found, part)
    return found


def literal(text):
    """Return a Python literal; what is none is text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
