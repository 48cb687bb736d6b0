"""``python -m benchmarks.programs {suite,mutations} [--n 300] [--seed 0] [--seconds 20]``: verdicts on programs.

* ``suite``: the classic programs, correct and broken: verdict and seconds of each.
* ``mutations``: random changes of the classic programs: a scale, a claim, a comparison, what is declared of answers,
  noise that is dropped, drawn once for two uses, or put out, a cut-off that is lost. A mutant that is proved must have
  no counterexample: each one is searched for as long again.
"""

import argparse
import ast
import collections
import random
import time

from dpestim.verify import ProgramError, program, queries, suite, verify
from dpestim.verify.refuting import refute


def noises(tree):
    """Return the calls of noise of a function."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            and node.func.id.endswith("laplace")]


class Replaced(ast.NodeTransformer):
    """Replaces one node."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().generic_visit(node)


def scaled(tree, chance):
    """Multiply a scale."""
    call = chance.choice(noises(tree))
    factor = chance.choice((0.5, 2, 0.9, 1.5, 0.75))
    call.args = [ast.BinOp(ast.Constant(factor), ast.Mult(), call.args[0])]
    return f"scale of noise times {factor}"


def without(tree, chance):
    """Drop noise."""
    Replaced(chance.choice(noises(tree)), ast.Constant(0)).visit(tree)
    return "noise dropped"


def reused(tree, chance):
    """Draw noise once, and use it twice."""
    calls = noises(tree)
    place = next(k for k, node in enumerate(tree.body) if not isinstance(node, ast.Expr))
    new = ast.Assign([ast.Name("shared", ast.Store())], calls[0])
    for call in chance.sample(calls, min(len(calls), 2)):
        Replaced(call, ast.Name("shared", ast.Load())).visit(tree)
    tree.body.insert(place, new)
    return "noise drawn once"


def told(tree, chance):
    """Put a variable out instead of what is put out."""
    outputs = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    names = sorted({node.targets[0].id for node in ast.walk(tree) if isinstance(node, ast.Assign)} - {"out"})
    name = ast.Name(chance.choice(names), ast.Load())
    if outputs and chance.random() < 0.7:
        chance.choice(outputs).args = [name]
    else:
        value = tree.body[-1].value
        tree.body[-1].value = ast.Tuple([*(value.elts if isinstance(value, ast.Tuple) else [value]), name], ast.Load())
    return f"{name.id} put out"


def compared(tree, chance):
    """Turn a comparison round, or lose a part of a condition."""
    ands = [node for node in ast.walk(tree) if isinstance(node, ast.BoolOp)]
    if ands and chance.random() < 0.5:
        node = chance.choice(ands)
        Replaced(node, chance.choice(node.values)).visit(tree)
        return "part of a condition lost"
    node = chance.choice([node for node in ast.walk(tree) if isinstance(node, ast.Compare)])
    node.ops = [chance.choice((ast.Lt(), ast.GtE(), ast.Gt(), ast.LtE()))]
    return "comparison changed"


def moved(tree, chance):
    """Drop a statement of a block."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If | ast.While | ast.For) and len(node.body) > 1]
    body = chance.choice(blocks).body
    body.pop(chance.randrange(len(body)))
    return "statement dropped"


def added(tree, chance):
    """Add answers or noise to a constant that is assigned."""
    node = chance.choice([node for node in ast.walk(tree) if isinstance(node, ast.Assign)
                          and not isinstance(node.value, ast.List)])
    extra = chance.choice(("q[0]", "laplace(1 / epsilon)", "1", "0.5"))
    node.value = ast.BinOp(node.value, ast.Add(), ast.parse(extra, mode="eval").body)
    return f"{extra} added"


CHANGES = (scaled, without, reused, told, compared, moved, added)


def mutant(name, chance):
    """Return (words, a mutant of a classic program), or None where the change makes no program."""
    own = suite()[name]
    tree = ast.parse(own.source).body[0]
    words = []
    for _ in range(chance.choice((1, 1, 2))):
        try:
            words.append(chance.choice(CHANGES)(tree, chance))
        except IndexError:  # (there is nothing to change in this way)
            return None
    claim, declared = own.claim, own.queries
    if chance.random() < 0.15:
        claim = f"{chance.choice((0.5, 2))} * ({claim})"
        words.append(f"claim {claim}")
    if chance.random() < 0.2:
        declared = queries(declared.sensitivity, differ=chance.choice(("each", "one", "monotone")),
                           integer=declared.integer)
        words.append(f"answers: {declared.differ}")
    assume = [ast.unparse(expr) for expr in own.assumptions]
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        return f"{name}: {', '.join(words)}", program(claim, assume=assume, integers=own.integers,
                                                      **{own.query: declared})(text)
    except ProgramError:
        return None


def mutations(n, seed, seconds):
    """Print verdicts on mutants; a proof that a counterexample contradicts is an error."""
    chance, names, counts = random.Random(seed), list(suite()), collections.Counter()
    for k in range(n):
        found = mutant(names[k % len(names)], chance)
        if found is None:
            counts["no program"] += 1
            continue
        words, changed = found
        verdict = verify(changed, time_limit=seconds)
        counts[verdict.status] += 1
        print(k, verdict.status, f"{verdict.seconds:.1f}", words, verdict.reason or "", flush=True)
        if verdict:
            contrary = refute(changed, until=time.monotonic() + seconds)
            assert contrary is None, f"proved and refuted: {words}\n{changed.source}\n{contrary.__dict__}"
    print(dict(counts))


def classic():
    """Print the verdict on each classic program, as a table; seconds are those of a processor."""
    print("| program | verdict | seconds | loss that was shown, at a claim of 1 |\n|---|---|---|---|")
    for name, own in suite().items():
        start = time.process_time()
        verdict = verify(own, time_limit=180)
        seconds = time.process_time() - start
        loss = "" if verdict.counterexample is None else f"{verdict.counterexample.epsilon:.3g}"
        print(f"| {name} | {verdict.status} | {seconds:.1f} | {loss} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("suite", "mutations"))
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20)
    chosen = parser.parse_args()
    if chosen.what == "suite":
        classic()
    else:
        mutations(chosen.n, chosen.seed, chosen.seconds)
