"""What counts patterns from reports on neighbour lists: clipped counts, two rounds, and estimates over all reports."""

import copy
import math
import warnings
from itertools import product

import numpy as np
from scipy import sparse, stats

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing import lists
from dpestim.testing.behaviour import in_strict_mode
from dpestim.testing.lists import ALPHA, NODES, SEEDS, SMALL, Listed, same_rows
from dpestim.testing.tools import Book, refuses, require, same_state


def family(estimator):
    """Return how an estimator of lists is used."""
    return (Patterns if hasattr(estimator, "_truth_of_mean") else Listed)(estimator)


class Patterns(Listed):
    """An estimator of patterns, and how it is used."""

    wrong = {"reports": (None, "dense", 1), "method": (None, "noise", 1), "k": (1, 11, 2.5, True, "2", None),
             "bound_fraction": (0, 1, "a", None, True), "bits_fraction": (0, 1, "a", None, True),
             "communities": (None, "text", [1, 2], [[1] * 12], [1.5] * 12),
             "n_communities": (0, 1.5, True, "2", 10**6), "max_communities": (0, 1.5, True, "2", None)}

    def __init__(self, estimator):
        super().__init__(estimator)
        method = getattr(estimator, "method", "rnl")
        self.two, self.bits = method == "two_rounds", method in ("rnl", "one_round", "two_rounds")
        self.clipped = self.two or (hasattr(estimator, "bound_fraction") and not self.bits)
        if not self.clipped:  # (nothing is made of these)
            self.wrong = {name: values for name, values in self.wrong.items() if not name.endswith("_fraction")}

    def checks(self):
        """Return the checks for this one."""
        est = self.estimator
        found = [lists.check_lists_are_apart, lists.check_lists_containers, lists.check_lists_seeds]
        if self.bits:
            found += [lists.check_lists_strict_mode, lists.check_lists_formats][: 1 + ("reports" in est.get_params())]
            found.append(check_patterns_send_bits)
        else:
            found.append(check_patterns_strict_mode)
        found += [check_list_rounds] if self.two else [lists.check_lists_charge, lists.check_lists_aggregate]
        if self.clipped:
            found += [check_clipped_counts_keep_epsilon, check_clipped_counts_have_noise]
        elif not self.bits:
            found.append(check_counts_keep_epsilon)
        elif est._truth_of_mean:
            found.append(check_patterns_exactly)
        return found

    def opened(self, seed=0, **params):
        """Return an estimator in its last round."""
        est = self.fresh(**params)
        if self.two:
            X = self.rows(seed=seed)
            est.aggregate(self.fresh().privatize(X)).next_round()
        return est


def check_clipped_counts_keep_epsilon(subject):
    """One entry of a list moves a clipped count by what its noise is for; bound, bits and count share epsilon.

    All lists of four nodes, all entries, all bounds, and all published graphs are tried; the largest move is reached.
    """
    est, n = subject.fresh(), SMALL
    epsilon = canonical_epsilon(est.epsilon)
    spent = est._bounds.law.epsilon + est._count_epsilon() + (est._shares()[0] if subject.two else 0)
    require(spent == epsilon and est._bounds.law.sensitivity == 1, "the parts of epsilon must be epsilon")
    for bound in range(est._least, n):
        law = est._law(bound)
        require(law.epsilon <= est._count_epsilon() and law.sensitivity >= est._moves(bound),
                "the noise of a count is for less than a bound says")
    reached = set()
    for edges in product((0, 1), repeat=math.comb(n, 2)) if subject.two else [()]:
        if subject.two:
            bits = np.zeros((n, n), np.uint8)
            bits[np.triu_indices(n, 1)] = edges
            est._published = est._read_reports_of_bits(sparse.csr_array(bits))
        entries = list(range(1, n))  # of user 0
        for bound in range(est._least, n):
            counts = {code: est._count_of([node for bit, node in enumerate(entries) if code >> bit & 1], n, bound)
                      for code in range(1 << len(entries))}
            moves = [abs(counts[code] - counts[code ^ 1 << bit]) for code in counts for bit in range(len(entries))]
            require(max(moves) <= est._moves(bound), "an entry moves a count by more than its noise is for")
            reached |= {bound} if max(moves) == est._moves(bound) else set()
    require(est._least in reached, "no entry moves a count by what its noise is for, which must be less")


def check_clipped_counts_have_noise(subject):
    """Users without relationships report noise alone: of the stated size, and independent of each other's."""
    server = subject.fresh()
    nothing = np.zeros((NODES, NODES), np.uint8)
    if subject.two:
        server.aggregate(sparse.csr_array(nothing)).next_round()
    drawn = []
    for seed in range(SEEDS):
        client = server.client() if subject.two else server
        reports = client.set_params(random_state=seed).privatize(nothing)
        reports = reports[reports[:, 0] > 0]
        drawn.append([count / math.sqrt(server._law(bound).variance_steps) for bound, count in reports.tolist()])
    noise = np.concatenate(drawn)
    size = float((noise**2).mean())
    require(0.7 < size < 1.4, f"the noise of counts has {size:.2f} times its variance")  # (standard error: 0.08)
    for one, other in ((noise[1:], noise[:-1]), (drawn[0], drawn[1])):
        share = float(np.corrcoef(one, other)[0, 1])
        require(abs(share) * math.sqrt(len(one)) < 6, "noise of different users, or calls, is not independent")


def check_patterns_send_bits(subject):
    """Bits are flipped as their law says, for their part of epsilon; the test rejects other epsilons."""
    X, est = subject.rows(NODES), subject.fresh()
    law = est.bit_law_
    require(law.epsilon == est._shares()[0] if subject.two else law.epsilon == canonical_epsilon(est.epsilon),
            "bits must have their part of epsilon")
    times = min(-(-SEEDS * NODES**2 // len(X) ** 2), 10 * SEEDS)
    noise = np.concatenate([est._noise_of(X, subject.fresh(random_state=s).privatize(X)) for s in range(times)])
    for factor in (1, 0.7, 1.3):
        epsilon = canonical_epsilon(est.epsilon) * int(10 * factor) / 10
        agrees = lists._p_value(subject, epsilon, noise) > ALPHA
        require(agrees == (factor == 1), "reports are not randomised bits of their law")


def check_counts_keep_epsilon(subject):
    """One entry of a list moves the numbers of its user by 1 in sum, whose noise is for epsilon."""
    X, est = subject.rows(), subject.fresh()
    before, epsilon = est.privatize(X), canonical_epsilon(est.epsilon)
    for user, node in product(range(len(X)), repeat=2):
        if user == node:
            continue
        row = X[[user]].copy()
        row[0, node] ^= 1
        moved = np.abs(subject.fresh().privatize(row, [user]) - before[[user]]).sum()
        require(moved == (node > user), "an entry must move the numbers of its user by 1")
    exact = subject.fresh(epsilon=80.0).privatize(X)  # (noise of epsilon 80 is none)
    noise = np.concatenate([(subject.fresh(random_state=s).privatize(X) - exact).ravel() for s in range(60)])
    a = math.exp(-epsilon)
    values = np.arange(-3, 4)
    chances = np.append((1 - a) / (1 + a) * a ** np.abs(values), 2 * a**4 / (1 + a))
    seen = np.append([(noise == v).sum() for v in values], (np.abs(noise) > 3).sum())
    for factor, agrees in ((1, True), (0.7, False)):
        expected = chances**factor / (chances**factor).sum() * len(noise)
        p_value = stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1)
        require((p_value > ALPHA) == agrees, "the noise of numbers does not follow its law")


def check_list_rounds(subject):
    """`fit` is both rounds; users pay for each, and a client knows what was published and nothing else."""
    X = subject.rows()
    wanted = lists._shown(subject.fresh().fit(X))
    server, users, whole = subject.fresh(), subject.fresh(ledger=Book()), subject.fresh(ledger=Book())
    whole.fit(X)
    require([paid[2] for paid in whole.ledger.paid] == [len(X)], "fit must be charged once")
    require(whole.ledger.paid[0][0] == whole.privacy_, "privacy_ must be what is charged")
    refuses(lambda: subject.fresh(ledger=Book(refuse=True)).fit(X), "an overdraft")
    refuses(server.next_round, "a round without reports", server)
    half = len(X) // 2
    first = users.privatize(X)
    refuses(lambda: subject.fresh().aggregate(first[:half], np.arange(half), len(X)).next_round(), "half of a round")
    server.aggregate(first)
    require(not server.__sklearn_is_fitted__() and not lists._shown(server), "one round is no estimate")
    server.next_round()
    refuses(server.next_round, "a third round", server)
    client = server.client()
    client.set_params(ledger=users.ledger)
    second = client.privatize(X)
    refuses(lambda: client.privatize(X[:-1, :-1]), "a graph of other nodes", client)
    parts = copy.deepcopy(server)
    require(same_state(lists._shown(server.aggregate(second)), wanted), "fit must be both rounds")
    paid = [entry[0] for entry in users.ledger.paid]
    require(sum(guarantee.epsilon for guarantee in paid) == canonical_epsilon(subject.estimator.epsilon)
            and len({guarantee.neighbours for guarantee in paid}) == 1, "both rounds must cost epsilon")
    other = copy.deepcopy(parts)
    parts.aggregate(second[:half], np.arange(half), len(X))
    require(parts.client()._seen is None, "a client must not know reports")
    other.aggregate(second[half:], np.arange(half, len(X)), len(X))
    require(same_state(lists._shown(parts.merge(other)), wanted), "merging must be what fit does")
    stranger = subject.opened(seed=1)
    stranger.aggregate(second)
    refuses(lambda: copy.deepcopy(stranger).merge(server), "reports on another noisy graph")
    for bad in (first, second.astype(float), second[:, :1], second[::-1] + 99):
        refuses(lambda bad=bad: subject.opened().aggregate(bad), "no reports")
    row = X[[5]].copy()
    row[0, :5] ^= 1
    require(same_rows(client.privatize(row, [5]), second[[5]]), "only entries of higher number may be reported")
    for users_of in ([0, 1, 2], [2, 5, 6]):
        require(same_rows(client.privatize(X[users_of], users_of), second[users_of]), "a report depends on who reports")


def check_patterns_strict_mode(subject):
    """In strict mode an entry moves the report of its row only, and no error or charge depends on it."""
    X = subject.rows().astype(float)
    with config_context(strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wanted = subject.fresh().privatize(X)
        for value in (0.5, -1e308, math.nan, 1.0, 0.0):
            for place in ((0, 1), (2, 2), (5, 3)):
                odd, est = X.copy(), subject.fresh(ledger=Book())
                odd[place] = value
                seen = in_strict_mode(lambda est=est, odd=odd: est.privatize(odd))
                require(len(est.ledger.paid) == 1 and not caught, "strict mode must not tell about an entry")
                require(np.array_equal(np.delete(seen, place[0], 0), np.delete(wanted, place[0], 0)),
                        "in strict mode an entry must move the report of its row only")


def check_patterns_exactly(subject):
    """Over all reports of bits on graphs of four nodes: what is said to be unbiased has the exact mean."""
    est, n = subject.fresh(), SMALL
    if "communities" in est.get_params():
        est.set_params(communities=est.communities[:n])
    pairs, q = math.comb(n, 2), float(est.bit_law_.q)
    graphs = []
    for bits in product((0, 1), repeat=pairs):
        graphs.append(np.zeros((n, n), np.uint8))
        graphs[-1][np.triu_indices(n, 1)] = bits
    found = [copy.copy(est).aggregate(sparse.csr_array(graph)) for graph in graphs]
    for graph in graphs[::7]:
        apart = np.array([(graph != other).sum() for other in graphs])
        chances = q**apart * (1 - q) ** (pairs - apart)
        for name, truth in est._truth_of_mean(graph | graph.T).items():
            mean = np.tensordot(chances, np.array([getattr(one, name) for one in found]), 1)
            require(np.allclose(mean, truth, atol=1e-9), f"{name} is biased")


CHECKS = (check_clipped_counts_keep_epsilon, check_clipped_counts_have_noise, check_patterns_send_bits,
          check_counts_keep_epsilon, check_list_rounds, check_patterns_strict_mode, check_patterns_exactly)
