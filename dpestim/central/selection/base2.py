"""The base-2 exponential mechanism: weights are powers of a fraction, so that all of it is integers."""

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.selection.choice import ChoiceLaw, SelectionMechanism
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import canonical_amount
from dpestim.records import record

#: Binary digits of the base, besides those that a small one needs.
_DIGITS = 40
#: Thresholds that matter: times scores, for probabilities as floats; by themselves, for those as Fractions.
_CELLS, _EXACT = 100_000_000, 24
#: Real scores are first rounded down to a grid that is so many binary digits finer.
_FINER = 10


@record
class Base2ExponentialLaw(ChoiceLaw):
    """P[i] proportional to (x / 2^y)^(cost of i), integers x < 2^y: nothing is irrational.

    `finer` binary digits of the codes are rounded away with a uniform threshold that all candidates share, so that a
    cost is a number of coarse steps, below the best; `most` is the largest that is told from others.
    """

    finer: int
    most: int

    def __post_init__(self):
        if self.numerator >> self.digits:
            raise ValueError("epsilon is too small for the sensitivity, because the base of the weights would be 1: "
                             "take a larger epsilon, or ExponentialMechanism")

    @property
    def coarse(self):
        """The sensitivity in coarse steps."""
        return -(-self.sensitivity >> self.finer)

    @property
    def slack(self):
        """Where the sensitivity is few coarse steps, to round it up to their number leaves some of epsilon."""
        return "the sensitivity is rounded up to steps" if self.finer else ""

    @cached_property
    def digits(self):
        """The exponent y."""
        return _DIGITS + math.ceil(2 * self._wanted)

    @property
    def _wanted(self):
        return self.epsilon / (self.coarse if self.monotone else 2 * self.coarse)

    @cached_property
    def numerator(self):
        """The integer x: 2^y e^-wanted, rounded up, so that no step costs more than wanted."""
        return math.ceil(exp_bounds(self._wanted, 40)[1] * (1 << self.digits))

    @property
    def rate(self):
        """What a step of the codes costs, about."""
        return self._wanted / (1 << self.finer)

    def costs(self, codes, threshold):
        """Return coarse steps below the best, cut at `most`."""
        coarse = (codes + threshold) >> self.finer
        return np.minimum(coarse.max() - coarse, self.most)

    def draw(self, codes, source):
        """Return a place: a cost by its weight times the number of candidates that have it, and one of these."""
        stream = BitStream(source.reader(), 0, 0)
        costs = self.costs(codes, stream.below(1 << self.finer))
        times = np.bincount(costs).tolist()
        drawn = stream.below(sum(n * w for n, w in zip(times, self._weights(len(times) - 1)) if n))
        for cost, (n, weight) in enumerate(zip(times, self._weights(len(times) - 1))):
            if drawn < n * weight:
                return int(np.flatnonzero(costs == cost)[drawn // weight])
            drawn -= n * weight

    def _weights(self, most):
        """Yield x^cost 2^(y (most - cost)) for every cost up to `most`; one at a time, as they are long."""
        weight = 1 << self.digits * most
        for _ in range(most + 1):
            yield weight
            weight = (weight >> self.digits) * self.numerator

    def _thresholds(self, codes, most, why):
        """Yield (a threshold, how many have the costs that it has), at most so many that make a difference."""
        size = 1 << self.finer
        places = sorted({0, size, *(-codes % size).tolist()})
        if len(places) - 1 > most:
            raise ValueError(f"{why} at most {most:,} different rounding thresholds, about one for each real score")
        for threshold, end in pairwise(places):
            yield threshold, end - threshold

    def probabilities(self, codes):
        """Return the probabilities as floats; a threshold costs an array of them."""
        out, size = np.zeros(len(codes)), 1 << self.finer
        rate = math.log(self.numerator) - self.digits * math.log(2)
        if 2 * self.numerator >> self.digits:  # near to 0 the difference of two logarithms would have few digits
            rate = math.log1p(float(Fraction(self.numerator, 1 << self.digits) - 1))
        most = max(1, _CELLS // len(codes))
        for threshold, times in self._thresholds(codes, most, f"probabilities of {len(codes):,} scores are for"):
            weights = np.exp(rate * self.costs(codes, threshold))
            out += weights * (times / size / weights.sum())
        return out

    def enclosures(self, codes):
        """Return exact probabilities, each as two equal Fractions: the mean over all thresholds that differ."""
        known = dict.fromkeys(range(len(codes)), Fraction(0))
        size = 1 << self.finer
        for threshold, times in self._thresholds(np.asarray(codes), _EXACT, "exact probabilities are for"):
            costs = self.costs(codes, threshold).tolist()
            weights = list(self._weights(max(costs)))
            total = sum(weights[cost] for cost in costs)
            for i, cost in enumerate(costs):
                known[i] += Fraction(weights[cost] * times, total * size)
        return {i: (p, p) for i, p in known.items()}

    def gap(self, n, lost):
        """Return that of the others for the base that was taken, and a step for the threshold."""
        rate = -math.log(Fraction(self.numerator, 1 << self.digits))
        coarse = math.log(n / lost) / rate
        return math.inf if coarse > self.most else (coarse + 1) * (1 << self.finer)


class Base2ExponentialMechanism(SelectionMechanism):
    """Choose a candidate by the base-2 exponential mechanism, with integer weights only.

    Take it for a law that can be checked with integer arithmetic alone. `ExponentialMechanism` is as exact, faster, and
    needs no `cap`.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours: weights are powers of a fraction whose
    logarithm is at most what epsilon allows, rounded on the side of privacy. Real scores, and integers with a
    sensitivity above 16, are rounded to 8 to 16 steps to the sensitivity, up or down by a uniform threshold that all
    candidates share. Only the choice is released. The curator, who holds the data, must be trusted.

    **Utility.** That of `ExponentialMechanism`, two steps more; scores more than `cap` sensitivities below the best are
    as likely as those at `cap`.

    **Complexity.** O(1) a candidate, and sums of at most 16 cap integers of 700 cap bits or less, for real scores.
    `probabilities` take O(n) for each of up to n thresholds, by which real scores are rounded.

    {parameters}
    References
    ----------
    Ilvento (2020), "Implementing the exponential mechanism with base-2 differential privacy", CCS, definition 3.1 and
    section 3.2. The proof: ``base2.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.central import Base2ExponentialMechanism
    >>> mechanism = Base2ExponentialMechanism(2.0, sensitivity=1, random_state=0)
    >>> mechanism.release([30, 52, 12], candidates=["tea", "coffee", "water"])
    'coffee'
    >>> law = mechanism.law(whole=True)
    >>> low, high = law.enclosures(np.array([30, 31]))[0]
    >>> low == high == 1 / (1 + 2**law.digits / low.__class__(law.numerator))
    True
    """

    _choice = Base2ExponentialLaw
    _fineness = 1 << 3 + _FINER
    _more_parameters = SelectionMechanism._more_parameters + """cap : float, default=100
        How many sensitivities below the best scores are told apart, at most; public, from 1 to 1,000.
    """

    def __init__(self, epsilon=1.0, *, sensitivity=None, monotone=False, cap=100, neighbours=None,
                 ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, monotone=monotone, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.cap = cap

    def _law_of(self, epsilon, sensitivity, exponent, monotone):
        cap = canonical_amount(self.cap, "cap")
        if not 1 <= cap <= 1000:
            raise ValueError("cap must be a number from 1 to 1,000")
        finer = max(0, (sensitivity - 1).bit_length() - 4)  # at most 16 coarse steps
        most = math.floor(cap * -(-sensitivity >> finer))
        return self._choice(epsilon, sensitivity, exponent, monotone, finer, most)

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1},
            {"epsilon": 2.0, "sensitivity": 3, "monotone": True, "cap": 60, "neighbours": "add_remove"},
        ]
