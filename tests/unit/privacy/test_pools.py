"""Whatever pool fits: what is released inside ``with ledger:`` is paid, and spent is the sum of what was released.

All meta-estimators of scikit-learn, by the names that it lists; made before the block or inside; one job or two;
threads or processes. A part that was fitted there comes back bound.
"""

import contextlib
import copy
import inspect
import multiprocessing
import pickle
import threading
import warnings
from fractions import Fraction

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.multioutput import ClassifierChain
from sklearn.utils import all_estimators

import dpestim.base
from dpestim.accounting import Ledger
from dpestim.exceptions import LedgerError
from dpestim.linear_model import DPLinearRegression
from dpestim.naive_bayes import DPGaussianNB
from dpestim.preprocessing import DPStandardScaler

EPSILON = Fraction(1, 2)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
GRID = {"var_smoothing": [0.0, 0.1]}


class LoggedNB(DPGaussianNB):
    """Writes down each fit that was released, whichever process it is in."""

    def __init__(self, epsilon=1.0, *, bounds=None, classes=None, var_smoothing=1e-9, ledger=None, random_state=None,
                 log=None):
        super().__init__(epsilon, bounds=bounds, classes=classes, var_smoothing=var_smoothing, ledger=ledger,
                         random_state=random_state)
        self.log = log

    def fit(self, X, y):
        super().fit(X, y)
        _log(self)
        return self


class LoggedLine(DPLinearRegression):
    """Writes down each fit that was released."""

    def __init__(self, epsilon=1.0, *, bounds=None, target_bounds=None, ledger=None, random_state=None, log=None):
        super().__init__(epsilon, bounds=bounds, target_bounds=target_bounds, ledger=ledger, random_state=random_state)
        self.log = log

    def fit(self, X, y):
        super().fit(X, y)
        _log(self)
        return self


class LoggedScaler(DPStandardScaler):
    """Writes down each fit that was released."""

    def __init__(self, epsilon=1.0, *, bounds=None, ledger=None, random_state=None, log=None):
        super().__init__(epsilon, bounds=bounds, ledger=ledger, random_state=random_state)
        self.log = log

    def fit(self, X, y=None):
        super().fit(X)
        _log(self)
        return self


def _log(est):
    with open(est.log, "a") as file:
        file.write("x")


def metas(log, n_jobs):
    """Return {name: what makes one of it}: every class that scikit-learn lists and that takes an estimator."""
    bayes = lambda classes=(0, 1, 2): LoggedNB(EPSILON, bounds=(-1, 1), classes=list(classes), log=log)  # noqa: E731
    line = lambda: LoggedLine(EPSILON, bounds=(-1, 1), target_bounds=(0, 2), log=log)  # noqa: E731
    scaler = lambda: LoggedScaler(EPSILON, bounds=(-1, 1), log=log)  # noqa: E731
    jobs = {"n_jobs": n_jobs}
    # (scikit-learn 1.6 has another name)
    chained = "estimator" if "estimator" in inspect.signature(ClassifierChain).parameters else "base_estimator"
    two = np.stack([Y > 0, Y > 1], axis=1).astype(int)
    own = {
        "AdaBoostRegressor": ({"estimator": line(), "n_estimators": 2}, Y),
        "BaggingClassifier": ({"estimator": bayes(), "n_estimators": 3, **jobs}, Y),
        "BaggingRegressor": ({"estimator": line(), "n_estimators": 3, **jobs}, Y),
        "CalibratedClassifierCV": ({"estimator": bayes(), "cv": 2, **jobs}, Y),
        "ClassifierChain": ({chained: bayes((0, 1))}, two),
        "ColumnTransformer": ({"transformers": [("a", scaler(), [0]), ("b", scaler(), [1, 2])], **jobs}, Y),
        "FeatureUnion": ({"transformer_list": [("a", scaler()), ("b", scaler())], **jobs}, Y),
        "FixedThresholdClassifier": ({"estimator": bayes((0, 1))}, two[:, 0]),
        "GridSearchCV": ({"estimator": bayes(), "param_grid": GRID, "cv": 2, **jobs}, Y),
        "HalvingGridSearchCV": ({"estimator": bayes(), "param_grid": GRID, "cv": 2, **jobs}, Y),
        "HalvingRandomSearchCV": ({"estimator": bayes(), "param_distributions": GRID, "n_candidates": 2, "cv": 2,
                                   **jobs}, Y),
        "IterativeImputer": ({"estimator": line(), "max_iter": 1, "fill_value": 0}, Y),
        "MultiOutputClassifier": ({"estimator": bayes((0, 1)), **jobs}, two),
        "MultiOutputRegressor": ({"estimator": line(), **jobs}, two),
        "OneVsOneClassifier": ({"estimator": bayes((0, 1)), **jobs}, Y),
        "OneVsRestClassifier": ({"estimator": bayes((0, 1)), **jobs}, Y),
        "OutputCodeClassifier": ({"estimator": bayes((0, 1)), **jobs, "random_state": 1}, Y),
        "Pipeline": ({"steps": [("scale", scaler()), ("model", bayes())]}, Y),
        "RANSACRegressor": ({"estimator": line(), "max_trials": 2, "min_samples": 30, "residual_threshold": 99}, Y),
        "RFE": ({"estimator": line(), "n_features_to_select": 2}, Y),
        "RFECV": ({"estimator": line(), "cv": 2, "min_features_to_select": 2, **jobs}, Y),
        "RandomizedSearchCV": ({"estimator": bayes(), "param_distributions": GRID, "n_iter": 2, "cv": 2, **jobs}, Y),
        "RegressorChain": ({chained: line()}, two),
        "SelectFromModel": ({"estimator": line()}, Y),
        "SelfTrainingClassifier": ({"estimator": bayes((0, 1)), "max_iter": 1}, np.where(np.arange(60) < 50, two[:, 0],
                                                                                         -1)),
        "SequentialFeatureSelector": ({"estimator": bayes(), "n_features_to_select": 1, "cv": 2, **jobs}, Y),
        "StackingClassifier": ({"estimators": [("a", bayes()), ("b", bayes())], "cv": 2, **jobs}, Y),
        "StackingRegressor": ({"estimators": [("a", line()), ("b", line())], "cv": 2, **jobs}, Y),
        "TransformedTargetRegressor": ({"regressor": line(), "check_inverse": False}, Y),
        "TunedThresholdClassifierCV": ({"estimator": bayes((0, 1)), "cv": 2, **jobs}, two[:, 0]),
        "VotingClassifier": ({"estimators": [("a", bayes()), ("b", bayes())], **jobs}, Y),
        "VotingRegressor": ({"estimators": [("a", line()), ("b", line())], **jobs}, Y),
    }
    return own


#: What takes an estimator and fits none, or none of ours: reasons.
LEFT_OUT = {
    "AdaBoostClassifier": "it asks for sample_weight, which no private model takes",
    "FrozenEstimator": "it takes one that is fitted",
    "SparseCoder": "its dictionary is no estimator",
}
CLASSES = dict(all_estimators())


def takes_an_estimator(cls):
    names = cls._get_param_names() if hasattr(cls, "_get_param_names") else ()
    return bool({"estimator", "estimators", "transformers", "transformer_list", "steps", "regressor"} & set(names))


def test_the_table_is_complete():
    known = set(metas("", 1)) | set(LEFT_OUT)
    listed = {name for name, cls in CLASSES.items() if takes_an_estimator(cls)}
    assert listed <= known, listed - known


def count(path):
    return len(path.read_text()) if path.exists() else 0


def used(name, own, when, ledger, path):
    """Fit a meta-estimator in a block, and require that all that was released was paid, or nothing was released."""
    params, y = own
    cls, before, spent = CLASSES[name], count(path), ledger.spent().epsilon
    rows = X.copy()
    if name == "IterativeImputer":
        rows[::7, 0] = np.nan
    meta = cls(**params) if when == "before" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ledger:
            meta = cls(**params) if meta is None else meta
            # (refused, or what scikit-learn raises where private predictions are all alike)
            with contextlib.suppress(LedgerError, ValueError):
                meta.fit(rows, y)
    released = count(path) - before
    assert ledger.spent().epsilon - spent == released * EPSILON, (name, when, released)
    return meta, released


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_what_meta_estimators_release_is_paid(backend, tmp_path):
    path, ledger = tmp_path / "log", Ledger(float("inf"), durability="fast")
    jobs = 1 if backend == "sequential" else 2
    for when in ("before", "inside"):
        for name, own in metas(str(path), jobs).items():
            # (what has no n_jobs is the same with any backend; a template is fitted by workers only once a setting)
            if name not in CLASSES or (backend != "sequential" and "n_jobs" not in own[0]):
                continue
            if backend == "loky" and when == "inside" and not name.startswith("Bagging"):
                continue
            with joblib.parallel_backend(backend, n_jobs=jobs):
                meta, _ = used(name, own, when, ledger, path)
            if name == "BaggingClassifier" and hasattr(meta, "estimators_"):  # a part comes back bound
                spent = ledger.spent().epsilon
                meta.estimators_[0].fit(X, Y)
                assert ledger.spent().epsilon == spent + EPSILON
    assert count(path) > 10


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_method_that_a_pool_calls_is_paid_or_refused(backend, tmp_path):
    path, ledger = tmp_path / "log", Ledger(float("inf"), durability="fast")
    model = LoggedNB(EPSILON, bounds=(-1, 1), classes=[0, 1, 2], log=str(path))
    with ledger, joblib.parallel_backend(backend, n_jobs=2):
        try:
            joblib.Parallel()(joblib.delayed(model.fit)(X, Y) for _ in range(3))
        except LedgerError:
            assert backend == "threading"  # (nothing is pickled, and the thread sees no block)
    assert ledger.spent().epsilon == count(path) * EPSILON


def test_a_pool_that_was_forked_before_the_block_is_paid(tmp_path):
    path, ledger = tmp_path / "log", Ledger(float("inf"), durability="fast")
    model = LoggedNB(EPSILON, bounds=(-1, 1), classes=[0, 1, 2], log=str(path))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with ledger:
            fitted = pool.apply_async(model.fit, (X, Y)).get(60)
        assert ledger.spent().epsilon == count(path) * EPSILON == EPSILON
        fitted.fit(X, Y)  # after the block, too: what came back is bound
        assert ledger.spent().epsilon == 2 * EPSILON


def elsewhere(function):
    """Return what a function returns, or raises, in a thread that sees no block: as the feeder of a pool."""
    out = []

    def run():
        try:
            out.append(function())
        except Exception as error:
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return out[0]


@pytest.mark.parametrize("leave", [lambda m: pickle.loads(pickle.dumps(m)), clone, copy.copy, copy.deepcopy,
                                   lambda m: pickle.loads(pickle.dumps({"nested": [m]}))["nested"][0]])
def test_what_leaves_is_bound_or_refused(leave):
    """Wherever it is pickled, cloned or copied while a block is open; of several ledgers none is guessed."""
    model, first, second = DPGaussianNB(EPSILON, bounds=(-1, 1), classes=[0, 1, 2]), Ledger(10), Ledger(10)
    with first:
        assert elsewhere(lambda: leave(model))._bound[0] is not None
        twin = elsewhere(lambda: leave(model))
        with second:
            assert isinstance(elsewhere(lambda: leave(model)), LedgerError)
            own = clone(model).set_params(ledger=first)
            assert not isinstance(elsewhere(lambda: leave(own)), LedgerError)
    twin.fit(X, Y)
    assert first.spent().epsilon == EPSILON
    assert second.spent().epsilon == 0
    assert leave(model)._bound[0] is None


def verbs():
    """Yield every estimator that summarises, merges and releases."""
    for name, cls in dpestim.base.all_estimators():
        if hasattr(cls, "summarize") and hasattr(cls, "release"):
            for k, params in enumerate(cls._test_params()):
                if name != "linear_model.DPTukeyRegression" and not _finds_bounds(params):
                    yield pytest.param(cls, params, id=f"{name}-{k}")
                    break


def _finds_bounds(params):
    return isinstance(params.get("bounds"), str) or params.get("edges_fraction")


@pytest.mark.parametrize(("cls", "params"), list(verbs()))
@pytest.mark.parametrize("verb", ["summarize", "merge"])
def test_a_release_after_the_block_is_charged_where_its_first_verb_was_inside(cls, params, verb):
    est = cls(**params)
    relation = params.get("neighbours", "substitution")
    ledger = Ledger(10**6, delta=0.99, neighbours=relation, durability="fast")
    data = [own for own in est._test_data(40) if own is not None]
    summary = None
    if verb == "merge":
        if not hasattr(est, "merge"):  # (those of mechanisms on rows are summaries' own)
            return
        other = clone(est)
        other.summarize(*data)
    with ledger:
        summary = est.summarize(*data) if verb == "summarize" else est.merge(other)
    est.release(summary) if summary is not est else est.release()
    assert ledger.spent().epsilon > 0
