"""What owners of rows agree on before any gradient, from public numbers alone, and what it is expected to cost."""

import contextlib
import math

import numpy as np
from scipy.sparse import issparse

from dpestim.linear_model.base_rate import (
    ENOUGH,
    ENOUGH_FOR_MEAN,
    class_counts,
    class_shares,
    noisy_mean,
    offsets_of,
    share_of,
)
from dpestim.linear_model.gradient import Agreement, Schedule, descend, margins_of
from dpestim.linear_model.shapes import Softmax


class LedgersOfOwners:
    """The ledgers of several owners as one: each sets aside what it will pay before any is charged.

    Parameters
    ----------
    ledgers : list of Ledger
        One for each owner.
    """

    def __init__(self, ledgers):
        if not ledgers or any(isinstance(one, type) or not callable(getattr(one, "charge", None)) for one in ledgers):
            raise ValueError("ledger must be one Ledger, or a list of one for each owner")
        self._ledgers = list(ledgers)

    def charge_each(self, promises, sizes, **entry):
        """Charge each owner's promise, or raise what a ledger raises; where that is foreseeable, nobody has paid."""
        if len(self._ledgers) != len(promises):
            raise ValueError(f"ledger must be one Ledger, or a list of one for each of the {len(promises)} owners")
        distinct = [one for at, one in enumerate(self._ledgers) if one not in self._ledgers[:at]]
        own = [(one, [promise for other, promise in zip(self._ledgers, promises) if one == other]) for one in distinct]
        for ledger, costs in own:
            if callable(getattr(ledger, "check", None)):
                ledger.check(costs)
        with contextlib.ExitStack() as reservations:  # (somebody else may charge them between now and then)
            for ledger, costs in own if len(promises) > 1 else ():
                if callable(getattr(ledger, "reserve", None)):
                    reservations.enter_context(ledger.reserve(costs, estimator=entry.get("estimator", "")))
            for ledger, promise, n in zip(self._ledgers, promises, sizes):
                ledger.charge(promise, n_rows=n, **entry)

    def record_score(self, **entry):
        """Record with every owner: rows that are shown may be anybody's."""
        for ledger in self._ledgers:
            if hasattr(ledger, "record_score"):
                ledger.record_score(**entry)


def places_of(owners, n_rows, n_owners=None):
    """Return the rows of each owner, or raise ValueError; ``n_owners`` None: as many as there are."""
    if owners is None:
        return [np.arange(n_rows)]
    ids = np.asarray(owners)
    if ids.shape != (n_rows,) or ids.dtype.kind not in "iu" or (ids < 0).any():
        raise ValueError(f"owners must hold one int of at least 0 for each of the {n_rows} rows")
    n_owners = int(ids.max(initial=0)) + 1 if n_owners is None else n_owners
    if ids.max(initial=0) >= n_owners:
        raise ValueError(f"owners must be below {n_owners}, the number of owners with an epsilon: give each owner an "
                         "epsilon")
    return [np.flatnonzero(ids == owner) for owner in range(n_owners)]


def agree(budgets, sizes, size, link, C, n_steps, *, by_size):
    """Return (what each owner will answer, weights, schedule).

    Parameters
    ----------
    budgets : list of (epsilon, delta)
    sizes : list of int
        Rows of each owner.
    size : int
        Coefficients of an output.
    link : Link
    C : float or None
    n_steps : int or None
    by_size : bool
        Whether owners weigh as much as they have rows; else as their noise is small.
    """
    def deviations(steps):
        made = [Agreement.of(*budget, n, size, link, steps) for budget, n in zip(budgets, sizes)]
        return made, deviations_of(made, sizes, link)

    _, single = deviations(1)
    weights = np.array([max(n, 1) for n in sizes], float) if by_size else single**-2
    weights /= weights.sum()
    strength = 0.0 if C is None else 1 / (float(C) * max(sum(sizes), 1))
    schedule = Schedule.of(float(np.square(weights * single).sum()), size * link.n_outputs, link, strength,
                           None if n_steps is None else int(n_steps), pure=not budgets[0][1])
    return deviations(schedule.n_steps)[0], weights, schedule


def counting_of(budgets, sizes, link):
    """Return the part of each owner's epsilon that says from where margins start (`start_of`)."""
    enough = ENOUGH if link.n_classes else ENOUGH_FOR_MEAN
    return [share_of(epsilon, n, enough) for (epsilon, _), n in zip(budgets, sizes)]


def start_of(targets, weights, counting, link, sources):
    """Return the margins of a model that knows nothing but the shares of classes, or the mean: one for each output.

    Parameters
    ----------
    targets : list of ndarray
        Of each owner, as the link takes them.
    weights : ndarray
    counting : list of Fraction
        The epsilons that owners pay for it.
    link : Link
    sources : list of dpestim.rng.WordSource
        One for each owner and nothing else.
    """
    if link.n_classes:
        found = 0.0
        for weight, own, epsilon, source in zip(weights, targets, counting, sources):
            codes = np.where(own == 0, -1, own > 0) if link.n_classes == 2 else own
            found = found + weight * class_shares(class_counts(codes, link.n_classes), len(codes), epsilon, source, 0)
        return offsets_of(found, Softmax(link.n_classes))
    means = np.array([noisy_mean(own, epsilon, source, 0) for own, epsilon, source in zip(targets, counting, sources)])
    mean, noise = weights @ means[:, 0], np.square(weights) @ means[:, 1]
    # towards the middle of the range where it is no further from it than noise is (James and Stein 1961)
    return np.clip([mean * max(0.0, 1.0 - noise / mean**2 if mean else 0.0)], -1.0, 1.0)


def deviations_of(agreements, sizes, link):
    """Return the standard deviation of the noise in each owner's mean gradient."""
    return np.array([one.deviation(link) / max(n, 1) for one, n in zip(agreements, sizes)])


def fitness_cost(agreements, sizes, weights, schedule, link, size, curvatures=None):
    """Return the expected rise of the mean loss that noise causes, along curvatures (`federated.md`)."""
    if curvatures is None:
        falling = np.arange(1.0, size + 1) ** -2
        curvatures = np.tile(0.6 * link.curvature * falling / falling.sum(), directions_of(link))
    variance = float(np.square(weights * deviations_of(agreements, sizes, link)).sum())
    gain = math.fsum(h * float(np.square(schedule.path(float(h))[1]).sum()) for h in curvatures)
    return variance * gain / 2


def directions_of(link):
    """Return how many outputs move independently: moving all of a softmax alike changes nothing."""
    return max(link.n_outputs - 1, 1)


def curvatures_of(rows, targets, link, C):
    """Return the curvatures of the mean loss of public rows at its minimum, for each direction of outputs in turn."""
    n, size = rows.shape
    flat = margins_of(link, rows)

    def mean_gradient(w):
        return (rows.T @ link.slopes(flat(w), targets).reshape(n, link.n_outputs)).T / n

    strength = 0.0 if C is None else 1 / (float(C) * n)
    w = descend([mean_gradient], np.ones(1), Schedule.of(0.0, size, link, strength), (link.n_outputs, size))
    step = 1e-5  # slopes are smooth: differences of them are second derivatives, well within what is of use here
    bends = [(link.slopes(flat(w) + step, targets) - link.slopes(flat(w) - step, targets)) / (2 * step)]
    if link.n_outputs > 1:  # of p in the direction u: sum p u^2 - (sum p u)^2, along the axes of its mean over rows
        shares = link.slopes(flat(w), np.zeros(n, np.int64)) + np.eye(link.n_outputs)[0]
        axes = np.linalg.eigh(np.diag(shares.mean(axis=0)) - shares.T @ shares / n)[1].T[1:]
        bends = [shares @ axis**2 - (shares @ axis) ** 2 for axis in axes]
    products = [rows.T @ (rows * bend[:, None]) / n for bend in bends]
    found = [np.linalg.eigvalsh(one.toarray() if issparse(one) else one) for one in products]
    return np.clip(np.concatenate(found), 0.0, None)
