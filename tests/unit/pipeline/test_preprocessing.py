"""Preprocessing: sensitivities on neighbours, agreement with scikit-learn's namesakes, what is public or free."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from _neighbours import check_sensitivity
from sklearn import preprocessing as plain
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline

import dpestim
from dpestim.accounting import Ledger
from dpestim.inputs import CategoryEncoder, first_equals
from dpestim.preprocessing import (
    DomainEncoder,
    DPKBinsDiscretizer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
    imputer,
    norm_bound,
    quantile,
    scalers,
)
from dpestim.preprocessing.bins import one_hot

BOUNDS = ([-1.0, 0.0], [1.0, 5.0])
RNG = np.random.default_rng(0)
X = np.clip(RNG.normal([0.1, 2.0], [0.2, 0.5], size=(20_000, 2)), *BOUNDS)
CORNERS = [(-1.0, 0.0), (1.0, 5.0), (-9.0, 9.0), (np.nan, np.nan), (np.nan, 5.0), (0.0, 2.5)]


def neighbours(make, missing=False):
    """Yield pairs of fits on rows that differ in one."""
    rest = np.tile([[-1.0, 0.0]], (9, 1))
    corners = [c for c in CORNERS if missing or not np.isnan(c).any()]
    for a in corners:
        for b in corners:
            yield lambda a=a: make().fit(np.vstack([rest, a])), lambda b=b: make().fit(np.vstack([rest, b]))


@pytest.mark.parametrize(("module", "make", "missing"), [
    (scalers, lambda: DPStandardScaler(bounds=BOUNDS), False),
    (scalers, lambda: DPStandardScaler(bounds=BOUNDS, with_mean=False), False),
    (quantile, lambda: DPQuantileTransformer(bounds=BOUNDS), False),
    (imputer, lambda: DPSimpleImputer(bounds=BOUNDS), True),
])
def test_one_row_moves_the_integers_by_what_is_claimed(monkeypatch, module, make, missing):
    check_sensitivity(monkeypatch, module, neighbours(make, missing))


def test_scaled_as_the_namesake_does():
    ours, theirs = DPStandardScaler(80.0, bounds=BOUNDS, random_state=0).fit(X), plain.StandardScaler().fit(X)
    assert np.allclose(ours.mean_, theirs.mean_, atol=1e-3)
    assert np.allclose(ours.transform(X), theirs.transform(X), atol=0.02)
    assert np.allclose(ours.inverse_transform(ours.transform(X)), X)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    mean_only = DPStandardScaler(bounds=BOUNDS, with_std=False, clip=None).fit(X)
    assert mean_only.scale_ is None
    assert mean_only.norm_bound == np.inf
    ends = DPMinMaxScaler(80.0, bounds=BOUNDS, quantiles=(0.1, 0.9), random_state=0).fit(X)
    assert np.allclose([ends.data_min_, ends.data_max_], np.quantile(X, [0.1, 0.9], axis=0), atol=0.01)
    inside = ((ends.data_min_ < X) & (ends.data_max_ > X)).all(axis=1)
    assert np.allclose(ends.inverse_transform(ends.transform(X[inside])), X[inside])


def test_a_column_without_spread_is_not_blown_up():
    scaler = DPStandardScaler(1.0, bounds=(0, 1), random_state=0).fit(np.full((1000, 1), 0.5))
    assert 0.001 < scaler.scale_[0] < 1


def test_quantiles_and_bins_as_the_namesakes_have_them():
    ours = DPQuantileTransformer(20.0, bounds=BOUNDS, random_state=0).fit(X)
    theirs = plain.QuantileTransformer(n_quantiles=100, subsample=None).fit(X)
    assert np.abs(ours.transform(X) - theirs.transform(X)).max() < 0.02
    assert (np.diff(ours.quantiles_, axis=0) >= 0).all()
    middle = np.abs(X - np.median(X, axis=0)).max(axis=1) < 0.2
    assert np.allclose(ours.inverse_transform(ours.transform(X[middle])), X[middle], atol=0.02)
    normal = DPQuantileTransformer(20.0, bounds=BOUNDS, output_distribution="normal", random_state=0).fit_transform(X)
    assert np.allclose(normal[middle].mean(axis=0), theirs.set_params(output_distribution="normal").fit_transform(
        X)[middle].mean(axis=0), atol=0.05)
    bins = DPKBinsDiscretizer(80.0, bounds=BOUNDS, n_bins=4, random_state=0).fit(X)
    assert np.allclose(np.stack(bins.bin_edges_)[:, 1:-1].T, np.quantile(X, [0.25, 0.5, 0.75], axis=0), atol=0.02)
    dense = bins.transform(X)
    assert dense.shape == (len(X), 8)
    assert (dense.sum(axis=1) == 2).all()
    assert (bins.set_params(encode="onehot").transform(X).toarray() == dense).all()
    codes = bins.set_params(encode="ordinal").transform(X)
    assert (codes == np.hstack([dense[:, 4 * j : 4 * j + 4].argmax(axis=1)[:, None] for j in (0, 1)])).all()
    even = DPKBinsDiscretizer(bounds=BOUNDS, strategy="uniform", n_bins=4, encode="ordinal").fit(X)
    assert even.inverse_transform([[0, 3]]).tolist() == [[-0.75, 4.375]]


def test_missing_values_are_filled():
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.3] = np.nan
    for strategy in ("mean", "median"):
        ours = DPSimpleImputer(80.0, bounds=BOUNDS, strategy=strategy, random_state=0).fit(holes)
        theirs = SimpleImputer(strategy=strategy).fit(holes)
        assert np.allclose(ours.statistics_, theirs.statistics_, atol=0.01)
        assert np.allclose(ours.transform(holes), theirs.transform(holes), atol=0.01)
    empty = DPSimpleImputer(1.0, bounds=(0, 4), random_state=0).fit(np.full((500, 1), np.nan))
    assert 0 <= empty.statistics_[0] <= 4
    frame = pd.DataFrame({"a": ["x", None, "x", "y"] * 50, "b": [1.0, np.nan, 2.0, 2.0] * 50})
    filler = DPSimpleImputer(20.0, strategy="most_frequent", categories=[["x", "y"], [1.0, 2.0]], random_state=0)
    out = filler.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["a", "b"]
    assert out.iloc[1].tolist() == ["x", 2.0]


def test_categories_become_columns():
    rows = RNG.choice(["a", "b", "c"], size=(300, 2)).astype(object)
    rows[0, 0] = None
    known = [["a", "b", "c", None], ["a", "b"]]
    ours = DPOneHotEncoder(categories=known).fit(rows)
    names = [f"x0_{v}" for v in known[0]] + [f"x1_{v}" for v in known[1]]
    assert list(ours.get_feature_names_out()) == names
    assert (ours.transform(rows) == np.column_stack([rows[:, j] == v for j in (0, 1) for v in known[j]])).all()
    assert (ours.set_params(sparse_output=True).transform(rows).toarray() == ours.set_params(
        sparse_output=False).transform(rows)).all()
    back = ours.inverse_transform(ours.transform(rows))
    assert (back[:, 0] == rows[:, 0]).all()
    assert all(new is None if old == "c" else new == old for new, old in zip(back[:, 1], rows[:, 1]))
    with pytest.raises(ValueError, match="column 1 has a value"):
        DPOneHotEncoder(categories=known, handle_unknown="error").fit(rows)
    none = DPOneHotEncoder(0.01, categories="private", delta=1e-9, random_state=0).fit(rows)
    assert not none.transform(rows).any()  # (a column each, so that what follows works)
    assert none.get_feature_names_out().tolist() == ["x0_nothing_selected", "x1_nothing_selected"]
    assert none.inverse_transform(none.transform(rows)).tolist() == [[None, None]] * 300


@pytest.mark.law
def test_rare_categories_are_not_found():
    """A category of one row is published with probability delta at most: never, in 200 fits at delta 1e-6."""
    rows = [["common"]] * 200 + [["the only one"]]
    for seed in range(200):
        found = DPOneHotEncoder(1.0, categories="private", delta=1e-6, random_state=seed).fit(rows)
        assert found.categories_[0].tolist() == ["common"]
    # ... and with a delta of no protection it is seen: the test can tell
    careless = [DPOneHotEncoder(1.0, categories="private", delta=0.9, random_state=seed).fit(rows).categories_[0]
                for seed in range(50)]
    assert sum(len(own) == 2 for own in careless) > 5


@pytest.mark.parametrize("free", [
    DPMinMaxScaler(bounds=BOUNDS, quantiles=None), DPOneHotEncoder(categories=[[0, 1], [0, 1]]),
    DPKBinsDiscretizer(bounds=BOUNDS, strategy="uniform"),
    DPStandardScaler(bounds=BOUNDS, with_mean=False, with_std=False),
])
def test_what_is_declared_costs_nothing(free):
    with Ledger(1, durability="fast") as ledger:
        free.fit(np.round(X[:50]) % 2)
    assert free.privacy_.is_nothing
    assert len(ledger) == 0


def test_norms_are_public_and_hold():
    wild = np.vstack([X * 1e9, X, -X * 1e9])
    one = [RNG.integers(0, 2, 50).astype(float)[:, None].repeat(2, axis=1)]
    for step, rows in ((DPStandardScaler(bounds=BOUNDS, clip=1.5), wild), (DPMinMaxScaler(bounds=BOUNDS), wild),
                       (DPQuantileTransformer(bounds=BOUNDS, output_distribution="normal"), wild),
                       (DPKBinsDiscretizer(bounds=BOUNDS, encode="ordinal"), wild),
                       (DPOneHotEncoder(categories=[[0, 1], [0, 1]]), one[0])):
        before = step.norm_bound
        out = step.fit(rows).transform(rows)
        assert np.linalg.norm(out, axis=1).max() <= before == step.norm_bound
    with pytest.raises(AttributeError, match="after fit"):
        _ = DPMinMaxScaler(bounds=(0, 1)).norm_bound


def test_rows_of_the_caller_are_not_changed():
    for order in "CF":
        rows = np.array(X[:100], order=order)
        kept = rows.copy()
        for cls in (DPStandardScaler, DPQuantileTransformer, DPMinMaxScaler, DPSimpleImputer, DPKBinsDiscretizer):
            cls(bounds=BOUNDS).fit_transform(rows)
            assert (rows == kept).all()


@pytest.mark.parametrize(("step", "match"), [
    (DPStandardScaler(bounds=BOUNDS, clip=0), "clip"), (DPStandardScaler(bounds=BOUNDS, with_mean=1), "with_mean"),
    (DPMinMaxScaler(bounds=BOUNDS, quantiles=(0.9, 0.1)), "quantiles"),
    (DPMinMaxScaler(bounds=BOUNDS, feature_range=(1, 0)), "feature_range"),
    (DPMinMaxScaler(bounds="private", bounds_fraction=1), "bounds_fraction"),
    (DPQuantileTransformer(bounds=BOUNDS, n_quantiles=1), "n_quantiles"),
    (DPQuantileTransformer(bounds=BOUNDS, output_distribution="gauss"), "output_distribution"),
    (DPKBinsDiscretizer(bounds=BOUNDS, n_bins=1), "n_bins"), (DPKBinsDiscretizer(bounds=BOUNDS, encode="x"), "encode"),
    (DPSimpleImputer(bounds=BOUNDS, strategy="constant"), "strategy"),
    (DPSimpleImputer(strategy="most_frequent"), "categories"),
    (DPSimpleImputer(strategy="most_frequent", bounds="private", categories=[[0, 1]] * 2), "bounds"),
    (DPOneHotEncoder(categories="private"), "delta"), (DPOneHotEncoder(categories=[[0, 1]]), "2 columns"),
    (DPOneHotEncoder(categories=[[0], [1]], handle_unknown="infrequent"), "handle_unknown"),
    (DPStandardScaler(bounds=([0, 0, 0], [1, 1, 1])), "bounds"),
])
def test_parameters_that_do_not_fit_are_named(step, match):
    with pytest.raises(ValueError, match=match):
        step.fit(X)


@pytest.mark.parametrize("values", [[1, 1.0], [1, True], [0.5, Fraction(1, 2), Decimal("0.5")], [(1, 2), (1.0, 2)],
                                    [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1),
                                     pd.Timestamp("2020-01-01")],
                                    [datetime.timedelta(1), pd.Timedelta(days=1)]])
@pytest.mark.parametrize("strict", [False, True])
def test_equal_values_of_several_types_are_one_column(values, strict):
    rows = np.empty((400, 1), object)
    for i in range(400):
        rows[i, 0] = "other" if i % 4 == 0 else values[i % len(values)]
    frame = pd.DataFrame(rows)
    encoder = DPOneHotEncoder(20.0, categories="private", delta=1e-3, random_state=0)
    with dpestim.config_context(strict=strict):
        known = encoder.fit(frame).categories_[0]
        out = encoder.transform(frame)
    assert len(known) == 2
    assert out.sum(axis=0).tolist() == [100 if value == "other" else 300 for value in known]
    assert abs(encoder.counts_ - out.sum(axis=0)).max() < 9


def test_equal_categories_are_what_the_encoder_takes_for_equal():
    values = [None, 1.0, "a", float("nan"), True, np.inf, pd.NaT, 1, "b", b"a", datetime.date(2020, 1, 1),
              np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"), datetime.datetime(2020, 1, 1)]
    first = first_equals(values)
    assert first == [0, 1, 2, 0, 1, -1, 0, 1, 8, 9, 10, 10, 12, 10]
    kept = np.empty(len(set(first)) - 1, object)
    kept[:] = [values[i] for i in sorted(set(first)) if i >= 0]
    assert CategoryEncoder(kept, "x").encode(kept).tolist() == list(range(len(kept)))


def test_the_mean_of_nothing_is_near_the_middle():
    # for n = 200 fits of a noise of deviation 1/8 the sample's is above 1/6 with probability alpha below 1e-6
    empty = np.full((50, 200), np.nan)
    for delta in (0.0, 1e-6):
        found = DPSimpleImputer(1.0, bounds=(0, 1), delta=delta, random_state=0).fit(empty).statistics_
        assert 0.08 < found.std() < 1 / 6
        assert abs(found.mean() - 0.5) < 0.06


def test_bins_that_are_none_are_named():
    for encode, frame in (("ordinal", pd.DataFrame(X, columns=["a", "b"])), ("onehot", X)):
        bins = DPKBinsDiscretizer(bounds=BOUNDS, strategy="uniform", n_bins=4, encode=encode).fit(frame)
        with pytest.raises(ValueError, match="columns that transform returns"):
            bins.inverse_transform([[0.0] * 3])
        if encode == "ordinal":
            for bad in (7.0, -1.0, np.nan, np.inf):
                with pytest.raises(ValueError, match=r"column 'b' of X must hold numbers of bins, from 0 to 3"):
                    bins.inverse_transform([[0.0, 1.0], [1.0, bad]])
            with dpestim.config_context(strict=True):
                back = bins.inverse_transform(np.array([[7.0, np.nan], [-9.0, np.inf]]))
            assert back.tolist() == bins.inverse_transform([[3, 0], [0, 3]]).tolist()


def test_an_infinite_category_is_not_selected():
    rows = np.array([1.0, 2.0, np.inf] * 100).reshape(-1, 1)
    encoder = DPOneHotEncoder(20.0, categories="private", delta=1e-3, random_state=0).fit(rows)
    assert encoder.categories_[0].tolist() == [1.0, 2.0]
    assert encoder.transform(rows).sum() == 200


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_are_found_whatever_their_unit(unit):
    days = np.array(["2020-01-01", "2021-01-01", "NaT"] * 100, f"M8[{unit}]").reshape(-1, 1)
    if unit == "ns":
        days[::3] += np.timedelta64(1, "ns")  # (which no date of Python is)
    for rows in (days, days - days[1], days.astype(object) if unit != "ns" else days):
        encoder = DPOneHotEncoder(20.0, categories="private", delta=1e-3, random_state=0).fit(rows)
        assert encoder.transform(rows).sum(axis=0).tolist() == [100, 100, 100]


@pytest.mark.parametrize("sparse", [False, True])
def test_what_follows_works_where_nothing_was_selected(sparse):
    from sklearn.compose import ColumnTransformer

    rows = np.array([[word] for word in "abcde" * 20], object)
    encoder = DPOneHotEncoder(0.01, categories="private", delta=1e-9, sparse_output=sparse, random_state=0)
    out = ColumnTransformer([("words", encoder, [0])]).fit_transform(rows)
    assert out.shape == (100, 1)
    assert out.sum() == 0


@pytest.mark.parametrize("step", [
    DPStandardScaler(bounds=(0, 1)), DPMinMaxScaler(bounds=(0, 1)), DPQuantileTransformer(bounds=(0, 1)),
    DPKBinsDiscretizer(bounds=(0, 1)), DPKBinsDiscretizer(bounds=(0, 1), encode="ordinal"),
    DPOneHotEncoder(categories=[[0, 1]] * 2)])
def test_only_what_is_as_wide_goes_back(step):
    rows = RNG.integers(0, 2, size=(50, 2)).astype(float)
    out = step.fit(rows).transform(rows)
    assert step.inverse_transform(out).shape == rows.shape
    for other in (out[:, :-1], np.hstack([out, out]), out[0]):
        with pytest.raises(ValueError, match=r"X must have the \d+ columns that transform|2D array"):
            step.inverse_transform(other)


def test_integers_stay_as_they_are():
    """... beyond 2^53 too, where floats lie further apart."""
    far = 2**53 + 1
    ours = DPSimpleImputer(70.0, strategy="most_frequent", categories=[[0, 1]] * 2, random_state=0)
    whole = ours.fit(np.array([[far, 0], [0, 1]])).transform(np.array([[far, 0]]))
    assert (whole.dtype, whole[0, 0]) == (np.int64, far)
    frame = pd.DataFrame({"a": pd.array([far, None] + [1] * 20, dtype="Int64"), "b": [0] * 22})
    filled = ours.fit(frame).transform(frame)
    assert (filled.dtype, filled[0, 0], filled[1, 0]) == (np.int64, far, 1)
    mixed = pd.DataFrame({"a": np.array([far], np.uint64), "b": np.array([-1])})
    assert ours.fit(mixed).transform(mixed).tolist() == [[far, -1]]
    assert ours.fit([[0.0, np.nan]]).transform([[0.0, 1.0]]).dtype == np.float64


def test_norms_of_parts_add_up_by_their_squares():
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (50, 4)), columns=list("abcd"))
    frame["e"] = ["red", "blue"] * 25
    numbers = DPMinMaxScaler(bounds=([0, 0, 0], [1, 1, 1]), feature_range=(-1, 1), random_state=0)
    words = DPOneHotEncoder(categories=[["red", "blue"]])
    filled = make_pipeline(DPSimpleImputer(bounds=([0, 0, 0], [1, 1, 1]), random_state=0), numbers)
    table = ColumnTransformer([("n", filled, list("abc")), ("w", words, ["e"]), ("out", "drop", ["d"])],
                              transformer_weights={"w": 3.0})
    assert norm_bound(table) == pytest.approx(12**0.5, rel=1e-12)
    assert norm_bound(numbers) >= numbers.norm_bound
    rows = table.fit_transform(frame)
    assert np.linalg.norm(rows, axis=1).max() <= norm_bound(table)
    union = FeatureUnion([("one", numbers), ("two", clone(numbers))])
    assert norm_bound(make_pipeline(DPSimpleImputer(), union)) == pytest.approx(6**0.5, rel=1e-12)
    for bad, name in ((ColumnTransformer([("w", words, ["e"])], remainder="passthrough"), "remainder"),
                      (ColumnTransformer([("w", plain.StandardScaler(), ["e"])]), "__w"),
                      (DPStandardScaler(), "DPStandardScaler"),
                      (DomainEncoder({"a": (0, 1)}), "DomainEncoder")):
        with pytest.raises(ValueError, match=f"{name} must have a known norm_bound"):
            norm_bound(bad)


@pytest.mark.parametrize("n_bins", [2, 5, 17, 18, 40])
def test_bins_of_few_and_of_many_edges_are_those_that_a_search_finds(n_bins):
    model = DPKBinsDiscretizer(bounds=(0.0, 1.0), strategy="uniform", n_bins=n_bins, encode="ordinal")
    rng = np.random.default_rng(0)
    rows = model.fit(np.zeros((3, 2))).edges_[0][rng.integers(0, n_bins + 1, (3000, 2))]  # (on edges, and between)
    rows[::2] = rng.random((1500, 2)) * 1.2 - 0.1
    codes = model.transform(rows)
    inner = model.edges_[0, 1:-1]
    np.testing.assert_array_equal(codes, np.searchsorted(inner, np.clip(rows, 0, 1), side="right"))
    columns = {encode: model.set_params(encode=encode).transform(rows) for encode in ("onehot-dense", "onehot")}
    expected = (codes[:, :, None] == np.arange(n_bins)).reshape(len(rows), -1).astype(float)
    np.testing.assert_array_equal(columns["onehot-dense"], expected)
    np.testing.assert_array_equal(columns["onehot"].toarray(), expected)


def test_rows_of_categories_that_are_unknown_have_no_one_in_any_block():
    codes = np.random.default_rng(0).integers(0, 4, (2500, 3))
    found = one_hot(codes, [3, 4, 2], False)  # (codes from the number of categories on are of none)
    expected = np.concatenate([codes[:, [j]] == np.arange(k) for j, k in enumerate((3, 4, 2))], axis=1)
    np.testing.assert_array_equal(found, expected.astype(float))
