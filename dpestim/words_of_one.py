"""The words of one record on a client: all of them made by one call, for nobody to draw again."""

import os
from functools import cached_property

import numpy as np

from dpestim.rng import WordReader, Words, fresh_words

#: Words of a record up to which all are made at once.
LARGEST_RECORD = 1 << 12


class WordsOfOne(Words):
    """The words of one record that nobody may draw again: the system's own, or where they are many, under a fresh key.

    Each stage takes words that no other has had, so that all are independent and uniform, as those under a key are
    taken to be. `eighths` and `below`, for many places of a record, have a cipher after all, under a key of its own.
    """

    alone = True
    _at, _first, _n_rows = (0, 0), 0, 1

    def __init__(self, n_words):
        self._all, self._next, self._end = fresh_words(n_words), 0, n_words
        self._drawn, self._kept, self._rare = {}, {}, {}

    def __reduce__(self):
        """Refuse, as a reader does."""
        raise TypeError("words of one record cannot be copied or pickled, as the copy would repeat them: draw new ones")

    @cached_property
    def _reader(self):
        return WordReader(os.urandom(32))

    def dense(self, stage, per_row):
        """Return per_row words; asked again, the same words."""
        return self._take(stage, per_row, per_row)

    def halves(self, stage):
        """Return one 32-bit number."""
        return self._take(stage, "halves", 1).view(np.uint32)[:1]

    def _take(self, stage, how, size):
        if stage in self._drawn:
            self._draw(stage, how)
            return self._kept[stage]
        drawn, start = self._next_of(size)
        words = self._kept[stage] = np.frombuffer(drawn, np.uint64, size, 8 * start)
        self._drawn[stage] = how
        return words

    def _next_of(self, size):
        """Return bytes, and at which word of them so many lie that no stage has had."""
        start, end = self._next, self._next + size
        if end > self._end:  # a law asks for more than it said: all of these are new
            return fresh_words(size), 0
        self._next = end
        return self._all, start

    def with_spare(self, stage, size, rare_stage, spare):
        """Return bytes, and the place of a stage's first word, behind whose words are spare ones of a rare stage.

        Nobody may draw words of these stages again.
        """
        if stage in self._drawn or rare_stage in self._drawn:
            raise ValueError(f"words of the stages {stage} and {rare_stage} were already drawn: use other stages")
        self._drawn[stage] = self._drawn[rare_stage] = "with spare"
        return self._next_of(size + spare)

    @staticmethod
    def more(size):
        """Return words that no stage has, as a list."""
        return np.frombuffer(fresh_words(size), np.uint64, size).tolist()

    def sparse(self, stage, per_row, places):
        """Return one word for each place; asked again for a place, the same word."""
        self._draw(stage, ("sparse", per_row))
        places = np.asarray(places).tolist()
        if places and (min(places) < 0 or max(places) >= per_row):
            raise ValueError("places must belong to this record, because other places name words of others")
        known = self._rare.setdefault(stage, {})
        new = [place for place in dict.fromkeys(places) if place not in known]
        known.update(zip(new, np.frombuffer(os.urandom(8 * len(new)), np.uint64).tolist()))
        return np.array([known[place] for place in places], np.uint64)

    def below(self, limit, stage, rare_stage, per_row=1):
        """Return (places, numbers); their rare words are of the cipher, so that `sparse` has none of this stage."""
        self._draw(rare_stage, ("below", per_row))
        lanes = self.eighths(stage, per_row)
        return self._reader.below(rare_stage, *self._at, 0, lanes, limit - 1)

    def scratch(self, size, dtype):
        """Return working memory."""
        return np.empty(size, dtype)


def words_of_one(n_words, number):
    """Return the words of one record and one of its columns, which asks for about n_words, without a seed."""
    if n_words <= LARGEST_RECORD:
        return WordsOfOne(n_words)
    return WordReader(os.urandom(32)).words(number, 0, 0, 1)
