"""Neighbour lists under local privacy: exact flips and noise, intervals, ledgers, users apart, and what is refused."""

import importlib.util
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import chain, count, islice, product, repeat
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binom
from sklearn.exceptions import NotFittedError

from dpestim import config_context, distributed
from dpestim._core import lists as kernel
from dpestim.accounting import Ledger
from dpestim.audit import audit
from dpestim.audit.running.subjects import ListReports
from dpestim.graph import DegreeEstimator, EdgeCountEstimator, RNLTransformer, SubgraphCount
from dpestim.graph.lists.flips import BitLaw, GapTable, Runs, gap_table
from dpestim.graph.lists.intervals import Ones
from dpestim.graph.lists.two_sided import TwoSidedLaw
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.rng import WordSource

WORD = 1 << 64


def drawn(n, share=0.2, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    return (upper | upper.T).astype(np.uint8)


# ---------------------------------------------------------------- gaps between flips

@pytest.mark.parametrize("q", [Fraction(1, 3), Fraction(1, 2), Fraction(1, 150), Fraction(12345, WORD),
                               BitLaw(Fraction(1)).q, BitLaw(Fraction(70)).q])
def test_thresholds_are_those_of_fractions(q):
    table = gap_table(q)
    for k in (0, 1, 2, 3, 7, min(table.longest, 1000)):
        assert int(table.thresholds[k]) == math.floor(WORD * (1 - (1 - q) ** k))
    cells = np.arange(1 << table.bits).astype(np.uint64) << np.uint64(64 - table.bits)
    assert (table.thresholds[table.guide] <= cells).all()


def gap_by_fractions(q, words, longest):
    """Return the gap of a number whose digits in base 2^64 are given, and then zeros."""
    u = sum(Fraction(word, WORD ** (k + 1)) for k, word in enumerate(words))
    return max(k for k in range(min(longest, 20) + 1) if 1 - (1 - q) ** k <= u)


@pytest.mark.parametrize("q", [Fraction(1, 3), Fraction(2, 7), BitLaw(Fraction(30)).q])
def test_a_word_that_equals_a_threshold_is_decided_by_the_words_that_follow(q):
    """... and for q = 2 / 7 the kernel hands over just these words; one word alone would be wrong for half of them."""
    table, wrong = GapTable(q), 0
    for k in (1, 2, 5):
        tie = int(table.thresholds[k])
        for second in (0, 1, WORD // 7, WORD // 2, WORD - 1):
            found = table.gap(chain([tie, second], repeat(0)))
            assert found == gap_by_fractions(q, [tie, second], table.longest)
            wrong += found != k
        words, out = np.array([tie, 5], np.uint64), np.zeros(2, np.int32)
        counts, places, used = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32)
        kernel.flips(words, 2, np.array([100]), table.thresholds, table.guide, table.bits, out, counts, places, used)
        assert (counts[0], places[0], used[0]) == (0, 0, 0)
    assert wrong


def test_flips_are_those_of_one_word_after_the_other():
    """The kernel and the walk in Python agree, also for users whose first words are not enough."""
    law, n = BitLaw(Fraction(1)), 400
    runs, table = Runs(law, n, True), gap_table(BitLaw(Fraction(1)).q)
    flips, counts = law.draw(WordSource(0), np.arange(n), n, True)
    runs_short = Runs(law, n, True)
    runs_short._per = lambda size: 3  # so that nearly every user needs more
    for some in (runs, runs_short):
        reader, at = WordSource(0).reader(), 0
        found, numbers = some.draw(reader, np.arange(min(some.length, 50)))
        first = runs.draw(WordSource(0).reader(), np.arange(min(some.length, 50)))
        assert len(numbers) == len(first[1])
        for user, size in enumerate(numbers.tolist()):
            own = found[at : at + size]
            assert (np.diff(own) > 0).all()
            assert not size or own[-1] < n - 1 - user
            at += size
        expected = sum(n - 1 - user for user in range(len(numbers))) * float(law.q)
        assert abs(at - expected) < 6 * math.sqrt(expected)
    assert counts.sum() == len(flips)
    words = np.random.default_rng(0).integers(0, WORD, 600, np.uint64)
    out, done = np.zeros(600, np.int32), [np.zeros(1, t) for t in (np.int32, np.int64, np.int32)]
    total = kernel.flips(words, 600, np.array([800]), table.thresholds, table.guide, table.bits, out, *done)
    assert out[:total].tolist() == table.walk(iter(words.tolist()), 0, 800)
    assert done[1][0] == -1


@pytest.mark.parametrize("half", [True, False])
def test_exchanged_lists_are_exclusive_or(half):
    rng, n = np.random.default_rng(1), 30
    X = drawn(n, 0.3)
    slots = [np.array([j for j in range(n) if (j > i if half else j != i)], np.int64) for i in range(n)]
    flips = [np.flatnonzero(rng.random(len(own)) < 0.4).astype(np.int32) for own in slots]
    graph = sparse.csr_array(X)
    out, lengths = np.zeros(2 * n * n, np.int32), np.zeros(n, np.int64)
    total = kernel.exchange(np.concatenate(flips), np.array([len(f) for f in flips], np.int32),
                            graph.indices.astype(np.int32), graph.indptr.astype(np.int64), np.arange(n), half, out,
                            lengths)
    expected = [sorted(set(own[flip]) ^ (set(np.flatnonzero(X[i])) & set(own)))
                for i, (own, flip) in enumerate(zip(slots, flips))]
    assert np.split(out[:total], np.cumsum(lengths)[:-1])[3].tolist() == expected[3]
    assert out[:total].tolist() == [j for own in expected for j in own]
    for wrong in (np.arange(n - 1), np.arange(n + 1)):
        with pytest.raises(ValueError, match="differ in length"):
            kernel.exchange(np.concatenate(flips), np.zeros(n, np.int32), graph.indices, graph.indptr.astype(np.int64),
                            wrong, half, out, lengths)


# ---------------------------------------------------------------- noise of numbers, intervals

@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2])
def test_half_widths_of_sums_are_those_of_convolutions(epsilon):
    law, values = TwoSidedLaw(Fraction(epsilon)), np.arange(-200, 201)
    one = law.chances(values)
    assert one.sum() == pytest.approx(1)
    assert (one * values**2).sum() == pytest.approx(law.variance)
    assert np.allclose(np.cumsum(one), law.cdf(values))
    for n in (1, 2, 5):
        chances = one
        for _ in range(n - 1):
            chances = np.convolve(chances, one)
        for level in (0.5, 0.95, 0.999):
            half, mid = law.half_width(n, level), len(chances) // 2
            inside = [chances[mid - h : mid + h + 1].sum() for h in (half - 1, half)]
            assert inside[0] < level <= inside[1] + 1e-9
    coarse = TwoSidedLaw(Fraction(1, 100_000)).half_width(1, 0.95)
    assert coarse == pytest.approx(100_000 * math.log(20), rel=0.01)


@pytest.mark.parametrize(("epsilon", "slots"), [(0.3, 12), (1, 30), (4, 60), (7, 60), (0.5, 2500)])
def test_intervals_of_ones_cover_exactly(epsilon, slots):
    """By enumeration of all numbers of ones, for numbers of neighbours from none to all; half of the width does not."""
    law = BitLaw(Fraction(epsilon))
    ones = Ones(law, slots)
    worst = 1.0
    low, high = ones.interval(np.arange(slots + 1), 0.95)
    assert (low <= high).all()
    for t in {0, 1, slots // 10, slots // 3, slots // 2, slots - 1, slots}:
        chances = np.convolve(binom.pmf(np.arange(t + 1), t, ones.p),
                              binom.pmf(np.arange(slots - t + 1), slots - t, ones.q))
        if slots < 200:
            assert np.allclose(np.cumsum(chances), ones.cdf(np.arange(slots + 1), t))
        assert chances[(low <= t) & (t <= high)].sum() >= 0.95
        quarter = (high - low) / 4
        worst = min(worst, chances[(low + quarter <= t) & (t <= high - quarter)].sum())
    assert worst < 0.95


@pytest.mark.ci
def test_intervals_hold_for_graphs_of_all_kinds():
    """Sampled: empty, complete, sparse and heavy-tailed graphs; each of the methods and kinds of lists by itself."""
    n, heavy, seeds = 24, np.zeros((24, 24), np.uint8), count()
    heavy[0, 1:] = heavy[1:, 0] = 1
    held, total = Counter(), Counter()
    for X in (np.zeros((n, n), np.uint8), 1 - np.eye(n, dtype=np.uint8), drawn(n, 0.1), heavy):
        for params in (*EdgeCountEstimator._test_params(), *DegreeEstimator._test_params()):
            cls = DegreeEstimator if params in DegreeEstimator._test_params()[1:] else EdgeCountEstimator
            for seed in islice(seeds, 6):  # (noise belongs to a seed and a user: no two graphs may have the same)
                est = cls(**params, random_state=seed).fit(X)
                low, high = est.confidence_interval(0.9)
                truth = X.sum(axis=1) if cls is DegreeEstimator else X.sum() / 2
                case = f"{cls.__name__} {params}"
                held[case] += np.mean((low <= truth) & (truth <= high))
                total[case] += 1
    # (by exact tests at least 0.9 hold; shares of nodes vary less than one interval does)
    assert not [case for case in held if held[case] < binom.ppf(1e-3, total[case], 0.9)]


# ---------------------------------------------------------------- whom reports protect, and who pays

def test_an_edge_costs_twice_if_both_users_report_it():
    whole, half = RNLTransformer(1.0, lists="whole").privacy_, RNLTransformer(1.0).privacy_
    assert (whole.neighbours, whole.epsilon, whole.model) == (Neighbours.LIST, 1, "local")
    assert whole.to("edge").epsilon == 2
    assert (half.neighbours, half.epsilon) == (Neighbours.EDGE, 1)
    assert "twice" in str(whole)
    assert whole <= PrivacyGuarantee(2, model="local", neighbours=Neighbours.EDGE)
    assert not whole <= half
    assert (whole + half).neighbours is Neighbours.EDGE
    assert (whole + half).epsilon == 3
    for other in (Neighbours.LOCAL, Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE):
        with pytest.raises(ValueError, match='neighbours="list"'):
            whole.to(other)
    with pytest.raises(ValueError, match='neighbours="edge"'):
        half.to(Neighbours.LIST)
    delta = PrivacyGuarantee(1, 0.001, "local", Neighbours.LIST).to("edge").delta
    assert float(delta) == pytest.approx(0.001 * (1 + math.e))


def test_ledgers_of_edges_and_of_lists_pay():
    X = drawn(12)
    for lists, neighbours in product(("half", "whole"), ("edge", "list")):
        cost = 2 if (lists, neighbours) == ("whole", "edge") else 1
        ledger = Ledger(3, neighbours=neighbours, durability="fast")
        EdgeCountEstimator(1.0, lists=lists, ledger=ledger).fit(X)
        assert ledger.spent().epsilon == cost
        with ledger:
            RNLTransformer(0.5, lists=lists).privatize(X)
        assert ledger.spent().epsilon == 1.5 * cost
    rows = Ledger(3, durability="fast")
    with pytest.raises(ValueError, match=r'neighbours="(edge|list)"'):
        EdgeCountEstimator(1.0, ledger=rows).fit(X)
    assert rows.spent().is_nothing


# ---------------------------------------------------------------- users and servers apart

@pytest.mark.parametrize("reports", ["packed", "sparse"])
@pytest.mark.parametrize("lists", ["half", "whole"])
def test_debiased_matrices_are_unbiased_and_noisy_graphs_are_graphs(lists, reports):
    X, rnl = drawn(40), RNLTransformer(2.0, lists=lists, reports=reports, random_state=0)
    sent = rnl.privatize(X)
    dense, noisy = rnl.debiased(sent), rnl.decode(sent)
    assert np.array_equal(dense, dense.T)
    assert np.array_equal(rnl.transform(X).toarray(), noisy.toarray())
    law, pairs = rnl.bit_law_, np.triu_indices(40, 1)
    errors = (dense - X)[pairs]
    variance = law.variance / (1 if lists == "half" else 2)
    assert abs(errors.mean()) < 4.5 * math.sqrt(variance / len(errors))
    assert abs(errors.var() / variance - 1) < 0.3
    if lists == "half":
        SubgraphCount(1.0).fit(noisy)
    some = rnl.debiased(sent[[0, 3]], [0, 3], 40)
    assert np.array_equal(np.isnan(some[5]), np.isin(np.arange(40), [0, 3, 5], invert=True) | (
        np.isin(np.arange(40), [0, 3]) & np.isnan(dense[5])))


def test_servers_take_both_forms_and_refuse_what_no_client_sends():
    X, est = drawn(20), EdgeCountEstimator(1.0, method="rnl", random_state=0)
    ones, bits = (RNLTransformer(1.0, reports=reports, random_state=0).privatize(X) for reports in ("sparse", "packed"))
    assert est.aggregate(ones).edges_ == EdgeCountEstimator(1.0, method="rnl").aggregate(bits).edges_
    lower = ones.T.tocsr()
    beyond = bits.copy()
    beyond[:, -1] |= 128
    for bad, words in ((lower, "higher number"), (beyond, "beyond the 20 nodes"), (bits[:, :2], "3 bytes"),
                       (bits.astype(int), "uint8"), (ones.astype(float), "uint8"), (ones[:5], "users"),
                       (ones * np.uint8(2), "once")):
        with pytest.raises(ValueError, match=words):
            EdgeCountEstimator(1.0, method="rnl").aggregate(bad)
    with pytest.raises(ValueError, match="n_nodes"):
        EdgeCountEstimator(1.0, method="rnl").aggregate(bits[:2], [0, 1])
    for n_nodes in ("20", 20.0, True, 1, -1):
        for method, reports in (("rnl", bits[:1]), ("laplace", np.zeros(1, np.int64))):
            with pytest.raises(ValueError, match="n_nodes"):
                EdgeCountEstimator(1.0, method=method).aggregate(reports, [0], n_nodes)
    part = EdgeCountEstimator(1.0, method="rnl").aggregate(bits[:2], [0, 1], 20)
    assert part.n_users_ == 2
    with pytest.raises(NotFittedError, match="2 of 20 users"):
        part.confidence_interval()
    with pytest.raises(ValueError, match="parameters"):
        part.set_params(epsilon=2.0).aggregate(bits[2:3], [2], 20)
    assert pickle.loads(pickle.dumps(part)).n_users_ == 2
    assert part.privacy_.epsilon == 1
    assert part.privacy_.seeded is None


def test_rows_of_parts_are_told_where_to_go():
    with pytest.raises(ValueError, match=r"privatize\(rows, users="):
        list(distributed.transform(RNLTransformer(1.0), [(drawn(12)[:6],), (drawn(12)[6:],)]))


def test_strict_mode_reads_the_list_of_each_user_and_nothing_else():
    X = drawn(12).astype(float)
    X[3, 5], X[5, 3] = 1, 0
    with pytest.raises(ValueError, match="undirected"):
        RNLTransformer(1.0).privatize(X)
    with config_context(strict=True):
        one = RNLTransformer(1.0, lists="whole", random_state=0).privatize(X).toarray()
        X[5, 3] = math.nan
        two = RNLTransformer(1.0, lists="whole", random_state=0).privatize(X).toarray()
    assert np.argwhere(one != two).tolist() == [[5, 3]]


@pytest.mark.skipif(not importlib.util.find_spec("networkx"), reason="networkx is optional")
def test_networkx_graphs_are_read():
    import networkx

    X = drawn(15)
    for est in (DegreeEstimator(1.0, random_state=0), EdgeCountEstimator(1.0, random_state=0)):
        wanted = est.fit(X).standard_error_, est.fit(X).confidence_interval()
        found = est.fit(networkx.from_numpy_array(X)).standard_error_, est.confidence_interval()
        assert np.array_equal(np.array(wanted[1]), np.array(found[1]))
        assert wanted[0] == found[0]


# ---------------------------------------------------------------- estimates

def test_edges_and_degrees_are_those_of_the_graph_without_noise_to_speak_of():
    X = drawn(30)
    for method in ("laplace", "rnl"):
        for lists in ("half", "whole"):
            given = {"method": method, "lists": lists, "random_state": 0}
            assert EdgeCountEstimator(40, **given).fit(X).edges_ == pytest.approx(X.sum() / 2)
            if (method, lists) != ("laplace", "half"):
                found = DegreeEstimator(40, **given).fit(X)
                assert np.allclose(found.degrees_, X.sum(axis=1))
                shares = np.bincount(X.sum(axis=1).astype(int), minlength=30) / 30
                assert np.allclose(found.distribution_, shares, atol=1e-3)
    with pytest.raises(ValueError, match="lists"):
        DegreeEstimator(1.0, lists="half").fit(X)


@pytest.mark.parametrize(("method", "lists", "epsilon"), [
    ("laplace", "whole", 0.5), pytest.param("rnl", "half", 4, marks=pytest.mark.ci),
    pytest.param("rnl", "whole", 3, marks=pytest.mark.ci)])
def test_the_distribution_is_nearer_than_that_of_noisy_degrees(method, lists, epsilon):
    """Degrees of a heavy-tailed graph; distance of distribution functions, summed."""
    n, rng = 1200, np.random.default_rng(0)
    weight = (1 + np.arange(n)) ** -0.7
    ends = rng.choice(n, (5 * n, 2), p=weight / weight.sum())
    X = sparse.coo_array((np.ones(len(ends)), ends.T), shape=(n, n)).tocsr()
    X = ((X + X.T) > 0).astype(np.uint8).tolil()
    X.setdiag(0)
    degrees = np.asarray(X.sum(axis=1), int)
    est = DegreeEstimator(epsilon, method=method, lists=lists, random_state=0).fit(X.tocsr())
    truth, naive = (np.bincount(np.clip(np.rint(d), 0, n - 1).astype(int), minlength=n) / n
                    for d in (degrees, est.degrees_))
    off = [np.abs(np.cumsum(found - truth)).sum() for found in (est.distribution_, naive)]
    assert est.distribution_.sum() == pytest.approx(1)
    assert off[0] < 0.7 * off[1]


@pytest.mark.ci
def test_reports_take_memory_of_their_size():
    """20,000 nodes, 4 million reported ones: at most 30 bytes for each, where all bits would be 50 million bytes."""
    import tracemalloc

    n = 20_000
    X = sparse.random_array((n, n), density=1e-4, format="csr", rng=np.random.default_rng(0))
    X = ((X + X.T) > 0).astype(np.uint8).tolil()
    X.setdiag(0)
    X = X.tocsr()
    rnl = RNLTransformer(7.0, random_state=0)
    rnl.privatize(X[:10], np.arange(10))
    tracemalloc.start()
    reports = rnl.privatize(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * (reports.nnz + X.nnz) + 3e6


# ---------------------------------------------------------------- audits

@pytest.mark.parametrize("relation", [Neighbours.EDGE, Neighbours.LIST])
def test_audits_see_the_numbers_that_are_randomised(relation):
    """Pairs that an audit makes differ in an edge, or in one list; its outputs are what users report."""
    for est, n_all in ((EdgeCountEstimator(1.0), 12), (RNLTransformer(1.0, lists="whole"), 12 * 12)):
        subject = ListReports(est)
        for one, other in subject.pairs(SimpleNamespace(neighbours=relation)):
            seen = [subject.output(subject.seeded(np.random.default_rng(0)), data) for data in (one, other)]
            assert seen[0].size == (n_all if relation is Neighbours.EDGE else n_all // 12)
            moved = np.abs(seen[0].astype(int) - seen[1].astype(int)).sum()
            assert moved == (2 if relation is Neighbours.EDGE and est.lists == "whole" else 1)


@pytest.mark.ci
def test_an_audit_refutes_less_than_epsilon():
    claim = PrivacyGuarantee(0.2, model="local", neighbours=Neighbours.EDGE)
    assert audit(EdgeCountEstimator(3), claim=claim, time_limit=6, random_state=0).violated
