"""Plans: what they say is what simulations show, what they find is the least, and what they refuse."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import dpestim.local
from dpestim.base import all_estimators
from dpestim.local import DuchiTransformer, GRRFrequencyEstimator, plan, plan_mean
from dpestim.local.categories.choice import candidates
from dpestim.local.categories.cms import CMS
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.estimates.planning import PlanRow
from dpestim.local.numbers.laplace import Laplace
from dpestim.local.numbers.staircase import Staircase
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import WORD

SHAPES = {
    "even": lambda d: np.full(d, 1 / d),
    "falling": lambda d: 1 / np.arange(1, d + 1) / (1 / np.arange(1, d + 1)).sum(),
    "one": lambda d: np.where(np.arange(d) == 1, 0.6, 0.4 / (d - 1)),
}
SURVEYS = [(2000, 64, 1.0, "even", 150), (1000, 11, 2.0, "falling", 750), (500, 150, 0.5, "one", 100)]


def errors_of(name, n, d, epsilon, shape, n_surveys):
    """Return (n_surveys, d) errors of a mechanism's frequencies."""
    X = np.repeat(np.arange(d), np.diff(np.round(np.cumsum([0, *SHAPES[shape](d)]) * n).astype(int)))
    est = getattr(dpestim.local, name)(epsilon, categories=[np.arange(d)], random_state=7)
    law, reports = est.randomizer(), est.privatize(np.tile(X, n_surveys)[:, None])
    found = []
    for part in np.split(reports, n_surveys):
        counts = np.zeros(law.n_counts, np.int64)
        law.count(part, counts)
        found.append(law.estimate(counts, n))
    return np.array(found) - np.bincount(X, minlength=d) / n


def share_within(row, n, d, epsilon):
    """How often all of d values are within an error that is planned for half of the surveys.

    A plan takes the worst value's error for all: where the errors of values differ (RAPPOR) it is more than half.
    """
    law = candidates(epsilon, d)[0][row.mechanism]
    each = np.broadcast_to(np.sqrt(law.variance(n, np.full(d, 1 / d))), d)
    return 0.5 if np.ptp(each) < 1e-6 * each.max() else np.prod(2 * ndtr(row.max_error / each) - 1)


def test_a_plan_of_values_with_unequal_errors_is_on_the_safe_side():
    found = plan(n_users=2000, n_categories=64, epsilon=1.0, probability=0.5)
    shares = {row.mechanism: share_within(row, 2000, 64, 1.0) for row in found.rows}
    unequal = {name: share for name, share in shares.items() if share != 0.5}
    assert list(unequal) == ["RAPPORFrequencyEstimator"]
    assert 0.5 < min(unequal.values()) < 0.7


@pytest.mark.ci
@pytest.mark.parametrize("survey", SURVEYS, ids=lambda s: f"{s[1]}-{s[3]}")
def test_the_errors_of_a_plan_are_those_of_a_simulation(survey):
    """Each error is known to about 1 % from 7,500 or more of them, so 5 % are more than four standard deviations."""
    n, d, epsilon, shape, n_surveys = survey
    found = plan(n_users=n, n_categories=d, epsilon=epsilon, probability=0.5)
    other = {row.mechanism: row.rmse for row in plan(n_users=n, n_categories=d, epsilon=1.25 * epsilon).rows}
    assert len(found.rows) >= 10
    for row in found.rows:
        errors = errors_of(row.mechanism, n, d, epsilon, shape, n_surveys)
        rmse = np.sqrt(np.square(errors).mean())
        assert row.rmse == pytest.approx(rmse, rel=0.05), row.mechanism
        assert other[row.mechanism] != pytest.approx(rmse, rel=0.05)  # a quarter more epsilon would be told from this
        if shape == "even":  # (150 surveys know a share to 0.041: four standard deviations, and what is neglected)
            share = (np.abs(errors).max(axis=1) <= row.max_error).mean()
            assert abs(share - share_within(row, n, d, epsilon)) < 0.17, row.mechanism


@pytest.mark.parametrize("d", [2, 3, 5, 7, 64, 100, 1023, 1025])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_errors_at_equal_frequencies_are_those_of_all_frequencies(d, epsilon):
    """A law that says its variance for values that are held equally often says what it says of all frequencies."""
    drawn = [cls.make(epsilon, d, 7, 16) for cls in (CMS, HCMS)]  # (hashes of which two values share some buckets)
    assert not any(law.is_exact for law in drawn)
    laws, own = [*candidates(epsilon, d)[0].values(), *drawn], 0
    for law in laws:
        own += type(law).even_variance is not CategoricalRandomizer.even_variance
        for n in (1, 1000, 1 << 40):
            all_of_them = np.broadcast_to(law.variance(n, np.full(d, 1 / d)), d)
            slow = all_of_them.mean(), all_of_them.max()
            assert law.even_variance(n) == pytest.approx(slow, rel=1e-9, abs=0), law
    assert own >= 3


def laplace_rows(law):
    """The table of `Laplace` as its proof has it, one integer at a time."""
    n, places, beyond, alpha = law.grid, law.places, law.beyond, law.beyond / (1 + law.beyond)
    tails = [WORD / (1 + alpha) * alpha**k for k in range(n + 1)]
    noise = [math.ceil((1 - alpha) * t) for t in tails]
    ends = [places * math.floor(tails[0] / places), *(places * math.ceil(t / places) for t in tails[1:])]
    for g in range(n + 1):
        row = [ends[g], *(noise[abs(y - g)] for y in range(1, n)), ends[n - g]]
        missing = WORD - sum(row)
        drift = sum((y - g) * row[y] for y in range(1, n)) + (n - g + beyond) * row[n] - (g + beyond) * row[0]
        a = min(max(g, 1), n - 2)
        up = (g - a) * missing - drift
        row[a] += missing - up
        row[a + 1] += up
        yield row


def staircase_rows(law):
    """The table of `Staircase`, alike; the mean is made exact by its code at a bound and two codes between them."""
    n, b, far = law.grid, law.beyond / (1 + law.beyond), law.grid * law.beyond
    middle = (1 - b) / (2 * law.flat + 2 * b * (n - law.flat) - (1 - b))
    level = [k // n + (k % n >= law.flat) for k in range(2 * n)]
    inner, outer = ([round(WORD * top * b**k) for k in level] for top in (middle, middle / (1 - b)))
    for g in range(n + 1):
        row = {y: (inner if 0 < y < n else outer)[abs(y - g)] for y in range(1 - n, 2 * n)}
        drift = sum((y - g) * w for y, w in row.items())
        excess = sum(w for y, w in row.items() if y >= n) - sum(w for y, w in row.items() if y <= 0)
        end, way = (n, 1) if 2 * g >= n else (0, -1)
        least, reach = -way * excess % far.denominator, end - g + way * far
        more = least + far.denominator * round((-(drift + far * excess) / reach - least) / far.denominator)
        row[end] += more
        drift += far * (excess + way * more) + (end - g) * more
        missing, a = WORD - sum(row.values()), min(max(g, 1), n - 2)
        up = (g - a) * missing - drift
        row[a] += missing - up
        row[a + 1] += up
        yield list(row.values())


@pytest.mark.parametrize("epsilon", [0.5, 1, 7])
@pytest.mark.parametrize(("cls", "slow"), [(Laplace, laplace_rows), (Staircase, staircase_rows)])
def test_tables_that_are_made_as_arrays_are_those_of_single_integers(cls, slow, epsilon):
    for grid in (4, 32):
        law = cls.make(epsilon, grid)
        assert law.table() == list(slow(law))
        assert all(type(w) is int for row in law.table() for w in row)


def test_a_plan_imports_no_other_room():
    """A plan knows all mechanisms that the registry has, and a fresh process that plans reads no other estimator."""
    everything = {cls for _, cls in all_estimators(("local",))}
    for room, kind in (("categories", FrequencyEstimator), ("numbers", NumericTransformer)):
        assert {c for c in everything if issubclass(c, kind)} <= {c for _, c in all_estimators(("local",), room)}
    code = ("import sys; from dpestim.local import plan_mean; plan_mean(n_users=9, epsilon=1.0); "
            "assert not [m for m in sys.modules if m.startswith(('dpestim.local.learning', 'dpestim.local.domains.'))]")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_rows_are_sorted_and_complete():
    found = plan(n_users=10**6, n_categories=1024, epsilon=1.0)
    names = {row.mechanism for row in found.rows}
    assert {"GRRFrequencyEstimator", "SHEFrequencyEstimator", "PGRFrequencyEstimator"} <= names
    assert not {name for name in names if name.startswith(("URR", "URAP", "SDGRR", "Adaptive"))}  # relaxed, or no law
    assert [row.rmse for row in found.rows] == sorted(row.rmse for row in found.rows)
    assert found.best is found.rows[0]
    assert found.left_out.keys().isdisjoint(names)
    by_name = {row.mechanism: row for row in found.rows}
    assert by_name["GRRFrequencyEstimator"].bits == 10
    assert by_name["OLHFrequencyEstimator"].server_s > by_name["PGRFrequencyEstimator"].server_s
    assert all(value > 0 and math.isfinite(value) for row in found.rows for value in row[1:-1])


def test_what_is_left_out_says_why():
    few, many, most = (plan(n_users=100, n_categories=d, epsilon=1) for d in (64, 512, (1 << 22) + 1))
    assert not {row.mechanism for row in few.rows} & {"MetricFrequencyEstimator", "IDUEFrequencyEstimator"}
    assert "parameters of this mechanism" in few.left_out["IDUEFrequencyEstimator"]
    assert {row.mechanism for row in few.rows} >= {
        f"{name}FrequencyEstimator" for name in ("RAPPOR", "CMS", "HCMS", "LGRR", "LOUE", "LOSUE", "LOLOHA", "DBitFlip")
    }
    assert many.left_out["RAPPORFrequencyEstimator"] == "its errors are not planned for more than 128 categories"
    assert most.left_out["HRFrequencyEstimator"] == "its errors are not planned for more than 4,194,304 categories"
    assert "GRRFrequencyEstimator" not in most.left_out


def test_the_names_of_a_small_domain_are_not_told_twice():
    found = plan(n_users=100, n_categories=2, epsilon=2.0)
    assert found.left_out["BinaryFrequencyEstimator"] == "it is another mechanism with these settings"
    grr = next(row for row in found.rows if row.mechanism == "GRRFrequencyEstimator")
    assert grr.rmse == pytest.approx(math.sqrt(math.e**2 / (math.e**2 - 1) ** 2 / 100))


@pytest.mark.ci
@pytest.mark.parametrize(("d", "n", "target"), [(16, 10_000, 0.05), (2, 10**6, 0.001), (300, 10**5, 0.0007)])
def test_what_is_found_is_the_least(d, n, target):
    found = plan(n_categories=d, n_users=n, target_rmse=target)
    assert found.best.rmse <= target
    unit = 10.0 ** (math.floor(math.log10(found.epsilon)) - 2)
    assert round(found.epsilon / unit, 6) == round(found.epsilon / unit)  # three digits
    assert plan(n_categories=d, n_users=n, epsilon=found.epsilon - unit).best.rmse > target
    fewest = plan(n_categories=d, epsilon=found.epsilon, target_rmse=target).n_users
    assert fewest <= n
    assert plan(n_categories=d, epsilon=found.epsilon, n_users=fewest).best.rmse <= target
    assert plan(n_categories=d, epsilon=found.epsilon, n_users=fewest - 1).best.rmse > target


def test_a_plan_can_be_read():
    found = plan(n_users=10**6, n_categories=1024, epsilon=1)
    lines = str(found).splitlines()
    assert lines[0].split() == list(PlanRow._fields[:-1])
    assert len(lines) == len(found.rows) + 2
    assert lines[-1] == found.recommendation
    assert "SSFrequencyEstimator" in found.recommendation
    assert "or PGRFrequencyEstimator, with" in found.recommendation
    assert "reports of 10 bits" in found.recommendation
    frame = found.to_frame()
    assert list(frame.columns) == list(PlanRow._fields)
    assert frame["rmse"].tolist() == [row.rmse for row in found.rows]
    assert "strategy=" in str(plan_mean(n_users=100, epsilon=2.0, n_columns=4))


def test_errors_at_other_budgets():
    found = plan(n_users=1000, n_categories=16, epsilon=1)
    curves = found.errors_at([0.5, 1.0, 2.0])
    assert curves.keys() == {row.mechanism for row in found.rows}
    for row in found.rows:
        assert curves[row.mechanism][1] == row.rmse
        assert (np.diff(curves[row.mechanism]) < 0).all()


def test_plans_are_kept(monkeypatch):
    first = plan(n_users=1000, n_categories=2048, epsilon=1.25)
    law = dpestim.local.SSFrequencyEstimator._randomizer
    monkeypatch.setattr(law, "variance", lambda *_: pytest.fail("a law was asked again"))
    assert plan(n_users=1000, n_categories=2048, epsilon=1.25) == first


class TestMeans:
    @pytest.mark.ci
    @pytest.mark.parametrize("n_columns", [1, 4])
    def test_the_errors_of_a_plan_are_those_of_a_simulation(self, n_columns):
        """40,000 reports know a standard deviation to 0.6 % and less."""
        found = plan_mean(n_users=100, epsilon=2.0, n_columns=n_columns)
        assert {row.mechanism for row in found.rows} >= {f"{n}Transformer" for n in ("PM", "HM", "Duchi", "Laplace")}
        for row in found.rows:
            strategy = row.parameters.split('"')[1] if row.parameters else "split"
            bounds = ([0.0] * n_columns, [1.0] * n_columns)
            client = getattr(dpestim.local, row.mechanism)(2.0, bounds=bounds, strategy=strategy, random_state=3)
            errors = []
            for value in (0.0, 0.25, 0.5):  # (laws are symmetric, and noisiest at one of these, or nearly)
                X = np.full((40_000, n_columns), value)
                seen = client.decode(client.privatize(X))[:, 0]
                errors.append(seen.std() / 10)
                assert seen.mean() == pytest.approx(value, abs=5 * seen.std() / 200)
            assert row.rmse == pytest.approx(max(errors), rel=0.05), row.mechanism
            if n_columns == 1:  # a fifth more epsilon would be told from this
                law = client.set_params(epsilon=2.4).randomizer()
                assert max(errors) > 1.05 * np.sqrt(law.variance().max()) / 10

    @pytest.mark.ci
    def test_what_is_found_is_the_least(self):
        found = plan_mean(n_users=1000, target_rmse=0.05)
        assert found.best.rmse <= 0.05
        assert plan_mean(n_users=1000, epsilon=found.epsilon - 0.01).best.rmse > 0.05
        assert plan_mean(epsilon=found.epsilon, target_rmse=0.05).n_users <= 1000

    def test_means_are_named(self):
        found = plan_mean(n_users=1000, epsilon=1)
        assert "of means" in found.recommendation
        assert found.n_columns == 1
        assert found.n_categories is None
        assert found.best.max_error == pytest.approx(1.959964 * found.best.rmse)

    def test_of_several_columns_all_bits_are_counted(self):
        rows = {row.mechanism: row for row in plan_mean(n_users=1000, epsilon=2, n_columns=4).rows}
        assert rows["DuchiTransformer"].parameters == 'strategy="joint"'
        law = DuchiTransformer(2, bounds=([0] * 4, [1] * 4), strategy="joint").randomizer()
        assert rows["DuchiTransformer"].bits == law.report_bits == 4


@pytest.mark.parametrize("given", [
    {}, {"n_users": 5}, {"epsilon": 1}, {"n_users": 5, "epsilon": 1, "target_rmse": 0.1},
])
def test_exactly_one_is_left_out(given):
    for ask in (lambda **k: plan(n_categories=4, **k), plan_mean):
        with pytest.raises(ValueError, match="exactly one of n_users, epsilon and target_rmse"):
            ask(**given)


@pytest.mark.parametrize(("bad", "match"), [
    ({"n_categories": None}, "n_categories must be an integer from 2"),
    ({"n_categories": 1}, "n_categories must be an integer from 2"),
    ({"n_categories": 4.0}, "n_categories must be an integer from 2"),
    ({"n_users": 0}, "n_users must be an integer from 1"),
    ({"n_users": True}, "n_users must be an integer from 1"),
    ({"epsilon": 0}, "epsilon must be"),
    ({"epsilon": 81}, "epsilon must be"),
    ({"epsilon": math.nan}, "epsilon must be"),
    ({"probability": 1}, "probability must be a number above 0 and below 1"),
    ({"probability": math.nan}, "probability must be a number above 0 and below 1"),
    ({"epsilon": None, "target_rmse": 1.0}, "target_rmse must be a number above 0 and below 1"),
    ({"epsilon": None, "target_rmse": "0.1"}, "target_rmse must be a number above 0 and below 1"),
    ({"n_users": None, "target_rmse": 1e-12}, "target_rmse is too small"),
    ({"epsilon": None, "n_users": 1, "target_rmse": 1e-60}, "target_rmse is too small"),
])
def test_what_does_not_fit_is_refused(bad, match):
    with pytest.raises(ValueError, match=match):
        plan(**{"n_users": 100, "n_categories": 4, "epsilon": 1, **bad})


def test_extremes():
    assert plan(n_users=1, n_categories=2, epsilon=Fraction(1, 10**6)).best.rmse > 100
    assert plan(n_users=1, n_categories=1 << 32, epsilon=80).best.bits > 0
    assert plan(n_users=2**53, n_categories=2, target_rmse=0.9).epsilon == 1e-6
    with pytest.raises(ValueError, match="n_columns must be an integer from 1"):
        plan_mean(n_users=1, epsilon=1, n_columns=0)


def test_to_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install"):
        plan(n_users=1, n_categories=2, epsilon=1).to_frame()


def test_the_largest_error_of_many_rare_values_is_not_normal():
    """n = 40 surveys: below .85 has a probability of 5e-3 at .95; by normal quantiles a fifth were within."""
    row = next(row for row in plan(n_users=20_000, n_categories=14_000, epsilon=4.0).rows
               if row.mechanism == "GRRFrequencyEstimator")
    rows = (np.arange(20_000) % 14_000)[:, None]
    truth = np.bincount(rows[:, 0], minlength=14_000) / 20_000
    within = [np.abs(GRRFrequencyEstimator(4.0, categories=[range(14_000)], random_state=seed).fit(rows).frequencies_[0]
                     - truth).max() <= row.max_error for seed in range(40)]
    assert 0.85 <= np.mean(within) <= 1
