"""The survey's comparison of trust models, measured: six problems under four kinds of trust.

    python -m benchmarks.trust_models             # measures, prints the tables
    python -m benchmarks.trust_models --write     # and writes docs/comparison.md, its figures as JSON and its picture
    python -m benchmarks.trust_models --show      # writes page and picture again from the JSON

What is measured stands in `benchmarks.trust_problems`. An error is the root of the mean of squared errors over runs
with other noise on the same rows, with its standard error; a selection is the share of runs that chose rightly.
"""

import argparse
import json
import math
import time
import tomllib
import warnings
import zlib
from pathlib import Path

import numpy as np

from benchmarks._harness import Settings, header
from benchmarks.trust_problems import DELTA, MODELS, PROBLEMS

ROOT = Path(__file__).parents[1]
#: What is said in words: of whom, what is asked, what is proven and by whom.
TEXTS = tomllib.loads((Path(__file__).parent / "trust_theory.toml").read_text(encoding="utf-8"))
FIGURES = ROOT / "docs" / "_static" / "trust_models.json"
PICTURE = ROOT / "docs" / "_static" / "trust_models.svg"
PAGE = ROOT / "docs" / "comparison.md"
USERS, EPSILONS = (1_000, 10_000, 100_000), (0.5, 1.0, 2.0)
#: Runs of a cell at least and at most, and seconds after which no further one begins.
LEAST, MOST, SECONDS = 12, 300, 0.8
#: Problems whose figure is a mean of what a run found, not the root of a mean of squares.
MEANS = ("selection", "learning")


def measured(problem, model, n, epsilon, *, least=LEAST, most=MOST, seconds=SECONDS):
    """Return what was found in one cell, ready for JSON."""
    cell = PROBLEMS[problem](model, n, epsilon)
    found, start = [], time.process_time()
    first = zlib.crc32(f"{problem} {model} {n} {epsilon}".encode())  # (no two cells have the same noise)
    while len(found) < least or (len(found) < most and time.process_time() - start < seconds):
        errors = np.asarray(cell.errors(first + len(found)), float)
        found.append(float(errors.mean() if problem in MEANS else np.square(errors).mean()))
    mean, spread = float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(len(found))
    value, se = (mean, spread) if problem in MEANS else (math.sqrt(mean), spread / (2 * math.sqrt(mean)))
    return {"problem": problem, "model": model, "n": n, "epsilon": epsilon, "estimator": cell.estimator,
            "messages": round(cell.messages, 2), "bits": None if cell.bits is None else round(cell.bits, 1),
            "measured": _short(value), "standard_error": _short(se), "runs": len(found),
            "predicted": _short(cell.predicted), "theory": _short(cell.theory)}


def _short(number):
    return None if number is None else float(f"{number:.4g}")


# ---------------------------------------------------------------- page and picture


def _text(number, problem):
    if number is None:
        return "-"
    if problem in MEANS:
        return f"{number:.3f}" if problem == "learning" else f"{number:.2f}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def page(figures):
    """Return the page of the documentation, all figures from the JSON."""
    cells = {(row["problem"], row["model"], row["n"], row["epsilon"]): row for row in figures["rows"]}
    grid = [(n, e) for e in figures["epsilons"] for n in figures["users"]]
    head = figures["header"]
    lines = [TEXTS["introduction"].format(delta=figures["delta"]), "",
             "| model | who must be trusted | what a user sends | what the analyst sees |", "|---|---|---|---|"]
    lines += [f"| {model} | {' | '.join(TEXTS['trust'][model])} |" for model in MODELS]
    for problem in PROBLEMS:
        lines += ["", f"## {problem[0].upper()}{problem[1:]}", "", TEXTS["questions"][problem], "",
                  "| model | estimator | messages a user | bits a user | what is proven |", "|---|---|---|---|---|"]
        for model in MODELS:
            few, many = (cells[problem, model, n, 1.0] for n in (figures["users"][0], figures["users"][-1]))
            lines.append(f"| {model} | `{many['estimator']}` | {_between(few, many, 'messages')} | "
                         f"{_between(few, many, 'bits')} | {TEXTS['known'][problem][model]} |")
        lines += ["", "| model | figure | " + " | ".join(f"{n:,} users, ε = {e:g}" for n, e in grid) + " |",
                  "|---|---|" + "---|" * len(grid)]
        for model in MODELS:
            for key, title in (("measured", "measured"), ("predicted", "predicted"), ("theory", "literature")):
                own = [cells[problem, model, n, e] for n, e in grid]
                if all(row[key] is None for row in own):
                    continue
                texts = [_text(row[key], problem) for row in own]
                lines.append(f"| {model if key == 'measured' else ''} | {title} | " + " | ".join(texts) + " |")
    runs = [row["runs"] for row in figures["rows"]]
    lines += ["", TEXTS["outro"].format(least=min(runs), most=max(runs), far=_far(figures["rows"])), "",
              f"dpestim and machine: {head['packages']}; Python {head['Python']}; {head['machine']}; "
              f"{figures['seconds']:,.0f} s of one core.", ""]
    return "\n".join(lines)


def _between(few, many, key):
    """Return the figure with few and with many users, once where they are equal."""
    if few[key] is None:
        return "the value"
    low, high = (f"{row[key]:,.0f}" if row[key] >= 100 else f"{row[key]:.3g}" for row in (few, many))
    return low if low == high else f"{low} to {high}"


def deviations(rows):
    """Return how many standard errors each measured figure is from the predicted one."""
    found = []
    for row in rows:
        if row["predicted"] is None:
            continue
        se = row["standard_error"]
        if row["problem"] == "selection":  # (of the predicted share: all runs may have been right)
            share = min(max(row["predicted"], 1 / row["runs"]), 1 - 1 / row["runs"])
            se = math.sqrt(share * (1 - share) / row["runs"])
        found.append((row["measured"] - row["predicted"]) / se)
    return np.array(found)


def _far(rows):
    found = np.abs(deviations(rows))
    return (f"{(found < 2).sum()} of {len(found)} measured figures are within two standard errors of the predicted "
            f"one, and the farthest is {found.max():.1f} standard errors away")


def draw(figures, path):
    """Draw error over users at epsilon 1: measured as marks, predicted as lines."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dpestim"  # (the same file from the same figures)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    marks = dict(zip(MODELS, ("o", "s", "^", "D"), strict=True))
    lines = dict(zip(MODELS, ("-", "--", "-.", ":"), strict=True))
    for ax, problem in zip(axes.flat, PROBLEMS, strict=True):
        for i, model in enumerate(MODELS):
            rows = [row for row in figures["rows"]
                    if (row["problem"], row["model"], row["epsilon"]) == (problem, model, 1.0)]
            n = [row["n"] for row in rows]
            ax.plot(n, [row["measured"] for row in rows], marks[model], color=f"C{i}", ms=6, label=model)
            if rows[0]["predicted"] is not None:
                ax.plot(n, [row["predicted"] for row in rows], lines[model], color=f"C{i}", lw=1.3)
        ax.set(xscale="log", title=problem, xlabel="users", ylabel={
            "selection": "share of right choices", "learning": "accuracy lost"}.get(problem, "error in users"))
        if problem not in MEANS:
            ax.set_yscale("log")
        ax.grid(alpha=0.25)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="lower center", ncol=4, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments=None):
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust_models", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write page, JSON and picture")
    parser.add_argument("--show", action="store_true", help="measure nothing: write page and picture from the JSON")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if chosen.show:
        figures = json.loads(FIGURES.read_text())
    else:
        start, rows = time.process_time(), []
        for problem in PROBLEMS:
            for model in MODELS:
                for epsilon in EPSILONS:
                    for n in USERS:
                        rows.append(measured(problem, model, n, epsilon))
                        row = rows[-1]
                        print(f"{problem:>16} {model:>26} {n:>8,} {epsilon:>4g}: {row['measured']:>8g} measured, "
                              f"{row['predicted']} predicted, {row['theory']} in the literature", flush=True)
        figures = {"header": header(Settings()), "delta": DELTA, "users": USERS, "epsilons": EPSILONS,
                   "seconds": round(time.process_time() - start), "rows": rows}
        print(_far(rows))
    if chosen.write or chosen.show:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        PAGE.write_text(page(figures), encoding="utf-8")
        draw(figures, PICTURE)


if __name__ == "__main__":
    main()
