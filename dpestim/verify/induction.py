"""Loops of any number of steps: invariants are found by dropping candidates that a counterexample breaks (Houdini).

A loop is executed once, from a state of which only the invariants are known. What they say is proved where the loop
begins, and that a step keeps it; the duties of a step are proved from it.
"""

import time
from fractions import Fraction

from dpestim.verify import terms as t
from dpestim.verify.invariants import candidates
from dpestim.verify.language import Append, Assign, If, Noise, While
from dpestim.verify.ratios import of_number
from dpestim.verify.running import Runs, State
from dpestim.verify.worlds import SymbolicWorld


class NotProved(Exception):
    """A duty was not proved; it has the line (None: that of no statement) and the duty in words."""

    def __init__(self, line, what):
        super().__init__(what)
        self.line, self.what = line, what


def by_induction(program, sign, shifts, costs, until):
    """Prove the claim for any sizes, or raise `NotProved`."""
    groups, weights = costs
    world = SymbolicWorld(program, {}, None, sign)
    reader = Runs(program, world, [], [])
    claim = reader.value(program.claim_expr, 0, 0)
    world.facts += [reader.value(expr, 0, 0) for expr in program.assumptions]
    for site in program.sites:  # (also of noise that no run draws: what a shift costs must not be below 0)
        reader.owe(t.compare(">", reader.value(site.scale, 0, site.line), 0), site.line, "the scale is above 0")
    demand(world.facts, reader.duties, until)
    runs = Runs(program, world, shifts, groups, loop=Induction(program, world, groups, until))
    try:
        runs.run()
    except KeyError as error:
        raise NotProved(None, f"{error} has no value yet") from error
    runs.owe(t.compare(">", claim, 0), None, "the claim is above 0")
    demand(runs.facts, runs.duties, until)
    cost(program, world, weights, runs, until)


def check(facts, formula, until, milliseconds=5000):
    """Return (whether z3 proves a formula from facts, a model of the contrary or None)."""
    z3 = t.solver()
    solver = z3.Solver()
    left = int(1000 * (until - time.monotonic()))
    if left <= 0:
        raise NotProved(None, "there was no time left")
    solver.set("timeout", min(milliseconds, left))
    solver.add(*map(t.term, facts))
    solver.add(t.term(t.negated(formula)))
    found = solver.check()
    return found == z3.unsat, solver.model() if found == z3.sat else None


def demand(facts, duties, until):
    """Raise `NotProved` for a duty that does not follow from facts."""
    if check(facts, t.both(*[formula for formula, _, _ in duties]), until)[0]:
        return
    for formula, line, what in duties:
        if not check(facts, formula, until)[0]:
            raise NotProved(line, what)


def cost(program, world, weights, runs, until):
    """Prove that the shifts cost at most the claim: a bound of each group, and then the sum of the bounds."""
    unit = program.queries.sensitivity
    sizes = [(of_number(1), 1), *((ratio(name), world.parameters[name]) for name in program.integers)]
    total = of_number(0)
    for group, moved in runs.state.moved.items():
        # (a bound of no more than a parameter's multiple; smaller ones first)
        for c, (known, size) in ((c, size) for size in sizes for c in (0, unit, 2 * unit, 3 * unit, 4 * unit)):
            if check(runs.facts, t.compare("<=", moved, t.times(c, size)), until)[0]:
                total = total + of_number(c) * known * weights[group]
                break
        else:
            raise NotProved(None, "the shifts have no bound that was thought of")
    sure = total.as_number()
    if sure is None:
        above, below = total.value({name: t.real(value) for name, value in world.parameters.items()}, t.real)
        if check(world.facts, above / below <= 1, until)[0]:
            return
    if sure is None or sure > 1:
        raise NotProved(None, "the shifts cost more than the claim" if sure is None else
                        f"the shifts cost {float(sure):g} times the claim")


def ratio(name):
    """Return a parameter as a ratio."""
    from dpestim.verify.ratios import Ratio

    return Ratio({((name, 1),): Fraction(1)})


def assigned(body):
    """Yield the names and sites that statements change, and ... for the output."""
    for node in body:
        if isinstance(node, Assign | Noise):
            yield node.name
        elif isinstance(node, Append):
            yield ...
        elif isinstance(node, If | While):
            yield from assigned(node.body)
            yield from assigned(getattr(node, "orelse", []))


class Induction:
    """Takes the loops of `Runs`."""

    def __init__(self, program, world, groups, until):
        self.program, self.world, self.groups, self.until = program, world, groups, until
        self.count = 0

    def __call__(self, runs, node, here, path):
        """Execute a loop by invariants."""
        if any(cond is not True for cond in (*path, *here)):
            raise NotProved(node.line, "a loop inside an if or another loop is not proved by induction")
        before, self.count = runs.state, self.count + 1
        head = self.any_state(before, node)
        # (each formula is made once: that takes longer than z3 does)
        made = [made for _, made in candidates(self.program, self.world, before, head)]
        made = self.kept(runs.facts, [(one, one(before)) for one in made])
        after, facts, duties = self.step(runs, node, head)
        holds = self.kept(facts, [(one(head), one(after)) for one in made], given=True)
        demand([*facts, *holds], duties, self.until)
        runs.state = head
        conds = runs.pair(node.cond, path, node.line)
        runs.facts += [*holds, t.negated(conds[0])]
        if conds[0] is not conds[1]:
            runs.owe(t.negated(conds[1]), node.line, "the loop ends in both runs")

    def any_state(self, before, node):
        """Return a state of which nothing is known that the loop changes."""
        z3 = t.solver()
        changed, values = set(assigned(node.body)), {}
        make = {"int": z3.Int, "real": z3.Real, "bool": z3.Bool}
        for name, pair in before.values.items():
            if name not in changed:
                values[name] = pair
            elif not name.startswith("~"):
                new = make[self.program.types[name]]
                first = new(f"{name}.{self.count}")
                values[name] = first, new(f"{name}'.{self.count}") if self.secret(name) else first
        length = z3.Int(f"!length.{self.count}") if ... in changed else before.length
        moved = dict(before.moved)
        for site in self.program.sites:
            if site.name in changed:
                moved[self.groups[site.number]] = z3.Real(f"!moved{self.groups[site.number]}.{self.count}")
        return State(values, length, moved)

    def secret(self, name):
        """Tell whether a name is secret."""
        import ast

        return self.program.is_secret(ast.Name(name, ast.Load()))

    def step(self, runs, node, head):
        """Return (state after a step, facts in it, its duties)."""
        inner = Runs(self.program, self.world, runs.shifts, self.groups, loop=nested)
        inner.state, inner.facts = head.copy(), list(runs.facts)
        conds = inner.pair(node.cond, (True, True), node.line)
        inner.facts.append(conds[0])
        if conds[0] is not conds[1]:
            inner.owe(conds[1], node.line, "the loop goes on in both runs")
        inner.block(node.body, (True, True), (True, True))
        return inner.state, inner.facts, inner.duties

    def kept(self, facts, formulas, given=False):
        """Return the first parts of pairs whose second part follows from facts (if `given`, from these first parts)."""
        while dropped := self.broken([*facts, *(one for one, _ in formulas)] if given else facts,
                                     [formula for _, formula in formulas if formula is not True]):
            formulas = [pair for pair in formulas if all(pair[1] is not one for one in dropped)]
        return [one for one, _ in formulas]

    def broken(self, facts, formulas):
        """Return formulas that do not follow from facts, at least one where there is one."""
        proved, model = check(facts, t.both(*formulas), self.until)
        if proved:
            return []
        if model is None:  # (z3 does not know: each by itself, and what is not proved is dropped)
            return [one for one in formulas if not check(facts, one, self.until, 500)[0]]
        z3 = t.solver()
        return [one for one in formulas if one is False or z3.is_false(model.eval(one, model_completion=True))] or (
            formulas[:1])


def nested(runs, node, here, path):
    """Refuse a loop inside a loop."""
    raise NotProved(node.line, "a loop inside another loop is not proved by induction")
