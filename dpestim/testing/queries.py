"""What answers which of many queries are above a threshold: the exact loss, answers that follow the law, the cut-off.

For estimators with `process`, whose `law()` states `threshold`, `query` and `number`, discrete Laplace laws.
"""

import copy
import itertools
import math
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.testing.central import p_value
from dpestim.testing.releases import (
    Releases,
    check_release_charges,
    check_release_is_total_in_strict_mode,
    check_release_refuses,
)
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import differs_each_time, refuses, require

#: Objects that answer, and significance, of the statistical checks; the same tests must reject noise for 0.7 and 1.3
#: times epsilon. (Of so many the p-values are 1e-10 and less for these two.)
N = 1_600
ALPHA = 1e-6
#: Where the queries of the sample lie, in standard deviations of the noise of one, from the threshold.
PLACES = (-1.0, 0.5, -0.5, -1.5)
#: Steps of the coarse grid on which the loss is summed; queries answered "below": so many that only tails matter.
STEPS, MANY = 4, 10**9


class Queries(Releases):
    """An estimator to check, and answers that are worked out once for all checks."""

    wrong = {
        "max_positives": (0, -1, 1.5, None, True, "1", 2**33),
        "monotone": (None, 1, "yes"),
        "value_fraction": (1, -0.1, math.nan, math.inf, None, "0.5"),
    }

    def checks(self):
        """Return the checks that suit the setting: those of numbers only where there are some."""
        return (*LAW_CHECKS, *((check_numbers_have_noise_of_their_own,) if self.estimator.value_fraction else ()),
                *ESTIMATOR_CHECKS)

    def release(self, est, data):
        """Return the answers for queries and a threshold of 0."""
        return list(est.process(data, 0))

    def charged(self):
        """Return ways to ask, each of which is paid once."""
        data = self.data

        def in_two(est):
            return [*est.process(data[:1] - 1e9, 0), *est.process(iter(data[1:]), itertools.repeat(0))]

        return lambda est: self.release(est, data), lambda est: self.release(est, iter(data.tolist())), in_two

    def free(self, est):
        """Ask for every fact that costs nothing."""
        return est.law(), est.positives_, est.is_exhausted_, est.privacy_

    def bad(self):
        """Return what is no array of finite numbers."""
        return ([math.nan], [1.0, math.inf], 3.0, [[1.0]], {"a secret": 1}, np.array([1j]), np.ma.masked_array([1]))

    def odd(self):
        """Return queries with a value that only a curator would be told of."""
        yield self.data
        for value in (math.nan, math.inf, -math.inf, 1e308, 5e-324):
            yield np.r_[self.data[:2], value, self.data[3:]]

    def apart(self, released, data):
        """NaN counts as 0, and infinity as the largest number."""
        require(released == self.release(self.fresh(), np.nan_to_num(data)), "NaN must count as 0 in strict mode")

    def patient(self, **params):
        """Return an estimator that answers many queries, half of them above, and 200 queries near 0."""
        est = self.fresh(max_positives=50, **params)
        return est, np.random.default_rng(0).normal(size=200) * _deviation(est.law()) / 4

    @cached_property
    def law(self):
        """The laws of the noise."""
        return self.estimator.law()

    @cached_property
    def asked(self):
        """The queries of the sample, in units of the answers."""
        return np.array(PLACES) * _deviation(self.law)

    @cached_property
    def answers(self):
        """The answers of N objects, each with a seed of its own, to the queries of the sample."""
        cls, params = type(self.estimator), self.estimator.get_params()
        return [list(cls(**{**params, "random_state": k}).process(self.asked, 0)) for k in range(N)]

    @cached_property
    def patterns(self):
        """How often which answers were positive."""
        return Counter(tuple(a not in (None, False) for a in answers) for answers in self.answers)


def check_queries_keep_epsilon(queries):
    """The worst loss of all answers together is epsilon, summed exactly over the noise of the threshold."""
    law, est = queries.law, queries.estimator
    epsilon = canonical_epsilon(est.epsilon)
    require(sum(law.parts) == law.epsilon == epsilon and min(law.parts[:2]) > 0, "the parts must sum to epsilon")
    require(law.parts[2] == epsilon * canonical_amount(est.value_fraction, "value_fraction"),
            "numbers have their share")
    apart = math.floor(canonical_amount(est.sensitivity, "sensitivity") / Fraction(2) ** law.exponent) + 1
    require(law.sensitivity >= apart, "the sensitivity of the law must cover the rounding of a query")
    coarse = replace(law, sensitivity=STEPS)
    for name in ("threshold", "query", "number"):
        one, two = getattr(law, name), getattr(coarse, name)
        require(one is two is None or one.rate_of_decay * law.sensitivity == two.rate_of_decay * STEPS,
                "noise must be proportional to the sensitivity")
    numbers = law.max_positives * STEPS * float(coarse.number.rate_of_decay) if coarse.number else 0.0
    sides = (0, STEPS, -STEPS)
    losses = [
        _log_probability(coarse, n, level, 0, 0) - _log_probability(coarse, n, level, below, above)
        for n in (0, 1, MANY) for level in (0, 5 * STEPS) for below in sides for above in sides
        if not est.monotone or below * above >= 0
    ]
    worst = (max(map(abs, losses)) + numbers) / float(epsilon)
    require(worst <= 1 + 1e-9, f"the loss is {worst:.4f} of epsilon")
    require(worst >= 0.999, f"only {worst:.4f} of epsilon is used")


def check_queries_follow_the_law(queries):
    """Which answers are positive is distributed as the law says; the same test rejects 0.7 and 1.3 times epsilon."""
    law, asked, patterns = queries.law, queries.asked, queries.patterns
    require(_fit(law, asked, patterns) > ALPHA, "answers do not follow the law")
    for factor in WRONG_FACTORS:
        wrong = replace(law, epsilon=law.epsilon * Fraction(factor))
        require(_fit(wrong, asked, patterns) < ALPHA, f"the test cannot tell {factor} times epsilon from epsilon")


def check_numbers_have_noise_of_their_own(queries):
    """Numbers have the noise of their law, whatever decided; the same test rejects 0.7 and 1.3 times as much."""
    step = 2.0**queries.law.exponent
    codes = np.rint(queries.asked / step)
    noise = np.array([number / step - codes[i] for answers in queries.answers
                      for i, number in enumerate(answers) if number is not None])
    require(np.array_equal(noise, np.rint(noise)), "numbers must lie on the grid")
    require(p_value(queries.law.number, noise.astype(np.int64)) > ALPHA, "the noise of numbers does not follow its law")
    for factor in WRONG_FACTORS:
        wrong = np.rint(noise * factor).astype(np.int64)
        require(p_value(queries.law.number, wrong) < ALPHA, f"the test cannot tell {factor} times the noise")


def check_queries_stop(queries):
    """After max_positives positives nothing is answered, by no iterator, and no query is read."""
    est = queries.fresh()
    low, read = -1e6 * _deviation(est.law()), []

    def asks():
        while True:
            read.append(len(read))
            yield 0.0

    other = est.process(asks(), low)
    require(not read and est.positives_ == 0 and not est.is_exhausted_, "a query must be read when it is answered")
    require(len(list(est.process(np.zeros(3), -low))) == 3, "all negatives must be answered")
    for k in range(1, est.max_positives):
        require(next(other) not in (None, False) and est.positives_ == len(read) == k,
                "an answer must be given before the next query is read")
    answers = list(est.process(np.zeros(5), low))
    require(len(answers) == 1 and est.is_exhausted_ and est.positives_ == est.max_positives,
            "answers must end with the last positive")
    require(list(other) == [] and len(read) == est.max_positives - 1, "no iterator may go on after the last positive")
    message = refuses(lambda: est.process([0.0], 0.0), "a query after the last positive")
    require("max_positives" in message, "the error must say why nothing is answered")


def check_queries_are_one_sequence(queries):
    """Answers do not depend on how the same queries are handed over: calls, sizes, iterables, thresholds."""
    est, asked = queries.patient()
    wanted = list(est.process(asked, 0))
    require(10 < len(wanted) < len(asked) and est.is_exhausted_, "these queries must show something")
    for sizes in ([1, 2, 3, 40, 5], [50], [1]):
        est, found, at = queries.patient()[0], [], 0
        for k, size in enumerate(itertools.cycle(sizes)):
            part = asked[at : at + size]
            found += est.process(part if k % 2 else iter(part.tolist()), 0 if k % 3 else np.zeros(len(part)))
            at += size
            if est.is_exhausted_ or at >= len(asked):
                break
        require(found == wanted, "queries in several calls must be answered as in one")
    est = queries.patient()[0]
    first, second = est.process(iter(asked[::2]), 0), est.process(iter(asked[1::2]), 0)
    require([a for pair in itertools.islice(zip(first, second), 4) for a in pair] == wanted[:8],
            "iterators side by side must not share noise")


def check_queries_seeds(queries):
    """A seed reproduces the answers, its absence never does; nothing that is shown holds the secret noise."""
    est, asked = queries.patient()
    before = repr(est)
    one = list(est.process(asked, 0))
    require(repr(est) == before, "repr must not show what the object keeps")
    require(est.privacy_ == queries.patient()[0].privacy_ and est.privacy_.seeded, "privacy_ must stay, and say seeded")
    for seed in (0, 1):
        same = list(queries.patient(random_state=seed)[0].process(asked, 0)) == one
        require(same == (seed == 0), "a seed, and nothing else, must reproduce answers")
    secure = differs_each_time(lambda: list(queries.patient(random_state=None)[0].process(asked, 0)))
    require(secure, "no two secure objects share their noise")


def check_queries_cannot_be_copied(queries):
    """Clones, copies and pickles are unused ones, and refused after the first answer: they would forget the count."""
    ways = (clone, copy.copy, copy.deepcopy, lambda est: pickle.loads(pickle.dumps(est)))
    est = queries.fresh()
    twins = [way(est) for way in ways]
    answers = queries.release(est, queries.data)
    for way, twin in zip(ways, twins):
        require(queries.release(twin, queries.data) == answers, "a copy of an unused object must answer like it")
        refuses(lambda way=way: way(est), "a copy after the first answer", kinds=TypeError)


def _deviation(law):
    """Return the standard deviation of the noise of a query, in units of the answers."""
    return math.sqrt(law.query.variance)


def _log_beyond(law, k):
    """Return the logarithms of P[Z >= k], k an array of integers, for a discrete Laplace law."""
    rate = float(law.rate_of_decay)
    low, high = np.minimum(k, 0), np.maximum(k, 1)
    share = math.log1p(math.exp(-rate))
    return np.where(k >= 1, -rate * high - share, np.log1p(-np.exp(-rate * (1 - low) - share)))


def _log_probability(law, n_below, level, below, above):
    """Return ln P[n_below queries are "below", then max_positives "above"], but for a constant of the law.

    Queries have the values `below` and `above`, and the threshold is `level`: a sum over the noise of the threshold.
    """
    rate = float(law.threshold.rate_of_decay)
    widest = math.ceil(60 / rate + 60 / float(law.query.rate_of_decay))
    r = np.arange(-widest, widest + 1)
    terms = -rate * np.abs(r) + n_below * _log_beyond(law.query, 1 - (level + r - below))
    terms += law.max_positives * _log_beyond(law.query, level + r - above)
    return float(terms.max() + np.log(np.exp(terms - terms.max()).sum()))


def _fit(law, asked, patterns):
    """Return the p-value of a chi-square test of patterns of answers; rho is summed over 4,001 places of the grid."""
    rate = float(law.threshold.rate_of_decay)
    r = np.arange(-2000, 2001) * math.ceil(30 / rate / 2000)
    weights = np.exp(-rate * np.abs(r))
    codes = np.rint(asked / 2.0**law.exponent).astype(np.int64)
    beyond = np.exp([_log_beyond(law.query, r - code) for code in codes])
    probabilities = {}

    def walk(pattern, weights):
        if len(pattern) == len(codes) or sum(pattern) == law.max_positives:
            probabilities[pattern] = weights.sum()
            return
        walk((*pattern, True), weights * beyond[len(pattern)])
        walk((*pattern, False), weights * (1 - beyond[len(pattern)]))

    walk((), weights / weights.sum())
    if not set(patterns) <= set(probabilities):
        return 0.0
    expected = np.array(list(probabilities.values())) * sum(patterns.values())
    observed = np.array([patterns[pattern] for pattern in probabilities])
    few = expected < 5
    expected = np.r_[expected[~few], max(expected[few].sum(), 1.0)]
    observed = np.r_[observed[~few], observed[few].sum()]
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


LAW_CHECKS = (check_queries_keep_epsilon, check_queries_follow_the_law)
ESTIMATOR_CHECKS = (
    check_queries_stop,
    check_queries_are_one_sequence,
    check_queries_seeds,
    check_queries_cannot_be_copied,
    check_release_charges,
    check_release_refuses,
    check_release_is_total_in_strict_mode,
)
