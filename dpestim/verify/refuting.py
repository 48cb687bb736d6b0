"""Refutations: inputs and an output whose exact ratio of probabilities is above e^claim. No sample decides anything."""

import itertools
import math
import random
import time
from fractions import Fraction

from dpestim.privacy.exact import exp_upper, log_ratio
from dpestim.verify import exponentials as e
from dpestim.verify import lattice
from dpestim.verify.paths import Linear, Unsupported, Walk, paths
from dpestim.verify.probabilities import OnTheEdge, density, solve, substituted

#: How many outputs with numbers are looked at for each pair of inputs.
_OUTPUTS = 10
#: The first ones: how many scales away noise is.
_FAR = {0: -25, 1: 25, 2: -3, 3: 3}


class Refutation:
    """Two neighbours and an output that prove that a claim is false.

    Attributes
    ----------
    parameters : dict
    answers, neighbour : list of Fraction
    output : object
        As the program returns it.
    likely, unlikely : (Fraction, Fraction)
        Bounds of its probability (or density) on the answers, and on the neighbour.
    claim : Fraction
        The epsilon that is claimed, at these parameters.
    is_density : bool
        Whether `likely` and `unlikely` are densities, as the output holds numbers with Laplace noise.
    epsilon : float
        The logarithm of the ratio, rounded down: what the program loses at least. Infinite where the output is
        impossible on the neighbour, or has a density there and a probability here.

    Examples
    --------
    >>> from dpestim.verify import suite, verify
    >>> found = verify(suite()["sparse vector, no noise on queries"]).counterexample
    >>> found.epsilon
    inf
    """

    def __init__(self, program, parameters, answers, neighbour, output, likely, unlikely, claim, *, is_density):
        self.parameters, self.answers, self.neighbour = parameters, answers, neighbour
        self.likely, self.unlikely, self.claim = likely, unlikely, claim
        self.output, self.is_density = _returned(program, output), is_density
        self.epsilon = math.nextafter(log_ratio(likely[0], unlikely[1]), 0) if unlikely[1] else math.inf


class Law:
    """The paths of a program on given numbers, and the probabilities of outputs."""

    def __init__(self, program, parameters, answers):
        self.paths = paths(program, parameters, answers)
        self.is_integer = any(kind == "discrete_laplace" for path in self.paths for kind, _ in path.noises)

    def probability(self, wanted):
        """Return (rank, (low, high)) of an output: of the parts of least rank; None where it is impossible.

        Also the places of numbers of these parts, or None where they do not agree.
        """
        found = {}
        for path in self.paths:
            part = (_counted if self.is_integer else density)(path, wanted)
            if part is not None and part[2]:
                found.setdefault(part[0], []).append(part)
        if not found:
            return None
        rank = min(found)
        if self.is_integer:
            return 0, (), tuple(map(sum, zip(*(part[2] for part in found[rank]))))
        total = {}
        for _, _, value in found[rank]:
            total = e.plus(total, value)
        if not total:
            return None
        places = {places for _, places, _ in found[rank]}
        whole = places.pop() if len(places) == 1 else None
        return rank, whole if whole is not None and len(whole) == rank else None, e.enclosure(total)

    def outputs(self, chance):
        """Yield outputs, each once: numbers that hold noise are drawn, far ones first, as any choice will do."""
        seen = set()
        for path in self.paths:
            items = [value for part in path.outputs for _, value in part]
            noisy = any(isinstance(value, Linear) and value.of for value in items)
            for attempt in range((_OUTPUTS if len(self.paths) < 8 else len(_FAR)) if noisy else 1):
                noises = [_drawn(kind, scale, chance, _FAR.get(attempt)) for kind, scale in path.noises]
                wanted = tuple(tuple((kind, _value(value, noises) if isinstance(value, Linear) else value)
                                     for kind, value in part) for part in path.outputs)
                if wanted not in seen:
                    seen.add(wanted)
                    yield wanted


def _counted(path, wanted):
    """Return (0, (), (low, high)) of an output of integer noise; None where it is impossible."""
    rows = []
    if tuple(map(len, path.outputs)) != tuple(map(len, wanted)):
        return None
    found, asked = ([item for part in parts for item in part] for parts in (path.outputs, wanted))
    for (kind, value), (kind2, value2) in zip(found, asked):
        if kind != kind2 or not (isinstance(value, Linear) or value is value2):
            return None
        if isinstance(value, Linear):
            rows.append(value.plus(Linear(value2), -1))
    solved = solve(rows, path.bounds)
    if solved is None:
        return None
    low, high = lattice.mass(path, solved[0], substituted)
    return (0, (), (low, high)) if high else None


def _returned(program, output):
    """Return an output as the program returns it, from its list and its other values."""
    listed, others = ([value for _, value in part] for part in output)
    others = iter(others)
    values = [listed if expr is None else next(others) for expr in program.body[-1].exprs]
    return values[0] if len(values) == 1 else tuple(values)


def _value(sum_, noises):
    return sum_.constant + sum(a * noises[name] for name, a in sum_.of.items())


def _drawn(kind, scale, chance, far):
    """Return a value of noise: so many scales away, or drawn."""
    value = (chance.choice((-1, 1)) * chance.expovariate(0.5) if far is None else far) * float(scale)
    # (a denominator that no other number has, so that no output is on an edge)
    return Fraction(round(value)) if kind == "discrete_laplace" else Fraction(2 * round(value * 10) + 1, 21)


def compare(program, parameters, answers, neighbour, laws, wanted):
    """Return (the logarithm of the ratio, a `Refutation` or None)."""
    mine, theirs = laws[0].probability(wanted), laws[1].probability(wanted)
    if mine is None or mine[2][0] <= 0:
        return -math.inf, None
    claim = Walk(program, parameters, answers, [], 0).known(program.claim_expr)
    if theirs is None or theirs[0] > mine[0]:
        bounds = (Fraction(0), Fraction(0))
    elif theirs[0] < mine[0] or mine[1] is None or theirs[1] != mine[1]:
        return -math.inf, None
    else:
        bounds = theirs[2]
        if bounds[1] <= 0:
            return -math.inf, None
    if mine[2][0] > exp_upper(claim) * bounds[1]:
        found = Refutation(program, parameters, answers, neighbour, wanted, mine[2], bounds, claim,
                               is_density=mine[0] > 0)
        return found.epsilon, found
    return log_ratio(mine[2][0], bounds[1]) - float(claim), None


def refute(program, *, until, lengths=range(1, 7), most_integers=3):
    """Return a `Refutation`, or None where none was found.

    The usual bad cases come first, with small sizes; then other levels of answers; then answers move one at a time.
    """
    chance, best = random.Random(0), []
    for most, plain in ((1, True), (most_integers, True), (1, False), (most_integers, False)):
        for parameters in settings(program, most):
            for length in lengths:
                for answers, changes in pairs(program, length):
                    if any(answers) == plain:
                        continue
                    if time.monotonic() > until:
                        return None
                    found, score = looked_at(program, parameters, answers, changes, chance, until)
                    if found is not None:
                        return found
                    if score > -math.inf:
                        best.append((score, parameters, answers, changes))
                best = sorted(best, key=lambda one: -one[0])[:3]
    return climbed(program, best, chance, until)


def climbed(program, best, chance, until):
    """Return a counterexample or None, from starts whose answers are moved one at a time."""
    for score, parameters, answers, changes in best:
        better = True
        while better and time.monotonic() < until:
            better = False
            for place, step in itertools.product(range(len(answers)), (1, -1, 3, -3)):
                new = [a + step * (i == place) for i, a in enumerate(answers)]
                found, now = looked_at(program, parameters, new, changes, chance, until)
                if found is not None:
                    return found
                if now > score + 1e-6:
                    better, score, answers = True, now, new
    return None


def looked_at(program, parameters, answers, changes, chance, until):
    """Return (a counterexample or None, the best score) of two neighbours, in both orders."""
    neighbour = [a + d for a, d in zip(answers, changes)]
    best = -math.inf
    try:
        laws = [Law(program, parameters, own) for own in (answers, neighbour)]
        for first, second in ((0, 1), (1, 0)):
            inputs = (answers, neighbour) if first == 0 else (neighbour, answers)
            for wanted in laws[first].outputs(chance):
                if time.monotonic() > until:
                    return None, best
                try:
                    score, found = compare(program, parameters, *inputs, (laws[first], laws[second]), wanted)
                except (OnTheEdge, Unsupported):
                    continue
                if found is not None:
                    return found, score
                best = max(best, score)
    except Unsupported:
        pass
    return None, best


def settings(program, most_integers):
    """Yield values of parameters that the assumptions allow: 1 for what scales or claims hold, and 0 for the others."""
    import ast

    scaling = {node.id for expr in (program.claim_expr, *(site.scale for site in program.sites))
               for node in ast.walk(expr) if isinstance(node, ast.Name)}
    free = [name for name in program.public if name not in program.integers]
    found = False
    for values in itertools.product((1, 0, 2, Fraction(1, 2), -1), repeat=len(free) if len(free) < 5 else 0):
        usual = dict(zip(free, values)) if values else dict.fromkeys(free, 1)
        if found or any(value != (name in scaling) for name, value in usual.items()):
            continue
        for own in itertools.product(range(1, most_integers + 1), repeat=len(program.integers)):
            parameters = {**usual, **dict(zip(program.integers, own))}
            if allowed(program, parameters):
                found = True
                yield parameters
    if not found:
        for values in itertools.product((1, 2, 0, Fraction(1, 2), 3, -1), repeat=min(4, len(program.public))):
            parameters = dict(zip(program.public, values))
            if len(parameters) == len(program.public) and allowed(program, parameters) and all(
                    Fraction(parameters[name]).denominator == 1 for name in program.integers):
                yield parameters
                return


def allowed(program, parameters):
    """Tell whether the assumptions allow values, which must make the claim a number of at least 0."""
    walk = Walk(program, parameters, [], [], 0)
    try:
        return all(walk.value(expr) is True for expr in program.assumptions) and walk.known(program.claim_expr) >= 0
    except Unsupported:
        return False


def pairs(program, length):
    """Yield (answers, changes) of neighbours: the usual bad cases first, at several levels."""
    unit = program.queries.sensitivity
    if program.queries.integer:
        unit = Fraction(math.floor(unit))
    half = length // 2
    single = [[unit * (i == k) for i in range(length)] for k in range(length)]
    if program.queries.differ == "one":
        changes = single
    else:
        up = [unit] * length
        changes = [up, *([unit] * k + [0 * unit] * (length - k) for k in {half, length - 1} if k), *single]
        if program.queries.differ == "each":
            changes += [[unit] * k + [-unit] * (length - k) for k in range(1, length)]
            changes += [[-d if i == k else d for i, d in enumerate(up)] for k in range(1, length - 1)]
    levels = [[Fraction(level)] * length for level in (0, -1, 1, -3, 3)]
    levels += [[Fraction(b * (i < half)) for i in range(length)] for b in (2, -2, 5, -5) if half]
    seen = set()
    for answers in levels:
        for change in changes:
            key = tuple(answers), tuple(change)
            if key not in seen and any(change):
                seen.add(key)
                yield answers, change
