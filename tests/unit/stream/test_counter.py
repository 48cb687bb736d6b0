"""Running totals: sensitivities by brute force, errors against the published constant, and states that go on once."""

import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpestim.accounting import Ledger
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.stream import StreamCounter, run
from dpestim.stream.factors import SmoothFactor, TreeFactor, root_above
from dpestim.stream.run import Run
from dpestim.stream.totals import Meter, Plan

ONE = (Fraction(1), Fraction(1, 10**6), Fraction(0))


def factor(kind, horizon, events=1, change=1, delta=ONE[1]):
    return kind(ONE[0], delta, Fraction(0), horizon, change, events, change)


@pytest.mark.parametrize("events", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_no_neighbouring_streams_are_further_apart_than_noise_is_for(n, events):
    """All streams of up to 8 steps, event level and user level: squared L2 norms of codes and nodes, L1 of nodes."""
    smooth, tree = factor(SmoothFactor, n, events), factor(TreeFactor, n, events)
    for made in (smooth, tree):
        moved = {x: np.array(made.moved(np.array(x, np.int64)), object) for x in product((0, 1), repeat=n)}
        worst = most = 0
        for x, one in moved.items():
            for places in combinations(range(n), min(events, n)):
                apart = one - moved[tuple(1 - v if t in places else v for t, v in enumerate(x))]
                worst, most = max(worst, (apart * apart).sum()), max(most, np.abs(apart).sum())
        assert worst <= made.square
        if events == 1:
            assert worst >= Fraction(999, 1000) * made.square  # (no noise is wasted)
    if events == 1:
        assert most == tree.levels
    assert most <= events * tree.levels


def test_sums_in_integers_lag_by_less_than_is_allowed_for():
    """Codes are those of exact weights, but for the declared lag, for long streams of large steps of both signs."""
    made = factor(SmoothFactor, 4096, change=1000)
    x = np.random.default_rng(0).integers(-1000, 1001, 4096)
    kept, weights = 1 - np.ldexp(1.0, -made.shifts), np.ldexp(made.weights.astype(float), -30)
    response = (weights[:, None] * kept[:, None] ** np.arange(4096)).sum(0)
    response[0] += 357127282 / 2**30
    exact = np.convolve(x, response)[:4096] * 2.0**made.scale
    off = np.array(made.moved(x), float) - exact
    assert off.min() > -1.01
    assert off.max() < float(made._lag)
    assert np.isclose(float(made._column), (response**2).sum(), rtol=1e-6)


@pytest.mark.parametrize("sizes", [[*range(1, 9), 64, 65, 4096],
                                   pytest.param([*range(9, 40), 63, 1000, 20000], marks=pytest.mark.ci)])
def test_mean_squared_errors_are_those_of_the_square_root_and_below_the_tree(sizes):
    """Within 5 % of the square root factorization, whose error is published, at every n; below the tree from 2 on."""
    unit = float(factor(TreeFactor, 1).law.variance_steps)
    k = np.arange(1, 20000)
    root = np.cumsum(np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) ** 2)
    for n in sizes:
        errors = {}
        for method in ("factorization", "tree"):
            plan = Plan(method, *ONE[:2], n, None, 1, 1, 1)
            errors[method] = Meter(plan).take(n)[0].mean() / unit
        published = root[n - 1] * root[:n].mean()
        assert errors["factorization"] < 1.05 * published
        assert published < (1 + np.log(n) / np.pi) ** 2 + 1e-9
        assert n == 1 or errors["factorization"] < 0.8 * errors["tree"]


@pytest.mark.parametrize("params", [
    {"window": 37, "method": "tree"}, {"horizon": 700, "method": "tree", "delta": None},
    *(pytest.param(params, marks=pytest.mark.ci) for params in (
        {"horizon": 700}, {}, {"window": 37}, {"horizon": 700, "method": "tree"}, {"method": "tree"}))])
def test_intervals_hold_as_often_as_they_say(params):
    x = np.random.default_rng(1).integers(0, 2, 700)
    truth = np.cumsum(x).astype(float)
    if "window" in params:
        truth[37:] -= np.cumsum(x)[:-37]
    inside, squares = [], []
    for seed in range(40):
        est = StreamCounter(1.0, **{"delta": 1e-6, **params}, random_state=seed).fit(x)
        low, high = est.confidence_interval(0.8)
        inside.append(((low <= truth) & (truth <= high))[::7])
        squares.append((((est.values_ - truth) / est.standard_errors_) ** 2)[::7])
    assert 0.74 < np.mean(inside) < 0.9
    assert 0.75 < np.mean(squares) < 1.3


def test_memory_does_not_grow_and_releases_follow_the_total():
    est = StreamCounter(8.0, delta=1e-3, horizon=10**6, random_state=0)
    sizes = []
    for _ in range(3):
        last = est.partial_fit(np.ones(10**5, np.int64))[-1]
        sizes.append(len(pickle.dumps(est._run)))
    assert max(sizes) < 3000
    assert max(sizes) - min(sizes) < 100
    assert abs(last - 300_000) < 6 * est.standard_errors_[-1]


@pytest.fixture
def paid(tmp_path):
    """Return a stream of three steps, which was paid for from a ledger in a file."""
    ledger = Ledger(1, delta=1e-3, neighbours="event", path=tmp_path / "events", durability="fast")
    est = StreamCounter(1.0, delta=1e-3, horizon=10, ledger=ledger)
    est.partial_fit([1, 0, 1])
    return est


def nobody_else_goes_on(est):
    """The stream that was pickled is where the restored one was; it has been paid for once."""
    with pytest.raises(ValueError, match="has gone on from this step"):
        est.partial_fit(1)
    assert est.ledger.spent().epsilon == 1
    with pytest.raises(ValueError, match="is left"):
        est.fit([1])


def test_a_stream_is_paid_for_once_and_cannot_be_overdrawn_by_a_restart(paid, monkeypatch):
    """A restored pickle goes on for nothing; nobody else goes on from there, by what the ledger knows alone."""
    state = pickle.dumps(paid)

    def as_in_a_new_process():
        monkeypatch.setattr(run, "_TAKEN", set())

    as_in_a_new_process()
    first = pickle.loads(state)
    assert first.partial_fit([1, 1]).shape == (2,)
    assert first.n_steps_ == 5
    as_in_a_new_process()
    with pytest.raises(ValueError, match="has gone on from this step"):
        pickle.loads(state).partial_fit([1, 1])
    as_in_a_new_process()
    nobody_else_goes_on(paid)


@pytest.mark.ci
def test_a_stream_goes_on_in_one_of_two_processes(paid, tmp_path):
    (tmp_path / "state").write_bytes(pickle.dumps(paid))
    script = ("import pickle, sys; est = pickle.load(open(sys.argv[1], 'rb')); "
              "print(est.partial_fit([1, 1]).shape, est.n_steps_)")
    command = [sys.executable, "-c", script, str(tmp_path / "state")]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    assert first.stdout.split() == ["(2,)", "5"]
    second = subprocess.run(command, capture_output=True, text=True)
    assert second.returncode
    assert "has gone on from this step" in second.stderr
    nobody_else_goes_on(paid)


def test_a_horizon_ends():
    est = StreamCounter(1.0, delta=1e-3, horizon=3).fit([1, 1])
    with pytest.raises(ValueError, match="beyond the horizon of 3"):
        est.partial_fit([1, 1])
    assert est.n_steps_ == 2
    est.partial_fit(1)
    with pytest.raises(ValueError, match="beyond the horizon"):
        est.partial_fit(1)


def test_relations_are_named_and_accounts_are_apart():
    event, user = (StreamCounter(1.0, delta=1e-3, horizon=8, user_events=k).privacy_ for k in (None, 3))
    assert event.neighbours is Neighbours.EVENT
    assert "Event level" in str(event)
    assert user.neighbours is Neighbours.USER
    assert "at most 3 events" in str(user)
    assert user.to("event").epsilon == 1
    row = PrivacyGuarantee(1)
    for one, other in ((event, "user"), (event, "substitution"), (user, "substitution"), (row, "event")):
        with pytest.raises(ValueError, match="neighbours="):
            one.to(other)
    with pytest.raises(ValueError, match='neighbours="event"'):
        StreamCounter(1.0, delta=1e-3, horizon=8, ledger=Ledger(9, delta=0.1)).fit([1])


def test_frames_and_series_are_read_like_arrays():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x = [1, 0, 1, 1]
    wanted = StreamCounter(1.0, method="tree", horizon=8, random_state=0).partial_fit(x)
    frame = pd.DataFrame({"a": x})
    for X in (np.array(x, np.uint8), tuple(x), frame["a"], frame, pl.Series(x), pl.DataFrame({"a": x})):
        assert np.array_equal(StreamCounter(1.0, method="tree", horizon=8, random_state=0).partial_fit(X), wanted)


def test_what_is_too_wide_for_integers_is_refused():
    with pytest.raises(ValueError, match="coarser resolution"):
        StreamCounter(1.0, delta=1e-3, horizon=2**40, bounds=(0, 2**39)).fit([1])
    with pytest.raises(ValueError, match="larger epsilon"):
        StreamCounter(1e-8, method="tree", horizon=2**40, bounds=(0, 2**20)).fit([1])
    with pytest.raises(ValueError, match="multiples of resolution"):
        StreamCounter(1.0, delta=1e-3, bounds=(0, 1), resolution=0.3).fit([1])


def test_a_picture_shows_releases_band_and_truth():
    pytest.importorskip("matplotlib").use("Agg")
    est = StreamCounter(1.0, method="tree", horizon=50, random_state=0).fit([1] * 20)
    est.partial_fit([1] * 20)
    shown = est.plot(range(21, 41))
    assert shown.line_.get_xdata().tolist() == list(range(21, 41))
    assert shown.band_ is not None
    assert shown.truth_.get_ydata()[-1] == 40
    with pytest.raises(ValueError, match="truth must have"):
        est.plot([1, 2])


def test_roots_are_rounded_up():
    for square in (Fraction(2), Fraction(1, 3), Fraction(10**40), Fraction(1, 10**40), Fraction(4)):
        root = root_above(square)
        assert square <= root**2 <= square * (1 + Fraction(1, 10**11))


def test_two_threads_do_not_go_beyond_the_horizon(monkeypatch):
    est, told, threads, claim = StreamCounter(horizon=8, method="tree"), [], [], Run.claim
    est.partial_fit(np.ones(4))

    def second():
        try:
            est.partial_fit(np.ones(4))
        except ValueError as error:
            told.append(str(error))

    def slow(run, *arguments):  # (the second thread comes while the first one takes the last steps)
        if not threads:
            threads.append(threading.Thread(target=second, daemon=True))
            threads[0].start()
            threads[0].join(0.2)
        return claim(run, *arguments)

    monkeypatch.setattr(Run, "claim", slow)
    est.partial_fit(np.ones(4))
    threads[0].join(5)
    assert not threads[0].is_alive()
    assert len(told) == 1
    assert "horizon" in told[0]
    assert est.n_steps_ == 8
