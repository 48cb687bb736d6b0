"""Recommenders of flipped lists with one fault each."""

from dataclasses import replace

import numpy as np

from dpestim.graph.lists.flips import BitLaw
from dpestim.recommend import DPLCFRecommender
from dpestim.recommend.pairs import Pairs


class ChargesOneItem(DPLCFRecommender):
    """Says that a whole list costs what an item costs."""

    def _guarantee(self):
        said = super()._guarantee()
        return replace(said, epsilon=said.relaxed_epsilon)


class FlipsTooSeldom(DPLCFRecommender):
    """Keeps bits by twice the epsilon that it says."""

    def _reported(self, X):
        said = self.epsilon
        try:
            self.epsilon = 2 * said
            return super()._reported(X)
        finally:
            self.epsilon = said


class LawOfAList(DPLCFRecommender):
    """Takes epsilon for each bit where it is declared for the list."""

    def _law(self):
        return BitLaw(self._of_an_item() * (self.n_items if self.protects == "list" else 1))


class OneCoinForAll(DPLCFRecommender):
    """Flips the last bit with the first one."""

    def privatize(self, X):
        reports = super().privatize(X)
        bits = np.unpackbits(reports, axis=1, count=self.n_items, bitorder="little")
        mine = X.toarray() != 0
        bits[:, -1] = mine[:, -1] ^ bits[:, 0] ^ mine[:, 0]
        return np.packbits(bits, axis=1, bitorder="little")


class Biased(DPLCFRecommender):
    """Counts reports of both items as they are."""

    def co_occurrences(self):
        return self._kept[0].reported.astype(float)


class HalfErrors(Pairs):
    """Has errors that are half as large."""

    def errors(self, rows=slice(None)):
        return super().errors(rows) / 2


class ErrsMore(DPLCFRecommender):
    """Says too small errors."""

    def standard_errors(self):
        pairs = self._kept[0]
        return HalfErrors(pairs.reported, pairs.n_users, pairs.law).errors()


class MergesAnything(DPLCFRecommender):
    """Adds reports of another law."""

    def merge(self, other):
        pairs, promised = other._kept or (None, None)
        return super().merge(other) if pairs is None or other is self else self._take(
            pairs.reported, pairs.n_users, promised.seeded)


class ChargesLate(DPLCFRecommender):
    """Charges nothing for what a server fits."""

    def fit(self, X, y=None):
        self.ledger, ledger = None, self.ledger
        try:
            return super().fit(X)
        finally:
            self.ledger = ledger


class RecommendsAnything(DPLCFRecommender):
    """Recommends what a user has."""

    def _seen(self, X):
        ratings, held = super()._seen(X)
        return ratings, held * 0


_ITEM, _LIST = DPLCFRecommender._test_params()
BROKEN = [
    (ChargesOneItem, _ITEM, "check_items_keep_epsilon"),
    (LawOfAList, _LIST, "check_items_keep_epsilon"),
    (FlipsTooSeldom, _ITEM, "check_items_follow_law"),
    (OneCoinForAll, _ITEM, "check_items_follow_law"),
    (Biased, _ITEM, "check_items_are_unbiased"),
    (ErrsMore, _ITEM, "check_items_are_unbiased"),
    (MergesAnything, _ITEM, "check_items_aggregate"),
    (ChargesLate, _ITEM, "check_items_charge"),
    (RecommendsAnything, _ITEM, "check_items_are_the_users_own"),
]
