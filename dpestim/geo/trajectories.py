"""Trajectories that resemble those of people: a Markov chain of cells, from noisy counts, in the central model."""

import copy
from fractions import Fraction
from numbers import Integral

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.base import CentralMechanism
from dpestim.geo.fine import FINE, fine_table, parts_of, spread, summed
from dpestim.geo.projection import scale_of
from dpestim.inputs import number_rows
from dpestim.local.coded import pair_of
from dpestim.postprocessing import norm_sub
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state
from dpestim.summaries import schema_of

#: The parts of epsilon of lengths, of starts, of steps, and of places within cells.
SHARES = {"ug": (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)),
          "ag": (Fraction(1, 10), Fraction(1, 5), Fraction(2, 5), Fraction(3, 10))}
#: Cells a side at most, and steps between neighbouring cells.
MOST_CELLS, MOVES = 64, tuple((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1))


class TrajectorySynthesizer(CentralMechanism):
    """Sample trajectories from a private Markov chain of cells.

    A row is the trajectory of a person: x1, y1, x2, y2, ..., with NaN after its end. Each trajectory becomes a walk of
    neighbouring cells. Lengths, starts and steps of walks are counted with noise, and new trajectories are drawn from
    the counts.

    **Privacy.** Pure epsilon in the central model for whole trajectories, exact; the declared neighbours differ in one
    row (proof in ``trajectories.md``). The curator, who holds the rows, must be trusted.

    **Utility.** A count of steps has noise of a standard deviation of about 2 (L - 1) / epsilon with "add_remove", L
    being `max_length`, because a row takes up to L - 1 steps: declare a small one. The chain knows the last cell only.
    With ``method="ag"`` counts of steps have 7 / 4 of that noise, and places within full cells are those of rows.

    **Complexity.** O(n L) time, and O(cells^2) memory.

    {parameters}
    References
    ----------
    M. E. Gursoy, L. Liu, S. Truex, L. Yu, "Differentially private and utility preserving publication of trajectory
    data", IEEE TMC 2019 (DP-Star: noisy starts, lengths and a Markov chain); Y. Du et al., "LDPTrace: locally
    differentially private trajectory synthesis", VLDB 2023 (steps between neighbouring cells); W. Qardaji, W. Yang,
    N. Li, "Differentially private grids for geospatial data", ICDE 2013 (adaptive grids).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.geo import TrajectorySynthesizer
    >>> rng = np.random.default_rng(0)
    >>> steps = rng.uniform([0, -30], [100, 30], (5_000, 8, 2))  # all walk to the right
    >>> X = (np.cumsum(steps, axis=1) + [100, 500]).reshape(5_000, 16)
    >>> est = TrajectorySynthesizer(2.0, region=(0, 1000), units="metres", cells=8, max_length=8, random_state=0).fit(X)
    >>> drawn = est.sample(1_000, random_state=0)
    >>> drawn.shape, bool(np.nanmean(drawn[:, 8] - drawn[:, 0]) > 100)
    ((1000, 16), True)
    """

    _checked_as, _template = "trajectories", "rows"
    _not_in_parts = ("needs all rows at once: fit it to the rows on one machine, or take a Histogram of the places of "
                     "parts")
    _more_parameters = """
    region : (low, high)
        The public region, as in ``([48.80, 2.22], [48.92, 2.42])``: the lower ends of both coordinates, then the upper
        ones. Places outside are moved to its border.
    units : {"degrees", "metres"}, default="degrees"
        "degrees": places are latitude and longitude.
    cells : int, default=16
        Cells a side of the region, from 2 to 64.
    max_length : int, default=20
        The cells of a walk at most, from 2 to 1,000; longer walks are cut.
    method : {"ug", "ag"}, default="ug"
        "ug": places within a cell are drawn evenly. "ag": cells of many visits are divided into up to 8 x 8 parts, and
        three tenths of epsilon count the places in these; steps have two fifths of epsilon then, for seven tenths.
    """
    _more_attributes = """
    lengths_, starts_, steps_ : ndarrays
        Noisy counts: of walks of 1, 2, ... cells; of walks by their first cell, of shape (cells, cells); and of steps
        from each cell to its neighbours and itself, of shape (cells, cells, 9).
    places_ : ndarray of shape (cells, cells, 8, 8), or None
        With "ag" noisy counts of places in fine cells of each cell: that of a part, divided evenly.
    bounds_ : (ndarray, ndarray) of shape (2,)
    """

    def __init__(self, epsilon=1.0, *, region=None, units="degrees", cells=16, max_length=20, method="ug",
                 neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.region = region
        self.units = units
        self.cells = cells
        self.max_length = max_length
        self.method = method
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Count walks with noise: one release, which is charged before noise is drawn; nothing else is kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, 2 * n_places)
            Trajectories; after the end of one NaN.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        strict = self._is_strict()
        rows = number_rows(X, strict=strict)
        if rows.shape[1] % 2:
            raise ValueError("X must have two columns for each place, x1, y1, x2, y2, ...: fill places after the end "
                             "of a trajectory with NaN")
        (lows, highs), noises = self._region(), self._noises()
        if not strict and (np.isinf(rows.astype(np.float64)).any() or np.isnan(rows[:, :2].astype(np.float64)).any()):
            raise ValueError("X must have a first place in every row, and no infinite number, and column 0 or column 1 "
                             "lacks one, or another column is infinite: leave out rows without a place")
        check_random_state(self.random_state)
        learned, tables = schema_of(X, rows.shape[1]), self._counted(rows, lows, highs)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        found = self._add(noises, tables, source)
        names = "lengths_", "starts_", "steps_", "places_"
        return self._become({**learned, "places_": None, **dict(zip(names, found)), "bounds_": (lows, highs),
                             "_kept_promise": promised, "_error": float(np.sqrt(noises[0].variance_steps))})

    def release(self, X, y=None):
        """Return (lengths, starts, steps), with "ag" also places, as `fit` does; one release, nothing of it is kept."""
        done = copy.copy(self).fit(X)
        self._last_relation = done._last_relation
        found = done.lengths_, done.starts_, done.steps_, done.places_
        return found if done.places_ is not None else found[:3]

    def sample(self, n_samples, random_state=None):
        """Return trajectories drawn from the chain: free.

        Parameters
        ----------
        n_samples : int
        random_state : None, int or NumPy generator, default=None

        Returns
        -------
        ndarray of shape (n_samples, 2 * max_length)
            Places within cells, or with "ag" within their parts, are drawn evenly; NaN after the end of a trajectory.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError("n_samples must be an int of at least 0")
        check_random_state(random_state)
        rng = np.random.default_rng(random_state.randint(2**31) if isinstance(random_state, np.random.RandomState)
                                    else random_state)
        n, cells, most = int(n_samples), len(self.starts_), len(self.lengths_)
        length = rng.choice(most, n, p=_shares(self.lengths_)) + 1
        at = np.stack(np.divmod(rng.choice(cells * cells, n, p=_shares(self.starts_.ravel())), cells), axis=1)
        chain = np.cumsum([[_shares(row) for row in rows] for rows in np.where(
            _inside(cells), self.steps_, -np.inf)], axis=2)
        fine = None if self.places_ is None else np.cumsum([[_shares(table.ravel()) for table in row]
                                                            for row in self.places_], axis=2)
        out, (lows, highs) = np.full((n, most, 2), np.nan), self.bounds_
        for k in range(most):
            here = length > k
            within = rng.random((here.sum(), 2))
            if fine is not None:
                part = (rng.random(len(within))[:, None] >= fine[at[here, 0], at[here, 1]]).sum(axis=1)
                within = (np.stack(np.divmod(np.minimum(part, FINE**2 - 1), FINE), axis=1) + within) / FINE
            places = (at[here] + within) / cells
            out[here, k] = lows + (highs - lows) * places
            drawn = (rng.random(n)[:, None] >= chain[at[:, 0], at[:, 1]]).sum(axis=1)
            at = np.clip(at + np.array(MOVES)[np.minimum(drawn, 8)], 0, cells - 1)
        return out.reshape(n, 2 * most)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "steps_")

    # ---------------------------------------------------------------- inside

    def _region(self):
        if self.region is None:
            raise ValueError("region must be declared, because places are private: give the public one, as in "
                             "([48.80, 2.22], [48.92, 2.42])")
        lows, highs = (np.array(end, float) for end in pair_of(self.region, "region", 2))
        scale_of(self.units, lows.tolist(), highs.tolist())
        return lows, highs

    def _noises(self):
        """Return the noise of each table, or raise ValueError for a parameter."""
        for name, least, most in (("cells", 2, MOST_CELLS), ("max_length", 2, 1000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
                raise ValueError(f"{name} must be an int from {least} to {most:,}")
        if not isinstance(self.method, str) or self.method not in SHARES:
            raise ValueError(f"method must be one of {list(SHARES)}")
        epsilon, moved = self._budget()[0], 2 if self._replaces else 1
        return [DiscreteLaplaceLaw(epsilon * share, Fraction(0), Fraction(moved * each), 0)
                for share, each in zip(SHARES[self.method], (1, 1, int(self.max_length) - 1, int(self.max_length)))]

    def _counted(self, rows, lows, highs):
        """Return the exact tables of rows."""
        cells, most = int(self.cells), int(self.max_length)
        tables = tables_of(walks_of(rows, lows, highs, cells, most), cells)
        return tables if self.method == "ug" else (*tables, fine_table(rows, lows, highs, cells, most))

    def _add(self, noises, tables, source):
        """Return tables with noise; noisy steps say into which parts cells are divided."""
        found = [noise.add(table.ravel().copy(), source.part(k)).reshape(table.shape)
                 for k, (noise, table) in enumerate(zip(noises[:3], tables[:3]))]
        if len(tables) == 3:
            return found
        sums = noises[3].add(self._in_parts(tables[3], found[2]), source.part(3))
        return [*found, spread(sums, self._parts(found[2]))]

    def _parts(self, steps):
        """Return the parts a side of each cell, by noisy steps."""
        return parts_of(steps, self._noises()[3])

    def _in_parts(self, table, steps):
        """Return the sums of a fine table over parts, which noisy steps decide."""
        return summed(table, self._parts(steps))

    def _notes(self):
        return ()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (two columns for each place)
        tags.input_tags.allow_nan = True
        return tags

    def _result_parts(self, level):
        labels = list(range(1, len(self.lengths_) + 1))
        error = np.full(len(labels), self._error)
        return [Part("number of walks", (("cells of the walk", labels),), self.lengths_.astype(float), error)]

    def _test_data(self, n_rows, seed=0):
        """Return walks of four places."""
        lows, highs = self._region()
        rng = np.random.default_rng(seed)
        walks = np.cumsum(rng.normal(0, 0.15, (n_rows, 4, 2)), axis=1) + rng.random((n_rows, 1, 2))
        return (lows + (highs - lows) * walks).reshape(n_rows, 8), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 2.0, "region": ([0.0, 0.0], [4.0, 3.0]), "units": "metres", "cells": 3, "max_length": 4},
            {"epsilon": 1.0, "region": ([48.8, 2.2], [48.9, 2.4]), "units": "degrees", "cells": 2, "max_length": 3,
             "neighbours": "add_remove"},
            {"epsilon": 12.0, "region": ([0.0, 0.0], [4.0, 3.0]), "units": "metres", "cells": 2, "max_length": 3,
             "method": "ag", "neighbours": "add_remove"},
        ]


def walks_of(rows, lows, highs, cells, most):
    """Return an (n, most, 2) array of int: cells of walks through neighbours, -1 after the end of a walk."""
    places = np.asarray(rows, np.float64).reshape(len(rows), -1, 2)
    ended = np.maximum.accumulate(np.isnan(places).any(axis=2), axis=1)
    with np.errstate(all="ignore"):
        share = (places - lows) * (cells / (highs - lows))
        cell = np.fmin(np.fmax(share, 0.0), cells - 1).astype(np.int64)
    walks = np.full((len(rows), most, 2), -1, np.int64)
    walks[:, 0] = cell[:, 0]  # (in strict mode a row without a place starts in the first cell)
    at, used = cell[:, 0].copy(), np.ones(len(rows), np.int64)
    for k in range(1, places.shape[1]):
        goes, first = ~ended[:, k] & (used < most), True
        while goes.any():
            move = np.clip(cell[:, k] - at, -1, 1)
            goes &= first | (move != 0).any(axis=1)  # (a place in the same cell is a step, too)
            step = np.flatnonzero(goes)
            at[step] += move[step]
            walks[step, used[step]] = at[step]
            used[step] += 1
            goes &= used < most
            first = False
    return walks


def tables_of(walks, cells):
    """Return (counts of lengths, of starts, of steps) of walks, arrays of int64."""
    here = walks[:, :, 0] >= 0
    lengths = np.bincount(here.sum(axis=1) - 1, minlength=walks.shape[1])
    starts = np.bincount(walks[:, 0, 0] * cells + walks[:, 0, 1], minlength=cells * cells).reshape(cells, cells)
    move = walks[:, 1:] - walks[:, :-1] + 1
    at, step = walks[:, :-1][here[:, 1:]], move[here[:, 1:]]
    numbers = (at[:, 0] * cells + at[:, 1]) * 9 + step[:, 0] * 3 + step[:, 1]
    return lengths, starts, np.bincount(numbers, minlength=cells * cells * 9).reshape(cells, cells, 9)


def _inside(cells):
    """Return which steps stay in the region, a mask of shape (cells, cells, 9)."""
    at = np.stack(np.meshgrid(np.arange(cells), np.arange(cells), indexing="ij"), axis=-1)
    there = at[:, :, None] + np.array(MOVES)
    return ((there >= 0) & (there < cells)).all(axis=3)


def _shares(counts):
    """Return probabilities from noisy counts; even ones where nothing is above 0. Impossible is -inf."""
    possible = np.isfinite(counts)
    total = np.maximum(counts[possible], 0).sum()
    out = np.zeros(len(counts))
    out[possible] = norm_sub(counts[possible] / counts[possible].sum()) if counts[possible].sum() > 0 else (
        np.maximum(counts[possible], 0) / total if total > 0 else 1 / possible.sum())
    return out / out.sum()
