"""From reports of one column to features of a plain model: what is known of the true value, corrected for the noise."""

import numpy as np

from dpestim.local.categories.column import CategoryColumn
from dpestim.local.estimates.model import BINS, chosen, model_of
from dpestim.local.reports import CodeReports
from dpestim.parallel import one_thread
from dpestim.postprocessing import norm_sub

#: Iterations, and the tolerance, of the distribution of a column of numbers.
_MOST_STEPS, _TOLERANCE = 10_000, 1e-3


def feature_of(column, prior):
    """Return what makes features of a column; `prior` is its estimated distribution, or None."""
    if isinstance(column, CategoryColumn):
        return _Categories(column, prior)
    return (_NumbersOrMissing if column.may_be_missing else _Numbers)(column, prior)


class _Categories:
    """One feature for each category."""

    def __init__(self, column, prior):
        self.column, self.law, self.known = column, column.law, prior

    @property
    def _has_odds(self):
        return self.law.support_odds is not None

    @property
    def _is_pure(self):
        return self.law.n_counts == self.law.n_categories and self.law.support_pair() is not None

    def check(self, correction):
        """Raise ValueError where the law does not tell what a correction needs; before anything is paid."""
        told = isinstance(self.law, CodeReports) or {None: True, "unbiased": self._is_pure,
                                                     "posterior": self._has_odds}[correction]
        if not told:
            raise ValueError(f"correction={correction!r} is not available for the law of {self.column.name}: take "
                             "another correction")

    def prior(self, counts, n):
        """Return the distribution of the values, none of them quite impossible."""
        shares = np.maximum(norm_sub(self.law.estimate(counts, n)), 1 / (n + 1))
        return shares / shares.sum()

    def of_reports(self, reports, correction):
        """Return the features of reports of this column."""
        if correction == "posterior":
            likely = self.known * self.law.likelihoods(reports)
            return likely / likely.sum(axis=1, keepdims=True)
        if correction == "unbiased" and not self._is_pure:
            numbers = [self.law.numbers_for(row)[0] for row in np.eye(self.law.n_categories)]
            return np.array(numbers).T[reports[:, 0].astype(np.int64)]
        supports = self.law.support(reports).astype(np.float64)
        if correction is None:
            return supports
        p, q = (np.asarray(part, np.float64) for part in self.law.support_pair())
        return (supports - q) / (p - q)

    def draws(self, rng, n):
        """Return the features of n values of the estimated distribution."""
        return np.eye(len(self.known))[rng.choice(len(self.known), n, p=self.known / self.known.sum())]

    def of_values(self, values, n_jobs):
        """Return the features of true values; what is no category has none."""
        n = self.law.n_categories
        codes = self.column.encoder.read(values, np.dtype(np.uint32), n, n_jobs)[0]
        out = np.zeros((len(codes), n + 1))
        out[np.arange(len(codes)), codes] = 1.0
        return out[:, :n]


class _Numbers:
    """One feature: the number."""

    def __init__(self, column, prior):
        self.column, self.law, self.known = column, column.law, prior

    def check(self, correction):
        """Raise ValueError where the law does not tell what a correction needs; before anything is paid."""
        if correction == "unbiased":
            self.column.check_mean()
        elif correction == "posterior":
            self.column.shape_law.channel(BINS)

    def prior(self, counts, n):
        """Return the shares of bins, from all reports."""
        with one_thread():
            return chosen(self.law, counts, _MOST_STEPS, _TOLERANCE).shares

    def of_reports(self, reports, correction):
        """Return the feature of reports of this column."""
        codes = reports[:, 0].astype(np.int64)
        if correction is None:
            return self.column.decode(reports)
        if correction == "unbiased":
            (numbers, _), (zero, unit) = self.column.mean_values(), self.column.mean_scale
            return (zero + unit * np.asarray(numbers, np.float64))[codes, None]
        model = model_of(self.law, BINS)
        seen = np.maximum(self.known @ model.rows, 1e-300)
        means = (self.known * model.middles) @ model.rows / seen
        return self.column.to_units(means)[model.output[codes], None]

    def draws(self, rng, n):
        """Return the feature of n values of the estimated distribution."""
        middles = model_of(self.law, BINS).middles
        return self.column.to_units(rng.choice(middles, n, p=self.known / self.known.sum()))[:, None]

    def of_values(self, values, n_jobs):
        """Return the feature of true values, clipped to the bounds."""
        return np.clip(np.asarray(values, np.float64), self.column.low, self.column.high)[:, None]


class _NumbersOrMissing:
    """Two features: the number, the middle of the bounds where it is missing; and 1 where it is missing, else 0."""

    def __init__(self, column, prior):
        self.column, self.law, self.known = column, column.law, prior

    def check(self, correction):
        """Raise ValueError where the law does not tell what a correction needs; before anything is paid."""
        _Numbers.check(self, correction)

    def prior(self, counts, n):
        """Return the shares of bins, and behind them that of missing values, from all reports."""
        missing = min(max(self.column.missing_share(counts)[0], 1 / (n + 1)), 1 - 1 / (n + 1))
        shares = self.column.shape_counts(counts)
        with one_thread():
            there = chosen(self.column.shape_law, shares, _MOST_STEPS, _TOLERANCE).shares if shares.any() else (
                np.full(BINS, 1 / BINS))
        return np.append((1 - missing) * self.column.unmixed(counts, there), missing)

    def of_reports(self, reports, correction):
        """Return the features of reports of this column."""
        codes, (p, q) = reports[:, 0].astype(np.int64), map(float, self.law.says_missing)
        if correction == "posterior":
            return self._expected(p, q)[codes]
        said = (np.arange(self.law.n_counts) == self.law.n_counts - 1).astype(np.float64)
        if correction is None:
            numbers = np.nan_to_num(self.law.positions, nan=0.5)
        else:
            numbers = 0.5 + np.append((self.column.shape_law.mean_values()[0] - 0.5) / (1 - q), 0.0)
            said = (said - q) / (p - q)
        return np.stack([self.column.to_units(numbers), said], axis=1)[codes]

    def _expected(self, p, q):
        """Return the expectations of both features for each code, given the distribution."""
        model, (*there, missing) = model_of(self.column.shape_law, BINS), self.known
        there, even = np.array(there), np.full(BINS, 1 / BINS)
        # (of every output of the channel, and of "missing", which numbers and missing values may say)
        own = np.append((1 - q) * (there @ model.rows), q * there.sum())
        none = missing * np.append((1 - p) * (even @ model.rows), p)
        numbers = np.append((1 - q) * ((there * model.middles) @ model.rows), q * (there @ model.middles))
        seen = np.maximum(own + none, 1e-300)
        both = np.stack([self.column.to_units((numbers + 0.5 * none) / seen), none / seen], axis=1)
        return both[np.append(model.output, len(both) - 1)]

    def draws(self, rng, n):
        """Return the features of n values of the estimated distribution."""
        at = rng.choice(BINS + 1, n, p=self.known / self.known.sum())
        middles = np.append(model_of(self.column.shape_law, BINS).middles, 0.5)
        return np.stack([self.column.to_units(middles[at]), at == BINS], axis=1).astype(np.float64)

    def of_values(self, values, n_jobs):
        """Return the features of true values, clipped to the bounds."""
        values = np.asarray(values, np.float64)
        gone = np.isnan(values)
        clipped = np.where(gone, self.column.middles[0], np.clip(values, self.column.low, self.column.high))
        return np.stack([clipped, gone], axis=1).astype(np.float64)
