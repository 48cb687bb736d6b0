"""What cuts a region by reports of groups of users: rounds, cells that tile, what equal rows are found as."""

from unittest import mock

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.learning import Learners, N, check_learner_promise, check_learner_refusals
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state


class Parted(Learners):
    """What cuts a region, to check."""

    wrong = {**Learners.wrong, "units": ("miles", 1), "depth": (0, 1, 11, 2.5, "deep", True),
             "n_users": (0, 1.5, "2", True)}

    def takes(self, name):
        """Tell whether it has a parameter, and makes something of it."""
        return name in self.estimator.get_params() and super().takes(name)

    def checks(self):
        """Return the checks."""
        return CHECKS


def check_parts_are_played_in_rounds(parted):
    """Devices and a server play what `fit` does in one place: each report costs epsilon, and questions are public."""
    rows, epsilon = parted.rows(800)[0], canonical_epsilon(parted.estimator.epsilon)
    server, depth, asked = parted.fresh(), [], 0
    groups = np.array_split(rows, len(server._shares()))
    for k, group in enumerate(groups):
        device = (server.client() if k else parted.fresh()).set_params(ledger=Book(), random_state=k)
        require(device.question_ == server.question_, "a device must know the question of the open round")
        server.aggregate(device.privatize(group))
        require([paid[0].epsilon for paid in device.ledger.paid] == [epsilon], "a report must cost epsilon, once")
        depth.append(server.question_[0])
        asked += len(group)
        require(server.n_users_ == asked, "all rounds count")
        if k + 1 < len(groups):
            server.next_round()
            _check_cells(server)
    require(depth == sorted(set(depth)), "each round must ask about finer cells")
    require(refuses(server.next_round, "a round after the last one", server) != "", "it must say what to do")
    one, two = parted.fresh(random_state=1).client(), parted.fresh(random_state=2).client()
    one.aggregate(parted.fresh(random_state=1).privatize(rows[:100]))
    two.aggregate(parted.fresh(random_state=2).privatize(rows[100:300]))
    require(one.merge(two).n_users_ == 300, "servers of one round must add up")


def _check_cells(server):
    """Require that a place has the number of the asked cell in which it lies, or the last one."""
    (view,), side = server._columns, server._columns.row[0].n_values
    codes = np.random.default_rng(2).integers(0, side, (2, 200)).astype(np.uint32)
    nodes = np.reshape(view.nodes, (-1, 4))
    require((nodes == nodes[:, :1] + np.arange(4)).all() and (nodes[:, 0] % 4 == 0).all(), "a cell is cut into four")
    for x, y, number in zip(*codes.tolist(), view.of(list(codes)).tolist()):
        x, y, node = x * 2**view.depth // side, y * 2**view.depth // side, 0
        for bit in range(view.depth):
            node |= (x >> bit & 1) << 2 * bit + 1 | (y >> bit & 1) << 2 * bit
        wanted = view.nodes.index(node) if node in view.nodes else len(view.nodes)
        require(number == wanted, "a place must have the number of its cell, or that of no asked cell")


def check_parts_are_consistent(parted):
    """Cells tile the region; counts are not negative and add up to the users; ranges are sums; a seed reproduces it."""
    rows = parted.rows(3_000)[0]
    est = parted.fresh().fit(rows)
    sizes = (est.boxes_[:, 1] - est.boxes_[:, 0]) * (est.boxes_[:, 3] - est.boxes_[:, 2])
    require(sizes.min() > 0 and sizes.sum() == 1 << 32, "cells must tile the region")
    require(est.counts_.min() >= 0 and abs(est.counts_.sum() - 3_000) < 1e-6, "counts must add up to the users")
    lows, highs = est.bounds_
    middle = lows + (highs - lows) * [0.37, 1.0]
    parts = est.range(lows, middle)[0] + est.range([middle[0], lows[1]], highs)[0]
    require(abs(est.range(lows, highs)[0] - parts) < 1e-6, "two rectangles must add up to both")
    require(same_state(est.counts_.tolist(), parted.fresh().fit(rows).counts_.tolist()), "a seed must reproduce counts")
    other = parted.fresh(random_state=None)
    require(differs_each_time(lambda: other.fit(rows).counts_.tolist()), "noise must be new")


def check_parts_find_equal_rows(parted):
    """Of equal rows the cell that holds them is cut in every round, and has nearly all of the count (n = 20,000)."""
    est = parted.fresh().fit(np.repeat(parted.rows(1)[0], N, axis=0))
    row = np.clip(parted.rows(1)[0][0], *est.bounds_)
    cells = est.cells_
    inside = ((cells[:, ::2] <= row) & (row <= cells[:, 1::2])).all(axis=1)
    require(est.counts_[inside].max() > 0.8 * N, "the cell of all rows must have nearly all of the count")
    finest = (est.boxes_[:, 1] - est.boxes_[:, 0]).min()
    require(est.boxes_[inside, 1].min() - est.boxes_[inside, 0].max() <= finest, "the cell of all rows must be cut")


def check_parts_draw_new_words_in_each_round(parted):
    """Groups of users have words of their own."""
    est, words = parted.fresh(random_state=1), []
    base = next(cls for cls in reversed(type(est).__mro__) if "_take" in vars(cls))  # (below what sub-classes change)
    take = base._take

    def taken(self, rows, source, *more, **named):
        words.append(source.fingerprint)
        return take(self, rows, source, *more, **named)

    with mock.patch.object(base, "_take", taken):
        est.fit(parted.rows(400)[0])
    require(len(words) == len(set(words)) == len(est._shares()), "two rounds must not share words")


CHECKS = (check_learner_promise, check_learner_refusals, check_parts_are_played_in_rounds, check_parts_are_consistent,
          check_parts_find_equal_rows, check_parts_draw_new_words_in_each_round)
