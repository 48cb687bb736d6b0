"""Checks of the laws of categories and of the estimates made from them; the data that suit declared categories."""

import importlib.util

import numpy as np
from scipy import stats

from dpestim.testing.law import chi_square
from dpestim.testing.sample import ALPHA, REPEATS, USERS, WRONG_FACTORS, N
from dpestim.testing.tools import require


def check_no_byte_betrays(sample):
    """No byte of a report, nor any bit, is more than e^epsilon times likelier for one input than another.

    The transition matrix speaks about the response *given what is public* (a hash); this looks at all that is sent.
    Each event is tested by 6-sigma intervals, n = 400,000, so that a correct mechanism is not rejected at alpha = 1e-6.
    What `public_part` names must not depend on the input at all. Of a relaxed law every finite promise about all
    outputs counts, for the inputs that it is about.
    """
    for column in sample.columns:
        randomizer, codes, reports = column.randomizer, column.codes.astype(np.int64), column.reports
        n = np.bincount(codes, minlength=randomizer.n_categories)[:, None]
        kinds, every = randomizer.kind_of(column.inputs), np.ones(len(n), bool)
        promised = [
            (*(every if kind == "all" else kinds == kind for kind in p[:2]), np.exp(float(p.epsilon)))
            for p in randomizer.promises if p.outputs == "all" and p.epsilon != np.inf
        ]
        for byte in reports.view(np.uint8).T:
            cells = np.bincount(codes * 256 + byte, minlength=256 * len(n)).reshape(len(n), 256)
            bits = cells @ ((np.arange(256)[:, None] >> np.arange(8)) & 1)
            for seen in (cells, bits):
                share = seen / n
                width = 6 * np.sqrt((share * (1 - share) + 1 / n) / n)
                for one, two, budget in promised:
                    low, high = (share - width)[one].max(axis=0), (share + width)[two].min(axis=0)
                    require((low <= budget * high).all(), "a byte tells inputs apart by more than is promised")
        public = randomizer.public_part(reports)
        for byte in [] if public is None else np.ascontiguousarray(public).view(np.uint8).T:
            cells = np.bincount(codes * 256 + byte, minlength=256 * len(n)).reshape(len(n), 256)
            uniform = np.tile(cells.sum(axis=0) / cells.sum(), (len(n), 1))
            require(chi_square(cells, uniform) > ALPHA / 100, "the public part of a report depends on the input")


def check_support_probabilities(sample):
    """A report supports its own value with probability p*, any other with q* (binomial test, alpha = 1e-6)."""
    for column in sample.columns:
        randomizer, codes, support = column.randomizer, column.codes, column.support
        d = randomizer.n_categories
        require(
            support.shape == (N, d) and support.dtype == np.uint8 and support.max() <= 1,
            "support must return a 0/1 matrix of dtype uint8",
        )
        law = np.array([[float(p) for p in row] for row in randomizer.support_law()])
        limit = stats.norm.isf(ALPHA / (2 * d**2))
        columns = np.ascontiguousarray(support.T)
        seen = np.stack([np.bincount(codes[column != 0], minlength=d) for column in columns], axis=1)
        n = np.bincount(codes, minlength=d)[:, None]
        require((seen[law == 0] == 0).all() and (seen == n)[law == 1].all(), "impossible supports")
        expected = np.clip(law, 1e-12, 1 - 1e-12)
        z = (seen / n - expected) / np.sqrt(expected * (1 - expected) / n)
        require(np.abs(z).max() < limit, "supports do not have the probabilities of support_law")
        # how many supports there are beyond what the law expects
        mine, true = support[np.arange(N), codes], law.diagonal()
        own = mine - true[codes]
        others = columns.sum(axis=0, dtype=np.int64) - mine - (law.sum(axis=1) - true)[codes]
        # all values together: far more sensitive to an error that they share
        for name, excess in (("the own value", own), ("other values", others)):
            spread = excess.std()
            z = excess.mean() / spread * np.sqrt(N) if spread else 0.0
            require(abs(z) < stats.norm.isf(ALPHA / 2), f"support_law is wrong on average for {name}")
        counts = np.zeros(randomizer.n_counts, np.int64)
        randomizer.count(column.reports, counts)
        supporters = randomizer.supporters(counts)
        if supporters is not None:
            same = np.array_equal(supporters, support.sum(axis=0))
            require(same, "what counts say of supporters must be the column sums of support")


def check_estimates_are_unbiased(sample):
    """The mean estimate of 4,000 x 100 users is the truth (z-test, alpha = 1e-6)."""
    for column in sample.columns:
        truth, estimates = column.truth, column.estimates
        error = np.sqrt(column.randomizer.variance(USERS, truth) / REPEATS)
        z = _in_units(estimates.mean(axis=0) - truth, error)
        limit = stats.norm.isf(ALPHA / (2 * truth.size))
        require(np.abs(z).max() < limit, f"estimate is biased: |z| = {np.abs(z).max():.1f}, above {limit:.1f}")


def _in_units(deviation, scale):
    """Return deviations over their scale; where it is 0, as relaxed laws may tell some truths, there must be none."""
    certain = scale == 0
    require((np.abs(deviation[certain]) < 1e-9).all(), "an estimate that is stated to be certain is not")
    return np.divide(deviation, scale, out=np.zeros(deviation.shape), where=~certain)


def check_variance(sample):
    """`variance` is the variance of the estimates (chi-square, alpha = 1e-6); 0.7 and 1.3 times it are rejected."""
    for column in sample.columns:
        truth, estimates = column.truth, column.estimates
        stated = np.broadcast_to(column.randomizer.variance(USERS, truth), truth.shape)
        ratio = _in_units(np.square(estimates - estimates.mean(axis=0)).sum(axis=0), stated)[stated > 0]
        # 2 % more room than chi-square: a mean of 100 reports is not quite normal
        low = stats.chi2.ppf(ALPHA / truth.size, REPEATS - 1) * 0.98
        high = stats.chi2.isf(ALPHA / truth.size, REPEATS - 1) * 1.02
        require(((ratio > low) & (ratio < high)).all(), "variance is not the variance of the estimates")
        for factor in WRONG_FACTORS:
            require(
                ((ratio / factor < low) | (ratio / factor > high)).all(),
                f"the check cannot tell the variance from {factor} times it",
            )


def check_intervals_cover(sample):
    """95 % intervals cover the truth in 95 % of populations, neither seldomer nor oftener (alpha = 1e-6).

    The shared sample is 400 populations of 1,000 users. Their errors, in standard errors at the truth (which
    `variance_line` has), are at most 1.96 for just those truths that an interval covers; that `confidence_interval` is
    made of them is an identity, for which four populations are enough. Cells of a population are dependent, so each
    population counts as one observation: the mean square of the errors then has a standard error of sqrt(2 / 400) =
    0.07, and 4.75 of them tell intervals of 0.7 times the width (a mean square of 2.04) with a power of all but 1e-6,
    and of 1.3 times the width (0.59) with one of 0.96. (Counting the covered among 150 fits told 0.7 with 0.88, and 1.3
    never.)
    """
    each = 1000
    repeats, z = N // each, stats.norm.isf(0.025)
    dtype, errors = sample.fresh().privatize(sample.rows(1)).dtype, []
    for column in sample.columns:
        randomizer, truth = column.randomizer, column.truth
        for part in column.reports.reshape(repeats, each, -1):
            counts = np.zeros(randomizer.n_counts, np.int64)
            randomizer.count(part, counts)
            stated = _standard_error(randomizer, counts, each, truth)
            errors.append(_in_units(randomizer.estimate(counts, each) - truth, stated)[stated > 0])
    together = np.concatenate(errors)
    room = stats.norm.isf(ALPHA)
    covered, square = np.mean(np.abs(together) <= z), np.mean(np.square(together))
    right = abs(covered - 0.95) < room * np.sqrt(0.95 * 0.05 / repeats)
    right = right and abs(square - 1) < room * np.sqrt(2 / repeats)
    require(right, f"95 % intervals cover {covered:.3f} of the truths, mean squared error {square:.2f} of the stated")
    reports = np.hstack([column.reports.astype(dtype) for column in sample.columns])
    populations = reports.reshape(repeats, each, -1)[:4]
    for part in (*populations, populations[0][:20]):  # (of few users some estimates are negative)
        each = len(part)
        est, parts = sample.fresh(postprocess=None).aggregate(part), np.split(part, _edges(sample), axis=1)
        told = est.frequencies_, est.standard_errors_, est.confidence_interval(0.95)
        for column, mine, f, error, ends in zip(sample.columns, parts, *told):
            counts = np.zeros(column.randomizer.n_counts, np.int64)
            column.randomizer.count(np.ascontiguousarray(mine, column.randomizer.report_dtype), counts)
            require(np.allclose(f, column.randomizer.estimate(counts, each), atol=1e-9),
                    "frequencies without a method of post-processing must be the unbiased estimates of the law")
            stated = _standard_error(column.randomizer, counts, each, f)
            require(np.allclose(error, stated, atol=1e-9), "a standard error is not that of the law at the estimate")
            for end, side in zip(ends.T, (-z, z)):
                stated = f + side * _standard_error(column.randomizer, counts, each, end)
                require(np.allclose(end, stated, atol=1e-9), "an interval does not end z standard errors away")


def _standard_error(randomizer, counts, n, f):
    """Return the standard errors of the estimates where frequencies are f, as far as the counts tell."""
    at_zero, slope = randomizer.variance_line(counts, n)
    return np.sqrt(np.maximum(at_zero + slope * np.clip(f, 0.0, 1.0), 0.0) / n)


def _edges(sample):
    return np.cumsum([column.randomizer.report_width for column in sample.columns])[:-1]


def check_transform(sample):
    """`transform` gives the 0/1 support matrix; fit_transform is one randomisation, which is counted."""
    X = sample.rows(30)
    est = sample.fresh().fit(X)
    support, names = est.transform(X), est.get_feature_names_out()
    width = sum(len(c) for c in est.categories_)
    require(support.shape == (30, width) == (30, len(names)), "transform must have one column for each category")
    require(support.dtype == np.uint8 and set(np.unique(support)) <= {0, 1}, "transform must return 0/1 in uint8")
    once = sample.fresh()
    require(np.array_equal(once.fit_transform(X), support), "fit_transform must equal fit and transform")
    same = all(np.array_equal(a, b) for a, b in zip(once.frequencies_, est.frequencies_))
    require(same, "fit_transform must count the reports it returns")
    sparse = sample.fresh(sparse_output=True).fit(X).transform(X)
    require(np.array_equal(sparse.toarray(), support), "sparse_output must hold the same matrix")


class Categories:
    """The data that the checks of behaviour need for declared categories."""

    #: parameters with which the domain is learned from data
    undeclared = {"categories": "auto"}
    secret = "value-that-must-not-be-shown"
    shown = (secret, "8888")

    @staticmethod
    def clipped(client, X):
        """Return rows as a fitted client takes them."""
        return X

    @staticmethod
    def any_width(client):
        """Tell whether the declared domain suits any number of columns."""
        return False

    @staticmethod
    def probes(client, column):
        """Return every value that a column may have."""
        values = np.empty(len(client.categories[column]), dtype=object)
        values[:] = list(client.categories[column])
        return values

    @staticmethod
    def declared_relaxed(client, column, values):
        """Tell which values the parameters name as having less protection."""
        if hasattr(client, "distance"):  # whose promise is about all values
            return np.ones(len(values), bool)
        named = getattr(client, "low_sensitivity", None) or getattr(client, "non_sensitive", None)
        return np.array([named is not None and value in list(named[column]) for value in values.tolist()])

    @classmethod
    def relaxed_inputs(cls, client, column):
        """Return how the name of a relaxation must call the values that the parameters name, in the domain's order."""
        values = cls.probes(client, column)
        inside = cls.declared_relaxed(client, column, values)
        plain = [v.item() if isinstance(v, np.generic) else v for v in values.tolist()]
        if hasattr(client, "distance"):
            return f"{plain!r}, {client.randomizer(column).relaxed_name}"
        text = ", ".join(repr(v) for v, low in zip(plain, inside) if low)
        # in strict mode what is not declared counts as the first category
        return f"[{text}{f', and any value not in {plain!r}' if inside[0] else ''}]"

    @staticmethod
    def other_domain(client):
        """Return the parameter of another domain that the same rows suit."""
        return {"categories": [list(values)[::-1] for values in client.categories]}

    @staticmethod
    def rows(X):
        """Return rows that survive any container."""
        return X

    @staticmethod
    def containers(X):
        """Yield (name, the same rows in another container or dtype)."""
        names = [f"c{j}" for j in range(X.shape[1])]
        if importlib.util.find_spec("pandas"):
            import pandas as pd

            yield "pandas categorical", pd.DataFrame({c: list(X[:, j]) for j, c in enumerate(names)}).astype("category")
        kinds = {type(v) for v in X.ravel()}
        if kinds == {int}:
            low, high = min(X.ravel()), max(X.ravel())
            for dtype in (t for t in "bhilqBHILQ" if np.iinfo(t).min <= low and high <= np.iinfo(t).max):
                yield f"dtype {np.dtype(dtype)}", X.astype(dtype)
            if max(-low, high) < 1 << 53:
                yield "float", X.astype(float)
        if kinds == {str}:
            yield "fixed-width strings", X.astype(str)

    @classmethod
    def strange(cls, X):
        """Return rows with values that nobody declared."""
        X = X.copy()
        X[3, -1], X[4, -1] = cls.secret, None
        return X

    @classmethod
    def bad_rows(cls, estimator, X):
        """Yield (what is wrong, rows, whether the error must name the last column)."""
        for name, value in (("an unknown category", cls.secret), ("None", None), ("NaN", float("nan"))):
            bad = X.copy()
            bad[7, -1] = value
            yield name, bad, True
        bad = np.full(X.shape, cls.secret, dtype=object)
        yield "one dimension", bad[:, -1], False
        yield "no dimension", np.array(cls.secret, dtype=object), False
        yield "rows of unequal length", [[cls.secret], [cls.secret, cls.secret]], False
        yield "a masked array", np.ma.array(bad, mask=X[0] == X), False
        yield "complex numbers", np.full(X.shape, 8888j), False

    @staticmethod
    def bad_params(estimator):
        """Yield (what is wrong, parameters)."""
        lists = estimator.categories
        yield "a domain of one value", {"categories": [[c[0]] for c in lists]}
        yield "repeated categories", {"categories": [[c[0], c[0]] for c in lists]}
        yield "no categories", {"categories": []}
        yield "an unknown postprocess", {"postprocess": "no such function"}


LAW_CHECKS = (
    check_no_byte_betrays,
    check_support_probabilities,
    check_estimates_are_unbiased,
    check_variance,
    check_intervals_cover,
)
ESTIMATOR_CHECKS = (check_transform,)
