"""Proofs by z3: the classic programs in both directions, and that no mutant is proved that has a counterexample."""

import math
import random
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dpestim.verify import program, queries, suite, verify
from dpestim.verify.proving import Instance, Proof, prove
from dpestim.verify.refuting import refute
from dpestim.verify.shifts import Form, NextOutput, Shift

pytest.importorskip("z3")
ONE = {"assume": ["epsilon > 0"]}


def read(body, claim="epsilon", q=None, **declared):
    """Return a program of a body."""
    text = "def f(q, epsilon):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return program(claim, **(declared or ONE), q=queries() if q is None else q)(text)


def proof(own, seconds=60, sizes=None):
    """Return a proof or a sentence."""
    return prove(own, until=time.monotonic() + seconds, sizes=sizes)


@pytest.mark.parametrize("name", suite("correct"))
def test_correct_programs_are_proved_for_any_sizes(name):
    found = proof(suite()[name])
    assert isinstance(found, Proof), found
    assert found.scope == "any sizes, by induction"


@pytest.mark.parametrize("name", suite("broken"))
def test_broken_programs_are_refuted(name):
    verdict = verify(suite()[name])
    assert verdict.status == "refuted"
    assert verdict.counterexample.epsilon > verdict.counterexample.claim
    assert verdict.seconds < 60


def test_a_proof_prints_its_alignment_and_a_claim_that_is_too_small_is_not_proved():
    verdict = verify(suite()["sparse vector"])
    assert verdict
    assert verdict.status == "proved"
    assert [(line, shift) for _, line, shift in verdict.alignment] == [
        (4, "1"), (8, "1 - distance(q[i]) if the next output is True, else 0")]
    assert "distance(q[i])" in str(verdict)
    text = suite()["sparse vector"].source
    for claim, kept in (("epsilon", True), ("0.99 * epsilon", False), ("1.5 * epsilon", True)):
        own = program(claim, assume=["epsilon > 0", "N >= 1"], integers=["N"], q=queries())(text)
        assert isinstance(proof(own, 10), Proof) == kept


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
], ids=range(12))
def test_duties_are_asked_for(body, q, kept):
    assert isinstance(proof(read(body, q=q), 10), Proof) == kept


def test_assumptions_that_contradict_each_other_prove_nothing():
    own = read("return q[0]", assume=["epsilon > 1", "epsilon < 0.5"])
    assert "contradict" in proof(own)
    assert "contradict" in proof(read("return 1", claim="0 - epsilon", **ONE))


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

    chance, names, seen = random.Random(7), list(suite()), {"proved": 0, "refuted": 0, "unknown": 0}
    for k in range(42):
        found = mutant(names[k % len(names)], chance)
        if found is None:
            continue
        words, own = found
        verdict = verify(own, time_limit=3)
        seen[verdict.status] += 1
        if verdict:
            contrary = refute(own, until=time.monotonic() + 2)
            assert contrary is None, f"{words}\n{own.source}"
        elif verdict.status == "refuted":
            assert verdict.counterexample.epsilon > verdict.counterexample.claim
            assert not math.isnan(verdict.counterexample.epsilon)
    assert seen["refuted"] > 10
    assert seen["proved"]
