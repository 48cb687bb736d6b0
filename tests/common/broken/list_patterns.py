"""Patterns of neighbour lists whose noise is for less than what an entry moves, or whose estimates are biased."""

import numpy as np
from scipy import sparse

from dpestim.graph import (
    ClusteringCoefficientEstimator,
    CommunityEstimator,
    KStarEstimator,
    ModularityEstimator,
    TriangleEstimator,
)
from dpestim.graph.lists.noisy_graph import NoisyGraph
from dpestim.graph.lists.reading import Lists


class NoiseForOneCount(TriangleEstimator):
    """Noise is for an edge that is new, and not for one that pushes another out of a clipped list."""

    @staticmethod
    def _moves(bound):
        return (bound - 1 << 16) * 3 // 4


class SpendsTwice(TriangleEstimator):
    """The count has all that the bound of the degree leaves, though bits have had their part."""

    def _count_epsilon(self):
        return super(TriangleEstimator, self)._count_epsilon()


class KnowsTheGraph(TriangleEstimator):
    """A client of the second round knows the reports of others."""

    def client(self):
        """Return itself."""
        return self


class OneRoundIsAll(TriangleEstimator):
    """Users pay for the first round what is for both."""

    def _shares(self):
        first, second = super()._shares()
        return first + second, second


class ClipsNothing(KStarEstimator):
    """Counts all stars, whatever the bound is."""

    def _steps(self, found, bounds):
        return super()._steps(found, np.full(len(bounds), found.n_nodes))


class NoiseOfOneUser(KStarEstimator):
    """The count of a user has the noise of the user before, too."""

    def _randomised(self, found, source):
        reports = super()._randomised(found, source)
        reports[1:, 1] += reports[:-1, 1]
        return reports


class ReadsColumns(KStarEstimator):
    """In strict mode another user's entry counts, too."""

    def privatize(self, X, users=None):
        """Make the matrix symmetric first."""
        return super().privatize(np.maximum(X != 0, (X != 0).T) if users is None and self._is_strict() else X, users)


class ForgetsTheFalse(KStarEstimator):
    """Counts the stars of the noisy graph as they are."""

    def _estimates(self, read):
        degrees = NoisyGraph(read.starts, read.nodes).degrees
        return {**super()._estimates(read), "stars_": float((degrees * (degrees - 1) * (degrees - 2)).sum()) / 6}


class CountsNoisyWedges(ClusteringCoefficientEstimator):
    """Wedges are those of the noisy graph."""

    def _estimates(self, read):
        return {**super()._estimates(read), "wedges_": float(NoisyGraph(read.starts, read.nodes).wedges)}


class KeepsMore(CommunityEstimator):
    """Bits of every second user are not flipped."""

    def _noisy(self, found, source):
        exact, noisy = (each.matrix().toarray() for each in (found.after(), super()._noisy(found, source)))
        bits = sparse.csr_array(np.where(found.users[:, None] % 2, noisy, exact))
        return Lists(found.users, bits.indptr.astype(np.int64), bits.indices.astype(np.int32), found.n_nodes)


class CountsBoth(ModularityEstimator):
    """A user reports neighbours of lower number, too."""

    def _randomised(self, found, source):
        reports, codes = super()._randomised(found, source), self._parts()[1]
        lower = found.nodes < found.rows
        np.add.at(reports, (np.repeat(np.arange(len(found.users)), found.lengths)[lower], codes[found.nodes[lower]]), 1)
        return reports


_ONE, _TWO = TriangleEstimator._test_params()
_COUNTS, _BITS, _ = KStarEstimator._test_params()
BROKEN = [
    (NoiseForOneCount, _TWO, "check_clipped_counts_keep_epsilon"),
    (SpendsTwice, _TWO, "check_clipped_counts_keep_epsilon"),
    (KnowsTheGraph, _TWO, "check_list_rounds"),
    (OneRoundIsAll, _TWO, "check_list_rounds"),
    (ClipsNothing, _COUNTS, "check_clipped_counts_keep_epsilon"),
    (NoiseOfOneUser, _COUNTS, "check_clipped_counts_have_noise"),
    (ReadsColumns, _COUNTS, "check_patterns_strict_mode"),
    (ForgetsTheFalse, _BITS, "check_patterns_exactly"),
    (CountsNoisyWedges, {"epsilon": 2.0}, "check_patterns_exactly"),
    (KeepsMore, {"epsilon": 1.0}, "check_patterns_send_bits"),
    (CountsBoth, ModularityEstimator._test_params()[0], "check_counts_keep_epsilon"),
]
