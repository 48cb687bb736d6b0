"""What honest clients cannot change: known laws for every input, false alarms, and reports that are found."""

import pickle
import re

import numpy as np
import pytest
from scipy import stats
from test_malicious import FREQUENCIES, every_report, settings

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.audit import poisoning
from dpestim.base import all_estimators
from dpestim.collection import Collector, Survey
from dpestim.local import (
    CMSFrequencyEstimator,
    DBitFlipFrequencyEstimator,
    GRRFrequencyEstimator,
    HCMSFrequencyEstimator,
    HMTransformer,
    HRFrequencyEstimator,
    MeanEstimator,
    MixedEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PGRFrequencyEstimator,
    PMTransformer,
    PrivKVEstimator,
    RAPPORFrequencyEstimator,
    SHEFrequencyEstimator,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
    SWTransformer,
)
from dpestim.local.client import Client
from dpestim.local.numbers.law import NumericRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.pivots import cells, repeats, total, values
from dpestim.local.reports import FieldReports, PackedBits
from dpestim.local.server import Server

#: False alarms of the simulations, and how unlikely more of them than are allowed would be.
RATE, ALPHA = 0.05, 1e-6


def expected_of(law, chances, reports):
    """Return [(observed on average, expected)] of each pivot of one report, which has these chances."""
    sums = None
    for chance, report in zip(chances, reports):
        found = law.known_of(report[None])
        sums = [0.0] * len(found) if sums is None else sums
        sums = [total + chance * pivot.observed for total, pivot in zip(sums, found)]
    return [(one, pivot.expected) for one, pivot in zip(sums, law.known_of(reports[:1]))]


def laws_of(cls, each):
    for params in each:
        est = cls(**params)
        try:
            yield from est._columns_now().laws
        except ValueError:
            continue  # (learns its domain)


@pytest.mark.parametrize(("name", "cls"), FREQUENCIES)
def test_what_is_said_to_be_known_of_reports_is_the_same_for_every_value(name, cls):
    for law in laws_of(cls, settings(cls)):
        if isinstance(law, FieldReports) and law.field_limits[0] is None:
            continue  # (public hashes and windows: only these are looked at)
        if hasattr(law, "n_cohorts") or (isinstance(law, PackedBits) and law.n_categories > 8):
            continue
        reports = every_report(law)
        if not law.known_of(reports[:1]):
            continue
        public = law.public_part(reports)
        n_public = 1 if public is None else len(np.unique(public, axis=0))
        matrix = np.array([[float(p) for p in row] for row in law.transition_matrix()])
        for x in range(law.n_categories):
            rows, columns = law.law_indices(np.full(len(reports), x, law.code_dtype), reports)
            for one, wanted in expected_of(law, matrix[rows, columns] / n_public, reports):
                np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{law} {x}")


@pytest.mark.parametrize(("name", "cls"), [pair for pair in all_estimators(("local",))
                                           if issubclass(pair[1], NumericTransformer)])
def test_what_is_said_to_be_known_of_codes_is_the_same_for_every_number(name, cls):
    for law in laws_of(cls, cls._test_params()):
        if not isinstance(law, NumericRandomizer):
            continue
        reports = np.arange(law.n_counts, dtype=law.report_dtype)[:, None]
        if law.known_of(reports[:1]):
            for row in law.transition_matrix():
                for one, wanted in expected_of(law, [float(p) for p in row], reports):
                    np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12, err_msg=str(law))


def test_known_laws_of_keys_cohorts_and_filters():
    law = PrivKVEstimator(1.0, keys=5).randomizer()
    assert law.known_of(np.array([[4]], law.report_dtype))[0].expected == pytest.approx(np.full(5, 0.2))
    est = RAPPORFrequencyEstimator(2.0, categories=[range(4)], n_bits=8, n_cohorts=2, n_hashes=2, random_state=0)
    for held in (0, 3):
        reports = est.privatize(np.full((20_000, 1), held))
        each = est.randomizer().known_of(np.asarray(reports))
        assert [pivot.what for pivot in each] == ["ones in a report", "bits that are 1", "cohorts that were drawn"]
        observed, expected = each[0].observed, each[0].expected
        seen = expected > 5
        assert stats.chi2.sf(np.square(observed - expected)[seen] @ (1 / expected[seen]), seen.sum()) > ALPHA


# ---------------------------------------------------------------- p values


def test_p_values_are_those_of_the_exact_laws():
    n, chance = 20, 0.3
    law = stats.binom.pmf(np.arange(n + 1), n, chance)
    p = np.array([cells("", [k], [chance], n).p_values[0] for k in range(n + 1)])
    for alpha in (0.01, 0.05, 0.3):
        assert law[p <= alpha].sum() <= alpha
        assert law[p <= alpha].sum() > alpha / 8  # (and it is a test)
    parts = (12, 0.2), (5, 0.6)
    law = np.convolve(*(stats.binom.pmf(np.arange(m + 1), m, q) for m, q in parts))
    for k in (0, 3, 5, 11, 17):
        wanted = min(1, 2 * min(law[: k + 1].sum(), law[k:].sum()))
        assert total("", k, parts).p_values[0] == pytest.approx(wanted, rel=1e-9)
    assert repeats("", np.zeros((3, 2), int), 64).p_values[0] < 1e-18
    assert repeats("", np.arange(6).reshape(3, 2), 64).p_values[0] == 1
    wide = stats.binom.pmf(np.arange(5001), 5000, 0.4)
    seen = np.random.default_rng(0).binomial(5000, 0.4, 20_000)
    pivot = values("", seen, wide)
    assert pivot.expected.sum() == pytest.approx(20_000)
    assert pivot.observed.sum() == 20_000
    assert len(pivot.observed) < 300
    assert values("", np.append(seen, 5000), wide).p_values.min() < 1e-20
    assert pivot.p_values.min() * len(pivot.p_values) > 1e-3


def peaked(n, d):
    return np.zeros((n, 1), np.int64)


def spread(n, d):
    return (np.arange(n) % d)[:, None]


@pytest.mark.ci
@pytest.mark.parametrize("values_of", [peaked, spread])
@pytest.mark.parametrize("cls", [OUEFrequencyEstimator, OLHFrequencyEstimator, HRFrequencyEstimator,
                                 CMSFrequencyEstimator])
def test_false_alarms_are_as_rare_as_stated(cls, values_of):
    """150 tests of 60 reports each, of values that are all the same, and of values of all kinds."""
    times, n, d = 150, 60, 12
    reports = np.asarray(cls(1.0, categories=[range(d)], random_state=7).privatize(values_of(times * n, d)))
    server = cls(1.0, categories=[range(d)])
    alarms = sum(server.detect_poisoning(reports[k * n : (k + 1) * n], alpha=RATE).suspicious for k in range(times))
    assert alarms <= stats.binom.isf(ALPHA, times, RATE)


def test_false_alarms_of_counts_are_as_rare_as_stated():
    times, n = 100, 80
    server = MeanEstimator(PMTransformer(1.0, bounds=(0, 1), grid=16))
    reports = np.asarray(PMTransformer(1.0, bounds=(0, 1), grid=16, random_state=1).privatize(np.ones((times * n, 1))))
    alarms = [MeanEstimator(server.transformer).aggregate(part).detect_poisoning(alpha=RATE).suspicious
              for part in np.split(reports, times)]
    assert sum(alarms) <= stats.binom.isf(ALPHA, times, RATE)


# ---------------------------------------------------------------- what is found


def malicious(cls, law, d):
    """Return a report that an attacker of the last value likes best."""
    if cls is OLHFrequencyEstimator:
        return [0, 0, 0]
    if cls is HRFrequencyEstimator:
        return [(d - 1) % law.n_blocks * 2 * law.half]
    if cls is HCMSFrequencyEstimator:
        return [0, 0, 0]
    if cls is PGRFrequencyEstimator:
        return [int(np.flatnonzero(law.support(np.arange(law.n_counts, dtype=law.report_dtype)[:, None])[:, -1])[0])]
    if cls is DBitFlipFrequencyEstimator:
        return [0, 3]
    if cls is SHEFrequencyEstimator:
        return [law.grid] * d
    return [0] * (law.report_width - 2) + [255, 255 >> -d % 8] if cls is not CMSFrequencyEstimator else (
        [0, 0] + [255] * (law.report_width - 2))


@pytest.mark.parametrize("cls", [OUEFrequencyEstimator, SUEFrequencyEstimator, OLHFrequencyEstimator,
                                 HRFrequencyEstimator, CMSFrequencyEstimator, HCMSFrequencyEstimator,
                                 PGRFrequencyEstimator, DBitFlipFrequencyEstimator, SHEFrequencyEstimator])
def test_output_poisoning_is_found_and_input_poisoning_is_not(cls):
    n, d, share = 6000, 20, 0.05
    est = cls(1.0, categories=[range(d)], random_state=2)
    X = spread(n, d)
    X[: int(share * n)] = d - 1  # input poisoning
    reports = np.array(est.privatize(X))
    assert not est.detect_poisoning(reports).suspicious
    reports[: int(share * n)] = malicious(cls, est.randomizer(), d)
    found = est.detect_poisoning(reports)
    assert found.suspicious
    assert found.n_reports == n
    assert found.p_value < 1e-6
    assert not hasattr(est, "frequencies_")  # (nothing was counted)


def test_hashes_that_were_searched_anew_for_each_report_are_found():
    """An attacker who draws honest hashes until one puts all goals into one bucket passes every test of one hash."""
    n, d, share, goals = 6000, 300, 0.05, [3, 17, 40]
    est = OLHFrequencyEstimator(1.0, categories=[range(d)], random_state=2)
    law, reports = est.randomizer(), np.array(est.privatize(spread(n, d)))
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 1 << 32, (40 * n, 3), np.uint64).astype(np.uint32)
    drawn[:, 2] = rng.integers(0, law.n_buckets, len(drawn))
    good = drawn[law.support(drawn)[:, goals].all(axis=1)][: int(share * n)]
    assert len(good) == share * n
    assert len(np.unique(good[:, :2], axis=0)) == len(good)
    reports[: len(good)] = good
    lines = {line.statistic: line for line in est.detect_poisoning(reports).lines}
    pair = lines.pop("hashes that put two values into one bucket")
    assert pair.p_value < 1e-4
    assert set(map(int, re.findall(r"\d+", pair.event))) < set(goals)
    assert min(line.p_value for line in lines.values()) > 1e-4


@pytest.mark.parametrize("cls", [PMTransformer, SWTransformer, HMTransformer])
def test_extreme_numbers_are_found_in_counts(cls):
    transformer = cls(2.0, bounds=(0, 1), random_state=3)
    reports = np.array(transformer.privatize(np.random.default_rng(0).random((5000, 1))))
    server = MeanEstimator(cls(2.0, bounds=(0, 1)))
    assert not server.aggregate(reports).detect_poisoning().suspicious
    reports[:100] = transformer.randomizer().positions.argmax()
    assert MeanEstimator(cls(2.0, bounds=(0, 1))).aggregate(reports).detect_poisoning().suspicious


def test_columns_and_keys_that_are_named_too_often_are_found():
    def row():
        return MixedEstimator([("x", GRRFrequencyEstimator(categories=[range(4)] * 5), [0, 1, 2, 3, 4])], n_sampled=1)

    reports = np.array(row().set_params(random_state=0).privatize(np.zeros((2000, 5), int)))
    assert not row().aggregate(reports).detect_poisoning().suspicious
    reports[:150] = (2, 3)
    assert row().aggregate(reports).detect_poisoning().suspicious
    assert row().detect_poisoning(reports).lines[-1].event == "column 2"
    pairs = PrivKVEstimator(1.0, keys=10)
    codes = np.array([[3 * (k % 10)] for k in range(2000)], pairs.randomizer().report_dtype)
    assert not pairs.detect_poisoning(codes).suspicious
    codes[:150] = 3
    assert pairs.detect_poisoning(codes).suspicious


def test_reports_that_travelled_are_tested_as_all_others(tmp_path):
    survey = Survey(OUEFrequencyEstimator(1.0, categories=[range(8)]), name="places")
    reports = np.array(survey.client(random_state=0).privatize(spread(2000, 8)))
    collector = Collector(survey, tmp_path / "state.sqlite")
    collector.add(survey.encode(reports))
    assert not collector.server().detect_poisoning().suspicious
    reports[:60] = 255  # all bits are 1
    messages = survey.encode(reports)
    assert survey.server().detect_poisoning(survey.decode(messages)).suspicious
    assert float(poisoning(survey.server(), 0.03, goal=0).worst()) > 0.03


# ---------------------------------------------------------------- contracts


def detected(server, *reports):
    try:
        return server.detect_poisoning(*reports), None
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize(("name", "cls"), [pair for pair in all_estimators() if issubclass(pair[1], Server)])
def test_honest_clients_of_every_kind_raise_no_alarm(name, cls):
    """Counts and reports of the data of the common checks; what has no test says what to do."""
    for params in cls._test_params():
        server = cls(**params)
        seeds = [key for key in server.get_params() if key.split("__")[-1] == "random_state"]
        server.set_params(**dict.fromkeys(["random_state"] if "random_state" in seeds else seeds, 0))
        X, y = server._test_data(300)
        server.fit(X, y)
        found = [detected(server)]
        if isinstance(server, Client) and not hasattr(server, "classes"):
            found.append(detected(server, np.asarray(server.privatize(X))))
        for result, reason in found:
            assert result is None or (result.p_value > ALPHA and not result.suspicious), (params, str(result))
            assert result is not None or re.search("allows no test|must be given|pass one of", reason), reason
            assert result is None or str(pickle.loads(pickle.dumps(result))) == str(result)


@pytest.mark.parametrize("cls", [GRRFrequencyEstimator, SSFrequencyEstimator])
def test_laws_without_a_test_say_so(cls):
    est = cls(1.0, categories=[range(6)], random_state=0).fit(spread(60, 6))
    for reports in (None, np.asarray(est.privatize(spread(60, 6)))):
        with pytest.raises(ValueError, match="allows no test"):
            est.detect_poisoning(reports)


def test_what_does_not_fit_is_refused_and_nothing_is_paid():
    book = Ledger(5.0, durability="fast")
    est = OLHFrequencyEstimator(1.0, categories=[range(6)], random_state=0, ledger=book)
    with pytest.raises(ValueError, match="not fitted"):
        est.detect_poisoning()
    reports = np.asarray(est.privatize(spread(50, 6)))
    est.aggregate(reports)
    paid, text = len(book), str(est.frequencies_)
    with pytest.raises(ValueError, match="reports must be given for OLH"):
        est.detect_poisoning()
    with pytest.raises(ValueError, match="alpha must be"):
        est.detect_poisoning(reports, alpha=0)
    with pytest.raises(ValueError, match="reports must be a two-dimensional"):
        est.detect_poisoning(reports[:, :2])
    with config_context(strict=True):
        est.detect_poisoning(reports)
    assert (len(book), str(est.frequencies_)) == (paid, text)
