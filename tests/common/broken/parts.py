"""Broken quadtrees of reports."""

from dpestim.geo import LDPartEstimator


class ForgetsTheQuestion(LDPartEstimator):
    """Devices of later rounds answer the first question."""

    def client(self):
        twin = super().client()
        twin._open = None
        return twin


class KeepsNegative(LDPartEstimator):
    """Counts are below 0."""

    @property
    def counts_(self):
        counts = super().counts_.copy()
        counts[:2] += [-1e4, 1e4]
        return counts


class CutsTheEmpty(LDPartEstimator):
    """Cells with few users are cut."""

    def _closed(self):
        depth, nodes, shares, variance, n = super()._closed()
        return depth, nodes, -shares, variance, n


class RepeatsItsWords(LDPartEstimator):
    """All rounds have the words of the first one."""

    def _take(self, rows, source, *more, **named):
        self._first_words = vars(self).get("_first_words", source)
        return super()._take(rows, self._first_words, *more, **named)


_SMALL = LDPartEstimator._test_params()[0]
BROKEN = [
    (ForgetsTheQuestion, _SMALL, "check_parts_are_played_in_rounds"),
    (KeepsNegative, _SMALL, "check_parts_are_consistent"),
    (CutsTheEmpty, _SMALL, "check_parts_find_equal_rows"),
    (RepeatsItsWords, _SMALL, "check_parts_draw_new_words_in_each_round"),
]
