"""Degrees, eigenvalues and cuts: what is published without noise, intervals, errors, and what must be refused."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpestim.accounting import Ledger
from dpestim.graph import CutEstimator, DegreeDistribution, GraphSpectrum
from dpestim.graph.cuts import _separated
from dpestim.graph.pairs import PairFlips, packed, upper
from dpestim.graph.reading import read_graph

#: So large that noise of counts is 0 but for a probability below 1e-8, and bits hardly flip.
NONE = 40.0


def drawn(n, kind, seed=0):
    """Return an adjacency matrix; "heavy" has few nodes of most edges."""
    rng = np.random.default_rng(seed)
    weight = (1 + np.arange(n)) ** -0.9 if kind == "heavy" else np.ones(n)
    share = {"empty": 0.0, "complete": 1.0, "sparse": 0.03, "dense": 0.5, "heavy": 0.05}[kind]
    chance = np.ones((n, n)) if share == 1 else np.minimum(share * np.outer(weight, weight) * n**2 / weight.sum()**2, 1)
    half = np.triu(rng.random((n, n)) < chance, 1)
    return (half | half.T).astype(np.uint8)


KINDS = ("empty", "complete", "sparse", "dense", "heavy")
#: Of graphs on which it is counted how often intervals hold.
COVERED = ("empty", "complete", "heavy", *(pytest.param(kind, marks=pytest.mark.ci) for kind in ("sparse", "dense")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["cumulative", "sequence"])
@pytest.mark.parametrize("top", [None, 3])
def test_degrees_without_noise_are_those_of_the_graph(kind, method, top):
    matrix = drawn(40, kind)
    degrees = np.minimum(matrix.sum(0), 39 if top is None else top)
    est = DegreeDistribution(NONE, method=method, max_degree=top, random_state=0).fit(matrix)
    assert est.degrees_.tolist() == sorted(degrees.tolist(), reverse=True)
    assert np.allclose(est.distribution_, np.bincount(degrees.astype(int), minlength=len(est.distribution_)) / 40)
    assert est.at_least_.tolist() == [(degrees >= k).sum() for k in range((39 if top is None else top) + 1)]


@pytest.mark.parametrize("kind", COVERED)
@pytest.mark.parametrize("method", ["cumulative", "sequence"])
def test_bands_of_degrees_hold_at_once_and_releases_are_distributions(kind, method):
    matrix, held = drawn(30, kind, seed=1), 0
    truth = np.array([(matrix.sum(0) >= k).sum() for k in range(30)])
    for seed in range(25):
        est = DegreeDistribution(0.7, method=method, random_state=seed).fit(matrix)
        low, high = est.confidence_interval(0.8)
        held += ((low <= truth) & (truth <= high)).all()
        assert (low <= high).all()
        assert (np.diff(low) <= 0).all()
        assert (np.diff(high) <= 0).all()
        assert est.distribution_.sum() == pytest.approx(1)
        assert (est.distribution_ >= 0).all()
    assert held >= 14  # (of 25 with probability 0.8: fewer with probability 2e-3)


def test_isotonic_regression_takes_noise_away():
    """Numbers of nodes of at least each degree have half of the variance, at most, where most of them are 0."""
    matrix = drawn(200, "sparse")
    truth, errors = np.array([(matrix.sum(0) >= k).sum() for k in range(200)]), []
    for seed in range(10):
        est = DegreeDistribution(1.0, random_state=seed).fit(matrix)
        errors.append([np.mean((est.at_least_ - truth)[1:] ** 2), np.mean((est.noisy_ - truth[1:]) ** 2)])
    fitted, plain = np.mean(errors, 0)
    assert plain == pytest.approx(2 * math.exp(-0.5) / (1 - math.exp(-0.5)) ** 2, rel=0.2)
    assert fitted < plain / 4


@pytest.mark.parametrize(("matrix", "wanted"), [
    ("adjacency", [19.0, *[-1.0] * 19]), ("laplacian", [*[20.0] * 19, 0.0]),
])
def test_eigenvalues_without_noise_are_those_of_known_spectra(matrix, wanted):
    def known(graph, n):
        return GraphSpectrum(1.0, n_values=n, matrix=matrix)._answers(read_graph(graph))[0] / 2**20

    assert np.abs(known(drawn(20, "complete"), 20) - wanted).max() <= 2**-20
    circle = sparse.coo_array((np.ones(60), (np.r_[:30, 1:30, 0], np.r_[1:30, 0, :30])), shape=(30, 30))
    values = 2 * np.cos(2 * np.pi * np.arange(30) / 30)
    values = np.sort(values if matrix == "adjacency" else 2 - values)[::-1]
    assert np.abs(known(circle, 30) - values).max() <= 2**-20


@pytest.mark.parametrize("kind", COVERED)
def test_bands_of_eigenvalues_hold(kind):
    matrix = drawn(20, kind).astype(float)
    truth, held = np.linalg.eigvalsh(matrix)[::-1][:4], 0
    for seed in range(20):
        est = GraphSpectrum(1.0, n_values=4, random_state=seed).fit(matrix)
        low, high = est.confidence_interval(0.8)
        # (bands end where eigenvalues must; LAPACK's are off in their last bits, on some processors)
        held += ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()
    assert held >= 11  # (binomial: fewer with probability 3e-3)


def test_one_eigenvalue_needs_half_the_noise_and_a_pair_that_moves_most_is_there():
    one, two = (GraphSpectrum(1.0, n_values=k, random_state=0).fit(drawn(9, "dense")) for k in (1, 2))
    assert one.standard_error_ == pytest.approx(two.standard_error_ / 2, rel=1e-4)
    laplacian = GraphSpectrum(1.0, matrix="laplacian", random_state=0).fit(drawn(9, "dense"))
    assert laplacian.standard_error_ == pytest.approx(two.standard_error_, rel=1e-4)


SIDES = np.random.default_rng(5).random((12, 30)) < 0.4


def across(matrix, sides):
    return np.array([matrix[side][:, ~side].sum() for side in sides], float)


@pytest.mark.parametrize(("kind", "delta"), [*((kind, None) for kind in KINDS), ("heavy", 1e-5)])
def test_declared_cuts_are_counted_and_their_intervals_hold(kind, delta):
    matrix, seeds = drawn(30, kind), 4 if delta else 12
    truth, held = across(matrix, SIDES), 0.0
    assert CutEstimator(1.0, cuts=SIDES)._answers(read_graph(matrix))[0].tolist() == truth.tolist()
    for seed in range(seeds):
        est = CutEstimator(1.0, cuts=SIDES, delta=delta, random_state=seed).fit(matrix)
        low, high = est.confidence_interval(0.8)
        held += ((low <= truth) & (truth <= high)).mean() / seeds
    assert held > 0.8 - 3 * math.sqrt(0.16 / (12 * seeds))  # (independent noise: less with probability 1e-3)


def test_the_sensitivity_of_cuts_is_the_most_that_separate_two_nodes():
    for seed in range(5):
        sides = np.random.default_rng(seed).random((7, 9)) < 0.3
        most = max((sides[:, i] != sides[:, j]).sum() for i in range(9) for j in range(9))
        assert CutEstimator(1.0, cuts=sides)._noisy_parts(9)[0].sensitivity == most
    same = CutEstimator(1.0, cuts=[range(9), []], random_state=0).fit(drawn(9, "dense"))  # (no edge crosses these)
    assert same._law.sensitivity == 1
    many = CutEstimator(1.0, cuts=np.random.default_rng(0).random((40, 99)) < 0.5, delta=1e-6)._noisy_parts(99)[0]
    assert many.norm == 2
    assert 1 <= many.sensitivity**2 / max((many.sensitivity**2).__floor__(), 1) < 1 + 1e-9


def test_no_number_of_cuts_is_too_large_to_be_counted_exactly():
    sides = np.zeros((2**24 + 1, 2), bool)
    sides[:, 0] = True
    assert _separated(sides) >= len(sides)


def test_estimates_of_later_cuts_are_exactly_unbiased_with_the_stated_variance():
    """Over all published bits of a graph of three nodes, in fractions."""
    matrix = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    law, sides = PairFlips(CutEstimator(0.7)._budget()[0]), np.array([[True, False, False]])
    truth, f, mean, square = packed(read_graph(matrix)), law.flip, 0, 0
    for code in range(8):
        flips = [code & 1, code >> 1 & 1, code >> 2 & 1]  # of 01, 02 and 12
        bits = truth ^ np.array([[flips[0] << 1 | flips[1] << 2], [flips[2] << 2], [0]], np.uint8)
        weight = math.prod((f if flip else 1 - f) for flip in flips)
        est = CutEstimator(0.7, random_state=0).fit(matrix)
        est.noisy_pairs_ = bits
        value = est.estimate(sides)[0]
        mean, square = mean + weight * value, square + weight * value**2
    assert mean == pytest.approx(1.0, abs=1e-12)
    assert math.sqrt(square - mean**2) == pytest.approx(est.standard_error(sides)[0], rel=1e-12)
    assert law.variance == pytest.approx(math.exp(0.7) / (math.exp(0.7) - 1) ** 2, rel=1e-12)


@pytest.mark.parametrize("kind", COVERED)
def test_later_cuts_are_within_their_bounds(kind):
    matrix, held = drawn(30, kind), 0.0
    truth, edges = across(matrix, SIDES), matrix.sum() / 2
    for seed in range(25):
        est = CutEstimator(1.0, random_state=seed).fit(matrix)
        error = est.estimate(SIDES) - truth
        held += (np.abs(error) <= est.error_bound(SIDES, 0.8)).mean() / 25
        assert (np.abs(error) <= est.error_bound(SIDES, 0.5, all_cuts=True)).all()
        low, high = est.confidence_interval(0.999)
        assert low[0] <= edges <= high[0]
    assert held > 0.8
    assert CutEstimator(NONE, random_state=0).fit(matrix).estimate(SIDES) == pytest.approx(truth, abs=1e-3)


def test_the_proxy_bounds_the_moments_of_a_bit():
    """E e^(t (B - p)) <= e^(t^2 c / 2), and no smaller c would do: at t = 2 ln((1 - p) / p) they are equal."""
    for epsilon in (0.1, 1.0, 5.0):
        law = PairFlips(CutEstimator(epsilon)._budget()[0])
        for p in (float(law.flip), float(1 - law.flip)):
            t = np.concatenate([np.linspace(-30, 30, 4001), [2 * math.log(float(1 / p - 1))]])
            moment = np.log1p(p * np.expm1(t)) - t * p
            bound = t**2 * law.proxy * law.gain**2 / 2
            assert (moment <= bound + 1e-12).all()
            assert moment[-1] == pytest.approx(bound[-1], rel=1e-9)


def test_bits_below_the_diagonal_mean_nothing():
    bits = upper(np.full((19, 3), 255, np.uint8))
    assert np.array_equal(np.unpackbits(bits, axis=1, count=19, bitorder="little"), np.triu(np.ones((19, 19)), 1))


@pytest.mark.parametrize("est", [DegreeDistribution(1.0, random_state=0), GraphSpectrum(1.0, random_state=0),
                                 CutEstimator(1.0, cuts=[[0]], random_state=0), CutEstimator(1.0, random_state=0)])
def test_ledgers_pickles_clones_and_tables(est):
    matrix, edges, rows = drawn(20, "sparse"), Ledger(3, neighbours="edge"), Ledger(3)
    fit = clone(est).set_params(ledger=edges).fit(matrix)
    assert edges.spent().epsilon == 1
    with pytest.raises(ValueError, match='neighbours="edge"'):
        clone(est).set_params(ledger=rows).fit(matrix)
    assert rows.spent().is_nothing
    again = pickle.loads(pickle.dumps(clone(est).fit(matrix)))
    assert np.array_equal(getattr(again, est._released), getattr(fit, est._released))
    frame = again.result_.to_frame()
    assert len(frame) == len(np.atleast_1d(getattr(fit, est._released)))
    assert "edge" in again.privacy_.neighbours.sentence
    for level in (0, 1, True):
        with pytest.raises(ValueError, match="level"):
            again.confidence_interval(level)


@pytest.mark.parametrize(("est", "words"), [
    (GraphSpectrum(1.0, n_values=6), "n_values must be at most"),
    (CutEstimator(1.0, cuts=[[5]]), "cuts must be a list"),
    (CutEstimator(1.0, cuts=np.ones((2, 4), bool)), "cuts must be a list"),
    (CutEstimator(1.0, delta=0.1), "delta must be None"),
])
def test_parameters_that_do_not_suit_the_graph_are_refused_before_the_charge(est, words):
    ledger = Ledger(3, neighbours="edge")
    with pytest.raises(ValueError, match=words):
        est.set_params(ledger=ledger).fit(drawn(5, "dense"))
    assert ledger.spent().is_nothing


def test_graphs_that_are_too_large_are_refused():
    for est, n, words in ((GraphSpectrum(1.0), 5001, "at most 5000 nodes"), (CutEstimator(1.0), 20_001, "declared")):
        with pytest.raises(ValueError, match=words):
            est.fit(sparse.csr_array((n, n)))


def test_what_is_not_published_is_not_answered():
    declared = CutEstimator(1.0, cuts=[[0]], random_state=0).fit(drawn(9, "dense"))
    for ask in (declared.estimate, declared.standard_error, declared.error_bound):
        with pytest.raises(ValueError, match="cuts=None"):
            ask([[1]])
    later = CutEstimator(1.0, random_state=0).fit(drawn(9, "dense"))
    for confidence in (0, 1, True):
        with pytest.raises(ValueError, match="confidence"):
            later.error_bound([[1]], confidence)
