"""What trees and forests share: parameters, rows to codes, structure, and answers from noisy leaves.

A tree is complete, as in `_core/trees.pyx`: a node that does not split sends all its rows to the left.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim._core import trees
from dpestim._docs import fill_docstring
from dpestim.central.base import CentralMechanism, checked_delta
from dpestim.central.model import CentralClassifier, CentralModel, CentralRegressor
from dpestim.inputs import class_array, label_codes
from dpestim.inputs.labels import target_numbers
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.noise import equal_shares
from dpestim.statistics.one_pass import range_of
from dpestim.statistics.plan import Noisy, Plan
from dpestim.statistics.summary import grids_of
from dpestim.tree._binning import NumberBins, category_bins, checked_bins, codes_of, edges_of, encoders_of, number_part

BINS = """\
    bounds : (low, high), default=None
        Public range of the columns of numbers, numbers or one for each such column. Values outside are clipped. None
        takes the smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon``
        infinite.
    categories : dict, default=None
        {column: its public categories}, the column by number or name; what is none of them is a category of its own.
        None: all columns are numbers.
    n_bins : int, default=32
        How many bins of equal width a column of numbers has, from 2 to 255.
    edges : dict, default=None
        {column: its public inner edges}, ascending, of columns of numbers that are to have other bins; from 1 to 254.
        Where values are skewed and nothing is known of them, let `dpestim.statistics.Quantile` find some.
"""
NEIGHBOURS = """\
    neighbours : {"substitution", "add_remove"}, default="substitution"
        Whom the guarantee protects: one record replaced (then the number of records is public), or one more or less,
        with half of the noise; then `max_depth` must be declared.
"""
CLASSES = """\
    classes : array-like, default=None
        Public list of at least two classes. None takes those in y, which leaks (`PrivacyLeakWarning`).
"""
TARGET = """\
    y_bounds : (low, high), default=None
        Public range of the target, which is clipped. None takes that of y, which leaks (`PrivacyLeakWarning`).
"""
#: Bits of the grid of a target.
_TARGET_BITS = 12


@dataclass(frozen=True)
class Domain:
    """What was declared, as something that compares: bins of each column, and classes or the grid of a target."""

    bins: tuple
    target: object


class BinnedModel(CentralModel):
    """Base of models on codes; with `ClassTarget` or `NumberTarget`, and `_check_own`."""

    _checked_as, _template = "tree", "rows"
    #: The relation that `neighbours` declares, or ValueError.
    _neighbours = property(CentralMechanism._relation)

    def __init_subclass__(cls, **kwargs):
        """Fill in the parameters that all share in the docstring."""
        super().__init_subclass__(**kwargs)
        fill_docstring(cls)

    def _check_own(self):
        """Raise ValueError for a parameter of its own that does not fit."""

    def _check(self):
        epsilon, delta = canonical_epsilon(self.epsilon), Fraction(0)
        declared = getattr(self, "delta", 0)
        if isinstance(declared, bool) or not isinstance(declared, Real) or declared != 0:
            delta = checked_delta(declared)
        if self.bounds is not None:
            grids_of(self.bounds)
        encoders_of(self.categories)
        edges_of(self.edges)
        checked_bins(self.n_bins)
        if checked_int("max_depth", self.max_depth, 1, 16, none=True) is None and not self._replaces:
            raise ValueError('max_depth must be declared for neighbours="add_remove": None follows from how many rows '
                             "there are, which is then secret")
        self._check_target()
        check_random_state(self.random_state)
        self._check_own()
        return epsilon, delta

    @property
    def _replaces(self):
        return self._neighbours is Neighbours.SUBSTITUTION

    def _read(self, X, y, reset):
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        data, n_rows = self._rows(X, reset)
        return (*data, *self._read_target(y, n_rows)), n_rows, self.n_features_in_

    def _parts(self, data, n_rows, domain, epsilon, delta):
        """Return all that is private of a fit: (law of choices, structure by choices, plan of its leaves).

        The second is a function of how to choose (of a node and the scores of its candidates, their place), the third
        one of a structure. `fit` draws from these, and the checks of `dpestim.testing` compare those of neighbours.
        """
        raise TypeError(f"{type(self).__name__} does not say what it draws")

    def _rows(self, X, reset):
        """Return ((numbers, columns of categories by place), how many rows)."""
        strict = self._is_strict()
        if self.categories is None:
            rows = self._checked_X(X, reset=reset, total=strict)
            return (rows, {}), len(rows)
        columns, n_rows = self._checked_columns(X, reset=reset)
        places = self._encoders(len(columns))
        numbers = [j for j in range(len(columns)) if j not in places]
        table = X if hasattr(X, "iloc") or hasattr(X, "get_column") else np.asarray(
            X, dtype=None if hasattr(X, "dtype") else object)
        rows = number_part(table, numbers, strict=strict) if numbers else np.empty((n_rows, 0))
        return (rows, {j: columns[j] for j in places}), n_rows

    def _encoders(self, n_columns):
        return self._of_columns("categories", encoders_of, n_columns)

    def _of_columns(self, name, read, n_columns):
        """Return {column by number: what `read` makes of what was declared of it}, or raise ValueError."""
        names = getattr(self, "feature_names_in_", None)
        if names is None and hasattr(self, "summary_"):
            names = self.summary_.names
        found = read(getattr(self, name), None if names is None else list(names))
        if any(not isinstance(place, Integral) or not 0 <= place < n_columns for place in found):
            raise ValueError(f"{name} must name columns of X, of which there are {n_columns}, by number or name")
        return found

    def _domain(self, n_columns, data=None):
        encoders, edges = self._encoders(n_columns), self._of_columns("edges", edges_of, n_columns)
        if encoders.keys() & edges.keys():
            raise ValueError("edges must name columns of numbers, and categories others")
        numbers = [j for j in range(n_columns) if j not in encoders]
        bounds = self.bounds if self.bounds is not None or data is None else range_of(data[0])
        grids = dict(zip(numbers, grids_of(bounds, len(numbers)) if numbers else ()))
        bins = tuple(category_bins(encoders[j]) if j in encoders else edges[j] if j in edges
                     else NumberBins.even(grids[j].low, grids[j].high, int(self.n_bins)) for j in range(n_columns))
        return Domain(bins, self._target_domain(data))

    def _codes(self, numbers, columns, bins):
        return codes_of(bins, numbers, columns, self._encoders(len(bins)))

    def apply(self, X):
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees); of private rows **not private**."""
        check_is_fitted(self)
        (numbers, columns), n_rows = self._rows(X, False)
        if self._is_strict():
            self._note_predictions(n_rows)
        codes = self._codes(numbers, columns, self.bins_)
        out = np.empty((len(self.features_), n_rows), np.int32)
        depth = int(self.depth_)
        for k in range(len(out)):
            trees.leaves(codes, *(part[k : k + 1] for part in self._structure()), depth, out[k])
        return out.T

    def decision_path(self, X):
        """Return which nodes of which tree rows go through; of private rows **not private**.

        Returns
        -------
        indicator : sparse array of 0 and 1, of shape (n_rows, n_nodes)
            The nodes of all trees; node k of a tree has the children 2 k + 1 and 2 k + 2.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            Where each tree's columns start.
        """
        leaves = self.apply(X)
        (n_rows, n_trees), depth = leaves.shape, int(self.depth_)
        starts = np.arange(n_trees + 1) * ((2 << depth) - 1)
        at = leaves[:, :, None] + (1 << depth)  # (one more than the place, so that halves are parents)
        nodes = (at >> np.arange(depth, -1, -1)) - 1 + starts[:-1, None]
        shape = n_rows, int(starts[-1])
        ends = np.arange(n_rows + 1) * (n_trees * (depth + 1))
        return sparse.csr_array((np.ones(nodes.size, np.int64), nodes.ravel(), ends), shape=shape), starts

    def _structure(self):
        return self.features_, self.shifts_, self.thresholds_

    def _averaged(self, X):
        """Return the mean of the leaves' values over trees."""
        where = self.apply(X)
        return sum(values[leaf] for values, leaf in zip(self.values_, where.T)) / len(self.values_)

    def export_text(self, tree=0):
        """Return the rules of one tree as text: only noisy values and public bins are in it.

        Parameters
        ----------
        tree : int, default=0
            Which one, of a forest.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"feature_{j}" for j in range(self.n_features_in_)])
        features, shifts, thresholds = (part[tree] for part in self._structure())
        lines = []

        def tell(node, indent):
            if node >= len(features):
                lines.append(f"{indent}value {np.round(self.values_[tree][node - len(features)], 3).tolist()}")
            elif thresholds[node] == 255:
                tell(2 * node + 1, indent)
            else:
                rule = self.bins_[features[node]].side(int(shifts[node]), int(thresholds[node]))
                lines.append(f"{indent}{names[features[node]]} {rule}:")
                tell(2 * node + 1, indent + "  ")
                lines.append(f"{indent}else:")
                tell(2 * node + 2, indent + "  ")

        tell(0, "")
        return "\n".join(lines)


class ClassTarget(CentralClassifier):
    """What trees of classes share; `values_` are probabilities."""

    _declared = ("bounds", "classes")
    _learned = ("values_", "features_")

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**."""
        check_is_fitted(self)
        return self.classes_[self._decide(X)]

    def predict_proba(self, X):
        """Return the probability of each class, of shape (n_rows, n_classes); of private rows **not private**."""
        return self._averaged(X)

    def predict_log_proba(self, X):
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.categories is not None
        tags.classifier_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _decide(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def _check_target(self):
        if self.classes is not None:
            class_array(self.classes)

    def _read_target(self, y, n_rows):
        codes, classes = label_codes(y, self.classes, n_rows, strict=self._is_strict())
        # (in strict mode what is no class counts as the first)
        return np.maximum(codes.astype(np.int32), 0), np.empty(0, np.int64), classes

    def _target_domain(self, data):
        classes = class_array(self.classes) if data is None else data[-1]
        return tuple((type(value).__name__, value) for value in classes)

    def _class_array(self, target):
        return class_array([value for _, value in target] if self.classes is None else self.classes)

    def _numbers(self, target):
        """Return (weights of a leaf's numbers, l1, l2_squared): a row is one count, a replaced one leaves another."""
        moved = 2 if self._replaces else 1
        return [1] * len(target), moved, moved

    def _answers(self, noisy, variance, target):
        """Return what is kept of noisy leaves: each shrinks to its parent by as much as noise explains."""
        values = shrunk(noisy, variance)
        values = np.maximum(values, 1e-6)
        return {"values_": values / values.sum(axis=2, keepdims=True), "classes_": self._class_array(target)}


class NumberTarget(CentralRegressor):
    """What trees of numbers share; `values_` are means."""

    _declared = ("bounds", "y_bounds")
    _learned = ("values_", "features_")

    def predict(self, X):
        """Return the number of each row; of private rows **not private**."""
        return self._averaged(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.categories is not None
        tags.regressor_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _check_target(self):
        if self.y_bounds is not None and len(self._grids(self.y_bounds)) != 1:
            raise ValueError("y_bounds must be a pair (low, high) of numbers")

    @staticmethod
    def _grids(bounds):
        try:
            return grids_of(bounds, bits=_TARGET_BITS)
        except ValueError as error:
            raise ValueError(str(error).replace("bounds", "y_bounds", 1)) from None

    def _read_target(self, y, n_rows):
        return np.zeros(1, np.int32), target_numbers(y, n_rows, strict=self._is_strict()), None

    def _target_domain(self, data):
        bounds = self.y_bounds if self.y_bounds is not None or data is None else range_of(data[3][:, None])
        return self._grids(bounds)[0]

    def _numbers(self, grid):
        weights, l1, l2_squared = equal_shares([1, grid.reach])
        if not self._replaces:
            return weights, l1, l2_squared
        # it leaves one leaf and enters another, or stays, and moves the sum by the span
        return weights, 2 * l1, max(2 * l2_squared, (weights[1] * grid.span) ** 2)

    def _answers(self, noisy, variance, grid):
        weights = np.array(self._numbers(grid)[0], float)
        numbers = noisy / weights
        # as two "classes": how much of a row is at the upper bound, and how much at the lower one
        high = (numbers[..., 1] / grid.reach + numbers[..., 0]) / 2
        values = shrunk(np.stack([numbers[..., 0] - high, high], axis=2), variance / weights[0] ** 2 / 2)
        share = np.clip(values[..., 1] / np.maximum(values.sum(axis=2), 1e-12), 0.0, 1.0)
        points = np.clip(grid.center + (2 * share - 1) * grid.reach, grid.first, grid.last)
        return {"values_": np.clip(points * grid.step, grid.low, grid.high)}


def leaf_plan(noise, totals, weights):
    """Return the plan of noisy leaves: exact integers times weights get noise, and have their shape."""
    exact = totals.ravel()
    if max(weights) > 1:  # (64 bits may not hold them)
        exact = (totals.astype(object) * np.array(weights, object)).ravel().tolist()
    return Plan((Noisy(noise, exact),), lambda found: np.asarray(found[0], np.float64).reshape(totals.shape))


def shrunk(noisy, variance):
    """Return shares of classes in leaves, of shape (trees, leaves, classes), from noisy counts.

    From the root down, each node's shares are those of its own noisy count and of so many rows of its parent as the
    noise of its count: a node that noise drowns says what its parent says. Noisy counts of a node are those of its
    leaves together.
    """
    levels = [noisy]
    while levels[0].shape[1] > 1:
        below = levels[0]
        levels.insert(0, below[:, 0::2] + below[:, 1::2])
    n_leaves = noisy.shape[1]
    # (trees start from what all of them say: many that shrink to something else would be wrong together)
    parent = prior_of(noisy, variance)[None, None]
    for depth, level in enumerate(levels):
        deviation = math.sqrt(variance * (n_leaves >> depth))
        rows = np.maximum(level.sum(axis=2, keepdims=True), 0.0)
        counts = np.clip(level, 0.0, None)
        counts *= rows / np.maximum(counts.sum(axis=2, keepdims=True), 1e-12)
        weight = 1.0 + 2 * deviation
        found = (counts + weight * parent) / (rows + weight)
        found /= found.sum(axis=2, keepdims=True)
        parent = np.repeat(found, 2, axis=1) if depth + 1 < len(levels) else found
    return parent


def prior_of(noisy, variance):
    """Return shares of classes among all rows of all trees, none less than what noise might hide."""
    counts = noisy.sum(axis=(0, 1))
    known = np.maximum(counts, 1.0 + math.sqrt(variance * noisy[..., 0].size))
    return known / known.sum()


def checked_int(name, value, least, most, none=False):
    """Return an int of this range, or None where that is allowed; else raise ValueError."""
    if value is None and none:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be {'None or ' if none else ''}an int from {least} to {most}")
    return int(value)
