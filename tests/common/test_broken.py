"""The negative half: every deliberately broken mechanism is rejected, by the check that is there for it."""

import pytest
from broken import BROKEN, MODULES

from dpestim.base import all_estimators
from dpestim.testing import MechanismError, check_mechanism, mechanism_checks


def cases():
    """Yield all: of those that one check rejects, `make test` tries the first, and `make ci-test` the others."""
    seen = set()
    for cls, params, check in BROKEN:
        yield pytest.param(cls, params, check, id=f"{cls.__name__}-{check}", marks=[pytest.mark.ci] * (check in seen))
        seen.add(check)


@pytest.mark.parametrize(("cls", "params", "check"), list(cases()))
def test_a_broken_mechanism_is_rejected(cls, params, check):
    with pytest.raises(MechanismError):
        dict(mechanism_checks(cls(**params)))[check]()


@pytest.mark.parametrize("module", MODULES[::8], ids=lambda module: module.__name__)
def test_check_mechanism_rejects_it_as_a_whole(module):
    """It runs the list that each check is taken from above, whatever the family is: a few of them are enough."""
    cls, params, _ = module.BROKEN[0]
    with pytest.raises(MechanismError):
        check_mechanism(cls(**params))


def test_every_check_has_rejected_something():
    """A check that cannot fail is no check. (Those of models are tried in tests/unit/linear_model/test_logistic.py.)"""
    listed = {name for _, cls in all_estimators() for params in cls._test_params()
              for name, _ in mechanism_checks(cls(**params)) if not name.startswith("check_model_")}
    assert listed == {check for _, _, check in BROKEN}
