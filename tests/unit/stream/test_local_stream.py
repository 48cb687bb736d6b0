"""Streams of reports: frequencies and intervals of every step, what all reports promise, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from dpestim import local
from dpestim.stream import LocalStream

CLIENTS = ["LGRRFrequencyEstimator", "LOLOHAFrequencyEstimator", "LOSUEFrequencyEstimator", "LOUEFrequencyEstimator",
           "DBitFlipFrequencyEstimator", "RAPPORFrequencyEstimator"]


def moving(n=4000, steps=4):
    """Return rows of users of whom more and more are in the first category."""
    u = np.random.default_rng(0).random(n)
    return [np.where(u < 0.2 + 0.15 * t, "a", np.where(u < 0.9, "b", "c"))[:, None] for t in range(steps)]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_longitudinal_mechanism_makes_a_stream_that_follows_the_truth(name):
    client = getattr(local, name)(3.0, categories=[["a", "b", "c"]], random_state=0)
    rows = moving()
    state, stream = client.client_state(rows[0]), LocalStream(client)
    for X in rows:
        found = stream.partial_fit(client.privatize(X, state=state))
    truth = np.array([[(value == X).mean() for value in stream.categories_] for X in rows])
    off = np.abs(stream.values_ - truth) / stream.standard_errors_
    assert off.max() < 4.5
    assert np.abs(stream.values_ - truth[:1])[-1].max() > 0.3  # (it moves, and the estimates with it)
    assert np.array_equal(found, stream.value_)
    low, high = stream.confidence_interval(0.9)
    assert low.shape == (4, 3)
    assert (low < stream.values_).all()
    assert (stream.values_ < high).all()
    assert stream.privacy_ == client.privacy_of(state)
    again = pickle.loads(pickle.dumps(stream))
    again.partial_fit(client.privatize(rows[0], state=state))
    assert (again.n_steps_, stream.n_steps_) == (5, 4)
    assert clone(stream).get_params()["client"].epsilon == 3.0


def test_intervals_hold_as_often_as_they_say_at_every_step():
    rows, inside = moving(400, 2), []
    truth = np.array([[(value == X).mean() for value in "abc"] for X in rows])
    for seed in range(60):
        client = local.LGRRFrequencyEstimator(2.0, categories=[["a", "b", "c"]], random_state=seed)
        state = client.client_state(rows[0])
        low, high = LocalStream(client).fit([client.privatize(X, state=state) for X in rows]).confidence_interval(0.8)
        inside.append((low <= truth) & (truth <= high))
    assert (np.abs(np.mean(inside, axis=0) - 0.8) < 0.17).all()


def test_a_stream_refuses_what_is_none_and_keeps_its_steps():
    rows = moving(300)
    client = local.LGRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]], random_state=0)
    reports = [client.privatize(X, state=client.client_state(X)) for X in rows]
    stream = LocalStream(client).fit(reports)
    assert stream.n_users_.tolist() == [300] * 4
    with pytest.raises(ValueError, match="a code below 3"):
        stream.partial_fit(np.full((3, 1), 9, np.uint8))
    with pytest.raises(ValueError, match="sequence"):
        stream.fit(reports[0])
    with pytest.raises(ValueError, match="a step at least"):
        stream.fit([])
    stream.client = local.LGRRFrequencyEstimator(2.0, categories=[["a", "b", "c"]])
    with pytest.raises(ValueError, match="stay what it was"):
        stream.partial_fit(stream.client.privatize(rows[0]))
    assert stream.n_steps_ == 4
    for wrong in (None, local.GRRFrequencyEstimator(1.0, categories=[["a", "b"]])):
        with pytest.raises(ValueError, match="longitudinal"):
            LocalStream(wrong).partial_fit(reports[0])
    two = local.LGRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]] * 2)
    with pytest.raises(ValueError, match="one column"):
        LocalStream(two).partial_fit(two.privatize(np.hstack([rows[0]] * 2)))
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = LocalStream(client).values_


def test_a_picture_of_a_category():
    pytest.importorskip("matplotlib").use("Agg")
    client = local.LGRRFrequencyEstimator(2.0, categories=[["a", "b", "c"]], random_state=0)
    rows = moving(500)
    state = client.client_state(rows[0])
    stream = LocalStream(client).fit([client.privatize(X, state=state) for X in rows])
    shown = stream.plot([0.2, 0.35, 0.5, 0.65], category=0)
    assert shown.line_.get_xdata().tolist() == [1, 2, 3, 4]
    assert shown.band_ is not None
    with pytest.raises(ValueError, match="truth"):
        stream.plot([1, 2])
