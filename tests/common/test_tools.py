"""What the checks are made of: states are compared value by value, samples are drawn once, zeros are no accident."""

import ast
import os
import pickle
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from dpestim.base import all_estimators
from dpestim.local import GRRFrequencyEstimator
from dpestim.local.categories.grr import GRR
from dpestim.testing import MechanismError, check_mechanism, mechanism_checks, tools
from dpestim.testing.tools import DRAWS, differs_each_time, refuses, same_state, snapshot

PLAIN = {"epsilon": 1.0, "categories": [["a", "b", "c", "d"]]}


def thinned():
    """Return a set whose copy has another order, and so another pickle."""
    values = set(range(100))
    for k in range(100):
        if k not in (1, 64):
            values.remove(k)
    return values


class KeepsASet(GRRFrequencyEstimator):
    """An honest estimator whose state is equal to its copy's, and pickled otherwise."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.seen_ = thinned()
        return self


def test_equal_states_may_have_different_pickles():
    """Of the set itself, that is so; of an estimator that keeps one, no check may be led astray by it."""
    assert pickle.dumps(thinned()) != pickle.dumps(set(thinned()))
    check_mechanism(KeepsASet(**PLAIN))


class Holder:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(("a", "b", "same"), [
    (1, 1, True), (1, 1.0, False), (1, True, False), (float("nan"), float("nan"), True), (None, None, True),
    ([1, (2, {"a": 3})], [1, (2, {"a": 3})], True), ([1, (2, {"a": 3})], [1, (2, {"a": 4})], False),
    ({"a": 1}, {"b": 1}, False), ([1], [1, 2], False), (Fraction(1, 3), Fraction(1, 3), True),
    (np.array([1, np.nan]), np.array([1, np.nan]), True), (np.array([1, 2]), np.array([1, 2], "i4"), False),
    (np.array([0.0]), np.array([-0.0]), False), (np.array(["a", None]), np.array(["a", None]), True),
    (np.array(["a", None]), np.array(["a", 1]), False), (Holder([1]), Holder([1]), True),
    (Holder([1]), Holder([2]), False), (np.random.default_rng(0), np.random.default_rng(0), True),
    (np.random.default_rng(0), np.random.default_rng(1), False),
    (np.random.RandomState(0), np.random.RandomState(0), True),
    (np.random.RandomState(0), np.random.RandomState(1), False),
])
def test_same_state(a, b, same):
    assert same_state(a, b) is same
    assert same_state(b, a) is same


def test_a_state_that_holds_itself():
    a, b = Holder([]), Holder([])
    a.value.append(a)
    b.value.append(b)
    assert same_state(a, b)
    b.value.append(1)
    assert not same_state(a, b)


def test_a_drawn_generator_is_a_change():
    est = GRRFrequencyEstimator(**PLAIN, random_state=np.random.default_rng(0)).fit([["a"], ["b"]])
    before = snapshot(est)
    assert same_state(before, snapshot(est))
    est.random_state.random()
    assert not same_state(before, snapshot(est))


def test_refuses_is_about_one_kind_of_error():
    def fails(error):
        raise error

    assert refuses(lambda: fails(ValueError("told")), "this") == "told"
    for call in (lambda: fails(KeyError("x")), lambda: None):
        with pytest.raises(MechanismError, match="this must be"):
            refuses(call, "this")


def test_draws_that_are_equal_by_chance_are_told_from_noise_that_repeats():
    given = iter([1] * DRAWS + [2])
    assert differs_each_time(lambda: next(given))
    assert list(given) == []
    assert not differs_each_time(lambda: 1)
    given = iter([1, 2, 3])
    assert differs_each_time(lambda: next(given))
    assert list(given) == [3]  # (no more is drawn than is needed)


#: The checks that draw without a seed.
NAMES = """
    words_are_never_repeated reports_format learner_verbs itemsets_state model_noise pair_verbs shuffle_state
    release_seeds queries_seeds synthetic_rows generator_samples lists_seeds coverage_seeds parts_are_consistent
"""
FRESH = NAMES.split()


@lru_cache(maxsize=1)
def checks_of_fresh_noise():
    """Return one mechanism for each check that draws without a seed."""
    found = {}
    for _, cls in all_estimators():
        for name, check in mechanism_checks(cls(**cls._test_params()[0])):
            if "differs_each_time" in getattr(check, "func", check).__code__.co_names:
                found.setdefault(name.removeprefix("check_"), check)
    return found


def test_checks_that_draw_without_a_seed_are_listed():
    assert set(checks_of_fresh_noise()) == set(FRESH)


@pytest.mark.parametrize("name", FRESH)
def test_noise_that_repeats_without_a_seed_is_rejected(name, monkeypatch):
    check = checks_of_fresh_noise()[name]
    monkeypatch.setattr(tools, "DRAWS", 3)
    check()
    monkeypatch.setattr(os, "urandom", bytes)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None, make=np.random.default_rng: make(seed or 0))
    with pytest.raises(MechanismError, match=r"secure|new|no seed"):
        check()


def compared_by_hand(tree):
    """Yield the lines of source that want two calls which read alike, or are without a seed, to differ."""
    for test in ast.walk(tree):
        if not isinstance(test, ast.FunctionDef):
            continue
        secure = {name.id for line in ast.walk(test) if isinstance(line, ast.Assign) and without_a_seed(line.value)
                  for target in line.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        for node in ast.walk(test):
            if isinstance(getattr(node, "ops", [getattr(node, "op", None)])[0], ast.NotEq | ast.Not):
                calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
                drawn = [call for call in calls if without_a_seed(call) or secure.intersection(
                    name.id for name in ast.walk(call) if isinstance(name, ast.Name))]
                twice = [call for call in map(ast.unparse, calls) if ".sample(" in call and "random_state" not in call]
                if drawn or len(twice) > 1:
                    yield ast.unparse(node)


def without_a_seed(node):
    """Tell whether an expression calls something with ``random_state=None``."""
    return any(isinstance(k, ast.keyword) and str(k.arg).endswith("random_state") and isinstance(k.value, ast.Constant)
               and k.value.value is None for k in ast.walk(node))


def test_no_two_draws_without_a_seed_are_compared_by_hand():
    """Chance makes two of them equal, and a run of the suite fails for nothing: `differs_each_time` looks at more."""
    root = Path(tools.__file__).parents[2]
    for folder in ("dpestim/testing", "tests"):
        for file in (root / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if "random_state=None" in text or ".sample(" in text:
                assert list(compared_by_hand(ast.parse(text))) == [], file
    for line in ("not same(a.fit(X), f(random_state=None).fit(X))", "b.draw() != b.draw()", "c.sample() != c.sample()"):
        assert list(compared_by_hand(ast.parse(f"def test():\n    b = f(random_state=None)\n    assert {line}\n")))


class NeverTheFirst(GRR):
    """A law with a zero, honestly stated: whoever holds another value never reports the first."""

    def transition_matrix(self):
        rows = super().transition_matrix()
        for row in rows[1:]:
            row[1] += row[0]
            row[0] = Fraction(0)
        return rows


class NeverTheFirstFace(GRRFrequencyEstimator):
    _randomizer = NeverTheFirst


def test_a_law_with_a_zero_keeps_no_promise():
    checks = dict(mechanism_checks(NeverTheFirstFace(**PLAIN)))
    with pytest.raises(MechanismError, match="is broken: inf"):
        checks["check_promises"]()


def test_checks_of_one_setting_share_their_sample(monkeypatch):
    drawn = []
    draw = GRR.privatize

    def noted(self, codes, *rest):
        drawn.append(len(codes))
        draw(self, codes, *rest)

    monkeypatch.setattr(GRR, "privatize", noted)
    checks = dict(mechanism_checks(GRRFrequencyEstimator(**PLAIN)))
    for name in ("check_kernel_follows_law", "check_no_byte_betrays", "check_support_probabilities",
                 "check_estimates_are_unbiased", "check_variance"):
        checks[name]()
    assert sum(drawn) == 400_000 + 2  # once, and the two rows that a law is taken from


def test_tests_that_share_what_is_dear_stay_on_one_worker():
    """As long as pytest-xdist asks: it ignores a scheduler silently where the hook has another name."""
    pytest.importorskip("xdist")
    import _units
    from xdist import newhooks

    assert hasattr(newhooks, _units.pytest_xdist_make_scheduler.__name__)
    file = "tests/common/test_mechanisms.py::test_mechanism"
    checks = {_units.unit(f"{file}[local.PM-0-check_{name}]") for name in ("promises", "verbs")}
    assert len(checks) == 1
    assert checks != {_units.unit(f"{file}[local.PM-1-check_verbs]")}
    assert _units.unit("a/test_reproduction.py::test_a") == _units.unit("a/test_reproduction.py::test_b")
    assert _units.unit("a/test_b.py::test_c[1]") == _units.unit("a/test_b.py::test_c[2]")
    assert _units.unit("a/test_b.py::test_c[loky]") == _units.unit("a/test_d.py::test_e[loky]")
