"""Plans of ranges: what is said is what is measured, in each model, and what is refused."""

import numpy as np
import pytest

from dpestim.collection import plan_ranges
from dpestim.local import RangeEstimator
from dpestim.shuffle import ShuffledEstimator
from dpestim.statistics import RangeCounts

N, SIZE, EPSILON = 40_000, 16, 0.4
PAIRS = [(a, b) for a in range(SIZE) for b in range(a + 1, SIZE + 1)]


def test_planned_errors_are_those_that_estimators_state():
    found, X = plan_ranges(n_users=N, epsilon=EPSILON, n_values=SIZE), (np.arange(N) % SIZE)[:, None]

    def stated(range_of):
        return np.mean([range_of(*own)[1] ** 2 for own in PAIRS]) ** 0.5

    for method in ("hierarchy", "haar"):
        own = RangeEstimator(EPSILON, bounds=([0.0], [float(SIZE)]), n_bins=SIZE, method=method, random_state=0)
        for model, estimator in (("local", own), ("shuffle", ShuffledEstimator(own, EPSILON, delta=1e-6))):
            row = next(row for row in found.rows if (row.model, row.parameters) == (model, f'method="{method}"'))
            fitted = estimator.fit(X)
            fitted = fitted if model == "local" else fitted.estimator_
            assert stated(fitted.range) == pytest.approx(row.range_error, rel=0.05), (model, method)
            assert fitted.privacy_.epsilon == pytest.approx(row.local_epsilon) or model == "shuffle"
    central = RangeCounts(EPSILON, bins=SIZE, bounds=(0, SIZE)).fit(X[:, 0]).result_
    assert stated(central.range) / N == pytest.approx(found.best_of("central").range_error, rel=1e-6)


def test_the_best_way_of_each_model():
    found = plan_ranges(n_users=N, epsilon=EPSILON, n_values=SIZE)
    errors = [row.range_error for row in found.rows]
    assert errors == sorted(errors)
    assert found.best.model == "central"
    assert found.best_of("local").parameters == 'method="haar"'
    assert "square_wave" in str(found.left_out)
    assert found.recommendation in str(found)
    more = plan_ranges(n_users=N, epsilon=EPSILON, n_values=SIZE, n_columns=4)
    assert more.best_of("local").range_error == pytest.approx(2 * found.best_of("local").range_error)
    for wrong in ({"n_users": 0}, {"n_values": 1}, {"n_values": 1 << 21}, {"colluding": N}, {"n_users": 1 << 54},
                  {"n_columns": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            plan_ranges(**{"n_users": N, "epsilon": EPSILON, "n_values": SIZE} | wrong)
    with pytest.raises(ValueError, match="model must be"):
        found.best_of("other")
