"""What others raise shows values: the one place where it is caught."""

import traceback


def attempt(action, *arguments, passes=(KeyboardInterrupt,), **options):
    """Return (result, None), or (None, the type of what was raised).

    The exception itself is gone: whoever raises anew does so without a cause or a context that shows the data. Some
    libraries raise what is no Exception when they give up (polars panics, a cell may ask the interpreter to end).
    What `passes` is raised as it is. A MemoryError is not: a value can bring it about, and its message shows a shape.
    """
    try:
        return action(*arguments, **options), None
    except passes:
        raise
    except BaseException as error:
        return None, type(error)


def restated(action, ours, around=None):
    """Return what an action returns, or raise ValueError without the message of what a stranger raised.

    What was raised below a method of one of `ours`, classes that show no values (but not of `around` itself, which only
    calls others), passes as it is, and so do exceptions that dpestim defines. The innermost estimator is named.
    """
    try:
        return action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        inside = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
        if type(error).__module__.partition(".")[0] == "dpestim" or any(
                isinstance(item, ours) and item is not around for item in inside):
            raise
        kinds = [type(item).__name__ for item in inside if hasattr(item, "fit")]
        what = f"{kinds[-1] if kinds else 'a step'} raised {type(error).__name__}"
        del inside
    raise ValueError(f"steps must accept the data: {what} (its message is withheld, because it may show values; fit "
                     "the step alone to see the message)")
