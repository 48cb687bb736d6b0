"""What learns from noisy gradients: `fit` is the verbs of both sides, in rounds of their own words, and it learns."""

import numpy as np
from sklearn.base import is_classifier

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.tools import Book, fresh, require, same_state

#: Rows, and the epsilon, at which a model must be better than none: by far more than noise can be worse.
ROWS, EPSILON = 6000, 8.0


def check_rounds_are_the_fit(estimator):
    """One more group by `partial_fit` is the verbs of server and users; each report pays, and nothing else does."""
    X, y = estimator._test_data(60)
    whole, server = (fresh(estimator, ledger=Book()) for _ in range(2))
    users = fresh(estimator, ledger=Book())
    for half in (slice(0, 30), slice(30, 60)):
        whole.partial_fit(X[half], y[half])
        round_ = server.next_round(n_features=3)
        reports = users.privatize(X[half], y[half], round_)
        server.aggregate(reports)
    server.next_round()
    require(_same(whole, server), "partial_fit must be next_round, privatize, aggregate and next_round")
    require(not server.ledger.paid, "the server pays nothing: it sees no row")
    charges = [(guarantee.epsilon, n) for guarantee, _, n, _ in users.ledger.paid]
    require(charges == 2 * [(canonical_epsilon(estimator.epsilon), 30)], "each group must be charged its epsilon, once")
    require(same_state(users.ledger.paid, whole.ledger.paid), "partial_fit must be charged as privatize is")
    require(server.n_rounds_ == 2, "n_rounds_ must count the steps")


def check_rounds_have_words_of_their_own(estimator):
    """The same rows at the same model, in another round, have other reports: seeds must not repeat noise."""
    X, y = estimator._test_data(200)
    users = fresh(estimator)
    first = users.next_round(n_features=3)
    second = type(first)(1, first.weights)
    one, two = users.privatize(X, y, first), users.privatize(X, y, second)
    require(np.array_equal(one, users.privatize(X, y, first)), "a seed must reproduce the reports of a round")
    require((one != two).any(axis=1).mean() > 0.2, "rounds must not share words")


def check_rounds_learn(estimator):
    """With many rows and a large epsilon a fit beats the best constant, and labels that were shuffled do not."""
    X, y = estimator._test_data(2 * ROWS)
    est = fresh(estimator, epsilon=EPSILON).fit(X[:ROWS], y[:ROWS])
    score = est.score(X[ROWS:], y[ROWS:])
    none = np.unique(y[ROWS:], return_counts=True)[1].max() / ROWS if is_classifier(est) else 0.0
    require(score > none + 0.1, "many rows and a large epsilon must give a model that is better than none")
    lost = fresh(estimator, epsilon=EPSILON).fit(X[:ROWS], np.random.default_rng(0).permutation(y[:ROWS]))
    require(lost.score(X[ROWS:], y[ROWS:]) < score - 0.05, "targets of other rows must not do as well")


def _same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a._learned)


ROUND_CHECKS = (check_rounds_are_the_fit, check_rounds_have_words_of_their_own, check_rounds_learn)
