"""What every law of numbers has: a grid of inputs, a table of integer weights, and all that follows from them."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import pm
from dpestim.local.channel import Dense, Piecewise, hat_shares, hat_values, least_variance, output_edges
from dpestim.local.constants import constants_of
from dpestim.local.guessing import Runs
from dpestim.local.law import Randomizer
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD, uses_enough, within
from dpestim.rng import Stage

#: Steps of the input grid of a law that has a kernel: an answer fits 16 bits, and the grid is far finer than the noise.
LARGEST_GRID = 1 << 15
#: Steps of the input grid of a law that is given by a table.
LARGEST_TABLE = 1 << 10
#: Fraction bits of the fixed point that is rounded to the grid.
FRACTION = 32
NO_ZONE = 1 << 40  # beyond every code


class NumericRandomizer(CodeReports, Randomizer):
    """Base of the laws of numbers, ``__init__(self, epsilon, grid, ...)``; positions are shares of the bounds.

    Values are rounded, without bias, to one of the grid + 1 inputs 0, 1 / grid, ..., 1, and input g reports code y with
    probability ``table()[g][y] / 2**64``. A sub-class brings `table` and `outputs`; everything else has a default
    that reads these tables, and a law with structure may do better. It is unbiased where the mean of `outputs` over
    row g is g / grid; where it is not, ``is_unbiased = False`` lets linear inversion find other numbers.

    Attributes
    ----------
    grid : int
    positions : ndarray
        What each code stands for, as floats.
    """

    heavy = True
    n_words = 2
    #: An answer takes so little time that Python is felt between blocks of the usual size (1.2 times as long).
    block_words = 1 << 18
    code_dtype = np.dtype(np.int64)
    #: Whether the mean of `outputs` over a row is the row's input.
    is_unbiased = True
    #: The fewest and the most steps that the grid may have.
    smallest_grid, largest_grid = 1, LARGEST_TABLE

    def __init__(self, epsilon, grid):
        super().__init__(epsilon)
        least, most = self.smallest_grid, self.largest_grid
        if isinstance(grid, bool) or not isinstance(grid, int | np.integer) or not least <= grid <= most or (
            grid & (grid - 1)
        ):
            raise ValueError(f"grid must be a power of two from {least} to {most}")
        self.grid = int(grid)

    def check(self):
        """Refuse an epsilon that 64-bit weights cannot express, and a table that does not keep a plain one."""
        try:
            enough = len(self._weights) and np.isfinite(self.positions).all()
        except (ZeroDivisionError, OverflowError):
            enough = False
        if not enough:
            raise ValueError("epsilon is too small or too large, because 64-bit weights cannot express the law: change "
                             "epsilon or the grid")
        if len(self.positions) != self.n_counts:
            raise ValueError("outputs must return one position for each column of table")
        if self.relaxation is None and not all(within(*ends, self.epsilon) for ends in self._ends_of_columns()):
            raise ValueError("epsilon is too small for this law: the weights in a column of its table differ by more "
                             "than e^epsilon")

    def table(self):
        """Return rows of integers, one for each input, each summing to 2**64."""
        raise TypeError(f"{type(self).__name__} does not state its weights: implement `table`")

    def _words(self):
        """Return the table as an array of uint64, each row summing to 2**64, where a law makes it so; else None."""
        return None

    @property
    def n_counts(self):
        """The number of codes."""
        return self._weights.shape[1]

    @property
    def report_dtype(self):
        """The dtype of a code."""
        return np.dtype(np.uint16 if self.n_counts <= 1 << 16 else np.uint32)

    @cached_property
    def _weights(self):
        """The table, checked: an array of uint64, or of integers where a word need not hold a weight."""
        # (a sub-class that has a `table` of its own is asked for that, whatever its base has)
        nearest = next(c for c in type(self).__mro__ if "table" in vars(c) or "_words" in vars(c))
        words = self._words() if "_words" in vars(nearest) else None
        if words is not None:
            rows, sums = words, sums_of_rows(words)
        else:
            rows = [[int(w) for w in row] for row in self.table()]
            sums = [sum(row) if row and min(row) >= 0 else -1 for row in rows]
        if len(rows) != self.n_inputs or len(set(map(len, rows))) != 1 or set(sums) != {WORD}:
            raise ValueError("table must return grid + 1 rows, equally long, of non-negative integers summing to 2**64")
        return words if words is not None else np.array(rows, object)

    def _ends_of_columns(self):
        """Return the different (largest, smallest) weights of codes."""
        return set(zip(self._weights.max(axis=0).tolist(), self._weights.min(axis=0).tolist()))

    @cached_property
    def _rows(self):
        return self._weights.tolist()

    @cached_property
    def _cells(self):
        """Walker's cells of all rows, an array, and how many bits of a word are the number of its cell."""
        bits = max(1, (self.n_counts - 1).bit_length())
        return np.array([cells_of(row, bits) for row in self._rows], np.uint64), bits

    @cached_property
    def _quick(self):
        """The same of the upper halves of words, which decide nearly always: tables of half the size."""
        from dpestim._core import table  # (a library that only laws need which a table gives)
        cells, bits = self._cells
        if bits > table.QUICK:
            return np.empty((0, 0), np.uint32)
        other = cells & np.uint64((1 << bits) - 1)
        return (cells >> np.uint64(32 + bits) << np.uint64(bits) | other).astype(np.uint32)

    def constants(self):
        """Return the integers among the attributes, and the table: its rows are of 2^64 words."""
        more = {} if type(self).table is NumericRandomizer.table else {"table": self._rows}
        return constants_of(self) | more

    def outputs(self):
        """Return the exact position that each code stands for."""
        raise TypeError(f"{type(self).__name__} does not say what its codes stand for: implement `outputs`")

    # ---------------------------------------------------------------- what is sent

    def encode(self, x, low, high, out):
        """Write the fixed point of values in the user's units; `low` and `high` are the bounds."""
        pm.encode(x, *self.ends(low, high), out)

    def ends(self, low, high):
        """Return what the kernel that encodes asks besides x and out."""
        return low, high, self.scale(low, high), self.grid << FRACTION, 1.0, 0.0, 0.0, 0

    def fits(self, low, high):
        """Tell whether there are floats enough between two bounds."""
        return True

    def scale(self, low, high):
        """Return fixed-point units a unit of x."""
        return float(self.grid << FRACTION) / (high - low)

    def privatize(self, codes, words, out):
        """Write one code for each fixed point."""
        from dpestim._core import table
        lanes, drawn = words.halves(Stage.ROUNDING), words.dense(Stage.RESPONSE, 1)
        table.answer(codes, lanes, drawn, self._cells[0], self._quick, self._cells[1], out.reshape(-1))

    # ---------------------------------------------------------------- the law, row by row

    @property
    def n_inputs(self):
        """Rows of the law: the grid points."""
        return self.grid + 1

    @property
    def input_codes(self):
        """The fixed point of every row."""
        return np.arange(self.grid + 1, dtype=np.int64) << FRACTION

    def inputs(self):
        """Return the exact position of every row."""
        return [Fraction(g, self.grid) for g in range(self.grid + 1)]

    @cached_property
    def input_positions(self):
        """The position of every row, as floats."""
        return np.arange(self.grid + 1) / self.grid

    def edges_of(self, low, high):
        """Return arrays of values at which an input changes its kind, and their neighbours; here none."""
        return []

    @cached_property
    def positions(self):
        """The position of each code, as floats."""
        return np.array([float(z) for z in self.outputs()])

    def transition_matrix(self):
        """Return rows of Fractions, one for each input."""
        return [[Fraction(w, WORD) for w in row] for row in self._rows]

    def law_indices(self, codes, reports):
        """Return (row, code); the fixed points must be those of rows."""
        return codes >> FRACTION, reports[:, 0].astype(np.int64)

    def input_of(self, codes):
        """Return the number of the input that each fixed point is nearest to."""
        magnitude = np.where(codes < 0, ~codes, codes)  # (complements are inputs of another kind)
        nearest = (magnitude + (1 << (FRACTION - 1))) >> FRACTION << FRACTION
        return super().input_of(np.where(codes < 0, ~nearest, nearest))

    def spacing_at(self, positions):
        """Return how far apart the inputs are that values at these positions are rounded to, in positions."""
        return np.full(len(positions), 1 / self.grid)

    def runs(self):
        """Return the columns of the table."""
        return Runs.of_matrix(self._matrix)

    @cached_property
    def _matrix(self):
        return np.asarray(self._weights / float(WORD), np.float64)

    def expect(self, values):
        """Return the mean of values[code] for every row."""
        return self._matrix @ np.asarray(values, np.float64)

    def noise_of(self, numbers):
        """Return the variance of ``numbers[code]`` for every row."""
        return np.maximum(self.expect(np.square(numbers)) - np.square(self.expect(numbers)), 0.0)

    def noise_at(self, row, numbers):
        """Return the variance of ``numbers[code]`` for one row."""
        return float(self.expect(np.square(numbers))[row] - self.expect(numbers)[row] ** 2)

    def variance(self):
        """Return the variance of the position that a report stands for, for every row."""
        centred = self.positions - 0.5  # (less cancellation)
        return self.expect(np.square(centred)) - np.square(self.expect(centred))

    def sampled_variance(self, d, k):
        """Return the variance of a user's number at worst, in widths of the bounds, where k of d columns are drawn.

        The number is that of `decode`, d / k as far from the middle as the report, so at a distance y from it the
        variance is (d / k) (variance of the report + y^2) - y^2. This is n times the variance of the mean of a column
        whose values lie at both sides of the middle alike, too.
        """
        order = np.argsort(self.input_positions)
        y = self.input_positions[order] - 0.5
        square = d / k * (self.variance()[order] + np.square(y))
        # between two grid points the square is a line, and y^2 is none
        rise, step = np.diff(square), np.diff(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.nan_to_num(np.clip((rise / step / 2 - y[:-1]) / step, 0, 1))
        between = square[:-1] + at * rise - np.square(y[:-1] + at * step)
        return float(max(between.max(), square[-1] - y[-1] ** 2))

    def mean_values(self):
        """Return (a number for each code whose mean is the input's position, the largest bias that is left)."""
        return (self.positions, 0.0) if self.is_unbiased else self._inverted

    @cached_property
    def _inverted(self):
        return least_variance(self._matrix, np.arange(self.grid + 1) / self.grid)

    def reach(self):
        """Return the least and the largest position that a report stands for where means are estimated.

        Fractions, but where numbers were found by inversion: there they are floats.
        """
        if self._is_exact:
            told = self.outputs()
            return min(told), max(told)
        told, _ = self.mean_values()
        return float(told.min()), float(told.max())

    def mean_reach(self):
        """Return the same of the mean over the reports of one input."""
        if self._is_exact:
            return Fraction(0), Fraction(1)
        means = self.expect(self.mean_values()[0])
        return float(means.min()), float(means.max())

    @property
    def _is_exact(self):
        return self.is_unbiased and type(self).mean_values is NumericRandomizer.mean_values

    # ---------------------------------------------------------------- binned, for expectation maximisation

    def channel(self, n_bins):
        """Return (bin edges as positions, output of each code, a channel) of inputs spread evenly within each bin."""
        edges = np.linspace(0, self.grid, n_bins + 1)
        rows = hat_shares(edges, self.grid + 1) @ self._matrix
        at = hat_values(edges, self.grid + 1) @ self._matrix
        return edges / self.grid, np.arange(self.n_counts), Dense(rows, at)


def too_small(grid, enough):
    """Return the error of a table whose weights cannot express an epsilon, where `enough` could be."""
    return ValueError(f"epsilon is too small, because 64-bit random words cannot express the law on a grid of {grid} "
                      f"steps: take {enough:.1g} a column, or a coarser grid")


def cells_of(row, bits):
    """Return 2**bits integers, keep << bits | other: of a cell's words `keep` answer its own number, the rest `other`.

    Exact: code j is answered by just row[j] words, for integers that sum to 2**64 (Walker 1977, as done by Vose 1991).
    """
    size, left = WORD >> bits, [*row, *[0] * ((1 << bits) - len(row))]
    cells = list(range(1 << bits))  # a whole cell: no word of it is kept, and the others answer the same
    short, ample = [j for j, w in enumerate(left) if w < size], [j for j, w in enumerate(left) if w >= size]
    while short:  # the words that are left fill the cells that are left, so another code has some to spare
        j, k = short.pop(), ample[-1]
        cells[j] = left[j] << bits | k
        left[k] -= size - left[j]
        if left[k] < size:
            short.append(ample.pop())
    return cells


class WindowRandomizer(NumericRandomizer):
    """Laws with a window of likely codes over a constant: input g has the window g, ..., g + W - 1.

    A sub-class hands to ``__init__`` a function that gives its integer weights, for instance
    `dpestim.privacy.number_weights.pm_weights`. Whatever the window is, the codes stand for evenly spaced positions
    that make the law exactly unbiased; all of it is linear in the grid.
    """

    smallest_grid, largest_grid = 2, LARGEST_GRID  # an odd window is narrower than the grid
    n_counts = report_dtype = None  # attributes here, not worked out from a table

    def __init__(self, epsilon, grid, weights):
        super().__init__(epsilon, grid)
        self.weights = w = weights(self.epsilon, self.grid)
        if not uses_enough(w.inside, w.outside, self.epsilon):
            self.slack = "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"
        self.step = Fraction(w.total, (w.inside - w.outside) * w.window * self.grid)
        self.n_counts = w.n_outputs
        self.integers = (w.window * w.inside, 0, w.inside, w.outside, w.window, NO_ZONE, 0, 0, 0, 0, 0, 0)
        self._set_format()

    def check(self):
        """Refuse weights that are no law, or whose ratio is above epsilon: anybody may have made them."""
        w = self.weights
        whole = w.total == WORD and w.window % 2 == 1 and w.grid == self.grid
        if not (whole and 0 < w.outside <= w.inside and within(w.inside, w.outside, self.epsilon)):
            raise ValueError("the weights of the window do not make a law of this epsilon")

    def constants(self):
        """Return `weights`: of 2^64 words `inside` answer each of the `window` codes from the grid point on.

        `outside` answer each other code, of which there are `grid` in all.
        """
        return {name: own for name, own in constants_of(self).items() if name not in ("step", "integers")}

    def _set_format(self):
        self.report_dtype = np.dtype(np.uint16 if self.n_counts <= 1 << 16 else np.uint32)

    def privatize(self, codes, words, out):
        """Write one code for each fixed point."""
        lanes, drawn = words.halves(Stage.ROUNDING), words.dense(Stage.RESPONSE, 1)
        pm.answer(codes, lanes, drawn, self.integers, out.reshape(-1))

    def outputs(self):
        """Return the exact position that each code stands for."""
        w = self.weights
        return [Fraction(1, 2) + self.step * (j - Fraction(w.n_outputs - 1, 2)) for j in range(w.n_outputs)]

    @cached_property
    def positions(self):
        """The position of each code, as floats."""
        return self._window_positions()

    def _window_positions(self):
        n = self.weights.n_outputs
        return 0.5 + float(self.step) * (np.arange(n) - (n - 1) / 2)

    def transition_matrix(self):
        """Return rows of Fractions, one for each grid point."""
        return [self._row(g) for g in range(self.grid + 1)]

    def _row(self, g):
        w = self.weights
        inside, outside = Fraction(w.inside, WORD), Fraction(w.outside, WORD)
        return [inside if g <= j < g + w.window else outside for j in range(w.n_outputs)]

    def known_counts(self, counts, n):
        """Return how many codes have each remainder modulo the width: every window holds one code of each."""
        return [self._remainders(counts, n)]

    def _remainders(self, counts, n):
        from dpestim.local import pivots  # (only who looks for wrong reports asks for them)
        w = self.weights
        more = np.arange(w.n_outputs) % w.window
        times = np.bincount(more, minlength=w.window)
        chances = (w.inside / WORD) + (times - 1) * (w.outside / WORD)
        seen = np.bincount(more, counts[: w.n_outputs], w.window).astype(np.int64)
        return pivots.grouped(f"remainders of codes modulo {w.window}", seen, chances, n)

    def runs(self):
        """Return the columns: the inputs whose window holds the code, and all others."""
        codes = np.arange(self.weights.n_outputs)
        return self._windows(np.arange(self.grid + 1), self.grid + 1, codes, codes, self.n_counts)

    def _windows(self, points, n_inputs, outputs, codes, n_counts, limit=None):
        """Return `Runs` of outputs, sent as codes; the first inputs are these grid points, in ascending order."""
        w = self.weights
        starts, stops = np.searchsorted(points, outputs - w.window + 1), np.searchsorted(points, outputs, side="right")
        return Runs.of_windows(n_inputs, n_counts, starts, stops, w.inside / WORD, w.outside / WORD, codes, limit)

    def expect(self, values):
        """Return the mean of values[code] for every row, in O(inputs + outputs)."""
        w = self.weights  # (NumPy before 2 multiplies its floats with no integer of 64 bits)
        before = np.concatenate([[0.0], np.cumsum(values, dtype=np.longdouble)])
        window = before[w.window :] - before[: w.grid + 1]
        means = np.longdouble(w.outside) * before[-1] + np.longdouble(w.inside - w.outside) * window
        return np.asarray(means / float(WORD), np.float64)

    def noise_at(self, row, numbers):
        """Return the variance of ``numbers[code]`` for one row: every mean asks for it."""
        return self._mean_at(row, np.square(numbers)) - self._mean_at(row, numbers) ** 2

    def _mean_at(self, row, values):
        """Return the mean of values[code] for one row."""
        if type(self).expect is not WindowRandomizer.expect:  # (a law of more than a window)
            return float(self.expect(values)[row])
        return self._mean_of_window(row, values)

    def _mean_of_window(self, g, values):
        """Return that of the window at grid point g, from two sums."""
        w = self.weights
        inside, everywhere = (x.sum(dtype=np.longdouble) for x in (values[g : g + w.window], values))
        outside, more = np.longdouble(w.outside), np.longdouble(w.inside - w.outside)
        return float((outside * everywhere + more * inside) / float(WORD))

    def channel(self, n_bins):
        """Return (bin edges as positions, output of each code, `Piecewise`) of inputs spread evenly within each bin."""
        w = self.weights
        edges = np.linspace(0.0, self.grid, n_bins + 1)
        cuts = output_edges(0, w.n_outputs, self.grid / n_bins)
        base = w.outside / WORD * np.diff(cuts)
        channel = Piecewise(edges, cuts, w.window, (w.inside - w.outside) / WORD, base)
        return edges / self.grid, np.repeat(np.arange(len(cuts) - 1), np.diff(cuts)), channel


def sums_of_rows(words, factors=1):
    """Return the exact sums of the rows of an array of uint64, as Python's integers; `factors` of int64 go first.

    Halves of words are added, so that no sum leaves 64 bits: factors times the length of a row must be below 2^31.
    """
    high, low = ((half.astype(np.int64) * factors).sum(axis=1).tolist()
                 for half in (words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)))
    return [(a << 32) + b for a, b in zip(high, low)]
