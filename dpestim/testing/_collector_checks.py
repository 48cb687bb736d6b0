"""Checks of what estimates from the reports of a transformer: the three verbs, budgets, strict mode, bad input."""

import pickle
import warnings

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.testing._contract import refuses
from dpestim.testing._law import ALPHA
from dpestim.testing._tools import MechanismError, raw_rows, require


def check_verbs(estimator):
    """Fit equals privatize and aggregate; partial_fit and merge add up to the same, for every n_jobs."""
    X = raw_rows(estimator, 3000)
    fitted = _fresh(estimator, n_jobs=2).fit(X)
    reports = _fresh(estimator).privatize(X)
    whole = _fresh(estimator).aggregate(reports)
    require(_same(fitted, whole), "fit must equal privatize followed by aggregate")
    parts = _fresh(estimator).partial_fit(X[:1001]).partial_fit(X[1001:])
    require(_same(fitted, parts), "two partial_fit under one seed must equal one fit of all rows")
    left, right = _fresh(estimator).aggregate(reports[:20]), _fresh(estimator).aggregate(reports[20:])
    require(_same(left.merge(right), whole), "merge must equal the aggregate of all reports")
    require(_same(_fresh(estimator).merge(whole), whole), "merging into an empty aggregate must copy it")
    refuses(lambda: whole.merge(whole), "merging with itself", whole)
    refuses(lambda: whole.merge(_fresh(estimator)), "merging an aggregate without data", whole)
    other = _fresh(estimator, epsilon=float(estimator.transformer.epsilon) / 2).fit(X)
    refuses(lambda: whole.merge(other), "merging another epsilon", whole)
    refuses(lambda: _fresh(estimator).fit(X).merge(_fresh(estimator).fit(X[:5])), "merging repeated seeded noise")
    twice = _fresh(estimator).fit(X)
    once = twice.privacy_
    twice.merge(_fresh(estimator, random_state=1).fit(X), users="same")
    require(twice.n_users_ == 6000 and twice.privacy_.epsilon == 2 * once.epsilon, "the same users must pay twice")
    one = _fresh(estimator).fit(X[:1])
    require(one.n_users_ == 1 and one.release() is not None, "one row must do")


def check_state(estimator):
    """Clone and pickle; the first data freezes the law; the transformer that was given is never touched."""
    X = raw_rows(estimator, 300)
    est = _fresh(estimator)
    given = pickle.dumps(est.transformer)
    est.fit(X)
    require(pickle.dumps(est.transformer) == given, "the transformer that was given must not change")
    require(not hasattr(clone(est), "n_users_"), "clone must keep parameters only")
    copied = pickle.loads(pickle.dumps(est))
    require(_same(copied, est) and copied.privacy_ == est.privacy_, "pickle must keep the state")
    stated = est.privacy_.epsilon
    est.set_params(transformer__epsilon=float(estimator.transformer.epsilon) / 2).partial_fit(X)
    require(est.n_users_ == 600 and est.privacy_.epsilon == stated, "partial_fit changed the law")
    est.fit(X)
    require(est.n_users_ == 300, "fit must start anew")


def check_budget(estimator):
    """The transformer pays, once for each release; estimates cost nothing; scores are refused in strict mode."""
    X = raw_rows(estimator, 100)
    paid, scores = [], []

    class Book:
        def charge(self, guarantee, *, estimator, n_rows, columns):
            paid.append((guarantee, n_rows, estimator))

        def record_score(self, *, estimator, n_rows):
            scores.append((estimator, n_rows))

    est = _fresh(estimator, ledger=Book()).fit(X).partial_fit(X[:9])
    est.release()
    require(not scores, "only score compares with raw data")
    est.score(X)
    require(scores == [(type(estimator).__name__, 100)], "the ledger of the transformer must be told of a score")
    name = type(estimator.transformer).__name__
    require([(n, who) for _, n, who in paid] == [(100, name), (9, name)], "each randomisation must be charged once")
    require(all(g.epsilon == est.privacy_.epsilon for g, _, _ in paid), "the charge is not privacy_")
    later = _fresh(estimator).fit(X).set_params(transformer__ledger=Book())
    later.partial_fit(X[:7])
    later.privatize(X[:5])
    require([n for _, n, _ in paid[2:]] == [7, 5], "a ledger that the transformer gets later must pay from then on")
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        strange = X.copy()
        strange[3] = np.nan
        strange[4] = np.inf
        strict = _fresh(estimator).fit(strange)
        require(strict.n_users_ == 100, "strict mode must not tell about a value")
        refuses(lambda: strict.score(X), "a score in strict mode")
        refuses(lambda: _fresh(estimator, bounds=None, **_no_low(estimator)).fit(X), "learned bounds in strict mode")
        bound = type(estimator)(**_fresh(estimator).get_params(deep=False))
    bound.set_params(transformer=clone(estimator.transformer))
    for verb in ("privatize", "fit", "partial_fit"):
        try:
            getattr(bound, verb)(strange)
        except ValueError:
            raise MechanismError(f"{verb} of what was made in strict mode must not tell about a value") from None
    refuses(lambda: bound.score(X), "a score of what was made in strict mode")


def check_collector_bad_input(estimator):
    """Bad input is a ValueError that changes nothing."""
    X = raw_rows(estimator, 20)
    est = _fresh(estimator).fit(X)
    nan = X.copy()
    nan[2, 0] = np.nan
    for verb in ("fit", "partial_fit", "privatize", "score"):
        for name, data in {"NaN": nan, "no rows": X[:0], "one dimension": X[:, 0],
                           "another number of columns": np.concatenate([X, X], axis=1)}.items():
            if name == "another number of columns" and verb == "fit" and np.ndim(estimator.transformer.bounds[0]) == 0:
                continue
            refuses(lambda verb=verb, data=data: getattr(est, verb)(data), f"{name} in {verb}", est)
    reports = est.privatize(X)
    for name, data in {"a list": reports.tolist(), "one dimension": reports[:, 0], "no reports": reports[:0],
                       "another dtype": reports.astype(np.int64)}.items():
        refuses(lambda data=data: est.aggregate(data), f"reports: {name}", est)
    message = refuses(lambda: clone(estimator).set_params(transformer=object()).fit(X), "a transformer that is none")
    require("transformer" in message, "the error does not name the parameter")


def check_means_cover(estimator):
    """95 % intervals of the mean cover the truth, up to a binomial test at alpha = 1e-6 (150 fits of 1,000 users)."""
    if not hasattr(type(estimator), "standard_error_"):
        return
    covered, repeats, scores = 0, 150, []
    for seed in range(repeats):
        X = raw_rows(estimator, 1000, seed)
        est = _fresh(estimator, random_state=seed).fit(X)
        truth = np.clip(X, *est.transformer_.bounds_).mean(axis=0)
        low, high = est.confidence_interval(0.95).T
        covered += int(((low <= truth) & (truth <= high))[0])
        scores.append((est.mean_ - truth) / est.standard_error_)
    # given the users, intervals are a little too wide: the share may be anything from 0.95 to 1
    room = stats.norm.isf(ALPHA) * np.sqrt(0.95 * 0.05 / repeats)
    require(covered / repeats > 0.95 - room, f"95 % intervals cover {covered / repeats:.3f} of the truths")
    z = np.abs(np.mean(scores, axis=0)) * np.sqrt(repeats)
    require((z < stats.norm.isf(ALPHA)).all(), f"the mean is biased: |z| = {z.max():.1f}")
    spread = np.std(scores, axis=0)
    require(((spread > 0.7) & (spread < 1.3)).all(), "the standard error is not that of the mean")


def _no_low(estimator):
    return {"low_sensitivity": None} if "low_sensitivity" in estimator.transformer.get_params() else {}


def _fresh(estimator, **params):
    """Return an unfitted clone whose transformer has other parameters, seeded unless they say otherwise."""
    params = {"random_state": 0, **params}
    return clone(estimator).set_params(**{f"transformer__{name}": value for name, value in params.items()})


def _same(a, b):
    """Tell whether two aggregates give the same estimates."""
    mine, theirs = a.release(), b.release()
    return a.n_users_ == b.n_users_ and all(np.array_equal(x, y) for x, y in zip(mine, theirs))


COLLECTOR_CHECKS = (check_verbs, check_state, check_budget, check_means_cover, check_collector_bad_input)
