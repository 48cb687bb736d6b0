"""``python -m benchmarks.prediction``: classes predicted by what users reported, in one table.

    python -m benchmarks.prediction --adult adult_uci.csv.gz   # and UCI Adult, which is not shipped

The area under the ROC curve, and the accuracy with ``--accuracy``, on rows that nobody reported, means over seeds: of
naive Bayes and of a logistic regression on synthetic rows, both made of joint tables (`MarginalEstimator`), of naive
Bayes from reports of class and column, of a logistic regression on privatised columns (whose labels are public), of
noisy gradients, and of a logistic regression on raw rows. The table is written as the guide has it.
"""

import argparse
import itertools
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.attributes import rows
from dpestim.datasets import load_us_military, load_yrbss
from dpestim.local import (
    GRRFrequencyEstimator,
    LDPNaiveBayes,
    LDPSGDClassifier,
    MarginalEstimator,
    PrivatizedColumns,
)

USERS, EPSILONS = (5000, 30_000), (1.0, 2.0, 4.0)
#: Rows that are predicted, and synthetic rows that a model is fitted to.
_TESTED, _MADE = 10_000, 50_000


def _codes(values):
    return np.unique(np.asarray(values).astype(str), return_inverse=True)[1]


def military():
    """Return codes of members of the US armed forces, and who is a warrant officer: 1.3 %."""
    frame = load_us_military(as_frame=True).frame.sample(60_000, random_state=0)
    X = np.column_stack([_codes(frame[name]) for name in ("branch", "gender", "race", "hisp", "rank")])
    return X, frame["grade"].astype(str).str.contains("warrant").to_numpy(int)


def yrbss():
    """Return codes of US teenagers, and who is male."""
    frame = load_yrbss(as_frame=True).frame.dropna()
    X = np.column_stack([_codes(frame["age"]), _codes(frame["grade"]), np.digitize(frame["height"], np.linspace(
        1.45, 1.95, 8)), np.digitize(frame["weight"], np.linspace(45, 100, 7))])
    return X, (frame["gender"].astype(str) == "male").to_numpy(int)


def adult(path):
    """Return codes of nine columns of Adult, and who earns more than 50,000: 24 %."""
    import pandas as pd

    frame = pd.read_csv(path)
    X = [_codes(frame[name].fillna("?")) for name in (
        "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex")]
    X += [np.digitize(frame["age"], [25, 35, 45, 55]), np.digitize(frame["hours_per_week"], [35, 40, 41, 50])]
    return np.column_stack(X), frame["income"].str.contains(">").to_numpy(int)


def interaction():
    """Return codes of five columns, and classes that depend on whether two columns agree."""
    rng, X = np.random.default_rng(0), rows((4, 3, 2, 3, 4), 0, 50_000)
    score = 3.0 * ((X[:, 0] > 0) == (X[:, 1] > 0)) - 2.0
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)


def ways(X, y, sizes, epsilon, seed):
    """Return {name: a function that returns the chance of class 1 of rows}."""
    lists = [list(range(k)) for k in sizes]

    def logistic(first=None):  # (each with steps of its own: a pipeline fits those that it was given)
        hot = OneHotEncoder(categories=lists, handle_unknown="ignore")
        return make_pipeline(hot if first is None else first, LogisticRegression(max_iter=500))

    tables = MarginalEstimator(epsilon, categories=[*lists, [0, 1]], random_state=seed).fit(np.column_stack([X, y]))
    made = tables.synthesize(_MADE, random_state=seed).astype(int)
    both = len(set(made[:, -1])) > 1
    private = PrivatizedColumns([("codes", GRRFrequencyEstimator(categories=lists), list(range(len(sizes))))],
                                epsilon=epsilon, random_state=seed)
    gradients = LDPSGDClassifier(epsilon, classes=[0, 1], bounds=(0, 1), data_norm=len(sizes) ** 0.5, random_state=seed)
    return {
        "tables, naive Bayes": tables.classifier(len(sizes)).predict_proba,
        "tables, rows of `synthesize`": logistic().fit(made[:, :-1], made[:, -1]).predict_proba if both
        else lambda T: np.tile([1.0, 0.0], (len(T), 1)),
        "`LDPNaiveBayes`": LDPNaiveBayes(epsilon, classes=[0, 1], categories=lists, random_state=seed).fit(
            X, y).predict_proba,
        "`PrivatizedColumns`": logistic(private).fit(X, y).predict_proba,
        "`LDPSGDClassifier`": make_pipeline(OneHotEncoder(categories=lists, handle_unknown="ignore",
                                                          sparse_output=False), gradients).fit(X, y).predict_proba,
        "raw rows": logistic().fit(X, y).predict_proba,
    }


def line(data, n, epsilon, n_seeds):
    """Return (users, {name: (area under the curve, accuracy)}) of a setting."""
    X, y = data
    sizes, found, n = [int(k) + 1 for k in X.max(axis=0)], {}, min(n, len(X) - 3000)
    for seed in range(n_seeds):
        order = np.random.default_rng(seed).permutation(len(X))
        known, new = order[:n], order[n : n + _TESTED]
        for name, predict in ways(X[known], y[known], sizes, epsilon, seed).items():
            chance = predict(X[new])[:, 1]
            found.setdefault(name, []).append((roc_auc_score(y[new], chance), np.mean((chance > 0.5) == y[new])))
        found.setdefault("likeliest class", []).append((0.5, max(np.mean(y[new]), 1 - np.mean(y[new]))))
    return n, {name: np.mean(own, axis=0) for name, own in found.items()}


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__.split("\n")[0])
    parser.add_argument("--adult", help="the path of UCI Adult")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--accuracy", action="store_true", help="show accuracies in place of areas")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    sets = {"adult": lambda: adult(chosen.adult)} if chosen.adult else {}
    sets |= {"yrbss": yrbss, "military": military, "interaction": interaction}
    head = None
    for name, make in sets.items():
        data = make()
        for users, epsilon in itertools.product(USERS, EPSILONS):
            n, found = line(data, users, epsilon, chosen.seeds)
            if head is None:
                head = ["data", "users", "epsilon", *found]
                print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
            print(f"| {name} | {n:,} | {epsilon:g} | " + " | ".join(
                f"{own[int(chosen.accuracy)]:.3f}" for own in found.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
