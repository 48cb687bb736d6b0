"""The behaviour of a private model: budget, strictness, reproducibility, containers and bad input.

For classifiers with declared classes and a declared norm (`predict_proba`, `_test_params`, `_test_data`). What a
guarantee promises is proven and tested beside each model; these checks are about everything around it.
"""

import math
import pickle
import warnings

import numpy as np
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing._tools import Book, fresh, layouts, refuses, require

ROWS = 60


def check_model_budget(estimator):
    """One fit is one charge of exactly epsilon and delta, before anything is drawn; prediction is free."""
    X, y = estimator._test_data(ROWS)
    ledger = Book()
    est = fresh(estimator).set_params(ledger=ledger).fit(X, y)
    require(len(ledger.paid) == 1, "a fit must charge once")
    guarantee, _, n_rows, _ = ledger.paid[0]
    require(guarantee.epsilon == canonical_epsilon(estimator.epsilon), "the charge must be the canonical epsilon")
    require(float(guarantee.delta) <= float(estimator.delta), "the charge must not exceed the declared delta")
    require(n_rows == ROWS, "the charge must say how many rows were used")
    require(guarantee == est.privacy_, "privacy_ must be what was charged")
    est.predict(X)
    est.predict_proba(X)
    require(len(ledger.paid) == 1, "prediction must not charge")
    refused = fresh(estimator).set_params(ledger=Book(refuse=True))
    refuses(lambda: refused.fit(X, y), "an overdraft")
    require(not hasattr(refused, "coef_"), "a refused fit must leave nothing behind")
    for bad in (X[:, 0], X[:0]):
        spared = fresh(estimator).set_params(ledger=Book())
        refuses(lambda spared=spared, bad=bad: spared.fit(bad, y[: len(bad)]), "bad input")
        require(not spared.ledger.paid, "bad input must be refused before anything is charged")


def check_model_noise(estimator):
    """A seed reproduces the fit, its absence never does; threads and a refit change nothing; seeds say so."""
    X, y = estimator._test_data(ROWS)
    one, two = fresh(estimator).fit(X, y), fresh(estimator).fit(X, y)
    require(_same(one, two) and _same(one, two.fit(X, y)), "an int random_state must reproduce the fit")
    require(_same(one, fresh(estimator).set_params(n_jobs=2).fit(X, y)), "the fit must not depend on n_jobs")
    require(not _same(one, fresh(estimator, random_state=1).fit(X, y)), "another seed must give another fit")
    secure = fresh(estimator, random_state=None)
    require(not _same(secure.fit(X, y), clone(secure).fit(X, y)), "random_state=None must give new noise each call")
    require(one.privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say whether the noise was seeded")


def check_model_clone_and_pickle(estimator):
    """Clone keeps parameters only; a pickle keeps the fit and refuses another format."""
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    require(not hasattr(clone(est), "coef_"), "clone must forget the fit")
    copied = pickle.loads(pickle.dumps(est))
    require(_same(copied, est) and copied.privacy_ == est.privacy_, "pickle must keep the fit")
    require(np.array_equal(copied.predict_proba(X), est.predict_proba(X)), "a pickled model must predict the same")
    state = {**est.__getstate__(), "_dpestim_format": -1}
    refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


def check_model_predictions(estimator):
    """Probabilities sum to 1, agree with `predict` and their logarithms; no attribute tells about the search."""
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    proba = est.predict_proba(X)
    require(proba.shape == (ROWS, len(est.classes_)), "predict_proba must have one column for each class")
    require(np.allclose(proba.sum(axis=1), 1) and (proba >= 0).all(), "probabilities must sum to 1")
    require((est.classes_[proba.argmax(axis=1)] == est.predict(X)).all(), "predict must be the likeliest class")
    require(np.allclose(np.exp(est.predict_log_proba(X)), proba), "predict_log_proba must be the logarithm")
    require(list(est.classes_) == sorted(set(np.asarray(estimator.classes).tolist())), "classes_ must be the declared")
    for name in ("n_iter_", "loss_", "n_users_"):
        require(not hasattr(est, name), f"{name} depends on the data and must not be published")
    far = est.predict_proba(X * 1e200)
    require(np.isfinite(far).all(), "rows of any length must be predicted")


def check_model_containers(estimator):
    """Lists, memory orders, dtypes, read-only arrays and data frames give the same fit; sparse input is refused."""
    X, y = estimator._test_data(ROWS)
    X = np.round(X * 8) / 8  # exact in every float type
    want = fresh(estimator).fit(X, y)
    dtypes = [(str(np.dtype(t)), X.astype(t)) for t in (np.float32, np.float16)]
    for name, data in (*layouts(X), *dtypes):
        require(_same(fresh(estimator).fit(data, y), want), f"{name} input must give the same fit")
    integers = np.rint(X * 8).astype(int)
    want = fresh(estimator).fit(integers.astype(float), y)
    for dtype in "bhil":
        require(_same(fresh(estimator).fit(integers.astype(dtype), y), want), "integers must be taken as numbers")
    require(_same(fresh(estimator).fit(integers, list(y)), want), "y may be a list")
    from scipy.sparse import csr_array

    refuses(lambda: fresh(estimator).fit(csr_array(X), y), "a sparse matrix", kinds=(TypeError, ValueError))


def check_model_bad_input(estimator):
    """Bad rows, classes and parameters are errors that name the column or parameter and never show a value."""
    X, y = estimator._test_data(ROWS)
    secret = 77.123456
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3] = secret
        bad[3, 2] = value
        message = refuses(lambda bad=bad: fresh(estimator).fit(bad, y), "a value that is not finite")
        require("column 2" in message and "77.1" not in message, "the error must name the column and no value")
        model = fresh(estimator).fit(X, y)
        refuses(lambda bad=bad, model=model: model.predict(bad), "a value that is not finite")
    text = X.astype(object)
    text[3, 1] = "a secret"
    message = refuses(lambda: fresh(estimator).fit(text, y), "text", kinds=(TypeError, ValueError))
    require("secret" not in message, "the error must not show a value")
    other = y.astype(object)
    other[5] = "a secret"
    message = refuses(lambda: fresh(estimator).fit(X, other), "a class that is not declared")
    require("secret" not in message, "the error must not show a class")
    for name, values in {
        "epsilon": (0, -1.0, math.nan, math.inf, "1", True),
        "delta": (-1e-9, 1.0, math.nan, "0", True),
        "data_norm": (0, -1.0, math.nan, math.inf, "1"),
        "classes": ([], [1], [1, 1], "ab", 3),
        "C": (0, -1.0, math.nan, math.inf, "1"),
        "random_state": (-1, "seed", 1.5),
        "n_jobs": (0, "two"),
    }.items():
        if name not in estimator.get_params():
            continue
        for value in values:
            ledger = Book()
            bad = fresh(estimator).set_params(ledger=ledger, **{name: value})
            message = refuses(lambda bad=bad: bad.fit(X, y), f"{name} = {value!r}")
            require(name in message, f"the error about {name} must name it")
            require(not ledger.paid, "a bad parameter must be refused before anything is charged")


def check_model_inferred(estimator):
    """What is not declared is learned with a warning, voids the guarantee, and is an error in strict mode."""
    X, y = estimator._test_data(ROWS)
    for name in ("classes", "data_norm"):
        est = fresh(estimator).set_params(**{name: None})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            est.fit(X, y)
        require(any(name in str(w.message) for w in caught), f"a learned {name} must be warned of")
        require(not est.privacy_.is_finite and name in str(est.privacy_), f"a learned {name} must void the guarantee")
        with config_context(strict=True):
            refuses(lambda est=est: clone(est).fit(X, y), f"a learned {name} in strict mode")


def check_model_is_total_in_strict_mode(estimator):
    """No rows, one row, one class, values that are not finite: strict mode fits them all alike."""
    X, y = estimator._test_data(ROWS)
    odd = X.copy()
    odd[::2] = np.nan
    cases = {"one class": (X, np.repeat(y[:1], ROWS)), "not finite": (odd, y), "constant": (X * 0, y),
             "one row": (X[:1], y[:1]), "no rows": (X[:0], y[:0])}
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, (rows, classes) in cases.items():
            est = fresh(estimator).fit(rows, classes)
            require(np.isfinite(est.coef_).all(), f"strict mode must fit {name}")
            require(list(est.classes_) == sorted(set(est.classes)), f"{name} must not change classes_")
        refuses(lambda: est.score(X, y), "score in strict mode")


def _same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)


MODEL_CHECKS = (
    check_model_budget,
    check_model_noise,
    check_model_clone_and_pickle,
    check_model_predictions,
    check_model_containers,
    check_model_bad_input,
    check_model_inferred,
    check_model_is_total_in_strict_mode,
)
