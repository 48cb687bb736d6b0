"""A distance that is compared with a threshold under noise: what is far from any other answer passes."""

import math
from functools import lru_cache
from numbers import Integral

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.base import checked_delta
from dpestim.privacy.exact import canonical_amount, canonical_epsilon, exp_lower, exp_upper


class DistanceTest:
    """What has parameters epsilon and delta, and answers only where a noisy distance reaches a threshold."""

    def threshold(self, n_columns=1):
        """Return the least noisy distance with an answer, if `n_columns` columns share epsilon."""
        return self._test(_checked_columns(n_columns))[1]

    def refusal_rate(self, distance, n_columns=1):
        """Return the probability of no answer for data at this distance, in records, from a larger sensitivity."""
        distance = canonical_amount(distance, "distance")
        epsilon, threshold, *_ = self._test(_checked_columns(n_columns))
        return 1 - passes(distance, threshold, float(epsilon))

    def _test(self, n_columns):
        """Return (epsilon of the test, threshold) for each of so many columns."""
        epsilon, delta, _ = self._budget()
        law_of_rate(epsilon / n_columns)  # (what words cannot express is refused here, before any charge)
        return epsilon / n_columns, least_threshold(epsilon / n_columns, delta / n_columns)

    def _budget(self):
        self._relation()
        return canonical_epsilon(self.epsilon), checked_delta(self.delta), None


def _checked_columns(n_columns):
    if isinstance(n_columns, bool) or not isinstance(n_columns, Integral) or n_columns < 1:
        raise ValueError("n_columns must be an int of at least 1")
    return int(n_columns)


def is_far(stream, distance, threshold, epsilon):
    """Tell whether a distance and discrete Laplace noise, drawn here, reach the threshold."""
    return distance + law_of_rate(epsilon).one(stream) >= threshold


@lru_cache(maxsize=256)
def least_threshold(epsilon, delta):
    """Return the least integer T >= 1 with P[Z >= T] <= delta, Z discrete Laplace noise of rate epsilon (Fractions).

    Doubled until it is enough, and halved in between, by exact bounds of the exponential: a float would be off by many.
    """
    most = delta * (1 + exp_lower(-epsilon))

    def is_enough(threshold):
        return exp_upper(-epsilon * threshold) <= most

    low, high = 0, 1
    while not is_enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def passes(distance, threshold, epsilon):
    """Return P[distance + Z >= threshold], Z discrete Laplace noise of rate epsilon, as a float."""
    gap = float(threshold - distance)
    if gap >= 1:
        return math.exp(-epsilon * gap) / (1 + math.exp(-epsilon))
    return 1 - math.exp(-epsilon * (1 - gap)) / (1 + math.exp(-epsilon))
