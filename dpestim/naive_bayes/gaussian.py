"""Gaussian naive Bayes: noisy counts, sums and sums of squares in each class, in one release (`gaussian.md`)."""

import math

import numpy as np

from dpestim.inputs.declared import missing_of, says_missing
from dpestim.inputs.numbers import DECLARE, OR_IMPUTE
from dpestim.models import checked_number, range_of
from dpestim.naive_bayes.base import NaiveBayes
from dpestim.postprocessing.shrinkage import class_logarithms, kept_of, noise_apart
from dpestim.statistics.calibrated_noise import equal_shares, noise_for
from dpestim.statistics.summary import grids_of
from dpestim.statistics.sums import class_sums


class DPGaussianNB(NaiveBayes):
    """Fit Gaussian naive Bayes by noisy means and variances in each class.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours: the number of
    rows of each class, and the sums and sums of squares of its columns, clipped and rounded to integers, get noise
    together. One row more or less is in one class, so the noise does not grow with their number; a row that is replaced
    may leave one class and enter another, which costs twice as much. In columns whose values may be missing, how many
    are there is one more such number of each class. All fitted attributes may be published. The caller of `fit` holds
    the rows and must be trusted. Predictions and `score` of private rows are **not private**.

    **Utility.** With d columns of a class of m rows, pure epsilon and replaced rows, means have noise of a standard
    deviation of about 1.5 (2 d + sqrt d) (high - low) / (m epsilon): declare tight bounds. Means and variances shrink
    to those of all rows by as much of their differences as noise explains, and what noise is left in a mean is added to
    its variances: where the noise dominates, predictions are the shares of the classes.

    **Complexity.** O(n d k) time for k classes, by matrix products; O(d k) memory beyond X.

    {parameters}
    References
    ----------
    Vaidya, Shafiq, Basu, Hong (2013), "Differentially private naive Bayes classification", WI-IAT, section III.
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC,
    proposition 1. The proof: ``gaussian.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.naive_bayes import DPGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 10_000)
    >>> X = rng.normal(y[:, None] * [1.0, 2.0], 1.0)
    >>> model = DPGaussianNB(1.0, bounds=(-3, 5), classes=[0, 1], random_state=0).fit(X, y)
    >>> model.theta_[1].round(1), model.predict([[0, 0], [1, 2]])
    (array([1., 2.]), array([0, 1]))
    """

    _more_parameters = """\
    {delta of noise}
    bounds : (low, high), dict or Domain, default=None
        Public range of the values, numbers or one for each column. Values outside are clipped, in `fit` and in
        predictions. None takes the smallest and largest values, which leaks (`PrivacyLeakWarning`). Where a
        `dpestim.Domain` says ``missing=True``, a missing value counts for its class and not for means and variances,
        and that it is missing speaks for a class or against it; elsewhere missing values are refused.
    {classes}
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes. None: from their noisy counts.
    var_smoothing : float, default=1e-9
        The part of the largest variance that is added to all of them, from 0 to 1.
    """
    _more_attributes = """
    classes_ : ndarray of shape (n_classes,)
    class_count_, class_prior_, class_log_prior_ : ndarray of shape (n_classes,)
        Noisy numbers of rows, at least 0, and probabilities.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Noisy means and variances.
    missing_log_prob_ : ndarray of shape (n_classes, n_features)
        Logarithms of the noisy shares of missing values, -inf where the domain does not say ``missing=True``.
    epsilon_ : float
        What was added to variances.
    {columns seen}
    """
    _declared = ("bounds", "classes")
    _learned = ("theta_", "var_", "class_count_")
    _declared_prior = "priors"
    _advice = DECLARE + OR_IMPUTE
    #: Columns whose values may be missing, by place.
    _may_be_missing = frozenset()

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, classes=None, priors=None, var_smoothing=1e-9,
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, classes=classes, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.bounds = bounds
        self.priors = priors
        self.var_smoothing = var_smoothing

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False  # (it passes as it is)
        tags.input_tags.allow_nan = says_missing(self.bounds)
        return tags

    def _check_own(self):
        if self.bounds is not None:
            grids_of(self.bounds)
        checked_number("var_smoothing", self.var_smoothing, "from 0 to 1", lambda v: 0 <= v <= 1)

    def _settle(self, names, n_columns, target):
        self._may_be_missing = missing_of(self.bounds, n_columns, names)
        super()._settle(names, n_columns, target)

    def _missing_in(self, n_columns, reset):
        if reset:
            return np.isin(np.arange(n_columns), list(self._may_be_missing))
        return np.isfinite(self.missing_log_prob_[0])

    def _rows(self, X, reset):
        rows = self._checked_X(X, reset=reset, total=self._is_strict())
        return rows, len(rows)

    def _domain(self, n_columns, data=None):
        bounds = self.bounds
        if bounds is None:
            low, high = range_of(data[0])
            bounds = np.clip(low, -4e139, 4e139), np.clip(high, -4e139, 4e139)
        missing = tuple(sorted(j for j in self._may_be_missing if j < n_columns))
        return self._classes(data), tuple(grids_of(bounds, n_columns)), missing

    def _sums(self, data, domain):
        rows, codes, _ = data
        n_classes, some = len(domain[0]), codes >= 0
        there = np.zeros((n_classes, len(domain[2])), object)
        for k, j in enumerate(domain[2]):
            there[:, k] = np.bincount(codes[some & ~np.isnan(rows[:, j])], minlength=n_classes).tolist()
        # (a missing value has the integer 0)
        return [*class_sums(rows, codes, n_classes, domain[1], squares=True), there]

    def _released(self, n_rows, totals, domain, epsilon, delta):
        classes, (_, grids, missing) = self._class_array(domain[0]), domain
        n_classes, d = len(classes), len(grids)
        reach = [grid.reach for grid in grids]
        weights, l1, l2_squared = equal_shares([1, *reach, *(r * r for r in reach), *(1 for _ in missing)])
        # counts are in all means, and say the prior: they get more than one share of many
        more = math.isqrt(len(grids)) if not delta else math.isqrt(math.isqrt(len(grids)))
        l1, l2_squared = l1 + (more - 1) * weights[0], l2_squared + (more * more - 1) * weights[0] ** 2
        weights[0] *= more
        if self._replaces:
            # it leaves one class and enters another, or stays, and moves its sums by span and its squares by reach^2
            sums = [(w * grid.span) ** 2 for w, grid in zip(weights[1:], grids)]
            for k, j in enumerate(missing):  # (or its value in a column comes or goes)
                sums[j] = max(sums[j], (weights[1 + j] * reach[j]) ** 2 + weights[1 + 2 * d + k] ** 2)
            squares = sum((w * r * r) ** 2 for w, r in zip(weights[1 + d :], reach))
            l1, l2_squared = 2 * l1, max(2 * l2_squared, sum(sums) + squares)
        count, sums, squares, there = totals
        numbers = [weight * int(value) for c in range(n_classes)
                   for weight, value in zip(weights, (count[c], *sums[c], *squares[c], *there[c]))]
        noise = noise_for(epsilon, delta, l1, l2_squared, len(numbers))

        def draw(source):
            noisy = np.asarray(noise.add(numbers, source), float).reshape(n_classes, -1) / np.array(weights, float)
            center, step, half = (np.array([getattr(grid, name) for grid in grids], float)
                                  for name in ("center", "step", "reach"))
            variances = noise.variance / np.square(np.array(weights, float))
            mean, var = _moments(noisy, variances, half, missing)
            var = var * step**2
            smoothing = float(self.var_smoothing) * float(var.max())
            prior = self._prior(noisy[:, 0], math.sqrt(variances[0]))
            return {"theta_": (center + mean) * step, "var_": var + smoothing, "epsilon_": smoothing,
                    "class_count_": np.maximum(noisy[:, 0], 0.0), "class_prior_": prior,
                    "class_log_prior_": np.log(prior), "classes_": classes,
                    "missing_log_prob_": _missing_logarithms(noisy, variances, d, missing),
                    "bounds_": tuple(np.array([getattr(grid, end) for grid in grids]) for end in ("low", "high"))}

        return draw

    def _joint(self, rows, n_rows):
        (low, high), may = self.bounds_, self._missing_in(self.n_features_in_, False)
        if self._is_strict() or may.any():  # (strict mode lets other missing values through, as the middle)
            lost = np.isnan(rows)
            rows = np.where(lost, (low + high) / 2, rows)
        rows = np.clip(rows, low, high)
        out = np.empty((n_rows, len(self.classes_)))
        for c, (mean, var, gone) in enumerate(zip(self.theta_, self.var_, self.missing_log_prob_)):
            out[:, c] = -0.5 * (np.log(2 * np.pi * var).sum() + (np.square(rows - mean) / var).sum(axis=1))
            for j in np.flatnonzero(may):
                here = -0.5 * (np.log(2 * np.pi * var[j]) + np.square(rows[:, j] - mean[j]) / var[j])
                out[:, c] += np.where(lost[:, j], gone[j] - here, np.log1p(-np.exp(gone[j])))
        return out

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "classes": [0, 1]},
                {"epsilon": 1.0, "delta": 0.1, "bounds": ([-1, -1, -1], [1, 2, 3]), "classes": ["a", "b", "c"],
                 "neighbours": "add_remove"},
                {"epsilon": 1.0, "delta": 0.1, "bounds": (-1.0, 1.0), "classes": [0, 1]}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of four columns, or three, and classes that depend on them."""
        rng, few = np.random.default_rng(seed), np.size(self.bounds[0]) == 3
        # (of four columns on counts have more than one share)
        X, classes = rng.uniform(-1, 1, size=(n_rows, 3 if few else 4)), np.asarray(self.classes)
        y = np.digitize(X[:, 0], np.linspace(-1, 1, len(classes) + 1)[1:-1])
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]


def _rows_known(noisy, variances, d, missing):
    """Return (noisy numbers of rows with a value, of shape (n_classes, n_features); the variance of their noise)."""
    n, noise = np.repeat(noisy[:, :1], d, axis=1), np.full(d, variances[0])
    n[:, list(missing)], noise[list(missing)] = noisy[:, 1 + 2 * d :], variances[1 + 2 * d :]
    return np.maximum(n, np.maximum(1.0, np.sqrt(noise))), noise


def _missing_logarithms(noisy, variances, d, missing):
    """Return logarithms of shares of missing values, no more than noise allows apart from those of all rows."""
    out = np.full((len(noisy), d), -np.inf)
    if missing:
        rows = np.maximum(noisy[:, :1], max(1.0, math.sqrt(variances[0])))
        tables = [np.stack([there, noisy[:, 0] - there], axis=1) for there in noisy[:, 1 + 2 * d :].T]
        logs = class_logarithms(tables, rows, variances[0] + variances[1 + 2 * d :], 1.0)
        out[:, list(missing)] = np.stack([table[:, 1] for table in logs], axis=1)
    return out


def _moments(noisy, variances, half, missing=()):
    """Return (means, variances) of columns in classes: no more than noise allows apart from those of all rows.

    Parameters
    ----------
    noisy : ndarray of shape (n_classes, 1 + 2 n_features + n_missing)
        Counts, sums and sums of squares; and of columns whose values may be missing, how many are there.
    variances : ndarray of shape (1 + 2 n_features + n_missing,)
        Of the noise in these.
    half : ndarray of shape (n_features,)
        What no value exceeds.
    missing : tuple of int
        These columns.
    """
    d = len(half)
    of_sum, of_square = variances[1 : d + 1], variances[d + 1 : 2 * d + 1]
    n, of_count = _rows_known(noisy, variances, d, missing)
    total, few = n.sum(axis=0), len(n)
    found, squares = np.clip(noisy[:, 1 : d + 1] / n, -half, half), noisy[:, d + 1 : 2 * d + 1]
    middle = np.clip(noisy[:, 1 : d + 1].sum(axis=0) / total, -half, half)
    least = np.minimum(np.sqrt(few * of_square) / total, half**2)  # what noise makes of a variance of all rows
    spread = np.clip(squares.sum(axis=0) / total - middle**2, least, half**2)
    error = noise_apart(n, of_sum) + of_count * np.square(found / n)
    kept = kept_of((found - middle) / np.sqrt(spread), error / spread)
    mean = middle + kept * (found - middle)
    within = np.clip(spread - (n * np.square(mean - middle)).sum(axis=0) / total, least, half**2)
    own = squares / n - np.square(found) + of_sum / n**2
    error_own = of_square / n**2 + 4 * np.square(found) * of_sum / n**2 + 5 * np.square(of_sum / n**2)
    apart = own / within - 1
    apart = kept_of(apart, error_own / within**2) * np.clip(apart, -0.999, None)
    # the noise that is left in a mean is a part of how far rows are from it
    return mean, np.clip((within + 0.5 * least) * (1 + apart) + kept * error, least / 8, half**2)
