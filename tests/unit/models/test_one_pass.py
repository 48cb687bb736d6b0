"""Models that need one pass: rows come in batches and from several places, and one release says what `fit` would."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from dpestim.accounting import Ledger
from dpestim.base import PrivateEstimator, all_estimators
from dpestim.graph import RNLTransformer
from dpestim.naive_bayes import DPGaussianNB
from dpestim.preprocessing import DPOneHotEncoder, DPSimpleImputer, DPStandardScaler
from dpestim.statistics.one_pass import OnePassModel

ROWS = 90
SETTINGS = [pytest.param(cls, params, id=f"{name}-{k}") for name, cls in all_estimators()
            if issubclass(cls, OnePassModel) for k, params in enumerate(cls._test_params())
            # (trees of "disjoint" rows are by place: other trees, where rows come in parts; private bounds and edges,
            # and rounds of power iteration, need all rows at once, and say so)
            if params.get("bounds") != "private" and params.get("row_allocation") != "disjoint"
            and not params.get("edges_fraction") and params.get("method") != "power"]

#: Those of the central model whose fits read rows once, or in rounds.
FITTED = [pytest.param(cls, id=name) for name, cls in all_estimators() if hasattr(cls, "fit")
          and not name.startswith(("local.", "shuffle.")) and cls._checked_as not in ("places", "parts")
          and cls is not RNLTransformer and not hasattr(cls, "sensitivity")
          and "sensitivity" not in cls._get_param_names() and "ledger" in cls._get_param_names()]


def part(y, rows):
    return None if y is None else y[rows]


@pytest.mark.parametrize(("cls", "params"), SETTINGS)
def test_batches_and_places_say_what_all_rows_together_do(cls, params):
    whole = cls(**params, random_state=3)
    X, y = whole._test_data(ROWS)
    whole.fit(X, y)
    assert not hasattr(whole, "summary_")
    # (a release has other noise than a fit of the same seed: what is between two verbs must not be exact)
    drawn = {name: getattr(whole, name) for name in cls._learned}
    whole.summarize(X, y).release()
    assert any(not np.array_equal(getattr(whole, name), value) for name, value in drawn.items())
    here, there = cls(**params, random_state=3), cls(**params)
    for rows in (slice(0, 20), slice(20, 50)):
        here.summarize(X[rows], part(y, rows))
    there.summarize(X[50:], part(y, slice(50, None)))
    ledger = Ledger(200, delta=0.5, neighbours=params.get("neighbours", "substitution"), durability="fast")
    here.merge(pickle.loads(pickle.dumps(there))).set_params(ledger=ledger)
    assert not any(hasattr(here, name) for name in cls._learned)
    here.release()
    assert len(ledger) == 1
    assert ledger.spent().epsilon == here.privacy_.epsilon == whole.privacy_.epsilon
    for name in cls._learned:
        assert np.array_equal(getattr(here, name), getattr(whole, name)), name
    assert here.n_features_in_ == X.shape[1]
    assert "secret" in repr(here.summary_)
    here.release()
    assert len(ledger) == 2
    assert any(not np.array_equal(getattr(here, name), getattr(whole, name)) for name in cls._learned)


def test_what_does_not_merge_is_refused():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    scaler = DPStandardScaler(bounds=(0, 1)).summarize(X)
    with pytest.raises(NotFittedError):
        scaler.transform(X)
    others = [DPStandardScaler(bounds=(0, 2)), DPStandardScaler(bounds=(0, 1), with_std=False),
              DPSimpleImputer(bounds=(0, 1))]
    for other in (*(one.summarize(X) for one in others), DPStandardScaler(bounds=(0, 1)).summarize(X[:, :1]), scaler,
                  DPStandardScaler(bounds=(0, 1))):
        before = scaler.summary_
        with pytest.raises(ValueError, match="merge needs"):
            scaler.merge(other)
        assert scaler.summary_ is before
    with pytest.raises(ValueError, match="features"):
        scaler.summarize(X[:, :1])
    with pytest.raises(ValueError, match="release needs"):
        scaler.set_params(bounds=(0, 3)).release()
    with pytest.raises(ValueError, match="use fit"):
        DPStandardScaler(bounds="private").summarize(X)
    with pytest.raises(ValueError, match="use fit"):
        DPGaussianNB(bounds=(0, 1)).summarize(X, X[:, 0] > 0.5)
    with pytest.raises(ValueError, match="release needs rows"):
        clone(scaler).release()
    words = DPOneHotEncoder(categories=[["a", "b"]]).summarize([["a"]])
    with pytest.raises(ValueError, match="merge needs"):
        words.merge(DPOneHotEncoder(categories=[["a", "c"]]).summarize([["a"]]))


def test_threads_release_at_once_and_each_pays():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    ledger = Ledger(100.0, durability="fast")
    scaler = DPStandardScaler(1.0, bounds=(0, 1), ledger=ledger).summarize(X).release()
    missing, release = [], scaler._released

    class Seen(dict):
        """What was learned; while it is taken over, nothing that was there may be gone."""

        def keys(self):
            missing.extend(name for name in ("summary_",) if not hasattr(scaler, name))
            return super().keys()

        def __iter__(self):  # (without which `keys` would not be asked for)
            return super().__iter__()

    scaler._released = lambda *args: lambda source: Seen(release(*args)(source))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: scaler.release(), range(8)))
    assert not missing
    assert len(ledger) == 9


def test_a_grid_search_pays_for_each_fit():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    ledger = Ledger(100.0, durability="fast")
    model = DPGaussianNB(1.0, bounds=(0, 1), classes=[0, 1], ledger=ledger)
    search = GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=2).fit(X, (X[:, 0] > 0.5).astype(int))
    paid = [entry["epsilon"] for entry in ledger.entries() if entry["epsilon"]]
    assert paid == [1, 1, 2, 2, search.best_params_["epsilon"]]


@pytest.mark.parametrize("cls", FITTED)
def test_every_fit_takes_over_what_it_learned_at_once(cls, monkeypatch):
    """Nothing of before is gone until what is new is there, for another thread; then all of before is gone."""
    params = next(params for params in cls._test_params() if params.get("method") != "power")
    est = cls(**params, **({"random_state": 0} if "random_state" not in params else {}))
    X, y = est._test_data(60)
    data = (X,) if y is None else (X, y)
    before = {name for name in vars(est.fit(*data)) if name.endswith("_")}
    est.of_before_ = True
    calls, become = [], PrivateEstimator._become

    def watched(self, learned):
        if self is est:
            assert before <= vars(self).keys()
            calls.append(learned)
        return become(self, learned)

    monkeypatch.setattr(PrivateEstimator, "_become", watched)
    assert est.fit(*data) is est
    assert len(calls) == 1
    assert before == {name for name in vars(est) if name.endswith("_")}
