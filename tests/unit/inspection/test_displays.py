"""Displays: what they draw, of which column, and that they need matplotlib only when they draw."""


import _host
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dpestim.ensemble import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inspection import (
    DistributionDisplay,
    EpsilonCurveDisplay,
    FrequencyDisplay,
    MechanismComparisonDisplay,
    ShapeFunctionDisplay,
)
from dpestim.local import (
    DistributionEstimator,
    GRRFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
    SDGRRFrequencyEstimator,
    SDPMTransformer,
    plan,
    plan_mean,
)

FRAME = pd.DataFrame({"smokes": ["no", "yes", "no", "no"] * 50, "$ spent $": [1, 2, 3, 3] * 50})


@pytest.fixture(autouse=True)
def no_window():
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


def frequencies(epsilon=2.0, **params):
    params = {"categories": {"smokes": ["no", "yes"], "$ spent $": [1, 2, 3]}, "random_state": 0, **params}
    return GRRFrequencyEstimator(epsilon, **params).fit(FRAME)


def distribution(**params):
    X = np.random.default_rng(0).normal(size=(500, 2)).clip(-2, 2)
    transformer = PMTransformer(4.0, bounds=(-2.0, 2.0), random_state=0)
    return DistributionEstimator(transformer, **{"n_bins": 8, **params}).fit(X)


@pytest.mark.parametrize(
    ("column", "at", "name"),
    [(0, 0, "smokes"), (1, 1, "$ spent $"), ("$ spent $", 1, "$ spent $"), (np.int64(1), 1, "$ spent $")],
)
def test_a_column_of_frequencies(column, at, name):
    est = frequencies()
    display = FrequencyDisplay.from_estimator(est, column=column)
    x, y = display.points_.get_data()
    np.testing.assert_array_equal(x, est.frequencies_[at])
    np.testing.assert_array_equal(y, range(len(x)))
    ends = np.array([segment[:, 0] for segment in display.intervals_.get_segments()])
    np.testing.assert_allclose(ends, est.confidence_interval(0.95)[at])
    ax = display.ax_
    assert [t.get_text() for t in ax.get_yticklabels()] == [str(c) for c in est.categories_[at]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first category on top
    assert (ax.get_xlabel(), ax.get_ylabel().replace("\\", ""), display.feature) == ("frequency", name, name)
    assert ax.get_legend_handles_labels()[1] == ["GRRFrequencyEstimator, epsilon = 2"]
    assert display.figure_ is ax.figure
    display.figure_.canvas.draw()  # a name is no formula


@pytest.mark.ci
def test_a_column_of_a_distribution():
    est = distribution()
    display = DistributionDisplay.from_estimator(est, column=1, n_intervals=4)
    values, edges, _ = display.density_.get_data()
    np.testing.assert_array_equal(edges, est.bin_edges_[1])
    np.testing.assert_allclose(values * np.diff(edges), est.distribution_[1])
    high, _, low = display.band_.get_data()
    np.testing.assert_array_equal(display.band_.get_data()[1], edges[::2])
    np.testing.assert_allclose(np.stack([low, high], 1), est.confidence_interval(0.95, n_bins=4)[1])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("value", "density")
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_legend_handles_labels()[1] == ["DistributionEstimator, epsilon = 4"]
    display.figure_.canvas.draw()


def test_bins_of_unequal_widths_are_a_density():
    transformer = SDPMTransformer(2.0, bounds=(0.0, 10.0), low_sensitivity=(2.0, 7.0), random_state=0)
    est = DistributionEstimator(transformer, n_bins=10).fit(np.full((200, 1), 3.0))
    display = DistributionDisplay.from_estimator(est, level=None)
    values, edges, _ = display.density_.get_data()
    assert values @ np.diff(edges) == pytest.approx(1)
    assert display.band_ is None
    assert "under a relaxation" in display.label


def test_several_on_the_same_axes():
    _, ax = plt.subplots()
    first = FrequencyDisplay.from_estimator(frequencies(), ax=ax, color="black", markersize=9)
    second = FrequencyDisplay.from_estimator(frequencies(1.0), ax=ax, label="less", offset=0.2)
    assert first.ax_ is second.ax_ is ax
    assert (first.points_.get_color(), first.points_.get_markersize()) == ("black", 9)
    assert second.points_.get_color() != "black"
    assert ax.get_legend_handles_labels()[1] == ["GRRFrequencyEstimator, epsilon = 2", "less"]
    np.testing.assert_allclose(second.points_.get_ydata(), [0.2, 1.2])
    assert second.intervals_.get_segments()[1][0, 1] == 1.2
    assert [t.get_text() for t in ax.get_yticklabels()] == ["no", "yes"]
    assert len(ax.lines) == len(ax.collections) == 2
    again = first.plot()
    assert again is first
    assert first.ax_ is not ax
    ours = DistributionDisplay.from_estimator(distribution(), level=None, ax=ax, color="red")
    assert ours.density_.get_edgecolor()[:3] == (1, 0, 0)


@pytest.mark.ci
def test_distributions_on_the_same_axes_take_one_colour_of_the_cycle_each():
    _, ax = plt.subplots()
    drawn = [DistributionDisplay.from_estimator(distribution(), n_intervals=2, ax=ax) for _ in range(2)]
    cycle = [matplotlib.colors.to_rgba(c["color"]) for c in matplotlib.rcParams["axes.prop_cycle"]]
    assert [d.density_.get_edgecolor() for d in drawn] == cycle[:2]
    assert [d.band_.get_facecolor()[:3] for d in drawn] == [c[:3] for c in cycle[:2]]


def test_without_intervals_or_names_or_with_many_categories():
    assert FrequencyDisplay.from_estimator(frequencies(), level=None).intervals_ is None
    plain = FrequencyDisplay(categories=[None, "b"], frequencies=[0.4, 0.6]).plot()
    assert plain.ax_.get_legend() is None
    assert plain.ax_.get_ylabel() == "category"
    X = np.arange(300)[:, None] % 100
    many = FrequencyDisplay.from_estimator(OUEFrequencyEstimator(categories=[range(100)], random_state=0).fit(X))
    assert len(many.ax_.get_yticks()) < 20
    assert many.ax_.get_ylabel() == "number of the category"


def test_post_processed_frequencies_may_lie_outside_their_intervals():
    display = FrequencyDisplay.from_estimator(frequencies(0.01, postprocess="norm_sub"))
    assert display.points_.get_xdata().min() >= 0
    display.figure_.canvas.draw()


def test_what_was_learned_is_said():
    with pytest.warns(PrivacyLeakWarning):
        est = GRRFrequencyEstimator(1.0).fit(FRAME)
    assert FrequencyDisplay.from_estimator(est).label == "GRRFrequencyEstimator, no guarantee"


@pytest.mark.parametrize("column", [2, -1, "drinks", None, True, 0.0, ["smokes"]])
def test_columns_that_are_none(column):
    with pytest.raises(ValueError, match="column"):
        FrequencyDisplay.from_estimator(frequencies(), column=column)
    with pytest.raises(ValueError, match="column"):
        DistributionDisplay.from_estimator(distribution(), column=column, level=None)


def test_curves_of_additive_models():
    """Drawn over their own bins: what the model adds to a score is what the picture shows there."""
    rng = np.random.default_rng(0)
    n = 4000
    X = pd.DataFrame({"age": rng.uniform(20, 70, n), "kind": rng.integers(0, 5, n), "dose": rng.uniform(0, 1, n)})
    ends = {"age": (20, 70), "kind": (-0.5, 5.5), "dose": (0, 1)}
    model = DPGradientBoostingRegressor(
        4.0, delta=1e-6, bounds=([20, 0], [70, 1]), target_bounds=(0, 1), categories={"kind": range(5)},
        interactions=[("age", "kind")], n_bins=40, random_state=0)
    model.fit(X, (X["age"] > 50) * 0.5 + (X["kind"] == 2) * 0.4)
    for term, name in enumerate(X.columns):
        display = ShapeFunctionDisplay.from_estimator(model, name)
        assert display.ax_.get_xlabel() == name
        if name == "kind":
            scores = ShapeFunctionDisplay.from_estimator(model, term).scores
            np.testing.assert_array_equal([bar.get_height() for bar in display.curve_], scores)
            assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "1", "2", "3", "4", "other"]
            assert len(display.band_.lines[2][0].get_segments()) == 6
            continue
        drawn = display.curve_.get_data()
        assert (drawn.edges[0], drawn.edges[-1]) == ends[name]
        places = np.searchsorted(drawn.edges, X[name], side="right") - 1
        others = X.assign(**{name: X[name].iloc[0]})
        if term == 2:  # (the others are in the pair, too)
            moved = drawn.values[places] - drawn.values[places[0]]
            inside = (model.predict(X) > 0) & (model.predict(X) < 1) & (model.predict(others) > 0) & (
                model.predict(others) < 1)
            assert inside.any()
            np.testing.assert_allclose((model.predict(X) - model.predict(others))[inside], moved[inside], atol=1e-9)
        assert (display.band_.get_data().values > drawn.values).all()
    pair = ShapeFunctionDisplay.from_estimator(model, ("kind", "age"), level=None)
    assert pair.curve_.get_array().shape == (6, 15)  # (missing numbers are not drawn)
    assert [tick.get_text() for tick in pair.ax_.get_yticklabels()] == ["0", "1", "2", "3", "4", "other"]
    assert (pair.ax_.get_xlabel(), pair.ax_.get_ylabel()) == ("age", "kind")
    assert pair.band_ is None
    plt.close("all")
    for bad, match in (({"term": 4}, "term"), ({"term": True}, "term"), ({"output": 1}, "output"),
                       ({"term": "weight"}, r"term .*age, kind, dose, age\*kind"), ({"term": ("age", "dose")}, "term")):
        with pytest.raises(ValueError, match=match):
            ShapeFunctionDisplay.from_estimator(model, **bad)
    with pytest.raises(ValueError, match="estimator must have"):
        ShapeFunctionDisplay.from_estimator(LogisticRegression())
    with pytest.raises(NotFittedError):
        ShapeFunctionDisplay.from_estimator(DPGradientBoostingClassifier())
    assert not plt.get_fignums()


def test_what_cannot_be_drawn_opens_no_figure():
    for display, other in ((FrequencyDisplay, distribution()), (DistributionDisplay, frequencies())):
        for stranger in (other, LogisticRegression()):
            with pytest.raises(ValueError, match="estimator must have"):
                display.from_estimator(stranger)
    with pytest.raises(NotFittedError):
        FrequencyDisplay.from_estimator(GRRFrequencyEstimator(categories=[[0, 1]]))
    with pytest.raises(NotFittedError):
        DistributionDisplay.from_estimator(DistributionEstimator(PMTransformer(bounds=(0, 1))))
    with pytest.raises(ValueError, match="level"):
        FrequencyDisplay.from_estimator(frequencies(), level=95)
    with pytest.raises(ValueError, match="n_bins"):
        DistributionDisplay.from_estimator(distribution(), n_intervals=0)
    assert not plt.get_fignums()


def test_matplotlib_is_loaded_when_something_is_drawn_and_named_when_it_is_missing():
    code = """
import sys
from dpestim.inspection import DistributionDisplay, EpsilonCurveDisplay, FrequencyDisplay, MechanismComparisonDisplay
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
for draw in (FrequencyDisplay.from_estimator, DistributionDisplay.from_estimator, EpsilonCurveDisplay.from_estimator,
             EpsilonCurveDisplay.from_plan, MechanismComparisonDisplay.from_plan):
    try:
        draw(None)
    except ImportError as error:
        print(error)
"""
    done = _host.run(code)
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all("pip install 'dpestim[plot]'" in line for line in lines)


def test_where_intervals_would_say_nothing_none_are_drawn():
    few = DistributionEstimator(PMTransformer(0.5, bounds=(0.0, 1.0), random_state=0)).fit(np.full((20, 1), 0.3))
    with pytest.warns(UserWarning, match="no intervals are drawn: n_bins must be smaller"):
        display = DistributionDisplay.from_estimator(few)
    assert display.intervals is None
    plt.close("all")


PLAN = {"n_users": 1000, "n_categories": 16, "epsilon": 1.0}


@pytest.mark.ci
@pytest.mark.parametrize("against", ["bits", "client_us", "server_s", "memory_mb"])
def test_mechanisms_of_a_plan(against):
    found = plan(**PLAN)
    display = MechanismComparisonDisplay.from_plan(found, against=against)
    x, y = display.points_.get_data()
    np.testing.assert_array_equal(x, [getattr(row, against) for row in found.rows])
    np.testing.assert_array_equal(y, [row.rmse for row in found.rows])
    assert display.names_[0].get_text() == "SS"
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    assert display.ax_.get_legend_handles_labels()[1] == ["1,000 users, epsilon = 1"]
    assert display.ax_.get_ylabel() == "root mean square error"
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


def test_fitted_mechanisms():
    both = [frequencies(), frequencies(4.0)]
    display = MechanismComparisonDisplay.from_estimators(both, column="smokes", color="black")
    np.testing.assert_allclose(display.errors, [np.sqrt(np.square(e.standard_errors_[0]).mean()) for e in both])
    np.testing.assert_array_equal(display.costs, [1, 1])
    assert display.points_.get_color() == "black"
    assert display.ax_.get_legend() is None
    again = display.plot(ax=plt.subplots()[1])
    assert again is display


@pytest.mark.ci
def test_curves_of_a_plan():
    found = plan(**PLAN)
    display = EpsilonCurveDisplay.from_plan(found)
    assert list(display.errors) == [row.mechanism for row in found.rows[:5]]
    assert display.epsilons[[0, -1]] == pytest.approx([1 / 8, 8])
    assert display.mark_.get_xdata()[0] == 1
    assert len(display.lines_) == 5
    few = EpsilonCurveDisplay.from_plan(found, mechanisms=["GRRFrequencyEstimator"], epsilons=[0.5, 1], label="mine")
    np.testing.assert_array_equal(few.lines_[0].get_ydata(), found.errors_at([0.5, 1])["GRRFrequencyEstimator"])
    assert few.ax_.get_legend_handles_labels()[1] == ["mine GRR"]
    means = EpsilonCurveDisplay.from_plan(plan_mean(n_users=100, epsilon=1.0), mechanisms=["PMTransformer"],
                                          epsilons=[1, 2])
    assert means.ax_.get_legend_handles_labels()[1] == ["PM"]


def test_the_curve_of_an_estimator():
    est = frequencies()
    display = EpsilonCurveDisplay.from_estimator(est, column=1, epsilons=[1.0, 2.0], linewidth=3)
    law = GRRFrequencyEstimator(1.0, categories=[[1, 2, 3]]).randomizer()
    assert display.errors[""][1] == pytest.approx(np.sqrt(law.variance(200, 1 / 3)))  # (two columns share epsilon)
    assert display.lines_[0].get_linewidth() == 3
    assert display.mark_.get_xdata()[0] == 2
    assert display.ax_.get_legend_handles_labels()[1] == ["GRRFrequencyEstimator, epsilon = 2"]
    with pytest.warns(PrivacyLeakWarning):
        learned = GRRFrequencyEstimator(1.0).fit(FRAME)
    assert (np.diff(EpsilonCurveDisplay.from_estimator(learned, epsilons=[1, 3]).errors[""]) < 0).all()
    relaxed = SDGRRFrequencyEstimator(1.0, categories=[[1, 2, 3]], low_sensitivity=[[1]]).fit(FRAME[["$ spent $"]])
    assert EpsilonCurveDisplay.from_estimator(relaxed).mark_.get_xdata()[0] == 1
    part = EpsilonCurveDisplay.from_estimator(est, epsilons=[1.0, 90.0])  # beyond 80 there is no law
    assert np.isnan(part.errors[""]).tolist() == [False, True]


def test_plans_and_mechanisms_that_cannot_be_drawn_open_no_figure():
    found = plan(**PLAN)
    for draw in (MechanismComparisonDisplay.from_plan, EpsilonCurveDisplay.from_plan):
        with pytest.raises(ValueError, match="plan must have"):
            draw(frequencies())
    with pytest.raises(ValueError, match="estimator must have"):
        EpsilonCurveDisplay.from_estimator(distribution())
    with pytest.raises(ValueError, match="estimator must have"):
        MechanismComparisonDisplay.from_estimators([LogisticRegression()])
    with pytest.raises(ValueError, match="estimators must be a list"):
        MechanismComparisonDisplay.from_estimators([])
    with pytest.raises(ValueError, match="against must be one of"):
        MechanismComparisonDisplay.from_plan(found, against="euros")
    with pytest.raises(ValueError, match="mechanisms must be names"):
        EpsilonCurveDisplay.from_plan(found, mechanisms=["XYZ"])
    with pytest.raises(ValueError, match="epsilon must be"):
        EpsilonCurveDisplay.from_plan(found, epsilons=[0.0])
    with pytest.raises(ValueError, match="epsilons must hold at least one"):
        EpsilonCurveDisplay.from_estimator(frequencies(), epsilons=[100.0])
    with pytest.raises(NotFittedError):
        EpsilonCurveDisplay.from_estimator(GRRFrequencyEstimator(categories=[[0, 1]]))
    assert not plt.get_fignums()
