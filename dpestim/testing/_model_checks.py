"""The behaviour of a private model: budget, strictness, reproducibility, containers and bad input.

For classifiers with declared classes and a declared norm (`predict_proba`, `_test_params`, `_test_data`). What a
guarantee promises is proven and tested beside each model; these checks are about everything around it.
"""

import importlib.util
import math
import pickle
import warnings

import numpy as np
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing._tools import fresh, require

ROWS = 60


class _Recorder:
    """A ledger that only writes down, or refuses."""

    def __init__(self, refuse=False):
        self.entries, self.refuse = [], refuse

    def charge(self, guarantee, **details):
        if self.refuse:
            raise RuntimeError("the budget is spent")
        self.entries.append((guarantee, details))


def check_model_budget(estimator):
    """One fit is one charge of exactly epsilon and delta, before anything is drawn; prediction is free."""
    X, y = estimator._test_data(ROWS)
    ledger = _Recorder()
    est = fresh(estimator).set_params(ledger=ledger).fit(X, y)
    require(len(ledger.entries) == 1, "a fit must charge once")
    guarantee, details = ledger.entries[0]
    require(guarantee.epsilon == canonical_epsilon(estimator.epsilon), "the charge must be the canonical epsilon")
    require(float(guarantee.delta) <= float(estimator.delta), "the charge must not exceed the declared delta")
    require(details["n_rows"] == ROWS, "the charge must say how many rows were used")
    require(guarantee == est.privacy_, "privacy_ must be what was charged")
    est.predict(X)
    est.predict_proba(X)
    require(len(ledger.entries) == 1, "prediction must not charge")
    refused = fresh(estimator).set_params(ledger=_Recorder(refuse=True))
    _refuses(lambda: refused.fit(X, y), "an overdraft", kinds=RuntimeError)
    require(not hasattr(refused, "coef_"), "a refused fit must leave nothing behind")
    for bad in (X[:, 0], X[:0]):
        spared = fresh(estimator).set_params(ledger=_Recorder())
        _refuses(lambda spared=spared, bad=bad: spared.fit(bad, y[: len(bad)]), "bad input")
        require(not spared.ledger.entries, "bad input must be refused before anything is charged")


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
    _refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


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
    frozen = X.copy()
    frozen.flags.writeable = False
    same = {"list": X.tolist(), "Fortran order": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2],
            "read-only": frozen, "float32": X.astype(np.float32), "float16": X.astype(np.float16)}
    names = [f"c{j}" for j in range(X.shape[1])]
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        same["pandas"] = pd.DataFrame(X, columns=names)
    if importlib.util.find_spec("polars"):
        import polars as pl

        same["polars"] = pl.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    for name, data in same.items():
        require(_same(fresh(estimator).fit(data, y), want), f"{name} input must give the same fit")
    integers = np.rint(X * 8).astype(int)
    want = fresh(estimator).fit(integers.astype(float), y)
    for dtype in "bhil":
        require(_same(fresh(estimator).fit(integers.astype(dtype), y), want), "integers must be taken as numbers")
    require(_same(fresh(estimator).fit(integers, list(y)), want), "y may be a list")
    from scipy.sparse import csr_array

    _refuses(lambda: fresh(estimator).fit(csr_array(X), y), "a sparse matrix", kinds=(TypeError, ValueError))


def check_model_bad_input(estimator):
    """Bad rows, classes and parameters are errors that name the column or parameter and never show a value."""
    X, y = estimator._test_data(ROWS)
    secret = 77.123456
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3] = secret
        bad[3, 2] = value
        message = _refuses(lambda bad=bad: fresh(estimator).fit(bad, y), "a value that is not finite")
        require("column 2" in message and "77.1" not in message, "the error must name the column and no value")
        model = fresh(estimator).fit(X, y)
        _refuses(lambda bad=bad, model=model: model.predict(bad), "a value that is not finite")
    text = X.astype(object)
    text[3, 1] = "a secret"
    message = _refuses(lambda: fresh(estimator).fit(text, y), "text", kinds=(TypeError, ValueError))
    require("secret" not in message, "the error must not show a value")
    other = y.astype(object)
    other[5] = "a secret"
    message = _refuses(lambda: fresh(estimator).fit(X, other), "a class that is not declared")
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
            ledger = _Recorder()
            bad = fresh(estimator).set_params(ledger=ledger, **{name: value})
            message = _refuses(lambda bad=bad: bad.fit(X, y), f"{name} = {value!r}")
            require(name in message, f"the error about {name} must name it")
            require(not ledger.entries, "a bad parameter must be refused before anything is charged")


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
            _refuses(lambda est=est: clone(est).fit(X, y), f"a learned {name} in strict mode")


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
        _refuses(lambda: est.score(X, y), "score in strict mode")


def _same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)


def _refuses(action, what, kinds=ValueError):
    """Require that an action raises; return the message."""
    try:
        action()
    except kinds as error:
        return str(error)
    require(False, f"{what} must be refused")


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
