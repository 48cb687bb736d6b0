"""Which users of a fit answer in which round: the number of a row and a key decide, and no value."""


import numpy as np

from dpestim.passes import CountReports
from dpestim.records import record
from dpestim.rng import Stage

#: From here on parts of a call's words say who is in which group; no round has such a number.
GROUPS = 1 << 40
#: Rows of a block of words.
_BLOCK = 1 << 16
#: How many rows of blocks before a part are in each group, where a seed numbers rows over all parts.
_counted, _MOST = {}, 1 << 14


class Grouping:
    """Groups of users: that of a row follows from a key and the number of the row, and from no value.

    A sub-class, a frozen dataclass, has `start`, the first round, and brings ``__len__`` and `_ends`: the words from
    which on a row is in the next group.
    """

    #: Rounds have smaller numbers.
    most_rounds = GROUPS

    def of_rows(self, source, n_rows):
        """Return the numbers of the rows of each group, of rows from 0 on."""
        numbers = self._numbers(source.part(GROUPS + self.start), 0, n_rows)
        order = numbers.argsort(kind="stable")
        return np.split(order, np.searchsorted(numbers[order], np.arange(1, len(self))))

    def members(self, source, k, before, n_rows):
        """Return (the places of the rows of group k among rows that have so many before, how many of k are before)."""
        words = source.part(GROUPS + self.start)
        full, rest = divmod(before, _BLOCK)
        numbers = self._numbers(words, before - rest, rest + n_rows)
        earlier = sum(int(self._count(words, block)[k]) for block in range(full)) + int((numbers[:rest] == k).sum())
        return np.flatnonzero(numbers[rest:] == k), earlier

    def _numbers(self, source, start, n_rows):
        """Return the group of each row; ``start`` is the first row of a block."""
        reader, kind = source.reader(), np.uint16 if len(self) <= 1 << 16 else np.uint32
        found = [np.zeros(0, kind)]
        for at in range(start, start + n_rows, _BLOCK):
            words = reader.dense(Stage.SUBSET, 0, at // _BLOCK, 0, min(_BLOCK, start + n_rows - at))
            found.append(np.searchsorted(self._ends, words, side="right").astype(kind))
        return np.concatenate(found)

    def _count(self, source, block):
        """Return how many rows of a whole block are in each group."""
        key = source.fingerprint, self, block
        found = None if source.fingerprint is None else _counted.get(key)
        if found is None:
            found = np.bincount(self._numbers(source, block * _BLOCK, _BLOCK), minlength=len(self))
            if len(_counted) >= _MOST:
                _counted.clear()
            if source.fingerprint is not None:
                _counted[key] = found
        return found


@record
class CountGroup(CountReports):
    """Asks for counts of the reports of the users of one group, of rows in parts; None where a part has none."""

    groups: Grouping | None = None
    k: int = 0
    round_: object = None

    def of_rows(self, rows, place):
        """Return an aggregate of the reports."""
        return self.blueprint.build()._count_group(rows, self, place)

    def of_nothing(self, example):
        """Return None: a round may have no user."""
        return None
