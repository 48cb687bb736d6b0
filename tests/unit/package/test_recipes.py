"""The complete recipes of CONTRIBUTING.md: each block is run, and its class is put through every check."""

import re
import sys
import types
from pathlib import Path

import pytest

from dpestim.testing import MechanismError, check_mechanism

TEXT = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: The first block of each recipe.
BLOCKS = {int(number): block for number, block in re.findall(
    r"^### Recipe (\d+):.*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)}
#: The class of each complete one; recipes 1 to 3 have gaps, and `test_extend.py` follows the third.
CLASSES = {4: "GainSum", 5: "UniformMechanism", 6: "DPSignClassifier", 7: "DPCenterer", 8: "CoinSum"}
#: A slip in one line of each: too little noise, or a bound that claims too much.
SLIPS = {
    4: ("max(1, change)", "max(1, change // 2)"),
    5: ("/ self.delta) // 2", "/ self.delta / 2) // 2"),
    6: ("(2 if self._replaces else 1)", "1"),
    7: ("grid.span for", "grid.span // 2 for"),
    8: ("0.0, n_coins,", "0.0, 2 * n_coins,"),
}


@pytest.fixture
def class_of(monkeypatch):
    """Return a function that runs a block and returns the class of its recipe, by a name that pickles find."""

    def run(number, block):
        module = types.ModuleType(f"recipe_{number}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(block, module.__name__, "exec"), vars(module))
        return getattr(module, CLASSES[number])

    return run


def test_every_recipe_is_there():
    assert list(BLOCKS) == list(range(1, 9))
    assert max(len(line) for number in CLASSES for line in BLOCKS[number].splitlines()) <= 120


@pytest.mark.ci
@pytest.mark.parametrize("number", CLASSES)
def test_a_recipe_passes_every_check(class_of, number):
    cls = class_of(number, BLOCKS[number])
    assert len(cls._test_params()) >= 2
    for params in cls._test_params():
        assert len(check_mechanism(cls(**params))) >= 10


@pytest.mark.parametrize("number", SLIPS)
def test_a_slip_in_a_recipe_is_rejected(class_of, number):
    before, after = SLIPS[number]
    assert BLOCKS[number].count(before) == 1
    cls = class_of(number, BLOCKS[number].replace(before, after))
    with pytest.raises(MechanismError):
        check_mechanism(cls(**cls._test_params()[0]))
