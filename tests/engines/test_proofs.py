"""Proofs by z3: the classic programs in both directions, and that no mutant is proved that has a counterexample."""

import random
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from dpestim.verify import program, queries, suite, verify
from dpestim.verify.proving import Instance, Proof, prove
from dpestim.verify.refuting import refute
from dpestim.verify.running import Runs
from dpestim.verify.shifts import Form, NextOutput, Shift

pytest.importorskip("z3")
ONE = {"assume": ["epsilon > 0"]}
#: Above threshold, which returns the first place: what the second run does depends on what the first one returns.
ABOVE = """k = 0 - 1
i = 0
found = False
x = laplace(2 / epsilon)
while i < len(q) and not found:
    if q[i] + laplace({} / epsilon) > x:
        k = i
        found = True
    i = i + 1
return k"""


def read(body, claim="epsilon", q=None, **declared):
    """Return a program of a body."""
    text = "def f(q, epsilon):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return program(claim, **(declared or ONE), q=queries() if q is None else q)(text)


def proof(own, seconds=200, sizes=None):
    """Return a proof or a sentence."""
    return prove(own, until=time.monotonic() + seconds, sizes=sizes)


class Sampled:
    """A world of numbers: drawn noise, and the output that Python has with it."""

    def __init__(self, own, parameters, answers, changes, chance):
        self.program, self.parameters, self.length, self.facts = own, parameters, len(answers), []
        self.answers, self.changes, self.chance = answers, changes, chance
        self.noises, self.out = [], None

    def answer(self, place, facts):
        return self.answers[place], self.changes[place]

    def noise(self, site, steps):
        self.used += 1
        return self.noises[self.used - 1]

    def known_output(self, place, kind, value):
        listed, others = self.out
        known = others[place[1]] if isinstance(place, tuple) else listed[place]
        yield known == value if kind != "none" else known is None

    def next_is(self, place, kind, value):
        listed, _ = self.out
        kinds = {bool: "bool", int: "int", Fraction: "real"}
        return place < len(listed) and kinds[type(listed[place])] == kind and value in (None, listed[place])

    def returned(self, number, kind):
        return self.out[1][number]

    def run(self, answers, noises=None):
        """Run the program in Python; noises are drawn where none are given."""
        drawn = []

        def noise(scale):
            if noises is not None:
                drawn.append(noises[len(drawn)])
            else:
                size = self.chance.choice((-1, 1)) * self.chance.expovariate(1) * float(scale)
                drawn.append(Fraction(round(size * 1000), 1000) if whole is False else round(size))
            return drawn[-1]

        whole = any(site.kind == "discrete_laplace" for site in self.program.sites)
        names = {"laplace": noise, "discrete_laplace": noise}
        exec(self.program.source, names)  # (a program of this file or of the suite)
        value = names[self.program.name](**{self.program.query: answers}, **self.parameters)
        values = value if isinstance(value, tuple) else (value,)
        listed = next((part for part in values if isinstance(part, list)), [])
        return (listed, [None if isinstance(part, list) else part for part in values]), drawn


class Kept(Runs):
    """Two runs that keep what they draw."""

    def draw(self, site, path):
        super().draw(site, path)
        self.shifted.append(self.state.values[site.name])


def check_alignment(own, found, chance, n=60):
    """Run Python on answers, and on neighbours with the shifted noise: the output is the same, the cost is kept."""
    moved = 0
    for _ in range(n):
        parameters = {name: chance.randint(1, 3) if name in own.integers else Fraction(chance.choice((1, 2, 3)), 2)
                      for name in own.public}
        answers = [Fraction(chance.randint(-4, 4)) for _ in range(chance.randint(1, 6))]
        most, sign = 2 if own.queries.integer is False else 1, chance.choice((1, -1))
        changes = [Fraction(chance.randint(-most, most), most) for _ in answers]
        if own.queries.differ == "monotone":
            changes = [abs(d) * sign for d in changes]
        elif own.queries.differ == "one":
            place = chance.randrange(len(answers))
            changes = [d * (k == place) for k, d in enumerate(changes)]
        if own.queries.integer:
            answers, changes = list(map(int, answers)), list(map(int, changes))
        shifts = found.shifts[(sign < 0) if own.queries.differ == "monotone" else 0][1]
        world = Sampled(own, parameters, answers, changes, chance)
        world.out, world.noises = world.run(answers)
        world.used, shifted = 0, []

        runs = Kept(own, world, shifts, range(len(own.sites)), most=50)
        runs.shifted = shifted
        runs.run()
        assert all(formula for formula, _, _ in runs.duties)
        assert [first for first, _ in shifted] == world.noises
        other, _ = world.run([a + d for a, d in zip(answers, changes)], [second for _, second in shifted])
        assert other == world.out
        cost = sum(moved / runs.value(own.sites[k].scale, 0, 0) for k, moved in runs.state.moved.items())
        assert cost <= runs.value(own.claim_expr, 0, 0)
        moved += bool(cost)
    return moved / n


@pytest.mark.parametrize("name", suite("correct"))
def test_correct_programs_are_proved_for_any_sizes_and_the_alignment_holds_in_python(name):
    found = proof(suite()[name])
    assert isinstance(found, Proof), found
    assert found.scope == "any sizes, by induction"
    assert check_alignment(suite()[name], found, random.Random(name)) > 0.25
    if name == "sparse vector":  # (an alignment that is wrong is seen)
        found.shifts[0][1][0] = Shift(Form(Fraction(0)))
        with pytest.raises(AssertionError):
            check_alignment(suite()[name], found, random.Random(0))


@pytest.mark.parametrize("name", suite("broken"))
def test_broken_programs_are_refuted_and_not_proved(name):
    own = suite()[name]
    found = refute(own, until=time.monotonic() + 300)
    assert found.epsilon > found.claim
    assert not isinstance(proof(own, 4), Proof)


def test_a_proof_prints_its_alignment_and_a_claim_that_is_too_small_is_not_proved():
    verdict = verify(suite()["sparse vector"], time_limit=200)
    assert verdict
    assert verdict.status == "proved"
    assert [(line, shift) for _, line, shift in verdict.alignment] == [
        (4, "1"), (8, "1 - distance(q[i]) if the next output is True, else 0")]
    assert "distance(q[i])" in str(verdict)
    text = suite()["sparse vector"].source
    for claim, kept in (("epsilon", True), ("0.99 * epsilon", False), ("1.5 * epsilon", True)):
        own = program(claim, assume=["epsilon > 0", "N >= 1"], integers=["N"], q=queries())(text)
        assert isinstance(proof(own, 120 if kept else 8), Proof) == kept


def test_sizes_unroll_loops_and_the_proof_says_so():
    nested = read("total = 0\nfor i in range(2):\n    for j in range(len(q)):\n        if i == 0:\n"
                  "            total = total + q[j]\nreturn total + laplace(1 / epsilon)", q=queries(differ="one"))
    assert "inside another loop is not proved by induction" in proof(nested)
    found = proof(nested, sizes={"q": 3})
    assert found.scope == "3 answers, each step of loops unrolled"
    twice = read(nested.source.split("\n", 1)[1].replace("    ", "", 1).replace("\n    ", "\n").replace(
        "if i == 0", "if i <= 1"), q=queries(differ="one"))
    assert not isinstance(proof(twice, 10, sizes={"q": 3}), Proof)


@pytest.mark.parametrize(("body", "q", "kept"), [
    ("return q[0] + discrete_laplace(1 / epsilon)", queries(integer=True), True),
    ("return q[0] + discrete_laplace(1 / epsilon)", queries(), False),  # (integers do not hide halves)
    ("return q[0] + laplace(1 / epsilon)", queries(0.5), True),
    ("return q[0] + laplace(1 / epsilon)", queries(2), False),
    ("x = laplace(1 / epsilon)\nreturn q[0] + x, q[0] + x", queries(), True),
    ("x = laplace(1 / epsilon)\nreturn q[0] + x, x", queries(), False),
    ("x = 0\nif q[0] > 0:\n    x = laplace(1 / epsilon)\nreturn 1", queries(), False),  # (not in both runs)
    ("x = 0\nwhile x < q[0]:\n    x = x + 1\nreturn 1", queries(), False),  # (may end in one run only)
    ("return q[0 - 1] + laplace(1 / epsilon)", queries(differ="one"), False),  # (a place that Python reads backwards)
    ("return q[0] + laplace(0 - 1 / epsilon)", queries(), False),
    ("x = 0\nif q[0] > 0:\n    x = q[1]\nreturn 1", queries(), False),  # (an error tells which branch was taken)
    ("x = 1\nif q[0] > 0:\n    x = 2\nreturn 1", queries(), True),
    ("i = 0\nwhile i < len(q) and q[i] > 0:\n    i = i + 1\nreturn i", queries(), False),  # (the step tells an answer)
    ("out = []\nif q[0] > 0:\n    out.append(1)\nelse:\n    out.append(1)\n    out.append(1)\nreturn out", queries(),
     False),
    ("x = q[0] + laplace(1 / epsilon)\nreturn x * q[1]", queries(), False),
    ("return max(q[0], q[1]) + laplace(1 / epsilon)", queries(), True),
    ("x = q[0] + laplace(1 / epsilon)\nreturn max(x, 0), 2 * x + 1", queries(), True),
    ("t = 0\nfor i in range(len(q)):\n    if i % 2 == 0:\n        t = t + q[i]\nreturn t + laplace(1 / epsilon)",
     queries(differ="one"), True),
    ("t = 0\nfor i in range(len(q)):\n    t = t + q[i]\nreturn t + laplace(5 / epsilon)", queries(), False),
    (ABOVE.format(4), queries(), True),
    (ABOVE.format(2), queries(), False),
    ("b = q[0] > 5 or q[1] > 0\nreturn 1", queries(), False),  # (of one answer, an error tells which part was read)
    ("b = len(q) > 1 and q[1] > 0 or len(q) > 1\nreturn 1", queries(), True),
    ("b = len(q) > 1 and (q[0] > 5 or q[1] > 0) and q[2] > 0\nreturn 1", queries(), False),
], ids=range(24))
def test_duties_are_asked_for(body, q, kept):
    assert isinstance(proof(read(body, q=q), 120 if kept else 6), Proof) == kept


def test_a_scale_that_is_no_ratio_of_polynomials_is_not_proved():
    own = program("1", integers=["n"], q=queries())("def f(q, n):\n    return q[0] + laplace(1 + n % 2)\n")
    assert "must be ratios of polynomials" in proof(own)


def test_assumptions_that_contradict_each_other_prove_nothing():
    own = read("return q[0]", assume=["epsilon > 1", "epsilon < 0.5"])
    assert "contradict" in proof(own)
    assert "contradict" in proof(read("return 1", claim="0 - epsilon", **ONE))


def test_noise_that_is_not_drawn_takes_nothing_off_the_cost():
    # (for N = 4 the first shift costs 8/7 of the claim, and the noise in the loop, of a scale below 0, is not drawn)
    own = program("epsilon", assume=["epsilon > 0", "N >= 1"], integers=["N"], q=queries())(
        "def f(q, epsilon, N):\n    out = []\n    x = q[0] + laplace(7 / (2 * N * epsilon))\n    out.append(x)\n"
        "    i = 0\n    while i < 1 and N < 4:\n        y = q[1] + laplace(7 / ((7 - 2 * N) * epsilon))\n"
        "        out.append(y)\n        i = i + 1\n    return out\n")
    assert "the scale is above 0" in proof(own, 20)


def test_scales_of_parameters_that_the_claim_does_not_hold_are_searched():
    own = program("1 / b + 1 / c", assume=["b > 0", "c > 0"], q=queries())(
        "def f(q, b, c):\n    x = laplace(b)\n    y = laplace(c)\n    return q[0] + x, q[1] + y\n")
    assert isinstance(proof(own, 20), Proof)


def test_a_shift_that_costs_too_much_or_changes_the_output_fails():
    own = suite()["sparse vector"]
    (distance,) = own.sites[1].companions
    top = NextOutput("bool", True)
    right = [Shift(Form(Fraction(1))), Shift(Form(Fraction(1), distance), top, Form(Fraction(0)))]
    instance = Instance(own, {"N": 1}, 3, 0)
    assert instance.holds(right)
    for wrong in ([right[0], Shift(Form(Fraction(1), distance))],  # (paid at each step)
                  [Shift(Form(Fraction(0))), right[1]], [Shift(Form(Fraction(2))), right[1]],
                  [right[0], Shift(Form(Fraction(0), distance), top, Form(Fraction(0)))]):
        assert not instance.holds(wrong)
        assert instance.is_refuted_by_known(wrong)
    assert not instance.is_refuted_by_known(right)


def test_mutants_that_are_proved_have_no_counterexample(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # (the wheel has no benchmarks)
    from benchmarks.programs import mutant

    monkeypatch.setattr(time, "monotonic", time.process_time)  # (what runs beside takes nothing of these limits)
    # counterexamples of all mutants that have one are found within 0.2 s of the processor, proofs within 1.5 s
    chance, names, seen = random.Random(7), list(suite()), Counter()
    for k in range(42):
        found = mutant(names[k % len(names)], chance)
        if found is None:
            continue
        words, own = found
        contrary = refute(own, until=time.monotonic() + 0.4)
        if contrary is not None:
            seen["refuted"] += 1
            assert contrary.epsilon > contrary.claim
            continue
        proved = proof(own, 4)
        seen[type(proved).__name__] += 1
        if isinstance(proved, Proof):
            check_alignment(own, proved, chance)
            assert refute(own, until=time.monotonic() + 1) is None, f"{words}\n{own.source}"
    assert seen["refuted"] > 10
    assert seen["Proof"]
