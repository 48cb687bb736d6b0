"""Plans of columns and joint tables: runs have the errors that they predict; what they refuse."""

import itertools
import math

import numpy as np
import pytest

from dpestim.collection import plan_ranges, plan_tables
from dpestim.local import MarginalEstimator, MultiAttributeFrequencyEstimator
from dpestim.shuffle import ShuffledEstimator
from dpestim.statistics import ContingencyTable

SIZES, N, EPSILON = (3, 2, 4), 6000, 3.0
CATEGORIES = [list(range(k)) for k in SIZES]
PAIRS = list(itertools.combinations(range(3), 2))


@pytest.fixture(scope="module")
def planned():
    return plan_tables(n_users=N, epsilon=EPSILON, sizes=list(SIZES))


def true(X, own):
    out = np.zeros([SIZES[j] for j in own])
    np.add.at(out, tuple(X[:, j] for j in own), 1 / len(X))
    return out


def errors(row, X, seed):
    """Return (mean squares of errors of columns, of tables or NaN) of a run of a row of a plan."""
    name, _, value = row.parameters.partition("=")
    if row.mechanism == "ContingencyTable":
        def made(epsilon, own, k=0):
            part = {"neighbours": "substitution", "random_state": 10 * seed + k}
            return ContingencyTable(epsilon, categories=[CATEGORIES[j] for j in own], **part).fit(X[:, own]).value_ / N

        if row.parameters == "all columns":
            whole = made(EPSILON, (0, 1, 2))
            of = {own: whole.sum(axis=tuple(set(range(3)) - set(own))) for own in [(0,), (1,), (2,), *PAIRS]}
        else:
            of = {own: made(EPSILON / 3, own, k) for k, own in enumerate(PAIRS)}
            for j in range(3):  # (by the inverse of how many cells are added up)
                both = [(own, SIZES[sum(own) - j]) for own in PAIRS if j in own]
                of[j,] = sum(of[own].sum(axis=1 - own.index(j)) / k for own, k in both) / sum(1 / k for _, k in both)
    else:
        cls = MarginalEstimator if name == "method" else MultiAttributeFrequencyEstimator
        est = cls(row.local_epsilon, categories=CATEGORIES, random_state=seed, **{name: value.strip('"')}).fit(X)
        of = {(j,): f for j, f in enumerate(est.frequencies_)} if name == "strategy" else {
            own: est.table(list(own)) for own in [(0,), (1,), (2,), *PAIRS]}
    square = {own: np.square(found - true(X, own)).mean() for own, found in of.items()}
    return np.mean([square[j,] for j in range(3)]), np.mean([square.get(own, np.nan) for own in PAIRS])


def test_runs_have_the_errors_that_were_planned(planned):
    """Of even and independent columns, all ways in one test of many numbers: each within a half, all within a tenth."""
    rng, ratios = np.random.default_rng(0), []
    for row in planned.rows:
        if row.model == "shuffle":
            continue  # (the local mechanism at another epsilon)
        found = []
        for seed in range(8):
            X = np.column_stack([rng.integers(0, k, N) for k in SIZES])
            found.append(errors(row, X, seed))
        column, table = np.sqrt(np.mean(found, axis=0))
        ratios.append((column / row.column_error, table / row.table_error))
        assert math.isnan(row.table_error) == row.parameters.startswith("strategy")
    ratios = np.array(ratios)
    ratios = ratios[np.isfinite(ratios)]
    assert len(ratios) == 2 * 6 + 3
    assert (np.abs(np.log(ratios)) < 0.45).all()
    assert abs(np.log(ratios).mean()) < 0.12


def test_shuffled_reports_have_the_planned_epsilon_and_rows_are_in_order(planned):
    inner = MarginalEstimator(1.0, method="calm", categories=CATEGORIES)
    est = ShuffledEstimator(inner, EPSILON, delta=1e-6, n_users=N)
    X = np.column_stack([np.random.default_rng(1).integers(0, k, N) for k in SIZES])
    local = planned.best_of("shuffle").local_epsilon
    assert float(est.fit(X).local_epsilon_) == pytest.approx(local, rel=1e-3)
    tables = [row.table_error for row in planned.rows if row.table_error == row.table_error]
    assert tables == sorted(tables)
    assert planned.best is planned.rows[0]
    assert planned.best_of("central").table_error < planned.best_of("shuffle").table_error < planned.best_of(
        "local").table_error
    assert planned.best_of("local", 1).parameters == 'method="pairs"'  # (a report tells of two columns)
    low = plan_tables(n_users=N, epsilon=0.5, sizes=SIZES)
    assert low.best_of("local", 1).parameters == 'strategy="smp"'
    assert "where users trust nobody" in str(planned)
    assert "full" in str(plan_tables(n_users=10, epsilon=1, sizes=[9] * 5).left_out)


@pytest.mark.parametrize(("more", "what"), [({"sizes": [3]}, "sizes"), ({"sizes": [1, 2]}, "sizes"),
                                            ({"sizes": 3}, "sizes"), ({"order": 4}, "order"),
                                            ({"colluding": 10}, "colluding"),
                                            ({"n_users": 0}, "n_users"), ({"epsilon": 0}, "epsilon"),
                                            ({"delta": 2}, "delta")])
def test_what_does_not_fit_is_refused(more, what):
    with pytest.raises(ValueError, match=what):
        plan_tables(**{"n_users": 10, "epsilon": 1.0, "sizes": [2, 3, 2], **more})


def test_errors_of_a_guess_are_not_recommended():
    """A share is guessed as one half with an error of 0.5 at most: no way with a larger one is told to be taken."""
    few = [plan_ranges(n_users=100, epsilon=1.0, n_values=1440),
           plan_tables(n_users=100, epsilon=0.3, sizes=[4, 8, 20])]
    for found, error in zip(few, ("range_error", "table_error")):
        assert getattr(found.best_of("local"), error) > 0.5 > getattr(found.best_of("central"), error)
        local, central = found.recommendation.split("; ")[::2]
        assert "no way is better than the guess 0.5" in local
        assert "take" not in local
        assert f"take {found.best_of('central').mechanism}" in central
    assert few[1].recommendation.count("no way is better") == 3  # (of both models, and of single columns)
