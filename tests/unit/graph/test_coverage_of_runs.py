"""Coverage of blocks: dominators and isotonic regression against brute force, estimates, intervals, flows."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize

from dpestim.accounting import Ledger
from dpestim.graph import ControlFlowCoverage
from dpestim.graph.flow import dominators, fall_along, read_flow

LOOP = {"a": ["b", "e"], "b": ["c", "d"], "c": ["f"], "d": ["f"], "e": ["f"], "f": ["b", "g"], "g": []}
TREE = {0: [1, 2], 1: [3, 4], 2: [5], 3: [], 4: [], 5: []}


def walks(flow, n, seed=0):
    return ControlFlowCoverage(1.0, flow=flow)._test_data(n, seed)[0]


def test_dominators_are_the_blocks_that_every_path_passes():
    rng, looked_at = np.random.default_rng(0), 0
    for _ in range(150):
        n = int(rng.integers(2, 9))
        try:
            flow = read_flow((rng.random((n, n)) < 0.3).astype(int), 0)
        except ValueError:
            continue
        looked_at += 1

        def reached(without, flow=flow):
            seen, todo = {0}, [0]
            while todo:
                for other in flow.successors[todo.pop()]:
                    if other != without and other not in seen:
                        seen.add(other)
                        todo.append(other)
            return seen

        passed = [{d for d in range(n) if d == 0 or block not in reached(d)} - {block} for block in range(n)]
        wanted = [max(own, key=lambda d: len(passed[d])) if own else -1 for own in passed]
        assert dominators(flow).tolist() == wanted
    assert looked_at > 30


def test_isotonic_regression_along_a_tree_is_that_of_a_general_solver():
    rng = np.random.default_rng(1)
    for _ in range(12):
        n = int(rng.integers(2, 10))
        parents = np.array([-1, *(int(rng.integers(0, k)) for k in range(1, n))])
        values, weights = rng.normal(size=n), rng.random(n) + 0.2
        order = [{"type": "ineq", "fun": lambda x, k=k, p=p: x[p] - x[k]} for k, p in enumerate(parents) if p >= 0]
        wanted = minimize(lambda x, v=values, w=weights: (w * (x - v) ** 2).sum(), np.zeros(n), constraints=order,
                          method="SLSQP", options={"ftol": 1e-13, "maxiter": 400}).x
        assert fall_along(values, parents, weights) == pytest.approx(wanted, abs=1e-4)
    chain = np.arange(-1, 3000)
    assert np.allclose(fall_along(np.arange(3001.0), chain), 1500)  # (all become one block)


@pytest.mark.parametrize("relation", ["strict", "relaxed"])
def test_without_noise_counts_are_those_of_runs(relation):
    X = walks(LOOP, 300)
    est = ControlFlowCoverage(40.0, flow=LOOP, relation=relation, random_state=0).fit(X)
    assert est.blocks_ == list("abcdefg")
    assert est.dominators_.tolist() == [-1, 0, 1, 1, 0, 0, 5]
    if relation == "relaxed":
        assert est.noisy_counts_ == pytest.approx(X.sum(0), abs=1e-6)
        assert est.counts_ == pytest.approx(X.sum(0), abs=1e-6)
    else:  # (each block is asked of some 50 users)
        assert np.abs(est.counts_ - X.sum(0)).max() < 120
    assert est.counts_[0] == 300


def test_estimates_are_exactly_unbiased():
    """Over all published bits of two runs of three blocks, and all draws, in fractions."""
    flow, X = {0: [1, 2], 1: [], 2: []}, np.array([[1, 1, 0], [1, 0, 1]], np.uint8)
    relaxed = ControlFlowCoverage(0.8, flow=flow, relation="relaxed", random_state=0).fit(X)
    flip, means = relaxed._seen[3].flip, np.zeros(3)
    for flips in product((0, 1), repeat=4):
        bits = X[:, 1:] ^ np.reshape(flips, (2, 2)).astype(np.uint8)
        weight = float(np.prod([flip if f else 1 - flip for f in flips]))
        est = ControlFlowCoverage(0.8, flow=flow, relation="relaxed").aggregate(
            np.packbits(bits, axis=1, bitorder="little"))
        means += weight * est.noisy_counts_
    assert means == pytest.approx([2, 1, 1], abs=1e-12)
    means, total = np.zeros(3), 0.0
    for drawn, flips in product(product((0, 1), repeat=2), product((0, 1), repeat=2)):
        if len(set(drawn)) < 2:  # (given that both blocks were drawn)
            continue
        said = [2 * block + (X[run, 1 + block] ^ f) for run, (block, f) in enumerate(zip(drawn, flips))]
        weight = float(np.prod([flip if f else 1 - flip for f in flips]))
        est = ControlFlowCoverage(0.8, flow=flow).aggregate(np.array(said, np.uint32)[:, None])
        means, total = means + weight * est.noisy_counts_, total + weight
    assert means / total == pytest.approx([2, 1, 1], abs=1e-12)


def test_the_dominator_tree_takes_noise_away():
    flow = {k: [k + 1] for k in range(29)} | {29: []}  # (a chain: all runs cover all blocks)
    X, errors = np.ones((200, 30), np.uint8), []
    for seed in range(8):
        est = ControlFlowCoverage(1.0, flow=flow, random_state=seed, relation="relaxed", max_blocks=2).fit(X)
        errors.append([np.mean((est.counts_ - 200)**2), np.mean((est.noisy_counts_ - 200)**2)])
    assert np.mean(errors, 0)[0] < np.mean(errors, 0)[1] / 3


@pytest.mark.parametrize("relation", ["strict", "relaxed"])
@pytest.mark.parametrize("runs", [np.eye(1, 6).repeat(40, 0), np.ones((40, 6)), walks(TREE, 40), walks(TREE, 1)])
def test_bands_hold_at_once_and_fall(relation, runs):
    held = 0
    for seed in range(25):
        est = ControlFlowCoverage(1.5, flow=TREE, relation=relation, random_state=seed).fit(runs)
        low, high = est.confidence_interval(0.7)
        held += ((low <= runs.sum(0)) & (runs.sum(0) <= high)).all()
        inner = est.dominators_[1:]
        assert (low[1:] <= low[inner] + 1e-9).all()
        assert (high[1:] <= high[inner] + 1e-9).all()
    assert held >= 12  # (binomial at 0.7: fewer with probability 6e-3; the bounds are wide)


def test_flows_of_any_kind_and_frames_in_any_order():
    class Directed:
        adj = {"a": {"b": {}}, "b": {"c": {}}, "c": {}}

    names = ["a", "b", "c"]
    flows = [{"a": ["b"], "b": ["c"]}, {"a": ["b"], "b": ["c"], "c": []}, Directed()]
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    wanted = ControlFlowCoverage(1.0, flow=flows[0], random_state=0).fit(X)
    for flow in flows[1:]:
        assert np.array_equal(ControlFlowCoverage(1.0, flow=flow, random_state=0).fit(X).counts_, wanted.counts_)
    chain = np.eye(3, k=1)
    for flow in (chain, chain.astype(bool), sparse.csr_matrix(chain)):
        est = ControlFlowCoverage(1.0, flow=flow, random_state=0).fit(X)
        assert est.blocks_ == [0, 1, 2]
        assert np.array_equal(est.counts_, wanted.counts_)
    for frame in (pd.DataFrame(X, columns=names)[["c", "a", "b"]], pl.DataFrame(X, schema=names)[["b", "c", "a"]]):
        est = ControlFlowCoverage(1.0, flow=flows[0], random_state=0).fit(frame)
        assert np.array_equal(est.counts_, wanted.counts_)
    with pytest.raises(ValueError, match="with its name"):
        wanted.privatize(pd.DataFrame(X))
    later = ControlFlowCoverage(1.0, flow={"x": ["y"], "y": ["z"], "z": ["x"]}, entry="y", random_state=0)
    assert later.fit(X).dominators_.tolist() == [2, -1, 1]


def test_relaxed_guarantees_name_what_is_close_and_ledgers_are_charged_for_any_two_runs():
    est = ControlFlowCoverage(1.0, flow=LOOP, relation="relaxed", max_blocks=2, random_state=0)
    assert (est.privacy_.epsilon, est.privacy_.relaxed_epsilon) == (3, 1)
    assert "2 of 6 blocks" in est.privacy_.relaxation
    far = est.set_params(max_blocks=6).privacy_
    assert (far.epsilon, far.relaxation) == (1, None)
    assert ControlFlowCoverage(1.0, flow=LOOP, relation="relaxed", max_blocks=99).privacy_.epsilon == 1
    ledger = Ledger(3)
    ControlFlowCoverage(1.0, flow=LOOP, relation="relaxed", max_blocks=2, ledger=ledger).fit(walks(LOOP, 9))
    assert ledger.spent().epsilon == 3
    with pytest.raises(ValueError, match="epsilon"):
        ControlFlowCoverage(1.0, flow=LOOP, relation="relaxed", ledger=ledger).fit(walks(LOOP, 9))


def test_servers_add_reports_pickle_and_show_a_table():
    clients = [ControlFlowCoverage(1.0, flow=LOOP, random_state=k) for k in range(2)]
    reports = [client.privatize(walks(LOOP, 50, k)) for k, client in enumerate(clients)]
    server = ControlFlowCoverage(1.0, flow=LOOP).aggregate(reports[0]).aggregate(reports[1])
    whole = ControlFlowCoverage(1.0, flow=LOOP).aggregate(np.concatenate(reports))
    assert np.array_equal(server.counts_, whole.counts_)
    assert server.privacy_.seeded is None  # (whether clients used seeds is not known)
    again = pickle.loads(pickle.dumps(server))
    frame = again.result_.to_frame()
    assert frame["block"].tolist() == list("abcdefg")
    assert frame["value"].tolist() == server.counts_.tolist()
    with pytest.raises(ValueError, match="earlier reports"):
        server.set_params(epsilon=2.0).aggregate(reports[0])


@pytest.mark.parametrize(("flow", "words"), [
    ({0: [1], 1: [], 2: [1]}, "every block"), ({0: []}, "two blocks"), ("text", "dict of the successors"),
    ({0: "ab"}, "dict of the successors"), (np.ones((2, 3)), "dict of the successors"), (None, "declared"),
    ({0: [[1]]}, "dict of the successors"), ({(0,): [(1,)], "a": ["b"]}, "every block"),
])
def test_flows_that_are_none(flow, words):
    with pytest.raises(ValueError, match=words):
        ControlFlowCoverage(1.0, flow=flow).fit(np.ones((3, 2)))
