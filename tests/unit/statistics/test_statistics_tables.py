"""Tables, unknown categories, groups, users with several rows and bounds that are found: exact laws on small data."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from dpestim import statistics
from dpestim._core import cells
from dpestim.accounting import Ledger
from dpestim.privacy.config import config_context
from dpestim.statistics import (
    ContingencyTable,
    Histogram,
    Mean,
    Quantile,
    Sum,
    UnknownCategories,
    Variance,
    group_by,
    mean,
)
from dpestim.testing.tools import Book


@pytest.mark.parametrize("bins", [7, [-2.0, -0.3, 0.0, 0.1, 2.5]])
def test_histograms_count_what_numpy_counts(bins):
    x = np.random.default_rng(0).normal(size=20_000).clip(-2, 2.5)
    x[:50] = np.linspace(-2, 2.5, 8)[np.arange(50) % 8]  # edges
    est = Histogram(1.0, bins=bins, bounds=(-2, 2.5))
    wanted = np.histogram(x, bins=bins, range=(-2, 2.5))
    assert est.summarize(x).summary_.totals.tolist() == wanted[0].tolist()
    np.testing.assert_array_equal(est.release().keys[0], wanted[1])


@pytest.mark.parametrize("table", [Histogram(1.0, bins=1, bounds=(0, 1)), ContingencyTable(1.0, categories=[[0]] * 65)])
def test_more_columns_than_an_array_has_axes_are_refused_before_the_charge(table):
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match="X has 65 columns, and a table at most 32: choose fewer"):
        table.set_params(ledger=ledger).fit(np.zeros((10, 65)))
    assert ledger.spent().epsilon == 0


def test_histograms_of_several_columns_take_edges_for_each():
    rows = np.random.default_rng(0).normal(size=(1000, 3)).clip(-1, 1)
    edges = [[-1, 0, 1], [-1, 1], [-1, -0.5, 0.5, 1]]
    result = Histogram(1.0, bins=edges).fit(rows).result_
    assert result.value.shape == (2, 1, 3)
    exact = Histogram(1.0, bins=edges).summarize(rows).summary_.totals
    assert exact.tolist() == np.histogramdd(rows, bins=edges)[0].astype(int).reshape(-1).tolist()
    low, high = result.interval(0.9)
    assert (low < high).all()
    with pytest.raises(ValueError, match="bins"):
        Histogram(1.0, bins=edges).fit(rows[:, :2])


def test_kernels_refuse_what_does_not_fit():
    x, out = np.zeros(3), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="counts"):
        cells.count_points(x, 1.0, 0.0, 5, 0.0, 5.0, out)
    both = [np.zeros(6, kind) for kind in (np.int32, np.int64)]
    for counts in both:
        cells.count_points(np.array([-9.0, 0.4, 2.6, 5.1, np.nan]), 1.0, 0.0, 5, 0.0, 5.0, counts)
        assert counts.tolist() == [2, 0, 1, 1, 0, 1]
    with pytest.raises(ValueError, match="out"):
        cells.points(x, 1.0, 0.0, 5, 0.0, 5.0, 2, out)
    with pytest.raises(ValueError, match="cells"):
        cells.add_cells(x, np.arange(3.0), 0.0, 1, out)


def test_contingency_tables_count_and_refuse():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 2, 500), rng.integers(0, 3, 500)]
    est = ContingencyTable(2.0, categories=[[0, 1], [0, 1, 2]])
    exact = est.summarize(X).summary_.totals.reshape(2, 3)
    assert [[int((((i, j) == X).all(axis=1)).sum()) for j in range(3)] for i in range(2)] == exact.tolist()
    assert np.abs(est.release().value - exact).max() < 30
    with pytest.raises(ValueError, match="column 1") as error:
        ContingencyTable(2.0, categories=[[0, 1], [0, 1, 2]], ledger=Book()).fit(X + np.array([0, 90]))
    assert "92" not in str(error.value)
    with config_context(strict=True):
        assert ContingencyTable(2.0, categories=[[0, 1], [0, 1, 2]]).fit(X + np.array([0, 90])).value_.shape == (2, 3)


def exact_delta(epsilon, neighbours, delta, most, splits):
    """Return the exact delta of one user with these rows in categories of his own, by enumeration of the outcomes."""
    est = UnknownCategories(epsilon, delta=delta, neighbours=neighbours, max_rows_per_user=most)
    a, least = math.exp(-epsilon / (most or 1)), est.threshold()
    shown = [sum((1 - a) / (1 + a) * a ** np.arange(least - rows, least - rows + 1000.0)) for rows in splits]
    return -np.expm1(np.log1p(-np.array(shown)).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.3, 1e-6), (3.0, 1e-9)])
def test_the_threshold_is_exact(epsilon, delta):
    single = exact_delta(epsilon, "add_remove", delta, None, (1,))
    assert delta * math.exp(-epsilon) * 0.999 < single <= delta * 1.000001  # the next integer would be too small
    for most in (2, 3):
        every = [split for k in range(1, most + 1) for split in itertools.product(range(1, most + 1), repeat=k)
                 if sum(split) <= most]
        worst = max(exact_delta(epsilon, "add_remove", delta, most, split) for split in every)
        assert delta * math.exp(-epsilon) * 0.5 < worst <= delta * 1.000001


def test_unknown_categories_publish_what_is_frequent_and_hide_the_rest():
    values = ["b"] * 300 + ["a"] * 200 + [None] * 100 + [f"secret {k}" for k in range(200)]
    est = UnknownCategories(1.0, delta=1e-9, neighbours="add_remove", random_state=0)
    result = est.fit(values).result_
    assert sorted(map(str, result.keys[0])) == ["None", "a", "b"]
    assert np.abs(np.sort(result.value) - [100, 200, 300]).max() < 40
    assert UnknownCategories(1.0, delta=1e-9, random_state=0).fit(["x"] * 3).value_.tolist() == []
    with pytest.raises(ValueError, match="delta"):
        UnknownCategories(1.0).fit(values)


def test_groups_cost_what_one_costs_and_empty_ones_are_there():
    by, x = np.repeat(["u", "v"], [400, 600]), np.r_[np.zeros(400), np.ones(600)]
    with Ledger(1.0, neighbours="add_remove") as ledger:
        results = group_by(Mean(1.0, bounds=(0, 2), neighbours="add_remove", random_state=0), x, by, ["u", "v", "w"])
    assert ledger.spent().epsilon == 1
    assert list(results) == ["u", "v", "w"]
    assert abs(results["u"].value) < 0.1
    assert abs(results["v"].value - 1) < 0.1
    with pytest.raises(ValueError, match="add_remove"):
        group_by(Mean(1.0, bounds=(0, 2)), x, by, ["u", "v", "w"])
    book = Book()
    with pytest.raises(ValueError, match="by") as error:
        group_by(Mean(1.0, bounds=(0, 2), neighbours="add_remove", ledger=book), x, by, ["u", "w"])
    assert "v" not in str(error.value).replace("value", "")
    assert not book.paid
    seeded = Sum(1.0, bounds=(0, 1), neighbours="add_remove", random_state=0)
    same = group_by(seeded, np.zeros(0), np.zeros(0, int), [0, 1])
    assert ContingencyTable(1.0, categories=[["a", "b"]], neighbours="add_remove").fit([]).value_.shape == (2,)
    assert same[0].value != same[1].value  # groups never share noise


@pytest.mark.parametrize("choice", ["first", "sample"])
def test_users_keep_so_many_rows(choice):
    users = np.repeat(["p", "q", "r"], [5, 1, 3])
    est = Sum(1.0, bounds=(0, 1), neighbours="add_remove", max_rows_per_user=2, row_choice=choice)
    est.summarize(np.ones(9), users=users)
    assert est.summary_.n_rows == 5
    with pytest.raises(ValueError, match="one call"):
        est.summarize(np.ones(9), users=users)
    with pytest.raises(ValueError, match="disjoint"):
        est.merge(est.__class__(**est.get_params()).summarize(np.ones(1), users=["s"]))
    single = Sum(1.0, bounds=(0, 1), neighbours="add_remove").fit(np.ones(9)).result_.standard_error
    assert est.release().standard_error == pytest.approx(2 * single, rel=1e-3)
    assert "user" in str(est.release().privacy)
    with pytest.raises(ValueError, match="each other"):
        Sum(1.0, bounds=(0, 1)).fit(np.ones(9), users=users)
    with pytest.raises(ValueError, match="add_remove"):
        Sum(1.0, bounds=(0, 1), max_rows_per_user=2).fit(np.ones(9), users=users)
    for n in (0, 1, 2):  # one user more changes the scores of quantiles by so many rows at most
        assert Quantile(1.0, bounds=(0, 1), neighbours="add_remove", max_rows_per_user=n + 1)._laws(
            1 << 29, Fraction(1))[0].sensitivity == (n + 1) << 29


def test_users_are_sampled_evenly_and_by_nobody_else():
    kept = [statistics.summary.kept_rows(["u"] * 4 + ["v"], 5, 1, "sample", seed) for seed in range(400)]
    counts = np.bincount([rows[0] for rows in kept], minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-6
    other = [statistics.summary.kept_rows(["u"] * 4 + ["w", "w"], 6, 1, "sample", seed)[0] for seed in range(50)]
    assert other == [rows[0] for rows in kept[:50]]


def test_private_bounds_hold_most_rows_and_are_paid_for():
    x = np.random.default_rng(0).normal(1000, 50, 5000)
    book = Book()
    est = Mean(1.0, bounds="private", bounds_fraction=0.2, ledger=book, random_state=0).fit(
        np.c_[x, -x / 1e6])
    assert len(book.paid) == 1
    assert book.paid[0][0].epsilon == 1
    assert est.bounds_[0].tolist() == [0.0, -(2.0**-9)]
    assert est.bounds_[1].tolist() in ([1024.0, 0.0], [2048.0, 0.0])
    assert abs(est.value_[0] - 1000) < 20
    given = Mean(0.8, bounds=est.bounds_).fit(np.c_[x, x]).result_.standard_error[0]
    assert est.result_.standard_error[0] == pytest.approx(given, rel=1e-9)
    with pytest.raises(ValueError, match="fit"):
        Mean(1.0, bounds="private").summarize(x)
    with pytest.raises(ValueError, match="bounds_fraction"):
        Mean(1.0, bounds="private", bounds_fraction=1.0).fit(x)
    with pytest.warns(UserWarning, match="no private bounds"):
        few = Variance(1.0, bounds="private", random_state=0).fit(np.zeros(4))  # nothing is present
    assert np.isnan(few.value_)
    assert few.result_.interval() == (-math.inf, math.inf)
    half = np.c_[np.ones(2000), 2.0 ** np.arange(-30, 70).repeat(20)]  # no cell of the second has many
    with pytest.warns(UserWarning, match="no private bounds"):
        matrix = statistics.Covariance(1.0, bounds="private", random_state=0).fit(half)
    assert np.isnan(matrix.value_).tolist() == [[False, True], [True, True]]
    assert pickle.loads(pickle.dumps(matrix.result_)).interval()[1][1, 1] == math.inf
    assert "0 to 2, nan to nan" in matrix.result_.about


@pytest.mark.ci
@pytest.mark.parametrize("neighbours", ["substitution", "add_remove"])
@pytest.mark.parametrize("shape", ["smooth", "skewed", "two humps", "point masses", "constant"])
def test_intervals_hold_for_rows_clipped_to_the_bounds_that_were_found(shape, neighbours):
    rng = np.random.default_rng(2)
    shapes = {"smooth": rng.normal(0, 1, 3000), "skewed": rng.lognormal(0, 1, 3000), "constant": np.full(3000, 7.5),
              "two humps": rng.normal(rng.choice([-5, 50], 3000), 1), "point masses": rng.choice([0.0, 1, 1, 20], 3000)}
    x, hits = shapes[shape], 0
    for seed in range(50):
        est = Mean(1.0, bounds="private", neighbours=neighbours, random_state=seed).fit(x)
        low, high = est.result_.interval(0.8)
        hits += low <= np.clip(x, *(end[0] for end in est.bounds_)).mean() <= high
    assert hits >= stats.binom.ppf(1e-6, 50, 0.8)


def test_functions_are_the_classes():
    x = np.random.default_rng(0).normal(size=200)
    one = mean(x, epsilon=1.0, bounds=(-3, 3), random_state=1)
    other = Mean(1.0, bounds=(-3, 3), random_state=1).fit(x).result_
    assert (one.value, one.interval(), one.privacy) == (other.value, other.interval(), other.privacy)
    with pytest.raises(TypeError):
        mean(x, epsilon=1.0, bounds=(-3, 3), bins=3)
    with pytest.raises(ValueError, match="epsilon"):
        mean(x, bounds=(-3, 3))
    assert statistics.maximum(x, epsilon=1.0, bounds=(-3, 3), rank=30).value > 0
    assert statistics.minimum(x, epsilon=1.0, bounds=(-3, 3), rank=30).value < 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_containers_give_the_same(library):
    frames = pytest.importorskip(library)
    x = np.random.default_rng(0).normal(size=(50, 2))
    frame = frames.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    for one, other in ((x, frame), (x[:, 0], frame["a"]), (x[:, 0].tolist(), frame["a"])):
        results = [Mean(1.0, bounds=(-3, 3), random_state=0).fit(data).value_ for data in (one, other)]
        np.testing.assert_array_equal(*results)
    with pytest.raises(ValueError, match="'b'") as error:
        mean(frames.DataFrame({"a": x[:, 0], "b": x[:, 1] * np.inf}), epsilon=1.0, bounds=(0, 1))
    assert "inf " not in str(error.value)


@pytest.mark.parametrize("call", [
    lambda x: statistics.mean(x, epsilon=1.0, bounds=(0, 1)),
    lambda x: statistics.count(x, epsilon=1.0),
    lambda x: statistics.quantile(x, 0.5, epsilon=1.0, bounds=(0, 1)),
    lambda x: statistics.histogram(x, epsilon=1.0, bounds=(0, 1)),
    lambda x: statistics.contingency_table(x, epsilon=1.0, categories=[["a", "b"]]),
    lambda x: statistics.unknown_categories(x, epsilon=1.0, delta=1e-6),
    lambda x: statistics.mean(np.ones(3), epsilon=1.0, bounds=(0, 1), neighbours="add_remove", max_rows_per_user=1,
                              users=x),
    lambda x: group_by(Mean(1.0, bounds=(0, 1), neighbours="add_remove"), np.ones(3), x, ["a", "b"]),
])
@pytest.mark.parametrize("strict", [False, True])
def test_no_message_shows_a_value(call, strict):
    secret = "s3cr3t"
    raised = []
    for cell in (secret, [secret], {secret: 1}, {secret}):
        for data in ([cell, "a", "b"], np.array([cell, "a", 1], dtype=object), [[cell], ["a"], ["b"]]):
            try:
                with config_context(strict=strict):
                    call(data)
            except ValueError as error:
                raised.append(error)
    assert raised or strict
    while raised:
        error = raised.pop()
        assert secret not in str(error)
        raised += [other for other in (error.__cause__, error.__context__) if other is not None]


def test_the_type_of_a_published_key_depends_on_no_other_row():
    """A missing value makes floats of a column of integers, in pandas; keys are what they were."""
    import pandas as pd

    whole, missing = [1] * 50 + [2] * 50, [1] * 50 + [2] * 50 + [None]
    shown = [UnknownCategories(9.0, delta=1e-14, neighbours="add_remove").fit(pd.DataFrame({"x": x})).result_.keys
             for x in (whole, missing)]
    assert [[(type(key), key) for key in keys[0]] for keys in shown] == [[(int, 1), (int, 2)]] * 2
    far = [2**53 + 1] * 60  # (a float cannot tell it from its neighbour)
    for rows in (far, [*far, None], np.array(far)):
        with pytest.raises(ValueError, match="as strings"):
            UnknownCategories(9.0, delta=1e-6).fit(pd.DataFrame({"x": rows}))


def test_a_table_names_the_column_of_a_value_that_is_not_declared():
    frame = pd.DataFrame({"town": ["a", "b"], "sex": ["F", "M"]})
    declared = {"town": ["a"], "sex": ["F", "M"]}
    for rows in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"column 'town' has a value.*declare this value"):
            statistics.contingency_table(rows, epsilon=1.0, categories=declared)
    with pytest.raises(ValueError, match="column 0 has a value"):
        statistics.contingency_table(frame.to_numpy(), epsilon=1.0, categories=[["a"], ["F", "M"]])
