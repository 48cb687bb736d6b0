"""The sensitivity-aware piecewise mechanism (SDPM): protection for high values, accuracy for those declared low."""

import math
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from sklearn.exceptions import NotFittedError

from dpestim.local.coded import pair_of
from dpestim.local.constants import constants_of
from dpestim.local.guessing import Runs
from dpestim.local.law import ALL, Promise
from dpestim.local.numbers.column import share_of
from dpestim.local.numbers.inversion import numbers_of_least_variance
from dpestim.local.numbers.law import FRACTION, LARGEST_GRID, NO_ZONE, WindowRandomizer
from dpestim.local.numbers.sdpm_channel import channel_of
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import WORD, log_upper
from dpestim.privacy.number_weights import pm_weights


class SDPM(WindowRandomizer):
    """PM for high inputs; a low input reports its own level or, as likely as any input would, a high output.

    Low are the positions in [low_from, low_to] (shares of the bounds). They are rounded without bias to `n_levels`
    levels, from low_from to low_to (a single one is the middle, for all of them). Merged (the discretised form),
    PM's outputs between low_from and low_to become as many cells as there are levels, and level i reports cell i; else
    (the continuous form on the grid) levels have codes of their own.
    """

    relaxation = "SDLDP"

    def __init__(self, epsilon, grid, low_from, low_to, n_levels, merged):
        super().__init__(epsilon, grid, pm_weights)
        w, middle = self.weights, Fraction(self.n_pm - 1, 2)
        self.low_from, self.low_to, self.merged = low_from, low_to, merged
        # PM's outputs zone .. zone_stop - 1 stand for positions between low_from and low_to
        self.zone = max(0, math.ceil((low_from - Fraction(1, 2)) / self.step + middle))
        self.zone_stop = min(self.n_pm, math.floor((low_to - Fraction(1, 2)) / self.step + middle) + 1)
        size = self.zone_stop - self.zone
        if not merged:
            n_levels = max(1, math.floor((low_to - low_from) * self.grid) + 1)
        self.n_levels = n_levels
        if size < (n_levels if merged else 1):
            raise ValueError(f"low_sensitivity must be wider, or n_cells smaller, for this grid, because {size} "
                             "outputs lie between its ends")
        self.n_high_outputs = self.n_pm - size
        self.own = WORD - w.outside * self.n_high_outputs  # weight of a low input's own level
        self._merge = -(-(n_levels << 31) // size)
        if merged:
            self.n_counts = self.n_pm - size + n_levels
            self.first_level, low_gap = self.zone, n_levels
            moved = (self.zone, size, self._merge, size - n_levels)
        else:
            self.n_counts = self.n_pm + n_levels
            self.first_level, low_gap = self.n_pm, size
            moved = (NO_ZONE, 0, 0, 0)
        self.integers = (w.window * w.inside, self.own, w.inside, w.outside, w.window, *moved, self.first_level,
                         self.zone, low_gap)
        self.low_high = self._low_high()
        self._set_format()

    def constants(self):
        """Return what the window, the zone of low sensitivity and its levels are, and the `integers` of the kernel."""
        return constants_of(self)

    @property
    def n_pm(self):
        """Outputs of PM, before any are merged."""
        return self.weights.n_outputs

    def ends(self, low, high):
        """Return what the kernel asks: of low values it writes the complement, in levels."""
        low_from, low_to = self.relaxed_bounds(low, high)
        top = (self.n_levels - 1) << FRACTION
        low_scale = float(top) / (low_to - low_from)
        return low, high, self.scale(low, high), self.grid << FRACTION, low_from, low_to, low_scale, top

    def relaxed_bounds(self, low, high):
        """Return the low interval in the user's units, where the bounds are low and high."""
        return _at_shares(low, high, self.low_from, self.low_to)

    def spacing_at(self, positions):
        """Return how far apart the inputs are: low levels are further apart than grid points."""
        spacing, low = super().spacing_at(positions), (self.low_from <= positions) & (positions <= self.low_to)
        spacing[low] = float(self.low_to - self.low_from) / max(1, self.n_levels - 1)
        return spacing

    def fits(self, low, high):
        """Tell whether the low interval is one, and not all, where the bounds are these floats."""
        low_from, low_to = self.relaxed_bounds(low, high)
        return low_from < low_to and (low_from, low_to) != (low, high) and math.isfinite(
            float((self.n_levels - 1) << FRACTION) / (low_to - low_from)
        )

    def edges_of(self, low, high):
        """Return arrays of values at which an input changes its kind, and their neighbours."""
        edges = np.array(self.relaxed_bounds(low, high))
        return [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]

    # ---------------------------------------------------------------- what is promised

    @cached_property
    def high_points(self):
        """Grid points that a high value may be rounded to, with one to spare for the rounding of floats."""
        left = np.arange(0, min(self.grid, math.ceil(self.low_from * self.grid) + 1) + 1)
        right = np.arange(max(0, math.floor(self.low_to * self.grid) - 1), self.grid + 1)
        return np.union1d(left if self.low_from > 0 else [], right if self.low_to < 1 else []).astype(np.int64)

    def _low_high(self):
        """Return the largest ratio of a low input's own level to a high input's report of it; None if infinite."""
        if not self.merged:
            return None
        w, points, worst = self.weights, self.high_points, Fraction(0)
        # how much of a cell a window covers first grows and then falls with the input: the ends of a run are extreme
        runs = np.flatnonzero(np.diff(points) > 1)
        ends = {int(points[k]) for k in (0, -1, *runs, *(runs + 1))}
        for start, stop in zip(self.cell_edges[:-1], self.cell_edges[1:]):
            inside = min(max(0, min(stop, g + w.window) - max(start, g)) for g in ends)
            worst = max(worst, Fraction(self.own, w.outside * (stop - start) + (w.inside - w.outside) * inside))
        return worst

    @property
    def promises(self):
        """What holds between high and low inputs, and for high outputs."""
        epsilon, one = self.epsilon, self.merged and self.n_levels == 1
        low_high = math.inf if self.low_high is None else log_upper(self.low_high)
        high_low, low_low = (epsilon, Fraction(0)) if one else (math.inf, math.inf)
        return (
            Promise("high", "high", ALL, epsilon),
            Promise(ALL, ALL, "high", epsilon),
            Promise("low", "high", ALL, low_high),  # how much likelier the own level is than for any high value
            Promise("high", "low", ALL, high_low),  # the reverse: high values report levels that are not the own
            Promise("low", "low", ALL, low_low),
            Promise(ALL, ALL, ALL, max(epsilon, low_high, high_low, low_low)),
        )

    def kind_of(self, codes):
        """Return "low" or "high" for each fixed point."""
        return np.where(np.asarray(codes) < 0, "low", "high")

    def output_kinds(self):
        """Return "high" for the codes that any input reports as if it had no value, "low" for all others."""
        high = np.zeros(self.n_counts, bool)
        high[self._high_codes] = True
        return np.where(high, "high", "low")

    @property
    def notes(self):
        """What holds for which inputs, in sentences."""
        e, low_high = float(self.epsilon), float(self.guarantee_by_input["low-high"])
        text = [f"In each report two high values of a column are protected by epsilon {e:g}, and so is any value while "
                "it reports a high output."]
        if not self.merged:
            text.append(f"The continuous form reports a low value unchanged with probability {self.own / WORD:.3g}, "
                        "and no high value produces such a report, so that a reader of the report knows the low value. "
                        "An output from the low interval that no low value produces proves that a value is high.")
        elif self.n_levels > 1:
            text.append(f"Which of the {self.n_levels} low cells a low value lies in is not protected; that it is low "
                        f"is protected by epsilon {low_high:.3g} in each report.")
            text.append("Take an observer who knows which low value a user would have, if the user's value is low. A "
                        "report of another low cell proves to this observer that the value is high.")
        else:
            text.append(f"That a value is low is protected by epsilon {low_high:.3g} in each report.")
        return tuple(text)

    # ---------------------------------------------------------------- the law, row by row

    @cached_property
    def cell_edges(self):
        """PM's outputs at which the cells start, and where the last one ends; the kernel's own division, solved."""
        return [self.zone - (-(k << 31) // self._merge) for k in range(self.n_levels)] + [self.zone_stop]

    @cached_property
    def code_of_output(self):
        """The code of each of PM's outputs."""
        codes = np.arange(self.n_pm)
        if self.merged:
            cells = np.repeat(np.arange(self.n_levels), np.diff(self.cell_edges))
            codes[self.zone : self.zone_stop] = self.zone + cells
            codes[self.zone_stop :] -= self.zone_stop - self.zone - self.n_levels
        return codes

    @cached_property
    def _high_codes(self):
        """The codes that are high outputs."""
        return np.concatenate([self.code_of_output[: self.zone], self.code_of_output[self.zone_stop :]])

    @property
    def levels(self):
        """The codes of the levels."""
        return slice(self.first_level, self.first_level + self.n_levels)

    def level_positions(self):
        """Return the exact position of each level."""
        if self.n_levels == 1:
            return [(self.low_from + self.low_to) / 2]
        step = (self.low_to - self.low_from) / (self.n_levels - 1)
        return [self.low_from + k * step for k in range(self.n_levels)]

    @property
    def n_inputs(self):
        """Rows of the law: the grid points of high values, then the levels."""
        return len(self.high_points) + self.n_levels

    @property
    def input_codes(self):
        """The fixed point of every row."""
        return np.concatenate([self.high_points << FRACTION, ~(np.arange(self.n_levels, dtype=np.int64) << FRACTION)])

    def inputs(self):
        """Return the exact position of every row."""
        return [Fraction(int(g), self.grid) for g in self.high_points] + self.level_positions()

    @cached_property
    def input_positions(self):
        """The position of every row, as floats."""
        return np.concatenate([self.high_points / self.grid, [float(p) for p in self.level_positions()]])

    def outputs(self):
        """Return the exact position that each code stands for: a level its own, whatever is merged into its cell."""
        exact = super().outputs()
        out = [None] * self.n_counts
        for code, position in zip(self.code_of_output.tolist(), exact):
            out[code] = position
        out[self.levels] = self.level_positions()
        return out

    @cached_property
    def positions(self):
        """The position of each code, as floats."""
        out = np.empty(self.n_counts)
        out[self.code_of_output] = self._window_positions()
        out[self.levels] = [float(p) for p in self.level_positions()]
        return out

    def transition_matrix(self):
        """Return rows of Fractions, in the order of `inputs`."""
        rows = []
        for g in self.high_points.tolist():
            row = [Fraction(0)] * self.n_counts
            for code, p in zip(self.code_of_output.tolist(), self._row(g)):
                row[code] += p
            rows.append(row)
        for level in range(self.n_levels):
            row = [Fraction(0)] * self.n_counts
            for code in self._high_codes.tolist():
                row[code] = Fraction(self.weights.outside, WORD)
            row[self.first_level + level] = Fraction(self.own, WORD)
            rows.append(row)
        return rows

    def runs(self):
        """Return the columns: high outputs are windows, a level is its own input's and that of what is merged in it."""
        points, n, w = self.high_points, self.n_inputs, self.weights
        outputs = np.concatenate([np.arange(self.zone), np.arange(self.zone_stop, self.n_pm)])
        levels = np.arange(self.n_levels)
        own = Runs(n, self.n_counts, len(points) + levels, len(points) + levels + 1, self.own / WORD,
                   self.first_level + levels)
        runs = self._windows(points, n, outputs, self._high_codes, self.n_counts) + own
        if not self.merged:
            zone = np.arange(self.zone, self.zone_stop)
            return runs + self._windows(points, n, zone, zone, self.n_counts, len(points))
        first, last = np.array(self.cell_edges[:-1])[:, None], np.array(self.cell_edges[1:])[:, None]
        inside = np.clip(np.minimum(last, points + w.window) - np.maximum(first, points), 0, None)
        cells = (w.outside / WORD) * (last - first) + (w.inside - w.outside) / WORD * inside
        high = Runs.of_matrix(cells.T)
        return runs + Runs(n, self.n_counts, high.starts, high.stops, high.weights, self.first_level + high.columns)

    def law_indices(self, codes, reports):
        """Return (row, code); the fixed points must be those of rows."""
        high = np.searchsorted(self.high_points, codes >> FRACTION)
        rows = np.where(codes < 0, len(self.high_points) + (~codes >> FRACTION), high)
        return rows, reports[:, 0].astype(np.int64)

    def expect(self, values):
        """Return the mean of values[code] for every row, in O(inputs + outputs)."""
        values = np.asarray(values, np.float64)
        high = super().expect(values[self.code_of_output])[self.high_points]
        others = self.weights.outside / WORD * values[self._high_codes].sum()
        return np.concatenate([high, self.own / WORD * values[self.levels] + others])

    def _mean_at(self, row, values):
        """Return the mean of values[code] for one row."""
        level = row - len(self.high_points)
        if level < 0:
            return self._mean_of_window(self.high_points[row], values[self.code_of_output])
        return float(self.own / WORD * values[self.first_level + level] + self.weights.outside / WORD
                     * values[self._high_codes].sum())

    # ---------------------------------------------------------------- the mean

    def known_counts(self, counts, n):
        """Return nothing: low inputs report other codes than high ones."""
        return []

    def mean_values(self):
        """Return (a number for each code whose mean is the input's position, the largest bias that is left)."""
        return self._mean_values

    @cached_property
    def _mean_values(self):
        values = numbers_of_least_variance(self)
        error = np.abs(self.expect(values) - np.array([float(x) for x in self.inputs()]))
        if self.n_levels == 1:  # the middle stands for all low values, and is wrong by half the interval at its ends
            error[-1] += float(self.low_to - self.low_from) / 2
        return values, float(error.max())

    def channel(self, n_bins):
        """Return (bin edges as positions, output of each code, `Piecewise`), for expectation maximisation."""
        return channel_of(self, n_bins)


@lru_cache(maxsize=256)
def _at_shares(low, high, *shares):
    """Return the floats at shares of the way from one bound to the other; every record asks, with public bounds."""
    return tuple(float(Fraction(low) + share * (Fraction(high) - Fraction(low))) for share in shares)


class SDPMTransformer(NumericTransformer):
    """Randomise numbers by the sensitivity-aware piecewise mechanism (SDPM), with less noise in a named range.

    Values outside `low_sensitivity` are protected from each other as by `PMTransformer`. A value inside is reported,
    with the probability that this leaves, as the low cell it lies in. Choose SDPM where one part of the range needs
    little protection. The guarantee is weaker than local differential privacy, as `privacy_` states. With two cells or
    more, take an observer who knows which low value a user would have: a report of another low cell proves to this
    observer that the value is high.

    **Privacy.** Among high values, and for every value that reports a high output: epsilon-local differential privacy,
    exact (proof in ``sdpm.md``). That a value is low: the larger "low-high" epsilon of `guarantee_by_input_`. Which
    low cell, and that a value is high if it is not a known low one: not protected with two cells or more. So
    ``privacy_.epsilon`` is infinite unless there is one cell, and ``privacy_.relaxed_epsilon`` is epsilon. The
    continuous form reveals low values that are reported as such, and high ones that report what no low one does.

    **Utility.** Plain means of reports are biased: low values report themselves, and otherwise as if they had no value.
    `MeanEstimator` and `DistributionEstimator` undo this; with one cell only up to the width of the low interval.

    **Complexity.** O(1) a user; as many bits as `PMTransformer`, or fewer (the continuous form: at most one more).

    {parameters}
    References
    ----------
    The sensitivity-aware model (SDLDP) and its continuous mechanism are a paper's; the discretised form, its guarantee
    by kinds of inputs and its unbiased estimator are derived in ``sdpm.md``. PM: N. Wang et al., ICDE 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MeanEstimator, SDPMTransformer
    >>> weights = np.random.default_rng(0).normal(68, 12, (50_000, 1))
    >>> sdpm = SDPMTransformer(2.0, bounds=(30, 130), low_sensitivity=(50, 80), random_state=0)
    >>> mean = MeanEstimator(sdpm).fit(weights).mean_
    >>> bool(abs(mean[0] - weights.mean()) < 1.0)
    True
    """

    _randomizer = SDPM
    _more_parameters = """
    low_sensitivity : (l, r) or dict of (l, r), default=None
        The values from l to r need less protection: a pair of numbers, or of arrays of shape (n_features,), or a dict
        by column name where `bounds` is one; in the units of X, within the bounds and not all of them. Values are
        clipped first, so that at a bound it takes in what lies beyond. Public, and chosen without the data. None: the
        middle half.
    n_cells : int, default=16
        Values that a low input may report, evenly spaced from l to r; low inputs are rounded to them, from two cells on
        without bias. With one, the middle stands for all of them, which means and distributions cannot undo. Fewer
        cells make it harder to tell that a value is low. The continuous form has one for each step of the grid.
    form : {"discretised", "continuous"}, default="discretised"
        Continuous is the paper's: a low value is reported as it is, which reveals it.
    {grid of reports}
    """

    def __init__(self, epsilon=1.0, *, low_sensitivity=None, n_cells=16, form="discretised", bounds=None,
                 grid=LARGEST_GRID, strategy="split", ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, bounds=bounds, strategy=strategy, ledger=ledger, random_state=random_state,
                         n_jobs=n_jobs)
        self.low_sensitivity = low_sensitivity
        self.n_cells = n_cells
        self.form = form
        self.grid = grid

    @property
    def guarantee_by_input_(self):
        """Epsilon of each column for each pair of kinds of inputs: a list of dicts, one for each column."""
        self._refuse_to_guess()
        return super().guarantee_by_input_

    @property
    def privacy_(self):
        """What the report of one row promises; known before any data where the number of columns is."""
        self._refuse_to_guess()
        return super().privacy_

    def _refuse_to_guess(self):
        if self._columns is None and self.n_cells == 1 and isinstance(self.bounds, tuple | list) and not any(
            np.ndim(end) for pair in (self.bounds, self.low_sensitivity or ()) for end in pair
        ):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first, because with "
                                 "one cell the guarantee depends on the number of columns")

    def _law_arguments(self, column, n_columns, domain):
        if self.form not in ("discretised", "continuous"):
            raise ValueError(f"form must be 'discretised' or 'continuous', got {self.form!r}")
        if isinstance(self.n_cells, bool) or not isinstance(self.n_cells, int | np.integer) or self.n_cells < 1:
            raise ValueError("n_cells must be an integer of at least 1")
        low, high = domain
        if self.low_sensitivity is None:
            shares = Fraction(1, 4), Fraction(3, 4)
        else:
            ends = pair_of(self.low_sensitivity, "low_sensitivity", n_columns)
            shares = tuple(share_of(end[column], low, high) for end in ends)
        if not (0 <= shares[0] < shares[1] <= 1 and shares != (0, 1)):
            raise ValueError(f"low_sensitivity of column {column} must lie within the bounds and not be all of them")
        return {"grid": self.grid, "low_from": shares[0], "low_to": shares[1], "n_levels": int(self.n_cells),
                "merged": self.form == "discretised"}

    def _known_columns(self):
        return [*super()._known_columns(), (self.low_sensitivity, "low_sensitivity")]

    _test_values = {
        "low_sensitivity": [(-0.25, 0.25), (0.25, 0.5), (2.0, 7.0), ([0.25, -4.0], [0.75, -1.0])],
        "n_cells": [2, 1], "form": ["discretised", "continuous"], "grid": [32, 16, 8],
    }

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0), "low_sensitivity": (-0.5, 0.25), "n_cells": 2, "grid": 16},
            {"epsilon": 2.0, "bounds": (0.0, 10.0), "low_sensitivity": (0.0, 4.0), "n_cells": 1, "grid": 16},
            {"epsilon": 1.0, "bounds": (0.0, 1.0), "low_sensitivity": (0.25, 0.75), "form": "continuous", "grid": 8},
            {"epsilon": 3.0, "bounds": ([0.0, -5.0], [1.0, 5.0]), "low_sensitivity": ([0.5, -4.0], [1.0, -1.0]),
             "n_cells": 3, "grid": 32},
        ]
