"""Unary encoding with an epsilon for each value (IDUE): bits of less sensitive values are flipped less."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from dpestim._core import unary
from dpestim.local.categories.column import list_of
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.unary import Unary
from dpestim.privacy.exact import WORD, canonical_epsilon, exp_lower
from dpestim.rng import Stage

#: Categories and distinct epsilons: a random word is spent on every bit, and every pair of levels is verified.
LARGEST_IDUE, MOST_LEVELS = 1 << 16, 32
_GRID = 1 << 40  # optimised probabilities are rounded to it, so that machines agree


class IDUE(Unary):
    """Unary encoding by two thresholds for each level of epsilon; a report is packed bits."""

    slack = ("pairs of values differ in what they need, and a bit is flipped as its strictest pair asks; less than "
             "epsilon may be used")
    largest_planned = 0

    def __init__(self, epsilon, n_categories, epsilons=None, optimize="opt0"):
        CategoricalRandomizer.__init__(self, epsilon, n_categories)
        if n_categories > LARGEST_IDUE:
            raise ValueError("categories: an epsilon for each value is possible for at most 2**16 of them")
        if optimize not in ("opt0", "opt1", "opt2"):
            raise ValueError("optimize must be 'opt0', 'opt1' or 'opt2'")
        own = (self.epsilon,) * n_categories if epsilons is None else epsilons
        if len(own) != n_categories:
            raise ValueError("epsilons must have one epsilon for each category")
        # what any two values have at most: epsilon
        own = [min(canonical_epsilon(e, "epsilons"), self.epsilon) for e in own]
        levels, number, sizes = np.unique(np.array(own, dtype=object), return_inverse=True, return_counts=True)
        if len(levels) > MOST_LEVELS:
            raise ValueError(f"epsilons must have at most {MOST_LEVELS} distinct values for each column")
        self.levels = tuple(levels.tolist())
        pairs = level_thresholds(self.levels, tuple(sizes.tolist()), optimize)
        true, false = (np.array([pair[k] for pair in pairs], np.uint64)[number.ravel()] for k in (0, 1))
        self._true, self._false = self._odds = np.stack([true, false])
        self.p_stars, self.q_stars = ([Fraction(int(t), WORD) for t in part] for part in (true, false))
        self.p_star, self.q_star = self.p_stars[0], self.q_stars[0]
        self.n_words = n_categories
        self._p, self._q = (np.array([float(p) for p in part]) for part in (self.p_stars, self.q_stars))
        self.notes = () if epsilons is None else (
            "For any two values the smaller of their epsilons holds; the epsilons are "
            f"{', '.join(f'{float(e):g}' for e in self.levels)} (MinID-LDP).",)

    def constants(self):
        """Return, for each value, of 2^64 words those that make its bit 1: where it is held, and where it is not."""
        return {"true_thresholds": self._true.tolist(), "false_thresholds": self._false.tolist()}

    def privatize(self, codes, words, out):
        """Write packed bits: one word decides about each."""
        unary.compare(codes, words.dense(Stage.RESPONSE, self.n_words), self._odds, out)

    def _bit_probabilities(self, x):
        return [p if v == x else q for v, (p, q) in enumerate(zip(self.p_stars, self.q_stars))]

    support_odds = None

    @property
    def knows_reports(self):
        """Whether there is one level: bits of several have laws of their own."""
        return len(self.levels) == 1

    def support_law(self):
        """Return rows of Fractions: entry (x, v) is the probability that a report of x supports v."""
        return [self._bit_probabilities(x) for x in range(self.n_categories)]

    def worst_ratio(self):
        """Return the largest ratio of the probabilities of a report."""
        kinds = set(zip(self._true.tolist(), self._false.tolist()))
        count = {kind: 0 for kind in kinds}
        for kind in zip(self._true.tolist(), self._false.tolist()):
            count[kind] += 1
        return max(_ratio(a, b) for a in kinds for b in kinds if a != b or count[a] > 1)

    def estimate(self, counts, n):
        """Return the unbiased frequencies, each by the probabilities of its own bit."""
        return (counts / n - self._q) / (self._p - self._q)

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values."""
        pairs = [(self.p_stars[v], self.q_stars[v]) for v in goal.tolist()]
        return sum(-q / (p - q) for p, q in pairs), sum((1 - q) / (p - q) for p, q in pairs)

    def variance(self, n, f):
        """Return the exact variance of `estimate` for n users of whom a share f holds the value (FORMULAS VAR)."""
        at_zero, slope = self.variance_line(None, n)
        return (at_zero + slope * np.asarray(f, dtype=np.float64)) / n

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance as a line in f."""
        p, q = self._p, self._q
        return q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q)

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: bits are independent, O(d log d)."""
        yes, no = self._p / self._q, (1 - self._p) / (1 - self._q)
        return _success(prior * yes, prior * no, self._p, self._q)

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each category."""
        yes, no = self._p / self._q, (1 - self._p) / (1 - self._q)
        return np.where(self.support(reports), yes, no)


def _success(high, low, p, q):
    """Return how often each value's score is the largest; ties at random among equals. O(d^2) and exact up to ties."""
    d, out = len(p), np.empty(len(p))
    for x in range(d):
        out[x] = sum(chance * _wins(score, x, high, low, q) for score, chance in ((high[x], p[x]), (low[x], 1 - p[x])))
    return out


def _wins(score, x, high, low, q):
    """Return the chance that the score of x wins against independent others, by E[1 / (1 + ties)]."""
    above, at = score * (1 + 1e-9), score * (1 - 1e-9)
    others = np.arange(len(q)) != x
    if (low[others] > above).any():
        return 0.0
    beats, ties = others & (high > above), others & (high >= at) & (high <= above)
    always = np.count_nonzero(others & (low >= at))
    alone = np.prod(1 - np.where(beats, q, 0.0))
    nodes, weights = np.polynomial.legendre.leggauss(max(2, (always + np.count_nonzero(ties)) // 2 + 2))
    z = (nodes + 1) / 2  # E[1 / (1 + T)] is the integral of E[z^T], a polynomial
    # (a value that surely ties has a low score there: its high one beats)
    q_ties = q[ties & ~(low >= at)]
    return float(alone * (weights / 2 * z**always) @ np.prod(1 - q_ties + q_ties * z[:, None], axis=1))


def _ratio(one, other):
    """Return the ratio for an own value of thresholds `one` and another value of thresholds `other`."""
    (a, b), (c, e) = one, other
    return Fraction(a * (WORD - e), b * (WORD - c))


@lru_cache(maxsize=64)
def level_thresholds(levels, sizes, optimize):
    """Return (t1, t0) for each level, verified: every pair, a level with itself included, keeps the smaller epsilon.

    The optimiser's floats are a proposal only: false thresholds rise until every ratio of integers is at most e'.
    """
    bounds = [[exp_lower(min(x, y)) for y in levels] for x in levels]
    a, b = _proposal(np.array([float(e) for e in levels]), np.array(sizes, float), optimize)
    a = [round(p * _GRID) * (WORD // _GRID) for p in a]
    b = [round(p * _GRID) * (WORD // _GRID) for p in b]
    shrink = Fraction(0)
    for _ in range(60):
        pairs = [(t, f + int((t - f) * shrink)) for t, f in zip(a, b)]
        if all(0 < f < t < WORD for t, f in pairs) and all(
            _ratio(x, y) <= bounds[i][j] for i, x in enumerate(pairs) for j, y in enumerate(pairs)
        ):
            return tuple(pairs)
        shrink = 2 * shrink or Fraction(1, 1 << 40)
        if shrink > Fraction(1, 100):
            break
    raise ValueError("epsilons are too small or too far apart, because 64-bit random words cannot express the law: "
                     "take larger or more similar ones")


def _proposal(e, m, optimize):
    """Return the probabilities of true and of false bits for each level, as floats (FORMULAS 5.8)."""
    n, r = len(e), np.minimum.outer(e, e)
    i, j = np.triu_indices(n)

    def solve(objective, start, constraint, low, high):
        found = minimize(objective, start, constraints={"type": "ineq", "fun": constraint}, method="SLSQP",
                         bounds=[(low, high)] * len(start), options={"maxiter": 300, "ftol": 1e-12})
        x = np.clip(found.x, low, high)
        fine = np.isfinite(x).all() and constraint(x).min() > -1e-6 and objective(x) <= objective(start)
        return x if fine else np.asarray(start, float)

    tau = solve(lambda t: np.log(m @ (np.exp(t) / np.expm1(t) ** 2)), np.full(n, e.min() / 2),
                lambda t: (r - np.add.outer(t, t))[i, j], e.min() / 1000, e.max())
    if optimize == "opt1":
        return 1 / (1 + np.exp(-tau)), 1 / (1 + np.exp(tau))
    half = solve(lambda b: np.log(m @ (b * (1 - b) / (0.5 - b) ** 2)), np.full(n, 1 / (np.exp(e.min()) + 1)),
                 lambda b: (np.exp(r) * b[:, None] - (1 - b)[None, :]).ravel(), 1e-12, 0.5 - 1e-9)
    if optimize == "opt2":
        return np.full(n, 0.5), half

    def cost(x):
        a, b = x[:n], x[n:]
        return np.log(m @ (b * (1 - b) / (a - b) ** 2) + max(((1 - a - b) / (a - b)).max(), 0))

    def allowed(x):
        a, b = x[:n], x[n:]
        ratio = np.log(a / b)[:, None] + np.log((1 - b) / (1 - a))[None, :]
        return np.concatenate([(r - ratio).ravel(), a - b - 1e-9])

    starts = [np.concatenate([1 / (1 + np.exp(-tau)), 1 / (1 + np.exp(tau))]), np.concatenate([np.full(n, 0.5), half])]
    best = min((solve(cost, s, allowed, 1e-12, 1 - 1e-12) for s in starts), key=cost)
    return best[:n], best[n:]


class IDUEFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by input-discriminative unary encoding (IDUE), with an epsilon for each value.

    Each user sends one bit for each value, and bits of values with a larger epsilon are flipped less often. Two values
    are indistinguishable up to the smaller of their epsilons (MinID-LDP), and any two values up to `epsilon`: the
    guarantee is local differential privacy, and stronger for values with a smaller epsilon. Choose IDUE where values
    need different degrees of protection. Where some values need no protection, take `URAPFrequencyEstimator`.

    **Privacy.** epsilon-local differential privacy for a row, exact, which is what a ledger is charged; and for values
    x and x' the smaller of their own epsilons, exact (integer thresholds, verified for every pair of levels after the
    optimisation, proof in ``idue.md``). Neighbours: any two rows of one user; no other party is trusted. An epsilon of
    min(max E, 2 min E) for own epsilons E costs no accuracy: they imply it.

    **Utility.** Unbiased; if the bit of a value is 1 with probability a for its holders and b for other users, the
    variance of its frequency f is (b (1 - b) / (a - b)^2 + f (1 - a - b) / (a - b)) / n.

    **Complexity.** O(d) random words a user and O(n d) bit operations at the server; d bits sent.

    {parameters}
    References
    ----------
    X. Gu, M. Li, L. Xiong, Y. Cao, "Providing input-discriminative protection for local differential privacy", ICDE
    2020 (IDUE and its three optimisations).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import IDUEFrequencyEstimator
    >>> X = np.repeat([["flu"], ["HIV"], ["none"]], [3000, 1000, 6000], axis=0)
    >>> est = IDUEFrequencyEstimator(
    ...     1.0, epsilons=[[0.5, 1.0, 1.0]], categories=[["HIV", "flu", "none"]], random_state=0
    ... ).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.1, 0.3, 0.6]).max() < 0.08
    np.True_
    >>> float(est.privacy_.epsilon)
    1.0
    """

    _randomizer = IDUE
    _more_parameters = """
    epsilons : list or dict of array-like, default=None
        For each column one epsilon for each category, in the form and the order of `categories`; shared among the
        columns as epsilon is, and at most 32 distinct ones. None: all have epsilon. Above epsilon they count as it.
    optimize : {"opt0", "opt1", "opt2"}, default="opt0"
        What probabilities of bits are optimised over: all, symmetric ones, or those with a fair coin for the true bit.
    """
    _test_values = {"epsilons": [[[0.3, 0.3, 0.2, 0.2]], [[0.4, 0.3, 0.3], [0.2, 0.3]]], "optimize": ["opt1"]}

    def __init__(self, epsilon=1.0, *, epsilons=None, optimize="opt0", categories="auto", postprocess=None,
                 sparse_output=False, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.epsilons = epsilons
        self.optimize = optimize

    def _law_arguments(self, column, n_columns, encoder):
        if self.epsilons is None:
            return {"optimize": self.optimize}
        listed = list_of(self.epsilons, "epsilons", column, n_columns, encoder)
        own = [canonical_epsilon(e, "epsilons") / n_columns for e in np.asarray(listed, dtype=object).tolist()]
        if len(own) != len(encoder.categories):
            raise ValueError(f"epsilons of {encoder.name} must have one epsilon for each category")
        return {"epsilons": tuple(own), "optimize": self.optimize}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]], "epsilons": [[0.5, 1.0, 1.0, 2.0]]},
            {"epsilon": 3.0, "categories": [["a", "b", "c"], [False, True]], "epsilons": [[2.0, 3.0, 3.0], [3.0, 2.0]],
             "optimize": "opt2"},
        ]
