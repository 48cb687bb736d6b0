"""`verbose`: lines of public numbers and seconds, alike for all that has it; the same for neighbours."""

import inspect
import re
import sys
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpestim import config_context, show_progress
from dpestim.accounting import Ledger
from dpestim.audit import audit
from dpestim.base import all_estimators
from dpestim.docstrings.glossary import GLOSSARY
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.model_selection import PrivateSearchCV
from dpestim.progress import Progress
from dpestim.tree import DPDecisionTreeClassifier

LINE = re.compile(r"\[(\w+)\] ((round|step|table) \d+ of (at most )?\d+|[a-z ]+), \d+\.\d s")
MODELS = {cls.__name__: cls for _, cls in all_estimators() if "verbose" in inspect.signature(cls).parameters}
SLOW = {"DPGradientBoostingClassifier", "DPGradientBoostingRegressor", "DPFederatedLinearModel", "LDPSGDClassifier",
        "LDPSGDRegressor", "MarginalSynthesizer", "MultiplicativeWeights"}


def table(name, n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    y = X[:, 0] + 0.2 * rng.standard_normal(n)
    return X, (y if name.endswith("Regressor") else y > 0)


def model(name, **more):
    domain = {"bounds": (-1.0, 1.0), "data_norm": 2.0, "classes": [False, True], "target_bounds": (-2.0, 2.0),
              "delta": 1e-5, "bins": 4, "random_state": 0}
    known = inspect.signature(MODELS[name]).parameters
    return MODELS[name](**{k: v for k, v in {**domain, **more}.items() if k in known})


def lines_of(capsys, name, X, y, **more):
    model(name, **more).fit(X, y)
    return capsys.readouterr().out.splitlines()


def untimed(lines):
    return [re.sub(r", \d+\.\d s$", "", line) for line in lines]


def test_what_may_take_long_has_lines_and_says_so_alike():
    # fits of over two seconds at 1e5 or 1e6 rows and 20 to 50 columns, as measured on one core
    assert set(MODELS) == SLOW
    for cls in MODELS.values():
        assert GLOSSARY["verbose"].splitlines()[1] in cls.__doc__
        parameter = inspect.signature(cls).parameters["verbose"]
        assert (parameter.default, list(inspect.signature(cls).parameters)[-1]) == (0, "verbose")


@pytest.mark.parametrize("name", sorted(SLOW))
def test_lines_are_public_numbers_that_neighbours_share_and_change_nothing(name, capsys):
    X, y = table(name)
    silent = model(name).fit(X, y)
    assert not capsys.readouterr().out
    one = lines_of(capsys, name, X, y, verbose=1)
    assert one
    assert {LINE.fullmatch(line)[1] for line in one} == {name}
    assert len(one) <= 25  # (two parts of about ten lines, and what begins and ends them)
    every = lines_of(capsys, name, X, y, verbose=2)
    assert set(untimed(one)) <= set(untimed(every))
    with config_context(strict=True):
        assert untimed(lines_of(capsys, name, X, y, verbose=1)) == untimed(one)
    learned = [v for v in vars(silent) if v.endswith("_") and isinstance(getattr(silent, v), np.ndarray)]
    loud = model(name, verbose=2).fit(X, y)
    for v in learned:
        np.testing.assert_array_equal(getattr(silent, v), getattr(loud, v))
    capsys.readouterr()


@pytest.mark.parametrize("name", sorted(SLOW - {"MarginalSynthesizer", "DPGradientBoostingClassifier",
                                                "DPGradientBoostingRegressor"}))
def test_all_rows_may_differ_where_rounds_are_public(name, capsys):
    # (how many rounds the others have, or skip, follows from noisy answers)
    X, y = table(name)
    lines = lines_of(capsys, name, X, y, verbose=2)
    assert untimed(lines_of(capsys, name, np.zeros_like(X), np.zeros_like(y), verbose=2)) == untimed(lines)


@pytest.mark.parametrize("name", sorted(SLOW))
@pytest.mark.parametrize("verbose", [-1, 1.5, "1", None])
def test_other_levels_are_refused_before_the_charge(name, verbose):
    ledger = Ledger(100.0, delta=0.1)
    with pytest.raises(ValueError, match="verbose must be 0"):
        model(name, verbose=verbose, ledger=ledger).fit(*table(name))
    assert not ledger.entries()


def test_about_ten_lines_on_any_number_of_rounds(capsys):
    for total in (1, 2, 10, 11, 37, 100, 1000):
        for pace in (1, 2, 3):
            said = {}
            for verbose in (0, 1, 2, True):
                progress = Progress(DPGradientBoostingClassifier(verbose=verbose), total)
                for k in range(0, total, pace):
                    progress.done(min(k + pace, total))
                said[verbose] = capsys.readouterr().out.splitlines()
            assert not said[0]
            assert len(said[2]) == -(-total // pace)
            assert min(len(said[2]), 9) <= len(said[1]) <= 10
            assert f"round {total} of {total}" in said[1][-1]


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_lines_of_workers_are_whole(backend, capfd):
    name = "DPGradientBoostingRegressor"
    X, y = table(name, 100)
    Parallel(n_jobs=2, backend=backend)(delayed(model(name, verbose=2).fit)(X, y) for _ in range(6))
    said = capfd.readouterr()
    assert not said.err
    assert len(said.out.splitlines()) >= 6
    assert all(LINE.fullmatch(line) for line in said.out.splitlines())


def test_a_closed_output_ends_no_fit_that_was_paid(monkeypatch):
    class Closed:
        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise ValueError

    X, y = table("Classifier")
    for out in (None, Closed()):
        monkeypatch.setattr(sys, "stdout", out)
        model("DPGradientBoostingClassifier", verbose=2).fit(X, y)


# ---------------------------------------------------------------- searches: how many runs there are is secret


def loud_search(selection, seed, verbose=1):
    steps = make_pipeline(Normalizer(), DPDecisionTreeClassifier(bounds=(-1, 1), classes=[False, True]), verbose=True)
    return PrivateSearchCV(steps, {"dpdecisiontreeclassifier__max_depth": [1, 2]}, selection=selection,
                           random_state=seed, verbose=verbose)


@pytest.mark.parametrize("selection", ["papernot_steinke", "liu_talwar"])
def test_no_line_of_a_search_depends_on_how_many_runs_there_were(selection, capsys):
    X, y = table("Classifier", 100)
    wanted = ["[PrivateSearchCV] 2 candidates have read the rows", "[PrivateSearchCV] the search is over"]
    for seed in range(3):  # (of which the numbers of runs differ)
        loud_search(selection, seed).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        assert untimed(lines) == wanted
        assert not lines[-1].endswith(" s")  # how long the runs took is secret, too


def test_a_search_of_each_candidate_counts_them_and_models_are_silent(capsys):
    X, y = table("Classifier", 100)
    loud_search("exponential", 0).fit(X, y)
    assert untimed(capsys.readouterr().out.splitlines()) == [f"[PrivateSearchCV] {line}" for line in (
        "2 candidates have read the rows", "candidate 1 of 2", "candidate 2 of 2", "the search is over")]
    loud_search("exponential", 0, verbose=0).fit(X, y)
    boosting = model("DPGradientBoostingClassifier", verbose=2, delta=0.0, random_state=None)
    PrivateSearchCV(boosting, {"verbose": [1, 2], "n_bins": [8]}).fit(X, y)
    assert not capsys.readouterr().out
    with pytest.raises(ValueError, match="verbose must be 0"):
        loud_search("exponential", 0, verbose=-1).fit(X, y)


# ---------------------------------------------------------------- show_progress: a function is told the same

#: Estimators without a parameter `verbose` that tell, by name: what makes them take several steps.
TELLING = {
    "DPKMeans": {"n_iter": 3},
    "DPPCA": {"method": "power", "delta": 1e-6, "n_components": 1, "data_norm": 1.0},
    "DPItemSimilarity": {},
    "DPMatrixFactorization": {},
    "ItemsetEstimator": {},
    "LDPMatrixFactorization": {},
    "NodeSubgraphCount": {},
    "PrivKVMEstimator": {},
}


def telling(name):
    cls = dict((key.rpartition(".")[2], cls) for key, cls in all_estimators())[name]
    known = {**cls._test_params()[0], **TELLING[name], "random_state": 0}
    return cls(**{k: v for k, v in known.items() if k in inspect.signature(cls).parameters})


def told(est, X, y=None):
    steps = []
    with show_progress(steps.append):
        est.fit(X, y)
    return [step._replace(seconds=None) for step in steps]


def neighbour(X):
    """Return a table in which the first row is another one's."""
    return [X[-1], *X[1:]] if isinstance(X, list) else X[np.r_[X.shape[0] - 1, 1:X.shape[0]]]


@pytest.mark.parametrize("name", TELLING)
def test_a_callback_is_told_of_each_step_the_same_for_neighbours(name, capsys):
    est = telling(name)
    X, y = est._test_data(60)
    steps = told(est, X, y)
    assert {step.name for step in steps} == {name}
    assert [step.done for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].done == steps[-1].total
    assert not capsys.readouterr().out
    with config_context(strict=True):
        assert told(telling(name), X, y) == steps
        if name != "NodeSubgraphCount":  # (a graph has no rows of its own: below)
            assert told(telling(name), neighbour(X), y) == steps
        else:
            assert told(telling(name), np.zeros_like(X)) == steps
    with show_progress():
        telling(name).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert {re.sub(r", \d+\.\d s$", "", line) for line in lines} <= set(map(str, steps))


def test_the_parameter_and_the_block_tell_alike(capsys):
    X, y = table("Classifier")
    name, steps = "DPFederatedLinearModel", []
    wanted = untimed(lines_of(capsys, name, X, y, verbose=2))
    with show_progress(steps.append, verbose=2):
        assert untimed(lines_of(capsys, name, X, y)) == wanted == untimed(map(str, steps))
    assert all(step.seconds >= 0 for step in steps)
    with show_progress(steps.append, verbose=0):
        assert untimed(lines_of(capsys, name, X, y, verbose=2)) == wanted  # (an estimator keeps to its own)
    assert not lines_of(capsys, name, X, y)


@pytest.mark.parametrize("selection", ["papernot_steinke", "liu_talwar"])
def test_a_callback_does_not_learn_how_many_runs_a_search_had(selection):
    X, y = table("Classifier", 100)
    boosting = model("DPGradientBoostingClassifier", delta=0.0, random_state=None)  # (which tells of its rounds)
    for seed in range(2):
        steps = []
        search = PrivateSearchCV(boosting, {"n_bins": [4, 8]}, selection=selection, random_state=seed)
        with show_progress(steps.append):
            search.fit(X, y)
        assert [step.what for step in steps] == ["2 candidates have read the rows", "the search is over"]
        assert steps[-1].seconds is None


def test_a_callback_that_fails_ends_no_fit_that_was_paid_and_is_named():
    def broken(step):
        calls.append(step)
        raise OSError("the network is down")

    calls, est = [], telling("DPKMeans")
    X, _ = est._test_data(60)
    with show_progress(broken), pytest.warns(RuntimeWarning, match="callback of show_progress raised OSError"):
        est.fit(X)
    assert len(calls) == 1
    np.testing.assert_array_equal(est.cluster_centers_, telling("DPKMeans").fit(X).cluster_centers_)
    for wrong in ({"callback": 1}, {"verbose": -1}, {"verbose": "1"}, {"verbose": 1.5}):
        with pytest.raises(ValueError, match=r"(callback|verbose) must be"), show_progress(**wrong):
            pass


def test_where_warnings_are_errors_a_callback_that_fails_still_ends_no_fit():
    def broken(step):
        raise OSError("the network is down")

    est = telling("DPKMeans")
    X, _ = est._test_data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="callback of show_progress raised OSError"), show_progress(broken):
            est.fit(X)
    np.testing.assert_array_equal(est.cluster_centers_, telling("DPKMeans").fit(X).cluster_centers_)


def test_a_fit_in_a_callback_tells_the_callback_nothing():
    def fits(step):
        calls.append(step)
        if len(calls) < 50:
            telling("DPKMeans").fit(X)

    calls, est = [], telling("DPKMeans")
    X, _ = est._test_data(60)
    with show_progress(fits):
        est.fit(X)
    assert [step.done for step in calls] == list(range(1, calls[-1].total + 1))


def test_audits_and_proofs_tell_of_themselves_and_not_of_the_fits_in_them(capsys):
    steps = []
    with show_progress(steps.append):
        audit(telling("DPKMeans"), claim=1.0, n_samples=32, random_state=0)
    assert {step.name for step in steps} == {"audit"}
    pilots = [step for step in steps if step.done is not None]
    assert pilots[-1].done == pilots[-1].total
    assert steps[-1].what.endswith("is over")
    assert not capsys.readouterr().out
