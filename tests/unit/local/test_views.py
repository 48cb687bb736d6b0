"""Views of a row: each user reports one function of the features, drawn without looking at them."""

import numpy as np
import pytest

from dpestim.inputs import CategoryEncoder
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.unary import OUE
from dpestim.local.coded import CategoryFeature, NumberFeature
from dpestim.local.views import Product, Quotient, ViewColumns
from dpestim.rng import WordSource

FEATURES = [CategoryFeature(CategoryEncoder(["a", "b"], "column 'x'")), NumberFeature("column 'y'", 0.0, 8.0, 8)]


def views(n_sampled=1, sizes=(2, 8)):
    own = [Product("x and y", GRR.make(2.0, 16), (0, 1), sizes), Quotient("y in halves", GRR.make(2.0, 2), 1, 4),
           Quotient("y in pairs", OUE.make(2.0, 4), 1, 2)]
    return ViewColumns(own, n_sampled=n_sampled, features=FEATURES)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [np.array(["a", "b"], dtype=object)[rng.integers(0, 2, n)], rng.uniform(0, 8, n)]


def test_views_are_functions_of_the_codes():
    X = rows(1000)
    data = views().read(X, 1, False)
    x, y = (X[0] == "b").astype(int), X[1].astype(int)
    expected = [8 * x + y, y // 4, y // 2]
    for view, right in zip(data, expected):
        assert len(view) == 1000
        assert (view[np.arange(1000)] == right).all()
        assert (view[np.array([5, 3])] == right[[5, 3]]).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_counts_are_those_of_the_reports_and_estimates_are_right(k):
    X, columns = rows(200_000, 1), views(k)
    reports = columns.randomize(columns.read(X, 1, False), WordSource(0), 0, 1)
    counted = columns.randomize_and_count(columns.read(X, 1, False), WordSource(0), 0, 1)
    for again, once in zip(columns.count(columns.check_reports(reports), 1), counted):
        assert (again == once).all()
    n = [counts[-1] for counts in counted]
    assert sum(n) == k * 200_000
    x, y = (X[0] == "b").astype(int), X[1].astype(int)
    for law, counts, values in zip(columns.laws, counted, (8 * x + y, y // 4, y // 2)):
        m = counts[-1]
        found, right = law.estimate(counts[:-1], m), np.bincount(values, minlength=law.n_categories) / 200_000
        spread = np.sqrt(np.asarray(law.variance(m, right), float) + right * (1 - right) / m)
        assert (np.abs(found - right) < 5 * spread).all()


def test_guarantee_and_identity():
    assert views().guarantee().epsilon == 2
    assert views(2).guarantee().epsilon == 4
    assert "Each user reports 2 of 3 views of the row" in str(views(2).guarantee())
    assert views().same_law(views())
    others = [views(2), views(sizes=(16, 1)),
              ViewColumns(views().columns, n_sampled=1, features=[FEATURES[0].named("column 'z'"), FEATURES[1]]),
              ViewColumns(views().columns, n_sampled=1, features=FEATURES[:1] * 2)]
    assert [views().same_law(other) for other in others] == [False, False, True, False]
    assert views().named(["column 'p'", "column 'q'"]).names == ["column 'p'", "column 'q'"]
    assert views().law_of("y in halves") is views().laws[1]
    with pytest.raises(ValueError, match="a view or a number below 3"):
        views().law_of(3)


def test_what_is_no_value_is_refused_or_in_strict_mode_the_first():
    X = [np.array(["a", "c"], dtype=object), np.array([1.0, np.nan])]
    with pytest.raises(ValueError, match="column 'x'"):
        views().read(X, 1, False)
    data = views().read(X, 1, True)
    assert [view[np.arange(2)].tolist() for view in data] == [[1, 0], [0, 0], [0, 0]]
