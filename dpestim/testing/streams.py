"""Streams: worst cases over all short neighbouring streams, laws of releases, and a state that goes on exactly once."""

import copy
import math
import pickle
from itertools import combinations, product

import numpy as np

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.tools import Book, refuses, require, same_state

#: Steps of the streams that are enumerated, pairs of them at most, and streams whose releases are compared with a law.
SHORT, MOST, N = 6, 600, 400
#: How far the mean of N squares of normal numbers may be off, in standard deviations.
_FAR = 5.5


class Streams(Releases):
    """An estimator of a stream, and how it is used."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.relation = estimator._relation().value
        self.wrong = {"user_events": (0, 1.5, True, "2"), "bounds": (None, (1, 0), (0, math.inf), "01"),
                      "change": (0, -1, "a", math.nan), "resolution": (0, -1, None, math.inf),
                      "horizon": (0, 1.5, True, 2**41), "window": (0, 2.5, 10**9), "method": (None, "noise", 1)}
        if getattr(estimator, "method", None) == "tree" or getattr(estimator, "delta", 1) is None:  # what needs none
            self.wrong["delta"] = (1, 1.5, -1e-9, math.nan, "0", True)
        self.wrong.update(getattr(estimator, "_test_wrong", {}))

    def checks(self):
        """Return the checks of what takes a stream."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """A stream."""
        return self.estimator._test_data(6)[0]

    def bad(self):
        """Return what is no stream."""
        values = np.array(self.data, float)
        values.flat[0] = math.nan
        yield values
        yield np.zeros((2, 3, 4))
        yield {"a": 1}

    def odd(self):
        """Return streams that differ in one value."""
        yield np.array(self.data, float)
        for value in (math.nan, math.inf, -1e300, 0.5, 7.0):
            values = np.array(self.data, float)
            values.flat[-1] = value
            yield values

    def shown(self, released):
        """Return the shape and the type of releases."""
        return type(released), np.shape(released)

    def short(self):
        """Return an estimator of short streams."""
        est = self.fresh()
        return est.set_params(horizon=SHORT) if getattr(est, "horizon", None) else est


def neighbouring(spec, events, n_steps, within):
    """Yield pairs of streams, arrays of integers, that differ in this number of events, or of successive steps."""
    low, high, change, width = spec.steps.low, spec.steps.high, spec.steps.change, spec.steps.width or 1
    values = [low, low + change] if low + change <= high else [low]
    streams = [np.array(one, np.int64).reshape(n_steps, 1) for one in product(values, repeat=n_steps)]
    if width > 1:
        rng = np.random.default_rng(0)
        streams = [rng.choice(values, (n_steps, width)) for _ in range(40)]
    places = list(product(range(n_steps), range(width)))
    if within is not None:  # (these differ in one cell of each of so many successive steps)
        yield from _stretches(streams, within, change, high)
        return
    for one in streams:
        for chosen in combinations(places, min(events, len(places))):
            two = one.copy()
            for place in chosen:
                two[place] += change if two[place] + change <= high else -change
            yield one, two


def _stretches(streams, within, change, high):
    rng = np.random.default_rng(1)
    for one in streams * 12:
        n_steps, width = one.shape
        first = int(rng.integers(0, max(1, n_steps - within + 1)))
        two = one.copy()
        for t in range(first, min(first + within, n_steps)):
            cell = rng.integers(width)
            two[t, cell] += change if two[t, cell] + change <= high else -change
        yield one, two


def check_stream_keeps_epsilon(streams):
    """Over all short neighbouring streams: no more than epsilon, or rho, is spent; and the worst pair spends it."""
    est = streams.short()
    spec, events = est._spec(), est._events()
    n_steps = getattr(spec, "n_short", SHORT)
    # (what the estimator declares, and not what it makes of it)
    within = n_steps if getattr(spec, "every", False) else est.window if getattr(spec, "successive", False) else None
    pairs = list(neighbouring(spec, events, n_steps, within))
    pairs = pairs[:: max(1, len(pairs) // MOST)]
    delta = getattr(est, "delta", None)
    allowed = est._guarantee().concentrated.rho if delta else canonical_epsilon(est.epsilon)
    worst = 0
    for k, (one, two) in enumerate(pairs):
        worst = max(worst, spec.loss(one, two, est._noise(k)))
    require(worst <= allowed, f"neighbouring streams spend {float(worst):.4g}, more than {float(allowed):.4g}")
    least = getattr(spec, "tight", 0.9)
    require(worst >= least * allowed, f"neighbouring streams spend {float(worst):.4g}, far below {float(allowed):.4g}")


def check_stream_follows_law(streams):
    """Releases are off by what their standard errors say; the same test rejects noise that is 0.7 times as large."""
    est, data = streams.fresh(random_state=None), streams.data
    spec = est._spec()
    if not hasattr(spec, "exact"):
        return
    truth, found = spec.exact(spec.read(data, False)[0]), []
    for seed in range(N):
        last = spec.take(spec.begin(), spec.read(data, False)[0], est._noise(seed))
        if "errors" not in last:
            return
        found.append(((last["values"] - truth) / last["errors"])[-1])
    squares = np.square(found)
    mean, error = squares.mean(), squares.std() / math.sqrt(squares.size)
    require(abs(mean - 1) < _FAR * error, f"squared errors are {mean:.3f} times what standard errors say")
    require(abs(0.49 * mean - 1) > _FAR * 0.49 * error, "the test sees no wrong noise")
    center, spread = np.mean(found), 1 / math.sqrt(np.size(found))
    require(abs(center) < _FAR * spread, "releases are off to one side")


def check_stream_goes_on(streams):
    """Under a seed many calls release what one does; the first one is charged, and the state stays with one copy."""
    data, est, book = np.asarray(streams.data), streams.fresh(), Book()
    whole = streams.fresh().partial_fit(data)
    est.set_params(ledger=book)
    parts = [est.partial_fit(data[:2]), est.partial_fit(data[2:3]), np.asarray(est.partial_fit(data[3]))[None],
             est.partial_fit(data[4:])]
    require(same_state(np.concatenate(parts), whole), "steps one by one must release what a batch does")
    require(len(book.paid) == 1 and est.n_steps_ == len(data), "a stream is charged once")
    for how in (lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy):
        est = streams.fresh(random_state=None)
        est.partial_fit(data[:3])
        one, two = how(est), how(est)
        require(same_state(one.values_, est.values_) and one.privacy_ == est.privacy_, "a copy is not the same")
        later = one.partial_fit(data[3:])
        require(len(later) == len(data) - 3 and one.n_steps_ == len(data), "a copy must go on where it ended")
        require(not one._run.noise(None).seeded, "a copy without a seed must draw fresh noise")
        refuses(lambda two=two: two.partial_fit(data[3:]), "a second copy that goes on")
        refuses(lambda est=est: est.partial_fit(data[3:]), "a stream of which a copy went on")
        est.fit(data)
        require(est.n_steps_ == len(data), "fit must start a new stream")


CHECKS = (check_stream_keeps_epsilon, check_stream_follows_law, check_stream_goes_on)
