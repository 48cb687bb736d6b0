"""Proofs: duties of two runs are discharged by z3, and shifts are searched, guided by counterexamples."""

import contextlib
import time
from fractions import Fraction
from itertools import product

from dpestim.verify import terms as t
from dpestim.verify.induction import NotProved, by_induction
from dpestim.verify.ratios import of_number, ratio_of
from dpestim.verify.running import Runs
from dpestim.verify.shifts import candidates
from dpestim.verify.worlds import ConcreteWorld, SymbolicWorld


class Proof:
    """Shifts that prove a claim.

    Attributes
    ----------
    shifts : list of (str, list of Shift)
        For each case of the declaration ("" where there is one): a shift for each noise.
    scope : str
        What the proof is about: any sizes, or those that were unrolled.
    tried : int
        How many alignments were looked at.
    """

    def __init__(self, shifts, scope, tried):
        self.shifts, self.scope, self.tried = shifts, scope, tried


def weights_of(program, fixed):
    """Return (group of each site, what a unit of shift costs in each group, as a ratio to the claim)."""
    claim = ratio_of(program.claim_expr, fixed)
    groups, weights = [], []
    for site in program.sites:
        scale = ratio_of(site.scale, fixed)
        if claim is None or scale is None or not (scale * claim).above:
            raise NotProved(site.line, "scale and claim must be ratios of polynomials in parameters, and not 0")
        weight = of_number(1).over(scale * claim)
        group = next((k for k, known in enumerate(weights) if known == weight), len(weights))
        if group == len(weights):
            weights.append(weight)
        groups.append(group)
    return groups, weights


def cost_is_kept(world, weights, moved):
    """Return a formula: the shifts cost no more than the claim."""
    total, parts = Fraction(0), []
    for group, amount in moved.items():
        weight = weights[group].as_number()
        if weight is None:
            read = Fraction if t.is_known(*world.parameters.values()) else t.real  # (numbers of a counterexample)
            above, below = weights[group].value({name: read(value) for name, value in world.parameters.items()}, read)
            # (denominators are scales and claims, which are above 0 where duties hold)
            parts.append(t.divided(t.times(amount, above), below))
        else:
            total = t.add(total, t.times(weight, amount))
    for part in parts:
        total = t.add(total, part)
    return t.compare("<=", total, 1)


def assumptions(program, world):
    """Return what is assumed of parameters, as formulas."""
    reader = Runs(program, world, [], [])
    found = [reader.value(expr, 0, 0) for expr in program.assumptions]
    return found, reader.value(program.claim_expr, 0, 0)


class Instance:
    """The duties of a program of given sizes: holds what z3 and single counterexamples say of shifts."""

    def __init__(self, program, fixed, length, sign, most=12):
        self.program, self.most = program, most
        self.world = SymbolicWorld(program, fixed, length, sign)
        self.groups, self.weights = weights_of(program, fixed)
        assumed, self.claim = assumptions(program, self.world)
        self.world.facts += assumed
        self.models = []

    @property
    def is_empty(self):
        """Whether the assumptions allow no such sizes."""
        return not t.both(*[fact for fact in self.world.facts if t.is_known(fact)])

    def duties(self, world, shifts):
        """Return (facts, duties) of shifts in a world."""
        runs = Runs(self.program, world, shifts, self.groups, most=self.most).run()
        runs.owe(cost_is_kept(world, self.weights, runs.state.moved), 1, "the shifts cost at most the claim")
        runs.owe(t.compare(">", self.claim, 0) if world is self.world else True, 1, "the claim is above 0")
        return runs.facts, runs.duties

    def is_refuted_by_known(self, shifts):
        """Tell whether a counterexample of other shifts is one of these."""
        for world in self.models:
            try:
                facts, duties = self.duties(world, shifts)
            except (KeyError, ValueError, ZeroDivisionError):
                continue
            if all(facts) and not all(formula for formula, _, _ in duties):
                return True
        return False

    def holds(self, shifts, milliseconds=5000):
        """Tell whether z3 proves all duties (None: it does not know); a counterexample is kept."""
        try:
            facts, duties = self.duties(self.world, shifts)
        except KeyError:  # (what a shift refers to has no value yet)
            return False
        z3 = t.solver()
        solver = z3.Solver()
        solver.set("timeout", milliseconds)
        solver.add(*map(t.term, facts))
        solver.add(t.term(t.negated(t.both(*[formula for formula, _, _ in duties]))))
        found = solver.check()
        if found == z3.sat:
            with contextlib.suppress(ValueError):  # (a number that is not rational)
                self.models.append(ConcreteWorld(self.world, solver.model()))
        return None if found == z3.unknown else found == z3.unsat


def small_instances(program, sign, numbers=((1, 5), (2, 3))):
    """Return instances of small sizes, on which shifts are tried: all integer parameters are one number."""
    made = [Instance(program, dict.fromkeys(program.integers, number), length, sign, most=max(12, length + 1))
            for number, length in numbers]
    return [instance for instance in made if not instance.is_empty]


def search(program, instances, until):
    """Yield (shifts that hold for small sizes, how many were tried), simple ones first; `instances` may grow."""
    lists = [candidates(program, site) for site in program.sites]
    if not instances or 0 in map(len, lists):
        return
    for tried, shifts in enumerate(ordered(lists), 1):
        if time.monotonic() > until:
            return
        if not any(instance.is_refuted_by_known(shifts) for instance in instances) and all(
                instance.holds(shifts, _left(until)) is not False for instance in instances):
            yield shifts, tried


def ordered(lists):
    """Return all choices of one of each list, those of least weight first; at most the first 4,000 of each step."""
    choices = [(0, ())]
    for own in lists:
        weighed = [(shift.weight, shift) for shift in own]
        choices = sorted(((w + v, (*choice, shift)) for (w, choice), (v, shift) in product(choices, weighed)),
                         key=lambda one: one[0])[:4_000]
    return [choice for _, choice in choices]


def _left(until, most=5000):
    """Return the milliseconds for one question to z3."""
    return max(1, min(most, int(1000 * (until - time.monotonic()))))


def prove(program, *, until, sizes=None):
    """Return a `Proof`, or a sentence that says why there is none."""
    if contradicts(program):
        return "the assumptions contradict each other, or claim is not above 0: change assume"
    signs = {"monotone": (1, -1)}.get(program.queries.differ, (0,))
    found, tried, scope, why = [], 0, None, "no alignment was found"
    for sign in signs:
        case = {0: "", 1: "answers of the neighbour are higher", -1: "answers of the neighbour are lower"}[sign]
        try:
            proved, instances, longer = None, small_instances(program, sign), [20, 10]
        except NotProved as error:
            return f"line {error.line}: {error.what}"
        for attempt, (shifts, count) in enumerate(search(program, instances, until)):
            try:
                scope, proved, tried = proved_for(program, sign, shifts, sizes, until), shifts, tried + count
            except NotProved as error:
                place = "" if error.line is None else f"line {error.line}, "
                why = (f"an alignment holds for small sizes, and was not proved for these: {place}{error.what}"
                       if sizes else f"an alignment holds for small sizes, and not by induction: {place}{error.what}. "
                       f"Give sizes to prove some sizes only")
                if longer:  # (what costs little in a few steps may cost more than the claim in many)
                    instances += small_instances(program, sign, [(1, longer.pop())])
            if proved is not None or attempt == 5:
                break
        if proved is None:
            return f"{why}; the time ran out" if time.monotonic() > until else why
        found.append((case, list(proved)))
    return Proof(found, scope, tried)


def contradicts(program):
    """Tell whether no parameters keep the assumptions, and a proof would be about nothing."""
    world, z3 = SymbolicWorld(program), t.solver()
    assumed, claim = assumptions(program, world)
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(*map(t.term, [*world.facts, *assumed, t.compare(">", claim, 0)]))
    return solver.check() == z3.unsat


def proved_for(program, sign, shifts, sizes, until):
    """Return for which sizes shifts prove the claim, or raise `NotProved`."""
    if sizes is None:
        by_induction(program, sign, shifts, weights_of(program, {}), until)
        return "any sizes, by induction"
    fixed = {name: sizes[name] for name in program.integers if name in sizes}
    length = sizes[program.query]
    instance = Instance(program, fixed, length, sign, most=max(12, 1 + length))
    if instance.is_empty or not instance.holds(shifts, _left(until, 10**9)):
        raise NotProved(None, "z3 does not prove it for these sizes")
    told = ", ".join(f"{name} = {value}" for name, value in fixed.items())
    return f"{length} answers{', ' * bool(told)}{told}, each step of loops unrolled"
