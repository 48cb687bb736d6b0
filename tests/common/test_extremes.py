"""Extreme budgets and few rows: an answer, or a ValueError before anything is charged; never a wait without an end.

What fails for public reasons fails before the charge (SOUNDNESS, rule 30); strict mode has an answer for every number
of rows once it was charged.
"""

import signal
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpestim import config_context
from dpestim.base import all_estimators
from dpestim.linear_model import DPLinearRegression, DPLogisticRegression, DPRidge, DPTukeyRegression
from dpestim.local import GRRFrequencyEstimator, PersonalizedEstimator
from dpestim.shuffle import BooleanSum, RealSum
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights
from dpestim.testing.tools import Book

EPSILONS = (5e-324, 1e-18, 1e-9, 1e-6, 50.0)
SECONDS = 10
X = np.random.default_rng(0).uniform(-1, 1, (30, 3))


class TooSlow(BaseException):
    """Nobody waits that long."""


@pytest.fixture
def time_limit():
    """Seconds of the processor: other work of the machine takes none of them."""
    def stop(*_):
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def answered_or_refused(est, verb, *data):
    """Require an answer, or a ValueError that came before the charge."""
    book = Book()
    names = [name for name in est.get_params() if name == "ledger" or name.endswith("__ledger")]
    est.set_params(**dict.fromkeys(names, book))
    refused = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            getattr(est, verb)(*data)
        except ValueError as error:
            refused = str(error)
    assert not (refused and book.paid), f"charged, then: {refused}"


def cases():
    for name, cls in all_estimators():
        if hasattr(cls, "fit") or hasattr(cls, "release"):
            yield pytest.param(cls, id=name)


@pytest.mark.parametrize("cls", list(cases()))
@pytest.mark.usefixtures("time_limit")
def test_an_answer_or_an_error_before_the_charge(cls):
    for k, params in enumerate(cls._test_params()):
        rows = cls(**params)._test_data(60)
        for epsilon in EPSILONS if k == 0 else EPSILONS[k % 2 :: 2]:
            for n in (0, 1, 2):
                est = cls(**params)
                own = [name for name in est.get_params() if name == "epsilon" or name.endswith("__epsilon")]
                est.set_params(**dict.fromkeys(own, epsilon))
                data = [part[:n] for part in rows if part is not None]
                if hasattr(est, "fit"):
                    answered_or_refused(est, "fit", *data)
                elif n:
                    answered_or_refused(est, "release", *data)
            if not hasattr(cls, "fit") or epsilon in (1e-18, 1e-6):
                continue
            with config_context(strict=True):
                est = cls(**params)
                own = [name for name in est.get_params() if name == "epsilon" or name.endswith("__epsilon")]
                est.set_params(**dict.fromkeys(own, epsilon))
                answered_or_refused(est, "fit", *[part[:1] for part in rows if part is not None])
        if params is not cls._test_params()[0] and "shuffle" in cls.__module__:
            break  # (laws are searched for: seconds)


BOX = {"bounds": (-1, 1), "target_bounds": (-1, 1)}
ONCE = {
    "an alpha of None": (DPRidge(1.0, alpha=None, **BOX), "fit", X, X[:, 0]),
    "adassp with the least float": (DPLinearRegression(1.0, delta=5e-324, method="adassp", **BOX), "fit", X, X[:, 0]),
    "adassp with 1e-300": (DPLinearRegression(1.0, delta=1e-300, method="adassp", **BOX), "fit", X, X[:, 0]),
    "logistic with the least float": (DPLogisticRegression(1.0, delta=5e-324, data_norm=1.0, classes=[0, 1]), "fit", X,
                                      (X[:, 0] > 0).astype(int)),
    "marginals with nothing": (MarginalSynthesizer(Fraction(1, 10**330), delta=1e-6, bounds=(-1, 1), bins=2), "fit", X),
    "weights with nothing": (MultiplicativeWeights(Fraction(1, 10**330), bounds=(-1, 1), bins=2), "fit", X),
    "bits of very many": (BooleanSum(1.0, delta=1e-6, n_users=1 << 63), "encode", X > 0),
    **{f"{protocol} of very many": (RealSum(1.0, delta=1e-6, n_users=1 << 70, bounds=(0, 1), protocol=protocol),
                                    "encode", X[:, :1]) for protocol in ("ikos", "cheu", "recursive", "balle")},
}


@pytest.mark.parametrize(("est", "verb", "data"), [(est, verb, data) for est, verb, *data in ONCE.values()], ids=ONCE)
@pytest.mark.usefixtures("time_limit")
def test_what_once_was_charged_and_crashed(est, verb, data):
    answered_or_refused(est, verb, *data)


@pytest.mark.usefixtures("time_limit")
def test_a_regression_without_models_is_refused_and_ends():
    """With a delta of one half its test passes in every other fit, and there is no point that could be drawn."""
    for seed in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPTukeyRegression(1.0, delta=0.5, random_state=seed).fit(np.zeros((3, 1)), np.zeros(3))
        assert model.refused_


def test_columns_of_one_name_change_nothing():
    import pandas as pd

    base, book = GRRFrequencyEstimator(categories=[["no", "yes"], ["no", "yes"]]), Book()
    est = PersonalizedEstimator(base.set_params(ledger=book), settings={"a": {"epsilon": 1}, "b": {"epsilon": 2}})
    frame = pd.DataFrame([["a", "yes", "no"], ["b", "no", "no"]] * 5, columns=["who", "answer", "answer"])
    before = {name for name in vars(est) if name != "_lock"}
    with pytest.raises(ValueError, match="answer"):
        est.fit(frame)
    assert not book.paid
    assert {name for name in vars(est) if name != "_lock"} == before
