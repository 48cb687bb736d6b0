"""Broken finders of itemsets."""

import numpy as np

from dpestim.local import ItemsetEstimator
from dpestim.local.domains.padding import PaddedCodes
from dpestim.privacy.config import get_config


class ReportsWithMore(ItemsetEstimator):
    """Reports have twice the epsilon that is charged."""

    def _asking(self, question, column):
        columns = super()._asking(question, column)
        law = question.law(2 * column.law.epsilon, column.n_items)
        return columns.with_columns([columns.columns[0].with_law(law)])


class ChangesWithParameters(ItemsetEstimator):
    """How many are shown follows a later parameter."""

    @property
    def itemsets_(self):
        return self._first(self.n_top)


class TakesOtherUsers(ItemsetEstimator):
    """Groups of a fit are not those of its words."""

    def _play(self, columns, n_rows, answers):
        return super()._play(columns, n_rows, lambda groups, source: answers(groups, source.part(1)))


class ForgetsThePadding(ItemsetEstimator):
    """Shares of what is sampled stand for frequencies."""

    def _first(self, n):
        found = super()._first(n)
        return found._replace(frequencies=found.frequencies / self.padding_lengths_[0])


class TellsSlotsApart(ItemsetEstimator):
    """Two empty slots have one code, which is then likelier than the guarantee allows."""

    def _in_round(self, columns, plan):
        made = super()._in_round(columns, plan)
        column = made._columns.columns[0]
        column.law = type(column.law)(column.law.epsilon, column.law.n_values, column.law.length)
        column.law.drawn = lambda rows, words: np.minimum(PaddedCodes.drawn(column.law, rows, words),
                                                          column.law.n_counts - 2)
        return made


class TakesAnyBasket(ItemsetEstimator):
    """What is no item is left out, also where errors are wanted."""

    def _is_strict(self):
        return True


class RefusesInStrictMode(ItemsetEstimator):
    """An error tells that a value is no item."""

    def _is_strict(self):
        return super()._is_strict() and not get_config()["strict"]


_ITEMS = ItemsetEstimator._test_params()[0]
BROKEN = [
    (ReportsWithMore, _ITEMS, "check_itemsets_promise"),
    (ChangesWithParameters, _ITEMS, "check_itemsets_state"),
    (TakesOtherUsers, _ITEMS, "check_itemsets_rounds"),
    (ForgetsThePadding, _ITEMS, "check_itemsets_truth"),
    (TellsSlotsApart, _ITEMS, "check_itemsets_reports"),
    (TakesAnyBasket, _ITEMS, "check_itemsets_refusals"),
    (RefusesInStrictMode, _ITEMS, "check_itemsets_are_total_in_strict_mode"),
]
