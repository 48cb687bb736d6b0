"""A map of a region: counts of cells as colours, places as points, a scale in metres; matplotlib, and no tiles."""

import numpy as np

from dpestim.geo.projection import metres_per_degree, round_above
from dpestim.plots import Display

#: Length of the bar, as a share of the width of the map.
_BAR = 0.2


class MapDisplay(Display):
    """A map: cells in the colours of their density, with a scale in metres.

    Parameters
    ----------
    cells : ndarray of shape (n_cells, 4)
        Low and high in the first coordinate (latitude, or x), low and high in the second.
    values : ndarray of shape (n_cells,)
        Counts; negative ones are drawn as 0.
    units : {"degrees", "metres"}

    Attributes
    ----------
    {drawn on}
    """

    def __init__(self, cells, values, units="degrees"):
        self.cells, self.values, self.units = cells, values, units

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Draw the counts of a fitted `SpatialDensity` or `LDPartEstimator`.

        Parameters
        ----------
        estimator : SpatialDensity or LDPartEstimator
            Fitted.
        {ax}
        **kwargs
            For matplotlib's `PolyCollection` of the cells.

        Returns
        -------
        MapDisplay
        """
        return cls(estimator.cells_, estimator.counts_, estimator.units).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the map.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `PolyCollection` of the cells.

        Returns
        -------
        MapDisplay
        """
        from matplotlib import pyplot
        from matplotlib.collections import PolyCollection

        if ax is None:
            ax = pyplot.subplots(figsize=(6, 5))[1]
        degrees = self.units == "degrees"
        # (on a map longitude runs to the right; plane coordinates are x, y)
        across, up = (self.cells[:, 2:], self.cells[:, :2]) if degrees else (self.cells[:, :2], self.cells[:, 2:])
        corners = np.stack([np.stack([across[:, a], up[:, b]], axis=1) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))], 1)
        scale = np.array(metres_per_degree(up.mean())[::-1]) if degrees else np.ones(2)
        area = (across[:, 1] - across[:, 0]) * (up[:, 1] - up[:, 0]) * scale.prod() / 1e6
        per = np.maximum(self.values, 0) / area
        options = {"cmap": "viridis", "edgecolors": "face", "linewidths": 0.2, **kwargs}
        drawn = PolyCollection(corners, array=np.sqrt(per), **options)
        ax.add_collection(drawn)
        ax.set_xlim(across.min(), across.max())
        ax.set_ylim(up.min(), up.max())
        ax.set_aspect(scale[1] / scale[0])
        ax.set(xlabel="longitude" if degrees else "x in metres", ylabel="latitude" if degrees else "y in metres")
        # (small cells with large noise are the brightest: colours end at the density that 5 percent of the rows exceed)
        order = np.argsort(per)
        rows = np.cumsum((per * area)[order])
        most = per[order[min(np.searchsorted(rows, 0.95 * rows[-1]), len(order) - 1)]]
        drawn.set_clim(0, np.sqrt(max(most, 1e-9)))
        bar = ax.figure.colorbar(drawn, ax=ax, label="rows a square kilometre", extend="max")
        ticks = np.linspace(0, np.sqrt(max(most, 1e-9)), 5)
        bar.set_ticks(ticks, labels=[f"{tick**2:,.3g}" for tick in ticks])
        self._draw_scale(ax, across, up, scale[0])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_scale(self, ax, across, up, metres):
        """Draw a bar of a round number of metres in the lower left corner."""
        width, height = np.ptp(across), np.ptp(up)
        length = float(round_above(_BAR * width * metres))
        left, bottom = across.min() + 0.04 * width, up.min() + 0.05 * height
        ax.plot([left, left + length / metres], [bottom, bottom], color="white", linewidth=3, solid_capstyle="butt")
        label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
        ax.text(left, bottom + 0.015 * height, label, color="white", va="bottom")
