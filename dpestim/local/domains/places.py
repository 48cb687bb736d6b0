"""Places among the values of a feature, from 0 to their number, and what users call them."""

import math
from itertools import pairwise
from numbers import Real

import numpy as np
from scipy.special import ndtri

from dpestim.local.coded import CategoryFeature


def number_of(estimator, column):
    """Return the number of a column of a fitted estimator, by its number or its name."""
    estimator._check_fitted()
    n, names = estimator.n_features_in_, list(getattr(estimator, "feature_names_in_", []))
    number = names.index(column) if isinstance(column, str) and column in names else column
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not -n <= number < n:
        raise ValueError(f"column must be the name of a column or a number below {n}")
    return number % n


def places_of_range(feature, low, high):
    """Return where a range lies among the values of a feature, from 0 to their number."""
    if isinstance(feature, CategoryFeature):
        places, why = feature.read(np.array([low, high], object), 1)
        if why:
            raise ValueError("low and high must be categories of the column")
        first, last = int(places[0]), int(places[1]) + 1
        if first >= last:
            raise ValueError("low must not come after high in the order of the categories")
        return first, last
    places = []
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, Real) or math.isnan(end):
            raise ValueError("low and high must be numbers")
        places.append((min(max(float(end), feature.low), feature.high) - feature.low) * feature.n_bins / (
            feature.high - feature.low))
    if low > high:
        raise ValueError("low must be at most high")
    return tuple(places)


def labels_between(feature, cuts):
    """Return what ranges between places are called."""
    if isinstance(feature, CategoryFeature):
        values = feature.encoder.plain_categories()
        return [f"{values[a]}" if b == a + 1 else f"{values[a]} to {values[b - 1]}" for a, b in pairwise(cuts.tolist())]
    edges = feature.low + cuts * ((feature.high - feature.low) / feature.n_bins)
    return [f"{a:g} to {b:g}" for a, b in pairwise(edges.tolist())]


def below_edges(tree, feature):
    """Return the cumulative shares of values, without those that are missing."""
    return tree.cumulative[: getattr(feature, "n_bins", feature.n_values) + 1]


def values_from(places, feature):
    """Return the values at the two ends of an interval of places."""
    low, high = places
    if isinstance(feature, CategoryFeature):
        ends_ = max(math.ceil(low) - 1, 0), min(math.floor(high), feature.n_values - 1)
        return np.asarray(feature.encoder.categories)[list(ends_)]
    return feature.low + np.array(places) * ((feature.high - feature.low) / feature.n_bins)


def values_at(below, q, feature):
    """Return the values at which cumulative shares are reached: between edges, or categories."""
    places = np.interp(q, below, np.arange(float(len(below))))
    if isinstance(feature, CategoryFeature):
        places = np.minimum(np.ceil(places).astype(int) - 1, feature.n_values - 1)
        return np.asarray(feature.encoder.categories)[np.maximum(places, 0)]
    return feature.low + places * (feature.high - feature.low) / feature.n_bins


def stacked(found):
    """Return one array with the answers of all features side by side."""
    kinds = {np.asarray(own).dtype.kind for own in found}
    return np.stack([np.asarray(own, None if len(kinds) == 1 else object) for own in found], axis=-1)


def z_of(level):
    """Return how many standard deviations an interval of this level has on either side."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError("level must be a number strictly between 0 and 1")
    return float(ndtri(0.5 + level / 2))


def shares_of(q):
    """Return checked shares as an array."""
    found = np.asarray(q, np.float64)
    if found.ndim > 1 or not ((found >= 0) & (found <= 1)).all():
        raise ValueError("q must be a number or a list of numbers in [0, 1]")
    return found
