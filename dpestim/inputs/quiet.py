"""What others raise shows values: the one place where it is caught."""


def attempt(action, *arguments, **options):
    """Return (result, None), or (None, the type of what was raised).

    The exception itself is gone: whoever raises anew does so without a cause or a context that shows the data. Some
    libraries raise what is no Exception when they give up (polars panics, a cell may ask the interpreter to end).
    """
    try:
        return action(*arguments, **options), None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return None, type(error)
