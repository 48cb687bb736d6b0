"""Reports on runs of a program: what one block moves, the law of flips, who pays, and estimates without bias."""

import math
import pickle
import warnings
from itertools import product

import numpy as np
from scipy import sparse, stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, in_strict_mode
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state

#: Runs whose flips are looked at, fits whose mean is, and the significance.
RUNS, FITS, ALPHA = 4_000, 60, 1e-7


class Covered(Subject):
    """An estimator of coverage, and how it is used."""

    wrong = {"relation": (None, "all", 1), "max_blocks": (0, 1.5, True, None, "a"), "entry": (99, "nowhere", [0]),
             "flow": (None, 3, "ab", {}, {0: [0]}, {0: [1], 1: [], 2: [1]}, np.ones((2, 3)), {0: 1}, {0: [[1]]})}

    def checks(self):
        """Return the checks of what estimates coverage."""
        return CHECKS

    def rows(self, n=None, seed=0):
        """Return runs."""
        return self.estimator._test_data(n or 12, seed)[0]

    def use(self, est):
        """Release once."""
        est.privatize(self.rows())

    def names(self, name, message):
        """Tell whether the error about a wrong parameter names it: an entry is looked for in flow."""
        return name in message or (name == "entry" and "flow" in message)


def check_coverage_keeps_epsilon(covered):
    """With the same noise, each block moves one bit of a report, its own; a bit costs no more than is declared."""
    est, X = covered.fresh(), covered.rows(6)
    size, flow = X.shape[1] - 1, est._checked()
    law, promise = est._law(flow), est.privacy_
    each = math.log(float((1 - law.flip) / law.flip))
    most = 1 if est.relation == "strict" else size
    require(each * most <= float(promise.epsilon) * (1 + 1e-12), "any two runs differ by more than epsilon")
    near = promise.epsilon if promise.relaxation is None else promise.relaxed_epsilon
    require(near == canonical_epsilon(est.epsilon), "epsilon must be the one that is declared")
    if promise.relaxation is not None:
        require(each * est.max_blocks <= float(near) * (1 + 1e-12), "near runs differ by more than epsilon")
    before, moved = est.privatize(X), 0
    for run, block in product(range(len(X)), range(X.shape[1])):
        other = X.copy()
        other[run, block] ^= 1
        changed = _bits(est, covered.fresh().privatize(other)) != _bits(est, before)
        require(not np.delete(changed, run, axis=0).any(), "a run moves reports of others")
        require(changed.sum() <= (block != flow.entry), "a block moves more than its own bit")
        moved += changed.sum()
    require(0 < moved <= size * len(X), "blocks must be reported")


def _bits(est, reports):
    """Return the numbers of reports, bit by bit."""
    if est.relation == "strict":
        return np.concatenate([reports >> 1, reports & 1], axis=1)
    return np.unpackbits(reports, axis=1, bitorder="little")


def check_coverage_follows_law(covered):
    """Bits flip with their probability, and blocks are drawn alike; the test rejects other flips."""
    est, X = covered.fresh(), covered.rows(RUNS)
    flow, reports = est._checked(), est.privatize(X)
    size, flip = X.shape[1] - 1, float(est._law(flow).flip)
    runs = X[:, np.arange(X.shape[1]) != flow.entry]
    if est.relation == "strict":
        drawn = (reports[:, 0] >> 1).astype(int)
        require(stats.chisquare(np.bincount(drawn, minlength=size)).pvalue > ALPHA, "blocks are not drawn alike")
        flipped = (reports[:, 0] & 1) != runs[np.arange(RUNS), drawn]
    else:
        flipped = np.unpackbits(reports, axis=1, count=size, bitorder="little") != runs
    k, n = int(flipped.sum()), flipped.size
    require(stats.binomtest(k, n, flip).pvalue > ALPHA, "bits do not flip as stated")
    require(stats.binomtest(k, n, flip * 0.7).pvalue < ALPHA, "the test sees no other law")
    parts = flipped.reshape(-1)
    require(abs(np.corrcoef(parts[1:], parts[:-1])[0, 1]) * math.sqrt(n) < 6, "bits do not flip independently")


def check_coverage_estimates(covered):
    """Estimates are unbiased, fall along the tree, merge, and have intervals that hold at once."""
    X = covered.rows(60)
    truth, found, held = X.sum(0), [], 0
    for seed in range(FITS):
        est = covered.fresh(random_state=seed).fit(X)
        found.append(np.nan_to_num(est.noisy_counts_))
        low, high = est.confidence_interval(0.6)
        held += ((low <= truth) & (truth <= high)).all()
        inner = est.dominators_ >= 0
        require((est.counts_[inner] <= est.counts_[est.dominators_[inner]] + 1e-9).all(), "counts must fall")
        require((low <= est.counts_).all() and (est.counts_ <= high).all(), "intervals must hold the counts")
    error = np.std(found, axis=0) / math.sqrt(FITS) + 1e-9
    require((np.abs(np.mean(found, axis=0) - truth) < 5.5 * error).all(), "estimates are biased")
    require(held >= 0.6 * FITS - 4.5 * math.sqrt(0.24 * FITS), "intervals do not hold")
    one, two = covered.fresh(random_state=0).fit(X), covered.fresh(random_state=1).fit(X[:30])
    both = covered.fresh().aggregate(covered.fresh(random_state=0).privatize(X))
    both.aggregate(covered.fresh(random_state=1).privatize(X[:30]))
    merged = pickle.loads(pickle.dumps(one)).merge(two)
    require(np.array_equal(merged.counts_, both.counts_) and merged.n_users_ == 90, "merging must add reports")
    refuses(lambda: one.merge(one), "merging with itself", one)
    refuses(lambda: one.merge(covered.fresh(epsilon=0.3).fit(X)), "another law", one)


def check_coverage_containers(covered):
    """Arrays, sparse matrices and frames give the same reports."""
    X = covered.rows()
    wanted = covered.fresh().privatize(X)
    for other in (X.astype(bool), X.astype(float), np.asfortranarray(X), sparse.csr_array(X), sparse.coo_matrix(X)):
        require(same_state(covered.fresh().privatize(other), wanted), f"{type(other).__name__} gives other reports")


def check_coverage_charges(covered):
    """A release is charged once, before noise is drawn; bad input is refused before that."""
    check_parameters_are_refused(covered)
    X = covered.rows()
    for verb in ("privatize", "fit"):
        est = covered.fresh(ledger=Book())
        getattr(est, verb)(X)
        require([paid[2] for paid in est.ledger.paid] == [len(X)], "a release must be charged once, for all runs")
        require(est.ledger.paid[0][0].epsilon == est.privacy_.epsilon, "privacy_ must be what is charged")
        refuses(lambda verb=verb: getattr(covered.fresh(ledger=Book(refuse=True)), verb)(X), "an overdraft")
    for bad in ("text", None, X[0], X[:, 1:], 2 * X, X.astype(object), X[:0], np.where(X, math.nan, 0), [[1, 0]]):
        est = covered.fresh(ledger=Book())
        refuses(lambda est=est, bad=bad: est.privatize(bad), "bad runs", est)
        require(not est.ledger.paid, "bad runs must be refused before anything is charged")
    reports = covered.fresh().privatize(X)
    for bad in (reports.astype(float), reports[:, :0], reports[0], np.full_like(reports, np.iinfo(reports.dtype).max)):
        est = covered.fresh()
        refuses(lambda est=est, bad=bad: est.aggregate(bad), "bad reports", est)


def check_coverage_seeds(covered):
    """A seed reproduces reports, and its absence never does; clones and pickles report the same; privacy_ says so."""
    X = covered.rows(200)
    wanted = covered.fresh().privatize(X)
    require(not same_state(covered.fresh(random_state=1).privatize(X), wanted), "another seed, other noise")
    secure = covered.fresh(random_state=None)
    require(differs_each_time(lambda: secure.privatize(X)), "secure reports must differ")
    require(covered.fresh().privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say if there was a seed")
    for twin in (clone(covered.fresh()), pickle.loads(pickle.dumps(covered.fresh()))):
        require(same_state(twin.privatize(X), wanted), "clones and pickles must report the same")


def check_coverage_strict_mode(covered):
    """In strict mode any matrix of numbers holds runs: no error, warning or charge depends on an entry."""
    X = covered.rows().astype(float)
    with config_context(strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for value in (0.5, -1e308, math.nan, 1.0, 0.0):
            odd, est = X.copy(), covered.fresh(ledger=Book())
            odd[1, 2] = value
            seen = in_strict_mode(lambda est=est, odd=odd: est.privatize(odd))
            require(len(est.ledger.paid) == 1 and not caught, "strict mode must not tell about an entry")
            wanted = covered.fresh().privatize((odd != 0).astype(float))
            require(same_state(seen, wanted), "strict mode must read what is not 0 as covered")


CHECKS = (check_coverage_keeps_epsilon, check_coverage_follows_law, check_coverage_estimates, check_coverage_containers,
          check_coverage_charges, check_coverage_seeds, check_coverage_strict_mode)
