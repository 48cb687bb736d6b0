"""Protocols of the shuffle model: the law of one user's messages, what all of them tell, totals, and behaviour.

For estimators that are client and server (`ShuffleProtocol`), with settings of few users: their laws say by
`message_law` what one user sends, exactly, from which the law of all messages of small data sets is enumerated.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations_with_replacement, pairwise

import numpy as np
from scipy import stats

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_amount, canonical_epsilon, log_ratio
from dpestim.privacy.rounding import float_up
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, check_state_stays, in_strict_mode
from dpestim.testing.sample import ALPHA, reports_of
from dpestim.testing.tools import Book, differs_each_time, refuses, require, same_state

#: Users whose messages are compared with their law, and totals whose mean and variance are.
N, TOTALS = 50_000, 2000
#: Users of the data sets that are enumerated, and the epsilons at which bounds are compared with them.
FEW = (1, 2, 3)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)


class Shuffles(Subject):
    """A protocol to check, and what its checks share."""

    def checks(self):
        """Return the checks."""
        return CHECKS

    @cached_property
    def laws(self):
        """The law of every column."""
        return self.fresh().fit(self.rows()).randomizers_


def check_messages_follow_their_law(shuffles):
    """One user's messages are distributed as stated, and a test of the same size tells another input's law from it."""
    for law in _enumerated(shuffles):
        laws = [law.message_law(code) for code in _codes(law)]
        for number, (code, stated) in enumerate(zip(_codes(law), laws)):
            require(sum(stated.values()) == 1 and min(stated.values()) >= 0, "message_law must be a distribution")
            drawn = np.sort(reports_of(law, np.full(N, code, law.code_dtype), 3 + number), axis=1)
            seen = Counter(map(tuple, drawn.tolist()))
            require(not set(seen) - set(stated), "messages are sent that the law does not know")
            require(_p_value(seen, stated) > ALPHA, "messages do not follow their law")
            other = laws[number - 1]
            require(other == stated or _p_value(seen, other) < ALPHA, "the test cannot tell two inputs apart")


def check_local_guarantee(shuffles):
    """Before they are shuffled, messages keep the local epsilon that is stated, exactly, and use it."""
    for law in _enumerated(shuffles):
        laws, worst = [law.message_law(code) for code in _codes(law)], Fraction(1)
        for one in laws:
            for other in laws:
                for messages, p in one.items():
                    worst = math.inf if not other.get(messages) and p else max(worst, p / other[messages] if p else 0)
        require(law.local_ratio >= worst, "local_ratio must be at least the largest ratio of two inputs")
        if worst != math.inf:
            require(float(law.local_epsilon) <= 1.01 * log_ratio(worst, 1), "the local epsilon is far from what it is")


def check_bound_lies_above_the_truth(shuffles):
    """The bound on delta is at least what the exact law of all messages of few users shows, whatever they hold."""
    for law in _enumerated(shuffles):
        laws = [law.message_law(code) for code in _codes(law)]
        for n in FEW:
            for epsilon, truth in zip(EPSILONS, worst_deltas(laws, n, EPSILONS)):
                stated = law.delta_at(epsilon, n)
                require(stated * (1 + 1e-9) >= truth, "the bound lies below the exact delta")
        honest = law.n_users - law.colluding
        require(law.n_honest == honest, "those who help the analyser hide nobody")
        deltas = [law.delta_at(epsilon, honest) for epsilon in EPSILONS]
        require(all(a >= b for a, b in pairwise(deltas)), "delta must fall with epsilon")
        require(law.delta_at(float(law.epsilon), law.n_honest) <= float_up(law.delta), "the law must keep its delta")
        require(law.delta_at(float(law.epsilon), 1) >= law.delta_at(float(law.epsilon), law.n_honest),
                "delta must fall with the number of users")


def check_totals(shuffles):
    """Totals, and counts of a category, are unbiased; their variance is at most the stated one, and may be near it."""
    for law in shuffles.laws:
        n, ratios = law.n_users, []
        for share in (0.0, 0.3, 1.0):
            codes = law.input_codes[[0, -1]]
            codes = np.repeat(codes, [n - round(share * n), round(share * n)]).astype(law.code_dtype)
            positions = law.input_positions if hasattr(law, "total") else law.input_codes == 0
            truth = positions[[0, -1]] @ [n - round(share * n), round(share * n)]
            drawn = reports_of(law, np.tile(codes, TOTALS), 5).reshape(TOTALS, n, -1)
            found = [_total(law, part, n) for part in drawn]
            totals, told = np.array([total for total, _ in found]), np.mean([variance for _, variance in found])
            error = totals.mean() - truth
            variance = law.variance(n) if hasattr(law, "total") else told
            room = stats.norm.isf(ALPHA / 2) * math.sqrt(variance / TOTALS) + 1e-9 * n
            require(abs(error) <= room, "totals are biased")
            require(told <= variance * (1 + 1e-9), "what counts tell must not make the variance larger than at worst")
            ratios.append((totals.var() / told, totals.var() / variance))
        spread = stats.norm.isf(ALPHA / 2) * math.sqrt(2 / TOTALS) * 1.5  # (tails are a little heavier than normal)
        require(np.max(ratios) < 1 + spread, "totals vary more than is stated")
        require(np.max(ratios) > 0.6 - spread, "totals vary much less than is stated")


def check_shuffling_changes_nothing(shuffles):
    """The analyser's counts are the same in any order of messages, and say nothing else."""
    est, X = shuffles.fresh(), shuffles.rows()
    messages = est.encode(X)
    require(messages.shape[0] == len(X) and messages.dtype.kind == "u", "encode must return one row a user")
    require(np.array_equal(messages, shuffles.fresh().encode(X)), "an int random_state must reproduce the messages")
    mixed, many = est.shuffle(messages), est.encode(np.repeat(X, 50, axis=0))
    require(mixed.shape == messages.shape, "shuffle must return as many messages")
    apart = est.shuffle(many)
    require(not np.array_equal(apart, many), "shuffle must change the order")
    if messages.shape[1] > 1:
        together = [Counter(map(tuple, sent.tolist())) for sent in (many, apart)]
        require(together[0] != together[1], "messages of one user must not stay together")
    answers = [shuffles.fresh().analyse(sent).release() for sent in (messages, mixed)]
    require(same_state(*answers), "the analyser must not depend on the order of messages")
    require(same_state(answers[0], shuffles.fresh().fit(X).release()), "fit must be encode and analyse in a row")
    other = shuffles.rows(seed=1)
    other[0] = X[0]
    alone = np.array_equal(shuffles.fresh().encode(other)[0], messages[0])
    require(alone, "a user's messages must not depend on others")
    for n_jobs in (2, 3):
        require(np.array_equal(messages, shuffles.fresh(n_jobs=n_jobs).encode(X)), "messages must not depend on n_jobs")


def check_shuffle_answers(shuffles):
    """Estimates, standard errors and intervals of each column are those that its law makes of its counts."""
    X = shuffles.rows()
    n, tables = len(X), [X]
    if X.dtype != object:  # (sums at both ends are as often beyond them)
        tables += [X[np.full(n, at)] for at in (X[:, 0].argmin(), X[:, 0].argmax())]
    for rows in tables:
        est = shuffles.fresh()
        messages = est.encode(rows)
        _check_answers(est.analyse(messages), messages, n)


def _check_answers(est, messages, n):
    ends, z = est.confidence_interval(0.95), stats.norm.isf(0.025)
    for j, (column, part) in enumerate(zip(est._columns, est._columns.slices)):
        law, counts = column.law, np.zeros(column.law.n_counts, np.int64)
        law.count(np.ascontiguousarray(messages[:, part], law.report_dtype), counts)
        if hasattr(law, "total"):
            value, error = est.sum_[j], est.standard_error_[j]
            wanted = n * column.low + (column.high - column.low) * law.total(counts, n)
            stated = (column.high - column.low) * math.sqrt(law.variance(n, counts))
            at_ends = [stated, stated]
        else:
            value, error, wanted = est.frequencies_[j], est.standard_errors_[j], law.estimate(counts, n)
            at_zero, slope = law.variance_line(counts, n)
            stated, *at_ends = (np.sqrt(np.maximum(at_zero + slope * np.clip(f, 0, 1), 0) / n)
                                for f in (wanted, *ends[j].T))
        require(np.allclose(value, wanted, rtol=1e-9, atol=1e-9), "an estimate is not what its law makes of the counts")
        require(np.allclose(error, stated, rtol=1e-9, atol=1e-9), "a standard error is not that of its law")
        for end, side, own in zip(ends[j].T, (-z, z), at_ends):
            require(np.allclose(end, wanted + side * own, rtol=1e-9, atol=1e-9),
                    "an interval does not end z standard errors away")


def check_shuffle_promise(shuffles):
    """`privacy_` is what is charged: the declared budget, the shuffle model, who must be trusted, who may collude."""
    est, X = shuffles.fresh(ledger=Book()), shuffles.rows()
    before = est.privacy_
    est.fit(X)
    require(len(est.ledger.paid) == 1 and est.ledger.paid[0][0] == est.privacy_ == before, "fit must charge privacy_")
    stated = est.privacy_
    check_budget(est, stated)
    helpers = (est.colluding, (est.colluding + est.n_users) // 2, est.n_users - 1)
    left = [est.privacy_against(k).epsilon for k in helpers]
    require(left[0] == stated.epsilon and left[0] <= left[1] <= left[2], "more colluding users must leave less")
    local = sum(law.local_epsilon for law in est.randomizers_)
    require(left[2] <= local, "what is left must not be less than the local guarantee")
    refuses(lambda: est.privacy_against(est.n_users), "nobody honest", est)
    refuses(lambda: shuffles.fresh(ledger=Book(refuse=True)).fit(X), "an overdraft")
    many = shuffles.fresh(n_users=None).fit(X)
    require(many.n_users_ == len(X) and many.randomizers_[0].n_users == len(X), "without n_users all rows take part")


def check_budget(est, stated):
    """A guarantee is the declared budget, of the shuffle model, and says that there was a seed."""
    require((stated.epsilon, stated.delta) == (canonical_epsilon(est.epsilon), canonical_amount(est.delta, "delta")),
            "privacy_ must be the declared budget")
    require(stated.model == "shuffle" and stated.neighbours is Neighbours.SUBSTITUTION and stated.seeded,
            "privacy_ must be of the shuffle model, for data sets of equal size, and say that there was a seed")


def check_shuffle_refuses(shuffles):
    """Bad data and parameters, and too few users, are errors that show no value, change nothing and spend nothing."""
    X = shuffles.rows()
    check_parameters_are_refused(shuffles)
    for bad in ("text", [["a secret"]] * len(X), None, X[:0], X[:, 0], X[:-1]):
        est = shuffles.fresh(ledger=Book())
        message = refuses(lambda est=est, bad=bad: est.fit(bad), "bad data", est)
        require("secret" not in message and not est.ledger.paid, "bad data must be refused before anything is charged")
    est = shuffles.fresh()
    messages = est.encode(X)
    for bad in check_messages_are_looked_at(est, messages):
        refuses(lambda bad=bad: est.analyse(bad), "bad messages", est)
    require(est.shuffle(messages, Uneven(0.0)).shape == messages.shape, "a shuffler that is uniform must be taken")
    refuses(lambda: shuffles.fresh(n_users=None).encode(X), "encode without n_users")


def check_messages_are_looked_at(est, messages):
    """A shuffler is trusted to look: it refuses bad messages, which are returned, and orders that are not uniform."""
    wrong = (messages[:-1], messages.astype(np.float64), messages[:, :0], messages.tolist(), None)
    for bad in wrong:
        refuses(lambda bad=bad: est.shuffle(bad), "bad messages in shuffle", est)
    for far in (None, 2.0**-40, math.nan):
        shuffler = Uneven(far)
        refuses(lambda shuffler=shuffler: est.shuffle(messages, shuffler), "a shuffler that may be far from uniform")
        require(not shuffler.seen, "a shuffler must be refused before it sees messages")
    return wrong


class Uneven:
    """A shuffler that keeps the order, and states a distance from uniform, or none."""

    def __init__(self, far):
        self.seen = False
        if far is not None:
            self.distance = lambda n: far

    def shuffle(self, messages):
        """Return messages as they are."""
        self.seen = True
        return messages


def check_shuffle_state(shuffles):
    """Merging is adding, of other users only; clones and pickles stay what they were; seeds are told."""
    check_state_stays(shuffles)
    X, one, two = shuffles.rows(), shuffles.part(0), shuffles.part(1)
    counts = [a + b for a, b in zip(one._counts, two._counts)]
    require(all(map(np.array_equal, one.merge(two)._counts, counts)), "merge must add counts")
    other = shuffles.fresh(epsilon=float(one.epsilon) * 1.5, random_state=2).fit(X)
    refuses(lambda: one.merge(other), "merging another law", one)
    secure, many = shuffles.fresh(random_state=None), np.repeat(X, 500, axis=0)
    require(differs_each_time(lambda: secure.encode(many)), "secure noise must differ")
    require(secure.privacy_.seeded is False, "secure noise must not be called seeded")


def check_shuffle_in_strict_mode(shuffles):
    """In strict mode no error or warning depends on a value, and scores are refused."""
    X = shuffles.rows()
    with config_context(strict=True):
        outcomes = []
        coded = X.dtype.kind == "O"
        for odd in (X[0, 0], None, "never declared", []) if coded else (0.0, 1.0, math.nan, math.inf, 1e300):
            rows = X.copy() if coded else X.astype(np.float64)
            rows[1, 0] = odd
            est = shuffles.fresh(ledger=Book())
            in_strict_mode(partial(est.fit, rows))
            released = np.concatenate([np.ravel(part) for part in est.release()])
            require(bool(np.isfinite(released).all()), "strict mode must release numbers")
            outcomes.append((est.privacy_, len(est.ledger.paid)))
            sent = []
            for seed in (0, 1):  # (whoever the others are)
                others = shuffles.rows(seed=seed)
                others = others if coded else others.astype(np.float64)
                others[1] = rows[1]
                sent.append(shuffles.fresh().encode(others)[1])
            require(np.array_equal(*sent), "a user's messages must not depend on others")
        require(len({(str(g), k) for g, k in outcomes}) == 1, "strict mode must not tell values apart")
        refuses(lambda: est.score(X), "a score in strict mode")


CHECKS = (
    check_messages_follow_their_law,
    check_local_guarantee,
    check_bound_lies_above_the_truth,
    check_totals,
    check_shuffling_changes_nothing,
    check_shuffle_answers,
    check_shuffle_promise,
    check_shuffle_refuses,
    check_shuffle_state,
    check_shuffle_in_strict_mode,
)


def _enumerated(shuffles):
    """Return the laws that enumerate what a user sends; the others say why not."""
    for law in shuffles.laws:
        if not law.not_enumerated:
            yield law


def _codes(law):
    """Return a few inputs of a law, the first and the last among them."""
    codes = law.input_codes
    return codes[np.unique(np.linspace(0, len(codes) - 1, 3).astype(int))]


def _total(law, reports, n):
    """Return the total of reports, and what they say of its variance."""
    counts = np.zeros(law.n_counts, np.int64)
    law.count(reports, counts)
    if hasattr(law, "total"):
        return law.total(counts, n), law.variance(n, counts)
    return n * law.estimate(counts, n)[0], n**2 * law.variance(n)


def _p_value(seen, stated):
    """Return that of a chi-square test; rare messages are put together."""
    expected = {m: N * float(p) for m, p in stated.items()}
    often = [m for m, e in expected.items() if e >= 10]
    observed = [seen.get(m, 0) for m in often]
    wanted = [expected[m] for m in often]
    rest = N - sum(wanted)
    if rest > 1e-6 * N or N - sum(observed):
        observed, wanted = [*observed, N - sum(observed)], [*wanted, max(rest, 1e-3)]
    if len(wanted) < 2:
        return float(observed[0] == N)
    wanted = np.array(wanted) * (sum(observed) / sum(wanted))
    return float(stats.chisquare(observed, wanted).pvalue)


def worst_delta(laws, n, epsilon):
    """Return the largest delta at epsilon of all messages of n users, over all data sets and replacements."""
    return worst_deltas(laws, n, [epsilon])[0]


def worst_deltas(laws, n, epsilons):
    """Return the largest delta at each epsilon: what is seen, and how often, is worked out once for all of them."""
    laws = [{messages: float(p) for messages, p in law.items()} for law in laws]
    known, worst = {(): {(): 1.0}}, [0.0 for _ in epsilons]
    for length in range(1, n):
        for others in combinations_with_replacement(range(len(laws)), length):
            known[others] = _joined(known[others[:-1]], laws[others[-1]])
    for others in combinations_with_replacement(range(len(laws)), n - 1):
        seen = [_joined(known[others], law) for law in laws]
        places = dict.fromkeys(view for one in seen for view in one)
        views = np.array([[one.get(view, 0.0) for view in places] for one in seen])
        for k, epsilon in enumerate(epsilons):
            for two in math.exp(epsilon) * views:
                worst[k] = max(worst[k], float(np.maximum(views - two, 0.0).sum(axis=1).max()))
    return worst


def _joined(views, law):
    """Return the law of the multiset of messages with those of one more user."""
    out = {}
    for view, p in views.items():
        for messages, q in law.items():
            key = tuple(sorted(view + messages))
            out[key] = out.get(key, 0.0) + p * q
    return out
