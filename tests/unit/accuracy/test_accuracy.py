"""Errors before a program is run: against the law by enumeration, and bounds against what estimators release."""

import math
import pickle
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pandas
import pytest

from dpestim import accuracy
from dpestim.accounting import Ledger
from dpestim.accuracy import sums
from dpestim.accuracy.tails import log_moment, tails
from dpestim.central import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SnappingMechanism,
    StaircaseMechanism,
)
from dpestim.statistics import (
    ContingencyTable,
    Correlation,
    Count,
    Covariance,
    Histogram,
    Mean,
    Quantile,
    RangeCounts,
    StandardDeviation,
    Sum,
    Variance,
)

BETAS = (0.3, 0.05, 0.001)
#: Errors whose noise is few integers, of each law that they can have.
SMALL = {
    "laplace": lambda: accuracy.of(DiscreteLaplaceMechanism(2.0, sensitivity=1)),
    "gaussian": lambda: accuracy.of(DiscreteGaussianMechanism(4.0, delta=1e-3, sensitivity=1)),
    "rounded": lambda: accuracy.of(Count(16.0, delta=0.5), columns=9)[0],
}
#: A mechanism of each law, with much noise and with little.
LAWS = [
    DiscreteLaplaceMechanism(1.0, sensitivity=1), LaplaceMechanism(0.1, sensitivity=1.0),
    GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0), DiscreteGaussianMechanism(1e-4, delta=1e-5, sensitivity=1),
    DiscreteGaussianMechanism(1.0, delta=1e-5, sensitivity=1), StaircaseMechanism(3.0, sensitivity=1.0),
]


def law_of(error):
    """Return the law of the only noise of an error."""
    return error._numbers[()].noise()[0][0]


@cache
def integers(law):
    """Return all integers that are not far too rare, and their probabilities."""
    last = next(k for k in range(1, 1000) if law.beyond(k) < 1e-9)
    z = np.arange(-last, last + 1)
    return z, np.array([float(sum(law.probability(abs(int(k))))) / 2 for k in z])


def least_width(values, masses, beta):
    """Return the least value that is exceeded with probability beta at most."""
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    beyond = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
    last = np.append(np.diff(values) > 1e-9, True)  # (of equal values)
    return values[last][np.argmax(beyond[last] <= beta)]


@pytest.mark.parametrize("coefficients", [(2, -3), (1, -2, 4), (0.1, 0.3), (1, math.pi)])
@pytest.mark.parametrize("name", SMALL)
def test_quantiles_are_those_of_the_enumerated_law(name, coefficients):
    z, masses = integers(law_of(SMALL[name]()))
    grid = np.meshgrid(*[z] * len(coefficients), indexing="ij")
    joint = np.prod(np.meshgrid(*[masses] * len(coefficients), indexing="ij"), axis=0).ravel()
    values = np.array([c * each.ravel() for c, each in zip(coefficients, grid)])
    errors = [SMALL[name]() * c for c in coefficients]
    made = {
        "sum": (abs(values.sum(axis=0)), accuracy.sum_of(*errors)),
        "max": (abs(values).max(axis=0), accuracy.max_of(*errors)),
        "L1": (abs(values).sum(axis=0), accuracy.norm(*errors, order=1)),
        "L2": (np.hypot.reduce(values), accuracy.norm(*errors)),
    }
    # (pi has no lattice with 1 that is not too fine, and rounding up to another one is allowed)
    slack = 1e-9 if math.pi not in coefficients else 1e-2
    for what, (exact, error) in made.items():
        for beta in BETAS:
            wanted = least_width(exact, joint, beta)
            assert wanted <= error.quantile(beta) * (1 + 1e-9), (what, beta)
            assert error.quantile(beta) <= wanted * (1 + slack), (what, beta)
            assert error.bound(beta) >= wanted * (1 - 1e-9)


def test_concentration_bounds_hold_and_lattices_of_any_step_are_on_the_safe_side(monkeypatch):
    for k, mechanism in enumerate(LAWS):
        law = mechanism.law()
        near, far = round(law.variance_steps**0.5), law.half_width(1 - 1e-9) / law.step
        z = np.unique([1, 2, near, 3 * near, int(far)])
        np.testing.assert_allclose(tails(law, z), [float(law.beyond(int(each))) / 2 for each in z], rtol=1e-9)
        parts = ((law, Fraction(1), 3), (law, Fraction(5, 3), 40))
        for power in (0, 1, 2)[k % 2 : 2 + k % 2]:
            monkeypatch.setattr(sums, "_POINTS", 1 << 15)
            fine = sums.law_of(parts, power).width(1e-4)
            assert fine <= sums.concentrated(parts, 1e-4, power) * (1 + 1e-6)
            for atoms in (1 << 20, 2):  # (laws are wider than a lattice is long)
                monkeypatch.setattr(sums, "_POINTS", 4096)
                monkeypatch.setattr(sums, "_ATOMS", atoms)
                sums.law_of.cache_clear()
                slack = 1.1 if power == 0 and near > 1000 else 3
                assert fine <= sums.law_of(parts, power).width(1e-4) <= slack * fine
            monkeypatch.undo()
            sums.law_of.cache_clear()
    law = law_of(SMALL["laplace"]())
    z, masses = integers(law)
    assert math.exp(log_moment(law, 1.0)) == pytest.approx((np.exp(z) * masses).sum(), rel=1e-4)
    # very many terms of two steps are rounded up by more than concentration loses
    many = (law, Fraction(1), 60_000), (law, Fraction(repr(math.pi)), 60_000)
    deviation = math.sqrt(law.variance_steps * 60_000 * (1 + math.pi**2))
    assert 1.96 * deviation < sums.width_of(many, 0.05)[0] < 2.8 * deviation
    # a beta below what floats can tell is left to concentration
    assert sums.law_of(((law, Fraction(1), 2),), 0).width(1e-12) is None
    assert 10 < accuracy.sum_of(SMALL["laplace"](), SMALL["laplace"]()).bound(1e-15) < 60


@dataclass
class Program:
    """A statistic, rows for which its noise matters most, and how much of its bound it uses at least."""

    estimator: object
    rows: np.ndarray
    least: float
    n_runs: int = 80


HIGH = np.full(200, 5.0)
PROGRAMS = {
    "Count": Program(Count(0.5), np.ones(200), 0.99),
    "Sum": Program(Sum(0.5, bounds=(-3, 5)), HIGH, 0.9),
    "Sum, one more": Program(Sum(0.5, bounds=(-3, 5), neighbours="add_remove"), HIGH, 0.9),
    "Mean": Program(Mean(0.5, bounds=(-30, 50)), HIGH, 0.9),
    "Mean, one more": Program(Mean(2.0, bounds=(-3, 5), neighbours="add_remove"), -HIGH, 0.6),
    "Variance": Program(Variance(2.0, bounds=(0, 10)), np.r_[HIGH[:100] + 3, HIGH[:100] - 3], 0.9),
    "Variance, one more": Program(Variance(9.0, bounds=(-3, 5), neighbours="add_remove"),
                                  np.r_[HIGH[:100] + 9, HIGH[:100] - 9], 0.3),
    "StandardDeviation": Program(StandardDeviation(2.0, bounds=(0, 10)), HIGH, 0.5),
    "Covariance": Program(Covariance(4.0, bounds=([0, 0], [10, 10]), neighbours="add_remove"),
                          np.c_[HIGH, HIGH] + np.arange(200)[:, None] % 2, 0.12, 40),
    "Histogram": Program(Histogram(0.5, bins=2, bounds=(0, 9), delta=1e-6), HIGH, 0.9),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_estimators_release_is_within_the_bound_of_before(name):
    """The seeds are fixed: of so many runs no more than 5 % may be beyond, but for 4 standard deviations."""
    program = PROGRAMS[name]
    error, kind = accuracy.of(program.estimator, len(program.rows)), program.estimator
    exact = type(kind)(**{**kind.get_params(), "epsilon": 80.0, "random_state": 0}).fit(program.rows).value_
    runs = [type(kind)(**{**kind.get_params(), "random_state": k}).fit(program.rows) for k in range(program.n_runs)]
    off = np.abs(np.array([run.value_ for run in runs]) - np.round(exact, 2))
    assert off.shape[1:] == error.shape
    bound = error.bound(0.05)
    beyond = (off > bound).mean(axis=0)
    assert np.all(beyond <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / program.n_runs))
    assert np.all(np.quantile(off, 0.95, axis=0) >= program.least * 0.75 * bound)
    assert error.privacy.epsilon == runs[0].privacy_.epsilon


@pytest.mark.parametrize("name", ["Sum", "Sum, one more", "Mean", "Variance", "Histogram"])
def test_bounds_of_before_are_the_widths_of_intervals(name):
    kind = PROGRAMS[name].estimator
    rows = np.full(2000, 1.0) + np.arange(2000) % 2  # (far from all bounds)
    low, high = kind.fit(rows).result_.interval(0.97)
    np.testing.assert_allclose(accuracy.of(kind, len(rows)).bound(0.03), (high - low) / 2, rtol=0.01)


def test_noise_that_two_outputs_share_is_no_independent_noise():
    cells = accuracy.of(Histogram(1.0, bins=4, bounds=(0, 1)))
    other = accuracy.of(Histogram(1.0, bins=4, bounds=(0, 1)))
    assert (cells - cells).bound(1e-6).tolist() == [0.0] * 4
    twice, both = (cells[0] + cells[0]), (cells[0] + other[0])
    assert twice.bound(0.05) == (2 * cells[0]).bound(0.05) == 2 * cells[0].bound(0.05) > both.bound(0.05)
    assert twice.privacy.epsilon == 1
    assert both.privacy.epsilon == 2
    copy = pickle.loads(pickle.dumps(cells))
    assert (copy - cells).bound().tolist() == [0.0] * 4  # (also of one that comes back from a worker)
    # a matrix has each covariance twice
    matrix = accuracy.of(Covariance(1.0, bounds=([0, 0], [1, 2])), 100)
    assert (matrix[0, 1] - matrix[1, 0]).quantile() == 0.0
    # the largest of dependent ones is a union bound, and no product
    same, different = [cells[0], cells[0]], [cells[0], other[0]]
    assert accuracy.max_of(*same).quantile() == cells[0].quantile() < accuracy.max_of(*different).quantile()
    with pytest.raises(ValueError, match="law of this error is not known"):
        accuracy.max_of(cells[0], cells[0] + cells[1]).quantile()
    pair = accuracy.of(LaplaceMechanism(1.0, sensitivity=1.0), size=2)
    dependent = [pair[0] + pair[1], pair[0] - pair[1]]
    assert accuracy.max_of(*dependent).bound(0.6) == pytest.approx(dependent[0].bound(0.3), rel=1e-3)
    assert accuracy.norm(*same, order=1).bound(0.05) == twice.bound(0.05)
    assert accuracy.norm(*same).bound(0.05) >= math.sqrt(2) * cells[0].bound(0.05)


def test_errors_have_arithmetic_shapes_and_labels():
    table = accuracy.of(ContingencyTable(1.0, categories=[["a", "b"], ["x", "y", "z"]]))
    one = table[0, 0].bound()
    assert table.shape == (2, 3)
    assert [row.shape for row in table] == [(3,), (3,)]
    assert list(table.to_frame().iloc[1][:2]) == ["a", "y"]
    weights = np.array([1.0, 0.5, 0.0])
    for known in (weights, pandas.Series(weights)):
        np.testing.assert_array_equal((known * table).bound(), [[one, one / 2, 0]] * 2)
        np.testing.assert_array_equal((table * known).bound(), (known * table).bound())
    np.testing.assert_array_equal((-table / 2 + 7).bound(), np.full((2, 3), one / 2))
    assert ((3 - table[0]) + accuracy.at_most(0.25)).bound().tolist() == [one + 0.25] * 3
    assert accuracy.of(Mean(1.0, bounds={"a": (0, 1), "b": (0, 2)}), 100, columns=["b", "a"]).to_frame()[
        "column"].tolist() == ["b", "a"]
    assert accuracy.of(Mean(1.0, bounds=(0, 1)), 100, columns=3).shape == (3,)
    assert accuracy.of(LaplaceMechanism(1.0, sensitivity=1.0), size=5).shape == (5,)
    for wrong in (lambda: table * table, lambda: table + "1", lambda: table * True):
        with pytest.raises(TypeError, match="error"):
            wrong()
    for wrong in (lambda: table / 0, lambda: table * math.inf, lambda: table.bound(1), lambda: table.bound(True),
                  lambda: accuracy.norm(table, order=3), lambda: accuracy.at_most(-1)):
        with pytest.raises(ValueError, match=r"must be|other than 0"):
            wrong()


def test_ranks_of_quantiles_are_within_their_bound():
    kind = Quantile(1.0, q=[0.25, 0.5], bounds=(0, 1024))
    rows = np.arange(1024.0)  # (a value is its rank)
    bound = accuracy.of(kind, 1024).bound(0.05)
    runs = np.array([Quantile(1.0, q=[0.25, 0.5], bounds=(0, 1024), random_state=k).fit(rows).value_
                     for k in range(40)])
    assert np.all((abs(runs - [256, 512]) > bound + 1).mean(axis=0) <= 0.05)
    assert np.all(bound < 1024 / 4)
    # (the order may swap two choices, so each needs that both are near)
    assert bound[0] == accuracy.of(Quantile(0.5, q=0.25, bounds=(0, 1024)), 1024).bound(0.025)


def test_budgets_are_the_least_that_are_enough():
    def program(epsilon):
        groups = [accuracy.of(Mean(epsilon / 2, bounds=(0, 100)), n) for n in (500, 2000)]
        return accuracy.max_of(*groups)

    for wanted in (0.1, 300.0):
        found = accuracy.budget_for(program, wanted, 0.01)
        assert program(found).bound(0.01) <= wanted < program(found * (1 - 2e-4)).bound(0.01)
    with pytest.raises(ValueError, match="no epsilon up to 80"):
        accuracy.budget_for(program, 1e-9)
    for wrong in ((program, 0), (program, True), (None, 1.0), (lambda e: 1.0, 1.0)):
        with pytest.raises(ValueError, match="must"):
            accuracy.budget_for(*wrong)


def test_what_has_no_bound_is_refused_and_nothing_is_charged():
    with Ledger(1.0, durability="fast") as book:
        for estimator, n, message in [
            (Mean(1.0), 10, "bounds"), (Mean(1.0, bounds="private"), 10, "declare bounds"),
            (Correlation(1.0, bounds=(0, 1)), 10, "take Covariance"), (Mean(1.0, bounds=(0, 1)), None, "n must be"),
            (RangeCounts(1.0, bins=4, bounds=(0, 1)), 10, "estimator must be"), (object(), 10, "estimator must be"),
            (LaplaceMechanism(1.0, sensitivity=1.0), 10, "give size="), (Mean(-1.0, bounds=(0, 1)), 10, "epsilon"),
            (Mean(1.0, bounds=([0, 0], [1, 1])), 0, "n must be"), (Histogram(1.0), None, "bounds"),
        ]:
            with pytest.raises(ValueError, match=message):
                accuracy.of(estimator, n)
        accuracy.of(Mean(1.0, bounds=(0, 1)), 10).bound()
        snapped = accuracy.of(SnappingMechanism(1.0, sensitivity=1.0, bounds=(-100.0, 100.0)), size=2)
        assert accuracy.sum_of(snapped).bound(0.1) == 2 * snapped.bound(0.05)[0]
        assert not len(book)
