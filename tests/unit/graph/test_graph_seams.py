"""Where graphs and ratings meet others: what changes between two rounds, and matrices that are damaged."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from dpestim import config_context, graph
from dpestim.geo import TrajectorySynthesizer
from dpestim.graph import (
    AGMGenerator,
    ControlFlowCoverage,
    KStarEstimator,
    LDPGenGenerator,
    NodeDegreeDistribution,
    RNLGenerator,
    RNLTransformer,
    SubgraphCount,
    TriangleEstimator,
    adjacency,
)
from dpestim.recommend import DPItemSimilarity

RING = sparse.csr_array(np.roll(np.eye(8, dtype=np.uint8), 1, 1) + np.roll(np.eye(8, dtype=np.uint8), -1, 1))


@pytest.mark.parametrize("params", [{"epsilon": 1.0}, {"bits_fraction": 0.1}, {"method": "one_round"}])
def test_a_promise_of_two_rounds_follows_no_parameter_that_changes_between_them(params):
    fresh = TriangleEstimator(10.0, method="two_rounds")
    before, after = pickle.loads(pickle.dumps(fresh)), pickle.loads(pickle.dumps(fresh))
    for est in (before, after):
        est.aggregate(est.privatize(RING))
    promised = before.privacy_
    with pytest.raises(ValueError, match="new estimator" if "method" not in params else "two_rounds"):
        before.set_params(**params).next_round()
    assert before.privacy_ == promised
    answers = after.next_round().client().privatize(RING)
    assert after.privacy_ == promised
    after.set_params(**params)
    assert after.privacy_ == promised
    for act in (lambda: after.client().privatize(RING), lambda: after.privatize(RING),
                lambda: after.aggregate(answers)):
        with pytest.raises(ValueError, match="parameters must be those of the first round"):
            act()
    # a fit forgets both rounds
    again = after.fit(RING)
    assert again.privacy_.epsilon == params.get("epsilon", 10)


def damaged():
    """Yield sparse matrices whose entries are not where they may be."""
    for k, place in ((3, 1234567), (3, -5)):
        found = RING.copy()
        found.indices[k] = place
        yield found
    found = RING.copy()
    found.indptr[3] = 1234567
    yield found


def test_a_damaged_sparse_matrix_is_refused_and_its_places_are_not_shown():
    flow = {0: [1, 2], 1: [3], 2: [3], 3: [4], 4: [5], 5: [6], 6: [7], 7: []}
    acts = [SubgraphCount().fit, RNLTransformer().transform, NodeDegreeDistribution().fit,
            ControlFlowCoverage(flow=flow).fit, DPItemSimilarity(delta=1e-3, bounds=(0, 1)).fit,
            lambda X: RNLTransformer().privatize(X, users=np.arange(8)),
            lambda X: TriangleEstimator().aggregate(sparse.csr_array(X))]
    for matrix in damaged():
        for act in acts:
            for strict in (False, True):
                with config_context(strict=strict), pytest.raises(ValueError, match="damaged") as told:
                    act(matrix)
                assert told.value.__context__ is None
                assert "1234567" not in str(told.value)


def test_masked_arrays_are_refused_and_half_precision_is_read():
    X = RING.toarray()
    for act in (SubgraphCount().fit, RNLTransformer().transform):
        for strict in (False, True):
            with config_context(strict=strict):
                with pytest.raises(ValueError, match="masked array"):
                    act(np.ma.masked_array(X, X == 1))
                act(X.astype(np.float16))


def test_what_was_aggregated_is_no_view_of_reports():
    drawn = RNLTransformer(2.0, random_state=0).privatize(RING)
    places = drawn.indices.astype(np.int32), drawn.indptr.astype(np.int32)  # (as they are read from a file)
    reports = sparse.csr_array((drawn.data, *places), drawn.shape)
    est = TriangleEstimator(2.0).aggregate(reports)
    kept = est._seen.read.nodes.copy()
    reports.indices[:] = 7
    assert np.array_equal(est._seen.read.nodes, kept)


def test_a_server_of_ldpgen_does_not_say_that_clients_used_no_seed():
    client, server = LDPGenGenerator(2.0, first_groups=2, random_state=0), LDPGenGenerator(2.0, first_groups=2)
    groups = server.find_groups(client.privatize(RING))
    reports = client.privatize(RING, groups=groups)
    assert server.aggregate(reports, groups).privacy_.seeded is None
    assert client.aggregate(reports, groups).privacy_.seeded is True


@pytest.mark.parametrize("name", [name for name in graph.__all__ if isinstance(getattr(graph, name), type)
                                  and name != "ControlFlowCoverage"])
def test_a_part_of_the_nodes_is_a_part_of_rows_and_columns_for_all_estimators(name):
    cls = getattr(graph, name)
    tags = cls(**cls._test_params()[0]).__sklearn_tags__().input_tags
    assert tags.pairwise  # (searches cut a square matrix, and not rows of it)
    assert tags.sparse


def test_what_numpy_says_of_attributes_is_not_shown():
    for strict in (False, True):
        with config_context(strict=strict), pytest.raises(ValueError, match="one row for each node") as told:
            AGMGenerator(categories=[["a"]]).fit(RING, [["a", "b"], "a"] * 4)
        assert told.value.__context__ is None


def test_wrong_numbers_of_nodes_are_bad_input():
    for nodes in (None, 2.0, -1, [0, 0], [[0], 1]):
        with pytest.raises(ValueError, match="number of all nodes"):
            adjacency([(0, 1)], nodes)
    reports = KStarEstimator(1.0).privatize(RING)
    for n_nodes in ("a", 8.0, True, 1):
        with pytest.raises(ValueError, match="n_nodes must be an int"):
            KStarEstimator(1.0).aggregate(reports, users=np.arange(8), n_nodes=n_nodes)
    reports[0, 1] = np.iinfo(np.int64).min
    with pytest.raises(ValueError, match="larger numbers"):
        KStarEstimator(1.0).aggregate(reports)


@pytest.mark.parametrize(("est", "X"), [(RNLGenerator(1.0, random_state=0), RING),
                                        (TrajectorySynthesizer(2.0, region=((0, 0), (1, 1)), units="metres", cells=2,
                                                               max_length=2), np.full((5, 4), 0.3))])
def test_what_is_drawn_and_told_after_a_fit_follows_no_parameter_that_changes(est, X):
    def told():
        if isinstance(est, RNLGenerator):
            return [est.sample(k).toarray().tolist() for k in range(5)]
        return str(est.result_)

    est.fit(X)
    before = told()
    est.set_params(epsilon=9.0)
    assert told() == before
