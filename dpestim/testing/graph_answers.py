"""Noisy facts of a graph: how far those of all small neighbours are apart, and noise against its law."""

import math
from functools import cache
from itertools import combinations

import numpy as np
from scipy import sparse, stats

from dpestim.privacy.exact import canonical_amount
from dpestim.testing.graphs import Graphs, check_graph_containers
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import require

#: All graphs of so many nodes are looked at; fits whose noise is compared with its law, and the significance.
SMALL, N, ALPHA = 5, 120, 1e-7
#: The least part of epsilon that some small neighbours use: noise for more than edges can change would be a waste.
_USED = 0.45
#: What functions that read a graph made of all of these.
_seen = {}


class Answers(Graphs):
    """An estimator that adds noise to facts of a graph, and how it is used."""

    def __init__(self, estimator):
        Releases.__init__(self, estimator)
        self.wrong = {
            "method": (None, "noise", 1), "max_degree": (0, -1, 1.5, True, "a"), "n_values": (0, 1.5, True, None, "a"),
            "matrix": (None, "square", 1), "cuts": ("ab", [], [[99]], [0], [["a"]], [[0.5]], 3, {0}),
            "damping": (0, 1, -0.5, "a", None, True, math.nan), "degree_fraction": (0, 1, "a", None, True),
            "delta": (1, 1.5, -1e-9, math.nan, "0", True, *(() if getattr(estimator, "cuts", 0) else (1e-5,))),
        }

    def checks(self):
        """Return the checks of what adds noise to facts of a graph."""
        return *CHECKS, *RELEASE_CHECKS


@cache
def _graphs():
    """Return the adjacency matrices of all graphs of five nodes, by code: bit k of it says whether pair k is joined."""
    found = []
    for code in range(1 << math.comb(SMALL, 2)):
        ends = np.array([pair for k, pair in enumerate(combinations(range(SMALL), 2)) if code >> k & 1], int)
        both = np.concatenate([ends.reshape(-1, 2), ends.reshape(-1, 2)[:, ::-1]])
        found.append(sparse.coo_array((np.ones(len(both)), both.T), shape=(SMALL, SMALL)))
    return found


def _read(cls):
    """Return them as the estimators of this class see them: once for all classes that read by the same function."""
    if cls._read not in _seen:
        est = cls(1.0)
        _seen[cls._read] = [est._read(matrix) for matrix in _graphs()]
    return _seen[cls._read]


def check_answers_keep_epsilon(answers):
    """Over all graphs of five nodes and every edge, the facts are no further apart than noise allows for epsilon."""
    est = answers.fresh()
    epsilon, delta = (canonical_amount(getattr(est, name, None) or 0, name) for name in ("epsilon", "delta"))
    laws = est._noisy_parts(SMALL)
    require(sum(getattr(law, "delta", 0) for law in laws) <= delta, "noise takes more than delta")
    found = [est._answers(graph) for graph in _read(type(est))]
    parts = [np.stack([np.asarray(own[k]).reshape(-1) for own in found]) for k in range(len(laws))]
    codes = np.arange(len(found))
    worst = 0.0
    for edge in range(math.comb(SMALL, 2)):
        less = codes[codes >> edge & 1 == 0]
        worst = max(worst, float(sum(_loss(part[less], part[less | 1 << edge], law)
                                     for part, law in zip(parts, laws)).max()))
    require(worst <= epsilon * (1 + 1e-9), f"facts of neighbours are e^{worst:.3f} apart, more than epsilon")
    require(worst >= _USED * epsilon, f"noise is for more than edges can change: e^{worst:.3f} at most is used")


def _loss(one, two, law):
    """Return the largest logarithm of a ratio for each pair of rows; that of a delta is all of epsilon, or none."""
    if hasattr(law, "flip"):
        flipped = np.unpackbits(np.ascontiguousarray(one ^ two).view(np.uint8), axis=1).sum(1)
        return flipped * math.log(float((1 - law.flip) / law.flip))
    apart = np.abs(one - two)
    if law.norm == 1:
        return apart.sum(1) * float(law.epsilon / law.sensitivity)
    return np.sqrt((apart**2).sum(1)) / float(law.sensitivity) * float(law.epsilon)


def check_answers_follow_law(answers):
    """The noise of fits has the stated law, entry by entry; the same test rejects noise that is 0.7 times as large."""
    est, seen = answers.fresh(), []

    class Seen(type(est)):
        def _learned(self, noisy, n_nodes):
            seen.append([np.array(part) for part in noisy])
            return super()._learned(noisy, n_nodes)

    graph = est._read(answers.data)
    for seed in range(N):
        Seen(**{**est.get_params(), "random_state": seed}).fit(answers.data)
    laws, exact = est._noisy_parts(graph.n_nodes), est._answers(graph)
    firsts = []
    for k, (law, truth) in enumerate(zip(laws, exact)):
        noisy = np.array([own[k].reshape(-1) for own in seen])
        if hasattr(law, "flip"):
            flipped = np.unpackbits(noisy ^ truth.reshape(-1), axis=1)
            require(_likely([int(flipped.sum())], flipped.size, [float(law.flip)]), "bits do not flip as stated")
            require(not _likely([int(0.7 * flipped.sum())], flipped.size, [float(law.flip)]), "no wrong law is seen")
            firsts.append(flipped[:, :64].sum(1))
            continue
        noise = noisy - truth.reshape(-1)
        sizes = [max(1, round(share * math.sqrt(law.variance_steps))) for share in (0.4, 1.0, 2.0)]
        chances = [float(law.beyond(size)) for size in sizes]
        beyond = [int((np.abs(noise) >= size).sum()) for size in sizes]
        small = [int((0.7 * np.abs(noise) >= size).sum()) for size in sizes]
        require(_likely(beyond, noise.size, chances), "noise does not follow the law that is stated")
        require(noise.size < 1000 or not _likely(small, noise.size, chances), "the test sees no wrong noise")
        low, high = (int((sign * noise > 0).sum()) for sign in (-1, 1))
        require(stats.binomtest(low, low + high).pvalue > ALPHA, "noise must be as often below 0 as above")
        firsts.append(noise[:, 0])
        if noise.shape[1] > 1:
            firsts.append(noise[:, 1])
    for one, two in combinations(firsts, 2):
        require(abs(stats.spearmanr(one, two).statistic) < 0.5, "two numbers share their noise")


def _likely(counts, n, chances):
    return all(stats.binomtest(count, n, min(chance, 1.0)).pvalue > ALPHA for count, chance in zip(counts, chances))


CHECKS = (check_answers_keep_epsilon, check_answers_follow_law, check_graph_containers)
