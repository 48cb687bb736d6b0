"""How far synthetic rows are from real ones: tables of two and three columns, and classifiers trained on them.

    python -m benchmarks.synthesis                            # yrbss, and shapes that nobody tuned to
    python -m benchmarks.synthesis --adult adult_uci.csv.gz   # and UCI Adult, which is not shipped
    python -m benchmarks.synthesis --adult adult_uci.csv.gz --peer PYTHON --epsilons 1    # Adult beside MST alone

PYTHON is an interpreter of an environment that has dpmm, whose MST is that of private-pgm. Of all rows of Adult (delta
1e-9, one seed, 48,842 sampled rows, a busy machine) at epsilon 0.1 this printed pairs 0.0649, triples 0.1261 in 0.5 s
for `MarginalSynthesizer`, and 0.0757, 0.1366 in 334 s for MST.

Errors are mean total variation distances of all tables of so many columns, which look at raw rows. "independent" has
the exact table of each column, and nothing else: no privacy at all. AUC is that of gradient boosting on rows that were
held out, trained on synthetic rows, on average over seeds; "real" trains on the rows themselves.
"""

import argparse
import itertools
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpestim.datasets import load_yrbss
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights

#: What a peer runs: codes and sizes in, a line of JSON and rows for each epsilon out.
PEER = """
import json, sys, time
import numpy as np
import pandas as pd
from dpmm.models.mst import MSTGM
folder, delta = sys.argv[1], float(sys.argv[2])
codes = pd.read_csv(folder + "/codes.csv")
with open(folder + "/sizes.json") as file:
    sizes = dict(zip(codes.columns, json.load(file)))
for epsilon in map(float, sys.argv[3:]):
    start = time.perf_counter()
    model = MSTGM(epsilon=epsilon, delta=delta, domain=sizes, random_state=np.random.RandomState(0), n_jobs=1)
    model.fit(codes)
    took = time.perf_counter() - start
    np.save(folder + "/rows.npy", model.generate(len(codes))[list(codes.columns)].astype(int).to_numpy())
    print("done", epsilon, took, flush=True)
    sys.stdin.readline()
"""
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


def shares(codes, own, sizes):
    """Return the table of some columns, which adds up to 1."""
    shape = [sizes[j] for j in own]
    counts = np.bincount(np.ravel_multi_index(codes[:, own].T, shape), minlength=math.prod(shape))
    return counts.reshape(shape) / len(codes)


def distance(made, codes, sizes, degree):
    """Return the mean total variation distance of tables of rows."""
    return float(np.mean([np.abs(shares(made, own, sizes) - shares(codes, own, sizes)).sum() / 2
                          for own in itertools.combinations(range(len(sizes)), degree)]))


def beside(python, codes, sizes, epsilons, delta=1e-9):
    """Yield (who, epsilon, error of pairs, of triples, seconds a fit), of sampled rows: ours, then a peer's."""
    for epsilon in epsilons:
        start = time.perf_counter()
        model = MarginalSynthesizer(epsilon, delta=delta, categories=[range(size) for size in sizes],
                                    neighbours="add_remove", random_state=0).fit(codes)
        took = time.perf_counter() - start
        made = model.sample(len(codes), random_state=0)
        yield "MarginalSynthesizer", epsilon, *(distance(made, codes, sizes, degree) for degree in (2, 3)), took
    with tempfile.TemporaryDirectory() as folder:
        names = ",".join(f"c{j}" for j in range(len(sizes)))
        np.savetxt(f"{folder}/codes.csv", codes, "%d", ",", header=names, comments="")
        Path(folder, "sizes.json").write_text(json.dumps([int(size) for size in sizes]))
        command = [python, "-c", PEER, folder, str(delta), *map(str, epsilons)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as run:
            for line in run.stdout:
                if line.startswith("done "):
                    epsilon, took = map(float, line.split()[1:])
                    made = np.load(f"{folder}/rows.npy")
                    yield "MST (dpmm)", epsilon, *(distance(made, codes, sizes, degree) for degree in (2, 3)), took
                    run.stdin.write("\n")
                    run.stdin.flush()
        if run.returncode:
            print("the peer stopped", flush=True)


def apart(codes, sizes, degree):
    """Return the error of independent columns, exact ones."""
    found = []
    for own in itertools.combinations(range(len(sizes)), degree):
        table = shares(codes, own, sizes)
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
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--peer", help="a Python that has dpmm: Adult alone, beside its MST")
    arguments = parser.parse_args()
    if arguments.peer:
        if not arguments.adult:
            parser.error("--peer needs --adult")
        for who, epsilon, pairs, triples, seconds in beside(arguments.peer, *adult(arguments.adult),
                                                            arguments.epsilons):
            print(f"{who:>24} {epsilon:8g} {pairs:7.4f} {triples:8.4f} {seconds:7.1f}", flush=True)
        return
    tasks = {name: (*found, {"degree": 3, "joined": True} if name == "one triple" else {})
             for name, found in shapes().items()}
    tasks["yrbss"] = (*yrbss(), {})
    if arguments.adult:
        tasks["Adult"] = (*adult(arguments.adult), {"binary": True})
    for name, (codes, sizes, more) in tasks.items():
        print(f"\n{name}: {len(codes):,} rows, {len(sizes)} columns, {sum(sizes)} codes")
        print(f"{'':>44} {'epsilon':>8} {'pairs':>7} {'triples':>8} {'AUC':>6} {'s':>6}")
        found = study(codes, sizes, arguments.epsilons, arguments.seeds, **more)
        for who, epsilon, pairs, triples, worth, seconds in found:
            print(f"{who:>44} {epsilon:8g} {pairs:7.4f} {triples:8.4f} {worth:6.3f} {seconds:6.2f}", flush=True)


if __name__ == "__main__":
    main()
