"""Heavy hitters: codes, hashes of 64 bits, growing candidates, merging, intervals after selection, false values."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpestim.local import HeavyHitterEstimator
from dpestim.local.categories.flh import FLH, best_buckets
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.sketch import Sketch
from dpestim.local.columns import Columns
from dpestim.local.domains.codes import IntegerCodes, TextCodes
from dpestim.local.domains.growing import join, path_scores
from dpestim.local.domains.prefixes import Prefix
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource
from dpestim.shuffle import ShuffledEstimator

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("d", [1 << 33, 1 << 48, 1 << 64])
def test_hashes_of_long_codes_are_those_of_their_bits(d):
    law, rng = FLH(1.0, d, 5, 8), np.random.default_rng(0)
    codes = rng.integers(0, d, 200, dtype=np.uint64)
    expected = np.zeros((5, 200), np.uint32)
    for bit in range(law.columns.shape[1]):
        expected ^= law.columns[:, bit, None] * (codes >> np.uint64(bit) & np.uint64(1)).astype(np.uint32)
    for j in range(5):
        assert (law.buckets(codes, np.full(200, j, np.uint32)) == expected[j]).all()
    table = rng.integers(0, 100, (5, 8))
    right = np.array([table[j][expected[j]] for j in range(5)]).sum(axis=0)
    assert (law._over_hashes(table, codes) == right).all()  # (many at once, by tables, ...
    assert (law._over_hashes(table, codes[:9]) == right[:9]).all()  # ... and few, by their bits)


@pytest.mark.parametrize(("law", "n_more"), [(FLH(2.0, 1 << 40, 16), 6), (HCMS(2.0, 1 << 40, 4, 32), 6),
                                              (FLH(1.0, 1 << 6, 16), 6), (FLH(0.5, 1 << 64, 3), 1)])
def test_all_continuations_at_once_are_exactly_those_one_by_one(law, n_more):
    rng = np.random.default_rng(1)
    counts, bits = rng.integers(0, 100, law.n_counts), law.n_categories.bit_length() - 1 - n_more
    prefixes = rng.integers(0, 1 << bits, 3, dtype=np.uint64)
    codes = ((prefixes[:, None] << np.uint64(n_more)) | np.arange(1 << n_more, dtype=np.uint64)).ravel()
    n = int(counts.sum())
    assert (law.continued(prefixes, n_more, counts, n).ravel() == law.estimate_of(codes, counts, n)).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_local_hashing_with_few_hashes_is_unbiased_with_the_variance_of_local_hashing(epsilon):
    law, n = FLH.make(epsilon, 1 << 50, 4096), 100_000
    codes = np.random.default_rng(2).integers(0, 1 << 50, n, dtype=np.uint64)
    codes[:20_000] = 7
    columns = Columns([Prefix("x", law, 50, 0)])
    counts = columns.randomize_and_count([codes], WordSource(0), 0, 1)[0]
    asked = np.random.default_rng(3).integers(0, 1 << 50, 1000, dtype=np.uint64)
    f, error = law.estimate_of(asked, counts, n), law.error_of(asked, np.zeros(1000), counts, n)
    assert abs(f.mean()) < 5 * error[0] / np.sqrt(1000)
    assert 0.9 < f.std() / error[0] < 1.1
    e = np.exp(epsilon)
    assert error[0] ** 2 * n < 1.15 * 4 * e / (e - 1) ** 2 + 0.04 * n / (4096 * (law.n_buckets - 1))
    own = law.estimate_of(np.array([7], np.uint64), counts, n)
    assert abs(own[0] - 0.2) < 5 * law.error_of(None, own, counts, n)[0]
    assert law.worst_ratio() <= np.exp(epsilon) * (1 + 1e-12)
    assert best_buckets(canonical_epsilon(epsilon)) == law.n_buckets


def test_texts_and_integers_come_back_from_their_codes():
    text = TextCodes("x", 11, LETTERS)
    words = np.array(["", "a", "zz", "abcdefghijk"], dtype=object)
    codes, why = text.read(words, 1)
    assert why is None
    assert text.values(codes).tolist() == words.tolist()
    assert text.possible(codes, text.n_bits).all()
    assert (np.argsort(codes[:3]) == [0, 1, 2]).all()  # (the first characters are the first bits)
    octets = TextCodes("x", 8)
    words = np.array(["é", "日本", "plain", "12345678"])
    assert octets.values(octets.read(words, 1)[0]).tolist() == words.tolist()
    assert octets.values(np.array([0xFF << 56], np.uint64)).tolist() == [None]
    numbers = IntegerCodes("x", 64)
    assert numbers.read(np.array([0, 2**64 - 1, 5.0], dtype=object), 1)[0].tolist() == [0, 2**64 - 1, 5]
    assert IntegerCodes("x", 3).read(np.array([-1, 7, 8]), 1)[0].tolist() == [0, 7, 0]
    durations = np.array([1, 2], "m8[ns]")
    for strange in (durations, np.array(["1", "2"]), np.array([*durations, 1.5], dtype=object),
                    np.array([(1, "a")] * 2, "i8,U1")):
        assert not numbers.read(strange, 1)[0].any()
        assert "no integer" in numbers.read(strange, 1)[1]
    wrong = ((["a", None], "missing"), (["a", 3], "string"), (["ab1"], "character"), (["a" * 12], "longer"))
    for values, word in wrong:
        codes, why = text.read(np.array(values, dtype=object), 1)
        assert word in why
        assert codes[-1] == 0


def test_impossible_prefixes_are_those_of_no_text():
    text = TextCodes("x", 2, "abc")  # (two bits a character)
    assert text.possible(np.arange(4, dtype=np.uint64), 2).all()
    assert text.possible(np.arange(8, dtype=np.uint64), 3).tolist() == [True, False] + [True] * 6
    some = TextCodes("x", 2, "ab")
    assert some.possible(np.arange(16, dtype=np.uint64), 4).tolist() == [
        True, False, False, False, True, True, True, False, True, True, True] + [False] * 5


def test_the_score_of_a_path_is_the_end_of_the_fit_that_never_rises():
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(4)
    paths, weights = rng.normal(size=(50, 6)), rng.uniform(1, 3, 6)
    fits = [IsotonicRegression(increasing=False).fit(range(6), row, weights).predict([5])[0] for row in paths]
    assert np.allclose(path_scores(paths, weights), fits)


def drawn(n, seed, shares, n_bits=20):
    """Return rows of integers, of which some public ones have these shares, and the other are all different."""
    rng = np.random.default_rng(seed)
    often = np.random.default_rng(99).permutation(1 << n_bits)[: len(shares)].astype(np.uint64)
    X = rng.integers(0, 1 << n_bits, n, dtype=np.uint64)
    pick = rng.random(n)
    at = np.searchsorted(np.cumsum(shares), pick)
    X[at < len(shares)] = often[at[at < len(shares)]]
    return X[:, None], often


@pytest.mark.parametrize("method", ["pem", "treehist", "bitstogram", "sfp"])
def test_every_method_finds_frequent_values_and_streams_are_one_fit(method):
    X, often = drawn(20_000, 0, [0.3, 0.2, 0.1], 16)
    make = lambda **more: HeavyHitterEstimator(4.0, n_bits=16, n_top=3, method=method, n_users=20_000,  # noqa: E731
                                               **{"random_state": 0, **more})
    est = make().fit(X)
    found = est.heavy_hitters_
    assert found.values.tolist() == often.tolist()
    assert found.confirmed.all()
    assert (np.abs(found.frequencies - [0.3, 0.2, 0.1]) < 5 * found.standard_errors).all()
    batches = make().partial_fit(X[:7000]).partial_fit(X[7000:])
    sent = make().aggregate(make().privatize(X))
    halves = [make(random_state=seed).fit(part) for seed, part in ((1, X[:9000]), (2, X[9000:]))]
    joined = make().aggregate(make(random_state=1).privatize(X[:9000]))
    joined.aggregate(make(random_state=2).privatize(X[9000:]))
    for one, two in ((est, batches), (est, sent), (halves[0].merge(halves[1]), joined)):
        assert all((a == b).all() for a, b in zip(one.heavy_hitters_, two.heavy_hitters_))


@pytest.mark.parametrize("method", ["pem", "treehist"])
def test_values_of_many_levels_are_found_and_found_again_when_reports_arrive(method):
    rng = np.random.default_rng(0)
    often = rng.integers(0, 1 << 30, 3, dtype=np.uint64)
    X = rng.choice(often, (20_000, 1), p=[0.5, 0.3, 0.2])
    est = HeavyHitterEstimator(4.0, n_bits=30, n_top=3, method=method, n_users=30_000, random_state=0)
    est.partial_fit(np.full((3000, 1), 7))
    assert len(est.levels_) > 1
    assert est.heavy_hitters_.values[0] == 7
    assert est.partial_fit(X).heavy_hitters_.values.tolist() == often.tolist()


def test_fragments_are_put_together_as_one_by_one():
    rng, widths = np.random.default_rng(6), [2, 3, 1]
    tables = [rng.random((8, 1 << width)) for width in widths]
    check = lambda codes: np.asarray(codes) % np.uint64(8)  # noqa: E731
    found, scores = join(tables, widths, 5, 2, check)
    slow = {}
    for h in range(8):
        for code in range(1 << sum(widths)):
            parts = [code >> 4, code >> 1 & 7, code & 1]
            if code % 8 == h and all(part in np.argsort(-table[h])[:2] for part, table in zip(parts, tables)):
                slow[code] = np.mean([table[h, part] for part, table in zip(parts, tables)])
    right = sorted(slow, key=slow.get, reverse=True)[:5]
    assert found.tolist() == right
    assert np.allclose(scores, [slow[code] for code in right])


def test_who_reports_whole_values_has_no_part_in_finding_them():
    est = HeavyHitterEstimator(2.0, n_bits=20, n_top=5, n_users=20_000, random_state=0).fit(drawn(20_000, 1, [0.2])[0])
    before = set(est.heavy_hitters_.values)
    est._counts = [*est._counts[:-1], np.roll(est._counts[-1], 3)]
    assert set(est.heavy_hitters_.values) == before


def test_intervals_cover_after_the_selection_and_few_lists_confirm_what_nobody_has():
    covered, n_intervals, wrong, n_lists = 0, 0, 0, 25
    for seed in range(n_lists):
        shares = 0.25 * 0.7 ** np.arange(12)
        X, often = drawn(6000, seed, shares, 14)
        est = HeavyHitterEstimator(2.0, n_bits=14, n_top=8, n_users=6000, random_state=seed).fit(X)
        found, truth = est.heavy_hitters_, dict(zip(often.tolist(), shares))
        at = [truth.get(v, 0.0) for v in found.values.tolist()]
        both = est.confidence_interval()
        covered, n_intervals = covered + ((both[:, 0] <= at) & (at <= both[:, 1])).sum(), n_intervals + len(at)
        wrong += bool((found.confirmed & (np.array(at) == 0)).any())
    assert 0.9 < covered / n_intervals < 0.99
    assert wrong <= 5  # (of 25 with a probability of at most 0.05 each: more once in a thousand)


def test_values_are_confirmed_only_where_few_reports_and_collisions_together_leave_no_doubt():
    rng = np.random.default_rng(3)
    X = rng.choice(1 << 14, (8000, 1), p=np.r_[0.5, 0.4, np.full((1 << 14) - 2, 0.1 / ((1 << 14) - 2))])
    est = HeavyHitterEstimator(3.0, n_bits=14, n_top=1, alpha=0.005, n_users=8000, random_state=0).fit(X)
    (_, m), law = est._whole(), est.randomizers_[-1]
    p, q = float(law.p_star), float(law.q_star)
    number = np.arange(m + 1)
    noise = binom.pmf(number, m, q)
    of_collisions = np.sqrt(est._error_at(0.0) ** 2 - q * (1 - q) / m / (p - q) ** 2)
    at = np.linspace(2.3, 3.2, 60) * est._error_at(0.0)
    tails = np.array([noise @ norm.sf((f - (number / m - q) / (p - q)) / of_collisions) for f in at])
    confirmed = np.array([est._confirmed(np.array([f]), np.array([5], np.uint64))[0] for f in at])
    assert of_collisions > 0.3 * est._error_at(0.0)
    assert confirmed[-1]
    assert not confirmed[0]
    assert (tails[confirmed] < 0.005).all()


def test_frames_missing_values_and_strict_mode():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"name": ["anna"] * 900 + ["bert"] * 600})
    make = lambda: HeavyHitterEstimator(5.0, max_length=5, alphabet=LETTERS, n_top=2, n_users=1500,  # noqa: E731
                                        random_state=0)
    est = make().fit(X)
    assert est.to_frame()["value"].tolist() == ["anna", "bert"]
    assert "anna" in str(est.result_)
    assert list(est.feature_names_in_) == ["name"]
    categories = X.astype("category")
    assert make().fit(categories).heavy_hitters_.values.tolist() == ["anna", "bert"]
    gone = X.copy()
    gone.loc[3, "name"] = None
    with pytest.raises(ValueError, match="missing value"):
        make().fit(gone)
    with pytest.raises(ValueError, match=r"n_bits .* or max_length"):
        HeavyHitterEstimator(1.0).fit(X)
    with pytest.raises(ValueError, match="at most 12"):
        HeavyHitterEstimator(1.0, max_length=13, alphabet=LETTERS).fit(X)
    with pytest.raises(ValueError, match="one column"):
        make().fit(X.assign(other="a"))


def test_sketches_refuse_no_domain_below_two_to_the_64():
    assert Sketch.largest_domain == 1 << 64
    with pytest.raises(ValueError, match=r"2\*\*64"):
        FLH(1.0, (1 << 64) + 1, 4)


def test_a_printed_list_says_how_many_values_are_confirmed():
    """Of few users a list has values that nobody holds; they were printed without a word."""
    X = np.repeat([7, 9], [250, 50])[:, None]
    est = HeavyHitterEstimator(4.0, n_bits=12, n_top=3, n_users=300, random_state=0)
    behind = ShuffledEstimator(HeavyHitterEstimator(n_bits=12, n_top=3), 1.0, delta=1e-6)
    for fitted in (est.fit(X), behind.fit(X)):
        found = fitted.heavy_hitters_.confirmed
        for shown in (fitted.result_, pickle.loads(pickle.dumps(fitted.result_))):
            assert f"{found.sum()} of {len(found)} values are confirmed (threshold = 0, alpha = 0.05)" in str(shown)
            assert "values that nobody holds" in shown._repr_html_()
