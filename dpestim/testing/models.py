"""The behaviour of a private model: budget, strictness, reproducibility, containers and bad input.

For every `CentralModel` (`_test_params`, `_test_data`, `_declared`, `_learned`), be it a classifier, a regressor or a
transformer. What a guarantee promises is proven and tested beside each model; these checks are about everything around.
"""

import copy
import math
import pickle
import warnings

import numpy as np
from sklearn.base import clone, is_classifier

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.behaviour import Subject, check_parameters_are_refused
from dpestim.testing.tools import Book, differs_each_time, fresh, layouts, refuses, require

ROWS = 60


class Model(Subject):
    """A model of the central model, for the checks of behaviour."""

    wrong = {
        "delta": (-1e-9, 1.0, math.nan, "0", True),
        "data_norm": (0, -1.0, math.nan, math.inf, "1"),
        "classes": ([], [1], [1, 1], "ab", 3),
        "bounds": ((1, 0), (0, math.nan), "public", 3),
        "categories": ([], "public", [[]], [[1, 1]], 3),
        "C": (0, -1.0, math.nan, math.inf, "1"),
    }

    def takes(self, name):
        """Tell whether a setting makes something of a parameter."""
        known = self.estimator.get_params()
        return known.get(name) is not None or (name in known and name in ("delta", "random_state", "n_jobs"))

    def use(self, est):
        """Fit."""
        est.fit(*self.estimator._test_data(ROWS))


def check_model_budget(estimator):
    """One fit is one charge of exactly epsilon and delta, before anything is drawn; prediction is free."""
    X, y = estimator._test_data(ROWS)
    ledger = Book()
    est = fresh(estimator).set_params(ledger=ledger).fit(X, y)
    require(len(ledger.paid) == 1, "a fit must charge once")
    guarantee, _, n_rows, _ = ledger.paid[0]
    require(guarantee.epsilon == canonical_epsilon(estimator.epsilon), "the charge must be the canonical epsilon")
    delta = float(getattr(estimator, "delta", 0) or 0)
    require(float(guarantee.delta) <= delta, "the charge must not exceed the declared delta")
    public = None if guarantee.neighbours is Neighbours.ADD_REMOVE else ROWS  # (there their number is private)
    require(n_rows == public, "the charge must say how many rows were used, where that is public")
    require(guarantee == est.privacy_, "privacy_ must be what was charged")
    for answer in _answers(est).values():
        answer(X)
    require(len(ledger.paid) == 1, "predictions and transform must not charge")
    refused = fresh(estimator).set_params(ledger=Book(refuse=True))
    refuses(lambda: refused.fit(X, y), "an overdraft")
    require(not _has_learned(refused), "a refused fit must leave nothing behind")
    for bad in (X[:, 0], X[:0]):
        spared = fresh(estimator).set_params(ledger=Book())
        refuses(lambda spared=spared, bad=bad: spared.fit(bad, y if y is None else y[: len(bad)]), "bad input")
        require(not spared.ledger.paid, "bad input must be refused before anything is charged")


def check_model_noise(estimator):
    """A seed reproduces the fit, its absence never does; threads and a refit change nothing; seeds say so."""
    X, y = estimator._test_data(ROWS)
    one, two = fresh(estimator).fit(X, y), fresh(estimator).fit(X, y)
    require(_same(one, two) and _same(one, two.fit(X, y)), "an int random_state must reproduce the fit")
    if "n_jobs" in estimator.get_params():
        require(_same(one, fresh(estimator).set_params(n_jobs=2).fit(X, y)), "the fit must not depend on n_jobs")
    require(not _same(one, fresh(estimator, random_state=1).fit(X, y)), "another seed must give another fit")
    secure = fresh(estimator, random_state=None)
    new = differs_each_time(lambda: copy.copy(secure.fit(X, y)), _same)
    require(new, "random_state=None must give new noise each call")
    require(one.privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say whether the noise was seeded")


def check_model_clone_and_pickle(estimator):
    """Clone keeps parameters only; a pickle keeps the fit and refuses another format."""
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    require(not _has_learned(clone(est)), "clone must forget the fit")
    copied = pickle.loads(pickle.dumps(est))
    require(_same(copied, est) and copied.privacy_ == est.privacy_, "pickle must keep the fit")
    for name, answer in _answers(est).items():
        same = np.array_equal(_dense(_answers(copied)[name](X)), _dense(answer(X)))
        require(same, f"a pickled model must {name} the same")
    state = {**est.__getstate__(), "_dpestim_format": -1}
    refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


def check_model_predictions(estimator):
    """Answers have their shape and are finite for any row; no attribute tells about the search.

    Probabilities sum to 1, and agree with `predict` and their logarithms.
    """
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    answers = _answers(est)
    require(bool(answers), "a model must predict, transform or tell distances")
    for name, answer in answers.items():
        require(len(answer(X)) == ROWS, f"{name} must answer for each row")
        if name != "predict" or not is_classifier(est):
            with np.errstate(over="ignore"):
                found = np.asarray(answer(X * 1e200))
                require(np.isfinite(found).all() or np.array_equal(found, X * 1e200),  # (or rows, as they were)
                        f"{name}: rows of any length must have a finite answer")
    if is_classifier(est):
        require(list(est.classes_) == sorted(set(np.asarray(estimator.classes).tolist())),
                "classes_ must be the declared")
    if hasattr(est, "predict_proba"):
        proba = est.predict_proba(X)
        require(proba.shape == (ROWS, len(est.classes_)), "predict_proba must have one column for each class")
        require(np.allclose(proba.sum(axis=1), 1) and (proba >= 0).all(), "probabilities must sum to 1")
        require((est.classes_[proba.argmax(axis=1)] == est.predict(X)).all(), "predict must be the likeliest class")
        require(np.allclose(np.exp(est.predict_log_proba(X)), proba), "predict_log_proba must be the logarithm")
    for name in ("n_iter_", "loss_", "n_users_", "n_samples_seen_"):
        require(not hasattr(est, name), f"{name} depends on the data and must not be published")


def check_model_rows_stand_alone(estimator):
    """What `transform` makes of a row is the same, bit by bit, whatever the other rows are, and how many.

    Private steps may follow, whose sensitivity is that of one row.
    """
    X, y = estimator._test_data(ROWS)
    est = fresh(estimator).fit(X, y)
    if not hasattr(est, "transform"):
        return
    many = np.concatenate([X] * 36)  # (more than a block, and more than one size of kernels)
    whole = _dense(est.transform(many))
    for name, some in (("all but the first", np.arange(1, len(many))), ("backwards", np.arange(len(many))[::-1]),
                       ("half of them", np.arange(0, len(many), 2)), ("two", np.arange(2)), ("one", np.arange(1))):
        require(np.array_equal(_dense(est.transform(many[some])), whole[some], equal_nan=whole.dtype.kind == "f"),
                f"rows must be transformed alike whatever the others are: {name}")


def _dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def check_model_containers(estimator):
    """Lists, memory orders, dtypes, read-only arrays and data frames give the same fit.

    Sparse rows do, but for rounding, where the model's tags say that it takes them, and are refused elsewhere.
    """
    X, y = estimator._test_data(ROWS)
    X = np.round(X * 8) / 8  # exact in every float type
    want = fresh(estimator).fit(X, y)
    dtypes = [(str(np.dtype(t)), X.astype(t)) for t in (np.float32, np.float16)]
    for name, data in (*layouts(X), *dtypes):
        require(_same(fresh(estimator).fit(data, y), want), f"{name} input must give the same fit")
    integers = np.rint(X * (1 if _categories(estimator) else 8)).astype(int)
    want = fresh(estimator).fit(integers.astype(float), y)
    for dtype in "bl":
        require(_same(fresh(estimator).fit(integers.astype(dtype), y), want), "integers must be taken as numbers")
    require(_same(fresh(estimator).fit(integers, y if y is None else list(y)), want), "y may be a list")
    from scipy.sparse import coo_array, csc_matrix, csr_array

    if not estimator.__sklearn_tags__().input_tags.sparse:
        refuses(lambda: fresh(estimator).fit(csr_array(X), y), "a sparse matrix", kinds=(TypeError, ValueError))
        return
    X[::2, 0] = X[1::3, 2] = 0.0
    want = fresh(estimator).fit(X, y)
    for kind in (csr_array, csc_matrix, coo_array):
        got = fresh(estimator).fit(kind(X), y)
        require(_near(got, want), "sparse rows must give the fit of the same dense ones")
        for name, answer in _answers(want).items():
            if name != "predict" or not is_classifier(want):
                require(np.allclose(answer(kind(X)), answer(X)), f"{name} must be that of the same dense rows")
    twice = csr_array((np.repeat(X, 2, axis=1).ravel() / 2, np.tile(np.repeat(np.arange(X.shape[1]), 2), ROWS),
                       np.arange(ROWS + 1) * 2 * X.shape[1]), X.shape)
    require(_near(fresh(estimator).fit(twice, y), want), "what a sparse row has twice in a column is a sum")
    bad = csr_array(X)
    bad.data[0] = np.inf
    message = refuses(lambda: fresh(estimator).fit(bad, y), "an entry that is not finite")
    require(f"column {bad.indices[0]}" in message, "the error must name the column of a sparse matrix")
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        est = fresh(estimator).fit(bad, y)
        require(_near(est, fresh(estimator).fit(bad.toarray(), y)), "strict mode must read sparse rows as dense ones")
        for answer in _answers(est).values():
            answer(bad)


def check_model_bad_input(estimator):
    """Bad rows, classes and parameters are errors that name the column or parameter and never show a value."""
    X, y = estimator._test_data(ROWS)
    secret = 77.123456
    may_lack = estimator.__sklearn_tags__().input_tags.allow_nan
    for value in () if _categories(estimator) else (np.inf,) if may_lack else (np.nan, np.inf):
        bad = X.copy()
        bad[3] = secret
        bad[3, 2] = value
        message = refuses(lambda bad=bad: fresh(estimator).fit(bad, y), "a value that is not finite")
        require("column 2" in message and "77.1" not in message, "the error must name the column and no value")
        model = fresh(estimator).fit(X, y)
        for answer in _answers(model).values():
            refuses(lambda bad=bad, answer=answer: answer(bad), "a value that is not finite")
    text = X.astype(object)
    text[3, 1] = "a secret"
    if not _categories(estimator):
        message = refuses(lambda: fresh(estimator).fit(text, y), "text", kinds=(TypeError, ValueError))
        require("secret" not in message, "the error must not show a value")
    if y is not None:
        other = y.astype(object)
        other[5] = "a secret"
        message = refuses(lambda: fresh(estimator).fit(X, other), "a target that does not fit")
        require("secret" not in message, "the error must not show a target")
    check_parameters_are_refused(Model(estimator))


def check_model_inferred(estimator):
    """What is not declared is learned with a warning, voids the guarantee, and is an error in strict mode."""
    X, y = estimator._test_data(ROWS)
    for name in estimator._declared:
        est = fresh(estimator).set_params(**{name: None})
        if name not in est._inferred():  # (this setting makes nothing of it)
            continue
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
    targets = np.zeros(ROWS) if y is None else y
    cases = {"one class": (X, np.repeat(targets[:1], ROWS)), "not finite": (odd, y), "constant": (X * 0, y),
             "one row": (X[:1], targets[:1]), "no rows": (X[:0], targets[:0])}
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, (rows, classes) in cases.items():
            est = fresh(estimator).fit(rows, classes)
            # (an error that nobody knows is NaN)
            found = [getattr(est, item) for item in est._learned if item != "standard_errors_"]
            require(all(np.isfinite(values).all() for values in found), f"strict mode must fit {name}")
            if is_classifier(est):
                require(list(est.classes_) == sorted(set(est.classes)), f"{name} must not change classes_")
        if hasattr(est, "score"):
            refuses(lambda: est.score(X, y), "score in strict mode")


def _categories(estimator):
    """Tell whether rows are categories, of which any value may be one, and none is too large or missing."""
    return estimator.__sklearn_tags__().input_tags.categorical


def _answers(est):
    """Return what a fitted model does with rows: its methods, by name."""
    return {name: getattr(est, name) for name in ("predict", "predict_proba", "transform", "mahalanobis")
            if hasattr(est, name)}


def _has_learned(est):
    return any(hasattr(est, name) for name in est._learned)


def _same(a, b):
    pairs = [(getattr(a, name), getattr(b, name)) for name in a._learned]
    return all(np.array_equal(mine, other, equal_nan=np.asarray(mine).dtype.kind == "f") for mine, other in pairs)


def _near(a, b):
    """Tell whether two fits of one seed differ by rounding and the last noise's grid alone."""
    pairs = [(getattr(a, name), getattr(b, name)) for name in a._learned]
    return all(np.allclose(mine, other, rtol=1e-3, atol=1e-3 * np.abs(other).max()) for mine, other in pairs)


MODEL_CHECKS = (
    check_model_budget,
    check_model_noise,
    check_model_clone_and_pickle,
    check_model_predictions,
    check_model_rows_stand_alone,
    check_model_containers,
    check_model_bad_input,
    check_model_inferred,
    check_model_is_total_in_strict_mode,
)
