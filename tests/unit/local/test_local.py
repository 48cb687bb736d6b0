"""The frequency estimators: what is particular to one of them, and the face they share."""

import math
import os
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

from dpestim.base import all_estimators
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local import (
    BinaryFrequencyEstimator,
    BLHFrequencyEstimator,
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
)
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.olh import OLH, best_n_buckets, collision_rate
from dpestim.privacy import exact
from dpestim.rng import Stage, WordReader
from dpestim.testing import check_mechanism
from dpestim.testing.frequencies import LAW_CHECKS
from dpestim.testing.promises import check_promises
from dpestim.testing.sample import Sample

ALL = [cls for _, cls in all_estimators() if issubclass(cls, FrequencyEstimator)]
each = pytest.mark.parametrize("cls", ALL)


def takes(cls, d):
    """Whether a law takes so many values: some verify every pair, or solve for all of them."""
    try:
        return cls(1.0, categories=[range(d)]).randomizer() is not None
    except ValueError:
        return False


each_of_300 = pytest.mark.parametrize("cls", [cls for cls in ALL if takes(cls, 300)])


@pytest.mark.parametrize("seed", range(20))
def test_olh_buckets_are_the_best_integer(seed):
    rng = np.random.default_rng(seed)
    for epsilon in rng.uniform(0.01, 6, 100):
        e = math.exp(epsilon)
        brute = min(range(2, int(e) + 5), key=lambda g, e=e: (e - 1 + g) ** 2 / (g - 1))
        assert best_n_buckets(exact.canonical_epsilon(epsilon)) == brute


@pytest.mark.parametrize("bits", [4, 6])
@pytest.mark.parametrize("g", [2, 3, 5, 7])
def test_collision_rate_by_enumeration(bits, g):
    m = 1 << bits
    bucket = np.arange(m) * g >> bits
    for s in range(bits):
        same = 0
        for a in range(m):
            x = np.arange(m)  # h(x) for every b, by b being uniform
            same += int((bucket[x] == bucket[(x + a * (1 << s)) % m]).sum())
        assert collision_rate(bits, g, s) == Fraction(same, m * m)


def test_olh_takes_wide_lanes_when_the_domain_asks_for_them():
    assert OLH.make(1.0, 1 << 16).lane_bits == 32
    assert OLH.make(1.0, (1 << 16) + 1).lane_bits == 64
    assert OLH.make(12.0, 1 << 16).lane_bits == 64  # many buckets: 32 bits would collide unevenly
    assert OLH.make(12.0, 1 << 16).bias < Fraction(1, 10**7)
    with pytest.raises(ValueError, match="epsilon"):
        OLH.make(22.0, 100)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_olh_on_wide_lanes_is_unbiased(epsilon):
    d = (1 << 16) + 1
    X = np.repeat([[0], [d - 1], [d // 2]], [3000, 2000, 1000], axis=0)
    est = OLHFrequencyEstimator(epsilon, categories=[np.arange(d)], random_state=0).fit(X)
    z = (est.frequencies_[0] - np.bincount(X[:, 0], minlength=d) / len(X)) / est.standard_errors_[0]
    assert np.abs(z).max() < 6
    assert abs(z.std() - 1) < 0.15


def test_grr_with_two_words_a_record():
    d = 70_000
    X = np.random.default_rng(0).integers(0, d, (5000, 1))
    est = GRRFrequencyEstimator(1e-10, categories=[np.arange(d)], random_state=0).fit(X)
    assert est.randomizers_[0].n_words == 2
    reports = est.privatize(X)
    assert np.bincount(reports[:, 0] >> 10, minlength=69).min() > 0  # spread over the whole domain
    assert np.isfinite(est.frequencies_[0]).all()


def test_unary_refuses_domains_beyond_a_client_and_says_slack():
    randomizer = OUEFrequencyEstimator._randomizer
    with pytest.raises(ValueError, match="categories"):
        randomizer.make(1.0, (1 << 24) + 1)
    assert randomizer.make(60.0, 4).slack
    assert not randomizer.make(40.0, 4).slack
    X = np.zeros((10, 1), int)
    assert "2**-64" in str(OUEFrequencyEstimator(60.0, categories=[[0, 1]]).fit(X).privacy_)


@each
def test_learned_categories_warn_and_void_the_guarantee(cls):
    X = np.array([["a"], ["b"], ["a"]])
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee"):
        est = cls(1.0).fit(X)
    assert est.privacy_.epsilon == math.inf
    assert "learned" in str(est.privacy_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(1.0, categories=[["a", "b"]]).fit(X).privacy_.epsilon == 1


@each
def test_nothing_is_learned_when_the_warning_is_an_error(cls):
    est = cls(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyLeakWarning):
            est.fit(np.array([["a"], ["b"]]))
    assert not hasattr(est, "n_users_")
    assert "n_features_in_" not in vars(est)


@each
def test_client_and_server_need_no_fit(cls):
    domain = [["a", "b", "c"], [0, 1]]
    client, server = cls(2.0, categories=domain), cls(2.0, categories=domain)
    for letter in "aabc" * 50:
        server.aggregate(client.privatize([[letter, 1]]))
    assert server.n_users_ == 200
    assert server.n_features_in_ == 2
    assert [f.shape for f in server.frequencies_] == [(3,), (2,)]
    assert server.privacy_.seeded is None
    with pytest.raises(NotFittedError):
        client.release()
    with pytest.raises(NotFittedError, match="declare"):
        cls(1.0).privatize([["a", 1]])
    with pytest.raises(NotFittedError):
        cls(1.0).transform([["a"]])


@pytest.mark.parametrize(
    ("cls", "impossible"),
    [
        (GRRFrequencyEstimator, 3),
        (BinaryFrequencyEstimator, 3),
        (OUEFrequencyEstimator, 8),
        (SUEFrequencyEstimator, 8),
        (SSFrequencyEstimator, 9),
        (SSFrequencyEstimator, 3),
        (HRFrequencyEstimator, 4),
        (OLHFrequencyEstimator, 4),
        (BLHFrequencyEstimator, 2),
    ],
)
def test_reports_no_client_could_have_made(cls, impossible):
    est = cls(1.0, categories=[[0, 1, 2]]).fit(np.array([[0], [1], [2]]))
    reports = est.privatize(np.array([[0], [1]]))
    reports[1, -1] = impossible
    before = pickle.dumps(est)
    with pytest.raises(ValueError, match="report"):
        est.aggregate(reports)
    assert pickle.dumps(est) == before


DESIGNS = [
    ("coin", math.log(3)),
    ([[0.9, 0.1], [0.4, 0.6]], math.log(6)),
    ([[0.5, 0.5], [0.25, 0.75]], math.log(2)),
]


@pytest.mark.parametrize(("design", "cost"), DESIGNS, ids=str)
def test_coin_and_matrix_designs(design, cost):
    X = np.repeat([["no"], ["yes"]], [6000, 4000], axis=0)
    domain = [["no", "yes"]]
    est = BinaryFrequencyEstimator(None, design=design, categories=domain, random_state=0).fit(X)
    assert float(est.privacy_.epsilon) == pytest.approx(cost, abs=1e-12)
    z = (est.frequencies_[0] - [0.6, 0.4]) / est.standard_errors_[0]
    assert np.abs(z).max() < 5
    sample = Sample(est)
    for check in LAW_CHECKS:
        check(sample)
    # a ceiling above the cost changes nothing but the slack; one below it is refused before anything happens
    above = BinaryFrequencyEstimator(2.0, design=design, categories=domain).fit(X)
    assert above.privacy_.epsilon == est.privacy_.epsilon
    check_promises(Sample(BinaryFrequencyEstimator(2.0, design=design, categories=domain)))
    with pytest.raises(ValueError, match="epsilon"):
        BinaryFrequencyEstimator(cost - 0.01, design=design, categories=domain).fit(X)


def test_what_a_design_costs_adds_up_over_columns():
    X = np.zeros((5, 2), int)
    two = BinaryFrequencyEstimator(None, design="coin", categories=[[0, 1]] * 2).fit(X)
    assert float(two.privacy_.epsilon) == pytest.approx(2 * math.log(3))
    with pytest.raises(ValueError, match="epsilon"):
        BinaryFrequencyEstimator(2.0, design="coin", categories=[[0, 1]] * 2).fit(X)
    with pytest.raises(ValueError, match="two values"):
        BinaryFrequencyEstimator(None, design="coin", categories=[["a", "b", "c"]]).fit([["a"]])
    with pytest.raises(ValueError, match="epsilon"):
        BinaryFrequencyEstimator(None, categories=[[0, 1]]).fit([[0]])


@pytest.mark.parametrize(
    "design", ["dice", 3, None, [[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]], [[0.5, 0.5]], "x"]
)
def test_bad_designs(design):
    with pytest.raises(ValueError, match="design"):
        BinaryFrequencyEstimator(5.0, design=design, categories=[[0, 1]]).fit([[0]])


def test_warner_is_grr():
    X = np.arange(50)[:, None] % 2
    a = BinaryFrequencyEstimator(1.0, categories=[[0, 1]], random_state=0).fit(X)
    b = GRRFrequencyEstimator(1.0, categories=[[0, 1]], random_state=0).fit(X)
    assert np.array_equal(a.frequencies_[0], b.frequencies_[0])


@pytest.mark.parametrize(("epsilon", "d"), [(1.0, 5000), (4.0, 300), (0.1, 300)])
def test_hadamard_response_at_large_domains(epsilon, d):
    X = np.repeat([[0], [d - 1], [d // 2]], [30_000, 20_000, 10_000], axis=0)
    est = HRFrequencyEstimator(epsilon, categories=[np.arange(d)], random_state=0).fit(X)
    z = (est.frequencies_[0] - np.bincount(X[:, 0], minlength=d) / len(X)) / est.standard_errors_[0]
    assert np.abs(z).max() < 6
    assert abs(z.std() - 1) < 0.15


def test_subset_selection_refuses_domains_beyond_a_client():
    with pytest.raises(ValueError, match="categories"):
        SSFrequencyEstimator._randomizer.make(1.0, (1 << 20) + 1)


@each
def test_columns_share_epsilon_exactly(cls):
    domain = [[0, 1]] * 7
    est = cls(0.1, categories=domain, random_state=0).fit(np.zeros((50, 7), int))
    assert sum(r.epsilon for r in est.randomizers_) == Fraction(1, 10)
    assert est.privacy_.epsilon == Fraction(1, 10)
    assert "7 columns" in str(est.privacy_)


@each_of_300
def test_columns_of_different_sizes_travel_in_one_dtype(cls):
    domain = [np.arange(3), np.arange(300), [False, True]]
    X = np.column_stack([np.arange(500) % 3, np.arange(500) % 300, np.arange(500) % 2])
    est = cls(6.0, categories=domain, random_state=0)
    reports = est.privatize(X)
    assert reports.dtype.itemsize == max(r.report_dtype.itemsize for r in est.fit(X).randomizers_)
    again = cls(6.0, categories=domain).aggregate(reports)
    assert all(np.array_equal(a, b) for a, b in zip(est.frequencies_, again.frequencies_))


@each
def test_frames_give_names(cls):
    frame = pd.DataFrame({"city": ["x", "y", "x"], "n": [1, 2, 1]})
    est = cls(5.0, categories=[["x", "y"], [1, 2]]).fit(frame)
    assert est.feature_names_in_.tolist() == ["city", "n"]
    assert est.get_feature_names_out().tolist() == ["city_x", "city_y", "n_1", "n_2"]
    tidy = est.to_frame()
    assert tidy.columns.tolist() == ["feature", "category", "frequency", "standard_error", "ci_low", "ci_high"]
    assert tidy.feature.tolist() == ["city", "city", "n", "n"]
    assert ((tidy.ci_low < tidy.frequency) & (tidy.frequency < tidy.ci_high)).all()
    with pytest.raises(ValueError, match="column 'city'"):
        est.fit(pd.DataFrame({"city": ["z"], "n": [1]}))
    assert cls(5.0, categories=[["x", "y"], [1, 2]]).fit(pl.from_pandas(frame)).n_users_ == 3


@each
def test_score_is_the_negative_mean_squared_error_over_the_union_of_domains(cls):
    X = np.array([[0]] * 60 + [[1]] * 40)
    est = cls(3.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    f = est.frequencies_[0]
    assert est.score(X) == pytest.approx(-np.mean((f - [0.6, 0.4, 0]) ** 2))
    unseen = np.array([[0]] * 5 + [[9]] * 5)
    assert est.score(unseen) == pytest.approx(-np.mean((np.append(f, 0) - [0.5, 0, 0, 0.5]) ** 2))
    constant = np.zeros((4, 1), int)
    assert est.score(constant) == pytest.approx(-np.mean((f - [1, 0, 0]) ** 2))


@each
def test_postprocessing(cls):
    X = np.zeros((500, 1), int)
    est = cls(0.5, categories=[np.arange(20)], random_state=0)
    raw = est.fit(X).frequencies_[0]
    assert raw.min() < 0
    assert np.array_equal(est.set_params(postprocess="base_pos").frequencies_[0], np.maximum(raw, 0))
    projected = clone(est).set_params(postprocess="norm_sub").fit(X).frequencies_[0]
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    assert np.array_equal(est.set_params(postprocess=lambda f, se: f + se).frequencies_[0],
                          raw + est.standard_errors_[0])
    with pytest.raises(ValueError, match="postprocess"):
        est.set_params(postprocess=lambda f, se: f[:2]).release()


@each
def test_standard_errors_and_intervals_are_what_the_variance_says(cls):
    est = cls(1.0, categories=[[0, 1, 2]], random_state=0).fit(np.zeros((1000, 1), int))
    f, (at_zero, slope) = est.frequencies_[0], est.randomizers_[0].variance_line(est._counts[0], 1000)

    def error(x):
        return np.sqrt((at_zero + slope * np.clip(x, 0, 1)) / 1000)

    assert np.allclose(est.standard_errors_[0], error(f), rtol=1e-12)
    for level, z in ((0.5, 0.6744897501960817), (0.95, 1.959963984540054)):
        low, high = est.confidence_interval(level)[0].T
        assert (low < f).all()
        assert (f < high).all()
        assert np.allclose(low, f - z * error(low), rtol=0, atol=1e-9)
        assert np.allclose(high, f + z * error(high), rtol=0, atol=1e-9)
    for level in (0, 1, -1, 2):
        with pytest.raises(ValueError, match="level"):
            est.confidence_interval(level)


@pytest.mark.ci
@pytest.mark.law
@each
def test_intervals_cover_also_where_an_estimate_looks_certain(cls):
    """At epsilon 12 a value that nobody reported has a plug-in standard error of nearly 0."""
    covered, rare = [], 10  # values that three users hold: 300 intervals from 30 fits
    X = np.zeros((1000, 1), int)
    X[: 3 * rare] = 1 + np.arange(3 * rare)[:, None] % rare
    for seed in range(30):
        est = cls(12.0, categories=[np.arange(rare + 2)], random_state=seed).fit(X)
        low, high = est.confidence_interval(0.95)[0][1 : rare + 1].T
        covered.append((low <= 0.003) & (high >= 0.003))
    assert np.mean(covered) > 0.9


@each
def test_the_key_is_fresh_secret_and_used(cls, monkeypatch):
    """One call of os.urandom of 32 bytes for each public call, and these bytes are the key of every reader."""
    given, used = [], []
    real, init = os.urandom, WordReader.__init__

    def recording_urandom(n):
        given.append(real(n))
        return given[-1]

    def recording_init(self, key):
        used.append(key)
        init(self, key)

    monkeypatch.setattr(os, "urandom", recording_urandom)
    monkeypatch.setattr(WordReader, "__init__", recording_init)
    est = cls(1.0, categories=[[0, 1]])
    for verb in (est.fit, est.partial_fit, est.fit_transform, est.privatize, est.transform):
        given.clear(), used.clear()
        verb(np.zeros((3, 1), int))
        assert [len(key) for key in given] == [32]
        assert set(used) == set(given)


@each
def test_nothing_is_drawn_before_it_is_charged(cls, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("words were drawn although the charge was refused")

    est = cls(1.0, categories=[[0, 1]], ledger=RecordingLedger()).fit([[0]])
    monkeypatch.setattr(WordReader, "dense", forbidden)
    monkeypatch.setattr(WordReader, "sparse", forbidden)
    monkeypatch.setattr(os, "urandom", forbidden)
    generator = np.random.default_rng(0)
    for state in (None, generator):
        est.set_params(ledger=RecordingLedger(refuse=True), random_state=state)
        for verb in (est.fit, est.partial_fit, est.fit_transform, est.privatize, est.transform):
            with pytest.raises(RuntimeError, match="overdraft"):
                verb([[0]])
    assert generator.bit_generator.state == np.random.default_rng(0).bit_generator.state


class GivenWords:
    """Words that a test chooses, in place of a `dpestim.rng.Words`."""

    def __init__(self, words):
        self.given = np.array(words, dtype=np.uint64)

    def dense(self, stage, per_row):
        assert stage is Stage.RESPONSE or per_row * len(self.given) == 0 or stage is Stage.SEED
        return np.zeros(len(self.given) * per_row, np.uint64) if stage is Stage.SEED else np.repeat(self.given, per_row)

    def sparse(self, stage, per_row, places):
        return np.zeros(len(places), np.uint64)

    def scratch(self, size, dtype):
        return np.empty(size, dtype)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomizers_hand_their_exact_thresholds_to_the_kernels(epsilon):
    """One word on each side of every threshold: a law that is off by 2**-64 is noticed."""
    grr = GRRFrequencyEstimator._randomizer.make(epsilon, 5)
    keep, other = grr.weights.keep, grr.weights.other
    out = np.empty((6, 1), np.uint8)
    words = GivenWords([0, keep - 1, keep, keep + other - 1, keep + other, 2**64 - 1])
    grr.privatize(np.full(6, 2, np.uint8), words, out)
    assert out[:, 0].tolist() == [2, 2, 0, 0, 1, 4]

    for face in (OLHFrequencyEstimator, BLHFrequencyEstimator):
        olh = face._randomizer.make(epsilon, 5)
        keep, g = olh.weights.keep, olh.n_buckets
        out = np.empty((4, 3), np.uint32)
        olh.privatize(np.full(4, 2, np.uint8), GivenWords([0, keep - 1, keep, 2**64 - 1]), out)
        assert out.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, g - 1]]  # seed 0 hashes everything to bucket 0

    for face in (OUEFrequencyEstimator, SUEFrequencyEstimator):
        unary = face._randomizer.make(epsilon, 2)
        words = [unary.true_threshold - 1, unary.true_threshold]
        out = np.empty((2, 1), np.uint8)
        unary.privatize(np.zeros(2, np.uint8), GivenWords(words), out)
        assert (out[:, 0] & 1).tolist() == [1, 0]  # the other bits: test_patterns.py

    hr = HRFrequencyEstimator._randomizer.make(epsilon, 5)
    keep, log_half = hr.weights.keep, hr.half.bit_length() - 1
    out = np.empty((2, 1), hr.report_dtype)
    hr.privatize(np.full(2, 3, np.uint8), GivenWords([(keep << log_half) - 1, keep << log_half]), out)
    assert hr.support(out)[:, 3].tolist() == [1, 0]

    ss = SSFrequencyEstimator._randomizer.make(epsilon, 40)
    out = np.empty((2, 5), np.uint8)
    ss.privatize(np.full(2, 39, np.uint8), GivenWords([ss.weights.include - 1, ss.weights.include]), out)
    assert ss.support(out)[:, 39].tolist() == [1, 0]

    coin = BinaryFrequencyEstimator._randomizer.make(None, 2)
    out = np.empty((4, 1), np.uint8)
    coin.privatize(np.array([0, 0, 1, 1], np.uint8), GivenWords([2**62 - 1, 2**62, 3 * 2**62 - 1, 3 * 2**62]), out)
    assert out[:, 0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("d", [4096, 5000, 70_000])
def test_counts_of_large_domains(d):
    codes = np.random.default_rng(0).integers(0, d, 30_000)
    for face in (GRRFrequencyEstimator, HRFrequencyEstimator):
        randomizer = face._randomizer.make(1.0, d)
        reports = (codes % randomizer.n_counts).astype(randomizer.report_dtype)[:, None]
        counts = np.full(randomizer.n_counts, 7, np.int64)
        randomizer.count(reports, counts)
        assert np.array_equal(counts - 7, np.bincount(codes, minlength=randomizer.n_counts))


@pytest.mark.parametrize("d", [3, 5000])
def test_a_report_that_turns_bad_after_the_check_is_no_index(d):
    """Reports may live in a file that another process writes to: the kernel compares before it indexes."""
    for face in (GRRFrequencyEstimator, HRFrequencyEstimator):
        randomizer = face._randomizer.make(1.0, d)
        for place in (0, 5, 8):
            reports = np.zeros((9, 1), randomizer.report_dtype)
            reports[place] = np.iinfo(randomizer.report_dtype).max
            with pytest.raises(ValueError, match="report"):
                randomizer.count(reports, np.zeros(randomizer.n_counts, np.int64))


@each
def test_bad_reports_are_found_in_every_row_and_column(cls):
    domain = [[0, 1, 2]] * 3
    est = cls(3.0, categories=domain)
    reports = est.privatize(np.zeros((10, 3), int))
    width = reports.shape[1] // 3
    for row in range(10):
        for column in range(3):
            bad = reports.copy()
            bad[row, column * width : (column + 1) * width] = np.iinfo(bad.dtype).max
            with pytest.raises(ValueError, match="report"):
                est.aggregate(bad)


def test_a_narrow_column_beside_a_wide_one_keeps_its_range():
    est = OLHFrequencyEstimator(2.0, categories=[[0, 1], np.arange(70_000)])
    reports = est.privatize([[0, 5]])
    assert reports.dtype == np.uint64
    reports[0, 0] = 1 << 32
    with pytest.raises(ValueError, match="uint32"):
        est.aggregate(reports)


@each
def test_merging_needs_the_same_domain_and_the_same_honesty(cls):
    X = np.array([[0], [1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = cls(1.0).fit(X)
        also_learned = cls(1.0).fit(X)
    declared = cls(1.0, categories=[[0, 1]]).fit(X)
    for other in (learned, cls(1.0, categories=[[1, 0]]).fit(X), cls(1.0, categories=[[0, 1, 2]]).fit(X)):
        with pytest.raises(ValueError, match="categories"):
            declared.merge(other)
    with pytest.raises(ValueError, match="categories"):
        learned.merge(declared)
    assert not learned.merge(also_learned).privacy_.is_finite
    empty = cls(1.0).merge(learned)
    assert not empty.privacy_.is_finite
    assert cls(1.0).merge(declared).privacy_.is_finite


@each
def test_whether_noise_was_seeded_is_never_forgotten(cls):
    X = np.array([[0], [1]])

    def fitted(state):
        return cls(1.0, categories=[[0, 1]], random_state=state).fit(X)

    reports = fitted(None).privatize(X)

    def server():
        return cls(1.0, categories=[[0, 1]]).aggregate(reports)

    assert cls(1.0, categories=[[0, 1]], random_state=0).aggregate(reports).privacy_.seeded is True
    assert fitted(0).aggregate(reports).privacy_.seeded is True
    assert fitted(None).aggregate(reports).privacy_.seeded is None
    for left, right, wanted in (
        (fitted(None), fitted(None), False),
        (fitted(None), fitted(0), True),
        (fitted(0), fitted(None), True),
        (fitted(None), server(), None),
        (server(), fitted(None), None),
        (server(), fitted(0), True),
        (cls(1.0, categories=[[0, 1]]), server(), None),
        (cls(1.0, categories=[[0, 1]]), fitted(0), True),
        (cls(1.0, categories=[[0, 1]]), fitted(None), False),
    ):
        assert left.merge(right).privacy_.seeded is wanted
    assert "dpestim does not know whether" in str(server().privacy_)


@each
def test_missing_values_that_are_listed_merge_and_score(cls):
    X = np.array([["a"], [None], ["a"]], dtype=object)
    for missing in (None, float("nan"), pd.NA):
        est = cls(5.0, categories=[["a", missing]]).fit(X)
        assert est.merge(cls(5.0, categories=[["a", missing]]).fit(X)).n_users_ == 6
        f = est.frequencies_[0]
        assert est.score(X) == pytest.approx(-np.mean((f - [2 / 3, 1 / 3]) ** 2))
    assert np.isfinite(est.score(np.array([[None]], dtype=object)))


@each
def test_pickles_do_not_tell_how_the_data_looked(cls):
    """Caches are made to the measure of X; a published estimator must not carry them."""
    domain = [["flu", "cold", "mesothelioma"]]
    sizes = set()
    for rows in (["flu", "cold"], ["flu", "mesothelioma"]):
        est = cls(1.0, categories=domain, random_state=0).fit(np.array(rows)[:, None])
        est._counts = [np.zeros_like(c) for c in est._counts]
        sizes.add(pickle.dumps(est))
    assert len(sizes) == 1


@each
def test_what_was_frozen_does_not_follow_the_callers_array(cls):
    domain = np.array([10, 20, 30])
    est = cls(1.0, categories=[domain]).fit([[10], [20]])
    domain[:] = domain[::-1].copy()
    assert est.categories_[0].tolist() == [10, 20, 30]
    with pytest.raises(ValueError, match="read-only"):
        est.categories_[0][0] = 5
    randomizer = est.randomizers_[0]
    with pytest.raises(AttributeError, match="never changes"):
        randomizer.p_star = 1


@each
def test_ten_batches_under_one_seed_do_not_repeat_their_noise(cls):
    """With repeated noise the variance of the mean of ten batches would be ten times too large (SOUNDNESS 22)."""
    z = []
    for seed in range(40):
        est = cls(1.0, categories=[[0, 1, 2]], random_state=seed)
        for _ in range(10):
            est.partial_fit(np.zeros((50, 1), int))
        z.append((est.frequencies_[0] - [1, 0, 0]) / est.standard_errors_[0])
    assert 0.6 < np.std(z) < 1.5


@each
def test_a_stream_of_seeded_batches_is_remembered_as_one_range(cls):
    est = cls(1.0, categories=[[0, 1]], random_state=0)
    for _ in range(20):
        est.partial_fit([[0]])
    assert len(est._seeds) == 1
    with pytest.raises(ValueError, match="repeats"):
        est.merge(cls(1.0, categories=[[0, 1]], random_state=0).fit(np.zeros((20, 1), int)))
    later = cls(1.0, categories=[[0, 1]], random_state=1).fit(np.zeros((30, 1), int))
    assert est.merge(later).partial_fit([[1]]).n_users_ == 51
    assert len(est._seeds) == 3


@each
def test_a_bad_seed_is_found_before_anything_is_charged(cls):
    ledger = RecordingLedger()
    est = cls(1.0, categories=[[0, 1]], ledger=ledger, random_state=-1)
    for verb in (est.fit, est.privatize, est.partial_fit, est.fit_transform):
        with pytest.raises(ValueError, match="random_state"):
            verb([[0]])
    assert not ledger.entries


@each
def test_refitting_forgets(cls):
    est = cls(1.0, categories=[[0, 1]], random_state=0).fit(np.zeros((30, 1), int))
    first = est.frequencies_[0]
    assert np.array_equal(est.fit(np.zeros((30, 1), int)).frequencies_[0], first)
    assert est.n_users_ == 30
    est.set_params(categories=[[0, 1], [0, 1]]).fit(np.zeros((5, 2), int))
    assert est.n_features_in_ == 2


@each
def test_a_failed_fit_leaves_the_fitted_state(cls):
    est = cls(1.0, categories=[[0, 1]], random_state=0).fit(np.zeros((30, 1), int))
    before = pickle.dumps(est)
    with pytest.raises(ValueError, match="column 0"):
        est.fit(np.full((30, 1), 5))
    assert pickle.dumps(est) == before


class RecordingLedger:
    def __init__(self, refuse=False):
        self.entries, self.refuse = [], refuse

    def charge(self, guarantee, *, estimator, n_rows, columns):
        if self.refuse:
            raise RuntimeError("overdraft")
        self.entries.append((guarantee.epsilon, estimator, n_rows))


@each
def test_the_seam_of_the_ledger(cls):
    X = np.zeros((6, 1), int)
    ledger = RecordingLedger()
    est = cls(0.3, categories=[[0, 1]], ledger=ledger)
    est.fit(X)
    est.partial_fit(X)
    est.fit_transform(X)
    est.transform(X)
    reports = est.privatize(X)
    assert ledger.entries == [(Fraction(3, 10), cls.__name__, 6)] * 5
    est.aggregate(reports).release()
    est.score(X)
    assert len(ledger.entries) == 5
    with pytest.raises(ValueError, match="column 0"):
        est.fit(X + 7)
    assert len(ledger.entries) == 5  # validate, then charge
    before = est.n_users_
    est.ledger = RecordingLedger(refuse=True)
    with pytest.raises(RuntimeError, match="overdraft"):
        est.fit(X)
    assert est.n_users_ == before


@each
def test_pipelines_and_searches(cls):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = np.where(rng.random(3000) < 0.9, y, 1 - y)[:, None]
    model = make_pipeline(cls(5.0, categories=[[0, 1]], random_state=0), BernoulliNB()).fit(X, y)
    assert model.score(X, y) > 0.55  # a coin has 0.5, with a standard error of 0.009; LOUE keeps a quarter of the ones
    search = GridSearchCV(
        cls(categories=[[0, 1]], random_state=0), {"epsilon": [0.01, 5.0]}, cv=3, error_score="raise"
    ).fit(X)
    assert search.best_params_ == {"epsilon": 5.0}


@each
def test_one_report_estimates_something_and_none_is_an_error(cls):
    est = cls(1.0, categories=[[0, 1, 2]]).fit([[1]])
    assert est.n_users_ == 1
    assert np.isfinite(est.frequencies_[0]).all()
    assert np.isfinite(est.standard_errors_[0]).all()
    with pytest.raises(ValueError, match="minimum of 1"):
        est.fit(np.empty((0, 1), int))
    with pytest.raises(ValueError, match="minimum of 1"):
        est.fit(pd.DataFrame({"a": []}))


def test_a_fit_of_many_users_holds_no_reports(monkeypatch):
    """The reports of 1e5 users over 1,024 bits are 12.8 MB; the fit allocates less than 10 MB in all."""
    import tracemalloc

    X = np.zeros((100_000, 1), np.int64)
    est = OUEFrequencyEstimator(1.0, categories=[np.arange(1024)])
    est.fit(X[:10])
    tracemalloc.start()
    est.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    randomizer = est.randomizers_[0]
    block = 8 * randomizer.block_words + (4 + 1) * 128 * randomizer.block_rows  # words; ties and reports
    assert peak < block * 1.3 + 4e6
    assert randomizer.block_rows < 10_000


def test_golden_reports():
    """Seeded reports are part of the interface: they change only with a note in the changelog."""
    X = np.arange(6)[:, None] % 4
    golden = {
        GRRFrequencyEstimator: [[2], [0], [2], [0], [3], [3]],
        OUEFrequencyEstimator: [[8], [10], [10], [9], [0], [2]],
        OLHFrequencyEstimator: [
            [2367968383, 132847532, 2],
            [1725282021, 690346388, 0],
            [824060012, 547867152, 2],
            [1543121784, 641214203, 1],
            [125554644, 1577054079, 3],
            [1509959803, 2968953470, 3],
        ],
    }
    for cls, reports in golden.items():
        made = cls(1.0, categories=[np.arange(4)], random_state=2026).privatize(X)
        assert made.tolist() == reports, cls.__name__


@each
def test_categories_by_name_check_the_columns_of_every_client(cls):
    domain = {"smoker": [0, 1], "male": [0, 1]}
    frame = pd.DataFrame({"smoker": [1] * 10, "male": [0] * 10})
    client, server = cls(3.0, categories=domain), cls(3.0, categories=domain)
    server.aggregate(client.privatize(frame)).aggregate(client.privatize(pl.from_pandas(frame)))
    server.aggregate(client.privatize(frame.to_numpy()))
    assert server.to_frame().feature.unique().tolist() == ["smoker", "male"]
    assert server.n_users_ == 30
    for wrong, message in ((frame[["male", "smoker"]], "order of categories"),
                           (frame.rename(columns={"male": "x"}), "lacks 'x'")):
        for verb in (client.privatize, cls(3.0, categories=domain).fit):
            with pytest.raises(ValueError, match=message):
                verb(wrong)
    for wrong in (frame[["male", "smoker"]], frame.rename(columns={"male": "x"}), frame[["male"]]):
        with pytest.raises(ValueError, match="feature"):  # (a server that has counted reports knows its columns)
            server.partial_fit(wrong)
    # a column that X does not have is not needed; reports of one column are none of two
    one = client.privatize(frame[["male"]])
    assert one.shape[1] < client.privatize(frame).shape[1]
    with pytest.raises(ValueError, match="reports"):
        server.aggregate(one)
    assert cls(3.0, categories=domain).fit(frame).feature_names_in_.tolist() == ["smoker", "male"]
    assert clone(client).categories == domain


def clone_of(server):
    """Return a server that has counted other reports of the same kind."""
    twin = clone(server)
    return twin.aggregate(twin.privatize(np.zeros((10, 2), int)))


@each
def test_merging_checks_names(cls):
    frame = pd.DataFrame({"smoker": [1] * 10, "male": [0] * 10})

    def make(rows, lists=([0, 1], [0, 1])):
        return cls(3.0, categories=lists if isinstance(lists, dict) else list(lists)).fit(rows)

    named = {"smoker": [0, 1], "male": [0, 1]}
    collected = cls(3.0, categories=[[0, 1], [0, 1]])
    collected.aggregate(collected.privatize(frame))
    for mine, other in ((frame, frame[["male", "smoker"]]), (frame, frame.to_numpy()), (frame.to_numpy(), frame)):
        est = make(mine)
        with pytest.raises(ValueError, match=r"merge needs .*names"):
            est.merge(make(other))
        assert est.n_users_ == 10
    for est, other in ((make(frame), collected), (clone_of(collected), make(frame)), (make(frame, named), collected)):
        with pytest.raises(ValueError, match=r"merge needs .*names.*declare the columns by name"):
            est.merge(other)
    assert make(frame).merge(make(frame)).n_users_ == 20
    assert make(frame.to_numpy()).merge(collected).n_users_ == 20
    assert cls(3.0, categories=[[0, 1], [0, 1]]).merge(make(frame)).feature_names_in_.tolist() == ["smoker", "male"]
    by_name = cls(3.0, categories=named)  # (reports are laid out by the dict, so that they have names)
    assert by_name.aggregate(by_name.privatize(frame)).merge(make(frame, named)).n_users_ == 20


@pytest.mark.parametrize("bad", [["Lima", "Oslo"], [{"Lima", "Oslo"}], [frozenset([1, 2])], [{"a": 1, "b": 2}], {}, 5])
def test_categories_without_order_or_columns(bad):
    with pytest.raises(ValueError, match="categories"):
        GRRFrequencyEstimator(1.0, categories=bad).fit([["Lima"]])


@each
def test_sparse_support_is_made_in_pieces(cls, monkeypatch):
    from dpestim.local.categories import estimator

    monkeypatch.setattr(estimator, "_DENSE_CELLS", 100)
    X = np.arange(57)[:, None] % 9
    est = cls(1.0, categories=[np.arange(9)], random_state=0)
    dense = est.fit_transform(X)
    assert np.array_equal(est.set_params(sparse_output=True).fit_transform(X).toarray(), dense)


def test_friendly_messages():
    est = GRRFrequencyEstimator(1.0, categories=[["a", "b"]])
    frame = pd.DataFrame({"x": ["a", "b"]})
    for bad in (frame["x"], frame.iloc[0], pl.from_pandas(frame)["x"]):
        with pytest.raises(ValueError, match="1D array"):
            est.privatize(bad)
    with pytest.raises(ValueError, match="collect"):
        est.privatize(pl.from_pandas(frame).lazy())
    with pytest.raises(NotFittedError):
        est.to_frame()
    est.fit(frame)
    with pytest.raises(ValueError, match="finite"):
        est.set_params(postprocess=lambda f, se: f * np.nan).release()


@pytest.mark.parametrize(
    "params",
    [
        {"categories": "auto"},
        {"categories": [list(range(10))]},
        {"categories": [["a", 1]]},
        {"categories": [["a", None]]},
        {"categories": [[0.0, float("nan")]]},
        {"categories": [{"a"}]},
        {"epsilon": 0.05},
        {"epsilon": 6.0},
    ],
    ids=str,
)
def test_check_mechanism_says_where_it_has_no_power(params):
    with pytest.raises(ValueError, match="check"):
        check_mechanism(GRRFrequencyEstimator(**{"categories": [["a", "b"]], **params}))


@pytest.mark.parametrize("categories", [[2**40, 1], [300, -2], [0.5, 1.5], [False, True], [2**63, 2**63 + 1]], ids=str)
def test_check_mechanism_takes_any_plain_domain(categories):
    check_mechanism(GRRFrequencyEstimator(1.0, categories=[categories]))


@pytest.mark.parametrize(
    ("cls", "epsilon", "d", "n"),
    [(cls, *case) for case in [(1.0, 1000, 1000), (8.0, 20, 200), (3.0, 2, 50)] for cls in ALL if takes(cls, case[1])])
def test_interval_ends_solve_their_equation_also_where_variance_is_steep(cls, epsilon, d, n):
    X = np.random.default_rng(0).integers(0, d, (n, 1))
    est = cls(epsilon, categories=[np.arange(d)], random_state=1).fit(X)
    f, (at_zero, slope) = est.frequencies_[0], est.randomizers_[0].variance_line(est._counts[0], n)
    for end, sign in zip(est.confidence_interval(0.95)[0].T, (-1, 1)):
        error = np.sqrt(np.maximum(at_zero + slope * np.clip(end, 0, 1), 0) / n)
        assert np.abs(end - f - sign * 1.959963984540054 * error).max() < 1e-8


@pytest.mark.ci
@pytest.mark.law
@each_of_300
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_both_sides_of_the_intervals_miss_equally_often(cls, epsilon):
    below, above, n, d = [], [], 20_000, 200  # the same 3,000 cells of 100 users each from 15 fits instead of 60
    X = (np.arange(n) % d)[:, None]
    for seed in range(15):
        low, high = cls(epsilon, categories=[np.arange(d)], random_state=seed).fit(X).confidence_interval(0.95)[0].T
        below.append(np.mean(high < 1 / d))
        above.append(np.mean(low > 1 / d))
    # 3,000 cells of which 2.5 % are missed on each side: a standard error of 0.3 points, more where cells depend
    assert 0.005 < np.mean(below) < 0.045
    assert 0.005 < np.mean(above) < 0.045


def test_the_line_of_the_variance_is_the_variance():
    f = np.random.default_rng(0).dirichlet(np.ones(12))
    for cls in ALL:
        randomizer = cls(1.5, categories=[range(12)]).randomizer()
        n = 10**7
        codes = np.repeat(np.arange(12), np.round(f * n / 100).astype(int)).astype(np.uint8)
        est = cls(1.5, categories=[np.arange(12)], random_state=0).fit(np.tile(codes, 3)[:, None])
        at_zero, slope = randomizer.variance_line(est._counts[0], est.n_users_)
        truth = np.bincount(codes, minlength=12) / codes.size
        assert np.allclose(at_zero + slope * truth, randomizer.variance(1, truth), rtol=0.02)
    coin = BinaryFrequencyEstimator._randomizer.make(None, 2)
    at_zero, slope = coin.variance_line(np.array([3, 7]), 10)
    assert np.allclose(at_zero + slope * np.array([0.3, 0.7]), coin.variance(1, np.array([0.3, 0.7])))


@each
def test_merging_into_an_empty_aggregate_checks_names_too(cls):
    a = cls(1.0, categories={"a": [0, 1], "b": [0, 1]})
    b = cls(1.0, categories={"b": [0, 1], "a": [0, 1]}).fit(np.array([[0, 1]]))
    with pytest.raises(ValueError, match="same names, in the same order"):
        a.merge(b)
    assert not hasattr(a, "n_users_")
    assert a.merge(cls(1.0, categories={"a": [0, 1], "b": [0, 1]}).fit(np.array([[0, 1]]))).n_users_ == 1


def test_the_coin_accepts_its_own_price():
    est = BinaryFrequencyEstimator(math.log(3), design="coin", categories=[[0, 1]]).fit([[0]])
    assert est.privacy_.epsilon <= exact.canonical_epsilon(math.log(3))
    assert exact.within(Fraction(3), 1, est.privacy_.epsilon)


@each
def test_equal_categories_of_another_type_are_another_declaration(cls):
    est = cls(1.0, categories=[[0, 1]])
    est.privatize([[0]])
    est.set_params(categories=[[False, True]]).fit([[True]])
    assert est.get_feature_names_out().tolist() == ["x0_False", "x0_True"]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_subsets_beyond_the_domain_or_of_another_size_are_refused(epsilon):
    est = SSFrequencyEstimator(epsilon, categories=[list(range(9))])
    reports = est.privatize(np.zeros((3, 1), int))
    k = est.fit([[0]]).randomizers_[0].weights.k
    for bits in (list(range(9, 9 + k)), list(range(k - 1)), list(range(k + 1))):
        bad = reports.copy()
        bad[1] = np.packbits(np.isin(np.arange(16), bits), bitorder="little")
        with pytest.raises(ValueError, match="report"):
            est.aggregate(bad)


@each
def test_an_overlap_of_one_seeded_row_is_refused(cls):
    def fitted(rows):
        est = cls(1.0, categories=[[0, 1]], random_state=0)
        return est.fit(np.zeros((rows, 1), int))

    longer = fitted(1).partial_fit([[0]])
    with pytest.raises(ValueError, match="repeats"):
        fitted(1).merge(longer)


def test_hadamard_counts_of_billions_do_not_overflow():
    randomizer = HRFrequencyEstimator._randomizer.make(1.0, 3)
    counts = np.zeros(randomizer.n_counts, np.int64)
    counts[0] = 1 << 40
    assert np.isfinite(randomizer.estimate(counts, 1 << 40)).all()
    assert np.allclose(randomizer.estimate(counts, 1 << 40), randomizer.estimate(counts >> 20, 1 << 20))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_of_few_rows_are_counted_together(monkeypatch, n_jobs):
    """Reports of 2^20 bits: a counter that is read and written for every few of them takes longer than they do."""
    randomizer = OUEFrequencyEstimator._randomizer
    law = randomizer.make(Fraction(1), 40)
    monkeypatch.setattr(randomizer, "block_words", 3 * law.n_words)
    assert (law.block_rows, law.counted_rows) == (3, 63)
    called, count = [], randomizer.count
    monkeypatch.setattr(randomizer, "count", lambda self, reports, counts: (
        called.append(len(reports)), count(self, reports, counts))[0])
    X = np.random.default_rng(0).integers(0, 40, (200, 1))
    own = OUEFrequencyEstimator(1.0, categories=[range(40)], random_state=0, n_jobs=n_jobs)
    fitted = clone(own).fit(X)
    assert 6 <= min(called) <= max(called) == 63
    assert len(called) == 4
    reports = clone(own).privatize(X)
    assert np.array_equal(fitted.frequencies_[0], clone(own).aggregate(reports).frequencies_[0])


def test_long_reports_are_counted_in_little_memory():
    law = OUEFrequencyEstimator._randomizer.make(Fraction(1), 1 << 22)
    assert law.block_rows <= law.counted_rows
    assert law.counted_rows * law.report_width <= 1 << 23
