"""What learns from ratings in rounds: what a report says, whose rows it is made of, and that a fit is its verbs."""

import pickle
import warnings

import numpy as np
from scipy import sparse

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import Book, refuses, require, same_state

#: Users of equal ratings whose reports are averaged, and standard errors that an average may be off.
USERS, FAR = 20_000, 5.5


class RatedRounds(Releases):
    """An estimator of ratings that users randomise, and how it is used."""

    model = relation = "local"
    wrong = {"bounds": (None, 5, (5, 1), ("a", "b")), "n_items": (None, 1, 2.5, True, "4", 10**6),
             "n_components": (0, 65, 1.5, True, "2", None), "n_rounds": (0, 1, 2.5, True, "4", None),
             "mechanism": (None, "pm", 1)}

    def checks(self):
        """Return the checks of what takes ratings in rounds."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """Ratings."""
        return self.estimator._test_data(60)[0]

    def release(self, est, data):
        """Return the reports."""
        return est.privatize(data)

    def charged(self):
        """Return the ways to release: to answer in a round, and to fit."""
        return lambda est: est.privatize(self.data), lambda est: est.fit(self.data)

    def free(self, est):
        """Play the server, and recommend."""
        round_ = est.next_round()
        est.aggregate(self.fresh().privatize(self.data, round_)).next_round()
        est.recommend(self.data, 1)
        est.predict(self.data)

    def bad(self):
        """Return what are no ratings."""
        ratings = self.data
        yield ratings.toarray()
        yield ratings[:, :1]
        yield ratings[:0]
        missing = ratings.copy()
        missing.data[0] = np.nan
        yield missing

    def odd(self):
        """Return ratings that differ in those of a user."""
        yield self.data
        for value in (np.nan, -np.inf, 1e308, 0.0):
            ratings = self.data.copy()
            ratings.data[:2] = value
            yield ratings

    def shown(self, released):
        """Return the type and shape of reports."""
        return released.dtype, released.shape

    def rounds(self):
        """Return a round of means and one of factors."""
        est = self.fresh()
        rng, m = np.random.default_rng(0), est.n_items
        first = est.next_round()
        means = rng.uniform(-0.5, 0.5, m)
        return first, type(first)(7, means, rng.normal(size=(m, est.n_components)))


def check_reports_say_the_direction(rounds):
    """Many users of equal ratings: the mean of reports is the direction, at the declared epsilon and at no other."""
    low, high = rounds.estimator.bounds
    m = rounds.estimator.n_items
    for round_ in rounds.rounds():
        for k, row in enumerate(([low] * m, [high, *[0.0] * (m - 1)])):
            items = np.arange(m) if k == 0 else np.arange(1)
            row = np.array(row, float)[items]
            wanted = _direction((2 * row - low - high) / (high - low), items, round_)
            many = sparse.csr_array((np.tile(row, USERS), np.tile(items, USERS), len(items) * np.arange(USERS + 1)),
                                    shape=(USERS, m))
            reports = rounds.fresh().privatize(many, round_)

            def off(epsilon, reports=reports, wanted=wanted, round_=round_):
                server = rounds.fresh(epsilon=epsilon)
                server.next_round()
                server._round = round_
                with warnings.catch_warnings():  # (reports of another epsilon may be impossible, which warns)
                    warnings.simplefilter("ignore")
                    mean = server.aggregate(reports)._group
                require(mean.transformer.privacy_.epsilon == canonical_epsilon(epsilon), "the law has another epsilon")
                return np.abs((mean.mean_ - wanted) / mean.standard_error_).max()

            epsilon = rounds.estimator.epsilon
            require(off(epsilon) < FAR, "the mean of reports must be the direction")
            require(min(off(0.6 * epsilon), off(1.6 * epsilon)) > FAR, "the test sees no other epsilon")


def check_reports_are_the_users_own(rounds):
    """A report is made of the user's row, whoever else there is, in words of its round; threads change nothing."""
    X, users = rounds.data, rounds.fresh()
    same = X.shape[0] // 2
    others = sparse.vstack([X[:same], X[: same - 1 : -1]], format="csr")
    for round_ in rounds.rounds():
        wanted = users.privatize(X, round_)
        require(np.array_equal(users.privatize(X, round_), wanted), "a seed must reproduce the reports of a round")
        require(np.array_equal(users.privatize(others, round_)[:same], wanted[:same]), "a report depends on others")
        require(np.array_equal(rounds.fresh(n_jobs=2).privatize(X, round_), wanted), "reports depend on n_jobs")
        later = type(round_)(round_.number + 1, round_.item_means, round_.item_factors)
        require((users.privatize(X, later) != wanted).any(axis=1).mean() > 0.3, "rounds must not share words")


def check_a_fit_is_its_rounds(rounds):
    """A fit is the verbs of server and users; users pay, the server does not; state is kept in pickles."""
    X, book = rounds.data, Book()
    server, users, whole, groups = rounds.fresh(ledger=Book()), rounds.fresh(ledger=book), rounds.fresh(), []

    def heard(ratings, values, members, *rest, answers=whole._answers):
        groups.append(members)
        return answers(ratings, values, members, *rest)

    whole._answers = heard
    whole.fit(X)
    require(len(groups) == whole.n_rounds and sorted(np.concatenate(groups).tolist()) == list(range(X.shape[0])),
            "each user must answer in one round")
    for members in groups:
        round_ = server.next_round()
        reports = users.privatize(X[members], round_)
        half = len(reports) // 2
        server.aggregate(reports[:half])
        server = pickle.loads(pickle.dumps(server))
        server.aggregate(reports[half:])
    last = server.next_round()
    require(same_state(_learned(server), _learned(whole)), "fit must be next_round, privatize, aggregate")
    require(server.next_round() is last, "a round that nobody answered must be returned again")
    require(server.n_rounds_ == server.n_rounds and not server.ledger.paid, "the server must pay nothing")
    paid = [(entry[0].epsilon, entry[2]) for entry in book.paid]
    require(paid == [(canonical_epsilon(users.epsilon), len(members)) for members in groups], "users pay once each")
    said = server.privacy_
    server.set_params(epsilon=float(server.epsilon) / 2)
    require(server.privacy_ == said, "a later epsilon changed what was promised")
    for bad in (None, "text", reports.astype(float), reports[:, :1]):
        refuses(lambda bad=bad: server.aggregate(bad), "no reports", server)
    refuses(lambda: rounds.fresh().aggregate(reports), "reports without a round")
    for bad in ("text", 1, type(last)(-1, last.item_means, last.item_factors),
                type(last)(0, last.item_means[1:], last.item_factors),
                type(last)(0, last.item_means + np.nan, last.item_factors)):
        refuses(lambda bad=bad: rounds.fresh().privatize(X, bad), "no round")


def check_recommendations_are_the_users_own(rounds):
    """What a user is told depends on the user's own row and on what is published; nothing that was rated."""
    X, est = rounds.data, rounds.fresh().fit(rounds.data)
    m, before = est.n_items, _learned(est)
    require(np.allclose(est.predict(X)[:1], est.predict(X[:1])), "a prediction must be of one row")
    pairs = np.repeat(0, m), np.arange(m)
    require(np.allclose(est.predict(X[:1], pairs), est.predict(X[:1])[0]), "pairs must be those of the whole table")
    low, high = est.bounds
    require(low <= est.predict(X).min() <= est.predict(X).max() <= high, "predictions must lie within the bounds")
    shown = est.recommend(X, m)
    require(np.array_equal(est.recommend(X[:1], m), shown[:1]), "a recommendation must be of one row")
    for u, items in enumerate(shown):
        require(set(items[items >= 0].tolist()) == set(range(m)) - set(X[[u]].nonzero()[1].tolist()),
                "what was rated must not be recommended, and all else must be")
    require(same_state(_learned(est), before), "what was learned must not change")


def _direction(x, items, round_):
    """Return the direction of a user, by a solver of its own: damping is in rows of its own."""
    means, factors = round_.item_means, round_.item_factors
    d = factors.shape[1]
    known = np.column_stack([np.ones(len(items)), factors[items]])
    left = np.concatenate([x - means[items], np.zeros(1 + d)])
    own = np.linalg.lstsq(np.vstack([known, np.diag([np.sqrt(2.0)] + [1.0] * d)]), left, rcond=None)[0]
    found = np.zeros((len(means), max(1, d)))
    found[items] = (left[: len(items)] - known @ own)[:, None] * (own[1:] if d else 1.0)
    return found.ravel() / np.linalg.norm(found)


def _learned(est):
    return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}


CHECKS = (check_reports_say_the_direction, check_reports_are_the_users_own, check_a_fit_is_its_rounds,
          check_recommendations_are_the_users_own)
