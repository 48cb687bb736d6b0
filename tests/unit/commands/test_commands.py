"""The command line: streams, exit codes, JSON, and a help that comes up at once."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from dpestim.accounting import Ledger
from dpestim.commands import main
from dpestim.commands.parser import DONE, FAILED, REJECTED, USAGE, build_parser
from dpestim.local import GRRFrequencyEstimator, plan, plan_mean


def run(capsys, *words):
    code = main(list(map(str, words)))
    return (code, *capsys.readouterr())


def test_help_imports_nothing_heavy():
    code = ("import sys; from dpestim.commands.parser import build_parser; build_parser().format_help();"
            "print([m for m in ('numpy', 'scipy', 'sklearn', 'cryptography') if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_command_runs_something_that_exists():
    import importlib

    def parsers(parser):
        for action in parser._actions:
            for own in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
                yield own
                yield from parsers(own)

    found = list(parsers(build_parser()))
    assert len(found) >= 14
    for own in found:
        module, name = own.get_default("run").split(":")
        assert callable(getattr(importlib.import_module(f"dpestim.commands.{module}"), name))
        assert own.description


def test_plan(capsys):
    code, out, _ = run(capsys, "plan", "--categories", 64, "--users", "1e5", "--epsilon", 1, "--json")
    found, expected = json.loads(out), plan(n_categories=64, n_users=100_000, epsilon=1.0)
    assert code == DONE
    assert found["best"] == expected.best.mechanism
    assert [row["rmse"] for row in found["rows"]] == [row.rmse for row in expected.rows]
    code, out, _ = run(capsys, "plan", "--numbers", 3, "--target-rmse", 0.01, "--epsilon", 1)
    assert str(plan_mean(n_columns=3, target_rmse=0.01, epsilon=1.0)) == out.rstrip("\n")
    code, out, err = run(capsys, "plan", "--categories", 64, "--users", 10)
    assert (code, out) == (FAILED, "")
    assert err.startswith("dpestim plan: give two of --users")


@pytest.mark.parametrize("words", [["plan"], ["plan", "--categories", "x"], ["collect"], ["nothing"],
                                   *(["plan", "--categories", "5", "--users", n] for n in ("1.5", "inf", "nan")),
                                   *(["survey", "new", "--domain", "none.toml", "--name", "n", f"--epsilon={epsilon}"]
                                     for epsilon in ("0", "-1", "0,5", "1/0"))])
def test_arguments_that_do_not_fit(words, capsys):
    with pytest.raises(SystemExit) as info:
        main(words)
    assert info.value.code == USAGE
    assert "usage: dpestim" in capsys.readouterr().err


def test_ledger(tmp_path, capsys):
    path = tmp_path / "ledger.sqlite"
    with Ledger(1.0, path=path):
        GRRFrequencyEstimator(0.75, categories=[["a", "b"]]).fit([["a"], ["b"]])
    code, out, _ = run(capsys, "ledger", "show", path)
    assert code == DONE
    assert "GRRFrequencyEstimator" in out
    code, out, _ = run(capsys, "ledger", "show", path, "--json")
    assert json.loads(out)["spent"]["epsilon"] == 0.75
    assert json.loads(out)["remaining"]["epsilon"] == 0.25
    assert run(capsys, "ledger", "verify", path, "--json")[:2] == (DONE, '{\n  "intact": true,\n  "entries": 1\n}\n')
    broken = tmp_path / "broken.sqlite"
    shutil.copy(path, broken)
    import sqlite3

    with sqlite3.connect(broken) as file:
        file.execute("UPDATE entries SET estimator = 'nobody'")
    code, out, err = run(capsys, "ledger", "verify", broken)
    assert (code, out) == (REJECTED, "intact  False\n")
    assert "dpestim ledger verify: " in err
    assert run(capsys, "ledger", "show", tmp_path / "none")[0] == FAILED
    assert run(capsys, "ledger")[0] == USAGE
    made = tmp_path / "made.sqlite"
    assert run(capsys, "ledger", "new", made, "--epsilon", "1/3", "--delta", "1e-6")[0] == DONE
    assert Ledger.open(made).remaining().epsilon * 3 == 1
    code, _, err = run(capsys, "ledger", "new", made, "--epsilon", 1)
    assert (code, "exists" in err) == (FAILED, True)


def test_a_reader_that_stops_early_is_no_error():
    words = [sys.executable, "-m", "dpestim", "completion", "fish"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        child.stdout.close()
        assert child.wait() == DONE
        assert child.stderr.read() == ""


def test_completion(tmp_path, capsys):
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = run(capsys, "completion", shell)
        assert code == DONE
        assert "survey" in out
        assert "target-rmse" in out
    script = run(capsys, "completion", "bash")[1]
    if shutil.which("bash") is None:
        pytest.skip("no bash here, which the script is for")
    ask = ("COMP_WORDS=(dpestim ledger ''); COMP_CWORD=2; _dpestim; echo ${COMPREPLY[@]}; "
           "COMP_WORDS=(dpestim pl); COMP_CWORD=1; _dpestim; echo ${COMPREPLY[@]}")
    out = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True, cwd=tmp_path,
                         env={"PATH": os.environ["PATH"]})
    assert out.stdout.splitlines() == ["new show verify --help", "plan"]
