"""``python -m benchmarks.utility``: what private models are worth, table by table, the best of each column marked.

All classifiers and regressors of `benchmarks.models`, trees and forests besides, pure and with a delta; peers where a
Python that has one is named (``--diffprivlib PY``, ``--interpret PY``). ``--write`` writes a page of the documentation.
Fits are kept in a file, by what they are made of and by the version of the code.
"""

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn

import dpestim
from benchmarks import models, peers
from benchmarks.coverage import ROOT, Kept
from benchmarks.tasks import adult, breast_cancer, diabetes, digits, height, weight, yrbss
from dpestim.ensemble import DPRandomForestClassifier, DPRandomForestRegressor
from dpestim.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor

EPSILONS = (0.1, 0.5, 1.0, 4.0)
TASKS = {"breast cancer": breast_cancer, "digits": digits, "sex of teenagers": yrbss, "diabetes": diabetes,
         "height of teenagers": height, "weight of teenagers": weight}
#: What takes seconds a fit is left to `benchmarks.models`.
LEFT_OUT = (*models.SLOW, "the same, add or remove")


def private(task, epsilon, seed):
    """Return [(name, what it reads, model)] for a task."""
    found = [one for one in models.ours(task, epsilon, seed) if not one[0].startswith(LEFT_OUT)]
    nominal = {j: np.arange(task.n_bins[j]) * 1.0 for j, kind in enumerate(task.kinds) if kind == "nominal"}
    own = {"bounds": tuple(task.ranges[[kind != "nominal" for kind in task.kinds]].T), "categories": nominal or None,
           "random_state": seed}
    if task.kind == "regression":
        own["target_bounds"], tree, forest = task.bounds, DPDecisionTreeRegressor, DPRandomForestRegressor
    else:
        own["classes"], tree, forest = np.unique(task.y).tolist(), DPDecisionTreeClassifier, DPRandomForestClassifier
    found = [(name.replace("the same", "DPLogisticRegression"), *rest) for name, *rest in found]
    return [*found, (tree.__name__, "raw", tree(epsilon, **own)),
            (forest.__name__, "raw", forest(epsilon, split_seed=seed, **own)),
            (f"{forest.__name__}, delta {models.DELTA:g}", "raw",
             forest(epsilon, delta=models.DELTA, split_seed=seed, **own))]


def worth(task, view, model):
    """Return {measure: value} of a model on rows set aside, None where it refuses the setting."""
    rows, held = task.views[view]
    try:
        return models.judge(task, models.answer(model.fit(rows, task.y), held))
    except ValueError:
        return None


def studied(name, task, seeds, kept, pythons=None, epsilons=EPSILONS):
    """Return {(model, epsilon): median of the first measure} and that measure's name."""
    found, measure = {}, "R2" if task.kind == "regression" else "AUC" if len(np.unique(task.y)) == 2 else "accuracy"
    for own, view, model in models.plain(task):
        found[f"{own}, not private", None] = worth(task, view, model)[measure]
    for epsilon in epsilons:
        all_of = {}
        for seed in range(seeds):
            for own, view, model in private(task, epsilon, seed):
                value = kept.of(f"{name} {own} {epsilon} {seed}",
                                lambda of=(task, view, model): worth(*of))
                if value is not None and measure in value:
                    all_of.setdefault(own, []).append(value[measure])
        for own, values in all_of.items():
            found[own, epsilon] = float(np.median(values))
    for peer, python in (pythons or {}).items():
        values = {}
        for own, epsilon, answers in peers.answers(peer, python, task, list(epsilons), seeds, models.DELTA):
            values.setdefault((f"{own} ({peer})", epsilon), []).append(models.judge(task, answers).get(measure, np.nan))
        found |= {key: float(np.median(one)) for key, one in values.items()}
    return found, measure


def table(found, measure, epsilons=EPSILONS):
    """Return lines of a table: rows are models, the best private one of each epsilon is bold."""
    best = {e: max(value for (_, own), value in found.items() if own == e) for e in epsilons}
    lines = [f"| {measure} | " + " | ".join(f"{e:g}" for e in epsilons) + " |", "|---|" + "---|" * len(epsilons)]
    for model in dict.fromkeys(model for model, _ in found):
        if (model, None) in found:
            texts = [f"{found[model, None]:.3f}"] * len(epsilons)
        else:
            values = [found.get((model, e)) for e in epsilons]
            texts = ["-" if v is None else f"**{v:.3f}**" if v == best[e] else f"{v:.3f}"
                     for v, e in zip(values, epsilons)]
        lines.append(f"| {model} | " + " | ".join(texts) + " |")
    return lines


def main(arguments=None):
    """Fit, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__.split("\n")[0])
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    for name in peers.SCRIPTS:
        parser.add_argument(f"--{name}", type=Path, help=f"a Python that has {name}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of tables")
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--write", action="store_true", help="write docs/utility.md")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "utility.json", help="where fits are kept")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    kept, start = Kept(chosen.cache), time.process_time()
    pythons = {name: getattr(chosen, name) for name in peers.SCRIPTS if getattr(chosen, name)}
    tasks = TASKS | ({"Adult": lambda: adult(chosen.adult)} if chosen.adult else {})
    lines = []
    for name, load in tasks.items():
        if chosen.only and name not in chosen.only:
            continue
        task = load()
        part = table(*studied(name, task, chosen.seeds, kept, pythons, chosen.epsilons), chosen.epsilons)
        lines += ["", f"## {name[0].upper()}{name[1:]}: {len(task.X):,} rows, {task.X.shape[1]} columns", "", *part]
        print("\n".join(lines[-len(part) - 2:]), flush=True)
    versions = [peers.version(name, python) for name, python in pythons.items()]
    head = ["# What models are worth", "",
            "Written by `python -m benchmarks.utility --write`. Medians of "
            f"{chosen.seeds} seeds of the noise on the 30 % of rows that are set aside, by epsilon; defaults, but for "
            "public bounds, norms, categories and classes. The best private model of each epsilon is bold. Peers: "
            f"{', '.join(versions) or 'none was installed'}. dpestim {dpestim.__version__}, Python "
            f"{platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
            f"{platform.machine()}, {time.process_time() - start:,.0f} s of one core."]
    text = "\n".join([*head, *lines]) + "\n"
    if chosen.write:
        (ROOT / "docs" / "utility.md").write_text(text)
    return text


if __name__ == "__main__":
    main()
