"""Mechanisms that choose: the exact law on neighbouring scores, choices that follow it, what is charged, containers.

For estimators with `release`, `sensitivity` and `law(whole)`, whose law states `enclosures` and `draw`.
"""

import importlib
import importlib.util
import math
import pickle
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy import stats

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import LEAST_USE, canonical_amount, canonical_epsilon, exp_lower, exp_upper
from dpestim.rng import WordSource
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import require

#: Sample size and significance of the statistical checks; the same test must reject the laws of 0.7 and 1.3 epsilon.
N = 1500
ALPHA = 1e-6
#: Enclosures of probabilities are at least that narrow.
_TINY = Fraction(1, 10**25)


class Choices(Releases):
    """An estimator to check, its law for integers where it is for reals too, and choices drawn for all checks."""

    wrong = {
        "monotone": (None, 1, "yes"),
        "k": (None, 0, -1, 1.5, "2", True, 7),
        "method": (None, "best"),
        "noise": (None, "best"),
        "cap": (None, 0, -1.0, math.nan, math.inf, "1", True),
        "bounds": (3, (1,), (1, 1), (2, 1), (math.nan, 1), (0, math.inf), "ab", ("0", "1")),
    }

    @cached_property
    def law(self):
        """The law of integer scores."""
        return self.estimator.law(True)

    @cached_property
    def codes(self):
        """Scores whose choices tell the laws of 0.7 and 1.3 epsilon apart, whatever epsilon is."""
        unit = 1 / self.law.rate
        return np.array([0, 0, round(-unit), round(-2 * unit)], np.int64)

    @cached_property
    def drawn(self):
        """How often each outcome was drawn, of N."""
        source, counts = WordSource(1), {}
        for k in range(N):
            chosen = self.law.draw(self.codes, source.part(k))
            key = tuple(int(i) for i in chosen) if np.ndim(chosen) else int(chosen)
            counts[key] = counts.get(key, 0) + 1
        return counts

    def checks(self):
        """Return the checks."""
        ranged = getattr(self.estimator, "bounds", None) is not None
        return (*LAW_CHECKS, *RELEASE_CHECKS, *ESTIMATOR_CHECKS, *EDGE_CHECKS * ranged)

    def free(self, est):
        """Facts about the choice."""
        est.law()
        est.utility_bound(6)
        est.probabilities(self.data)

    def entropy(self, est):
        """Several choices among many."""
        even = np.zeros(64)
        if est.random_state is None:
            return [np.asarray(est.release(even)).tolist() for _ in range(8)]
        return [np.asarray(est.set_params(random_state=8 * est.random_state + k).release(even)).tolist()
                for k in range(8)]

    def bad(self):
        """What is no list of finite scores."""
        arrays = np.array(["a"] * 6), np.array([1j] * 6), np.ma.masked_array([1] * 6), np.zeros((6, 2)), np.zeros(0)
        return 1.0, [1.0] * 5 + [math.nan], [math.inf] * 6, {"secret": math.nan}, {}, *arrays

    def odd(self):
        """Yield scores with odd ones among them."""
        for value in (self.data[0], math.nan, math.inf, -math.inf, 1e308, 5e-324):
            other = self.data.copy()
            other[1] = value
            yield other
        yield np.full(6, math.nan)


def check_choice_is_a_distribution(choices):
    """Probabilities of all outcomes sum to 1."""
    for codes in (choices.codes, choices.codes[:3] * 50):
        known = choices.law.enclosures(codes)
        for low, high in known.values():
            require(0 < low <= high <= low * (1 + _TINY), "an enclosure must be positive, and narrow to 1e-25")
        low, high = (sum(side) for side in zip(*known.values()))
        require(low <= 1 <= high, "probabilities must sum to 1")


def check_choice_keeps_epsilon(choices):
    """The worst ratio of probabilities for neighbouring scores is e^epsilon, or little less."""
    law, worst = choices.law, 0
    require(law.epsilon == canonical_epsilon(choices.estimator.epsilon), "the law must have the declared budget")
    s = law.sensitivity
    moves = [(0, s), (-s, 0)] if law.monotone else [(-s, s)]
    for base in ((0, 0, 0), (0, s, 2 * s), (0, 0, 40 * s), (0, 20 * s, 40 * s)):
        known = law.enclosures(np.array(base, np.int64))
        for move in (m for ways in moves for m in product(ways, repeat=3)):
            other = law.enclosures(np.array(base, np.int64) + np.array(move, np.int64))
            for outcome, (low, high) in known.items():
                for ratio in (low / other[outcome][1], other[outcome][0] / high):
                    require(ratio <= exp_upper(law.epsilon) * (1 + _TINY), "a ratio of probabilities exceeds e^epsilon")
                    worst = max(worst, ratio)
    require(law.slack or worst >= exp_lower(LEAST_USE * law.epsilon), "less than 0.99 of epsilon is used")


def check_scores_keep_their_sensitivity(choices):
    """Rounded to the grid, scores that are the sensitivity apart are no further apart than the law allows for."""
    est = choices.estimator
    exact = canonical_amount(est.sensitivity, "sensitivity")
    rng = np.random.default_rng(0)
    for whole in (False, True):
        law = est.law(whole)
        require(law.sensitivity * Fraction(2) ** law.exponent >= exact, "the grid must not shrink the sensitivity")
        move = math.floor(exact) if whole else float(exact) * (1 - 2.0**-40)
        one = rng.integers(-1000, 1000, 200) if whole else rng.normal(size=200) * float(exact)
        codes = [est._read(scores, None)[0] for scores in (
            one, one + move, one - move, one + move * rng.choice([-1, 1], 200), one + move * (np.arange(200) == 7))]
        for other in codes[1:]:
            require(np.abs(codes[0] - other).max() <= law.sensitivity, "rounding must not add to the sensitivity")
        require(np.abs(codes[0]).max() > 0, "the grid must tell scores apart")


def check_choices_follow_their_law(choices):
    """Choices are distributed as stated, and the same test rejects laws of 0.7 and 1.3 epsilon; N and ALPHA."""
    law = choices.law
    require(_p_value(law.enclosures(choices.codes), choices.drawn) > ALPHA, "choices do not follow the law")
    for factor in WRONG_FACTORS:
        # in a law of the same kind scores count so many times as much
        wrong = law.enclosures(np.rint(choices.codes * factor).astype(np.int64))
        require(_p_value(wrong, choices.drawn) < ALPHA, f"the test cannot tell {factor} epsilon from epsilon")


def check_utility_is_as_stated(choices):
    """A choice is no further below the best than `utility_bound` says, as often as it says."""
    law = choices.law
    for confidence in (0.5, 0.95):
        gap, far = law.gap(len(choices.codes), 1 - confidence), 0
        for outcome, (low, _) in law.enclosures(choices.codes).items():
            places = outcome if isinstance(outcome, tuple) else (outcome,)
            ranked = np.sort(choices.codes)[::-1][: len(places)]
            if max(ranked - choices.codes[list(places)]) > gap:
                far += low
        require(far <= 1 - confidence, "the choice must be as good as utility_bound says")
    require(choices.estimator.utility_bound(10) > choices.estimator.utility_bound(10, 0.5) > 0, "surer is further")


def check_choice_keeps_the_container(choices):
    """Arrays, lists, series and dicts of scores are chosen from alike, and candidates are called by their names."""
    scores, names = choices.data, [f"c{k}" for k in range(6)]
    place = choices.fresh().release(scores)
    one = np.ndim(place) == 0
    require(type(place) is (int if one else np.ndarray), "without names a choice is an int, several are an array")
    want = names[place] if one else [names[k] for k in place]
    for same in (scores.tolist(), tuple(scores), scores.astype(np.float32), np.repeat(scores, 2)[::2]):
        require(np.array_equal(choices.fresh().release(same), place), "the container of scores must not matter")
    for candidates in (names, tuple(names), np.array(names)):
        require(choices.fresh().release(scores, candidates) == want, "a choice must be called by its name")
    require(choices.fresh().release(dict(zip(names, scores.tolist()))) == want, "the keys of a dict are candidates")
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            series = importlib.import_module(library).Series
            require(np.array_equal(choices.fresh().release(series(scores)), place), "series are like arrays")
            require(choices.fresh().release(scores, series(names)) == want, "candidates may be a series")
            if library == "pandas":
                require(choices.fresh().release(series(scores, index=names)) == want, "an index names candidates")
    law = choices.law
    require(pickle.loads(pickle.dumps(law)) == law and hash(law) == hash(choices.estimator.law(True)),
            "a law is what its arguments are")


def check_numbers_follow_their_edges(choices):
    """Numbers are distributed by lengths times weights, evenly between edges; N and ALPHA, and without lengths not."""
    est = choices.fresh()
    low, high = map(float, est.bounds)
    edges = low + (high - low) * np.array([0.1, 0.3, 0.7])
    law, units = est.law(False), np.array([0.0, -1.0, 0.5, -0.5])
    scores = units * (math.ldexp(1.0, law.exponent) / float(law.rate))
    drawn = np.array([est.set_params(random_state=k).release(scores, edges=edges) for k in range(N)])
    require(((low <= drawn) & (drawn <= high)).all(), "a number must be within bounds")
    ends = np.r_[low, edges, high]
    cells = np.sort(np.r_[ends, (ends[1:] + ends[:-1]) / 2])
    observed = dict(enumerate(np.histogram(drawn, cells)[0].tolist()))
    for lengths, right in ((np.diff(ends), True), (np.ones(4), False)):
        weights = np.repeat(lengths * np.exp(units), 2)
        known = {i: (share, share) for i, share in enumerate(weights / weights.sum())}
        require((_p_value(known, observed) > ALPHA) == right, "numbers do not follow lengths times weights")


def check_edges_keep_epsilon(choices):
    """Where one record moves an edge, or is missing in strict mode, no number is more than e^epsilon times likelier."""
    est = choices.fresh()
    low, high = map(float, est.bounds)
    limit = exp_upper(canonical_epsilon(est.epsilon)) * (1 + _TINY)
    ranks = np.arange(6.0) * float(canonical_amount(est.sensitivity, "sensitivity"))
    data = (0.1, 0.1, 0.9, math.nan, math.nan), (0.1, 0.2, 0.4, 0.5, 0.9)
    with config_context(strict=True):
        for one, at, value in product(data, range(5), (0.3, math.nan, math.inf)):
            two = (*one[:at], value, *one[at + 1 :])
            for scores in (ranks, *[-np.abs(ranks - ranks[-1] / 2)] * (not est.monotone)):
                first, second = (_densities(est, scores, low + (high - low) * np.sort(edges)) for edges in (one, two))
                places = sorted({*first[0], *second[0]})[:-1]  # (the last is one beyond the grid)
                p, q = ([values[int(np.searchsorted(starts, place, side="right")) - 1] for place in places]
                        for starts, values in (first, second))
                require(all(max(a / b, b / a) <= limit for a, b in zip(p, q)), "edges: a ratio exceeds e^epsilon")


def _densities(est, scores, edges):
    """Return where intervals start, and the probability of one point of each, as Fractions."""
    codes, law, starts = est._read_intervals(scores, None, edges)
    shares = [low for low, _ in law.enclosures(codes).values()]
    whole = sum(share * int(length) for share, length in zip(shares, np.diff(starts)))
    return starts.tolist(), [share / whole for share in shares]


def _p_value(known, drawn):
    """Return the p-value of a chi-square test of outcomes against their law."""
    expected = np.array([float(low) for low, _ in known.values()]) * N
    observed = np.array([drawn.get(outcome, 0) for outcome in known])
    if observed.sum() != N:
        return 0.0
    rare = expected < 5
    expected, observed = (np.r_[x[~rare], x[rare].sum()] for x in (expected, observed))
    keep = expected > 0
    return float(stats.chi2.sf(((observed - expected)[keep] ** 2 / expected[keep]).sum(), keep.sum() - 1))


LAW_CHECKS = (
    check_choice_is_a_distribution,
    check_choice_keeps_epsilon,
    check_scores_keep_their_sensitivity,
    check_choices_follow_their_law,
    check_utility_is_as_stated,
)
ESTIMATOR_CHECKS = (check_choice_keeps_the_container,)
#: for what also chooses numbers between `bounds`
EDGE_CHECKS = (check_numbers_follow_their_edges, check_edges_keep_epsilon)
