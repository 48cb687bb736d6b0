"""Fitting logistic regression privately, beside scikit-learn's fastest solver without privacy: narrow, wide, sparse."""

import warnings

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, interleave, limit, share
from dpestim.linear_model import DPLogisticRegression
from dpestim.linear_model.solver import MarginLoss

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
            contestants = {"ours": fitter(model, X, y)}
            for solver in SOLVERS:
                contestants[solver] = fitter(LogisticRegression(solver=solver), X, y)
            contestants["read"] = X.sum
            with threadpool_limits(threads):  # (around all: to look for the libraries takes longer than a small fit)
                times, results, repeats = interleave(contestants, slow=5.0)
            fastest = min(SOLVERS, key=times.get)
            # the same direction, or the times say nothing (of few rows the noise is what shows)
            ours, theirs = (results[k].coef_[0] / np.linalg.norm(results[k].coef_) for k in ("ours", fastest))
            if not settings.quick and n >= settings.n // 10 and ours @ theirs < 0.99:
                raise AssertionError("the private fit is not near the other")
            row = Row(
                f"logistic regression, fit {n:,} x {COLUMNS}, {threads} thread{'s' if threads > 1 else ''}",
                times["ours"], peer=f"scikit-learn {fastest}", baseline=times[fastest],
                ratio=times[fastest] / times["ours"], repeats=repeats,
            )
            if threads == 1:  # (NumPy sums by one)
                passes = passes_of(fitter(model, X, y))
                row.limit, row.share = "reads", passes * times["read"] / times["ours"]
                row.note = f"{passes:.1f} passes over rows"
            yield row.judge(settings, 1.5 if n <= settings.n // 500 else 1.0)
    yield from more_columns(settings)


def more_columns(settings):
    """Yield a row for wide rows and one for sparse ones, with one entry in a hundred; the baseline is lbfgs.

    The limit is memory: gradients and Hessians read the rows so many times, whatever they compute.
    """
    rng, n = np.random.default_rng(0), settings.n
    wide = rng.standard_normal((n // 10, 500))
    index = rng.integers(0, 100, (n, 10), dtype=np.int32) + 100 * np.arange(10, dtype=np.int32)
    sparse = csr_array((rng.standard_normal(10 * n), index.ravel(), np.arange(0, 10 * n + 1, 10)), (n, 1000))
    for X, name, norm in ((wide, "wide", 40.0), (sparse, "sparse, 1 %", 5.0)):
        y = X @ rng.standard_normal(X.shape[1]) > rng.standard_normal(X.shape[0])
        model = DPLogisticRegression(1.0, delta=1e-5, data_norm=norm, classes=[False, True])
        contestants = {
            "ours": fitter(model, X, y),
            "lbfgs": fitter(LogisticRegression(), X, y),
            "memory": limit("memory"),
        }
        with threadpool_limits(1):
            times, results, repeats = interleave(contestants, slow=5.0)
        passes = passes_of(fitter(model, X, y))
        size = X.nbytes if X is wide else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        yield Row(
            f"logistic regression, fit {X.shape[0]:,} x {X.shape[1]:,}, {name}", times["ours"],
            peer="scikit-learn lbfgs", baseline=times["lbfgs"], ratio=times["lbfgs"] / times["ours"], repeats=repeats,
            limit="memory", share=share("memory", times["memory"], passes * size, times["ours"]),
            note=f"{passes:.1f} passes over rows, lbfgs {results['lbfgs'].n_iter_[0] + 1} or more",
        ).judge(settings, 1.2)


def passes_of(fit):
    """Return how many times a fit reads its rows: of every 16th row, a sixteenth."""
    seen, evaluate = [], MarginLoss.evaluate

    def counted(loss, w, hessian=False, step=1):
        before = len(seen)
        found = evaluate(loss, w, hessian, step)
        seen[before:] = [1 / step]  # (it may ask the same of rows that it has gathered: they count once)
        return found

    MarginLoss.evaluate = counted
    try:
        fit()
    finally:
        MarginLoss.evaluate = evaluate
    return sum(seen)


def fitter(model, X, y):
    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations of scikit-learn, and lbfgs where it gives up
            return model.fit(X, y)

    return fit
