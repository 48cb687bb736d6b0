"""What malicious users can do: gains against every report there is, the closed forms of papers, and simulations."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpestim import Domain, Numbers, config_context
from dpestim.accounting import Ledger
from dpestim.audit import poisoning
from dpestim.audit.targets import Ratio, part_of
from dpestim.base import all_estimators
from dpestim.local import (
    BLHFrequencyEstimator,
    CMSFrequencyEstimator,
    DistributionEstimator,
    GRRFrequencyEstimator,
    HCMSFrequencyEstimator,
    HRFrequencyEstimator,
    MeanEstimator,
    MetricFrequencyEstimator,
    MixedEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PCKVEstimator,
    PGRFrequencyEstimator,
    PMTransformer,
    PrivKVEstimator,
    PrivUnitTransformer,
    RAPPORFrequencyEstimator,
    SHEFrequencyEstimator,
    SSFrequencyEstimator,
)
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.client import Client
from dpestim.local.keyvalue.estimates import estimate
from dpestim.local.numbers.law import NumericRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.reports import CodeReports, FieldReports, PackedBits
from dpestim.local.server import Server

#: Settings that are small enough for all reports to be looked at, where those of the registry are not.
SMALL = {
    SHEFrequencyEstimator: [{"epsilon": 2.0, "categories": [range(3)], "grid": 4}],
    RAPPORFrequencyEstimator: [{"epsilon": 2.0, "categories": [range(4)], "n_bits": 8, "n_cohorts": 2, "n_hashes": 2}],
    CMSFrequencyEstimator: [{"epsilon": 1.0, "categories": [range(4)], "n_hashes": 3, "n_buckets": 2},
                            {"epsilon": 1.0, "categories": [range(9)], "n_hashes": 2, "n_buckets": 4}],
    HRFrequencyEstimator: [{"epsilon": epsilon, "categories": [range(d)]} for epsilon, d in ((1.0, 5), (3.0, 23))],
    PGRFrequencyEstimator: [{"epsilon": 2.0, "categories": [range(11)], "hybrid": n} for n in (None, 4)],
    HCMSFrequencyEstimator: [{"epsilon": 1.0, "categories": [range(9)], "n_hashes": 2, "n_buckets": 4}],
}
FREQUENCIES = [(name, cls) for name, cls in all_estimators(("local",)) if issubclass(cls, FrequencyEstimator)]
NUMBERS = [(name, cls) for name, cls in all_estimators(("local",))
           if issubclass(cls, NumericTransformer) and cls is not PrivUnitTransformer]


def every_report(law):
    """Return all reports that the server accepts; of public hashes of 32 bits and more, some."""
    if isinstance(law, CodeReports):
        return np.arange(law.n_counts, dtype=law.report_dtype)[:, None]
    if isinstance(law, FieldReports):
        some = [0, 1, 3, (1 << 31) + 5, (1 << 32) - 1]
        fields = [some if limit is None else range(limit) for limit in law.field_limits]
    elif hasattr(law, "n_cohorts"):
        fields = [range(law.n_cohorts), *[range(256)] * (law.report_width - 1)]
    elif hasattr(law, "n_hashes"):
        fields = [range(law.n_hashes), [0], *[range(256)] * (law.report_width - 2)]
    elif isinstance(law, PackedBits):
        fields = [range(256)] * (law.report_width - 1) + [range(1 << (law.n_categories - 1) % 8 + 1)]
    else:
        fields = [range(law.grid + 1)] * law.n_categories
    reports = np.array(list(itertools.product(*fields)), law.report_dtype)
    return np.concatenate([reports[k : k + 1] for k in range(len(reports)) if accepts(law, reports[k : k + 1])])


def accepts(law, report):
    try:
        law.check_reports(report)
    except ValueError:
        return False
    return True


def told(law, report):
    """Return what one report says of all frequencies."""
    counts = np.zeros(law.n_counts, np.int64)
    law.count(report, counts)
    return law.estimate(counts, 1)


def settings(cls):
    return SMALL.get(cls, cls._test_params())


def goals(d):
    return [np.array(goal) for goal in ([0], [d - 1], [0, d - 1], list(range(1, d)), list(range(d)))]


@pytest.mark.parametrize(("name", "cls"), FREQUENCIES)
def test_no_report_tells_more_of_a_goal_and_one_tells_as_much(name, cls):
    for params in settings(cls):
        laws = cls(**params)._columns_now().laws
        for law in laws:
            if law.report_width > 2 and isinstance(law, PackedBits):
                continue
            found = np.array([told(law, report[None]) for report in every_report(law)])
            for goal in goals(law.n_categories):
                sums = found[:, goal].sum(axis=1)
                np.testing.assert_allclose([float(end) for end in law.reach(goal)], [sums.min(), sums.max()],
                                           rtol=1e-9, atol=1e-9, err_msg=f"{law} {goal}")


@pytest.mark.parametrize(("name", "cls"), FREQUENCIES)
def test_no_input_tells_more_of_a_goal_on_average(name, cls):
    for params in settings(cls):
        for law in cls(**params)._columns_now().laws:
            means = means_of_inputs(law)
            if means is None:
                continue
            for goal in goals(law.n_categories):
                sums = means[:, goal].sum(axis=1)
                np.testing.assert_allclose([float(end) for end in law.mean_reach(goal)], [sums.min(), sums.max()],
                                           atol=1e-6, err_msg=f"{law} {goal}")


def means_of_inputs(law):
    """Return what the reports of each value tell on average, from the whole law; None where it has too many parts."""
    d, reports = law.n_categories, None
    if isinstance(law, FieldReports) and law.field_limits[0] is None:
        return None  # (hashes)
    reports = every_report(law)
    found = np.array([told(law, report[None]) for report in reports])
    public = law.public_part(reports)
    n_public = 1 if public is None else len(np.unique(public, axis=0))
    if hasattr(law, "n_cohorts") or (isinstance(law, PackedBits) and law.n_categories > 12):
        return None
    matrix, means = np.array([[float(p) for p in row] for row in law.transition_matrix()]), np.zeros((d, d))
    for x in range(d):
        rows, columns = law.law_indices(np.full(len(reports), x, law.code_dtype), reports)
        chances = matrix[rows, columns] / n_public
        assert math.isclose(chances.sum(), 1, rel_tol=1e-9)
        means[x] = chances @ found
    return means


@pytest.mark.parametrize(("name", "cls"), NUMBERS)
def test_gains_of_means_are_those_of_all_codes(name, cls):
    for params in cls._test_params():
        est = cls(**params)
        try:
            columns, _ = est._columns_now(), est.privacy_
        except ValueError:
            continue  # (is told by data how many columns there are)
        column, law, part = columns.columns[0], columns.laws[0], Fraction(1, 50)
        if not isinstance(law, NumericRandomizer):
            continue
        means = np.array([column.means(own)[0][0] for own in np.eye(law.n_counts, dtype=np.int64)])
        inputs = np.array([[float(p) for p in row] for row in law.transition_matrix()]) @ means
        sample = part_of(part, "output", Fraction(columns.n_sampled or len(columns), len(columns)))
        for direction, ends, far in (("raise", (inputs.max(), means.max()), inputs.min()),
                                     ("lower", (inputs.min(), means.min()), inputs.max())):
            gains = [float(line.gain) for line in poisoning(est, part, direction=direction).gains]
            wanted = [float(part) * (ends[0] - far), float(sample) * (ends[1] - far)]
            np.testing.assert_allclose(gains, wanted, rtol=1e-7, err_msg=str(law))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_gains_are_the_closed_forms_of_the_maximal_gain_attack(epsilon):
    """Cao, Jia and Gong 2021: beta (1 - f) + beta (d - r) / (e - 1), and beta (2 r - f) + 2 beta r / (e - 1)."""
    d, r, beta, f, e = 50, 3, 0.05, 0.1, math.exp(epsilon)

    def gains(cls):
        est = cls(epsilon, categories=[range(d)])
        return [float(line.gain) for line in poisoning(est, beta, [0, 1, 2], honest=f).gains]

    random_item = beta * (1 - f)
    assert gains(GRRFrequencyEstimator) == pytest.approx([random_item, random_item + beta * (d - r) / (e - 1)])
    assert gains(OUEFrequencyEstimator) == pytest.approx(
        [random_item, beta * (2 * r - f) + 2 * beta * r / (e - 1)])
    g, p = OLHFrequencyEstimator(epsilon, categories=[range(d)]).randomizer().n_buckets, None
    p = e / (e + g - 1)
    assert gains(OLHFrequencyEstimator) == pytest.approx(
        [random_item, beta * r * (1 - 1 / g) / (p - 1 / g) - beta * f], rel=1e-6)


def test_gains_are_exact_where_a_law_decodes_in_fractions():
    est = GRRFrequencyEstimator(1.0, categories=[range(10)])
    law, (given, sent) = est.randomizer(), poisoning(est, 0.01, goal=3).gains
    assert given.gain == Fraction(1, 100)
    assert sent.gain == Fraction(1, 100) * (1 - law.q_star) / (law.p_star - law.q_star)
    result = poisoning(PMTransformer(2.0, bounds=(-1, 3), grid=16), 0.01)
    law = PMTransformer(2.0, bounds=(-1, 3), grid=16).randomizer()
    assert result.worst() == Fraction(1, 100) * 4 * law.outputs()[-1]
    assert result.worst("input") == Fraction(4, 100)


# ---------------------------------------------------------------- estimates that are ratios, and reports that are drawn


def pair_counts(law, reports):
    out = []
    for report in reports:
        counts = np.zeros(law.n_counts, np.int64)
        law.count(report[None], counts)
        out.append(counts)
    return np.array(out, np.float64)


@pytest.mark.parametrize("est", [
    PCKVEstimator(2.0, keys=2, bounds=(1, 5), padding_length=2, variant="ue"),
    PCKVEstimator(2.0, keys=2, bounds=(1, 5), padding_length=2, variant="grr"),
    PrivKVEstimator(2.0, keys=2, bounds=(1, 5)),
], ids=["ue", "grr", "PrivKV"])
def test_gains_of_keys_are_those_of_all_reports(est):
    """Expected counts of honest and malicious reports, decoded: no report does more than the formula says."""
    column = est._columns_now().columns[0]
    law, n = column.law, 10**6
    if isinstance(law, CodeReports):
        reports = np.arange(law.n_counts, dtype=law.report_dtype)[:, None]
    else:
        reports = np.array([(on, plus) for on in range(4) for plus in range(4) if not plus & ~on], np.uint8)
    each, outcome = pair_counts(law, reports), law.outcome_of(reports)
    held, place = Fraction(3, 10), 1 << 30  # 30 % hold key 1 with the value 2, others hold key 0
    honest = sum(share * np.array([float(p) for p in law.outcome_law(pairs)])[outcome] @ each
                 for share, pairs in ((float(held), {1: place}), (1 - float(held), {0: 0})))
    for of, direction, share in itertools.product(["frequency", "mean"], ["raise", "lower"], [0.01, 0.2, 0.6]):
        sign, found = 1 if direction == "raise" else -1, []
        for first, second in itertools.combinations(each, 2):
            for mixed in np.linspace(0, 1, 21):  # some send the one, others the other
                sent = share * (mixed * first + (1 - mixed) * second)
                told = estimate(law, n * ((1 - share) * honest + sent), n)
                found.append(told.frequency[1] - 0.3 if of == "frequency" else column.to_units(told.mean[1]) - 2)
        given = {"frequency": held, "mean": (held, 2)}[of]
        gain = sign * float(poisoning(est, share, 1, of=of, direction=direction, honest=given).gains[1].gain)
        best = max(sign * np.array(found))
        assert best <= gain + 1e-9
        assert best >= 0.95 * gain  # (the best mixture may lie between two that were tried)


def test_malicious_users_who_send_different_reports_move_a_ratio_no_further():
    """Mixtures of three reports, on a fine grid: a ratio is worst at one of them, or where the share is 0 or 1."""
    rng, half, matters = np.random.default_rng(0), Fraction(1, 2), 0
    mix = np.array([(a, b, 100 - a - b) for a in range(101) for b in range(101 - a)]) / 100
    for _ in range(150):
        shares, totals = rng.uniform(-1.5, 3, 3), rng.uniform(-0.8, 0.8, 3)
        reports = tuple((Fraction(s), Fraction(t)) for s, t in zip(shares, totals))
        target = Ratio("", reports, reports, Fraction(1), (Fraction(1, 5), -half), None, Fraction(1), Fraction(1), 1)
        share, total = 0.1 + mix @ shares / 2, -0.05 + mix @ totals / 2
        for raises, sign in ((True, 1), (False, -1)):
            told = sign * (np.clip(total / np.clip(share, 1e-12, 1), -1, 1) + 0.5)
            gain = sign * float(target.gain(half, "output", raises))
            assert gain - 0.15 <= told.max() <= gain + 1e-9
            matters += told[mix.max(axis=1) == 1].max() < gain - 0.2
    assert matters


def test_gains_of_means_with_missing_values_are_those_of_all_codes():
    est = MeanEstimator(PMTransformer(2.0, bounds=Domain({"x": Numbers(0, 4, missing=True)}), grid=8))
    column = est._client()._columns_now().columns[0]
    law, n, share = column.law, 10**9, 0.03
    matrix = np.array([[float(p) for p in row] for row in law.transition_matrix()])
    honest = 0.7 * matrix[2] + 0.3 * matrix[-1]  # 70 % have 1
    for direction, best in (("raise", max), ("lower", min)):
        gains = poisoning(est, share, honest=(0.7, 1), direction=direction).gains
        for gain, told in zip(gains, (matrix, np.eye(law.n_counts))):
            found = [column.means(np.rint(n * ((1 - share) * honest + share * row)).astype(np.int64))[0][0] - 1
                     for row in told]
            assert float(gain.gain) == pytest.approx(best(found), rel=1e-5)


def test_who_may_choose_the_column_counts_more_than_who_is_drawn_for_it():
    rng = np.random.default_rng(0)
    n, share = 40_000, 0.05
    X = rng.choice(4, (n, 4))
    X[:, 1] = 0
    est = MixedEstimator([("all", GRRFrequencyEstimator(categories=[range(4)] * 4), [0, 1, 2, 3])], epsilon=1.0,
                         n_sampled=1, random_state=1)
    gain = poisoning(est, share, goal=3, column=1).gains[1]
    reports = np.array(est.privatize(X))
    reports[: int(share * n)] = (1, 3)  # column 1 was drawn, and says 3
    server = MixedEstimator([("all", GRRFrequencyEstimator(categories=[range(4)] * 4), [0, 1, 2, 3])], epsilon=1.0,
                            n_sampled=1)
    server.fit(X[:10])
    server = type(est)(**est.get_params(deep=False)).set_params(random_state=None).aggregate(reports)
    found, error = server.frequencies_[1][3], server.standard_errors_[1][3]
    assert abs(found - float(gain.gain)) < 4.5 * error
    assert float(gain.gain) > 3 * share * float(poisoning(est, share, goal=3, column=1).gains[0].gain)


@pytest.mark.parametrize("cls", [GRRFrequencyEstimator, OUEFrequencyEstimator, SSFrequencyEstimator,
                                 HRFrequencyEstimator, OLHFrequencyEstimator])
def test_estimates_of_poisoned_reports_move_as_far_as_computed(cls):
    d, n, share = 16, 20_000, 0.1
    est = cls(1.0, categories=[range(d)], random_state=3)
    law, X = est.randomizer(), np.random.default_rng(5).choice(d - 1, (n, 1))
    reports = np.array(est.privatize(X))
    candidates = reports if cls is not OLHFrequencyEstimator else np.array([[0, 0, 0]], reports.dtype)
    best = max(candidates, key=lambda report: law.support(report[None])[0, -1])
    moved = np.concatenate([reports[: int(n * (1 - share))], np.tile(best, (int(n * share), 1))])
    server = cls(1.0, categories=[range(d)]).aggregate(moved)
    gain = float(poisoning(est, share, goal=d - 1).worst())
    assert abs(server.frequencies_[0][-1] - gain) < 4.5 * server.standard_errors_[0][-1]
    assert gain > 10 * server.standard_errors_[0][-1]


# ---------------------------------------------------------------- contracts


def first_goal(est):
    if getattr(est, "keys", None) is not None:
        return est.keys[0] if isinstance(est.keys, list) else 0
    return est.categories[0][0] if getattr(est, "categories", None) is not None else None


def answer(est):
    try:
        return poisoning(est, [0.01, 0.05], goal=first_goal(est), n_users=100), None
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize(("name", "cls"), [pair for pair in all_estimators(("local",))
                                           if issubclass(pair[1], Client | Server)])
def test_every_estimator_answers_or_says_why_not(name, cls):
    book = Ledger(1.0, durability="fast")
    for params in cls._test_params():
        est = cls(**params)
        with book, config_context(strict=True):
            result, reason = answer(est)
        if result is None:
            assert len(reason) > 40
            assert not issubclass(cls, FrequencyEstimator)
            continue
        given, sent = ([line.gain for line in result.gains if line.attack == attack] for attack in ("input", "output"))
        assert all(0 < a < b for a, b in itertools.pairwise(given))
        assert all(b >= a - Fraction(1, 10**9) for a, b in zip(given, sent))
    assert not len(book)


def test_a_gain_is_told_in_standard_errors():
    est = OUEFrequencyEstimator(1.0, categories=[range(10)], random_state=0)
    n = 10_000
    told = poisoning(est, 0.01, goal=1, n_users=n).gains[1]
    assert told.standard_errors == pytest.approx(float(told.gain) / math.sqrt(est.randomizer().variance(n, 0.0)))
    assert poisoning(est, 0.01, goal=1).gains[1].standard_errors is None
    fitted = est.fit([[k % 10] for k in range(500)])
    assert poisoning(fitted, 0.01, goal=1).n_users == 500
    assert "not told" in str(poisoning(fitted, 0.01, goal=[1, 2]))


@pytest.mark.parametrize(("kwargs", "message"), [
    ({"share": 0}, "share must be"), ({"share": 1.0}, "share must be"), ({"share": True}, "share must be"),
    ({"share": []}, "share must be"), ({"goal": None}, "goal must name a category"),
    ({"goal": "z"}, "goal must name categories of column 0"), ({"goal": []}, "goal must name categories"),
    ({"column": 1}, "column must be"), ({"of": "mean"}, "of must be None"), ({"direction": "up"}, "direction must be"),
    ({"honest": 1.5}, "honest must be a number from 0 to 1"), ({"honest": True}, "honest must be"),
    ({"n_users": 0}, "n_users must be"),
])
def test_what_does_not_fit_is_refused(kwargs, message):
    est = GRRFrequencyEstimator(1.0, categories=[["a", "b"]])
    with pytest.raises(ValueError, match=message):
        poisoning(est, **{"goal": "a", **kwargs})


def test_what_is_no_sum_over_reports_is_refused():
    pm = PMTransformer(2.0, bounds=(0, 1), grid=8)
    for est, kwargs, message in [
        (DistributionEstimator(pm), {}, "by sums over reports"),
        (MeanEstimator(pm), {"goal": 1}, "goal must be None"),
        (PrivUnitTransformer(2.0, center=[0.0, 0.0], candidates=8), {}, "2\\^64 seeds"),
        (PCKVEstimator(2.0, keys=2, padding_length=1), {"goal": 0, "of": "mean"}, "honest must be \\("),
        (PCKVEstimator(2.0, keys=2, padding_length=1), {"goal": 7}, "one of the keys"),
        (MixedEstimator([("x", DistributionEstimator(PMTransformer(bounds=(0, 1))), [0])]), {}, "Estimator fits"),
        (RAPPORFrequencyEstimator(2.0, categories=None), {"goal": "a"}, "candidates"),
        (object(), {}, "estimator must be one of dpestim.local"),
        ([], {}, "or a list or dict"),
    ]:
        with pytest.raises(ValueError, match=message):
            poisoning(est, **kwargs)
    with pytest.raises(ValueError, match="second: goal must name categories"):
        poisoning({"first": GRRFrequencyEstimator(1.0, categories=[["a", "b"]]),
                   "second": GRRFrequencyEstimator(1.0, categories=[["c", "d"]])}, goal="a")


def test_several_mechanisms_are_drawn_on_the_same_axes():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    several = {"A": BLHFrequencyEstimator(1.0, categories=[range(20)]),
               "B": MetricFrequencyEstimator(2.0, categories=[range(20)])}
    result = poisoning(several, np.linspace(0.01, 0.1, 5), goal=[3, 4])
    display = result.plot(axes)
    assert len(display.lines_) == 4
    assert len({(line.get_color(), line.get_marker()) for line in display.lines_}) == 4
    assert "A, epsilon 1, output" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert result.to_frame().shape == (20, 6)
