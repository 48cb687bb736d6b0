"""Two runs of a program at once, on neighbours: the second one draws the noise of the first one, shifted.

Each value is a pair. What must hold for the shifts to prove the claim is collected: `facts` are about the first run and
the declarations, `duties` must follow from them. Proof: `verify.md`.
"""

import ast
from functools import reduce

from dpestim.verify import terms as t
from dpestim.verify.language import Append, Assign, If, Noise, Return, While

OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_ARITHMETIC = {ast.Add: t.add, ast.Sub: t.minus, ast.Mult: t.times, ast.Div: t.divided, ast.Mod: t.modulo}


class State:
    """Values of names as pairs, how long the output is, and how far noise was shifted so far, for each group."""

    def __init__(self, values, length=0, moved=None):
        self.values, self.length, self.moved = values, length, moved or {}

    def copy(self):
        """Return a copy."""
        return State(dict(self.values), self.length, dict(self.moved))

    def merge(self, cond, other):
        """Take the values of another state where a condition holds, which is the same in both runs."""
        for name, new in other.values.items():
            self.values[name] = chosen((cond, cond), new, self.values.get(name, new))
        self.length = t.choose(cond, other.length, self.length)
        for group, new in other.moved.items():
            self.moved[group] = t.choose(cond, new, self.moved.get(group, 0))


def chosen(conds, new, old):
    """Return a pair that is new where its condition holds; one object where both runs have one."""
    first = t.choose(conds[0], new[0], old[0])
    if conds[0] is conds[1] and new[0] is new[1] and old[0] is old[1]:
        return first, first
    return first, t.choose(conds[1], new[1], old[1])


class Runs:
    """Executes statements on pairs.

    `world` gives parameters, answers, noise and the output that the first run has; `shifts` one `Shift` for each site;
    `groups` the number of the group of each site, those of one scale. `loop` takes loops; None unrolls them.
    """

    def __init__(self, program, world, shifts, groups, loop=None, most=12):
        self.program, self.world, self.shifts, self.groups = program, world, shifts, groups
        self.loop, self.most = loop, most
        self.state = State({name: (value, value) for name, value in world.parameters.items()})
        self.facts, self.duties = list(world.facts), []
        self.steps = ()

    def owe(self, formula, line, what):
        """Add a duty."""
        if formula is not True:
            self.duties.append((formula, line, what))

    def run(self):
        """Execute the whole program."""
        self.block(self.program.body, (True, True), (True, True))
        return self

    # ---------------------------------------------------------------- statements

    def block(self, body, here, path):
        """Execute statements: `here` where the enclosing ifs of this loop body are taken, `path` where all is."""
        for node in body:
            if path[0] is False and path[1] is False:
                return
            self.statement(node, here, path)

    def statement(self, node, here, path):
        """Execute one statement."""
        if isinstance(node, Assign):
            new = self.pair(node.expr, path, node.line)
            self.state.values[node.name] = chosen(here, new, self.state.values.get(node.name, new))
        elif isinstance(node, Noise):
            self.draw(node, path)
        elif isinstance(node, If):
            conds = self.pair(node.cond, path, node.line)
            self.block(node.body, joined(here, conds), joined(path, conds))
            others = tuple(map(t.negated, conds)) if conds[0] is not conds[1] else (t.negated(conds[0]),) * 2
            self.block(node.orelse, joined(here, others), joined(path, others))
        elif isinstance(node, While):
            self.together(path, node.line, "a loop")
            if self.loop is None:
                self.unrolled(node, here, path)
            else:
                self.loop(self, node, here, path)
        elif isinstance(node, Append):
            self.together(path, node.line, "an output")
            self.output(node.expr, self.state.length, path, node.line)
            self.state.length = t.add(self.state.length, t.choose(here[0], 1, 0))
        elif isinstance(node, Return):
            for k, expr in enumerate(node.exprs):
                if expr is not None:
                    self.output(expr, ("returned", k), path, node.line)

    def together(self, path, line, what):
        """Both runs must be here, or neither is."""
        if path[0] is not path[1]:
            self.owe(t.same(*path), line, f"both runs reach {what}")

    def draw(self, site, path):
        """Draw noise for the first run, and shift it for the second one; the shift knows only what was before."""
        self.together(path, site.line, "the noise")
        scale = self.value(site.scale, 0, site.line)
        self.owe(t.compare(">", scale, 0), site.line, "the scale is above 0")
        shift = self.shifts[site.number].value(self)
        whole = site.kind == "discrete_laplace"
        if whole and not (isinstance(shift, int) or (not t.is_known(shift) and shift.is_int())):
            self.owe(False, site.line, "integer noise is shifted by an integer")
        noise = self.world.noise(site, self.steps)
        self.state.values[site.name] = noise, t.add(noise, shift)
        group = self.groups[site.number]
        moved = t.choose(path[0], t.magnitude(shift), 0)
        self.state.moved[group] = t.add(self.state.moved.get(group, 0), moved)

    def output(self, expr, place, path, line):
        """Both runs put out the same; it is what the first run's output is known to be."""
        first, second = self.pair(expr, path, line) if not is_none(expr) else (0, 0)
        self.owe(t.implies(path[0], t.same(first, second)), line, "both runs have the same output")
        kind = self.program.types_of(expr)
        for fact in self.world.known_output(place, kind, first):
            self.facts.append(t.implies(path[0], fact))

    def unrolled(self, node, here, path):
        """Execute a loop step by step; the values after it are those of the step at which it ends."""
        outer, exits, active = self.state, [], True
        self.state = outer.copy()
        for step in range(self.most + 1):
            self.steps = (*self.steps, step)
            conds = self.pair(node.cond, path, node.line)
            inside = t.both(path[0], active)
            if conds[0] is not conds[1]:
                self.owe(t.implies(inside, t.same(*conds)), node.line, "the loop goes on in both runs")
            exits.append((t.both(active, t.negated(conds[0])), self.state.copy()))
            active = t.both(active, conds[0])
            inside = t.both(path[0], active)
            if inside is not False and step < self.most:
                # (what is executed in the loop is at the same step in both runs, or this was not proved)
                self.block(node.body, (True, True), (inside, inside))
            self.steps = self.steps[:-1]
            if inside is False:
                break
        else:
            self.owe(t.negated(inside), node.line, f"the loop ends within {self.most} steps")
        final = exits[-1][1]
        for cond, state in reversed(exits[:-1]):
            if cond is not False:
                final = final.copy()
                final.merge(cond, state)
        self.state = outer
        outer.merge(here[0], final)

    # ---------------------------------------------------------------- expressions

    def pair(self, expr, path, line):
        """Return the values of an expression in both runs, one object where it is public."""
        for node, sure in lookups(expr, self.program.is_secret):
            place = self.value(node.slice, 0, line)
            self.owe(t.implies(t.either(*path), t.compare(">=", place, 0)), line, "a place is at least 0")
            if path[0] is not path[1] or not sure:
                one = t.negated(t.same(*path)) if sure else t.either(*path)
                self.owe(t.implies(one, t.compare("<", place, self.world.length)), line,
                         "both runs look an answer up")
        first = self.value(expr, 0, line)
        return first, (self.value(expr, 1, line) if self.program.is_secret(expr) else first)

    def distance(self, expr):
        """Return how far the second run's value is above the first one's."""
        if not self.program.is_secret(expr):
            return 0
        return t.minus(self.value(expr, 1, 0), self.value(expr, 0, 0))

    def value(self, expr, run, line):
        """Return the value of an expression in one run."""
        def inner(part):
            return self.value(part, run, line)

        if isinstance(expr, ast.Constant):
            return number(expr.value)
        if isinstance(expr, ast.Name):
            return self.state.values[expr.id][run]
        if isinstance(expr, ast.Subscript):
            answer, change = self.world.answer(inner(expr.slice), self.facts)
            return t.add(answer, change) if run else answer
        if isinstance(expr, ast.BinOp):
            left, right = inner(expr.left), inner(expr.right)
            if isinstance(expr.op, ast.Div) and line and not (t.is_known(right) and right):
                self.owe(t.compare("!=", right, 0), line, "what is divided by is not 0")
            if isinstance(expr.op, ast.Mod) and line and not (t.is_known(right) and right > 0):
                self.owe(t.compare(">", right, 0), line, "the right side of % is above 0")
            return _ARITHMETIC[type(expr.op)](left, right)
        if isinstance(expr, ast.UnaryOp):
            inside = inner(expr.operand)
            return (t.negated(inside) if isinstance(expr.op, ast.Not) else
                    t.minus(0, inside) if isinstance(expr.op, ast.USub) else inside)
        if isinstance(expr, ast.Compare):
            return t.compare(OPERATORS[type(expr.ops[0])], inner(expr.left), inner(expr.comparators[0]))
        if isinstance(expr, ast.BoolOp):
            return (t.both if isinstance(expr.op, ast.And) else t.either)(*map(inner, expr.values))
        if expr.func.id == "len":
            return self.world.length
        if expr.func.id == "abs":
            return t.magnitude(inner(expr.args[0]))
        return reduce(t.least if expr.func.id == "min" else t.greatest, map(inner, expr.args))


def lookups(expr, is_secret, sure=True):
    """Yield (answer that is read, whether both runs read it if they are here): `and` and `or` may stop before it."""
    if isinstance(expr, ast.Subscript):
        yield expr, sure
    for part in ast.iter_child_nodes(expr):
        yield from lookups(part, is_secret, sure)
        if isinstance(expr, ast.BoolOp) and isinstance(part, ast.expr):
            sure = sure and not is_secret(part)


def joined(first, second):
    """Return two pairs of conditions together; one object where both runs have one."""
    one = t.both(first[0], second[0])
    if first[0] is first[1] and second[0] is second[1]:
        return one, one
    return one, t.both(first[1], second[1])


def is_none(expr):
    """Tell whether an expression is None."""
    return isinstance(expr, ast.Constant) and expr.value is None


def number(value):
    """Return a constant of the program as an exact number: a float for the decimal that was written."""
    from fractions import Fraction

    return Fraction(repr(value)) if isinstance(value, float) else value
