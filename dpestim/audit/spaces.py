"""Inputs that a search for a counterexample tries: pairs of neighbours, the extreme ones first, and moves of a pair."""

import itertools
from fractions import Fraction

import numpy as np

from dpestim.inputs.declared import pair_of
from dpestim.privacy.rounding import positive, whole

#: The ways in which two vectors may be neighbours.
NEIGHBOURS = ("any", "one", "each", "total")
#: Categories of which all pairs are tried first.
_FEW = 24


class Choices:
    """Rows of categories; two are neighbours if they differ, or if they differ in one column."""

    def __init__(self, categories, neighbours):
        self.lists, self.one = [list(values) for values in categories], neighbours == "one"
        if not self.lists or any(len(values) < 2 for values in self.lists):
            raise ValueError("categories must be a list with a list of at least two values for each column")

    def data(self, row):
        """Return the data of a row of codes: a value, or a tuple."""
        values = tuple(own[k] for own, k in zip(self.lists, row))
        return values[0] if len(values) == 1 else values

    def starts(self):
        """Return pairs of rows, those that differ most first."""
        sizes = [range(min(len(own), _FEW)) for own in self.lists]
        rows = list(itertools.islice(itertools.product(*sizes), 10 * _FEW))
        pairs = [(a, b) for a, b in itertools.combinations(rows, 2) if not self.one or self._differ(a, b) == 1]
        return sorted(pairs, key=lambda pair: -self._differ(*pair))

    def near(self, pair, scale, rng):
        """Return a pair in which one code is another one; the same pair where these are no neighbours."""
        rows = [list(row) for row in pair]
        j = int(rng.integers(len(self.lists)))
        apart = [k for k, (a, b) in enumerate(zip(*pair)) if a != b]
        if self.one and j not in apart:  # (what is the same stays the same)
            rows[0][j] = rows[1][j] = int(rng.integers(len(self.lists[j])))
        else:
            rows[int(rng.integers(2))][j] = int(rng.integers(len(self.lists[j])))
        found = tuple(map(tuple, rows))
        return found if found[0] != found[1] and (not self.one or self._differ(*found) == 1) else pair

    def _differ(self, a, b):
        return sum(x != y for x, y in zip(a, b))


class Box:
    """Numbers, or vectors of numbers, within bounds; a pair is (first, how the second differs)."""

    def __init__(self, bounds, n_values, neighbours, step):
        lows, highs = pair_of(bounds, None, None)
        self.is_number = n_values is None and not any(np.ndim(end) for end in (
            bounds if isinstance(bounds, tuple | list) else (0, 0)))
        n = len(lows) if n_values is None else whole(n_values, "n_values")
        try:
            self.low, self.high = (np.broadcast_to(end, n).astype(float) for end in (lows, highs))
        except ValueError:
            raise ValueError("n_values must fit the bounds, which have a pair of ends for each value") from None
        self.exact_step = None if step is None else positive(step, "step")
        self.kind, self.step = neighbours, None if step is None else float(self.exact_step)
        if (neighbours in ("each", "total")) != (step is not None):
            raise ValueError('step must be given for neighbours "each" or "total", and for these only: how far values '
                             "move at most")

    def data(self, values):
        """Return the data of a tuple of numbers: a number, or a list."""
        return float(values[0]) if self.is_number else [float(value) for value in values]

    def _pair(self, first, moved):
        """Return two vectors within the bounds that are neighbours: first, and first + moved as far as allowed."""
        move = np.asarray(moved, float)
        if self.kind == "each":
            move = np.clip(move, -self.step, self.step)
        elif self.kind == "total" and np.abs(move).sum() > self.step:
            move = move * (self.step / np.abs(move).sum())
        elif self.kind == "one":
            keep = np.zeros(len(move))
            keep[np.abs(move).argmax()] = 1
            move = move * keep
        first = np.clip(first, self.low, self.high)
        second = np.clip(first + move, self.low, self.high)
        back = 2.0**-52
        while self._too_far(first, second):  # (rounding may not carry it further than the step)
            second, back = np.clip(first + (second - first) * (1 - back), self.low, self.high), 2 * back
        return tuple(first.tolist()), tuple(second.tolist())

    def _too_far(self, first, second):
        if self.step is None or (first == second).all():
            return False
        moves = [abs(Fraction(b) - Fraction(a)) for a, b in zip(first.tolist(), second.tolist())]
        return (sum(moves) if self.kind == "total" else max(moves)) > self.exact_step

    def _patterns(self):
        """Return directions: all values to one side, one alone, the first ones against the others, and in turns."""
        n = len(self.low)
        places = np.arange(n)
        splits = sorted({k for k in (1, n // 4, n // 2, n - n // 4, n - 1, n) if 0 < k <= n}, reverse=True)
        shapes = [*(np.where(places < k, 1.0, -1.0) for k in splits), np.eye(n)[0], np.eye(n)[-1],
                  np.where(places % 2, -1.0, 1.0)]
        return [np.array(shape) for shape in dict.fromkeys(tuple(shape) for each in shapes for shape in (each, -each))]

    def starts(self):
        """Return pairs near the ends, the middle and 0 of the bounds, in the directions that are patterns."""
        middle = (self.low + self.high) / 2
        zero = np.clip(np.zeros(len(self.low)), self.low, self.high)
        size = self.step if self.step is not None else float((self.high - self.low).max())
        pairs = []
        for shape, base in itertools.product(self._patterns(), (zero, self.low, middle, self.high)):
            start = np.where(shape < 0, np.minimum(base - size * np.minimum(shape, 0), self.high), base) if (
                self.step is not None) else base
            pairs.append(self._pair(start, size * shape))
        return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]

    def near(self, pair, scale, rng):
        """Return a pair that is moved at random, by a share `scale` of the bounds, or turned in one direction."""
        first, second = (np.array(part) for part in pair)
        reach = (self.high - self.low) * scale
        chosen = rng.random(len(first)) < max(0.3, 1.5 / len(first))
        start = first + np.where(chosen, rng.uniform(-1, 1, len(first)) * reach, 0)
        move = second - first
        turn = rng.random()
        if turn < 0.3:
            j = int(rng.integers(len(move)))
            move[j] = -move[j] if move[j] else rng.uniform(-1, 1) * (self.step or reach[j])
        elif turn < 0.6:
            move = move + rng.uniform(-1, 1, len(move)) * (self.step if self.step is not None else reach) * scale
        found = self._pair(start, move)
        return found if found[0] != found[1] else pair
