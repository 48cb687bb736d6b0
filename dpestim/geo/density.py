"""How many rows lie where: noisy counts of cells of a region, in the central model."""

import copy
import math
from numbers import Integral

import numpy as np

from dpestim.central.base import CentralMechanism
from dpestim.geo.map import MapDisplay
from dpestim.geo.partitions import METHODS, MOST_CELLS, SIDE, units_of
from dpestim.geo.projection import scale_of
from dpestim.inputs import number_rows, refuse_infinite
from dpestim.local.coded import pair_of
from dpestim.postprocessing import norm_sub
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.ranges import half_width
from dpestim.summaries import schema_of

#: Rows that are expected where nobody says how many, and their number is private.
MANY = 10_000


class CellCounts:
    """What noisy counts of cells tell: ranges, densities, samples and pictures; mixed into what releases them.

    A sub-class has `bounds_` (lows, highs), `boxes_`, an (n, 4) array of integers in units of the region, `counts_` and
    `_variance`, of a sum with weights.
    """

    @property
    def cells_(self):
        """The cells: low and high in the first coordinate, low and high in the second, in the units of X."""
        lows, highs = (np.repeat(end, 2) for end in self.bounds_)
        return lows + (highs - lows) * (self.boxes_ / SIDE)

    def range(self, low, high):
        """Return (the number of rows in a rectangle, its standard error); no bias for edges of cells.

        Parameters
        ----------
        low, high : pairs of numbers
            The lower ends of both coordinates, and the upper ones, in the units of X. Of a cell that lies partly inside
            a part counts.

        Returns
        -------
        (estimate, standard_error) : floats
            The error is that of the noise; it does not cover how rows lie within cells.
        """
        part = self._inside(low, high)
        return float(part @ self.counts_), math.sqrt(self._variance(part)[0])

    def confidence_interval(self, low, high, level=0.95, inside="even"):
        """Return (low end, high end): an interval for the number of rows in a rectangle.

        Parameters
        ----------
        low, high : pairs of numbers
            As for `range`.
        level : float, default=0.95
            In (0, 1): what it covers, about.
        inside : {"even", "any"}, default="even"
            What is known of rows in cells that lie partly inside. "even": they are spread evenly. "any": nothing; the
            interval goes from the low end for the cells that lie inside to the high end for all cells that are touched.
        """
        if not isinstance(inside, str) or inside not in ("even", "any"):
            raise ValueError("inside must be 'even' or 'any'")
        part = self._inside(low, high)
        ends = (part, part) if inside == "even" else ((part > 1 - 1e-12).astype(float), (part > 0).astype(float))
        found = []
        for sign, weights in zip((-1, 1), ends):
            variance, fourth = self._variance(weights)
            if not variance:
                found.append(0.0)
                continue
            width = half_width(level, math.sqrt(variance), fourth / variance**2, 1.0)
            found.append(float(weights @ self.counts_) + sign * width)
        return tuple(found)

    def density(self, places):
        """Return the estimated number of rows for a unit of area (of X's units), at places: at least 0.

        Parameters
        ----------
        places : array-like of shape (n, 2)

        Returns
        -------
        ndarray of shape (n,)
        """
        places = np.asarray(places, np.float64)
        if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
            raise ValueError("places must be an array of shape (n, 2) of finite numbers")
        cells, out = self.cells_, np.zeros(len(places))
        per = np.maximum(self.counts_, 0) / ((cells[:, 1] - cells[:, 0]) * (cells[:, 3] - cells[:, 2]))
        lows, highs = self.bounds_
        units, inside = units_of(places, lows, highs), ((places >= lows) & (places <= highs)).all(axis=1)
        for box, value in zip(self.boxes_.tolist(), per.tolist()):
            here = (units[:, 0] >= box[0]) & (units[:, 0] < box[1]) & (units[:, 1] >= box[2]) & (units[:, 1] < box[3])
            out[here & inside] = value
        return out

    def sample(self, n_samples, random_state=None):
        """Return places drawn from the released cells, evenly within each: free.

        Parameters
        ----------
        n_samples : int
        random_state : None, int or NumPy generator, default=None

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError("n_samples must be an int of at least 0")
        check_random_state(random_state)
        rng = np.random.default_rng(random_state) if not isinstance(random_state, np.random.RandomState) else (
            np.random.default_rng(random_state.randint(2**31)))
        cells, total = self.cells_, self.counts_.sum()
        sizes = (cells[:, 1] - cells[:, 0]) * (cells[:, 3] - cells[:, 2])
        shares = norm_sub(self.counts_ / total) if total > 0 else sizes / sizes.sum()
        drawn = cells[rng.choice(len(cells), int(n_samples), p=shares)]
        return drawn[:, ::2] + (drawn[:, 1::2] - drawn[:, ::2]) * rng.random((int(n_samples), 2))

    def plot(self, ax=None, **kwargs):
        """Draw the density on a map, without tiles.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `PolyCollection` of the cells.

        Returns
        -------
        MapDisplay
        """
        return MapDisplay.from_estimator(self, ax=ax, **kwargs)

    def _inside(self, low, high):
        """Return the part of each cell that lies in a rectangle."""
        try:
            ends = np.array([low, high], np.float64)
        except (TypeError, ValueError):
            ends = np.empty(0)
        if ends.shape != (2, 2) or not np.isfinite(ends).all() or (ends[0] > ends[1]).any():
            raise ValueError("low and high must be pairs of finite numbers, of which low is not above high")
        cells, part = self.cells_, np.ones(len(self.boxes_))
        for k in (0, 1):
            below, above = cells[:, 2 * k], cells[:, 2 * k + 1]
            part *= np.clip((np.minimum(above, ends[1, k]) - np.maximum(below, ends[0, k])) / (above - below), 0, 1)
        return np.where(part > 1 - 1e-9, 1.0, np.where(part < 1e-9, 0.0, part))


class SpatialDensity(CellCounts, CentralMechanism):
    """Release counts of the cells of a region by an even grid, an adaptive grid or a private quadtree.

    Rows are places. Counts of rectangles, a density, rows for other uses and a picture follow from the released cells.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exact: integers get discrete Laplace
    noise, and splits of the quadtree have noise whose cost does not grow with depth (proof in ``density.md``). The
    region is public. The curator, who holds the data, must be trusted.

    **Utility.** Counts are unbiased for given cells, and may be negative; a count of an even grid has a standard
    deviation of sqrt(2) / epsilon with "add_remove", twice as much with "substitution". Rectangles whose edges are
    those of cells have no bias. Of cells that lie partly inside a part counts; what that misses is covered by intervals
    with ``inside="any"`` only.

    **Complexity.** O(n log n) time.

    {parameters}
    References
    ----------
    W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data", ICDE 2013 (even and adaptive grids);
    J. Zhang, X. Xiao, X. Xie, "PrivTree: a differentially private algorithm for hierarchical decompositions", SIGMOD
    2016. The proof for integers: ``density.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.geo import SpatialDensity
    >>> X = np.random.default_rng(0).normal([48.86, 2.34], [0.01, 0.02], (20_000, 2))
    >>> est = SpatialDensity(1.0, bounds=([48.8, 2.2], [48.92, 2.46]), random_state=0).fit(X)
    >>> count, error = est.range([48.85, 2.32], [48.87, 2.36])
    >>> bool(abs(count - 20_000 * 0.683**2) < 300)
    True
    """

    _checked_as, _template = "density", "rows"
    _not_in_parts = ("needs all rows at once, because noisy counts decide which cells are counted next: fit it to the "
                     "rows on one machine, or sum a Histogram of parts")
    _more_parameters = """
    bounds : (low, high), dict or Domain
        The public region, as in ``([48.80, 2.22], [48.92, 2.42])``: the lower bounds of both columns, then the upper
        ones. Rows outside count in the cells at the border.
    units : {"degrees", "metres"}, default="degrees"
        "degrees": columns are latitude and longitude. Pictures use it; counts do not.
    method : {"ag", "ug", "privtree"}, default="ag"
        "ug": an even grid. "ag": a coarse grid, whose full cells are cut into parts, and estimates that agree.
        "privtree": a quadtree that cuts where many rows are, for regions in which most rows are at few places.
    cells : int, default=None
        Cells a side of the (first) grid, at most 512, or of the finest level of the quadtree. None: by `n_rows`
        and epsilon, or for a quadtree 4,096.
    n_rows : int, default=None
        About how many rows are expected, a public number for `cells`. None: with "substitution" the number of rows,
        which is public then; with "add_remove" 10,000.
    """
    _more_attributes = """
    cells_ : ndarray of shape (n_cells, 4)
        The cells: low and high of the first column, low and high of the second.
    counts_ : ndarray of shape (n_cells,)
        Noisy counts.
    boxes_ : ndarray of shape (n_cells, 4)
        The cells in units of 1 / 65,536 of the region.
    bounds_ : (ndarray, ndarray) of shape (2,)
    """

    def __init__(self, epsilon=1.0, *, bounds=None, units="degrees", method="ag", cells=None, n_rows=None,
                 neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.units = units
        self.method = method
        self.cells = cells
        self.n_rows = n_rows
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Count with noise: one release, which is charged before noise is drawn; only what is released is kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, 2)
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        strict = self._is_strict()
        rows = number_rows(X, strict=strict)
        if rows.shape[1] != 2:
            raise ValueError(f"X must have two columns, (latitude, longitude) or (x, y), got {rows.shape[1]}")
        settled = self._settled(X)
        lows, highs = settled._region()
        if not strict:
            refuse_infinite(rows, [f"column {name}" for name in (0, 1)])
        partition = settled._partition(len(rows))
        check_random_state(self.random_state)
        learned = schema_of(X, 2)
        units, source, promised = self._units(rows, lows, highs), WordSource(self.random_state), self._guarantee()
        self._pay()
        found, counts, groups = partition.draw(units, source)
        return self._become({**learned, "boxes_": found, "counts_": counts, "bounds_": (lows, highs),
                             "_groups": groups, "_noises": partition, "_kept_promise": promised})

    def release(self, X, y=None):
        """Return (cells, counts) as `fit` keeps them; one release, of which nothing is kept."""
        done = copy.copy(self).fit(X)
        self._last_relation = done._last_relation
        return done.cells_, done.counts_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "counts_")

    # ---------------------------------------------------------------- inside

    def _region(self):
        if self.bounds is None:
            raise ValueError("bounds must be declared, because places of rows are private: give the public region, as "
                             "in ([48.80, 2.22], [48.92, 2.42])")
        lows, highs = (np.array(end, float) for end in pair_of(self.bounds, "bounds", 2))
        scale_of(self.units, lows.tolist(), highs.tolist())
        return lows, highs

    _units = staticmethod(units_of)

    def _partition(self, n_rows):
        """Return what cuts the region, or raise ValueError for a parameter."""
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}")
        for name, most in (("cells", MOST_CELLS), ("n_rows", 2**53)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)
                                      or not 1 <= value <= most):
                raise ValueError(f"{name} must be None or an int from 1 to {most}")
        expected = self.n_rows or (n_rows if self._replaces else MANY)
        cells = None if self.cells is None else int(self.cells)
        return METHODS[self.method](self._budget()[0], 2 if self._replaces else 1, int(expected), cells)

    def _variance(self, weights):
        """Return (the variance of a sum of counts with weights, its fourth cumulant)."""
        if self._groups is None:
            noise = self._noises.noise.variance_steps
            return noise * float(weights @ weights), 3 * noise**2 * float((weights**4).sum())
        starts, share = self._groups
        one, two = (law.variance_steps for law in (self._noises.first, self._noises.second))
        coarse = np.add.reduceat(weights, starts[:-1]) * share / np.diff(starts)
        fine = weights - np.repeat(coarse, np.diff(starts))
        return (two * float(fine @ fine) + one * float(coarse @ coarse),
                3 * (two**2 * float((fine**4).sum()) + one**2 * float((coarse**4).sum())))

    def _notes(self):
        return ()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (two columns, and no other number of them)
        return tags

    def _result_parts(self, level):
        total = np.ones(len(self.counts_))
        lows, highs = self.bounds_
        interval = np.array(self.confidence_interval(lows, highs, level)) if level else None
        return [Part("number of rows in the region", (), np.asarray(total @ self.counts_),
                     np.asarray(math.sqrt(self._variance(total)[0])), interval)]

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the region."""
        lows, highs = (np.array(end, float) for end in pair_of(self.bounds, "bounds", 2))
        return lows + (highs - lows) * np.random.default_rng(seed).normal(0.4, 0.3, (n_rows, 2)), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "bounds": ([0.0, 0.0], [4.0, 3.0]), "units": "metres", "method": "privtree", "cells": 8},
            {"epsilon": 2.0, "bounds": ([48.8, 2.2], [48.9, 2.4]), "method": "ag", "cells": 3,
             "units": "degrees", "neighbours": "add_remove", "n_rows": 50},
            {"epsilon": 1.0, "bounds": ([0.0, 0.0], [1.0, 1.0]), "units": "metres", "method": "ug",
             "cells": 3},
        ]
