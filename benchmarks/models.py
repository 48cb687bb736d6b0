"""Utility of private logistic regression beside the model without privacy and beside diffprivlib: table and picture.

    python -m benchmarks.models --output models            # yrbss and breast cancer
    python -m benchmarks.models --adult adult_uci.csv.gz   # and UCI Adult, which is not shipped
    python -m benchmarks.models --peer peer/bin/python     # and diffprivlib, in an environment of its own

Bounds, categories and norms are public; each figure is a mean over seeds of the noise, on one split of the rows. C=None
throughout: nothing was tuned on these runs, but the constants of the default rule were chosen on these data sets.
"""

import argparse
import json
import platform
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dpestim.linear_model import DPLogisticRegression

EPSILONS = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
SEEDS = 20
DELTA = 1e-5
#: Rounded up by hand from what is known about such measurements in general, column by column.
CANCER_BOUNDS = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.35, 0.1, 3, 5, 25, 550, 0.03, 0.15, 0.4, 0.06, 0.08, 0.03,
                 40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25]
ADULT_CATEGORIES = ["workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
ADULT_BOUNDS = {"age": (17, 90), "education_num": (1, 16), "capital_gain": (0, 99_999), "capital_loss": (0, 4356),
                "hours_per_week": (1, 99)}

#: Runs in the peer's environment: rows and seeds in, scores out.
PEER = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
data, epsilons, seeds = np.load(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
for epsilon in epsilons:
    for seed in range(seeds):
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed, max_iter=1000)
        scores = model.fit(data["X"], data["y"]).decision_function(data["T"])
        print(json.dumps([epsilon, scores.round(6).tolist()]))
"""


def scaled(columns, low, high):
    """Map columns from public bounds to [-1, 1], clipped."""
    return 2 * (np.clip(columns, low, high) - low) / (np.asarray(high, float) - low) - 1


def yrbss():
    """Sex from age, height and weight: 12,579 teenagers."""
    from dpestim.datasets import load_yrbss

    bunch = load_yrbss()
    columns = [bunch.feature_names.index(name) for name in ("age", "height", "weight")]
    X = scaled(bunch.data[:, columns].astype(float), np.array([12, 1.2, 25]), [18, 2.2, 200]) / np.sqrt(3)
    return X, bunch.data[:, bunch.feature_names.index("gender")] == "male"


def breast_cancer():
    """Benign or malignant from 30 measurements: 569 women."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return scaled(X, 0.0, CANCER_BOUNDS) / np.sqrt(X.shape[1]), y == 1


def adult(path):
    """Income above 50,000 from 88 columns: one-hot categories and five numbers."""
    import pandas as pd

    table = pd.read_csv(path)
    columns = [(table[name] == value).to_numpy(float)
               for name in ADULT_CATEGORIES for value in sorted(set(table[name]) - {"?"})]
    columns += [scaled(table[name].to_numpy(float), *bounds) for name, bounds in ADULT_BOUNDS.items()]
    return np.stack(columns, axis=1) / np.sqrt(len(ADULT_CATEGORIES) + len(ADULT_BOUNDS)), table["income"] == ">50K"


def split(X, y):
    """Return train and test rows: 70 and 30 per cent, the same for everybody."""
    order = np.random.default_rng(0).permutation(len(y))
    cut = int(0.7 * len(y))
    y = np.asarray(y)
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def study(X, y, peer=None):
    """Return rows (model, epsilon, mean AUC, its standard error, mean accuracy)."""
    X, y, T, truth = split(X, y)

    def row(name, epsilon, scores):
        auc = [roc_auc_score(truth, s) for s in scores]
        right = [np.mean((s > 0) == truth) for s in scores]
        error = np.std(auc, ddof=1) / np.sqrt(len(auc)) if len(auc) > 1 else 0.0
        return {"model": name, "epsilon": epsilon, "auc": float(np.mean(auc)), "error": float(error),
                "accuracy": float(np.mean(right))}

    plain = LogisticRegression(C=1e4, max_iter=10_000).fit(X, y).decision_function(T)
    rows = [row("no privacy", np.inf, [plain])]
    settings = {"dpestim": {}, f"dpestim, delta {DELTA:g}": {"delta": DELTA},
                "dpestim, output": {"perturbation": "output"}}
    for name, params in settings.items():
        for epsilon in EPSILONS:
            model = DPLogisticRegression(epsilon, data_norm=1.0, classes=[False, True], **params)
            scores = [model.set_params(random_state=seed).fit(X, y).decision_function(T) for seed in range(SEEDS)]
            rows.append(row(name, epsilon, scores))
    if peer is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.npz"
            np.savez(path, X=X, y=y, T=T)
            done = subprocess.run([peer, "-c", PEER, path, json.dumps(EPSILONS), str(SEEDS)], capture_output=True,
                                  text=True, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        for epsilon in EPSILONS:
            rows.append(row("diffprivlib", epsilon, [np.array(s) for e, s in found if e == epsilon]))
    return rows


def show(name, rows):
    print(f"\n{name}: AUC (accuracy), means over {SEEDS} seeds")
    models = list(dict.fromkeys(r["model"] for r in rows))
    print(f"{'epsilon':>28}" + "".join(f"{e:>15g}" for e in EPSILONS))
    for model in models:
        cells = {r["epsilon"]: f"{r['auc']:.3f} ({r['accuracy']:.3f})" for r in rows if r["model"] == model}
        whole = cells.get(np.inf)
        print(f"{model:>28}" + "".join(f"{cells.get(e, whole):>15}" for e in EPSILONS), flush=True)


def draw(studies, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(studies), figsize=(4.6 * len(studies), 6.4), sharex=True, squeeze=False)
    for column, (name, rows) in enumerate(studies.items()):
        for line, measure in enumerate(("auc", "accuracy")):
            ax = axes[line, column]
            for model in dict.fromkeys(r["model"] for r in rows):
                mine = [r for r in rows if r["model"] == model]
                if mine[0]["epsilon"] == np.inf:
                    ax.axhline(mine[0][measure], color="0.5", linestyle=":", label=model)
                    continue
                error = [2 * r["error"] for r in mine] if measure == "auc" else None
                ax.errorbar([r["epsilon"] for r in mine], [r[measure] for r in mine], error, marker="o", ms=3.5,
                            lw=1.4, label=model)
            ax.set(xscale="log", title=name if not line else None, xlabel="epsilon" if line else None)
            ax.grid(alpha=0.25)
        axes[0, column].set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axes[0, column].minorticks_off()
    axes[0, 0].set_ylabel("AUC on rows not seen")
    axes[1, 0].set_ylabel("accuracy")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    parser.add_argument("--peer", type=Path, help="a Python that has diffprivlib")
    parser.add_argument("--output", type=Path, help="folder for the picture and the figures as JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
          f"{platform.machine()}")
    if arguments.peer:
        code = ("import diffprivlib, sklearn; "
                "print('diffprivlib', diffprivlib.__version__, 'with scikit-learn', sklearn.__version__)")
        print(subprocess.run([arguments.peer, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    tasks = {"yrbss": yrbss, "breast cancer": breast_cancer}
    if arguments.adult:
        tasks["Adult"] = lambda: adult(arguments.adult)
    studies = {}
    for name, load in tasks.items():
        X, y = load()
        studies[f"{name} ({len(X):,} x {X.shape[1]})"] = rows = study(X, y, arguments.peer)
        show(name, rows)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "models.json").write_text(json.dumps(studies, indent=1), encoding="utf-8")
        draw(studies, arguments.output / "models.png")


if __name__ == "__main__":
    main()
