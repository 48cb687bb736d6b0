"""Candidates of invariants: what may hold of a state at the head of a loop. A wrong one is dropped, and costs time.

Each is (its words, a function of a state that returns a formula).
"""

import ast

from dpestim.verify import terms as t
from dpestim.verify.language import Return


def candidates(program, world, before, head):
    """Return candidates about the state at the head of a loop, which `before` becomes at its begin."""
    ints, secrets = [], []
    for name, (first, second) in head.values.items():
        if first is second and program.types.get(name) == "int" and name not in program.parameters and (
                not t.is_known(first)):
            ints.append(name)
        elif first is not second and not name.startswith("~"):
            secrets.append(name)
    return [*counts(program, world, before, head, ints, secrets),
            *(one for guard in guards(program, world, ints, secrets)
              for one in guarded(guard, program, head, ints, secrets))]


def counts(program, world, before, head, ints, secrets):
    """Return candidates about counters, parameters and lengths."""
    sizes = [world.length, *(world.parameters[name] for name in program.integers)]
    whole = [name for name in secrets if program.types[name] == "int"]
    out = []
    for name in (*ints, *whole):
        out.append((f"{name} >= 0", lambda s, n=name: t.compare(">=", s.values[n][0], 0)))
        out += [(f"{name} <= size", lambda s, n=name, z=size: t.compare("<=", s.values[n][0], z)) for size in sizes]
        # (a loop over a fixed number of steps ends where it says)
        out += [(f"{name} <= {c}", lambda s, n=name, c=c: t.compare("<=", s.values[n][0], c)) for c in range(1, 8)]
        out += [(f"{name} < {other}", lambda s, n=name, o=other: t.compare("<", s.values[n][0], s.values[o][0]))
                for other in ints if other != name]
        out += [(f"{name} <= {other}", lambda s, n=name, o=other: t.compare("<=", s.values[n][0], s.values[o][0]))
                for other in ints if other != name]
    if not t.is_known(head.length):
        out += [(f"outputs = {name}", lambda s, n=name: t.same(s.length, s.values[n][0])) for name in ints]
        out.append(("outputs >= 0", lambda s: t.compare(">=", s.length, 0)))
    unit = program.queries.sensitivity
    for group in head.moved:
        for c in (unit, 2 * unit):
            for name in (*ints, *whole):
                out.append((f"moved {group} <= {c} {name}", lambda s, g=group, c=c, n=name: t.compare(
                    "<=", s.moved.get(g, 0), t.times(c, s.values[n][0]))))
                # (what was moved before the loop counts, too)
                out.append((f"moved {group} <= {c} ({name} + 1)", lambda s, g=group, c=c, n=name: t.compare(
                    "<=", s.moved.get(g, 0), t.times(c, t.add(s.values[n][0], 1)))))
    return out


def guarded(guard, program, head, ints, secrets):
    """Return candidates that hold where a guard does: distances, and what was moved."""
    words, when = guard
    unit = program.queries.sensitivity
    out = []

    def add(text, made):
        out.append((f"{text} where {words}", lambda s: t.implies(when(s), made(s))))

    for name in secrets:
        if program.types[name] == "int" and words != "always":
            for other in ints:
                add(f"{name} < {other}", lambda s, n=name, o=other: t.compare("<", s.values[n][0], s.values[o][0]))
        if program.types[name] == "bool":
            add(f"{name} same", lambda s, n=name: t.same(*s.values[n]))
            continue
        add(f"distance of {name} = 0", lambda s, n=name: t.same(*s.values[n]))
        for c in (-2 * unit, -unit, 0 * unit, unit, 2 * unit):
            for op in ("<=", ">="):
                add(f"distance of {name} {op} {c}", lambda s, n=name, c=c, op=op: t.compare(op, far(s, n), c))
    for group in head.moved:
        for c in (0 * unit, unit, 2 * unit, 3 * unit, 4 * unit):
            add(f"moved {group} <= {c}", lambda s, g=group, c=c: t.compare("<=", s.moved.get(g, 0), c))
        for name in secrets:
            if program.types[name] != "bool":
                add(f"moved {group} + |distance of {name}| <= {unit}", lambda s, g=group, n=name: t.compare(
                    "<=", t.add(s.moved.get(g, 0), t.magnitude(far(s, n))), unit))
                add(f"moved {group} + |distance of {name}| <= {2 * unit}", lambda s, g=group, n=name: t.compare(
                    "<=", t.add(s.moved.get(g, 0), t.magnitude(far(s, n))), 2 * unit))
    return out


def far(state, name):
    """Return how far a name of the second run is above that of the first."""
    return t.minus(state.values[name][1], state.values[name][0])


def guards(program, world, ints, secrets):
    """Return (words, function of a state) of conditions under which candidates are tried."""
    out = [("always", lambda s: True)]
    points = []
    for node in program.body:
        if isinstance(node, Return):
            points += [(f"returned {k}", world.returned(k, "int"), expr) for k, expr in enumerate(node.exprs)
                       if expr is not None and program.types_of(expr) == "int"]
    if program.queries.differ == "one":
        points.append(("the answer that differs", world.place, None))
    for name in ints:
        out.append((f"{name} > 0", lambda s, n=name: t.compare(">", s.values[n][0], 0)))
        out.append((f"{name} <= 0", lambda s, n=name: t.compare("<=", s.values[n][0], 0)))
        for words, point, expr in points:
            out.append((f"{name} <= {words}", lambda s, n=name, p=point: t.compare("<=", s.values[n][0], p)))
            out.append((f"{name} > {words}", lambda s, n=name, p=point: t.compare(">", s.values[n][0], p)))
            if isinstance(expr, ast.Name) and expr.id in secrets:
                out.append((f"{name} > {words} = {expr.id}", lambda s, n=name, p=point, e=expr.id: t.both(
                    t.compare(">", s.values[n][0], p), t.same(s.values[e][0], p))))
                out.append((f"{name} > {words}, not {expr.id}", lambda s, n=name, p=point, e=expr.id: t.both(
                    t.compare(">", s.values[n][0], p), t.compare("!=", s.values[e][0], p))))
    for name in secrets:
        if program.types[name] == "bool":
            out.append((name, lambda s, n=name: s.values[n][0]))
            out.append((f"not {name}", lambda s, n=name: t.negated(s.values[n][0])))
    return out
