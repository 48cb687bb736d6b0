"""Running totals of a stream, at every step: counts and sums, since the start or in a sliding window."""

from fractions import Fraction

import numpy as np

from dpestim.central.base import checked_delta, declared_delta
from dpestim.privacy import ZCDP
from dpestim.privacy.exact import canonical_epsilon
from dpestim.records import record
from dpestim.stream.base import StreamMechanism
from dpestim.stream.factors import LONGEST
from dpestim.stream.reading import Steps, checked_count, steps_of
from dpestim.stream.totals import METHODS, Meter, Plan, Totals
from dpestim.stream.widths import NormalWidths, SumWidths

#: The longest sliding window: its releases are kept, and its errors take the square of its length.
_WIDEST_WINDOW = 1 << 13
#: Concentrated privacy is converted in floats, which are too coarse for less.
_LEAST = Fraction(1, 10**8)


@record
class TotalsOf:
    """How a stream of one number, or several, is read and taken."""

    steps: Steps
    plan: Plan

    @property
    def horizon(self):
        """The last step."""
        return self.plan.horizon

    def read(self, X, strict):
        """Return integers of the steps, and whether it was one step."""
        return self.steps.read(X, strict)

    def begin(self):
        """Return the state of a stream without a step."""
        return [Totals(self.plan) for _ in range(self.steps.width or 1)], Meter(self.plan)

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        totals, meter = state
        unit = float(self.steps.unit)
        columns = [each.take(np.ascontiguousarray(steps[:, j]), noise, j) for j, each in enumerate(totals)]
        variances, keys = meter.take(len(steps))
        values = (columns[0] if self.steps.width is None else np.column_stack(columns)) * unit
        errors = np.sqrt(variances) * unit
        wide = self.steps.width is not None
        errors = errors[:, None] if wide else errors
        widths = NormalWidths(errors) if keys is None else SumWidths(keys, unit, wide)
        return {"values": values, "errors": errors, "widths": widths}

    def exact(self, steps):
        """Return what releases would be without noise."""
        totals = np.cumsum(steps, 0).astype(float) * float(self.steps.unit)
        if self.plan.window:
            totals[self.plan.window :] -= totals[: -self.plan.window].copy()
        return totals[:, 0] if self.steps.width is None else totals

    @property
    def tight(self):
        """The part of epsilon, or rho, that short streams spend at least, where the horizon is longer, or L counts."""
        if self.plan.doubles:
            return 0.3
        return 0.9 if self.plan.events == 1 else 0.45

    def loss(self, one, two, noise):
        """Return how much epsilon, or rho with a delta, two streams cost at most: a Fraction, whatever the noise."""
        total, at, epoch = Fraction(0), 0, 0
        while at < len(one):
            size, factor = self.plan.length(epoch), self.plan.factor(epoch)
            for j in range(one.shape[1]):
                parts = [np.ascontiguousarray(x[at : at + size, j]) for x in (one, two)]
                moves = [a - b for a, b in zip(*map(factor.moved, parts))]
                total += factor.cost(moves)
                if self.plan.law_of_totals is not None:
                    moved = int(parts[0].sum() - parts[1].sum())
                    total += Fraction(moved**2) / (2 * Fraction(self.plan.law_of_totals.sigma) ** 2)
            at, epoch = at + size, epoch + 1
        return total


class StreamCounter(StreamMechanism):
    """Release a running total at every step of a stream: a count or a sum, since the start or of the latest steps.

    Each step is added once, and the total so far is released at each of n steps. The error grows with the logarithm of
    n only, where a total with fresh noise at each step would have an error of sqrt(n) and more.

    **Privacy.** For all releases of the stream together, in the central model: pure epsilon without a delta (only for
    ``method="tree"``), and (epsilon, delta), by concentrated privacy, with one. Neighbours are streams that differ in
    one event, by `change` in one step, or in all events of one user, of which `user_events` bounds the number. Steps
    may be chosen after looking at earlier releases. One charge pays for the horizon, and without a horizon for ever.
    The state holds exact sums: keep it, and its pickles, where the data are. The curator, who holds the data, must be
    trusted.

    **Utility.** Unbiased for values that are multiples of `resolution`. With s the noise of a single total, the mean
    squared error over n steps is s^2 times about (1 + ln(n) / pi)^2 for "factorization": 28 for n = 10^6, where
    "tree" has 200 with a delta. That is within 1 % of the error of the square root factorization, and below "tree" for
    every n above 1; at a single step n that is a power of two "tree" may err less. Without a horizon epochs of 256,
    512, 1,024, ... steps have a part of the budget for their totals: 2 to 4 times the error.

    **Complexity.** O(log n) time a step and O(log n) memory, or O(window); some 2 million steps a second.

    {parameters}
    References
    ----------
    Fichtenberger, Henzinger, Upadhyay (2023), "Constant matters: fine-grained error bound on differentially private
    continual observation", ICML; Henzinger, Upadhyay, Upadhyay (2023), "Almost tight error bounds on differentially
    private continual counting", SODA, for the square root. Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024),
    "Efficient and near-optimal noise generation for streaming differential privacy", FOCS, for sums that decay. Chan,
    Shi, Song (2011), "Private and continual release of statistics", TISSEC, for the tree. The proof, in integers:
    ``counter.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.stream import StreamCounter
    >>> visits = np.random.default_rng(0).poisson(20, 1000)
    >>> counter = StreamCounter(1.0, delta=1e-6, bounds=(0, 500), change=1, horizon=1000, random_state=0)
    >>> released = counter.partial_fit(visits[:999])
    >>> round(counter.partial_fit(visits[999])), int(visits.sum())
    (20025, 20016)
    >>> low, high = counter.confidence_interval(0.95)
    >>> (round(low[-1]), round(high[-1]))
    (19996, 20054)
    """

    _more_parameters = """
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy: it must be declared for "factorization". None or 0, for
        "tree", is pure differential privacy.
    method : {"factorization", "tree"}, default="factorization"
        Sums that decay, or a binary tree.
    {values}
    horizon : int, default=None
        The number of steps at most, up to 2^40. None: no end, by epochs that double.
    window : int, default=None
        The number of latest steps whose total is released instead, up to 8,192; `horizon` must be None.
    {user events}
    """
    _more_attributes = """
    {latest releases}
    standard_errors_ : ndarray
        The standard deviation of the noise of each of `values_`.
    """
    _quantity = "total"

    def __init__(self, epsilon=1.0, *, delta=None, method="factorization", bounds=(0, 1), change=None, resolution=1,
                 horizon=None, window=None, user_events=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.bounds = bounds
        self.change = change
        self.resolution = resolution
        self.horizon = horizon
        self.window = window
        self.user_events = user_events
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _steps(self):
        return steps_of(self.bounds, self.change, self.resolution)

    def _delta(self):
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {sorted(METHODS)}")
        return checked_delta(self.delta) if self.method == "factorization" else declared_delta(self.delta)

    def _spec(self):
        steps, plan = self._steps(), self._plan()
        _ = plan.factor(0).law, plan.law_of_totals  # (ValueError: epsilon is too small)
        return TotalsOf(steps, plan)

    def _plan(self):
        steps, (epsilon, delta, _) = self._steps(), self._budget()
        horizon = checked_count("horizon", self.horizon, LONGEST)
        window = checked_count("window", self.window, _WIDEST_WINDOW)
        if horizon and window:
            raise ValueError("horizon must be None where there is a window: a window needs no horizon")
        return Plan(self.method, epsilon, delta, horizon, window, steps.change, self._events(),
                    max(abs(steps.low), abs(steps.high)))

    def _budget(self):
        epsilon, delta = canonical_epsilon(self.epsilon), self._delta()
        if epsilon < _LEAST:
            raise ValueError("epsilon is too small: it must be at least 1e-8")
        return epsilon, delta, None

    def _curve(self):
        plan = self._plan()
        if not plan.delta:
            return None
        return ZCDP(plan.factor(0).law.rho)  # (that of both parts of the budget)

    def _test_data(self, n_rows, seed=0):
        """Return a stream of zeros and ones."""
        return np.random.default_rng(seed).integers(0, 2, n_rows), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "delta": 1e-3, "horizon": 64},
            {"epsilon": 1.0, "method": "tree", "bounds": (-1, 3), "change": 1, "horizon": 60, "user_events": 2},
            {"epsilon": 2.0, "delta": 1e-3, "bounds": (0, 1), "resolution": 0.25, "user_events": 2},
            {"epsilon": 1.0, "delta": 1e-2, "method": "tree", "window": 4, "user_events": 2},
        ]
