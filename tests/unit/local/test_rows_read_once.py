"""Rows that are checked as they are randomised are refused and answered as rows that are looked at first."""

import numpy as np
import pytest

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.local import DuchiTransformer

N = 40_000  # (several blocks)


def transformer(d, **more):
    return DuchiTransformer(1.0, bounds=(np.full(d, -1.0), np.full(d, 1.0)), strategy="joint", **more)


def slow(d, **more):
    made = transformer(d, **more)
    made._sent_unread = lambda X: None
    return made


@pytest.mark.parametrize("d", [1, 33, 64, 65])
@pytest.mark.parametrize("form", ["plain", "float32", "fortran", "read-only", "swapped", "threads", "huge"])
def test_reports_are_those_of_rows_that_are_looked_at_first(d, form):
    X = np.random.default_rng(d).uniform(-1.2, 1.2, (N, d))
    X = {"float32": lambda: X.astype(np.float32), "fortran": lambda: np.asfortranarray(X),
         "swapped": lambda: X.astype(">f8"), "huge": lambda: X * 1e308}.get(form, lambda: X)()
    X.setflags(write=form != "read-only")
    fast, n_jobs = transformer(d, random_state=3), 2 if form == "threads" else None
    assert fast._sent_unread(X) is not None
    assert np.array_equal(fast.set_params(n_jobs=n_jobs).privatize(X), slow(d, random_state=3).privatize(X))


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 15, 20_001, N - 1])
@pytest.mark.parametrize(("d", "column"), [(1, 0), (33, 32), (64, 7), (65, 64), (65, 40)])
def test_whatever_is_not_finite_is_refused_with_the_same_words(bad, row, d, column):
    X = np.zeros((N, d))
    X[row, column] = bad
    with pytest.raises(ValueError) as first:
        slow(d).privatize(X)
    with pytest.raises(ValueError) as found:
        transformer(d).privatize(X)
    assert str(found.value) == str(first.value)
    assert f"column {column} " in str(found.value)


def test_bad_rows_cost_nothing_and_good_ones_are_paid():
    X = np.zeros((N, 3))
    X[-1, -1] = np.nan
    ledger, rng = Ledger(5.0), np.random.default_rng(1)
    for more in ({"ledger": ledger}, {"random_state": rng}):
        with pytest.raises(ValueError, match="column 2"):
            transformer(3, **more).privatize(X)
    assert len(ledger) == 0
    assert rng.random() == np.random.default_rng(1).random()  # no key was drawn
    transformer(3, ledger=ledger).privatize(X[:-1])
    assert len(ledger) == 1


def test_strict_mode_refuses_no_value():
    X = np.full((N, 3), np.nan)
    with config_context(strict=True):
        assert transformer(3)._sent_unread(np.zeros((N, 3))) is None  # (bad rows would take longer)
        reports = transformer(3, random_state=1, ledger=Ledger(5.0)).privatize(X)
    assert np.array_equal(reports, transformer(3, random_state=1).privatize(np.full((N, 3), -1.0)))
