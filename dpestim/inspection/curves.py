"""A display of the curves of additive models: what each column adds to a score, and how far noise may have moved it."""

from numbers import Real

import numpy as np
from scipy.special import ndtri

from dpestim.inspection.displays import check_has
from dpestim.plots import MOST_NAMES, Display, plain, pyplot

#: Bars with names that are longer in all lie; of pairs, such names are written at an angle.
_SHORT = 50


class ShapeFunctionDisplay(Display):
    """One term of an additive model: a curve over a column, with a band for the noise, or a picture of a pair.

    Parameters
    ----------
    edges : list of ndarray
        Ends of the bins of each column of the term.
    scores : ndarray of shape (n_bins,) or (n_bins, n_bins)
        What each bin adds to the score.
    standard_errors : ndarray of the same shape or None, default=None
    names : list of str
        Of the columns.
    level : float or None, default=0.95
        Of the band, for each bin by itself; None draws none.
    {label}
    categories : list of (list of str or None), default=None
        For each column of the term, what its bins are called; None for a column of numbers.

    Attributes
    ----------
    {drawn on}
    curve_ : matplotlib artist
        The curve, or the picture of a pair.
    band_ : matplotlib artist or None

    Notes
    -----
    The band is that of the noise: it does not know what smoothing or the drawing of the rows did to the curve. It is
    too narrow where columns are nearly copies of each other, or a class is rarer than noise lets tell
    (``standard_errors_`` has the figures).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.ensemble import DPGradientBoostingRegressor
    >>> from dpestim.inspection import ShapeFunctionDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5_000, 2))
    >>> model = DPGradientBoostingRegressor(1.0, delta=1e-6, bounds=(-1, 1), target_bounds=(0, 1), random_state=0)
    >>> display = ShapeFunctionDisplay.from_estimator(model.fit(X, X[:, 0] ** 2), 0)
    >>> display.ax_.get_xlabel()
    'column 0'
    """

    def __init__(self, *, edges, scores, standard_errors=None, names, level=0.95, label=None, categories=None):
        self.edges = edges
        self.scores = scores
        self.standard_errors = standard_errors
        self.names = names
        self.level = level
        self.label = label
        self.categories = categories

    @classmethod
    def from_estimator(cls, estimator, term=0, *, output=0, level=0.95, label=None, ax=None, **kwargs):
        """Draw a term of a fitted additive model.

        Parameters
        ----------
        estimator : fitted additive model
            Such as `dpestim.ensemble.DPGradientBoostingClassifier`.
        term : int, str or pair of str, default=0
            The name of a column, the names of a pair of columns, or a place in `term_features_`: columns first, in
            their order, then pairs.
        output : int, default=0
            The class, where there are several scores.
        level : float or None, default=0.95
        label : str or None, default=None
        {ax}
        **kwargs
            For matplotlib's `stairs`, `bar` of categories (`barh` where their names are long), or `pcolormesh` of a
            pair.

        Returns
        -------
        ShapeFunctionDisplay
        """
        pyplot(cls.__name__)
        check_has(estimator, "estimator", "term_scores_", "term_edges_")
        edges = estimator.term_edges_  # (an error of scikit-learn's where it is not fitted)
        term = _place(estimator, term)
        columns, edges = estimator.term_features_[term], edges[term]
        # (the last code of a column of numbers is for missing ones, which have no place on an axis)
        shape = [len(ends) - 1 for ends in edges]
        codes = estimator.term_bins_[term].reshape(
            [n + estimator.bins_[j].ordered for n, j in zip(shape, columns)])[tuple(map(slice, shape))].ravel()
        scores, errors = (values[term][codes] for values in (
            estimator.term_scores_, estimator.term_standard_errors_))
        if isinstance(output, bool) or not isinstance(output, int | np.integer) or not 0 <= output < scores.shape[1]:
            raise ValueError(f"output must be an int from 0 to {scores.shape[1] - 1}")
        names = getattr(estimator, "feature_names_in_", [f"column {j}" for j in range(estimator.n_features_in_)])
        display = cls(edges=edges, scores=scores[:, output].reshape(shape), level=level, label=label,
                      standard_errors=errors[:, output].reshape(shape), names=[str(names[j]) for j in columns],
                      categories=[_called(estimator, j, n) for j, n in zip(columns, shape)])
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the curve and its band, or the picture.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `stairs`, `bar` of categories (`barh` where their names are long), or `pcolormesh` of a
            pair.

        Returns
        -------
        self
        """
        if self.level is not None and not (isinstance(self.level, Real) and 0 < self.level < 1):
            raise ValueError("level must be None or a number above 0 and below 1")
        ax = self._open(ax)
        self.band_ = None
        x, y = [*(self.categories or ()), None, None][:2]
        lies = x is not None and sum(map(len, x)) > _SHORT
        if len(self.edges) == 2:
            _name(ax.xaxis, x, **({"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if lies else {}))
            _name(ax.yaxis, y)
            self.curve_ = ax.pcolormesh(*self.edges, np.asarray(self.scores).T, **kwargs)
            self.figure_.colorbar(self.curve_, ax=ax, label="added to the score")
            return self._close(xlabel=plain(self.names[0]), ylabel=plain(self.names[1]))
        has_band = (self.level is not None and self.standard_errors is not None
                    and np.isfinite(self.standard_errors).all())
        wide = ndtri((1 + self.level) / 2) * np.asarray(self.standard_errors) if has_band else None
        if x is not None:
            return self._draw_bars(ax, x, wide, lies, kwargs)
        self.curve_ = ax.stairs(self.scores, self.edges[0], baseline=None, label=self.label, **kwargs)
        if has_band:
            self.band_ = ax.stairs(self.scores + wide, self.edges[0], baseline=self.scores - wide, fill=True,
                                   alpha=0.25, color=self.curve_.get_edgecolor())
        return self._close(xlabel=plain(self.names[0]), ylabel="added to the score")

    def _draw_bars(self, ax, called, wide, lies, kwargs):
        """Draw a bar for each category; where names are long bars lie, the first one on top."""
        places = range(len(self.scores))
        self.curve_ = (ax.barh if lies else ax.bar)(places, self.scores, label=self.label, **kwargs)
        if wide is not None:
            ends = (self.scores, places) if lies else (places, self.scores)
            self.band_ = ax.errorbar(*ends, **{"xerr" if lies else "yerr": wide}, fmt="none", ecolor="black",
                                     capsize=3 if len(called) <= MOST_NAMES else 0)
        name, score = plain(self.names[0]), "added to the score"
        _name(ax.yaxis if lies else ax.xaxis, called)
        if not lies:
            return self._close(xlabel=name, ylabel=score)
        ax.set_ylim(len(called) - 0.5, -0.5)
        return self._close(xlabel=score, ylabel=name)


def _place(estimator, term):
    """Return the place of a term that is given by its place, by the name of its column or by those of its pair."""
    names, features = list(getattr(estimator, "feature_names_in_", ())), estimator.term_features_
    asked = (term,) if isinstance(term, str) else term
    if isinstance(asked, tuple | list) and all(isinstance(name, str) for name in asked):
        columns = {names.index(name) for name in asked if name in names}
        found = [place for place, own in enumerate(features) if set(own) == columns and len(own) == len(asked)]
        if found:
            return found[0]
        known = ["*".join(names[j] for j in own) for own in features] if names else ["none, because X had no column "
                                                                                     "names"]
        raise ValueError(f"term must be the name of a column, or of the columns of a pair, in the model: "
                         f"{', '.join(known)}")
    if isinstance(term, bool) or not isinstance(term, int | np.integer) or not 0 <= term < len(features):
        raise ValueError(f"term must be a name of a column or an int from 0 to {len(features) - 1}")
    return int(term)


def _called(estimator, j, n):
    """Return what so many codes of a column of categories are called, the last of which is for all others; None of
    numbers. Of pairs, neighbouring categories may have one code."""
    bins = estimator.bins_[j]
    if bins.ordered:
        return None
    names = [*(str(value) for _, value in bins.values), "other"]
    if n == len(names):
        return names
    groups = [[name for name, pool in zip(names, estimator.pools_[j]) if pool == k] for k in range(n)]
    return [own[0] if len(own) == 1 else f"{own[0]} ... {own[-1]}" for own in groups]


def _name(axis, called, **style):
    """Write names of categories along an axis, as many as there is room for; None: numbers stay."""
    if called is not None:
        every = -(-len(called) // MOST_NAMES)
        axis.set_ticks(range(0, len(called), every), called[::every], parse_math=False, **style)
