"""One record that goes straight to the kernels: what it sends, refuses, pays and asks is what several rows do."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpestim
from dpestim import rng
from dpestim.accounting import Ledger
from dpestim.local import (
    DuchiTransformer,
    GRRFrequencyEstimator,
    HMTransformer,
    IDUEFrequencyEstimator,
    LaplaceTransformer,
    LGRRFrequencyEstimator,
    LOLOHAFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
    SDPMTransformer,
    SSFrequencyEstimator,
    SWTransformer,
    client,
    sending,
)

KEY = bytes(range(32))
OF_CATEGORIES = [GRRFrequencyEstimator, IDUEFrequencyEstimator, LGRRFrequencyEstimator, LOLOHAFrequencyEstimator,
                 OLHFrequencyEstimator, OUEFrequencyEstimator, SSFrequencyEstimator]
OF_NUMBERS = [DuchiTransformer, HMTransformer, LaplaceTransformer, PMTransformer, SDPMTransformer, SWTransformer]
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u4", "u8", ">i4", "f4", "f8", ">f8"]


def told(monkeypatch, function, *, straight=True):
    """Return the bytes and the dtype of reports under one key, or the message of the error."""
    with monkeypatch.context() as patch:
        patch.setattr(rng.os, "urandom", lambda n: KEY)
        if not straight:
            patch.setattr(client, "sent", lambda *_: None)
        try:
            reports = function()
        except ValueError as error:
            return str(error)
    return reports.tobytes(), reports.dtype, reports.shape


def same_both_ways(monkeypatch, estimator, X):
    """Compare the two ways, twice each: the second time the columns know their sender."""
    expected = told(monkeypatch, lambda: estimator.privatize(X), straight=False)
    for _ in range(2):
        assert told(monkeypatch, lambda: estimator.privatize(X)) == expected
    return expected


@pytest.mark.parametrize("cls", OF_CATEGORIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_categories_are_sent_as_rows_are(monkeypatch, cls, dtype):
    for lists in ([range(9)], [[3, 1, 7]], [range(2, 12), [0, 5]], [[1.5, 2.0, 7.0]]):
        lists = [list(own) for own in lists]
        estimator = cls(2.0, categories=lists)
        fitted = cls(2.0, categories=lists).fit(np.array([[own[0] for own in lists]]))
        for value in (-1, 0, 2, 3, 5, 7, 40):
            X = np.full((1, len(lists)), value).astype(dtype)
            for one in (estimator, fitted):
                same_both_ways(monkeypatch, one, X)


@pytest.mark.parametrize("cls", OF_NUMBERS)
@pytest.mark.parametrize("dtype", [*DTYPES, "f2", "?"])
def test_numbers_are_sent_as_rows_are(monkeypatch, cls, dtype):
    estimator, fitted = cls(2.0, bounds=(-2.0, 3.0)), cls(2.0, bounds=(-2.0, 3.0)).fit(np.ones((3, 2)))
    for value in (-3.0, -2.0, -0.7, 0.0, 1 / 3, 2.999999, 3.0, 100.0):
        X = np.array([[value, 1.0]]).astype(dtype)
        for one in (estimator, fitted):
            same_both_ways(monkeypatch, one, X)
            same_both_ways(monkeypatch, one, X[:, :1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_refused_is_refused_in_the_same_words_and_draws_nothing(monkeypatch, bad):
    drawn = []
    monkeypatch.setattr(rng.os, "urandom", lambda n: drawn.append(n) or KEY)
    numbers, categories = PMTransformer(1.0, bounds=(0.0, 1.0)), GRRFrequencyEstimator(1.0, categories=[[0, 1, 2]])
    numbers.privatize(np.array([[0.5]]))
    drawn.clear()
    for estimator in (numbers, categories):
        with pytest.raises(ValueError, match="column 0"):
            estimator.privatize(np.array([[bad]]))
    with pytest.raises(ValueError, match="not among its declared"):
        categories.privatize(np.array([[3]]))
    assert not drawn


def test_layouts_strings_and_shapes(monkeypatch):
    names = GRRFrequencyEstimator(1.0, categories=[["a", "bc"], ["a", "x\0y"]])
    for X in (np.array([["bc", "a"]]), np.array([["bc", "x\0y"]]), np.array([["a", "none"]]), np.array([["a"]])):
        same_both_ways(monkeypatch, names, X)
    wide = np.asfortranarray(np.arange(12.0).reshape(3, 4))[1:2]
    wide.flags.writeable = False
    for cls in OF_NUMBERS:
        estimator = cls(2.0, bounds=(-1.0, 12.0))
        for X in (wide, wide[:, ::-1], wide[:, ::2], wide[:, :0], wide[:0]):
            same_both_ways(monkeypatch, estimator, X)


def test_every_call_has_a_key_of_its_own_in_threads_and_copies(monkeypatch):
    keys, real = [], rng.os.urandom
    monkeypatch.setattr(rng.os, "urandom", lambda n: keys.append(real(n)) or keys[-1])
    estimator = PMTransformer(1.0, bounds=(0.0, 1.0)).fit(np.array([[0.5]]))
    estimator.privatize(np.array([[0.5]]))
    twins = [estimator, copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))]
    assert not twins[2]._columns.senders  # what tells how X looked never leaves the process
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: twins[k % 3].privatize(np.array([[0.25]])), range(60)))
    assert len(set(keys)) == 61


def test_threads_do_not_share_what_one_of_them_writes():
    """At this epsilon a report is nearly the value: a code of another thread's record would show."""
    estimator = GRRFrequencyEstimator(40.0, categories=[list(range(100))])

    def reported(k):
        return int(estimator.privatize(np.array([[k]]))[0, 0]) == k

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(reported, [k % 100 for k in range(2000)]))


def test_parameters_that_change_are_seen(monkeypatch):
    record, listed = np.array([[2]]), [0, 1, 2]
    estimator = GRRFrequencyEstimator(1.0, categories=[listed])
    estimator.privatize(record)
    listed.append(9)  # in place
    assert len(estimator.privatize(np.array([[9]]))) == 1
    listed.remove(2)
    with pytest.raises(ValueError, match="not among its declared"):
        estimator.privatize(record)
    estimator.set_params(epsilon=3.0, categories=[[2, 4]])
    assert same_both_ways(monkeypatch, estimator, record)[2] == (1, 1)
    for wrong in ({"n_jobs": 0}, {"postprocess": "none such"}, {"random_state": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            GRRFrequencyEstimator(1.0, categories=[[2, 4]], **wrong).privatize(record)


def test_ledgers_strict_mode_and_seeds_have_their_say():
    record, ledger = np.array([[1]]), Ledger(1.5)
    estimator = GRRFrequencyEstimator(1.0, categories=[[0, 1]])
    estimator.privatize(record)
    with ledger:
        estimator.privatize(record)
    assert float(ledger.spent().epsilon) == 1.0
    with pytest.raises(dpestim.exceptions.BudgetExceededError):
        estimator.privatize(record)  # a block has paid for it once
    strict = GRRFrequencyEstimator(1.0, categories=[[0, 1]])
    with dpestim.config_context(strict=True):
        assert len(strict.privatize(np.array([[7]]))) == 1
    seeded = GRRFrequencyEstimator(0.1, categories=[list(range(200))], random_state=3)
    assert len({seeded.privatize(record).item() for _ in range(5)}) == 1


@pytest.mark.parametrize("hook", sending._ASKED)
def test_a_client_with_ways_of_its_own_is_asked(hook):
    asked = []

    def own(self, *args, **kwargs):
        asked.append(hook)
        return getattr(super(Own, self), hook)(*args, **kwargs)

    Own = type("Own", (GRRFrequencyEstimator,), {hook: own, "__init__": GRRFrequencyEstimator.__init__})
    estimator = Own(1.0, categories=[[0, 1]])
    for _ in range(2):
        asked.clear()
        estimator.privatize(np.array([[1]]))
        assert asked


def test_a_sender_that_another_thread_clears_is_still_used():
    class Cleared(dict):
        def __setitem__(self, dtype, sender):
            super().__setitem__(dtype, sender)
            self.clear()

    estimator = GRRFrequencyEstimator(1.0, categories=[["a", "b"]])
    columns = estimator._declared_columns(1)
    columns.senders = Cleared()
    assert estimator.privatize(np.array([["a"]])).shape == (1, 1)
