"""Shares of ranges, cumulative shares and quantiles from one report of each user, of a range or of the value."""

from itertools import pairwise
from numbers import Integral
from typing import NamedTuple

import numpy as np

from dpestim.inputs import columns_of
from dpestim.local.coded import CategoryFeature
from dpestim.local.domains.levels import METHODS, MOST_VALUES, Tree, TreeColumns, best_fanouts, best_method
from dpestim.local.domains.places import (
    below_edges,
    labels_between,
    number_of,
    places_of_range,
    shares_of,
    stacked,
    values_at,
    values_from,
    z_of,
)
from dpestim.local.domains.trees_of_reports import Observed
from dpestim.local.domains.waves import Wave
from dpestim.local.feature_client import FeatureClient
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

    **Utility.** Unbiased, but for "square_wave". The method and the fan-outs of the trees are those of the least
    variance of a range, on average over all ranges, by the exact variances of the laws. Consistent trees are the
    estimates of least squares; their variance of a range grows with the logarithm of the number of values.

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
    method : {"auto", "hierarchy", "haar", "hio", "square_wave"}, default="auto"
        "hierarchy" makes nodes the sums of their children by least squares. "haar" reports the sign of a Haar
        coefficient: which half of a node holds the value; it is best for an epsilon below about 0.5. "auto" takes the
        one of these two that has the least exact variance. "hio" has the same reports as "hierarchy", of a tree with
        fan-outs of its own, and takes for a range the fewest nodes that make it, as they were reported; it is there to
        compare with. "square_wave" reports the value itself by the square wave, and estimates the distribution by
        expectation maximisation: less error where the distribution is smooth, and a bias where it is not.
    branching : "auto" or int, default="auto"
        Children of a node of "hierarchy" and "hio", from 2 on; the root has as many as are needed. "auto" takes the
        fan-outs of the least variance, from epsilon and the numbers of values.
    {payment of rows}

    Attributes
    ----------
    frequencies_ : list of ndarray of shape (n_values,)
        Estimated shares of all values of each column; those of trees have no bias, and may be negative.
    methods_ : list of str
        How each column is reported: what "auto" has chosen.
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
    2019 (consistent trees, their fan-outs, and HaarHRR); M. Hay et al., "Boosting the accuracy of differentially
    private histograms through consistency", VLDB 2010; Z. Li et al., "Estimating numerical distributions under local
    differential privacy", SIGMOD 2020 (the square wave).

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

    def __init__(self, epsilon=1.0, *, categories=None, bounds=None, n_bins=256, method="auto", branching="auto",
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
            A named tuple of estimate and standard_error. The estimate of trees has no bias, and may be negative. The
            error is about the users who took part, and does not cover their being drawn from a population. That of
            "square_wave" is half the width of the interval of one standard deviation.
        """
        tree, low, high = self._asked(low, high, column)
        share, error = tree.range(low, high)
        return RangeShare(share, float(error(min(max(share, 0.0), 1.0))))

    def confidence_interval(self, low, high, level=0.95, column=0):
        """Return (low end, high end): an interval for the share of users from low to high, not clipped to [0, 1].

        "square_wave": the shares that a likelihood-ratio test does not reject, for any distribution; more than `level`
        of such intervals hold.

        Parameters
        ----------
        low, high : float, or categories
            As for `range`.
        level : float, default=0.95
            In (0, 1): what it covers, about.
        column : int or str, default=0
        """
        z = z_of(level)
        tree, low, high = self._asked(low, high, column)
        return tree.interval(low, high, z)

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
        q = shares_of(q)
        self._check_fitted()
        found = []
        for k, feature in enumerate(self._columns.row):
            below = below_edges(self._tree(k), feature)
            found.append(values_at(below, q * below[-1], feature))
        return stacked(found)

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
        q, z = shares_of(q), z_of(level)
        self._check_fitted()
        found = []
        for k, feature in enumerate(self._columns.row):
            tree, n = self._tree(k), getattr(feature, "n_bins", feature.n_values)
            both = [values_from(tree.places_of_share(share, n, z), feature) for share in np.atleast_1d(q)]
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
        return TreeColumns.of(features, [self._tree_over(feature, epsilon) for feature in features], epsilon, **more)

    def _tree_over(self, feature, epsilon):
        size, method, branching = feature.n_values, self.method, self.branching
        if not 2 <= size <= MOST_VALUES:
            raise ValueError(f"categories must have from 2 to {MOST_VALUES} values in each column")
        if method == "square_wave" and getattr(feature, "missing", False):
            raise ValueError(f"method must not be 'square_wave' for {feature.name}, which may be missing: its reports "
                             "tell of neighbouring values only. Take 'auto'")
        if isinstance(branching, str) and branching == "auto":
            method = best_method(epsilon, size) if method == "auto" else method
            return Tree(method, (size,) if method == "square_wave" else best_fanouts(epsilon, size, method))
        if isinstance(branching, bool) or not isinstance(branching, Integral) or not 2 <= branching <= MOST_VALUES:
            raise ValueError(f"branching must be 'auto' or an integer from 2 to {MOST_VALUES}")
        if method in ("haar", "square_wave"):
            raise ValueError(f"branching must be 'auto' for method='{method}', whose reports know no other fan-outs")
        return Tree("hierarchy" if method == "auto" else method, trees.fanouts_of(size, int(branching)))

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
        number = number_of(self, column)
        return number, self._columns.row[number]

    def _tree(self, place):
        """Return the `Observed` tree of a feature, made anew where counts changed."""
        known = self._known
        if known is None or known[0] is not self._counts:
            known = self._known = self._counts, {}
        if place not in known[1]:
            fanouts, numbers = self._columns.levels_of(place)
            told = [self._columns.told(k, self._counts, self._n_users) for k in numbers]
            laws, n_values = [self._columns.laws[k] for k in numbers], self._columns.row[place].n_values
            if self.methods_[place] == "square_wave":
                known[1][place] = Wave(laws[0], *told[0], n_values)
            else:
                known[1][place] = Observed(fanouts, laws, [c for c, _ in told], [m for _, m in told], self._n_users,
                                           n_values, self.methods_[place])
        return known[1][place]

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_ = columns.n_sampled
        self.fanouts_ = [columns.levels_of(k)[0] for k in range(columns.n_features)]
        self.methods_ = [columns.method_of(k, self.method) for k in range(columns.n_features)]

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("fanouts_", "methods_", "n_sampled_", "_known"):
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
            found = [self._tree(k).range(*places) for places in pairwise(cuts.tolist())]
            shares = np.array([share for share, _ in found])
            errors = [float(error(np.clip(share, 0, 1))) for share, error in found]
            intervals = [self._tree(k).interval(*places, z_of(level)) for places in pairwise(cuts.tolist())]
            parts.append(Part("share", (("feature", [name]), ("range", labels_between(feature, cuts))), shares[None],
                              np.array([errors]), np.array([intervals])))
        return parts

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "bounds": ([-3.0], [3.0]), "n_bins": 12},
                {"epsilon": 1.0, "categories": [["low", "middle", "high"], list("abcdefgh")], "method": "haar"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of the declared columns."""
        rng = np.random.default_rng(seed)
        if self.categories is None:
            return rng.normal(0.0, 1.0, (n_rows, 1)), None
        X = np.empty((n_rows, len(self.categories)), object)
        for j, own in enumerate(self.categories):
            X[:, j] = np.array(own, object)[rng.integers(0, len(own), n_rows)]
        return X, None
