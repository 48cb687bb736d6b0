"""A whole pipeline that is private end to end: raw table in, scaling, encoding and a model, one budget for all of it.

Who of 12,579 teenagers is male, from age, height, weight and the grade they are in, a column of strings in which some
did not answer. Nobody declares which grades there are, or where heights begin and end: both are learned, privately. Run
it from anywhere::

    python examples/whole_pipeline.py
    python examples/whole_pipeline.py --adult adult_uci.csv.gz     # UCI Adult, which is not shipped: who earns more

It prints what each step does and costs, what the ledger paid, and how good the models are. Needs pandas.
"""

import argparse
import textwrap
import time
from pathlib import Path

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpestim.accounting import Ledger
from dpestim.datasets import load_yrbss
from dpestim.linear_model import DPLogisticRegression
from dpestim.pipeline import check_pipeline, share_budget
from dpestim.preprocessing import DPOneHotEncoder, DPStandardScaler, norm_bound

EPSILON, DELTA = 1.0, 1e-5
RUNS = 5


def teenagers():
    """Return (rows, targets, public bounds of numbers, columns of strings)."""
    frame = load_yrbss(as_frame=True).frame
    return frame, frame["gender"] == "male", {"age": (5, 25), "height": (0.5, 2.5), "weight": (20, 250)}, ["grade"]


def adults(path):
    """Return (rows, targets, public bounds of numbers, columns of strings) of UCI Adult."""
    import pandas

    frame = pandas.read_csv(path)
    bounds = {"age": (0, 120), "education_num": (1, 16), "capital_gain": (0, 100_000), "capital_loss": (0, 5_000),
              "hours_per_week": (0, 100)}
    words = ["workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
    return frame, frame["income"] == ">50K", bounds, words


def private(bounds, words, epsilon=EPSILON):
    """Return the pipeline, with its budget."""
    numbers = DPStandardScaler(bounds=tuple(zip(*bounds.values())), clip=2.0)
    categories = DPOneHotEncoder(categories=["private"] * len(words))
    table = ColumnTransformer([("numbers", numbers, list(bounds)), ("words", categories, words)])
    model = DPLogisticRegression(data_norm=norm_bound(table), classes=[False, True])  # public: from parameters alone
    return share_budget(make_pipeline(table, model), epsilon, delta=DELTA, shares={"dplogisticregression": 4})


def plain(bounds, words):
    """Return the same without privacy."""
    table = ColumnTransformer([("numbers", StandardScaler(), list(bounds)),
                               ("words", OneHotEncoder(handle_unknown="ignore"), words)])
    return make_pipeline(table, LogisticRegression(max_iter=1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", type=Path, help="path of UCI Adult as a CSV file with a header")
    path = parser.parse_args().adult
    frame, targets, bounds, words = teenagers() if path is None else adults(path)
    X, T, y, truth = train_test_split(frame, targets, test_size=0.3, random_state=0, stratify=targets)
    print(f"\n{len(X):,} rows to learn from, as they came: numbers {', '.join(bounds)}; strings {', '.join(words)}\n")

    # ---- What each step does, before anything is read: no data are needed, and nothing leaks.
    steps = private(bounds, words)
    for line in str(check_pipeline(steps)).splitlines():
        print(textwrap.fill(line, 110, subsequent_indent="    ", break_long_words=False))

    # ---- One fit, paid by a ledger that has no more than that.
    with Ledger(EPSILON, delta=DELTA) as ledger:
        start = time.perf_counter()
        steps.fit(X, y)
        seconds = time.perf_counter() - start
    encoder = steps[0].named_transformers_["words"]
    print(f"\nFitted in {seconds:.1f} s. Categories that were found: {[len(own) for own in encoder.categories_]}")
    print(f"The ledger paid epsilon {float(ledger.spent().epsilon):g} and delta {float(ledger.spent().delta):g}.")

    # ---- How good it is, on rows that were set aside: a study, every fit of which spends its epsilon.
    for name, make in (("private end to end", private), ("without privacy", plain)):
        models = [make(bounds, words).fit(X, y) for _ in range(RUNS if make is private else 1)]
        aucs = [roc_auc_score(truth, model.decision_function(T)) for model in models]
        right = [np.mean(model.predict(T) == truth) for model in models]
        print(f"{name:>20}: area under the ROC curve {np.median(aucs):.3f}, right about {np.median(right):.1%}")


if __name__ == "__main__":
    main()
