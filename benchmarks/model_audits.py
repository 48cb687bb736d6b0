"""``python -m benchmarks.model_audits {alarms,bounds}``: audits of models by one fit.

* ``alarms``: many audits of correct models: the share of bounds above the true epsilon is at most the declared error.
* ``bounds``: what one fit with canaries finds, beside an audit of many fits with two given neighbours; correct models,
  and broken ones that claim an epsilon of 2.
"""

import argparse
import math
import time

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.naive_bayes import GaussianNB

from dpestim.audit import audit, audit_model
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.linear_model import DPLogisticRegression
from dpestim.naive_bayes import DPGaussianNB

#: Columns, one for each canary, of the rows that all are 0; columns of the neighbours of an audit of many fits.
WIDE, NARROW = 120, 1


class Answers(BaseEstimator):
    """Randomised response on the sign of the sum of each column: with a column for each canary, one fit sees it all."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y=None):
        sums, rng = np.sign(np.asarray(X, float).sum(axis=0)), np.random.default_rng(self.random_state)
        self.mean_ = np.where(rng.random(len(sums)) < 1 / (1 + math.exp(-self.epsilon)), sums, -sums)
        return self


def models(epsilon):
    """Return correct models of an epsilon."""
    return {
        "DPLogisticRegression": DPLogisticRegression(epsilon, data_norm=1.5, classes=[0, 1]),
        "DPGaussianNB": DPGaussianNB(epsilon, bounds=(-1, 1), classes=[0, 1]),
        "DPGradientBoostingClassifier": DPGradientBoostingClassifier(epsilon, bounds=(-1, 1), classes=[0, 1],
                                                                     n_bins=8, max_iter=3),
    }


BROKEN = {
    "DPLogisticRegression, a fortieth of the noise": DPLogisticRegression(80.0, data_norm=1.5, classes=[0, 1]),
    "GaussianNB, no noise": GaussianNB(),
}


def one_fit(model, n_canaries, seed, **options):
    """Return an audit by one fit, of few rows that are all alike; `model` draws its own noise."""
    return audit_model(model, np.zeros((4, WIDE)), [0, 1, 0, 1], n_canaries=n_canaries, domain=[(-1, 1)] * WIDE,
                       random_state=seed, **options)


def answers(epsilon, seed, **options):
    """Return an audit of `Answers`, which has as many columns as there are canaries."""
    return audit_model(Answers(epsilon), np.zeros((1, 200)), n_canaries=200, domain=[(-1, 1)] * 200, claim=epsilon,
                       random_state=seed, **options)


def many_fits(model, n_samples, claim):
    """Return an audit of many fits: one row has the label 1, or the label 0; the output is what is learned."""
    def learn(label, rng):
        X, y = np.zeros((4, NARROW)), np.array([0, 1, 0, label])
        X[-1] = 1
        fitted = clone(model)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=int(rng.integers(2**31)))
        fitted.fit(X, y)
        log_odds = np.diff(np.log(np.maximum(fitted.predict_proba([[1], [0], [-1]]), 1e-300)), axis=1)
        return np.round(log_odds[:, 0], 4)

    return audit(learn, [(1, 0)], claim=claim, n_samples=n_samples, side_channels=(), time_limit=600, random_state=0)


def alarms(n_audits, error):
    """Print the share of bounds above the true epsilon."""
    print(f"Audits by one fit, confidence {1 - error:g}\n")
    print("| model | audits | epsilon | bounds above it | allowed | median bound |\n|---|---|---|---|---|---|")
    for epsilon in (0.5, 1.0, 2.0):
        subjects = {"randomised response, 200 coins": lambda seed, e=epsilon: answers(e, seed, confidence=1 - error)}
        for name, model in models(epsilon).items():
            subjects[name] = lambda seed, m=model: one_fit(m, WIDE, seed, confidence=1 - error)
        for name, run in subjects.items():
            n = n_audits if name.startswith("DP") else 20 * n_audits
            found = [run(seed).epsilon_lower for seed in range(n)]
            above = np.mean(np.array(found) > epsilon)
            shares = f"{100 * above:.1f} % | {100 * error:g} %"
            print(f"| {name} | {n:,} | {epsilon:g} | {shares} | {np.median(found):.3f} |", flush=True)


def bounds(n_seeds, n_samples):
    """Print what one fit finds, and what many fits find."""
    print("| model, claim of 2 | one fit: median bound | claim refuted | seconds | many fits: bound | fits | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, model in {**models(2.0), **BROKEN}.items():
        begin = time.perf_counter()
        found = [one_fit(model, n, seed, claim=2.0) for seed in range(n_seeds) for n in (WIDE // 2, WIDE)]
        each = (time.perf_counter() - begin) / len(found)
        best = [max(pair, key=lambda one: one.epsilon_lower) for pair in zip(found[::2], found[1::2])]
        many = many_fits(model, n_samples, 2.0)
        print(f"| {name} | {np.median([one.epsilon_lower for one in best]):.2f} | "
              f"{sum(one.violated for one in found)} of {len(found)} | {each:.2f} | {many.epsilon_lower:.2f} | "
              f"{many.n_samples:,} | {many.seconds:.0f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["alarms", "bounds"])
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--error", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--samples", type=int, default=6_000)
    args = parser.parse_args()
    if args.what == "alarms":
        alarms(args.audits, args.error)
    else:
        bounds(args.seeds, args.samples)
