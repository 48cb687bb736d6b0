"""Fits that hear of rows by answers alone: what neighbours can tell apart, given all answers, on tiny data.

All noise of such a fit is added by its `Answers`, which here are told: each neighbour hears the same noisy integers, so
that the next question is the same. How far the integers behind them are apart, and their noise, is all that is left;
and whatever was learned must be the same.
"""

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource
from dpestim.testing.plans import normal_delta
from dpestim.testing.tools import fresh, require, same_state

#: Rows of tiny data; from what noise answers are told; how far away the row is that a neighbour has.
ROWS, TOLD, FAR = 12, 2, 1e3
#: The last row of neighbours: corners, axes and the middle.
LAST = [row for row in product((-1.0, 0.0, 1.0), repeat=3) if np.count_nonzero(row) != 2]


def check_answers_law(estimator):
    """All answers together keep epsilon and delta, and what is learned is a function of them alone."""
    est = fresh(estimator)
    epsilon, delta = canonical_epsilon(est.epsilon), float(est.delta or 0)
    X = est._test_data(ROWS)[0]
    tables = [np.vstack([X[:-1], FAR * np.array(row)]) for row in LAST]
    replaces = est._neighbours is Neighbours.SUBSTITUTION
    pairs = list(combinations(range(len(tables)), 2)) if replaces else [(k, -1) for k in range(len(tables))]
    for seed in range(TOLD):
        told = []
        heard = [answered(est, table, told, seed) for table in [*tables, *([] if replaces else [X[:-1]])]]
        for place, other in pairs:
            (asked, learned), (others, same) = heard[place], heard[other]
            require([law for law, _ in asked] == [law for law, _ in others], "neighbours must get noise of one law")
            require(same_state(learned, same), "what is learned must be a function of answers")
            spent, far = Fraction(0), 0.0
            for (law, one), (_, two) in zip(asked, others):
                require(one.shape == two.shape, "neighbours must be asked the same")
                moved = [abs(int(a) - int(b)) for a, b in zip(one.flat, two.flat)]
                if hasattr(law, "rate_of_decay"):
                    spent += sum(moved) * law.rate_of_decay
                else:
                    far += sum(k * k for k in moved) / law.sigma**2
            require(spent <= epsilon, "answers must keep epsilon")
            require(normal_delta(far**0.5, float(epsilon - spent)) <= delta * (1 + 1e-9), "answers must keep delta")


def answered(estimator, X, told, seed):
    """Return ([(law, integers that were to get its noise)], what was learned) of a fit that is told all.

    What was not told yet is noise on these rows, and appended.
    """
    asked = []

    class Told(estimator._answers):
        def __init__(self, source):
            super().__init__(WordSource(seed))

        def add(self, law, integers):
            whole = np.asarray(integers)
            if len(asked) == len(told):
                told.append(super().add(law, whole))
            asked.append((law, whole))
            return told[len(asked) - 1].reshape(whole.shape).copy()

    class Hears(type(estimator)):
        _answers = Told

    est = fresh(estimator)
    est.__class__ = Hears
    est.fit(X)
    names = est.get_params(deep=False)
    return asked, {name: value for name, value in vars(est).items() if name not in names}


ANSWER_CHECKS = (check_answers_law,)
