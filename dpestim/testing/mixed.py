"""Checks of what estimates columns of several kinds from one report a user: whose epsilon, words and columns."""

import itertools
from fractions import Fraction

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.divergence import as_integers
from dpestim.privacy.exact import canonical_epsilon, exp_lower
from dpestim.testing.rows import sampled_as_stated
from dpestim.testing.sample import ALPHA, reports_of
from dpestim.testing.tools import Book, refuses, require, same_state, snapshot

#: Users of every repetition of the check of intervals, and repetitions.
_EACH, _REPEATS = 500, 120


class Mixed:
    """The data that the checks of behaviour need for rows of several kinds."""

    #: parameters with which nothing is declared
    undeclared = {"transformers": []}

    @staticmethod
    def strange(X):
        """Return rows with values that nobody declared."""
        X = X.copy()
        X[3], X[4], X[5] = np.nan, np.inf, -8888.0
        return X


def check_row_promises(sample):
    """Any two rows' reports have ratios of at most e^epsilon, by their laws as Fractions; the statement says so.

    The worst ratio of a row is the product of those of the columns that it reports, the worst ones; it is at most
    e^epsilon, and at least e^(0.99 epsilon), for each of the columns' laws as they stand.
    """
    est = sample.fresh().fit(sample.rows(20))
    epsilon, k = canonical_epsilon(est.epsilon), est.n_sampled_
    ratios = []
    for column in sample.columns:
        rows = column.whole
        ratios.append(max(max(Fraction(max(p), min(p)) for p in zip(*rows)), Fraction(1)))
    worst = Fraction(1)
    for ratio in sorted(ratios)[-k:]:
        worst *= ratio
    require(worst <= exp_lower(epsilon), "the report of a row tells more than its epsilon")
    require(worst >= exp_lower(epsilon * Fraction(99, 100)), "a row does not use its epsilon")
    require(est.privacy_.epsilon == epsilon, "privacy_ is not the epsilon of the row")


def check_row_by_enumeration(sample):
    """The whole law of two-column rows, enumerated: every report of every row has at most e^epsilon times any other's.

    Reports of the first two columns (and which of them is drawn) as products of the laws that the columns have.
    """
    columns = sample.fresh().fit(sample.rows(20))._columns
    if not columns.n_sampled and len(columns) > 2:
        return
    first, second = ([list(map(Fraction, row)) for row in column.matrix] for column in sample.columns[:2])
    pairs, limit = list(itertools.product((0, -1, len(first) // 2), (0, -1, len(second) // 2))), exp_lower(
        canonical_epsilon(sample.estimator.epsilon))
    laws = []
    for a, b in pairs:
        drawn = columns.n_sampled == 1
        law = [*first[a], *second[b]] if drawn else [p * q for p in first[a] for q in second[b]]
        laws.append(law)
    whole = as_integers(laws)[0]
    for one, other in itertools.permutations(whole, 2):
        require(all(p <= limit * q for p, q in zip(one, other)), "a report of a whole row tells more than its epsilon")


def check_row_as_stated(sample):
    """All that is sent is what the columns' laws make of words of their own, and who drew what follows no value."""
    X = sample.rows(600)
    est = sample.fresh(random_state=3).fit(X)
    columns, reports = est._columns, est.privatize(X)
    data = est._read(X)[0]
    if columns.n_sampled:
        require(sampled_as_stated(columns, reports, data, 3), "a report holds something else than its columns' laws")
        drawn = reports.reshape(len(X), columns.n_sampled, -1)[:, :, 0]
        turned = sample.fresh(random_state=3).fit(X).privatize(X[::-1]).reshape(len(X), columns.n_sampled, -1)
        require(np.array_equal(drawn, turned[:, :, 0]), "which columns are drawn depends on the values")
        return
    for number, (column, values) in enumerate(zip(columns, data)):
        wanted = reports_of(column.law, np.array(column.coder()(np.ascontiguousarray(values))), 3, number)
        same = np.array_equal(reports[:, columns.slices[number]], wanted)
        require(same, "a report holds something else than its columns' laws")


def check_one_ledger(sample):
    """One ledger pays once for a row; budgets, seeds and ledgers of clients are refused, and clients stay as given."""
    X, book = sample.rows(30), Book()
    est = sample.fresh(ledger=book)
    before = snapshot(est)["transformers"]
    est.fit(X).partial_fit(X[:9])
    est.privatize(X[:7])
    for free in ("means_", "frequencies_", "standard_errors_", "named_estimators_"):
        getattr(est, free)
    require([n for _, _, n, _ in book.paid] == [30, 9, 7], "each release, and nothing else, must be charged once")
    require(all(g.epsilon == est.privacy_.epsilon for g, _, _, _ in book.paid), "the charge is not privacy_")
    require(same_state(before, snapshot(est)["transformers"]), "the clients that were given must not change")
    given = sample.estimator.transformers
    for name, value in (("epsilon", 0.5), ("epsilon", None), ("ledger", book), ("random_state", 0), ("n_jobs", 1)):
        for number, (own, client, columns) in enumerate(given):
            bad = clone(client)
            (bad.transformer if hasattr(bad, "transformer") else bad).set_params(**{name: value})
            trial = sample.fresh(transformers=[*given[:number], (own, bad, columns), *given[number + 1 :]], ledger=book)
            message = refuses(lambda trial=trial: trial.fit(X), f"{name} of a client")
            require(name in message and own in message, "the error must name the client and the parameter")
    require(len(book.paid) == 3, "a refusal must come before anything is paid")


def check_mixed_input(sample):
    """Bad rows and choices are ValueErrors that name the column or parameter, show no value, and cost nothing."""
    X, book = sample.rows(20), Book()
    est = sample.fresh(ledger=book).fit(X)
    used = [v for _, _, columns in sample.estimator.transformers for v in columns]
    for j in used:
        for value in (np.nan, np.inf):
            bad = X.copy()
            bad[7, j] = value
            for verb in ("privatize", "fit", "partial_fit"):
                message = refuses(lambda verb=verb, bad=bad: getattr(est, verb)(bad), f"{value} in column {j}", est)
                require(f"column {j}" in message, "the error must name the column of X")
    dropped = next(j for j in range(X.shape[1]) if j not in used)
    free = X.copy()
    free[:, dropped] = np.nan
    require(np.array_equal(est.privatize(free), est.privatize(X)), "a column that is dropped must not be looked at")
    one = sample.estimator.transformers[0]
    for what, name, value in (
        ("no clients", "transformers", []), ("none", "transformers", None), ("no list", "transformers", "grr"),
        ("a client that is none", "transformers", [("a", object(), [0])]),
        ("two clients of one column", "transformers", [one, ("again", one[1], one[2])]),
        ("two clients of one name", "transformers", [one, one]),
        ("a column beyond the last", "transformers", [(one[0], one[1], [99] * len(one[2]))]),
        ("no column", "transformers", [(one[0], one[1], [])]),
        ("a name where X has none", "transformers", [(one[0], one[1], "age")]),
        ("another strategy", "strategy", "both"), ("draws of none", "n_sampled", 0), ("half a draw", "n_sampled", 0.5),
        ("draws of True", "n_sampled", True), ("too many draws", "n_sampled", 99), ("a number", "shares", 3),
        ("shares of others", "shares", {"a": 1}),
        *(("an epsilon", "epsilon", e) for e in (0, -1.0, np.inf, np.nan, "1", True)),
    ):
        trial = sample.fresh(**{name: value}, ledger=book)
        message = refuses(lambda trial=trial: trial.fit(X), what)
        require(name in message and not hasattr(trial, "n_users_"), f"the error for {what} must name {name}")
    require(len(book.paid) == 3, "what is refused must cost nothing")


def check_mixed_estimates(sample):
    """95 % intervals of shares and means of all columns cover the truth (binomial test, alpha = 1e-6, 120 x 500 users).

    Also those of columns that are drawn, whose estimates are unbiased (z-test); intervals half as wide are rejected.
    """
    X = sample.rows(_EACH * 20)
    X = X[np.random.default_rng(8).choice(len(X), _EACH * _REPEATS)]
    reports = sample.fresh().privatize(X)
    covered, half, scores, n = 0, 0, [], 0
    for rows, part in zip(np.split(X, _REPEATS), np.split(reports, _REPEATS)):
        est = sample.fresh().aggregate(part)
        intervals, errors = est.confidence_interval(0.95), est.standard_errors_
        own = []
        for j, interval in intervals.items():
            if j in est.frequencies_:
                truth, got = np.array([np.mean(rows[:, j] == c) for c in est.categories_[j]]), est.frequencies_[j]
            else:
                low, high = next(c for c in est._columns if c.name == f"column {j}").lows[0], next(
                    c for c in est._columns if c.name == f"column {j}").highs[0]
                truth, got, interval = np.clip(rows[:, j], low, high).mean(), est.means_[j], interval[None]
            z = np.atleast_1d((got - truth) / errors[j])[0]
            low, high = interval[0]
            truth = np.atleast_1d(truth)[0]
            covered, n = covered + int(low <= truth <= high), n + 1
            half += int((3 * low + high) / 4 <= truth <= (low + 3 * high) / 4)
            own.append(z)
        scores.append(own)
    room = stats.norm.isf(ALPHA) * np.sqrt(0.95 * 0.05 / n)
    require(covered / n > 0.95 - room, f"95 % intervals cover {covered / n:.3f} of the truths")
    require(half / n < 0.95 - room, "the check cannot tell intervals from half of them")
    z = np.abs(np.mean(scores, axis=0)) * np.sqrt(_REPEATS)
    require((z < stats.norm.isf(ALPHA) * 1.2).all(), f"an estimate is biased: |z| = {z.max():.1f}")


ESTIMATOR_CHECKS = (check_row_promises, check_row_by_enumeration, check_row_as_stated, check_one_ledger,
                    check_mixed_input, check_mixed_estimates)
