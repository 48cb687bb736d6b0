"""Whatever the house calls a result says what it is: text, HTML, a frame, a picture, a guarantee and a card."""

import importlib
import math
import pickle
import pkgutil
import sys

import numpy as np
import pytest
from _html import Balanced

import dpestim
from dpestim import Categories, Domain, Numbers, accuracy, config_context
from dpestim.accounting import Ledger
from dpestim.anonymity import homogeneity_attack
from dpestim.audit import BayesianAdversary, audit, audit_model, mistakes, poisoning, search_counterexample
from dpestim.base import PrivateEstimator, all_estimators
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.central.base import CentralMechanism
from dpestim.collection import Survey, plan_heavy_hitters, plan_ranges, plan_tables
from dpestim.collection.compared_models import ComparedModels
from dpestim.geo import PlanarLaplaceTransformer
from dpestim.graph import RNLTransformer
from dpestim.graph.generators.base import GraphSampler
from dpestim.inspection import privacy_card, release_report
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression
from dpestim.local import DistributionEstimator, GRRFrequencyEstimator, MeanEstimator, PMTransformer, plan
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.model_selection import PrivateSearchCV
from dpestim.pipeline import check_pipeline
from dpestim.privacy import PrivacyGuarantee
from dpestim.results import Estimates
from dpestim.shuffle import plan as plan_behind
from dpestim.statistics import ContingencyTable, Count, Mean, RangeCounts, group_by, histogram, mean
from dpestim.summaries import Summary
from dpestim.synthesis import MarginalSynthesizer
from dpestim.tables import NumberTable, Table
from dpestim.verify import suite, verify

pandas = pytest.importorskip("pandas")
axes = pytest.importorskip("matplotlib.figure").Figure().subplots()


def ledger():
    book = Ledger(3.0, durability="fast")
    book.charge(PrivacyGuarantee(1.0, model="central"), estimator="<b>")
    book.charge(PrivacyGuarantee(0.5, model="central"), estimator="other")
    return book


def frequencies():
    return GRRFrequencyEstimator(1.0, categories=[["<a>", "b"]], random_state=0).fit([["<a>"], ["b"]] * 20)


def spy():
    est = frequencies()
    X = [["<a>"], ["b"]] * 20
    return BayesianAdversary(est).measured_success(X, est.privatize(X), random_state=0)


def groups():
    frame = pandas.DataFrame({"<age>": [1.0, 2.0] * 20, "size": [0.5] * 40})
    kind = Mean(1.0, bounds=(0, 3), neighbours="add_remove", random_state=0)
    return group_by(kind, frame, ["<a>", "b"] * 20, ["<a>", "b"])


def search():
    X = np.linspace(-1, 1, 40).reshape(-1, 1)
    model = DPLogisticRegression(data_norm=1.5, classes=[0, 1])
    return PrivateSearchCV(model, {"intercept_scaling": [0.1, 1.0]}, selection="exponential", random_state=0).fit(
        X, (X[:, 0] > 0).astype(int))


#: An example of each class of results: the class as the package finds it, what makes one.
MADE = {
    "accounting.Ledger": ledger,
    "privacy.report.Account": lambda: ledger()._account(),
    "privacy.guarantee.PrivacyGuarantee": lambda: PrivacyGuarantee(1, 1e-6, notes=("It is <here>.",)),
    "statistics.result.Result": lambda: mean([1.0, 2.0] * 20, epsilon=1.0, bounds=(0, 3), random_state=0),
    "statistics.result.GroupResults": groups,
    "results.Estimates": lambda: frequencies().result_,
    "local.estimates.planning.SurveyPlan": lambda: plan(n_categories=4, n_users=1000, epsilon=1.0),
    "shuffle.planning.ShufflePlan": lambda: plan_behind(n_users=1000, n_categories=4, epsilon=1.0),
    "pipeline.report.PipelineReport": lambda: check_pipeline(DPLogisticRegression(data_norm=1.0, classes=[0, 1])),
    "inspection.releases.ReleaseReport": lambda: release_report({
        "How many <b>?": Count(1.0, random_state=0).fit([True] * 9), "By group?": groups(), "Which?": frequencies()}),
    "anonymity.attacks.Attack": lambda: homogeneity_attack([["<x>", "y"]] * 3, [0], 1),
    "audit.adversary.Success": spy,
    "inputs.domain.DomainCheck": lambda: Domain({"<age>": (17, 90), "gone": (0, 1)}).check(
        pandas.DataFrame({"<age>": [1.0, 20.0]})),
    "audit.gallery.mistake.Mistakes": mistakes,
    "audit.running.result.Audit": lambda: audit(lambda x, rng: f"<{x * rng.random() > 0.5}>", [(0, 1)], claim=1.0,
                                               n_samples=200),
    "audit.models.ModelAudit": lambda: audit_model(
        DPLogisticRegression(data_norm=1.0, classes=["<a>", "b"]), [[0.5], [-0.5]], ["<a>", "b"], n_canaries=9),
    "audit.search.Counterexample": lambda: search_counterexample(
        lambda value: {value: 0.75, "<other>": 0.25}, claim=1.0, categories=[["<a>", "b"]]),
    "audit.malicious.Poisoning": lambda: poisoning(frequencies(), [0.01, 0.1], "<a>"),
    "local.pivots.PoisoningTest": lambda: MeanEstimator(PMTransformer(1.0, bounds=(0, 1), random_state=0)).fit(
        [[0.5]] * 20).detect_poisoning(),
    "statistics.ranges.RangeResult": lambda: RangeCounts(1.0, bins=4, bounds=(0, 4)).fit([[1.0], [3.0]] * 9).result_,
    "verify.verdict.Verdict": lambda: verify(suite()["half the noise"]),
    "collection.survey.Survey": lambda: Survey(
        GRRFrequencyEstimator(1.0, categories={"<a>": ["x", "y"], "b": [1, 2]}), name="<Drinks>"),
    "collection.tables_plan.TablePlan": lambda: plan_tables(n_users=1000, epsilon=1.0, sizes=[3, 4]),
    "collection.hitters_plan.HitterPlan": lambda: plan_heavy_hitters(n_users=10_000, epsilon=2.0, n_bits=12),
    "collection.ranges_plan.RangePlan": lambda: plan_ranges(n_users=1000, epsilon=1.0, n_values=16),
    "accuracy.error.Error": lambda: accuracy.of(ContingencyTable(1.0, categories=[["<a>", "b"]])),
    "geo.meaning.DistanceTable": lambda: PlanarLaplaceTransformer(
        **PlanarLaplaceTransformer._test_params()[0]).distances([10, 100]),
    "a search": lambda: search().result_,
    "no guarantee": lambda: PrivacyGuarantee(math.inf, notes=("It is <not> here.",)),
    "a plan of means": lambda: plan(n_categories=3, n_users=1000, epsilon=1.0),
}
BOOK = Ledger(1.0, durability="fast")
#: Estimators that keep nothing they released: their methods return it. (Others release nothing at all.)
RETURNS = NumericTransformer, AdditiveMechanism, CentralMechanism, GraphSampler, RNLTransformer


def check_says_what_it_is(result):
    """Check text, HTML, frame, picture, guarantee and card of a result; returns its frame and the display."""
    text, html, frame = str(result), Balanced(result._repr_html_()), result.to_frame()
    assert len(frame)
    assert text
    assert " at 0x" not in text + "".join(html.seen)
    assert all(isinstance(name, str) and name for name in frame.columns)
    assert frame.columns.is_unique
    axes.clear()
    display = result.plot(axes)
    assert display.ax_ is axes
    assert axes.get_xlabel()
    assert any(artist.get_visible() for artist in (*axes.lines, *axes.collections))
    axes.figure.canvas.draw()
    card = privacy_card(result)
    assert all(card.sections.values())
    promise = result.spent() if isinstance(result, Ledger) else getattr(result, "privacy", None)
    if promise is not None:
        assert card.sections["The promise"] == str(promise)
    if isinstance(result, NumberTable):
        check_numbers(result, frame, display)
    return frame, display


def check_numbers(result, frame, display):
    """Check what tables of numbers have besides: columns of the frame, intervals that are those of `interval`."""
    assert list(frame.columns[-4:]) == ["value", "standard_error", "low", "high"]
    if result.level is None:
        assert frame[["low", "high"]].isna().all(axis=None)
        with pytest.raises(ValueError, match=r"no interval"):
            result.interval()
        return
    assert f"{100 * result.level:g} % interval" in str(result)
    found = result.interval(result.level)
    low, high = zip(*found.values()) if isinstance(found, dict) else found
    np.testing.assert_array_equal(frame["low"].to_numpy(float), np.ravel(low))
    np.testing.assert_array_equal(frame["high"].to_numpy(float), np.ravel(high))
    # (whose error is known has an interval, too)
    assert frame.loc[np.isfinite(frame["standard_error"].to_numpy(float)), ["low", "high"]].notna().all(axis=None)
    within = result.interval(0.5)
    inner_low, inner_high = zip(*within.values()) if isinstance(within, dict) else within
    known = np.isfinite(np.ravel(low))
    assert (np.ravel(inner_low)[known] >= np.ravel(low)[known]).all()
    assert (np.ravel(inner_high)[known] <= np.ravel(high)[known]).all()
    assert display.intervals_ is not None


def kinds_of_results():
    """Return the names of all classes of the package that are tables, but for their bases."""
    for module in pkgutil.walk_packages(dpestim.__path__, "dpestim."):
        if "._core" not in module.name:
            importlib.import_module(module.name)
    found, seen = [Table], []
    while found:
        cls = found.pop()
        found += cls.__subclasses__()
        if cls.__module__.startswith("dpestim.") and cls not in (Table, NumberTable, ComparedModels):
            seen.append(f"{cls.__module__.removeprefix('dpestim.')}.{cls.__name__}")
    return sorted(seen)


def test_every_kind_of_result_is_looked_at():
    assert set(kinds_of_results()) <= set(MADE)
    with pytest.raises(TypeError, match="does not say"):
        str(Table())


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_results_say_what_they_are(make):
    check_says_what_it_is(make())


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_estimators_say_what_they_have_released(name, cls):
    est = cls(**cls._test_params()[0])
    with pytest.raises(AttributeError):
        _ = est.result_
    X, y = est._test_data(60)
    if hasattr(est, "fit"):
        est.fit(X, y)
    keeps = cls._result_parts is not PrivateEstimator._result_parts or hasattr(est, "value_")
    if est.privacy_.is_nothing or (issubclass(cls, RETURNS) and not keeps):
        with pytest.raises(AttributeError, match="returns what it releases"):
            _ = est.result_
        return
    with BOOK, config_context(strict=True):
        result = est.result_
        check_says_what_it_is(result)
    assert not len(BOOK)  # (what was released is read once more, and costs nothing)
    assert result.privacy == est.privacy_
    assert str(pickle.loads(pickle.dumps(result))) == str(result)


def test_a_pickle_of_a_result_has_no_exact_summary():
    """What is handed on must not hold what was never released: the estimator may still have the sums of its rows."""
    secret = 1234567.25
    model = DPLinearRegression(1.0, bounds=(-1e7, 1e7), target_bounds=(-1, 1), random_state=0)
    model.summarize([[secret]] * 40, [0.5] * 40).release()
    assert model.summary_.n_rows == 40
    restored = pickle.loads(pickle.dumps(model.result_))
    assert restored.estimator is None
    assert not any(isinstance(part, Summary) for part in reached(restored))
    assert any(isinstance(part, Summary) for part in reached(model))  # (and is seen where there is one)
    est = frequencies()
    restored = pickle.loads(pickle.dumps(est.result_))
    np.testing.assert_array_equal(restored.interval(0.95), est.result_.interval(0.95))
    with pytest.raises(ValueError, match=r"must be 0.95: .* pickled"):
        restored.interval(0.9)


def reached(value, seen=None):
    """Return all objects that a pickle of a value holds, but for what is in arrays."""
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        for part in (*parts, *getattr(value, "__dict__", {}).values()):
            reached(part, seen)
    return seen.values()


def test_a_result_stays_what_it_was_when_more_reports_come():
    est = frequencies()
    before = est.result_
    text, ends = str(before), before.interval(0.9)
    est.partial_fit([["b"]] * 50)
    assert str(before) == text
    np.testing.assert_array_equal(before.interval(0.9), ends)
    assert str(est.result_) != text
    assert isinstance(before, Estimates)


@pytest.mark.parametrize("make", [
    lambda domain: MeanEstimator(PMTransformer(4.0, bounds=domain[["age"]], random_state=0)),
    lambda domain: DistributionEstimator(PMTransformer(4.0, bounds=domain[["age"]], random_state=0), n_bins=2),
    lambda domain: GRRFrequencyEstimator(4.0, categories=domain[["kind"]], random_state=0),
    lambda domain: MarginalSynthesizer(4.0, delta=1e-6, bounds=domain, bins=4),
    lambda domain: ContingencyTable(4.0, categories=domain[["kind"]]),
], ids=["mean", "distribution", "frequencies", "synthesis", "table"])
def test_missing_values_have_a_line_with_their_name(make):
    domain = Domain({"age": Numbers(17, 90, missing=True), "kind": Categories(["a", "b"], missing=True)})
    frame = pandas.DataFrame({"age": [20.0, 40.0, 60.0, None] * 500, "kind": ["a", "b", None, "a"] * 500})
    est = make(domain)
    read = frame[["age"]] if hasattr(est, "transformer") else frame if isinstance(est, MarginalSynthesizer) else (
        frame[["kind"]])
    result = est.fit(read).result_
    lines = [line.split() for line in str(result).splitlines() if "missing" in line]
    assert len(lines) == read.shape[1]
    if hasattr(est, "missing_"):
        last = result.to_frame().iloc[-1]
        assert (last["value"], last["standard_error"]) == (est.missing_[0], est.missing_standard_error_[0])
        assert abs(last["value"] - 0.25) < 0.1


def test_units_that_a_domain_declares_are_shown_and_no_others():
    frame = pandas.DataFrame({"age": np.arange(20.0, 60.0), "height": 1.7})
    domain = Domain({"age": Numbers(17, 90, unit="years"), "height": Numbers(1, 2.5, unit="m"),
                     "weight": Numbers(30, 200, unit="kg")})
    grouped = group_by(Mean(1.0, bounds=domain, neighbours="add_remove", random_state=0), frame, ["a", "b"] * 20,
                       ["a", "b"])
    reported = MeanEstimator(PMTransformer(4.0, bounds=domain, random_state=0)).fit(frame)
    for result in (mean(frame, epsilon=1.0, bounds=domain, random_state=0), grouped, reported.result_):
        sentence = "Units of columns: age in years, height in m."
        assert sentence in str(result)
        assert sentence in Balanced(result._repr_html_()).seen
        assert result.to_frame().attrs["units"] == {"age": "years", "height": "m"}
        assert str(pickle.loads(pickle.dumps(result))) == str(result)
    plain = mean(frame, epsilon=1.0, bounds=([17, 1], [90, 2.5]), random_state=0)
    assert "Units" not in str(plain)
    assert plain.to_frame().attrs == {}


@pytest.mark.parametrize("name", ["accounting.Ledger", "privacy.guarantee.PrivacyGuarantee", "results.Estimates"])
def test_plots_and_frames_say_what_to_install(monkeypatch, name):
    result = MADE[name]()
    for module in ("matplotlib.pyplot", "pandas"):  # (as if they were not there)
        monkeypatch.setitem(sys.modules, module, None)
    assert str(result)
    assert result._repr_html_()
    for method, extra in ((result.plot, "plot"), (result.to_frame, "pandas")):
        with pytest.raises(ImportError, match=rf"pip install 'dpestim\[{extra}\]'"):
            method()


def test_results_are_compared_on_the_same_axes_and_long_ones_are_not_drawn():
    est = frequencies()
    axes.clear()
    first = est.result_.plot(axes, label="first", offset=-0.1)
    second = est.result_.plot(axes, label="second", offset=0.1)
    assert first.ax_ is second.ax_
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["first", "second"]
    assert axes.get_xlabel() == "frequency"  # (what all numbers share stands on the axis, and not on each label)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["<a>", "b"]
    with pytest.raises(ValueError, match=r"at most 10,000 numbers .* to_frame"):
        histogram(np.arange(3.0), epsilon=1.0, bins=10_001, bounds=(0, 1), random_state=0).plot(axes)
    empty = Ledger(1.0, durability="fast")
    axes.clear()
    assert len(empty.plot(axes).values) == 0
    assert "nothing yet" in str(privacy_card(empty))


def test_a_report_for_others_takes_what_any_estimator_has_released():
    report = release_report({"Who smokes?": frequencies(), "How many?": Count(1.0, random_state=0).fit([True] * 9)})
    frame = report.to_frame()
    assert frame["of"].tolist()[:2] == ["frequency, 0, <a>", "frequency, 0, b"]
    assert frame["of"].isna().tolist() == [False, False, True]
    assert report.privacy.epsilon == 2
