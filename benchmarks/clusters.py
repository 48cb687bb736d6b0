"""``python -m benchmarks.clusters [--diffprivlib PYTHON]``: inertia beside that of k-means without privacy.

Shapes are those that a rule may not like: rare clusters, skew, point masses, many columns, few rows. A figure is the
mean over seeds of the sum of squared distances of (clipped) rows from the nearest center, in units of that of
scikit-learn's `KMeans`; "one" is that of a single cluster. A peer runs in an environment of its own.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from benchmarks.peers import version
from benchmarks.tasks import CANCER_BOUNDS
from dpestim.cluster import DPKMeans
from dpestim.datasets import load_yrbss

SETTINGS = ((0.5, 0.0), (1.0, 0.0), (4.0, 0.0), (1.0, 1e-6), (4.0, 1e-6))

DIFFPRIVLIB = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import KMeans
data = np.load(sys.argv[1])
k, epsilons, seeds = json.loads(sys.argv[2])
for epsilon in epsilons:
    for seed in range(seeds):
        model = KMeans(k, epsilon=epsilon, bounds=(data["low"], data["high"]), random_state=seed).fit(data["X"])
        print(json.dumps([epsilon, model.cluster_centers_.tolist()]), flush=True)
"""


def shapes():
    """Yield (name, rows, number of clusters, low, high)."""
    rng = np.random.default_rng(5)
    yrbss = load_yrbss().data[:, 3:].astype(float) / [0.1, 17]
    yield "yrbss", yrbss, 5, np.array([12, 25 / 17]), np.array([22, 180 / 17])
    yield "digits", load_digits().data, 10, np.zeros(64), np.full(64, 16.0)
    yield "iris", load_iris().data, 3, np.array([4, 2, 1, 0.0]), np.array([8, 5, 7, 3.0])
    share = load_breast_cancer().data / CANCER_BOUNDS
    yield "breast cancer", share, 2, np.zeros(30), np.ones(30)

    def blobs(n, d, weights, spread, side):
        centers = rng.uniform(-side, side, (len(weights), d))
        rows = centers[rng.choice(len(weights), n, p=weights)] + spread * rng.standard_normal((n, d))
        return rows, len(weights), np.full(d, -1.5 * side), np.full(d, 1.5 * side)

    yield "unequal", *blobs(20_000, 10, [0.3, 0.25, 0.2, 0.1, 0.06, 0.04, 0.03, 0.02], 1.0, 8)
    yield "many clusters", *blobs(5000, 2, np.full(15, 1 / 15), 0.4, 8)
    yield "skewed", np.exp(rng.standard_normal((10_000, 3))), 4, np.zeros(3), np.full(3, 20.0)
    yield "near points", *blobs(3000, 4, np.full(5, 0.2), 0.05, 1)
    yield "many columns", *blobs(20_000, 64, np.full(6, 1 / 6), 1.0, 3)
    yield "few rows", *blobs(500, 5, np.full(4, 0.25), 1.0, 5)
    yield "no clusters", rng.uniform(0, 1, (5000, 2)), 8, np.zeros(2), np.ones(2)


def inertia(rows, centers):
    """Return the sum of squared distances of rows from the nearest center."""
    best = np.full(len(rows), np.inf)
    for center in centers:
        best = np.minimum(best, np.square(rows - center).sum(axis=1))
    return best.sum()


def theirs(python, rows, k, low, high, epsilons, seeds):
    """Return lists of centers by epsilon, of diffprivlib's k-means; those that failed are not there."""
    found = {epsilon: [] for epsilon in epsilons}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=rows, low=low, high=high)
        run = subprocess.run([python, "-c", DIFFPRIVLIB, path, json.dumps([k, epsilons, seeds])], capture_output=True,
                             text=True)
    for line in run.stdout.splitlines():
        epsilon, centers = json.loads(line)
        found[epsilon].append(np.array(centers))
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters", description=__doc__)
    parser.add_argument("--diffprivlib", help="a Python interpreter that has it")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.diffprivlib:
        print(version("diffprivlib", arguments.diffprivlib))
    heads = [f"{epsilon:g}, {delta:g}" if delta else f"{epsilon:g}" for epsilon, delta in SETTINGS]
    pure = [epsilon for epsilon, delta in SETTINGS if not delta]
    peers = [f"diffprivlib {epsilon:g}" for epsilon in pure] if arguments.diffprivlib else []
    print("| shape | n x d, k | one |", " | ".join([*heads, *peers]), "|")
    print("|---" * (3 + len(heads) + len(peers)) + "|")
    for name, raw, k, low, high in shapes():
        rows = np.clip(raw, low, high)
        unit = inertia(rows, KMeans(k, n_init=5, random_state=0).fit(rows).cluster_centers_)
        cells = [inertia(rows, rows.mean(axis=0)[None]) / unit]
        for epsilon, delta in SETTINGS:
            model = DPKMeans(epsilon, n_clusters=k, delta=delta, bounds=(low, high))
            found = [model.set_params(random_state=seed).fit(rows).cluster_centers_ for seed in range(arguments.seeds)]
            cells.append(np.mean([inertia(rows, centers) for centers in found]) / unit)
        if arguments.diffprivlib:
            found = theirs(arguments.diffprivlib, rows, k, low, high, pure, arguments.seeds)
            cells += [np.mean([inertia(rows, centers) for centers in found[epsilon]]) / unit if found[epsilon]
                      else np.nan for epsilon in pure]
        print(f"| {name} | {len(rows):,} x {rows.shape[1]}, {k} |", " | ".join(f"{cell:.2f}" for cell in cells), "|",
              flush=True)


if __name__ == "__main__":
    main()
