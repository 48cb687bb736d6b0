"""The errors that pages of estimators show: every class has them or says why, and they are of this version."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpestim.base import all_estimators

TOOLS = Path(__file__).parents[3] / "docs" / "tools"
REGISTRY = dict(all_estimators())


@pytest.fixture(scope="module")
def tool():
    """Return the script, which stands outside of the package."""
    sys.path.insert(0, str(TOOLS))
    try:
        yield importlib.import_module("error_curves")
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def kept(tool):
    """Return the file that pages are made from."""
    return json.loads(tool.KEPT.read_text(encoding="utf-8"))


def test_every_class_has_errors_or_says_why_not(tool, kept):
    hint = "run docs/tools/error_curves.py"
    assert {*kept["curves"], *kept["reasons"]} == {*REGISTRY}, hint
    assert kept["reasons"] == tool.REASONS, hint
    assert tuple(kept["epsilons"]) == tool.EPSILONS, hint
    for name, own in kept["curves"].items():
        known = [each for each in own["errors"] if each is not None]
        assert len(own["errors"]) == len(tool.EPSILONS), name
        assert known, name
        assert known[-1] <= known[0], f"{name}: the largest epsilon has the largest error"
        if tool.measure_of(name) in (tool.sums, tool.mean, tool.numbers):  # (of noise alone: 16 times the epsilon)
            assert known[-1] < known[0] / 5, f"{name}: its error is no error of noise"
        assert (own["error"], own["setting"]) == (tool.measure_of(name).__doc__.rstrip("."), tool.said(name)), hint


@pytest.mark.parametrize("name", ["local.GRRFrequencyEstimator", "central.ExponentialMechanism", "stream.HaarRelease"])
def test_errors_are_those_of_this_version(tool, kept, name):
    assert tool.curve(name) == kept["curves"][name], "run docs/tools/error_curves.py"


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_what_is_kept_of_every_class_can_be_measured_and_is_no_smaller(tool, kept):
    """One of the fits whose mean is kept has at most their sum."""
    at = tool.EPSILONS.index(1.0)
    for name, own in kept["curves"].items():
        if own["errors"][at] is not None:
            error = tool.measure_of(name)(name, 1.0, 0)
            assert tool.measure_of(name)(name, 1.0, 0) == error, f"{name}: the seed does not repeat it"
            assert 0 <= error <= 1.01 * own["fits"] * own["errors"][at], f"{name}: run docs/tools/error_curves.py"


def test_what_is_not_answered_is_no_small_error(tool, monkeypatch):
    class Unanswered:
        class result_:  # as of a fit
            @staticmethod
            def to_frame():
                return pd.DataFrame({"row": ["a", "b"], "value": [1.0, np.nan]})

    monkeypatch.setattr(tool, "fitted", lambda *_: Unanswered)
    assert np.isnan(tool.released_numbers("statistics.Correlation", 1.0, 0))


def test_a_table_of_a_page(tool):
    lines = tool.table_of("local.GRRFrequencyEstimator")
    assert lines[0] == ".. rubric:: Error over epsilon"
    assert {"     - 0.25", "   * - error"} < {*lines}
    assert tool.REASONS["preprocessing.DomainEncoder"] in tool.table_of("preprocessing.DomainEncoder")
