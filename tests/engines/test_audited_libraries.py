"""Audits of other libraries: noise in floats is found by its bits, and noise on a grid is not accused."""

import importlib.util
import re
import sys
import types

import pytest

from dpestim.audit import audit

dp = pytest.importorskip("opendp.prelude")
place = importlib.util.find_spec("diffprivlib")
if place is None:
    pytest.skip("diffprivlib is not installed", allow_module_level=True)


@pytest.fixture
def theirs(monkeypatch):
    """The mechanisms of diffprivlib, without its models, which do not import with this scikit-learn."""
    package = types.ModuleType("diffprivlib")
    package.__path__ = list(place.submodule_search_locations)
    monkeypatch.setitem(sys.modules, "diffprivlib", package)
    return importlib.import_module("diffprivlib.mechanisms")


def test_noise_of_diffprivlib_is_found_by_its_bits_and_integers_are_not_accused(theirs):
    for mechanism in (theirs.Laplace(epsilon=1.0, sensitivity=1.0), theirs.Staircase(epsilon=1.0, sensitivity=1.0)):
        found = audit(mechanism.randomise, [(0.0, 1.0)], claim=1.0, time_limit=30)
        assert found.violated
        assert re.search(r"multiple of 2\^|bits? of", found.event)  # (one of them, or a score of several)
    whole = audit(theirs.Geometric(epsilon=1.0, sensitivity=1).randomise, [(0, 1)], claim=1.0, n_samples=8000)
    assert not whole.violated
    assert whole.epsilon_lower > 0.5


def test_noise_of_opendp_is_not_accused_and_half_of_it_is():
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    right = audit(dp.m.make_laplace(*space, scale=1.0), [(0.0, 1.0)], claim=1.0, n_samples=8000)
    assert not right.violated
    assert right.epsilon_lower > 0.5
    assert audit(dp.m.make_laplace(*space, scale=0.5), [(0.0, 1.0)], claim=1.0, n_samples=8000).violated
