"""The planner of the site: its table is of today's mechanisms, and a browser answers what Python answers."""

import html
import importlib
import json
import math
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpestim.local import plan, plan_mean

DOCS = Path(__file__).parents[3] / "docs"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def planner():
    sys.path.insert(0, str(DOCS / "tools"))
    try:
        yield importlib.import_module("planner")
    finally:
        sys.path.remove(str(DOCS / "tools"))


def test_the_table_has_every_mechanism_of_plans(planner):
    table = json.loads(planner.TABLE.read_text(encoding="utf-8"))
    for kind, ask in (("categories", planner.of_categories), ("means", planner.of_means)):
        assert set(table[kind]) == set(ask(1.0, 4)), "a mechanism is new: run docs/tools/planner.py"
    rows = {row.mechanism: row.rmse for row in plan(n_users=1, n_categories=10_000, epsilon=10.0).rows}
    for name, law in table["categories"].items():
        assert (law["sizes"][1] == 10_000) == (name in rows), name
        if name in rows:  # the last of the four corners
            assert math.exp(law["error"][3] * table["unit"]) == pytest.approx(rows[name], rel=1e-3), name


# ---------------------------------------------------------------- in a browser

CHECK = """
const root = document.getElementById("planner"), found = [];
const set = (name, value) => {
  const field = root.querySelector(`[name="${name}"]`);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
for (const ask of JSON.parse(document.getElementById("asked").textContent)) {
  for (const [name, value] of Object.entries(ask)) set(name, value);
  const shown = (name) => root.querySelector(`[data-shown="${name}"]`);
  const wrong = shown("wrong").hidden ? "" : shown("wrong").textContent;
  found.push({ wrong, text: shown("result").textContent, code: shown("code").textContent,
    curve: shown("curve").innerHTML.length, answered: JSON.parse(root.dataset.answered),
    rows: wrong ? [] : root.planner.rows(JSON.parse(root.dataset.answered)) });
}
document.getElementById("found").textContent = JSON.stringify(found);
"""


def browsed(planner, folder, asked):
    """Return what the page says after each of some changes of its fields."""
    code = (DOCS / "_static" / "planner.js").read_text(encoding="utf-8")
    page = folder / "page.html"
    page.write_text(f'<meta charset="utf-8">{planner.page()}<script>{code}</script><pre id="found"></pre>'
                    f'<script type="application/json" id="asked">{json.dumps(asked)}</script><script>{CHECK}</script>',
                    encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
         "--dump-dom", page.as_uri()], capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-3000:]
    return json.loads(html.unescape(found[1]))


def surveys(n, **ranges):
    """Return surveys at random places of the ranges, in logarithms, between entries of the table."""
    chance = random.Random(1)
    found = []
    for _ in range(n):
        numbers = {name: math.exp(chance.uniform(math.log(low), math.log(high)))
                   for name, (low, high) in ranges.items()}
        numbers |= {name: round(numbers[name]) for name in numbers if name != "epsilon"}
        found.append({**numbers, "epsilon": round(numbers["epsilon"], 4), "level": chance.choice([50, 90, 95, 99.9])})
    return found


@pytest.mark.ci
@in_browser
def test_numbers_of_the_page_are_those_of_python(planner, tmp_path):
    shares = surveys(150, users=(10, 1e9), categories=(2, 10_000), epsilon=(0.1, 10))
    means = surveys(12, users=(10, 1e9), columns=(1, 32), epsilon=(0.1, 10))
    asked = [{"find": "error", "kind": "categories", **one} for one in shares]
    asked += [{"kind": "means", **one} for one in means]
    found = browsed(planner, tmp_path, asked)
    off = {"error": [], "bound": [], "bits": []}
    for ask, said in zip(asked, found):
        given = {"n_users": ask["users"], "epsilon": ask["epsilon"], "probability": ask["level"] / 100}
        if "categories" in ask:
            answer = plan(n_categories=ask["categories"], **given)
        else:
            answer = plan_mean(n_columns=ask["columns"], **given)
        rows = {row["name"]: row for row in said["rows"]}
        assert set(rows) == {row.mechanism for row in answer.rows}
        for row in answer.rows:
            shown = rows[row.mechanism]
            off["error"].append(abs(shown["rmse"] / row.rmse - 1))
            if not shown["few"]:
                off["bound"].append(abs(shown["most"] / row.max_error - 1))
            if "categories" in ask:
                off["bits"].append(abs(shown["bits"] / row.bits - 1))
        assert said["answered"]["rmse"] == pytest.approx(answer.best.rmse, rel=0.01)
        assert said["curve"] > 1000
    # where a law has a step, a piece of the table may lie across it: few surveys meet one
    for what, close, closest, steps in (("error", 0.015, 0.01, 0.002), ("bound", 0.02, 0.01, 0.005),
                                        ("bits", 0.3, 0.03, 0.01)):
        assert len(off[what]) > 1000
        assert max(off[what]) < close, what
        assert sum(one > closest for one in off[what]) <= steps * len(off[what]), what


@pytest.mark.ci
@in_browser
def test_the_page_finds_users_and_epsilon_and_says_what_does_not_fit(planner, tmp_path):
    found = browsed(planner, tmp_path, [
        {"kind": "categories", "categories": 37, "find": "users", "epsilon": 1.3, "target": 0.4},
        {"find": "epsilon", "users": 54_321},
        {"target": 0.000_2},
        {"target": 0.4, "users": 5},
        {"users": 54_321, "find": "error", "mechanism": "OUEFrequencyEstimator", "level": 90},
        {"kind": "means", "columns": 3, "mechanism": "PMTransformer"},
    ])
    assert not found[0]["wrong"]
    assert found[0]["answered"]["users"] == pytest.approx(
        plan(n_categories=37, epsilon=1.3, target_rmse=0.004).n_users, rel=0.02)
    epsilon = plan(n_categories=37, n_users=54_321, target_rmse=0.004).epsilon
    assert found[1]["answered"]["epsilon"] == pytest.approx(epsilon, rel=0.01)
    assert f"Epsilon = {found[1]['answered']['epsilon']:g} is enough for 54,321 users" in found[1]["text"]
    assert "the error is larger at each epsilon up to 10" in found[2]["wrong"]
    assert found[3]["wrong"] == "Give a whole number from 10 to 1,000,000,000 for users."
    assert "has 1." in found[4]["text"]
    assert "times the error of" in found[4]["text"]
    assert found[5]["answered"]["mechanism"] == "PMTransformer"
    for said in (found[0], found[1], found[4], found[5]):  # what the page shows as code runs, and agrees
        names = {}
        *lines, last = said["code"].splitlines()
        exec("\n".join([*lines, f"found = {last}"]), names)
        rows = {row.mechanism: row for row in names["found"].rows}
        assert rows[said["answered"]["mechanism"]].rmse == pytest.approx(said["answered"]["rmse"], rel=0.01)
