"""How a statistic becomes a function: with the parameters of its class as keywords, and a docstring."""

import inspect

_TEXT = """{line}

    The function calls `{name}`, whose page states the guarantee, the accuracy and the proof.

    Parameters
    ----------
    x : array-like, Series or data frame of shape (n_rows,) or (n_rows, n_columns)
    users : array-like of shape (n_rows,), default=None
        The user of each row; needs `max_rows_per_user`.
    {keywords}
        As for `{name}`; epsilon must be given.

    Returns
    -------
    Result
        With value, standard_error, interval(level) and privacy.

    Raises
    ------
    ValueError
        For an invalid parameter or invalid data, before anything is charged. The message never names a value of the
        data.

    Notes
    -----
    **Privacy.** In the central model, for the declared neighbours (by default one record is replaced); the curator, who
    holds the data, must be trusted. **Complexity.** That of `{name}`.

    Examples
    --------
    {example}
    """


def function_of(module, name, kind, line, example, changed=None, **fixed):
    """Return a function of a module that fits a class, with its parameters as keywords."""
    own = [p for p in list(inspect.signature(kind.__init__).parameters.values())[1:] if p.name not in fixed]

    def function(x, *, users=None, **params):
        if "epsilon" not in params:
            raise ValueError("epsilon must be given, the budget of the release, such as epsilon=1.0")
        return kind(**fixed, **{**(changed or {}), **params}).fit(x, users=users).result_

    defaults = {"epsilon": inspect.Parameter.empty, **(changed or {})}
    keywords = [p.replace(kind=p.KEYWORD_ONLY, default=defaults.get(p.name, p.default)) for p in own]
    first = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    last = [inspect.Parameter("users", inspect.Parameter.KEYWORD_ONLY, default=None)]
    function.__signature__ = inspect.Signature(first + keywords + last)
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = _TEXT.format(line=line, name=kind.__name__, keywords=", ".join(p.name for p in own),
                                    example="\n    ".join(example.split("\n")))
    return function


#: An example of a function of numbers, and its result.
EXAMPLE = (">>> import numpy as np\n>>> from dpestim.statistics import {0}\n"
           ">>> x = np.random.default_rng(0).normal(5, 2, 50_000)\n"
           ">>> result = {0}(x, epsilon=1.0, bounds=(0, 10), {2}random_state=0)\n>>> round(result.value)\n{1}")
