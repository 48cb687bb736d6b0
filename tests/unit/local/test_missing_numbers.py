"""Numbers that may be missing in local reports: the exact law, what is estimated, and who says that it cannot."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from dpestim import Categories, Domain, Numbers, config_context
from dpestim.accounting import Ledger
from dpestim.audit import exact_epsilon
from dpestim.base import all_estimators
from dpestim.local import (
    DistributionEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    LDPNaiveBayes,
    LDPSGDClassifier,
    MeanEstimator,
    MixedEstimator,
    PersonalizedEstimator,
    PMTransformer,
    PrivatizedColumns,
    SDPMTransformer,
)
from dpestim.local.numbers.missing import MISSING, NumberOrMissing
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import WORD, uses_enough, within
from dpestim.privacy.number_weights import missing_thresholds

AGES = Domain({"age": Numbers(17, 90, missing=True)})
#: All of the registry that say so, and those that are not listed there must not be forgotten.
LAWS = [cls for _, cls in all_estimators() if issubclass(cls, NumericTransformer) and cls()._reads_missing]
N = 20_000


def client(cls, epsilon=1.0, **more):
    more = {name: value for name, value in {"grid": 8, **more}.items() if name in cls._get_param_names()}
    return cls(epsilon, **{"bounds": AGES, "random_state": 0, **more})


def ages(n=N, share=0.3, seed=0):
    """Return ages of which a share is missing, and the mean of the others."""
    rng = np.random.default_rng(seed)
    x = 17 + 73 * rng.beta(2, 5, n)
    x[rng.random(n) < share] = np.nan
    return x[:, None], np.nanmean(x)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("cls", LAWS)
def test_every_ratio_of_the_enlarged_domain_is_at_most_e_to_the_epsilon(cls, epsilon):
    law = client(cls, epsilon).randomizer()
    matrix = law.transition_matrix()
    assert len(matrix) == law.number.n_inputs + 1
    assert all(sum(row) == 1 for row in matrix)
    worst = max(max(column) / min(column) for column in zip(*matrix))
    assert within(worst, 1, law.epsilon)
    assert uses_enough(worst, 1, law.epsilon)
    assert law.worst_ratio() >= worst
    assert float(law.worst_ratio() / worst) == pytest.approx(1)
    assert exact_epsilon(law) == pytest.approx(epsilon)


def test_all_plain_laws_of_numbers_take_missing_values():
    others = {cls.__name__ for _, cls in all_estimators() if issubclass(cls, NumericTransformer)} - {
        cls.__name__ for cls in LAWS}
    assert others == {"SDPMTransformer", "PrivUnitTransformer", "PlanarLaplaceTransformer",
                      "PlanarGeometricTransformer", "OptimalGeoTransformer"}


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(40), Fraction(80)])
def test_thresholds_are_the_largest_that_keep_both_promises(epsilon):
    told, untold = missing_thresholds(epsilon, epsilon * 3 / 4)
    assert 0 < untold < told < WORD
    assert within(told, untold, epsilon)
    assert within(WORD - untold, WORD - told, epsilon / 4)
    more = told + WORD // 10**9
    assert not within(more, untold, epsilon) or more >= WORD or not within(WORD - untold, WORD - more, epsilon / 4)


def test_a_law_with_a_wrong_threshold_is_refused():
    good = client(PMTransformer).randomizer()

    class Wrong(NumberOrMissing):
        def __init__(self, epsilon, number):
            super().__init__(epsilon, number)
            self.untold = self.untold * 99 // 100

    with pytest.raises(ValueError, match="cannot express"):
        Wrong.make(good.epsilon, good.number)
    with pytest.raises(ValueError, match="with a part of epsilon"):
        NumberOrMissing.make(good.number.epsilon, good.number)


@pytest.mark.parametrize("cls", LAWS)
def test_reports_follow_the_law(cls):
    est = client(cls)
    law = est.randomizer()
    rows = [[float(p) for p in row] for row in law.transition_matrix()]
    for x, row in ((np.nan, rows[-1]), (17.0, rows[0]), (90.0, rows[-2])):
        seen = np.bincount(est.privatize(np.full((N, 1), x))[:, 0], minlength=law.n_counts)
        assert stats.chisquare(seen, np.array(row) * N).pvalue > 1e-6
        # (a law that never says "missing" of a number, or in place of a missing one reports the middle, is found out)
        other = rows[0] if np.isnan(x) else rows[-1]
        assert stats.chisquare(seen, np.array(other) * N).pvalue < 1e-6
    codes, report = np.array([MISSING, 0, law.grid << 32]), np.array([[law.n_counts - 1]] * 3)
    assert law.law_indices(codes, report)[0].tolist() == [len(rows) - 1, 0, len(rows) - 2]
    assert law.input_of(codes).tolist() == [len(rows) - 1, 0, len(rows) - 2]


@pytest.mark.ci
@pytest.mark.parametrize("cls", LAWS)
def test_means_are_of_the_values_that_are_there(cls):
    x, mean = ages()
    est = MeanEstimator(client(cls, 2.0, grid=256)).fit(x)
    assert abs(est.mean_[0] - mean) < 4 * est.standard_error_[0] < 6
    assert abs(est.missing_[0] - np.isnan(x).mean()) < 4 * est.missing_standard_error_[0] < 0.05
    for of, truth in (("means", mean), ("missing", np.isnan(x).mean())):
        low, high = est.confidence_interval(0.9999, of=of)[0]
        assert low < truth < high
    assert est.score(x) == pytest.approx(-((est.mean_[0] - mean) ** 2))
    # (the mean with the middle in place of missing values is far off)
    assert abs(0.7 * mean + 0.3 * 53.5 - est.mean_[0]) > 4 * est.standard_error_[0]


def test_nobody_with_a_value_leaves_the_bounds():
    est = MeanEstimator(client(PMTransformer)).fit(np.full((200, 1), np.nan))
    assert est.confidence_interval().tolist() == [[17.0, 90.0]]
    assert 17 <= est.mean_[0] <= 90
    assert est.confidence_interval(of="missing")[0, 1] == 1.0


def test_few_reports_that_agree_leave_intervals_wide():
    est = client(DuchiTransformer, 4.0)
    for code in range(3):
        server = MeanEstimator(est)
        server.aggregate(np.full((4, 1), code, np.uint8))
        low, high = server.confidence_interval()[0]
        assert high - low > 20, code
        assert server.standard_error_[0] > 1 or server.missing_[0] > 1


def test_intervals_cover_what_they_are_about():
    rng, hits = np.random.default_rng(1), np.zeros(2)
    for seed in range(150):
        x = rng.beta(2, 6, (1000, 1))
        x[rng.random((1000, 1)) < 0.3] = np.nan
        est = MeanEstimator(PMTransformer(2.0, bounds=Numbers(0, 1, missing=True), grid=64, random_state=seed)).fit(x)
        for k, (of, truth) in enumerate((("means", 0.25), ("missing", 0.3))):
            low, high = est.confidence_interval(0.8, of=of)[0]
            hits[k] += low <= truth <= high
    # (of 150 that cover .8, less than 100 or more than 139 happen once in a thousand times; .95 would be 142)
    assert ((hits > 100) & (hits < 139)).all(), hits


@pytest.mark.ci
def test_distributions_are_of_the_values_that_are_there():
    x, _ = ages(40_000)
    est = DistributionEstimator(client(PMTransformer, 3.0, grid=256), n_bins=64).fit(x)
    there = x[~np.isnan(x)]
    assert est.score(x) > -1.0
    assert abs(est.missing_[0] - 0.3) < 0.02
    mixed = np.concatenate([there, np.random.default_rng(0).uniform(17, 90, len(x) // 8)])
    assert stats.wasserstein_distance(there, mixed) > 2  # (what uniform values of missing ones would do)
    shares = np.histogram(there, est.bin_edges_[0][::8])[0] / len(there)
    found = est.confidence_interval(n_bins=8)[0]
    assert ((found[:, 0] <= shares) & (shares <= found[:, 1])).all()
    assert (found[:, 1] - found[:, 0]).max() < 0.3
    with pytest.raises(ValueError, match=r"column 'age', whose values may be missing"):
        DistributionEstimator(client(PMTransformer, 3.0)).fit(pd.DataFrame(x, columns=["age"])).quantile_interval(0.5)


def test_tables_of_any_library_and_clients_by_themselves_report_the_same():
    values, est = [20.0, None, 50.0, None] * 50, client(PMTransformer)
    plain = est.privatize(np.array(values, float)[:, None])
    for table in (pl.DataFrame({"age": values}), pd.DataFrame({"age": values}), pd.DataFrame({"age": pd.array(
            [20, None, 50, None] * 50, dtype="Int64")}), [[v] for v in values]):
        assert np.array_equal(est.privatize(table), plain)
    for twin in (clone(est), pickle.loads(pickle.dumps(est)), clone(est).set_params(n_jobs=2)):
        assert np.array_equal(twin.privatize(np.array(values, float)[:, None]), plain)
    with config_context(strict=True):
        assert np.array_equal(est.privatize(np.array(values, float)[:, None]), plain)
    ledger, frame = Ledger(1.0), pd.DataFrame({"age": values})
    MeanEstimator(client(PMTransformer, ledger=ledger)).fit(frame)
    assert ledger.spent().epsilon == 1
    decoded = est.fit(frame).transform(frame)
    assert np.isnan(decoded).any()
    assert np.isfinite(decoded).any()


def test_reports_of_other_domains_do_not_merge():
    x, _ = ages(500)
    est, plain = MeanEstimator(client(PMTransformer)).fit(x), MeanEstimator(client(PMTransformer, bounds=(17, 90)))
    with pytest.raises(ValueError, match="the same bounds"):
        est.merge(plain.fit(np.nan_to_num(x, nan=20.0)))
    other = MeanEstimator(client(PMTransformer, random_state=1)).fit(x)
    assert est.merge(other).n_users_ == 1000


def test_rows_of_numbers_and_categories_and_models_take_missing_values():
    x, mean = ages()
    rng, gone = np.random.default_rng(1), np.isnan(x[:, 0])
    frame = pd.DataFrame({"age": x[:, 0], "sex": rng.choice(["F", "M", None], N)})
    domain = AGES | {"sex": Categories(["F", "M"], missing=True)}
    est = MixedEstimator([("n", PMTransformer(bounds=AGES), ["age"]), ("c", GRRFrequencyEstimator(
        categories=domain[["sex"]]), ["sex"])], epsilon=4.0, random_state=0).fit(frame)
    assert abs(est.means_["age"] - mean) < 4 * est.standard_errors_["age"]
    assert abs(est.missing_["age"] - 0.3) < 0.05
    assert abs(est.frequencies_["sex"][2] - 1 / 3) < 0.05
    line = est.to_frame().query("quantity == 'missing'").iloc[0]
    assert line["feature"] == "age"
    assert line["ci_low"] < 0.3 < line["ci_high"] < line["ci_low"] + 5 * line["standard_error"]

    y = (gone ^ (rng.random(N) < 0.1)).astype(int)
    model = LDPNaiveBayes(3.0, classes=[0, 1], bounds=domain, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.85
    logs = model.feature_log_prob_[0]
    assert logs.shape == (2, 9)
    assert logs[1, 8] > logs[0, 8] + 1

    target = 0.1 * np.nan_to_num(x[:, 0]) + 5 * gone + rng.normal(0, 1, N)
    for correction, near in (("posterior", 0.02), ("unbiased", np.inf), (None, np.inf)):
        step = PrivatizedColumns([("age", PMTransformer(bounds=AGES, grid=256), [0])], epsilon=4.0,
                                 correction=correction, random_state=0)
        features = step.fit_transform(x)
        coef = LinearRegression().fit(features, target).coef_
        assert step.get_feature_names_out().tolist() == ["x0", "x0_missing"]
        assert features.shape == (N, 2)
        assert abs(coef[0] - 0.1) < near
        assert step.transform(x)[gone].tolist()[0] == [53.5, 1.0]
        if correction == "unbiased":
            assert abs(features[:, 1].mean() - 0.3) < 0.02


def test_clients_that_cannot_say_so_name_the_column_and_what_helps():
    frame = pd.DataFrame(ages(50)[0], columns=["age"])
    for est in (SDPMTransformer(1.0, bounds=AGES, low_sensitivity=(20, 30)),
                DuchiTransformer(1.0, bounds=AGES, strategy="joint")):
        with pytest.raises(ValueError, match=r"column 'age' of X .* cannot report that a value is missing: PM"):
            est.privatize(frame)
    with pytest.raises(ValueError, match=r"column 'age' of X .* declare Numbers\(low, high, missing=True\)"):
        PMTransformer(1.0, bounds={"age": (17, 90)}).privatize(frame)
    with pytest.raises(ValueError, match=r"column 'age' contains NaN .* declare Numbers"):
        LDPNaiveBayes(1.0, classes=[0, 1], bounds={"age": (17, 90)}).privatize(frame, [0] * 50)
    with pytest.raises(ValueError, match=r"column 'age' of X .* Fill missing values with a public number"):
        LDPSGDClassifier(1.0, data_norm=1.0, classes=[0, 1]).fit(frame, [0, 1] * 25)
    groups = frame.assign(group=["a", "b"] * 25)
    with pytest.raises(ValueError, match=r"column 'age': .* one estimator for each group"):
        PersonalizedEstimator(MeanEstimator(PMTransformer(bounds=AGES)), group_column="group", settings={
            "a": {}, "b": {"transformer__epsilon": 2.0}}).fit(groups)
