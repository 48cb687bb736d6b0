"""Synthetic rows: all that models are asked but predictions, and what rows and answers of the model must be."""

import numpy as np

from dpestim.privacy.config import config_context
from dpestim.testing.models import MODEL_CHECKS, ROWS, check_model_predictions
from dpestim.testing.reported import REPORTED_CHECKS
from dpestim.testing.tools import Book, differs_each_time, fresh, refuses, require


def check_synthetic_rows(estimator):
    """Rows are free, of the declared domain, as many as asked for, and those of a seed; whatever the mode."""
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).set_params(ledger=Book()).fit(X, y)
    before = est.counts_.copy()
    rows = est.sample(200, random_state=0)
    require(rows.shape == (200, X.shape[1]) and rows.dtype == X.dtype, "rows must be as many as asked for, as X was")
    for j in range(X.shape[1]):
        known = est.levels(j)
        if estimator.categories is not None:
            declared = [value for value in known.tolist() if value is not None]
            missing = np.isnan(rows[:, j]) & (len(declared) < len(known))
            require(bool((np.isin(rows[:, j], declared) | missing).all()), "a category must be one that was declared")
        else:
            require(bool(((rows[:, j] >= known[0]) & (rows[:, j] <= known[-1])).all()), "a number must be in bounds")
    require(np.array_equal(rows, est.sample(200, random_state=0), equal_nan=True), "a seed must reproduce rows")
    require(not np.array_equal(rows, est.sample(200, random_state=1)), "another seed must give other rows")
    require(differs_each_time(lambda: est.sample(200), np.array_equal), "no seed must give other rows each call")
    with config_context(strict=True):
        require(len(est.sample(3)) == 3, "strict mode must sample")
    require(len(est.ledger.paid) == 1, "rows must be free")
    require(np.array_equal(before, est.counts_), "rows must change nothing")


def check_synthetic_answers(estimator):
    """Answers are probabilities, agree with each other and with rows, and a comparison with raw rows is a score."""
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    pair = est.marginal([0, 1])
    require(abs(pair.sum() - 1) < 1e-9 and (pair >= 0).all(), "an answer must be probabilities")
    require(np.allclose(pair.sum(axis=1), est.marginal([0]), atol=1e-9), "answers must agree")
    turned = est.marginal([1, 0]).T
    same = turned.shape == pair.shape and np.allclose(turned, pair, atol=1e-9)
    require(same, "an answer must have the order of its columns")
    twin = fresh(estimator).fit(est.sample(20_000, random_state=0))
    # n = 20,000 rows of a comb: they are off by rounding, or by less than rows that are drawn apart
    far = np.abs(twin._model.known[0,][0] / twin._model.total - est.marginal([0])).sum()
    require(far < 0.1, "rows must have the tables of the model")
    require(0 <= est.workload_error(X) <= 1, "an error must be a mean distance")
    with config_context(strict=True):
        refuses(lambda: est.workload_error(X), "a comparison with raw rows in strict mode")


CHECKS = (*REPORTED_CHECKS, *(check for check in MODEL_CHECKS if check is not check_model_predictions),
          check_synthetic_rows, check_synthetic_answers)
