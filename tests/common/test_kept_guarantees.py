"""The guarantee of a release is stored with it: no later parameter changes what a fitted estimator says of itself."""

import pickle
import warnings

import pytest

from dpestim.base import all_estimators
from dpestim.inspection import privacy_card
from dpestim.testing.tools import Book

#: What keeps no release (additive noise, transformers of numbers): `privacy_` is about the next one, of the parameters.
KEEPS_NOTHING = ("dpestim.central.additive", "dpestim.local.numbers", "dpestim.local.learning.privatized",
                 "dpestim.graph.lists.rnl",
                 "dpestim.geo.planar", "dpestim.geo.cells")
#: Values that no parameter has by default; what an estimator does with them is no matter.
OTHER = {"epsilon": 0.0123, "delta": 0.0456, "random_state": None, "ledger": Book()}


def keeping():
    """Yield the estimators of the registry that keep a release after `fit`."""
    for name, cls in all_estimators():
        if hasattr(cls, "fit") and not cls.__module__.startswith(KEEPS_NOTHING):
            yield pytest.param(cls, id=name)


def fitted(cls):
    est = cls(**cls._test_params()[0])
    if "random_state" in est.get_params():
        est.set_params(random_state=0)
    X, y = est._test_data(40)
    return est.fit(X) if y is None else est.fit(X, y)


@pytest.mark.parametrize("cls", list(keeping()))
def test_later_parameters_change_no_guarantee(cls):
    est = fitted(cls)
    stated = est.privacy_
    card = str(privacy_card(est))
    for name, value in sorted(est.get_params().items(), key=lambda own: -own[0].count("__")):  # (the innermost first)
        if hasattr(value, "get_params"):
            continue
        other = OTHER.get(name.rpartition("__")[2], 12345)
        est.set_params(**{name: other})
        now = est.privacy_
        assert now == stated, name
        assert (now.seeded, now.notes) == (stated.seeded, stated.notes), name
    assert str(privacy_card(est)) == card
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pickle.loads(pickle.dumps(est)).privacy_ == stated


def test_a_new_fit_states_its_own():
    """... and a ledger is charged what holds then."""
    classes = dict(all_estimators())
    for name in ("central.SmoothSensitivity", "statistics.Mean"):
        est = fitted(classes[name])
        before, book = est.privacy_, Book()
        est.set_params(epsilon=0.5, random_state=None, ledger=book)
        assert est.privacy_ == before
        est.fit(est._test_data(40)[0])
        assert est.privacy_.epsilon == 0.5
        assert not est.privacy_.seeded
        assert [paid[0] for paid in book.paid] == [est.privacy_]
