"""Shares of ranges, cumulative shares and quantiles from one report of each user: a node of a tree of ranges."""

import math
from itertools import pairwise
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpestim.inputs import columns_of
from dpestim.local.coded import CategoryFeature
from dpestim.local.domains.levels import METHODS, MOST_VALUES, TreeColumns, best_fanouts
from dpestim.local.domains.trees_of_reports import Observed
from dpestim.local.feature_client import FeatureClient
from dpestim.local.interval_ends import ends
from dpestim.local.server import Server
from dpestim.postprocessing import trees
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, labels_of

#: Ranges of about equal length that a summary has, at most.
SHOWN = 16


class RangeShare(NamedTuple):
    """The share of users in a range, and its standard error."""

    estimate: float
    standard_error: float


class RangeEstimator(Server, FeatureClient):
    """Estimate shares of any ranges, cumulative shares and quantiles of ordered values by trees of ranges.

    A tree stands over the values of each column: the root is all values, its children are ranges of equal length, and
    so on down to single values. Each user draws a level of one column without looking at the values, and reports the
    node of that level. A range is then the sum of few nodes instead of many values. Take this estimator for ranges,
    for quantiles of numbers whose distribution is not smooth, and for large ordered domains;
    `DistributionEstimator` has a smaller error where a distribution is smooth.

    **Privacy.** epsilon-local differential privacy for a row, exact; neighbours: any two rows of one user; nobody but
    the user's device is trusted (proof in ``ranges.md``).

    **Utility.** Unbiased. The fan-outs of the trees are those of the least variance of a range, on average over all
    ranges, by the exact variances of the laws. Consistent trees are the estimates of least squares; their variance of a
    range grows with the logarithm of the number of values.

    **Complexity.** O(n + values) time and O(values) memory for a column; a user sends one code and the number of a
    level.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    categories : list of (array-like or None), dict or Domain, default=None
        The public categories of each column, in their natural order, with None for a column of numbers.
        None: all columns are numbers, if `bounds` are declared; if not, categories and bounds are learned from the
        data, which leaks (`PrivacyLeakWarning`).
    bounds : (low, high), dict or Domain, default=None
        The public range of each column of numbers: a pair of numbers, or of arrays with one for each such column; a
        dict goes from the names of such columns. Values outside are clipped. Where a `Domain` says ``missing=True``, a
        missing number is a value of its own, behind the bins; shares are those of all users, and quantiles are of the
        values that are there.
    n_bins : int, default=256
        Bins of equal width that a column of numbers is cut into, from 2 to 1048576. Integers from 0 to 99 are values
        of their own with ``bounds=(0, 100), n_bins=100``.
    method : {"hierarchy", "hio"}, default="hierarchy"
        "hierarchy" makes nodes the sums of their children by least squares. "hio" has the same reports, of a tree with
        fan-outs of its own, and takes for a range the fewest nodes that make it, as they were reported; it is there to
        compare with.
    branching : "auto" or int, default="auto"
        Children of a node, from 2 on; the root has as many as are needed. "auto" takes the fan-outs of the least
        variance, from epsilon and the numbers of values.
    {payment of rows}

    Attributes
    ----------
    frequencies_ : list of ndarray of shape (n_values,)
        Estimated shares of all values of each column, without bias; they may be negative.
    fanouts_ : list of tuple of int
        How many children the root of each tree has, and each of its children, and so on.
    n_users_ : int
        Reports counted so far.
    n_sampled_ : int
        Levels that a user reports, of all columns: 1.
    randomizers_ : list of Randomizer
        The frozen law of each level of each column.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    T. Wang et al., "Answering multi-dimensional analytical queries under local differential privacy", SIGMOD 2019
    (HIO); G. Cormode, T. Kulkarni, D. Srivastava, "Answering range queries under local differential privacy", VLDB
    2019 (consistent trees and their fan-outs); M. Hay et al., "Boosting the accuracy of differentially private
    histograms through consistency", VLDB 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import RangeEstimator
    >>> ages = np.random.default_rng(0).gamma(9.0, 4.5, (100_000, 1))
    >>> est = RangeEstimator(2.0, bounds=(0, 128), n_bins=128, random_state=0).fit(ages)
    >>> share, error = est.range(18, 65)
    >>> bool(abs(share - np.mean((ages >= 18) & (ages < 65))) < 4 * error)
    True
    >>> bool(abs(est.quantile(0.5)[0] - np.median(ages)) < 2)
    True
    """

    _checked_as = "views"
    _domain, _same_domain = "categories and bounds", "the same categories, bounds and bins"
    _most_bins = MOST_VALUES
    _known = None

    def __init__(self, epsilon=1.0, *, categories=None, bounds=None, n_bins=256, method="hierarchy", branching="auto",
                 ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.categories = categories
        self.bounds = bounds
        self.n_bins = n_bins
        self.method = method
        self.branching = branching
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- answers

    def range(self, low, high, column=0):
        """Return the share of users whose value lies from low to high, and its standard error.

        Parameters
        ----------
        low, high : float, or categories
            Of numbers, those from low up to high; bins that lie partly between count in proportion. Of categories, the
            first and the last that count.
        column : int or str, default=0

        Returns
        -------
        RangeShare
            A named tuple of estimate and standard_error. The estimate has no bias, and may be negative. The error is
            about the users who took part, and does not cover their being drawn from a population.
        """
        tree, low, high = self._asked(low, high, column)
        share, error = tree.range(low, high)
        return RangeShare(share, float(error(min(max(share, 0.0), 1.0))))

    def confidence_interval(self, low, high, level=0.95, column=0):
        """Return (low end, high end): an interval for the share of users from low to high, not clipped to [0, 1].

        Parameters
        ----------
        low, high : float, or categories
            As for `range`.
        level : float, default=0.95
            In (0, 1): what it covers, about.
        column : int or str, default=0
        """
        z = _z(level)
        tree, low, high = self._asked(low, high, column)
        share, error = tree.range(low, high)
        return tuple(map(float, ends(np.float64(share), z, error)))

    def cdf(self, value, column=0):
        """Return the share of users below a number, or up to a category, and its standard error, as `range` does."""
        number, feature = self._feature(column)
        first = feature.low if not isinstance(feature, CategoryFeature) else feature.encoder.categories[0]
        return self.range(first, value, number)

    def quantile(self, q):
        """Return the values below which shares q of the users lie, by the estimated cumulative shares, made to rise.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            In [0, 1].

        Returns
        -------
        list, or ndarray of shape (n_features,) or (n_q, n_features)
            Numbers, between edges as if values were spread evenly there, or categories.
        """
        q = _shares(q)
        self._check_fitted()
        found = []
        for k, feature in enumerate(self._columns.row):
            below = _below(self._tree(k), feature)
            found.append(_values_at(below, q * below[-1], feature))
        return _stacked(found)

    def quantile_interval(self, q, level=0.95):
        """Return intervals for quantiles: values at the ends of the intervals of cumulative shares.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            In [0, 1].
        level : float, default=0.95
            In (0, 1): what each of them covers, about, or more.

        Returns
        -------
        ndarray of shape (n_features, 2) or (n_q, n_features, 2)
        """
        q, z = _shares(q), _z(level)
        self._check_fitted()
        found = []
        for k, feature in enumerate(self._columns.row):
            tree, n = self._tree(k), getattr(feature, "n_bins", feature.n_values)
            both = [_values_from(tree.places_of_share(share, n, z), feature) for share in np.atleast_1d(q)]
            found.append(np.array(both) if q.ndim else both[0])
        return np.stack(found, axis=-2)

    @property
    def frequencies_(self):
        """Estimated shares of all values, one array for each column."""
        self._check_fitted()
        return [self._tree(k).leaves.copy() for k in range(self._columns.n_features)]

    def release(self):
        """Return `frequencies_`."""
        return self.frequencies_

    # ---------------------------------------------------------------- the domain

    def _of_features(self, features, names, **more):
        epsilon = canonical_epsilon(self.epsilon)
        return TreeColumns.of(features, [self._fanouts(feature.n_values, epsilon) for feature in features], epsilon,
                              **more)

    def _fanouts(self, size, epsilon):
        if not 2 <= size <= MOST_VALUES:
            raise ValueError(f"categories must have from 2 to {MOST_VALUES} values in each column")
        branching = self.branching
        if isinstance(branching, str) and branching == "auto":
            return best_fanouts(epsilon, size, self.method)
        if isinstance(branching, bool) or not isinstance(branching, Integral) or not 2 <= branching <= MOST_VALUES:
            raise ValueError(f"branching must be 'auto' or an integer from 2 to {MOST_VALUES}")
        return trees.fanouts_of(size, int(branching))

    def _like(self, columns):
        return self._of_features(columns.row, columns.names, inferred=columns.inferred, keys=columns.keys)

    def _parts(self, X, columns, strict):
        return columns_of(X)

    def _client(self, restart=False):
        return self

    def _check_call_parameters(self):
        super()._check_call_parameters()
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}")

    def _columns_now(self, n_columns=None):
        self._check_call_parameters()
        return super()._columns_now(n_columns)

    # ---------------------------------------------------------------- inside

    def _asked(self, low, high, column):
        self._check_fitted()
        number, feature = self._feature(column)
        low, high = places_of_range(feature, low, high)
        return self._tree(number), low, high

    def _feature(self, column):
        self._check_fitted()
        row = self._columns.row
        names = [f"column {name!r}" for name in getattr(self, "feature_names_in_", [])]
        number = names.index(f"column {column!r}") if isinstance(column, str) and f"column {column!r}" in names else (
            column)
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not -len(row) <= number < len(row):
            raise ValueError(f"column must be the name of a column or a number below {len(row)}")
        return number % len(row), row[number]

    def _tree(self, place):
        """Return the `Observed` tree of a feature, made anew where counts changed."""
        known = self._known
        if known is None or known[0] is not self._counts:
            known = self._known = self._counts, {}
        if place not in known[1]:
            fanouts, numbers = self._columns.levels_of(place)
            told = [self._columns.told(k, self._counts, self._n_users) for k in numbers]
            known[1][place] = Observed(fanouts, [self._columns.laws[k] for k in numbers], [c for c, _ in told],
                                       [m for _, m in told], self._n_users, self._columns.row[place].n_values,
                                       self.method != "hio")
        return known[1][place]

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_ = columns.n_sampled
        self.fanouts_ = [columns.levels_of(k)[0] for k in range(columns.n_features)]

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("fanouts_", "n_sampled_", "_known"):
            vars(self).pop(name, None)

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_known", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _result_parts(self, level):
        parts = []
        names = labels_of(self, "feature", self.n_features_in_)
        for name, k, feature in zip(names, range(self.n_features_in_), self._columns.row):
            n = getattr(feature, "n_bins", feature.n_values)
            cuts = np.unique(np.linspace(0, n, SHOWN + 1).round().astype(int))
            found = [self._tree(k).range(*ends_) for ends_ in pairwise(cuts.tolist())]
            shares = np.array([share for share, _ in found])
            errors = [float(error(np.clip(share, 0, 1))) for share, error in found]
            z = _z(level)
            intervals = [ends(np.float64(share), z, error) for share, error in found]
            parts.append(Part("share", (("feature", [name]), ("range", _labels(feature, cuts))), shares[None],
                              np.array([errors]), np.array([intervals])))
        return parts

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "bounds": ([-3.0], [3.0]), "n_bins": 12},
                {"epsilon": 1.0, "categories": [["low", "middle", "high"], list("abcdefgh")], "method": "hio",
                 "branching": 3}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of the declared columns."""
        rng = np.random.default_rng(seed)
        if self.categories is None:
            return rng.normal(0.0, 1.0, (n_rows, 1)), None
        X = np.empty((n_rows, len(self.categories)), object)
        for j, own in enumerate(self.categories):
            X[:, j] = np.array(own, object)[rng.integers(0, len(own), n_rows)]
        return X, None


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


def _labels(feature, cuts):
    """Return what ranges between places are called."""
    if isinstance(feature, CategoryFeature):
        values = feature.encoder.plain_categories()
        return [f"{values[a]}" if b == a + 1 else f"{values[a]} to {values[b - 1]}" for a, b in pairwise(cuts.tolist())]
    edges = feature.low + cuts * ((feature.high - feature.low) / feature.n_bins)
    return [f"{a:g} to {b:g}" for a, b in pairwise(edges.tolist())]


def _below(tree, feature):
    """Return the cumulative shares of values, without those that are missing."""
    return tree.cumulative[: getattr(feature, "n_bins", feature.n_values) + 1]


def _values_from(places, feature):
    """Return the values at the two ends of an interval of places."""
    low, high = places
    if isinstance(feature, CategoryFeature):
        ends_ = max(math.ceil(low) - 1, 0), min(math.floor(high), feature.n_values - 1)
        return np.asarray(feature.encoder.categories)[list(ends_)]
    return feature.low + np.array(places) * ((feature.high - feature.low) / feature.n_bins)


def _values_at(below, q, feature):
    places = np.interp(q, below, np.arange(float(len(below))))
    if isinstance(feature, CategoryFeature):
        places = np.minimum(np.ceil(places).astype(int) - 1, feature.n_values - 1)
        return np.asarray(feature.encoder.categories)[np.maximum(places, 0)]
    return feature.low + places * (feature.high - feature.low) / feature.n_bins


def _stacked(found):
    kinds = {np.asarray(own).dtype.kind for own in found}
    return np.stack([np.asarray(own, None if len(kinds) == 1 else object) for own in found], axis=-1)


def _z(level):
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError("level must be a number strictly between 0 and 1")
    return float(ndtri(0.5 + level / 2))


def _shares(q):
    found = np.asarray(q, np.float64)
    if found.ndim > 1 or not ((found >= 0) & (found <= 1)).all():
        raise ValueError("q must be a number or a list of numbers in [0, 1]")
    return found
