"""Key-value data: PCKV, PrivKV and rounds of it, for sparse tables of users and keys, against NumPy."""

import numpy as np
from scipy.sparse import csr_array

from benchmarks._harness import Row, interleave
from dpestim.local import PCKVEstimator, PrivKVEstimator, PrivKVMEstimator

EPSILON, KEYS, HELD = 1.0, 1000, 5


def estimators():
    """Return (name, estimator) of what is timed here."""
    return [
        ("PCKV, ue", PCKVEstimator(EPSILON, padding_length=HELD, variant="ue")),
        ("PCKV, grr", PCKVEstimator(EPSILON, padding_length=HELD, variant="grr")),
        ("PrivKV", PrivKVEstimator(EPSILON)),
        ("PrivKVM", PrivKVMEstimator(EPSILON)),
    ]


def table(n):
    """Return a sparse table: each of n users holds HELD of KEYS keys, with values from -1 to 1."""
    rng = np.random.default_rng(0)
    keys = np.sort((rng.integers(0, KEYS, (n, 1)) + np.arange(HELD) * (KEYS // HELD)) % KEYS, axis=1)
    return csr_array((rng.uniform(-1, 1, n * HELD), keys.reshape(-1), np.arange(n + 1) * HELD), shape=(n, KEYS))


def pckv_numpy(X, rng, take):
    """Draw PCKV reports of users who hold HELD keys: signs from -1 to 1, an int8 for each key, block by block."""
    e = np.exp(EPSILON)
    b, p = 2 / (e + 3), e / (e + 1)
    for at in range(0, X.shape[0], 256):
        rows = min(256, X.shape[0] - at)
        where = np.arange(at, at + rows) * HELD + rng.integers(0, HELD, rows)
        u = rng.random((rows, KEYS), np.float32)
        report = (u < b).astype(np.int8) - 2 * (u < b / 2)
        sign = np.where(rng.random(rows) < (1 + X.data[where]) / 2, 1, -1)
        sign = np.where(rng.random(rows) < p, sign, -sign)
        report[np.arange(rows), X.indices[where]] = np.where(rng.random(rows) < 0.5, sign, 0)
        take(report)


def rows(settings):
    """Yield the rows."""
    n = 2_000 if settings.quick else 100_000
    X = table(n)
    for name, estimator in estimators():
        yield from _rows_of(settings, X, name, estimator)


def _rows_of(settings, X, name, estimator):
    n, reports = X.shape[0], estimator.privatize(X)
    client = type(estimator)(**{**estimator.get_params(deep=False), "keys": KEYS})
    contestants = {"privatize": lambda: client.privatize(X), "fit": lambda: client.fit(X).release(),
                   "aggregate": lambda: type(client)(**client.get_params(deep=False)).aggregate(reports)}
    peers = {}
    if name == "PCKV, ue":
        sent = []
        pckv_numpy(X, np.random.default_rng(1), sent.append)

        def count(blocks):
            on, total = np.zeros(KEYS, np.int64), np.zeros(KEYS, np.int64)
            for block in blocks:
                on += np.count_nonzero(block, axis=0)
                total += block.sum(axis=0, dtype=np.int64)
            return on, total

        def both():
            on, total = np.zeros(KEYS, np.int64), np.zeros(KEYS, np.int64)

            def add(block):
                on[:] += np.count_nonzero(block, axis=0)
                total[:] += block.sum(axis=0, dtype=np.int64)

            pckv_numpy(X, np.random.default_rng(), add)
            return on, total

        peers = {"privatize": lambda: pckv_numpy(X, np.random.default_rng(), lambda block: None),
                 "fit": both, "aggregate": lambda: count(sent)}
    times, results, repeats = interleave({**contestants, **{f"numpy {k}": peer for k, peer in peers.items()}})
    if peers:
        ours, theirs = client._counts[0][:KEYS], results["numpy fit"][0]
        if abs(int(ours.sum()) - int(theirs.sum())) > 6 * np.sqrt(2 * n * KEYS / 4):
            raise RuntimeError("PCKV: the two laws have other numbers of cells that are on")
    for what in contestants:
        row = Row(f"{name}: {what}, {n:,} users x {KEYS:,} keys", ours=times[what], repeats=repeats)
        if peers:
            row.peer, row.baseline = "NumPy, PCG64, float32, blocks", times[f"numpy {what}"]
            row.ratio = row.baseline / row.ours
            row.judge(settings, 20)
        yield row
