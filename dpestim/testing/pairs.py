"""Key-value data: exact laws over all sets, estimates and their errors, verbs, tables, refusals, state, strict mode.

For settings of at most three keys, so that all sets (and all reports of a set) can be enumerated.
"""

import importlib.util
import math
from functools import partial
from itertools import product

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import chi2, chisquare

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon, exp_lower, exp_upper
from dpestim.rng import WordSource
from dpestim.testing.behaviour import (
    REFUSED,
    Subject,
    check_parameters_are_refused,
    check_state_stays,
    in_strict_mode,
)
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state

#: What the distance of the bounds is in places.
STEPS = 1 << 32
#: Probability with which a right law is rejected, of each statistical test.
ALPHA = 1e-7
#: Reports of each set, and fits, that the statistical tests take.
REPORTS, FITS, USERS = 40_000, 60, 1500


class Pairs(Subject):
    """An estimator to check, and what its checks share."""

    wrong = {
        "epsilon": (*REFUSED["epsilon"], 81),
        "keys": (0, -1, True, 1.5, "ab", [], [1, 1], ["a", None]),
        "bounds": (None, 1.0, (1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0), ("0", "1"), (0, 1, 2),
                   ([0], [1])),
        "variant": (None, "UE", 1),
        "padding_length": (0, -1, 1.5, True, "2", None, 1 << 25),
        "correction": (None, "none", 0),
        "n_rounds": (0, True, 1.5, "2", None, 1000),
    }

    def checks(self):
        """Return the checks."""
        return CHECKS

    def rows(self, n=200, seed=0):
        """Return a sparse table of pairs, which has users without any."""
        return self.estimator._test_data(n, seed)[0]

    def part(self, seed):
        """Return an aggregate that can be merged, of one round."""
        return self.fresh(random_state=seed).partial_fit(self.rows(seed=seed))

    def laws(self):
        """Return the law of every round: of those with feedback, after some first means."""
        est, found = self.fresh(), []
        while True:
            found.append(est.fit(self.rows()).randomizer() if not found and not hasattr(est, "next_round")
                         else est.partial_fit(self.rows()).randomizer())
            if len(found) == getattr(est, "n_rounds", 1):
                return found
            est.next_round()


def sets_of(law):
    """Return all sets of keys with values at both bounds, and one with values between."""
    every = [dict(enumerate(values)) for values in product((None, 0, STEPS), repeat=law.n_keys)]
    every = [{key: place for key, place in pairs.items() if place is not None} for pairs in every]
    return [*every, {key: STEPS // 3 for key in range(law.n_keys)}]


def check_pair_law(pairs):
    """All rounds together keep epsilon, exactly, for any two sets and any reports, and use 0.99 of it."""
    epsilon, worst, slack = canonical_epsilon(pairs.estimator.epsilon), 1, False
    for law in pairs.laws():
        laws = [law.outcome_law(held) for held in sets_of(law)]
        require(all(sum(row) == 1 and min(row) >= 0 for row in laws), "probabilities must sum to 1")
        columns = [column for column in zip(*laws) if any(column)]  # (what nobody sends tells nothing)
        require(min(map(min, columns)) > 0, "a report must be possible for all sets, or for none")
        worst *= max(max(column) / min(column) for column in columns)
        slack |= bool(law.slack)
    require(worst <= exp_lower(epsilon), "the law exceeds epsilon for some two sets")
    require(slack or worst >= exp_upper(epsilon * 99 / 100), "the law uses less than 0.99 of epsilon")


def check_pair_reports(pairs):
    """What is sent follows the exact law of each set, and not that of another epsilon."""
    column = pairs.fresh().fit(pairs.rows())._columns.columns[0]
    for number, law in enumerate(pairs.laws()):
        for k, held in enumerate([{}, {0: STEPS}, {key: STEPS // 4 for key in range(law.n_keys)}]):
            keys = sorted(held)
            values = [column.low + column.width * held[key] / STEPS for key in keys]
            start = np.arange(REPORTS + 1) * len(keys)
            table = csr_array((np.tile(values, REPORTS), np.tile(np.array(keys, int), REPORTS), start),
                              shape=(REPORTS, law.n_keys))
            rows = column.read(table, None, False)
            reports = np.zeros((REPORTS, law.report_width), law.report_dtype)
            law.privatize(rows, WordSource(100 * number + k).reader().words(0, 0, 0, REPORTS), reports)
            law.check_reports(reports)
            seen = np.bincount(law.outcome_of(reports), minlength=len(law.outcome_law(held)))
            require(_fits(seen, law.outcome_law(held)), "reports do not follow the exact law")
            if held:
                for factor in (0.7, 1.3):
                    other = type(law)(**{**law.arguments, "epsilon": law.epsilon * factor})
                    require(not _fits(seen, other.outcome_law(held)), "the test cannot tell another epsilon")


def _fits(seen, law):
    law = np.array([float(p) for p in law])
    if seen[law == 0].any():
        return False
    return chisquare(seen[law > 0], seen.sum() * law[law > 0] / law.sum()).pvalue > ALPHA


def check_pair_estimates(pairs):
    """Estimates are unbiased, and their errors are what is said: over many seeds, for one table."""
    X = pairs.rows(USERS)
    column = pairs.fresh().fit(X)._columns.columns[0]
    signs = 2 * column.places(X.data) / STEPS - 1
    f = np.bincount(X.indices, minlength=X.shape[1]) / USERS
    v = np.bincount(X.indices, signs, X.shape[1]) / USERS
    scores = []
    for seed in range(FITS):
        est = pairs.fresh(random_state=seed).fit(X)
        found = est._estimates()
        require(np.array_equal(found.frequency, est.frequencies_), "frequencies_ are not the estimates")
        scores.append([(found.frequency - f) / est.frequency_standard_errors_,
                       (found.total - v) / np.sqrt(found.total_variance)])
    scores = np.array(scores).reshape(FITS, -1)
    require(np.abs(scores.mean(axis=0)).max() < 5.5 / math.sqrt(FITS), "an estimate is biased")
    squares, tail = np.square(scores).sum(axis=0), ALPHA / scores.shape[1]
    require(squares.max() < 1.1 * chi2.isf(tail, FITS), "an error is larger than is said")
    require(squares.min() > chi2.ppf(tail, FITS) / 1.1, "an error is smaller than is said")


def check_pair_verbs(pairs):
    """Users and servers apart come to what `fit` does; batches, threads and containers do not matter."""
    X = pairs.rows()
    whole = pairs.fresh().fit(X)
    n, d = X.shape
    require(whole.n_users_ == n and whole.n_features_in_ == d and len(whole.keys_) == d, "shapes are wrong")
    require(all(np.shape(a) == (d,) for a in whole.release()), "release must return frequencies and means")
    for of in ("means", "frequencies"):
        ends = whole.confidence_interval(0.9, of=of)
        require(ends.shape == (d, 2) and (ends[:, 0] <= ends[:, 1]).all(), "intervals are wrong")
    user, key = X.nonzero()
    names, rng = whole.keys_.tolist(), np.random.default_rng(0)
    tables = [("csc", X.tocsc()), ("coo", X.tocoo())]
    columns = {"who": [*range(n), *user.tolist()], "what": [*[None] * n, *[names[k] for k in key]],
               "how much": [*[None] * n, *X.data.tolist()]}
    mixed = np.append(np.arange(n), n + rng.permutation(len(user)))
    columns = {name: [values[k] for k in mixed] for name, values in columns.items()}
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            tables.append((library, importlib.import_module(library).DataFrame(columns)))
    sent = pairs.fresh().privatize(X)
    require(sent.flags.c_contiguous and sent.dtype.kind == "u" and len(sent) == n, "reports have the wrong format")
    for name, table in tables:
        require(np.array_equal(pairs.fresh().privatize(table), sent), f"{name} input gives other reports")
    require(np.array_equal(pairs.fresh(n_jobs=2).privatize(X), sent), "reports depend on n_jobs")
    require(np.array_equal(pairs.fresh().privatize(X[:7]), sent[:7]), "a row's noise must not depend on others")
    secure = pairs.fresh(random_state=None)
    require(differs_each_time(lambda: secure.privatize(X)), "random_state=None must give new noise")
    streamed, apart = pairs.fresh().partial_fit(X[:50]).partial_fit(X[50:]), pairs.fresh().aggregate(sent)
    shuffled = pairs.fresh().aggregate(sent[::-1].copy())
    for server in (streamed, shuffled):
        require(same_state(server._counts, apart._counts), "the same reports must make the same counts")
    if not hasattr(whole, "next_round"):
        require(same_state(apart.release(), whole.release()), "the verbs apart must come to what fit does")
    halves = pairs.fresh().aggregate(sent[:50]).merge(pairs.fresh().aggregate(sent[50:]))
    require(same_state(halves._counts, apart._counts) and halves.n_users_ == n, "merge must add counts")


def check_pair_rounds(pairs):
    """The same pairs in the next call, or round, of a seed have other noise; `privacy_` is charged, once."""
    X = pairs.rows()
    est = pairs.fresh(ledger=Book())
    stated, book = est.privacy_, est.ledger
    est.fit(X)
    require([paid[0] for paid in book.paid] == [stated], "fit must charge privacy_, once")
    require(est.privacy_ == stated, "privacy_ must not depend on data")
    require(stated.epsilon == canonical_epsilon(est.epsilon) and stated.neighbours is Neighbours.LOCAL
            and stated.model == "local" and stated.seeded, "privacy_ must be what was declared")
    est = pairs.fresh().partial_fit(X)
    first = est._counts[0].copy()
    est.partial_fit(X)
    require(not np.array_equal(est._counts[0] - first, first), "batches repeat their noise")
    if hasattr(est, "next_round"):
        words = []
        for _ in range(est.n_rounds):
            words.append(pairs.fresh().client()._pay(est._columns, 0).fingerprint if not words
                         else est.client()._pay(est._columns, 0).fingerprint)
            if len(words) < est.n_rounds:
                est.next_round()
                sent = est.client().privatize(X)
                est.aggregate(sent)
        require(len(set(words)) == len(words), "two rounds share words")
        require(est.privacy_.epsilon == canonical_epsilon(est.epsilon), "all rounds together must cost epsilon")
        refuses(est.next_round, "a round too many", est)


def check_pair_refusals(pairs):
    """Bad parameters and tables are errors that name them, show no value, change nothing and cost nothing."""
    X = pairs.rows()
    check_parameters_are_refused(pairs)
    est = pairs.fresh(ledger=Book())
    bad = X.copy()
    bad.data[0] = math.nan
    twice = csr_array((np.ones(2), np.array([0, 0]), np.append(0, np.full(X.shape[0], 2))), shape=X.shape)
    tables = [X[:0], X.toarray(), None, "text", bad, twice, csr_array((3, X.shape[1] + 1))]
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        key = np.arange(X.shape[1])[0] if isinstance(est.keys, int) else est.keys[0]
        for row in ((1, "s3cr3t", 1.0), (1, key, math.nan), (1, key, "s3cr3t")):
            tables.append(pd.DataFrame([row], columns=["u", "k", "v"]))
        tables += [pd.DataFrame([(1, key, 1.0)] * 2), pd.DataFrame([(1, key)]), pd.DataFrame([(1, key, 1.0)])[:0]]
        refuses(lambda: pairs.fresh(keys=None).fit(pd.DataFrame([(1, key, 1.0)])), "a frame without declared keys")
    for table in tables:
        require("s3cr3t" not in refuses(lambda table=table: est.fit(table), "a bad table", est), "errors show a value")
    sent = est.client().privatize(X) if hasattr(est, "client") else pairs.fresh().privatize(X)
    unknown = np.full_like(sent, np.iinfo(sent.dtype).max)
    for reports in (sent[:0], sent[:, :0], sent.astype(np.int64), sent.tolist(), unknown):
        refuses(lambda reports=reports: est.aggregate(reports), "bad reports", est)
    fitted = pairs.fresh().fit(X)
    refuses(lambda: fitted.confidence_interval(1.0), "a level of 1", fitted)
    refuses(lambda: fitted.confidence_interval(of="x"), "another kind of interval", fitted)
    overdrawn = pairs.fresh(ledger=Book(refuse=True))
    refuses(lambda: overdrawn.fit(X), "an overdraft", overdrawn)


def check_pair_state(pairs):
    """Pickles and clones stay what they were; merging is of the same law and keys, and of other users."""
    check_state_stays(pairs)
    X, single = pairs.rows(), pairs.part(0)
    low, high = map(float, pairs.estimator.bounds)
    for params in ({"epsilon": float(single.epsilon) * 2}, {"bounds": (low, high + 1)},
                   {"keys": [f"k{j}" for j in range(X.shape[1])]}):
        foreign = pairs.fresh(random_state=9, **params).partial_fit(X)
        refuses(lambda foreign=foreign: single.merge(foreign), f"merging with another {list(params)}", single)
    require(single.n_users_ == X.shape[0], "users must be counted")


def check_pair_strict_mode(pairs):
    """In strict mode no error depends on a value: what is no number, or no key, is left out or the middle."""
    X = pairs.rows()
    X.data[:3] = math.nan, math.inf, -math.inf
    with config_context(strict=True):
        est = pairs.fresh()
        in_strict_mode(partial(est.fit, X))
        if importlib.util.find_spec("pandas"):
            import pandas as pd

            unknown = {"u": ["a", "a", "b"], "k": ["?", "?", None], "v": [1.0, math.inf, math.nan]}
            twice = {"u": ["a", "a"], "k": [est.keys_[0]] * 2, "v": [1.0, 2.0]}
            for table in (unknown, twice):
                in_strict_mode(partial(est.privatize, pd.DataFrame(table)))


CHECKS = (
    check_pair_law,
    check_pair_reports,
    check_pair_estimates,
    check_pair_verbs,
    check_pair_rounds,
    check_pair_refusals,
    check_pair_state,
    check_pair_strict_mode,
)
