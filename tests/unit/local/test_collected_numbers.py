"""What collectors of reports share with their transformers: ledgers, strict mode, seeds, and the order of columns."""

import warnings

import numpy as np
import pytest

from dpestim import config_context
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import DistributionEstimator, GRRFrequencyEstimator, MeanEstimator, PMTransformer, SDPMTransformer

X = np.random.default_rng(0).random((60, 1))
LETTERS = np.array(["a", "b", "c"] * 20)[:, None]


def means(**params):
    return MeanEstimator(PMTransformer(**{"bounds": (0.0, 1.0), **params}))


def shapes(**params):
    return DistributionEstimator(PMTransformer(**{"bounds": (0.0, 1.0), **params}), n_bins=4)


def letters(**params):
    return DistributionEstimator(GRRFrequencyEstimator(1.0, **{"categories": [["a", "b", "c"]], **params}))


KINDS = [(means, X), (shapes, X), (letters, LETTERS)]


@pytest.mark.law
@pytest.mark.parametrize("low", [(0.0, 4.0), (2.0, 7.0)])
def test_one_cell_is_as_biased_as_is_said(low):
    """One level stands for all of the interval: what is furthest from it is its ends."""
    t = SDPMTransformer(6.0, bounds=(0.0, 10.0), low_sensitivity=low, n_cells=1, random_state=0)
    for end in low:
        est = MeanEstimator(t).fit(np.full((20_000, 1), end))
        assert abs(est.mean_[0] - end) > 10 * est.standard_error_[0]
        assert abs(est.mean_[0] - end) < est.bias_[0] + 5 * est.standard_error_[0]
        assert est.bias_[0] == pytest.approx((low[1] - low[0]) / 2, abs=0.2)


# ---------------------------------------------------------------- strict mode


def test_strict_mode_travels_with_a_transformer():
    with config_context(strict=True):
        t = PMTransformer(1.0, bounds=(0.0, 1.0))
    bad = X.copy()
    bad[3] = np.nan
    assert t.privatize(bad).shape == bad.shape
    assert t.fit(bad).transform(bad).shape == bad.shape
    assert MeanEstimator(t).fit(bad).n_users_ == 60
    with pytest.raises(ValueError, match="strict mode"):
        PMTransformer.__sklearn_clone__(t).fit(bad.tolist())
    with pytest.raises(ValueError, match="strict mode"):
        MeanEstimator(t).fit(bad).score(X)


@pytest.mark.parametrize(("make", "rows"), KINDS)
def test_strict_mode_travels_from_a_collector(make, rows):
    outside = make()
    with config_context(strict=True):
        est = type(outside)(outside.transformer)
    bad = np.array([["never declared" if rows is LETTERS else np.nan], *rows[1:]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert est.privatize(bad).shape == bad.shape
        assert est.fit(bad).partial_fit(bad).n_users_ == 120
    with pytest.raises(ValueError, match="strict mode"):
        est.score(rows)
    with pytest.raises(ValueError, match=r"NaN|categories"):
        outside.fit(bad)


def test_many_categories_are_encoded_by_threads_and_strictly_only_where_asked():
    many = np.resize(LETTERS, ((1 << 18) + 5, 1))
    est = letters(random_state=0, n_jobs=2)
    whole = est.fit(many).distribution_[0]
    np.testing.assert_array_equal(whole, letters(random_state=0, n_jobs=1).fit(many).distribution_[0])
    many[7] = "z"
    with config_context(strict=True):
        assert letters(random_state=0, n_jobs=2).fit(many).n_users_ == len(many)
    with pytest.raises(ValueError, match="categor"):
        letters().fit(many)


# ---------------------------------------------------------------- ledgers


@pytest.mark.parametrize(("make", "rows"), KINDS)
def test_a_collector_that_was_made_in_a_block_pays_after_it(make, rows):
    transformer = make().transformer
    with Ledger(100) as ledger:
        est = type(make())(transformer)
    est.privatize(rows)
    est.fit(rows).partial_fit(rows)
    assert ledger.spent().epsilon == 3


@pytest.mark.parametrize(("make", "rows"), KINDS)
def test_partial_fit_pays_and_draws_as_the_parameter_says_now(make, rows):
    first, second = Ledger(100), Ledger(100)
    est = make(random_state=0, ledger=first).fit(rows)
    est.set_params(transformer__ledger=second, transformer__random_state=1, transformer__epsilon=9.0).partial_fit(rows)
    assert (first.spent().epsilon, second.spent().epsilon) == (1, 1)
    est.privatize(rows)
    assert (first.spent().epsilon, second.spent().epsilon) == (1, 2)
    with pytest.raises(ValueError, match="seeded noise"):
        est.merge(make(random_state=1).fit(np.resize(rows, (100, 1))))
    assert est.set_params(transformer__random_state=None).partial_fit(rows).privacy_.epsilon == 1
    before = est.release()[0].tolist()
    est.set_params(transformer__ledger=Ledger(0.5))
    with pytest.raises(BudgetExceededError):
        est.partial_fit(rows)
    assert est.release()[0].tolist() == before


@pytest.mark.parametrize(("make", "rows"), KINDS)
def test_scores_are_recorded_where_the_transformer_pays(make, rows):
    ledger = Ledger(100)
    est = make(ledger=ledger).fit(rows)
    est.score(rows)
    assert [e["estimator"] for e in ledger.entries()][-1] == type(est).__name__
    assert [e["n_rows"] for e in ledger.entries()] == [60, 60]


@pytest.mark.parametrize(("make", "rows"), KINDS)
def test_a_generator_is_shared_so_that_noise_never_repeats(make, rows):
    rows = np.resize(rows, (2000, 1))
    est = make(random_state=np.random.default_rng(0))
    one, two = est.privatize(rows), est.privatize(rows)
    assert (one != two).any()
    est.fit(rows)
    assert (est.privatize(rows) != est.privatize(rows)).any()


# ---------------------------------------------------------------- the order of columns


@pytest.mark.parametrize("start", ["aggregate", "fit", "partial_fit"])
@pytest.mark.parametrize("kind", ["numbers", "letters"])
def test_names_are_those_of_the_first_data_that_have_some(start, kind):
    pd = pytest.importorskip("pandas")
    if kind == "numbers":
        def make():
            return means(bounds=([0.0, 0.0], [1.0, 2.0]))

        frame = pd.DataFrame(np.hstack([X, X]), columns=["a", "b"])
    else:
        def make():
            return letters(categories=[["a", "b", "c"]] * 2)

        frame = pd.DataFrame(np.hstack([LETTERS, LETTERS]), columns=["a", "b"])
    est = make()
    if start == "aggregate":
        est.aggregate(est.privatize(frame)).partial_fit(frame)
        with pytest.raises(ValueError, match="declare the columns by name"):
            make().aggregate(est.privatize(frame)).merge(make().fit(frame))
    else:
        getattr(est, start)(frame)
    assert list(est.feature_names_in_) == ["a", "b"]
    for verb in ("partial_fit", "privatize", "score"):
        with pytest.raises(ValueError, match="feature names"):
            getattr(est, verb)(frame[["b", "a"]])
    with pytest.raises(ValueError, match="same names"):
        est.merge(make().fit(frame[["b", "a"]]))
    assert est.partial_fit(frame).n_users_ >= 120


def test_categories_of_a_dict_name_the_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": LETTERS[:, 0], "b": LETTERS[:, 0]})
    ledger = Ledger(10)
    est = letters(categories={"a": ["a", "b", "c"], "b": ["a", "b", "c"]}, ledger=ledger).fit(frame)
    assert list(est.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="same order as they were in fit"):
        est.partial_fit(frame[["b", "a"]])
    assert ledger.entries()[-1]["columns"] == ["column 'a'", "column 'b'"]


def test_the_number_of_columns_is_that_of_the_first_reports():
    est = means().aggregate(means().privatize(X))
    with pytest.raises(ValueError, match="expecting 1"):
        est.partial_fit(np.hstack([X, X]))


def test_low_intervals_must_agree_to_be_merged():
    def low(upper):
        t = SDPMTransformer(1.0, bounds=(0.0, 1.0), low_sensitivity=(0.25, upper), grid=64, n_cells=2)
        return MeanEstimator(t).fit(X)

    one, other = low(0.7), low(0.71)
    assert one.randomizer().integers == other.randomizer().integers  # that alone does not tell
    with pytest.raises(ValueError, match="parameters of the law"):
        one.merge(other)
    assert one.merge(low(0.7)).n_users_ == 120


def test_learned_bounds_are_merged_into_an_empty_collector_as_a_copy():
    with pytest.warns(PrivacyLeakWarning):
        full = MeanEstimator(PMTransformer(1.0)).fit(X)
    empty = MeanEstimator(PMTransformer(1.0, random_state=3)).merge(full)
    assert full.transformer_.random_state is None
    assert empty.mean_ == full.mean_


# ---------------------------------------------------------------- what is promised, and to whom


def sdpm(**params):
    return SDPMTransformer(1.0, **{"bounds": (0.0, 1.0), "low_sensitivity": (0.25, 0.5), **params})


def test_relaxations_of_other_intervals_have_other_names():
    def name(low):
        return sdpm(bounds=([0.0, 0.0], [1.0, 1.0]), low_sensitivity=(low, [0.5, 0.5])).privacy_.relaxation

    names = [name([0.1, 0.2]), name([0.2, 0.1]), name([0.1, 0.1]), name([0.1, 0.1 + 1e-12]),
             sdpm(low_sensitivity=(0.1, 0.5)).privacy_.relaxation]
    assert len(set(names)) == 5
    assert names[0] == "SDLDP(column 0: low=[0.1, 0.5]) x SDLDP(column 1: low=[0.2, 0.5])"
    with Ledger(9, relaxation=names[2]), pytest.raises(BudgetExceededError):
        sdpm(low_sensitivity=(0.1, 0.5)).privatize(X)


@pytest.mark.parametrize(("form", "proof"), [("discretised", "knows which low value a user would have"),
                                             ("continuous", "that no low value produces")])
def test_it_is_said_that_a_report_can_prove_a_value_high(form, proof):
    t = sdpm(form=form)
    assert t.guarantee_by_input_[0]["high-low"] == np.inf
    assert proof in str(t.privacy_)
    assert "prove" not in str(sdpm(n_cells=1).fit(X).privacy_)
    assert "which low value a user would have" in " ".join(type(t).__doc__.split())


def test_what_is_said_of_a_report_holds_for_users_who_sent_two():
    est = MeanEstimator(sdpm(n_cells=1)).fit(X)
    est.merge(MeanEstimator(sdpm(n_cells=1)).fit(X), users="same")
    notes = est.privacy_.notes
    assert est.privacy_.relaxed_epsilon == 2
    assert notes[0] == "A user may have reported 2 times."
    assert all("each report" in note for note in notes[1:] if "epsilon" in note)


def test_a_list_of_pairs_is_not_taken_for_lows_and_highs():
    for bad in ([(1.2, 2.2), (30, 130)], [(0, 1)], [(0, 1)] * 3):
        with pytest.raises(ValueError, match=r"bounds must not be a list of pairs.*write a dict"):
            PMTransformer(1.0, bounds=bad).privatize(np.ones((3, 2)))
        with pytest.raises(ValueError, match=r"low_sensitivity must not be a list of pairs.*write a dict"):
            SDPMTransformer(1.0, bounds=(0.0, 200.0), low_sensitivity=bad).privatize(np.ones((3, 2)))
    for good in (([1.2, 30], [2.2, 130]), [[1.2, 30], [2.2, 130]], np.array([[1.2, 30], [2.2, 130]])):
        lows, highs = PMTransformer(1.0, bounds=good).fit(np.ones((3, 2))).bounds_
        assert (lows.tolist(), highs.tolist()) == ([1.2, 30], [2.2, 130])


def test_with_one_cell_nothing_is_said_before_the_number_of_columns_is_known():
    for name in ("privacy_", "guarantee_by_input_"):
        with pytest.raises(AttributeError, match="number of columns"):
            getattr(sdpm(n_cells=1), name)
        assert getattr(sdpm(n_cells=1).fit(X), name)


def test_a_middle_half_that_floats_cannot_name_is_refused():
    with pytest.raises(ValueError, match="too close together"):
        sdpm(bounds=(1.0, np.nextafter(1.0, 2)), low_sensitivity=None).privatize(np.ones((3, 1)))


# ---------------------------------------------------------------- numbers of any size


@pytest.mark.law
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e140), (0.0, 1e-139), (-1e140, 0.79e140), (1e16, 1e16 + 8),
                                           (-1e-139, 1e139)])
def test_estimates_lose_nothing_far_from_one(low, high):
    n, half = 4000, (high / 2 - low / 2)
    rows = np.random.default_rng(1).random((n, 1))
    with np.errstate(all="raise", under="ignore"):
        scaled = MeanEstimator(PMTransformer(4.0, bounds=(low, high), random_state=0)).fit(low + 2 * rows * half)
        plain = means(epsilon=4.0, random_state=0).fit(rows)
        share = (scaled.mean_ - low) / 2 / half
        # codes are those of the shares, up to the digits that X itself has lost
        np.testing.assert_allclose(share, plain.mean_, atol=0.2 if low == 1e16 else 1e-9)
        error = scaled.standard_error_[0]
        assert error / 2 / half == pytest.approx(plain.standard_error_[0], rel=0.1 if low == 1e16 else 1e-6)
        assert np.isfinite(scaled.confidence_interval()).all()
        shape = shapes(epsilon=4.0, bounds=(low, high), random_state=0).fit(low + 2 * rows * half)
        assert 0.4 < (shape.mean_[0] - low) / 2 / half < 0.6


def test_the_spread_of_narrow_bounds_far_from_zero_is_not_lost():
    shape = shapes(epsilon=8.0, bounds=(1e16, 1e16 + 8), random_state=0).fit(1e16 + 8 * np.resize(X, (5000, 1)))
    assert 0.05 < shape.variance_[0] / 64 < 0.12


@pytest.mark.law
def test_small_samples_get_students_intervals():
    """Two reports of next to no noise: 95 % intervals by the normal distribution would cover about 70 %."""
    rng, covered = np.random.default_rng(0), 0
    for seed in range(300):
        est = MeanEstimator(PMTransformer(20.0, bounds=(-6.0, 6.0), random_state=seed)).fit(rng.normal(0, 1, (2, 1)))
        low, high = est.confidence_interval()[0]
        covered += low <= 0 <= high
    assert covered > 265  # alpha < 1e-5 where 95 % are covered
    one = MeanEstimator(PMTransformer(20.0, bounds=(-6.0, 6.0))).fit(np.ones((1, 1)))
    assert np.isnan(one.confidence_interval()).all()
    for level in (0, 1, np.nan, "a", None, [0.9]):
        with pytest.raises(ValueError, match="level must be a number"):
            one.confidence_interval(level)


def test_wide_floats_are_clipped_in_silence():
    wide = np.array([[np.longdouble("1e400")], [np.longdouble("-1e400")]])
    if not np.isfinite(wide).all():
        pytest.skip("long double is no wider than double here")
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_jobs in (1, 2):
            out = PMTransformer(60.0, bounds=(0.0, 1.0), n_jobs=n_jobs).fit_transform(wide)
            np.testing.assert_allclose(out, [[1.0], [0.0]], atol=1e-3)
