"""What each group of users is asked about its baskets, and what its reports tell."""

import heapq
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpestim.local.categories.adaptive import best_law
from dpestim.local.column import Column
from dpestim.local.columns import Columns
from dpestim.local.domains.baskets import read_baskets
from dpestim.local.domains.padding import padded_law
from dpestim.local.interval_ends import ends
from dpestim.postprocessing.simplex import norm_sub

#: What the largest frequency counts as, where frequencies are multiplied.
_LARGEST = 0.9
#: Rows whose sets are looked at together.
_ROWS = 1 << 16
#: The share of baskets that the padding length is to cover.
COVERED = 0.9


class Question(NamedTuple):
    """What a group is asked: one of the candidates in the basket, or (odd numbers) how many there are.

    `candidates` are tuples of numbers of items, a basket has one where it has all of them; None: all items.
    """

    number: int = 0
    candidates: tuple | None = None
    length: int = 1

    @property
    def about_sizes(self):
        """Whether the group is asked how many candidates a basket has."""
        return self.number % 2 == 1

    def law(self, epsilon, n_items):
        """Return the law of a report."""
        size = n_items if self.candidates is None else len(self.candidates)
        return best_law(epsilon, size + 1) if self.about_sizes else padded_law(epsilon, size, self.length)

    def as_state(self):
        """Return it as plain values."""
        return {"number": self.number, "candidates": [list(own) for own in self.candidates], "length": self.length}

    @classmethod
    def of_state(cls, state, last, n_items, n_top):
        """Return the question of plain values, or raise ValueError."""
        wrong = not isinstance(state, dict) or set(state) != {"number", "candidates", "length"}
        if wrong or not _is_whole(state["number"], 1, last) or not _is_whole(state["length"], 1, 2 * n_top):
            raise ValueError(f"round must have number (from 1 to {last}), candidates, and length (from 1 to "
                             f"{2 * n_top})")
        number, given = state["number"], state["candidates"]
        if not isinstance(given, list) or not 1 <= len(given) <= 2 * n_top or not all(
                isinstance(own, list) and own and all(_is_whole(item, 0, n_items - 1) for item in own)
                and len(set(own)) == len(own) and (number > 2) == (len(own) > 1) for own in given):
            raise ValueError(f"candidates of a round must be lists of numbers below {n_items}: of one item in rounds 1 "
                             "and 2, of several items later")
        found = tuple(map(tuple, given))
        if len({frozenset(own) for own in found}) < len(found):
            raise ValueError("candidates of a round must differ")
        return cls(number, found, state["length"])


class BasketColumn(Column):
    """Baskets, as a question reads them.

    Parameters
    ----------
    law : PaddedLaw, or a law of categories for sizes
    items : tuple or None
        All items; None: the columns of a table.
    n_items : int
    question : Question
    """

    def __init__(self, law, items, n_items, question):
        super().__init__("baskets", law)
        self.items, self.n_items, self.question = items, n_items, question

    def with_law(self, law):
        """Return the same question by another law."""
        return BasketColumn(law, self.items, self.n_items, self.question)

    def identity(self):
        """Return the items, the question and the law."""
        return None if self.items is None else tuple(map(repr, self.items)), self.n_items, self.question, self.law

    def read(self, values, n_jobs, strict):
        """Return the checked `Baskets`: `asked` makes of them what the law takes."""
        return self.asked(read_baskets(values, self.items, self.n_items, strict=strict))

    def asked(self, baskets):
        """Return what the law takes of baskets: sets of candidates, or how many there are."""
        candidates = self.question.candidates
        held = baskets if candidates is None else baskets.of_candidates(candidates, _ROWS)
        return np.diff(held.start).astype(self.law.code_dtype) if self.question.about_sizes else held


class BasketColumns(Columns):
    """The one column of baskets, whose guarantee says that a user answers once."""

    def with_columns(self, columns):
        """Return another column in the same layout."""
        return BasketColumns(columns, self.inferred, self.keys)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what one report promises."""
        found, note = super().guarantee(seeded, times, n_batches), "Each user answers in one round, and reports once."
        return replace(found, notes=(*found.notes, note))


class Heard:
    """What a group has reported: estimated frequencies of its candidates, and errors of such frequencies."""

    def __init__(self, column, counts, n):
        law, counts = column.law, counts[0] if n else None
        self.n, self.length = n, getattr(law, "length", 1)
        size = law.n_categories if column.question.about_sizes else law.n_values
        self._shares = law.estimate(counts, n) if n else np.full(size, np.nan)
        line = getattr(law, "share_line", None) or law.variance_line
        self._line = line(counts, n) if n else (np.nan, np.nan)

    @property
    def frequencies(self):
        """The estimates."""
        return self.length * self._shares

    @property
    def errors(self):
        """Their standard errors."""
        return self.length * self._error(np.clip(self._shares, 0, 1))

    def interval(self, z):
        """Return an interval for each, z standard errors to either side."""
        if not self.n:
            return np.full((len(self._shares), 2), np.nan)
        return self.length * ends(self._shares, z, self._error).T

    def _error(self, shares):
        """Return the standard errors at shares of who drew a value, with that of the draw of the users."""
        at_zero, slope = self._line
        return np.sqrt(np.maximum(at_zero + slope * shares + shares * (1 - shares), 0.0) / max(self.n, 1))


def products(frequencies, n_sets, longest):
    """Return the sets of two or more places, up to `longest`, with the largest products, the largest first.

    `frequencies` fall; only the positive ones count.
    """
    rising = frequencies[frequencies > 0]
    weights = -np.log(_LARGEST * rising / rising.max()) if len(rising) else rising
    heap, found = [(weights[0], (0,))] if len(weights) else [], []
    while heap and len(found) < n_sets:
        cost, own = heapq.heappop(heap)
        if len(own) > 1:
            found.append(own)
        after = own[-1] + 1
        if after < len(weights):  # each set has one parent, whose product is no smaller
            heapq.heappush(heap, (cost - weights[own[-1]] + weights[after], (*own[:-1], after)))
            if len(own) < longest:
                heapq.heappush(heap, (cost + weights[after], (*own, after)))
    return found


def length_of(sizes):
    """Return the padding length that covers most baskets, from the estimated shares of their sizes."""
    if not np.isfinite(sizes).all():  # (nobody has reported)
        return max(1, len(sizes) - 1)
    covered = np.cumsum(norm_sub(sizes)) >= COVERED
    return max(1, int(np.argmax(covered))) if covered.any() else max(1, len(sizes) - 1)


def _is_whole(value, least, most):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
