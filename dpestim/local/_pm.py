"""The piecewise mechanism (PM) on an integer grid: a window of likely outputs moves with the input; unbiased."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import grr, pm
from dpestim._docs import document_numbers
from dpestim.local._em import Piecewise, output_edges
from dpestim.local._numeric import NumericTransformer
from dpestim.local._randomizer import BaseRandomizer
from dpestim.privacy.exact import WORD, canonical_epsilon, pm_weights, uses_enough
from dpestim.rng import Stage

#: Steps of the input grid: an answer fits 16 bits, and the grid is far finer than the noise.
LARGEST_GRID = 1 << 15
#: Fraction bits of the fixed point that is rounded to the grid.
FRACTION = 32
_NO_ZONE = 1 << 40  # beyond every code


class PM(BaseRandomizer):
    """The piecewise law on `grid` steps; a report is a code. Positions are shares of the bounds, from 0 to 1."""

    heavy = True
    report_width = 1
    n_words = 2
    #: An answer takes so little time that Python is felt between blocks of the usual size (1.2 times as long).
    block_words = 1 << 18
    code_dtype = np.dtype(np.int64)
    #: A function of the bounds that names the relaxed model under which epsilon holds, where it is one.
    relaxation = None
    notes = ()

    def __init__(self, epsilon, grid=LARGEST_GRID):
        self.epsilon = canonical_epsilon(epsilon)
        if isinstance(grid, bool) or not isinstance(grid, int | np.integer) or not 2 <= grid <= LARGEST_GRID or (
            grid & (grid - 1)
        ):
            raise ValueError(f"grid must be a power of two from 2 to {LARGEST_GRID}")
        self.grid = int(grid)
        self.arguments = (self.epsilon, self.grid)
        self.weights = w = pm_weights(self.epsilon, self.grid)
        if not uses_enough(w.inside, w.outside, self.epsilon):
            self.slack = "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"
        self.step = Fraction(WORD, (w.inside - w.outside) * w.window * self.grid)
        self.n_counts = w.n_outputs
        self.law = (w.window * w.inside, 0, w.inside, w.outside, w.window, _NO_ZONE, 0, 0, 0, 0, 0, 0)
        self._set_format()

    def __reduce__(self):
        """Pickle what it was made from: arrays that were worked out are not worth their bytes."""
        return type(self).make, self.arguments

    @property
    def plain_epsilon(self):
        """Epsilon without any relaxation."""
        return self.epsilon

    @property
    def guarantee_by_input(self):
        """Epsilon for each pair of kinds of inputs; here all are high."""
        return {"high-high": self.epsilon}

    @property
    def is_low(self):
        """Whether each row of the law is that of a low input."""
        return np.zeros(self.n_inputs, bool)

    @staticmethod
    def edges_of(low, high):
        """Return arrays of values at which an input changes its kind, and their neighbours; here none."""
        return []

    @staticmethod
    def low_of(x, low, high):
        """Tell which values in the user's units are low, where the bounds are low and high."""
        return np.zeros(len(x), bool)

    def _set_format(self):
        self.report_dtype = np.dtype(np.uint16 if self.n_counts <= 1 << 16 else np.uint32)
        self.report_bits = math.log2(self.n_counts)

    # ---------------------------------------------------------------- what is sent

    def encode(self, x, low, high, out):
        """Write the fixed point of values in the user's units; `low` and `high` are the bounds."""
        pm.encode(x, low, high, self.scale(low, high), self.grid << FRACTION, 1.0, 0.0, 0.0, 0, out)

    def scale(self, low, high):
        """Return fixed-point units a unit of x."""
        return float(self.grid << FRACTION) / (high - low)

    def privatize(self, codes, words, out):
        """Write one code for each fixed point."""
        pm.answer(codes, words.halves(Stage.ROUNDING), words.dense(Stage.RESPONSE, 1), self.law, out.reshape(-1))

    def check_reports(self, reports):
        """Refuse codes outside the alphabet."""
        if int(reports.max()) >= self.n_counts:
            raise ValueError(f"a report must be a code below {self.n_counts}")

    def count(self, reports, counts):
        """Add a histogram of the reports."""
        if not grr.count(reports.reshape(-1), counts):
            self.check_reports(np.full((1, 1), self.n_counts))

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

    def outputs(self):
        """Return the exact position that each code stands for."""
        w = self.weights
        return [Fraction(1, 2) + self.step * (j - Fraction(w.n_outputs - 1, 2)) for j in range(w.n_outputs)]

    @cached_property
    def positions(self):
        """The position of each code, as floats."""
        w = self.weights
        return 0.5 + float(self.step) * (np.arange(w.n_outputs) - (w.n_outputs - 1) / 2)

    def transition_matrix(self):
        """Return rows of Fractions, one for each grid point."""
        return [self._row(g) for g in range(self.grid + 1)]

    def _row(self, g):
        w = self.weights
        inside, outside = Fraction(w.inside, WORD), Fraction(w.outside, WORD)
        return [inside if g <= j < g + w.window else outside for j in range(w.n_outputs)]

    def law_indices(self, codes, reports):
        """Return (row, code); the fixed points must be those of rows."""
        return codes >> FRACTION, reports[:, 0].astype(np.int64)

    def expect(self, values):
        """Return the mean of values[code] for every row, in O(inputs + outputs)."""
        w = self.weights
        before = np.concatenate([[0.0], np.cumsum(values, dtype=np.longdouble)])
        window = before[w.window :] - before[: w.grid + 1]
        return np.asarray((w.outside * before[-1] + (w.inside - w.outside) * window) / WORD, np.float64)

    def variance(self):
        """Return the variance of the position that a report stands for, for every row."""
        centred = self.positions - 0.5  # (less cancellation)
        return self.expect(np.square(centred)) - np.square(self.expect(centred))

    def mean_values(self):
        """Return (a number for each code whose mean is the input's position, the largest bias that is left)."""
        return self.positions, 0.0

    # ---------------------------------------------------------------- binned, for expectation maximisation

    def channel(self, n_bins):
        """Return (bin edges as positions, output of each code, `Piecewise`) of inputs spread evenly within each bin."""
        w = self.weights
        edges = np.linspace(0.0, self.grid, n_bins + 1)
        cuts = output_edges(0, w.n_outputs, self.grid / n_bins)
        base = w.outside / WORD * np.diff(cuts)
        channel = Piecewise(edges, cuts, w.window, (w.inside - w.outside) / WORD, base)
        return edges / self.grid, np.repeat(np.arange(len(cuts) - 1), np.diff(cuts)), channel

    def __repr__(self):
        return f"{type(self).__name__}(epsilon={float(self.epsilon):g}, grid={self.grid})"


@document_numbers
class PMTransformer(NumericTransformer):
    """Numbers by the piecewise mechanism (PM): bounded noise, smaller the larger epsilon, without bias.

    Each user rounds the own value to a grid, without bias, and sends one of the outputs of a grid that is wider than
    the bounds: likely one of a window around it. Choose it for means and distributions of bounded numbers from an
    epsilon of about 1.3 a column on; `SDPMTransformer` where part of the range needs less protection.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``_pm.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased, exactly but for the fixed point that a float becomes (2^-47 of the bounds). For x in [-1, 1]
    and s = e^(eps / 2), the variance of a report is x^2 / (s - 1) + (s + 3) / (3 (s - 1)^2); worst at the bounds.

    **Complexity.** O(1) a user; log2(grid (1 + e^(-eps / 2))) bits sent, stored as 16.

    {parameters}
    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    algorithm 2 (continuous); the grid and its integer weights are derived in ``_pm.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> noisy = PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0).fit_transform(heights)
    >>> bool(abs(noisy.mean() - heights.mean()) < 0.01)
    True
    """

    _more_parameters = """
    grid : int, default=32768
        Steps between the bounds, a power of two from 2 to 32768; inputs are rounded to it without bias.
    """

    def __init__(self, epsilon=1.0, *, bounds=None, grid=LARGEST_GRID, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, bounds=bounds, ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.grid = grid

    def _make_randomizer(self, share, column, low, high, n_columns):
        return PM.make(share, self.grid)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0), "grid": 8},
            {"epsilon": 3.0, "bounds": (0.0, 10.0), "grid": 16},
            {"epsilon": 2.0, "bounds": ([0.0, -5.0], [1.0, 5.0]), "grid": 8},
        ]
