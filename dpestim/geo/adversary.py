"""What a report tells an adversary who knows where users are likely to be: the expected error of the best guess."""

import numpy as np

from dpestim.geo.law import LARGEST_ENUMERATED
from dpestim.geo.planar import PlaceTransformer
from dpestim.geo.remap import checked_prior


class PlaceAdversary:
    """A Bayesian adversary, who knows the mechanism and a prior, and guesses the place of the least expected distance.

    The expected error of the adversary says what remains private of the place itself; epsilon bounds what a report adds
    to any prior. An adversary with a sharp prior has a small error without any report.

    Parameters
    ----------
    transformer : PlaceTransformer
        With a declared region of at most 1,024 places, such as `PlanarGeometricTransformer`.
    prior : (places, weights), default=None
        Where users are, in the units of the transformer, and how likely each place is. None: all places alike.

    Examples
    --------
    >>> from dpestim.geo import PlaceAdversary, PlanarGeometricTransformer
    >>> town = ([0, 0], [1000, 1000])
    >>> device = PlanarGeometricTransformer(0.01, bounds=town, units="metres", step=100)
    >>> spy = PlaceAdversary(device)
    >>> round(spy.error_without_report()), round(spy.expected_error())
    (419, 163)
    """

    def __init__(self, transformer, prior=None):
        if not isinstance(transformer, PlaceTransformer):
            raise ValueError("transformer must be one of places, such as PlanarGeometricTransformer")
        (self._column,) = transformer._columns_now()
        law = self._column.law
        if law.n_inputs > LARGEST_ENUMERATED:
            raise ValueError(f"transformer must have a region of at most {LARGEST_ENUMERATED} places: take a larger "
                             "step, or closer bounds")
        self._places = self._column.places_of(np.arange(law.n_inputs))
        self._prior = np.full(law.n_inputs, 1 / law.n_inputs)
        if prior is not None:
            where, weights = checked_prior(prior)
            self._prior = np.bincount(self._column.number_of(where), weights, law.n_inputs)
        apart = np.abs(self._places[:, None] - self._places) * self._column.metres
        self._apart = apart.sum(axis=2) if law.manhattan else np.sqrt(np.square(apart).sum(axis=2))
        #: joint probabilities: of each place and each report
        self._joint = self._prior[:, None] * law.chances()
        costs = self._joint.T @ self._apart  # of each report and each guess
        self._best, self._costs = costs.argmin(axis=1), costs.min(axis=1)

    def expected_error(self):
        """Return the mean distance in metres of the best guess from the user's place, over places and reports.

        Over all places and all reports of the exact law: no sampling.

        Returns
        -------
        float
        """
        return float(self._costs.sum())

    def error_without_report(self):
        """Return the mean distance in metres of the best guess from the prior alone.

        Returns
        -------
        float
        """
        return float((self._prior @ self._apart).min())

    def expected_success(self, metres=0.0):
        """Return the probability that the best guess for this purpose is at most so many metres from the user's place.

        Parameters
        ----------
        metres : float, default=0.0
            0: the guess is the user's place itself.

        Returns
        -------
        float
        """
        if isinstance(metres, bool) or not isinstance(metres, int | float | np.number) or not metres >= 0:
            raise ValueError("metres must be a number of at least 0")
        near = (self._apart <= metres * (1 + 1e-12)).astype(float)
        return float((self._joint.T @ near).max(axis=1).sum())

    def guess(self, reports):
        """Return the best guesses from reports, as `privatize` returns them: places in the units of the transformer.

        Parameters
        ----------
        reports : ndarray of shape (n, 1)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        reports = np.asarray(reports)
        if reports.ndim != 2 or reports.shape[1] != 1 or reports.dtype != self._column.law.report_dtype:
            raise ValueError("reports must be an array of shape (n, 1), as privatize returns it")
        self._column.law.check_reports(reports)
        return self._places[self._best[reports[:, 0]]]
