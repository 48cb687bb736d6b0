"""``make peers``: the peers' environments, the comparison with them, and the tables that show it.

    make peers ADULT=adult_uci.csv.gz        # all of it; the environments are made once, in .peers
    python -m benchmarks.peer_tables --show  # writes the tables again from what was measured

An environment has the pinned versions of its file in ``benchmarks/requirements``. All models are fitted to the same
rows and judged on the same rows that were set aside. Figures go to ``benchmarks/results_of_peers.json``; the table of
README.md and the page ``docs/project/peers.md`` are written from that file alone. ``docs/utility.md`` is written again,
too (`benchmarks.utility`). UCI Adult is not shipped: without it these two tables stay as they are.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path

from benchmarks import peers
from benchmarks._harness import Settings, header, show

ROOT = Path(__file__).parents[1]
PINS = Path(__file__).parent / "requirements"
FIGURES = Path(__file__).parent / "results_of_peers.json"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "project" / "peers.md"
#: (name in `benchmarks.models`, what the tables call it): the rows of README's table, in order; {} is the version.
MODELS = (
    ("DPGradientBoostingClassifier, delta 1e-05", "`DPGradientBoostingClassifier`, delta = 1e-5"),
    ("DPLogisticRegression, delta 1e-05", "`DPLogisticRegression`, delta = 1e-5"),
    ("DPLogisticRegression", "`DPLogisticRegression`, no delta"),
    ("DP-EBM", "DP-EBM of {interpret}, delta = 1e-5"),
    ("diffprivlib LogisticRegression", "logistic regression of {diffprivlib}, no delta"),
)
PLAIN = "LogisticRegression without privacy"
_HEAD = """# Beside other packages

`make peers` writes this page. The command makes an environment with pinned versions for each package.
"""
_MODELS = """## Models

Median AUC of binary classification with default parameters, on the 30 % of rows that were set aside; in brackets the
quartiles over seeds of the noise. All models are fitted to the same rows. dpestim protects a record that is replaced.
DP-EBM protects a record that is added or removed, for which half the noise suffices.
"""
_NOISE = """## Noise on answers

Time for one noisy answer, in one thread: medians of repeats in which both take turns. dpestim adds noise to an array of
a million answers, opendp to a list of 10,000. Both draw from exact integer laws.
"""
_TITLE = "| UCI Adult, "
_PLAIN = re.compile(r"Logistic regression without privacy has \.\d{3}\.")


def environments(folder):
    """Return {peer: its Python}; environments whose pins have changed are made again."""
    found = {}
    for pins in sorted(PINS.glob("*.txt")):
        home = folder / pins.stem
        made, python = home / "pins.txt", home / "bin" / "python"
        if not made.exists() or made.read_text() != pins.read_text():
            print(f"making {home}", flush=True)
            venv.create(home, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "-r", pins],
                           check=True)
            made.write_text(pins.read_text())
        found[pins.stem] = python
    return found


def models_on_adult(path, pythons):
    """Return what was measured on UCI Adult: {"n", "versions", "rows"}, rows as of `benchmarks.models`."""
    from benchmarks import models  # (here: it imports all models, of which the tables need none)
    from benchmarks.tasks import adult

    task, found = adult(path), {}
    pythons = {name: pythons[name] for name in ("diffprivlib", "interpret")}
    names = tuple(name for name, _ in MODELS)
    wanted = ("LogisticRegression", *(name for name in names if name.startswith("DPGradient")))
    for found in models.study(task, pythons, models.EPSILONS, models.SEEDS, wanted, names):
        print(f"{sum(map(len, found.values()))} fits", flush=True)
    missing = [name for name in names for epsilon in models.EPSILONS if (name, epsilon) not in found]
    if missing:
        raise RuntimeError(f"no figures of {', '.join(dict.fromkeys(missing))}: nothing was written; see what stopped")
    rows = [row for row in models.summed(found) if row["measure"] == "AUC" and row["model"] in (*names, PLAIN)]
    return {"n": len(task.X), "versions": {name: peers.version(name, at) for name, at in pythons.items()},
            "rows": [row | {"epsilon": None if row["model"] == PLAIN else row["epsilon"]} for row in rows]}


def noise_beside_opendp(python):
    """Return rows of `benchmarks.central` where opendp is a contestant, in a process of its own that may import it."""
    folder = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                            capture_output=True, text=True, check=True).stdout.strip()
    code = ("import sys; sys.path.append(sys.argv.pop(1))\n"  # (last: our own packages come first)
            "from benchmarks.__main__ import main; main(['central', '--output', sys.argv[1]])")
    with tempfile.TemporaryDirectory() as own:
        subprocess.run([sys.executable, "-c", code, folder, Path(own) / "rows.json"], check=True, cwd=ROOT)
        rows = json.loads((Path(own) / "rows.json").read_text())["rows"]
    return {"versions": {"opendp": peers.version("opendp", python)},
            "rows": [row for row in rows if row["peer"].startswith("opendp")]}


# ---------------------------------------------------------------- the tables


def _auc(number):
    return f"{number:.3f}".removeprefix("0")


def table(measured):
    """Return README's table as lines; the best median of each epsilon is bold."""
    epsilons = sorted({row["epsilon"] for row in measured["rows"]} - {None})
    cells = {(row["model"], row["epsilon"]): row for row in measured["rows"]}
    # what looks equal is bold together
    best = {e: max(_auc(cells[name, e]["quartiles"][1]) for name, _ in MODELS if (name, e) in cells) for e in epsilons}
    lines = [f"{_TITLE}{measured['n']:,} training rows, epsilon = | " + " | ".join(f"{e:g}" for e in epsilons) + " |",
             "|---|" + "---|" * len(epsilons)]
    for name, label in MODELS:
        seeds = {cells[name, e]["n"] for e in epsilons if (name, e) in cells}
        texts = [_auc(cells[name, e]["quartiles"][1]) if (name, e) in cells else "-" for e in epsilons]
        texts = [f"**{text}**" if text == best[e] else text for text, e in zip(texts, epsilons)]
        label = label.format(**measured["versions"])
        lines.append(f"| {label}, {min(seeds)} seeds | " + " | ".join(texts) + " |")
    return lines


def plain_sentence(measured):
    """Return README's sentence about logistic regression without privacy."""
    (row,) = (row for row in measured["rows"] if row["model"] == PLAIN)
    return f"Logistic regression without privacy has {_auc(row['quartiles'][1])}."


def with_table(text, measured):
    """Return README's text with the table and the sentence of what was measured."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(_TITLE))
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    lines[start:end] = table(measured)
    return _PLAIN.sub(plain_sentence(measured), "\n".join(lines))


def page(figures):
    """Return the page of the documentation."""
    lines = [_HEAD]
    if "adult" in figures:
        measured = figures["adult"]
        lines += [_MODELS]
        spread = {(row["model"], row["epsilon"]): "({}, {})".format(*map(_auc, row["quartiles"][::2]))
                  for row in measured["rows"]}
        plain, rule, *rest = table(measured)
        lines += [plain, rule]
        epsilons = sorted({row["epsilon"] for row in measured["rows"]} - {None})
        for (name, _), line in zip(MODELS, rest):
            label, *texts = line.strip("| ").split(" | ")
            texts = [f"{text} {spread.get((name, e), '')}".strip() for text, e in zip(texts, epsilons)]
            lines.append("| " + " | ".join([label, *texts]) + " |")
        lines += ["", plain_sentence(measured), "", _made_with(measured), ""]
    if "noise" in figures:
        measured = figures["noise"]
        lines += [_NOISE, f"| what | dpestim | {measured['versions']['opendp']} | ratio |",
                  "|---|---|---|---|"]
        lines += [f"| {row['name']} | {show(row['ours'], 's')} | {show(row['baseline'], 's')} | {row['ratio']:.0f} |"
                  for row in measured["rows"]]
        lines += ["", _made_with(measured), ""]
    lines += ["More data and models: [what models are worth](../utility.md).", ""]
    return "\n".join(lines)


def _made_with(measured):
    head = measured["header"]
    return f"{head['machine']}; {head['system']}; Python {head['Python']}; {head['packages']}."


def main(arguments=None):
    """Make environments, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_tables", description=__doc__.split("\n")[0])
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers", help="where the environments are made")
    parser.add_argument("--only", nargs="*", default=["adult", "noise", "utility"], help="which parts to measure")
    parser.add_argument("--show", action="store_true", help="measure nothing: write the tables again")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if not chosen.show:
        pythons = environments(chosen.environments.resolve())
        if chosen.adult is None:
            print("UCI Adult is not shipped: name its file (make peers ADULT=FILE). Without it README's table and "
                  "docs/utility.md stay as they are.")
        for name, measure in (
            ("adult", lambda: chosen.adult and models_on_adult(chosen.adult, pythons)),
            ("noise", lambda: noise_beside_opendp(pythons["opendp"])),
        ):
            found = name in chosen.only and measure()
            if found:
                figures[name] = {"header": header(Settings()), **found}
                FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        if "utility" in chosen.only and chosen.adult:  # (without Adult that page would lose a table)
            from benchmarks import utility

            own = (f"--{name}={pythons[name]}" for name in ("interpret", "diffprivlib"))
            utility.main(["--write", f"--adult={chosen.adult}", *own])
    PAGE.write_text(page(figures), encoding="utf-8")
    if "adult" in figures:
        README.write_text(with_table(README.read_text(encoding="utf-8"), figures["adult"]), encoding="utf-8")


if __name__ == "__main__":
    main()
