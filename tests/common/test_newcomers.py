"""Mutation tests of the checks: what a newcomer writes by mistake is rejected by some check, in every family."""

import pytest
from newcomers import FAMILIES

from dpestim.testing import MechanismError, mechanism_checks

SLIPS = [pytest.param(family, cls, params, id=f"{family}-{cls.__name__}")
         for family, slips in FAMILIES.items() for cls, params in slips]


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:counts of")  # (servers that notice a slip themselves)
@pytest.mark.parametrize(("family", "cls", "params"), SLIPS)
def test_a_slip_is_rejected(family, cls, params):
    checks = [check for _, check in mechanism_checks(cls(**params))]
    if family in ("frequencies", "numbers", "shuffle"):
        checks.reverse()  # (there the last ones, those of behaviour, cost least)
    with pytest.raises(MechanismError):
        run(checks)


def run(checks):
    for check in checks:
        check()


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_ten(family):
    assert len({cls for cls, _ in FAMILIES[family]}) >= 10
