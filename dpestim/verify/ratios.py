"""Ratios of polynomials in parameters, exactly: how much one unit of a shift costs, as a share of the claim."""

import ast
from fractions import Fraction

from dpestim.verify.running import number


class Ratio:
    """A ratio of polynomials; a polynomial is {((name, power), ...): coefficient}."""

    def __init__(self, above, below=None):
        self.above, self.below = above, {(): Fraction(1)} if below is None else below

    def __add__(self, other):
        """Return the sum."""
        if self.below == other.below:
            return Ratio(_plus(self.above, other.above), self.below)
        return Ratio(_plus(_times(self.above, other.below), _times(other.above, self.below)),
                     _times(self.below, other.below))

    def __mul__(self, other):
        """Return the product."""
        return Ratio(_times(self.above, other.above), _times(self.below, other.below))

    def over(self, other):
        """Return self / other."""
        return self * Ratio(other.below, other.above)

    def __eq__(self, other):
        """Tell whether both are one function."""
        return _times(self.above, other.below) == _times(other.above, self.below)

    __hash__ = None

    def as_number(self):
        """Return the Fraction that this is everywhere, or None."""
        if not self.above:
            return Fraction(0)
        key = next(iter(self.above))
        if key not in self.below:
            return None
        factor = self.above[key] / self.below[key]
        return factor if self.above == {k: factor * v for k, v in self.below.items()} else None

    def value(self, values, real):
        """Return (numerator, denominator) of values of names; `real` reads a coefficient."""
        out = []
        for polynomial in (self.above, self.below):
            total = real(Fraction(0))
            for monomial, coefficient in polynomial.items():
                part = real(coefficient)
                for name, power in monomial:
                    for _ in range(power):
                        part = part * values[name]
                total = total + part
            out.append(total)
        return out


def ratio_of(expr, fixed):
    """Return the ratio that an expression of parameters is, some of which are fixed; None where it is none."""
    if isinstance(expr, ast.Constant):
        return of_number(number(expr.value))
    if isinstance(expr, ast.Name):
        return of_number(fixed[expr.id]) if expr.id in fixed else Ratio({((expr.id, 1),): Fraction(1)})
    if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub):
        inner = ratio_of(expr.operand, fixed)
        return None if inner is None else of_number(-1) * inner
    if isinstance(expr, ast.BinOp):
        left, right = ratio_of(expr.left, fixed), ratio_of(expr.right, fixed)
        if left is None or right is None:
            return None
        if isinstance(expr.op, ast.Add):
            return left + right
        if isinstance(expr.op, ast.Sub):
            return left + of_number(-1) * right
        if isinstance(expr.op, ast.Mult):
            return left * right
        if isinstance(expr.op, ast.Div) and right.above:
            return left.over(right)
    return None


def of_number(value):
    """Return a constant ratio."""
    value = Fraction(value)
    return Ratio({(): value} if value else {})


def _plus(a, b):
    out = dict(a)
    for key, value in b.items():
        out[key] = out.get(key, 0) + value
    return {key: value for key, value in out.items() if value}


def _times(a, b):
    out = {}
    for first, x in a.items():
        for second, y in b.items():
            powers = dict(first)
            for name, power in second:
                powers[name] = powers.get(name, 0) + power
            key = tuple(sorted(powers.items()))
            out[key] = out.get(key, 0) + x * y
    return {key: value for key, value in out.items() if value}
