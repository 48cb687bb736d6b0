"""What the wrapper of a local estimator reads from it: who randomises, with which law and epsilon."""

from dpestim.local.numbers.pm import PMTransformer
from dpestim.shuffle.amplification import blanket_delta


def inner_of(estimator):
    """Return who randomises for an estimator: its transformer, where it has one, or itself."""
    inner = getattr(estimator, "transformer", estimator)
    return PMTransformer() if inner is None else inner


def row_epsilon(columns):
    """Return the local epsilon of a row's whole report."""
    return columns.guarantee().epsilon


def law_of(columns, otherwise):
    """Return the law of a row's report where it is that of a single column."""
    return columns.laws[0] if len(columns) == 1 and not columns.n_sampled else otherwise


def known_law(columns, bound):
    """Return the law that the bound is computed of; None where only its epsilon counts."""
    if bound == "clones":
        return None
    law = law_of(columns, None)
    if bound == "blanket":
        if law is None:
            raise ValueError("bound must be 'clones' or 'best' for several columns")
        blanket_delta(1, law, 0)  # (which says why not, where it is not known)
    return law


def check_number(n, needed):
    """Refuse fewer users than were to hide each other."""
    if n < needed:
        raise ValueError(f"n_users must not exceed the number of users: the guarantee is for {needed} users, and there "
                         f"are {n}")
