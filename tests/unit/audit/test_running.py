"""Audits of running code: bounds that hold, events that tell, and what is refused before anything runs."""

import numpy as np
import pytest
from scipy.stats import binom

from dpestim.audit import audit
from dpestim.audit.running.bounds import (
    Evidence,
    clopper_pearson,
    exact_bound,
    probability_at_least,
    probability_at_most,
)
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


@pytest.mark.parametrize(("k", "other", "delta"), [(40, 9, 0.0), (25, 0, 0.0), (50, 20, 0.1), (12, 1, 0.02)])
def test_the_exact_bound_is_where_the_p_value_of_its_ordering_is_the_error(k, other, delta):
    """All counts that are at least as much evidence are enumerated, at many probabilities."""
    n, error = 60, 0.05
    ends = probability_at_least(range(n + 1), n, error / 2) - delta, probability_at_most(range(n + 1), n, error / 2)
    ratio = np.where(ends[0] > 0, ends[0], -1.0)[:, None] / ends[1]
    region = ratio >= ratio[k, other] * (1 - 1e-12)
    bound = exact_bound(k, n, other, n, delta, error)
    q = np.linspace(0, probability_at_most(other, n, error / 200), 300)
    p = np.minimum(1.0, np.exp(bound) * q + delta)
    found = [binom.pmf(range(n + 1), n, a) @ region @ binom.pmf(range(n + 1), n, b) for a, b in zip(p, q)]
    assert 0.85 * error < max(found) <= 0.99 * error  # (a part of the error is for q that is elsewhere)


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


def test_false_alarms_are_as_seldom_as_declared(monkeypatch):
    """Outputs of 30 kinds tell nothing; what is chosen on a sample would look as if they did on the same sample."""
    spent = []

    def noted(*counts):
        spent.append(counts[-1])
        return exact_bound(*counts)

    monkeypatch.setattr("dpestim.audit.running.search.exact_bound", noted)
    monkeypatch.setattr("dpestim.audit.running.plans._QUICK", {True: (10, 10)})
    alarms = 0
    for seed in range(24):
        spent.clear()
        found = audit(lambda x, n, rng: rng.integers(30, size=n).astype(str), [(0, 1)], claim=0.0, confidence=0.8,
                      batch=True, n_samples=1000, random_state=seed)
        assert sum(spent) <= 0.2 + 1e-9  # (over all rounds)
        alarms += found.violated
    assert alarms <= binom.ppf(1 - 1e-4, 24, 0.2)


def test_the_lowest_bits_of_floats_tell():
    found = audit(laplace, [(0, 1)], claim=PrivacyGuarantee(1), random_state=0, n_samples=40_000)
    assert found.violated
    assert "multiple of 2^" in found.event
    assert found.counts[1][0] == 0


def test_an_audit_is_reproducible_from_what_it_tells():
    for seconds in (0.2, 2.0, 20.0, 200.0):  # (a machine that is stopped meanwhile says that the time was short)
        first = audit(laplaces, [(0, 1), (0, 0.5)], claim=0.5, batch=True, time_limit=seconds)
        if "The time" not in str(first):
            break
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
    found = audit(lambda x: 1 / x, [(0, 1)], claim=1.0, n_samples=400, random_state=0)
    assert found.violated
    assert "ZeroDivisionError" in found.event
