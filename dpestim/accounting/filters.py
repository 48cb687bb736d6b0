"""Filters and odometers: budgets for releases that are chosen as results come in."""

import math
import os
import threading
from fractions import Fraction

import numpy as np

from dpestim.accounting.renyi import RenyiCurve
from dpestim.exceptions import BudgetExceededError
from dpestim.privacy.concentrated import largest_rho
from dpestim.privacy.curve import renyi_budget
from dpestim.privacy.rounding import OUTWARD, amount, float_up, positive, share


class _Account:
    """What was spent, a tuple of amounts; there is one of it, which threads share."""

    def __init__(self, n_amounts):
        self._spent, self._lock, self._process = (Fraction(0),) * n_amounts, threading.Lock(), os.getpid()

    def __reduce__(self):  # (copy and deepcopy ask it, too)
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled, because two copies could each spend the "
                        "whole budget: share one object among threads")

    def _spend(self, cost):
        if os.getpid() != self._process:
            raise ValueError(f"a {type(self).__name__} must be used in the process that made it: after a fork make a "
                             "new one, or use a Ledger")
        with self._lock:  # two threads that look at the same rest would both take it
            after = tuple(s + c for s, c in zip(self._spent, cost))
            self._check(after)
            self._spent = after

    def _check(self, after):
        """Refuse what must not be spent."""


class _Filter(_Account):
    """A budget, a tuple of amounts, and what was spent of it; a face says what amounts a cost has."""

    _budget = ()

    def __init__(self):
        super().__init__(len(self._budget))

    def would_exceed(self, *args, **kwargs):
        """Tell whether a release of this cost, given as to `spend`, would exceed the budget; nothing is spent."""
        return any(s + c > b for s, c, b in zip(self._spent, self._cost(*args, **kwargs), self._budget))

    def _check(self, after):
        if any(s > b for s, b in zip(after, self._budget)):
            raise BudgetExceededError(f"this release would exceed the budget of {self!r}: release with less budget, or "
                                      "not at all")

    def __repr__(self):
        shares = ", ".join(f"{float(s / b):.4g}" if b else "0" for s, b in zip(self._spent, self._budget))
        return f"<{type(self).__name__} of which {shares} is spent>"


class BasicFilter(_Filter):
    """A privacy filter for a budget of (epsilon, delta); amounts spent may depend on results.

    **Privacy.** All releases together are (epsilon, delta)-private, if each keeps what is spent for it.

    Threads may share it. It is one account: copies and pickles raise TypeError, and a forked process ValueError.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float, default=0
        From 0 to 1.

    Attributes
    ----------
    spent : tuple of two Fractions
        Epsilon and delta.

    References
    ----------
    Rogers, Roth, Ullman, Vadhan (2016), "Privacy odometers and filters", NeurIPS. The proof:
    ``filters.md``.

    Examples
    --------
    >>> from dpestim.accounting import BasicFilter
    >>> budget = BasicFilter(1.0, 1e-6)
    >>> budget.spend(0.7)
    >>> budget.would_exceed(0.3), budget.would_exceed(0.3, 1e-5)
    (False, True)
    """

    def __init__(self, epsilon, delta=0):
        self._budget = amount(epsilon, "epsilon"), amount(delta, "delta", 1)
        super().__init__()

    @property
    def spent(self):
        """Epsilon and delta that were spent."""
        return self._spent

    @staticmethod
    def _cost(epsilon, delta=0):
        return amount(epsilon, "epsilon"), amount(delta, "delta", 1)

    def spend(self, epsilon, delta=0):
        """Take epsilon and delta, before the release; BudgetExceededError, nothing spent, where too little is left."""
        self._spend(self._cost(epsilon, delta))


class ConcentratedFilter(_Filter):
    """A privacy filter for a budget of concentrated privacy (zCDP); amounts spent may depend on results.

    Many small releases cost about the square root of what they cost a `BasicFilter`.

    **Privacy.** All releases together are `rho`-concentrated, and so (epsilon, delta)-private, if each is concentrated
    with the rho that is spent for it. An epsilon-private one costs epsilon^2 / 2 (`concentrated_of`), Gaussian noise
    (sensitivity / sigma)^2 / 2.

    Threads may share it. It is one account: copies and pickles raise TypeError, and a forked process ValueError.

    Parameters
    ----------
    epsilon, delta : float
        Of everything together: above 0, delta below 1.

    Attributes
    ----------
    rho : Fraction
        The budget, the largest that is (epsilon, delta)-private.
    spent : Fraction
        Rho that was spent.

    References
    ----------
    Feldman, Zrnic (2021), "Individual privacy accounting via a Renyi filter", NeurIPS, theorem 3.1. The proof:
    ``filters.md``.

    Examples
    --------
    >>> from dpestim.accounting import ConcentratedFilter, concentrated_of
    >>> budget, n = ConcentratedFilter(1.0, 1e-6), 0
    >>> while not budget.would_exceed(concentrated_of(0.01)):
    ...     budget.spend(concentrated_of(0.01))
    ...     n += 1
    >>> n
    487
    """

    def __init__(self, epsilon, delta):
        self._budget = (largest_rho(epsilon, delta),)
        super().__init__()

    @property
    def rho(self):
        """The budget."""
        return self._budget[0]

    @property
    def spent(self):
        """Rho that was spent."""
        return self._spent[0]

    @staticmethod
    def _cost(rho):
        return (amount(rho, "rho"),)

    def spend(self, rho):
        """Take rho, before the release; BudgetExceededError where too little is left, and nothing is spent."""
        self._spend(self._cost(rho))


class RenyiFilter(_Filter):
    """A privacy filter for a budget of Renyi divergence of one order; amounts spent may depend on results.

    **Privacy.** All releases together are (epsilon, delta)-private, if each has the curve that is spent for it.

    Threads may share it. It is one account: copies and pickles raise TypeError, and a forked process ValueError.

    Parameters
    ----------
    epsilon, delta : float
        Of everything together: above 0, delta below 1.
    order : float
        Above 1, fixed in advance; about 1 + ln(1 / delta) / epsilon, and more for many small releases.

    Attributes
    ----------
    spent : float
        The share of the budget that was spent.

    References
    ----------
    Feldman, Zrnic (2021), "Individual privacy accounting via a Renyi filter", NeurIPS, theorem 3.1. The proof:
    ``filters.md``.

    Examples
    --------
    >>> from dpestim.accounting import RenyiCurve, RenyiFilter
    >>> budget, noisy = RenyiFilter(2.0, 1e-6, order=13), RenyiCurve.gaussian(20.0)
    >>> budget.spend(noisy.compose(60))
    >>> budget.would_exceed(noisy), budget.would_exceed(noisy.compose(60))
    (False, True)
    """

    def __init__(self, epsilon, delta, order):
        self._t = float(positive(order, "order")) - 1
        if self._t <= 0:
            raise ValueError("order must be above 1")
        allowed = renyi_budget(self._t, positive(epsilon, "epsilon"), share(delta, "delta"))
        if allowed <= 0:
            raise ValueError("order is too small for this epsilon and delta, which would allow no release: take a "
                             "larger order")
        self._budget = (Fraction(allowed),)
        super().__init__()

    @property
    def spent(self):
        """The share of the budget that was spent."""
        return float(self._spent[0] / self._budget[0])

    def _cost(self, curve):
        if not isinstance(curve, RenyiCurve):
            raise ValueError("curve must be a RenyiCurve")
        cost = float(curve.cgf(np.array([self._t]))[0])
        return (Fraction(cost) if math.isfinite(cost) else self._budget[0] + 1,)

    def spend(self, curve):
        """Take a curve, before the release; BudgetExceededError where too little is left, and nothing is spent."""
        self._spend(self._cost(curve))


class ConcentratedOdometer(_Account):
    """The privacy loss of releases so far, without a fixed budget; amounts spent may depend on results.

    **Privacy.** With probability at least 1 - delta the privacy loss of all releases so far is at most `epsilon`, at
    all times together. That is what a data-dependent time to stop needs, and it costs: epsilon is that of the next
    level of rho, each twice the one before, at a fraction of delta.

    Threads may share it. It is one account: copies and pickles raise TypeError, and a forked process ValueError.

    Parameters
    ----------
    delta : float
        Above 0, below 1.
    start : float, default=1e-4
        The first level of rho; any, declared in advance.

    Attributes
    ----------
    spent : Fraction
        Rho that was spent.
    epsilon : float
        What holds now, rounded up; 0 where nothing was spent.

    References
    ----------
    Feldman, Zrnic (2021), "Individual privacy accounting via a Renyi filter", NeurIPS.
    Rogers, Roth, Ullman, Vadhan (2016), "Privacy odometers and filters", NeurIPS. The proof: ``filters.md``.

    Examples
    --------
    >>> from dpestim.accounting import ConcentratedOdometer
    >>> odometer = ConcentratedOdometer(1e-6)
    >>> odometer.spend(0.01)
    >>> round(odometer.epsilon, 3)
    1.008
    """

    def __init__(self, delta, *, start=1e-4):
        super().__init__(1)
        self._delta, self._start = share(delta, "delta"), positive(start, "start")
        if self._delta == 1:
            raise ValueError("delta must be below 1")

    def __repr__(self):
        return f"<ConcentratedOdometer at epsilon {self.epsilon:.6g}>"

    def spend(self, rho):
        """Count a release that is rho-concentrated."""
        self._spend((amount(rho, "rho"),))

    @property
    def spent(self):
        """Rho that was spent."""
        return self._spent[0]

    @property
    def epsilon(self):
        """What holds now."""
        spent, level = self.spent, 0
        if not spent:
            return 0.0
        while self._start * 2**level < spent:
            level += 1
        rho, log = float_up(self._start * 2**level), -math.log(self._delta) + (level + 1) * math.log(2)
        return (rho + 2 * math.sqrt(rho * log)) * (1 + OUTWARD)
