"""How far synthetic rows are from real ones: tables of two and three columns, and classifiers trained on them.

    python -m benchmarks.synthesis                            # yrbss, and shapes that nobody tuned to
    python -m benchmarks.synthesis --adult adult_uci.csv.gz   # and UCI Adult, which is not shipped

Errors are mean total variation distances of all tables of so many columns, which look at raw rows. "independent" has
the exact table of each column, and nothing else: no privacy at all. AUC is that of gradient boosting on rows that were
held out, trained on synthetic rows, on average over seeds; "real" trains on the rows themselves.
"""

import argparse
import itertools
import math
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpestim.datasets import load_yrbss
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0]
SEEDS = 3
#: Edges of columns of Adult, most of whose rows have 0 in some of them.
ADULT_EDGES = {
    "age": np.linspace(17, 90, 17), "education_num": np.arange(1, 18), "hours_per_week": np.linspace(1, 100, 17),
    "fnlwgt": np.linspace(0, 1.5e6, 17), "capital_gain": np.r_[0, 1, np.linspace(1000, 100_000, 15)],
    "capital_loss": np.r_[0, 1, np.linspace(100, 5000, 15)],
}


def adult(path):
    """Return codes of Adult, without the name of education, and how many each column has; the class is the last."""
    import pandas as pd

    table = pd.read_csv(path).drop(columns=["split", "education"])
    codes, sizes = [], []
    for name in table:
        if name in ADULT_EDGES:
            edges = ADULT_EDGES[name]
            codes.append(np.clip(np.searchsorted(edges, table[name], side="right") - 1, 0, len(edges) - 2))
            sizes.append(len(edges) - 1)
        else:
            known, own = np.unique(table[name].astype(str), return_inverse=True)
            codes.append(own)
            sizes.append(len(known))
    return np.column_stack(codes), sizes


def yrbss():
    """Return codes of yrbss, with height and weight in 8 bins, and how many each column has."""
    data = load_yrbss()["data"]
    codes, sizes = [], []
    for j in range(data.shape[1]):
        values = np.asarray([str(value) for value in data[:, j]])
        known, own = np.unique(values, return_inverse=True)
        if len(known) > 30:
            numbers = np.asarray(data[:, j], float)
            edges = np.quantile(numbers, np.arange(1, 8) / 8)
            own, known = np.searchsorted(edges, numbers, side="right"), range(8)
        codes.append(own)
        sizes.append(len(known))
    return np.column_stack(codes), sizes


def shapes():
    """Return {name: (codes, sizes)}."""
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, 11) ** 2
    skewed = rng.choice(10, size=(20_000, 8), p=p / p.sum())
    skewed[:, 1] = np.where(rng.random(20_000) < 0.7, skewed[:, 0], skewed[:, 1])
    triple = rng.integers(0, 2, (20_000, 6))
    triple[:, 5] = triple[:, 0] ^ triple[:, 1]
    chain = rng.integers(0, 8, (20_000, 30))
    for j in range(1, 30):
        chain[:, j] = np.where(rng.random(20_000) < 0.6, (chain[:, j - 1] + 1) % 8, chain[:, j])
    few = rng.integers(0, 4, (500, 8))
    few = np.where(rng.random(few.shape) < 0.6, few[:, :1], few)
    return {"skewed": (skewed, [10] * 8), "independent": (rng.integers(0, 6, (20_000, 8)), [6] * 8),
            "one triple": (triple, [2] * 6), "30 columns": (chain, [8] * 30), "500 rows": (few, [4] * 8)}


def apart(codes, sizes, degree):
    """Return the error of independent columns, exact ones."""
    found = []
    for own in itertools.combinations(range(len(sizes)), degree):
        shape = [sizes[j] for j in own]
        table = np.bincount(np.ravel_multi_index(codes[:, own].T, shape), minlength=math.prod(shape)).reshape(shape)
        table = table / len(codes)
        guess = 1.0
        for k in range(degree):
            guess = np.multiply.outer(guess, table.sum(axis=tuple(i for i in range(degree) if i != k)))
        found.append(np.abs(table - guess).sum() / 2)
    return float(np.mean(found))


def auc(train, test):
    """Return how well the last column, 0 or 1, is told from the others."""
    if len(np.unique(train[:, -1])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(train[:, :-1], train[:, -1])
    return roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1])


def study(codes, sizes, epsilons=EPSILONS, seeds=SEEDS, degree=2, joined=False, binary=False):
    """Yield (who, epsilon, error of pairs, of triples, AUC or nan, seconds a fit)."""
    order = np.random.default_rng(0).permutation(len(codes))
    test, train = codes[order[: len(codes) // 4]], codes[order[len(codes) // 4 :]]
    real = auc(train, test) if binary else math.nan
    yield "independent", math.inf, apart(train, sizes, 2), apart(train, sizes, 3), math.nan, 0.0
    yield "real", math.inf, 0.0, 0.0, real, 0.0
    kinds = [(MarginalSynthesizer, {"delta": 1e-9})] + ([(MultiplicativeWeights, {})] if joined else [])
    for (cls, more), neighbours in itertools.product(kinds, ("substitution", "add_remove")):
        for epsilon in epsilons:
            rows = []
            for seed in range(seeds):
                start = time.perf_counter()
                model = cls(epsilon, **more, categories=[range(size) for size in sizes], degree=degree,
                            neighbours=neighbours, random_state=seed).fit(train)
                took = time.perf_counter() - start
                made = model.sample(len(train), random_state=seed)
                rows.append((model.workload_error(train, 2), model.workload_error(train, 3),
                             auc(made, test) if binary else math.nan, took))
            yield f"{cls.__name__}, {neighbours}", epsilon, *np.mean(rows, axis=0)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis")
    parser.add_argument("--adult", help="UCI Adult, as one table in CSV")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    arguments = parser.parse_args()
    tasks = {name: (*found, {"degree": 3, "joined": True} if name == "one triple" else {})
             for name, found in shapes().items()}
    tasks["yrbss"] = (*yrbss(), {})
    if arguments.adult:
        tasks["Adult"] = (*adult(arguments.adult), {"binary": True})
    for name, (codes, sizes, more) in tasks.items():
        print(f"\n{name}: {len(codes):,} rows, {len(sizes)} columns, {sum(sizes)} codes")
        print(f"{'':>44} {'epsilon':>8} {'pairs':>7} {'triples':>8} {'AUC':>6} {'s':>6}")
        for who, epsilon, pairs, triples, worth, seconds in study(codes, sizes, seeds=arguments.seeds, **more):
            print(f"{who:>44} {epsilon:8g} {pairs:7.4f} {triples:8.4f} {worth:6.3f} {seconds:6.2f}", flush=True)


if __name__ == "__main__":
    main()
