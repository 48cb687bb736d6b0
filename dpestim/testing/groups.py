"""Checks of what estimates from users of different settings: who is told apart, who pays, whose words are whose."""

from itertools import combinations

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.testing.behaviour import check_given
from dpestim.testing.sample import ALPHA
from dpestim.testing.tools import Book, client_of, refuses, require, with_params

#: Groups whose words are compared: more than an error in the first numbers would show in.
_GROUPS = 5


def check_estimator_is_given(sample):
    """The estimator that was given is never touched, and what is none is refused."""
    check_given(sample, "estimator")


def check_groups_are_public(sample):
    """A row without a group of the settings is refused before it is paid; in strict mode there are no groups."""
    settings = sample.estimator.settings
    if settings is None:
        return
    X, book = sample.rows(20), Book()
    est = sample.fresh(ledger=book).fit(X)
    paid = len(book.paid)
    for group in (max(settings) * 2, None):
        bad = X.astype(object)
        bad[7, est.group_column] = group
        for verb in ("privatize", "fit", "partial_fit", "score"):
            message = refuses(lambda verb=verb, bad=bad: getattr(est, verb)(bad), "a row without a group", est)
            require("column" in message, "the error does not name the column of groups")
    require(len(book.paid) == paid and not book.scores, "a row without a group must be refused before anything is paid")
    with config_context(strict=True):
        strict = sample.fresh()
        for verb in ("privatize", "fit", "partial_fit", "score"):
            refuses(lambda verb=verb: getattr(strict, verb)(X), "a column of groups in strict mode")
    refuses(lambda: strict.fit(X), "a column of groups for what was made in strict mode")


def check_groups_pay_once(sample):
    """A call costs the largest epsilon of the groups that are in it, once; each group states its own."""
    settings = sample.estimator.settings or {None: {}}
    X, book = sample.rows(60), Book()
    est = sample.fresh(ledger=book).fit(X)
    own = est.guarantee_by_group_
    require(list(own) == list(settings), "every group must state its guarantee")
    worst = max(g.epsilon for g in own.values())
    require(est.privacy_.epsilon == worst, "privacy_ must be that of the worst group")
    require(book.paid[0][0].epsilon == worst, "a call must cost what the worst of its groups has")
    for group, server in est.estimators_.items():
        require(own[group].epsilon == server.privacy_.epsilon, "the guarantee of a group is not that of its law")
        rows = X if sample.estimator.settings is None else X[X[:, est.group_column] == group]
        est.privatize(rows)
        right = book.paid[-1][0].epsilon == own[group].epsilon and book.paid[-1][2] == len(rows)
        require(right, "rows of one group must cost what that group's setting promises")
    require(len(book.paid) == 1 + len(est.estimators_), "each call, and nothing else, must be charged once")
    for group, guarantee in own.items():
        if guarantee.relaxation is not None:
            named = est.privacy_.relaxation is not None and guarantee.relaxation in est.privacy_.relaxation
            require(named, f"the relaxation of group {group!r} must be named in full")
            enough = est.privacy_.relaxed_epsilon >= guarantee.relaxed_epsilon
            require(enough, "a relaxed account must not be charged too little")


def check_groups_share_no_words(sample):
    """Under one seed no group repeats the noise of another one, whichever two of five are compared.

    All rows have the same values and all groups the same setting, so fields of the reports of two groups agree as often
    as chance says (binomial test, n = 2,000 rows, alpha = 1e-6 for all pairs together), and oftener if some words are
    the same. Fields that agree everywhere are rejected.
    """
    settings = sample.estimator.settings
    if settings is None:
        return
    one, n = next(iter(settings)), 2000
    names = [f"group {k}" if isinstance(one, str) else k for k in range(_GROUPS)]
    twins = clone(sample.estimator).set_params(settings={name: settings[one] for name in names})
    X, column = sample.rows(60).astype(object), sample.estimator.group_column
    X = np.repeat(X[X[:, column] == one][:1], n * _GROUPS, axis=0)
    X[:, column] = np.array(names, object)[np.arange(len(X)) % _GROUPS]
    reports = with_params(twins, random_state=0).privatize(X)[:, 1:]
    pairs, able = list(combinations(range(_GROUPS), 2)), False
    alpha = ALPHA / (len(pairs) * reports.shape[1])
    for field in reports.T:
        seen, values = np.unique(field, return_inverse=True)
        parts = [values[k::_GROUPS] for k in range(_GROUPS)]
        rates = np.array([np.bincount(part, minlength=len(seen)) for part in parts]) / n
        for a, b in pairs:
            chance, same = rates[a] @ rates[b], (parts[a] == parts[b]).sum()
            able = able or stats.binom.sf(n - 1, n, chance) < alpha
            alike = same > n * chance and stats.binom.sf(same - 1, n, chance) < alpha
            require(not alike, "two groups have the same noise under one seed")
    require(able, "the check cannot tell words of two groups from the same ones")


def check_estimates_cover(sample):
    """95 % intervals of stratified frequencies and means cover the truth where groups differ in their values.

    Up to a binomial test at alpha = 1e-6 (100 times 1,000 users).
    """
    est = clone(sample.estimator).set_params(weights="stratified")
    if not (hasattr(type(est.estimator), "standard_error_") or hasattr(type(est.estimator), "frequencies_")):
        return
    repeats, each, covered, n = 100, 1000, 0, 0
    X = _uneven(sample, repeats * each)
    reports = with_params(clone(est), random_state=0).privatize(X)
    data = X if est.settings is None else np.delete(X, est.group_column, axis=1)
    for rows, part in zip(np.split(data, repeats), np.split(reports, repeats)):
        server = clone(est).aggregate(part)
        interval = server.confidence_interval(0.95)
        if hasattr(type(est.estimator), "frequencies_"):
            low, high = interval[0].T
            truth = np.array([np.mean(rows[:, 0] == category) for category in server.categories_[0]])
        else:
            (low, high), column = np.transpose(interval), rows.astype(float)
            bounds = client_of(est).bounds
            truth = np.clip(column, *bounds).mean(axis=0)
        covered, n = covered + int((low[0] <= truth[0]) & (truth[0] <= high[0])), n + 1
    room = stats.norm.isf(ALPHA) * np.sqrt(0.95 * 0.05 / n)
    require(covered / n > 0.95 - room, f"95 % intervals cover {covered / n:.3f} of the truths")


def _uneven(sample, n):
    """Return rows of which most are of the first group, whose values are larger than those of the others."""
    X = sample.rows(2000)
    if sample.estimator.settings is None:
        return sample.rows(n)
    column = sample.estimator.group_column
    first = X[:, column] == next(iter(sample.estimator.settings))
    value = X[:, 1 if column == 0 else 0]
    ranks = np.unique(value.astype(str) if value.dtype == object else value, return_inverse=True)[1]
    high = ranks > np.median(ranks[first])
    often = np.where(first, np.where(high, 8.0, 2.0), np.where(high, 0.5, 2.0))
    return X[np.random.default_rng(5).choice(len(X), n, p=often / often.sum())]


ESTIMATOR_CHECKS = (check_estimator_is_given, check_groups_are_public, check_groups_pay_once,
                    check_groups_share_no_words,
                    check_estimates_cover)
