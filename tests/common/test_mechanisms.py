"""Every mechanism of the registry, put through every check with every setting it brings."""

import pytest

from dpestim.base import all_estimators
from dpestim.testing import check_mechanism, mechanism_checks

CASES = [
    pytest.param(check, id=f"{name}-{k}-{check_name}")
    for name, cls in all_estimators()
    for k, params in enumerate(cls._test_params())
    for check_name, check in mechanism_checks(cls(**params))
]


@pytest.mark.parametrize("check", CASES)
def test_mechanism(check):
    check()


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_what_a_mechanism_brings(name, cls):
    proof = cls._proof()
    assert proof.exists(), f"{name} has no proof file {proof.name}"
    text = proof.read_text(encoding="utf-8")
    for part in ("## Claim", "## Assumptions", "## Proof"):
        assert part in text, f"the proof of {name} lacks {part}"
    for part in ("**Privacy.**", "**Utility.**", "**Complexity.**", "Parameters\n", "Attributes\n", "Raises\n",
                 "References\n", "Examples\n"):
        assert part in cls.__doc__, f"the docstring of {name} lacks {part}"
    assert len(cls._test_params()) >= 2


def test_the_registry_is_what_is_expected():
    names = {name for name, _ in all_estimators()}
    assert {"local.GRRFrequencyEstimator", "local.OUEFrequencyEstimator", "local.OLHFrequencyEstimator"} <= names
    frequency = [cls for _, cls in all_estimators() if hasattr(cls, "frequencies_")]
    assert {len(mechanism_checks(cls(**cls._test_params()[0]))) for cls in frequency} == {19}
    assert len(CASES) >= sum(len(cls._test_params()) * 8 for _, cls in all_estimators())


def test_check_mechanism_runs_them_all():
    cls = dict(all_estimators())["local.BinaryFrequencyEstimator"]
    assert len(check_mechanism(cls(1.0, categories=[["x", "y"]]))) == 19
