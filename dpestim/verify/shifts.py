"""Shifts: how the noise of one site is moved between the runs, the candidates of a site, and what they are in words."""

import ast
from fractions import Fraction
from itertools import product

from dpestim.records import record
from dpestim.verify import terms as t
from dpestim.verify.language import Append, Return
from dpestim.verify.reading import expressions, names_in


@record
class Form:
    """`constant` less how far an expression of the second run is above that of the first."""

    constant: Fraction
    less: ast.expr | None = None

    def value(self, runs):
        """Return the shift, at the state before the noise is drawn."""
        constant = int(self.constant) if self.constant.denominator == 1 else self.constant
        return constant if self.less is None else t.minus(constant, runs.distance(self.less))

    def __str__(self):
        if self.less is None:
            return str(self.constant)
        text = f"distance({ast.unparse(self.less).replace('~', 'noise ')})"
        return f"{self.constant} - {text}" if self.constant else f"-{text}"


@record
class NextOutput:
    """Whether the output of the first run that comes next is of a kind, and has a value."""

    kind: str
    known: object

    def value(self, runs):
        """Return the truth value."""
        return runs.world.next_is(runs.state.length, self.kind, self.known)

    def __str__(self):
        return f"the next output is {self.known if self.known is not None else {'real': 'a number'}[self.kind]}"


@record
class ReturnedIs:
    """Whether the number that the first run returns is that of an expression now."""

    number: int
    expr: ast.expr

    def value(self, runs):
        """Return the truth value."""
        return t.same(runs.world.returned(self.number, "int"), runs.value(self.expr, 0, 0))

    def __str__(self):
        return f"the program returns {ast.unparse(self.expr)}"


@record
class Shift:
    """What noise is shifted by: a form, or one of two where a guard tells."""

    yes: Form
    guard: NextOutput | ReturnedIs | None = None
    no: Form | None = None

    def value(self, runs):
        """Return the shift."""
        if self.guard is None:
            return self.yes.value(runs)
        return t.choose(self.guard.value(runs), self.yes.value(runs), self.no.value(runs))

    def __str__(self):
        return str(self.yes) if self.guard is None else f"{self.yes} if {self.guard}, else {self.no}"

    @property
    def weight(self):
        """How early this is tried: simple and cheap ones first."""
        forms = [self.yes] if self.guard is None else [self.yes, self.no]
        return sum(2 * abs(form.constant) + (form.less is not None) for form in forms) + 2 * (self.guard is not None)


def candidates(program, site):
    """Return the shifts of a site that are tried, simple ones first."""
    companions = list(site.companions)
    if site.is_output and len(companions) == 1:
        return [Shift(Form(Fraction(0), companions[0]))]
    if site.is_output:
        return [Shift(Form(Fraction(0)))]
    unit = program.queries.sensitivity
    still = [Form(Fraction(0)), *(Form(Fraction(0), less) for less in companions if program.is_secret(less))]
    moved = [Form(c * unit, form.less) for c in (1, -1, 2, -2) for form in still]
    out = [Shift(form) for form in (*still, *moved)]
    out += [Shift(yes, guard, no) for guard in guards(program, site) for yes, no in product((*still, *moved), still)
            if yes != no]
    if site.kind == "discrete_laplace":
        out = [s for s in out if all(f is None or f.constant.denominator == 1 for f in (s.yes, s.no))]
    return sorted(out, key=lambda shift: shift.weight)


def guards(program, site):
    """Return what the output of the first run can tell a shift."""
    kinds, out = set(), []
    for node, expr in expressions(program.body):
        if isinstance(node, Append):
            kind = program.types_of(expr)
            known = expr.value if isinstance(expr, ast.Constant) and kind in ("bool", "int") else None
            kinds.add((kind, known))
    if len(kinds) > 1:
        out += [NextOutput(kind, known) for kind, known in sorted(kinds, key=str)
                if kind != "none" and (kind == "real" or known is not None)]
    for node in program.body:
        if isinstance(node, Return):
            for number, expr in enumerate(node.exprs):
                if expr is not None and program.types_of(expr) == "int":
                    out += [ReturnedIs(number, ast.Name(name, ast.Load())) for name in assigned_from(program, expr)]
    return out


def assigned_from(program, expr):
    """Return public integers from which the names of an expression are assigned, and constants of none."""
    wanted, found = names_in(expr), []
    for _, value in expressions(program.body):
        if isinstance(value, ast.Name) and program.types.get(value.id) == "int" and not program.is_secret(value):
            found.append(value.id)
    return list(dict.fromkeys(found)) if wanted else []
