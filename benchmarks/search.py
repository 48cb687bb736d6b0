"""What a private search gains over a default with the whole budget, and over a plain search, on real data.

    python -m benchmarks.search                            # yrbss
    python -m benchmarks.search --adult adult_uci.csv.gz   # and UCI Adult, which is not shipped

Every line of a column has the same epsilon in total, but for the plain search: its line says what a ledger was charged
for it, and its exact scores are not private at any epsilon. "best in hindsight" looks at the rows that judge all.
"""

import argparse
import math
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid

from benchmarks.models import adult, split, yrbss
from dpestim.accounting import Ledger
from dpestim.linear_model import DPLogisticRegression
from dpestim.model_selection import PrivateSearchCV

EPSILONS = [0.1, 0.5, 1.0, 4.0]
#: Rows have norms of at most 1, which is known; a smaller norm clips some of them, and needs less noise.
SPACES = {
    "fine": {"data_norm": [0.5, 0.75, 1.0], "C": [None, 1.0, 100.0]},
    "wide": {"data_norm": [0.01, 0.1, 1.0, 10.0, 100.0], "C": [None, 1e-4, 1.0]},
}
FOLDS = 3


def contestants(space, epsilon, seed):
    """Return {name: what fits}; the first is what a user without a good guess would do last."""
    model = DPLogisticRegression(epsilon, data_norm=1.0, classes=[False, True], random_state=seed)
    private = {
        f"papernot_steinke, eta {eta:g}": PrivateSearchCV(model, space, epsilon=epsilon, eta=eta, random_state=seed)
        for eta in (0.0, 0.5)
    }
    for name in ("liu_talwar", "exponential"):
        private[name] = PrivateSearchCV(model, space, epsilon=epsilon, selection=name, random_state=seed)
    grid = GridSearchCV(model, space, cv=KFold(FOLDS, shuffle=True, random_state=seed), error_score="raise")
    return {"default, whole epsilon": model, **private, "plain GridSearchCV": grid}


def study(X, y, space, epsilons, seeds):
    """Return {epsilon: {name: (accuracies, AUCs, charged epsilon, seconds)}}."""
    X, y, T, truth = split(X, y)

    def judge(fitted):
        scores = fitted.decision_function(T)
        return np.mean((scores > 0) == truth), roc_auc_score(truth, scores)

    found = {}
    for epsilon in epsilons:
        rows = found[epsilon] = {}
        for seed in range(seeds):
            for name, model in contestants(space, epsilon, seed).items():
                ledger, start = Ledger(math.inf, durability="fast"), time.perf_counter()
                with ledger:
                    model.fit(X, y)
                seconds = time.perf_counter() - start
                row = rows.setdefault(name, ([], [], float(ledger.spent().epsilon), []))
                accuracy, auc = judge(model)
                for values, value in zip((row[0], row[1], row[3]), (accuracy, auc, seconds)):
                    values.append(value)
        best = []
        for candidate in ParameterGrid(space):
            model = DPLogisticRegression(epsilon, data_norm=1.0, classes=[False, True]).set_params(**candidate)
            best.append([judge(model.set_params(random_state=seed).fit(X, y)) for seed in range(seeds)])
        for name, line in (("best in hindsight", max), ("a candidate at random", None)):
            means = sorted(best, key=lambda pairs: np.mean([a for a, _ in pairs]))
            pairs = means[-1] if line else [pair for pairs in means for pair in pairs]
            rows[name] = ([a for a, _ in pairs], [auc for _, auc in pairs], math.nan, [math.nan])
    return found


def show(title, found, seeds):
    """Print accuracy (AUC), means over seeds; what was charged, and the median of seconds at the last epsilon."""
    print(f"\n{title}: accuracy (AUC) on rows not seen, means over {seeds} seeds")
    print(f"{'epsilon':>26}" + "".join(f"{epsilon:>15g}" for epsilon in found) + f"{'charged':>13}{'seconds':>9}")
    last = list(found)[-1]
    for name in found[last]:
        cells = [f"{np.mean(found[e][name][0]):.3f} ({np.mean(found[e][name][1]):.3f})" for e in found]
        _, _, charged, seconds = found[last][name]
        cost = f"{charged / last:>5g} epsilon{np.median(seconds):>9.2f}"
        print(f"{name:>26}" + "".join(f"{cell:>15}" for cell in cells) + cost, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    parser.add_argument("--seeds", type=int, default=20, help="of the noise (%(default)s)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--spaces", choices=SPACES, nargs="+", default=list(SPACES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = {"yrbss": yrbss}
    if arguments.adult:
        tasks["Adult"] = lambda: adult(arguments.adult)
    else:
        print("Adult is left out: it is not shipped, give its path by --adult")
    for name, load in tasks.items():
        X, y = load()
        for kind in arguments.spaces:
            space = SPACES[kind]
            n = len(ParameterGrid(space))
            found = study(X, y, space, arguments.epsilons, arguments.seeds)
            show(f"{name} ({len(X):,} x {X.shape[1]}), {kind} space of {n} candidates", found, arguments.seeds)


if __name__ == "__main__":
    main()
