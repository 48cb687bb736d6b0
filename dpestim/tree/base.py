"""What trees and forests share: parameters, rows to codes, structure, and answers from noisy leaves.

A tree is complete, as in `_core/trees.pyx`: a node that does not split sends all its rows to the left.
"""

import math
from dataclasses import replace
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim._core import trees
from dpestim.accounting import RenyiCurve
from dpestim.central.base import declared_delta
from dpestim.central.model import CentralClassifier, CentralModel, CentralRegressor
from dpestim.inputs import check_target, checked_classes, class_array, label_codes, target_pair
from dpestim.inputs.declared import says_missing
from dpestim.inputs.labels import target_numbers
from dpestim.inputs.numbers import DECLARE, OR_IMPUTE
from dpestim.models import range_of
from dpestim.privacy.exact import canonical_epsilon
from dpestim.records import record
from dpestim.rng import check_random_state
from dpestim.statistics.calibrated_noise import equal_shares
from dpestim.statistics.summary import grids_of
from dpestim.tree.columns import COLUMNS, MISSING, BinnedColumns
from dpestim.tree.importances import SplitImportances
from dpestim.tree.leaves import Leaves, prior_of, rows_of, shrunk

BINS = COLUMNS.replace("{n_bins}", "32").replace("{missing}", MISSING)
NEIGHBOURS = """\
    neighbours : {"substitution", "add_remove"}, default=None
        The neighbouring relation: one record is replaced (the number of records is then public), or one record is added
        or removed, with half of the noise; declare `max_depth` in this case. It is public that there are fewer than
        2^31 rows. None: the relation of the block (`dpestim.config_context`), else of the ledger, else "substitution".
"""
CLASSES = """\
    classes : array-like, dict or Domain, default=None
        Public list of at least two classes. None takes the classes in y, which leaks (`PrivacyLeakWarning`).
"""
TARGET = """\
    target_bounds : (low, high), dict or Domain, default=None
        Public range of the target, which is clipped. None takes that of y, which leaks (`PrivacyLeakWarning`).
"""
#: Bits of the grid of a target.
_TARGET_BITS = 12


@record
class BinnedSchema:
    """What was declared, as something that compares: bins of each column, and classes or the grid of a target."""

    bins: tuple
    target: object


class BinnedModel(SplitImportances, BinnedColumns, CentralModel):
    """Base of models on codes; with `ClassTarget` or `NumberTarget`, and `_check_own`."""

    _checked_as, _template = "tree", "rows"
    _codes_missing, _advice = True, DECLARE + OR_IMPUTE

    def _check_own(self):
        """Raise ValueError for a parameter of its own that does not fit."""

    def _check(self):
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(getattr(self, "delta", None))
        self._check_bins()
        if checked_int("max_depth", self.max_depth, 1, 16, none=True) is None and not self._replaces:
            raise ValueError('max_depth must be declared for neighbours="add_remove", because the default depends on '
                             "the number of rows, which is then secret")
        self._check_target()
        check_random_state(self.random_state)
        self._check_own()
        return epsilon, delta

    def _missing_in(self, n_columns, reset):
        if reset:
            return np.isin(np.arange(n_columns), list(self._may_be_missing))
        return np.array([own.ordered and own.missing for own in self.bins_])

    def _read(self, X, y, reset):
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None: pass the classes or numbers of "
                             "the rows as y")
        data, n_rows = self._rows(X, reset)
        return (*data, *self._read_target(y, n_rows)), n_rows, self.n_features_in_

    def _parts(self, data, n_rows, domain, epsilon, delta):
        """Return all that is private of a fit: (law of choices, structure by choices, plan of its leaves).

        The second is a function of how to choose (of a node and the scores of its candidates, their place), the third
        one of a structure. `fit` draws from these, and the checks of `dpestim.testing` compare those of neighbours.
        """
        raise TypeError(f"{type(self).__name__} does not say what it draws: implement `_parts`")

    def _after_edges(self, data, n_rows, domain, epsilon, plan, law):
        """Return a function of a random source: what `plan` makes of (a domain, epsilon), after its edges are found.

        `law` says of an epsilon which noise there will be, or fails: rows are read as codes once edges are known.
        """
        find, rest = self._edges_to_find(data[0], n_rows, len(domain.bins), epsilon)
        if find is None:
            return plan(domain, epsilon)
        known = getattr(law(rest), "curve", None)

        def draw(source):
            return plan(replace(domain, bins=find(source.part(1))), rest)(source.part(0))

        draw.curve = None if known is None else known + RenyiCurve.pure(epsilon - rest)
        return draw

    def _domain(self, n_columns, data=None):
        return BinnedSchema(self._bins(n_columns, None if data is None else data[0])[0], self._target_domain(data))

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
        checked_int("tree", tree, 0, len(self.values_) - 1)
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
    #: From so many leaves on numbers of all rows are released beside theirs. (Of classes, it was no better.)
    _many = math.inf

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
        tags.input_tags.string = self._takes_strings()
        tags.input_tags.allow_nan = says_missing(self.bounds, self.categories)
        tags.classifier_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _decide(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def _check_target(self):
        if self.classes is not None:
            checked_classes(self.classes)

    def _read_target(self, y, n_rows):
        codes, classes = label_codes(y, self.classes, n_rows, strict=self._is_strict())
        # (in strict mode what is no class is -1, and does not count)
        return codes.astype(np.int32), np.empty(0, np.int64), classes

    def _target_domain(self, data):
        classes = class_array(self.classes) if data is None else data[-1]
        return tuple((type(value).__name__, value) for value in classes)

    def _class_array(self, target):
        return class_array([value for _, value in target] if self.classes is None else self.classes)

    def _numbers(self, target):
        """Return (weights of a leaf's numbers, l1, l2_squared): a row is one count, a replaced one leaves another."""
        moved = 2 if self._replaces else 1
        return [1] * len(target), moved, moved

    def _answers(self, leaves, target):
        """Return what is kept of noisy leaves: each shrinks to its parent by as much as noise explains."""
        values, known = shrunk(leaves)
        values = np.maximum(values, 1e-6)
        return {"values_": values / values.sum(axis=2, keepdims=True), "classes_": self._class_array(target),
                "_known": known, "_leaf_rows": rows_of(leaves)}


class NumberTarget(CentralRegressor):
    """What trees of numbers share; `values_` are means."""

    _declared = ("bounds", "target_bounds")
    _learned = ("values_", "features_")
    #: From so many leaves on numbers of all rows are released beside theirs.
    _many = 64

    def predict(self, X):
        """Return the number of each row; of private rows **not private**."""
        return np.clip(self._averaged(X), *self.target_bounds_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self._takes_strings()
        tags.input_tags.allow_nan = says_missing(self.bounds, self.categories)
        tags.regressor_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _check_target(self):
        if self.target_bounds is not None:
            check_target(self.target_bounds)

    def _read_target(self, y, n_rows):
        return np.zeros(1, np.int32), target_numbers(y, n_rows, strict=self._is_strict()), None

    def _target_domain(self, data):
        bounds = range_of(data[3][:, None]) if self.target_bounds is None and data is not None else target_pair(
            self.target_bounds)
        return grids_of(bounds, bits=_TARGET_BITS)[0]

    def _numbers(self, grid):
        weights, l1, l2_squared = equal_shares([1, grid.reach])
        if not self._replaces:
            return weights, l1, l2_squared
        # it leaves one leaf and enters another, or stays, and moves the sum by the span
        return weights, 2 * l1, max(2 * l2_squared, (weights[1] * grid.span) ** 2)

    def _answers(self, leaves, grid):
        weights = np.array(self._numbers(grid)[0], float)

        def halves(numbers):
            # as two "classes": how much of a row is at the upper bound, and how much at the lower one
            numbers = numbers / weights
            high = (numbers[..., 1] / grid.reach + numbers[..., 0]) / 2
            return np.stack([numbers[..., 0] - high, high], axis=-1)

        unit = 2 * weights[0] ** 2
        leaves = Leaves(halves(leaves.noisy), leaves.variance / unit,
                        None if leaves.root is None else halves(leaves.root), leaves.root_variance / unit)

        def number(share):
            return (grid.center + (2 * share - 1) * grid.reach) * grid.step

        found = {"target_mean_": float(np.clip(number(prior_of(leaves)[1]), grid.low, grid.high)),
                 "target_bounds_": (float(grid.low), float(grid.high))}
        values, known = shrunk(leaves, shares=False)
        values = number(values[..., 1])
        # (what several trees say is put together before it is clipped: they are wrong on both sides)
        return {**found, "values_": np.clip(values, grid.low, grid.high) if len(values) == 1 else values,
                "_known": known, "_leaf_rows": rows_of(leaves)}


def checked_int(name, value, least, most, none=False):
    """Return an int of this range, or None where that is allowed; else raise ValueError."""
    if value is None and none:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be {'None or ' if none else ''}an int from {least} to {most}")
    return int(value)
