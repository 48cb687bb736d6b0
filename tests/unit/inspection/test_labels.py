"""Labels of pictures can be read: none covers another, all are as they were declared, and each is at its own place."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.inspection import ShapeFunctionDisplay
from dpestim.statistics import contingency_table

KINDS = {
    "few": ["F", "M"],
    "long": ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
             "$5 & $6 an hour"],
    "many": [f"category {j:02}" for j in range(57)],
}


@pytest.fixture(autouse=True)
def no_window():
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(values, 600) for name, values in KINDS.items()})
    return DPGradientBoostingClassifier(
        8.0, delta=1e-5, bounds=(0, 1), categories=KINDS, classes=[False, True], max_iter=1,
        interactions=[("many", "long")], random_state=0).fit(X, X["few"] == "F")


def shown(axis):
    """Return (place, text) of each label of an axis, after a check that none covers another and none is cut off."""
    figure = axis.axes.figure
    figure.canvas.draw()
    ticks = [tick for tick in axis.get_major_ticks() if tick.label1.get_text()]
    boxes = [tick.label1.get_window_extent() for tick in ticks]
    # (rotated ones lie side by side, though the boxes around them meet)
    rotated = any(tick.label1.get_rotation() for tick in ticks)
    assert rotated or not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    if rotated:  # the end of each is at its tick
        assert {(t.label1.get_ha(), t.label1.get_rotation_mode()) for t in ticks} == {("right", "anchor")}
    return {tick.get_loc(): tick.label1.get_text() for tick in ticks}


@pytest.mark.parametrize("name", KINDS)
def test_bars_of_categories_have_labels_that_can_be_read(model, name):
    display = ShapeFunctionDisplay.from_estimator(model, name)
    called = [*KINDS[name], "other"]
    lies = name != "few"
    found = shown(display.ax_.yaxis if lies else display.ax_.xaxis)
    assert all(text == called[round(place)] for place, text in found.items())
    assert len(found) == len(called) or (name == "many" and len(found) > 20)
    sizes = [bar.get_width() if lies else bar.get_height() for bar in display.curve_]
    np.testing.assert_array_equal(sizes, display.scores)
    middles = [bar.get_y() + bar.get_height() / 2 if lies else bar.get_x() + bar.get_width() / 2
               for bar in display.curve_]
    np.testing.assert_allclose(middles, range(len(called)), atol=1e-9)


def test_categories_that_a_pair_takes_together_are_named_together(model):
    display = ShapeFunctionDisplay.from_estimator(model, ("many", "long"))
    many, long = shown(display.ax_.xaxis), shown(display.ax_.yaxis)
    if display.names[0] != "many":
        many, long = long, many
    assert list(long.values()) == [*KINDS["long"], "other"]
    assert many[0].startswith("category 00 ... category 0")
    assert many[max(many)] == "other"
    for place, text in many.items():
        for name in text.split(" ... ") if text != "other" else ():
            assert model.pools_[2][KINDS["many"].index(name)] == place
    assert "category 56" in many[max(many) - 1]


def test_labels_of_results_can_be_read_and_no_formula_is_seen():
    columns = [np.resize(["$a$", "$b$ and the others"], 40), np.resize(["x", "y", "z"], 40)]
    table = contingency_table(np.column_stack(columns), epsilon=1.0,
                              categories=[["$a$", "$b$ and the others"], ["x", "y", "z"]], random_state=0)
    found = shown(table.plot().ax_.yaxis)
    assert list(found.values()) == [f"{a}, {b}" for a in ("$a$", "$b$ and the others") for b in "xyz"]
