"""Cells on devices: transformers that report a cell near the own one, for coarse grids."""

import math
from fractions import Fraction

import numpy as np

from dpestim.geo.column import n_places
from dpestim.geo.law import PlanarLaw
from dpestim.geo.optimal import LARGEST_TABLE, OptimalLaw
from dpestim.geo.planar import PlaceTransformer
from dpestim.geo.projection import round_above, step_of
from dpestim.geo.remap import checked_prior
from dpestim.privacy.exact import canonical_epsilon

#: Cells of a region at most, where no step is declared for a linear program.
_FEW = 36
#: Distances of cells, by name, and what the name of the relaxation says of them.
METRICS = {"euclidean": "", "manhattan": ", sums of both coordinates"}


class CellTransformer(PlaceTransformer):
    """Base of what reports cells of a coarse grid."""

    def __init__(self, epsilon=0.01, *, bounds=None, units="degrees", step=None, metric="euclidean", prior=None,
                 ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.units = units
        self.step = step
        self.metric = metric
        self.prior = prior
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _distance(self):
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise ValueError(f"metric must be one of {list(METRICS)}")
        return METRICS[self.metric]

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._distance()

    def _step(self, spans):
        return step_of(self.step, canonical_epsilon(self.epsilon), Fraction(1, 2))

    def expected_distance(self, prior=None):
        """Return the mean distance in metres of a user's cell from what `decode` makes of the report: no sampling.

        Parameters
        ----------
        prior : (places, weights), default=None
            How likely users are where. None: the parameter `prior`, or if that is None all cells alike.

        Returns
        -------
        float
            For at most 1,024 cells.
        """
        (column,) = self._columns_now()
        every = column.places_of(np.arange(column.law.n_inputs))
        if prior is None:
            prior = getattr(self, "prior", None)
        share = np.full(len(every), 1 / len(every))
        if prior is not None:
            where, weights = checked_prior(prior)
            share = np.bincount(column.number_of(where), weights, len(every))
        matrix = column.law.chances()
        said = self.decode(np.arange(len(every)).astype(column.law.report_dtype)[:, None])
        apart = np.abs(every[:, None] - said) * column.metres
        apart = apart.sum(axis=2) if column.law.manhattan else np.sqrt(np.square(apart).sum(axis=2))
        return float((share[:, None] * matrix * apart).sum())


class PlanarGeometricTransformer(CellTransformer):
    """Report a cell near the user's cell by the planar geometric mechanism (geo-indistinguishability).

    The probability of a cell falls by e^-epsilon with each metre between the centers of cells. The mechanism is
    `PlanarLaplaceTransformer` on a coarse grid, for cells that a service knows, with Euclidean or Manhattan distances.

    **Privacy.** `epsilon` is for a metre between centers of cells: two users whose cells are at distance r are told
    apart by at most e^(epsilon r), exact (integers; proof in ``planar.md``). Users in one cell are not told apart at
    all; users on two sides of an edge of a cell are one step apart. The guarantee is a relaxation of local differential
    privacy, as that of `PlanarLaplaceTransformer` is. Each report of a user costs epsilon again.

    **Utility.** `expected_distance` computes the mean distance from the user's cell. A public `prior` moves reports to
    the place of least expected distance, which costs nothing.

    **Complexity.** O(1) a user; log2 of the number of cells in bits sent.

    {parameters}
    References
    ----------
    K. Chatzikokolakis, E. ElSalamouny, C. Palamidessi, "Efficient utility improvement for location privacy", PoPETs
    2017. The law in integers is derived in ``planar.md``.

    Examples
    --------
    >>> from dpestim.geo import PlanarGeometricTransformer
    >>> town = ([0, 0], [2000, 2000])
    >>> device = PlanarGeometricTransformer(0.01, bounds=town, units="metres", step=100, random_state=0)
    >>> device.fit_transform([[1040, 260], [1920, 1800]]).tolist()
    [[800.0, 700.0], [1900.0, 1800.0]]
    """

    _randomizer = PlanarLaw
    _proof_name = "planar"
    _test_values = {"step": [0.5], "units": ["degrees"], "metric": ["euclidean"]}
    _no_law = frozenset({"ledger", "random_state", "n_jobs", "prior"})
    _more_parameters = """
    step : float, default=None
        The side of a cell in metres, at least 0.001 / epsilon. None takes at most 0.5 / epsilon.
    metric : {"euclidean", "manhattan"}, default="euclidean"
        The distance of two cells: of their centers, or the sum of the distances in both coordinates.
    prior : (places, weights), default=None
        Public: places in the units of X, of shape (k, 2), and how likely each is. `decode` and `transform` then return
        the place of the least expected distance under the prior, given the report.
    """

    def _law(self, sides, step, coder):
        return PlanarLaw.make(self._share(1), *sides, step, self.metric == "manhattan")

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": ([0.0, 0.0], [2.0, 2.0]), "units": "metres", "step": 1.0,
             "metric": "manhattan"},
            {"epsilon": 0.5, "bounds": ([0.0, 0.0], [3.0, 5.0]), "units": "metres", "step": 2.0,
             "prior": ([[1.0, 1.0], [3.0, 4.0]], [0.75, 0.25])},
        ]


class OptimalGeoTransformer(CellTransformer):
    """Report a cell by the law of the least expected distance (geo-indistinguishability), from a linear program.

    Of all laws that keep epsilon for a metre between any two cells, the law has the least mean distance from the user's
    cell under a public prior, but for what rounding takes. For few cells: the program has a number for each pair.

    **Privacy.** `epsilon` is for a metre between centers of cells, as for `PlanarGeometricTransformer`: two users whose
    cells are at distance r are told apart by at most e^(epsilon r), exact. The numbers of the solver are rounded to
    integers, and integers are verified for every pair of cells and every report (proof in ``optimal.md``): no float of
    the solver is relied on. The guarantee holds for any user, also if the prior is wrong. Each report of a user costs
    epsilon again.

    **Utility.** `expected_distance` computes the mean distance under the prior.

    **Complexity.** A linear program of n^2 numbers for n cells, at most 64, once: about a second for 36 cells. O(log n)
    a user; log2(n) bits sent.

    {parameters}
    References
    ----------
    N. Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Optimal geo-indistinguishable mechanisms for location privacy",
    CCS 2014 (the program, and constraints along a graph). The rounding is derived in ``optimal.md``.

    Examples
    --------
    >>> from dpestim.geo import OptimalGeoTransformer
    >>> town = ([0, 0], [300, 300])
    >>> device = OptimalGeoTransformer(0.01, bounds=town, units="metres", step=100, random_state=0)
    >>> round(device.expected_distance())
    110
    """

    _randomizer = OptimalLaw
    _proof_name = "optimal"
    _test_values = {"step": [0.5, 3e4], "units": ["metres"], "metric": ["euclidean"],
                    "prior": [([[0.0, 0.0], [1.0, 1.0]], [1, 2])]}
    _more_parameters = """
    step : float, default=None
        The side of a cell in metres; a region has at most 64 cells. None takes the least round number of metres for
        which a region has at most 36.
    metric : {"euclidean", "manhattan"}, default="euclidean"
        The distance of two cells: of their centers, or the sum of the distances in both coordinates.
    prior : (places, weights), default=None
        Public: places in the units of X, of shape (k, 2), and how likely each is, which the law is the best one for.
        None: all cells alike. The prior is part of the law: devices and servers must have the same one.
    """

    _remaps = False

    def _step(self, spans):
        if self.step is not None:
            return super()._step(spans)
        step = round_above(max(spans) / _FEW)
        while math.prod(n_places(0.0, span, 1.0, step) for span in spans) > _FEW:
            step = round_above(float(step) * 1.01)
        return step

    def _law(self, sides, step, coder):
        shares = None
        if self.prior is not None and sides[0] * sides[1] <= LARGEST_TABLE:
            where, weights = checked_prior(self.prior)
            codes = coder(where)
            shares = tuple(np.bincount(codes[:, 0] * sides[1] + codes[:, 1], weights, sides[0] * sides[1]).tolist())
        return OptimalLaw.make(self._share(1), *sides, step, self.metric == "manhattan", shares)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.5, "bounds": ([0.0, 0.0], [2.0, 1.0]), "units": "metres", "step": 1.0,
             "metric": "manhattan", "prior": ([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [0.0, 1.0]], [1, 1, 1, 2])},
            {"epsilon": 2e-5, "bounds": ([0.0, 0.0], [1.0, 0.5]), "units": "degrees"},
        ]
