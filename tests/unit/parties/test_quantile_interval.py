"""Intervals of a quantile of several owners, from the noisy counts of bisection."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from test_secure_quantile import ROWS, owners

from dpestim.parties import PolyaShares, SecureQuantile
from dpestim.parties.quantile_owner import exchange


@pytest.mark.ci
def test_intervals_of_bisection_hold_the_quantile_and_no_more_than_they_need():
    """Over noise: the quantile of the records, in at least the share of fits that is asked for; not in nearly all."""
    parts = [np.arange(at, 64, 3) % 50 for at in range(3)]
    every = np.sort(np.concatenate(parts))
    right = every[int(np.ceil(len(every) / 4)) - 1]
    found = []
    for seed in range(100):
        fitted = SecureQuantile(4.0, q=0.25, domain=range(64), method="bisection", random_state=seed).fit(parts)
        low, high = fitted.confidence_interval(0.5)
        assert low <= fitted.value_ <= high
        wide = fitted.confidence_interval(0.95)
        assert wide[0] <= low <= high <= wide[1]
        found.append((low <= right <= high, wide[0] <= right <= wide[1], low > 0 or high < 63))
    covered, wider, tells = np.mean(found, axis=0)
    assert 0.5 <= covered <= wider
    assert wider >= 0.95
    assert tells > 0.9
    assert pickle.loads(pickle.dumps(fitted)).set_params(epsilon=1.0).confidence_interval() == wide


def test_intervals_by_hand():
    """Of three noisy counts: the half width decides which of them tell."""
    plan = SecureQuantile(3.0, domain=range(8), method="bisection", neighbours="add_remove")._planned(3)
    half = PolyaShares(3, 2, Fraction(1), change=1).half_width(Fraction(29, 30))
    assert (plan.n_steps, half > 0) == (3, True)
    counts = [(3, -half - 1), (5, half), (4, half - 1)]
    assert plan.interval(counts, 3, Fraction(9, 10)) == (4, 5)
    assert plan.interval([(3, -half), (5, half - 1)], 3, Fraction(9, 10)) == (0, 7)
    assert plan.interval([(3, -half), (1, half + 9)], 3, Fraction(9, 10)) == (0, 1)


def test_intervals_need_revealed_counts():
    made = owners(epsilon=80, method="bisection")
    with pytest.raises(ValueError, match="after the last message"):
        made[0].confidence_interval()
    exchange(made, ROWS)
    assert {owner.confidence_interval() for owner in made} == {(3, 3)}
    for level in (0, 1, True, "x"):
        with pytest.raises(ValueError, match="level must"):
            made[0].confidence_interval(level)
    fitted = SecureQuantile(domain=range(8))
    with pytest.raises(ValueError, match="call fit first"):
        fitted.confidence_interval()
    with pytest.raises(ValueError, match='method must be "bisection"'):
        fitted.fit(ROWS).confidence_interval()
