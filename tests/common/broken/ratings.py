"""Recommenders that know less of one user than they claim."""

from unittest import mock

import numpy as np

from dpestim.recommend import DPItemSimilarity, DPMatrixFactorization, factorization, item_similarity


class OneWeightForAll(DPItemSimilarity):
    """All users weigh the same, however many items they rated."""

    def _learn(self, ratings, law, bounds, source):
        with mock.patch.object(item_similarity.math, "isqrt", return_value=1 << 24):
            return super()._learn(ratings, law, bounds, source)


class KnowsTheMeans(DPItemSimilarity):
    """Residuals are of means without noise."""

    def _item_means(self, ratings, x, law, source):
        super()._item_means(ratings, x, law, source)
        return np.round(ratings.matrix(x.astype(float)).sum(axis=0) / max(1, ratings.n_users)).astype(np.int64)


class DoesNotFall(DPItemSimilarity):
    """Where one rating is protected, all users weigh the same, however many items they rated."""

    def _weights(self, n_items):
        return super()._weights(n_items)[:1] * (n_items + 1)


class ReadsAllRows(DPItemSimilarity):
    """A prediction is moved by the rows of others."""

    def _seen(self, X):
        ratings, own, apart, held = super()._seen(X)
        return ratings, own + own.mean(), apart, held


class RecommendsAnything(DPItemSimilarity):
    """Recommends what a user has rated."""

    def _seen(self, X):
        ratings, own, apart, held = super()._seen(X)
        return ratings, own, apart, held * 0


class LongFactors(DPMatrixFactorization):
    """Factors of users are not cut."""

    def _sums(self, *args):
        with mock.patch.object(factorization, "grid", lambda found, start: np.rint(300 * found).astype(np.int64)):
            return super()._sums(*args)


class KnowsTheFactors(DPMatrixFactorization):
    """Factors of items are those of sums without noise."""

    def _sums(self, *args):
        self._exact = super()._sums(*args)
        return self._exact

    def _learn(self, *args):
        def exact(squares, products, *rest):
            return solved(*self._exact, *rest)

        solved = factorization.solved
        with mock.patch.object(factorization, "solved", exact):
            return super()._learn(*args)


_SETTING = DPItemSimilarity._test_params()[0]
_FACTORS = DPMatrixFactorization._test_params()[0]
BROKEN = [
    (LongFactors, _FACTORS, "check_ratings_keep_epsilon"),
    (KnowsTheFactors, _FACTORS, "check_ratings_keep_epsilon"),
    (OneWeightForAll, _SETTING, "check_ratings_keep_epsilon"),
    (KnowsTheMeans, _SETTING, "check_ratings_keep_epsilon"),
    (DoesNotFall, DPItemSimilarity._test_params()[1], "check_ratings_keep_epsilon"),
    (ReadsAllRows, _SETTING, "check_rows_are_the_users_own"),
    (RecommendsAnything, _SETTING, "check_rows_are_the_users_own"),
]
