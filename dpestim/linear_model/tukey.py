"""Linear regression without bounds: a deep point among models of disjoint rows (`tukey.md`)."""

import math
import warnings
from fractions import Fraction
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.base import LEAST_EPSILON, checked_delta
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.model import CentralRegressor
from dpestim.central.stability.distance_test import is_far, least_threshold
from dpestim.exact_reals import BitStream, Real
from dpestim.inputs import bound_array, target_numbers
from dpestim.linear_model.domain import OfDomain
from dpestim.privacy.exact import canonical_epsilon, exp_upper
from dpestim.rng import check_random_state
from dpestim.statistics.row_moments import checked_box
from dpestim.summaries import read_schema

#: Coefficients lie on multiples of 2^-100 from -2^100 to 2^100.
_DIGITS = 100
_FAR = 1 << 2 * _DIGITS
_TEST, _LEVEL, _POINT = 0, 1, 2
#: What takes seconds, not minutes.
_MOST_MODELS = 1 << 16


class DPTukeyRegression(OfDomain, CentralRegressor):
    """Fit linear regression without bounds by a private point of large Tukey depth among fits of disjoint blocks.

    If the coefficients of most blocks agree, a point of large Tukey depth among them is released; otherwise nothing is
    released. Take it for many rows of few columns with unknown ranges; with public bounds, `DPLinearRegression` needs
    fewer rows.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one record: half of epsilon tests whether the blocks agree, half chooses the point. A row belongs to a block by its
    place alone. The caller of `fit` holds the data and must be trusted; parameters and the number of rows are public.

    **Utility.** The point has about half of the models on each side, in every coordinate. The test needs about
    (28 ln(1 / delta) + 48 d + 60) / epsilon models of d coefficients: with these it passes with a probability of .99
    where models have normal errors, or Student's with 3 degrees of freedom (simulated for d from 1 to 21, epsilon from
    .3 to 4, delta from 1e-10 to 1e-3). That is 543 at epsilon 1, delta 1e-6 and d = 2: of 10 fits each, 400 models
    were refused 10 times, 500 never. With many fewer nothing is released (`refused_`); where rows
    are too few for the default, `fit` warns before it charges. Each model needs more rows than columns. Rows should
    come in random order, as blocks are rows n_models apart.

    Depth looks at one coefficient at a time, so that columns should not be nearly collinear: the models' coefficients
    then vary much and what they predict little, but points of a box need not predict as any of them. Two normal columns
    with a correlation of .99, .9999, .999999, 40,000 rows, epsilon 1 and an R^2 of .8 without privacy: .80, .78, -2.3
    (median of 8 fits).

    **Complexity.** O(n d^2) time for the models, O(m d log m) for their depths.

    Parameters
    ----------
    {epsilon of a fit}
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, from 1e-300 to below 1: it must be declared, much less than
        1 / n_rows.
    n_models : int, default=None
        Blocks of rows, up to 2^16. None: 1,000, or five quarters of what the test needs (see Utility) where that is
        more, but few enough that each block has twice as many rows as coefficients.
    center : float or array-like of shape (n_features,), default=0.0
        A public point near the rows, which is subtracted from them. Models of blocks agree about a line near the rows,
        and hardly about its height far away: of a column of years around 2010 declare 2010. With bounds it is their
        middle, and must not be declared.
    bounds : (low, high), dict or Domain, default=None
        Public range of the columns of X, where one is known: rows are clipped to it. `coef_` and `intercept_` are those
        of X.
    domain : dpestim.Domain, default=None
        The public description of the table. Where X is a frame whose columns are numbers of the domain, it gives
        `bounds`.
    fit_intercept : bool, default=True
    {ledger of a fit}
    {random_state}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        0, where nothing was released; predictions are NaN then.
    intercept_ : float
    refused_ : bool
        Whether the models disagreed too much for an answer; that was charged too.
    privacy_ : PrivacyGuarantee
    {columns seen}

    Raises
    ------
    ValueError
        For an invalid parameter or value, before anything is charged. The message names the parameter or column, never
        the value. In strict mode a row with a missing value is a row of zeros.

    References
    ----------
    Amin, Joseph, Ribero, Vassilvitskii (2022), "Easy differentially private linear regression", ICLR 2023, algorithms
    1 to 3. The proof, in integers and with its own test: ``tukey.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPTukeyRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(8, 1, size=(20_000, 1))
    >>> y = 3 * X[:, 0] + 500 + rng.standard_t(3, 20_000)
    >>> model = DPTukeyRegression(2.0, delta=1e-6, random_state=0).fit(X, y)
    >>> model.coef_.round(2)
    array([3.])
    """

    _learned = ("coef_", "intercept_")
    _not_in_parts = ("needs all rows at once, because the block of a row follows from its place, and parts may follow "
                     "from values: take DPLinearRegression")
    _told_apart = "tukey.md: a point of a random box is drawn; tests/unit/linear_model/test_tukey.py"

    def __init__(self, epsilon=1.0, *, delta=None, n_models=None, center=0.0, bounds=None, domain=None,
                 fit_intercept=True, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.n_models = n_models
        self.center = center
        self.bounds = bounds
        self.domain = domain
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit models to blocks of rows X and targets y, and release a deep point; one release.

        {fit of rows and targets}
        """
        epsilon, delta = self._check_parameters()
        strict = self._is_strict()
        trial = self._trial(X, y)
        X = trial._checked_X(X, reset=True, total=strict)
        scale = trial._scale(X.shape[1])
        if scale is not None:
            X = scale.rows(X)
        y = target_numbers(y, len(X), strict=strict)
        center = self._center(X.shape[1])
        size = X.shape[1] + bool(self.fit_intercept)
        n_models = self._blocks(len(X), size, epsilon, delta)
        half = epsilon / 2
        law_of_rate(half)  # (may fail)
        threshold = least_threshold(half, delta) + 1
        guarantee = self._guarantee(epsilon, delta)
        needed = models_needed(epsilon, delta, size)
        if self.n_models is None and n_models < needed:
            warnings.warn(f"n_models: these rows give {n_models} models, and the test passes with about {needed}: take "
                          "more rows, a larger epsilon, or a larger n_models",
                          stacklevel=2)

        def draw(source):
            with np.errstate(all="ignore"):
                near = X - center
            boxes, reader = Boxes(models_of(near, y, n_models, bool(self.fit_intercept)), size), source.reader()
            passes = is_far(BitStream(reader, 0, _TEST), boxes.distance(half, delta), threshold, half)
            refused = not (passes and n_models)  # (without a model there is no point to draw: its number is public)
            w = np.zeros(size)
            if not refused:
                w = np.array([float(Fraction(k, 1 << _DIGITS)) for k in boxes.draw(half, reader)])
            coef = w[: X.shape[1]]
            intercept = float(w[-1]) - float(coef @ center) if self.fit_intercept else 0.0
            scaled = None
            if scale is not None:
                scaled = coef, intercept, scale
                coef, intercept = scale.in_units(coef, intercept)
            return {"coef_": coef, "intercept_": intercept, "refused_": refused, "_scaled": scaled}

        self._keep(guarantee, len(X), read_schema(trial), draw)
        if self.refused_ and not strict:
            warnings.warn("nothing was released, because the models of the blocks disagree or are too few. Predictions "
                          "are NaN. Take more rows, a larger epsilon, or a public center= near the rows", stacklevel=2)
        return self

    def predict(self, X):
        """Return predictions for rows; those for private rows are **not private**.

        In strict mode each call is entered in the ledger (epsilon 0, flagged), before it answers.
        """
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._checked_X(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(X))
            X = np.where(np.isfinite(X).all(axis=1, keepdims=True), X, 0.0)
        if self.refused_:  # (which is released: it says nothing of these rows)
            return np.full(len(X), np.nan)
        coef, intercept = self.coef_, self.intercept_
        if self._scaled is not None:
            coef, intercept, scale = self._scaled
            X = scale.rows(X)
        with np.errstate(all="ignore"):
            return np.nan_to_num(X @ coef + intercept)

    def score(self, X, y, sample_weight=None):
        """Return R^2 on rows X and targets y, which is **not private**; NaN where the fit was refused."""
        check_is_fitted(self)
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        if self.refused_:
            self.predict(X)  # (which looks at the columns)
            return float("nan")
        return super().score(X, y, sample_weight)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        few = {"delta": 1e-2, "n_models": 20}  # (for few rows, an epsilon with which they get an answer)
        return [{"epsilon": 70.0, **few}, {"epsilon": 60.0, "fit_intercept": False, **few}]

    def _center(self, n_columns):
        """Return the public point that is subtracted; without an intercept there is none but 0."""
        center = np.atleast_1d(bound_array(self.center, "center"))
        if center.ndim != 1 or len(center) not in (1, n_columns) or not (np.abs(center) <= 1e100).all():
            raise ValueError(f"center must be a finite number, or one for each of the {n_columns} columns")
        if center.any() and (self.bounds is not None or self.domain is not None):
            raise ValueError("center must be 0 where bounds or a domain are declared, whose middles are subtracted")
        if not self.fit_intercept and center.any():
            raise ValueError("center must be 0 with fit_intercept=False, because the model then passes through the "
                             "origin")
        return np.broadcast_to(center, n_columns)

    def _blocks(self, n_rows, size, epsilon, delta):
        """Return the number of models: a function of what is public."""
        if self.n_models is not None:
            return min(int(self.n_models), n_rows)
        wanted = max(1000, models_needed(epsilon, delta, size) * 5 // 4)
        return min(wanted, n_rows // (2 * size), _MOST_MODELS)

    def _check_parameters(self):
        epsilon, delta = canonical_epsilon(self.epsilon), checked_delta(self.delta)
        if epsilon < LEAST_EPSILON:
            raise ValueError("epsilon is too small: it must be at least 1e-100")
        n = self.n_models
        if n is not None and (isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n <= _MOST_MODELS):
            raise ValueError("n_models must be None or an int from 1 to 2^16")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        self._check_domain()
        if self.bounds is not None:
            checked_box(self.bounds)
        check_random_state(self.random_state)
        return epsilon, delta

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters())


def models_needed(epsilon, delta, size):
    """Return about how many models of so many coefficients pass the test with a probability of .99 (simulated)."""
    return math.ceil((28 * math.log(1 / delta) + 48 * size + 60) / float(epsilon))


def models_of(X, y, n_models, fit_intercept):
    """Return integer coefficients of the least squares fit of each block; row i is in block i modulo n_models.

    A block's model is a function of its rows alone; one that has none that is finite is 0.
    """
    out = []
    for k in range(n_models):
        rows, target = X[k::n_models], y[k::n_models]
        good = np.isfinite(rows).all(axis=1) & np.isfinite(target)
        rows, target = np.where(good[:, None], rows, 0.0), np.where(good, target, 0.0)
        if fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        try:
            with np.errstate(all="ignore"):
                w = np.linalg.lstsq(rows, target, rcond=None)[0]
        except np.linalg.LinAlgError:
            w = np.full(rows.shape[1], np.nan)
        w = w if np.isfinite(w).all() else np.zeros(rows.shape[1])
        out.append([min(max(round(Fraction(value) * (1 << _DIGITS)), -_FAR), _FAR) for value in w.tolist()])
    return out


class Boxes:
    """The points of each depth: those with at least i models on both sides of every coordinate are a box.

    Parameters
    ----------
    models : list of lists of int
    size : int
        Coefficients of a model.
    """

    def __init__(self, models, size):
        self.n_models, self.size = len(models), size
        self._sorted = [sorted(column) for column in zip(*models)] or [[] for _ in range(size)]
        self.deepest = (self.n_models + 1) // 2
        #: models on both sides of all points that may be released
        self.least = max(1, self.n_models // 4)
        self._counts = [self._count(i) for i in range(self.deepest + 1)]

    def ends(self, depth):
        """Return (first, last) of each coordinate of the points of at least this depth, 1 or more."""
        return [(column[depth - 1], column[-depth]) for column in self._sorted]

    def _count(self, depth):
        if depth < 1:
            return (2 * _FAR + 1) ** self.size
        out = 1
        for first, last in self.ends(depth):
            out *= max(0, last - first + 1)
        return out

    def count(self, depth):
        """Return the number of grid points of at least this depth."""
        return 0 if depth > self.deepest else self._counts[max(depth, 0)]

    def distance(self, epsilon, delta):
        """Return how many rows may be replaced, and one more, until a choice by `draw` need not be safe; 0: none."""
        rate = epsilon / 2
        costs = [exp_upper(-rate * g) * (1 + exp_upper(rate)) for g in range(self.deepest + 1)]

        def is_safe(k):
            wide = self.count(self.least - 1 - k)
            return any(wide * costs[g] <= delta * self.count(self.least + g + k)
                       for g in range(self.deepest - self.least - k, -1, -1))

        low, high = 0, self.deepest + 1  # (safe for all k below low, and for none from high on)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if is_safe(middle) else (low, middle)
        return low

    def draw(self, epsilon, reader):
        """Return a point of depth `least` or more, with probability proportional to e^(epsilon depth / 2), exactly.

        That is a mixture of uniform points of boxes: of depth i or more with weight e^(rate i) - e^(rate (i - 1)).
        """
        rate, levels = epsilon / 2, range(self.least, self.deepest + 1)

        def bounds(depth, n_digits):
            low, high = exp_bounds(rate * (self.deepest - depth), n_digits)
            if depth > self.least:
                less = exp_bounds(rate * (self.deepest - depth + 1), n_digits)
                low, high = low - less[1], high - less[0]
            return self.count(depth) * low, self.count(depth) * high

        stream = BitStream(reader, 0, _LEVEL)
        some = [depth for depth in levels if self.count(depth)]
        proposals = [int(bounds(depth, 40)[1] * (1 << 64)) + 1 for depth in some]
        while True:
            drawn, place = stream.below(sum(proposals)), 0
            while drawn >= proposals[place]:
                drawn, place = drawn - proposals[place], place + 1
            unit = Fraction(1 << 64, proposals[place])
            if Real(stream).is_below(lambda n, at=some[place], by=unit: tuple(end * by for end in bounds(at, n))):
                break
        stream = BitStream(reader, 0, _POINT)
        return [first + stream.below(last - first + 1) for first, last in self.ends(some[place])]
