"""Propose, test, release: noise for a sensitivity that is proposed, if all data near these have no larger one."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.distance_test import DistanceTest, is_far, least_threshold, passes
from dpestim.central.stability.grid import grids
from dpestim.central.stability.heavy import nearest
from dpestim.central.stability.rows import checked_share
from dpestim.central.stability.smooth_sensitivity import StatisticMechanism
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import canonical_amount

#: Streams of a column: the noise of the test, and that of the answer.
_TEST, _ANSWER = 0, 1


class ProposeTestRelease(DistanceTest, StatisticMechanism):
    """Release a statistic with noise for a proposed sensitivity by propose-test-release, or no answer.

    You propose a bound on the change of the statistic by one record. The mechanism tests privately whether the bound
    holds for all data near these; if not, the answer is None. Take it where a good bound is known in advance: the noise
    is then that of a global sensitivity as small as the bound. With ``proposed_bound=0`` a statistic that one record
    does not change (of rounded values, for instance) is released exactly.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one record: both the test and the answer are part of epsilon. The distance to data with a larger sensitivity gets
    discrete Laplace noise, and must reach a threshold that data at distance 0 reach with probability delta at most.
    With d columns each gets epsilon / d and delta / d. The bound must not come from the data. The curator, who holds
    the data, must be trusted.

    **Utility.** ``refusal_rate(distance)`` is the probability of None for data at that distance, ``threshold()`` the
    distance at which about half is refused. An answer has discrete Laplace noise of scale bound / (epsilon (1 -
    test_fraction)), and is clipped to the bounds.

    **Complexity.** O(n log n) time for each column, O(n) memory.

    {parameters}
    References
    ----------
    Dwork, Lei (2009), "Differential privacy and robust statistics", STOC, section 3. Vadhan (2017), "The complexity of
    differential privacy", section 3.2, for the distance to larger sensitivities. The proof, with the exact threshold:
    ``propose_test_release.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.central import ProposeTestRelease
    >>> ages = np.random.default_rng(0).gamma(6.0, 6.0, 10_000)
    >>> test = ProposeTestRelease(1.0, delta=1e-6, proposed_bound=0.5, bounds=(0.0, 120.0), random_state=0)
    >>> bool(abs(test.release(ages) - np.median(ages)) < 10)
    True
    >>> test.release(ages[:20]) is None
    True
    >>> test.threshold(), f"{test.refusal_rate(0):.7f}", f"{test.refusal_rate(50):.1e}"
    (27, '0.9999991', '3.8e-06')
    """

    _more_parameters = """
    {delta that must be declared}
    proposed_bound : float, default=None
        How far one record is to move the statistic, at most, in units of the data: it must be declared, from what is
        known without the data. 0 (an exact answer) or at least some 10^-12 of the width of the bounds. For a median,
        what ``threshold()`` gaps between values next to it come to, on each side together, and some more: the test
        asks for about as many records. If the answer is None that was charged too: propose more, with a new budget, or
        take `SmoothSensitivity`.
""" + StatisticMechanism._shared_parameters + """\
    test_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, for the test; the rest is for the answer. With
        ``proposed_bound=0`` the test has all of it.
    """
    _more_attributes = """
    value_ : list of float or None
        What was released of each column, None where it was refused; after `fit`.
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, delta=None, proposed_bound=None, statistic="median", bounds=None, q=0.5,
                 trim=0.1, test_fraction=0.5, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.proposed_bound = proposed_bound
        self.statistic = statistic
        self.bounds = bounds
        self.q = q
        self.trim = trim
        self.test_fraction = test_fraction
        self.ledger = ledger
        self.random_state = random_state

    def _test(self, n_columns):
        """Return (epsilon of the test, threshold, epsilon of the answer) for each of so many columns."""
        epsilon, delta, _ = self._budget()
        share = checked_share(self.test_fraction, "test_fraction") if self._proposed() else Fraction(1)
        test = share * epsilon / n_columns
        law_of_rate(test)  # (may fail)
        return test, least_threshold(test, delta / n_columns), epsilon / n_columns - test

    def _proposed(self):
        if self.proposed_bound is None:
            raise ValueError("proposed_bound must be declared: the largest change of the statistic by one record that "
                             "you expect without looking at these data")
        bound = canonical_amount(self.proposed_bound, "proposed_bound")
        if bound == math.inf:
            raise ValueError("proposed_bound must be a finite number of at least 0")
        return bound

    def _plan(self, n_columns):
        self._statistic_kind()
        bound, columns = self._proposed(), grids(self.bounds, n_columns)
        steps = [min(math.floor(bound / Fraction(2) ** grid.exponent), grid.width) for grid in columns]
        if bound and not all(steps):
            raise ValueError("proposed_bound must be 0, or at least some 10^-12 of the width of the bounds")
        test = self._test(n_columns)
        # (what words cannot express is refused here, before anything is charged)
        laws = [law_of_rate(test[2] / own) if own else None for own in steps]
        return {"grids": columns, "steps": steps, "test": test, "laws": laws}

    def _look(self, rows, plan):
        """Return (value, distance) of each column."""
        statistic, out = self._statistic(len(rows)), []
        for j, (grid, steps) in enumerate(zip(plan["grids"], plan["steps"])):
            seen = statistic.look(rows[:, j], grid, len(rows))
            out.append((nearest(seen.value, grid), seen.distance(steps)))
        return out

    def _answer(self, seen, plan, source):
        reader, (test, threshold, _) = source.reader(), plan["test"]
        return [self._one(*column, reader, j, test, threshold, law, grid)
                for j, (column, law, grid) in enumerate(zip(seen, plan["laws"], plan["grids"]))]

    def _one(self, value, distance, reader, j, test, threshold, law, grid):
        stream = BitStream(reader, j, _TEST)
        if not is_far(stream, distance, threshold, test):
            return None
        if law is not None:
            value += law.one(BitStream(reader, j, _ANSWER))
        return grid.number(nearest(Fraction(value), grid))

    def _outcomes(self, summary, places):
        plan = self._plan(1)
        ((value, distance),), (grid,), (steps,) = self._look(summary.totals, plan), plan["grids"], plan["steps"]
        test, threshold, rest = plan["test"]
        chance = passes(distance, threshold, float(test))
        center = grid.number(value)
        refused = math.log(max(1 - chance, 1e-300))
        if not steps:
            return None, {None: refused, center: math.log(chance)}
        step = grid.number(1)
        rate = float(rest) / (steps * step)
        return math.log(chance * math.tanh(rate * step / 2) / step) - rate * np.abs(places - center), {None: refused}

    def _test_column(self):
        """Return equal values, so many that half of the answers are refused."""
        plan, size = self._plan(1), 1
        middle = plan["grids"][0].middle
        while self._look(np.full((size, 1), middle), plan)[0][1] < plan["test"][1] - 1:
            size += 1
        return np.full(size, plan["grids"][0].number(middle))

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "delta": 1e-6, "proposed_bound": 1.0, "bounds": (-4.0, 4.0)},
            {"epsilon": 0.5, "delta": 1e-3, "proposed_bound": 0, "bounds": (0.0, 3.0), "statistic": "quantile",
             "q": 0.4},
        ]
