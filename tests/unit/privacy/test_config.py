"""Strict mode as a switch: where it is seen, and what takes it along."""

import pickle
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import dpestim
from dpestim.local import GRRFrequencyEstimator

X = np.array([[0], [1], [1], [0]])
BAD = np.array([[0], [1], [7], [0]])


def grr(**params):
    return GRRFrequencyEstimator(1.0, **{"categories": [[0, 1]], **params})


def is_strict(est):
    try:
        est.fit(BAD)
    except ValueError:
        return False
    return True


def test_blocks_nest_and_end():
    assert dpestim.get_config() == {"strict": False, "neighbours": "ledger"}
    with dpestim.config_context(strict=True):
        assert dpestim.get_config()["strict"]
        with dpestim.config_context(strict=False):
            assert not dpestim.get_config()["strict"]
        assert dpestim.get_config()["strict"]
        with pytest.raises(KeyError, match="x"), dpestim.config_context(strict=True):
            raise KeyError("x")
    assert not dpestim.get_config()["strict"]


def test_blocks_left_out_of_order_stay_closed_or_open():
    def holds(strict):
        with dpestim.config_context(strict=strict):
            yield

    with dpestim.config_context(strict=True):
        generator = holds(False)
        next(generator)
        with dpestim.config_context(strict=True):
            generator.close()
            assert dpestim.get_config()["strict"]
        assert dpestim.get_config()["strict"]
    assert not dpestim.get_config()["strict"]


def test_the_default_of_the_process():
    dpestim.set_config(strict=True)
    try:
        assert is_strict(grr())
        with dpestim.config_context(strict=False):
            assert not is_strict(grr())
    finally:
        dpestim.set_config(strict=False)
    assert not is_strict(grr())
    for bad in (1, "yes"):
        with pytest.raises(ValueError, match="strict"):
            dpestim.set_config(strict=bad)
        with pytest.raises(ValueError, match="strict"), dpestim.config_context(strict=bad):
            pass


def test_clones_and_pickles_stay_strict():
    with dpestim.config_context(strict=True):
        twin, packed = clone(grr()), pickle.dumps(grr())
    for est in (twin, clone(twin), pickle.loads(packed), clone(pickle.loads(packed)), pickle.loads(pickle.dumps(twin))):
        assert is_strict(est)
    assert not is_strict(grr())


def test_a_thread_that_cannot_see_the_block_is_strict_too():
    seen = []
    with dpestim.config_context(strict=True):
        thread = threading.Thread(target=lambda: seen.append(is_strict(grr())))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_workers_are_strict(backend):
    with dpestim.config_context(strict=True), joblib.parallel_backend(backend, n_jobs=2):
        scores = cross_val_score(grr(), X, cv=2, scoring=_strict_score, n_jobs=2, error_score="raise")
    assert scores.tolist() == [1.0, 1.0]


def _strict_score(est, data, y=None):
    return float(is_strict(est))


def test_what_strict_mode_refuses():
    fitted = grr().fit(X)
    for refused, why in (
        (lambda: grr(categories="auto").fit(X), "strict mode: declare categories"),
        (lambda: fitted.score(X), "strict mode: score"),
        (lambda: grr().fit(X.tolist()), "strict mode: X must be an array"),
        (lambda: grr().set_params(epsilon=-1).fit(X), "epsilon"),
        (lambda: grr().fit(np.hstack([X, X])), "one entry for each"),
    ):
        with dpestim.config_context(strict=True), pytest.raises(ValueError, match=why):
            refused()


def test_what_is_outside_counts_as_the_first_category():
    many = np.where(np.arange(20_000)[:, None] % 2, 1, 7)
    with dpestim.config_context(strict=True):
        est = GRRFrequencyEstimator(5.0, categories=[[0, 1]], random_state=0).fit(many)
    np.testing.assert_allclose(est.frequencies_[0], [0.5, 0.5], atol=0.02)
