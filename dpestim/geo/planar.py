"""Places on devices: transformers that report a place near the own one (geo-indistinguishability)."""

from dataclasses import replace

import numpy as np

from dpestim.geo.column import PlaceColumn, coder_of, n_places
from dpestim.geo.law import PlanarLaw
from dpestim.geo.meaning import DistanceTable
from dpestim.geo.projection import scale_of, step_of
from dpestim.geo.remap import checked_prior, remapped
from dpestim.local.columns import Columns
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import canonical_epsilon


class PlaceTransformer(NumericTransformer):
    """Base of what reports places of a grid; a sub-class names its `_randomizer`, and brings `_law`."""

    _template = "places"
    _protects = "one report, by distance"
    _checked_as = "places"
    _same_domain = "the same bounds, units and step"
    _reads_missing = False
    #: Whether `decode` uses the prior; else the law does.
    _remaps = True
    _not_in_parts = "learns nothing of rows: randomise the rows of parts by distributed.privatize"
    _no_survey = ("client must send reports that are counted, and reports of places are used one by one: privatize "
                  "them on the devices, or take LDPartEstimator for counts of places")

    def distances(self, metres=(10, 100, 1000)):
        """Return what epsilon means at some distances: a table.

        Parameters
        ----------
        metres : sequence of numbers, default=(10, 100, 1000)

        Returns
        -------
        DistanceTable
            For each distance epsilon there, by how much odds on two such places can change, and what even odds become.
        """
        return DistanceTable.of(canonical_epsilon(self.epsilon), metres, self.privacy_)

    def decode(self, codes):
        """Return where reported places are, in the units of X; with a `prior`, the best guess of the user's place.

        Parameters
        ----------
        codes : ndarray of shape (n_rows, 1)
            As `privatize` returns them.

        Returns
        -------
        ndarray of float64 of shape (n_rows, 2)
        """
        places = super().decode(codes)
        prior = getattr(self, "prior", None)
        if prior is None or not self._remaps:
            return places
        (column,) = self._columns_now()
        where, weights = checked_prior(prior)
        return remapped(places, where, weights, float(column.law.epsilon), np.array(column.metres))

    # ---------------------------------------------------------------- inside

    def _law(self, sides, step, coder):
        """Return the law of a region of so many places in each coordinate; `coder` gives the places of rows."""
        raise TypeError(f"{type(self).__name__} does not say what its law is: implement `_law`")

    def _check_call_parameters(self):
        super()._check_call_parameters()
        canonical_epsilon(self.epsilon)
        if getattr(self, "prior", None) is not None:
            checked_prior(self.prior)

    def _declare(self, n_columns, names=None):
        return super()._declare(2 if n_columns is None else n_columns, names)

    def _columns_of_width(self, width):
        return self._columns_now()

    def _n_parts(self, n_columns):
        return 1

    def _made(self, lows, highs, names, **more):
        if len(lows) != 2:
            raise ValueError(f"bounds must be those of two columns, (latitude, longitude) or (x, y), got {len(lows)}: "
                             "select the two columns of places")
        if any(not 0 < high - low < 1e9 for low, high in zip(lows, highs)):
            raise ValueError("bounds must have low below high, and be at most 1e9 apart")
        metres, error = scale_of(self.units, lows, highs)
        step = self._step([(high - low) * m for low, high, m in zip(lows, highs, metres)])
        if any((high - low) * m / float(step) > 2**40 for low, high, m in zip(lows, highs, metres)):
            raise ValueError("step must be larger, or the bounds closer: a region has at most 2^40 places")
        sides = [n_places(low, high, m, step) for low, high, m in zip(lows, highs, metres)]
        where = "" if self.units == "metres" else f", degrees at latitude {(lows[0] + highs[0]) / 2!r}"
        metric = f"grid of {float(step)!r} metres from ({lows[0]!r}, {lows[1]!r}){where}{self._distance()}"
        law = self._law(sides, step, coder_of(lows, metres, step, sides))
        notes = (f"Distances on the grid differ from those on the ellipsoid by at most {100 * error:.2g} percent.",
                 ) * bool(error)
        return PlaceColumns([PlaceColumn(names, law, lows, highs, metres, metric)], notes=notes, **more)

    def _distance(self):
        """Return what the name of the metric says besides."""
        return ""

    def _step(self, spans):
        """Return the step of the grid of a region that spans so many metres in each coordinate."""
        return step_of(self.step, canonical_epsilon(self.epsilon))

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the declared bounds."""
        lows, highs = (np.broadcast_to(np.array(end, float), 2) for end in self.bounds)
        return lows + (highs - lows) * np.random.default_rng(seed).normal(0.4, 0.3, (n_rows, 2)), None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (two columns, and no other number of them)
        return tags

    def _like(self, columns):
        (column,) = columns
        return self._made(column.lows, column.highs, columns.names, inferred=columns.inferred, keys=columns.keys)


class PlaceColumns(Columns):
    """The columns of a place, and what else their guarantee says."""

    def __init__(self, columns, inferred="", keys=None, notes=()):
        super().__init__(columns, inferred, keys)
        self.notes = notes

    def with_columns(self, columns):
        """Return other columns in the same layout."""
        return PlaceColumns(columns, self.inferred, self.keys, self.notes)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises: epsilon of the diameter, and epsilon of a metre by its name."""
        made = super().guarantee(seeded, times, n_batches)
        return made if self.inferred else replace(made, notes=(*made.notes, *self.notes))


class PlanarLaplaceTransformer(PlaceTransformer):
    """Report a place near the user's place by the planar Laplace mechanism (geo-indistinguishability).

    Each user reports a place whose probability falls by e^-epsilon with each metre from the user's place. Two places
    that are close to each other are hard to tell apart, and places that are far apart are not: the neighbourhood is
    protected, the city is not. The report is a place of a grid in a declared region.

    **Privacy.** `epsilon` is for a metre: two places at distance r are told apart by at most e^(epsilon r), exact
    (integers; proof in ``planar.md``). That is **geo-indistinguishability, a relaxation** of local differential
    privacy: a ledger can be opened for it by the name in ``privacy_.relaxation``. Local differential privacy holds with
    epsilon times the diameter of the region: ``privacy_.epsilon``, which any other ledger is charged. Distances are
    those on the grid: two places in neighbouring cells count as one step apart. Each report of a user costs epsilon
    again: k places of a trace cost k epsilon a metre. No other party is trusted.

    **Utility.** The mean distance of a report is 2 / epsilon metres, and 95 percent of reports are within
    4.7 / epsilon. Reports beyond the region are moved to its border. A public `prior` moves reports to the place of
    least expected distance, which costs nothing.

    **Complexity.** O(1) a user, 0.1 seconds for a million; log2 of the places of the grid in bits sent.

    {parameters}
    References
    ----------
    M. Andres, N. Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Geo-indistinguishability: differential privacy for
    location-based systems", CCS 2013; K. Chatzikokolakis, E. ElSalamouny, C. Palamidessi, "Efficient utility
    improvement for location privacy", PoPETs 2017 (remapping). The law in integers is derived in ``planar.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.geo import PlanarLaplaceTransformer
    >>> X = np.full((10_000, 2), [48.8584, 2.2945])
    >>> region = ([48.80, 2.22], [48.92, 2.42])
    >>> reports = PlanarLaplaceTransformer(0.01, bounds=region, random_state=0).fit_transform(X)
    >>> metres = (reports - X) * [111_200, 73_200]
    >>> bool(abs(np.hypot(*metres.T).mean() - 2 / 0.01) < 10)
    True
    """

    _randomizer = PlanarLaw
    _test_values = {"step": [0.5], "units": ["degrees"]}
    _no_law = frozenset({"ledger", "random_state", "n_jobs", "prior"})
    _more_parameters = """
    step : float, default=None
        Metres between neighbouring places of the grid, at least 0.001 / epsilon. None takes at most 0.05 / epsilon.
    prior : (places, weights), default=None
        Public: places in the units of X, of shape (k, 2), and how likely each is. `decode` and `transform` then return
        the place of the least expected distance under the prior, given the report.
    """

    def __init__(self, epsilon=0.01, *, bounds=None, units="degrees", step=None, prior=None, ledger=None,
                 random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.units = units
        self.step = step
        self.prior = prior
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _law(self, sides, step, coder):
        return PlanarLaw.make(self._share(1), *sides, step)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": ([0.0, 0.0], [2.0, 3.0]), "units": "metres", "step": 1.0},
            {"epsilon": 0.8, "bounds": ([48.85, 2.35], [48.85003, 2.350025]), "units": "degrees",
             "step": 1.5, "prior": ([[48.85001, 2.35001], [48.85002, 2.35]], [0.75, 0.25])},
        ]
