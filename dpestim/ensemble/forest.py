"""Random forests: trees whose structure is public, and noisy leaves (`forest.md`)."""

import math
from fractions import Fraction
from numbers import Integral

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from dpestim import parallel
from dpestim._core import trees
from dpestim.ensemble.splits import assigned, random_splits
from dpestim.ensemble.votes import alike, balanced, evened, halved, levels, together
from dpestim.models import NO_TARGETS
from dpestim.parallel import check_n_jobs
from dpestim.passes import Blueprint, CountRows, Summarize
from dpestim.statistics.one_pass import OnePassModel
from dpestim.summaries import refuse_too_many
from dpestim.tree.base import (
    BINS,
    CLASSES,
    NEIGHBOURS,
    TARGET,
    BinnedModel,
    ClassTarget,
    NumberTarget,
    checked_int,
)
from dpestim.tree.leaves import leaf_noise, leaf_plan, prior_of

_OWN = """\
    n_estimators : int, default=None
        How many trees, from 1 to 1,000. None: 3 to 30, or 30 or 60 where a delta is declared, whose noise averages out
        over trees, from epsilon, delta and the number of rows, which is public.
    max_depth : int, default=None
        Levels of splits, from 1 to 16. None: from epsilon, delta and the number of rows, which is public.
    row_allocation : {"shared", "disjoint"}, default="shared"
        "shared": each row is in all trees, which share the budget. "disjoint": each row is in one tree, by its
        position; every tree has the whole budget, and the fit takes a fraction of the time.
    split_seed : int, default=0
        Public seed of the splits, which do not depend on the rows. Merged forests must have the same seed.
"""
_MORE = """
    classes_ : ndarray of shape (n_classes,)
        Of a classifier.
    features_, shifts_, thresholds_ : ndarray of shape (n_estimators, 2^depth - 1)
        The public splits: node k has the children 2 k + 1 and 2 k + 2.
    values_ : ndarray of shape (n_estimators, 2^depth, n_classes), or without the last axis for numbers
        The noisy predictions of the leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of columns, from noisy leaves, and biased by their noise; they add up to 1.
    depth_ : int
    bins_ : tuple
        The public bins of columns.
    {columns seen}
    """
_DELTA = """\
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1. None or 0: none. Above 0 noise is Gaussian if that
        is less: for `row_allocation="shared"` it nearly always is.
"""
_LAST = """\
    n_jobs : int, default=None
        Threads, as in scikit-learn.
    """


class Forest(BinnedModel, OnePassModel):
    """Base of both forests."""

    _more_attributes = _MORE

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, categories=None, n_bins=32, edges=None,
                 edges_fraction=0, n_estimators=None, max_depth=None, row_allocation="shared", split_seed=0,
                 neighbours=None, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.edges = edges
        self.edges_fraction = edges_fraction
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.row_allocation = row_allocation
        self.split_seed = split_seed
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_own(self):
        if checked_int("n_estimators", self.n_estimators, 1, 1000, none=True) is None and not self._replaces:
            raise ValueError('n_estimators must be declared for neighbours="add_remove", because the default depends '
                             "on the number of rows, which is then secret. Take 30 with a delta, and 10 without")
        if not isinstance(self.row_allocation, str) or self.row_allocation not in ("disjoint", "shared"):
            raise ValueError('row_allocation must be "disjoint" or "shared"')
        if self.row_allocation == "disjoint" and not self._replaces:
            raise ValueError('row_allocation="disjoint" needs neighbours="substitution", because the position of a row '
                             "determines its tree, and an added row would move other rows: take "
                             'row_allocation="shared"')
        if isinstance(self.split_seed, bool) or not isinstance(self.split_seed, Integral) or self.split_seed < 0:
            raise ValueError("split_seed must be an int of at least 0")
        check_n_jobs(self.n_jobs)

    def _settings(self):
        # (the depth must be known before the rows are, where summaries are to add up)
        return self.n_estimators, self.max_depth, self.row_allocation, int(self.split_seed), self._relation()

    def _check_mergeable(self):
        self._check_summed()
        if self.max_depth is None or self.n_estimators is None:
            raise ValueError("max_depth and n_estimators must be declared to summarise rows, because the defaults "
                             "depend on the number of all rows")

    def _check_summed(self):
        """Raise ValueError for what no sums of parts of the rows could tell."""
        super()._check_mergeable()
        if self._fraction_of_edges():
            raise ValueError("edges_fraction must be 0 to summarise rows, because private edges need all rows at once: "
                             "use fit, or declare edges")

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        def plan(domain, rest):
            return self._released(n_rows, self._sums(data, domain), domain, rest, delta)

        domain = self._domain(n_columns, data)
        return self._after_edges(data, n_rows, domain, epsilon, plan,
                                 lambda rest: self._noise(*self._shape(n_rows), domain, rest, delta).law)

    def summarize(self, X, y=None):
        """Add rows to the exact, secret summary; nothing is released or charged.

        Parameters
        ----------
        X, y : as for `fit`
            With ``row_allocation="disjoint"`` at least `n_estimators` rows: of fewer, some trees would never get any.

        Returns
        -------
        self
            With `summary_`, as secret as the rows.
        """
        self._check_mergeable()
        if self.row_allocation == "disjoint" and np.shape(X)[:1] < (self.n_estimators,):
            raise ValueError(f'row_allocation="disjoint" needs at least n_estimators={self.n_estimators} rows in each '
                             f"summary, got {np.shape(X)[0]}")
        return super().summarize(X, y)

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), which are counted first where trees or levels are not declared.

        ``row_allocation="disjoint"`` is refused: a changed row may move to another part.

        {fit of parts}
        """
        if self.row_allocation == "disjoint":
            raise ValueError('row_allocation="disjoint" needs all rows at once, because the parts of an engine may '
                             "follow from values, and the tree of a row follows from its place: declare "
                             'row_allocation="shared"')
        self._check_summed()
        trial = self._trial()
        if self.max_depth is None or self.n_estimators is None:
            n_rows = refuse_too_many(ask(CountRows(Blueprint.of(self))))
            trial.n_estimators, trial.max_depth = self._shape(n_rows)
        self._fit_summary(ask(Summarize(Blueprint.of(trial))))

    def _read_part(self, rows):
        """Return the rows of a part as `summarize` reads them."""
        if len(rows) < 2:
            raise ValueError(NO_TARGETS)
        return self._trial(*rows)._read(*rows, True)

    def _shape(self, n_rows):
        """Return (how many trees, levels): what is declared, or what suits so many rows times epsilon.

        With normal noise trees that share rows cost nothing: the noise of each grows with the root of their number, and
        that of their mean does not. With Laplace noise it does. Figures: ``forest.md``.
        """
        n_trees, depth = self.n_estimators, self.max_depth
        if n_trees is None or depth is None:
            known, normal = self._rows_of_noise(n_rows)
            n_trees = self._default_trees(known, normal) if n_trees is None else n_trees
            depth = self._default_depth(known, normal, n_trees) if depth is None else depth
        return int(n_trees), int(depth)

    def _rows_of_noise(self, n_rows):
        """Return (rows times epsilon, or what noise leaves of them, whether that of many trees averages out)."""
        epsilon, delta = self._check()
        if delta and self.row_allocation == "shared":
            normal, pure = (leaf_noise(epsilon, d, 2, 2, 30, math.inf, (1, 1, 1)).variance for d in (delta, Fraction()))
            if normal < pure / 3:  # (29: for an epsilon of 1 and a delta of 1e-5)
                return n_rows * 29 / math.sqrt(normal), True
        return n_rows * float(epsilon), False

    def _default_trees(self, known, normal):
        if normal:
            return 30 if known < 1000 else 60
        return 3 if known < 200 else 6 if known < 1000 else 10 if known < 3000 else 30

    def _default_depth(self, known, normal, n_trees):
        return max(5, levels(known / 60)) if normal else max(2, levels(known / n_trees / 4))

    def _sums(self, data, domain):
        numbers, columns, labels, targets, _ = data
        codes = self._codes(numbers, columns, domain.bins)
        n_rows = codes.shape[1]
        n_trees, depth = self._shape(n_rows)
        structure = random_splits(domain.bins, n_trees, depth, int(self.split_seed))
        amounts = targets if isinstance(domain.target, tuple) else domain.target.points(targets)
        totals = np.zeros((n_trees, 1 << depth, len(self._numbers(domain.target)[0])), np.int64)
        if self.row_allocation == "disjoint":
            places = assigned(n_rows, n_trees, int(self.split_seed))
            trees.add_leaves(codes, *structure, depth, places, labels, amounts, totals)
            return [totals]

        def task(first, last):
            trees.add_leaves(codes, *(part[first:last] for part in structure), depth, np.zeros(0, np.int32), labels,
                             amounts, totals[first:last])

        parallel.run(task, n_trees, self.n_jobs)
        return [totals]

    def _together(self, X, told, common, more=0.0):
        """Return what leaves of all trees tell rows together, no more than what one of them would without noise.

        If trees told the same, that would be their mean, and if each told something else, their sum: `common` is the
        part that is the same, but for noise, which differs from tree to tree. `more` is added to it before.
        """
        times = together(len(told), common * self._known)
        wide = times / together(len(told), common)
        total, least, most = 0.0, np.inf, -np.inf
        for tree, leaf in zip(told, self.apply(X).T):
            total, least, most = total + tree[leaf], np.minimum(least, tree[leaf]), np.maximum(most, tree[leaf])
        return np.clip(total * (times / len(told)) + more, least * wide, most * wide)

    def _released(self, n_rows, totals, domain, epsilon, delta):
        plan, shape = self._leaves(totals[0], domain, epsilon, delta), totals[0].shape
        depth = shape[1].bit_length() - 1
        structure = random_splits(domain.bins, shape[0], depth, int(self.split_seed))

        def draw(source):
            found = plan(source)
            return {"bins_": domain.bins, "depth_": depth,
                    **dict(zip(("features_", "shifts_", "thresholds_"), structure)),
                    **self._answers(found, domain.target)}

        draw.law = plan.parts[0].noise.law
        return draw

    def _leaves(self, totals, domain, epsilon, delta):
        """Return the plan of all numbers of all leaves."""
        weights, *moved = self._numbers(domain.target)
        return leaf_plan(epsilon, delta, *moved, self._trees_of_a_row(len(totals)), self._many, totals, weights)

    def _noise(self, n_trees, depth, domain, epsilon, delta):
        """Return the noise of all numbers of all leaves; ValueError where integers do not hold it."""
        weights, *moved = self._numbers(domain.target)
        shape = n_trees, 1 << depth, len(weights)
        return leaf_noise(epsilon, delta, *moved, self._trees_of_a_row(n_trees), self._many, shape)

    def _trees_of_a_row(self, n_trees):
        return n_trees if self.row_allocation == "shared" else 1

    def _parts(self, data, n_rows, domain, epsilon, delta):
        (totals,) = self._sums(data, domain)
        return None, lambda choose: None, lambda structure: self._leaves(totals, domain, epsilon, delta)

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns, and a target that depends on the first."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        return X, self._test_target(X)


class DPRandomForestClassifier(ClassTarget, Forest):
    """Fit a forest by data-independent random splits and noisy counts of classes in the leaves.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for the declared `neighbours`, data sets
    that differ in one row: the splits are public, and all of the budget is for the counts of the leaves. A replaced row
    moves two counts of its tree by 1, or of each tree for ``row_allocation="shared"``; one row more moves one. All
    fitted attributes may be published. The caller of `fit` holds the rows and must be trusted. Predictions and `score`
    of private rows are **not private**.

    **Utility.** With "disjoint" rows and pure epsilon each count has noise of a standard deviation of about
    2 sqrt(2) / epsilon, however many trees there are; a leaf has about n / (n_estimators 2^depth) rows. Leaves shrink
    to their parents by as much as noise explains.

    **Complexity.** O(n (d + depth)) time, times n_estimators with "shared" rows; O(n d) bytes and
    O(n_estimators 2^depth n_classes) memory.

    {parameters}
    References
    ----------
    Jagannathan, Pillaipakkamnatt, Wright (2009), "A practical differentially private random decision tree classifier",
    ICDM workshops, section 3. Fletcher, Islam (2017), "Differentially private random decision forests using smooth
    sensitivity", Expert Systems with Applications (disjoint rows). The proof: ``forest.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.ensemble import DPRandomForestClassifier
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(20_000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> model = DPRandomForestClassifier(1.0, bounds=(0, 1), classes=[0, 1], random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.5], [0.9, 0.5]])
    array([0, 1])
    """

    _more_parameters = _DELTA + BINS + CLASSES + _OWN + NEIGHBOURS + _LAST
    _more_attributes = _MORE.replace("    features_,", """    class_prior_ : ndarray of shape (n_classes,)
        Noisy shares of classes among all rows.
    features_,""", 1)

    def predict_proba(self, X):
        """Return the probability of each class, of shape (n_rows, n_classes); of private rows **not private**.

        What trees say besides the shares of classes among all rows is added up, in logarithms, and divided by about the
        root of the number of trees: their mean would count a hundred trees as one, and their sum as if none knew what
        another one knows. (Of more than 30 trees their mean counts as 30 do; still, of rows that are easy to tell
        apart, many trees are too sure.) Where leaves say little because of noise, which trees do not share, it is
        divided by less. Without noise no forest is surer of a class than the surest of its trees.
        """
        check_is_fitted(self)
        prior = np.log(self.class_prior_)
        return softmax(prior + self._together(X, np.log(self.values_) - prior, alike(len(self.values_)), self._even),
                       axis=1)

    def _answers(self, leaves, target):
        found, prior = super()._answers(leaves, target), prior_of(leaves)
        values, rows, even = found["values_"], np.maximum(leaves.noisy.sum(axis=2), 0.0) + 1e-9, np.zeros(len(prior))
        rows, n_trees = rows / rows.sum(axis=1, keepdims=True), len(values)
        # (logarithms of shares of a rare class are far off on one side, where noise is large: they are not made larger)
        balance = (1.0 - np.square(prior).sum()) / (1.0 - 1.0 / len(prior))
        known = found["_known"] ** (balance / 2)
        if len(prior) == 2:  # (of more classes, this would be against those that are easy to tell)
            even = evened(values / prior, rows, together(n_trees, alike(n_trees) * known) / n_trees)
        else:
            values = balanced(values, rows, prior)
        return {**found, "values_": values, "class_prior_": prior, "_even": even, "_known": known}

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, categories=None, n_bins=32, edges=None,
                 edges_fraction=0, classes=None, n_estimators=None, max_depth=None, row_allocation="shared",
                 split_seed=0, neighbours=None, ledger=None, random_state=None, n_jobs=None):
        Forest.__init__(self, epsilon, delta=delta, bounds=bounds, categories=categories, n_bins=n_bins, edges=edges,
                        edges_fraction=edges_fraction, n_estimators=n_estimators, max_depth=max_depth,
                        row_allocation=row_allocation, split_seed=split_seed, neighbours=neighbours,
                        ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.classes = classes

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "classes": [0, 1], "n_estimators": 3, "max_depth": 2,
                 "row_allocation": "disjoint"},
                {"epsilon": 1.0, "delta": 0.1, "bounds": ([-1, -1, -1], [1, 2, 3]), "classes": ["a", "b", "c"],
                 "n_estimators": 2, "max_depth": 3, "row_allocation": "shared", "edges_fraction": 0.2},
                {"epsilon": 2.0, "bounds": (-2.0, 2.0), "classes": [0, 1], "n_estimators": 2, "max_depth": 2,
                 "neighbours": "add_remove"}]

    def _test_target(self, X):
        classes = np.asarray(self.classes)
        y = np.digitize(X[:, 0], np.linspace(-1, 1, len(classes) + 1)[1:-1])
        return (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]


class DPRandomForestRegressor(NumberTarget, Forest):
    """Fit a regression forest by data-independent random splits and noisy means in the leaves.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for the declared `neighbours`, data sets
    that differ in one row: the splits are public, and all of the budget is for counts and sums of the leaves. A
    replaced row moves both in two leaves of its tree, or of each tree for ``row_allocation="shared"``; targets are
    clipped to public bounds. All fitted attributes may be published. The caller of `fit` holds the rows and must be
    trusted. Predictions and `score` of private rows are **not private**.

    **Utility.** With "disjoint" rows and pure epsilon each count has noise of a standard deviation of about
    4 sqrt(2) / epsilon, and each sum of half the width of the bounds times as much. Leaves shrink to their parents by
    as much as noise explains.

    **Complexity.** O(n (d + depth)) time, times n_estimators with "shared" rows; O(n d) bytes and
    O(n_estimators 2^depth) memory.

    {parameters}
    References
    ----------
    Jagannathan, Pillaipakkamnatt, Wright (2009), "A practical differentially private random decision tree classifier",
    ICDM workshops, section 3, with sums in place of counts. The proof: ``forest.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.ensemble import DPRandomForestRegressor
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(20_000, 1))
    >>> model = DPRandomForestRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1), random_state=0).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.8)
    True
    """

    _more_parameters = _DELTA + BINS + TARGET + _OWN.replace("3 to 30, or 30 or 60", "1 to 6, or 3 to 30") + (
        NEIGHBOURS + _LAST)
    _more_attributes = _MORE.replace("    features_,", """    target_mean_ : float
        Noisy mean of the target over all rows.
    target_bounds_ : tuple of float
    features_,""", 1)

    def _averaged(self, X):
        check_is_fitted(self)
        # (leaves shrink to the mean, so that their mean would be too near to it)
        share = halved(len(self.bins_), int(self.depth_))
        return self.target_mean_ + self._together(X, self.values_ - self.target_mean_, share)

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, categories=None, n_bins=32, edges=None,
                 edges_fraction=0, target_bounds=None, n_estimators=None, max_depth=None, row_allocation="shared",
                 split_seed=0, neighbours=None, ledger=None, random_state=None, n_jobs=None):
        Forest.__init__(self, epsilon, delta=delta, bounds=bounds, categories=categories, n_bins=n_bins, edges=edges,
                        edges_fraction=edges_fraction, n_estimators=n_estimators, max_depth=max_depth,
                        row_allocation=row_allocation, split_seed=split_seed, neighbours=neighbours,
                        ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.target_bounds = target_bounds

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "target_bounds": (-1, 1), "n_estimators": 3, "max_depth": 2,
                 "row_allocation": "disjoint"},
                {"epsilon": 1.0, "delta": 0.1, "bounds": (-1, 1), "target_bounds": (-2, 1), "n_estimators": 2,
                 "max_depth": 3, "row_allocation": "shared", "edges_fraction": 0.2},
                {"epsilon": 2.0, "bounds": (-2.0, 2.0), "target_bounds": (-1, 1), "n_estimators": 2, "max_depth": 2,
                 "neighbours": "add_remove"}]

    def _default_trees(self, known, normal):
        if normal:
            return 3 if known < 200 else 10 if known < 4000 else 30
        return 1 if known < 1000 else 3 if known < 4000 else 6

    def _default_depth(self, known, normal, n_trees):
        if normal:
            return levels(known / (100 if n_trees <= 10 else 15 * n_trees))
        return levels(known / {1: 200, 3: 60}.get(n_trees, 50 * n_trees))

    def _test_target(self, X):
        return X[:, 0]
