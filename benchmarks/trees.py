"""``python -m benchmarks.trees``: trees and forests on shapes that nobody tuned to, beside a peer where there is one.

Public bounds and classes; rows are split once, and what is shown is the mean over seeds of accuracy, AUC and so on.

What diffprivlib 0.6's forest promises for epsilon is about one row more, and holds for one leaf. Where a row is
replaced it keeps 2 epsilon, so that it is to be compared with ours of twice the epsilon (or ours for "add_remove");
and its trees take runs of places, so that a row more moves rows from tree to tree, and 10 trees may lose far more
than epsilon.
"""

import argparse

import numpy as np

from benchmarks import tasks
from benchmarks.models import judge
from benchmarks.peers import answers
from dpestim.ensemble import DPRandomForestClassifier
from dpestim.tree import DPDecisionTreeClassifier


def shapes(n=20_000):
    """Return {name: task}: smooth, a rare class, few rows, skewed columns, point masses; all rows are made here."""
    rng = np.random.default_rng(5)
    even, skewed = rng.uniform(-1, 1, (n, 20)), rng.lognormal(0, 1, (n, 6))
    points = rng.integers(0, 3, (n, 6)).astype(float)
    coin = rng.random(n) < 0.1
    made = {
        "smooth, 20 columns": (even, even[:, 0] + even[:, 1] + 0.3 * rng.normal(size=n) > 0, (-1, 1)),
        "rare class": (even, (even[:, 0] > 0.8) & coin, (-1, 1)),
        "few rows": (even[:700, :5], even[:700, 0] > 0, (-1, 1)),
        "skewed": (skewed, skewed[:, 0] * skewed[:, 1] > 1, (0, 50)),
        "point masses": (points, (points[:, 0] == 1) ^ coin, (0, 2)),
    }
    return {name: tasks.Task.of("classes", X, y.astype(int), raw=X, kinds=["continuous"] * X.shape[1],
                                ranges=np.array([ends] * X.shape[1], float)) for name, (X, y, ends) in made.items()}


def ours(task, epsilon, seed):
    """Yield (name, probabilities for the test rows)."""
    (X, T), kinds = task.views["raw"], task.kinds
    numbers = [j for j, kind in enumerate(kinds) if kind != "nominal"]
    bounds = (task.ranges[numbers, 0], task.ranges[numbers, 1])
    categories = {j: list(range(int(task.ranges[j, 1]) + 1)) for j, kind in enumerate(kinds) if kind == "nominal"}
    declared = {"bounds": bounds, "categories": categories or None, "classes": np.unique(task.y), "random_state": seed}
    yield "tree", DPDecisionTreeClassifier(epsilon, **declared).fit(X, task.y).predict_proba(T)
    more = {"neighbours": "add_remove", "n_estimators": 10, "max_depth": 5}
    for name, how in (("disjoint", {"row_allocation": "disjoint"}), ("shared", {}), ("one row more", more)):
        model = DPRandomForestClassifier(epsilon, split_seed=seed, **how, **declared)
        yield f"forest, {name}", model.fit(X, task.y).predict_proba(T)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one epsilon, one seed, few rows")
    parser.add_argument("--adult", help="a file of the Adult data, which is not packaged")
    parser.add_argument("--diffprivlib", help="a Python that has it")
    options = parser.parse_args()
    epsilons, seeds = ([1.0], 1) if options.quick else ([0.1, 0.5, 1.0, 2.0, 4.0], 3)
    studied = shapes(1000) if options.quick else {**shapes(), "breast cancer": tasks.breast_cancer()}
    if options.adult:
        studied["Adult"] = tasks.adult(options.adult)
    for name, task in studied.items():
        found = {}
        for epsilon in epsilons:
            for seed in range(seeds):
                for model, shares in ours(task, epsilon, seed):
                    found.setdefault((epsilon, model), []).append(judge(task, shares))
        if options.diffprivlib:
            for model, epsilon, shares in answers("diffprivlib", options.diffprivlib, task, epsilons, seeds, 1e-6):
                found.setdefault((epsilon, model), []).append(judge(task, shares))
        print(name)
        for (epsilon, model), results in sorted(found.items()):
            means = ", ".join(f"{what} {np.mean([one[what] for one in results]):.3f}" for what in results[0])
            print(f"  epsilon {epsilon:g}  {model:26} {means}", flush=True)


if __name__ == "__main__":
    main()
