"""``python -m benchmarks.reproduce_sdldp``: the SDLDP paper's experiments through dpestim, as JSON and pictures.

    python -m benchmarks.reproduce_sdldp                        # 50 repetitions, a few minutes on one core
    python -m benchmarks.reproduce_sdldp --repetitions 10       # as many as the paper's
    python -m benchmarks.reproduce_sdldp --data FOLDER          # adult_uci.csv.gz and socr_heights_weights.csv.gz

Without the outside data (default: ``../shared/data`` beside the repository) the shipped sets stand in. What the paper
leaves open, and what is chosen for it, stands in `benchmarks/sdldp/__init__.py`. The figures, in a folder beside the
JSON file, carry the numbers of the paper's. Surveys are seeded, so that a run can be repeated.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks._harness import Settings, header
from benchmarks.sdldp import EPSILONS, categories, data, games, numbers
from benchmarks.sdldp.claims import Claims, judge


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_sdldp", description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=50, help="of every survey (%(default)s)")
    parser.add_argument("--data", type=Path, default=data.FOLDER, help="folder of the outside data")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sdldp.json",
                        help="a JSON file; pictures go to a folder beside it")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, help="budgets (the paper's ten)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    if arguments.repetitions < 2:
        parser.error("--repetitions must be at least 2, for standard errors")
    if not arguments.output.suffix or arguments.output.is_dir():
        parser.error("--output must be a file, such as sdldp.json: pictures go to a folder of its name without the end")
    facts = {k: v for k, v in header(Settings()).items() if k != "n"}
    start = time.perf_counter()
    loaded = data.load(arguments.data)
    results = run(loaded, arguments.repetitions, itertools.count(arguments.seed), tuple(arguments.epsilons),
                  say=print)
    claims = judge(results)
    facts |= {"data": loaded[2], "repetitions": arguments.repetitions, "seed": arguments.seed,
              "seconds": round(time.perf_counter() - start, 1)}
    print(f"\n{claims}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"header": facts, "claims": Claims.records(claims), "results": results}, indent=1)
    arguments.output.write_text(text + "\n")
    folder = arguments.output.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, figure in draw(results):
        figure.savefig(folder / f"{name}.png", dpi=130, facecolor="white")
    print(f"{facts['seconds']} s; rows written to {arguments.output}, pictures to {folder}")


def run(loaded, repetitions, seeds, epsilons=EPSILONS, *, say=lambda text: None):
    """Return {experiment: rows}; seeds is an iterator of integers, each used once."""
    attributes, columns, sources = loaded
    say(f"data: {', '.join(sources)}; {repetitions} repetitions")
    common = (repetitions, seeds, epsilons)
    experiments = {
        "variances of frequencies": lambda: categories.variances(*common),
        "frequencies": lambda: (row for a in attributes for row in categories.errors(a, *common)),
        "low or high": lambda: (row for a in attributes for row in games.categories(a, *common)),
        "own choices": lambda: (row for a in attributes
                                for row in categories.own_choices(a, repetitions, seeds, max(epsilons))),
        "variances of reports": lambda: numbers.variances(*common),
        "means": lambda: (row for c in columns for row in numbers.errors(c, *common)),
        "whose gain": lambda: numbers.whose_gain(columns[-1], repetitions, seeds, min(epsilons)),
        "low or high numbers": lambda: games.numbers(*common),
    }
    results = {"choices": {f"{a.name}, epsilon {e:g}": categories.choices(a, e) for a in attributes
                           for e in (min(epsilons), max(epsilons))}}
    for name, rows in experiments.items():
        start = time.perf_counter()
        with threadpool_limits(1):  # small matrices, on which threads of a busy machine wait for each other
            results[name] = list(rows())
        say(f"{name}: {len(results[name])} rows, {time.perf_counter() - start:.1f} s")
    return results


def draw(results):
    """Yield (name, figure)."""
    from benchmarks.sdldp import figures

    yield "figure_2", figures.figure_2(results["variances of frequencies"])
    yield "figure_4", figures.figure_4(results["variances of reports"])
    for k in (5, 6, 9):
        yield f"figure_{k}", getattr(figures, f"figure_{k}")(results["frequencies"])
    for k in (7, 8):
        yield f"figure_{k}", getattr(figures, f"figure_{k}")(results["means"])
    yield "whose_gain", figures.whose_gain(results["whose gain"])
    yield "told_apart", figures.told_apart(results["low or high"], results["low or high numbers"])


if __name__ == "__main__":
    main()
