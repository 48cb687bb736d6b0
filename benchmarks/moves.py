"""``python -m benchmarks.moves --diffprivlib PY ...``: what pages for people from other packages say, checked there.

PY is a Python that has the package, with the dependencies of dpestim. Every call in the first column of a page's table
is looked up in the package, and what the page says was measured is measured. Results and versions are kept in
``docs/tools/moves.json``, and written into the pages; a test compares them.
"""

import argparse
import importlib.util
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE, TOOL = ROOT / "docs" / "guide", ROOT / "docs" / "tools" / "calls.py"
KEPT = ROOT / "docs" / "tools" / "moves.json"
MARKS = "<!-- measured: written by `python -m benchmarks.moves` -->", "<!-- end of what was measured -->"
#: {page: (first names of calls, distributions whose versions are shown)}
PAGES = {
    "diffprivlib": (("diffprivlib",), ("diffprivlib", "scikit-learn")),
    "opendp": (("opendp",), ("opendp",)),
    "smartnoise": (("snsql", "snsynth"), ("smartnoise-sql", "smartnoise-synth")),
    "tumult": (("tmlt",), ("tmlt.analytics", "tmlt.core")),
    "pure_ldp": (("pure_ldp",), ("pure-ldp",)),
    "interpret": (("interpret",), ("interpret-core",)),
}
_AUDIT = """
from dpestim.audit import audit
def verdict(code, pairs):
    found = audit(code, pairs, claim=1.0, n_samples=4000, random_state=0)
    return found.verdict
"""
#: What is measured in the environment of a package: a program that prints {what: result} as JSON.
MEASURED = {
    "diffprivlib": _AUDIT + """
import numpy as np
import diffprivlib.models.linear_regression as module
from diffprivlib.mechanisms import Geometric, Laplace
seen, plain = [], module.LaplaceFolded
class Seen(plain):
    def __init__(self, **given):
        seen.append(float(given["sensitivity"]))
        super().__init__(**given)
module.LaplaceFolded = Seen
X = np.random.default_rng(0).uniform(0, 10, (100, 1))
module.LinearRegression(epsilon=1.0, bounds_X=(0, 10), bounds_y=(0, 10), fit_intercept=False).fit(X, X[:, 0])
print(json.dumps({
    "`LinearRegression(bounds_X=(0, 10), fit_intercept=False)`: the sensitivity that its noise on the sum of x² is "
    "made for (100 is right)": seen[1],
    "`mechanisms.Laplace(epsilon=1, sensitivity=1)`, audited by dpestim":
        verdict(Laplace(epsilon=1.0, sensitivity=1.0).randomise, [(0.0, 1.0)]),
    "`mechanisms.Geometric(epsilon=1, sensitivity=1)`, audited by dpestim":
        verdict(Geometric(epsilon=1.0, sensitivity=1).randomise, [(0, 1)])}))
""",
    "opendp": _AUDIT + """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
print(json.dumps({"`make_laplace(scale=1.0)`, audited by dpestim":
                  verdict(dp.m.make_laplace(*space, scale=1.0), [(0.0, 1.0)])}))
""",
    "smartnoise": """
import numpy as np, pandas as pd, snsql
rng = np.random.default_rng(0)
rows = pd.DataFrame({"age": rng.integers(18, 90, 5000), "sex": rng.choice(["f", "m"], 5000)})
table = {"rows": 5000, "row_privacy": True, "age": {"type": "int", "lower": 18, "upper": 90}, "sex": {"type": "string"}}
reader = snsql.from_df(rows, privacy=snsql.Privacy(epsilon=1.0, delta=1e-6), metadata={"": {"S": {"T": table}}})
def cost(query):
    return round(float(reader.get_privacy_cost(query)[0]), 6)
print(json.dumps({f"epsilon of `{query}` with `Privacy(epsilon=1.0)`": cost(query) for query in (
    "SELECT COUNT(*) FROM S.T", "SELECT AVG(age) FROM S.T", "SELECT sex, COUNT(*), AVG(age) FROM S.T GROUP BY sex")}))
""",
    "pure_ldp": _AUDIT + """
import time
import numpy as np
from pure_ldp.frequency_oracles import DEClient, HEClient, UEClient, UEServer
from dpestim.local import OUEFrequencyEstimator
he, de = HEClient(epsilon=1.0, d=2), DEClient(epsilon=1.0, d=2)
values = np.random.default_rng(0).integers(1, 101, 20_000)
start = time.perf_counter()
client, server = UEClient(epsilon=1.0, d=100, use_oue=True), UEServer(epsilon=1.0, d=100, use_oue=True)
for value in values:
    server.aggregate(client.privatise(value))
theirs = time.perf_counter() - start
start = time.perf_counter()
OUEFrequencyEstimator(1.0, categories=[range(1, 101)]).fit(values[:, None])
ours = time.perf_counter() - start
print(json.dumps({
    "`HEClient(epsilon=1.0, d=2)`, audited by dpestim": verdict(lambda v: he.privatise(v).tolist(), [(1, 2)]),
    "`DEClient(epsilon=1.0, d=2)`, audited by dpestim": verdict(lambda v: int(de.privatise(v)), [(1, 2)]),
    "seconds for 20,000 users and 100 categories by OUE, both sides: pure-ldp": round(theirs, 2),
    "seconds for the same by dpestim": round(ours, 2)}))
""",
}


def calls_tool():
    """Return the tool that finds and checks calls."""
    spec = importlib.util.spec_from_file_location("calls", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(name):
    """Return the page of a package."""
    return GUIDE / f"from_{'smartnoise' if name == 'tumult' else name}.md"


def answer(python, *arguments):
    """Return the JSON that a program prints."""
    run = subprocess.run([python, *arguments], capture_output=True, text=True, check=False, cwd=ROOT / "docs" / "tools",
                         env={**os.environ, "PYTHONPATH": str(ROOT)})
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def checked(name, python):
    """Return {"versions", "calls", "measured"} of a package."""
    roots, distributions = PAGES[name]
    calls = calls_tool().calls_of(page_of(name).read_text(encoding="utf-8"), roots)
    version = f"print(json.dumps({{name: importlib.metadata.version(name) for name in {distributions!r}}}))"
    head = 'import importlib.metadata, json, warnings\nwarnings.simplefilter("ignore")\n'
    measured = answer(python, "-c", head + MEASURED[name]) if name in MEASURED else {}
    return {"versions": answer(python, "-c", head + version), "calls": answer(python, TOOL.name, json.dumps(calls)),
            "measured": measured}


def block(found):
    """Return the lines of a page that say what was checked and measured, of one package or several."""
    versions = ", ".join(f"{name} {number}" for own in found for name, number in own["versions"].items())
    said = f"The calls of the table were looked up in {versions}. `python -m benchmarks.moves` repeats this."
    measured = [f"* {what}: {result}" for own in found for what, result in own["measured"].items()]
    more = ["", "Measured with these versions:", "", *measured] if measured else []
    return "\n".join([MARKS[0], "", said, *more, "", MARKS[1]])


def with_block(text, found):
    """Return a page with its block."""
    before, rest = text.split(MARKS[0])
    return before + block(found) + rest.split(MARKS[1])[1]


def packages_of(page):
    """Return the packages of a page."""
    return [name for name in PAGES if page_of(name) == page]


def main(arguments=None):
    """Check the packages whose Pythons are given, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__.split("\n")[0])
    for name in PAGES:
        parser.add_argument(f"--{name.replace('_', '-')}", help=f"a Python that has {name}")
    given = {name: python for name, python in vars(parser.parse_args(arguments)).items() if python}
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name, python in given.items():
        kept[name] = checked(name, python)
        wrong = {call: why for call, why in kept[name]["calls"].items() if why}
        print(name, kept[name]["versions"], kept[name]["measured"], f"{len(kept[name]['calls'])} calls", wrong or "")
    kept = {name: kept[name] for name in PAGES if name in kept}
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for page in {page_of(name) for name in kept}:
        found = [kept[name] for name in packages_of(page) if name in kept]
        page.write_text(with_block(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
