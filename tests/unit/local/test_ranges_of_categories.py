"""Categories that are a range of integers are known by their ends; what is a range, and what tells two apart."""

import copy
import pickle

import numpy as np
import pytest

from dpestim._core import encode
from dpestim.inputs import CategoryEncoder, integer_range, ranges_read_once
from dpestim.local import CMSFrequencyEstimator, GRRFrequencyEstimator, HCMSFrequencyEstimator
from dpestim.local.categories import estimator as estimator_module
from dpestim.testing.tools import same_state

#: Numbers that the kernel looks at together.
PIECE = 1 << 10
#: Longer than a piece that is looked at together, and than what a client remembers number by number.
MANY = 5 * PIECE + 5


@pytest.mark.parametrize("values", [
    np.arange(10), np.arange(MANY), np.array([False, True]), np.arange(-128, 128).astype(np.int8),
    np.arange(256).astype(np.uint8), np.arange(-3, MANY, dtype=np.int16), np.arange(MANY, dtype=np.uint32)[3:],
    np.uint64(2**64 - 6) + np.arange(6, dtype=np.uint64), -(2**63) + np.arange(MANY), np.arange(2 * MANY)[::2] // 2,
], ids=lambda a: f"{a.dtype}-{len(a)}")
def test_a_range_gives_back_its_values(values):
    values.setflags(write=False)
    encoder = CategoryEncoder(values, "x")
    assert integer_range(values) == (values.dtype.str, int(values[0]), len(values))
    for known in (encoder, pickle.loads(pickle.dumps(encoder))):
        assert known.n_categories == len(values)
        np.testing.assert_array_equal(known.categories, values)
        assert known.categories.dtype == values.dtype
        assert not known.categories.flags.writeable
    np.testing.assert_array_equal(encoder.encode(values[::-1]), np.arange(len(values))[::-1])


@pytest.mark.parametrize("values", [range(10), range(-3, MANY), range(-(2**63), -(2**63) + 5),
                                    range(2**63 - 5, 2**63)], ids=str)
def test_a_range_of_python_is_the_array_of_its_values_and_is_not_read(values, monkeypatch):
    listed = GRRFrequencyEstimator(1.0, categories=[list(values)])._columns_now()
    of_list = GRRFrequencyEstimator(1.0, categories=[list(values)], random_state=0).privatize(np.array([values[-2:]]).T)
    monkeypatch.setattr(encode, "steps", None)
    found = GRRFrequencyEstimator(1.0, categories=[values])._columns_now()
    assert found.same_law(listed)
    assert found.columns[0].encoder.range == listed.columns[0].encoder.range
    assert found.columns[0].categories.dtype == np.int64
    np.testing.assert_array_equal(found.columns[0].categories, listed.columns[0].categories)
    est = GRRFrequencyEstimator(1.0, categories=[values], random_state=0)
    np.testing.assert_array_equal(est.privatize(np.array([values[-2:]]).T), of_list)


@pytest.mark.parametrize("values", [range(0, 20, 2), range(5, 0, -1), range(2**63 - 2, 2**63 + 1),
                                    range(2**64, 2**64 + 3), range(-(2**63) - 1, -(2**63) + 3)], ids=str)
def test_other_ranges_of_python_are_lists(values):
    assert integer_range(values) is None
    assert CategoryEncoder(values, "x").plain_categories() == list(values)


def test_a_range_may_be_long_and_says_so_where_it_is_too_long():
    est = HCMSFrequencyEstimator(1.0, categories=[range(1 << 32)]).fit(np.array([[5], [(1 << 32) - 1]]))
    assert est.n_users_ == 2
    other = HCMSFrequencyEstimator(1.0, categories=[range(1, 1 << 32)]).fit(np.array([[5]]))
    assert not other._columns.same_law(est._columns)
    with pytest.raises(ValueError, match="same categories"):
        est.merge(other)
    for values in (range((1 << 32) + 1), range(1 << 63), range(1 << 70), range(0, 1 << 63, 2), range(1 << 70, 0, -3)):
        with pytest.raises(ValueError, match="at most 2\\*\\*32"):
            HCMSFrequencyEstimator(1.0, categories=[values]).fit(np.array([[5]]))
    for values in (range(1), range(7, 7)):
        with pytest.raises(ValueError, match="at least two"):
            GRRFrequencyEstimator(1.0, categories=[values]).fit(np.array([[0]]))


@pytest.mark.parametrize("place", [1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, MANY - 2])
def test_one_number_in_another_place_is_no_range(place):
    values = np.arange(MANY)
    values[place] = -7
    assert integer_range(values) is None
    np.testing.assert_array_equal(CategoryEncoder(values, "x").categories, values)
    assert integer_range(values[::-1]) is None
    pieces = np.arange(4 * PIECE).reshape(4, -1)[[0, 2, 1, 3]].ravel()  # only where two pieces meet a step is another
    assert integer_range(pieces) is None
    assert integer_range(np.arange(MANY).astype(">i8")) is None
    assert integer_range(np.arange(MANY).astype(float)) is None


@pytest.mark.parametrize("change", [lambda a: a.__iadd__(1), lambda a: a.__setitem__(5, -1),
                                    lambda a: a.__setitem__(slice(None), a[::-1].copy())])
def test_a_long_array_that_is_changed_in_place_is_another_domain(change):
    values = np.arange(MANY)
    est = GRRFrequencyEstimator(1.0, categories=[values])
    before = est.randomizer(0), est._columns_now()
    assert est._columns_now() is before[1]
    change(values)
    after = est._columns_now()
    assert after is not before[1]
    np.testing.assert_array_equal(after.columns[0].categories, values)
    assert not after.same_law(before[1])


def test_what_is_known_of_a_range_is_the_same_in_a_copy():
    """Also of integers of C's long long, which a copy calls by another name."""
    known = CategoryEncoder([1 << 63, (1 << 63) + 1], "x")
    before = copy.deepcopy(known.__getstate__())
    np.testing.assert_array_equal(known.categories, np.uint64(1 << 63) + np.arange(2, dtype=np.uint64))
    assert same_state(before, known.__getstate__())


def test_ranges_of_other_ends_or_types_are_other_domains():
    def columns(values):
        return GRRFrequencyEstimator(1.0, categories=[values])._columns_now()

    mine = columns(np.arange(MANY))
    assert mine.same_law(columns(np.arange(MANY)))
    assert not mine.same_law(columns(np.arange(1, MANY + 1)))
    assert mine.same_law(columns(np.arange(MANY, dtype=np.int32))) == (  # (values are compared, not their types)
        mine.same_law(columns(np.arange(MANY, dtype=np.int32).tolist())))


def test_the_fitted_categories_are_those_declared():
    est = HCMSFrequencyEstimator(1.0, categories=[np.arange(7, 7 + MANY)])
    assert not hasattr(est, "categories_")
    est.fit(np.full((3, 1), 9))
    np.testing.assert_array_equal(est.categories_[0], np.arange(7, 7 + MANY))


def test_arrays_are_looked_at_once_in_a_block_and_again_after_it(monkeypatch):
    looked = []
    steps = encode.steps
    monkeypatch.setattr(encode, "steps", lambda values: looked.append(len(values)) or steps(values))
    values, est = np.arange(MANY), HCMSFrequencyEstimator(1.0, categories=[np.arange(MANY)])
    with ranges_read_once():
        assert integer_range(values) == integer_range(values)
        assert integer_range(values[3:]) != integer_range(values)
    assert looked == [MANY, MANY - 3]
    values[7] = 0
    with ranges_read_once():
        assert integer_range(values) is None
    looked.clear()
    est.fit(np.array([[3]]))
    assert looked == [MANY]
    est.categories[0][5] = 0  # (as before: somebody changes it in place, and is refused)
    with pytest.raises(ValueError, match="distinct"):
        HCMSFrequencyEstimator(1.0, categories=est.categories).fit(np.array([[3]]))


def test_a_server_looks_at_a_list_once_and_each_time_anew_until_reports_are_counted(monkeypatch):
    looked, steps, values = [], encode.steps, np.arange(MANY)
    reports = HCMSFrequencyEstimator(1.0, categories=[values]).privatize(np.arange(5)[:, None]).copy()
    monkeypatch.setattr(encode, "steps", lambda values: looked.append(len(values)) or steps(values))
    est = HCMSFrequencyEstimator(1.0, categories=[values])
    with pytest.raises(ValueError, match="dtype"):
        est.aggregate(reports.astype(np.int8))
    values += 1
    assert est.aggregate(reports).categories_[0][0] == 1  # (what a refused call has seen is not remembered)
    assert looked == [MANY, MANY]
    values += 1
    assert est.aggregate(reports).categories_[0][0] == 1  # (and the first reports that are counted freeze the columns)
    assert looked == [MANY, MANY]


def test_a_server_of_an_open_column_needs_no_list():
    est = HCMSFrequencyEstimator(1.0, categories=None)
    reports = est.privatize(np.array([["a"], ["b"]], object))
    fresh = HCMSFrequencyEstimator(1.0, categories=None).aggregate(reports)
    assert fresh.n_users_ == 2
    assert fresh.randomizers_ == est.aggregate(reports).randomizers_


def test_servers_of_the_same_parameters_have_the_same_columns_and_no_others():
    def columns(cls=GRRFrequencyEstimator, epsilon=1.0, values=None, change=None, **more):
        values = np.arange(9) if values is None else values
        server = cls(epsilon, categories=[values], **more)
        if change:
            change(server, values)
        return server.aggregate(np.zeros((3, 3 if cls is HCMSFrequencyEstimator else 1), np.uint8))._columns

    def shifted(server, values):
        values += 1  # (in place: the array is the same)

    def listed(server, values):
        server.categories = [values.tolist()]

    first = columns()
    for same in ({}, {"random_state": 3}, {"postprocess": "norm_sub"}):
        assert columns(**same) is first
    others = [columns(epsilon=1), columns(epsilon=2.0), columns(type("Other", (GRRFrequencyEstimator,), {})),
              columns(values=np.arange(10)), columns(values=np.arange(9, dtype=np.int32)), columns(change=shifted),
              columns(change=listed)]
    assert all(other is not first for other in others)
    assert others[-2].columns[0].categories.tolist() == list(range(1, 10))
    hashed = [columns(HCMSFrequencyEstimator, n_buckets=n, n_hashes=k, hash_seed=s)
              for n, k, s in ((16, None, 0), (32, None, 0), (16, 2, 0), (16, 2, 1))]
    assert len({id(one) for one in hashed}) == 4
    with pytest.raises(ValueError, match="hash_seed"):
        columns(HCMSFrequencyEstimator, n_buckets=16, n_hashes=2, hash_seed=True)
    assert columns(epsilon=np.float64(1)) is not first  # (what is no plain number is made anew)
    server = GRRFrequencyEstimator(1.0, categories=[np.arange(9)]).aggregate(np.zeros((3, 1), np.uint8))
    server.randomizers_.clear()
    assert len(first.laws) == 1


def test_a_law_that_is_made_of_more_than_parameters_is_nobody_elses():
    class Other(GRRFrequencyEstimator):
        part = 1

        def _law(self, encoder, column, n_columns):
            return self._randomizer.make(self._share(n_columns) / self.part, encoder.n_categories)

    found = []
    for part in (2, 1):
        server = Other(2.0, categories=[np.arange(9)])
        server.part = part
        found.append(float(server.aggregate(np.zeros((3, 1), np.uint8)).privacy_.epsilon))
    assert found == [1.0, 2.0]


def test_a_law_of_one_object_is_nobody_elses(monkeypatch):
    monkeypatch.setattr(estimator_module, "_known", {})
    strange, plain = (GRRFrequencyEstimator(1.0, categories=[range(9)]) for _ in range(2))
    strange._law = lambda encoder, column, n_columns: strange._randomizer.make(5.0, encoder.n_categories)
    found = [float(server.aggregate(np.zeros((3, 1), np.uint8)).privacy_.epsilon) for server in (strange, plain)]
    assert found == [5.0, 1.0]


def test_what_servers_share_cannot_be_changed_through_one_of_them():
    for cls in (CMSFrequencyEstimator, HCMSFrequencyEstimator):
        server = cls(1.0, categories=[range(9)])
        with pytest.raises(ValueError, match="read-only"):
            server.randomizer().columns[:] = 0


def test_columns_that_are_remembered_are_few_and_short(monkeypatch):
    known = {}
    monkeypatch.setattr(estimator_module, "_known", known)
    for epsilon in np.linspace(0.5, 1.0, 70).tolist():
        GRRFrequencyEstimator(epsilon, categories=[np.arange(3)]).aggregate(np.zeros((3, 1), np.uint8))
    assert 0 < len(known) <= 64
    known.clear()
    for values in (np.arange(1 << 13), range(1 << 13), range(1 << 13, 0, -1)):
        GRRFrequencyEstimator(1.0, categories=[values]).aggregate(np.zeros((3, 1), np.uint16))
    assert not known
    for wrong in (-1.0, 0.0, np.nan, "1"):
        for _ in range(2):
            with pytest.raises(ValueError, match="epsilon"):
                GRRFrequencyEstimator(wrong, categories=[np.arange(3)]).aggregate(np.zeros((3, 1), np.uint8))
    assert not known


@pytest.mark.parametrize("values", [np.array([3, 1, 2]), np.arange(3, dtype=np.int8), range(3), range(1, 4)], ids=str)
def test_servers_of_one_short_list_of_integers_share_columns_and_those_of_another_do_not(values):
    def columns(values):
        server = GRRFrequencyEstimator(1.0, categories=[values])
        return server.aggregate(np.zeros((3, 1), np.uint8))._columns

    first = columns(values)
    assert columns(copy.copy(values)) is first
    others = [np.array([3, 2, 1]), np.arange(3, dtype=np.int16), np.array([3, 1, 2], ">i8"), range(4), range(2, 5)]
    assert not any(columns(other) is first for other in others)
    np.testing.assert_array_equal(first.columns[0].categories, np.array(values))
