"""Rectangles from grids: exact sums, variances of the very reports, two groups of users, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dpestim.accounting import Ledger
from dpestim.collection import Survey
from dpestim.inputs import Domain, Numbers
from dpestim.local import RectangleEstimator, Refinement
from dpestim.local.domains.grids import Cells, Grid, best_grid, expected_error, grid_of
from dpestim.local.domains.grids_of_reports import Rectangles, Told
from dpestim.local.domains.levels import short_law

SIZE = 24


def ring(n, seed=0):
    """Return integers below SIZE around a circle: no columns that are independent, and nothing in most cells."""
    rng = np.random.default_rng(seed)
    angle, far = rng.uniform(0, 2 * np.pi, n), 8 + rng.normal(0, 1, n)
    return np.clip(np.column_stack([far * np.cos(angle), far * np.sin(angle)]) + 12, 0, SIZE - 1).astype(int)


def estimator(epsilon=1.0, **more):
    return RectangleEstimator(epsilon, bounds=(0, SIZE), n_bins=SIZE, n_jobs=1, **more)


def share_of(X, x, y):
    return ((X[:, 0] >= x[0]) & (X[:, 0] < x[1]) & (X[:, 1] >= y[0]) & (X[:, 1] < y[1])).mean()


class Exact(Told):
    """What a view would tell without noise."""

    def __init__(self, law, shares):
        self.law, self.drawn, self.shares, self.excess, self.variance = law, 1, shares, 0.0, 1e-12


def views_of(grid, codes):
    """Return the exact shares of each view of a grid."""
    n = len(codes)
    tables = [np.bincount(Cells("grid", short_law(1, grid.n_cells), grid).of(codes.T), minlength=grid.n_cells) / n]
    for axis in (0, 1) if grid.fine else ():
        ranges = len(grid.edges(axis, True)) - 1
        tables.append(np.bincount(codes[:, axis] // grid.fine[axis], minlength=ranges) / n)
    return [Exact(short_law(1, len(table)), table) for table in tables]


@pytest.mark.parametrize("grid", [grid_of((24, 24), 6), grid_of((24, 24), 4, 8), grid_of((20, 7), 5, 10),
                                  Grid((23, 24), (6, 8), (2, 4))])
def test_exact_reports_give_exact_rectangles(grid):
    """With edges of cells, and for ranges of one column with edges of its ranges; weights are those of the sum."""
    codes = np.minimum(ring(2000).astype(np.uint32), np.array(grid.sizes, np.uint32) - 1)
    told = Rectangles(grid, views_of(grid, codes), len(codes))
    edges = [grid.edges(axis) for axis in (0, 1)]
    for x in ((0, 1), (1, 3), (0, len(edges[0]) - 1)):
        for y in ((0, 2), (1, len(edges[1]) - 1)):
            asked = [tuple(float(own[at]) for at in places) for own, places in zip(edges, (x, y))]
            share = told.range(*asked)[0]
            assert share == pytest.approx(share_of(codes, *asked))
            if told.pulls:
                covered, more = told.covered(*asked)
                raw = told._raw([covered, *more])
                assert sum(w @ one.shares for w, one in zip(raw, told.told)) == pytest.approx(share)
    if told.pulls:
        low, high = (float(place) for place in grid.edges(0, True)[[1, 4]])
        assert told.range((low, high), (0, grid.sizes[1]))[0] == pytest.approx(share_of(codes, (low, high), (0, 99)))
        assert told.cells.sum() == pytest.approx(1)
        for axis in (0, 1):
            np.testing.assert_allclose(np.bincount(grid.groups(axis), told.ranges[axis]),
                                       told.cells.sum(axis=1 - axis), atol=1e-12)


def test_columns_that_are_independent_within_cells_are_exact_where_ranges_end():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(24)), rng.dirichlet(np.ones(24))
    grid = grid_of((24, 24), 4, 24)
    joint = np.outer(a, b)
    cells = joint.reshape(4, 6, 4, 6).sum(axis=(1, 3))
    told = Rectangles(grid, [Exact(short_law(1, own.size), own.ravel()) for own in (cells, a, b)], 10**9)
    assert told.range((2, 17), (5, 22))[0] == pytest.approx(joint[2:17, 5:22].sum(), rel=1e-3)
    even = Rectangles(grid._replace(fine=None), told.told[:1], 10**9)
    assert even.range((0, 3), (0, 6))[0] == pytest.approx(cells[0, 0] / 2)
    low, high = even.interval((2, 17), (5, 22), 0.0, "any")
    assert low == pytest.approx(cells[1:2, 1:3].sum())
    assert high == pytest.approx(cells[0:3, 0:4].sum())


def test_how_much_the_first_users_count_does_not_follow_from_what_they_told_of_a_cell():
    """Cells of which they told too much have more parts: with a weight by these, shares would be too large."""
    grid, sides = grid_of((24, 24), 2), np.array([1, 4, 2, 1])
    parts = Exact(short_law(1, 22), np.full(22, 1 / 22))
    tables = []
    for more in (0.0, *np.eye(4)):
        tables.append(Rectangles(grid, [parts], 100, (Exact(short_law(1, 4), np.full(4, 0.25) + more), sides)).table)
    counted = [(table - tables[0]).ravel()[k] for k, table in enumerate(tables[1:])]
    assert np.ptp(counted) < 1e-12
    assert 0 < counted[0] < 1


@pytest.mark.ci
@pytest.mark.parametrize(("method", "epsilon"), [("uniform", 1.0), ("hdg", 1.0), ("hdg", 5.0), ("adaptive", 3.0)])
def test_errors_are_those_of_theory(method, epsilon):
    """The mean of squares over R seeds is within 5 standard deviations of the square of what is stated."""
    X, seeds, found = ring(2000), 120, []
    asked = [((0, 12), (6, 18)), ((6, 12), (6, 12)), ((0, 24), (6, 18))]  # (edges of cells)
    right = np.array([share_of(X, *own) for own in asked])
    for seed in range(seeds):
        est = estimator(epsilon, method=method, cells=4, random_state=seed).fit(X)
        found.append([(*est.rectangle(*own), *est.confidence_interval(*own)) for own in asked])
    shares, errors, low, high = np.moveaxis(np.array(found), -1, 0)
    ratio = ((shares - right) ** 2).mean(axis=0) / (errors**2).mean(axis=0)
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 / seeds)).all(), ratio
    assert (np.abs(shares.mean(axis=0) - right) < 5 * errors.mean(axis=0) / np.sqrt(seeds)).all()
    covered = ((low <= right) & (right <= high)).mean()
    assert abs(covered - 0.95) < 3.5 * np.sqrt(0.05 * 0.95 / (2 * seeds)), covered


@pytest.mark.ci
def test_the_grid_is_that_of_the_least_expected_error():
    few, many = (best_grid(1, (256, 256), "uniform", n) for n in (1000, 10**6))
    assert few.n_cells < many.n_cells
    errors = [expected_error(1, grid_of((256, 256), n), 50_000) for n in (2, 4, 8, 16, 32, 64)]
    assert expected_error(1, best_grid(1, (256, 256), "uniform", 50_000), 50_000) <= min(errors)
    fine = best_grid(1, (256, 256), "hdg", 10**6)
    assert all(wide % own == 0 and wide > own for wide, own in zip(fine.widths, fine.fine))
    # the variance is that of the very reports: even users, all rectangles of cells
    grid, n = grid_of((6, 6), 6), 40_000
    codes = np.stack(np.divmod(np.arange(n) % 36, 6), axis=1)
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 7)]
    for epsilon in (1, 6):
        est = RectangleEstimator(epsilon, bounds=(0, 6), n_bins=6, method="uniform", cells=6, random_state=0).fit(codes)
        stated = np.mean([est.rectangle(x, y)[1] ** 2 for x in pairs for y in pairs])
        assert stated == pytest.approx(expected_error(epsilon, grid, n), rel=0.05)


@pytest.mark.ci
@pytest.mark.parametrize("method", ["uniform", "hdg", "adaptive"])
def test_rectangles_are_near_the_truth(method):
    """In batches, merged, copied, by name, and of categories, too."""
    pd = pytest.importorskip("pandas")
    X, frame = ring(60_000), pd.DataFrame(ring(60_000), columns=["east", "north"])
    est = RectangleEstimator(4.0, bounds={"east": (0, SIZE), "north": (0, SIZE)}, n_bins=SIZE, method=method,
                             random_state=0).fit(frame)
    for asked in (((0, 12), (0, 12)), ((6, 24), (3, 20))):
        share, error = est.rectangle(*asked)
        low, high = est.confidence_interval(*asked, inside="any")
        assert abs(share - share_of(X, *asked)) < 4 * error + 0.02
        assert low <= share_of(X, *asked) <= high
    assert est.rectangle(None, None) == (1.0, 0.0)
    assert est.range(0, 12, "north") == est.rectangle(None, (0, 12))
    assert abs(est.range(0, 12, 1)[0] - share_of(X, (0, 99), (0, 12))) < 0.04
    twin = pickle.loads(pickle.dumps(est))
    assert twin.rectangle((0, 9), (0, 9)) == est.rectangle((0, 9), (0, 9))
    shown = est.result_.to_frame()
    assert {"east", "north"} <= set(shown.columns)
    assert np.isfinite(shown[["value", "standard_error"]].to_numpy(float)).all()
    assert est.release().shape == tuple(len(edges) - 1 for edges in est.cell_edges_)


def test_two_groups_of_users_pay_once_each_and_their_servers_add_up():
    X, ledger = ring(20_000), Ledger(9)
    whole = estimator(3.0, method="adaptive", cells=4, random_state=0, ledger=ledger).fit(X)
    assert ledger.spent().epsilon == 3
    assert whole.n_users_ + whole.refinement_.n_users == len(X)
    assert len(set(whole.refinement_.splits)) > 1
    first = estimator(3.0, method="adaptive", random_state=1).fit(X) and estimator(3.0, method="adaptive")
    first.aggregate(estimator(3.0, method="adaptive", random_state=2).privatize(X[:8000]))
    told = first.refine(12_000)
    later = estimator(3.0, method="adaptive", refinement=told, random_state=np.random.default_rng(3))
    assert clone(later).refinement == told
    one = clone(later).aggregate(later.privatize(X[8000:14_000]))
    two = clone(later).aggregate(later.privatize(X[14_000:]))
    assert one.merge(two).n_users_ == 12_000
    asked = (0, 12), (0, 12)
    share, error = one.rectangle(*asked)
    assert abs(share - share_of(X, *asked)) < 5 * error + 0.02
    with pytest.raises(ValueError, match="other must have the same"):
        one.merge(whole)
    with pytest.raises(ValueError, match="refine must be asked"):
        one.refine(10)
    for wrong in (told._replace(splits=told.splits[1:]), told._replace(n_users=1), "x",
                  told._replace(splits=(99, *told.splits[1:])), Refinement((), (), 0)):
        with pytest.raises(ValueError, match="refinement must be"):
            clone(later).set_params(refinement=wrong).fit(X)
    with pytest.raises(ValueError, match="two rows"):
        estimator(method="adaptive").fit(X[:1])
    with pytest.raises(ValueError, match="two groups"):
        estimator(method="adaptive").fit_parts(None, (X,))


def test_what_is_refused():
    for wrong in ({"method": "grid"}, {"cells": 1}, {"cells": "best"}, {"n_users": 0}, {"cells": True},
                  {"refinement": Refinement((), (), 0)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            estimator(**wrong).fit(ring(10))
    with pytest.raises(ValueError, match="two columns"):
        RectangleEstimator(bounds=([0.0], [1.0])).fit(np.zeros((9, 1)))
    est = estimator(random_state=0).fit(ring(100))
    for asked in ((1, None), ((1, 2, 3), None), ("ab", None), ((2, 1), None)):
        with pytest.raises(ValueError, match=r"first|low"):
            est.rectangle(*asked)
    with pytest.raises(ValueError, match="inside must be"):
        est.confidence_interval(None, (0, 1), inside="odd")
    with pytest.raises(ValueError, match="contains NaN"):
        RectangleEstimator(bounds=Domain({"a": Numbers(0, 1, missing=True), "b": Numbers(0, 1)})).fit(
            np.array([[np.nan, 0.5], [0.1, 0.5]]))
    lonely = estimator(random_state=0).fit(ring(1))  # (two of three views that nobody reported)
    assert np.isfinite([*lonely.rectangle((0, 9), (3, 8)), *lonely.confidence_interval((0, 9), None)]).all()


def test_a_survey_of_a_grid():
    est = estimator(2.0, n_users=500, random_state=0)
    survey = Survey(est, name="places")
    again = Survey.from_json(survey.to_json()).server()
    assert again.aggregate(survey.client(random_state=0).privatize(ring(50))).n_users_ == 50


def test_batches_of_several_servers_are_of_the_first_users_until_refine_is_asked():
    """`partial_fit` of "adaptive" asked both groups of its first batch: cells differed, and nothing added up."""
    X, own = ring(4000), {"method": "adaptive", "n_users": 4000}
    one, two = (estimator(3.0, **own).partial_fit(part) for part in (X[:1000], X[1000:2000]))
    assert one.refinement_ is None
    told = one.merge(two).partial_fit(X[2000:2100]).refine(1900)
    assert told.n_users == one.n_users_ == 2100
    both = estimator(3.0, refinement=told, **own).partial_fit(X[2100:3000]).partial_fit(X[3000:])
    assert (both.refinement_, both.n_users_) == (told, 1900)
    later = estimator(3.0, random_state=0, **own).fit(X[:3000]).partial_fit(X[3000:])  # (of the second group)
    assert later.n_users_ + later.refinement_.n_users == 4000
