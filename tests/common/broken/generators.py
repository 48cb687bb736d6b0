"""Generators of graphs whose fits hear more than they say, and graphs that are none."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.graph import DGGGenerator, LDPGenGenerator, RNLGenerator, TmFGenerator
from dpestim.graph.lists.two_sided import TwoSidedLaw
from dpestim.privacy.exact import canonical_epsilon


class GroupsTheTruth(LDPGenGenerator):
    """Users are grouped by what they did not report."""

    def _reported(self, found, groups, turn, source):
        noisy = super()._reported(found, groups, turn, source)
        if turn == 0:
            noisy[:, 0] += found.lengths
        return noisy


class SpendsTwice(LDPGenGenerator):
    """Each round spends all of epsilon."""

    def _law(self, turn):
        return law_of_rate(canonical_epsilon(self.epsilon))


class ForgetsTheSecondUser(LDPGenGenerator):
    """A number of each user counts for two."""

    def _reported(self, found, groups, turn, source):
        twice = type(found)(found.users, 2 * found.starts, np.repeat(found.nodes, 2), found.n_nodes)
        return super()._reported(twice, groups, turn, source)


class LessNoise(DGGGenerator):
    """Noise for twice the epsilon."""

    def _law(self):
        return TwoSidedLaw(2 * canonical_epsilon(self.epsilon))


class OneDirection(DGGGenerator):
    """Graphs have one entry for each edge."""

    def sample(self, random_state=None):
        """Return half of the matrix."""
        return sparse.csr_array(sparse.triu(super().sample(random_state)))


class PaysForGraphs(RNLGenerator):
    """A graph that is drawn is charged."""

    def sample(self, random_state=None):
        """Draw and pay."""
        self._charge(self._guarantee(), 1)
        return super().sample(random_state)


class AlwaysTheSame(RNLGenerator):
    """Every call without a seed draws the same graph."""

    def sample(self, random_state=None):
        """Draw by one seed."""
        return super().sample(0 if random_state is None else random_state)


class ReadsWholeNumbers(LDPGenGenerator):
    """Takes an array of floats for a graph without edges."""

    def _read(self, X):
        return super()._read(np.zeros_like(X) if getattr(X, "dtype", None) == np.float32 else X)


class FiltersForMore(TmFGenerator):
    """The filter takes all of epsilon, and the count its part besides."""

    def _filter(self, n_edges, n_cells):
        own = super()._filter(n_edges, n_cells)
        return replace(own, epsilon=own.epsilon / (1 - self._shares()[1] / sum(self._shares())))


class CountsTwice(TmFGenerator):
    """The noise of the count is that of a larger epsilon."""

    def _shares(self):
        first, second = super()._shares()
        return first, 2 * second


class DrawsOnce(TmFGenerator):
    """All samples are the same graph."""

    def _draw(self, rng):
        return super()._draw(type(rng)(type(rng.bit_generator)(0)))


_GROUPS = LDPGenGenerator._test_params()[0]
_FIRST = TmFGenerator._test_params()[0]
BROKEN = [
    (GroupsTheTruth, _GROUPS, "check_generator_keeps_epsilon"),
    (SpendsTwice, _GROUPS, "check_generator_keeps_epsilon"),
    (ForgetsTheSecondUser, _GROUPS, "check_generator_keeps_epsilon"),
    (LessNoise, {"epsilon": 1.0}, "check_lists_keep_epsilon"),
    (OneDirection, {"epsilon": 1.0}, "check_generator_samples"),
    (PaysForGraphs, {"epsilon": 1.0}, "check_generator_samples"),
    (AlwaysTheSame, {"epsilon": 1.0}, "check_generator_samples"),
    (ReadsWholeNumbers, _GROUPS, "check_generator_containers"),
    (FiltersForMore, _FIRST, "check_generator_keeps_epsilon"),
    (CountsTwice, _FIRST, "check_generator_keeps_epsilon"),
    (DrawsOnce, _FIRST, "check_generator_samples"),
]
