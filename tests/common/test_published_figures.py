"""Figures in README and pages are those of the JSON files that scripts wrote; records of speed are compared."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


# ---------------------------------------------------------------- peers


def test_the_readme_has_the_figures_that_were_measured():
    from benchmarks import peer_tables

    figures = json.loads(peer_tables.FIGURES.read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == peer_tables.with_table(readme, figures["adult"]), "make peers ADULT=FILE, or peer_tables --show"
    assert (ROOT / "docs" / "project" / "peers.md").read_text(encoding="utf-8") == peer_tables.page(figures)


def test_another_figure_changes_the_readme():
    from benchmarks import peer_tables

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    adult = json.loads(peer_tables.FIGURES.read_text(encoding="utf-8"))["adult"]
    for row in adult["rows"]:
        row["quartiles"] = [0.5, 0.512 if row["model"] == "DP-EBM" else 0.511, 0.52]
    found = peer_tables.with_table(readme, adult)
    assert found.count("**.512**") == 6
    assert "Logistic regression without privacy has .511." in found
    assert len(found.splitlines()) == len(readme.splitlines())
    with pytest.raises(KeyError):  # (a version that was not measured is not made up)
        peer_tables.table({**adult, "versions": {}})


def test_environments_are_made_once_and_again_where_pins_change(monkeypatch, tmp_path):
    from benchmarks import peer_tables

    pins, made = tmp_path / "pins", []
    pins.mkdir()
    (pins / "one.txt").write_text("a==1\n")

    class Builder:
        @staticmethod
        def create(home, with_pip, clear):
            made.append(home.name)
            home.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(peer_tables, "PINS", pins)
    monkeypatch.setattr(peer_tables, "venv", Builder)
    monkeypatch.setattr(peer_tables.subprocess, "run", lambda *arguments, **more: None)
    assert set(peer_tables.environments(tmp_path / "peers")) == {"one"}
    peer_tables.environments(tmp_path / "peers")
    assert made == ["one"]
    (pins / "one.txt").write_text("a==2\n")
    peer_tables.environments(tmp_path / "peers")
    assert made == ["one", "one"]


def test_without_adult_its_tables_stay_as_they_are(monkeypatch, tmp_path, capsys):
    import benchmarks
    from benchmarks import peer_tables

    for name in ("README", "PAGE", "FIGURES"):
        copy = tmp_path / getattr(peer_tables, name).name
        copy.write_bytes(getattr(peer_tables, name).read_bytes())
        monkeypatch.setattr(peer_tables, name, copy)
    monkeypatch.setattr(peer_tables, "environments", lambda folder: {"opendp": "opendp's Python"})
    monkeypatch.setattr(peer_tables, "noise_beside_opendp",
                        lambda python: {"versions": {"opendp": python}, "rows": []})
    monkeypatch.setattr(benchmarks, "utility", None, raising=False)  # (whose page would lose its table of Adult)
    peer_tables.main([])
    assert "make peers ADULT=FILE" in capsys.readouterr().out
    assert peer_tables.README.read_bytes() == (ROOT / "README.md").read_bytes()
    assert "opendp's Python" in peer_tables.PAGE.read_text(encoding="utf-8")  # (the rest was measured anew)


def test_pins_are_exact_and_every_peer_has_some():
    from benchmarks import peer_tables, peers

    assert {path.stem for path in peer_tables.PINS.glob("*.txt")} == set(peers.SCRIPTS)
    for path in peer_tables.PINS.glob("*.txt"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert lines
        assert all(line.count("==") == 1 for line in lines), path


# ---------------------------------------------------------------- trust models


def test_the_page_of_trust_models_has_the_figures_that_were_measured():
    from benchmarks import trust_models

    figures = json.loads(trust_models.FIGURES.read_text(encoding="utf-8"))
    assert trust_models.PAGE.read_text(encoding="utf-8") == trust_models.page(figures)
    assert {(row["problem"], row["model"]) for row in figures["rows"]} == {
        (problem, model) for problem in trust_models.PROBLEMS for model in trust_models.MODELS}
    # as many as chance allows: one in 22 is beyond two standard errors, one in 16,000 beyond four
    far = np.abs(trust_models.deviations(figures["rows"]))
    assert (far > 2).mean() < 0.1
    assert far.max() < 4.5


# (the last take long: shuffle laws are calibrated)
@pytest.mark.parametrize("problem", ["count", "sum", *(pytest.param(problem, marks=pytest.mark.ci) for problem in (
    "histogram", "selection", "mean of vectors", "learning"))])
def test_every_cell_of_trust_models_is_measured_anew(problem):
    from benchmarks import trust_models
    from benchmarks.trust_problems import DELTA

    for model in trust_models.MODELS:
        row = trust_models.measured(problem, model, 300, 1.0, least=6, most=6)
        assert row["runs"] == 6
        assert row["messages"] >= 1
        assert (row["bits"] is None) == (model == "central")
        assert (row["predicted"] is None) == (problem == "learning")
        if row["predicted"] is not None and problem != "selection":  # (6 runs; chi-square with 6 degrees)
            assert 0.25 < row["measured"] / row["predicted"] < 2.2, row
    assert DELTA == 1e-6


@pytest.mark.parametrize(("n", "epsilon"), [(1_000, 1.0), (10_000, 0.5), (100_000, 1.0)])
def test_the_error_that_is_promised_for_one_message_is_that_of_the_worst_numbers(n, epsilon):
    """Once it was that of no random reports: half of it, where most reports are random."""
    from benchmarks import trust_problems

    found, x = [], np.linspace(0, 1, 5001)
    for k in range(1, 60):
        blanket = 14 * (k + 1) * np.log(2 / trust_problems.DELTA) / ((n - 1) * epsilon**2)
        if blanket < 1:
            low, share = np.divmod(x * k, 1.0)
            laws = blanket / (k + 1) + (1 - blanket) * (np.equal.outer(low, np.arange(k + 1)) * (1 - share)[:, None]
                                                        + np.equal.outer(low + 1, np.arange(k + 1)) * share[:, None])
            levels = np.arange(k + 1) / k
            variance = laws @ levels**2 - (laws @ levels) ** 2
            found.append(np.sqrt(n * variance.max()) / (1 - blanket))
    assert trust_problems._blanket(n, epsilon) == pytest.approx(min(found), rel=1e-6)
    assert trust_problems._blanket(n, 1.1) is None


def test_a_cell_that_keeps_its_promise_less_well_is_seen():
    from benchmarks import trust_models

    row = {"problem": "sum", "measured": 12.0, "predicted": 10.0, "standard_error": 0.2, "runs": 100}
    assert trust_models.deviations([row]) == pytest.approx([10.0])
    assert not len(trust_models.deviations([{**row, "predicted": None}]))
    all_right = {**row, "problem": "selection", "measured": 1.0, "predicted": 1.0, "standard_error": 0.0}
    assert abs(trust_models.deviations([all_right])[0]) < 1e-9


# ---------------------------------------------------------------- history


def record(folder, name, recorded, machine="m", **times):
    rows = [{"name": key.partition("_")[0], "peer": key.partition("_")[2], "ours": ours, "unit": "s",
             **({"ratio": ratio} if ratio else {})} for key, (ours, ratio) in times.items()]
    head = {"commit": name, "date of commit": "2026-01-01", "recorded": recorded, "machine": machine, "Python": "3",
            "packages": "p", "kernels": "k", "n": "5 users"}
    (folder / f"{name}.json").write_text(json.dumps({"header": head, "rows": rows}))


def test_a_row_that_became_slower_is_found(tmp_path, capsys):
    from benchmarks import history

    assert history.main(["--folder", str(tmp_path)]) == 0
    record(tmp_path, "b", "2026-01-01", same=(1.0, 4.0), slow=(1.0, 4.0), alone=(1.0, None), gone=(1.0, None))
    record(tmp_path, "a", "2026-01-02", same=(3.0, 4.0), slow=(1.0, 2.0), alone=(1.6, None), new=(1.0, None))
    assert history.main(["--folder", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "a beside b: 3 rows compared, 2 slower" in said
    assert "no longer measured: gone" in said
    assert [name for name, _ in history.regressions(*history.records(tmp_path))] == ["slow", "alone"]
    assert history.main(["--folder", str(tmp_path), "--slower", "2.5"]) == 0
    # one row beside two baselines, of which one became faster
    record(tmp_path, "aa", "2026-01-02T1", row_one=(1.0, 4.0), row_two=(1.0, 4.0))
    record(tmp_path, "ab", "2026-01-02T2", row_one=(1.0, 1.0), row_two=(1.0, 4.0))
    assert [name for name, _ in history.regressions(*history.records(tmp_path)[-2:])] == ["row beside one"]
    assert "| row | one | - | - | 1 s (4x) | 1 s (1x) |" in history.page(history.records(tmp_path))
    record(tmp_path, "a2", "2026-01-02T3", same=(3.0, 4.0), slow=(1.0, 2.0), alone=(1.6, None))
    # another machine: its times say nothing, its ratios do
    record(tmp_path, "c", "2026-01-03", "other", same=(9.0, 4.0), slow=(9.0, 2.0), alone=(90.0, None))
    assert history.main(["--folder", str(tmp_path)]) == 0


def test_a_run_is_recorded_with_its_commit(tmp_path, monkeypatch):
    from benchmarks import __main__ as command
    from benchmarks import history
    from benchmarks._harness import Row

    monkeypatch.setattr(history, "commit", lambda: ("abc", "2026-01-01"))
    path = history.record({"machine": "m"}, [Row("one", ours=1.0)], tmp_path)
    assert path.name == "2026-01-01_abc.json"
    found = json.loads(path.read_text())
    assert found["header"]["commit"] == "abc"
    assert found["rows"] == [{"name": "one", "ours": 1.0, "unit": "s"}]
    with pytest.raises(SystemExit):  # (small sizes are nothing to compare with)
        command.main(["--record", "--quick"])


def test_the_page_of_speed_is_that_of_the_records():
    from benchmarks import history

    assert history.PAGE.read_text(encoding="utf-8") == history.page(history.records())
