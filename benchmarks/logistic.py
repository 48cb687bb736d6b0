"""Fitting logistic regression privately, beside scikit-learn's fastest solver without privacy."""

import warnings

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, interleave
from dpestim.linear_model import DPLogisticRegression

COLUMNS = 20
SOLVERS = ("newton-cholesky", "lbfgs")


def rows(settings):
    """Yield a row for each number of rows and threads; the baseline is the quicker of two solvers."""
    for n in (settings.n // 500, settings.n // 100, settings.n // 10, settings.n):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, COLUMNS))
        y = rng.random(n) < expit(X @ rng.standard_normal(COLUMNS))
        for threads in (1, 2):
            model = DPLogisticRegression(1.0, data_norm=8.0, classes=[False, True], n_jobs=threads)
            contestants = {"ours": fitter(model, X, y, threads)}
            for solver in SOLVERS:
                contestants[solver] = fitter(LogisticRegression(solver=solver), X, y, threads)
            times, results, repeats = interleave(contestants, slow=5.0)
            fastest = min(SOLVERS, key=times.get)
            # the same direction, or the times say nothing (of few rows the noise is what shows)
            ours, theirs = (results[k].coef_[0] / np.linalg.norm(results[k].coef_) for k in ("ours", fastest))
            if not settings.quick and n >= settings.n // 10 and ours @ theirs < 0.99:
                raise AssertionError("the private fit is not near the other")
            yield Row(
                f"logistic regression, fit {n:,} x {COLUMNS}, {threads} thread{'s' if threads > 1 else ''}",
                times["ours"], peer=f"scikit-learn {fastest}", baseline=times[fastest],
                ratio=times[fastest] / times["ours"], repeats=repeats,
            ).judge(settings, 1.0)


def fitter(model, X, y, threads):
    def fit():
        with threadpool_limits(threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations of scikit-learn, and lbfgs where it gives up
            return model.fit(X, y)

    return fit
