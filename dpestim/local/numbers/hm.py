"""The hybrid mechanism (HM) on an integer grid: the piecewise mechanism or a sign, by a coin that knows no value."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import pm
from dpestim.local import pivots
from dpestim.local.channel import Beside, Dense
from dpestim.local.constants import plain_value
from dpestim.local.guessing import Runs
from dpestim.local.numbers.law import LARGEST_GRID, NumericRandomizer, WindowRandomizer
from dpestim.local.numbers.transformer import FineTransformer
from dpestim.privacy.exact import WORD, uses_enough, within
from dpestim.privacy.number_weights import hybrid_weights
from dpestim.rng import Stage

_UNUSED = 1 << 63  # weights of a window that no word falls into


class HM(WindowRandomizer):
    """PM's codes, where there are any, and behind them two signs, whose law is a line in the input."""

    def __init__(self, epsilon, grid=LARGEST_GRID):
        NumericRandomizer.__init__(self, epsilon, grid)  # (WindowRandomizer's own makes a law of a window alone)
        self.hybrid = h = hybrid_weights(self.epsilon, self.grid)
        self.weights = w = h.window  # from here on what WindowRandomizer does is PM's share, which may be none
        if w is None:
            self.integers = (0, _UNUSED, _UNUSED, 0, 0, 0, h.least, h.rise)
        else:
            self.step = Fraction(w.total, (w.inside - w.outside) * w.window * self.grid)
            self.integers = (w.window * w.inside, w.inside, w.outside, w.window, w.total, w.n_outputs, h.least, h.rise)
            if not uses_enough(w.inside, w.outside, self.epsilon):
                self.slack = "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"
        self.n_counts = (w.n_outputs if w else 0) + 2
        self._set_format()

    def constants(self):
        """Return `hybrid`: the weights of its `window`, where there is one, as PM has them, and of the two signs.

        At grid point g, of 2^64 words least + g rise answer the upper sign, and least + (grid - g) rise the lower one.
        """
        return {"hybrid": plain_value(self.hybrid)}

    def check(self):
        """Refuse weights that are no law, or whose ratio is above epsilon."""
        h, w = self.hybrid, self.weights
        most = h.least + self.grid * h.rise
        whole = h.signs + (w.total if w else 0) == WORD and h.grid == self.grid and 0 < h.least <= most
        if w:
            whole = whole and w.window % 2 == 1 and w.grid == self.grid and 0 < w.outside <= w.inside
            whole = whole and within(w.inside, w.outside, self.epsilon)
        if not (whole and within(most, h.least, self.epsilon)):
            raise ValueError("the weights of the window and of the signs do not make a law of this epsilon")

    def privatize(self, codes, words, out):
        """Write one code for each fixed point."""
        lanes, drawn = words.halves(Stage.ROUNDING), words.dense(Stage.RESPONSE, 1)
        pm.mix(codes, lanes, drawn, self.integers, out.reshape(-1))

    def outputs(self):
        """Return the exact position that each code stands for."""
        sign = Fraction(self.hybrid.signs, 2 * self.grid * self.hybrid.rise)
        ends = [Fraction(1, 2) - sign, Fraction(1, 2) + sign]
        return super().outputs() + ends if self.weights else ends

    @cached_property
    def positions(self):
        """The position of each code, as floats."""
        sign = self.hybrid.signs / (2 * self.grid * self.hybrid.rise)
        window = self._window_positions() if self.weights else []
        return np.concatenate([window, [0.5 - sign, 0.5 + sign]])

    def _row(self, g):
        least, rise = self.hybrid.least, self.hybrid.rise
        signs = [Fraction(least + (self.grid - g) * rise, WORD), Fraction(least + g * rise, WORD)]
        return super()._row(g) + signs if self.weights else signs

    def runs(self):
        """Return the columns: those of the window, and the two signs, likelier by a little from input to input."""
        signs = Runs.of_matrix(self._signs(np.arange(self.grid + 1.0)))
        if not self.weights:
            return signs
        signs = Runs(self.n_inputs, self.n_counts, signs.starts, signs.stops, signs.weights,
                     self.n_counts - 2 + signs.columns)
        return super().runs() + signs

    def known_counts(self, counts, n):
        """Return the remainders of the codes of the window, and how many reports are signs."""
        if not self.weights:
            return []
        signs = pivots.cells("signs", [int(counts[-2:].sum())], [self.hybrid.signs / WORD], n)
        return [self._remainders(counts, n), signs]

    def _signs(self, g):
        """Return the probabilities of the two signs for inputs g, an array, side by side."""
        least, rise = self.hybrid.least, self.hybrid.rise
        return np.stack([least + rise * (self.grid - g), least + rise * g], axis=1) / float(WORD)

    def expect(self, values):
        """Return the mean of values[code] for every row, in O(inputs + outputs)."""
        values = np.asarray(values, np.float64)
        signs = self._signs(np.arange(self.grid + 1.0)) @ values[-2:]
        return signs + super().expect(values[:-2]) if self.weights else signs

    def channel(self, n_bins):
        """Return (bin edges as positions, output of each code, a channel) of inputs spread evenly within each bin."""
        edges = np.linspace(0.0, self.grid, n_bins + 1)
        # rounding keeps means, and all of it is a line
        signs = Dense(self._signs((edges[1:] + edges[:-1]) / 2), self._signs(edges))
        if not self.weights:
            return edges / self.grid, np.arange(2), signs
        edges, output, window = super().channel(n_bins)
        both = window.n_outputs + np.arange(2)
        return edges, np.concatenate([output, both]), Beside(window, signs)


class HMTransformer(FineTransformer):
    """Randomise numbers by the hybrid mechanism (HM), a random choice of PM and Duchi's mechanism, without bias.

    Each user rounds the value to a grid, without bias. A coin that is independent of the value decides whether the
    report is drawn by `PMTransformer` or by Duchi's mechanism, as one of two distant positions (a sign). The two
    variances compensate each other: the variance is the same for all values. Up to an epsilon of 0.609 a column all
    reports are signs, of one bit each.

    Choose it for means where values may lie anywhere, and epsilon is at most about 5 a column: its largest variance
    is below those of `PMTransformer` and `LaplaceTransformer`, though in the middle of the bounds PM may have less.
    From 5 on `StaircaseTransformer` has less. Signs tell little of shapes, and up to 0.609 nothing: for distributions
    take `SWTransformer` or PM.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``hm.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased, exactly but for the fixed point that a float becomes (2^-32 of a grid step). For values in
    [-1, 1] and s = e^(eps / 2) the variance of a report is (s + 3) / (3 s (s - 1)) + (s^2 + 1)^2 / (s (s^2 - 1)^2) for
    any value and an epsilon above 0.609; ((s^2 + 1) / (s^2 - 1))^2 - x^2 up to there.

    **Complexity.** O(1) a user; log2(grid (1 + e^(-eps / 2)) + 2) bits sent, stored as 16; one bit up to an epsilon of
    0.609. An iteration of `DistributionEstimator` is O(n_bins), as for PM.

    {parameters}
    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    section III-C (continuous); the grid and its integer weights are derived in ``hm.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import HMTransformer, MeanEstimator
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> est = MeanEstimator(HMTransformer(2.0, bounds=(1.2, 2.2), random_state=0)).fit(heights)
    >>> bool(abs(est.mean_[0] - heights.mean()) < 0.01)
    True
    """

    _randomizer = HM

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0), "grid": 8},  # both
            {"epsilon": 0.5, "bounds": (0.0, 10.0), "grid": 4},  # signs alone
            {"epsilon": 4.0, "bounds": ([0.0, -5.0], [1.0, 5.0]), "grid": 8},
        ]
