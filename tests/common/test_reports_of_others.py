"""Reports of another law: an array made in this process is refused, and counts that no data give are warned of."""

import copy
import warnings

import numpy as np
import pytest

from dpestim.base import all_estimators
from dpestim.local import GRRFrequencyEstimator, MeanEstimator, OUEFrequencyEstimator, PMTransformer


def _client(server):
    """Return who randomises for a server."""
    return getattr(server, "transformer", None) or server


def servers():
    """Return [name, class] of all that aggregate what a client without labels, groups or rounds makes."""
    found = []
    for name, cls in all_estimators(("local",)):
        server = cls(**cls._test_params()[0]) if hasattr(cls, "aggregate") else None
        if server is not None and hasattr(_client(server), "epsilon") and not hasattr(cls, "predict"):
            found.append((name, cls))
    return found


@pytest.mark.parametrize(("name", "cls"), servers())
def test_reports_of_another_epsilon_are_refused(name, cls):
    if name == "local.PersonalizedEstimator":
        pytest.skip("its estimators are those of the others")
    server = cls(**copy.deepcopy(cls._test_params()[0]))
    client = _client(copy.deepcopy(server))
    X = server._test_data(60)
    X = X[0] if isinstance(X, tuple) else X
    reports = client.privatize(X)
    other = client.set_params(epsilon=4 * client.epsilon).privatize(X)
    untouched = copy.deepcopy(server)
    for wrong in (other, other[10:], other[::2][5:]):
        with pytest.raises(ValueError, match=r"epsilon|width|dtype|below"):
            server.aggregate(wrong)
    assert vars(server).keys() == vars(untouched).keys() or server._n_users == 0
    assert server.aggregate(reports[:30]).aggregate(reports[30:]).n_users_ == 60
    assert copy.deepcopy(untouched).aggregate(reports.copy()).n_users_ == 60  # (nothing is known of a copy)


def test_other_categories_are_named():
    reports = GRRFrequencyEstimator(1.0, categories=[["a", "b"]], random_state=0).privatize([["a"]] * 99)
    with pytest.raises(ValueError, match="categories or bounds in column 0"):
        GRRFrequencyEstimator(1.0, categories=[["b", "a"]]).aggregate(reports)


def test_counts_that_no_data_give_are_warned_of():
    letters = [list("abcd")]
    other = OUEFrequencyEstimator(6.0, categories=letters, random_state=0).privatize([["a"], ["b"]] * 500).copy()
    with pytest.warns(UserWarning, match="counts of column 0 are impossible"):
        OUEFrequencyEstimator(1.0, categories=letters).aggregate(other)
    far = PMTransformer(8.0, bounds=(0, 100), random_state=0).privatize(np.zeros((2000, 1))).copy()
    with pytest.warns(UserWarning, match="counts of column 0 are impossible"):
        MeanEstimator(PMTransformer(0.5, bounds=(0, 100))).aggregate(far)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_counts_of_the_law_itself_are_not(share):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(20):
            rows = np.where(np.arange(200) < 200 * share, "a", "b")[:, None].astype(object)
            for cls in (GRRFrequencyEstimator, OUEFrequencyEstimator):
                est = cls(3.0, categories=[["a", "b", "c"]], random_state=seed)
                est.aggregate(est.privatize(rows).copy())
            law = PMTransformer(3.0, bounds=(0, 1), random_state=seed)
            MeanEstimator(law).aggregate(law.privatize((rows == "a") * 1.0).copy())
