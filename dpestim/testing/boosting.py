"""Boosting: what neighbours can tell apart, given all answers, on tiny data.

What is private of a fit are edges, where they are found, choices of pairs, noisy histograms (`_histograms`). Answers
are told, the same to both neighbours, so that every question is the same; how far the integers behind them are apart,
and their noise, is all that is left.
"""

import math
from fractions import Fraction

import numpy as np

from dpestim.privacy.exact import canonical_epsilon, exp_lower, exp_upper
from dpestim.testing.plans import normal_delta
from dpestim.testing.tools import fresh, require
from dpestim.testing.trees import loss_of_edges, neighbours

#: Patterns of signs of the sums of residuals that are told, and their size: scores are as far from 0 as they can be.
PATTERNS, SIZE = 4, 10**12


def check_boosting_law(estimator):
    """All noisy histograms together keep epsilon and delta, and every number that is learned of rows is one of them."""
    est = fresh(estimator)
    epsilon, delta = canonical_epsilon(est.epsilon), float(est.delta or 0)
    for pair in neighbours(est):
        for pattern in range(PATTERNS):
            (law, one, edges, picks), (other, two, others, likewise) = (asked(est, X, y, pattern) for X, y in pair)
            spent, paid = loss_of_edges(edges, others), sum(part.law.epsilon for part in edges.parts) if edges else 0
            require(len(picks) == len(likewise), "neighbours must be asked for as many choices")
            for (choice, scores), (same, theirs) in zip(picks, likewise):
                require(choice == same and len(scores) == len(theirs), "neighbours must get choices of one law")
                # (weights of a choice and their sum move by as much as its scores do, each)
                far = 2 * choice.rate * int(np.abs(scores - theirs).max())
                spent, paid = spent * exp_upper(far), paid + choice.epsilon
            require(paid + law.epsilon <= epsilon, "edges, choices and histograms must share epsilon")
            require(law == other, "neighbours must get noise of one law")
            require([len(a) for a in one] == [len(b) for b in two], "neighbours must be asked the same")
            moved = [abs(int(a) - int(b)) for part in zip(one, two) for a, b in zip(*part)]
            if not delta:
                ratio = spent * exp_lower(Fraction(sum(moved)) * law.rate_of_decay)
                require(ratio <= exp_upper(epsilon), "edges and histograms must keep epsilon")
                continue
            far = math.sqrt(sum(k * k for k in moved)) / law.sigma
            lost = normal_delta(far, float(epsilon) - math.log(spent))
            require(lost <= delta * (1 + 1e-9), "histograms must keep their delta")


def asked(est, X, y, pattern):
    """Return (law of the noise, integers that were to get it, plan of edges, choices) of a fit that is told all."""
    integers, laws, plans, choices = [], [], [], []

    class Even(type(est)):
        def _edges_to_find(self, *data):
            plan, rest = super()._edges_to_find(*data)
            plans.append(plan)
            return (None if plan is None else lambda source: self.bins_), rest

    class Told(est._histograms):
        def __init__(self, codes, sizes, targets, kind, cost, law, answers, n_jobs):
            super().__init__(codes, sizes, targets, kind, cost, law, answers, n_jobs)
            self._weight = cost.weight
            laws.append(law)

        def _noisy(self, whole):
            term, counts = self._asked
            rng = np.random.default_rng([pattern, term])  # (a term is told the same in all rounds)
            integers.append(whole.ravel().tolist())
            self.told = rng.integers(50, 100, whole.shape) * self._weight if counts else rng.choice(
                [-SIZE, SIZE], whole.shape)
            return self.told

        def _is_told(self, found):
            told = getattr(self, "told", None)
            require(told is not None and np.shape(found) == told.shape and bool(
                np.allclose(np.asarray(found) * np.max(np.abs(told)), told * np.max(np.abs(found)), rtol=1e-9)),
                "what is learned of rows must be noisy")
            del self.told
            return found

        def counts(self, term):
            self._asked = term, True
            return self._is_told(super().counts(term))

        def sums(self, term):
            self._asked = term, False
            return self._is_told(super().sums(term))

        def choose(self, law, scores):
            choices.append((law, scores))
            return pattern % len(scores)

        def squares(self, start):
            self._asked = len(self._sizes), False
            found = super().squares(start)
            self._is_told(np.array([found]))
            return found

    est = fresh(est)
    est.__class__ = Even
    est._histograms = Told
    est.fit(X, y)
    return laws[0], integers, plans[0], choices


BOOSTING_CHECKS = (check_boosting_law,)
