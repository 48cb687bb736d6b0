"""What finds items and itemsets of baskets by groups of users: promises, rounds, what is found and what is refused.

What is reported is looked at with many equal baskets, N of them: an estimate further than Z standard errors from the
truth fails (alpha = 1e-6 for a few hundred numbers).
"""

import pickle
import warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon, within
from dpestim.rng import WordSource
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, in_strict_mode
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state

N, Z = 20_000, 6.2
ROWS = 60


class Found(Subject):
    """What finds itemsets, to check."""

    wrong = {"method": ("other", None, 1), "n_top": (0, 257, 1.5, "2", True, None),
             "items": (0, 1.5, "abc", True, [], [1, 1], [None, 1])}

    def checks(self):
        """Return the checks."""
        return CHECKS

    def rows(self, n=ROWS, seed=0):
        """Return valid baskets, a table."""
        return self.estimator._test_data(n, seed)[0]

    def baskets(self, X):
        """Return the same baskets as lists."""
        return [np.flatnonzero(row).tolist() for row in X]


def check_itemsets_promise(found):
    """A basket has exactly epsilon, whichever group its user is in; one fit is one charge, before words are drawn."""
    X = found.rows()
    est = found.fresh(ledger=Book()).fit(X)
    (guarantee, _, n_rows, _), = est.ledger.paid
    require(guarantee == est.privacy_ == found.fresh().privacy_ and n_rows == ROWS, "a fit must charge its promise")
    require(guarantee.epsilon == canonical_epsilon(est.epsilon) and not guarantee.delta, "a basket must have epsilon")
    require(guarantee.neighbours is Neighbours.LOCAL and guarantee.seeded, "the guarantee must be local, and of a seed")
    for law in laws_of(est):
        require(law.plain_epsilon == guarantee.epsilon, "each law must have epsilon")
        require(within(law.worst_ratio(), 1, guarantee.epsilon), "no report may be likelier than e^epsilon lets")
    refused = found.fresh(ledger=Book(refuse=True))
    refuses(lambda: refused.fit(X), "an overdraft", refused)


def check_itemsets_state(found):
    """A seed reproduces a fit, whatever holds the baskets; pickles and clones do the same."""
    X = found.rows(500)
    one = found.fresh().fit(X)
    shown = one.itemsets_
    for same in (csr_array(X), X.astype(bool), found.baskets(X), [own + own[:1] for own in found.baskets(X)]):
        require(same_state(found.fresh(n_jobs=2).fit(same).itemsets_, shown), "baskets must be sets, however they come")
    for twin in (pickle.loads(pickle.dumps(one)), clone(one).fit(X)):
        require(same_state(twin.itemsets_, shown), "pickles and clones must be the same")
    secure = found.fresh(random_state=None)
    require(differs_each_time(lambda: secure.fit(X).itemsets_), "no seed, other reports")
    require(differs_each_time(lambda: secure.privatize(X)), "no seed, other reports by each call")
    one.set_params(epsilon=9.0, n_top=1, method="svim")
    require(same_state(one.itemsets_, shown), "a fit must stay what it was")
    require(one.privacy_.epsilon == canonical_epsilon(found.estimator.epsilon), "a fit must keep its promise")


def check_itemsets_rounds(found):
    """A fit is its rounds, one after another; in each, reports are counted as rows are, and servers add up."""
    X, whole, server = found.rows(500), found.fresh().fit(found.rows(500)), found.fresh()
    members = whole._groups().of_rows(WordSource(server.random_state), len(X))
    book = Book()
    for k, few in enumerate(members):
        if k:
            server.next_round()
        users = server.client().set_params(ledger=book)
        reports = users.privatize(X[few])
        halves = [server.client().set_params(random_state=None).aggregate(part) for part in (reports[:3], reports[3:])]
        server.merge(halves[0]).merge(halves[1])
    require(same_state(server.candidates_, whole.candidates_), "a fit must be next_round, privatize and aggregate")
    require(server.n_users_ == whole.n_users_ == len(X), "users of all rounds must be counted")
    charges = [(guarantee.epsilon, n) for guarantee, _, n, _ in book.paid]
    right = [(canonical_epsilon(whole.epsilon), len(few)) for few in members]
    require(charges == right, "each group must pay epsilon, once")
    refuses(server.next_round, "a round too many", server)
    refuses(lambda: server.merge(whole), "closed rounds that would be lost", server)
    lost = server.client().aggregate(reports)
    refuses(lambda: lost.itemsets_, "answers without the counts of all rounds", lost)
    refuses(found.fresh().next_round, "a round without reports")
    client = server.client().set_params(random_state=3)
    again = found.fresh(random_state=3).resume_at(server.public_state())
    require(np.array_equal(client.privatize(X), again.privatize(X)), "a public state must make the client of a round")
    state = server.public_state()
    for wrong in ({}, {**state, "number": 0}, {**state, "number": 9}, {**state, "length": 0}, {**state, "length": 2.0},
                  {**state, "candidates": []}, {**state, "candidates": [[99]]}, {**state, "candidates": [[0, 0]]},
                  {**state, "candidates": 2 * state["candidates"][:1]}):
        refuses(lambda wrong=wrong: found.fresh().resume_at(wrong), "what is no state of a round")


def check_itemsets_truth(found):
    """Of two kinds of baskets the items are found, with their frequencies where padding covers the longer ones."""
    X = np.zeros((N, found.rows().shape[1]))
    X[:, 1] = X[::2, 3] = 1.0
    est = found.fresh().fit(X)
    told = est.candidates_
    require(min(est.padding_lengths_) >= 1 and est.padding_lengths_[0] >= 2, "padding must cover half of the baskets")
    truth = np.array([float({1, 3}.issuperset(own)) / (1 + (3 in own)) for own in told.values])
    require((np.abs(told.frequencies - truth) < Z * told.standard_errors + 1e-9).all(), "frequencies must be the truth")
    first = est._rounds[1][0].columns[0].question.candidates
    require(first[:2] == ((1,), (3,)), "candidates must be what is reported most often")
    square = np.mean([_squares(found.fresh(random_state=seed).fit(X[:3000])) for seed in range(12)])
    require(0.4 < square < 2.5, "standard errors must be those of the frequencies")
    require({(1,), (3,)} <= set(est.itemsets_.values), "what all users hold must be found")
    require(len(est.confidence_interval()) == len(est.itemsets_.values) == est.n_top, "an interval for each of n_top")


def _squares(est):
    """Return the mean squared error of the items' frequencies in units of their standard errors."""
    told = est.candidates_
    truth = np.array([float({1, 3}.issuperset(own)) / (1 + (3 in own)) for own in told.values])
    return np.mean(np.square((told.frequencies - truth) / told.standard_errors))


def check_itemsets_reports(found):
    """Reports of a basket, in a round of padded items, have exactly the law that the guarantee is of."""
    d = found.rows().shape[1]
    m = min(d, 2 * found.estimator.n_top)
    est = found.fresh().resume_at({"number": 2, "candidates": [[k] for k in range(m)], "length": 3})
    law = est.randomizer()
    for own in ([], [m - 1], list(range(m))):
        X = np.zeros((N, d))
        X[:, own] = 1.0
        counts, chances = np.zeros(law.n_counts, np.int64), np.array(list(map(float, law.outcome_law(own))))
        law.count(est.privatize(X), counts)
        room = Z * np.sqrt(N * chances * (1 - chances))
        require((np.abs(counts - N * chances) <= room + 1).all(), "reports must have the law of a padded set")


def check_itemsets_refusals(found):
    """Bad parameters and baskets are errors that show no value, before anything is charged; empty baskets are fine."""
    check_parameters_are_refused(found)
    X = found.rows()
    for value in (np.nan, 2.0, -1.0):
        bad = X.copy()
        bad[3, 1] = value
        _is_spared(found, bad)
        _is_spared(found, csr_array(bad))
    for basket in (["a secret"], [None], [[1]], "a secret", 3, None):
        _is_spared(found, [basket, *found.baskets(X)])
    for bad in ([], X[:0], X[:1], X[:, :2], X[0], "a secret", None):
        _is_spared(found, bad)
    require(found.fresh().fit([[]] * ROWS).n_users_ == ROWS, "users may have nothing")


def check_itemsets_are_total_in_strict_mode(found):
    """In strict mode what is no basket counts as one, without an error or a warning."""
    X = found.rows()
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (np.nan, 2.0, -1.0, np.inf):
            bad = X.copy()
            bad[3, 1] = value
            for rows in (bad, csr_array(bad)):
                est = in_strict_mode(lambda rows=rows: found.fresh().fit(rows))
                require(est.n_users_ == ROWS, "strict mode must leave out no user")
        for basket in (["a secret"], [None], [[1]], "a secret", 3, None):
            est = in_strict_mode(lambda basket=basket: found.fresh().fit([basket, *found.baskets(X)]))
            require(est.n_users_ == ROWS + 1, "strict mode must leave out no user")


def laws_of(est):
    """Return the laws of all rounds of a fit."""
    return [*(columns.laws[0] for columns, _, _ in est._rounds), est.randomizer()]


def _is_spared(found, X):
    est = found.fresh(ledger=Book())
    message = refuses(lambda: est.fit(X), "bad baskets", est)
    require("secret" not in message, "the error must show no value")
    require(not est.ledger.paid, "bad baskets must be refused before anything is charged")


CHECKS = (check_itemsets_promise, check_itemsets_state, check_itemsets_rounds, check_itemsets_reports,
          check_itemsets_truth, check_itemsets_refusals, check_itemsets_are_total_in_strict_mode)
