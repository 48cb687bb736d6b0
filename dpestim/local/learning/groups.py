"""Which users of a fit answer in which round, and what asks for the reports of one group where rows are in parts."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from dpestim.docstrings import Documented
from dpestim.inputs.frames import take
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.grouping import CountGroup, Grouping
from dpestim.local.learning.gradients import client_of
from dpestim.models import NO_TARGETS
from dpestim.passes import Blueprint, CountRows, size, words_of
from dpestim.records import record

#: The part of a fit's users whose rows make a centre, as one of so many.
CENTRE = 20
#: What a worker has to know of a model: how rows are read, which is declared.
_TOLD = ("_round", "_average", "_domain", "_told", "_frozen", "_scale", "n_features_in_", "feature_names_in_")


@record
class Groups(Grouping):
    """Groups of users: that of a row follows from a key and the number of the row, and from no value.

    Parameters
    ----------
    start : int
        The round that is open.
    n : int
        How many groups answer with gradients: each user is in any of them with the same probability.
    centre : bool
        Whether a group before them, one user of twenty, answers with its rows.
    """

    start: int
    n: int
    centre: bool

    def __len__(self):
        return self.n + self.centre

    @cached_property
    def _ends(self):
        first = (1 << 64) // CENTRE if self.centre else 0
        ends = [first] * self.centre + [first + ((1 << 64) - first) * j // self.n for j in range(1, self.n)]
        return np.array(ends, np.uint64)


class InParts(Documented):
    """How a model of rounds is fitted to rows in parts: each part answers for those of its rows that are in a group."""

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked once a round: charges before the first, for all of them.

        {fit of parts}
        """
        trial = self._trial() if not self.warm_start else self._resumed()
        if trial._inferred():
            raise ValueError(f"{type(self).__name__} needs all rows at once to find {' and '.join(trial._inferred())}: "
                             "declare them")
        _refuse_without_targets(example)
        X, y = example
        trial._read(X, np.asarray(y) if isinstance(y, list) else y, made_up=True)  # (targets that nobody declared)
        known = {name: vars(trial)[name] for name in _TOLD if name in vars(trial)}
        blueprint = replace(Blueprint.of(trial), state=known)
        n_rows = ask(CountRows(blueprint))
        if not n_rows:
            raise ValueError("the data must have at least one row")

        def answers(groups, source):
            request = CountGroup(blueprint, source.key_for_workers(), source.seeded, groups)
            return lambda k, round_: ask(replace(request, k=k, round_=round_))

        self._play(trial, n_rows, answers)

    def _read_part(self, rows):
        """Return what `_read` returns of the rows of a part."""
        _refuse_without_targets(rows)
        return self._read(*rows)

    def _count_group(self, rows, request, place):
        """Return counts of the reports of those rows of a part that are in the group of a request, or None."""
        source = words_of(request, place)
        few, first = request.groups.members(source, request.k, place.before, size(rows))
        if not len(few):
            return None
        rows, targets = self._read(*(take(own, few) for own in rows))
        self.transformer_ = client_of(self.mechanism, self.epsilon, self._average.size)
        group = MeanEstimator(self.transformer_)
        return group.aggregate(self._answers(rows, targets, request.round_, source, first))


def _refuse_without_targets(rows):
    if len(rows) < 2:
        raise ValueError(NO_TARGETS)
