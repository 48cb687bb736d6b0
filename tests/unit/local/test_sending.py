"""One record that goes straight to the kernels: what it sends, refuses, pays and asks is what several rows do."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpestim
from dpestim import rng
from dpestim._core import rare
from dpestim.accounting import Ledger
from dpestim.base import PICKLE_FORMAT, all_estimators
from dpestim.local import (
    CMSFrequencyEstimator,
    DBitFlipFrequencyEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    HMTransformer,
    IDUEFrequencyEstimator,
    LaplaceTransformer,
    LGRRFrequencyEstimator,
    LOLOHAFrequencyEstimator,
    LOSUEFrequencyEstimator,
    LOUEFrequencyEstimator,
    MetricFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
    RAPPORFrequencyEstimator,
    SDPMTransformer,
    SHEFrequencyEstimator,
    SSFrequencyEstimator,
    SWTransformer,
    client,
    sending,
)
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.longitudinal import Memoised
from dpestim.rng import Stage, WordReader, WordSource, sums_here
from dpestim.words_of_one import LARGEST_RECORD, WordsOfOne, words_of_one

KEY = bytes(range(32))
OF_CATEGORIES = [GRRFrequencyEstimator, IDUEFrequencyEstimator, LGRRFrequencyEstimator, LOLOHAFrequencyEstimator,
                 OLHFrequencyEstimator, OUEFrequencyEstimator, SSFrequencyEstimator]
OF_NUMBERS = [DuchiTransformer, HMTransformer, LaplaceTransformer, PMTransformer, SDPMTransformer, SWTransformer]
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u4", "u8", ">i4", "f4", "f8", ">f8"]


def told(monkeypatch, function, *, straight=True):
    """Return the bytes and the dtype of reports made with the words of one key, or the message of the error."""
    with monkeypatch.context() as patch:
        patch.setattr(rng.os, "urandom", lambda n: KEY)
        patch.setattr(sending, "words_of_one", lambda n_words, number: WordReader(KEY).words(number, 0, 0, 1))
        if not straight:
            patch.setattr(client, "sent", lambda *_: None)
        try:
            reports = function()
        except ValueError as error:
            return str(error)
    return reports.tobytes(), reports.dtype, reports.shape


def same_both_ways(monkeypatch, estimator, X):
    """Compare the two ways, twice each: the second time the columns know their sender."""
    expected = told(monkeypatch, lambda: estimator.privatize(X), straight=False)
    for _ in range(2):
        assert told(monkeypatch, lambda: estimator.privatize(X)) == expected
    return expected


@pytest.mark.parametrize("cls", OF_CATEGORIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_categories_are_sent_as_rows_are(monkeypatch, cls, dtype):
    for lists in ([range(9)], [[3, 1, 7]], [range(2, 12), [0, 5]], [[1.5, 2.0, 7.0]]):
        lists = [list(own) for own in lists]
        estimator = cls(2.0, categories=lists)
        fitted = cls(2.0, categories=lists).fit(np.array([[own[0] for own in lists]]))
        for value in (-1, 0, 2, 3, 5, 7, 40):
            X = np.full((1, len(lists)), value).astype(dtype)
            for one in (estimator, fitted):
                same_both_ways(monkeypatch, one, X)


@pytest.mark.parametrize("cls", OF_NUMBERS)
@pytest.mark.parametrize("dtype", [*DTYPES, "f2", "?"])
def test_numbers_are_sent_as_rows_are(monkeypatch, cls, dtype):
    estimator, fitted = cls(2.0, bounds=(-2.0, 3.0)), cls(2.0, bounds=(-2.0, 3.0)).fit(np.ones((3, 2)))
    for value in (-3.0, -2.0, -0.7, 0.0, 1 / 3, 2.999999, 3.0, 100.0):
        X = np.array([[value, 1.0]]).astype(dtype)
        for one in (estimator, fitted):
            same_both_ways(monkeypatch, one, X)
            same_both_ways(monkeypatch, one, X[:, :1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_refused_is_refused_in_the_same_words_and_draws_nothing(monkeypatch, bad):
    drawn = []
    monkeypatch.setattr(rng.os, "urandom", lambda n: drawn.append(n) or KEY)
    numbers, categories = PMTransformer(1.0, bounds=(0.0, 1.0)), GRRFrequencyEstimator(1.0, categories=[[0, 1, 2]])
    numbers.privatize(np.array([[0.5]]))
    drawn.clear()
    for estimator in (numbers, categories):
        with pytest.raises(ValueError, match="column 0"):
            estimator.privatize(np.array([[bad]]))
    with pytest.raises(ValueError, match="not among its declared"):
        categories.privatize(np.array([[3]]))
    assert not drawn


def test_layouts_strings_and_shapes(monkeypatch):
    names = GRRFrequencyEstimator(1.0, categories=[["a", "bc"], ["a", "x\0y"]])
    for X in (np.array([["bc", "a"]]), np.array([["bc", "x\0y"]]), np.array([["a", "none"]]), np.array([["a"]])):
        same_both_ways(monkeypatch, names, X)
    wide = np.asfortranarray(np.arange(12.0).reshape(3, 4))[1:2]
    wide.flags.writeable = False
    for cls in OF_NUMBERS:
        estimator = cls(2.0, bounds=(-1.0, 12.0))
        for X in (wide, wide[:, ::-1], wide[:, ::2], wide[:, :0], wide[:0]):
            same_both_ways(monkeypatch, estimator, X)


def test_every_call_has_a_key_of_its_own_in_threads_and_copies(monkeypatch):
    keys, real = [], rng.os.urandom
    monkeypatch.setattr(rng.os, "urandom", lambda n: keys.append(real(n)) or keys[-1])
    estimator = PMTransformer(1.0, bounds=(0.0, 1.0)).fit(np.array([[0.5]]))
    estimator.privatize(np.array([[0.5]]))
    twins = [estimator, copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))]
    assert not twins[2]._columns.senders  # what tells how X looked never leaves the process
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: twins[k % 3].privatize(np.array([[0.25]])), range(60)))
    assert len(set(keys)) == 61


def test_few_words_are_asked_of_the_system_and_no_cipher_is_set_up(monkeypatch):
    asked, real = [], rng.os.urandom
    monkeypatch.setattr(rng.os, "urandom", lambda n: asked.append(n) or real(n))
    with monkeypatch.context() as patch:
        patch.setattr(rng, "_ciphers", None)
        for cls in (GRRFrequencyEstimator, LGRRFrequencyEstimator, LOLOHAFrequencyEstimator, OLHFrequencyEstimator):
            estimator = cls(1.0, categories=[list(range(9)), [0, 1]])
            asked.clear()
            estimator.privatize(np.array([[1, 1]]))
            assert asked == [8 * law.n_words for law in estimator._columns_now(2).laws]
    for n_words in (rng._FEW + 1, LARGEST_RECORD, LARGEST_RECORD + 1):
        asked.clear()
        words = words_of_one(n_words, 0)
        assert asked == [32]
        drawn = words.dense(Stage.SEED, 2), words.dense(Stage.RESPONSE, n_words - 2), words.dense(Stage.NOISE, 130)
        assert len(np.unique(np.concatenate(drawn))) == n_words + 130


def test_many_words_of_one_record_are_drawn_under_a_key_with_and_without_a_processors_aes(monkeypatch):
    for own in (rare.HAS_AES, False):
        monkeypatch.setattr(rare, "HAS_AES", own)
        one, two = (words_of_one(500, 0).dense(Stage.SEED, 500) for _ in range(2))
        assert len(np.unique(np.concatenate([one, two]))) == 1000


def test_spare_words_belong_to_no_other_stage():
    words = WordsOfOne(20)
    left = np.frombuffer(words._all, np.uint64).tolist()
    first = words.dense(Stage.SEED, 1)
    assert words.with_spare(Stage.RESPONSE, 4, Stage.RARE, 3) == (words._all, 1)
    assert words.with_spare(Stage.PERMANENT, 4, Stage.PERMANENT_RARE, 3) == (words._all, 8)
    assert [*first.tolist(), *words.dense(Stage.NOISE, 1).tolist()] == [left[0], left[15]]
    new, start = words.with_spare(Stage.SECOND, 4, Stage.SECOND_RARE, 3)  # more than there are
    assert (start, len(new)) == (0, 56)
    assert not set(left) & set(words.more(5))
    for call in (lambda: words.dense(Stage.RESPONSE, 4), lambda: words.sparse(Stage.RARE, 8, [0]),
                 lambda: words.with_spare(Stage.RESPONSE, 4, Stage.ROUNDING, 3),
                 lambda: words.with_spare(Stage.COINS, 4, Stage.RARE, 3)):
        with pytest.raises(ValueError, match="already drawn"):
            call()


def test_stages_of_one_record_share_no_words(monkeypatch):
    given = iter(range(1, 1000))
    monkeypatch.setattr(rng.os, "urandom", lambda n: np.arange(n).astype(np.uint8).tobytes() if n == 32 else
                        np.array([next(given) for _ in range(n // 8)], np.uint64).tobytes())
    words = words_of_one(5, 0)
    first, half = words.dense(Stage.SEED, 2), words.halves(Stage.ROUNDING)
    second, more = words.dense(Stage.RESPONSE, 1), words.dense(Stage.SECOND, 3)  # more than was said
    drawn = np.concatenate([first, half.astype(np.uint64), second, more, words.dense(Stage.NOISE, 2)])
    assert drawn.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert (half.dtype, half.shape) == (np.uint32, (1,))
    assert words.dense(Stage.SEED, 2) is first
    assert words.halves(Stage.ROUNDING) == half
    assert words.sparse(Stage.RARE, 5, np.array([0, 4])).tolist() == [11, 12]
    assert words.sparse(Stage.RARE, 5, np.array([1, 4, 0])).tolist() == [13, 12, 11]  # a place has one word
    assert words.sparse(Stage.SECOND_RARE, 5, np.array([0])).tolist() == [14]
    assert words.sparse(Stage.RARE, 5, np.array([], np.int64)).shape == (0,)
    assert words.below(1 << 63, Stage.PERMANENT, Stage.PERMANENT_RARE, 3)[0].max(initial=0) < 3
    for outside in (-1, 5):
        with pytest.raises(ValueError, match="places must belong to this record"):
            words.sparse(Stage.RARE, 5, [outside])
    assert words.eighths(Stage.COINS, 11).shape == (11,)
    for call in (lambda: words.dense(Stage.SEED, 1), lambda: words.halves(Stage.RESPONSE),
                 lambda: words.dense(Stage.ROUNDING, 1), lambda: words.dense(Stage.RARE, 1),
                 lambda: words.sparse(Stage.PERMANENT_RARE, 3, [0]),
                 lambda: words.sparse(Stage.RESPONSE, 1, [0])):
        with pytest.raises(ValueError, match="already drawn by another method"):
            call()
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="would repeat"):
            way(words)


@pytest.mark.parametrize("cls", [c for name, c in all_estimators(("local",)) if hasattr(c, "_randomizer")])
def test_every_law_takes_words_of_one_record(monkeypatch, cls):
    """Whatever a law asks of words, those of one record have it, however many they are."""
    monkeypatch.setattr(sending, "words_of_one", lambda n_words, number: WordsOfOne(n_words))
    for parameters in cls._test_params():
        estimator = cls(**parameters)
        X, y = estimator._test_data(3)
        if y is not None or type(X) is not np.ndarray:
            continue
        one, several = estimator.privatize(X[:1]), estimator.privatize(X)
        assert (one.dtype, one.shape[1:]) == (several.dtype, several.shape[1:])


@pytest.mark.parametrize("cls", [c for name, c in all_estimators(("local",)) if issubclass(c, FrequencyEstimator)])
def test_one_record_is_answered_as_the_first_of_several(cls):
    """Laws have ways of their own for one record: of the same words they make the same report."""
    for parameters in cls._test_params():
        estimator = cls(**parameters)
        for law in estimator._columns_now().laws:
            codes = law.input_codes[np.arange(200) % len(law.input_codes)].astype(law.code_dtype)
            for start in range(len(codes)):
                own, key = codes[start : start + 3], bytes([start]) * 32
                one, several = (np.empty((n, law.report_width), law.report_dtype) for n in (1, len(own)))
                for out in (one, several):
                    law.privatize(own[: len(out)], WordReader(key).words(0, 0, 0, len(out)), out)
                assert np.array_equal(one[0], several[0])


@pytest.mark.parametrize("cls", [CMSFrequencyEstimator, DBitFlipFrequencyEstimator, GRRFrequencyEstimator,
                                 IDUEFrequencyEstimator, LGRRFrequencyEstimator, LOLOHAFrequencyEstimator,
                                 LOSUEFrequencyEstimator, LOUEFrequencyEstimator, MetricFrequencyEstimator,
                                 OLHFrequencyEstimator, OUEFrequencyEstimator, RAPPORFrequencyEstimator,
                                 SHEFrequencyEstimator, SSFrequencyEstimator])
def test_one_record_at_a_time_has_the_law_of_rows(cls):
    """Steps of a report whose words were the same would be one step: frequencies would be far off."""
    estimator, record, n = cls(1.5, categories=[list(range(6))]), np.array([[2]]), 6000
    reports = np.concatenate([estimator.privatize(record) for _ in range(n)])
    found = estimator.aggregate(reports)
    law = found.randomizers_[0]
    held = np.arange(6) == 2
    assert (np.abs(found.frequencies_[0] - held) < 5 * np.sqrt(law.variance(n, held))).all()


@pytest.mark.parametrize("cls", [LGRRFrequencyEstimator, LOLOHAFrequencyEstimator])
def test_a_first_report_is_the_response_to_an_answer_that_is_kept(cls):
    law = cls(1.0, categories=[list(range(50))]).randomizer()
    codes, source = np.arange(50).repeat(20).astype(law.code_dtype), WordSource(5)
    once, twice = (np.empty((1000, law.report_width), law.report_dtype) for _ in range(2))
    law.privatize(codes, source.reader().words(0, 0, 0, 1000), once)
    Memoised.privatize(law, codes, source.reader().words(0, 0, 0, 1000), twice)
    assert np.array_equal(once, twice)


def test_where_parties_add_noise_no_record_is_sent():
    estimator, record = GRRFrequencyEstimator(1.0, categories=[[0, 1]]), np.array([[1]])
    estimator.privatize(record)
    token = sums_here.set(object())
    try:
        with pytest.raises(ValueError, match="add noise to sums and draw nothing else"):
            estimator.privatize(record)
    finally:
        sums_here.reset(token)


def test_threads_do_not_share_what_one_of_them_writes():
    """At this epsilon a report is nearly the value: a code of another thread's record would show."""
    estimator = GRRFrequencyEstimator(40.0, categories=[list(range(100))])

    def reported(k):
        return int(estimator.privatize(np.array([[k]]))[0, 0]) == k

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(reported, [k % 100 for k in range(2000)]))


def test_parameters_that_change_are_seen(monkeypatch):
    record, listed = np.array([[2]]), [0, 1, 2]
    estimator = GRRFrequencyEstimator(1.0, categories=[listed])
    estimator.privatize(record)
    listed.append(9)  # in place
    assert len(estimator.privatize(np.array([[9]]))) == 1
    listed.remove(2)
    with pytest.raises(ValueError, match="not among its declared"):
        estimator.privatize(record)
    estimator.set_params(epsilon=3.0, categories=[[2, 4]])
    assert same_both_ways(monkeypatch, estimator, record)[2] == (1, 1)
    for wrong in ({"n_jobs": 0}, {"postprocess": "none such"}, {"random_state": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            GRRFrequencyEstimator(1.0, categories=[[2, 4]], **wrong).privatize(record)


def test_in_strict_mode_no_record_takes_a_way_that_only_values_of_the_domain_can(monkeypatch):
    """A sender leaves other values to whoever reads rows, so that the time of a call would tell of the value."""
    records = np.array([[1]]), np.array([[7]])
    plain = GRRFrequencyEstimator(1.0, categories=[[0, 1]])
    fitted = GRRFrequencyEstimator(1.0, categories=[[0, 1]]).fit(records[0])
    for each in (plain, fitted):
        each.privatize(records[0])
    asked = []
    monkeypatch.setattr(sending, "_sender", lambda columns, dtype: asked.append(dtype))
    for each in (plain, fitted):
        with dpestim.config_context(strict=True):
            for record in records:
                assert len(each.privatize(record)) == 1
        assert not asked
        each.privatize(records[0])
        assert asked  # (else it is asked)
        asked.clear()


def test_ledgers_strict_mode_and_seeds_have_their_say():
    record, ledger = np.array([[1]]), Ledger(1.5)
    estimator = GRRFrequencyEstimator(1.0, categories=[[0, 1]])
    estimator.privatize(record)
    with ledger:
        estimator.privatize(record)
    assert float(ledger.spent().epsilon) == 1.0
    with pytest.raises(dpestim.exceptions.BudgetExceededError):
        estimator.privatize(record)  # a block has paid for it once
    strict = GRRFrequencyEstimator(1.0, categories=[[0, 1]])
    with dpestim.config_context(strict=True):
        assert len(strict.privatize(np.array([[7]]))) == 1
    seeded = GRRFrequencyEstimator(0.1, categories=[list(range(200))], random_state=3)
    assert len({seeded.privatize(record).item() for _ in range(5)}) == 1


@pytest.mark.parametrize("hook", sorted(sending._ASKED))
def test_a_client_with_ways_of_its_own_is_asked(hook):
    asked = []

    def own(self, *args, **kwargs):
        asked.append(hook)
        return getattr(super(Own, self), hook)(*args, **kwargs)

    Own = type("Own", (GRRFrequencyEstimator,), {hook: own, "__init__": GRRFrequencyEstimator.__init__})
    estimator = Own(1.0, categories=[[0, 1]])
    for _ in range(2):
        asked.clear()
        estimator.privatize(np.array([[1]]))
        assert asked


def test_a_client_that_was_given_a_way_of_its_own_is_asked():
    estimator, asked = GRRFrequencyEstimator(1.0, categories=[[0, 1]]), []
    estimator.privatize(np.array([[1]]))
    estimator._pay = lambda *args: asked.append(args) or GRRFrequencyEstimator._pay(estimator, *args)
    estimator.privatize(np.array([[1]]))
    assert asked


def test_a_thread_that_clears_the_senders_does_not_take_that_of_another():
    """Each length of strings is a dtype, so that threads with words of their own clear them often."""

    class Cleared(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            self.clear()

    estimator = GRRFrequencyEstimator(1.0, categories=[["a", "bc"]])
    estimator._columns_now(1).senders = Cleared()
    assert len(estimator.privatize(np.array([["bc"]]))) == 1


def test_the_format_of_pickles_goes_with_what_a_pickled_client_holds():
    """Whoever changes these names changes `PICKLE_FORMAT`, lest an older pickle fail where it is used."""
    fitted = GRRFrequencyEstimator(1.0, categories=[[0, 1, 2]]).fit(np.array([[0], [1]]))
    columns = fitted._columns
    assert PICKLE_FORMAT == 5
    assert set(columns.__getstate__()) == {
        "columns", "dtype", "features", "inferred", "keys", "laws", "n_features", "report_width", "senders", "slices"}
    assert set(columns.columns[0].encoder.__getstate__()) == {
        "_codes", "_listed", "_low", "_missing", "_slots", "dtype", "n_categories", "name", "range"}
