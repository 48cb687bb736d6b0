"""Operations on values that are numbers and truth values of Python, or terms of z3: constants are computed at once.

Numbers are int and Fraction, so that no float is ever between a program and its proof.
"""

import functools
from fractions import Fraction


@functools.cache
def solver():
    """Return the module z3, or raise ImportError that says what to install."""
    try:
        import z3
    except ImportError as error:
        raise ImportError('a proof needs z3-solver: pip install "dpestim[verify]"') from error
    return z3


def is_known(*values):
    """Tell whether values are constants of Python."""
    return all(isinstance(value, bool | int | Fraction) for value in values)


def term(value):
    """Return a value as a term of z3."""
    z3 = solver()
    if isinstance(value, bool):
        return z3.BoolVal(value)
    if isinstance(value, int):
        return z3.IntVal(value)
    if isinstance(value, Fraction):
        return z3.RealVal(f"{value.numerator}/{value.denominator}")
    return value


def real(value):
    """Return a value as a term of z3 that is a real number."""
    value = term(Fraction(value) if is_known(value) else value)
    return solver().ToReal(value) if value.is_int() else value


def add(a, b):
    """Return a + b."""
    if is_known(a, b):
        return a + b
    if is_known(a) and a == 0:
        return b
    return a if is_known(b) and b == 0 else term(a) + term(b)


def minus(a, b):
    """Return a - b; 0 where both are one term."""
    if is_known(a, b):
        return a - b
    if not is_known(a) and not is_known(b) and a.eq(b):
        return 0
    return a if is_known(b) and b == 0 else term(a) - term(b)


def times(a, b):
    """Return a * b."""
    if is_known(a, b):
        return a * b
    for known, other in ((a, b), (b, a)):
        if is_known(known) and known in (0, 1):
            return known and other
    return term(a) * term(b)


def divided(a, b):
    """Return a / b of real numbers."""
    if is_known(a, b):
        return Fraction(a) / Fraction(b)
    return real(a) / real(b)


def modulo(a, b):
    """Return a % b of integers; b is above 0, which is proved elsewhere."""
    return a % b if is_known(a, b) else term(a) % term(b)


def compare(op, a, b):
    """Return whether a op b, of one of <, <=, >, >=, ==, !=."""
    if not is_known(a, b):
        if op in ("<=", ">=", "==") and not is_known(a) and not is_known(b) and a.eq(b):
            return True
        a, b = term(a), term(b)
    return {"<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b,
            "==": lambda: a == b, "!=": lambda: a != b}[op]()


def both(*parts):
    """Return the conjunction."""
    kept = [part for part in parts if part is not True]
    if any(part is False for part in kept):
        return False
    return True if not kept else kept[0] if len(kept) == 1 else solver().And(*kept)


def either(*parts):
    """Return the disjunction."""
    kept = [part for part in parts if part is not False]
    if any(part is True for part in kept):
        return True
    return False if not kept else kept[0] if len(kept) == 1 else solver().Or(*kept)


def negated(a):
    """Return not a."""
    return not a if is_known(a) else solver().Not(a)


def implies(a, b):
    """Return whether b holds where a does."""
    return either(negated(a), b)


def same(a, b):
    """Return whether two truth values or two numbers are equal."""
    return compare("==", a, b)


def choose(cond, a, b):
    """Return a where the condition holds, and b otherwise."""
    if is_known(cond):
        return a if cond else b
    if a is b or (is_known(a, b) and a == b and isinstance(a, bool) == isinstance(b, bool)):
        return a
    if not is_known(a) and not is_known(b) and a.eq(b):
        return a
    return solver().If(cond, term(a), term(b))


def magnitude(a):
    """Return |a|."""
    return abs(a) if is_known(a) else choose(compare(">=", a, 0), a, minus(0, a))


def least(a, b):
    """Return the smaller."""
    return choose(compare("<=", a, b), a, b)


def greatest(a, b):
    """Return the larger."""
    return choose(compare(">=", a, b), a, b)
