"""Facts of graphs with too little noise, too much, another law, or one that two numbers share."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.graph import CutEstimator, DegreeDistribution, GraphSpectrum, PageRankEstimator
from dpestim.graph.pairs import PairFlips


class OneEndOnly(DegreeDistribution):
    """Noise for one node of an edge, whose other node moves, too."""

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(1), 0)]


class PublishesAHistogram(DegreeDistribution):
    """Nodes of each degree with noise for nodes of at least each degree."""

    def _answers(self, graph):
        return [np.diff(super()._answers(graph)[0], append=0)]


class CountsEdgesOnce(PageRankEstimator):
    """Noise as if an edge had one end."""

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(1), 0)]


class ForEveryCell(DegreeDistribution):
    """Noise as if an edge could change every number."""

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(2 * n_nodes), 0)]


class WeylForAll(GraphSpectrum):
    """Noise for eigenvalues that move by 1 together, which is true of each alone."""

    def _noisy_parts(self, n_nodes):
        law = super()._noisy_parts(n_nodes)[0]
        return [DiscreteLaplaceLaw(law.epsilon, law.delta, law.sensitivity / 2, law.exponent)]


class OneCutAtATime(CutEstimator):
    """Noise for one cut, while an edge crosses several."""

    def _noisy_parts(self, n_nodes):
        return [DiscreteLaplaceLaw(self._budget()[0], Fraction(0), Fraction(1), 0)]


class FlipsTooFew(CutEstimator):
    """Bits flip less often than stated."""

    def _noisy_parts(self, n_nodes):
        class Few(PairFlips):
            def add(self, bits, source, column=0):
                return PairFlips(self.epsilon * 2).add(bits, source, column)

        return [Few(self._budget()[0])]


class BothDirections(CutEstimator):
    """A pair of nodes has two bits."""

    def _answers(self, graph):
        dense = np.zeros((graph.n_nodes, graph.n_nodes), np.uint8)
        dense[np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.neighbours] = 1
        return [np.packbits(dense, axis=1, bitorder="little")]


class SharedNoise(CutEstimator):
    """All cuts have the noise of the first one."""

    def _noisy_parts(self, n_nodes):
        class Shared(DiscreteLaplaceLaw):
            def add(self, codes, source, column=0):
                return codes + self.draw(source, 1, column)

        law = super()._noisy_parts(n_nodes)[0]
        return [Shared(law.epsilon, law.delta, law.sensitivity, law.exponent)]


_DEGREES, _SPECTRUM = DegreeDistribution._test_params()[0], GraphSpectrum._test_params()[0]
_CUTS, _PAIRS = CutEstimator._test_params()[:2]
BROKEN = [
    (OneEndOnly, _DEGREES, "check_answers_keep_epsilon"),
    (PublishesAHistogram, _DEGREES, "check_answers_keep_epsilon"),
    (ForEveryCell, _DEGREES, "check_answers_keep_epsilon"),
    (CountsEdgesOnce, PageRankEstimator._test_params()[0], "check_answers_keep_epsilon"),
    (WeylForAll, _SPECTRUM, "check_answers_keep_epsilon"),
    (OneCutAtATime, _CUTS, "check_answers_keep_epsilon"),
    (BothDirections, _PAIRS, "check_answers_keep_epsilon"),
    (FlipsTooFew, _PAIRS, "check_answers_follow_law"),
    (SharedNoise, _CUTS, "check_answers_follow_law"),
]
