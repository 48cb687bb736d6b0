"""`verify`: a search for a counterexample and one for a proof, one after the other."""

import time

from dpestim.privacy.rounding import positive
from dpestim.progress import Progress
from dpestim.verify.language import Program
from dpestim.verify.proving import Proof, prove
from dpestim.verify.refuting import refute
from dpestim.verify.terms import solver
from dpestim.verify.verdict import Verdict


def verify(program, *, time_limit=60, sizes=None):
    """Prove or refute that a program is epsilon-differentially private, as it claims.

    The program is read and never run. A proof shifts the noise of one run so that the run on a neighbour has the same
    output, and z3 checks it (`pip install "dpestim[verify]"`); the shifts are searched. A refutation is a pair of
    inputs and an output whose exact ratio of probabilities is above e^epsilon. Samples decide nothing.

    Parameters
    ----------
    program : Program
        What the decorator `program` returns.
    time_limit : float, default=60
        Seconds after which the answer is "unknown". The search stops soon after.
    sizes : dict or None, default=None
        None: the proof is about any number of answers and all values of the parameters, by induction over loops.
        Otherwise the number of answers, and values of integer parameters, by name: loops are unrolled, and the
        proof is about these sizes only. Take it where induction fails.

    Returns
    -------
    Verdict
        With `status`, and the alignment or the counterexample.

    Raises
    ------
    ValueError
        Where the program was not made by `program`, or sizes are not of its parameters.

    Notes
    -----
    **Privacy.** A proof is about real numbers and exact noise: ``verify.md`` states the theorem. Floating-point code
    with the same text may lose more.

    Examples
    --------
    >>> from dpestim.verify import laplace, program, queries, verify
    >>> @program("epsilon", assume=["epsilon > 0"], q=queries())
    ... def loudest(q, epsilon):
    ...     best = 0
    ...     for i in range(len(q)):
    ...         value = q[i] + laplace(2 / epsilon)
    ...         if i == 0 or value > best:
    ...             best = value
    ...     return best
    >>> verdict = verify(loudest)
    >>> print(verdict.status)
    refuted
    """
    if not isinstance(program, Program):
        raise ValueError(f"program must be what the decorator `program` returns, got {type(program).__name__}: write "
                         "@program(...) above the function")
    limit = float(positive(time_limit, "time_limit"))
    sizes = _sizes(program, sizes)
    start = time.monotonic()
    until = start + limit

    def verdict(**found):
        return Verdict(program, time.monotonic() - start, **found)

    progress = Progress("verify", 1)
    found = refute(program, until=start + min(1.0, limit / 5))
    progress.tell("the quick search for a counterexample is over")
    if found is not None:
        return verdict(counterexample=found)
    try:
        solver()
    except ImportError as error:
        proof = f"no counterexample was found, and {error}"
    else:
        proof = prove(program, until=start + 0.6 * limit, sizes=sizes)
        progress.tell("the search for a proof is over")
        if isinstance(proof, Proof):
            return verdict(proof=proof)
    found = refute(program, until=until)
    progress.tell("the search for a counterexample is over")
    return verdict(counterexample=found) if found is not None else verdict(reason=proof)


def _sizes(program, sizes):
    if sizes is None:
        return None
    known = (program.query, *program.integers)
    for name, value in dict(sizes).items():
        if name not in known or isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"sizes must have integers of at least 0 for names among {', '.join(known)}, "
                             f"got {name!r}: {value!r}")
    if program.query not in sizes:
        raise ValueError(f"sizes must have the number of answers: {{{program.query!r}: 5}}")
    return dict(sizes)
