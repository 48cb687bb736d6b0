"""Benchmarks take their mechanisms from the registry: a newcomer is timed without a line there."""

import json
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpestim.base import all_estimators
from dpestim.statistics.base import DPStatistic


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import _harness, frequencies, memory, numbers, vectors

    monkeypatch.setattr(_harness, "ONCE", True)
    return frequencies, numbers, memory, vectors


def shorten_peers(monkeypatch, module):
    """Let boosting of others have two rounds: it would take longer than all that is tested here."""
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        monkeypatch.setattr(module, name, partial(getattr(module, name), max_iter=2))


def test_every_mechanism_is_timed(benchmarks):
    frequencies, numbers, _, vectors = benchmarks
    timed = {cls for _, cls in (*frequencies.mechanisms(), *numbers.transformers(), *vectors.transformers())}
    assert timed == {cls for _, cls in all_estimators() if hasattr(cls, "privatize") and hasattr(cls, "transform")
                     and cls._checked_as not in ("privatized columns", "lists", "places")}  # (laws of others; bits)


def test_the_standard_run_has_at_most_sixty_lines(benchmarks, monkeypatch, tmp_path, capsys):
    from benchmarks import __main__ as command
    from benchmarks import _harness, fits, frequencies, ledger, numbers, statistics

    # (what is timed for a row is not timed here: that would take ten seconds)
    monkeypatch.setattr(frequencies, "_verb_rows", lambda settings, name, case, verb: [
        _harness.Row(name) for _ in frequencies.PEERS[case.cls.__name__, verb][1]])
    monkeypatch.setattr(numbers, "_privatize", lambda settings, name, est, X: _harness.Row(name))
    monkeypatch.setattr(numbers, "_maximise", lambda settings: [_harness.Row("EM")] * 2)
    monkeypatch.setattr(fits, "interleave", lambda contestants, slow=1.0: (dict.fromkeys(contestants, 1.0), {}, 1))
    monkeypatch.setattr(statistics, "_row", lambda settings, name, *rest, **more: _harness.Row(name))
    monkeypatch.setattr(ledger, "rows", lambda settings: [_harness.Row("entry")] * 2)
    monkeypatch.setattr(_harness.Settings, "n", 2000)
    monkeypatch.setattr(_harness.Settings, "n_large", 2000)
    command.main(["--output", str(tmp_path / "rows.json")])
    said = capsys.readouterr().out
    assert "not measured" not in said
    assert 40 < len(said.splitlines()) <= 60


def test_rows_say_what_the_machine_allows_or_which_goal_they_have(benchmarks, monkeypatch):
    from benchmarks import _harness, fits, logistic, plans, statistics
    from dpestim.linear_model.solver import MarginLoss

    few, quick = fits.data(40), SimpleNamespace(quick=True, short=True, n=2000)
    scaler = next(contest for contest in fits.contests() if type(contest[0]).__name__ == "DPMinMaxScaler")
    row = fits.contested(quick, few, *scaler)
    assert (row.limit, row.target) == ("least", "1.2x")
    assert row.share > 0
    assert [row.limit for row in statistics.rows(quick) if row.name.startswith("mean ")] == ["reads"]
    predicted = [row.name for row in fits.predictions(quick, few)]
    assert "logistic predict_proba, 40 x 20" in predicted
    # a plan is judged by the time that it may take, whatever its peer takes
    monkeypatch.setattr(plans, "interleave", lambda contestants: ({"ours": 0.06, "all": 0.1}, {}, 1))
    monkeypatch.setattr(plans, "candidates", lambda epsilon, d: [{}])
    row = next(plans.rows(_harness.Settings()))
    assert (row.target, row.met, round(row.ratio, 2)) == ("<50 ms", False, 1.67)
    # rows that are gathered for a search are a part of one pass, and no pass more
    X = np.random.default_rng(0).standard_normal((1600, 3))
    loss = MarginLoss(X, np.ones(1600, np.int8), 1.5, 0.25)
    assert logistic.passes_of(lambda: loss.evaluate(np.zeros(4), step=16)) == 1 / 16


@pytest.mark.parametrize("name", ["OUE", "SUE", "IDUE", "LOUE", "LOSUE", "SHE", "CMS"])
def test_one_record_is_timed_beside_what_an_expert_writes_for_its_mechanism(benchmarks, name):
    from benchmarks import one_record

    frequencies = benchmarks[0]
    cls, d, n = dict(frequencies.mechanisms())[name], 16, 2000
    rows = list(frequencies._latency_rows(SimpleNamespace(quick=True), name, cls, d))
    assert all(row.ours > 0 and row.met is None and "the least client" in row.note for row in rows)
    law = frequencies.estimator(cls, d).randomizer()
    expert, record = one_record.expert_of(law), np.array([[5]])
    assert (expert is None) == (name == "CMS") == ("expert" not in rows[0].note)
    assert one_record.least_client(law)(record).shape == (1, law.report_width)
    if name == "CMS":
        return
    reports = np.array([expert(record) for _ in range(n)])
    held = np.arange(d) == 5
    if name == "SHE":
        assert (np.abs(reports.mean(axis=0) - held) < 6 * np.sqrt(8 / n)).all()
    else:  # the bits have the chances of the law
        share = np.unpackbits(reports, axis=1, bitorder="little").mean(axis=0)
        chances = np.array([float(p) for p in law._bit_probabilities(5)])
        assert (np.abs(share - chances) < 6 * np.sqrt(chances * (1 - chances) / n)).all()


def test_every_mechanism_on_answers_is_timed(benchmarks):
    from benchmarks import central

    names = [name for name, _ in central.mechanisms()]
    assert set(central.PEERS) | set(central.FEWER) <= set(names)
    rows = list(islice(central.rows(type("Settings", (), {"n": 1000})), 2))
    assert [row.name.split(",")[0] for row in rows] == 2 * names[:1]
    assert all(row.ours > 0 for row in rows)


def test_every_mechanism_that_chooses_is_timed(benchmarks):
    from benchmarks import selection

    names = [name for name, _ in selection.mechanisms()]
    assert {*selection.PEERS, *selection.TARGET} <= set(names)
    rows = list(islice(selection.rows(type("Settings", (), {"n": 1000})), 2))
    assert [row.name.split(",")[0] for row in rows] == 2 * names[:1]
    assert all(row.ours > 0 for row in rows)


def test_sparse_vectors_are_timed(benchmarks):
    from benchmarks import sparse_vector

    rows = list(sparse_vector.rows(type("Settings", (), {"n": 1000, "quick": True, "short": False})))
    assert all(row.ours > 0 and row.ratio > 0 and row.met is None for row in rows)


def test_medians_are_timed_beside_the_same_medians(benchmarks, monkeypatch):
    from benchmarks import stability

    monkeypatch.setattr(stability, "_LOOP", 200)
    rows = list(stability.rows(type("Settings", (), {"n": 1000})))
    assert [row.baseline is not None for row in rows] == [False, True]
    assert all(row.ours > 0 for row in rows)
    x = np.random.default_rng(0).normal(size=101)
    median, smooth = stability.published(x, -10.0, 10.0, 0.5)
    mechanism = stability.SmoothSensitivity(1.0, bounds=(-10.0, 10.0))
    plan = mechanism._plan(1)
    ((value, scale),) = mechanism._look(mechanism.summarize(x).totals, plan)
    assert abs(plan["grids"][0].number(value) - median) < 1e-10
    assert abs(plan["grids"][0].number(scale / plan["noise"].multiplier) - smooth) < 1e-10


@pytest.mark.ci
def test_a_transformer_without_a_baseline_is_timed_too(benchmarks, monkeypatch):
    _, numbers, _, _ = benchmarks
    monkeypatch.setattr(numbers, "PEERS", {})
    monkeypatch.setattr(numbers, "_maximise", lambda settings: ())
    settings = type("Settings", (), {"quick": True, "n_large": 1000, "short": True})
    rows = list(numbers.rows(settings))
    assert [row.name.split()[0] for row in rows] == [name for name, _ in numbers.transformers()]
    assert all(row.ours > 0 and row.baseline is None for row in rows)


def test_threads_are_judged_by_what_the_machine_gains(benchmarks):
    from benchmarks import threads

    machine = threads.Machine(None, quick=True)
    times = {"arithmetic 1": [9.0], "arithmetic 2": [1.0], "memory 1": [1.0], "memory 2": [1.0], "vector 1": [2.0],
             "vector 2": [1.0], "keystream 1": [3.0], "keystream 2": [2.0]}
    assert threads.gain([1.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2  # (of pairs: 20 and 10 were slow together)
    size = machine.numbers.nbytes
    assert machine.gains(times) == {"arithmetic": 9, "memory": 1, "keystream": 1.5, "vector": 2}
    assert machine.most(times, 4.0, 0) == 2  # all of it vector arithmetic
    assert machine.most(times, 3.0, 0, 2 * threads.CHUNK) == machine.most(times, 1.0, 0, 9 * threads.CHUNK) == 1.5
    assert machine.most(times, 1.0, size) == machine.most(times, 1.0, 9 * size) == 1  # all of it reading
    assert machine.most(times, 2.0, size) == pytest.approx(2 / 1.5)


@pytest.mark.ci
def test_threads_are_timed_beside_the_machine(benchmarks, monkeypatch):
    from benchmarks import threads

    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    monkeypatch.setattr(threads, "mechanisms", lambda: benchmarks[0].mechanisms()[:2])
    settings = type("Settings", (), {"n": 3000, "n_large": 3000, "quick": True})
    rows = list(threads.rows(settings))
    assert len(rows) == 2
    assert all(row.ratio > 0 and "at most" in row.note and row.met is None for row in rows)
    monkeypatch.setattr(threads, "n_cores", lambda: 1)
    assert all("one core" in row.note for row in threads.rows(settings))


@pytest.mark.ci
def test_sketches_and_kept_answers_are_timed_beside_the_same(benchmarks):
    from benchmarks import longitudinal, sketches

    settings = type("Settings", (), {"n": 3000, "quick": True, "short": False})
    rows = [*sketches.rows(settings), *longitudinal.rows(settings)]
    assert len(rows) == 9 + 4
    assert all(row.ours > 0 and row.ratio > 0 and row.target and row.met is None for row in rows)


def test_statistics_are_timed_and_their_baseline_is_right(benchmarks):
    from benchmarks import statistics

    settings = type("Settings", (), {"quick": True, "short": False, "n": 20_000})
    assert [row.target for row in statistics.rows(settings)] == ["1x", "", *["1x"] * 9]


def test_caches_are_evicted_before_each_call_of_each_contestant(benchmarks):
    from benchmarks import _harness

    called = []
    times, _, repeats = _harness.interleave({name: partial(called.append, name) for name in "ab"},
                                            before=partial(called.append, "evict"))
    assert (called, repeats, set(times)) == (["a", "b", "evict", "a", "evict", "b"], 1, {"a", "b"})


@pytest.mark.ci
def test_models_and_what_comes_before_them_are_timed(benchmarks, monkeypatch):
    from benchmarks import fits

    assert {type(ours).__name__ for ours, *_ in fits.contests()} == {
        cls.__name__ for _, cls in all_estimators()
        if cls.__module__.split(".")[1] in ("linear_model", "naive_bayes", "ensemble", "preprocessing",
                                            "feature_selection", "cluster", "covariance", "decomposition")
        and not cls.__name__.startswith("DPRandomForest")  # (benchmarks.trees)
        and cls.__name__ not in ("DPFederatedLinearModel", "DPTukeyRegression", "DomainEncoder")  # (have no namesake)
    }
    shorten_peers(monkeypatch, fits.ensemble)
    rows = list(fits.rows(type("Settings", (), {"n": 1000, "quick": True, "short": False})))
    assert all(row.ours > 0 and row.ratio > 0 and row.met is None for row in rows)


@pytest.mark.ci
def test_every_model_is_compared(benchmarks, capsys, monkeypatch):
    from benchmarks import models

    shorten_peers(monkeypatch, models)
    monkeypatch.setattr(models, "digits", models.breast_cancer)  # (whose ten classes take longer)
    monkeypatch.setattr("sys.argv", ["models", "--quick"])
    models.main()
    shown = capsys.readouterr().out
    assert not [cls.__name__ for _, cls in all_estimators()
                if cls.__module__.split(".")[1] in ("linear_model", "naive_bayes", "ensemble")
                and not cls.__name__.startswith("DPRandomForest")  # (benchmarks.trees)
                and cls.__name__ not in shown]
    worth = models.judge(type("Task", (), {"kind": "classes", "truth": np.array([0, 1, 1])}),
                         np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    assert worth["AUC"] == 1
    assert abs(worth["accuracy"] - 2 / 3) < 1e-12


def test_trees_are_compared_on_several_shapes(benchmarks, capsys, monkeypatch):
    from benchmarks import trees

    monkeypatch.setattr("sys.argv", ["trees", "--quick"])
    trees.main()
    assert capsys.readouterr().out.count("forest, disjoint") == len(trees.shapes(1000))


def test_everything_that_states_an_interval_is_measured(benchmarks):
    from benchmarks import coverage

    stating = {cls.__name__ for _, cls in all_estimators()
               if hasattr(cls, "confidence_interval") or hasattr(cls, "quantile_interval")
               or "standard_errors_ :" in (cls.__doc__ or "") or issubclass(cls, DPStatistic)}
    measured = {cls.__name__ for _, cls, _ in coverage.entries()}
    assert stating <= measured | set(coverage.ELSEWHERE)
    assert not measured & set(coverage.ELSEWHERE)
    held = [coverage.cell(cls, function, "normal", 4.0, 1, 0.0) for _, cls, function in coverage.entries()[::7]]
    assert all(share is None or 0 <= share <= 1 for share, _ in held)
    assert sum(share is not None for share, _ in held) > 3


def test_the_page_of_coverage_names_what_is_outside(benchmarks, tmp_path):
    from benchmarks import coverage

    cells = {shape: (0.95, 0.01) for shape in coverage.SHAPES} | {"uniform": (0.5, 0.1), "heaped": (1.0, 0.001)}
    text = coverage.page([("Quantile", 1.0, cells)], 10, 1.0)
    assert "**0.50**" in text
    assert "below: uniform at 1" in text
    kept = coverage.Kept(tmp_path / "cells.json")
    assert kept.of("a", lambda: [1, 2]) == coverage.Kept(tmp_path / "cells.json").of("a", lambda: None) == [1, 2]


def test_the_page_of_utility_marks_the_best(benchmarks, tmp_path):
    from benchmarks import utility

    found = {("plain", None): 0.9, ("a", 1.0): 0.5, ("b", 1.0): 0.6}
    assert utility.table(found, "AUC", [1.0])[-1] == "| b | **0.600** |"
    task = utility.TASKS["diabetes"]()
    found, measure = utility.studied("diabetes", task, 1, utility.Kept(tmp_path / "fits.json"), epsilons=[4.0])
    assert measure == "R2"
    assert ("DPRandomForestRegressor", 4.0) in found


def test_an_interrupted_run_keeps_its_rows(benchmarks, tmp_path, capsys, monkeypatch):
    from benchmarks import __main__ as command
    from benchmarks._harness import Row

    def interrupted(settings):
        yield Row("second", ours=2.0)
        raise KeyboardInterrupt

    modules = {"one": SimpleNamespace(rows=lambda settings: [Row("first", ours=1.0)]),
               "two": SimpleNamespace(rows=interrupted)}
    monkeypatch.setattr(command, "MODULES", modules)
    output = tmp_path / "rows.json"
    with pytest.raises(KeyboardInterrupt):
        command.main(["--quick", "--output", str(output)])
    assert [row["name"] for row in json.loads(output.read_text())["rows"]] == ["first"]
    assert "second" in capsys.readouterr().out
    command.main(["one", "--quick", "--output", str(output)])
    assert "first" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["three"])
    assert "no benchmark is called three: choose from one, two" in capsys.readouterr().err
