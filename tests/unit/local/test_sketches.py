"""Count-mean sketches: hashes, collisions, variances over the draw of hashes, open domains."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from dpestim import config_context
from dpestim._core import hcms, sketch
from dpestim.accounting import Ledger
from dpestim.inputs import FingerprintEncoder
from dpestim.local import CMSFrequencyEstimator, HCMSFrequencyEstimator
from dpestim.local.categories.cms import CMS
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.sketch import _POLYNOMIALS
from dpestim.local.reports import largest_of
from dpestim.privacy.exact import WORD

SKETCHES = (CMSFrequencyEstimator, HCMSFrequencyEstimator)
ALPHA = 1e-6


@pytest.mark.parametrize("m", [2, 4, 8, 16, 64])
def test_any_two_values_meet_in_one_direction_of_a_plane(m):
    law = CMS(1, m * m, n_hashes=m + 1, n_buckets=m)
    codes = np.arange(m * m)[:: max(1, m * m // 256)]
    rates = law.collision_rates(codes)
    assert law.is_exact
    assert law.collisions == Fraction(1, m + 1)
    np.testing.assert_allclose(rates, np.where(np.eye(len(codes)), 1, 1 / (m + 1)))


def test_polynomials_are_irreducible():
    def remainder(a, b):
        while a.bit_length() >= b.bit_length():
            a ^= b << (a.bit_length() - b.bit_length())
        return a

    for size, polynomial in enumerate(_POLYNOMIALS, 1):
        assert polynomial.bit_length() == size + 1
        assert all(remainder(polynomial, factor) for factor in range(2, 1 << (size // 2 + 1)))


def test_drawn_hashes_collide_as_often_as_stated():
    """Mean 1 / m and variance (1 / m)(1 - 1 / m) / k over 24 seeds of 40 values; n = 18,720 pairs, alpha = 1e-6."""
    m, k, rates = 8, 16, []
    for seed in range(24):
        law = HCMS(1, 1 << 20, n_hashes=k, n_buckets=m, hash_seed=seed)
        found = law.collision_rates(np.random.default_rng(seed).choice(1 << 20, 40, replace=False))
        rates.append(found[np.triu_indices(40, 1)])
    rates, variance = np.array(rates), (1 / m) * (1 - 1 / m) / k
    z = (rates.mean(axis=1) - 1 / m).mean() / np.sqrt(variance / rates.size)
    assert abs(z) < stats.norm.isf(ALPHA / 2)  # (different pairs of one seed are uncorrelated)
    assert rates.var() / variance == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("cls", SKETCHES)
def test_a_query_is_the_sum_over_hashes(cls):
    law = cls._randomizer(1.0, 1 << 32, n_hashes=3, n_buckets=16, hash_seed=5)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 1 << 32, 500, dtype=np.uint32)
    codes[100:400] = np.arange(77, 377)
    table = rng.integers(-9, 9, (3, 16))
    wanted = sum(table[j, law.buckets(codes, np.full(500, j, np.uint32))] for j in range(3))
    np.testing.assert_array_equal(law._over_hashes(table, codes), wanted)
    np.testing.assert_array_equal(law._over_hashes(table, codes[:7]), wanted[:7])


@pytest.mark.parametrize("cls", SKETCHES)
def test_errors_over_the_draw_of_hashes(cls):
    """Errors in standard errors have mean square 1 over 60 seeds of 4 values, collisions included; alpha = 1e-6.

    With 8 hashes of 8 buckets and 20,000 users what collisions add is most of the variance: without it the mean square
    would be above 3.
    """
    values = np.repeat(np.arange(4), [10_000, 6_000, 3_000, 1_000])
    truth, errors, plain = np.array([0.5, 0.3, 0.15, 0.05]), [], []
    for seed in range(60):
        est = cls(3.0, categories=None, n_hashes=8, n_buckets=8, hash_seed=seed, random_state=seed)
        est.fit(values.reshape(-1, 1))
        f, error = est.estimate(np.arange(4))
        law = est.randomizers_[0]
        noise = law.variance(20_000, truth) - law._unevenness * (np.square(truth).sum() - np.square(truth))
        errors.append((f - truth) / np.sqrt(law.variance(20_000, truth)))
        plain.append((f - truth) / np.sqrt(noise))
        assert (error**2 >= 0.6 * law.variance(20_000, truth)).all()
    room = stats.norm.isf(ALPHA) * np.sqrt(2 / 60)  # (as if the four values of a seed were one observation)
    assert abs(np.square(errors).mean() - 1) < room
    assert np.square(plain).mean() > 1 + 2 * room
    assert abs(np.mean(errors)) < stats.norm.isf(ALPHA / 2) / np.sqrt(60)


@pytest.mark.parametrize("cls", SKETCHES)
def test_open_columns(cls):
    X = np.repeat(["yes", "no", "never"], [5000, 3000, 2000]).astype(object).reshape(-1, 1)
    est = cls(4.0, categories=None, random_state=0).fit(X)
    f, error = est.estimate(["yes", "no", "never", "perhaps", 17])
    assert (np.abs(f - [0.5, 0.3, 0.2, 0, 0]) < 5 * error).all()
    assert est.privacy_.epsilon == 4
    twice = cls(4.0, categories=None, random_state=0).aggregate(est.privatize(X))
    np.testing.assert_array_equal(twice.estimate(["no"]).frequencies, f[1:2])
    assert pickle.loads(pickle.dumps(est)).estimate(["no"]) == est.estimate(["no"])
    assert est.merge(cls(4.0, categories=None, random_state=1).fit(X[:100])).n_users_ == 10_100
    for ask in (lambda: est.frequencies_, lambda: est.transform(X[:3]), est.get_feature_names_out, est.release,
                lambda: est.score(X[:3])):
        with pytest.raises(ValueError, match="categories must list"):
            ask()
    for bad in ("yes", [], 3, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="values must be"):
            est.estimate(bad)
    with pytest.raises(ValueError, match="the same categories"):
        est.merge(cls(4.0, categories=[["yes", "no", "never"]], random_state=3).fit(X))


def test_one_of_two_columns_may_be_open():
    X = np.array([["a", "x"], ["b", "y"]] * 50, dtype=object)
    est = HCMSFrequencyEstimator(8.0, categories={"one": ["a", "b"], "two": None}, random_state=0).fit(X)
    assert est.estimate(["a"], "one").frequencies.shape == (1,)
    assert est.estimate(["z", "x"], "two").frequencies.shape == (2,)
    with pytest.raises(ValueError, match="column 'one'"):
        est.estimate(["c"], "one")


def test_fingerprints():
    encoder = FingerprintEncoder("column 0")
    mixed = np.array([1, 1.0, True, "1", b"1", 1.5, -1, 2**70, "é"], dtype=object)
    codes = encoder.encode(mixed)
    assert codes[0] == codes[1] == codes[2]
    assert len(set(codes.tolist())) == 7
    for array in (np.array([1, -1]), np.array([1.0, -1.0], np.float32), np.array([1, -1], np.int8)):
        np.testing.assert_array_equal(encoder.encode(array), codes[[0, 6]])
    np.testing.assert_array_equal(encoder.encode(np.array(["1", "é"])), codes[[3, 8]])
    assert codes[3] == 4230772854  # (fixed for ever: reports of different releases are counted together)
    for value, why in ((None, "missing"), (float("nan"), "missing"), (float("inf"), "infinite"), ((1, 2), "neither")):
        column = np.empty(2, object)
        column[:] = ["secret", value]
        with pytest.raises(ValueError, match=f"column 0 has an? (infinite )?.*{why[:6]}") as error:
            encoder.encode(column)
        assert "secret" not in str(error.value)
        assert encoder.encode_total(column).tolist() == [encoder.encode(column[:1])[0], 0]


@pytest.mark.parametrize("base", [str, bytes, int, float])
def test_fingerprints_call_nothing_of_a_value(base):
    def shows(self, *_, **__):
        raise RuntimeError(f"secret {base.__str__(self)}")

    names = ("encode", "is_integer", "__abs__", "__pos__", "__radd__", "__add__", "__eq__", "__ne__", "__lt__",
             "__buffer__", "__bytes__", "__int__", "__float__", "__index__", "__trunc__", "__mod__", "__getitem__")
    loud = type("Loud", (base,), {**dict.fromkeys(names, shows), "__class__": property(shows), "__hash__": shows})
    plain = base(b"7" if base is bytes else 7)
    column, wanted = np.empty(1, object), np.empty(1, object)
    column[0], wanted[0] = loud(plain), plain
    encoder = FingerprintEncoder("column 0")
    assert encoder.encode(column) == encoder.encode_total(column) == encoder.encode(wanted)


@pytest.mark.parametrize("cls", SKETCHES)
def test_open_columns_have_no_support_matrix_and_are_not_charged_for_it(cls):
    ledger = Ledger(epsilon=10)
    X = np.array([["a", "x"], ["b", "y"]] * 5, dtype=object)
    some = {"one": ["a", "b"], "two": None}
    for categories in (None, some, list(some.values())):
        with pytest.raises(ValueError, match="categories must list"):
            cls(1.0, categories=categories, ledger=ledger).fit_transform(X)
        assert len(ledger.entries()) == 0
    est = cls(1.0, categories=some, ledger=ledger).fit(X)
    paid = len(ledger.entries())
    with pytest.raises(ValueError, match="categories must list"):
        est.transform(X)
    assert len(ledger.entries()) == paid > 0
    assert est.set_params(categories=[["a", "b"], ["x", "y"]]).fit_transform(X).shape == (10, 4)  # of the new lists
    assert est.transform(X).shape == (10, 4)


@pytest.mark.parametrize("cls", SKETCHES)
def test_questions_to_open_columns(cls):
    est = cls(4.0, categories=None, random_state=0).fit([[1], [2], [2]])
    once, twice = est.estimate([2, 1]), est.estimate([1, True, 2, 1.0])
    for one, two in zip(once, twice):
        np.testing.assert_array_equal(one[[1, 1, 0, 1]], two)
    for bad in (None, float("inf")):
        with pytest.raises(ValueError, match="open domain") as error:
            est.estimate([1, bad])
        assert "categories" not in str(error.value)


@pytest.mark.parametrize("n_hashes", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_one_hash_that_changes_nothing_is_not_looked_up(n_hashes, dtype):
    law = HCMS(1.0, 1 << 8, n_hashes, 1 << 8)
    n_bits = law.columns.shape[1]
    rng = np.random.default_rng(0)
    codes, rows = rng.integers(0, 256, 500).astype(dtype), rng.integers(0, 256, 500).astype(np.uint32)
    hashes = np.zeros(500, np.uint32)
    buckets, signs = np.empty(500, np.uint32), np.empty(500, np.uint8)
    for columns in (law.columns, np.ascontiguousarray(law.columns[:, ::-1])):  # the identity (of one hash), and not
        sketch.buckets(codes, hashes, columns, buckets)
        sketch.signs(codes, hashes, rows, columns, signs)
        wanted = np.bitwise_xor.reduce(columns[0] * (codes[:, None].astype(np.uint32) >> np.arange(n_bits) & 1), axis=1)
        np.testing.assert_array_equal(buckets, wanted)
        np.testing.assert_array_equal(signs, [bin(both).count("1") & 1 for both in (wanted & rows).tolist()])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_words", [1, 2])
@pytest.mark.parametrize(("n_hashes", "n_buckets"), [(1, 64), (1, 16), (7, 16)])
def test_reports_of_signs_word_by_word(dtype, n_words, n_hashes, n_buckets):
    """Against Python integers: the cell is floor(word cells / 2^64), the sign is kept below `keep`."""
    rng, n, m = np.random.default_rng(0), 700, n_buckets
    law = HCMS(1.0, 64, n_hashes, m)
    codes = rng.integers(0, 64, n).astype(law.code_dtype)
    seeds, words = (rng.integers(0, 1 << 64, size, dtype=np.uint64) for size in (n, n * n_words))
    seeds[:2] = 0, (1 << 64) - 1
    keep = (1 << 64 * n_words) // 3
    words[:4] = [keep >> 64, keep & WORD - 1, keep >> 64, (keep & WORD - 1) - 1] if n_words == 2 else [
        keep, keep - 1, 0, WORD - 1]
    out = np.empty((n, 3), dtype)
    hcms.answer(codes, seeds, words, keep, law.columns, m.bit_length() - 1, out)
    for i, report in enumerate(out.tolist()):
        hash_, row = divmod(int(seeds[i]) * n_hashes * m >> 64, m)
        u = int(words[i]) if n_words == 1 else int(words[2 * i]) << 64 | int(words[2 * i + 1])
        (bucket,) = law.buckets(codes[i : i + 1], np.array([hash_], np.uint32)).tolist()
        assert report == [hash_, row, (bucket & row).bit_count() % 2 ^ (u >= keep)]
    counts = np.ones(law.n_counts, np.int64)
    assert hcms.tally(out, m.bit_length() - 1, counts)
    cells = (out[:, 0].astype(int) * m + out[:, 1]) * 2 + out[:, 2]
    np.testing.assert_array_equal(counts, 1 + np.bincount(cells, minlength=law.n_counts))
    for place in (0, 511, 512, n - 1):
        for field, limit in enumerate(law.field_limits):
            bad = out.copy()
            bad[place, field] = limit
            assert not hcms.tally(bad, m.bit_length() - 1, counts.copy())
    short = np.empty((n, 2), dtype)
    for wrong in (lambda: hcms.tally(short, 4, counts), lambda: hcms.tally(out, 4, counts[1:].copy()),
                  lambda: hcms.tally(out, 31, counts),
                  lambda: hcms.answer(codes, seeds, words, keep, law.columns, 4, short),
                  lambda: hcms.answer(codes, seeds[1:].copy(), words, keep, law.columns, 4, out),
                  lambda: hcms.answer(codes, seeds, words[1:].copy(), keep, law.columns, 4, out),
                  lambda: hcms.answer(codes, seeds, words, keep, law.columns, 31, out),
                  lambda: hcms.answer(codes, seeds, words, keep, law.columns[:0].copy(), 4, out)):
        with pytest.raises(ValueError, match=r"must|differ"):
            wrong()


def test_many_counters_are_bytes_first_which_may_overflow():
    reports = np.zeros((1 << 15, 3), np.uint32)
    reports[600:, 1] = np.arange((1 << 15) - 600)
    reports[-400:-9, 2] = 1
    wanted = np.bincount(2 * reports[:, 1] + reports[:, 2], minlength=1 << 17)
    lanes, counts, full = np.zeros(1 << 17, np.uint8), np.full(1 << 17, -1, np.int64), np.zeros(4, np.uint32)
    for start in range(0, len(reports), 300):  # bytes and the list go on from call to call
        assert hcms.tally(reports[start : start + 300], 16, lanes, full)
    assert full.tolist() == [0, 0, 0, 2]
    sketch.settle(lanes, full, counts)
    np.testing.assert_array_equal(counts, wanted)
    assert counts[0] == 601
    counts[:] = 3
    assert hcms.tally(reports, 16, counts)
    np.testing.assert_array_equal(counts, 3 + wanted)
    reports[20_000, 2] = 2
    assert not hcms.tally(reports, 16, counts)


@pytest.mark.parametrize("quarters", [False, True])
@pytest.mark.parametrize("n_counts", [8, 520, 1 << 13])
def test_bytes_of_several_threads_are_added_up_before_they_are_counts(n_counts, quarters):
    """Also where their sums overflow: in whole tiles, in the last one, and by reports that fill bytes themselves."""
    rng = np.random.default_rng(0)
    law = HCMS(1.0, 260, 65, 4) if n_counts == 520 else HCMS(1.0, n_counts // 2)
    parts, n = [rng.integers(0, n_counts // 2, (4000, 3)) for _ in range(3)], 12_000
    for part in parts:
        part[:, 0], part[:, 2] = 0, part[:, 2] & 1
        part[:200, 1] = n_counts // 2 - 1  # (fewer than 256 of each thread)
        part[200:200 + 600, 1] = 0
    each, rare = (4, 4) if quarters else (1, 256)
    counters = [(np.zeros(n_counts // each, np.uint8), np.zeros(n // rare + 2, np.uint32)) for _ in parts]
    log_m = (n_counts // 2).bit_length() - 1 if n_counts != 520 else 2
    for (counts, full), part in zip(counters, parts):
        if n_counts == 520:  # 65 hashes of 4 buckets
            part[:, 0], part[:, 1] = part[:, 1] >> 2, part[:, 1] & 3
        assert hcms.tally(part.astype(np.uint32), log_m, counts, full, quarters)
    wanted = np.bincount(np.concatenate([(part[:, 0] << log_m | part[:, 1]) << 1 | part[:, 2] for part in parts]),
                         minlength=n_counts)
    np.testing.assert_array_equal(law.counts_of_sent(*counters), wanted)
    (counts, full), (more, more_full) = counters[:2]
    for wrong in ((counts[:-8], full, more, more_full), (counts, full[:0], more, more_full),
                  (counts, np.zeros(1, np.uint32), more, np.array([0, 1], np.uint32)),
                  (counts, full, more, more_full[:0]), (counts, full, more, np.array([7], np.uint32))):
        with pytest.raises(ValueError, match="must"):
            hcms.join(*wrong, quarters)


@pytest.mark.parametrize("field", range(3))
@pytest.mark.parametrize("categories", [[range(9)], [range(9), range(900)]])
def test_a_server_that_reads_reports_once_refuses_the_same(field, categories):
    """Also a field of a narrow law among reports of a wider one, which would lose its upper bits."""
    est = HCMSFrequencyEstimator(1.0, categories=categories, random_state=0)
    reports = np.array(est.privatize(np.zeros((50, len(categories)), int)))
    est.aggregate(reports)
    before = [counts.copy() for counts in est._counts]
    for wrong in (est.randomizers_[0].field_limits[field], np.iinfo(reports.dtype).max, 1 << 8):
        bad = reports.copy()
        bad[7, field] = wrong % (1 << 8 * reports.itemsize) or 255
        with pytest.raises(ValueError, match=r"reports? .*must (be below|fit)"):
            est.aggregate(bad)
        for kept, now in zip(before, est._counts):
            np.testing.assert_array_equal(kept, now)
    assert est.n_users_ == 50


@pytest.mark.parametrize("n", [0, 1, 63, 64, 200])
def test_the_largest_number_of_each_field(n):
    rng = np.random.default_rng(n)
    reports = rng.integers(0, 60_000, (n, 3)).astype(np.uint16)
    for view in (reports, reports[::-1], reports[:, ::-1]):
        wanted = view.max(axis=0, initial=0)
        np.testing.assert_array_equal(largest_of(view), wanted)


def test_long_arrays_of_categories_are_not_made_into_python_values(monkeypatch):
    def column(categories):
        return HCMSFrequencyEstimator(1.0, categories=[categories])._columns_now().columns[0]

    long = np.arange(300)
    one, same = column(long), column(long.copy())
    others = [column(long + 1), column(long[::-1].copy()), column(np.arange(299))]
    equal = [column(long.astype(np.uint16)), column(list(range(300))), column(long.astype(float))]
    assert all(one.is_like(other) for other in equal)
    assert not one.is_like(HCMSFrequencyEstimator(2.0, categories=[long])._columns_now().columns[0])
    assert not one.is_like(HCMSFrequencyEstimator(1.0, categories=None)._columns_now().columns[0])
    monkeypatch.setattr(type(one.encoder), "plain_categories", None)
    assert one.is_like(same)
    assert not any(one.is_like(other) for other in others)


def halved(f, errors):
    return f / 2


@pytest.mark.parametrize("postprocess", [None, "norm_sub", halved])
def test_answers_are_remembered_until_counts_change(monkeypatch, postprocess):
    asked = []
    plain = HCMS.estimate
    monkeypatch.setattr(HCMS, "estimate", lambda law, counts, n: asked.append(n) or plain(law, counts, n))

    def new(seed):
        return HCMSFrequencyEstimator(2.0, categories=[range(9)], postprocess=postprocess, random_state=seed)

    X = np.arange(90).reshape(-1, 1) % 9
    est = new(0).fit(X)
    before = est.frequencies_[0]
    for mine in (est.frequencies_[0], est.release()[0], est.standard_errors_[0], est.confidence_interval()[0]):
        mine[:] = 7  # (copies: later answers do not know)
    np.testing.assert_array_equal(est.frequencies_[0], before)
    assert asked == [90]
    assert "_answers" not in vars(pickle.loads(pickle.dumps(est))) | vars(clone(est))
    for n, change in ((180, lambda: est.partial_fit(X)), (270, lambda: est.merge(new(1).fit(X))),
                      (360, lambda: est.aggregate(new(2).privatize(X))), (45, lambda: est.fit(X[:45]))):
        change()
        fresh = pickle.loads(pickle.dumps(est)).frequencies_[0]
        np.testing.assert_array_equal(est.frequencies_[0], fresh)
        assert asked[-2:] == [n, n]
    est.set_params(postprocess="norm")
    np.testing.assert_allclose(est.frequencies_[0].sum(), 1)


def test_fingerprints_of_frames():
    pd = pytest.importorskip("pandas")
    encoder = FingerprintEncoder("column 0")
    wanted = encoder.encode(np.array(["a", "b", "a"], dtype=object))
    for series in (pd.Series(["a", "b", "a"]), pd.Series(["a", "b", "a"], dtype="category"),
                   pd.Series(["a", "b", "a"], dtype="string")):
        np.testing.assert_array_equal(encoder.encode(series), wanted)
    with pytest.raises(ValueError, match="missing"):
        encoder.encode(pd.Series(["a", None], dtype="category"))
    np.testing.assert_array_equal(encoder.encode(pd.Series([1, 2], dtype="Int64")), encoder.encode(np.array([1, 2])))


@pytest.mark.parametrize("cls", SKETCHES)
def test_strict_mode_takes_any_value(cls):
    with config_context(strict=True):
        X = np.array([["a"], [None], [float("nan")], [(1, 2)]], dtype=object)
        assert cls(1.0, categories=None).fit(X).n_users_ == 4


@pytest.mark.parametrize("cls", SKETCHES)
@pytest.mark.parametrize("params", [{"n_buckets": 6}, {"n_buckets": 1}, {"n_hashes": 0}, {"n_hashes": 1.0},
                                    {"hash_seed": -1}, {"hash_seed": None},
                                    {"n_hashes": 1 << 16, "n_buckets": 1 << 16}])
def test_parameters_are_checked(cls, params):
    with pytest.raises(ValueError, match=next(iter(params))):
        cls(1.0, categories=[range(9)], **params).fit([[1], [2]])


@pytest.mark.ci
@pytest.mark.second
@pytest.mark.law
@pytest.mark.parametrize("cls", SKETCHES)
def test_a_million_values_take_a_sketch(cls):
    d = 1 << 20
    X = (np.arange(3000) % 3 * (d // 3)).reshape(-1, 1)
    est = cls(6.0, categories=[range(d)], random_state=0).fit(X)
    law, f, error = est.randomizers_[0], *est.estimate([0, d // 3, 5])
    assert law.is_exact
    assert law.n_counts <= 1 << 21
    assert (np.abs(f - [1 / 3, 1 / 3, 0]) < 5 * error).all()


def test_counts_refuse_hashes_that_do_not_exist():
    law = CMS(1.0, 9, n_hashes=5, n_buckets=4)
    reports = np.zeros((1, 3), np.uint8)
    reports[0, 0] = 5
    for refuse in (law.check_reports, lambda r: law.count(r, np.zeros(20, np.int64))):
        with pytest.raises(ValueError, match="hash below 5"):
            refuse(reports)


@pytest.mark.parametrize("m", [2, 8, 32])
def test_counts_are_sums_of_bits_also_where_bytes_fill_up(m):
    rng, k, n = np.random.default_rng(0), 3, 2000  # more than 255 reports of each hash, and of every bit
    law = CMS(1, m * k, n_hashes=k, n_buckets=m)
    hashes, bits = rng.integers(0, k, n), rng.random((n, m)) < 0.9
    reports = np.zeros((n, law.report_width), np.uint8)
    reports[:, 0], reports[:, 2:] = hashes, np.packbits(bits, axis=1, bitorder="little")
    counts = np.ones(law.n_counts, np.int64)
    law.count(reports, counts)
    np.testing.assert_array_equal(counts.reshape(k, m), 1 + np.stack([bits[hashes == j].sum(axis=0) for j in range(k)]))
