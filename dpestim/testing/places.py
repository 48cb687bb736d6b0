"""Reports of places: exact laws over all pairs of places of small regions, reports that follow them, remapping."""

from fractions import Fraction

import numpy as np

from dpestim.testing import contract, law, numbers, promises
from dpestim.testing.sample import Sample
from dpestim.testing.tools import require, same_state

#: Relaxed promises are for each pair of places; `promises.check_declared_inputs` is about sets of values.
_PROMISES = tuple(check for check in promises.CHECKS if check is not promises.check_declared_inputs)


class Places(Sample):
    """A transformer of places to check; its settings have regions of few places."""

    def __init__(self, estimator):
        super().__init__(estimator, Declared)

    def checks(self):
        """Return the checks of a transformer of places."""
        return (*law.LAW_CHECKS, *_PROMISES, *CHECKS, *contract.CLIENT_CHECKS, *contract.BOTH_CHECKS)


class Declared(numbers.Numbers):
    """The data that checks of behaviour need for declared regions."""

    @staticmethod
    def other_domain(client):
        """Return the parameter of another region that the same rows suit."""
        low, high = client.bounds
        return {"bounds": (low, (np.asarray(high) + (np.asarray(high) - np.asarray(low))).tolist())}


def check_places_are_as_far_as_promised(places):
    """A relaxed promise is epsilon times the distance in metres of what `decode` says of two places, for every pair."""
    for column in places.fresh(**_plain(places))._columns_now():
        law_of = column.law
        at = column.places_of(np.arange(law_of.n_inputs)) * column.metres
        apart = np.abs(at[:, None] - at)
        apart = apart.sum(axis=2) if law_of.manhattan else np.sqrt(np.square(apart).sum(axis=2))
        for x in range(law_of.n_inputs):
            for other in range(law_of.n_inputs):
                promised = law_of.relaxed_between(x, other)
                require(isinstance(promised, Fraction), "what two places are promised must be exact")
                near = abs(float(promised) - float(law_of.epsilon) * apart[x, other]) < 1e-6 * (1 + float(promised))
                require(near, "what two places are promised is not epsilon times their distance")


def check_places_are_rounded_to_the_nearest(places):
    """Of any place of the region the code is a nearest place of the grid; places beyond are moved to the border."""
    est = places.fresh(**_plain(places))
    (column,) = est._columns_now()
    lows, highs = (np.array(end) for end in (column.lows, column.highs))
    rows = lows + (highs - lows) * np.random.default_rng(3).uniform(-0.3, 1.3, (400, 2))
    codes = column.coder()(rows)
    every = column.places_of(np.arange(column.law.n_inputs))
    for row, code in zip(np.clip(rows, lows, every.max(axis=0)), codes):
        apart = np.square((every - row) * column.metres).sum(axis=1)
        chosen = code[0] * column.law.n_second + code[1]
        require(apart[chosen] <= apart.min() * (1 + 1e-6) + 1e-9, "a place must be rounded to the nearest of the grid")


def check_prior_is_free_and_helps(places):
    """With a prior the same reports are sent, and the expected distance under it is no larger, exactly enumerated."""
    X = places.rows(50)
    plain = places.fresh(**_plain(places)).fit(X)
    (column,) = plain._columns_now()
    every = column.places_of(np.arange(column.law.n_inputs))
    weights = 1.0 + np.arange(len(every)) % 3 * 4
    if not plain._remaps:  # (the law is made for the prior)
        return
    wise = places.fresh(prior=(every, weights)).fit(X)
    require(same_state(plain.privatize(X).tolist(), wise.privatize(X).tolist()), "a prior must not change reports")
    require(plain.privacy_ == wise.privacy_, "a prior must not change the guarantee")
    matrix = np.array([[float(p) for p in row] for row in column.law.transition_matrix()])
    joint = matrix * (weights / weights.sum())[:, None]
    reports = np.arange(len(every)).astype(column.law.report_dtype)[:, None]

    def loss(decoded):
        return (joint * np.sqrt(np.square((every[:, None] - decoded) * column.metres).sum(axis=2))).sum()

    require(loss(wise.decode(reports)) <= loss(plain.decode(reports)) * (1 + 1e-9), "a prior must not make errors "
            "larger")


def _plain(places):
    return {"prior": None} if "prior" in places.estimator.get_params() else {}


CHECKS = (check_places_are_as_far_as_promised, check_places_are_rounded_to_the_nearest, check_prior_is_free_and_helps)
