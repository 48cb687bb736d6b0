"""All paths of a program on given numbers: what each compares, draws and puts out, as sums of noises with coefficients.

A path is found by running the program with decisions: what noise decides is taken from the list, or tried both ways.
"""

import ast
from fractions import Fraction
from typing import NamedTuple

from dpestim.verify.language import Append, Assign, If, Noise, Return, While
from dpestim.verify.running import is_none, number


class Unsupported(Exception):
    """An exact probability is not known how to compute; it says why."""


class Linear:
    """A number, and a multiple of each noise."""

    __slots__ = ("constant", "of")

    def __init__(self, constant, of=None):
        self.constant, self.of = constant, of or {}

    def plus(self, other, factor=1):
        """Return self + factor other."""
        of = dict(self.of)
        for name, a in other.of.items():
            of[name] = of.get(name, 0) + factor * a
            if not of[name]:
                del of[name]
        return Linear(self.constant + factor * other.constant, of)

    def times(self, factor):
        """Return a multiple."""
        return Linear(self.constant * factor, {name: a * factor for name, a in self.of.items()} if factor else {})


class Path(NamedTuple):
    """One path: the noises as (kind, scale), sums that are at least 0 (or above it), and the outputs.

    An output is (kind, value): a truth value, None, or a `Linear`.
    """

    noises: list
    bounds: list
    outputs: tuple


def paths(program, parameters, answers, most=400, most_steps=200):
    """Return all paths of a program, or raise `Unsupported`."""
    out, decisions = [], []
    while True:
        walk = Walk(program, parameters, answers, decisions, most_steps)
        out.append(walk.path())
        if len(out) > most:
            raise Unsupported("there are too many paths")
        decisions = walk.decisions
        while decisions and not decisions[-1]:
            decisions.pop()
        if not decisions:
            return out
        decisions[-1] = False


class Walk:
    """One run with decisions, which grow by those that were missing."""

    def __init__(self, program, parameters, answers, decisions, most_steps):
        self.program, self.answers, self.most_steps = program, answers, most_steps
        self.decisions, self.next = list(decisions), 0
        self.values = {name: Linear(Fraction(value)) for name, value in parameters.items()}
        self.noises, self.bounds, self.outputs, self.returned = [], [], [], []

    def path(self):
        """Run, and return the path."""
        self.block(self.program.body)
        return Path(self.noises, self.bounds, (tuple(self.outputs), tuple(self.returned)))

    def block(self, body):
        """Execute statements."""
        for node in body:
            if isinstance(node, Assign):
                self.values[node.name] = self.value(node.expr)
            elif isinstance(node, Noise):
                scale = self.known(node.scale)
                if scale <= 0:
                    raise Unsupported("a scale is not above 0")
                self.values[node.name] = Linear(Fraction(0), {len(self.noises): Fraction(1)})
                self.noises.append((node.kind, scale))
            elif isinstance(node, If):
                self.block(node.body if self.value(node.cond) else node.orelse)
            elif isinstance(node, While):
                steps = 0
                while self.value(node.cond):
                    self.block(node.body)
                    steps += 1
                    if steps > self.most_steps:
                        raise Unsupported("a loop has too many steps")
            elif isinstance(node, Append):
                self.outputs.append(self.output(node.expr))
            elif isinstance(node, Return):
                self.returned += [self.output(expr) for expr in node.exprs if expr is not None]

    def output(self, expr):
        """Return (kind, value) of an output."""
        kind = self.program.types_of(expr)  # (0 and 0.0 are one number)
        return "real" if kind == "int" else kind, None if is_none(expr) else self.value(expr)

    def known(self, expr):
        """Return a number that no noise is in."""
        value = self.value(expr)
        if value.of:
            raise Unsupported("noise is where only numbers can be")
        return value.constant

    def decide(self, sum_, strict):
        """Tell whether a sum is at least 0 (above it, if strict): by its value, or by a decision."""
        if not sum_.of:
            return sum_.constant > 0 if strict else sum_.constant >= 0
        if self.next == len(self.decisions):
            self.decisions.append(True)
        taken = self.decisions[self.next]
        self.next += 1
        self.bounds.append((sum_, strict) if taken else (sum_.times(-1), not strict))
        return taken

    def compare(self, op, left, right):
        """Return whether left op right."""
        if isinstance(op, ast.Lt | ast.LtE):
            return self.decide(right.plus(left, -1), isinstance(op, ast.Lt))
        if isinstance(op, ast.Gt | ast.GtE):
            return self.decide(left.plus(right, -1), isinstance(op, ast.Gt))
        equal = self.decide(left.plus(right, -1), False) and self.decide(right.plus(left, -1), False)
        return equal if isinstance(op, ast.Eq) else not equal

    def value(self, expr):
        """Return a truth value, or a `Linear`."""
        if isinstance(expr, ast.Constant):
            return expr.value if isinstance(expr.value, bool) else Linear(Fraction(number(expr.value)))
        if isinstance(expr, ast.Name):
            return self.values[expr.id]
        if isinstance(expr, ast.Subscript):
            place = self.known(expr.slice)
            if not 0 <= place < len(self.answers):
                raise Unsupported("the program looks an answer up that there is not")
            return Linear(self.answers[int(place)])
        if isinstance(expr, ast.Compare):
            return self.compare(expr.ops[0], self.value(expr.left), self.value(expr.comparators[0]))
        if isinstance(expr, ast.BoolOp):
            wanted = isinstance(expr.op, ast.Or)
            return wanted if any(self.value(part) == wanted for part in expr.values) else not wanted
        if isinstance(expr, ast.UnaryOp):
            inner = self.value(expr.operand)
            return (not inner if isinstance(expr.op, ast.Not) else
                    inner.times(-1) if isinstance(expr.op, ast.USub) else inner)
        if isinstance(expr, ast.BinOp):
            return self.arithmetic(expr)
        if expr.func.id == "len":
            return Linear(Fraction(len(self.answers)))
        best = self.value(expr.args[0])
        if expr.func.id == "abs":
            return best if self.decide(best, False) else best.times(-1)
        for part in expr.args[1:]:
            other = self.value(part)
            larger = self.decide(best.plus(other, -1), False)
            best = best if larger == (expr.func.id == "max") else other
        return best

    def arithmetic(self, expr):
        """Return a sum, product or quotient, of which one factor must be a number."""
        left, right = self.value(expr.left), self.value(expr.right)
        if isinstance(expr.op, ast.Add):
            return left.plus(right)
        if isinstance(expr.op, ast.Sub):
            return left.plus(right, -1)
        if isinstance(expr.op, ast.Mult) and not (left.of and right.of):
            return left.times(right.constant) if left.of or not right.of else right.times(left.constant)
        if isinstance(expr.op, ast.Div) and right.constant:
            return left.times(1 / right.constant)
        if isinstance(expr.op, ast.Mod) and not left.of and right.constant > 0:
            return Linear(left.constant % right.constant)
        raise Unsupported("noise is multiplied by noise, or a number divided by 0")
