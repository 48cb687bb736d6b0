"""Survey 1.4 million US service members under local differential privacy, and see what privacy costs.

Every member's device would randomise three answers (race, rank, branch) before they leave it; the server sees only the
noise-ridden reports, and still recovers the frequencies, with honest error bars. Here both sides run on one machine, on
real data that is public anyway, so that estimates can stand beside the truth. From the top level of the repository:

    python examples/us_military.py --output demo-output

It writes pictures and one self-contained HTML report. pandas and matplotlib come with: pip install "dpestim[examples]"
"""

import argparse
import os
import sys
import time
from pathlib import Path

try:
    import matplotlib  # noqa: F401  (asked for here so that nobody waits a minute to learn that it is missing)
    import pandas as pd
except ImportError as error:
    sys.exit(f'This demo needs pandas and matplotlib ({error}). Install them with: pip install "dpestim[examples]"')

import _report
from sklearn.model_selection import GridSearchCV, KFold

from dpestim.accounting import Ledger
from dpestim.datasets import load_us_military
from dpestim.local import GRRFrequencyEstimator, OLHFrequencyEstimator, OUEFrequencyEstimator

COLUMNS = ["race", "rank", "branch"]
MECHANISMS = {"GRR": GRRFrequencyEstimator, "OUE": OUEFrequencyEstimator, "OLH": OLHFrequencyEstimator}
EPSILONS = [0.5, 1.0, 2.0]  # the three surveys that are shown in full
CURVE_EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]  # error against epsilon, every point from RUNS surveys
RUNS = 8
SEARCH_EPSILONS = [0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0]
N_FOLDS = 3
SEARCH_BUDGET = 50.0


def main():
    output = parse_arguments()
    say = clock()

    # ---- The data: one row a person; the lists of possible answers are public and declared, not learned from the rows.
    bunch = load_us_military(as_frame=True)
    people = bunch.frame[COLUMNS]
    domain = [bunch.categories[name] for name in COLUMNS]
    truth = pd.concat({name: people[name].value_counts(normalize=True) for name in COLUMNS})
    sizes = ", ".join(f"{name} ({len(known)} categories)" for name, known in zip(COLUMNS, domain))
    say(f"loaded {len(people):,} service members: {sizes}")

    # ---- One survey for every mechanism and epsilon. random_state stays None: fresh, secure noise at every run.
    surveys, promises = [], {}
    for epsilon in EPSILONS:
        for name, mechanism in MECHANISMS.items():
            estimator = mechanism(epsilon, categories=domain, n_jobs=-1).fit(people)
            surveys.append(estimator.to_frame(level=0.95).assign(mechanism=name, epsilon=epsilon))
            promises[epsilon] = estimator.privacy_  # depends on epsilon alone, not on the mechanism
        say(f"surveyed everybody with {', '.join(MECHANISMS)} at epsilon {epsilon:g}")
    surveys = beside_truth(pd.concat(surveys, ignore_index=True), truth)
    summary = summarise(surveys, ["feature", "epsilon", "mechanism"])

    # ---- Is the error what theory says? Repeat each survey: the error bars come from one survey, the errors from many.
    repeats = []
    for epsilon in CURVE_EPSILONS:
        for name, mechanism in MECHANISMS.items():
            for run in range(RUNS):
                estimator = mechanism(epsilon, categories=domain, n_jobs=-1).fit(people)
                repeats.append(estimator.to_frame(level=0.95).assign(mechanism=name, epsilon=epsilon, run=run))
        say(f"repeated {RUNS} surveys a mechanism at epsilon {epsilon:g}")
    repeats = beside_truth(pd.concat(repeats, ignore_index=True), truth)

    # ---- A grid search over epsilon, as with any scikit-learn estimator. It draws a curve and is not private: `score`
    # compares with raw data. The table is sorted, so folds must be shuffled. The ledger pays for every fit; error_score
    # keeps an overdraft from hiding as a missing score.
    search = GridSearchCV(
        OUEFrequencyEstimator(categories=domain, n_jobs=-1),
        {"epsilon": SEARCH_EPSILONS},
        cv=KFold(N_FOLDS, shuffle=True, random_state=0),
        refit=False,
        error_score="raise",
    )
    with Ledger(SEARCH_BUDGET) as ledger:
        search.fit(people)
    say(f"searched {len(SEARCH_EPSILONS)} values of epsilon in {N_FOLDS} folds (OUE)")

    # ---- Show it.
    lesson = search_lesson(search, ledger)
    pictures = {
        "frequencies.png": _report.draw_surveys(surveys, COLUMNS, EPSILONS, list(MECHANISMS)),
        "deviations.png": _report.draw_surveys(surveys, COLUMNS, EPSILONS, list(MECHANISMS), zoom=True),
        "errors.png": _report.draw_errors(repeats, COLUMNS, list(MECHANISMS)),
        "search.png": _report.draw_search(search),
    }
    page = _report.make_page(
        people=people, surveys=surveys, summary=summary, repeats=repeats, promises=promises, lesson=lesson,
        pictures=pictures, columns=COLUMNS, mechanisms=MECHANISMS,
    )
    say("drew the pictures and the report")

    print_results(summary, surveys, repeats, promises, lesson)
    output.mkdir(parents=True, exist_ok=True)
    print("Written:")
    for name, content in {**pictures, "report.html": page.encode()}.items():
        _report.write_whole(output / name, content)
        print(f"  {os.path.relpath(output / name)}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder to write to (%(default)s)")
    return parser.parse_args().output


def clock():
    """Return a print that starts every line with the seconds since now."""
    start = time.perf_counter()
    return lambda text: print(f"[{time.perf_counter() - start:5.1f} s] {text}", flush=True)


def beside_truth(frame, truth):
    """Add the true frequency, which no real survey knows, and how far the estimate is from it."""
    where = pd.MultiIndex.from_frame(frame[["feature", "category"]])
    frame["truth"] = truth.reindex(where).fillna(0.0).to_numpy()  # a category that nobody has is not in value_counts
    frame["error"] = frame["frequency"] - frame["truth"]
    frame["half_width"] = (frame["ci_high"] - frame["ci_low"]) / 2
    frame["covered"] = frame["truth"].between(frame["ci_low"], frame["ci_high"])
    return frame


def summarise(frame, by):
    """Return the largest error, the mean half-width of an interval, and how many intervals hold the truth."""
    return frame.groupby(by, sort=False).agg(
        worst=("error", lambda e: e.abs().max()),
        half_width=("half_width", "mean"),
        covered=("covered", "sum"),
        intervals=("covered", "size"),
    )


def search_lesson(search, ledger):
    """Return what the search reveals, and what it cost."""
    best, largest = search.best_params_["epsilon"], max(SEARCH_EPSILONS)
    rank = "the largest on offer, as nearly always" if best == largest else f"by luck of the noise not {largest:g}"
    spent = float(ledger.spent().epsilon)
    scores = sum(entry["kind"] != "release" for entry in ledger.entries())
    return (
        f"What the search reveals: score compares with raw data, so this curve and best_params_ (epsilon = {best:g}, "
        f"{rank}) are exact, unmetered releases and not private, and the search draws a curve, it does not choose: "
        "more epsilon means less noise, and how much privacy to give up is nothing that a score could tell.",
        f"What it cost: the ledger, opened with {SEARCH_BUDGET:g}, paid epsilon = {spent:g} for {len(ledger) - scores} "
        f"fits, {spent / N_FOLDS:g} in each fold, and noted {scores} scores that are not private. Every person was in "
        f"the training part of {N_FOLDS - 1} of {N_FOLDS} folds and so spent {spent * (N_FOLDS - 1) / N_FOLDS:g}.",
    )


def print_results(summary, surveys, repeats, promises, lesson):
    """Print the table and the sentences of the report; at most 110 characters a line."""
    middle = EPSILONS[len(EPSILONS) // 2]
    print()
    print(f"One survey for each mechanism and epsilon. Epsilon covers a person's whole row: each of the {len(COLUMNS)}")
    print(f"columns gets epsilon / {len(COLUMNS)}. In percentage points, over the categories of a column:")
    print("  worst   the largest error     ± 95 %   the mean half-width of the 95 % intervals")
    print("  hold    how many of the intervals hold the truth")
    print()
    print((" " * 26 + "".join(f" |{name:^25}" for name in MECHANISMS)).rstrip())
    print(f"{'column':<8}{'epsilon':>8}{'a column':>10}" + f" |{'worst':>7}{'± 95 %':>9}{'hold':>9}" * len(MECHANISMS))
    for column in COLUMNS:
        print("-" * 26 + "-+-------------------------" * len(MECHANISMS))
        for epsilon in EPSILONS:
            line = f"{column:<8}{epsilon:>8g}{epsilon / len(COLUMNS):>10.3f}"
            for name in MECHANISMS:
                cell = summary.loc[column, epsilon, name]
                hold = f"{cell.covered:.0f} of {cell.intervals:.0f}"
                line += f" |{100 * cell.worst:>7.2f}{100 * cell.half_width:>9.2f}{hold:>9}"
            print(line)
    print()
    here, there = _report.percent(surveys.covered.mean()), _report.percent(repeats.covered.mean())
    print(f"{here} of the {len(surveys)} intervals above hold the truth, {there} of {len(repeats):,} repeated ones.")
    for text in (f"What is promised at epsilon {middle:g}: {promises[middle]}", *lesson):
        print()
        print(_report.wrap(text, 110))
    print()


if __name__ == "__main__":
    main()
