"""What randomises neighbour lists: what one entry moves, the law of the noise, users apart, estimates without bias."""

import copy
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

#: Nodes of graphs of which each entry is tried; nodes of one whose noise is looked at, seeds, and the significance.
SMALL, NODES, SEEDS, ALPHA = 4, 64, 12, 1e-6
#: Reports of the small graph in which each number is looked at by itself (5 standard errors: one in 10^6 a number).
REPEATS = 240


class Listed(Subject):
    """A mechanism of neighbour lists, and how it is used."""

    wrong = {"lists": (None, "all", 1), "reports": (None, "dense", 1), "method": (None, "noise", 1)}

    def checks(self):
        """Return the checks for this one: of estimates only what estimates."""
        estimates = hasattr(self.estimator, "aggregate")
        bits = hasattr(self.estimator, "bit_law_")
        formats = bits and "reports" in self.estimator.get_params()
        return (*CHECKS, *ESTIMATE_CHECKS * estimates, *BIT_CHECKS * formats, *EXACT_CHECKS * (estimates and bits))

    def rows(self, n=None, seed=0):
        """Return the adjacency matrix of a graph."""
        return self.estimator._test_data(n or 12, seed)[0]

    def use(self, est):
        """Release once."""
        est.privatize(self.rows())

    def numbers(self, est, X, users=None):
        """Return the numbers that are randomised in reports, a row of integers for each user."""
        return est._numbers(est.privatize(X) if users is None else est.privatize(X, users))


def check_lists_keep_epsilon(lists):
    """One entry of a list moves one number of that user's report by 1, and others none; an edge moves what is declared.

    All entries of all lists of a user are tried, with the same noise; a number that moves by 1 costs epsilon at most.
    """
    est = lists.fresh()
    epsilon = canonical_epsilon(est.epsilon)
    require(est._loss() <= epsilon, "a number that moves by one costs more than epsilon")
    most = {"list": 2, "edge": 1}[est.privacy_.neighbours.value]
    require(est.privacy_.epsilon == epsilon and est.privacy_.model == "local", "privacy_ must say epsilon")
    for user in range(SMALL):
        moved = _moves(SMALL - 1, lambda bits, user=user: lists.numbers(est, np.insert(bits, user, 0)[None], [user]))
        require(moved <= {0, 1}, "an entry of a list moves a report by more than 1")
    moved = _moves(math.comb(SMALL, 2), lambda edges: lists.numbers(est, _graph(edges)))
    require(0 < min(moved) <= max(moved) <= most, "an edge moves reports by another number than what is declared")


def _moves(n_bits, numbers):
    """Return by how much numbers of bits move in all, for all bits and each one of them that changes."""
    seen = {bits: numbers(np.array(bits, np.uint8)) for bits in product((0, 1), repeat=n_bits)}
    near = ((bits, (*bits[:k], 1 - bits[k], *bits[k + 1 :])) for bits in seen for k in range(n_bits))
    return {int(np.abs(seen[one] - seen[other]).sum()) for one, other in near}


def _graph(edges):
    graph = np.zeros((SMALL, SMALL), np.uint8)
    graph[np.triu_indices(SMALL, 1)] = edges
    return graph | graph.T


def check_lists_follow_law(lists):
    """The noise of reports follows the stated law, number by number; the test rejects other epsilons, and repeats."""
    X, epsilon = lists.rows(NODES), canonical_epsilon(lists.estimator.epsilon)
    quiet = lists.fresh(epsilon=lists.estimator.epsilon)
    noise = np.concatenate([quiet._noise_of(X, lists.fresh(random_state=s).privatize(X)) for s in range(SEEDS)])
    require(_p_value(lists, epsilon, noise) > ALPHA, "the noise does not follow its law")
    for factor in (0.7, 1.3):
        require(_p_value(lists, epsilon * 10 * factor / 10, noise) < ALPHA, "the test sees no other epsilon")
    for lag in (1, 2):
        share = float(np.corrcoef(noise[lag:], noise[:-lag])[0, 1])
        require(abs(share) * math.sqrt(len(noise)) < 6, "noise of neighbouring numbers is not independent")


def check_lists_each_has_noise(lists):
    """Each number of each user has noise as often as the law says, and noise of its own."""
    X, est = lists.rows(SMALL), lists.fresh()
    noise = np.array([est._noise_of(X, est.set_params(random_state=s).privatize(X)) for s in range(REPEATS)], float)
    share = 1 - float(est._noise_chances(np.zeros(1, int))[0])
    off = ((noise != 0).mean(axis=0) - share) / math.sqrt(share * (1 - share) / REPEATS)
    require(np.abs(off).max() < 5, "a number has no noise, or another one than stated")
    related = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    require(np.abs(related).max() * math.sqrt(REPEATS) < 5, "two numbers share noise")


def _p_value(lists, epsilon, noise):
    """Return the p-value of a chi-square test of integers against the law for an epsilon."""
    values = np.arange(-40, 41)
    chances = lists.fresh(epsilon=float(epsilon))._noise_chances(values)
    order = np.argsort(-chances)
    kept = np.sort(order[: max(2, int((chances * len(noise) > 20).sum()))])
    observed = np.array([(noise == v).sum() for v in values[kept]], float)
    rest = max(1 - chances[kept].sum(), 1e-15)
    expected = np.append(chances[kept], rest) * len(noise)
    observed = np.append(observed, len(noise) - observed.sum())
    if rest * len(noise) < 1:
        require(observed[-1] < 20, "noise has values that its law does not have")
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def check_lists_are_apart(lists):
    """A user's report is made of the user's list and number: it is the same alone, and whatever others' lists are."""
    X = lists.rows()
    whole, others = lists.fresh().privatize(X), lists.rows(seed=1)
    for users in ([0, 1, 2], [3], [2, 5, 6, 11]):
        apart = lists.fresh().privatize(X[users], users)
        require(same_rows(apart, whole[users]), "a report depends on who else reports")
        mixed = others.copy()
        mixed[users] = X[users]
        again = lists.fresh().privatize(mixed, list(range(len(X))))
        require(same_rows(again[users], whole[users]), "a report depends on the lists of others")
    for n_jobs in (2, 3):
        require(same_rows(lists.fresh(n_jobs=n_jobs).privatize(X), whole), "reports depend on n_jobs")


def same_rows(a, b):
    """Tell whether reports are equal."""
    if sparse.issparse(a):
        return a.shape == b.shape and np.array_equal(a.toarray(), b.toarray())
    return a.dtype == b.dtype and np.array_equal(a, b)


def check_lists_containers(lists):
    """Sparse matrices of any format and arrays of any dtype give the same reports."""
    X = lists.rows()
    wanted = lists.fresh().privatize(X)
    for other in (X.astype(bool), X.astype(float), np.asfortranarray(X), sparse.csr_array(X), sparse.csc_matrix(X),
                  sparse.coo_array(X.astype(np.int64))):
        require(same_rows(lists.fresh().privatize(other), wanted), f"{type(other).__name__} gives other reports")
        rows = other.tocsr()[2:5] if sparse.issparse(other) else other[2:5]
        require(same_rows(lists.fresh().privatize(rows, [2, 3, 4]), wanted[2:5]), "rows give other reports")


def check_lists_charge(lists):
    """A release is charged once, before noise is drawn; bad input is refused before that, and changes nothing."""
    check_parameters_are_refused(lists)
    X = lists.rows()
    for verb, uses in {"privatize": 12, "fit": 12}.items():
        est = lists.fresh(ledger=Book())
        if verb == "fit" and not hasattr(est, "aggregate"):
            continue
        getattr(est, verb)(X)
        require([paid[2] for paid in est.ledger.paid] == [uses], "a release must be charged once")
        require(est.ledger.paid[0][0] == est.privacy_, "privacy_ must be what is charged")
        refuses(lambda verb=verb: getattr(lists.fresh(ledger=Book(refuse=True)), verb)(X), "an overdraft")
    est = lists.fresh(ledger=Book())
    est.privatize(X[:3], [0, 4, 5])
    require(est.ledger.paid[0][2] == 3, "what is charged must be about the users who report")
    twice = X.copy()
    twice[0, 5] = 2
    bad = [("text", None), (None, None), (X[:, :-1], None), (2 * X, None), (X + np.eye(12), None), (X[:3], [0, 4, 5]),
           (np.triu(X), None), (X.astype(object), None), (X[:0], [])]
    wrong = [(X, [0]), (X[:3], [4, 5, 0]), (X[:3], [0, 4, 4]), (X[:3], [0, 4, 12]), (X[:3], [0.0, 1.0, 2.0]),
             (X[:3], "abc"), (twice[:3], [0, 1, 2]), (X[:3] + np.eye(3, 12), [0, 1, 2])]
    for data, users in [*((data, users) for data, users in bad if users is None), *wrong, bad[-1]]:
        est = lists.fresh(ledger=Book())
        refuses(lambda est=est, data=data, users=users: est.privatize(data, users), "bad lists", est)
        require(not est.ledger.paid, "bad lists must be refused before anything is charged")


def check_lists_seeds(lists):
    """A seed reproduces reports, and its absence never does; clones and pickles report the same; privacy_ says so."""
    X, more = lists.rows(), lists.rows(NODES)
    wanted = lists.fresh().privatize(X)
    require(not same_rows(lists.fresh(random_state=1).privatize(more), lists.fresh().privatize(more)),
            "another seed, other noise")
    secure = lists.fresh(random_state=None)
    require(differs_each_time(lambda: secure.privatize(more), same_rows), "secure reports must differ")
    require(lists.fresh().privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say if there was a seed")
    est = lists.fresh()
    for twin in (clone(est), pickle.loads(pickle.dumps(est))):
        require(same_rows(twin.privatize(X), wanted), "clones and pickles must report the same")


def check_lists_strict_mode(lists):
    """In strict mode any square matrix of numbers is a graph: no error, warning or charge depends on an entry."""
    X = lists.rows().astype(float)
    with config_context(strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wanted = lists.numbers(lists.fresh(), X)
        for value in (0.5, -1e308, math.nan, 1.0, 0.0):
            for place in ((0, 1), (2, 2), (5, 3)):
                odd, est = X.copy(), lists.fresh(ledger=Book())
                odd[place] = value
                seen = in_strict_mode(lambda est=est, odd=odd: lists.numbers(est, odd))
                require(len(est.ledger.paid) == 1 and not caught, "strict mode must not tell about an entry")
                moved = np.abs(seen - wanted)
                require(moved.sum() <= 1 and not np.delete(moved, place[0], axis=0).any(),
                        "in strict mode an entry must move the report of its row only")


CHECKS = (check_lists_keep_epsilon, check_lists_follow_law, check_lists_each_has_noise, check_lists_are_apart,
          check_lists_containers, check_lists_charge, check_lists_seeds, check_lists_strict_mode)


def check_lists_formats(lists):
    """Packed and sparse reports hold the same bits."""
    X = lists.rows()
    packed, ones = (lists.fresh(reports=reports).privatize(X) for reports in ("packed", "sparse"))
    right = isinstance(packed, np.ndarray) and packed.dtype == np.uint8 and isinstance(ones, sparse.csr_array)
    require(right and ones.has_canonical_format, "reports must be uint8, or a csr_array in canonical format")
    bits = np.unpackbits(packed, axis=1, bitorder="little", count=len(X))
    require(np.array_equal(bits, ones.toarray()), "packed and sparse reports differ")


BIT_CHECKS = (check_lists_formats,)


def check_lists_aggregate(lists):
    """Aggregates of reports, in one piece or of users apart, are the fit; merging adds other users, none twice."""
    X = lists.rows()
    wanted = _shown(lists.fresh().fit(X))
    require(bool(wanted), "a fit must show something")
    reports, n = lists.fresh().privatize(X), len(X)
    require(same_state(_shown(lists.fresh().aggregate(reports)), wanted), "aggregate must be what fit does")
    first, second = np.arange(0, n, 2), np.arange(1, n, 2)
    one = lists.fresh().aggregate(reports[first], first, n)
    require(not one.__sklearn_is_fitted__() and not _shown(one) and one.n_users_ == len(first),
            "nothing can be estimated before all users have reported")
    refuses(lambda: one.aggregate(reports[first[:1]], first[:1], n), "a user who reports twice", one)
    two = lists.fresh().aggregate(reports[second], second, n)
    refuses(lambda: one.merge(one), "merging with itself", one)
    other = lists.fresh(epsilon=2 * lists.estimator.epsilon).aggregate(reports[second], second, n)
    refuses(lambda: one.merge(other), "merging another law", one)
    merged = pickle.loads(pickle.dumps(one)).merge(two)
    require(same_state(_shown(merged), wanted), "merging must be what fit does")
    both = one.aggregate(reports[second], second, n)
    require(same_state(_shown(both), wanted), "aggregating in parts must be that, too")
    for bad in (None, "text", [[1]], reports[:, None] if reports.ndim == 1 else reports[0]):
        refuses(lambda bad=bad: lists.fresh().aggregate(bad), "no reports")
    require(merged.privacy_.epsilon == canonical_epsilon(lists.estimator.epsilon), "other users must not pay for these")


def _shown(est):
    """Return the public attributes of a fit."""
    return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}


ESTIMATE_CHECKS = (check_lists_aggregate,)


def check_lists_exactly(lists):
    """Over all reports on all graphs of three nodes: estimates have the exact means, and the stated standard errors."""
    est = lists.fresh()
    half, n = est.lists == "half", 3
    slots = [(i, j) for i in range(n) for j in range(n) if (j > i if half else j != i)]
    p, q = float(est.bit_law_.p), float(est.bit_law_.q)
    outcomes = list(product((0, 1), repeat=len(slots)))
    found = []
    for bits in outcomes:
        report = np.zeros((n, n), np.uint8)
        report[tuple(np.array(slots).T)] = bits
        fitted = copy.copy(est).aggregate(sparse.csr_array(report))
        found.append({name: np.asarray(getattr(fitted, name), float) for name in est._unbiased})
        error = np.asarray(fitted.standard_error_, float)
    for edges in product((0, 1), repeat=3):
        graph = np.zeros((n, n), np.uint8)
        graph[np.triu_indices(n, 1)] = edges
        graph |= graph.T
        ones = np.array([p if graph[slot] else q for slot in slots])
        weights = np.array([np.prod(np.where(bits, ones, 1 - ones)) for bits in outcomes])
        for name, truth in est._truth(graph).items():
            values = np.array([one[name] for one in found])
            mean = np.tensordot(weights, values, 1)
            require(np.allclose(mean, truth, atol=1e-9), f"{name} is biased")
            variance = np.tensordot(weights, (values - truth) ** 2, 1)
            require(np.allclose(np.sqrt(variance), error, atol=1e-9), "standard_error_ is not that of the estimates")


EXACT_CHECKS = (check_lists_exactly,)
