"""What an audit takes: outputs of any kind, declared data, estimators of all models, and side channels."""

import pickle
import random
import secrets
import time
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpestim import Categories, Domain, Numbers, config_context
from dpestim.accounting import Ledger
from dpestim.audit import assert_private, audit, audit_model
from dpestim.audit.running.channels import Twice
from dpestim.audit.running.outputs import Columns, Raised, lowest_bit
from dpestim.audit.running.pairs import pairs_of
from dpestim.audit.running.plans import claim_of, rounds_of
from dpestim.audit.running.sampling import Caller
from dpestim.audit.running.search import Search
from dpestim.audit.running.subjects import caller_of, released
from dpestim.central import ExponentialMechanism, LaplaceMechanism
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph import (
    ControlFlowCoverage,
    CutEstimator,
    DegreeDistribution,
    GraphSpectrum,
    NodeSubgraphCount,
    PageRankEstimator,
    RNLTransformer,
    SubgraphCount,
)
from dpestim.local import GRRFrequencyEstimator, MeanEstimator, PMTransformer, URRFrequencyEstimator
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.statistics import Sum

SHARED = {"n_samples": 3000, "random_state": 0}


class Remembers:
    """Noise from a generator that a copy has, too."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x + self.rng.laplace()


class Careless:
    """A model of scikit-learn's kind whose fit shows whether it has seen a row above 10."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, **params):
        self.random_state = params.get("random_state", self.random_state)
        return self

    def fit(self, X, y=None):
        self.mean_ = float(np.mean(X) > 2) + np.random.default_rng(self.random_state).random()
        self._secret = X
        return self


def leak(kind):
    """A function that leaks by outputs of some kind."""
    return {
        "dict": lambda x, rng: {"noise": rng.random(), "flag": bool(x)},
        "text": lambda x, rng: "big" if x > rng.random() else "small",
        "ragged": lambda x, rng: [rng.random()] * (1 + x),
        "missing": lambda x, rng: float("nan") if x else rng.random(),
        "nothing": lambda x, rng: None if x else "something",
        "array": lambda x, rng: np.array([[rng.random(), 2.0 * x], [0.0, 1.0]]),
        "two sides": lambda x, rng: (1 + 9 * x) * rng.choice([-1, 1]) * (rng.random() + 0.5),
        "sign of zero": lambda x, rng: -0.0 if x else 0.0,
        "parity": lambda x, rng: (lambda bit: ("ab"[bit], "cd"[bit ^ x]))(int(rng.integers(2))),
        "large integers": lambda x, rng: 10**400 * x + int(rng.integers(2)),
    }[kind]


@pytest.mark.parametrize(("kind", "words"), [
    ("dict", "['flag']"), ("text", "is"), ("ragged", "len(output)"), ("missing", "output"), ("nothing", "output is"),
    ("array", "output[0][1]"), ("two sides", "output"), ("sign of zero", "the sign bit of output"),
    ("parity", "the output is"), ("large integers", "output")])
def test_outputs_of_any_kind_are_told_apart(kind, words):
    found = audit(leak(kind), [(0, 1)], claim=1.0, side_channels=() if kind == "two sides" else ("bits",), **SHARED)
    assert found.violated
    assert words in found.event


LARGE_OR_MIXED = {
    "numbers or nothing": lambda x, rng: rng.random() if x else None,
    "numbers or exceptions": lambda x, rng: rng.random() / (1 - x),
    "integers above 2^53": lambda x, rng: 2**60 + x,
    "frame": lambda x, rng: pytest.importorskip("pandas").DataFrame({"age": [1 + x * 1e-12] * 100}),
    "rows of a frame": lambda x, rng: pytest.importorskip("pandas").Series(["a", "b"][x:]).value_counts(),
    "sparse": lambda x, rng: sparse.csr_matrix([[1.0 + x, 0.0]]),
    "masked": lambda x, rng: np.ma.array([rng.random(), 2.0], mask=[False, bool(x)]),
    "wide": lambda x, rng: np.r_[rng.random(700), x],
    "deep": lambda x, rng: np.full((2, 2, 200), rng.random()) + x,
}


@pytest.mark.parametrize(("kind", "words"), [
    ("numbers or nothing", "output is"), ("numbers or exceptions", "output is"), ("integers above 2^53", "by 2^32"),
    ("frame", "output['age']"), ("rows of a frame", "output.index"), ("sparse", "output[0][0]"),
    ("masked", "output[1] is"), ("wide", "output[700]"), ("deep", "output")])
def test_mixed_and_large_outputs_and_those_of_libraries_are_read(kind, words):
    found = audit(LARGE_OR_MIXED[kind], [(0, 1)], claim=1.0, n_samples=400, random_state=0)
    assert found.violated
    assert words in found.event


@pytest.mark.parametrize(("mechanism", "pairs", "message"), [
    (lambda x: (i for i in range(x)), [(0, 1)], "and returned a generator"),
    (lambda x: object(), [(0, 1)], "cannot read"),
    (len, [((i for i in [1]), [1])], "data that can be copied, and not a generator"),
    (lambda x: int("b"), [(0, 1)], "invalid literal")])
def test_what_cannot_be_read_or_copied_is_refused(mechanism, pairs, message):
    with pytest.raises(ValueError, match=message):
        audit(mechanism, pairs, claim=1.0, n_samples=400)


def test_large_outputs_that_are_not_read_as_a_whole_are_told():
    found = audit(lambda x, rng: rng.random(300), [(0, 1)], claim=1.0, n_samples=400, random_state=0)
    assert "not all of its numbers were read" in str(found)


def test_a_test_with_too_few_outputs_to_refute_the_claim_says_so():
    found = audit(lambda x: x, [(0, 1)], claim=8.0, n_samples=400, random_state=0)
    assert "too few outputs to refute" in str(found)
    with pytest.raises(ValueError, match="cannot refute epsilon 8"):
        assert_private(lambda x: x, epsilon=8.0, pairs=[(0, 1)], n_samples=400)
    assert not assert_private(lambda x: 3, epsilon=8.0, pairs=[(0, 1)], n_samples=400).violated  # (always the same)


def test_a_test_is_shorter_where_calls_became_slower():
    now = time.perf_counter()
    for is_fixed, n, least, most in ((False, 200_000, 64, 70_000), (False, 1_000, 1_000, 1_000),
                                     (True, 10**7, 10**7, 10**7)):
        search = Search([], claim_of(1.0), 1e-3, False, None, 0, is_fixed)
        search.paces[0] = 1e-3  # (seconds for an output with each of the data)
        assert least <= search._in_time(0, n, now + 100, now + 200) <= most < 10**8
        assert search.was_short == (n > most)


def test_outputs_that_never_change_tell_nothing():
    found = audit(lambda x: 3, [(0, 1)], claim=0.0, n_samples=400)
    assert (found.epsilon_lower, found.violated, found.event) == (0.0, False, "none")
    assert "were the same" in str(found)
    appended = audit(lambda x: x.append(0) or len(x), [([], [])], claim=0.0, n_samples=400)  # (to copies)
    assert appended.event == "none"


def test_a_test_that_comes_too_late_counts_for_nothing():
    calls = []

    def ever_slower(x):
        calls.append(x)
        time.sleep(0.3 * (len(calls) > 20))
        return x

    found = audit(ever_slower, [(0, 1)], claim=0.0, n_samples=4000, time_limit=0.4, random_state=0)
    assert (found.epsilon_lower, found.violated) == (0.0, False)
    assert "raise time_limit" in str(found)


def test_columns_are_the_same_for_other_outputs():
    seen = [(1.0, "a"), (2.5, "b"), Raised(ValueError()), (float("nan"), "a")]
    reader = Columns(seen)
    one, two = reader.read(seen), reader.read([*seen, (7.0, "new"), (1, 2, 3), None])
    for k in one:
        np.testing.assert_array_equal(one[k], two[k][:4])
        np.testing.assert_array_equal(reader.read(seen, [k])[k], one[k])
    place = reader.names.index("output[1]")
    assert two[place].tolist()[4:] == [-1, -1, reader.labels[place]["nothing"]]  # (new, and not there)
    assert lowest_bit(np.array([1.0, 0.5, 6.0, 0.0, np.inf, 2.0**-1074])).tolist()[:4] == [0, -1, 1, np.inf]


def test_pairs_are_made_of_what_is_declared():
    relation = {name: PrivacyGuarantee(1, model="central", neighbours=name) for name in (
        Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE)}
    assert pairs_of(Numbers(0, 10), claim_of(1))[0] == (0.0, 10.0)
    assert pairs_of(Categories(["a", "b", "c"]), claim_of(1)) == [("a", "c"), ("a", "b"), ("b", "c")]
    rows = pairs_of([Numbers(0, 1), Numbers(2, 3)], claim_of(1))
    assert rows == [([0, 2], [1, 3]), ([0, 2], [1, 2]), ([0, 2], [0, 3])]
    domain = Domain({"age": (0, 100), "sex": ["F", "M"]})
    for name, claim in relation.items():
        for data, neighbour in pairs_of(domain, claim_of(claim)):
            same = name is Neighbours.SUBSTITUTION
            assert len(data) == len(neighbour) + (not same)
            assert (data[: len(neighbour)] != neighbour).any(axis=1).sum() <= same
    with pytest.raises(ValueError, match="part of the claim"):
        pairs_of(domain, claim_of(1))
    with pytest.raises(ValueError, match="pairs must be"):
        audit(abs, claim=1.0)


@pytest.mark.parametrize("n", [8, 100, 6000, 100_000])
def test_rounds_spend_the_error_once(n):
    for several in (1, 5):
        rounds = rounds_of(n, several, False)
        assert sum(one.share for one in rounds) == pytest.approx(1)
        assert sum(2 * (several * one.pilot + one.test) for one in rounds) <= max(n, 2 * several + 4)


def test_reports_of_local_estimators_are_audited_from_their_declaration():
    grr = GRRFrequencyEstimator(1.0, categories=[["red", "green", "blue"]])
    assert 0.6 < audit(grr, claim=1.0, **SHARED).epsilon_lower < 1
    assert audit(grr, [([["red"]], [["blue"]])], claim=0.5, **SHARED).violated
    assert audit(MeanEstimator(PMTransformer(2.0, bounds=(0, 1))), claim=1.0, **SHARED).violated
    relaxed = URRFrequencyEstimator(1.0, categories=[[0, 1, 2, 3]], non_sensitive=[[2, 3]])
    assert audit(relaxed, claim=relaxed.privacy_.relaxed_epsilon or 1.0, **SHARED).violated
    for wrong in ([["red"], ["red"]], "red", ["red"], 3, None):
        with pytest.raises(ValueError, match="one row"):
            audit(grr, [(wrong, wrong)], claim=1.0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_data(library):
    frame = pytest.importorskip(library).DataFrame
    grr = GRRFrequencyEstimator(1.0, categories={"colour": ["red", "blue", None]})
    rows = [frame({"colour": np.array([value], object)}) for value in ("red", "blue")]
    with config_context(strict=True):
        found = audit(grr, [tuple(rows)], claim=0.5, **SHARED)
    assert found.violated
    assert audit(grr, claim=0.5, **SHARED).violated  # (rows are made of what is declared, by name too)
    assert audit(PMTransformer(1.0, bounds={"x": (0, 10), "y": (-5, 5)}), claim=0.4, **SHARED).violated
    kind = Sum(1.0, bounds=(0, 1))
    with pytest.raises(ValueError, match="pairs must be given"):
        audit(Sum(1.0, bounds={"x": (0, 1)}), claim=1.0)
    found = audit(kind, [(frame({"x": [0.0, 0.0]}), frame({"x": [0.0, 1.0]}))], claim=1.0, n_samples=100,
                  random_state=0)
    assert not found.violated


def test_mechanisms_and_fits_of_the_central_model_are_audited():
    assert audit(LaplaceMechanism(1.0, sensitivity=1.0), claim=0.5, **SHARED).violated
    assert not audit(LaplaceMechanism(1.0, bounds=(0, 2), sensitivity=1.0), claim=1.0, **SHARED).violated
    assert not audit(ExponentialMechanism(1.0, sensitivity=1.0), claim=1.0, n_samples=100, random_state=0).violated
    kind = Sum(3.0, bounds=(0, 1), neighbours="add_remove")
    found = audit(kind, claim=kind.privacy_, n_samples=300, random_state=0)
    assert not found.violated
    assert found.epsilon_lower > 0
    # (a number that is claimed is about the relation of the estimator: a replaced row may cost twice as much)
    pairs = caller_of(Sum(1.0, bounds=(-1, 1), neighbours="add_remove"), False).pairs(claim_of(1.0))
    assert {abs(len(a) - len(b)) for a, b in pairs} == {1}
    found = audit(Careless(), [(np.zeros((3, 1)), np.full((3, 1), 20.0))], claim=1.0, n_samples=120, random_state=0)
    assert found.violated
    assert found.event.startswith("output['mean_']")
    steps = make_pipeline(FunctionTransformer(), Sum(8.0, bounds=(0, 1)))
    found = audit(steps, [(np.zeros((3, 1)), np.ones((3, 1)))], claim=1.0, n_samples=120, random_state=0)
    assert "['sum']" in found.event


def test_claims_about_edges_are_not_audited_by_rows():
    edge = PrivacyGuarantee(1, model="central", neighbours=Neighbours.EDGE)
    with pytest.raises(ValueError, match="pairs must be given for a claim about edges"):
        audit(Sum(1.0, bounds=(0, 1)), claim=edge)
    table = np.zeros((20, 3))
    for model, claim in ((SubgraphCount(1.0), None), (Sum(1.0, bounds=(0, 1)), edge)):
        with pytest.raises(ValueError, match="claim must be about rows"):
            audit_model(model, table, claim=claim)


class OneEndOfTwo(DegreeDistribution):
    """Noise for one of the two nodes of an edge."""

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(2 * self._budget()[0], Fraction(0), Fraction(1), 0)]


def test_graphs_are_audited_by_edges_without_pairs():
    edge = PrivacyGuarantee(1, model="central", neighbours=Neighbours.EDGE)
    assert not audit(SubgraphCount(1.0), claim=edge, n_samples=10, random_state=0).violated
    pairs = caller_of(CutEstimator(1.0, cuts=[[20]]), False).pairs(claim_of(1.0))
    assert all(a.shape == (21, 21) and abs(a.astype(int) - b).sum() == 2 and (b == b.T).all() for a, b in pairs)
    assert audit(OneEndOfTwo(1.0, max_degree=1), claim=1.0, n_samples=200, random_state=0).violated
    names = {name for est in (GraphSpectrum(1.0), CutEstimator(1.0), PageRankEstimator(1.0))
             for name in released(est.fit(pairs[0][0]))}
    assert names >= {"noisy_", "noisy_pairs_", "degrees_"}  # (all that is published)


class TellsTheRow(RNLTransformer):
    """Reports a neighbour list as it is."""

    def privatize(self, X, users=None):
        return np.asarray(X)


def test_lists_nodes_and_runs_are_audited_by_their_own_neighbours():
    for lists, shape in (("half", (12, 12)), ("whole", (1, 12))):
        found = caller_of(TellsTheRow(1.0, lists=lists), False)
        for one, two in found.pairs(claim_of(1.0)):
            a, b = (found.output(found.seeded(np.random.default_rng(0)), data) for data in (one, two))
            assert a.shape == shape
            assert np.abs(a.astype(int) - b).sum() == {"half": 2, "whole": 1}[lists]
        assert audit(TellsTheRow(1.0, lists=lists), claim=1.0, n_samples=160, random_state=0).violated
        quiet = caller_of(RNLTransformer(1.0, lists=lists), False)
        assert quiet.output(quiet.seeded(np.random.default_rng(0)), quiet.pairs(claim_of(1.0))[0][0]).ndim == 2
    for more, less in caller_of(NodeSubgraphCount(1.0), False).pairs(claim_of(1.0)):
        assert np.array_equal(more[:-1, :-1], less)
    runs = ControlFlowCoverage(1.0, flow={0: [1], 1: [2], 2: []})
    assert not audit(runs, claim=1.0, n_samples=160, random_state=0).violated


def test_an_audit_charges_nothing_and_is_refused_where_it_would():
    book = Ledger(3.0, durability="fast")
    grr = GRRFrequencyEstimator(1.0, categories=[["a", "b"]], ledger=book)
    assert not audit(grr, claim=1.0, **SHARED).violated
    assert not len(book)
    with book, pytest.raises(ValueError, match="outside of `with ledger:`"):
        audit(grr, claim=1.0)
    with book, pytest.raises(ValueError, match="outside of `with ledger:`"):
        audit(lambda x: LaplaceMechanism(1.0, sensitivity=1).release(x), [(0.0, 1.0)], claim=1.0)
    own = LaplaceMechanism(1.0, sensitivity=1, ledger=book)
    with pytest.raises(ValueError, match="pass the estimator itself"):
        audit(own.release, [(0.0, 1.0)], claim=1.0)
    with pytest.raises(ValueError, match="must not charge a ledger"):  # (and no verdict)
        audit(lambda x: own.release(x), [(0.0, 1.0)], claim=1.0)
    with pytest.raises(ValueError, match="must not charge a ledger"):
        audit(lambda x, n: [own.release(x) for _ in range(n)], [(0.0, 1.0)], claim=1.0, batch=True)
    assert not len(book)

    def with_a_ledger_of_its_own(x):
        with Ledger(1.0, durability="fast"):
            return LaplaceMechanism(1.0, sensitivity=1).release(x)

    assert not audit(with_a_ledger_of_its_own, [(0.0, 1.0)], claim=1.0, n_samples=40, random_state=0).violated
    own.release(0.0)
    assert len(book) == 1


@pytest.mark.parametrize(("channel", "mechanism", "words"), [
    ("repeats", lambda x: x + np.random.default_rng(7).laplace(), "output"),
    ("pickles", Remembers(), "what two copies by pickle return is 'the same'"),
    # (of many lengths, as those of one length are all shorter or longer where the processor changes its pace)
    pytest.param("time", lambda x, rng: (sum(range(x * int(rng.integers(4_000, 60_000)))), rng.random())[1],
                 "the seconds of a call", marks=pytest.mark.law),
])
def test_side_channels_are_looked_at_where_they_are_asked_for(channel, mechanism, words):
    found = audit(mechanism, [(0, 1)], claim=2.0, side_channels=(channel,), n_samples=1200, random_state=0)
    assert found.violated
    assert words in found.event
    if channel == "pickles":
        assert not audit(mechanism, [(0, 1)], claim=2.0, side_channels=(), n_samples=1200, random_state=0).violated
        with pytest.raises(ValueError, match="what pickle takes"):
            audit(lambda x: x, [(0, 1)], claim=1.0, side_channels=("pickles",))
        with pytest.raises(ValueError, match="its own noise"):
            audit(lambda x, rng: x, [(0, 1)], claim=1.0, side_channels=("repeats",))
        with pytest.raises(ValueError, match="batch"):
            audit(mechanism, [(0, 1)], claim=1.0, side_channels=("pickles",), batch=True)


def test_forks_with_the_same_noise_are_found():
    draw = Twice(Caller(Remembers(), False), "forks").draw  # (a fork takes milliseconds)
    assert draw((0, 0), 1, None, np.inf) == ["the same"]
    assert draw((0, 1), 1, None, np.inf) == ["different outputs"]
    fresh = Twice(Caller(lambda x: x + secrets.randbits(60), False), "forks")
    assert fresh.draw((0, 0), 1, None, np.inf) == ["different outputs"]


def test_events_can_be_given():
    events = {"output >= 1": lambda y: y >= 1, "output is odd": lambda y: round(y) % 2}
    found = audit(lambda x, rng: x + rng.laplace(scale=0.3), [(0, 1)], claim=1.0, events=events, **SHARED)
    assert found.violated
    assert found.event == "output >= 1"


def test_generators_of_the_process_stay_as_they_were_and_results_travel():
    np.random.seed(3)
    random.seed(3)
    expected = np.random.random(), random.random()
    np.random.seed(3)
    random.seed(3)
    both = [audit(lambda x: x + np.random.laplace() + random.random(), [(0, 1)], claim=1.0, **SHARED)
            for _ in range(2)]
    assert both[0].counts == both[1].counts
    assert (np.random.random(), random.random()) == expected
    assert str(pickle.loads(pickle.dumps(both[0]))) == str(both[0])


def test_estimators_without_data_of_their_own_ask_for_pairs():
    with pytest.raises(ValueError, match="pairs must be given"):
        audit(Careless(), claim=1.0)
