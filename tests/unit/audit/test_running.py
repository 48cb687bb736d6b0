"""Audits of running code: bounds that hold, events that tell, and what is refused before anything runs."""

import numpy as np
import pytest
from scipy.stats import binom

from dpestim.audit import audit
from dpestim.audit.running.bounds import Evidence, clopper_pearson, exact_bound
from dpestim.privacy import PrivacyGuarantee


def laplace(x, rng):
    return x + rng.laplace()


def laplaces(x, n, rng):
    return x + rng.laplace(size=n)


@pytest.mark.parametrize(("n", "m", "epsilon", "delta", "error"), [
    (15, 15, 0.0, 0.0, 0.1), (10, 14, 0.3, 0.02, 0.05), (12, 9, 1.0, 0.1, 0.05)])
def test_bounds_exceed_the_truth_as_seldom_as_they_say(n, m, epsilon, delta, error):
    """All counts are enumerated, at the probabilities where the truth is just epsilon."""
    tests = {
        "exact": lambda k, b: Evidence(k, n, b, m, delta, error).rejects(epsilon),
        "two intervals": lambda k, b: clopper_pearson(k, n, b, m, delta, error) > epsilon,
    }
    q = np.linspace(0, 1, 101)
    p = np.minimum(1.0, np.exp(epsilon) * q + delta)
    level = {}
    for name, rejects in tests.items():
        table = np.array([[rejects(k, b) for b in range(m + 1)] for k in range(n + 1)])
        level[name] = max(binom.pmf(range(n + 1), n, a) @ table @ binom.pmf(range(m + 1), m, b) for a, b in zip(p, q))
    assert level["exact"] <= error
    assert level["two intervals"] <= level["exact"]
    assert level["exact"] > error / 4


def test_the_exact_bound_is_where_its_test_stops_to_reject():
    bound = exact_bound(500, 1000, 184, 1000, 0.0, 1e-3)
    found = Evidence(500, 1000, 184, 1000, 0.0, 1e-3)
    assert found.rejects(bound)
    assert not found.rejects(bound + 2e-4)
    assert clopper_pearson(500, 1000, 184, 1000, 0.0, 1e-3) < bound < np.log(500 / 184)
    assert exact_bound(100, 1000, 100, 1000, 0.0, 1e-3) == exact_bound(1, 10, 0, 10, 0.5, 1e-3) == 0
    assert exact_bound(1000, 1000, 0, 1000, 0.0, 1e-3) > 4


def test_too_little_noise_is_found_and_enough_is_not():
    shared = {"claim": 1.0, "side_channels": (), "random_state": 0, "n_samples": 40_000}
    wrong = audit(lambda x, rng: x + rng.laplace(scale=0.5), [(0, 1)], **shared)
    assert wrong.violated
    assert wrong.epsilon_lower < 2
    right = audit(laplace, [(0, 1)], **shared)
    assert not right.violated
    assert right.epsilon_lower > 0.8
    assert "is wrong" in str(wrong)
    assert "no violation" in right.verdict


def test_the_lowest_bits_of_floats_tell():
    found = audit(laplace, [(0, 1)], claim=PrivacyGuarantee(1), random_state=0, n_samples=40_000)
    assert found.violated
    assert "multiple of 2^" in found.event
    assert found.counts[1][0] == 0


def test_an_audit_is_reproducible_from_what_it_tells():
    first = audit(laplaces, [(0, 1), (0, 0.5)], claim=0.5, batch=True, time_limit=0.2)
    again = audit(laplaces, [(0, 1), (0, 0.5)], claim=0.5, batch=True, n_samples=first.planned, random_state=first.seed)
    assert (first.epsilon_lower, first.event, first.counts) == (again.epsilon_lower, again.event, again.counts)
    assert first.pair == (0, 1)


@pytest.mark.parametrize(("change", "message"), [
    ({"claim": -1}, "claim must be"), ({"claim": (1, 2)}, "claim must be"), ({"confidence": 1}, "confidence must be"),
    ({"n_samples": 2.5}, "n_samples must be"), ({"time_limit": 0}, "time_limit must be"),
    ({"side_channels": "bits"}, "side_channels must be"), ({"batch": 1}, "batch must be"),
    ({"random_state": -1}, "random_state must be"), ({"pairs": [(1, 2, 3)]}, "pairs must be"),
    ({"mechanism": 3}, "mechanism must be")])
def test_what_does_not_fit_is_refused_before_anything_runs(change, message):
    ran = []
    with pytest.raises(ValueError, match=message):
        audit(**{"mechanism": ran.append, "pairs": [(0, 1)], "claim": 1.0, **change})
    assert not ran


def test_code_that_only_fails_is_told_apart_from_code_that_fails_for_some_data():
    with pytest.raises(ValueError, match="raised ZeroDivisionError"):
        audit(lambda x: 1 / 0, [(0, 1)], claim=1.0)
    found = audit(lambda x: 1 / x, [(0, 1)], claim=1.0, n_samples=400)
    assert found.violated
    assert "ZeroDivisionError" in found.event
