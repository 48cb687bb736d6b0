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
    return MeanEstimator(PMTransformer(1.0, **{"bounds": (0.0, 1.0), **params}))


def shapes(**params):
    return DistributionEstimator(PMTransformer(1.0, **{"bounds": (0.0, 1.0), **params}), n_bins=4)


def letters(**params):
    return DistributionEstimator(GRRFrequencyEstimator(1.0, **{"categories": [["a", "b", "c"]], **params}))


KINDS = [(means, X), (shapes, X), (letters, LETTERS)]


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
    if rows is LETTERS:
        bad = np.array(["never declared", *rows[1:, 0]])[:, None]
    else:
        bad = np.array([[np.nan], *rows[1:]])
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


@pytest.mark.parametrize("start", ["aggregate", "fit", "partial_fit", "merge"])
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
    elif start == "merge":
        est.aggregate(est.privatize(frame)).merge(make().fit(frame))
    else:
        getattr(est, start)(frame)
    assert list(est.feature_names_in_) == ["a", "b"]
    for verb in ("partial_fit", "privatize", "score"):
        with pytest.raises(ValueError, match="feature names"):
            getattr(est, verb)(frame[["b", "a"]])
    with pytest.raises(ValueError, match="by name"):
        est.merge(make().fit(frame[["b", "a"]]))
    assert est.partial_fit(frame).n_users_ >= 120


def test_categories_of_a_dict_name_the_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": LETTERS[:, 0], "b": LETTERS[:, 0]})
    ledger = Ledger(10)
    est = letters(categories={"a": ["a", "b", "c"], "b": ["a", "b", "c"]}, ledger=ledger).fit(frame)
    assert list(est.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="keys of categories"):
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
    assert one.transformer_.randomizer().law == other.transformer_.randomizer().law  # that alone does not tell
    with pytest.raises(ValueError, match="same law"):
        one.merge(other)
    assert one.merge(low(0.7)).n_users_ == 120


def test_learned_bounds_are_merged_into_an_empty_collector_as_a_copy():
    with pytest.warns(PrivacyLeakWarning):
        full = MeanEstimator(PMTransformer(1.0)).fit(X)
    empty = MeanEstimator(PMTransformer(1.0, random_state=3)).merge(full)
    assert full.transformer_.random_state is None
    assert empty.mean_ == full.mean_
