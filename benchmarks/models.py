"""Utility of private models beside their namesakes without privacy and beside peers: tables and pictures.

    python -m benchmarks.models --output models             # data that are packaged or come with scikit-learn
    python -m benchmarks.models --adult adult_uci.csv.gz    # and UCI Adult, which is not shipped
    python -m benchmarks.models --census FILE FILE --models Boosting add    # UCI Census-Income (KDD): 300,000 rows
    python -m benchmarks.models --diffprivlib PY --interpret PY --opendp PY   # Pythons that have a peer each
    python -m benchmarks.models --quick                     # one seed of the cheap ones: does it run?

Bounds, categories, classes and norms are public; rows are split once, seven to three. Each figure is the median over
seeds of the noise, with its quartiles. Nothing was tuned on these runs; the constants of the default rules of logistic
regression were chosen on yrbss, Adult and breast cancer.
"""

import argparse
import json
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.svm import LinearSVC

from benchmarks import peers
from benchmarks.tasks import Task, adult, breast_cancer, census, diabetes, digits, height, hours, weight, yrbss
from dpestim.ensemble import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from dpestim.linear_model import (
    DPFederatedLinearModel,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPTukeyRegression,
)
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB
from examples import whole_pipeline

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0]
SEEDS = 20
#: Seeds of what takes seconds a fit, and the names that it begins with; the tables say how many there were.
FEWER = 5
SLOW = ("the same by gradients", "DPFederatedLinearModel")
DELTA = 1e-5

def plain(task):
    """Return the models without privacy: (name, what they read, model)."""
    nominal = {"categorical_features": np.array(task.kinds) == "nominal", "random_state": 0}
    if task.kind == "regression":
        return [("LinearRegression", "rows", LinearRegression()),
                ("PoissonRegressor", "rows", PoissonRegressor(alpha=0, max_iter=1000)),
                ("HistGradientBoostingRegressor", "raw", HistGradientBoostingRegressor(**nominal))]
    return [("HistGradientBoostingClassifier", "raw", HistGradientBoostingClassifier(**nominal)),
            ("LogisticRegression", "rows", LogisticRegression(C=1e4, max_iter=10_000)),
            ("LinearSVC", "rows", LinearSVC(C=1.0)), ("GaussianNB", "rows", GaussianNB()),
            ("CategoricalNB", "bins", CategoricalNB(min_categories=task.n_bins))]


def ours(task, epsilon, seed):
    """Return all private models for a task: (name, what they read, model)."""
    end, approximate, seeded = f", delta {DELTA:g}", {"delta": DELTA}, {"random_state": seed}
    nominal = {j: np.arange(task.n_bins[j]) * 1.0 for j, kind in enumerate(task.kinds) if kind == "nominal"}
    curves = {"bounds": tuple(task.ranges[[kind != "nominal" for kind in task.kinds]].T), **approximate, **seeded,
              "categories": nominal or None}
    if task.kind == "regression":
        n = np.sqrt(task.X.shape[1])
        norm = {"data_norm": float(n)} if np.allclose(task.box[0], -task.box[1]) else {}  # of rows mapped to [-1, 1]
        box = {"bounds": task.box, **norm, "target_bounds": task.bounds, **seeded}
        found = {
            "DPLinearRegression": DPLinearRegression(epsilon, **box),
            "DPLinearRegression" + end: DPLinearRegression(epsilon, **approximate, **box),
            "DPLinearRegression, functional": DPLinearRegression(epsilon, method="functional", **box),
            "DPGradientBoostingRegressor" + end: DPGradientBoostingRegressor(
                epsilon, target_bounds=task.bounds, **curves),
            "the same, add or remove" + end: DPGradientBoostingRegressor(
                epsilon, target_bounds=task.bounds, neighbours="add_remove", **curves),
            "DPRidge" + end: DPRidge(epsilon, **approximate, **box),
            "DPTukeyRegression" + end: DPTukeyRegression(epsilon, **approximate, **seeded),
            "DPFederatedLinearModel" + end: DPFederatedLinearModel(
                epsilon, **approximate, loss="squared", data_norm=1.0, target_bounds=task.bounds, **seeded),
            "DPPoissonRegressor" + end: DPPoissonRegressor(
                epsilon, **approximate, data_norm=1.0, max_target=task.bounds[1], **seeded),
        }
        return [(name, _view(model), model) for name, model in found.items()]
    classes = np.unique(task.y).tolist()
    public = {"data_norm": 1.0, "classes": classes, **seeded}
    found = {
        "DPLogisticRegression": DPLogisticRegression(epsilon, **public),
        "DPLogisticRegression" + end: DPLogisticRegression(epsilon, **approximate, **public),
        "the same by gradients" + end: DPLogisticRegression(
            epsilon, **approximate, perturbation="gradient", **public),
        "DPLinearSVC": DPLinearSVC(epsilon, **public),
        "DPLinearSVC" + end: DPLinearSVC(epsilon, **approximate, **public),
        "DPGradientBoostingClassifier" + end: DPGradientBoostingClassifier(epsilon, classes=classes, **curves),
        "the same, add or remove" + end: DPGradientBoostingClassifier(
            epsilon, classes=classes, neighbours="add_remove", **curves),
        "DPGaussianNB": DPGaussianNB(epsilon, bounds=task.box, classes=classes, **seeded),
    }
    if len(classes) == 2:
        found["the same, functional"] = DPLogisticRegression(epsilon, perturbation="functional", **public)
        found["DPFederatedLinearModel" + end] = DPFederatedLinearModel(epsilon, **approximate, **public)
    return [*((name, _view(model), model) for name, model in found.items()),
            ("DPCategoricalNB", "bins", DPCategoricalNB(
                epsilon, categories=[range(n) for n in task.n_bins], classes=classes, **seeded))]


def _view(model):
    return "raw" if hasattr(model, "edges") else "rows"


def pipelines(load):
    """Return rows for the whole pipeline on a raw table: a function of (epsilons, seeds)."""
    frame, targets, bounds, words = load()
    order, cut = np.random.default_rng(0).permutation(len(frame)), int(0.7 * len(frame))
    own, rest = order[:cut], order[cut:]
    X, T, y = frame.iloc[own], frame.iloc[rest], np.asarray(targets)[own]
    task = Task.of("classes", np.zeros((2, 1)), np.array([0, 1]))
    task.truth = np.asarray(targets)[rest].astype(int)

    def run(epsilons, seeds):
        model = whole_pipeline.plain(bounds, words).fit(X, y)
        found = {("pipeline without privacy", np.inf): [judge(task, model.predict_proba(T))]}
        for seed in range(seeds):
            for epsilon in epsilons:
                model = whole_pipeline.private(bounds, words, epsilon)
                model.set_params(**{name: seed for name in model.get_params() if name.endswith("random_state")})
                found.setdefault((f"private end to end, delta {DELTA:g}", epsilon), []).append(
                    judge(task, model.fit(X, y).predict_proba(T)))
            yield found

    return run


def judge(task, answers):
    """Return what an answer is worth: R^2, or AUC (two classes), accuracy and log-loss.

    Answers are predictions, or probabilities of classes, or scores.
    """
    if task.kind == "regression":
        return {"R2": r2_score(task.truth, answers)}
    answers = np.asarray(answers)
    if answers.ndim == 1 or (answers < 0).any() or not np.allclose(answers.sum(axis=1), 1, atol=1e-3):  # scores
        right = (answers > 0) == task.truth if answers.ndim == 1 else answers.argmax(axis=1) == task.truth
        one = {"AUC": roc_auc_score(task.truth, answers)} if answers.ndim == 1 else {}
        return {**one, "accuracy": float(np.mean(right))}
    one = {"AUC": roc_auc_score(task.truth, answers[:, 1])} if answers.shape[1] == 2 else {}
    return {**one, "accuracy": float(np.mean(answers.argmax(axis=1) == task.truth)),
            "log-loss": log_loss(task.truth, answers)}


def answer(model, T):
    """Return what a fitted model says of rows, at its most detailed."""
    for name in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(T)
    raise TypeError(f"{type(model).__name__} says nothing")


def study(task, pythons, epsilons, seeds, wanted=("",), wanted_of_peers=("",)):
    """Yield what was found, {(model, epsilon): [{measure: value}]}, again and again as it grows: quick ones first."""
    found = {}
    for name, view, model in plain(task):
        if not any(part in name for part in wanted):
            continue
        X, T = task.views[view]
        found[f"{name} without privacy", np.inf] = [judge(task, answer(model.fit(X, task.y), T))]
    yield from _fits(task, epsilons, seeds, found, wanted, slow=False)
    for peer, python in pythons.items():
        few = min(seeds, FEWER) if peer == "interpret" or len(task.X) > 20_000 else seeds
        for name, epsilon, answers in peers.answers(peer, python, task, epsilons, few, DELTA, wanted_of_peers):
            found.setdefault((name, epsilon), []).append(judge(task, answers))
            yield found
    yield from _fits(task, epsilons, min(seeds, FEWER), found, wanted, slow=True)


def _fits(task, epsilons, seeds, found, wanted, slow):
    for seed in range(seeds):  # (outermost: a run that is cut short has fewer seeds, and every epsilon)
        for epsilon in epsilons:
            for name, view, model in ours(task, epsilon, seed):
                if slow != name.startswith(SLOW) or not any(part in name for part in wanted):
                    continue
                X, T = task.views[view]
                try:
                    worth = judge(task, answer(model.fit(X, task.y), T))
                except ValueError as error:  # too few rows for its epsilon: said, and no figure
                    if seed == 0:
                        print(f"{name} at epsilon {epsilon:g}: {error}", flush=True)
                    continue
                found.setdefault((name, epsilon), []).append(worth)
        yield found


def summed(found):
    """Return rows of what was measured, {(model, epsilon): [{measure: value}]}."""
    return [
        {"model": name, "epsilon": epsilon, "measure": measure, "n": len(worths), "quartiles": np.percentile(
            [worth[measure] for worth in worths], [25, 50, 75]).tolist()}
        for (name, epsilon), worths in found.items() for measure in worths[0]
    ]


def show(rows, epsilons):
    for measure in dict.fromkeys(row["measure"] for row in rows):
        print(f"\n{measure:>52}" + "".join(f"{e:>24g}" for e in epsilons))
        mine = [row for row in rows if row["measure"] == measure]
        for model in dict.fromkeys(row["model"] for row in mine):
            cells = {row["epsilon"]: "{1:.3f} ({0:.3f}, {2:.3f})".format(*row["quartiles"])
                     for row in mine if row["model"] == model}
            runs = {row["n"] for row in mine if row["model"] == model and row["epsilon"] < np.inf}
            model = f"{model}, {min(runs)} seeds" if runs else model
            if np.inf in cells:
                cells = dict.fromkeys(epsilons, cells[np.inf].split()[0])
            print(f"{model:>52}" + "".join(f"{cells.get(e, ''):>24}" for e in epsilons), flush=True)


def draw(studies, path):
    import matplotlib.pyplot as plt

    first = {name: rows[0]["measure"] for name, rows in studies.items()}
    across = min(len(studies), 3)
    down = -(-len(studies) // across)
    figure, axes = plt.subplots(down, across, figsize=(4.8 * across, 4.4 * down), squeeze=False)
    for ax in axes.flat[len(studies):]:
        ax.axis("off")
    for ax, (name, rows) in zip(axes.flat, studies.items()):
        mine = [row for row in rows if row["measure"] == first[name]]
        for model in dict.fromkeys(row["model"] for row in mine):
            line = sorted((row for row in mine if row["model"] == model), key=lambda row: row["epsilon"])
            if line[0]["epsilon"] == np.inf:
                ax.axhline(line[0]["quartiles"][1], color="0.5", linestyle=":", lw=1)
                continue
            low, middle, high = np.array([row["quartiles"] for row in line]).T
            (drawn,) = ax.plot([row["epsilon"] for row in line], middle, marker="o", ms=3, lw=1.3, label=model)
            ax.fill_between([row["epsilon"] for row in line], low, high, color=drawn.get_color(), alpha=0.15)
        if first[name] == "R2":
            ax.set_ylim(bottom=-0.5)
        ax.set(xscale="log", title=name, xlabel="epsilon", ylabel=f"{first[name]} on rows not seen")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=6)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    parser.add_argument("--census", type=Path, nargs="+", help="UCI Census-Income (KDD): files without a header")
    parser.add_argument("--models", nargs="+", default=[""], help="parts of names: those to fit, and all peers")
    for name in peers.SCRIPTS:
        parser.add_argument(f"--{name}", type=Path, help=f"a Python that has {name}")
    parser.add_argument("--only", nargs="*", help="names of the tasks to run")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="one seed, one epsilon, small data")
    parser.add_argument("--output", type=Path, help="folder for pictures and the figures as JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
          f"{platform.machine()}")
    pythons = {name: getattr(arguments, name) for name in peers.SCRIPTS if getattr(arguments, name)}
    for name, python in pythons.items():
        print(peers.version(name, python))
    tasks = {"yrbss": yrbss, "breast cancer": breast_cancer, "digits": digits, "height": height, "weight": weight,
             "diabetes": diabetes}
    if arguments.adult:
        tasks |= {"Adult": lambda: adult(arguments.adult), "Adult hours": lambda: hours(arguments.adult)}
    if arguments.census:
        tasks["census"] = lambda: census(arguments.census)
    if arguments.quick:
        tasks = {"digits": tasks["digits"], "diabetes": tasks["diabetes"]}
    else:
        tasks["pipeline, yrbss"] = lambda: pipelines(whole_pipeline.teenagers)
        if arguments.adult:
            tasks["pipeline, Adult"] = lambda: pipelines(lambda: whole_pipeline.adults(arguments.adult))
    epsilons, seeds = (EPSILONS, arguments.seeds) if not arguments.quick else ([1.0], 1)
    studies, figures = {}, (arguments.output or Path()) / "models.json"
    if arguments.output and figures.exists():  # of other tasks: one folder may gather several runs
        studies = json.loads(figures.read_text(encoding="utf-8"))
    for name, load in tasks.items():
        if arguments.only and name not in arguments.only:
            continue
        task, start = load(), time.perf_counter()
        title = f"{name} ({len(task.X):,} x {task.X.shape[1]})" if isinstance(task, Task) else name
        wanted = arguments.models
        for found in study(task, pythons, epsilons, seeds, wanted) if isinstance(task, Task) else task(epsilons, seeds):
            studies[title] = summed(found)
            if arguments.output:  # as it grows: a run that is cut short leaves what it has
                arguments.output.mkdir(parents=True, exist_ok=True)
                figures.write_text(json.dumps(studies, indent=1), encoding="utf-8")
        print(f"\n{title}. {load.__doc__ or ''} Median (quartiles); {time.perf_counter() - start:.0f} s")
        show(studies[title], epsilons)
    if arguments.output:
        draw(studies, arguments.output / "models.png")


if __name__ == "__main__":
    main()
