"""What randomises lists of items: what one item moves, the law of all bits together, exact means and variances."""

import math
import pickle
from itertools import product

import numpy as np
from scipy import sparse, stats

from dpestim.privacy.exact import canonical_epsilon, log_upper
from dpestim.testing.behaviour import check_parameters_are_refused
from dpestim.testing.releases import RELEASE_CHECKS, Releases, check_release_charges
from dpestim.testing.tools import Book, refuses, require, same_state

#: Users whose flips are looked at, and the significance of the test.
USERS, ALPHA = 20_000, 1e-6


class Itemised(Releases):
    """An estimator of item lists, and how it is used."""

    model = relation = "local"
    wrong = {"n_items": (None, 1, 2.5, True, "4", 10**6), "n_neighbors": (0, 1.5, True, "2", None),
             "protects": (None, "user", 1), "similarity": (None, "euclid", 1), "reports": (None, "dense", 1)}

    def checks(self):
        """Return the checks of what takes lists of items."""
        return *CHECKS, *(check for check in RELEASE_CHECKS if check is not check_release_charges)

    @property
    def data(self):
        """Lists."""
        return self.estimator._test_data(60)[0]

    def release(self, est, data):
        """Return the bits that are reported."""
        return bits_of(est.privatize(data), est.n_items)

    def bad(self):
        """Return what are no lists."""
        lists = self.data
        yield lists.toarray()
        yield lists[:, :1]
        yield lists[:0]
        missing = lists.copy()
        missing.data[0] = np.nan
        yield missing

    def odd(self):
        """Return lists whose stored numbers differ."""
        for value in (1.0, np.nan, -np.inf, 0.0):
            lists = self.data.copy()
            lists.data[:2] = value
            yield lists

    def shown(self, released):
        """Return the type and shape of reports."""
        return released.dtype, released.shape


def bits_of(reports, n_items):
    """Return reports as rows of bits."""
    if sparse.issparse(reports):
        return reports.toarray()
    return np.unpackbits(reports, axis=1, bitorder="little", count=n_items)


def _every_list(m):
    return np.array(list(product((0, 1), repeat=m)), np.uint8)


def check_items_keep_epsilon(lists):
    """An item moves its own bit and no other, with the same noise; what bits cost is what is promised."""
    est = lists.fresh()
    m, epsilon = est.n_items, canonical_epsilon(est.epsilon)
    each, whole = (epsilon, m * epsilon) if est.protects == "item" else (epsilon / m, epsilon)
    ratio = est.bit_law_.p / est.bit_law_.q
    require(ratio > 1 and log_upper(ratio) <= each, "a bit costs more than its epsilon")
    stated = est.privacy_
    right = (stated.epsilon, stated.relaxed_epsilon, stated.delta) == (whole, each, 0)
    require(right and stated.model == stated.neighbours.value == "local" and stated.notes,
            "privacy_ must say what a whole list costs, and what an item costs")
    every = _every_list(m)
    for row in (0, 5):
        moved = []
        for items in every:
            table = np.tile(every[-1], (6, 1))
            table[row] = items
            moved.append(lists.release(lists.fresh(), sparse.csr_array(table)) ^ table)
        require(all(np.array_equal(one, moved[0]) for one in moved), "flips must not depend on a list")


def check_items_follow_law(lists):
    """Bits of a user are flipped independently, and with the stated probability; other epsilons are seen."""
    X = lists.estimator._test_data(USERS)[0]
    est = lists.fresh()
    m = est.n_items
    flipped = (lists.release(est, X) != X.toarray()).astype(np.int64)
    counts = np.bincount(flipped @ (1 << np.arange(m)), minlength=1 << m)
    places = np.array([bin(k).count("1") for k in range(1 << m)])

    def p_value(factor):
        q = float(lists.fresh(epsilon=float(est.epsilon) * factor).bit_law_.q)
        return stats.chisquare(counts, q**places * (1 - q) ** (m - places) * USERS).pvalue

    require(p_value(1) > ALPHA, "flips do not follow their law")
    require(max(p_value(0.7), p_value(1.3)) < ALPHA, "the test sees no other epsilon")
    share = np.corrcoef(flipped[1:, 0], flipped[:-1, 0])[0, 1]
    require(abs(share) * math.sqrt(USERS) < 6, "flips of neighbouring users are not independent")


def check_items_are_unbiased(lists):
    """Over all reports of a user with any list: exact means, and the stated variance."""
    est = lists.fresh()
    m, q, v = est.n_items, float(est.bit_law_.q), est.bit_law_.variance
    every = _every_list(m)
    found = [lists.fresh().aggregate(sparse.csr_array(report[None])).co_occurrences() for report in every]
    off = ~np.eye(m, dtype=bool)
    for items in every:
        flips = (every != items).sum(axis=1)
        weights = q**flips * (1 - q) ** (m - flips)
        truth = np.outer(items, items).astype(float)
        require(np.allclose(np.tensordot(weights, found, 1), truth, atol=1e-9), "co-occurrences are biased")
        variance = np.tensordot(weights, (np.array(found) - truth) ** 2, 1)
        wanted = np.where(off, v * np.add.outer(items, items) + v * v, v)
        require(np.allclose(variance, wanted), "co-occurrences have another variance than stated")
    full = lists.fresh().fit(lists.data)
    single = np.clip(full.item_counts_, 0, full.n_users_)
    n = full.n_users_
    wanted = np.where(off, v * np.add.outer(single, single) + n * v * v, n * v)
    require(np.allclose(full.standard_errors() ** 2, wanted), "standard_errors must follow from the stated variance")


def check_items_aggregate(lists):
    """Aggregates of reports in any form and in parts are the fit; merging adds users; other laws are refused."""
    X = lists.data
    wanted = _learned(lists.fresh().fit(X))
    packed, ones = (lists.fresh(reports=form).privatize(X) for form in ("packed", "sparse"))
    require(packed.dtype == ones.dtype == np.uint8 and ones.has_canonical_format, "reports must be uint8, in order")
    for reports in (packed, ones):
        require(same_state(_learned(lists.fresh().aggregate(reports)), wanted), "aggregate must be what fit does")
        parts = lists.fresh().aggregate(reports[:7]).aggregate(reports[7:])
        require(same_state(_learned(parts), wanted), "aggregating in parts must be that, too")
    one, two = lists.fresh().aggregate(packed[:7]), lists.fresh().aggregate(ones[7:])
    refuses(lambda: one.merge(one), "merging with itself", one)
    refuses(lambda: one.merge(lists.fresh()), "merging what has seen nothing", one)
    other = lists.fresh(epsilon=float(one.epsilon) / 2).aggregate(packed)
    refuses(lambda: one.merge(other), "merging another law", one)
    merged = pickle.loads(pickle.dumps(one)).merge(two)
    require(same_state(_learned(merged), wanted) and merged.privacy_ == one.privacy_, "merging must be what fit does")
    before = merged.bit_law_, merged.privacy_, merged.co_occurrences()
    merged.set_params(epsilon=float(one.epsilon) / 2)
    require(same_state((merged.bit_law_, merged.privacy_, merged.co_occurrences()), before),
            "a later epsilon changed what was aggregated")
    refuses(lambda: merged.aggregate(packed), "reports of another law", merged)
    beyond = np.full((1, packed.shape[1]), 255, np.uint8)
    for bad in (None, "text", packed.astype(int), packed[:0], packed[0], ones * np.uint8(2), ones.astype(float),
                ones[:, :1], beyond, np.hstack([packed, packed])):
        refuses(lambda bad=bad: lists.fresh().aggregate(bad), "no reports")


def _learned(est):
    return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}


def check_items_charge(lists):
    """A release is charged once, as `privacy_` says; what needs reports alone is free."""
    check_parameters_are_refused(lists)
    for verb in ("privatize", "fit"):
        est = lists.fresh(ledger=Book())
        getattr(est, verb)(lists.data)
        paid = [(entry[0], entry[2]) for entry in est.ledger.paid]
        require(paid == [(est.privacy_, 60)], "a release must be charged once")
        refuses(lambda verb=verb: getattr(lists.fresh(ledger=Book(refuse=True)), verb)(lists.data), "an overdraft")
    est.aggregate(est.privatize(lists.data)).recommend(lists.data, 1)
    require(len(est.ledger.paid) == 2, "only what randomises must be charged")


def check_items_are_the_users_own(lists):
    """A report is made of the user's row; a recommendation of that row and of the aggregate, and none that is there."""
    X, n_jobs = lists.data, 2
    wanted = lists.release(lists.fresh(), X)
    mixed = X.toarray()
    mixed[1:] = 1 - mixed[1:]
    require(np.array_equal(lists.release(lists.fresh(), sparse.csr_array(mixed))[0], wanted[0]),
            "a report depends on the lists of others")
    require(np.array_equal(lists.release(lists.fresh(n_jobs=n_jobs), X), wanted), "reports depend on n_jobs")
    est = lists.fresh().fit(X)
    shown = est.recommend(X, est.n_items)
    require(np.array_equal(est.recommend(X[:1], est.n_items), shown[:1]), "a recommendation must be of one row")
    for row, items in zip(X.toarray(), shown):
        require(set(items[items >= 0].tolist()) == set(np.flatnonzero(row == 0).tolist()),
                "what a user has must not be recommended, and all else must be")


CHECKS = (check_items_keep_epsilon, check_items_follow_law, check_items_are_unbiased, check_items_aggregate,
          check_items_charge, check_items_are_the_users_own)
