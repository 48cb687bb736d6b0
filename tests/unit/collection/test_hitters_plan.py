"""Plans of heavy hitters: what they predict is found, with the errors that they predict; what they refuse."""

import numpy as np
import pytest

from dpestim.collection import plan_heavy_hitters
from dpestim.local import HeavyHitterEstimator
from dpestim.shuffle import ShuffledEstimator
from dpestim.statistics import UnknownCategories

N, BITS, TOP = 20_000, 16, 8


@pytest.fixture(scope="module")
def planned():
    return plan_heavy_hitters(n_users=N, epsilon=3.0, n_bits=BITS, n_top=TOP, delta=1e-4)


def held(n, f, seed):
    """Return numbers, of which `TOP` have the frequency f, and these."""
    rng = np.random.default_rng(seed)
    often = np.random.default_rng(5).permutation(1 << BITS)[:TOP]
    at = (rng.random(n) / f).astype(int)
    return np.where(at < TOP, often[np.minimum(at, TOP - 1)], rng.integers(0, 1 << BITS, n)), often


@pytest.mark.parametrize(("model", "method"), [("shuffle", "pem"), ("local", "pem"), ("local", "treehist"),
                                               ("local", "bitstogram"), ("local", "sfp")])
def test_values_of_the_planned_frequency_are_found_with_the_planned_errors(planned, model, method):
    row = next(r for r in planned.rows if (r.model, r.parameters) == (model, f'method="{method}"'))
    found, errors = [], []
    for seed in range(3):
        x, often = held(N, row.frequency, seed)
        est = HeavyHitterEstimator(3.0, n_bits=BITS, n_top=TOP, method=method, n_users=N, random_state=seed)
        if row.model == "shuffle":
            est = ShuffledEstimator(est, 3.0, delta=1e-4)
        told = est.fit(x[:, None]).heavy_hitters_
        mine = np.isin(told.values, often)
        found.append(mine.sum() / TOP)
        errors += [*told.standard_errors[mine]]
    assert np.mean(found) > 0.7  # (24 values, each with 0.9 or more: fewer once in a thousand)
    assert 0.8 < np.mean(errors) / row.standard_error < 1.2


def test_values_below_the_planned_frequency_are_hardly_found(planned):
    row, (x, often) = planned.best_of("local"), held(N, planned.best_of("local").frequency / 2, 0)
    method = row.parameters.split('"')[1]
    est = HeavyHitterEstimator(3.0, n_bits=BITS, n_top=TOP, method=method, n_users=N, random_state=0)
    assert np.isin(often, est.fit(x[:, None]).heavy_hitters_.values).mean() < 0.5


def test_a_curator_publishes_values_of_the_planned_frequency(planned):
    row = planned.best_of("central")
    x = (np.random.default_rng(3).random(N) / row.frequency).astype(int)
    shown = UnknownCategories(3.0, delta=1e-4, neighbours="substitution", random_state=0).fit(x)
    assert 0.84 < np.isin(np.arange(int(1 / row.frequency)), shown.result_.keys[0]).mean() < 0.96


def test_trust_finds_rarer_values_and_the_table_says_so(planned):
    users = [planned.best_of(model).users for model in ("central", "shuffle", "local")]
    assert users[0] < users[1] / 2 < users[2] / 4
    assert planned.best is planned.rows[0]
    assert len(planned.to_frame()) == len(planned.rows) == 9
    assert "UnknownCategories (delta=0.0001) finds values of" in str(planned)
    alone = plan_heavy_hitters(n_users=N, epsilon=3.0, n_bits=BITS, n_top=TOP, delta=1e-4, colluding=N - 1)
    assert 0.99 < alone.best_of("shuffle").users / alone.best_of("local").users <= 1  # (nobody is left to hide anybody)
    assert alone.best_of("local") == planned.best_of("local")
    many = plan_heavy_hitters(n_users=10**12, epsilon=0.1, n_bits=64)  # (as many hashes as there may be)
    assert many.best.frequency < 1e-8
    assert "none is found" in str(plan_heavy_hitters(n_users=10, epsilon=0.5, n_bits=64))


@pytest.mark.parametrize(("name", "value"), [("n_users", 0), ("n_users", 10**15 + 1), ("epsilon", 0), ("delta", 0),
                                             ("n_bits", 65), ("n_top", 0), ("colluding", 10), ("colluding", -1)])
def test_plans_of_heavy_hitters_refuse_what_does_not_fit(name, value):
    with pytest.raises(ValueError, match=name):
        plan_heavy_hitters(**{"n_users": 10, "n_bits": 8, "epsilon": 1.0, name: value})


def test_models_have_names(planned):
    with pytest.raises(ValueError, match="model"):
        planned.best_of("other")
