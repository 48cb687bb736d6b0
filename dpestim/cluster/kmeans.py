"""k-means: private cells, k-means on them, and a few private steps (`kmeans.md`)."""

import math
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import declared_delta
from dpestim.central.model import CentralModel
from dpestim.cluster.coreset import cell_shares, nearest, normal_cells, packed, weighted_kmeans
from dpestim.cluster.rounds import Plan, Rows
from dpestim.models import range_of
from dpestim.parallel import check_n_jobs
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress
from dpestim.rng import check_random_state
from dpestim.statistics.calibrated_noise import Answers
from dpestim.statistics.row_moments import checked_box
from dpestim.summaries import read_schema, refuse_too_many

#: Deviations of a cluster that a row counts at most; with 4 centers were noisier, and no better where tails are heavy.
_FAR = 2.0
#: Centers of the first step for each one that is left, so that clusters that share a seed come apart: more where cells
#: with as many rows each as `_CLEAR` deviations of their noise tell them apart; else a center would have too few rows.
_MORE, _MOST, _CLEAR = 1.5, 2.0, 10.0
#: The variance of a column in half ranges that noise leaves in place of its own.
_USUAL = 0.1
#: How much narrower than their noisy variances rows may be, where these are off by so many deviations of their noise,
#: and by how much likelier (in logarithms) that must be.
_FACTORS, _OFF, _EVIDENCE = (1.0, 0.5, 0.25, 0.125), 3.0, 3.0
#: Cells at most, and deviations of the noise that a cell should have rows for.
_CELLS, _WORTH = 256, 1.0


class DPKMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, CentralModel):
    """Find centers of clusters by k-means with noisy sums over the rows of each cluster.

    Four rounds, each a release: means and variances of columns; counts of rows in cells around normal rows with these;
    and at most `n_iter` steps of Lloyd's algorithm, fewer where rows are few. Seeds are k-means on the cells with their
    noisy counts, which costs nothing. In the first step there are more centers than in the end. Columns are not scaled:
    a column with a wide range has more weight, and less noise relative to its range.

    **Privacy.** (epsilon, delta)-differential privacy of a row in the central model, for the declared `neighbours`,
    data sets of equal size that differ in one row, or of which one has one more row; seeds of centers included, and how
    many rows there are in the second case. All fitted attributes may be published. The caller of `fit` holds the rows
    and must be trusted. ``predict`` and ``transform`` of private rows, ``fit_predict`` and ``fit_transform``, and
    `score` on them, are **not private**: the label of a row is a function of it, and its own secret.

    **Utility.** With pure epsilon a center of m rows is off by about 8 (1 + 2 / (3 sqrt d)) d s n_iter / (m epsilon) in
    each of d columns (a standard deviation, from two steps on), s being that of rows in clusters, or about twice that
    where there are many columns, as cells are coarse; with a delta noise grows with sqrt(d) in place of d, and with
    sqrt(n_iter). That is for columns that are alike; of d columns one that is wide beside all others has up to d / 2
    times less noise, and these up to twice as much. So bounds that are a few times as wide as rows matter little where
    there are thousands of these; of 6,000 rows in two clusters at epsilon 1, bounds 20 times as wide cost nothing, and
    bounds 50 times as wide nearly all. Where the noise is larger than the distances between clusters, centers are those
    of normal rows with the noisy means and variances. Small clusters far from all others are missed.

    With ``neighbours="add_remove"`` steps have half of that noise, or 1 / sqrt(2) of it where a delta is declared.

    **Complexity.** O(n d k n_iter) time, and at most 131,072 rows in 256 cells (or 2 k), but all of them with
    ``neighbours="add_remove"``; O(n d) memory, of 4 bytes (of 12 where some columns are constant).

    {parameters}
    References
    ----------
    Su, Cao, Li, Bertino, Jin (2016), "Differentially private k-means clustering", CODASPY, section 3, for few noisy
    steps; Chang, Ghazi, Kumar, Manurangsi (2021), "Locally private k-means in one round", ICML, for k-means on noisy
    counts of cells. Dong, Roth, Su (2022), "Gaussian differential privacy", JRSS-B, corollary 3.3. The proof:
    ``kmeans.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.cluster import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 2)) * 0.5 + rng.choice([-3, 0, 4], (6_000, 1))
    >>> model = DPKMeans(1.0, n_clusters=3, bounds=(-6, 7), random_state=0).fit(X)
    >>> model.cluster_centers_[model.cluster_centers_[:, 0].argsort()].round(0) + 0.0
    array([[-3., -3.],
           [ 0.,  0.],
           [ 4.,  4.]])
    """

    _checked_as, _template = "answers", "neighbours"
    _declared = ("bounds",)
    _learned = ("cluster_centers_",)
    #: What adds noise, all of it, and what holds the rows.
    _answers, _asked = Answers, Rows
    _adds_up = True
    _more_parameters = """
    n_clusters : int, default=8
        From 1 to 1,000.
    {delta of noise}
    bounds : (low, high), dict or Domain, default=None
        Public range of the values, numbers or one for each column. Values outside are clipped, in `fit` and in
        predictions. A column whose bounds are equal is constant: centers have that constant there, and it costs
        nothing. None takes the smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes
        ``privacy_.epsilon`` infinite.
    n_iter : int, default=2
        Noisy steps at most, from 1 to 100. Fewer, one at least, where those would have noise of more than 0.3 of how
        far a row reaches at a center of ``n_rows / n_clusters`` rows.
    n_jobs : int, default=None
        Threads. The result does not depend on them.
    """
    _more_attributes = """
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In units of X, within the bounds.
    bounds_ : (ndarray, ndarray) of shape (n_features,)
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, n_clusters=8, delta=None, bounds=None, n_iter=2,
                 neighbours=None, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.n_clusters = n_clusters
        self.delta = delta
        self.bounds = bounds
        self.n_iter = n_iter
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Find centers; one release of epsilon.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        trial = self._declared_trial(X)
        rows = trial._checked_X(X, reset=True, total=self._is_strict())
        bounds = range_of(rows, apart=False) if self.bounds is None else trial.bounds

        def asked(low, high, free, answers):
            varied = rows if free.all() else np.ascontiguousarray(rows[:, free])
            return self._asked(varied, low, high, answers, self.n_jobs, self._replaces)

        return self._fit_to(asked, trial, len(rows), bounds)

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked in several rounds; charges before the first noisy one.

        {fit of parts}
        """
        from dpestim.cluster.parts import PartRows, Tally  # (only who reads rows in parts asks for them)
        from dpestim.passes import Blueprint, CountRows

        self._check()
        if self.bounds is None:
            raise ValueError("bounds must be declared: no part of the data may decide what others count. Give bounds")
        trial = self._trial(*example)
        trial._checked_X(example[0], reset=True, total=self._is_strict())
        blueprint = replace(Blueprint.of(self), state=read_schema(trial))
        n_rows = refuse_too_many(ask(CountRows(blueprint)))
        n_rows = n_rows if self._replaces else None

        def asked(low, high, free, answers):
            return PartRows(ask, Tally(blueprint, low, high, free, ()), n_rows, answers)

        self._fit_to(asked, trial, n_rows, trial.bounds)

    def _read_part(self, rows):
        """Return the rows of a part as `fit` reads them: with the columns of the others."""
        return self._checked_X(rows[0], reset=False, total=self._is_strict())

    def _fit_to(self, make, trial, n, bounds):
        """Plan, pay and draw; `make` returns what answers of rows (low, high, which columns vary, what adds noise)."""
        epsilon, delta = self._check()
        d = trial.n_features_in_
        bounds = checked_box(bounds, d)
        low, high = (np.broadcast_to(end, d).astype(float) for end in bounds)
        free = high > low  # (in a constant column there is nothing to learn, and no row moves anything)
        widths = (high - low)[free] if free.any() else [1.0]
        public = n if self._replaces else None
        plan = Plan.of(epsilon, delta, public, widths, int(self.n_iter), int(self.n_clusters))
        guarantee = self._guarantee(epsilon, delta)
        if plan.budget.normal and guarantee.is_finite:  # (all rounds together are one normal number: `kmeans.md`)
            guarantee = replace(guarantee, curve=plan.cells.curve)

        def draw(source):
            centers = np.tile(low, (int(self.n_clusters), 1))
            if free.any():
                asked = make(low[free], high[free], free, self._answers(source))
                centers[:, free] = _fitted(asked, plan, len(centers), Progress(self, plan.n_steps))
            return {"cluster_centers_": np.clip(centers, low, high), "bounds_": (low, high)}

        return self._keep(guarantee, n, read_schema(trial), draw)

    def fit_predict(self, X, y=None):
        """Return ``fit(X).predict(X)``, labels of the very rows that were learned from: **not private**."""
        return self.fit(X).predict(X)

    def predict(self, X):
        """Return the place of the nearest center of each row; of private rows **not private**."""
        rows = self._clipped(X)
        low, high = self.bounds_
        unit, middle = (high - low).max() / 2 or 1.0, low + (high - low) / 2
        centers = (self.cluster_centers_ - middle) / unit
        return nearest(packed((rows - middle) / unit), len(rows), centers)

    def transform(self, X):
        """Return the distance of each row from each center, (n_rows, n_clusters); of private rows **not private**."""
        return self._distances(self._clipped(X))

    def score(self, X, y=None):
        """Return minus the sum of squared distances of rows from the nearest center: **not private**, exact."""
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        rows = self._clipped(X)
        self._note_score(len(rows))
        return -float(np.square(self._distances(rows).min(axis=1)).sum())

    # ---------------------------------------------------------------- inside

    @property
    def _n_features_out(self):
        return len(self.cluster_centers_)

    def _distances(self, rows):
        out = np.empty((len(rows), len(self.cluster_centers_)))
        for k, center in enumerate(self.cluster_centers_):
            out[:, k] = np.sqrt(np.square(rows - center).sum(axis=1))
        return out

    def _clipped(self, X):
        """Return rows, clipped to the bounds; what is no number (in strict mode) is in the middle."""
        check_is_fitted(self)
        strict, (low, high) = self._is_strict(), self.bounds_
        rows = self._checked_X(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(rows))
            rows = np.where(np.isnan(rows), low + (high - low) / 2, rows)
        return np.clip(rows, low, high)

    def _promise(self):
        return self._guarantee(*self._check())

    def _check(self):
        """Return (epsilon, delta) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon, delta, _ = canonical_epsilon(self.epsilon), declared_delta(self.delta), self._neighbours
        for name, most in (("n_clusters", 1000), ("n_iter", 100)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
                raise ValueError(f"{name} must be an int from 1 to {most:,}")
        if self.bounds is not None:
            checked_box(self.bounds)
        check_random_state(self.random_state)
        check_n_jobs(self.n_jobs)
        return epsilon, delta

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "n_clusters": 3, "bounds": (-2.0, 2.0)},
                {"epsilon": 3.0, "delta": 1e-5, "n_clusters": 2, "bounds": ([-1, -1, -1], [1, 2, 3]), "n_iter": 1},
                {"epsilon": 2.0, "n_clusters": 2, "bounds": (-1.0, 1.0), "neighbours": "add_remove"},
                {"epsilon": 3.0, "delta": 1e-5, "n_clusters": 2, "bounds": (-1.0, 1.0), "neighbours": "add_remove"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns in two clusters, and no classes."""
        rng = np.random.default_rng(seed)
        return rng.uniform(-0.4, 0.4, (n_rows, 3)) + rng.choice([-0.5, 0.5], (n_rows, 1)), None


def _fitted(rows, plan, k, progress):
    """Return k centers in units of X; after the first line of each round, only what was released is looked at."""
    half = rows.half
    means, variances, error = _normal(*rows.moments(plan))
    mean, deviation = means * half, np.sqrt(variances) * half
    seeds, n_cells = _sizes(plan, rows.sample()[1], k)
    shape, shares = normal_cells(deviation / deviation.max(), n_cells)
    points = np.clip(mean + shape * deviation.max(), -half, half)
    counts, expected = rows.cells(plan, points), shares * rows.sample()[1]
    weights = _cell_weights(counts, expected, plan.cells.variance_steps)
    narrow = _narrowed(counts, rows.sample()[1], plan.cells.variance_steps, deviation / deviation.max(), shape,
                       error / variances.mean())
    if narrow < 1:  # (rows are in few of the cells, which tell no clusters apart then)
        deviation, weights = deviation * narrow, expected
        points = np.clip(mean + shape * deviation.max(), -half, half)
    centers = weighted_kmeans(points, weights, seeds)
    for step in progress.of(range(plan.n_steps)):
        off = points - centers[nearest(packed(points), n_cells, centers)]
        within = weights @ np.square(off) / max(weights.sum(), 1e-9)
        # (cells have a size of their own: a twentieth of the variance of all rows)
        reach = np.minimum(_FAR * np.sqrt(np.minimum(within + deviation**2 / 20, deviation**2)), 2 * half)
        counts, sums, of_count, of_sum = rows.steps(plan, centers, reach)
        known = np.maximum(counts, of_count + 1)
        moves = sums / known[:, None]
        kept = _kept(moves / reach, np.square(of_sum / reach / known[:, None]), plan.d)
        centers = np.clip(centers + np.clip(moves * kept, -reach, reach), -half, half)
        if step == 0:
            centers = weighted_kmeans(centers, np.where(counts > of_count + 1, counts, 0.0), k)
    return rows.middle + centers * rows.unit


def _normal(means, squares, of_mean, of_square):
    """Return (means, variances) of columns in half ranges, and the deviation of the noise of the mean variance.

    Both are shrunk to those of other columns as much as noise explains. (Columns are often alike: skewed to the same
    side, or with bounds as loose.)
    """
    common, error = _common(means, of_mean)
    common *= _kept(common, error, 1)
    means = np.clip(common + (means - common) * _kept(means - common, of_mean, len(means)), -1, 1)
    variances = squares - np.square(means) + of_mean
    common, error = _common(variances, of_square)
    common = _USUAL + (common - _USUAL) * _kept(common - _USUAL, error, 2)
    common = np.clip(common, np.minimum(np.sqrt(error), _USUAL), 1)
    apart = variances - common
    # (what is less than its noise may be as much: with a deviation of almost 0, a column would be lost for good)
    least = np.maximum(np.minimum(common, np.sqrt(of_square)), 1e-6)
    return means, np.clip(common + apart * _kept(apart, of_square, len(apart)), least, 1), float(np.sqrt(error[0]))


def _narrowed(counts, n_rows, variance, deviations, shape, error):
    """Return by how much narrower than their noisy deviations say rows are: where most of them are in inner cells.

    `error` is how far off the variances are, as a part of them. The likeliest of a few factors, by noisy counts.
    """
    likely = []
    for factor in _FACTORS:
        if likely and 1 - factor**2 > _OFF * error:  # (the noisy variance would be further off than noise explains)
            continue
        off = counts - n_rows * cell_shares(deviations * factor, shape)
        likely.append((np.square(off).sum() / (2 * variance) + (_EVIDENCE if factor < 1 else 0), factor))
    return min(likely)[1]


def _common(values, noise):
    """Return (the mean, arrays of length one, of values with noise of these variances, the variance of its noise)."""
    known = 1 / noise
    return (values @ known / known.sum())[None], 1 / known.sum()[None]


def _kept(values, noise, least):
    """Return the part of values, along the last axis, that is kept beside noise with these variances.

    (The shrinkage of James and Stein, where `least` is their number. Lengths are in deviations of the noise: so narrow
    columns, which have more noise, are heard where they do say something.)
    """
    length = (np.square(values) / noise).sum(axis=-1, keepdims=True)
    return np.maximum(0.0, 1 - least / np.maximum(length, 1e-300))


def _sizes(plan, n_rows, k):
    """Return (how many seeds, how many cells have a number of rows that noise does not hide)."""
    deviations = n_rows / math.sqrt(plan.cells.variance_steps)
    seeds = int((_MOST if deviations > _CLEAR * _MOST * k else _MORE) * k)
    return seeds, max(seeds, int(min(deviations / _WORTH, _CELLS)))


def _cell_weights(counts, expected, variance):
    """Return weights of cells: noisy counts, shrunk to those of normal rows, less a deviation of what noise is left."""
    apart = counts - expected
    kept = _kept(apart, variance, len(apart))
    return np.maximum(expected + kept * (apart - math.sqrt(variance)), 0.0)
