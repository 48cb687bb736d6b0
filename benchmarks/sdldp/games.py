"""Who can be told from whom: low values from high ones, with certainty or nearly so (errata D4 and D5)."""

import math

import numpy as np

from benchmarks.sdldp import EPSILONS, SHARES
from benchmarks.sdldp.categories import _mean
from benchmarks.sdldp.numbers import low_interval, sdpm
from dpestim.audit import BayesianAdversary
from dpestim.local import SDGRRFrequencyEstimator

#: A low number, an end of the low interval, and a high one. Cells of the discretised form: those of the other
#: experiments, and as few as `SDPMTransformer` needs for an unbiased mean.
LOW_NUMBER, HIGH_NUMBER = -0.5, 0.8
FORMS = {"continuous": {"form": "continuous"}, "32 cells": {"n_cells": 32}, "2 cells": {"n_cells": 2}}


def plain_bound(epsilon):
    """Return how often an adversary at most guesses right which of two values it is, under plain epsilon-LDP."""
    return 1 / (1 + math.exp(-epsilon))


def categories(attribute, repetitions, seeds, epsilons=EPSILONS, n=2_000):
    """Yield a row for each share of high values and epsilon: is it one given low value, or one given high value?

    Each with probability 1/2; the adversary sees one report of SDGRR. How often the guess is right, exact and measured
    on 2n users; the ratio of the two probabilities of the low value's own report; and how often the report of a high
    value names *another* low one, which proves that the given low value is not held.
    """
    for epsilon in epsilons:
        for percent in SHARES:
            low = attribute.low(percent)
            h, d = int(low[0]), attribute.d
            prior = np.zeros(d)
            prior[[0, h]] = 0.5
            X = np.repeat([0, h], n)[:, None]
            right = []
            for _ in range(repetitions):
                estimator = SDGRRFrequencyEstimator(epsilon, categories=[np.arange(d)], low_sensitivity=[low],
                                                    random_state=next(seeds))
                adversary = BayesianAdversary(estimator, prior=prior)
                right.append(adversary.measured_success(X, estimator.privatize(X)).value)
            law = estimator.randomizer()
            yield {"attribute": attribute.name, "epsilon": epsilon, "percent": percent, "n_low": d - h,
                   "bound": plain_bound(epsilon), "exact": float(adversary.expected_success()),
                   "ratio": float(law.low_star / law.q_star), "proof": float((d - h - 1) * law.q_star),
                   **_mean("measured", right)}


def numbers(repetitions, seeds, epsilons=EPSILONS, n=2_000):
    """Yield a row for each form of SDPM-50 and epsilon: the same game about a low and a high number.

    A low number's own report, the code of its level, is the only one likelier than under any high number; whoever
    reads it guesses low. *certain* is the share of these reports that low users sent, *recognised* the share of low
    users who sent one; *proof* is how often a high number's report shows that the low one was not held.
    """
    interval = low_interval(50)
    assert interval[0] == LOW_NUMBER
    X = np.repeat([LOW_NUMBER, HIGH_NUMBER], n)[:, None]
    is_low = np.arange(2 * n) < n
    for epsilon in epsilons:
        for form, parameters in FORMS.items():
            transformer = sdpm(epsilon, interval).set_params(**parameters)
            law = transformer.randomizer()
            own_code = law.first_level  # the lower end is the first level
            high = int(np.argmin(np.abs(law.high_points - (HIGH_NUMBER + 1) / 2 * law.grid)))
            named, proving = np.zeros(law.n_counts), np.zeros(law.n_counts)
            named[own_code] = 1.0
            # of all outputs within the low interval a low number sends its own level alone
            proving[law.levels if law.merged else slice(law.zone, law.zone_stop)] = 1.0
            proving[own_code] = 0.0
            chances = law.expect(named)
            own, other = chances[len(law.high_points)], chances[high]
            right, certain, recognised = [], [], []
            for _ in range(repetitions):
                reports = transformer.set_params(random_state=next(seeds)).privatize(X)[:, 0]
                said_low = reports == own_code
                right.append((said_low == is_low).mean())
                recognised.append(said_low[is_low].mean())
                certain.append((said_low & is_low).sum() / max(1, said_low.sum()))
            yield {"form": form, "epsilon": epsilon, "bound": plain_bound(epsilon),
                   "exact": float(0.5 + (own - other) / 2), "own": float(own), "other": float(other),
                   "promised": float(law.guarantee_by_input["low-high"]), "proof": float(law.expect(proving)[high]),
                   **_mean("measured", right), **_mean("recognised", recognised), **_mean("certain", certain)}
