"""The behaviour of a map of rows that learns nothing: it is free, reads names alone, and maps each row by itself."""

import numpy as np

from dpestim.privacy import ambient
from dpestim.testing.models import check_model_clone_and_pickle, check_model_rows_stand_alone
from dpestim.testing.tools import Book, fresh, refuses, require

ROWS = 60


def check_encoder_is_free(estimator):
    """Neither fit nor transform charges anything; what is kept is the same for all values; bad rows are refused."""
    X, _ = estimator._test_data(ROWS)
    book = Book()
    ambient.enter(book)
    try:
        est = fresh(estimator).fit(X)
        rows = _dense(est.transform(X))
    finally:
        ambient.leave(book)
    require(not book.paid, "an encoder must not charge")
    require(est.privacy_.is_nothing, "privacy_ must promise epsilon 0")
    other = fresh(estimator).fit(X * np.nan)
    same = {name: getattr(est, name) for name in est._learned} == {name: getattr(other, name) for name in est._learned}
    require(same, "what fit keeps must not depend on values")
    require(np.linalg.norm(rows, axis=1).max() <= est.norm_bound, "no row may be longer than norm_bound")
    require(rows.shape[1] == len(est.get_feature_names_out()), "each column must have a name")
    for bad in (X[:, 0], X[:, :1]):
        refuses(lambda bad=bad: fresh(estimator).fit(bad), "rows of other columns")


def _dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


CHECKS = (check_encoder_is_free, check_model_clone_and_pickle, check_model_rows_stand_alone)
