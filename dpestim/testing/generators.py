"""What learns from a graph with noise and draws graphs: all that a fit hears, over all graphs of four nodes; samples.

What a generator brings (`dpestim.graph.generators.base`): all that its fit hears of a graph are integers that get noise
(`NoiseLaw.add`) and choices by scores (`ChoiceLaw.draw`), asked in the same order, number and shape of any two graphs
that were answered the same. Then `reported` works out the loss of all answers exactly. A class that draws by a law of
another kind says in `_told_apart` where its law is checked instead, and is not checked here, or has `_log_law(X)`, the
logarithms of the probabilities of all that a fit can release of a small graph. Where each user reports
(`Neighbours.LIST`), an edge is in two lists, so that graphs that differ in an edge may be told apart by twice epsilon.
"""

import copy
import pickle
from itertools import combinations, product

import numpy as np
from scipy import sparse

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing import lists
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.reported import hear, layout, require_kept
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state

#: All graphs of so many nodes are looked at; and the nodes of other graphs.
SMALL, NODES = 4, 30
PAIRS = list(combinations(range(SMALL), 2))
#: ... told what was answered to these: one without edges, and one with three.
STARTS = (0, 0b001011)


#: Values of parameters that must be refused.
WRONG = {"clustering": (None, -0.1, 1.1, "much", True, [], [0.5, 2], [[0.5]], float("nan")),
         "first_groups": (0, 1.5, True, "2", None, 1001), "first_fraction": (0, 1, "a", None, True)}


class ListGenerators(lists.Listed):
    """A generator of graphs from reports on neighbour lists, and how it is used."""

    wrong = WRONG

    @property
    def data(self):
        """An adjacency matrix."""
        return self.rows(NODES)

    def checks(self):
        """Return the checks of what reports on lists, and of what draws graphs."""
        return *lists.CHECKS, *lists.ESTIMATE_CHECKS, check_generator_samples


class Generators(Releases):
    """A generator of graphs, and how it is used."""

    wrong = WRONG

    @property
    def model(self):
        """The model of a release: users report themselves, or a curator does it for them."""
        return "local" if self.relation == "list" else "central"

    @property
    def relation(self):
        """The name of the relation of a release."""
        return self.estimator._relation().value

    def checks(self):
        """Return the checks of what draws graphs."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """An adjacency matrix."""
        return self.estimator._test_data(NODES)[0]

    def release(self, est, data):
        """Return what a copy of it learns from a graph."""
        twin = copy.copy(est).fit(data)
        return {name: value for name, value in vars(twin).items() if name.endswith("_") and not name.startswith("_")}

    def use(self, est):
        """Learn once."""
        est.fit(self.data)

    def charged(self):
        """Return the ways to release: to fit."""
        return (lambda est: est.fit(self.data),)

    def free(self, est):
        """Draw graphs."""
        est.sample()
        est.sample(random_state=0)

    def entropy(self, est):
        """Return several releases: those of few edges repeat."""
        return [self.release(est, self.estimator._test_data(NODES + k)[0]) for k in range(3)]

    def bad(self):
        """Return what is no undirected graph."""
        graph = self.data
        for change in (lambda m: m[:, :-1], lambda m: np.triu(m), lambda m: 2 * m, lambda m: m + np.eye(len(m)),
                       lambda m: np.where(m, np.nan, 0.0), lambda m: m.astype(str)):
            yield change(graph)

    def odd(self):
        """Return square matrices that differ in one entry."""
        yield self.data
        for value in (0.5, -1e308, np.nan, 1.0):
            for place in ((0, 1), (2, 2)):
                matrix = self.data.astype(float)
                matrix[place] = value
                yield matrix

    def shown(self, released):
        """Return names and types of what is learned."""
        return {name: type(value) for name, value in released.items()}


def check_generator_keeps_epsilon(generators):
    """Over all graphs of four nodes and every edge: all answers that a fit hears keep epsilon and delta together.

    What is learned is a function of these answers alone.
    """
    est = generators.estimator
    if getattr(est, "_told_apart", ""):
        return
    if hasattr(est, "_log_law"):  # (probabilities of all that can be released, in one order for all graphs)
        laws = [generators.fresh()._log_law(matrix_of(code)) for code in range(1 << len(PAIRS))]
        require(all(abs(np.exp(law).sum() - 1) < 1e-6 for law in laws), "probabilities must add up to 1")
        for code, edge in product(range(1 << len(PAIRS)), range(len(PAIRS))):
            lost = float(np.abs(laws[code] - laws[code ^ 1 << edge]).max())
            require(lost <= float(canonical_epsilon(est.epsilon)) * (1 + 1e-9), f"a release loses {lost:.3g}")
        return
    allowed = copy.copy(est)
    allowed.epsilon = (2 if generators.relation == "list" else 1) * canonical_epsilon(est.epsilon)
    for seed, start in enumerate(STARTS):
        told, heard = [], {}
        for code in (start, *range(1 << len(PAIRS))):
            heard[code] = hear(generators.fresh(random_state=seed), matrix_of(code), None, told)
            learned, first = heard[code][1], heard[start][1]
            require(same_state(learned, first), "what is learned must be a function of what was drawn")
            require(layout(learned) == layout(first), "what a fit leaves behind must be laid out alike")
        for code in range(1 << len(PAIRS)):
            for edge in range(len(PAIRS)):
                if not code >> edge & 1:
                    one, two = heard[code][0], heard[code | 1 << edge][0]
                    require_kept(allowed, one, two)
                    if generators.relation == "list":
                        require_users_kept(float(canonical_epsilon(est.epsilon)), one, two)


def require_users_kept(epsilon, asked, before):
    """Require that what one user reported costs no more than epsilon: users are the first axis of what gets noise."""
    lost = sum(float(law.rate_of_decay) * np.abs(one - two).reshape(SMALL, -1).sum(axis=1)
               for (law, one), (_, two) in zip(asked, before))
    require(bool((lost <= epsilon * (1 + 1e-9)).all()), f"a user must keep epsilon: {lost.max():.3g} is lost")


def matrix_of(code):
    """Return the adjacency matrix of one of all graphs of four nodes."""
    matrix = np.zeros((SMALL, SMALL), np.uint8)
    for edge, (i, j) in enumerate(PAIRS):
        matrix[i, j] = matrix[j, i] = code >> edge & 1
    return matrix


def check_generator_samples(generators):
    """Graphs are undirected and simple, of the nodes that were fitted, free, and those of a seed; whatever the mode."""
    graph = generators.data
    est = generators.fresh(ledger=Book()).fit(graph)
    before = {name: copy.deepcopy(value) for name, value in vars(est).items() if name != "ledger"}
    for drawn in [est.sample(random_state=seed) for seed in range(3)] + [est.sample()]:
        require(isinstance(drawn, sparse.csr_array) and drawn.dtype == np.uint8, "a graph must be a csr_array of uint8")
        require(drawn.shape == graph.shape, "a graph must have the nodes that were fitted")
        require(bool((drawn.data == 1).all()) and drawn.has_canonical_format, "an edge must be there once")
        require(not drawn.diagonal().any() and (drawn != drawn.T).nnz == 0, "a graph must be undirected, without loops")
        require(read_again(drawn, generators), "a graph must be one that can be fitted")
    one, same, other = (est.sample(random_state=seed) for seed in (0, 0, 1))
    require((one != same).nnz == 0, "a seed must reproduce a graph")
    require((one != other).nnz > 0, "another seed must give another graph")
    new = differs_each_time(est.sample, lambda a, b: (a != b).nnz == 0)
    require(new, "no seed must give another graph each call")
    require((pickle.loads(pickle.dumps(est)).sample(0) != one).nnz == 0, "a pickle must draw the same")
    refuses(lambda: est.sample(random_state=-1), "a bad random_state", est)
    refuses(lambda: generators.fresh().sample(), "a graph before a fit")
    with config_context(strict=True):
        require((est.sample(0) != one).nnz == 0, "strict mode must draw the same")
    require(len(est.ledger.paid) == 1, "graphs must be free")
    require(same_state(before, {name: value for name, value in vars(est).items() if name != "ledger"}),
            "drawing a graph must change nothing")


def read_again(drawn, generators):
    """Tell whether a graph that was drawn can be fitted."""
    generators.fresh().fit(drawn)
    return True


def check_generator_containers(generators):
    """Sparse matrices of any format and arrays of any dtype teach the same."""
    graph = generators.data
    wanted = generators.release(generators.fresh(), graph)
    for other in (graph.astype(bool), graph.astype(np.float32), np.asfortranarray(graph), sparse.csr_array(graph),
                  sparse.csc_matrix(graph), sparse.coo_array(graph.astype(np.int64)), sparse.lil_array(graph)):
        same = same_state(generators.release(generators.fresh(), other), wanted)
        require(same, f"{type(other).__name__} teaches something else")


CHECKS = (check_generator_keeps_epsilon, check_generator_samples, check_generator_containers)
