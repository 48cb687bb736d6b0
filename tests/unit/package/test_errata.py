"""The page of errata: every claim names a test that exists, or says why it has none; and some of these tests."""

import ast
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dpestim.audit import exact_delta, exact_epsilon, max_loss
from dpestim.central import ExponentialMechanism, GaussianMechanism
from dpestim.local import GRRFrequencyEstimator, IDUEFrequencyEstimator
from dpestim.shuffle import RealSum

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "errata.md"
#: How many claims of each source are on the page, by the letter of their numbers.
CLAIMS = {"B": 15, "A": 2, "V": 25, "D": 12}
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def functions_of(place):
    """Return the names of the functions of a file; none if there is no such file."""
    path = ROOT / place
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def faults(text):
    """Return what is wrong with a page of errata: rows that are missing, tests that do not exist."""
    rows = {row[0]: row for row in (line.strip("| ").split(" | ") for line in text.splitlines())
            if re.fullmatch(r"[BAVD]\d+", row[0])}
    wanted = [f"{letter}{k}" for letter, n in CLAIMS.items() for k in range(1, n + 1)]
    found = [f"{name} has no row" for name in wanted if name not in rows]
    for name, row in rows.items():
        tests = TEST.findall(row[-1])
        if len(row) != 4 or not (tests or row[-1].startswith("None: ")):
            found.append(f"{name} names no test, and does not say why")
        found += [f"{name} names {place}::{test}" for place, test in tests if test not in functions_of(place)]
    return found


def test_every_erratum_names_tests_that_exist():
    assert not faults(PAGE.read_text(encoding="utf-8"))


def test_a_test_that_is_gone_is_noticed():
    text = PAGE.read_text(encoding="utf-8")
    assert faults(text.replace("| B1 |", "| C1 |")) == ["B1 has no row"]
    assert faults(text.replace("::test_the_coin_is_exact", "::test_no_such")) == [
        "A1 names tests/oracle/test_closed_forms.py::test_no_such"]
    assert "V7 names no test, and does not say why" in faults(text.replace("None: ", ""))


# ---------------------------------------------------------------- tests that no other file has


def test_the_chance_of_a_large_loss_is_above_delta():
    """B8: a mechanism may lose more than epsilon with a chance above delta; it does at a delta that it needs."""
    mechanism = GaussianMechanism(1.0, delta=1e-3, sensitivity=1.0)
    sigma = math.sqrt(float(mechanism.variance()))
    # the loss of an output z is (1 - 2 z) / (2 sigma^2), z normal around 0: above epsilon where z < 1/2 - sigma^2
    above = math.erfc((sigma**2 - 0.5) / sigma / math.sqrt(2)) / 2
    assert above > 2 * 1e-3
    assert float(exact_delta(mechanism, 1.0)) <= 1e-3


def test_logarithms_of_a_law_as_scores_give_back_the_law_for_twice_its_epsilon():
    """B12: and the bound of the exponential mechanism says twice the epsilon that the law has."""
    epsilon, rows = 1.0, GRRFrequencyEstimator(1.0, categories=[range(4)]).randomizer().transition_matrix()
    law = np.array(rows[0], float)
    again = ExponentialMechanism(2 * epsilon, sensitivity=epsilon).probabilities(np.log(law))
    assert np.asarray(again, float) == pytest.approx(law, rel=1e-6)
    assert max_loss(*({k: p for k, p in enumerate(row)} for row in rows[:2])) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilons", [(0.5, 0.6, 0.6), (0.5, 2.0, 2.0)])
def test_epsilons_of_values_cost_the_smaller_of_the_largest_and_twice_the_least(epsilons):
    """D7: the loss is above the least epsilon; it is below twice the least where the largest is."""
    est = IDUEFrequencyEstimator(max(epsilons), categories=[range(3)], epsilons=[list(epsilons)])
    found = float(exact_epsilon(est.randomizer().transition_matrix()))
    assert min(epsilons) < found <= min(max(epsilons), 2 * min(epsilons)) * (1 + 1e-9)


@pytest.mark.parametrize(("protocol", "grows"), [("balle", 64 ** (1 / 6)), ("ikos", 1.0)])
def test_errors_of_sums_grow_as_roots_of_mean_squares(protocol, grows):
    """V10, V11, V24: one message has a mean square error of n^(1/3), an error of n^(1/6); shares a constant one."""
    errors = []
    for n in (1_000, 64_000):
        law = RealSum(1.0, delta=1e-6, bounds=(0.0, 1.0), protocol=protocol, n_users=n).randomizer()
        errors.append(float(np.ravel(law.variance(n))[0]) ** 0.5)
    assert errors[1] / errors[0] == pytest.approx(grows, rel=0.15)
