"""Decision trees: splits by permute-and-flip, level by level, and noisy leaves (`tree.md`)."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Real

import numpy as np

from dpestim.central.selection.permute_and_flip import PermuteAndFlipLaw
from dpestim.exact_reals import BitStream
from dpestim.models import NO_TARGETS
from dpestim.passes import Blueprint, CountRows
from dpestim.privacy.exact import canonical_amount
from dpestim.rng import Stage
from dpestim.statistics.one_pass import OnePassModel
from dpestim.summaries import read_schema, refuse_too_many
from dpestim.tree.base import BINS, CLASSES, NEIGHBOURS, TARGET, BinnedModel, ClassTarget, NumberTarget
from dpestim.tree.leaves import leaf_noise, leaf_plan
from dpestim.tree.rounds import CountNodes, PartRows, Rows

#: Scores by impurity are in steps of 2^-4 rows.
_GINI = 4
#: Rows up to which information is counted; one of more is as one of so many.
_MOST_COUNTED = 1 << 16
#: Scores are found for so many candidates of a level at a time, lest memory grow with the number of nodes.
_AT_ONCE = 1 << 21
#: Parts of a source from here on, one for each level, choose in nodes without rows; other nodes have parts below.
_EMPTY = 1 << 20
_OWN = """\
    max_depth : int, default=None
        Levels of splits, from 1 to 16. None: from epsilon and the number of rows, which is public.
    split_fraction : float, default=0.5
        The part of epsilon that chooses splits, above 0 and below 1; the leaves have the rest.
"""
_MORE = """
    classes_ : ndarray of shape (n_classes,)
        Of a classifier.
    features_, shifts_, thresholds_ : ndarray of shape (1, 2^depth - 1)
        The splits: node k has the children 2 k + 1 and 2 k + 2.
    values_ : ndarray of shape (1, 2^depth, n_classes), or without the last axis for numbers
        The noisy predictions of the leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of columns, from noisy leaves, and biased by their noise; they add up to 1.
    depth_ : int
    bins_ : tuple
        The public bins of columns.
    {columns seen}
    """


class Tree(BinnedModel):
    """Base of both trees; a sub-class brings `_scores` and `_moved`."""

    _more_attributes = _MORE
    # (promised as by models of one pass, but a tree reads its rows at each level, so that nothing merges)
    _promised, _promise = OnePassModel._promised, OnePassModel._promise

    def __init__(self, epsilon=1.0, *, bounds=None, categories=None, n_bins=32, edges=None, edges_fraction=0,
                 max_depth=None, split_fraction=0.5, neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.edges = edges
        self.edges_fraction = edges_fraction
        self.max_depth = max_depth
        self.split_fraction = split_fraction
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Learn from rows; one release of epsilon.

        {fit of rows and targets}
        """
        epsilon, delta = self._check()
        trial = self._declared_trial(X, y)
        data, n_rows, n_columns = trial._read(X, y, True)
        draw = trial._planned(data, refuse_too_many(n_rows), trial._domain(n_columns, data), epsilon)
        return self._keep(self._promised(draw, epsilon, delta), n_rows, read_schema(trial), draw)

    # ---------------------------------------------------------------- inside

    def _check_own(self):
        share = self.split_fraction
        good = isinstance(share, Real) and not isinstance(share, bool)
        if not (good and 0 < canonical_amount(share, "split_fraction") < 1):
            raise ValueError("split_fraction must be a number between 0 and 1")

    def _depth(self, n_rows, target):
        """Return the declared depth, or one whose leaves have many times as many rows as noise has.

        Half as many are enough for a leaf for each class: with fewer leaves some classes would have none.
        """
        if self.max_depth is not None:
            return int(self.max_depth)
        known = max(n_rows * float(self.epsilon), 1.0)
        classes = math.ceil(math.log2(len(target))) if isinstance(target, tuple) else 0
        few, many = (math.floor(math.log2(known / rows)) for rows in (200, 100))
        return min(8, max(1, few, min(many, classes)))

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked once a level and for the leaves; charges before the first.

        {fit of parts}
        """
        epsilon, delta = self._check()
        if self._inferred() or self._fraction_of_edges():
            raise ValueError(f"{type(self).__name__} needs all rows at once to find bounds, classes or edges: declare "
                             "them, with edges_fraction=0")
        trial = self._trial(*example)
        trial._rows(example[0], True)
        domain = trial._domain(trial.n_features_in_)
        known = {**read_schema(trial), "bins_": domain.bins, "_may_be_missing": trial._may_be_missing}
        request = CountNodes(replace(Blueprint.of(trial), state=known), domain)
        n_rows = refuse_too_many(ask(CountRows(request.blueprint, (domain,))))
        rows = PartRows(ask, request, len(trial._numbers(domain.target)[0]))
        draw = trial._drawn(rows, n_rows, domain, epsilon)
        self._keep(self._promised(draw, epsilon, delta), n_rows, read_schema(trial), draw)

    def _read_part(self, rows, domain):
        """Return the rows of a part as `fit` reads them: with the columns of the others."""
        if len(rows) < 2:
            raise ValueError(NO_TARGETS)
        return self._coded(self._read(*rows, False)[0], domain)

    def _coded(self, data, domain):
        numbers, columns, labels, targets, _ = data
        amounts = targets if isinstance(domain.target, tuple) else domain.target.points(targets)
        return Rows(self._codes(numbers, columns, domain.bins), labels, amounts, domain.bins,
                    len(self._numbers(domain.target)[0]))

    def _planned(self, data, n_rows, domain, epsilon):
        """Return a function of a random source that returns what is learned, by name."""
        def grower(domain, epsilon):
            return self._drawn(self._coded(data, domain), n_rows, domain, epsilon)

        return self._after_edges(data, n_rows, domain, epsilon, grower, partial(grower, domain))

    def _drawn(self, rows, n_rows, domain, epsilon):
        law, grow, leaves = self._plans(rows, n_rows, domain, epsilon, Fraction(0))

        def draw(source):
            structure = grow(lambda node, scores: law.draw(scores, source.part(1 + node)),
                             lambda level, n: uniform_places(n, 1 << level, source.part(_EMPTY + level)))
            plan = leaves(structure)
            found = plan(source.part(0))
            return {"bins_": domain.bins, "depth_": (found.noisy.shape[1] - 1).bit_length(),
                    **dict(zip(("features_", "shifts_", "thresholds_"), structure)),
                    **self._answers(found, domain.target)}

        return draw

    def _parts(self, data, n_rows, domain, epsilon, delta):
        return self._plans(self._coded(data, domain), n_rows, domain, epsilon, delta)

    def _plans(self, rows, n_rows, domain, epsilon, delta):
        """Return what `_parts` does, of rows that are here or in parts."""
        depth = self._depth(n_rows, domain.target)
        for_splits = canonical_amount(self.split_fraction, "split_fraction") * epsilon
        weights, *moved = self._numbers(domain.target)
        spent = epsilon - for_splits, delta, *moved, 1, self._many
        leaf_noise(*spent, (1, 1 << depth, len(weights)))  # (may fail)
        # (how many rows there are is known where they are replaced)
        most = min(n_rows, _MOST_COUNTED) if self._replaces else _MOST_COUNTED
        return (self._law(for_splits, depth, self._moved(domain.target, most)),
                partial(self._grown, rows, domain, depth, most),
                lambda structure: leaf_plan(*spent, rows.leaves(structure), weights))

    def _law(self, epsilon, depth, moved):
        """Return by which law each node chooses; a row moves scores by as much as `moved`."""
        steps = 2 * depth if self._replaces else depth
        return PermuteAndFlipLaw(Fraction(epsilon, steps), moved, 0, True)

    def _grown(self, rows, domain, depth, most, choose, anywhere=None):
        """Return (features, shifts, thresholds): each node takes one of all candidates, as `choose` says.

        A node without rows has scores of 0, so that all candidates are as likely, and there may be far more such nodes
        than rows: `anywhere` returns a choice for each node of a level, of (the level, how many candidates there are),
        which nodes without rows take. None: they are asked as others are.
        """
        places, inner = candidates(domain.bins), (1 << depth) - 1
        chosen = [np.zeros((1, inner), kind) for kind in (np.int32, np.uint8, np.uint8)]
        n_candidates = len(places[0])
        rows.start()
        for level in range(depth):
            width = 1 << level
            counts = rows.counts()
            at = anywhere(level, n_candidates) if anywhere else np.zeros(width, np.int64)
            asked = np.flatnonzero(counts) if anywhere else np.arange(width)
            for now, tables in rows.tables(asked, counts, max(1, _AT_ONCE // n_candidates)):
                for node, found in zip(now.tolist(), self._scores_of(tables, domain.bins, most)):
                    at[node] = choose(width - 1 + node, found)
            for part, values in zip(chosen, places):
                part[0, width - 1 : 2 * width - 1] = values[at]
            rows.split(*(values[at] for values in places))
        return chosen

    def _scores_of(self, tables, bins, most):
        """Return scores of all candidates in the nodes of tables, a row for each of them."""
        scores = []
        for table, own in zip(tables, bins):
            left = own.left(table)
            all_ = table.sum(axis=1, keepdims=True)
            scores.append(self._scores(left, most) + self._scores(all_ - left, most))
        return np.concatenate(scores, axis=1)

    def decision_path(self, X):
        """Return which nodes rows go through, of shape (n_rows, n_nodes); of private rows **not private**.

        Returns
        -------
        indicator : sparse array of 0 and 1
            Node k has the children 2 k + 1 and 2 k + 2; the leaves are the last 2^depth.
        """
        return super().decision_path(X)[0]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns, and a target that depends on the first."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        return X, self._test_target(X)


def uniform_places(n, size, source):
    """Return so many places, each uniform on 0, ..., n - 1, exactly: of words that do not divide evenly, others."""
    words = source.reader().dense(Stage.NOISE, 0, 0, 0, size)
    most = (1 << 64) - (1 << 64) % n - 1  # (the last word that counts)
    at = (words % np.uint64(n)).astype(np.int64)
    again = np.flatnonzero(words > np.uint64(most))
    if len(again):  # (next to never)
        stream = BitStream(source.reader(), 1, 0)
        at[again] = [stream.below(n) for _ in again]
    return at


def candidates(bins):
    """Return (features, shifts, thresholds), an entry for each split of each column."""
    splits = [(j, *split) for j, own in enumerate(bins) for split in own.splits()]
    return tuple(np.array(part, kind) for part, kind in zip(zip(*splits), (np.int32, np.uint8, np.uint8)))


class DPDecisionTreeClassifier(ClassTarget, Tree):
    """Fit a decision tree by privately chosen splits and noisy counts of classes in the leaves.

    **Privacy.** Pure epsilon in the central model for the declared `neighbours`, data sets that differ in one row: each
    node chooses by permute-and-flip, the nodes of a level share one part of the budget (a replaced row is taken from
    one node and added to another, both of which are paid for), and a replaced row moves two counts of leaves by 1. All
    fitted attributes may be published. The caller of `fit` holds the rows and must be trusted. Predictions and `score`
    of private rows are **not private**.

    **Utility.** A node's split is, with probability 1 - b, within t ln(k / b) of the best score among k candidates: t
    is 2 depth / (split_fraction epsilon) rows for "max", and twice that for "gini". Counts of leaves have noise of a
    standard deviation of about 2 sqrt(2) / ((1 - split_fraction) epsilon). Half of both for one row more or less.
    Leaves shrink to their parents by as much as noise explains.

    **Complexity.** O(n d depth) time, O(n d) bytes and O(2^depth d n_bins n_classes) memory.

    {parameters}
    References
    ----------
    Friedman, Schuster (2010), "Data mining with differential privacy", KDD, section 4. McKenna, Sheldon (2020),
    "Permute-and-flip", NeurIPS, algorithm 1. The proof: ``tree.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.tree import DPDecisionTreeClassifier
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(20_000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> model = DPDecisionTreeClassifier(1.0, bounds=(0, 1), classes=[0, 1], max_depth=1, random_state=0).fit(X, y)
    >>> print(model.export_text().splitlines()[0])
    feature_0 < 0.5:
    >>> model.predict([[0.1, 0.5], [0.9, 0.5]])
    array([0, 1])
    """

    _more_parameters = BINS + CLASSES + NEIGHBOURS + """\
    criterion : {"gini", "entropy", "max"}, default="gini"
        What splits are chosen by: Gini impurity, information gain, or how many rows are in the commonest class of
        their side. A row moves information by the logarithm of how many rows there are, so that its noise is larger.
""" + _OWN.replace("default=0.5", "default=0.7") + "    "

    def __init__(self, epsilon=1.0, *, bounds=None, categories=None, n_bins=32, edges=None, edges_fraction=0,
                 classes=None, criterion="gini", max_depth=None, split_fraction=0.7, neighbours=None,
                 ledger=None, random_state=None):
        super().__init__(epsilon, bounds=bounds, categories=categories, n_bins=n_bins, edges=edges,
                         edges_fraction=edges_fraction, max_depth=max_depth, split_fraction=split_fraction,
                         neighbours=neighbours, ledger=ledger, random_state=random_state)
        self.classes = classes
        self.criterion = criterion

    def _check_own(self):
        super()._check_own()
        if not isinstance(self.criterion, str) or self.criterion not in ("gini", "entropy", "max"):
            raise ValueError('criterion must be "gini", "entropy" or "max"')

    def _scores(self, counts, most):
        if self.criterion == "entropy":
            return information(counts, most)
        return purity(counts) if self.criterion == "gini" else counts.max(axis=-1)

    def _moved(self, target, most):
        if self.criterion == "entropy":
            return max(1, int(surprises(most)[-1]))
        return 2 << _GINI if self.criterion == "gini" else 1

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "classes": [0, 1], "max_depth": 2},
                {"epsilon": 3.0, "bounds": ([-1, -1, -1], [1, 2, 3]), "classes": ["a", "b", "c"], "criterion": "max"},
                {"epsilon": 2.0, "bounds": (-2.0, 2.0), "classes": [0, 1], "max_depth": 1,
                 "neighbours": "add_remove", "edges_fraction": 0.25}]

    def _test_target(self, X):
        classes = np.asarray(self.classes)
        y = np.digitize(X[:, 0], np.linspace(-1, 1, len(classes) + 1)[1:-1])
        return (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]


class DPDecisionTreeRegressor(NumberTarget, Tree):
    """Fit a regression tree by privately chosen splits and noisy means in the leaves.

    **Privacy.** Pure epsilon in the central model for the declared `neighbours`, data sets that differ in one row: each
    node chooses by permute-and-flip on sums of squares of clipped targets, the nodes of a level share one part of the
    budget (a replaced row is taken from one node and added to another, both of which are paid for), and leaves get
    noise for counts and sums. All fitted attributes may be published. The caller of `fit` holds the rows and must be
    trusted. Predictions and `score` of private rows are **not private**.

    **Utility.** A sum of squares is, with probability 1 - b, within 2 depth w^2 ln(k / b) / (split_fraction epsilon)
    of the smallest among k candidates, for targets between bounds of width w. Leaves shrink to their parents by as much
    as noise explains.

    **Complexity.** O(n d depth) time, O(n d) bytes and O(2^depth d n_bins) memory.

    {parameters}
    References
    ----------
    Friedman, Schuster (2010), "Data mining with differential privacy", KDD, section 4, with the squared loss. McKenna,
    Sheldon (2020), "Permute-and-flip", NeurIPS, algorithm 1. The proof: ``tree.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.tree import DPDecisionTreeRegressor
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(20_000, 2))
    >>> model = DPDecisionTreeRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1), random_state=0).fit(X, X[:, 1])
    >>> bool(model.score(X, X[:, 1]) > 0.8)
    True
    """

    _more_parameters = BINS + TARGET + NEIGHBOURS + _OWN + "    "

    def __init__(self, epsilon=1.0, *, bounds=None, categories=None, n_bins=32, edges=None, edges_fraction=0,
                 target_bounds=None, max_depth=None, split_fraction=0.5, neighbours=None, ledger=None,
                 random_state=None):
        super().__init__(epsilon, bounds=bounds, categories=categories, n_bins=n_bins, edges=edges,
                         edges_fraction=edges_fraction, max_depth=max_depth, split_fraction=split_fraction,
                         neighbours=neighbours, ledger=ledger, random_state=random_state)
        self.target_bounds = target_bounds

    def _scores(self, sums, most):
        return squared(sums)

    def _moved(self, grid, most):
        return grid.span**2

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "target_bounds": (-1, 1), "max_depth": 2},
                {"epsilon": 3.0, "bounds": ([-1, -1, -1], [1, 2, 3]), "target_bounds": (-2, 1)},
                {"epsilon": 2.0, "bounds": (-2.0, 2.0), "target_bounds": (-1, 1), "max_depth": 1,
                 "neighbours": "add_remove", "edges_fraction": 0.25}]

    def _test_target(self, X):
        return X[:, 0]


def purity(counts):
    """Return 2^4 times the sum of squares of counts (last axis) over their sum, rounded down: exact, in integers."""
    some = np.maximum(np.einsum("...c->...", counts), 1)  # (much faster than `sum` where classes are few)
    whole, rest = np.divmod(np.einsum("...c,...c->...", counts, counts), some)
    return (whole << _GINI) + (rest << _GINI) // some


@lru_cache(maxsize=8)
def surprises(most):
    """Return by how many 2^-4 bits m log2(m) rises at m = 0 to most - 1, rounded: integers that never fall."""
    m = np.arange(1, most + 1)
    rises = np.diff(np.concatenate([[0.0], m * np.log2(m)]))
    return np.maximum.accumulate(np.concatenate([[0], np.rint(np.ldexp(rises, _GINI)).astype(np.int64)[1:]]))


def information(counts, most):
    """Return 2^4 times the negated entropy of counts (last axis) times their sum, about: exact, in integers."""
    rises = surprises(max(most, 1))
    sums = np.concatenate([[0], np.cumsum(rises)])

    def total(m):
        return sums[np.minimum(m, len(rises))] + np.maximum(m - len(rises), 0) * rises[-1]

    return total(counts).sum(axis=-1) - total(counts.sum(axis=-1))


def squared(sums):
    """Return the square of the sum over the count (last axis: count, sum), rounded down: exact, in integers.

    With the sum as whole * count + rest, so that nothing is above the square of how many rows there are.
    """
    some, total = np.maximum(sums[..., 0], 1), sums[..., 1]
    whole, rest = np.divmod(total, some)
    return whole * (total + rest) + rest * rest // some
