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
        return best_law(epsilon, max(2, len(lengths(size)))) if self.about_sizes else padded_law(
            epsilon, size, self.length)

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
        if not self.question.about_sizes:
            return held
        return np.searchsorted(lengths(len(candidates)), np.diff(held.start)).astype(self.law.code_dtype)


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

    def __init__(self, column, counts, n, bias=0.0):
        law, counts = column.law, counts[0] if n else None
        self.n, self.length, self.bias = n, getattr(law, "length", 1), bias
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
        """Return an interval for each: z standard errors to either side, and further up by half of the largest bias."""
        if not self.n:
            return np.full((len(self._shares), 2), np.nan)
        return self.length * ends(self._shares, z, self._error).T + [0.0, self.bias / 2]

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


def lengths(size):
    """Return the padding lengths to choose from for so many candidates, ascending: the last is their number.

    A user who is asked for the size says which is the first that the basket does not exceed: there are few of them, so
    that their shares have little noise.
    """
    found = [length for k in range(size.bit_length()) for length in (1 << k, 3 << k >> 1)]
    return np.array(sorted({length for length in found if length < size} | {size}))


def largest_biases(shares, size):
    """Return, for each padding length, the most that it can make a frequency too low, by estimated shares of lengths.

    A holder whose basket has s candidates counts length / s where s is larger, and s is at most what the user said.
    """
    found, shares = lengths(size), norm_sub(shares)[: len(lengths(size))]
    return np.maximum(1 - found[:, None] / found, 0.0) @ shares


def bias_of(sizes, question):
    """Return the most that padding makes a frequency too low, by what was `Heard` of sizes; 0 where that is nothing."""
    found = lengths(len(question.candidates))
    if not sizes.n or question.length not in found:
        return 0.0
    return float(largest_biases(sizes.frequencies, len(question.candidates))[found == question.length][0])


def length_of(heard, size, epsilon, n_next):
    """Return the padding length for so many candidates, for so many users who will be asked for them.

    The one with the least sum of the variance and of the square of half of the largest bias.
    """
    found = lengths(size)
    if not heard.n:
        return int(found[-1])
    laws = [padded_law(epsilon, size, int(length)) for length in found]
    variances = np.array([law.length**2 * law.spread / n_next for law in laws])
    return int(found[np.argmin(variances + np.square(largest_biases(heard.frequencies, size) / 2))])


def _is_whole(value, least, most):
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
