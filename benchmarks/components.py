"""How much of the variance private components hold, beside what others do with the same public bounds.

    python -m benchmarks.components                                     # rows that are shipped, or made
    python -m benchmarks.components --adult adult_uci.csv.gz            # and the numbers of UCI Adult
    python -m benchmarks.components --diffprivlib venv/bin/python       # and diffprivlib's PCA, in its environment

Shown is the variance that the first components hold, over what the best ones hold: 1 is best, and directions at random
hold k / d where all are alike. All contestants see rows mapped to [-1, 1] by public bounds, and the same public norm.
"""

import argparse
import math
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from dpestim.covariance import DPCovariance
from dpestim.decomposition import DPPCA

DELTA = 1e-6
COMPONENTS = 3
EPSILONS = (0.5, 1.0, 2.0)

_DIFFPRIVLIB = """
import sys, warnings
import numpy as np
from diffprivlib.models import PCA
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
found = [[PCA(int(data["k"]), epsilon=float(epsilon), bounds=(-1.0, 1.0), data_norm=float(data["norm"]),
              random_state=seed).fit(data["X"]).components_ for seed in range(int(data["seeds"]))]
         for epsilon in data["epsilons"]]
np.save(sys.argv[2], np.array(found))
"""


def made(n, d, variances, seed=0, tails=None):
    """Return rows of so many columns with these variances in the first directions, a few of them in all others."""
    rng = np.random.default_rng(seed)
    sizes = np.full(d, 0.05)
    sizes[: len(variances)] = np.sqrt(variances)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    draws = rng.normal(size=(n, d)) if tails is None else rng.standard_t(tails, size=(n, d))
    return np.clip((draws * sizes) @ turn.T, -1, 1)


def tables(adult=None):
    """Return (rows in [-1, 1], public norm) by name."""
    digits, (cancer, _) = load_digits().data / 8 - 1, load_breast_cancer(return_X_y=True)
    top = np.array([30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 22, 550, 0.04, 0.2, 0.4, 0.06, 0.08, 0.03,
                    40, 50, 260, 4300, 0.3, 1.1, 1.3, 0.3, 0.7, 0.25])  # (round numbers above what can be)
    spikes = [0.09, 0.04, 0.02]
    found = {
        "digits": (digits, 8.0), "digits, cut to a norm": (digits, 7.2),
        "breast cancer": (np.clip(2 * cancer / top - 1, -1, 1), math.sqrt(30)),
        "three directions of 20": (made(5000, 20, spikes), 1.0),
        "three of 64": (made(5000, 64, spikes), 1.0), "three of 200": (made(5000, 200, spikes), 1.5),
        "three of 200, many rows": (made(50_000, 200, spikes), 1.5), "all alike, 20": (made(5000, 20, []), 0.4),
        "heavy tails, 20": (made(5000, 20, spikes, tails=2), 1.0), "few rows": (made(200, 20, spikes), 1.0),
    }
    if adult is not None:
        import pandas as pd

        frame = pd.read_csv(adult).select_dtypes("number")
        frame = frame[[name for name in frame if name in _ADULT]]
        low, high = np.array([_ADULT[name] for name in frame], float).T
        found["Adult"] = np.clip(2 * (frame.to_numpy(float) - low) / (high - low) - 1, -1, 1), math.sqrt(len(low))
    return found


_ADULT = {"age": (0, 120), "fnlwgt": (0, 2_000_000), "education_num": (0, 20), "education-num": (0, 20),
          "capital_gain": (0, 100_000), "capital-gain": (0, 100_000), "capital_loss": (0, 5000),
          "capital-loss": (0, 5000), "hours_per_week": (0, 100), "hours-per-week": (0, 100)}


def held(X, components):
    """Return the variance that components hold over what the best of their number do."""
    covariance = np.atleast_2d(np.cov(X.T))
    best = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return float(np.trace(components @ covariance @ components.T) / best)


def analyze_gauss(X, longest, epsilon, rng, k=COMPONENTS):
    """Return components as published: of the matrix of second moments about the center, with the textbook's noise."""
    rows = _cut(X, longest) / longest
    size = math.sqrt(2) * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon
    noise = np.triu(rng.normal(size=(X.shape[1],) * 2)) * size
    return np.linalg.eigh(rows.T @ rows + noise + np.triu(noise, 1).T)[1][:, ::-1][:, :k].T


def _cut(X, longest):
    return X * np.minimum(1, longest / np.maximum(np.sqrt(np.square(X).sum(axis=1)), 1e-300))[:, None]


def compare(X, longest, seeds, diffprivlib=None):
    """Return {contestant: [how much it holds, for each epsilon]}, means over seeds."""
    ours = {"n_components": COMPONENTS, "bounds": (-1.0, 1.0), "data_norm": longest}
    contestants = {
        "DPPCA": lambda e, s: DPPCA(e, **ours, random_state=s).fit(X).components_,
        f"DPPCA, delta {DELTA:g}": lambda e, s: DPPCA(e, delta=DELTA, **ours, random_state=s).fit(X).components_,
        f"the same, mean known to be 0, delta {DELTA:g}":
            lambda e, s: DPPCA(e, delta=DELTA, **ours, assume_centered=True, random_state=s).fit(X).components_,
        f"Analyze Gauss, NumPy, delta {DELTA:g}": lambda e, s: analyze_gauss(X, longest, e, np.random.default_rng(s)),
        f"DPPCA by power iteration, delta {DELTA:g}":
            lambda e, s: DPPCA(e, delta=DELTA, method="power", **ours, random_state=s).fit(X).components_,
    }
    found = {name: [np.mean([held(X, fit(e, s)) for s in range(seeds)]) for e in EPSILONS]
             for name, fit in contestants.items()}
    if diffprivlib and X.shape[1] <= 32:  # (beyond a fit takes many seconds)
        with tempfile.TemporaryDirectory() as folder:
            inputs, outputs = Path(folder) / "in.npz", Path(folder) / "out.npy"
            np.savez(inputs, X=X, k=COMPONENTS, norm=longest, seeds=min(seeds, 2), epsilons=EPSILONS)
            subprocess.run([diffprivlib, "-c", _DIFFPRIVLIB, inputs, outputs], check=True)
            found["diffprivlib PCA"] = [np.mean([held(X, one) for one in some]) for some in np.load(outputs)]
    return found


def errors(X, longest, seeds):
    """Return how far covariances are off, in Frobenius' norm over that of the true one: repaired, and as they come."""
    truth = np.cov(X.T, bias=True)
    found = {}
    for name, shrinkage in (("DPCovariance", "auto"), ("no shrinkage", 0.0)):
        models = [[DPCovariance(e, delta=DELTA, bounds=(-1.0, 1.0), data_norm=longest, shrinkage=shrinkage,
                                random_state=s).fit(X) for s in range(seeds)] for e in EPSILONS]
        squares = [np.mean([model.error_norm(truth, scaling=False) for model in some]) for some in models]
        found[f"{name}, delta {DELTA:g}"] = np.sqrt(squares) / np.linalg.norm(truth)
    return found


def main():
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    parser.add_argument("--diffprivlib", help="a Python interpreter that has diffprivlib")
    arguments = parser.parse_args()
    seeds = 1 if arguments.quick else arguments.seeds
    for name, (X, longest) in tables(arguments.adult).items():
        X = X[:300] if arguments.quick else X
        n, d = X.shape
        print(f"\n**{name}**: {n:,} rows of {d} numbers, norm {longest:.1f}; the variance of the first {COMPONENTS} "
              "components, then errors of covariances")
        print("| epsilon | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
        for contestant, values in {**compare(X, longest, seeds, arguments.diffprivlib),
                                   **errors(X, longest, seeds)}.items():
            print(f"| {contestant} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)


if __name__ == "__main__":
    main()
