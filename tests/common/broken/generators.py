"""Generators of graphs that keep more of the graph than is stated, or draw no graph."""

from dataclasses import replace

from dpestim.graph import TmFGenerator


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


_FIRST = TmFGenerator._test_params()[0]
BROKEN = [
    (FiltersForMore, _FIRST, "check_generator_keeps_epsilon"),
    (CountsTwice, _FIRST, "check_generator_keeps_epsilon"),
    (DrawsOnce, _FIRST, "check_generator_samples"),
]
