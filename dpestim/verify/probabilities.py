"""The exact probability, or density, of an output of a program: each path by elimination of one noise after another.

An output's numbers fix some noises. What is left must be bounds on one noise, or between two, that form no circle:
then each noise but the last is integrated out as a function of one other noise.
"""

from fractions import Fraction

from dpestim.verify import exponentials as e
from dpestim.verify.paths import Linear, Unsupported


class OnTheEdge(Exception):
    """The output is where a density may jump; another one must be looked at."""


def density(path, wanted):
    """Return (rank, places, number) of the numbers of an output on this path: its density; None: no such output.

    `wanted` has (kind, value) as a path's outputs, with a Fraction for each number. `places` are the numbers that hold
    noise; `rank` of them are independent.
    """
    rows, places = [], []
    found = [item for part in path.outputs for item in part]
    if tuple(map(len, path.outputs)) != tuple(map(len, wanted)):
        return None
    for place, ((kind, value), (kind2, value2)) in enumerate(zip(found, (item for part in wanted for item in part))):
        if kind != kind2 or not (isinstance(value, Linear) or value is value2):
            return None
        if isinstance(value, Linear):
            rest = value.plus(Linear(value2), -1)
            if rest.of:
                rows.append(rest)
                places.append(place)
            elif rest.constant:
                return None
    solved = solve(rows, path.bounds)
    if solved is None:
        return None
    fixed, factor = solved
    return len(fixed), tuple(places), e.scaled(mass(path, fixed), factor)


def solve(rows, bounds):
    """Return ({noise: the sum it is}, 1 / |determinant|) of sums that are 0; None where they cannot be."""
    fixed, factor = {}, Fraction(1)
    uses = {}
    for sum_, _ in bounds:
        for name in sum_.of:
            uses[name] = uses.get(name, 0) + 1
    for row in rows:
        row = substituted(row, fixed)
        if not row.of:
            if row.constant:
                return None
            continue
        name = min(row.of, key=lambda noise: (uses.get(noise, 0), -noise))
        a = row.of[name]
        factor /= abs(a)
        own = Linear(-row.constant / a, {other: -b / a for other, b in row.of.items() if other != name})
        fixed = {other: substituted(sum_, {name: own}) for other, sum_ in fixed.items()} | {name: own}
    return fixed, factor


def substituted(sum_, fixed):
    """Return a sum in which noises are replaced by the sums that they are."""
    out = Linear(sum_.constant)
    for name, a in sum_.of.items():
        out = out.plus(fixed[name], a) if name in fixed else out.plus(Linear(Fraction(0), {name: a}))
    return out


def mass(path, fixed):
    """Return the integral over the noises that are not fixed, as a number."""
    total = e.ONE
    functions = {}
    for name, (kind, scale) in enumerate(path.noises):
        if kind != "laplace":
            raise Unsupported("integer noise is counted, and not integrated")
        if name not in fixed:
            functions[name] = e.laplace(scale)
    bounds = []
    for sum_, _ in path.bounds:
        rest = substituted(sum_, fixed)
        if not rest.of:
            if not rest.constant:
                raise OnTheEdge
            if rest.constant < 0:
                return {}
        elif len(rest.of) > 2:
            raise Unsupported("a condition is about three noises at once")
        else:
            bounds.append(rest)
    for name, sum_ in fixed.items():
        law = e.laplace(path.noises[name][1])
        if not sum_.of:
            value = e.at(law, sum_.constant) or e.scaled(e.ONE, 1 / (2 * path.noises[name][1]))  # (at 0 itself)
            total = times(total, value)
        elif len(sum_.of) == 1:
            ((other, a),) = sum_.of.items()
            functions[other] = e.product(functions[other], e.composed(law, a, sum_.constant))
        else:
            raise Unsupported("an output holds three noises at once")
    for rest in bounds:
        if len(rest.of) == 1:
            ((name, a),) = rest.of.items()
            end = -rest.constant / a
            functions[name] = e.restricted(functions[name], *((end, None) if a > 0 else (None, end)))
    scales = {name: scale for name, (_, scale) in enumerate(path.noises)}
    return times(total, eliminated(functions, [rest for rest in bounds if len(rest.of) == 2], scales))


def eliminated(functions, pairs, scales):
    """Return the integral of a product of functions of one noise each, over bounds between two noises."""
    total = e.ONE
    while functions:
        neighbours = {name: set() for name in functions}
        for rest in pairs:
            first, second = rest.of
            neighbours[first].add(second)
            neighbours[second].add(first)
        name = min(neighbours, key=lambda noise: (len(neighbours[noise]), -noise))
        own = functions.pop(name)
        if not neighbours[name]:
            total = times(total, e.integral(own))
            continue
        if len(neighbours[name]) > 1:
            raise Unsupported("conditions between noises form a circle")
        (other,) = neighbours[name]
        lowers, uppers, kept = [], [], []
        for rest in pairs:
            if name not in rest.of:
                kept.append(rest)
                continue
            a = rest.of[name]
            line = -rest.of[other] / a, -rest.constant / a
            (lowers if a > 0 else uppers).append(line)
        pairs = kept
        inner = (e.laplace_between(scales[name], tuple(lowers), tuple(uppers)) if own is e.laplace(scales[name]) else
                 e.between(own, lowers, uppers))
        functions[other] = e.product(functions[other], inner)
    return total


def times(a, b):
    """Return the product of two numbers."""
    out = {}
    for r, x in a.items():
        out = e.plus(out, e.scaled(b, x, r))
    return out
