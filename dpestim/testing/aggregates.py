"""Behaviour of any server (`aggregate`): its verbs come to the same, and what may be merged with what."""

import tempfile
from pathlib import Path

import numpy as np

from dpestim.testing.tools import client_of, refuses, require, same_state


def check_verbs(sample):
    """Fit equals privatize and aggregate, whatever n_jobs; partial_fit adds up; read-only memory maps are accepted."""
    X = sample.block_rows
    n, reports = len(X), sample.fresh().privatize(X)
    whole = sample.fresh().aggregate(reports)
    require(same_estimates(sample.fresh(n_jobs=2).fit(X), whole), "fit must equal privatize followed by aggregate")
    parts = sample.fresh().partial_fit(X[: n // 3]).partial_fit(X[n // 3 :])
    require(same_estimates(parts, whole), "two partial_fit under one seed must equal one fit of all rows")
    one = sample.fresh().fit(X[:1])
    require(one.n_users_ == 1 and one.release() is not None, "one row must do")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.npy"
        np.save(path, reports)
        mapped = np.load(path, mmap_mode="r")
        require(same_estimates(sample.fresh().aggregate(mapped), whole), "read-only memory maps must be accepted")
        del mapped


def check_merge(sample):
    """Merge equals aggregating all reports at once; merging with itself, another law or repeated noise is refused."""
    X = sample.rows(60)
    reports = sample.fresh().privatize(X)
    whole = sample.fresh().aggregate(reports)
    left, right = sample.fresh().aggregate(reports[:20]), sample.fresh().aggregate(reports[20:])
    require(same_estimates(left.merge(right), whole), "merge must equal the aggregate of all reports")
    require(same_estimates(sample.fresh().merge(whole), whole), "merging into an empty aggregate must copy it")
    refuses(lambda: whole.merge(whole), "merging with itself", whole)
    other = sample.fresh(epsilon=float(client_of(sample.estimator).epsilon) / 2).fit(X)
    refuses(lambda: whole.merge(other), "merging another epsilon", whole)
    refuses(lambda: whole.merge(sample.fresh()), "merging an aggregate without data", whole)
    a, b = sample.fresh().fit(X), sample.fresh().fit(X[:5])
    refuses(lambda: a.merge(b), "merging repeated seeded noise", a)
    once = a.privacy_.epsilon
    require(a.merge(sample.fresh(random_state=1).fit(X)).n_users_ == 120, "different seeds must merge")
    require(a.privacy_.epsilon == once, "other users must not pay for these")
    again = sample.fresh(random_state=2).fit(X)
    if not sample.estimator._adds_same_users:
        refuses(lambda: a.merge(again, users="same"), "what the same users said again", a)
        return
    a.merge(again, users="same")
    require(a.privacy_.epsilon == 2 * once, "the same users must pay twice")


def same_estimates(a, b):
    """Tell whether two aggregates give the same estimates."""
    errors = next((name for name in ("standard_errors_", "standard_error_") if hasattr(a, name)), "n_users_")
    found = [(est.n_users_, est.release(), getattr(est, errors)) for est in (a, b)]
    return same_state(*found)


SERVER_CHECKS = (check_verbs, check_merge)
